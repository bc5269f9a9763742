"""What the circuit computes, rule by rule: the maths, the NumPy function, the Brian2 text.

Shapes: x (n), h (m), u (k), V (k, m), W (m, n), b (m), z and y (r), w (r, m).

A `Rule` holds both forms of one rule. `circuits.model` puts the rules together to a circuit, and
`circuits.network` and `circuits.reference` run them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from circuits.lift import FloatArray


@dataclass(frozen=True)
class Rule:
    """One rule of the circuit: its Brian2 text, and the NumPy function that computes the same.

    Without a function the rule runs on Brian2 alone, and the NumPy reference refuses it.
    """

    brian2: str
    numpy: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "brian2", self.brian2.strip())


# The rates and the fast synapses, every step


def step_excitatory(
    h: FloatArray, a: FloatArray, inhibition: FloatArray, gamma: float
) -> FloatArray:
    """One step of h: h <- [h + gamma_h (a - V^T u)]_+ with gamma_h = gain dt/tau_h."""
    return np.maximum(h + gamma * (a - inhibition), 0.0)


EXCITATORY = Rule("dh/dt = gain*(drive - sqrt_alpha*b - inhibition)/tau_h : 1", step_excitatory)


def step_inhibitory(u: FloatArray, excitation: FloatArray, gamma: float) -> FloatArray:
    """One step of u: u <- [u + gamma_u (V h - u)]_+ with gamma_u = dt/tau_u."""
    return np.maximum(u + gamma * (excitation - u), 0.0)


INHIBITORY = Rule("du/dt = (excitation - u)/tau_u : 1", step_inhibitory)


def step_lateral(V: FloatArray, u: FloatArray, h: FloatArray, gamma: float) -> FloatArray:
    """One step of V: V <- [V + gamma_V (u h^T - V)]_+ with gamma_V = dt/tau_V."""
    return np.maximum(V + gamma * (np.outer(u, h) - V), 0.0)


LATERAL = Rule("dV/dt = (u_post*h_pre - V)/tau_V : 1 (clock-driven)", step_lateral)


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
        step_excitatory(h, a, u @ V, gamma_h),
        step_inhibitory(u, V @ h, gamma_u),
        step_lateral(V, u, h, gamma_V),
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


# Where a presentation starts


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


def rest_direction(n_interneurons: int) -> FloatArray:
    """Unit vector along which u starts."""
    direction = 1 + np.arange(n_interneurons) / n_interneurons
    return direction / np.linalg.norm(direction)


SPARK = 0.1
"""Share of their values at rest below which u and V do not start a presentation."""


def carry_over(
    u: FloatArray, V: FloatArray, rest_u: FloatArray, rest_V: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """u and V as they start a presentation when they carry over from the one before.

    Where no tile responds u and V fade to nothing, and from u = V = 0 inhibition would never start
    again: they keep a spark of what they are at rest.
    """
    return np.maximum(u, SPARK * rest_u), np.maximum(V, SPARK * rest_V)


# The same in Brian2: restart is 1 when h, u and V restart, carry when they carry over.
RESTART_H = "h = restart*h_rest + (1 - restart)*h"
RESTART_U = f"u = restart*u_rest + (1 - restart)*clip(u, {SPARK}*carry*u_rest, inf)"
RESTART_V = f"""
V_rest = u_rest_post*h_rest_pre
V = restart_pre*V_rest + (1 - restart_pre)*clip(V, {SPARK}*carry_post*V_rest, inf)
""".strip()


# The readout, once per presentation


def answer_clip(net: FloatArray, z: FloatArray, mu: FloatArray) -> FloatArray:
    """Readout rates, Eq. (ystep): y = clip(mu w.h + z, -1, 1), with net = w.h."""
    return np.clip(mu * net + z, -1.0, 1.0)


def answer_tanh(net: FloatArray, z: FloatArray, mu: FloatArray) -> FloatArray:
    """Readout rates, Eq. (ytanh): y = tanh(mu w.h + z), with net = w.h."""
    return np.tanh(mu * net + z)


READOUT = {
    "clip": Rule("y = clip(mu*net + z, -1, 1)", answer_clip),
    "tanh": Rule("y = tanh(mu*net + z)", answer_tanh),
}
"""The readout's nonlinearities by name."""


def readout(
    w: FloatArray, h: FloatArray, z: FloatArray, mu: FloatArray, nonlinearity: str
) -> FloatArray:
    """Readout rates: y = clip(mu w.h + z, -1, 1), Eq. (ystep), or tanh of the same, Eq. (ytanh)."""
    function = READOUT[nonlinearity].numpy
    assert function is not None
    answer: FloatArray = function(w @ h, z, mu)
    return answer


# Slow learning, once per presentation


def learn_feedforward(W: FloatArray, h: FloatArray, x: FloatArray, eta: float) -> FloatArray:
    """Hebbian: W <- W + eta (h x^T - W)."""
    return W + eta * (np.outer(h, x) - W)


FEEDFORWARD = Rule("W += eta_post*(h_post*x_pre - W)", learn_feedforward)


def learn_bias(b: FloatArray, h: FloatArray, alpha: float, eta: float) -> FloatArray:
    """Homeostatic: b <- b + eta (sqrt(alpha) h - b)."""
    return b + eta * (math.sqrt(alpha) * h - b)


BIAS = Rule("b += eta*(sqrt_alpha*h - b)", learn_bias)


def learn_classifier(w: FloatArray, y: FloatArray, h: FloatArray, rate: float) -> FloatArray:
    """Hebbian, Eq. (wstep): w <- w + rate (y h^T - w); rate = 1/(t+1) makes w the mean of y h."""
    return w + rate * (np.outer(y, h) - w)


CLASSIFIER = Rule("w += rate*(y_post*h_pre - w)", learn_classifier)
