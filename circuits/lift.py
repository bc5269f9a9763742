"""The front end: from data points to inputs of equal norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circuits.errors import InputError, ParameterError

FloatArray = NDArray[np.float64]


class SphereLift:
    """Lifts points onto the unit sphere in one more dimension.

    The circuit compares inputs by their scalar product, which measures nearness only among
    vectors of equal norm. With centre c and radius R fixed before the stream,

        x = (s - c, sqrt(R^2 - |s - c|^2)) / R,      |x| = 1,

    and two lifted points that lie d apart *on the sphere of radius R* have the product
    1 - d^2 / (2 R^2); for points near the centre d is their distance in the data.

    Parameters
    ----------
    center
        c, one coordinate per dimension of the data.
    radius
        R, in the units of the data. Points must lie within it.
    """

    def __init__(self, center: ArrayLike, radius: float) -> None:
        self.center: FloatArray = np.array(center, dtype=float, ndmin=1)
        self.radius = float(radius)
        if self.center.ndim != 1 or not np.isfinite(self.center).all():
            raise ParameterError(f"center must be a finite point, got {center!r}")
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise ParameterError(f"radius must be finite and above 0, got {radius}")

    @classmethod
    def around(cls, points: ArrayLike, slack: float = 1.75) -> SphereLift:
        """A lift for a data set: centred on its bounding box, R = slack x the farthest point.

        A larger ``slack`` makes the lift more nearly isometric and the similarities closer to 1.
        """
        if not slack >= 1:
            raise ParameterError(f"slack must be at least 1, got {slack}")
        array = as_points(points)
        center = (array.min(axis=0) + array.max(axis=0)) / 2
        reach = float(np.linalg.norm(array - center, axis=1).max())
        if reach == 0:
            raise InputError("all points are equal: there is no extent to fit a lift to")
        return cls(center, slack * reach)

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
        reach = math.sqrt(2) * self.radius
        if not 0 < tile_radius < reach:
            raise ParameterError(
                f"tile_radius must lie between 0 and sqrt(2) times the lift's radius "
                f"({reach:.6g}), got {tile_radius}"
            )
        return 1 - tile_radius**2 / (2 * self.radius**2)

    def __call__(self, points: ArrayLike) -> FloatArray:
        """Lift points (T, d) to inputs (T, d + 1) of norm one."""
        array = as_points(points, self.n_coordinates)
        offset = array - self.center
        square = np.einsum("ti,ti->t", offset, offset)
        outside = np.flatnonzero(square > self.radius**2)
        if outside.size:
            first = int(outside[0])
            raise InputError(
                f"{outside.size} of {len(array)} points lie outside the lift's radius "
                f"{self.radius:g}: point {first} at {array[first].tolist()} is "
                f"{math.sqrt(square[first]):.6g} from the center; use a larger radius"
            )
        height = np.sqrt(self.radius**2 - square)
        return np.column_stack([offset, height]) / self.radius

    def as_dict(self) -> dict[str, Any]:
        """Plain values from which ``SphereLift(**values)`` makes the same lift."""
        return {"center": self.center.tolist(), "radius": self.radius}

    def __repr__(self) -> str:
        center = ", ".join(f"{value:g}" for value in self.center)
        return f"SphereLift(center=({center}), radius={self.radius:g})"


def tile_radius_for(points: ArrayLike, n_tiles: int, overlap: float = 5.0) -> float:
    """A tile radius at which about ``overlap`` of ``n_tiles`` tiles respond to a point.

    Tiles that start on data are spread like the data, so that this is the radius within which a
    point has a share overlap/m of all points; the median over (at most 1000) points.
    """
    array = as_points(points)
    if not (n_tiles >= 1 and overlap > 0):
        raise ParameterError(f"n_tiles and overlap must be positive, got {n_tiles} and {overlap}")
    share = min(overlap / n_tiles, 1.0)
    some = array[:: max(1, len(array) // 1000)]
    distance = np.linalg.norm(some[:, None] - some[None], axis=2)
    radius = float(np.median(np.quantile(distance, share, axis=1)))
    if radius == 0:
        raise InputError("most points coincide: give a tile_radius in the units of the data")
    return radius


def as_points(points: ArrayLike, n_coordinates: int | None = None) -> FloatArray:
    """Points as a finite float array (T, d), or an error that says what is wrong with them."""
    try:
        array = np.asarray(points, dtype=float)
    except (TypeError, ValueError):
        raise InputError("points must be numbers in an array of shape (T, d)") from None
    if array.ndim != 2 or (n_coordinates is not None and array.shape[1] != n_coordinates):
        wanted = "(T, d)" if n_coordinates is None else f"(T, {n_coordinates})"
        raise InputError(f"points must have the shape {wanted}, got {array.shape}")
    if len(array) == 0:
        raise InputError("there are no points to present: got an array of length 0")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise InputError(
            f"points must be finite: {bad.size} are not, the first is point {bad[0]} at "
            f"{array[bad[0]].tolist()}"
        )
    return array


def as_labels(labels: ArrayLike | None, n_points: int, n_readouts: int) -> FloatArray:
    """Labels as (T, r) of -1, 0, +1; ``None`` is a label channel that stays silent.

    Labels of shape (T,) go to every readout.
    """
    if labels is None:
        return np.zeros((n_points, n_readouts))
    try:
        array = np.asarray(labels, dtype=float)
    except (TypeError, ValueError):
        raise InputError("labels must be -1, 0 or +1") from None
    if array.ndim == 1 and len(array) == n_points:
        array = np.repeat(array[:, None], n_readouts, axis=1)
    if array.shape != (n_points, n_readouts):
        raise InputError(
            f"labels must have the shape ({n_points},) or ({n_points}, {n_readouts}) to go with "
            f"the points, got {np.shape(labels)}"
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
