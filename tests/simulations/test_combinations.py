"""What `sweep --over` understands, and what it refuses."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from simulations.combinations import combine, parse_over
from simulations.experiments import get_experiment
from tests.refusing import refused

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


def test_lists_and_ranges_as_they_are_typed():
    for text, values in TYPED.items():
        assert parse_over([text]) == {text.partition("=")[0].strip(): values}


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


REFUSED = [
    *("mu", "=1", "mu=", "mu=1,,2", "mu=1,2,", "mu=1:2", "mu=1:2:3:4:5", "mu=a:b:3", "mu=1:2:x"),
    *("mu=1:2:-3", "mu=1:2:2.5", "mu=1:2:3:lin", "mu=1:2:1", "mu=1:2:0", "mu=2:2:5"),
    *("mu=0:2:5:log", "mu=1:1e999:5", "tau_h=1 ms:2 s:3", "mu=1:2:1000000", f"mu={'9' * 500}"),
]


def test_what_cannot_be_read_is_refused_with_what_was_given():
    special = {"mu=1:2:1000000": "1000000 of mu", REFUSED[-1]: "500 digits"}
    for text in REFUSED:
        words = special.get(text, f"{text.partition('=')[2]}'")
        refused(lambda text=text: parse_over([text]), re.escape(words))
    refused(lambda: parse_over(["mu=1,2", "mu=3"]), "'mu'")


def combined(over, repeats=1, experiment=MOONS, **changes):
    return combine(experiment, "exact", over, changes, repeats)


UNFIT = [
    ({}, {}, "--over"),
    ({"muu": [1]}, {}, "^two-moons .*'muu'.*mu.*noise"),
    ({"mu": [1]}, {"noises": 1}, "^two-moons .*'noises'"),
    ({"mu": []}, {}, "'mu'"),
    ({"mu": 3}, {}, "'mu'.* got 3"),
    ({"readout": "clip"}, {}, "'readout'.* got 'clip'"),
    ({"mu": np.array(3.0)}, {}, "'mu'.* got 3.0"),
    ({"mu": {"low": 1}}, {}, "'mu'.* got {'low': 1}"),
    ([1, 2], {}, r"^over .* got \[1, 2\]$"),
    ({"mu": [1, 2, 1.0]}, {}, "'mu'.* 1 twice"),
    ({"tau_h": ["2 ms", "0.002 s"]}, {}, "'tau_h'.* 2 ms twice"),
    ({"mu": [1, 2]}, {"mu": 3}, "'mu'"),
    ({"mu": [1, -1]}, {}, "^with mu=-1: mu .* got -1"),
    ({"n_points": [100, 5]}, {}, "^with n_points=5: n_points: .* got 5$"),
    ({"n_tiles": [10, 12.5]}, {}, "^with n_tiles=12.5: n_tiles .* 12.5$"),
    ({"readout_rule": ["paper", "gated"], "mu": [1, 2]}, {}, "^with readout_rule=gated, mu=1: "),
    ({"mu": range(100), "noise": np.linspace(0, 1, 101)}, {}, "101 of .* 101000 .* 100000"),
]


def test_what_cannot_be_run_is_refused_before_anything_runs():
    for over, changes, words in UNFIT:
        case = partial(combined, over, 10, **changes)
        refused(case, words, most=2000)


def test_a_parameter_that_an_experiment_sets_itself():
    boards = get_experiment("chessboard-supervision")
    refused(
        lambda: combined({"mu": [1, 2]}, experiment=boards), "^chessboard-supervision .*mu_grid"
    )
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


def test_values_as_coordinates():
    for name, given, expected, attributes in COORDINATES:
        values, known = combined({name: given}).coordinate(name)
        assert (values.tolist(), known) == (expected, attributes)
