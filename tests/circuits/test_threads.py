"""Circuits outside the main thread: first uses, and several at once."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from circuits import CircuitParameters, ManifoldCircuit
from circuits.engines import cache
from circuits.engines.brian import import_brian2
from circuits.engines.scratch import scratch_folder
from circuits.engines.solvers import make_circuit
from tests.circuits.test_agreement import LIFT
from tests.conftest import moons, small_circuit


def handle(number, frame):
    """The handler that the stand-in for Brian2 installs."""


@pytest.fixture
def unimported(monkeypatch):
    """Brian2 as before its first import, which waits for `go` and then installs a handler."""
    import brian2

    load, started, go = importlib.import_module, threading.Event(), threading.Event()

    def stand_in(name, *package):
        if name != "brian2":
            return load(name, *package)
        started.set()
        assert go.wait(60)
        signal.signal(signal.SIGUSR1, handle)
        sys.modules[name] = brian2

    monkeypatch.delitem(sys.modules, "brian2")
    monkeypatch.setattr(importlib, "import_module", stand_in)
    kept = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    yield started, go
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_imported_in_the_main_thread_brian2_installs_its_handler(unimported):
    unimported[1].set()
    import_brian2()
    assert signal.getsignal(signal.SIGUSR1) is handle


def write_sources():
    circuit = ManifoldCircuit(small_circuit(), LIFT, "cpp_standalone")
    with scratch_folder() as folder:
        circuit._engine._generate(folder, (), False)


FIRST_USES = {
    "import": import_brian2,
    "a time with its unit": lambda: CircuitParameters().dt,
    "a network": lambda: ManifoldCircuit(small_circuit(), LIFT, "numpy").network,
    "a program": write_sources,
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_the_first_use_of_brian2_can_be_in_any_thread(use, unimported):
    """Brian2 then installs no handler, while other threads still can."""
    (started, go), install, before = unimported, signal.signal, signal.getsignal(signal.SIGUSR1)
    with ThreadPoolExecutor(1) as thread:
        used = thread.submit(FIRST_USES[use])
        try:
            assert started.wait(60)
            signal.signal(signal.SIGUSR2, handle)
        finally:
            go.set()
        used.result()
    assert signal.signal is install
    assert signal.getsignal(signal.SIGUSR1) == before
    assert signal.getsignal(signal.SIGUSR2) is handle


COMMON = """
import json, signal, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np
from circuits import CircuitParameters, ManifoldCircuit, SphereLift
from circuits.engines import compiler
compiler.FLAGS += ("-O0",)

def run(engine, n_tiles):
    parameters = CircuitParameters(n_tiles=n_tiles, n_interneurons=2, steps_per_presentation=20)
    circuit = ManifoldCircuit(parameters, SphereLift((0, 0), 3), engine)
    points = np.random.default_rng(n_tiles).uniform(-1, 1, (30, 2))
    first = circuit.run(points, np.sign(points[:, 0]))
    return [*first["h"].values.ravel(), *circuit.predict(points[:5]).ravel()]

def in_threads(tasks):
    found, errors = {}, []
    def one(task):
        try:
            found[task] = run(*task)
        except BaseException as error:
            errors.append(repr(error))
    threads = [threading.Thread(target=one, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return [found[task] for task in tasks]
"""


def said_by(code: str, builds: Path) -> str:
    """What a process of its own prints: one in which nobody has imported Brian2 yet."""
    # As the fixture `quick_cython`; Brian2 reads it where it is first imported.
    quick = f"codegen.cpp.extra_compile_args_gcc = {['-w', '-O0', '-std=c++11']}\n"
    (builds.parent / "brian_preferences").write_text(quick)
    done = subprocess.run(
        [sys.executable, "-c", COMMON + code],
        cwd=builds.parent,
        env=os.environ | {cache.DIRECTORY_VARIABLE: str(builds)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_first_use_in_a_new_process(tmp_path):
    code = """
assert "brian2" not in sys.modules
before = signal.signal, signal.getsignal(signal.SIGINT)
(there,) = in_threads([("numpy", 3)])
assert "brian2" in sys.modules
assert before == (signal.signal, signal.getsignal(signal.SIGINT))
assert there == run("numpy", 3)
"""
    said_by(code, tmp_path / "builds")


@pytest.mark.slow
def test_circuits_in_several_threads_at_once_give_the_numbers_of_one_after_the_other(tmp_path):
    code = """
tasks = [(engine, tiles) for engine in ("numpy", "cpp_standalone", "cython") for tiles in (3, 4)]
cold = in_threads(tasks)
warm = in_threads(tasks)
one_by_one = [run(*task) for task in tasks]
worst = [
    max(np.abs(np.subtract(a, b)).max() for a, b in zip(found, one_by_one))
    for found in (cold, warm)
]
agreement = max(np.abs(np.subtract(*pair)).max() for pair in zip(one_by_one[:2], one_by_one[2:4]))
print(json.dumps([*worst, float(agreement)]))
"""
    cold, warm, engines = json.loads(said_by(code, tmp_path / "builds"))
    # The same arithmetic in the same order: nothing but the thread differs.
    assert cold <= 1e-12
    assert warm <= 1e-12
    assert engines <= 1e-10  # and they are the circuit's numbers


@pytest.mark.filterwarnings("ignore")  # of what does not settle, in whatever thread
@pytest.mark.parametrize("engine", ["numpy", "cpp_standalone", "reference"])
def test_one_circuit_in_several_threads_answers_to_one_after_the_other(engine):
    parameters = small_circuit(tile_radius=1.0, steps_per_presentation=10)
    points, _, labels = moons(20, seed=2, after=10)
    circuit = make_circuit(engine, parameters, LIFT)
    circuit.run(points, labels)
    slices = [points[i : i + 3] for i in range(3)]
    alone = [circuit.respond(part) for part in slices]
    with ThreadPoolExecutor(3) as threads:
        together = list(threads.map(circuit.respond, slices))
    for found, expected in zip(together, alone, strict=True):
        assert (found == expected).all()  # the same computation from the same state
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(circuit.run, slices))
    assert circuit.state.learned == 20 + 3 * 3
