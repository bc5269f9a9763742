"""Where results go: never over an input, never over a result of another kind."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from circuits.storage import results
from tests.simulations.test_cli import done, refused, small

POINTS = np.random.default_rng(0).uniform(0, 1, (60, 2))
OWN = ("--engine", "exact", "--set", "n_tiles=8")

pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")


def kinds(folder):
    found = {path.name: results.kind_of(path) for path in sorted(folder.glob("*.nc"))}
    return {name: kind and kind.partition(" of folder ")[0] for name, kind in found.items()}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_input_is_not_written_over(here):
    xr.Dataset({"points": (("t", "x"), POINTS)}).to_netcdf(here / "points.nc", engine="h5netcdf")
    before = (here / "points.nc").read_bytes()
    for _ in range(2):  # again, over the result of the same
        assert "wrote points.nc.nc" in done("run", "--data", "points.nc", "--out", ".", *OWN).stdout
        assert (here / "points.nc").read_bytes() == before
    assert kinds(here) == {
        "points.nc": None,
        "points.nc-circuit.nc": "circuit",
        "points.nc.nc": "data points.nc",
    }


def test_files_of_like_names_have_results_of_their_own(here):
    """They differ in the suffix, in the folder, or one is named as the circuit of another."""
    for out, first, second, names in (
        (here / "suffixes", "a.csv", "a.npy", ("a", "a.npy")),
        (here / "folders", "one/a.csv", "two/a.csv", ("a", "a.csv")),
        (here / "circuits", "a.csv", "a-circuit.csv", ("a", "a-circuit.csv")),
        (here / "reversed", "a-circuit.csv", "a.csv", ("a-circuit", "a.csv")),
    ):
        for i, name in enumerate((first, second)):
            (here / name).parent.mkdir(exist_ok=True)
            save = np.save if name.endswith("npy") else partial(np.savetxt, delimiter=",")
            save(here / name, POINTS + i)
        for name in (first, second, first):
            done("run", "--data", name, "--out", out, *OWN)
        own = {
            f"{to}.nc": f"data {Path(of).name}"
            for to, of in zip(names, (first, second), strict=True)
        }
        assert kinds(out) == own | {f"{name}-circuit.nc": "circuit" for name in names}
        for i, name in enumerate(names):
            points = results.load(out / f"{name}.nc")["points"].values
            assert np.abs(points - POINTS - i).max() < 1e-12  # text keeps 18 digits
    (here / "three").mkdir()
    np.savetxt(here / "three" / "a.csv", POINTS, delimiter=",")
    words = ("run", "--data", "three/a.csv", "--out", "folders", *OWN)
    assert "three/a.csv" in refused(*words, notes=1)


def test_a_file_that_is_named_as_an_experiment(here):
    np.savetxt(here / "square-balance.csv", POINTS, delimiter=",")
    for _ in range(2):  # whichever comes first
        done("run", "--data", "square-balance.csv", "--out", "out", *OWN)
        done(*small("run", "square-balance", "--repeats", 1, "--out", "out"))
    assert kinds(here / "out") == {
        "square-balance.csv-circuit.nc": "circuit",
        "square-balance.csv.nc": "data square-balance.csv",
        "square-balance.nc": "merged square-balance",
    }


def test_what_stands_in_every_place_is_left_alone(here):
    np.savetxt(here / "a.csv", POINTS, delimiter=",")
    for name in ("a.nc", "a.csv.nc"):
        (here / name).write_text("mine")
    assert "a.csv.nc is not" in refused("run", "--data", "a.csv", "--out", ".", *OWN, notes=1)
    assert {path.name for path in here.iterdir()} == {"a.csv", "a.nc", "a.csv.nc"}
    assert (here / "a.nc").read_text() == (here / "a.csv.nc").read_text() == "mine"


def test_a_comparison_does_not_write_over_its_input(here):
    """Not even where it is the result of an earlier comparison."""
    earlier = xr.Dataset({"points": (("t", "x"), POINTS)}, attrs={"kind": "compare"})
    before = results.save(earlier, here / "out" / "circuit.nc").read_bytes()
    words = ("compare", "--data", "out/circuit.nc", "--engine", "numpy", "--out", "out")
    assert "circuit.nc" in refused(*words, notes=1)
    assert (here / "out" / "circuit.nc").read_bytes() == before


def test_the_demonstration_does_not_write_over_an_experiment(here):
    merged = xr.Dataset({"a": ("x", [1.0])}, attrs={"kind": "merged two-moons"})
    results.save(merged, here / "two-moons.nc")
    assert "merged two-moons" in refused("demo", "--out", ".", notes=1)
    assert results.load(here / "two-moons.nc").identical(merged)
    (here / "out").mkdir()
    (here / "out" / "two-moons-circuit.nc").write_text("mine")
    assert "two-moons-circuit.nc" in refused("demo", "--out", "out", notes=1)
    assert [path.name for path in (here / "out").iterdir()] == ["two-moons-circuit.nc"]


def test_a_page_is_not_written_over_anything_else(here):
    results.save(xr.Dataset({"a": ("x", [1.0])}), here / "out" / "a.nc")
    assert "out/a.nc" in refused("report", "out", "--out", "out/a.nc")
    assert results.is_whole(here / "out" / "a.nc")
    for _ in range(2):
        done("report", "out", "--out", "page.html")
