"""What the benchmark says of its measurements."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from circuits import ReferenceCircuit
from simulations import bench
from simulations.cli import main


def timed(fused, compiled, reference, pace):
    cost = {"fused": fused, "cpp_standalone": compiled, "reference": reference}
    return {"us_per_step": cost, "cold_build_s": 2.0, "presentations_per_second": pace}


RESULTS = {
    "sizes": {"40 x 4": timed(0.05, 0.06, 11, 100_000), "200 x 8": timed(0.4, 0.5, 15, 12_500)},
    "steps_per_presentation": 200,
    "default_steps": 80,
    "readouts": {"ratio": 1.0},
    "second_process": {"total": 0.3},
}


def with_peer(cost):
    found = RESULTS["sizes"]["40 x 4"]
    peer = {**found, "us_per_step": found["us_per_step"] | {"annarchy": cost}}
    return RESULTS | {"sizes": RESULTS["sizes"] | {"40 x 4": peer}}


def test_paces_and_two_moons_with_and_without_the_peer():
    alone = bench.table(RESULTS)
    assert "80 steps each: 40 x 4: 100,000, 200 x 8: 12,500" in alone
    [line] = [line for line in alone.splitlines() if "ANNarchy" in line]
    assert "manifold-circuit[peers]" in line
    # 2000 presentations of 200 steps of 1.5 us are 0.6 s; ours took 2000/100000 = 0.02 s.
    table = bench.table(with_peer(1.5))
    assert "cpp_standalone (80 steps) 0.020 s, ANNarchy (200 steps) 0.600 s: 30.0 times" in table
    assert "40 x 4 annarchy            1.500     30.00          7.3" in table
    assert set(bench.PEER_SIZES) <= set(bench.SIZES)


def test_a_size_the_peer_was_not_timed_at_is_drawn_without_it():
    from analysis.benchmarks import figure

    (ax,) = figure(with_peer(1.5)).axes
    peer = next(bars for bars in ax.containers if bars.get_label() == "ANNarchy")
    np.testing.assert_array_equal([bar.get_height() for bar in peer], [1.5, np.nan])


def test_the_pace_is_taken_at_the_default_steps(monkeypatch):
    """The reference stands for the compiled program."""
    taken, original = [], bench.seconds
    monkeypatch.setattr(bench, "MOONS", 3)

    def spy(circuit, advance, n_points):
        taken.append((circuit.engine, circuit.parameters.steps_per_presentation, n_points))
        reference = ReferenceCircuit(circuit.parameters, circuit.lift)
        reference.state = circuit.state
        return original(reference, reference._advance, n_points)

    monkeypatch.setattr(bench, "seconds", spy)
    assert bench.pace(6, 2)() > 0
    assert taken == [("cpp_standalone", bench.default_steps(), count) for count in (20, 3)]


def test_spiking_twins_stand_beside_the_circuit_with_their_targets():
    cost, steps = {"rates": 0.01, "if, N = 1": 0.2}, {"rates": 80, "if, N = 1": 500}
    found = {"size": "40 x 4", "cpu_ms": cost, "steps": steps}
    lines = bench.table(RESULTS | {"spiking": found}).splitlines()
    assert "   40 x 4 rates               0.010       1.0 80 steps" in lines
    assert "   40 x 4 if, N = 1           0.200      20.0 500 steps, target 1.5 ms" in lines
    assert set(bench.TARGETS) < set(bench.SPIKING)


def test_the_clock_of_children_is_theirs_alone():
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    before = bench.children_clock()
    while time.process_time() < 0.2:
        pass
    assert bench.children_clock() == before
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert bench.children_clock() - before >= 0.3


def test_a_sweep_is_timed_from_its_command_to_its_file(monkeypatch):
    """The command runs in this process, without compiling; a clock ticks where one is read."""
    swept = {"mu": "1,10", "n_points": "50", "n_streams": "1", "label_after": "10"}
    monkeypatch.setattr(bench, "SWEPT", swept)
    monkeypatch.setattr(bench, "SWEPT_REPEATS", 2)
    monkeypatch.setattr(bench, "SWEPT_JOBS", 1)
    ticks = itertools.count(3)
    monkeypatch.setattr(bench, "children_clock", lambda: 0.5 * next(ticks))

    def run(command, check, **_):
        assert check
        assert command[:3] == [sys.executable, "-m", "simulations"]
        assert not list(Path(os.environ["MANIFOLD_CIRCUIT_CACHE"]).glob("[!.]*"))  # no build yet
        monkeypatch.setattr(sys, "argv", ["simulations", *command[3:], "--engine", "exact"])
        with pytest.raises(SystemExit, match="0"):
            main()

    monkeypatch.setattr(bench, "subprocess", SimpleNamespace(run=run))
    found = bench.sweep_cost()
    assert found == {"runs": 4, "processes": 1, "seconds": found["seconds"], "cpu_seconds": 0.5}
    assert found["seconds"] > 0
    line = bench.table(RESULTS | {"sweep": found | {"seconds": 7.2, "cpu_seconds": 13}})
    for words in ("4 runs of two moons", "1 processes", ": 7 s, target 180 s", "CPU time 13 s"):
        assert words in line
