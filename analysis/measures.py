"""Numbers that describe a run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from circuits.checks import as_floats
from circuits.errors import InputError, ParameterError, listed, shown
from circuits.lift import FloatArray, SphereLift, as_points


def accuracy(y: ArrayLike, classes: ArrayLike) -> float:
    """Share of points whose predicted sign is their class; an output of zero is wrong."""
    answers, known = as_floats(y, "y"), as_floats(classes, "classes")
    if answers.shape != known.shape or answers.size == 0:
        raise InputError(
            f"y and classes must have the same shape, with at least one point, got "
            f"{answers.shape} and {known.shape}"
        )
    return float((np.sign(answers) == known).mean())


def tile_centers_of(W: FloatArray, lift: SphereLift) -> FloatArray:
    """Where tiles (m, d) lie in the data: their feed-forward weights, put back from the sphere.

    A tile without weights lies at the lift's centre.
    """
    W = as_points(W, lift.n_inputs)
    norm = np.linalg.norm(W, axis=1, keepdims=True)
    unit = np.divide(W, norm, out=np.zeros_like(W), where=norm > 0)
    centers: FloatArray = lift.center + lift.radius * unit[:, :-1]
    return centers


def tile_centers(run: xr.Dataset) -> FloatArray:
    """Where the tiles of a result lie in the data when it ends; see `tile_centers_of`."""
    weights = _variable(run, "W")
    try:
        lift = SphereLift(**json.loads(run.attrs["lift"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        given = shown(run.attrs.get("lift"))
        raise InputError(f"the result does not say how its points were lifted: {given}") from None
    return tile_centers_of(weights.to_numpy(), lift)


def tile_positions(centers: FloatArray, points: ArrayLike, position: ArrayLike) -> FloatArray:
    """Where tiles lie along the manifold: the ``position`` of the point nearest to each."""
    shown_points, places = as_points(points), as_floats(position, "position")
    if places.shape != (len(shown_points),):
        raise InputError(
            f"position must have the shape ({len(shown_points)},) to go with the points, got "
            f"{places.shape}"
        )
    middles = as_points(centers, shown_points.shape[1])
    nearest = [int(((shown_points - center) ** 2).sum(axis=1).argmin()) for center in middles]
    return places[nearest]


def tile_order(
    centers: FloatArray, points: ArrayLike, position: ArrayLike | None = None, axis: int = 0
) -> NDArray[np.intp]:
    """Tiles along the manifold, by `tile_positions`; from left to right along the coordinate
    ``axis`` of the data where the points have no ``position``."""
    if position is not None:
        return np.argsort(tile_positions(centers, points, position), kind="stable")
    middles = as_points(centers)
    if not (isinstance(axis, int | np.integer) and 0 <= axis < middles.shape[1]):
        raise ParameterError(
            f"axis must be a coordinate from 0 to {middles.shape[1] - 1}, got {shown(axis)}"
        )
    return np.argsort(middles[:, axis], kind="stable")


def masses(h: ArrayLike, classes: ArrayLike) -> FloatArray:
    """Summed outputs of every tile on the points of either class, (2, m): of -1, then of +1."""
    outputs, known = as_floats(h, "h"), as_floats(classes, "classes")
    if outputs.ndim != 2 or known.shape != outputs.shape[:1]:
        raise InputError(
            f"h must be (T, m) and classes (T,), got {outputs.shape} and {known.shape}"
        )
    return np.stack([outputs[known == label].sum(axis=0) for label in (-1, 1)])


def purity(h: ArrayLike, classes: ArrayLike) -> FloatArray:
    """Share of each tile's output that falls on the class it has most on; NaN without output."""
    mass = masses(h, classes)
    total = mass.sum(axis=0)
    known = total > 0
    shares: FloatArray = np.full(total.shape, np.nan)
    shares[known] = mass.max(axis=0)[known] / total[known]
    return shares


def tile_classes(h: ArrayLike, classes: ArrayLike) -> FloatArray:
    """The class (-1 or +1) on whose points each tile has most of its output; 0 without output."""
    negative, positive = masses(h, classes)
    result: FloatArray = np.sign(positive - negative)
    return result


def diffusion_slopes(result: xr.Dataset) -> FloatArray:
    """Slope of the measured on the predicted change of w, through the origin, in every repeat."""
    shape = (result.sizes.get("repeat", 1), -1)
    order = ("repeat", ...)
    predicted, measured = (
        _variable(result, name).transpose(*order, missing_dims="ignore").to_numpy().reshape(shape)
        for name in ("predicted", "measured")
    )
    found: FloatArray = (predicted * measured).sum(axis=1) / (predicted**2).sum(axis=1)
    return found


def _variable(result: xr.Dataset, name: str) -> Any:
    """A variable of a result, or an error that says what the result has instead."""
    if name not in result:
        there = listed(result.data_vars) or "nothing"
        raise InputError(f"the result holds no {name}, only {there}")
    return result[name]
