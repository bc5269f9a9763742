"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
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
        (("run",), "name an experiment"),
        (("run", "moons"), "no experiment 'moons'"),
        (("run", "two-moons", "--set", "colour=red"), "no parameter 'colour'"),
        (("run", "two-moons", "--set", "mu=-1"), "mu must be finite and at least 0, got -1"),
        (("run", "--data", "nowhere.csv"), "no file nowhere.csv"),
        (("run", "--from", "nowhere.nc"), "no result file nowhere.nc"),
        (("plot", "nowhere.nc"), "no result file nowhere.nc"),
        (("compare", "--set", "n_tiles=0"), "n_tiles must be greater"),
        (("report", "nowhere"), "nowhere"),
        (("run", "two-moons", "--data", "x.csv"), "name an experiment"),
        (("run", "two-moons", "--set", "label_after=5000"), "no point of class"),
        (("run", "chessboard-offline", "--set", "mu=3"), "set mu_grid instead"),
        (("run", "chessboard-offline", "--set", "every=6000"), "must not exceed n_points=5000"),
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
    names = ["demo", "list", "run", "compare", "plot", "report", "describe"]
    for command in [*names, "reproduce", "bench", "cache"]:
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


def small(*arguments):
    """Options that make the square experiment quick."""
    return [*arguments, "--engine", "exact", "--set", "n_points=200", "--set", "label_after=50"]


def test_list_and_run(tmp_path):
    listed = run("list").stdout
    assert "two-moons" in listed
    result = run(*small("run", "square-balance", "--repeats", 2, "--out", tmp_path))
    assert result.returncode == 0, result.stderr
    assert "the circuit fluctuates more" in result.stdout
    assert "2/2" in result.stderr
    again = run(*small("run", "square-balance", "--repeats", 2, "--out", tmp_path))
    assert "2 of 2 runs were finished before" in again.stdout
    path = tmp_path / "square-balance" / "seed-00001.nc"
    assert "give another --out" in run("run", "--from", path, "--out", tmp_path).stderr
    rerun = run("run", "--from", path, "--out", tmp_path / "again")
    assert "run again gives the same numbers" in rerun.stdout
    drawn = run("plot", tmp_path / "square-balance.nc")
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "figures" / "square-balance-fig4.png").exists()


def test_own_data(tmp_path):
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 10, (120, 3))
    labels = np.where(np.arange(120) % 20 == 19, np.sign(points[:, 0] - 5), 0)
    path = tmp_path / "mine.csv"
    rows = np.column_stack([points, labels])
    np.savetxt(path, rows, delimiter=",", header="x,y,z-axis,label", comments="")
    done = run("run", "--data", path, "--out", tmp_path, "--set", "n_tiles=15")
    assert done.returncode == 0, done.stderr
    assert "120 points, 6 labelled" in done.stdout
    with xr.open_dataset(tmp_path / "mine.nc") as saved:
        assert np.abs(saved["points"].values - points).max() < 1e-12  # text keeps 18 digits
        assert (saved["labels"].values[:, 0] == labels).all()
    drawn = run("plot", tmp_path / "mine.nc", "--kind", "raster", "--out", tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "mine-raster.png").exists()
    options = ["--engine", "cpp_standalone", "--set", "n_tiles=15", "--out", tmp_path / "compare"]
    compared = run("compare", "--data", path, *options)
    assert compared.returncode == 0, compared.stderr
    values = dict(re.findall(r"^  (\w+) +(\d\.\de[-+]\d+)$", compared.stdout, flags=re.MULTILINE))
    assert {"h", "W", "V_trace"} <= set(values)
    assert max(map(float, values.values())) <= 1e-8
    assert (tmp_path / "compare" / "agreement.png").exists()


@pytest.mark.parametrize("kind", ["npy", "npz", "nc"])
def test_other_kinds_of_files(tmp_path, kind):
    from simulations.own_data import load_points

    points, labels = np.random.default_rng(0).random((10, 2)), np.eye(10, 1)[:, 0]
    path = tmp_path / f"points.{kind}"
    if kind == "npy":
        np.save(path, points)
    elif kind == "npz":
        np.savez(path, points=points, labels=labels)
    else:
        xr.Dataset({"points": (("t", "d"), points), "labels": ("t", labels)}).to_netcdf(
            path, engine="h5netcdf"
        )
    found, found_labels = load_points(path)
    assert (found == points).all()
    assert found_labels is None if kind == "npy" else (found_labels == labels).all()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n3\n", "line 3 has 1 cells, others have 2"),
        ("", "it is empty"),
        ("1,2\n3,x\n", "cannot be read"),
        ("1,nan\n3,4\n", "finite"),
    ],
)
def test_damaged_csv(tmp_path, content, words):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    result = run("run", "--data", path, "--out", tmp_path)
    assert result.returncode == 2
    assert words in result.stderr


def test_compare_with_studies(tmp_path):
    result = run("compare", "--points", 60, "--studies", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    for name in ("agreement", "agreement-steps", "settling-error", "convergence", "stability"):
        assert (tmp_path / f"{name}.png").exists(), name
    with xr.open_dataset(tmp_path / "steps.nc") as steps:
        assert steps["V_trace"].shape == (5, 200, 4, 40)


def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "points.txt").write_text("1 2")
    result = run("run", "--data", tmp_path / "points.txt")
    assert result.returncode == 2
    assert "must be a .csv, .npy, .npz or .nc file" in result.stderr
    assert "cannot be read" not in result.stderr


def test_describe_and_report(tmp_path):
    described = run("describe", "--set", "n_tiles=7", "--out", tmp_path / "model")
    assert described.returncode == 0, described.stderr
    assert "excitatory (7)" in described.stdout
    assert (tmp_path / "model" / "model.tex").read_text().startswith("\\documentclass")
    result = run("report", tmp_path)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
