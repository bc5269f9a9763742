"""Plain numbers about results: where tiles lie, in which order, and which repeats are which."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import xarray as xr

from analysis import selection
from analysis.measures import (
    accuracy,
    diffusion_slopes,
    masses,
    purity,
    tile_centers,
    tile_centers_of,
    tile_classes,
    tile_order,
    tile_positions,
)
from circuits import ReferenceCircuit, SphereLift
from circuits.errors import InputError
from tests.conftest import small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


def test_centres_are_the_points_that_the_weights_came_from():
    points = np.array([[0.1, 0.2], [1.5, -0.4], [0.5, 0.25]])
    scale = np.array([[0.1], [2.0], [7.0]])  # how long W_i is does not matter
    # The height of the lift hides some digits: x is good to 1e-16 of R.
    assert tile_centers_of(scale * LIFT(points), LIFT) == pytest.approx(points, abs=1e-14)
    assert tile_centers_of(np.zeros((1, 3)), LIFT) == pytest.approx(LIFT.center[None])
    circuit = ReferenceCircuit(small_circuit(n_tiles=3, learning_rate=0.0), LIFT, settling="exact")
    assert tile_centers(circuit.run(points)) == pytest.approx(points, abs=1e-14)


def test_tiles_are_ordered_by_the_nearest_point_or_from_left_to_right():
    angle = np.linspace(0, 3, 31)
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    centers = 1.01 * points[[20, 5, 30, 0]]
    assert (tile_positions(centers, points, angle) == angle[[20, 5, 30, 0]]).all()
    assert tile_order(centers, points, angle).tolist() == [3, 1, 0, 2]
    assert tile_order(centers, points).tolist() == [2, 0, 1, 3]  # along the first coordinate
    assert tile_order(centers, points, axis=1).tolist() == [3, 2, 1, 0]
    # Those at one place stay in the order of their numbers: more than 16 of them, since shorter
    # arrays are sorted by insertion, which keeps the order whatever is asked.
    centers = np.column_stack([np.repeat([1.0, 0.0], 30), np.zeros(60)])
    expected = [*range(30, 60), *range(30)]
    assert tile_order(centers, centers).tolist() == expected
    assert tile_order(centers, [[1, 0], [0, 0]], [5.0, 3.0]).tolist() == expected


def test_a_single_run_counts_as_one_repeat():
    merged = xr.Dataset({"a": ("repeat", [3.0, 4.0])}, coords={"seed": ("repeat", [7, 8])})
    first = selection.first_repeat(merged)
    assert float(first["a"]) == 3
    assert selection.first_repeat(first).identical(first)
    assert selection.seeds_of(merged) == [7, 8]
    assert selection.seeds_of(first) == [7]
    assert selection.seeds_of(xr.Dataset(attrs={"seed": 5})) == [5]
    assert selection.seeds_of(xr.Dataset()) == []
    single = xr.Dataset({"a": ("x", [1.0, 2.0])}, attrs={"seed": 3})
    found = selection.with_repeats(single)
    assert (found["a"].dims, found["seed"].dims) == (("repeat", "x"), ("repeat",))
    assert found["seed"].values.tolist() == [3]
    assert selection.with_repeats(found) is found
    assert selection.with_repeats(single.drop_attrs())["seed"].values.tolist() == [0]


def test_accuracy_is_the_share_of_right_signs_and_zero_is_wrong():
    assert accuracy([0.1, -2.0, 0.0, 3.0, -0.5], [1, -1, 1, -1, -1]) == 3 / 5
    assert accuracy([[1.0, -1.0]], [[1, 1]]) == 1 / 2


def test_slopes_through_the_origin_by_hand():
    """(1*2 + 2*5)/(1 + 4) and (3*3 + 1*(-1))/(9 + 1), wherever the repeats are in the file."""
    predicted, measured = [[1.0, 2.0], [3.0, 1.0]], [[2.0, 5.0], [3.0, -1.0]]
    merged = xr.Dataset(
        {
            "predicted": (("repeat", "step"), predicted),
            "measured": (("step", "repeat"), np.transpose(measured)),
        }
    )
    assert diffusion_slopes(merged).tolist() == [12 / 5, 8 / 10]
    assert diffusion_slopes(merged.isel(repeat=1)).tolist() == [8 / 10]


def test_a_result_that_does_not_say_how_it_was_lifted_is_refused_with_what_it_says():
    weights = {"W": (("tile", "input"), np.eye(3))}
    for lift in ("none", "[1, 2]", '{"center": [0, 0]}', '{"center": [0, 0], "radius": -1}'):
        run = xr.Dataset(weights, attrs={"lift": lift})
        assert repr(lift)[:20] in refused(partial(tile_centers, run), "lifted", InputError)
    refused(partial(tile_centers, xr.Dataset(weights)), "lifted: None", InputError)
    refused(partial(tile_centers, xr.Dataset()), "no W", InputError)


def test_two_seeds_are_listed_and_three_make_a_range():
    assert selection.in_words([]) == "unknown"
    assert selection.in_words([3, 0, 1, 2, 3, 7, 8, 20]) == "0 to 3, 7, 8, 20"
    assert selection.in_words([0, 1, 5, 6, 7]) == "0, 1, 5 to 7"


def errors_with_seeds(seeds: list[int]) -> xr.Dataset:
    """Errors by repeat, board and a hyperparameter, whose least lies elsewhere on either board."""
    error = np.zeros((len(seeds), 2, 3))
    error[:, 0], error[:, 1] = [0.3, 0.1, 0.2], [0.2, 0.4, 0.1]
    reported = np.array(seeds) < 10_000
    error[reported] = error[reported][:, :, ::-1] + np.arange(sum(reported))[:, None, None]
    dims = ("repeat", "board", "rate")
    coords = {"seed": ("repeat", seeds), "board": [2, 4], "rate": [1.0, 10.0, 100.0]}
    return xr.Dataset({"error": (dims, error)}, coords)


def test_hyperparameters_are_chosen_on_seeds_that_are_not_reported():
    merged = errors_with_seeds([0, 9_999, 10_000, 10_001])
    assert selection.reported(merged)["seed"].values.tolist() == [0, 9_999]
    assert selection.selection(merged)["seed"].values.tolist() == [10_000, 10_001]
    chosen = selection.chosen_values(merged, "error", "rate")
    assert chosen.dims == ("board",)
    assert chosen.values.tolist() == [10.0, 100.0]
    found = selection.chosen_errors(merged, "error", "rate").transpose("repeat", "board")
    # The reported errors are the others backwards, plus the number of the repeat.
    assert found.values.tolist() == [[0.1, 0.2], [1.1, 1.2]]
    for seeds in ([0, 1], [10_000, 10_001]):  # of one kind alone: both are made of all
        alone = errors_with_seeds(seeds)
        assert selection.reported(alone).identical(alone)
        assert selection.selection(alone).identical(alone)


def test_hyperparameters_are_chosen_for_every_number_of_labels_over_all_times():
    # At the first time the first value is best, over both times the second.
    error = np.array([[[0.0, 0.3], [0.9, 0.3]], [[0.3, 0.0], [0.3, 0.9]]])
    merged = xr.Dataset(
        {"error": (("n_labels", "time", "rate"), error)}, {"n_labels": [1, 4], "rate": [2.0, 3.0]}
    )
    merged = merged.expand_dims("repeat").assign_coords(seed=("repeat", [10_000]))
    chosen = selection.chosen_values(merged, "error", "rate")
    assert chosen.dims == ("n_labels",)
    assert chosen.values.tolist() == [3.0, 2.0]


def test_what_tiles_have_on_either_class_by_hand():
    # Tiles: mostly on -1, on +1 alone, on both alike, idle.
    h = np.array([[0.6, 0, 0.2, 0], [0.3, 0, 0, 0], [0.1, 0.5, 0.2, 0]])
    classes = [-1, -1, 1]
    np.testing.assert_allclose(masses(h, classes), [[0.9, 0, 0.2, 0], [0.1, 0.5, 0.2, 0]])
    np.testing.assert_allclose(purity(h, classes), [0.9, 1, 0.5, np.nan])
    np.testing.assert_array_equal(tile_classes(h, classes), [-1, 1, 0, 0])
    # A point of neither class counts for neither.
    np.testing.assert_array_equal(masses(h, [-1, 0, 1]), [h[0], h[2]])
    # Every point has a class.
    for rates, wrong in ((np.ones((3, 2)), [1, 1]), (np.ones((3, 2)), [[1]] * 3), (h[0], [1] * 4)):
        for measure in (masses, purity):
            refused(partial(measure, rates, wrong), re.escape(f"got {rates.shape}"), InputError)
