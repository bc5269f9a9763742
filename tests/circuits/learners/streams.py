"""Streams with few labels, and the estimator itself as oracle."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_moons

from circuits import ManifoldClassifier


def moons(n: int, share: float, seed: int = 0):
    """Points of two moons, their classes, and which of them have a label."""
    X, y = make_moons(n, noise=0.08, random_state=seed)
    return X, y, np.random.default_rng(seed).random(n) < share


def taught(X, labels, first: int, classes, ends=None, **options) -> ManifoldClassifier:
    """What learns the first points at once, and the others up to each of ``ends``, or one by
    one."""
    oracle = ManifoldClassifier(**options).partial_fit(X[:first], labels[:first], classes=classes)
    start = first
    for end in range(first + 1, len(X) + 1) if ends is None else ends:
        oracle.partial_fit(X[start:end], labels[start:end])
        start = end
    return oracle


def assert_same(found: ManifoldClassifier, oracle: ManifoldClassifier) -> None:
    """Equal to the last bit: the same was computed in the same order."""
    assert found.circuit_.parameters == oracle.circuit_.parameters
    for name in ("W", "w", "b"):
        own, other = (getattr(model.circuit_.state, name) for model in (found, oracle))
        assert other.any()
        assert (own == other).all(), name
    assert found.circuit_.state.learned == oracle.circuit_.state.learned
