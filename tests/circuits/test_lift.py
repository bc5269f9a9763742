"""The lift and what is fitted to points, on cases that can be computed by hand."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from circuits import SphereLift
from circuits.errors import InputError, ParameterError
from circuits.lift import FINEST_ALPHA, distinct_rows
from tests.refusing import refused


def test_points_on_the_sphere_by_hand():
    """R = 5 around (1, 2): (3, 4) away is on the rim, (3, 0) away has the height 4."""
    lift = SphereLift((1, 2), 5)
    expected = [[0.6, 0.8, 0.0], [0.6, 0.0, 0.8], [0.0, 0.0, 1.0]]
    assert lift([[4, 6], [4, 2], [1, 2]]).tolist() == expected
    assert (lift.n_coordinates, lift.n_inputs) == (2, 3)
    one = SphereLift(2.0, 1.0)  # a number is a point of one coordinate
    assert one.n_coordinates == 1
    assert one([[2.0]]).tolist() == [[0.0, 1.0]]
    assert repr(SphereLift(range(9), 9)).count(",") == 9  # eight coordinates, and more
    outside = [[1, 1], [4, 5], [9, 9]]
    words = r"2 of 3 .*radius 2: point 1 at \[4.0, 5.0\] is 5 from"
    refused(lambda: SphereLift((1, 1), 2)(outside), words, InputError)


def test_points_on_the_rim_and_within_have_norm_one():
    for seed in range(100):
        points = np.random.default_rng(seed).normal(size=(20, 1 + seed % 9))
        x = SphereLift.around(points, slack=1)(points)
        # The height near the rim is the root of a rounding error: x has norm one to 1e-15 still.
        assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-14


def test_the_lift_around_points_has_their_middle_and_reach():
    # The box is from (0, 0) to (6, 8): its corners are 5 from the middle; the others are nearer.
    points = [[0.0, 0.0], [6.0, 8.0], [3.0, 8.0]]
    for slack, radius in ((1.0, 5.0), (2.0, 10.0)):
        lift = SphereLift.around(points, slack)
        assert lift.center.tolist() == [3.0, 4.0]
        assert lift.radius == radius
    assert SphereLift.around(points).radius == 1.75 * 5
    refused(lambda: SphereLift.around([[1.0, 2.0], [1.0, 2.0]]), "equal", InputError)
    # Taken to reach at least so far: points 5 away, none at all, and far larger ones.
    assert SphereLift.around(points, 2, least=4).radius == 2 * 5
    assert SphereLift.around(points, 2, least=6).radius == 2 * 6
    assert SphereLift.around([[1.0, 2.0]], 2, least=3e200).radius == 6e200
    refused(lambda: SphereLift.around(points, least=-1), "least .*-1", ParameterError)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_rim_belongs_to_the_lift_but_for_rounding(size):
    """1e-15 of the square for each of the two inputs, whatever the unit (R^2 = 0.5^2 to 1^2 in
    units of a power of two)."""
    for radius in (0.55, 0.7, 1.0):
        lift = SphereLift(0.0, radius * size)
        assert lift([[radius * size]]).tolist() == [[1.0, 0.0]]
        inside, outside = radius * (1 + 0.5e-15) * size, radius * (1 + 1.5e-15) * size
        assert lift([[inside]])[0, 1] == 0
        for farther in (outside, 1.3 * radius * size):
            refused(partial(lift, [[farther]]), "1 of 1", InputError)


def test_alpha_by_hand_and_its_bounds():
    lift = SphereLift(0.0, 2.0)
    assert lift.alpha(1.0) == 1 - 1 / 8
    assert lift.alpha(2.0) == 0.5
    for radius in (2 * math.sqrt(2), 3.0):
        refused(lambda r=radius: lift.alpha(r), "2.82843.*got", ParameterError)
    # 1 - alpha = rho^2/8 is 2^-40 at rho = 2^-18.5; a power of two below it is told apart no more.
    assert 1 - lift.alpha(2.0**-18) == 2.0**-39
    assert 1 - lift.alpha(2.0**-18.5) == FINEST_ALPHA == 2.0**-40
    refused(lambda: lift.alpha(2.0**-19), "at least 2.7e-06", ParameterError)


def test_distinct_rows():
    rows = np.array([[2.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert distinct_rows(rows, 3).tolist() == [0, 1, 3]
    assert distinct_rows(rows, 9).tolist() == [0, 1, 3, 4]
