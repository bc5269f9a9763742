"""The benchmark: every way to compute the circuit, side by side in one run.

Machines are noisy, so what counts are ratios of medians of interleaved repeats.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from circuits import CircuitParameters, ManifoldCircuit, SpikingParameters
from circuits.base import CHUNK, Circuit
from circuits.dataset import versions
from circuits.engines import ENGINES, cache, compiler
from circuits.engines.scratch import scratch_folder
from circuits.engines.solvers import SOLVERS, make_circuit
from circuits.errors import EngineError
from circuits.state import Task
from circuits.storage import files
from circuits.storage.results import load
from simulations import annarchy
from simulations.datasets import MOONS_LIFT, two_moons

SIZES = ((40, 4), (200, 8), (200, 1), (1000, 8))
STEPS = 200
"""Steps per presentation, as in the paper, where a step is what is timed."""
MOONS = 2000
"""Presentations of two moons, and of most timings."""
PEER_SIZES = SIZES[:2]
# Presentations per timing. Brian2's Python loop is timed as the difference of two lengths, because
# each of its runs first generates code for about a second.
LENGTH = {"reference": 40, "exact": MOONS, "cpp_standalone": MOONS, "fused": MOONS}
RUNTIME_LENGTHS = (2, 12)
TIMED = ("fused", *(engine for engine in ENGINES if engine != "auto"), *SOLVERS)
QUICK = tuple(engine for engine in TIMED if engine in LENGTH)
"""Those that do not take Brian2's Python loop."""
SPIKING: dict[str, SpikingParameters | None] = {
    "rates": None,
    "if, N = 1": SpikingParameters(),
    "if, N = 4": SpikingParameters(cells=4),
    "escape, N = 1": SpikingParameters(neuron="escape"),
}
"""The circuit and its spiking twins, N cells per unit, that are timed side by side."""
SWEPT = {"mu": "1:1000:10:log", "tile_radius": "0.2:0.4:5"}
"""Fifty combinations of parameters, for which one program is compiled."""
SWEPT_REPEATS, SWEPT_JOBS, SWEPT_TARGET = 20, 2, 180
"""Repeats of each, processes, and the seconds that all of them should take at most."""
TARGETS = {"if, N = 1": 1.5, "if, N = 4": 5.0}
"""Milliseconds of CPU time that a presentation of a twin should take at most."""


def tile_radius(n_tiles: int) -> float:
    """A radius at which about five tiles overlap on the moons, as 0.4 does with 40 tiles."""
    return float(0.4 * (40 / n_tiles) ** 0.75)


def make_case(
    n_tiles: int, k: int, n_readouts: int = 1, steps: int = STEPS
) -> tuple[CircuitParameters, Any]:
    """Parameters and tile centres of a size."""
    parameters = CircuitParameters(
        n_tiles=n_tiles,
        n_interneurons=k,
        n_readouts=n_readouts,
        steps_per_presentation=steps,
        tile_radius=tile_radius(n_tiles),
    )
    centers, _ = two_moons(n_tiles, 0.05, 1)
    return parameters, centers


def make_task(n_points: int, n_readouts: int = 1) -> Task:
    """A stream of two moons with a few labels, as an engine gets it."""
    points, classes = two_moons(n_points, 0.05, 2)
    z = np.zeros((n_points, n_readouts))
    z[:4] = classes[:4, None]
    return Task(MOONS_LIFT(points), z, True, (), False, lambda done: None)


