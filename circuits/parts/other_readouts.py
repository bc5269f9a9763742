"""Other readouts: the gated rule, a constant rate, and labels that set the answer.

    gated            y = clip(mu w.h/sum(h) + z, -1, 1),   w_i <- w_i + rate h_i (y - w_i)
    constant rate    w <- w + rate (y h - w)
    clamped labels   y = z where there is a label

The gated rule forgets only where a tile responds; its input is the mean of w over those tiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.assembly.part import Part
from circuits.lift import FloatArray

if TYPE_CHECKING:
    from circuits.base import Circuit

GATED = "w += rate*h_pre*(y_post - w)"


def pooled(net: FloatArray, h: FloatArray) -> FloatArray:
    """The input of a gated readout: w.h/sum(h), or 0 if no tile responds."""
    total = float(h.sum())
    return net / total if total > 0 else np.zeros_like(net)


def learn_gated(w: FloatArray, y: FloatArray, h: FloatArray, rate: float) -> FloatArray:
    """w_i <- w_i + rate h_i (y - w_i)."""
    return w + rate * h * (y[:, None] - w)


def clamped(y: FloatArray, z: FloatArray) -> FloatArray:
    """The answer where labels set it: y = z where there is a label."""
    return np.where(z != 0, z, y)


class GatedReadout(Part):
    """The input of the gated rule; the rule itself is chosen in `CircuitModel.classify`."""

    equations = {
        "readout": "total : 1    # sum of h\nnet = wh/where(total > 0, total, inf) : 1",
        "classifier": "total_post = h_pre : 1 (summed)",
    }
    summed = {"classifier.total_post": "answer"}
    follows_h = True

    def before_answer(self, s: Any) -> None:
        """The same in NumPy."""
        s.net = lambda w, h: pooled(w @ h, h)


class ConstantRate(Part):
    """A constant rate in the place of 1/(t + 1)."""

    learning = ("classifier.constant_rate",)
    equations = {
        "classifier": """
constant_rate : 1 (shared)         # of learning
rate = constant_rate : 1 (shared)
"""
    }

    def __init__(self, c: Circuit) -> None:
        self._rate = float(c.parameters.readout_rate)
        self.parameters = {"classifier.constant_rate": self._rate}

    def before_learn(self, s: Any) -> None:
        """The same in NumPy."""
        s.rate = self._rate


class ClampedLabels(Part):
    """Labels set the answer."""

    code = (("readout", "after_answer", "y = where(z != 0, z, y)", "clamp"),)
    follows_h = True

    def after_answer(self, s: Any) -> None:
        """The same in NumPy."""
        s.y = clamped(s.y, s.z)
