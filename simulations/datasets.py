"""Data on manifolds. Every generator takes a NumPy Generator and returns points and classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from circuits.lift import FloatArray, SphereLift

Classes = NDArray[np.int64]
"""One of -1 and +1 per point."""

MOONS_LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
"""Centred between the moons, with room for noise."""


def two_moons(
    n_points: int, noise: float, rng: np.random.Generator | int
) -> tuple[FloatArray, Classes]:
    """Two interleaved half circles of radius 1 in random order, with Gaussian noise.

    Class +1 is the lower moon, centred at (1, 0.5); class -1 the upper one, centred at the origin.
    An integer ``rng`` is scikit-learn's ``random_state``.
    """
    from sklearn.datasets import make_moons

    state = rng if isinstance(rng, int) else np.random.RandomState(rng.bit_generator)
    points, upper = make_moons(n_points, noise=noise, random_state=state)
    return points, 2 * upper.astype(np.int64) - 1


def position_on_moons(points: FloatArray) -> FloatArray:
    """Position along the nearer moon: -1 ... 0 on the upper moon, 0 ... 1 on the lower one."""
    centers = np.array([(0.0, 0.0), (1.0, 0.5)])
    offset = points[:, None] - centers
    distance = np.abs(np.linalg.norm(offset, axis=2) - 1)
    angle = np.arctan2(offset[..., 1], offset[..., 0]) / np.pi  # upper: 0 ... 1, lower: -1 ... 0
    # Each moon is half a circle: what lies on the other half belongs to the other moon.
    distance += np.where(offset[..., 1] * np.array([1, -1]) < -0.2, 10.0, 0.0)
    lower = distance.argmin(axis=1)
    along = np.where(lower == 0, np.clip(angle[:, 0], 0, 1), np.clip(1 + angle[:, 1], 0, 1))
    return np.where(lower == 1, along, along - 1)


def first_of_each_class(classes: Classes, after: int) -> Classes:
    """Labels that are silent except on the first point of each class from ``after`` on."""
    labels = np.zeros_like(classes)
    for label in (-1, 1):
        later = np.flatnonzero(classes[after:] == label)
        if later.size == 0:
            raise ValueError(f"no point of class {label:+d} from presentation {after} on")
        labels[after + later[0]] = label
    return labels
