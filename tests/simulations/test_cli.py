"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import xarray as xr


def run(*arguments, **options):
    command = [sys.executable, "-m", "simulations", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_demo(tmp_path):
    result = run("demo", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    values = {line[:21].strip(): line[21:] for line in result.stdout.splitlines()}
    assert float(values["accuracy"].split()[0]) >= 0.99
    assert float(values["largest difference"].split()[0]) <= 1e-8
    assert values["predicted signs"] == "all equal"
    assert "2000/2000" in result.stderr
    assert (tmp_path / "two-moons.png").stat().st_size > 50_000
    with xr.open_dataset(tmp_path / "two-moons.nc") as saved:
        assert saved["y"].shape == (2000, 1)
        assert saved.attrs["seed"] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("demo", "--engine", "gpu"), "no engine 'gpu'"),
        (("demo", "--seed", "-1"), "--seed"),
        (("fly",), "No such command 'fly'"),
    ],
)
def test_bad_input_exits_with_2_and_a_sentence(arguments, words):
    result = run(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_help_has_an_example_on_every_command_and_no_brian2():
    overview = run("--help").stdout
    commands = overview.split("Commands:")[1].split()
    for command in ("demo", "bench", "cache"):
        assert command in commands
        assert f"Example: manifold-circuit {command}" in run(command, "--help").stdout
    check = "import sys, simulations.cli; assert not {'brian2', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_cache(tmp_path):
    environment = {**os.environ, "MANIFOLD_CIRCUIT_CACHE": str(tmp_path)}
    assert "0 compiled circuits" in run("cache", env=environment).stdout
    assert "removed 0" in run("cache", "--clear", env=environment).stdout


def test_quick_benchmark(tmp_path):
    result = run("bench", "--quick", "--repeats", "1", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    saved = json.loads((tmp_path / "bench.json").read_text())
    assert set(saved["sizes"]) == {"40 x 4", "200 x 8"}
    for found in saved["sizes"].values():
        assert all(cost > 0 for cost in found["us_per_step"].values())
    assert "/ fused" in result.stdout
    assert (tmp_path / "bench.png").exists()
