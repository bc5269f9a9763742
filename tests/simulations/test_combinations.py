"""What `sweep --over` understands, and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from circuits.errors import CircuitError
from simulations import combinations
from simulations.combinations import combine, parse_over
from simulations.experiments import get_experiment

MOONS = get_experiment("two-moons")

TYPED = {
    "mu=1,10,100": [1, 10, 100],
    "mu=0.5": [0.5],
    " mu = 1 , 2.5e1": [1, 25.0],
    "tile_radius=0.2:0.5:7": [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5],
    "mu=100:0:3": [100, 50, 0],
    "mu=3:4:2": [3, 4],
    "mu=1:1000:4:log": [1, 10, 100, 1000],
    "mu=4:1:3:log": [4, 2, 1],
    "tau_h=1 ms:3 ms:3": ["1 ms", "2 ms", "3 ms"],
    "tau_h=2 ms,0.01 second": ["2 ms", "0.01 second"],
    "readout=clip,tanh": ["clip", "tanh"],
    "recycle=true,false": [True, False],
    "readout_rate=running_mean,0.1": ["running_mean", 0.1],
    "mu_grid=[1,2],[3]": [[1, 2], [3]],
    'images="a,b",c': ["a,b", "c"],
}


@pytest.mark.parametrize("text", TYPED)
def test_lists_and_ranges_as_they_are_typed(text):
    assert parse_over([text]) == {text.partition("=")[0].strip(): TYPED[text]}


def test_a_range_gives_the_numbers_that_one_would_type():
    """The same run is found again, whichever way its value was given."""
    for text, typed in (
        ("0.1:0.7:7", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
        ("0:1:11", [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]),
        ("0.001:10:5:log", [0.001, 0.01, 0.1, 1, 10]),
    ):
        assert parse_over([f"noise={text}"]) == {"noise": typed}
    (values,) = parse_over(["noise=1:2:4"]).values()
    # Twelve digits are kept.
    assert values == pytest.approx([1, 4 / 3, 5 / 3, 2], rel=1e-11, abs=0)


REFUSED = {
    "mu": "--over takes name=a,b,c, name=low:high:count or name=low:high:count:log, got 'mu'",
    "=1": "--over takes name=a,b,c",
    "mu=": "--over 'mu' takes values between commas, got '': one is missing",
    "mu=1,,2": "--over 'mu' takes values between commas, got '1,,2': one is missing",
    "mu=1,2,": "one is missing",
    "mu=1:2": "--over takes name=a,b,c.*got 'mu=1:2'",
    "mu=1:2:3:4:5": "--over takes name=a,b,c",
    "mu=a:b:3": "--over takes name=a,b,c",
    "mu=1:2:x": "--over takes name=a,b,c",
    "mu=1:2:-3": "--over takes name=a,b,c",
    "mu=1:2:2.5": "--over takes name=a,b,c",
    "mu=1:2:3:lin": "--over takes name=a,b,c.*got 'mu=1:2:3:lin'",
    "mu=1:2:1": "two different ends and a count of at least 2, got '1:2:1'",
    "mu=1:2:0": "a count of at least 2",
    "mu=2:2:5": "two different ends",
    "mu=0:2:5:log": "takes ends above 0 on a logarithmic scale, got '0:2:5:log'",
    "mu=1:1e999:5": "takes finite ends",
    "tau_h=1 ms:2 s:3": "takes both ends in one unit, got '1 ms:2 s:3'",
    "mu=1:2:1000000": "a sweep of 1000000 of mu is 1000000 runs, more than the 100000 that are",
    f"mu={'9' * 500}": "takes no number of 500 digits",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_sentence(text):
    with pytest.raises(CircuitError, match=REFUSED[text]) as error:
        parse_over([text])
    assert "\n" not in str(error.value)


def test_a_name_given_twice_is_refused():
    with pytest.raises(CircuitError, match="--over 'mu' is given twice: leave one out"):
        parse_over(["mu=1,2", "mu=3"])


def combined(over, repeats=1, experiment=MOONS, **changes):
    return combine(experiment, "exact", over, changes, repeats)


UNFIT = [
    ({}, {}, "a sweep needs parameters to sweep over: --over name=a,b,c"),
    ({"muu": [1]}, {}, "^two-moons has no parameter 'muu': it has .*mu.*noise"),
    ({"mu": [1]}, {"noises": 1}, "^two-moons has no parameter 'noises'"),
    ({"mu": []}, {}, "'mu' has no values to sweep over: give at least one"),
    ({"mu": 3}, {}, "'mu' takes several values to sweep over, got 3"),
    ({"readout": "clip"}, {}, "'readout' takes several values to sweep over, got 'clip'"),
    ({"mu": np.array(3.0)}, {}, "'mu' takes several values to sweep over, got 3.0"),
    ({"mu": {"low": 1}}, {}, "'mu' takes several values to sweep over, got {'low': 1}"),
    ([1, 2], {}, r"^over must be values by name such as {'mu': \[1, 10\]}, got \[1, 2\]$"),
    ({"mu": [1, 2, 1.0]}, {}, "'mu' is to be swept over 1 twice: leave one out"),
    ({"tau_h": ["2 ms", "0.002 s"]}, {}, "'tau_h' is to be swept over 2 ms twice"),
    ({"mu": [1, 2]}, {"mu": 3}, "'mu' is swept over and set: leave one out"),
    ({"mu": [1, -1]}, {}, "^with mu=-1: mu must be finite and at least 0, got -1"),
    ({"n_points": [100, 5]}, {}, "^with n_points=5: n_points: .* got 5$"),
    ({"n_tiles": [10, 12.5]}, {}, "^with n_tiles=12.5: n_tiles must be a valid integer.* 12.5$"),
    (
        {"readout_rule": ["paper", "gated"], "mu": [1, 2]},
        {},
        "^with readout_rule=gated, mu=1: readout_rule='gated' needs a constant readout_rate",
    ),
    (
        {"mu": range(100), "noise": np.linspace(0, 1, 101)},
        {},
        "^a sweep of 100 of mu x 101 of noise x 10 repeats is 101000 runs, more than the 100000",
    ),
]


@pytest.mark.parametrize(("over", "changes", "sentence"), UNFIT)
def test_what_cannot_be_run_is_refused_before_anything_runs(over, changes, sentence):
    with pytest.raises(CircuitError, match=sentence) as error:
        combined(over, 10, **changes)
    assert "\n" not in str(error.value)


def test_a_parameter_that_an_experiment_sets_itself():
    boards = get_experiment("chessboard-supervision")
    with pytest.raises(CircuitError, match=r"^chessboard-supervision sets mu itself: set mu_grid"):
        combined({"mu": [1, 2]}, experiment=boards)
    # A list of lists is a sweep over a setting that holds several values.
    found = combined({"mu_grid": [[1, 2], [3, 4]]}, experiment=boards)
    assert [config.settings.mu_grid for config in found.configs] == [(1, 2), (3, 4)]
    assert found.coordinate("mu_grid")[0].tolist() == ["[1, 2]", "[3, 4]"]


def test_all_combinations_in_order():
    found = combined({"mu": [1, 2], "readout": ["tanh", "clip"]}, n_points=50)
    assert found.shape == (2, 2)
    expected = [(1, "tanh"), (1, "clip"), (2, "tanh"), (2, "clip")]
    assert [(c.parameters.mu, c.parameters.readout) for c in found.configs] == expected
    assert {c.settings.n_points for c in found.configs} == {50}
    assert [found.words(i) for i in range(4)] == [
        *("mu=1, readout=tanh", "mu=1, readout=clip"),
        *("mu=2, readout=tanh", "mu=2, readout=clip"),
    ]
    for i, config in enumerate(found.configs):
        mu, readout = expected[i]
        assert config == MOONS.config("exact", {"mu": mu, "readout": readout, "n_points": 50})


COORDINATES = [
    ("mu", [1, 2], [1.0, 2.0], {}),
    ("n_tiles", (np.int64(10), 20.0), [10, 20], {}),
    ("readout", ["clip", "tanh"], ["clip", "tanh"], {}),
    ("recycle", [True, False], ["true", "false"], {}),
    ("readout_rate", ["running_mean", 0.1], ["running_mean", "0.1"], {}),
    ("readout_rate", ["running_mean", 1.0], ["running_mean", "1"], {}),
    ("tau_h", ["2 ms", "0.01 s", "500 us"], [2.0, 10.0, 0.5], {"units": "ms"}),
]


@pytest.mark.parametrize(("name", "given", "expected", "attributes"), COORDINATES)
def test_values_as_coordinates(name, given, expected, attributes):
    values, known = combined({name: given}).coordinate(name)
    assert values.tolist() == expected
    assert known == attributes


def test_the_largest_sweep_that_is_allowed():
    combinations.require_few({"mu": 100, "noise": 100}, 10)
    with pytest.raises(CircuitError, match=re.escape("100 of mu x 100 of noise x 11 repeats")):
        combinations.require_few({"mu": 100, "noise": 100}, 11)
