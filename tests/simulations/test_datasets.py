from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay
from scipy.spatial.distance import cdist
from scipy.stats import chisquare, kstest

from circuits.errors import ParameterError
from simulations.datasets import (
    ARCS_ANGLES,
    ARCS_GAP,
    ARCS_LENGTH,
    ARCS_LIFT,
    DRIFT_LIFT,
    DRIFTS,
    MOONS_LIFT,
    RING_LIFT,
    ROLL_ANGLES,
    ROLL_LENGTH,
    ROLL_LIFT,
    ROLL_PITCH,
    SQUARE_LIFT,
    chessboard,
    drifting_moons,
    first_of_each_class,
    position_on_arcs,
    position_on_moons,
    ring,
    roll,
    spiral_arcs,
    swiss_roll,
    two_moons,
    unit_square,
)

# Of all seeds one in a thousand would fail such a test on a perfect generator; this one does not.
SIGNIFICANCE = 1e-3
SEED = 20240607


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def spiral(pitch: float, angles: tuple[float, float], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles and plane points of r = pitch * theta, equally spaced in angle."""
    theta = np.linspace(*angles, n)
    return theta, pitch * theta[:, None] * np.column_stack([np.cos(theta), np.sin(theta)])


def polyline_length(points: np.ndarray) -> np.ndarray:
    """Length along a curve up to each of its points, by adding chords."""
    chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
    return np.concatenate([[0], chords.cumsum()])


def test_roll_is_uniform_in_area(rng):
    # Cells of equal angle, not of equal arc length, so that the oracle does not share the
    # generator's parametrisation; their areas come from chords.
    points, unrolled = swiss_roll(20_000, rng)
    np.testing.assert_array_equal(points, roll(unrolled))
    theta, curve = spiral(ROLL_PITCH, ROLL_ANGLES, 10_001)
    length = polyline_length(curve)[:: 10_000 // 10]
    area = np.outer(np.diff(length), np.full(5, 1 / 5)) / length[-1]
    radius = np.hypot(points[:, 0], points[:, 2])
    counts, _, _ = np.histogram2d(
        radius / ROLL_PITCH, points[:, 1], [theta[:: 10_000 // 10], np.linspace(0, 1, 6)]
    )
    assert counts.sum() == len(points)
    # Cells differ in area: a roll uniform in angle, as often drawn, would not pass.
    assert area.max() > 2.8 * area.min()
    assert chisquare(counts.ravel(), area.ravel() * len(points)).pvalue > SIGNIFICANCE


def test_rolling_keeps_lengths_and_makes_a_spiral_between_its_angles():
    s = np.linspace(0, ROLL_LENGTH, 20_001)
    for height in (0.0, 1.0):
        points = roll(np.column_stack([s, np.full_like(s, height)]))
        assert (points[:, 1] == height).all()
        # A chord of length d on a curve of radius 0.108 falls short of it by d^3 / (24 * 0.108^2):
        # 4e-8 of the length with d = 1e-4.
        np.testing.assert_allclose(polyline_length(points), s, atol=1e-7)
    angle = np.unwrap(np.arctan2(points[:, 2], points[:, 0]))
    angle += 2 * math.pi * round((ROLL_ANGLES[0] - angle[0]) / (2 * math.pi))
    # Rounding only: Newton's method has converged.
    np.testing.assert_allclose(angle[[0, -1]], ROLL_ANGLES, rtol=1e-13)
    np.testing.assert_allclose(np.hypot(points[:, 0], points[:, 2]), ROLL_PITCH * angle, rtol=1e-13)


@pytest.mark.parametrize(("size", "n_squares"), [(0.5, 8), (1 / 3, 18), (0.2, 50)])
def test_chessboard_alternates_between_equally_many_squares(size, n_squares, rng):
    across = round(1 / size)
    corner = size * np.stack(
        np.meshgrid(np.arange(2 * across), np.arange(across), indexing="ij"), axis=-1
    )
    board = chessboard((corner + size / 2).reshape(-1, 2), size).reshape(2 * across, across)
    assert board.size == n_squares
    assert board.sum() == 0
    assert board[0, 0] == 1
    assert (board[1:] == -board[:-1]).all()
    assert (board[:, 1:] == -board[:, :-1]).all()
    for _ in range(20):
        # Away from the edges, where rounding decides.
        within = rng.uniform(0.001, 0.999, corner.shape) * size
        inside = chessboard((corner + within).reshape(-1, 2), size)
        np.testing.assert_array_equal(inside, board.ravel())


def test_points_lie_on_the_arc_of_their_class_uniformly_in_length(rng):
    points, classes = spiral_arcs(20_000, 0.0, rng)
    radius = np.linalg.norm(points, axis=1)
    angle = radius * math.pi / ARCS_GAP
    # Class +1 is turned by half a turn.
    turned = angle + np.where(classes == 1, math.pi, 0)
    on_arc = radius[:, None] * np.column_stack([np.cos(turned), np.sin(turned)])
    np.testing.assert_allclose(points, on_arc, atol=1e-14)
    theta, curve = spiral(ARCS_GAP / math.pi, ARCS_ANGLES, 10_001)
    length = polyline_length(curve)
    # Chords of angle 4e-4 fall short of their arcs by 7e-9.
    assert length[-1] == pytest.approx(ARCS_LENGTH, rel=1e-7)
    share = np.diff(length[:: 10_000 // 20]) / length[-1]
    for label in (-1, 1):
        counts, _ = np.histogram(angle[classes == label], theta[:: 10_000 // 20])
        assert counts.sum() == 10_000  # none lies beyond the ends
        assert chisquare(counts, share * 10_000).pvalue > SIGNIFICANCE
    along = np.interp(angle, theta, length / ARCS_LENGTH)[:1000]
    expected = np.where(classes[:1000] == 1, along, along - 1)
    # Positions come on a grid of 1/5000, half a spacing away at most.
    np.testing.assert_allclose(position_on_arcs(points[:1000]), expected, atol=1.01e-4)


def test_arcs_come_half_and_half_in_random_order_and_noise_leaves_them_apart(rng):
    points, classes = spiral_arcs(1001, 0.03, rng)
    assert ((classes == -1).sum(), (classes == 1).sum()) == (501, 500)
    # Changes of class in a random order: mean n/2, standard deviation sqrt(n)/2; four of them.
    changes = np.count_nonzero(np.diff(classes))
    assert abs(changes - 500) < 4 * math.sqrt(1000) / 2
    np.testing.assert_array_equal(np.sign(position_on_arcs(points)), classes)
    noise = (points - spiral_arcs(1001, 0.0, np.random.default_rng(SEED))[0]) / 0.03
    # The mean square of n standard normals has a standard deviation of sqrt(2/n); four of them.
    assert abs((noise**2).mean() - 1) < 4 * math.sqrt(2 / noise.size)
    assert abs(noise.mean()) < 4 / math.sqrt(noise.size)


def test_arcs_are_interleaved_and_apart():
    _, minus = spiral(ARCS_GAP / math.pi, ARCS_ANGLES, 2001)
    plus = -minus
    # The inner end of either arc is within the convex hull of the other: no line separates them.
    assert Delaunay(minus[ConvexHull(minus).vertices]).find_simplex(plus[:1])[0] >= 0
    # Points 2e-3 rad apart miss the closest pair by less than 1e-6.
    assert cdist(minus, plus).min() == pytest.approx(0.4661, abs=1e-4)


def test_square_is_uniform_but_for_two_labels_near_opposite_corners_in_either_order(rng):
    for after in (0, 100, 20_000):
        points, labels = unit_square(20_000, after, rng, inset=0.05)
        assert np.flatnonzero(labels).tolist() == [after, after + 1]
        assert points[labels == -1].tolist() == [[0.05, 0.05]]
        assert points[labels == 1].tolist() == [[0.95, 0.95]]
        counts, _, _ = np.histogram2d(*points[labels == 0].T, bins=8, range=[(0, 1), (0, 1)])
        assert counts.sum() == 20_000
        assert chisquare(counts.ravel()).pvalue > SIGNIFICANCE
    first = [unit_square(5, 0, np.random.default_rng(seed))[1][0] for seed in range(20)]
    assert set(first) == {-1, 1}


def test_moons_are_half_circles_and_the_position_on_them_is_the_angle():
    points, classes = two_moons(200, 0.0, np.random.default_rng(SEED))
    center = np.where(classes[:, None] == 1, (1.0, 0.5), (0.0, 0.0))
    np.testing.assert_allclose(np.linalg.norm(points - center, axis=1), 1, atol=1e-14)
    # The upper moon opens downwards, the lower one upwards; rounding at the tips.
    assert (classes * (points - center)[:, 1] < 1e-14).all()
    assert classes.sum() == 0
    # acos has half the digits near the tips, where it is steep.
    angle = np.arccos(np.clip(points[:, 0] - (classes == 1), -1, 1)) / math.pi
    expected = np.where(classes == 1, 1 - angle, angle - 1)
    np.testing.assert_allclose(position_on_moons(points), expected, atol=1e-7)


def test_noise_beyond_a_tip_of_a_moon_stays_at_that_tip():
    beyond = np.array([(1.0, -0.02), (-1.0, -0.02), (0.0, 0.52), (2.0, 0.52)])
    found = position_on_moons(beyond)
    np.testing.assert_allclose(found, [-1, 0, 0, 1], atol=1e-8)  # the tips are spared by 1e-9
    assert np.sign(found).tolist() == [-1, -1, 1, 1]


def test_first_of_each_class_labels_one_point_per_class():
    classes = np.array([1, -1, 1, 1, -1, 1])
    assert first_of_each_class(classes, 0).tolist() == [1, -1, 0, 0, 0, 0]
    assert first_of_each_class(classes, 2).tolist() == [0, 0, 1, 0, -1, 0]


def sheet(n: int, rng: np.random.Generator) -> np.ndarray:
    # The corners are the farthest points.
    corners = [[0, 0], [0, 1], [ROLL_LENGTH, 0], [ROLL_LENGTH, 1]]
    return np.concatenate([swiss_roll(n, rng)[0], roll(corners)])


def square(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([unit_square(n, 0, rng)[0], [[0, 0], [1, 1], [0, 1], [1, 0]]])


MAKERS = {
    "ring": (lambda n, rng: ring(n, rng)[0], RING_LIFT, 1 + 1e-9),  # all as high: no stretch
    "moons": (lambda n, rng: two_moons(n, 0.05, rng)[0], MOONS_LIFT, 1.27),
    "arcs": (lambda n, rng: spiral_arcs(n, 0.02, rng)[0], ARCS_LIFT, 1.13),
    "sheet": (sheet, ROLL_LIFT, 1.104),
    "square": (square, SQUARE_LIFT, 1.134),
}


def test_the_ring_is_uniform_in_its_angle(rng):
    points, angle = ring(2000, rng)
    np.testing.assert_allclose(points[:, 0] + 1j * points[:, 1], np.exp(1j * angle))
    assert kstest(angle / (2 * np.pi), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", MAKERS)
def test_lifts_hold_their_data_with_little_distortion(name, rng):
    make, lift, stretch = MAKERS[name]
    points = make(400, rng)
    x = lift.radius * lift(points)
    pairs = np.triu_indices(len(points), 1)
    near = cdist(points, points)[pairs]
    ratio = cdist(x, x)[pairs][near < 0.2] / near[near < 0.2]
    # Lifting never shortens; 1e-9 is the rounding of distances down to 1e-6.
    assert ratio.min() > 1 - 1e-9
    assert ratio.max() < stretch


def drifted(drift, speed, after=100, noise=0.0):
    return drifting_moons(400, noise, np.random.default_rng(5), drift, speed, after)


def test_moons_stand_still_until_they_drift_and_keep_their_noise():
    still, classes = two_moons(400, 0.0, np.random.default_rng(5))
    for drift in DRIFTS:
        points, same = drifted(drift, 50.0)
        assert (same == classes).all()
        np.testing.assert_allclose(points[:101], still[:101], atol=1e-15)
        assert not np.isclose(points[110:130], still[110:130]).all()
        noisy, _ = drifted(drift, 50.0, noise=0.3)
        assert np.isfinite(DRIFT_LIFT(noisy)).all()
        noise = (noisy - points) / 0.3
        assert abs(noise.std() - 1) < 0.1  # 800 numbers: 4 standard errors
        np.testing.assert_allclose(noise, (drifted(drift, 0.0, noise=0.3)[0] - still) / 0.3)


def test_after_half_a_turn_the_moons_have_swapped_places():
    """At 50 cycles per 10,000 points half a turn takes 100 points, and a whole one 200."""
    still, classes = two_moons(400, 0.0, np.random.default_rng(5))
    points, _ = drifted("rotate", 50.0)
    np.testing.assert_allclose(points[200], 2 * MOONS_LIFT.center - still[200])
    np.testing.assert_allclose(points[300], still[300])
    assert np.sign(position_on_moons(points[[200]])) == -classes[200]
    # A quarter of a turn is anticlockwise: what was on the right is above.
    x, y = still[150] - MOONS_LIFT.center
    np.testing.assert_allclose(points[150] - MOONS_LIFT.center, [-y, x], atol=1e-15)


def test_moons_translate_along_a_circle_and_deform_by_a_stretch():
    still, _ = two_moons(400, 0.0, np.random.default_rng(5))
    moved, _ = drifted("translate", 50.0)
    for t, way in ((150, [1, 1]), (200, [0, 2]), (250, [-1, 1]), (300, [0, 0])):
        np.testing.assert_allclose(moved[t] - still[t], way, atol=1e-14)
    stretched, _ = drifted("deform", 50.0)
    for t, power in ((150, 0.4), (200, 0.0), (250, -0.4)):
        factors = np.exp([power, -power])
        expected = (still[t] - MOONS_LIFT.center) * factors
        np.testing.assert_allclose(stretched[t] - MOONS_LIFT.center, expected, atol=1e-14)


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda size=size: chessboard([[0.1, 0.1]], size), "size must be finite and above 0")
            for size in (0.0, -0.5, math.inf, math.nan)
        ),
        (lambda: unit_square(10, 11, RNG), "after .* 0 and n_points=10, got 11"),
        (lambda: unit_square(10, 0, RNG, inset=0.5), r"inset .* 0 and below 0.5, got 0.5"),
        (lambda: first_of_each_class(np.array([-1, 1]), 1), "class -1 from presentation 1"),
        (lambda: drifted("swim", 1.0), "drift must be one of rotate, translate, deform, got"),
        (lambda: drifted("rotate", -1.0), "speed must be"),
        (lambda: drifted("rotate", np.nan), "speed must be"),
        (lambda: drifted("rotate", 1.0, -1), "after must be"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
