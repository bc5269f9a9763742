"""The objective of Eq. (1) and its ascent: by hand, by search over everything, by definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from simulations import objective as eq1


def on_sphere(rng, count, n=3):
    x = rng.standard_normal((count, n))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def by_definition(x, alpha, H):
    """The double sum of Eq. (1)."""
    pairs = itertools.product(zip(x, H, strict=True), repeat=2)
    return sum((float(a @ b) - alpha) * float(h @ g) for (a, h), (b, g) in pairs)


def test_the_objective_is_the_double_sum():
    rng = np.random.default_rng(0)
    x, H = on_sphere(rng, 7), rng.random((7, 4))
    assert eq1.objective(x, 0.3, H) == pytest.approx(by_definition(x, 0.3, H), rel=1e-12)


@pytest.mark.parametrize("own", [0.0, 0.3, 2.0])
def test_the_best_output_is_the_best_of_all(own):
    """Against a grid over the quarter of the disc, for drives of every sign."""
    angle = np.linspace(0, np.pi / 2, 2001)
    directions = np.column_stack([np.cos(angle), np.sin(angle)])
    grid = np.concatenate([r * directions for r in (0.0, 0.25, 0.5, 0.75, 1.0)])
    for g in itertools.product((-1.0, -0.1, 0.0, 0.2, 0.7), repeat=2):
        h = eq1.best_output(np.array(g), own)
        assert (h >= 0).all()
        assert np.linalg.norm(h) <= 1 + 1e-12
        values = own * (grid**2).sum(axis=1) + 2 * grid @ g
        found = own * float(h @ h) + 2 * float(h @ g)
        # The grid of angles misses the best direction by up to 4e-4, second order in the value.
        assert found == pytest.approx(values.max(), abs=1e-6)


def test_without_a_positive_drive_one_output_answers_or_none():
    assert eq1.best_output(np.array([-0.2, -0.1]), 0.3).tolist() == [0, 1]
    assert eq1.best_output(np.array([-0.2, -0.15]), 0.3).tolist() == [0, 0]  # a tie: rather none
    assert eq1.best_output(np.array([3.0, -1.0, 4.0]), 0.3).tolist() == [0.6, 0, 0.8]


def test_the_best_ascent_is_the_best_of_everything():
    """Three inputs and two outputs: every combination of outputs on a fine grid."""
    rng = np.random.default_rng(0)
    x, alpha = on_sphere(rng, 3), 0.2
    angle = np.linspace(0, np.pi / 2, 61)
    choices = np.concatenate([np.zeros((1, 2)), np.column_stack([np.cos(angle), np.sin(angle)])])
    kernel, gram = x @ x.T - alpha, choices @ choices.T
    chosen = np.ix_(*[np.arange(len(choices))] * 3)
    pairs = itertools.product(range(3), repeat=2)
    values = sum(kernel[i, j] * gram[chosen[i], chosen[j]] for i, j in pairs)
    best = eq1.best_ascent(x, alpha, [rng.random((3, 2)) for _ in range(10)])
    found = by_definition(x, alpha, best)
    # Steps of 1.5 degrees: what they miss is of second order.
    assert values.max() - 1e-9 <= found <= values.max() + 2e-3


def test_the_ascent_climbs_to_where_no_single_output_can_be_better():
    rng = np.random.default_rng(1)
    x, alpha = on_sphere(rng, 30), 0.6
    start = eq1.tiles_at(x, alpha, x[:8])
    kept = start.copy()
    H = eq1.ascend(x, alpha, start)
    assert (start == kept).all()
    value = by_definition(x, alpha, H)
    assert value > 1.05 * by_definition(x, alpha, start)
    for t in range(0, len(x), 3):
        for other in np.maximum(rng.standard_normal((7, 8)), 0):
            changed = H.copy()
            changed[t] = other / max(np.linalg.norm(other), 1)
            # It ends when a whole round gains less than TOLERANCE.
            assert by_definition(x, alpha, changed) <= value * (1 + eq1.TOLERANCE)


def test_the_best_of_several_starts_is_taken():
    """One output for two equal inputs and three at right angles to them, alpha = 1/2: whichever
    group has it keeps it, and the larger one makes more of it, 3^2/2 against 2^2/2."""
    x = np.array([[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 3)
    starts = [np.array([[1.0]] * 2 + [[0.0]] * 3), np.array([[0.0]] * 2 + [[1.0]] * 3)]
    assert [eq1.objective(x, 0.5, eq1.ascend(x, 0.5, H)) for H in starts] == [2, 4.5]
    for order in (starts, starts[::-1]):
        assert eq1.best_ascent(x, 0.5, order).tolist() == starts[1].tolist()


def test_tiles_at_their_centres_answer_as_a_circuit_that_was_just_seeded():
    from circuits import CircuitParameters, ReferenceCircuit, SphereLift

    rng = np.random.default_rng(2)
    lift = SphereLift((0.5, 0.5), 1.5)
    points = rng.random((40, 2))
    p = CircuitParameters(n_tiles=6, tile_radius=0.2)
    circuit = ReferenceCircuit(p, lift, settling="exact", tile_centers=points[:6])
    found = eq1.tiles_at(lift(points), lift.alpha(0.2), lift(points[:6]))
    np.testing.assert_allclose(found, circuit.respond(points), atol=1e-12)
    assert not found.any(axis=1).all()  # some points have no tile, and no answer


def test_random_features_are_rectified_projections_of_norm_one():
    x = on_sphere(np.random.default_rng(3), 20)
    found = eq1.random_features(x, 5, np.random.default_rng(4))
    directions = np.random.default_rng(4).standard_normal((5, 3))
    expected = np.array([[max(float(one @ d), 0.0) for d in directions] for one in x])
    norms = np.array([max(np.linalg.norm(row), 1e-300) for row in expected])
    np.testing.assert_allclose(found, expected / norms[:, None], atol=1e-12)
