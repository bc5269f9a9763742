"""The front end: from data points to inputs of equal norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circuits.checks import FloatArray as FloatArray
from circuits.checks import as_floats, as_number
from circuits.errors import InputError, ParameterError, shown

FINEST_ALPHA = 2.0**-40
"""The least 1 - alpha. Products of inputs are good to some 1e-16: below this bound they tell
distances within a tile to less than three digits."""


class SphereLift:
    """Lifts points onto the unit sphere in one more dimension.

    The circuit compares inputs by their scalar product, which measures nearness only among
    vectors of equal norm. With centre c and radius R fixed before the stream,

        x = (s - c, sqrt(R^2 - |s - c|^2)) / R,      |x| = 1,

    and two points whose images on the sphere of radius R are d apart in a straight line have the
    product 1 - d^2 / (2 R^2); near the centre d is their distance in the data.

    Parameters
    ----------
    center
        c, one coordinate per dimension of the data.
    radius
        R, in the units of the data. Points must lie within it.
    """

    def __init__(self, center: ArrayLike, radius: float) -> None:
        try:
            self.center: FloatArray = as_points(np.atleast_1d(center)[None])[0].copy()
        except ValueError:
            raise ParameterError(f"center must be a finite point, got {shown(center)}") from None
        self.radius = as_number(radius, "radius", above=0)

    @classmethod
    def around(cls, points: ArrayLike, slack: float = 1.75, least: float = 0.0) -> SphereLift:
        """A lift for a data set: centred on its bounding box, R = slack x the farthest point.

        A larger ``slack`` makes the lift more nearly isometric and the similarities closer to 1.
        R is at least slack x ``least``, in the units of the data.
        """
        slack, least = as_number(slack, "slack", least=1), as_number(least, "least", least=0)
        array = as_points(points)
        center = array.min(axis=0) / 2 + array.max(axis=0) / 2
        offset, unit = in_own_units(array - center, least)
        reach = max(float(np.linalg.norm(offset, axis=1).max()), math.ldexp(least, -unit))
        with np.errstate(over="ignore"):
            radius = float(np.ldexp(slack * reach, unit))
        if not 0 < radius < math.inf:
            raise InputError(
                f"points must not be all equal or too far apart: their lift has the radius {radius}"
            )
        return cls(center, radius)

    @property
    def n_coordinates(self) -> int:
        """Dimensions of the data."""
        return self.center.size

    @property
    def n_inputs(self) -> int:
        """Dimensions of the lifted inputs."""
        return self.center.size + 1

    def alpha(self, tile_radius: float) -> float:
        """Similarity threshold of a tile radius: alpha = 1 - rho^2 / (2 R^2)."""
        rho, reach = as_number(tile_radius, "tile_radius", above=0), math.sqrt(2) * self.radius
        if rho >= reach:
            raise ParameterError(
                f"tile_radius must lie between 0 and sqrt(2) times the lift's radius "
                f"({reach:.6g}), got {rho}"
            )
        R, unit = math.frexp(self.radius)
        alpha = 1 - math.ldexp(rho, -unit) ** 2 / (2 * R**2)
        if 1 - alpha < FINEST_ALPHA:
            least = self.radius * math.sqrt(2 * FINEST_ALPHA)
            raise ParameterError(
                f"tile_radius={rho:g} is too small for a lift of radius {self.radius:g}, which "
                f"cannot tell such near points apart: give a tile_radius of at least {least:.2g} "
                f"or a smaller lift"
            )
        return alpha

    def __call__(self, points: ArrayLike) -> FloatArray:
        """Lift points (T, d) to inputs (T, d + 1) of norm one."""
        array = as_points(points, self.n_coordinates)
        # In units of a power of two near R: exact, and squares neither over- nor underflow.
        R, unit = math.frexp(self.radius)
        with np.errstate(over="ignore"):
            offset = np.ldexp(array - self.center, -unit)
            square = np.einsum("ti,ti->t", offset, offset)
        # The farthest point of `around(points, slack=1)` lies on the rim but for rounding.
        outside = np.flatnonzero(square > R**2 * (1 + 1e-15 * self.n_inputs))
        if outside.size:
            first = array[outside[0]]
            raise InputError(
                f"{outside.size} of {len(array)} points lie outside the lift's radius "
                f"{self.radius:g}: point {outside[0]} at {shown(first.tolist())} is "
                f"{math.dist(first, self.center):.6g} from the center; use a larger radius"
            )
        height = np.sqrt(np.maximum(R**2 - square, 0.0))
        return np.column_stack([offset, height]) / R

    def as_dict(self) -> dict[str, Any]:
        """Plain values from which ``SphereLift(**values)`` makes the same lift."""
        return {"center": self.center.tolist(), "radius": self.radius}

    def __repr__(self) -> str:
        center = ", ".join(f"{value:g}" for value in self.center[:8])
        center += ", ..." if self.center.size > 8 else ""
        return f"SphereLift(center=({center}), radius={self.radius:g})"


def in_own_units(points: FloatArray, least: float = 0.0) -> tuple[FloatArray, int]:
    """Points in units of a power of two, and its exponent: that above the largest coordinate (or
    ``least``), so that squares neither over- nor underflow."""
    unit = math.frexp(max(float(np.abs(points).max()), least))[1]
    return np.ldexp(points, -unit), unit


def as_points(points: ArrayLike, n_coordinates: int | None = None) -> FloatArray:
    """Points as a finite float array (T, d), or an error that says what is wrong with them."""
    array = as_floats(points, "points")
    d = array.shape[1] if array.ndim == 2 else 0
    if d == 0 or n_coordinates not in (None, d):
        wanted = f"(T, {n_coordinates or 'd'})"
        raise InputError(f"points must have the shape {wanted}, got {array.shape}")
    if len(array) == 0:
        raise InputError("there are no points to present: got an array of length 0")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise InputError(
            f"points must be finite: {bad.size} are not, the first is point {bad[0]} at "
            f"{shown(array[bad[0]].tolist())}"
        )
    return array


def as_labels(labels: ArrayLike | None, n_points: int, n_readouts: int) -> FloatArray:
    """Labels as (T, r) of -1, 0, +1; ``None`` is a label channel that stays silent.

    Labels of shape (T,) go to every readout. Truth values are refused: False might be a class or
    silence.
    """
    if labels is None:
        return np.zeros((n_points, n_readouts))
    array = as_floats(labels, "labels of -1, 0 (silent) or +1")
    if {bool, np.bool_} & set(map(type, np.asarray(labels).ravel().tolist())):
        raise InputError(
            "labels must be -1, 0 (silent) or +1, got True and False: say which is which"
        )
    if array.shape == (n_points,):
        array = np.repeat(array[:, None], n_readouts, axis=1)
    if array.shape != (n_points, n_readouts):
        raise InputError(
            f"labels must have the shape ({n_points},) or ({n_points}, {n_readouts}) to go with "
            f"the points, got {array.shape}"
        )
    bad = np.argwhere(~np.isin(array, (-1.0, 0.0, 1.0)))
    if bad.size:
        t, readout = bad[0]
        raise InputError(
            f"labels must be -1, 0 (silent) or +1, got {array[t, readout]:g} at point {t}"
        )
    return array


def distinct_rows(x: FloatArray, count: int) -> NDArray[np.intp]:
    """Indices of the first ``count`` rows that differ from all rows before them."""
    _, first = np.unique(x, axis=0, return_index=True)
    return np.sort(first)[:count]
