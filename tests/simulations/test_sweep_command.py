"""The command `sweep` on the experiments themselves: the numbers of single runs, in one file."""

from __future__ import annotations

import os
import re
import signal
import time

import numpy as np
import pytest

from circuits.storage import results
from simulations import kept_runs, parameter_sweep
from simulations import sweep as repeats
from simulations.parameter_sweep import sweep
from tests.simulations.small import TINY, simulate
from tests.simulations.test_cli import done, run, start
from tests.soak import processes

MOONS = [f"--set={key}={value}" for key, value in TINY["two-moons"].items()]


def assert_same_numbers(found, single):
    """All that a sweep keeps of a run, as `run` has it."""
    names = {*found.data_vars} - {"swept"}
    assert "circuit_accuracy" in names
    for name in names:
        # The same computation in another process: rounding, and no more.
        one, other = (of[name].to_numpy().astype(float) for of in (found, single))
        np.testing.assert_allclose(one, other, rtol=0, atol=repeats.ROUNDING, err_msg=str(name))


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_command_gives_the_numbers_of_single_runs(tmp_path, jobs):
    words = ["--over", "mu=3,300", "--over", "tile_radius=0.3:0.5:2", "--repeats", "2"]
    words += ["--engine", "exact", "--jobs", jobs, "--out", tmp_path]
    printed = done("sweep", "two-moons", *words, *MOONS).stdout
    assert f"wrote {tmp_path}/sweep-two-moons.nc and {tmp_path}/sweep-two-moons/" in printed
    found = results.load(tmp_path / "sweep-two-moons.nc")
    assert found["circuit_accuracy"].dims == ("mu", "tile_radius", "repeat", "placement")
    for mu, radius, seed in ((3, 0.5, 0), (300, 0.3, 1)):
        single = simulate("two-moons", seed=seed, mu=mu, tile_radius=radius)
        assert_same_numbers(found.sel(mu=mu, tile_radius=radius).isel(repeat=seed), single)


def test_an_interrupted_command_ends_with_what_python_gives(tmp_path, monkeypatch):
    """In this process; slow tests interrupt and kill several processes."""
    words = ("sweep", "two-moons", "--over", "mu=1:100:2:log", "--repeats", 1, "--engine", "exact")
    words = (*words, *MOONS, "--out", tmp_path)
    real, asked = parameter_sweep.run_point, []

    def interrupted(point, report):
        if asked:
            raise KeyboardInterrupt
        asked.append(point)
        return real(point, report)

    with monkeypatch.context() as patch:
        patch.setattr(parameter_sweep, "run_point", interrupted)
        ended = run(*words)
    assert ended.returncode == 130
    assert "two-moons: 1 of 2 runs are kept" in ended.stderr
    assert ended.stderr.endswith("\nmanifold-circuit: interrupted\n")
    assert not (tmp_path / "sweep-two-moons.nc").exists()
    assert "two-moons: 1 of 2 runs were finished before" in done(*words).stdout
    typed = results.load(tmp_path / "sweep-two-moons.nc")
    found = sweep(
        *("two-moons", {"mu": np.array([1, 100])}),
        **{"changes": TINY["two-moons"], "repeats": 1, "engine": "exact", "out": tmp_path / "b"},
    )
    assert {*typed.variables} == {*found.variables}
    for name in {*found.variables} - {"run_seconds"}:
        assert typed[name].variable.equals(found[name].variable), name


@pytest.mark.slow
def test_one_build_serves_all_of_a_sweep_on_two_processes(tmp_path):
    """Two processes want it at the same time, of a cache that is empty."""
    words = "--over mu=1,10 --over tile_radius=0.3,0.5"
    environment = {**os.environ, "MANIFOLD_CIRCUIT_CACHE": str(tmp_path / "builds")}
    swept = start(
        *("sweep", "two-moons", *words.split(), "--repeats", 1, "--jobs", 2, "--out", tmp_path),
        *MOONS,
        env=environment,
    )
    assert swept.returncode == 0, swept.stderr
    assert swept.stderr.count("compiling") == 1
    assert len([*(tmp_path / "builds").glob("*/manifest.json")]) == 1
    found = results.load(tmp_path / "sweep-two-moons.nc")
    assert found.attrs["engine"] == "cpp_standalone"
    assert found["circuit_accuracy"].shape == (2, 2, 1, 2)


@pytest.mark.slow
def test_an_interrupted_command_goes_on(tmp_path):
    words = ["sweep", "two-moons", "--over", "mu=1:1000:50:log", "--repeats", 1, "--engine"]
    words += ["exact", *MOONS, "--out", tmp_path, "--jobs"]
    process, mark = processes.start(*words, 2, cwd=tmp_path, module="simulations")
    seen = ""
    while not re.search(r"\b[1-9]\d*/50", seen):
        letter = process.stderr.read(1)
        assert letter, seen
        seen += letter
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130
    (stays,) = re.findall(r"^two-moons: (\d+) of 50 runs are kept, and the same", said, re.M)
    assert said.endswith("\nmanifold-circuit: interrupted\n")
    assert processes.left_after(mark, 20) == []
    assert not (tmp_path / "sweep-two-moons.nc").exists()
    printed = done(*words, 1).stdout
    (before,) = re.findall(r"two-moons: (\d+) of 50 runs were finished before", printed)
    assert 1 <= int(before) < 50
    assert int(before) == int(stays)
    assert results.load(tmp_path / "sweep-two-moons.nc").sizes["mu"] == 50


@pytest.mark.slow
def test_a_command_that_is_killed_has_kept_what_it_wrote(tmp_path):
    words = ["sweep", "two-moons", "--over", "mu=1:1000:5000:log", "--repeats", 1, "--engine"]
    words += ["exact", *MOONS, "--jobs", 2, "--out", tmp_path]
    process, mark = processes.start(*words, cwd=tmp_path, module="simulations")
    folder = tmp_path / "sweep-two-moons"
    while not [*folder.glob("runs-*.nc")]:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert processes.left_after(mark, 20) == []
    kept = kept_runs.KeptRuns(folder, "two-moons")
    assert kept.places
    assert all(results.is_whole(path) for path in folder.glob("runs-*.nc"))
    printed = done("sweep", "two-moons", "--over", "mu=1,2000", *words[4:]).stdout
    # The first of the range was among the first to be computed.
    assert "two-moons: 1 of 2 runs were finished before\n" in printed
