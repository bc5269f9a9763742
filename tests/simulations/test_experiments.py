"""Every experiment at small size, and its claims on results whose truth is known."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

from analysis.holdings import damage, lacking
from analysis.kinds import FIGURES
from analysis.selection import SELECTION_SEED
from circuits import CircuitParameters
from circuits.errors import InputError, ParameterError
from simulations import kept_runs, sweep
from simulations.experiments import EXPERIMENTS, get_experiment
from simulations.experiments.claim import Claim, load_claims
from simulations.experiments.evidence import certain
from simulations.experiments.experiment import (
    MOST_POINTS,
    Config,
    Experiment,
    Grid,
    Lambda,
    Mu,
    NotNegative,
    Positive,
    Settings,
    error_rate,
    joined,
    seeds,
    spread,
    standard_error,
)
from simulations.readme import MEASURED
from tests.refusing import refused
from tests.simulations.small import TINY, planted, simulate, small_run

ROOT = Path(__file__).parents[2]
KEPT = load_claims(ROOT / MEASURED / "claims.json")
POWER = json.loads((ROOT / MEASURED / "power.json").read_text(encoding="utf-8"))


def merged_of(experiment: Experiment, seeds: Sequence[int], changes=None) -> xr.Dataset:
    """What says of merged repeats how many and how large they were."""
    config = json.dumps(experiment.config("exact", changes or {}).as_dict())
    return xr.Dataset(coords={"seed": ("repeat", seeds)}, attrs={"config": config})


def decided_by(claim: Claim) -> str:
    """The statistic; where it names points and grids, which are smaller here, without numbers."""
    if "exchanged in the middle" in claim.statistic:
        return re.sub(r"\d[\d.]*(, \d[\d.]*)*", "#", claim.statistic)
    return claim.statistic


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.usefixtures("quick_compiler")
def test_every_experiment_runs_and_names_its_claims(name):
    run = small_run(name)
    alone = sweep.merge([run])
    assert get_experiment(name).claims(alone)  # a single repeat will do
    merged = sweep.merge([run.assign_attrs(seed=seed) for seed in (0, 1, SELECTION_SEED)])
    claims = get_experiment(name).claims(merged)
    for claim in claims:
        assert all(text.strip() for text in (claim.claim, claim.figure, claim.statistic))
        assert bool(claim.paper.strip()) == (EXPERIMENTS[name].figure != "beyond the paper")
        assert any(character.isdigit() for character in claim.figure)
        assert any(character.isdigit() for character in claim.short)
        assert len(claim.short) <= 60
        assert claim.constructed or claim.control.strip()
    # Far below the registered size only what is true by construction is decided.
    assert all(claim.constructed for claim in claims if claim.holds is not None)
    assert merged.attrs["experiment"] == name
    assert {"parameters", "versions", "code", "config", "fingerprint"} <= set(merged.attrs)
    # Of what a sweep keeps the main variable can be drawn.
    experiment = get_experiment(name)
    found = kept_runs.reduced(run.assign_attrs(failed=""))
    assert experiment.main in found
    for dim, place in experiment.main_at.items():
        assert dim in found[experiment.main].dims
        assert place is None or place in found[dim]
    # Figures find what they need, with the dimensions they expect.
    for kind in FIGURES.values():
        for experiment, needs in zip(kind.experiments, kind.needs, strict=True):
            if experiment == name:
                assert lacking(alone, needs) == []
                assert damage(alone, needs) == ""
    # A claim that was added, renamed or decided otherwise needs a new full run.
    claims = get_experiment(name).claims(planted(name, lambda seed, run: {}, 2, run))
    own = [claim for claim in KEPT if claim.experiment == name]
    assert [(claim.claim, claim.paper, decided_by(claim)) for claim in own] == [
        (claim.claim, claim.paper, decided_by(claim)) for claim in claims
    ]
    assert list(POWER[name]["claims"]) == [claim.claim for claim in claims]
    assert POWER[name]["repeats"] == get_experiment(name).repeats
    assert {claim.experiment for claim in KEPT} == set(EXPERIMENTS) == set(POWER)


def test_a_seed_determines_the_result():
    one, again, other = (simulate("chessboard-offline", seed=seed) for seed in (0, 0, 1))
    for variable in one.data_vars:
        assert one[variable].equals(again[variable]), variable
    assert not all(one[variable].equals(other[variable]) for variable in one.data_vars)


def test_readouts_of_one_simulation_are_simulations_of_their_own():
    """The grid over mu, boards and label sets is one run; each of its cells is a run, too."""
    name = "chessboard-supervision"
    grid = simulate(name)
    cell = simulate(name, boards=(0.5,), label_counts=(20,), mu_grid=(10,))
    # Same seed, same stream, and the same first label set: masks are drawn in order of counts.
    expected = float(grid["circuit_error"].isel(board=0, n_labels=0).sel(mu=10))
    # Other sizes may round otherwise: at most one point so close to the border may change sides.
    silent = TINY[name]["n_points"] - 20
    assert float(cell["circuit_error"].squeeze()) == pytest.approx(expected, abs=1.01 / silent)


def test_hyperparameters_are_chosen_on_other_repeats():
    from simulations.experiments.chessboard_supervision import GRIDS, chosen_errors

    data, coords = {}, {"board": ["0.5"], "n_labels": [50], "mu": [1, 2], "rate": [1, 2]}
    coords |= {"gamma": [1, 2]}
    # On the reported repeats value 1 is better, on those for choosing value 2 is.
    values = np.array([[0.1, 0.3], [0.1, 0.3], [0.4, 0.2]]).reshape(3, 1, 1, 2)
    grids = {method: grid for method, grid in GRIDS.items() if grid}
    assert grids.keys() > {"circuit", "logistic", "spreading"}
    for method, grid in grids.items():
        data[f"{method}_error"] = (("repeat", "board", "n_labels", grid), values)
    merged = xr.Dataset(data, coords=coords).assign_coords(seed=("repeat", [0, 1, SELECTION_SEED]))
    for errors in chosen_errors(merged, grids).values():
        assert errors.to_numpy().ravel().tolist() == [0.3, 0.3]


def test_a_claim_is_decided_at_the_registered_size():
    experiment = get_experiment("tiling-arcs")
    assert experiment.repeats == 10
    for repeats, changes, suffices, decided in (
        (10, {}, {}, True),
        (9, {}, {}, False),
        (10, {"n_points": 1999}, {}, False),
        (10, {"n_streams": 9}, {}, False),
        (9, {}, {"repeats": 9}, True),
        (10, {"n_points": 1999}, {"n_points": 1999}, True),
        (10, {"n_points": 1998}, {"n_points": 1999}, False),
    ):
        merged = merged_of(experiment, experiment.seeds(repeats), changes)
        for holds in (True, False):
            found = experiment.decide(merged, certain(holds), **suffices)
            assert found is (holds if decided else None)
    # Repeats for choosing do not count.
    experiment = get_experiment("chessboard-offline")
    seeds = experiment.seeds(experiment.repeats)
    assert experiment.decide(merged_of(experiment, seeds), certain(True)) is True
    assert experiment.decide(merged_of(experiment, seeds[1:]), certain(True)) is None


LEAST = {
    "tiling-arcs": {"n_points": 100, "n_streams": 1, "noise": 0},
    "two-moons": {"n_points": 10, "n_streams": 1, "passes": 1, "label_after": 0, "noise": 0},
    "chessboard-supervision": {"n_points": 300},
    "chessboard-offline": {"n_points": 500, "n_test": 10, "early_every": 1, "every": 1},
    "square-balance": {"n_points": 100, "label_after": 0, "inset": 0},
    "label-diffusion": {"n_tiling": 100, "n_probe": 100, "n_points": 100, "noise": 0},
    "tiling-objective": {"n_points": 20, "n_stream": 100, "n_starts": 1, "n_shown": 1},
    "linear-tiles": {"n_points": 50, "n_test": 10},
    "label-change": {"n_points": 200, "window": 10, "lag": 10},
    "manifold-drift": {
        **{"n_points": 100, "drift_after": 50, "label_after": 0, "measured": 10, "noise": 0},
        **{"more_noise": 0, "map_after": 50, "map_tiles": 2},
    },
    "label-swap": {"n_points": 80, "label_after": 0, "noise": 0},
    "digits": {"n_points": 8, "first": 0, "passes": 1, "paper_mu": 0},
    "representational-drift": {
        **{"n_points": 20, "n_tiling": 50, "label_after": 0, "noise": 0},
        **{"paper_mu": 0, "gated_mu": 0},
    },
    "lesions": {
        **{"n_points": 20, "later": 1, "n_test": 10, "n_noisy": 2, "n_tried": 1, "n_delayed": 1},
        **{"noise": 0, "label_after": 0, "delay_steps": 101},
    },
}
"""The smallest value of every setting that has one."""

ALONE = {
    "label-change": {"window": 10, "lag": 10},
    "chessboard-supervision": {"label_counts": [5]},
    "manifold-drift": {"drift_after": 50, "measured": 10, "label_after": 20},
    "label-swap": {"label_after": 10},
    "representational-drift": {"label_after": 30},
    "lesions": {"label_after": 10, "n_noisy": 2, "n_tried": 1},
}
"""What others have to be for one to be as small as it can."""


@pytest.mark.parametrize("name", LEAST)
def test_settings_are_taken_down_to_their_least_value(name):
    experiment, others = get_experiment(name), ALONE.get(name, {})
    for setting, least in LEAST[name].items():
        config = experiment.config("exact", others | {setting: least})
        assert getattr(config.settings, setting) == least
        with pytest.raises(ParameterError, match=setting):
            experiment.config("exact", others | {setting: least - 1})


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_quick_run_is_smaller_and_has_enough_for_a_figure(name):
    experiment = get_experiment(name)
    full, quick = (experiment.config("exact", {}, quick).settings for quick in (False, True))
    for setting, value in experiment.quick.items():
        registered = getattr(full, setting)
        found = getattr(quick, setting)
        assert found == value
        if isinstance(registered, tuple):
            assert len(found) < len(registered) or set(found) - set(registered)
        else:
            assert found < registered
    assert 2 <= experiment.quick_repeats <= experiment.repeats


def test_a_configuration_as_text():
    refused(lambda: get_experiment("moons"), "'moons'.*tiling-arcs", most=500)
    config = get_experiment("chessboard-offline").config("exact", TINY["chessboard-offline"])
    again = sweep.config_from(json.loads(json.dumps(config.as_dict())))
    assert again == config
    assert again.fingerprint() == config.fingerprint()


# What all experiments share, on one that is made up


class Made(Settings):
    """One setting of each kind."""

    n_points: int = 100
    share: float = 0.5
    positive: Positive = 1.0
    not_negative: NotNegative = 0.0
    penalty: Lambda = 1.0
    mu_value: Mu = 1.0
    grid: Grid[float] = (1.0, 2.0)


class MadeUp(Experiment[Made]):
    """Nothing but what every experiment has."""

    settings_class = Made
    parameters = CircuitParameters()
    lift = get_experiment("two-moons").lift
    quick: ClassVar = {"n_points": 20}
    taken: ClassVar = {"mu": "mu_value"}

    def simulate(self, config, seed, report):
        """Nothing."""
        return xr.Dataset()

    def claims(self, merged):
        """None."""
        return []


TAKEN = [
    *(("n_points", MOST_POINTS), ("not_negative", 0), ("positive", 1e-300)),
    *(("penalty", 1e-6), ("penalty", 1e6), ("mu_value", 0), ("mu_value", 1e6)),
    ("share", 1e9),  # a size is a whole number; a share, a rate or a penalty may be any
    *(("grid", (3,)), ("grid", (3.0, 4))),
]
NOT_TAKEN = [
    ({"n_points": 10**7 + 1}, "^n_points .*10000000, got 10000001$"),
    ({"n_points": True}, "^n_points: .*, got True$"),
    *(({"grid": grid}, "^grid: ") for grid in ([1, True], (False, 2), [1, 2, 1.0], [])),
    ({"grid": [1, "x"]}, r"^grid\.1: .*, got 'x'$"),
    *(({"share": value}, f"^share: .*, got {value}$") for value in (math.inf, math.nan)),
    ({"positive": 0}, "^positive: .*, got 0$"),
    ({"not_negative": -1e-9}, "^not_negative: "),
    *(({"penalty": value}, "^penalty: ") for value in (0.99e-6, 1.01e6)),
    *(({"mu_value": value}, "^mu_value: ") for value in (-1e-9, 1.01e6)),
    ({"n_points": "few", "share": "some"}, "^n_points: "),  # the first of several
    ({"mu": 3}, "^made .*mu .*mu_value"),
    ({"colour": 3}, "^made .*'colour'.*grid, .*n_points, .*n_tiles"),
    ({"n_tiles": 0}, "n_tiles.*got 0"),
]


def test_settings_are_taken_up_to_the_border_and_refused_by_name_beyond():
    made = MadeUp("made")
    for setting, value in TAKEN:
        assert getattr(made.config("exact", {setting: value}).settings, setting) == value
    for changes, words in NOT_TAKEN:
        refused(lambda changes=changes: made.config("exact", changes), words, ParameterError, 2000)
    with pytest.raises(ParameterError, match=r"^colour: "):  # nor does a file hold others
        made.settings({"colour": 3})
    settings = made.settings({"n_points": 7})
    assert settings == Made(n_points=7)
    with pytest.raises(ValueError, match="frozen"):
        settings.n_points = 8


def test_changes_go_to_the_settings_or_to_the_circuit_and_outdo_a_quick_run():
    made = MadeUp("made")
    assert made.config("exact", {}) == Config("made", "exact", CircuitParameters(), Made())
    changes = {"share": 0.25, "n_tiles": 7}
    found = made.config("reference", changes)
    assert (found.settings, found.parameters.n_tiles) == (Made(share=0.25), 7)
    assert found.engine == "reference"
    assert changes == {"share": 0.25, "n_tiles": 7}  # they are the caller's
    assert made.config("exact", {"share": 0.25}, True).settings == Made(n_points=20, share=0.25)
    assert made.config("exact", {"n_points": 30}, True).settings == Made(n_points=30)
    assert made.quick == {"n_points": 20}
    refused(lambda: made.config("gpu", {}), "'gpu'", InputError)


def test_a_configuration_is_plain_and_its_fingerprint_that_of_its_content():
    config = MadeUp("made").config("exact", {})
    plain = config.as_dict()
    assert json.loads(json.dumps(plain)) == plain  # lists are lists already
    assert plain["settings"]["grid"] == [1.0, 2.0]
    assert {plain["experiment"], plain["engine"]} == {"made", "exact"}
    assert plain["parameters"] == CircuitParameters().as_dict()

    def of(values, engine="exact"):
        return Config("made", engine, SimpleNamespace(as_dict=lambda: values), Made()).fingerprint()

    # In which order names were written does not matter, whatever else does.
    assert of({"a": 1, "b": 2}) == of({"b": 2, "a": 1})
    assert len({of({"a": 1}), of({"a": 2}), of({"b": 1}), of({"a": 1}, "reference")}) == 4


def test_attributes_of_several_runs_are_of_the_worst():
    names = ("unsettled_share", "uncovered_share", "lost_labels", "engine")
    attributes = ((0.1, 0.4, 1, "a"), (0.3, 0.2, 2, "b"), (0.2, 0.3, 4, "c"))
    found = joined([xr.Dataset(attrs=dict(zip(names, one, strict=True))) for one in attributes])
    assert found == dict(zip(names, (0.3, 0.4, 7, "c"), strict=True))


def test_error_rates_are_along_the_first_axis_and_silence_is_half_an_error():
    assert error_rate(np.array([1.0, -0.2, 0.0, 0.3]), [1, -1, 1, -1]) == (0 + 0 + 0.5 + 1) / 4
    y = np.array([[1.0, 0.0], [2.0, 3.0], [-1.0, -1.0], [0.0, 1.0]])
    wanted = np.array([1, 1, 1, -1])[:, None]
    assert error_rate(y, wanted).tolist() == [(1 + 0.5) / 4, (0.5 + 1 + 1) / 4]


def test_spreads_by_hand():
    values = xr.DataArray([[1, 2], [3, 2], [5, 2]], dims=("repeat", "board"))
    # Squares 4, 0, 4 about the mean, over 2, over 3.
    assert standard_error(values).to_numpy() == pytest.approx([2 / np.sqrt(3), 0])
    assert standard_error(values[:2]).to_numpy() == pytest.approx([1, 0])
    alone = standard_error(values[:1])
    assert alone.dims == ("board",)
    assert np.isnan(alone).all()
    assert spread([1, 3, 5]) == "3.000 ± 2.000"
    assert spread([1.0, 2.0]) == "1.500 ± 0.707"
    assert spread([0.1236]) == "0.124"
    assert (seeds([0]), seeds([0, 1]), seeds(range(10))) == ("1 seed", "2 seeds", "10 seeds")
