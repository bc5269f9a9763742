"""Parameters chosen from the data: radius and number of tiles, and the gain of the readout."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circuits.errors import InputError
from circuits.lift import FloatArray, SphereLift, as_points, in_own_units
from circuits.parameters import CircuitParameters

SHARE = 0.1
"""Share of all points within a tile's radius of a point. Chosen, as are the two numbers below, on
seeds 300-302 of moons, circles, S-curve, roll, digits and a line: with less, labels do not spread;
with more, neighbouring branches are bridged."""

SPARE = 1.5
"""Tiles per tile that covering the points takes: tiles move, and leave gaps."""

ABOVE_CRITICAL = 30.0
"""The recommended mu as a multiple of the critical one."""

NEAR, BEYOND, SEARCHED = 1.5, 1.2, 5000
"""See `estimated_radius`. Chosen on seeds from 10,000 on of digits, iris, wine, breast cancer and
two moons, as were the defaults of the classifier; `simulations.known_data` has other seeds."""

THRESHOLDS, ROOM = (0.75, 0.6, 0.4, 0.2), 2.5
"""See `estimated_threshold`. Chosen alike; a stream brings more points than it begins with, some of
them where there were none."""


def parameters_for(points: ArrayLike, changes: dict[str, Any]) -> CircuitParameters:
    """See `CircuitParameters.for_points`."""
    array = as_points(points)
    some, gated = some_of(array), changes.get("readout_rule") == "gated"
    found: dict[str, Any] = {"readout_rate": 0.9} if gated else {}
    base = CircuitParameters(**(found | changes))
    if "tile_radius" not in changes:
        n_tiles = base.n_tiles if "n_tiles" in changes else None
        found["tile_radius"] = float(f"{radius_for(some, base.recruit_below, n_tiles):.3g}")
        base = base.replace(**(found | changes))
    if "n_tiles" not in changes:
        centers = cover(some, base.tile_radius, base.recruit_below)
        found["n_tiles"] = math.ceil(SPARE * len(centers))
        base = base.replace(**(found | changes))
    note = ""
    if gated:
        found["mu"] = 1.0
    elif "mu" not in changes:
        critical = critical_mu(array, base)
        found["mu"] = float(f"{ABOVE_CRITICAL * critical:.3g}")
        note = f" ({ABOVE_CRITICAL:g} x the critical {critical:.3g})"
    words = [f"{name}={value:g}" for name, value in found.items() if name not in changes]
    if words:
        print(f"chosen for {len(array)} points: {', '.join(words)}{note}", file=sys.stderr)
    return base.replace(**(found | changes))


def some_of(points: FloatArray, most: int = 1000) -> FloatArray:
    """At most this many of the points, evenly spread over their order."""
    return points[:: -(-len(points) // most)]


def tile_radius_for(points: FloatArray, share: float = SHARE) -> float:
    """The radius within which a point has a share of all points: the median over points."""
    from scipy.spatial.distance import cdist

    own, unit = in_own_units(points)
    radius = float(np.median(np.quantile(cdist(own, own), share, axis=1)))
    if radius == 0:
        raise InputError("most points coincide: give a tile_radius in the units of the data")
    return math.ldexp(radius, unit)


def radius_for(points: FloatArray, recruit_below: float, n_tiles: int | None = None) -> float:
    """The radius of `tile_radius_for`; given a number of tiles, the least radius from there on at
    which so many cover the points."""
    low = high = tile_radius_for(points)
    if n_tiles is None:
        return high
    while len(cover(points, high, recruit_below)) > n_tiles:
        low, high = high, 2 * high
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        fits = len(cover(points, middle, recruit_below)) <= n_tiles
        low, high = (low, middle) if fits else (middle, high)
    return high


def cover(points: FloatArray, radius: float, recruit_below: float) -> FloatArray:
    """The points that recruit a tile if they come one after the other and no tile moves.

    A point recruits a tile where no tile answers 1 - (d/rho)^2 > theta: where it is
    rho sqrt(1 - theta) or farther from all tiles.
    """
    from scipy.spatial.distance import cdist

    far = cdist(points, points) >= radius * math.sqrt(1 - recruit_below)
    left, chosen = np.ones(len(points), dtype=bool), []
    while left.any():
        chosen.append(int(np.argmax(left)))
        left &= far[chosen[-1]]
    return points[chosen]


def critical_mu(points: FloatArray, parameters: CircuitParameters) -> float:
    """The gain from which on the readout sustains itself: mu lambda_1(S) = 1, S = E(h h^T).

    S is that of (at most 1000 of) the points on the tiles that they recruit, before any learning:
    h ~ [x.c - alpha]_+ for a tile on c.
    """
    some, lift = some_of(points), SphereLift.around(points)
    centers = cover(some, parameters.tile_radius, parameters.recruit_below)[: parameters.n_tiles]
    a = lift(some) @ lift(centers).T - lift.alpha(parameters.tile_radius)
    h = np.maximum(a, 0.0)
    h /= np.maximum(np.linalg.norm(h, axis=1, keepdims=True), np.finfo(float).tiny)
    return 1 / float(np.linalg.eigvalsh(h.T @ h / len(h))[-1])


def estimated_radius(points: FloatArray) -> float:
    """A tile radius for `ManifoldClassifier`, from at most `SEARCHED` of the points: the larger of
    two distances.

    The first is `BEYOND` times the distance to the fifth neighbour that nine of ten points do not
    exceed: with less, points in sparse regions are alone on their tile and get no label. The second
    is the median distance to neighbour `NEAR` sqrt(n): labels get far on curves and sheets.
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
    """``recruit_below`` for `ManifoldClassifier`, how near tiles may lie: the highest of
    `THRESHOLDS` at which so many tiles cover the points, or else the lowest.

    Many tiles are exact; but once they are used up, points of new regions get no answer.
    """
    some, unit = in_own_units(some_of(points))
    radius = math.ldexp(radius, -unit)
    fitting = (t for t in THRESHOLDS if ROOM * len(cover(some, radius, t)) <= n_tiles)
    return next(fitting, THRESHOLDS[-1])
