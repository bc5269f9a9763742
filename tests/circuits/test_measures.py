"""Plain numbers about results: where tiles lie, in which order, and which repeats are which."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from circuits import ReferenceCircuit, SphereLift, results, selection
from circuits.files import FileError
from circuits.measures import tile_centers, tile_centers_of, tile_order, tile_positions
from tests.conftest import moons, small_circuit

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


def test_centres_are_the_points_that_the_weights_came_from():
    points = np.array([[0.1, 0.2], [1.5, -0.4], [0.5, 0.25]])
    scale = np.array([[0.1], [2.0], [7.0]])  # how long W_i is does not matter
    # The height of the lift hides some digits: x is good to 1e-16 of R.
    assert tile_centers_of(scale * LIFT(points), LIFT) == pytest.approx(points, abs=1e-14)
    assert tile_centers_of(np.zeros((1, 3)), LIFT) == pytest.approx(LIFT.center[None])


def test_centres_of_a_result_are_those_it_ends_with():
    points, _, _ = moons(20, after=5)
    circuit = ReferenceCircuit(small_circuit(learning_rate=0.0), LIFT, settling="exact")
    run = circuit.run(points)
    assert tile_centers(run) == pytest.approx(points[:6], abs=1e-14)


def test_tiles_are_ordered_by_the_nearest_point_or_from_left_to_right():
    angle = np.linspace(0, 3, 31)
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    centers = 1.01 * points[[20, 5, 30, 0]]
    positions = tile_positions(centers, points, angle)
    assert (positions == angle[[20, 5, 30, 0]]).all()
    assert tile_order(centers, points, angle).tolist() == [3, 1, 0, 2]
    assert tile_order(centers, points).tolist() == [2, 0, 1, 3]  # along the first coordinate
    assert tile_order(centers, points, axis=1).tolist() == [3, 2, 1, 0]


def test_the_first_repeat_of_a_single_run_is_itself():
    merged = xr.Dataset({"a": ("repeat", [3.0, 4.0])}, coords={"seed": ("repeat", [7, 8])})
    first = selection.first_repeat(merged)
    assert float(first["a"]) == 3
    assert selection.first_repeat(first).identical(first)
    assert selection.seeds_of(merged) == [7, 8]
    assert selection.seeds_of(first) == [7]
    assert selection.seeds_of(xr.Dataset(attrs={"seed": 5})) == [5]
    assert selection.seeds_of(xr.Dataset()) == []


def test_seeds_are_put_in_few_words():
    assert selection.in_words([3, 0, 1, 2, 7, 8, 20]) == "0 to 3, 7, 8, 20"
    assert selection.in_words([]) == "unknown"


def test_results_that_cannot_be_read_are_refused_in_a_sentence(tmp_path):
    path = results.save(xr.Dataset({"a": ("x", np.arange(3.0))}), tmp_path / "a.nc")
    with results.opened(path) as found:
        assert found["a"].values.tolist() == [0, 1, 2]
    assert results.load(path)["a"].values.tolist() == [0, 1, 2]
    with pytest.raises(FileError, match="there is no result file"):
        results.load(tmp_path / "b.nc")
    path.write_bytes(b"not a result")
    for read in (results.load, lambda path: results.opened(path).__enter__()):
        with pytest.raises(FileError, match="is not a result of manifold-circuit") as e:
            read(path)
        assert "\n" not in str(e.value)
