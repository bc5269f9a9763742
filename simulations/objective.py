"""The objective that the tiling layer is derived from, Eq. (1), and its optimum offline."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from circuits.lift import FloatArray

TOLERANCE = 1e-6
"""The ascent ends with a round over all points that gains no more than this share."""

MOST_ROUNDS = 2000


def objective(x: FloatArray, alpha: float, H: FloatArray) -> float:
    """What Eq. (1) maximises, sum over t, t' of (x_t.x_t' - alpha) h_t.h_t', pairs with themselves
    included, for inputs x (T, n) and outputs H (T, m).

    With W = sum_t h_t x_t^T and b = sum_t h_t it is |W|^2 - alpha |b|^2: no T x T matrix is needed.
    """
    W, b = H.T @ x, H.sum(axis=0)
    return float((W * W).sum() - alpha * (b @ b))


def best_output(g: FloatArray, own: float) -> FloatArray:
    """The h >= 0 with |h| <= 1 that maximises own |h|^2 + 2 g.h, with own >= 0.

    This is convex in h, so that the maximum has norm one or is h = 0: h = [g]_+ / |[g]_+| where g
    has a positive part; otherwise one output alone, the one with the largest g, or none.
    """
    positive = np.maximum(g, 0.0)
    norm = float(np.sqrt(positive @ positive))
    if norm > 0:
        found: FloatArray = positive / norm
        return found
    h = np.zeros_like(g)
    largest = int(g.argmax())
    if own + 2 * g[largest] > 0:
        h[largest] = 1.0
    return h


def ascend(x: FloatArray, alpha: float, H: FloatArray) -> FloatArray:
    """Climb Eq. (1) from outputs H until no single h_t can be improved any more.

    Round after round each h_t in turn becomes the best there is while all others stay (their part
    in the objective is own |h|^2 + 2 g.h with own = |x_t|^2 - alpha and g = sum over t' != t of
    (x_t.x_t' - alpha) h_t'), so that the objective never falls. It is not convex: the end depends
    on the start.
    """
    H = H.copy()
    # One matrix holds W and b side by side: A = sum_t h_t (x_t, 1)^T, read by (x_t, -alpha).
    ends = np.ones((len(x), 1))
    write, read = np.hstack([x, ends]), np.hstack([x, -alpha * ends])
    own = (write * read).sum(axis=1)
    A = H.T @ write
    value = objective(x, alpha, H)
    for _ in range(MOST_ROUNDS):
        for t in range(len(x)):
            h = best_output(A @ read[t] - own[t] * H[t], own[t])
            A += (h - H[t])[:, None] * write[t]
            H[t] = h
        before, value = value, objective(x, alpha, H)
        if value - before <= TOLERANCE * abs(value):
            break
    return H


def best_ascent(x: FloatArray, alpha: float, starts: Iterable[FloatArray]) -> FloatArray:
    """The best of the outputs that `ascend` finds from several starts."""
    return max((ascend(x, alpha, H) for H in starts), key=lambda H: objective(x, alpha, H))


def tiles_at(x: FloatArray, alpha: float, centers: FloatArray) -> FloatArray:
    """Outputs (T, m) of tiles that sit on inputs ``centers`` (m, n), as recruiting leaves them:
    h = [a]_+ / |[a]_+| with a_i = c_i.x - alpha."""
    return _of_norm_one(x @ centers.T - alpha)


def random_features(x: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Outputs (T, count) that do not tile: rectified projections on random directions, of norm
    one (or zero, where none is positive)."""
    return _of_norm_one(x @ rng.standard_normal((count, x.shape[1])).T)


def _of_norm_one(a: FloatArray) -> FloatArray:
    """[a]_+ / |[a]_+|, row by row; zero where nothing is positive."""
    positive = np.maximum(a, 0.0)
    norm = np.linalg.norm(positive, axis=1, keepdims=True)
    found: FloatArray = np.divide(positive, norm, out=np.zeros_like(positive), where=norm > 0)
    return found
