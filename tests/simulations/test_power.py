"""The power of a number of repeats, on pilots of which it is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from analysis.selection import SELECTION_SEED
from circuits.errors import InputError
from circuits.storage import results
from circuits.storage.files import FileError
from simulations import power
from simulations.experiments import EXPERIMENTS, get_experiment
from simulations.readme import MEASURED
from tests.simulations.small import planted
from tests.simulations.test_tiling_arcs import as_claimed

SHARED = "no tile is shared by the arcs"


def pilot(pure: list[float]) -> xr.Dataset:
    """Ten repeats of ten streams each; those of repeat i have the share ``pure[i]`` of tiles."""
    merged = planted(
        "tiling-arcs", lambda s, run: as_claimed(s, run) | {"exact_pure": np.full(10, pure[s])}
    )
    return merged.assign_coords(seed=merged["seed"] + power.PILOT_SEED)


def test_power_is_the_share_of_draws_with_the_pilots_verdict():
    merged = pilot([1.0] * 10)
    with pytest.raises(InputError, match="4999"):  # a seed that is among those reported
        power.power_of("tiling-arcs", merged.assign_coords(seed=merged["seed"] - 1))
    sure = power.power_of("tiling-arcs", merged, draws=20)
    assert sure["claims"][SHARED] == {"verdict": "holds", "power": 1.0}
    assert (sure["repeats"], sure["seeds"], sure["draws"]) == (10, "5000 to 5009", 20)
    # One bad repeat of ten: without it, 0.9^10 = 0.35 of draws, all is pure and it holds; drawn
    # once, 10 of 100 are not, which decides nothing; twice or more (0.26), 20, which refutes.
    mixed = power.power_of("tiling-arcs", pilot([0.9] + [1.0] * 9), draws=400)
    assert mixed["claims"][SHARED]["verdict"] == "not decided"
    # 10 * 0.1 * 0.9^9 = 0.387; its standard deviation in 400 draws is 0.024: four of them.
    assert mixed["claims"][SHARED]["power"] == pytest.approx(0.387, abs=0.1)
    # The other claim does not depend on it.
    assert mixed["claims"]["tiles cover the arcs and overlap"]["power"] == 1.0


def test_repeats_for_choosing_are_not_drawn():
    seeds = [5000, 5001, SELECTION_SEED + 5000, SELECTION_SEED + 5001]
    merged = xr.Dataset({"x": ("repeat", [0.0, 1.0, 2.0, 3.0])}, {"seed": ("repeat", seeds)})
    drawn = power.resampled(merged, 50, np.random.default_rng(0))["x"].to_numpy()
    assert len(drawn) == 52
    assert drawn[-2:].tolist() == [2.0, 3.0]
    assert set(drawn[:-2]) == {0.0, 1.0}
    # Half of them each: 25 ± 3.5.
    assert 11 < drawn[:-2].sum() < 39


def test_the_pilot_of_what_was_not_run_again_is_kept(tmp_path, monkeypatch):
    names = ("tiling-arcs", "linear-tiles")
    monkeypatch.setattr(power, "EXPERIMENTS", {name: EXPERIMENTS[name] for name in names})
    monkeypatch.setattr(power, "DRAWS", 2)
    with pytest.raises(FileError, match=r"tiling-arcs\.nc"):
        power.main(tmp_path)
    known = {name: {"claims": {f"old {name}": {"verdict": "holds", "power": 1.0}}}
             for name in (*names, "another")}  # fmt: skip
    (tmp_path / "power.json").write_text(json.dumps(known), encoding="utf-8")
    results.save(pilot([1.0] * 10), tmp_path / "tiling-arcs.nc")
    power.main(tmp_path)
    found = json.loads((tmp_path / "power.json").read_text(encoding="utf-8"))
    assert found.keys() == {*names}
    assert found["linear-tiles"] == known["linear-tiles"]
    assert SHARED in found["tiling-arcs"]["claims"]


def test_every_claim_of_the_paper_has_the_power_it_should():
    """Of the pilot that is kept with the documentation: at least 0.9, or no verdict."""
    kept = json.loads((Path(__file__).parents[2] / MEASURED / "power.json").read_text())
    weak = [
        (name, claim, values)
        for name, found in kept.items()
        for claim, values in found["claims"].items()
        if values["power"] < 0.9 and values["verdict"] != "not decided"
    ]
    assert weak == []
    for name, found in kept.items():
        experiment = get_experiment(name)
        assert found["repeats"] == experiment.repeats
        # The power is that of these settings, and of no others.
        config = json.loads(json.dumps(experiment.config("auto", {}).as_dict()))
        assert found["settings"] == config["settings"]
        assert found["parameters"] == config["parameters"]
