"""Much of it: a large sweep, a long stream, the same on other workers."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import xarray as xr

from circuits import results
from simulations import sweep
from simulations.experiments import get_experiment
from tests.soak import processes
from tests.soak.row import Row


def large_sweep(count: int, folder: Path) -> Row:
    """So many runs of two moons in one sweep; some of them against runs by themselves."""
    row = Row("runs of two moons in one sweep, two processes", tried=count)
    started = time.monotonic()
    config = get_experiment("two-moons").config("exact", {"n_points": 300, "label_after": 60})
    seeds = list(range(count))
    words = io.StringIO()
    with redirect_stderr(words), redirect_stdout(words):
        merged, _ = sweep.run_experiment(config, seeds, folder, jobs=2)
        row.seconds = time.monotonic() - started
        again, _ = sweep.run_experiment(config, seeds, folder, jobs=2)
    if f"{count} of {count} runs were finished before" not in words.getvalue():
        row.lose("finished runs were not found again")
    for seed in set(seeds) - set(merged["seed"].values.tolist()):
        row.lose(f"seed {seed}")
    row.compare(again, merged, "merged once more")
    for seed in random.Random(0).sample(seeds, min(20, count)):
        alone = sweep.run_job(sweep.Job(config.as_dict(), seed))
        row.compare(results.load(sweep.job_path(folder, "two-moons", seed)), alone, f"seed {seed}")
    return row


LONG = """
import resource, sys, time
import numpy as np
from circuits import CircuitParameters, ManifoldCircuit
from simulations.datasets import MOONS_LIFT, two_moons

count, out = int(sys.argv[1]), sys.argv[2]
parameters = CircuitParameters(n_tiles=40, tile_radius=0.4, tiles="first")
circuit = ManifoldCircuit(parameters, MOONS_LIFT, "cpp_standalone")

def pieces():
    for start in range(0, count, 10_000):
        rng = np.random.default_rng(start)
        points, classes = two_moons(min(10_000, count - start), 0.05, rng)
        labels = np.where(rng.random(len(points)) < 0.01, classes, 0)
        yield points, labels

peaks = []
for piece in circuit.run_stream(pieces()):
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
state = circuit.state
np.savez(out, W=state.W, b=state.b, w=state.w, peaks=peaks, learned=state.learned)
"""


def long_stream(count: int, folder: Path) -> Row:
    """One stream of so many presentations through the compiled circuit, in pieces of 10,000.

    Its weights at the end against a kernel that has nothing in common with it but the equations.
    """
    row = Row("presentations in one stream", tried=count)
    started = time.monotonic()
    out = folder / "stream.npz"
    command = [sys.executable, "-W", "ignore", "-c", LONG, str(count), str(out)]
    environment = {**os.environ, "PYTHONPATH": str(processes.ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
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
    row.seconds = time.monotonic() - started
    return row


def _by_the_kernel(count: int) -> dict[str, np.ndarray]:
    from circuits import CircuitParameters, ReferenceCircuit
    from circuits.state import Task
    from simulations import fused
    from simulations.datasets import MOONS_LIFT, two_moons

    parameters = CircuitParameters(n_tiles=40, tile_radius=0.4, tiles="first")
    circuit = ReferenceCircuit(parameters, MOONS_LIFT)
    all_x, all_z = [], []
    for start in range(0, count, 10_000):
        rng = np.random.default_rng(start)
        points, classes = two_moons(min(10_000, count - start), 0.05, rng)
        all_z.append(np.where(rng.random(len(points)) < 0.01, classes, 0)[:, None].astype(float))
        all_x.append(MOONS_LIFT(points))
    x, z = np.concatenate(all_x), np.concatenate(all_z)
    state = circuit.seeded(x[:10_000])
    fused.advance(circuit, state, Task(x, z, True, (), False, lambda done: None))
    return {"W": state.W, "b": state.b, "w": state.w}


def other_workers(count: int, folder: Path) -> Row:
    """The same seeds with one process, with two, and on a Dask cluster of 2 x 2 threads whose
    build cache is cold."""
    row = Row("runs with `--jobs 1`, `--jobs 2`, Dask (2 workers of 2 threads, cold cache)")
    started = time.monotonic()
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
    row.seconds = time.monotonic() - started
    return row
