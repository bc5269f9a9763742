"""The build cache: compile once, survive damage, share between processes, stay small."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from circuits import ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.engines import cache
from circuits.errors import EngineError
from tests.conftest import moons, small_circuit

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")

PROCESS = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from circuits import CircuitParameters, ManifoldCircuit, SphereLift
parameters = CircuitParameters(n_tiles=3, n_interneurons=2, steps_per_presentation=10)
circuit = ManifoldCircuit(parameters, SphereLift((0, 0), 3), "cpp_standalone")
made = circuit.prepare()
run = circuit.run(np.random.default_rng(0).uniform(-1, 1, (20, 2)), np.ones(20))
print(json.dumps([made, "brian2" in sys.modules, float(run["w"].sum())]))
"""


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(tmp_path / "builds"))
    return tmp_path / "builds"


def start_process(code: str = PROCESS) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]):
    output, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(output)


def run_once(**changes):
    parameters = small_circuit(tile_radius=1.0, **changes)
    points, _, labels = moons(20, after=5)
    circuit = ManifoldCircuit(parameters, LIFT, "cpp_standalone")
    made = circuit.prepare()
    run = circuit.run(points, labels)
    expected = ReferenceCircuit(parameters, LIFT).run(points, labels)
    assert np.abs(run["h"].values - expected["h"].values).max() <= 1e-10
    return made


def test_two_processes_at_once_make_one_build_and_a_third_compiles_nothing(own_cache):
    both = [answer(process) for process in [start_process(), start_process()]]
    assert sorted(built for built, _, _ in both) == [False, True]
    third = answer(start_process())
    assert third[:2] == [False, False]  # not compiled, Brian2 not even imported
    assert {result for _, _, result in [*both, third]} == {third[2]}
    assert len(list(own_cache.glob("*/manifest.json"))) == 1
    assert not list(own_cache.glob("*.new-*"))


def test_one_build_serves_what_users_sweep(own_cache):
    assert run_once()
    sweeps = [
        {"mu": 3.0},
        {"learning_rate": 0.1},
        {"readout_rate": 0.5},
        {"tau_h": "30 ms", "tau_u": "40 ms", "tau_V": "3 ms"},
        {"dt": "0.5 ms"},
        {"steps_per_presentation": 77},
        {"reset": False},
        {"gain": 50.0},
        {"initial_weight": 0.2},
    ]
    for changes in sweeps:
        assert not run_once(**changes), changes
    assert len(cache.entries()) == 1
    assert run_once(n_tiles=5)
    assert len(cache.entries()) == 2


@pytest.mark.parametrize(
    "damage", ["truncated", "changed", "no manifest", "bad manifest", "no program"]
)
def test_a_damaged_build_is_made_again(own_cache, damage):
    run_once()
    (home,) = (path for path in own_cache.iterdir() if path.is_dir())
    program = home / "main"
    if damage == "truncated":
        program.write_bytes(program.read_bytes()[:1000])
    elif damage == "changed":
        program.write_bytes(program.read_bytes()[:-1] + b"!")
    elif damage == "no manifest":
        (home / "manifest.json").unlink()
    elif damage == "bad manifest":
        (home / "manifest.json").write_text("{")
    else:
        program.unlink()
    assert run_once()
    assert not run_once()


def test_what_a_killed_builder_left_is_removed(own_cache):
    run_once()
    (home,) = (path for path in own_cache.iterdir() if path.is_dir())
    left = own_cache / f"{home.name}.new-abc"
    left.mkdir()
    (left / "main.cc").write_text("int main(")
    (home / "main").unlink()
    assert run_once()
    assert not left.exists()


def test_clearing_waits_for_a_build_in_the_making(own_cache):
    from filelock import FileLock

    run_once()
    (entry,) = cache.entries()
    workshop = own_cache / f"{entry.key}.new-abc"
    workshop.mkdir()
    cleared = []
    with FileLock(own_cache / f"{entry.key}.lock"):
        thread = threading.Thread(target=lambda: cleared.append(cache.clear()))
        thread.start()
        thread.join(timeout=1)
        assert thread.is_alive()
        assert workshop.exists()
    thread.join()
    assert cleared == [1]
    assert cache.entries() == []


def test_what_killed_processes_left_in_memory_is_removed(tmp_path):
    from circuits.engines.scratch import _sweep

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / f"manifold-circuit-{dead.pid}-abc"
    used = tmp_path / f"manifold-circuit-{os.getpid()}-abc"
    for folder in (left, used):
        folder.mkdir()
    _sweep(tmp_path)
    assert not left.exists()
    assert used.exists()


def test_the_cache_is_bounded(own_cache, monkeypatch):
    run_once()
    (first,) = cache.entries()
    long_ago = time.time() - 3600
    os.utime(own_cache / first.key / "manifest.json", (long_ago, long_ago))
    monkeypatch.setenv(cache.LIMIT_VARIABLE, str(int(1.5 * first.size)))
    run_once(n_tiles=5)
    (second,) = cache.entries()
    assert second.key != first.key
    assert "5 tiles" in second.title
    assert cache.clear() == 1
    assert cache.entries() == []


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(blocked))
    with pytest.raises(EngineError, match=rf"cache at {blocked} cannot be used.*MANIFOLD_CIRCUIT"):
        run_once()
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "much")
    with pytest.raises(EngineError, match="number of bytes, got 'much'"):
        cache.cache_limit()


def test_a_compiler_that_fails(own_cache, tmp_path, monkeypatch):
    script = tmp_path / "broken-compiler"
    script.write_text("#!/bin/sh\necho 'fatal error: out of ideas' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(
        EngineError, match="could not compile the circuit: fatal error: out of ideas"
    ):
        run_once()
    assert not [path for path in own_cache.iterdir() if path.is_dir()]


LONG = """
import numpy as np
from circuits import CircuitParameters, ManifoldCircuit, SphereLift
parameters = CircuitParameters(n_tiles=3, n_interneurons=2, steps_per_presentation=200_000)
circuit = ManifoldCircuit(parameters, SphereLift((0, 0), 3), "cpp_standalone")
points = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
try:
    circuit.run(points, progress=lambda done, total: print(done, flush=True))
except KeyboardInterrupt:
    print("interrupted", circuit._state is None, flush=True)
"""


def test_an_interrupt_stops_the_program_and_leaves_nothing_behind():
    process = start_process(LONG)
    assert process.stdout is not None
    assert int(process.stdout.readline()) >= 0  # it is running, and says how far it is
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    folder = Path(f"/proc/{children[0]}/cmdline").read_text().split("\0")[2]
    assert Path(folder).exists()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert output.splitlines()[-1] == "interrupted True"
    assert not Path(f"/proc/{children[0]}").exists()
    assert not Path(folder).exists()


def test_memory_does_not_grow_with_the_stream():
    circuit = ManifoldCircuit(small_circuit(tile_radius=1.0), LIFT, "cpp_standalone")
    rng = np.random.default_rng(0)
    chunks = (rng.uniform(0, 0.5, (400, 2)) for _ in range(30))
    peaks = []
    tracemalloc.start()
    for run in circuit.run_stream(chunks):
        assert len(run["y"]) == 400
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
    tracemalloc.stop()
    # A chunk's results take 400 (6 + 2 + 1 + ...) numbers, about 60 kB; thirty would take 2 MB.
    assert max(peaks[10:]) - max(peaks[2:10]) < 30_000