def seconds(
    circuit: Circuit,
    advance: Callable[..., Any],
    n_points: int,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Time of one stream from the circuit's present state, which is left as it is; wall time unless
    another clock is given."""
    task = make_task(n_points, circuit.parameters.n_readouts)
    parts = [slice(start, start + CHUNK) for start in range(0, n_points, CHUNK)]
    before = circuit.state
    state = before.copy()
    started = clock()
    for part in parts:
        advance(state, replace(task, x=task.x[part], z=task.z[part]))
    taken = clock() - started
    circuit.state = before
    return taken


def timers(n_tiles: int, k: int, engines: tuple[str, ...]) -> dict[str, Callable[[], float]]:
    """Functions that each take one timing: microseconds per step."""
    parameters, centers = make_case(n_tiles, k)

    def make(engine: str) -> Circuit:
        return make_circuit(engine, parameters, MOONS_LIFT, centers)

    def whole(circuit: Circuit, advance: Callable[..., Any], n_points: int) -> Callable[[], float]:
        seconds(circuit, advance, min(n_points, 20))  # compile, fill caches
        return lambda: 1e6 * seconds(circuit, advance, n_points) / (n_points * STEPS)

    def marginal(circuit: Circuit) -> Callable[[], float]:
        short, long = RUNTIME_LENGTHS
        seconds(circuit, circuit._advance, short)

        def take() -> float:
            # A code generation that stalls would make a difference negative: keep the better of 2.
            times = [
                min(seconds(circuit, circuit._advance, n) for _ in range(2)) for n in (short, long)
            ]
            return 1e6 * max(times[1] - times[0], 1e-9) / ((long - short) * STEPS)

        return take

    found: dict[str, Callable[[], float]] = {}
    for engine in engines:
        if engine == "fused":
            from simulations import fused

            circuit = make("exact")
            length = max(100, LENGTH[engine] * 40 // n_tiles)
            found[engine] = whole(circuit, partial(fused.advance, circuit), length)
        elif engine in LENGTH:
            circuit = make(engine)
            found[engine] = whole(circuit, circuit._advance, LENGTH[engine])
        else:
            found[engine] = marginal(make(engine))
    return found


def annarchy_timer(n_tiles: int, k: int, stack: ExitStack) -> Callable[[], float]:
    """One timing of the circuit in ANNarchy, in microseconds per step; compiled for the stack."""
    parameters, centers = make_case(n_tiles, k)
    circuit = make_circuit("exact", parameters, MOONS_LIFT, centers)
    peer = stack.enter_context(annarchy.compiled(circuit))
    n_points = max(100, MOONS * 40 * 4 // (n_tiles * k))

    def take() -> float:
        peer.seconds = 0.0
        peer.advance(circuit.state.copy(), make_task(n_points))
        return 1e6 * peer.seconds / (n_points * STEPS)

    return take


def default_steps() -> int:
    """Steps per presentation of a circuit nobody has told otherwise."""
    return CircuitParameters().steps_per_presentation


def pace(n_tiles: int, k: int) -> Callable[[], float]:
    """A function that times `MOONS` presentations of the compiled circuit at the default S."""
    parameters, centers = make_case(n_tiles, k, steps=default_steps())
    circuit = ManifoldCircuit(parameters, MOONS_LIFT, "cpp_standalone", tile_centers=centers)
    seconds(circuit, circuit._advance, 20)
    return lambda: seconds(circuit, circuit._advance, MOONS)


@contextmanager
def empty_cache() -> Iterator[None]:
    """An empty build cache for the time being."""
    with scratch_folder() as folder:
        before = os.environ.get(cache.DIRECTORY_VARIABLE)
        os.environ[cache.DIRECTORY_VARIABLE] = str(folder)
        try:
            yield
        finally:
            if before is None:
                del os.environ[cache.DIRECTORY_VARIABLE]
            else:
                os.environ[cache.DIRECTORY_VARIABLE] = before


def cold_build(n_tiles: int, k: int) -> float:
    """Seconds to generate and compile a circuit, with Brian2 already imported."""
    import brian2  # noqa: F401

    parameters, centers = make_case(n_tiles, k)
    with empty_cache():
        circuit = ManifoldCircuit(parameters, MOONS_LIFT, "cpp_standalone", tile_centers=centers)
        first = seconds(circuit, circuit._advance, 1)
        return first - seconds(circuit, circuit._advance, 1)


FIRST_STEP = """
import json, sys, time
times = [time.time()]
import numpy
times.append(time.time())
from circuits import CircuitParameters, ManifoldCircuit, SphereLift
from circuits.state import Task
times.append(time.time())
points = numpy.random.default_rng(0).uniform(0, 0.5, (40, 2))
lift = SphereLift((0.5, 0.25), 3.0)
circuit = ManifoldCircuit(CircuitParameters(), lift, "cpp_standalone", tile_centers=points)
task = Task(lift(points), numpy.zeros((40, 1)), True, (), False, lambda done: None)
circuit._advance(circuit.state, task)
times.append(time.time())
print(json.dumps([times, "brian2" in sys.modules]))
"""


def second_process() -> dict[str, Any]:
    """Where the time goes until a new process with a warm cache has made its first steps."""
    _, centers = make_case(40, 4)
    circuit = ManifoldCircuit(
        CircuitParameters(), MOONS_LIFT, "cpp_standalone", tile_centers=centers
    )
    seconds(circuit, circuit._advance, 1)  # so that the cache is warm
    best: dict[str, Any] = {}
    for _ in range(3):
        started = time.time()
        command = [sys.executable, "-c", FIRST_STEP]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        times, brian2_imported = json.loads(output)
        labels = ("python itself", "numpy", "circuit modules", "cache, launch, 40 presentations")
        parts = dict(zip(labels, np.diff([started, *times]).tolist(), strict=True))
        parts["total"] = times[-1] - started
        if not best or parts["total"] < best["total"]:
            best = {**parts, "brian2 imported": brian2_imported}
    return best


def readout_cost(repeats: int) -> dict[str, float]:
    """What 72 readouts cost on the 200-tile circuit, relative to one (standalone)."""
    takes: dict[int, list[float]] = {1: [], 72: []}
    circuits = {}
    for r in takes:
        parameters, centers = make_case(200, 8, r)
        circuits[r] = ManifoldCircuit(
            parameters, MOONS_LIFT, "cpp_standalone", tile_centers=centers
        )
        seconds(circuits[r], circuits[r]._advance, 20)
    for _ in range(repeats):
        for r, circuit in circuits.items():
            takes[r].append(seconds(circuit, circuit._advance, 500))
    medians = {r: statistics.median(values) for r, values in takes.items()}
    return {"ratio": medians[72] / medians[1], "one": medians[1], "many": medians[72]}


def children_clock() -> float:
    """CPU seconds, user and system, of all processes that this one has started and that ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def spiking_cost(repeats: int) -> dict[str, Any]:
    """CPU milliseconds per presentation of the compiled circuit and its spiking twins.

    Timed is the compiled program alone, which is a process of its own, with its start and its
    files; not what Python does around it. Points are of two moons, and all tiles are in use.
    """
    m, k = SIZES[0]
    parameters, centers = make_case(m, k, steps=default_steps())
    circuits, takes = {}, {}
    for name, spiking in SPIKING.items():
        circuit = make_circuit("cpp_standalone", parameters, MOONS_LIFT, centers, spiking=spiking)
        seconds(circuit, circuit._advance, 20)  # compile
        circuits[name], takes[name] = circuit, list[float]()
    for _ in range(repeats):
        for name, circuit in circuits.items():
            used = seconds(circuit, circuit._advance, MOONS, children_clock)
            takes[name].append(1e3 * used / MOONS)
    return {
        "size": f"{m} x {k}",
        "cpu_ms": {name: statistics.median(each) for name, each in takes.items()},
        "steps": {name: circuit.n_steps for name, circuit in circuits.items()},
        "all": takes,
    }


def sweep_cost() -> dict[str, Any]:
    """Seconds that a thousand runs of two moons take with the command ``sweep``, from its start and
    an empty build cache to the file with all of them; and CPU seconds of all its processes."""
    command = [sys.executable, "-m", "simulations", "sweep", "two-moons"]
    command += [word for name, values in SWEPT.items() for word in ("--over", f"{name}={values}")]
    command += ["--repeats", str(SWEPT_REPEATS), "--jobs", str(SWEPT_JOBS), "--out"]
    with empty_cache(), scratch_folder() as folder:
        started, used = time.perf_counter(), children_clock()
        subprocess.run([*command, str(folder)], capture_output=True, check=True)
        taken = {"seconds": time.perf_counter() - started, "cpu_seconds": children_clock() - used}
        found = load(folder / "sweep-two-moons.nc")
    return {"runs": found["run_seconds"].size, "processes": SWEPT_JOBS, **taken}


SCALING: dict[str, dict[str, Any]] = {
    "m": {"sizes": (50, 100, 200, 400, 800, 1600), "fixed": "k = 4"},
    "k": {"sizes": (1, 2, 4, 8, 16, 32), "fixed": "m = 200"},
    "T": {"sizes": (250, 500, 1000, 2000, 4000, 8000), "fixed": "m = 40, k = 4"},
}


def scaling(repeats: int, bar: Any) -> dict[str, Any]:
    """Cost of the standalone circuit against m, k and T, with slopes on a log-log scale."""
    from simulations import fused

    found: dict[str, Any] = {}
    for name, spec in SCALING.items():
        costs: dict[str, list[float]] = {"cpp_standalone": [], "fused": []}
        for size in spec["sizes"]:
            m, k, T = {"m": (size, 4, 500), "k": (200, size, 500), "T": (40, 4, size)}[name]
            parameters, centers = make_case(m, k)
            circuit = ManifoldCircuit(
                parameters, MOONS_LIFT, "cpp_standalone", tile_centers=centers
            )
            seconds(circuit, circuit._advance, 20)
            advances: dict[str, Callable[..., Any]] = {
                "cpp_standalone": circuit._advance,
                "fused": partial(fused.advance, circuit),
            }
            takes: dict[str, list[float]] = {engine: [] for engine in advances}
            for _ in range(repeats):
                for engine, advance in advances.items():
                    takes[engine].append(seconds(circuit, advance, T))
            for engine, values in takes.items():
                costs[engine].append(statistics.median(values))
            bar.update()
        sizes = np.array(spec["sizes"], dtype=float)
        slopes = {
            engine: float(np.polyfit(np.log(sizes[-3:]), np.log(values[-3:]), 1)[0])
            for engine, values in costs.items()
        }
        found[name] = {**spec, "seconds": costs, "slope of the last three": slopes}
    return found


def fused_available() -> bool:
    """Whether numba is there (extra ``bench``)."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def measure_size(
    m: int, k: int, engines: tuple[str, ...], repeats: int, bar: Any
) -> dict[str, Any]:
    """All ways to compute a circuit of one size, taken in turns."""
    with ExitStack() as stack:
        take = timers(m, k, engines)
        if (m, k) in PEER_SIZES and annarchy.available():
            take["annarchy"] = annarchy_timer(m, k, stack)
        take_pace, paces = pace(m, k), []
        bar.update()
        values: dict[str, list[float]] = {engine: [] for engine in take}
        for _ in range(repeats):
            for engine, timer in take.items():
                values[engine].append(timer())
            paces.append(take_pace())
            bar.update()
    found = {
        "us_per_step": {engine: statistics.median(each) for engine, each in values.items()},
        "all": values,
        "presentations_per_second": MOONS / statistics.median(paces),
        "cold_build_s": cold_build(m, k),
    }
    bar.update()
    return found


def run_benchmark(quick: bool, repeats: int) -> dict[str, Any]:
    """All measurements. ``quick`` leaves out the large sizes, the scaling and the sweep."""
    if not fused_available():
        raise EngineError(
            "the benchmark compares with a kernel compiled by numba: pip install "
            "'manifold-circuit[bench]'"
        )
    sizes = SIZES[:2] if quick else SIZES
    engines = QUICK if quick else TIMED
    total = len(sizes) * (2 + repeats) + 3 + (0 if quick else 19)
    results: dict[str, Any] = {"sizes": {}}
    with tqdm(total=total, desc="bench", unit="part") as bar:
        for m, k in sizes:
            results["sizes"][f"{m} x {k}"] = measure_size(m, k, engines, repeats, bar)
        results["readouts"] = readout_cost(repeats)
        bar.update()
        results["spiking"] = spiking_cost(repeats)
        bar.update()
        results["second_process"] = second_process()
        bar.update()
        if not quick:
            results["scaling"] = scaling(repeats, bar)
            results["sweep"] = sweep_cost()
            bar.update()
    results["versions"] = versions() | {
        "compiler": compiler.toolchain()["version"],
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
    }
    results["repeats"], results["steps_per_presentation"] = repeats, STEPS
    results["default_steps"] = default_steps()
    return results


def table(results: dict[str, Any]) -> str:
    """The measurements as text."""
    lines = [
        f"{'m x k':>9} {'engine':<15} {'us/step':>9} {'/ fused':>9} {'reference /':>12}",
    ]
    for size, found in results["sizes"].items():
        cost = found["us_per_step"]
        for engine in sorted(cost, key=lambda name: cost[name]):
            lines.append(
                f"{size:>9} {engine:<15} {cost[engine]:9.3f} "
                f"{cost[engine] / cost['fused']:9.2f} {cost['reference'] / cost[engine]:12.1f}"
            )
        lines.append(f"{size:>9} {'cold build':<15} {found['cold_build_s']:9.2f} s")
    if "default_steps" in results:
        lines += [_paces(results), _two_moons(results)]
    if "spiking" in results:
        lines += _spiking(results["spiking"])
    readouts, process = results["readouts"], results["second_process"]
    lines.append(f"72 readouts instead of 1 at 200 x 8: {readouts['ratio']:.2f} times the time")
    parts = ", ".join(f"{k} {v:.2f} s" for k, v in process.items() if isinstance(v, float))
    lines.append(f"second process, warm cache, to its first steps: {parts}")
    if "sweep" in results:
        lines.append(_sweep(results["sweep"]))
    for name, found in results.get("scaling", {}).items():
        slopes = ", ".join(f"{e} {s:.2f}" for e, s in found["slope of the last three"].items())
        lines.append(f"time against {name} ({found['fixed']}), log-log slope: {slopes}")
    return "\n".join(lines)


def _paces(results: dict[str, Any]) -> str:
    paces = ", ".join(
        f"{size}: {found['presentations_per_second']:,.0f}"
        for size, found in results["sizes"].items()
    )
    return (
        f"presentations per second, cpp_standalone, {results['default_steps']} steps each: {paces}"
    )


def _spiking(found: dict[str, Any]) -> list[str]:
    """The spiking twins, a line each, under what was measured."""
    cost = found["cpu_ms"]
    lines = [
        f"{'m x k':>9} {'circuit':<15} {'CPU ms':>9} {'/ rates':>9} per presentation, "
        "cpp_standalone: the compiled program's CPU time"
    ]
    for name, value in cost.items():
        target = f", target {TARGETS[name]:g} ms" if name in TARGETS else ""
        lines.append(
            f"{found['size']:>9} {name:<15} {value:9.3f} {value / cost['rates']:9.1f} "
            f"{found['steps'][name]} steps{target}"
        )
    return lines


def _sweep(found: dict[str, Any]) -> str:
    return (
        f"{found['runs']:,} runs of two moons in one sweep, cpp_standalone, {found['processes']} "
        f"processes, empty cache: {found['seconds']:.0f} s, target {SWEPT_TARGET} s; CPU time "
        f"{found['cpu_seconds']:.0f} s"
    )


def _two_moons(results: dict[str, Any]) -> str:
    """The compiled circuit as users get it against another simulator at the paper's steps."""
    found = results["sizes"]["40 x 4"]
    if "annarchy" not in found["us_per_step"]:
        return "ANNarchy is not installed (pip install 'manifold-circuit[peers]'): not compared"
    own = MOONS / found["presentations_per_second"]
    steps = results["steps_per_presentation"]
    other = found["us_per_step"]["annarchy"] * MOONS * steps / 1e6
    return (
        f"two moons, {MOONS} presentations, 40 x 4: cpp_standalone ({results['default_steps']} "
        f"steps) {own:.3f} s, ANNarchy ({steps} steps) {other:.3f} s: {other / own:.1f} times"
    )


def save(results: dict[str, Any], path: Path) -> Path:
    """Write the measurements as JSON."""
    return files.write(path, json.dumps(results, indent=1))
