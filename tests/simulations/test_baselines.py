from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelPropagation, LabelSpreading

from simulations.baselines import (
    LaplacianSVM,
    OnlineLogistic,
    graph_laplacian,
    label_propagation,
    label_spreading,
    nearest_chain,
    window_propagation,
)


def tiles(rng: np.random.Generator, n_points: int, n_tiles: int) -> np.ndarray:
    """Outputs like those of a tiling: bumps along a line, at most 1 in norm, some points bare."""
    center = (np.arange(n_tiles) + 0.5) / n_tiles
    h = np.maximum(0, 1.5 / n_tiles - np.abs(rng.random(n_points)[:, None] - center))
    h /= np.maximum(np.linalg.norm(h, axis=1, keepdims=True), 1e-12)
    h[:: n_points // 3] = 0
    return h


def test_logistic_equals_a_loop_over_elements():
    """A stream in two pieces: the second call goes on where the first one stopped."""
    rng = np.random.default_rng(1)
    h = tiles(rng, 60, 5)
    rates = [0.0, 0.3, 2.0, 40.0]
    labels = rng.choice([-1, 0, 0, 1], size=(60, 4))
    model = OnlineLogistic(5, rates)
    scores = np.concatenate([model.run(h[:23], labels[:23]), model.run(h[23:], labels[23:])])
    for column, rate in enumerate(rates):
        w, bias = [0.0] * 5, 0.0
        for t in range(60):
            score = bias
            for i in range(5):
                score += w[i] * h[t, i]
            # Sums in another order: a few roundings of numbers below 100.
            assert scores[t, column] == pytest.approx(score, abs=1e-12)
            z = labels[t, column]
            if z != 0:
                slope = z / (1 + math.exp(z * score))
                for i in range(5):
                    w[i] += rate * slope * h[t, i]
                bias += rate * slope
        np.testing.assert_allclose(model.w[column], w, atol=1e-12)
        assert model.bias[column] == pytest.approx(bias, abs=1e-12)


def test_logistic_of_one_tile_and_without_labels():
    """A decision takes as many columns as there are tiles, not rates."""
    model = OnlineLogistic(1, [1.0, 2.0])
    assert not model.run([[1.0], [0.5]], None).any()
    model.run([[1.0]], [1])
    np.testing.assert_array_equal(model.decision([[2.0], [0.0]]), [[1.5, 3.0], [0.5, 1.0]])


def test_laplacian_penalises_differences_between_overlapping_tiles():
    rng = np.random.default_rng(5)
    h, w = tiles(rng, 40, 6), rng.standard_normal(6)
    S = sum(np.outer(row, row) for row in h) / 40
    total = sum((w[i] - w[j]) ** 2 * S[i, j] for i in range(6) for j in range(6))
    # Rounding of some 36 terms of order one.
    assert 2 * w @ graph_laplacian(h) @ w == pytest.approx(total, rel=1e-13)
    assert total > 0.1


def objective(w, b, h, z, lam, mu):
    labelled = z != 0
    hinge = np.maximum(0, 1 - z[labelled] * (h[labelled] @ w + b)).sum()
    return hinge + lam * w @ w + mu * w @ graph_laplacian(h) @ w


def general_solver(h, z, lam, mu):
    """The same problem with slack xi: min sum xi + ... with xi >= 0, z (w.h + b) >= 1 - xi."""
    labelled = z != 0
    n, m = labelled.sum(), h.shape[1]
    penalty = lam * np.eye(m) + mu * graph_laplacian(h)
    A = np.hstack([z[labelled, None] * h[labelled], z[labelled, None], np.eye(n)])
    solution = minimize(
        lambda p: p[m + 1 :].sum() + p[:m] @ penalty @ p[:m],
        np.concatenate([np.zeros(m + 1), np.ones(n)]),
        jac=lambda p: np.concatenate([2 * penalty @ p[:m], [0], np.ones(n)]),
        bounds=[(None, None)] * (m + 1) + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda p: A @ p - 1, "jac": lambda p: A},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert solution.success, solution.message
    return solution.x[:m], solution.x[m]


@pytest.mark.parametrize("separable", [True, False])
@pytest.mark.parametrize(("lam", "mu"), [(0.1, 0.0), (0.05, 1.0), (0.01, 20.0)])
def test_machine_agrees_with_a_general_convex_solver(lam, mu, separable):
    rng = np.random.default_rng(6)
    h = tiles(rng, 40, 5)
    side = np.where(h @ np.arange(5) > 3 * h.sum(axis=1) / 2, 1, -1)
    z = np.where(np.arange(40) % 3 == 1, side, 0)
    if not separable:
        z[[1, 4, 7]] *= -1
    machine = LaplacianSVM(lam, mu).fit(h, z)
    w, b = general_solver(h, z, lam, mu)
    ours = objective(machine.w, machine.b, h, z, lam, mu)
    # The machine stops when no sample violates its condition by 1e-6; there are 13 labels. The
    # objective judges b too, of which there may be many: w is unique.
    assert ours == pytest.approx(objective(w, b, h, z, lam, mu), abs=1e-5)
    np.testing.assert_allclose(machine.w, w, atol=1e-5)
    np.testing.assert_allclose(machine.decision(h), h @ machine.w + machine.b, atol=1e-12)


def test_fewer_than_two_classes_give_a_constant_prediction():
    h = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    for labels, prediction in (([0, 0, 0], 0), ([0, 1, 1], 1), ([-1, 0, 0], -1)):
        machine = LaplacianSVM(0.1, 1.0).fit(h, labels)
        np.testing.assert_array_equal(machine.decision(h), [prediction] * 3)
        # No w does better than this one.
        assert objective(machine.w, machine.b, h, np.array(labels), 0.1, 1.0) == 0


def fitted(h, labels, laplacian=None):
    return LaplacianSVM(1.0, 1.0).fit(h, labels, laplacian)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LaplacianSVM(0.0, 1.0), "lam must be finite and above 0, got 0"),
        (lambda: LaplacianSVM(1.0, -1.0), "mu must be finite and at least 0, got -1"),
        (lambda: fitted([[-1.0], [1.0]], [1, -1]), "must not be negative"),
        (lambda: fitted([[1.0], [1.0]], [1, 2]), "labels must be -1, 0"),
        (lambda: fitted(np.eye(2), np.eye(2)), r"shape \(2,\) or \(2, 1\)"),
        (lambda: LaplacianSVM(1.0, 1.0).decision([[1.0]]), "fit it first"),
        (lambda: fitted(np.eye(2), [1, -1], np.eye(3)), r"shape \(2, 2\), got \(3, 3\)"),
        (lambda: fitted(np.eye(2), [1, -1], np.diag([1, math.nan])), "laplacian must be finite"),
        (lambda: fitted(np.eye(2), [1, -1], -np.eye(2)), "lam=1 and mu=1"),
        *(
            (lambda rates=rates: OnlineLogistic(2, rates), "rates must be finite and at least 0")
            for rates in ([1.0, -1.0], [1.0, math.inf], [], [[1.0]])
        ),
        (lambda: OnlineLogistic(0, 1.0), "n_tiles must be"),
        (lambda: OnlineLogistic(2, 1.0).decision([[1.0]]), r"shape \(T, 2\), got \(1, 1\)"),
        (lambda: OnlineLogistic(2, 1.0).run(np.zeros((0, 2)), None), r"\(T, 2\), got \(0, 2\)"),
        (lambda: OnlineLogistic(1, 1.0).run([[math.nan]], None), "must be finite"),
        (lambda: graph_laplacian([1.0]), r"shape \(T, m\), got \(1,\)"),
        (lambda: label_spreading(np.eye(2), [1, -1], alpha=2.0), "'alpha' parameter"),
        (lambda: label_spreading(np.eye(2), np.eye(2)), r"shape \(2,\) or \(2, 1\)"),
        (lambda: nearest_chain(np.eye(2), [0, 0], 0), "window must be"),
        (lambda: window_propagation(np.eye(2), [0, 0], 0, 5), "window must be"),
        (lambda: window_propagation(np.eye(2), [0, 0], 1.5, 5), "window"),
        (lambda: window_propagation(np.eye(2), [0, 0], 5, 0), "every must be"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


METHODS = pytest.mark.parametrize("method", [label_spreading, label_propagation])


@pytest.fixture
def clusters() -> tuple[np.ndarray, np.ndarray]:
    """Two clouds that touch, two labels in either, one of them wrong."""
    rng = np.random.default_rng(7)
    points = rng.standard_normal((30, 2)) + np.repeat([(-1.5, 0.0), (1.5, 0.0)], 15, axis=0)
    labels = np.zeros(30)
    labels[[0, 1, 15, 16]] = [-1, 1, 1, 1]
    return points, labels


def affinity(points: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * ((points[:, None] - points) ** 2).sum(axis=2))


def test_propagation_solves_the_harmonic_equations(clusters):
    # Zhu et al. 2003: given labels stay, every other score is the mean of its neighbours'.
    points, labels = clusters
    P = affinity(points, 0.8)
    P /= P.sum(axis=1, keepdims=True)
    silent, given = labels == 0, labels != 0
    expected = labels.copy()
    expected[silent] = np.linalg.solve(
        np.eye(silent.sum()) - P[np.ix_(silent, silent)], P[np.ix_(silent, given)] @ labels[given]
    )
    result = label_propagation(points, labels, gamma=0.8, tol=1e-9, max_iter=10_000)
    assert result.converged
    # The last change was 1e-9 and every next one is 0.954 of it (the largest eigenvalue of P among
    # silent points): 2e-8 in sum.
    np.testing.assert_allclose(result.scores, expected, atol=3e-8)


def test_spreading_has_its_closed_form(clusters):
    # Zhou et al. 2004: F = (1 - alpha) (I - alpha S)^-1 Y with S = D^-1/2 K D^-1/2, K_ii = 0.
    points, labels = clusters
    K = affinity(points, 0.8) - np.eye(30)
    degree = np.sqrt(K.sum(axis=1))
    S = K / degree / degree[:, None]
    Y = np.column_stack([labels < 0, labels > 0])
    F = np.linalg.solve(np.eye(30) - 0.6 * S, Y)
    result = label_spreading(points, labels, gamma=0.8, alpha=0.6, tol=1e-12)
    assert result.converged
    # The last change was 1e-12 and every next one is 0.6 of it; both shares of a point, by whose
    # sum it is divided, add up to 0.01 at least.
    np.testing.assert_allclose(result.scores, (F[:, 1] - F[:, 0]) / F.sum(axis=1), atol=1e-9)


@METHODS
def test_an_unfinished_iteration_is_reported_and_unreached_points_are_zero(method):
    # Warnings are errors here: scikit-learn's must not get through.
    points = np.arange(10.0)[:, None]
    labels = np.array([-1, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    result = method(points, labels, kernel="knn", n_neighbors=3, max_iter=2)
    assert not result.converged
    assert result.n_iterations == 2
    np.testing.assert_array_equal(np.sign(result.scores), [-1, -1, -1, 0, 0, 0, 0, 1, 1, 1])
    finished = method(points, labels, kernel="knn", n_neighbors=3)
    assert finished.converged
    assert 2 < finished.n_iterations < 1000


def test_shares_that_are_not_finite_are_refused(monkeypatch):
    def fit(self, X, y):
        self.classes_, self.n_iter_ = np.array([0, 1]), 1
        self.label_distributions_ = np.array([[1.0, 0.0], [math.nan, math.nan]])

    monkeypatch.setattr(LabelSpreading, "fit", fit)
    with pytest.raises(ValueError, match="do not spread over points so far apart"):
        label_spreading([[0.0], [1.0]], [1, -1])


@METHODS
def test_the_defaults_are_scikit_learns(method):
    theirs = {label_spreading: LabelSpreading, label_propagation: LabelPropagation}[method]
    default = {name: p.default for name, p in inspect.signature(theirs).parameters.items()}
    ours = inspect.signature(method).parameters
    named = {name for name, p in ours.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    assert named == default.keys() - {"n_jobs"}
    # LabelSpreading alone has another bound on its iterations.
    expected = {name: 1000 if name == "max_iter" else default[name] for name in named}
    assert {name: ours[name].default for name in named} == expected


@METHODS
def test_spreading_from_fewer_than_two_classes(method, clusters):
    points, labels = clusters
    silent = method(points, np.zeros(30))
    assert not silent.scores.any()
    assert (silent.converged, silent.n_iterations) == (True, 0)
    for label in (-1, 1):
        only = np.where(labels == label, labels, 0)
        np.testing.assert_array_equal(method(points, only, gamma=0.8).scores, [label] * 30)


def test_a_machine_that_cannot_reach_its_tolerance_takes_a_wider_one(monkeypatch):
    """Rounding can keep libsvm from ever reaching 1e-6. Warnings are errors: none gets through."""
    import sklearn.svm

    asked = []

    class Stubborn(sklearn.svm.SVC):
        reached = 1e-4

        def fit(self, X, y):
            asked.append(self.tol)
            assert self.max_iter > 0  # -1 would mean no limit
            warnings.warn("not yet", ConvergenceWarning, stacklevel=1)
            super().fit(X, y)
            self.fit_status_ = int(self.tol < self.reached)
            return self

    monkeypatch.setattr(sklearn.svm, "SVC", Stubborn)
    assert LaplacianSVM(0.1, 1.0).fit(np.eye(2), [1, -1]).w.any()
    assert asked == [1e-6, 1e-5, 1e-4]
    asked.clear()
    Stubborn.reached = math.inf
    with pytest.raises(ValueError, match="did not converge"):
        LaplacianSVM(0.1, 1.0).fit(np.eye(2), [1, -1])
    assert asked == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]


@pytest.mark.parametrize(("window", "share"), [(1, 0.3), (3, 0.05), (20, 0.05), (500, 0.3)])
def test_a_chain_of_neighbours_is_that_of_a_loop(window, share):
    """On a grid, where many are equally near: the oldest of them that has an answer counts."""
    rng = np.random.default_rng([window, int(100 * share)])
    points = rng.integers(0, 6, (300, 2)).astype(float)
    labels = rng.choice([-1, 0, 1], 300, p=[share / 2, 1 - share, share / 2])
    given: list[int] = []
    expected = []
    for t, point in enumerate(points):
        near = [
            (np.linalg.norm(point - points[s]), s)
            for s in range(max(t - window, 0), t)
            if given[s] != 0
        ]
        expected.append(given[min(near)[1]] if near else 0)
        given.append(int(labels[t]) or expected[-1])
    assert nearest_chain(points, labels, window).tolist() == expected
    assert {*expected} == {-1, 0, 1}


def test_labels_spread_over_a_window_that_slides():
    """Two rows of points far apart that move on, in turn, four at a time: labels go along."""
    t = np.arange(40) // 2
    row = np.where(np.arange(40) % 2 == 0, -1, 1)
    points = np.column_stack([0.2 * t, 3.0 * row])
    labels = np.where(np.arange(40) < 2, row, 0)
    found = window_propagation(points, labels, 6, 4)
    # The first four come with the labels, and are not asked again.
    assert not found[:4].any()
    assert (found[4:] == row[4:]).all()
    # As `label_propagation` on the window's answers and the new points.
    given = np.append(np.append(row[:2], [0, 0]), np.zeros(4))
    expected = np.sign(label_propagation(points[:8], given).scores[4:])
    assert (found[4:8] == expected).all()
    # One at a time: each takes the sign of the labelled one of its own row, which is nearer.
    near = window_propagation(points[:6], labels[:6], 6, 1)
    assert near.tolist() == [0, -1, *row[2:6]]
    # Of too few points before them nothing is known any more, and nothing without labels.
    assert not window_propagation(points, labels, 1, 4)[4:].any()
    assert not window_propagation(points, np.zeros(40), 5, 5).any()
