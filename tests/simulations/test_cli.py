"""The command line as a user meets it."""

from __future__ import annotations

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
