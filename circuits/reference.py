"""The paper's circuit in NumPy, written from its equations and to be read beside them.

x_t (n) is the input of presentation t. Layer one has excitatory rates h (m), inhibitory rates u
(k), fast synapses V (k, m), slow synapses W (m, n) and biases b (m). Layer two has readouts y (r)
with labels z (r) and synapses w (r, m). Eq. (Online1), (ystep), ... are labels of the paper.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from circuits.lift import FloatArray

# Layer one: the iteration after Eq. (Online1)


def drive(W: FloatArray, b: FloatArray, x: FloatArray, alpha: float) -> FloatArray:
    """What stays fixed while the rates settle: a = W x - sqrt(alpha) b."""
    a: FloatArray = W @ x - math.sqrt(alpha) * b
    return a


def step_excitatory(
    h: FloatArray, a: FloatArray, inhibition: FloatArray, gamma: float | FloatArray
) -> FloatArray:
    """h <- [h + gamma_h (a - V^T u)]_+."""
    return np.maximum(h + gamma * (a - inhibition), 0.0)


def step_inhibitory(u: FloatArray, excitation: FloatArray, gamma: float) -> FloatArray:
    """u <- [u + gamma_u (V h - u)]_+."""
    return np.maximum(u + gamma * (excitation - u), 0.0)


def step_lateral(V: FloatArray, u: FloatArray, h: FloatArray, gamma: float) -> FloatArray:
    """V <- [V + gamma_V (u h^T - V)]_+."""
    return np.maximum(V + gamma * (outer(u, h) - V), 0.0)


def step(
    h: FloatArray, u: FloatArray, V: FloatArray, a: FloatArray, gamma: tuple[float, float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One step of all three, from their old values; gamma is (gamma_h, gamma_u, gamma_V)."""
    return (
        step_excitatory(h, a, u @ V, gamma[0]),
        step_inhibitory(u, V @ h, gamma[1]),
        step_lateral(V, u, h, gamma[2]),
    )


def learn_feedforward(W: FloatArray, h: FloatArray, x: FloatArray, eta: float) -> FloatArray:
    """W <- W + eta (h x^T - W)."""
    return W + eta * (outer(h, x) - W)


def learn_bias(b: FloatArray, h: FloatArray, alpha: float, eta: float) -> FloatArray:
    """b <- b + eta (sqrt(alpha) h - b)."""
    return b + eta * (math.sqrt(alpha) * h - b)


# Layer two


def answer_clip(net: FloatArray, z: FloatArray, mu: FloatArray) -> FloatArray:
    """Eq. (ystep): y = clip(mu w.h + z, -1, 1), with net = w.h."""
    return np.clip(mu * net + z, -1.0, 1.0)


def answer_tanh(net: FloatArray, z: FloatArray, mu: FloatArray) -> FloatArray:
    """Eq. (ytanh): y = tanh(mu w.h + z)."""
    return np.tanh(mu * net + z)


ANSWER = {"clip": answer_clip, "tanh": answer_tanh}


def learn_classifier(w: FloatArray, y: FloatArray, h: FloatArray, rate: float) -> FloatArray:
    """Eq. (wstep): w <- w + rate (y h - w), with rate = 1/(t + 1)."""
    return w + rate * (outer(y, h) - w)


# Where the rates settle, and where they start


def outer(u: FloatArray, h: FloatArray) -> FloatArray:
    """u h^T."""
    return u[:, None] * h


def fixed_point(
    a: FloatArray, direction: FloatArray, floor: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where the steps lead: h = [a]_+/|[a]_+|, |u|^2 = |[a]_+|, V = u h^T; all zero where |[a]_+|
    does not exceed the floor.

    The equations leave the direction of u open. From a start with V = u h^T it never changes.
    """
    positive = np.maximum(a, 0.0)
    size = math.sqrt(positive @ positive)
    if not size > floor:
        return np.zeros_like(a), np.zeros_like(direction), np.zeros((len(direction), len(a)))
    h, u = positive / size, math.sqrt(size) * direction
    return h, u, outer(u, h)


def rest(
    n_tiles: int, n_interneurons: int, gain: float | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """h, u and V at rest: |h| = 1, V = u h^T, and |u|^2 = 2/gain, the usual size of the drive (1 if
    there is no constant gain)."""
    h = np.full(n_tiles, 1 / math.sqrt(n_tiles))
    u = rest_direction(n_interneurons) * (1.0 if gain is None else math.sqrt(2 / gain))
    return h, u, outer(u, h)


@cache
def rest_direction(n_interneurons: int) -> FloatArray:
    """The unit vector along which u starts, u_j ~ 1 + j/k: interneurons stay tellable apart."""
    direction = 1 + np.arange(n_interneurons) / n_interneurons
    direction /= np.linalg.norm(direction)
    direction.flags.writeable = False  # the same for all who ask
    return direction


class Paper:
    """The stages of a presentation, in the order of `circuits.stages`.

    ``s`` is the circuit: its state, and what is known of the presentation.
    """

    def __init__(self, c: Any) -> None:
        self.c, self.p = c, c.parameters
        self.mu = np.array(self.p.mu_per_readout)
        self.h_rest, self.u_rest, _ = rest(self.p.n_tiles, self.p.n_interneurons, c.gain)
        self.rule = c.model.functions(self.p)
        self.gamma = c.gamma(1.0)

    def drive(self, s: Any) -> None:
        """The drive of the point, and the gain."""
        s.a = drive(s.W, s.b, s.x, self.c.alpha)
        s.gain, s.kept, s.u_rest = self.c.gain, 1.0, self.u_rest

    def before_restart(self, s: Any) -> None:
        """Where the rates start."""
        s.h_start, s.u_start = self.h_rest, s.u_rest

    def after_restart(self, s: Any) -> None:
        """There are synapses between connected pairs only."""
        s.V = self.c.model.masked("lateral", s.V)

    def sums(self, s: Any) -> None:
        """V^T u and V h."""
        s.inhibition, s.excitation = s.u @ s.V, s.V @ s.h

    def lateral(self, s: Any) -> None:
        """The fast synapses."""
        s.V = self.c.model.masked("lateral", self.rule["lateral"](s.V, s.u, s.h, self.gamma[2]))

    def rates(self, s: Any) -> None:
        """Excitatory and inhibitory rates."""
        gamma = s.gain * self.p.dt_ / self.p.tau_h_
        s.h = self.rule["excitatory"](s.h, s.a, s.inhibition, gamma)
        s.u = self.rule["inhibitory"](s.u, s.excitation, self.gamma[1])

    def before_answer(self, s: Any) -> None:
        """What mu multiplies."""
        s.net = np.matmul

    def answer(self, s: Any) -> None:
        """The readout."""
        s.y = self.rule["readout"](s.net(s.w, s.h), s.z, self.mu)

    def before_learn(self, s: Any) -> None:
        """The rate of w: 1/(t + 1), t from 0."""
        s.rate = 1 / (s.learned + 1)

    def learn(self, s: Any) -> None:
        """All three from the settled h."""
        if s.learn and self.c.model.learns:
            model, eta = self.c.model, self.p.learning_rate
            s.w = model.masked("classifier", self.rule["classifier"](s.w, s.y, s.h, s.rate))
            W = self.rule["feedforward"](s.W, s.h, s.x, eta)
            s.W = model.masked("feedforward", W)
            s.b = self.rule["bias"](s.b, s.h, self.c.alpha, eta)
