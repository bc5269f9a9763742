"""What the data decide of a circuit: radius and number of its tiles, and the readout's gain."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circuits.errors import InputError
from circuits.lift import (
    FloatArray,
    SphereLift,
    as_points,
    in_own_units,
    some_of,
    tile_radius_for,
)
from circuits.parameters import CircuitParameters

SHARE = 0.1
"""Share of all points within a tile's radius of a point. Chosen, as are the two numbers below, on
seeds 300-302 of moons, circles, S-curve, roll, digits and a line: less and labels do not spread,
more and neighbouring branches are bridged."""

SPARE = 1.5
"""Tiles there are for every one that covering the points takes: tiles move, and leave gaps."""

NEAR, BEYOND, SEARCHED = 1.5, 1.2, 5000
"""See `estimated_radius`. Chosen on seeds from 10,000 on of digits, iris, wine, breast cancer and
two moons, as were the defaults of the classifier; `simulations.known_data` has other seeds."""

THRESHOLDS, ROOM = (0.75, 0.6, 0.4, 0.2), 2.5
"""Of `estimated_threshold`, chosen alike; a stream brings more points than it begins with, and some
of them lie where none were."""

ABOVE_CRITICAL = 30.0
"""The recommended mu as a multiple of the critical one."""


def parameters_for(points: ArrayLike, changes: dict[str, Any]) -> CircuitParameters:
    """Parameters that suit points, but for those that are given; see
    `CircuitParameters.for_points`."""
    array = as_points(points)
    some, given = some_of(array), dict(changes)
    base = CircuitParameters(**({"readout_rate": 0.9} | given if _is_gated(given) else given))
    found: dict[str, Any] = {}
    if "tile_radius" not in given:
        room = given.get("n_tiles")
        found["tile_radius"] = _rounded(radius_for(some, base.recruit_below, room))
    base = base.replace(**found)
    if "n_tiles" not in given:
        needed = tiles_needed(some, base.tile_radius, base.recruit_below)
        found["n_tiles"] = math.ceil(SPARE * needed)
    if _is_gated(given) and "readout_rate" not in given:
        found["readout_rate"] = 0.9
    base = base.replace(**found)
    note = ""
    if "mu" not in given:
        if _is_gated(given):
            found["mu"], note = 1.0, " (neutral for the gated rule)"
        else:
            critical = critical_mu(array, base)
            found["mu"] = _rounded(ABOVE_CRITICAL * critical)
            note = f" ({ABOVE_CRITICAL:g} x the critical {critical:.3g})"
    if found:
        words = ", ".join(f"{name}={value:g}" for name, value in found.items())
        print(f"chosen for {len(array)} points: {words}{note}", file=sys.stderr)
    return base.replace(**found)


def radius_for(points: FloatArray, recruit_below: float, n_tiles: int | None = None) -> float:
    """The radius within which a point has a share `SHARE` of all points; with a number of tiles,
    the least radius from there on at which so many cover the points."""
    radius = tile_radius_for(points, 1, SHARE)
    if n_tiles is None or tiles_needed(points, radius, recruit_below) <= n_tiles:
        return radius
    low, high = radius, 2 * radius
    while tiles_needed(points, high, recruit_below) > n_tiles:
        low, high = high, 2 * high
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        fits = tiles_needed(points, middle, recruit_below) <= n_tiles
        low, high = (low, middle) if fits else (middle, high)
    return high


def tiles_needed(points: FloatArray, radius: float, recruit_below: float) -> int:
    """How many tiles points recruit that come one after the other and let no tile move.

    A point recruits one where none answers 1 - (d/rho)^2 > theta: further than rho sqrt(1 - theta)
    from all.
    """
    return len(cover(points, radius, recruit_below))


def cover(points: FloatArray, radius: float, recruit_below: float) -> FloatArray:
    """The points that recruit a tile; see `tiles_needed`."""
    from scipy.spatial.distance import cdist

    far = cdist(points, points) >= radius * math.sqrt(1 - recruit_below)
    left, chosen = np.ones(len(points), dtype=bool), []
    while left.any():
        chosen.append(int(np.argmax(left)))
        left &= far[chosen[-1]]
    return points[chosen]


def critical_mu(points: ArrayLike, parameters: CircuitParameters) -> float:
    """The gain from which on the readout sustains itself: mu lambda_1(S) = 1, S = E(h h^T).

    S is that of (at most 1000 of) the points on the tiles that they recruit, before any learning:
    h ~ [x.c - alpha]_+ for a tile on c.
    """
    array = as_points(points)
    some, lift = some_of(array), SphereLift.around(array)
    centers = cover(some, parameters.tile_radius, parameters.recruit_below)[: parameters.n_tiles]
    a = lift(some) @ lift(centers).T - lift.alpha(parameters.tile_radius)
    h = np.maximum(a, 0.0)
    h /= np.maximum(np.linalg.norm(h, axis=1, keepdims=True), np.finfo(float).tiny)
    return 1 / float(np.linalg.eigvalsh(h.T @ h / len(h))[-1])


def _is_gated(values: dict[str, Any]) -> bool:
    return values.get("readout_rule") == "gated"


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def estimated_radius(points: FloatArray) -> float:
    """A tile radius for `ManifoldClassifier`, found on at most `SEARCHED` of the points: the larger
    of two distances.

    One is `BEYOND` times that to the fifth neighbour, which nine of ten points do not exceed: less,
    and points in sparse regions are alone on their tile, where no label comes. The other is the
    median distance to neighbour `NEAR` sqrt(n): on curves and sheets more is needed for labels to
    get far, and where points are many neighbours are near.
    """
    from sklearn.neighbors import NearestNeighbors

    scaled, unit = in_own_units(some_of(points, SEARCHED))
    some = np.unique(scaled, axis=0)
    if len(some) < 2:
        raise InputError(
            "a tile_radius cannot be chosen from one sample: give a tile_radius, or points that "
            "differ"
        )
    wanted = max(5, math.ceil(NEAR * math.sqrt(len(some))))
    search = NearestNeighbors(n_neighbors=min(wanted, len(some) - 1)).fit(some)
    distances, _ = search.kneighbors()  # from every point to others than itself
    fifth = distances[:, min(4, distances.shape[1] - 1)]
    radius = max(BEYOND * np.quantile(fifth, 0.9), np.median(distances[:, -1]))
    return math.ldexp(float(radius), unit)


def estimated_threshold(points: FloatArray, radius: float, n_tiles: int) -> float:
    """How near tiles may lie, as ``recruit_below`` for `ManifoldClassifier`: the highest of
    `THRESHOLDS` at which so many tiles cover the points, the lowest if none does.

    Many tiles are exact; but where they are used up before all regions have some, points of the
    others have no answer.
    """
    some, unit = in_own_units(some_of(points))
    radius = math.ldexp(radius, -unit)
    fitting = (t for t in THRESHOLDS if ROOM * tiles_needed(some, radius, t) <= n_tiles)
    return next(fitting, THRESHOLDS[-1])
