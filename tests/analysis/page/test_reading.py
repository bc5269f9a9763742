"""What is read from a folder, and how it is put into words."""

from __future__ import annotations

import json

import xarray as xr

from analysis.page import pieces, reading
from circuits.storage import results


def put(directory, name, **attributes):
    """A result that holds next to nothing but what it says of itself."""
    dataset = xr.Dataset({"y": ("presentation", [0.0])}, attrs=attributes)
    return results.save(dataset, directory / name)


def read(directory):
    return reading.read_results(directory)[0]


def test_a_title_is_made_of_what_there_is(tmp_path):
    put(tmp_path, "mine.nc")
    assert pieces.title(read(tmp_path)) == "Mine"
    for seed in (0, 1):
        put(tmp_path, f"arcs/seed-{seed}.nc", experiment="tiling-arcs", title="Arcs are tiled")
    assert pieces.title(read(tmp_path / "arcs")) == "Arcs are tiled"
    put(tmp_path, "two-moons.nc", experiment="two-moons")
    assert pieces.title(read(tmp_path)) == "3 experiments"
    assert tmp_path.name not in pieces.title(read(tmp_path))
    (tmp_path / "arcs" / "seed-0.nc").unlink()
    (tmp_path / "arcs" / "seed-1.nc").unlink()
    assert pieces.title(read(tmp_path)) == "Two moons; Mine"
    for name in reading.EXPERIMENTS:
        put(tmp_path, f"{name}.nc", experiment=name)
    assert pieces.title(read(tmp_path)) == f"{len(reading.EXPERIMENTS) + 1} experiments"
    (tmp_path / "mine.nc").unlink()
    assert pieces.title(read(tmp_path)) == "The paper's experiments"


def test_claims_of_a_result_count_before_those_of_the_list(tmp_path):
    """The list may be older than the result. What is no list of claims is left out."""
    old = [
        {"experiment": "arcs", "claim": "tiles", "holds": True},
        {"experiment": "moons", "claim": "old", "holds": False},
        {"experiment": "square", "claim": "halves", "holds": True},
    ]
    (tmp_path / "claims.json").write_text(json.dumps(old))
    new = [{"claim": "new", "holds": True}, {"experiment": "moons", "claim": "b", "holds": None}]
    put(tmp_path, "moons.nc", experiment="moons", claims=json.dumps(new))
    put(tmp_path, "moons/seed-0.nc", experiment="moons")
    put(tmp_path, "more.nc", claims=json.dumps([{"claim": "another", "holds": False}]))
    for number, text in enumerate(("{", "{}", "[1]", "null")):
        put(tmp_path, f"none-{number}.nc", claims=text)
    found = reading.read_claims(tmp_path, read(tmp_path))
    assert [(c["experiment"], c["claim"], c["holds"]) for c in found] == [
        ("arcs", "tiles", True),
        ("moons", "new", True),
        ("moons", "b", None),
        ("square", "halves", True),
        ("more", "another", False),
    ]


def test_seeds_of_like_results_stand_together(tmp_path):
    for seed in (3, 0, 1, 2, 7):
        put(tmp_path, f"seed-{seed}.nc", experiment="e", seed=seed)
    put(tmp_path, "other.nc", experiment="e", engine="numpy")
    first, second = pieces.provenance_tables(read(tmp_path))[0].rows
    assert first[:3] == ("e", "1", "not recorded")
    assert second[:3] == ("e", "5", "0 to 3, 7")


def test_experiments_stand_in_the_papers_order(tmp_path):
    for name in ("zoo", "label-diffusion", "two-moons", "tiling-arcs", "aviary"):
        put(tmp_path, f"{name}.nc", experiment=name)
    found = [result.experiment for result in read(tmp_path)]
    assert found == ["tiling-arcs", "two-moons", "label-diffusion", "aviary", "zoo"]


def test_short_figures_stand_in_the_table_and_long_ones_below_it():
    claims = [
        {"experiment": "e", "claim": c, "short": f"short {c}", "figure": f"long {c}", "holds": True}
        for c in "ab"
    ]
    _, table, long = pieces.claims_table(claims)
    assert [row[-1] for row in table.rows] == ["short a", "short b"]
    assert long is not None
    assert [row[-1] for row in long.rows] == ["long a", "long b"]
    said = {**claims[1], "statistic": "t test", "control": "c", "constructed": True}
    _, table, long = pieces.claims_table([claims[0], said])
    assert table.header == ("Verdict", "Experiment", "Claim", "Found here")
    assert [row[2] for row in table.rows] == ["a", "b (by construction)"]
    assert long is not None
    assert long.header == ("Experiment", "Claim", "Decided by", "Found here", "Control")
    assert long.rows[1] == ("e", "b (by construction)", "t test", "long b", "c")
    assert long.rows[0] == ("e", "a", "", "long a", "")
    _, table, long = pieces.claims_table([claims[0], {**claims[1], "short": ""}])
    assert long is None  # where one has no short figure all show the long one
    assert "long a" in table.rows[0]
