"""Parameters chosen from the data, on lines and at places where they can be counted."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import CircuitParameters, SphereLift
from circuits.errors import InputError
from circuits.tuning import (
    cover,
    critical_mu,
    estimated_radius,
    estimated_threshold,
    parameters_for,
    radius_for,
    some_of,
    tile_radius_for,
)

LINE = np.arange(100.0)[:, None]
"""Points one apart: the distances from one to all others are 0, 1, 1, 2, 2, 3, 3, ..."""


def places(*sizes: int) -> np.ndarray:
    """So many equal points at 0, 50, 100, ...: nothing in common for tiles of radius 1."""
    found = [50.0 * place for place, size in enumerate(sizes) for _ in range(size)]
    return np.array(found)[:, None]


def test_a_point_at_the_distance_of_a_tile_recruits():
    """At theta = 0 a tile of radius 5 answers what is less than 5 away: every fifth point."""
    assert cover(LINE, 5.0, 0.0)[:, 0].tolist() == list(range(0, 100, 5))
    # rho sqrt(1 - 3/4) = 5/2: every third.
    assert cover(LINE, 5.0, 0.75)[:, 0].tolist() == list(range(0, 100, 3))
    assert [len(cover(LINE, radius, 0.0)) for radius in (99.0, 99.1)] == [2, 1]


def test_the_tile_radius_is_a_quantile_of_distances():
    # From each end of 0, 1, 2, 3, 4 half of all points are within 2, from the middle within 1, from
    # the others within 1 as well: the median is 1. All of them are within 4, 3, 2, 3, 4: 3.
    line = LINE[:5]
    assert [tile_radius_for(line, share) for share in (0.25, 0.5, 1)] == [1, 1, 3]
    with pytest.raises(InputError, match="coincide"):
        tile_radius_for(np.array([[1.0], [1.0], [1.0], [2.0]]))
    # Three points apart by 3, 4 and 5: the greatest distances are 4, 5 and 5, the median 5; half of
    # all are within 3, 4 and 3 of the three corners.
    triangle = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])
    assert [tile_radius_for(triangle, share) for share in (1, 0.5)] == [5, 3]
    # Squares of these distances over- or underflow; all points are within 3, 3, 2, 2 and 3.
    line = np.array([[0.0], [1e-20], [1.0], [2.0], [3.0]])
    for unit in (1e-300, 1e300):
        assert tile_radius_for(unit * line, 1) / unit == pytest.approx(3, rel=1e-15)
    points = np.random.default_rng(300).normal(size=(300, 20))
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    expected = np.median(np.quantile(distance, 5 / 7, axis=1))
    # The same squares, summed in another order.
    assert tile_radius_for(points, 5 / 7) == pytest.approx(expected, rel=1e-12)


def test_some_points_evenly_spread():
    for count, step in ((1, 1), (1000, 1), (1001, 2), (2000, 2), (2001, 3)):
        assert some_of(np.arange(count)).tolist() == list(range(0, count, step))
    assert some_of(np.arange(10), 4).tolist() == [0, 3, 6, 9]


def test_the_radius_for_a_number_of_tiles():
    """A tenth of 100 points lies within 5 of one, where 20 tiles cover all. With fewer, n tiles
    cover what is at most 100/n points long, and the search halves powers of two until it knows the
    radius to a hundredth: steps of 2^(1/128)."""
    for room in (None, 20, 21, 1000):
        assert radius_for(LINE, 0.0, room) == 5
    # Ten tiles take radii above 9, found between 5 and 10: 5 * 2^(108/128) is 8.97.
    # Powers and roots of roots round differently.
    assert radius_for(LINE, 0.0, 10) == pytest.approx(5 * 2 ** (109 / 128), rel=1e-13)
    # One takes a radius above 99, between 80 and 160: 80 * 2^(39/128) is 98.8.
    assert radius_for(LINE, 0.0, 1) == pytest.approx(80 * 2 ** (40 / 128), rel=1e-13)
    # Tiles at theta = 3/4 answer half as far.
    assert radius_for(LINE, 0.75, 10) == pytest.approx(10 * 2 ** (109 / 128), rel=1e-13)


def test_critical_mu_of_tiles_that_overlap():
    """S by a loop over points, for tiles whose answers are those of the lift."""
    points = np.array([[0.0], [1.0], [0.5], [0.4], [0.9]])
    parameters = CircuitParameters(tile_radius=1.2, recruit_below=0.5)  # reach of 0.85: 0 and 1
    lift = SphereLift.around(points)
    alpha = lift.alpha(1.2)
    S = np.zeros((2, 2))
    for x in lift(points):
        a = np.array([max(float(x @ c) - alpha, 0.0) for c in lift([[0.0], [1.0]])])
        h = a / np.sqrt(sum(a**2))
        S += np.outer(h, h) / 5
    assert 0.1 < S[0, 1] < 0.5
    trace, determinant = S[0, 0] + S[1, 1], S[0, 0] * S[1, 1] - S[0, 1] ** 2
    largest = trace / 2 + np.sqrt(trace**2 / 4 - determinant)
    # Two ways to the larger eigenvalue of a matrix of order one.
    assert critical_mu(points, parameters) == pytest.approx(1 / largest, rel=1e-13)


def test_critical_mu_of_fewer_tiles_than_places():
    """Tiles are on the first points; those that no tile answers add nothing to S."""
    points = places(10, 20, 30)
    for n_tiles, share in ((1, 1 / 6), (2, 1 / 3), (3, 1 / 2), (9, 1 / 2)):
        parameters = CircuitParameters(n_tiles=n_tiles, tile_radius=1.0)
        # Rounding of an eigenvalue of order one.
        assert critical_mu(points, parameters) == pytest.approx(1 / share, rel=1e-13)
    # Every second of 1001 to 2000 points is looked at: the others, all at 0, do not count.
    points = np.zeros((1200, 1))
    points[600::2] = 50.0
    parameters = CircuitParameters(n_tiles=2, tile_radius=1.0)
    assert critical_mu(points, parameters) == pytest.approx(2, rel=1e-13)


def test_parameters_of_a_line_by_hand():
    """A radius of 5, as above; at theta = 1/2 tiles are 3.5 apart or more, every fourth point: 25,
    and half as many to spare."""
    found = parameters_for(LINE, {"mu": 2.0})
    assert found == CircuitParameters(tile_radius=5.0, n_tiles=38, mu=2.0)
    # In three digits: 5.0 times 0.12345.
    small = parameters_for(0.12345 * LINE, {"mu": 2.0})
    assert (small.tile_radius, small.n_tiles) == (0.617, 38)
    # At theta = 3/4 every third point: 34 tiles.
    assert parameters_for(LINE, {"mu": 2.0, "recruit_below": 0.75}).n_tiles == 51
    # Given a radius, it takes the tiles that this one needs: 50 at 2 apart.
    assert parameters_for(LINE, {"mu": 2.0, "tile_radius": 2.0}).n_tiles == 75
    # Given their number, the radius at which as many cover the line: 12.76 and not 9.02, since
    # tiles of theta = 1/2 answer up to rho / sqrt(2).
    tiles = parameters_for(LINE, {"mu": 2.0, "n_tiles": 10})
    assert (tiles.tile_radius, tiles.n_tiles) == (12.8, 10)
    # Of 1001 points one apart every second is looked at: a tenth of them within 50 of one, tiles 36
    # apart, 28 of them and half as many.
    some = parameters_for(np.arange(1001.0)[:, None], {"mu": 1.0})
    assert (some.tile_radius, some.n_tiles) == (50, 42)


def test_mu_is_thirty_times_the_critical_one():
    """A share of 31/41 at one place: 30 * 41/31 = 39.68."""
    found = parameters_for(places(31, 10), {"tile_radius": 1.0})
    assert found == CircuitParameters(tile_radius=1.0, n_tiles=3, mu=39.7)


def test_parameters_of_the_gated_rule():
    given = {"tile_radius": 1.0, "readout_rule": "gated"}
    for own in ({}, {"readout_rate": 0.2}, {"mu": 3.0}, {"readout_rate": 0.2, "mu": 3.0}):
        expected = {"n_tiles": 3, "mu": 1.0, "readout_rate": 0.9} | given | own
        assert parameters_for(places(3, 1), given | own) == CircuitParameters(**expected)


def test_the_radius_on_a_line_by_hand():
    """Points one apart: neighbours 1, 1, 2, 2, 3, ... away, but for the ends."""
    # The fifteenth neighbour (1.5 sqrt(100)) is 8 away; 1.2 times the fifth would be 3.6. A point
    # that lies far off changes nothing.
    assert estimated_radius(LINE) == 8
    assert estimated_radius(np.append(LINE, [[1e6]], axis=0)) == 8
    # Twelve in a row: the fifth neighbour is 3 away, 4 and 5 for the two at either end. What nine
    # of ten do not exceed is at place 0.9 * 11 = 9.9 of 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5. The
    # sixth (1.5 sqrt(12) = 5.2), 3 away for half of them, is nearer.
    assert estimated_radius(LINE[:12]) == pytest.approx(1.2 * 4.9, rel=1e-14)
    # Seven points, the last far off: 1.5 sqrt(7) = 4 neighbours are too few to know the fifth, and
    # a sixth does not count. Fifth neighbours are 5, 4, 3, 3, 4, 5 and 999 away; place 0.9 * 6.
    points = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1000.0])[:, None]
    assert estimated_radius(points) == pytest.approx(1.2 * (5 + 0.4 * (999 - 5)), rel=1e-14)
    # Four points have three others each: the third is 3, 2, 2, 3 away.
    assert estimated_radius(LINE[:4]) == pytest.approx(1.2 * 3, rel=1e-14)
    # Few points, two of them equal; and all equal.
    assert estimated_radius(np.array([[0.0], [3.0], [3.0]])) == pytest.approx(1.2 * 3)
    with pytest.raises(InputError, match="tile_radius"):
        estimated_radius(np.zeros((4, 2)))
    # Of 5001 points every second is looked at: 76 (1.5 sqrt(2501) = 75.02) neighbours 2 apart, on
    # both sides. Of 5000 all are: 107 (1.5 sqrt(5000) = 106.07) neighbours, 1 apart.
    assert estimated_radius(np.arange(5001.0)[:, None]) == 76
    assert estimated_radius(np.arange(5000.0)[:, None]) == 54
    # In whatever order they come.
    many = np.random.default_rng(0).permutation(np.arange(20_000.0))[:, None]
    assert estimated_radius(many) == pytest.approx(4 * 54, rel=0.1)


def test_the_threshold_on_a_line_by_hand():
    """With a radius of 8, tiles are 8 sqrt(1 - theta) apart or more: 4 (25 of them), 5.06 (17), 6.2
    (15), 7.2 (13)."""
    found = [estimated_threshold(LINE, 8.0, n) for n in (63, 62, 43, 42, 38, 37, 33, 32)]
    assert found == [0.75, 0.6, 0.6, 0.4, 0.4, 0.2, 0.2, 0.2]
    # 24 tiles, four points each, are just as many as 60 allow.
    assert [estimated_threshold(LINE[:96], 8.0, n) for n in (60, 59)] == [0.75, 0.6]
    # Powers of two change no digit; squares of such distances are zero or infinite.
    for unit in (2.0**-900, 2.0**900):
        assert estimated_radius(unit * LINE) == 8 * unit
        assert [estimated_threshold(unit * LINE, 8.0 * unit, n) for n in (63, 62)] == [0.75, 0.6]
