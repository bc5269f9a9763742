"""What the circuit computes, rule by rule: the maths, the NumPy function, the Brian2 text.

Shapes: x (n), h (m), u (k), V (k, m), W (m, n), b (m), z and y (r), w (r, m).

A `Rule` holds both forms of one rule. `circuits.model` puts the rules together to a circuit, and
`circuits.network` and `circuits.reference` run them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """One step of h: h <- [h + gamma_h (a - V^T u)]_+ with gamma_h = gain dt/tau_h.

    The gain is 1/|[a]_+| under gain control, so that every covered point settles alike, or a
    constant.
    """
    return np.maximum(h + gamma * (a - inhibition), 0.0)


EXCITATORY = Rule("dh/dt = gain*(a - inhibition)/tau_h : 1", step_excitatory)


def step_inhibitory(u: FloatArray, excitation: FloatArray, gamma: float) -> FloatArray:
    """One step of u: u <- [u + gamma_u (V h - u)]_+ with gamma_u = dt/tau_u."""
    return np.maximum(u + gamma * (excitation - u), 0.0)


INHIBITORY = Rule("du/dt = (excitation - u)/tau_u : 1", step_inhibitory)


def step_lateral(V: FloatArray, u: FloatArray, h: FloatArray, gamma: float) -> FloatArray:
    """One step of V: V <- [V + gamma_V (u h^T - V)]_+ with gamma_V = dt/tau_V."""
    return np.maximum(V + gamma * (outer(u, h) - V), 0.0)


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


def outer(u: FloatArray, h: FloatArray) -> FloatArray:
    """u h^T."""
    return u[:, None] * h


def measured(a: FloatArray, floor: float) -> float:
    """The size of a drive, A = |[a]_+|, or 0 where it is below the floor and nothing counts."""
    positive = np.maximum(a, 0.0)
    size = math.sqrt(positive @ positive)
    return size if size > floor else 0.0


def fixed_point(
    a: FloatArray, direction: FloatArray, floor: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where the steps lead: h = [a]_+ / |[a]_+|, |u|^2 = |[a]_+|, V = u h^T (all zero where
    |[a]_+| does not exceed the floor).

    The equations leave the direction of u open. If V starts as an outer product u h^T, the
    direction of u never changes (u = s d and V = d v^T stay of that form), so it is known.
    """
    size = measured(a, floor)
    h = np.maximum(a, 0.0) / size if size > 0 else np.zeros(len(a))
    u = math.sqrt(size) * direction
    return h, u, outer(u, h)


# Where a presentation starts

FLOOR = 1e-9
"""Under gain control a point whose drive |[a]_+| is at most this share of kappa (1 - alpha), the
drive of a tile that was just recruited, counts as uncovered. What is left of W x after the bias is
subtracted can be rounding alone, and gain control would make a response of norm one of that."""


