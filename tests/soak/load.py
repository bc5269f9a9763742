"""Much of it: a large sweep, a long stream, other workers, fresh examples."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import xarray as xr

from circuits import CircuitParameters, ReferenceCircuit
from circuits.state import Task
from circuits.storage import results
from simulations import sweep
from simulations.datasets import MOONS_LIFT, two_moons
from simulations.experiments import get_experiment
from tests.soak import processes
from tests.soak.row import Row


def large_sweep(count: int, folder: Path) -> Row:
    """So many runs of two moons in one sweep; some of them against runs by themselves."""
    row = Row("runs of two moons in one sweep, two processes", tried=count)
    config = get_experiment("two-moons").config("exact", {"n_points": 300, "label_after": 60})
    seeds, jobs = list(range(count)), 2 if count > 2 else 1
    words = io.StringIO()
    with redirect_stderr(words), redirect_stdout(words):
        merged, _ = sweep.run_experiment(config, seeds, folder, jobs)
        again, _ = sweep.run_experiment(config, seeds, folder, jobs)
    if f"{count} of {count} runs were finished before" not in words.getvalue():
        row.lose("finished runs were not found again")
    for seed in set(seeds) - set(merged["seed"].values.tolist()):
        row.lose(f"seed {seed}")
    row.compare(again, merged, "merged once more")
    for seed in random.Random(0).sample(seeds, min(20, count)):
        alone = sweep.run_job(sweep.Job(config.as_dict(), seed))
        row.compare(results.load(sweep.job_path(folder, "two-moons", seed)), alone, f"seed {seed}")
    return row


STREAM = {"n_tiles": 40, "tile_radius": 0.4, "tiles": "first"}
LONG = """
import resource, sys
import numpy as np
from circuits import CircuitParameters, ManifoldCircuit
from simulations.datasets import MOONS_LIFT
from tests.soak.load import STREAM, pieces

circuit = ManifoldCircuit(CircuitParameters(**STREAM), MOONS_LIFT, "cpp_standalone")
peaks = []
for piece in circuit.run_stream(pieces(int(sys.argv[1]))):
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
state = circuit.state
np.savez(sys.argv[2], W=state.W, b=state.b, w=state.w, peaks=peaks, learned=state.learned)
"""


def pieces(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Points and labels of two moons, at most 10,000 at a time."""
    for start in range(0, count, 10_000):
        rng = np.random.default_rng(start)
        points, classes = two_moons(min(10_000, count - start), 0.05, rng)
        yield points, np.where(rng.random(len(points)) < 0.01, classes, 0)


def long_stream(count: int, folder: Path) -> Row:
    """One stream of so many presentations through the compiled circuit, in pieces of 10,000.

    Its weights at the end against a kernel that shares only the equations with it.
    """
    row = Row("presentations in one stream", tried=count)
    out = folder / "stream.npz"
    command = [sys.executable, "-W", "ignore", "-c", LONG, str(count), str(out)]
    done = subprocess.run(
        command, env=processes.environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        row.lose(done.stderr[-300:])
        return row
    with np.load(out) as found:
        if int(found["learned"]) != count:
            row.lose(f"{int(found['learned'])} of {count} presentations were learned from")
        peaks = found["peaks"]
        expected = _by_the_kernel(count)
        row.disagreement = max(
            float(np.abs(found[name] - expected[name]).max()) for name in ("W", "b", "w")
        )
    row.note = f"peak memory {peaks[-1]:.0f} MiB, after the first 10,000 {peaks[0]:.0f} MiB"
    if peaks[-1] > peaks[0] + 50:
        row.lose(f"memory grew from {peaks[0]:.0f} to {peaks[-1]:.0f} MiB")
    return row


def _by_the_kernel(count: int) -> dict[str, np.ndarray]:
    from simulations import fused

    circuit = ReferenceCircuit(CircuitParameters(**STREAM), MOONS_LIFT)
    points, labels = map(np.concatenate, zip(*pieces(count), strict=True))
    x, z = MOONS_LIFT(points), labels[:, None].astype(float)
    state = circuit.seeded(x[:10_000])
    fused.advance(circuit, state, Task(x, z, True, (), False, lambda done: None))
    return {"W": state.W, "b": state.b, "w": state.w}


def other_workers(count: int, folder: Path) -> Row:
    """The same seeds with one process, with two, and on a Dask cluster of 2 x 2 threads whose
    build cache is cold."""
    row = Row("runs with `--jobs 1`, `--jobs 2`, Dask (2 workers of 2 threads, cold cache)")
    changes = {"n_points": 400, "label_after": 100}
    config = get_experiment("two-moons").config("cpp_standalone", changes)
    seeds = list(range(count))
    found: dict[str, xr.Dataset] = {}
    with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        for jobs in (1, 2):
            found[f"{jobs} jobs"], _ = sweep.run_experiment(config, seeds, folder / str(jobs), jobs)
        cold = str(folder / "builds")
        with processes.cluster(2, 2, MANIFOLD_CIRCUIT_CACHE=cold) as (address, _):
            for name in ("cold", "warm"):
                found[f"Dask, {name}"], _ = sweep.run_experiment(
                    config, seeds, folder / name, scheduler=address
                )
    for name, merged in found.items():
        row.tried += merged.sizes["repeat"]
        row.compare(merged, found["1 jobs"], name)
    return row


def fresh_examples(count: int, folder: Path) -> Row:
    """Run all hypothesis tests ``count`` times on random examples; a failing run is a loss.

    The end of its output goes to the details: it holds the failing example and its blob.
    """
    row = Row("runs of all hypothesis tests on fresh examples", tried=count)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", "-p", "no:cacheprovider"]
    for _ in range(count):
        done = subprocess.run(
            [*command, f"--basetemp={folder / 'pytest'}"],
            cwd=processes.ROOT,
            env=processes.environment(HYPOTHESIS_PROFILE="fresh examples"),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            row.lose(f"exit code {done.returncode}: {(done.stdout + done.stderr)[-5000:]}")
    return row
