"""Numbers that describe a run."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from circuits.lift import FloatArray, SphereLift


def accuracy(y: ArrayLike, classes: ArrayLike) -> float:
    """Share of points whose predicted sign is their class; an output of zero is wrong."""
    return float((np.sign(np.asarray(y)) == np.asarray(classes)).mean())


def tile_centers_of(W: FloatArray, lift: SphereLift) -> FloatArray:
    """Where tiles (m, d) lie in the data: their feed-forward weights, put back from the sphere.

    A tile without weights lies at the lift's centre.
    """
    norm = np.linalg.norm(W, axis=1, keepdims=True)
    unit = np.divide(W, norm, out=np.zeros_like(W), where=norm > 0)
    centers: FloatArray = lift.center + lift.radius * unit[:, :-1]
    return centers


def tile_centers(run: xr.Dataset) -> FloatArray:
    """Where the tiles of a result lie in the data when it ends; see `tile_centers_of`."""
    lift = SphereLift(**json.loads(run.attrs["lift"]))
    return tile_centers_of(run["W"].to_numpy(), lift)


def tile_positions(centers: FloatArray, points: ArrayLike, position: ArrayLike) -> FloatArray:
    """Where tiles lie along the manifold: the ``position`` of the point nearest to each."""
    shown, places = np.asarray(points, dtype=float), np.asarray(position, dtype=float)
    nearest = [int(((shown - center) ** 2).sum(axis=1).argmin()) for center in centers]
    return places[nearest]


def tile_order(
    centers: FloatArray, points: ArrayLike, position: ArrayLike | None = None, axis: int = 0
) -> NDArray[np.intp]:
    """Tiles along the manifold, by `tile_positions`; from left to right along the coordinate
    ``axis`` of the data where the points have no ``position``."""
    places = centers[:, axis] if position is None else tile_positions(centers, points, position)
    return np.argsort(places, kind="stable")


def diffusion_slopes(result: xr.Dataset) -> FloatArray:
    """Slope of the measured on the predicted change of w, through the origin, in every repeat."""
    shape = (result.sizes.get("repeat", 1), -1)
    order = ("repeat", ...)
    predicted, measured = (
        result[name].transpose(*order, missing_dims="ignore").to_numpy().reshape(shape)
        for name in ("predicted", "measured")
    )
    found: FloatArray = (predicted * measured).sum(axis=1) / (predicted**2).sum(axis=1)
    return found