def rest(
    n_tiles: int, n_interneurons: int, gain: float | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where h, u and V (re)start: positive, and of the size they settle to.

    |h| = 1, V = u h^T and |u|^2 = 2 / gain (the usual |[a]_+|); under gain control (``None``)
    |u| = 1 in units of the root of the drive. From u = 0 and V = 0 inhibition would never start.
    The interneurons start unequal, u_j ~ 1 + j/k, and so stay tellable apart.
    """
    h = np.full(n_tiles, 1 / math.sqrt(n_tiles))
    u = rest_direction(n_interneurons) * (1.0 if gain is None else math.sqrt(2 / gain))
    return h, u, outer(u, h)


@cache
def rest_direction(n_interneurons: int) -> FloatArray:
    """Unit vector along which u starts."""
    direction = 1 + np.arange(n_interneurons) / n_interneurons
    direction /= np.linalg.norm(direction)
    direction.flags.writeable = False  # the same for all who ask
    return direction


@dataclass(frozen=True)
class Start:
    """What the gain-control cell says of a presentation before it begins."""

    size: float
    """A = |[a]_+|; 0 where no tile answers."""
    gain: float
    """What the net input of h is multiplied by."""
    scale: float
    """What u and V at rest are multiplied by: the root of A."""
    ratio: float
    """What u and V that carry over are multiplied by: the root of A / (A of the point before)."""
    covered: float
    """0 where h is held at zero, because no tile answers."""
    last: float
    """A of the last point that some tile answered."""


def start(a: FloatArray, floor: float, last: float, gain: float | None) -> Start:
    """How a presentation with the drive a starts, ``last`` being the A of the one before it.

    Under gain control (``gain`` is None) the drive divides the step of h, and u and V start at its
    scale: gain = 1/A, scale = sqrt(A), ratio = sqrt(A/last). With a constant gain both are 1.
    """
    size = measured(a, floor)
    if gain is not None:
        return Start(size, gain, 1.0, 1.0, 1.0, last)
    if size == 0:
        return Start(0.0, 0.0, 0.0, 1.0, 0.0, last)
    return Start(size, 1 / size, math.sqrt(size), math.sqrt(size / last), 1.0, size)


# The same in Brian2, for the next point.
MEASURE = """
size = where(sqrt(power) > smallest, sqrt(power), 0)
covered = where(controlled > 0, int(size > 0), 1)
gain = where(controlled > 0, 1/where(size > 0, size, inf), constant_gain)
scale = where(controlled > 0, sqrt(size), 1)
ratio = where((controlled > 0) and (size > 0), sqrt(size/last), 1)
last = where((controlled > 0) and (size > 0), size, last)
""".strip()


SPARK = 0.5
"""Share of their values at rest below which u and V do not start a presentation: from half of them
they settle within the steps of a presentation, from a tenth only to 2e-7."""


def carry_over(
    u: FloatArray, V: FloatArray, rest_u: FloatArray, rest_V: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """u and V as they start a presentation when they carry over from the one before.

    Where no tile responds u and V fade to nothing, and from u = V = 0 inhibition would never start
    again: they keep a spark of what they are at rest.
    """
    return np.maximum(u, SPARK * rest_u), np.maximum(V, SPARK * rest_V)


# The same in Brian2, where h, u and V restart, and where they carry over.
RESTART = {
    "h": "h = where((in_use > 0) and (covered > 0), h_rest, 0)",
    "u": "u_start = scale*u_rest\nu = u_start",
    "V": "V = u_start_post*h_rest_pre*in_use_pre",
}
CARRY_OVER = {
    "h": "h = where(covered > 0, h, 0)",
    "u": f"u_start = scale*u_rest\nkept = ratio\nu = clip(kept*u, {SPARK}*u_start, inf)",
    "V": f"V = clip(kept_post*V, {SPARK}*u_start_post*h_rest_pre*in_use_pre, inf)",
}


# Recruiting, once per presentation

TIE = 1e-9
"""Added to the threshold of recruiting: points on a grid would be answered at just a round number,
and rounding would decide."""


def answers(
    a: FloatArray, b: FloatArray, alpha: float, recruit_below: float, floor: float
) -> NDArray[np.bool_]:
    """Which tiles answer a point above ``recruit_below``.

    A tile's answer is r = a sqrt(alpha) / (b (1 - alpha)) = 1 - (d/rho)^2 at the distance d from
    where it looks. One that has faded below the floor answers nothing.
    """
    least = (recruit_below + TIE) * (1 - alpha)
    return (a * math.sqrt(alpha) > least * b) & (a > floor)


def recruits(
    answering: NDArray[np.bool_],
    in_use: NDArray[np.bool_],
    b: FloatArray,
    recycle: bool,
    gone: NDArray[np.bool_] | None = None,
) -> int | None:
    """The tile that a point recruits: none where some tile answers, else the next idle one, or,
    where none is idle and ``recycle`` says so, the one with the smallest b. Those that are
    ``gone`` are not there."""
    if answering.any():
        return None
    there = np.ones(len(b), bool) if gone is None else ~gone
    idle = np.flatnonzero(there & ~in_use)
    if idle.size:
        return int(idle[0])
    return int(np.argmin(np.where(there, b, np.inf))) if recycle else None


# The same in Brian2. Tiles are numbered in the order in which they are recruited, and what a sum
# over tiles can tell decides: how many answer, and how many are in use.
ANSWERS = "int(a_pre*sqrt_alpha_pre > least_post*b_pre)*int(a_pre > smallest_post)"
RANK = "int(b_pre < b_post) + int(b_pre == b_post)*int(i_pre < i_post)"
RECRUITS = "(recruiting > 0) and (answering == 0)"
CHOOSE = f"joins = int({RECRUITS} and (i == used))"
CHOOSE_LEAST = f"joins = int({RECRUITS} and ((i == used) or ((used >= N) and (rank == 0))))"
# Where tiles may be gone: their turn counts those that are there, and is -1 for one that is gone.
RANK_THERE = f"where(perturbed_turn_pre >= 0, {RANK}, 0)"
CHOOSE_THERE = f"joins = int({RECRUITS} and (perturbed_turn == used))"
CHOOSE_LEAST_THERE = (
    f"joins = int({RECRUITS} and (perturbed_turn >= 0) and "
    "((perturbed_turn == used) or ((used >= perturbed_there) and (rank == 0))))"
)
TAKE = """
recruited = int(where(joins > 0, presentation + first_presentation, recruited))
b = where(joins > 0, kappa*sqrt_alpha, b)
drive = where(joins > 0, 0, drive)
""".strip()
TAKE_W = "W = where(joins_post > 0, kappa_post*x_pre, W)"
TAKE_DRIVE = "drive_post += where(joins_post > 0, W*x_pre, 0)"
LOOK_AGAIN = "a = where(joins > 0, drive - sqrt_alpha*b, a)"
TAKE_w = "w = where(joins_pre > 0, 0, w)"


# The readout, once per presentation


def answer_clip(net: FloatArray, z: FloatArray, mu: FloatArray) -> FloatArray:
    """Readout rates, Eq. (ystep): y = clip(mu w.h + z, -1, 1), with net = w.h."""
    return np.clip(mu * net + z, -1.0, 1.0)


def answer_tanh(net: FloatArray, z: FloatArray, mu: FloatArray) -> FloatArray:
    """Readout rates, Eq. (ytanh): y = tanh(mu w.h + z), with net = w.h."""
    return np.tanh(mu * net + z)


def clamped(y: FloatArray, z: FloatArray) -> FloatArray:
    """The answer where labels set it: y = z where there is a label."""
    return z + (1 - np.abs(z)) * y


CLAMP = "y = z + (1 - abs(z))*y"


def pooled(net: FloatArray, h: FloatArray) -> FloatArray:
    """The input of a gated readout: the mean of w over the responding tiles, w.h / sum(h)."""
    total = float(h.sum())
    return net / total if total > 0 else np.zeros_like(net)


READOUT = {
    "clip": Rule("y = clip(mu*net + z, -1, 1)", answer_clip),
    "tanh": Rule("y = tanh(mu*net + z)", answer_tanh),
}
"""The readout's nonlinearities by name."""


def readout(
    w: FloatArray,
    h: FloatArray,
    z: FloatArray,
    mu: FloatArray,
    nonlinearity: str,
    rule: str = "paper",
    clamp: bool = False,
) -> FloatArray:
    """Readout rates: y = clip(mu w.h + z, -1, 1), Eq. (ystep), or tanh of the same, Eq. (ytanh).

    The gated rule has w.h/sum(h) in the place of w.h; labels may clamp y.
    """
    function = READOUT[nonlinearity].numpy
    assert function is not None
    net = w @ h
    answer: FloatArray = function(pooled(net, h) if rule == "gated" else net, z, mu)
    return clamped(answer, z) if clamp else answer


# Slow learning, once per presentation


def learn_feedforward(W: FloatArray, h: FloatArray, x: FloatArray, eta: float) -> FloatArray:
    """Hebbian: W <- W + eta (h x^T - W)."""
    return W + eta * (outer(h, x) - W)


FEEDFORWARD = Rule("W += eta_post*(h_post*x_pre - W)", learn_feedforward)


def learn_bias(b: FloatArray, h: FloatArray, alpha: float, eta: float) -> FloatArray:
    """Homeostatic: b <- b + eta (sqrt(alpha) h - b)."""
    return b + eta * (math.sqrt(alpha) * h - b)


BIAS = Rule("b += eta*(sqrt_alpha*h - b)", learn_bias)


def learn_classifier(w: FloatArray, y: FloatArray, h: FloatArray, rate: float) -> FloatArray:
    """Hebbian, Eq. (wstep): w <- w + rate (y h^T - w); rate = 1/(t+1) makes w the mean of y h."""
    return w + rate * (outer(y, h) - w)


CLASSIFIER = Rule("w += rate*(y_post*h_pre - w)", learn_classifier)


def learn_gated(w: FloatArray, y: FloatArray, h: FloatArray, rate: float) -> FloatArray:
    """Hebbian, forgetting only where a tile responds: w_i <- w_i + rate h_i (y - w_i)."""
    return w + rate * h * (y[:, None] - w)


GATED = Rule("w += rate*h_pre*(y_post - w)", learn_gated)
