"""The circuit's equations in NumPy, one function each, next to the paper's.

Shapes: x (n), h (m), u (k), V (k, m), W (m, n), b (m), z and y (r), w (r, m).
"""

from __future__ import annotations

import math

import numpy as np

from circuits.lift import FloatArray


def drive(W: FloatArray, b: FloatArray, x: FloatArray, alpha: float) -> FloatArray:
    """Feed-forward drive, fixed through a presentation: a = W x - sqrt(alpha) b."""
    return W @ x - math.sqrt(alpha) * b


def step(
    h: FloatArray,
    u: FloatArray,
    V: FloatArray,
    a: FloatArray,
    gamma: tuple[float, float, float],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One step of projected gradient descent-ascent-descent, all from the old values.

        h <- [h + gamma_h (a - V^T u)]_+
        u <- [u + gamma_u (V h - u)]_+
        V <- [V + gamma_V (u h^T - V)]_+

    ``gamma`` is (gamma_h, gamma_u, gamma_V): gain dt/tau_h, dt/tau_u, dt/tau_V.
    """
    gamma_h, gamma_u, gamma_V = gamma
    return (
        np.maximum(h + gamma_h * (a - u @ V), 0.0),
        np.maximum(u + gamma_u * (V @ h - u), 0.0),
        np.maximum(V + gamma_V * (np.outer(u, h) - V), 0.0),
    )


def fixed_point(a: FloatArray, direction: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where the steps lead: h = [a]_+ / |[a]_+|, |u|^2 = |[a]_+|, V = u h^T (all zero if a <= 0).

    The equations leave the direction of u open. If V starts as an outer product u h^T, the
    direction of u never changes (u = s d and V = d v^T stay of that form), so it is known.
    """
    positive = np.maximum(a, 0.0)
    size = float(np.linalg.norm(positive))
    h = positive / size if size > 0 else positive
    u = math.sqrt(size) * direction
    return h, u, np.outer(u, h)


def rest(
    n_tiles: int, n_interneurons: int, gain: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where h, u and V (re)start: positive, and of the size they settle to.

    |h| = 1, |u|^2 = 2 / gain (the usual |[a]_+|) and V = u h^T. From u = 0 and V = 0 inhibition
    would never start. The interneurons start unequal, u_j ~ 1 + j/k, and so stay tellable apart.
    """
    h = np.full(n_tiles, 1 / math.sqrt(n_tiles))
    u = rest_direction(n_interneurons) * math.sqrt(2 / gain)
    return h, u, np.outer(u, h)


SPARK = 0.1
"""Share of their values at rest below which u and V do not start a presentation."""


def carry_over(u: FloatArray, V: FloatArray, gain: float) -> tuple[FloatArray, FloatArray]:
    """u and V as they start a presentation when they carry over from the one before.

    Where no tile responds u and V fade to nothing, and from u = V = 0 inhibition would never start
    again: they keep a spark of what they are at rest.
    """
    _, rest_u, rest_V = rest(V.shape[1], V.shape[0], gain)
    return np.maximum(u, SPARK * rest_u), np.maximum(V, SPARK * rest_V)


def rest_direction(n_interneurons: int) -> FloatArray:
    """Unit vector along which u starts."""
    direction = 1 + np.arange(n_interneurons) / n_interneurons
    return direction / np.linalg.norm(direction)


def readout(
    w: FloatArray, h: FloatArray, z: FloatArray, mu: FloatArray, nonlinearity: str
) -> FloatArray:
    """Readout rates: y = clip(mu w.h + z, -1, 1), Eq. (ystep), or tanh of the same, Eq. (ytanh)."""
    net = mu * (w @ h) + z
    return np.tanh(net) if nonlinearity == "tanh" else np.clip(net, -1.0, 1.0)


def learn_feedforward(W: FloatArray, h: FloatArray, x: FloatArray, eta: float) -> FloatArray:
    """Hebbian: W <- W + eta (h x^T - W)."""
    return W + eta * (np.outer(h, x) - W)


def learn_bias(b: FloatArray, h: FloatArray, alpha: float, eta: float) -> FloatArray:
    """Homeostatic: b <- b + eta (sqrt(alpha) h - b)."""
    return b + eta * (math.sqrt(alpha) * h - b)


def learn_classifier(w: FloatArray, y: FloatArray, h: FloatArray, rate: float) -> FloatArray:
    """Hebbian, Eq. (wstep): w <- w + rate (y h^T - w); rate = 1/(t+1) makes w the mean of y h."""
    return w + rate * (np.outer(y, h) - w)
