"""Gain control: a feed-forward cell measures the drive, and every point settles alike.

With a constant gain the speed of settling is proportional to A = |[a]_+|, which differs a
hundredfold from point to point. The cell divides it out, and u and V start at the scale of the
drive, as they settle at |u|^2 = |V|^2 = A:

    gain = 1/A,     u_start = sqrt(A) u_rest,     kept = sqrt(A/A of the last covered point)

A point whose A is at most ``smallest`` is uncovered: h is held at zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.assembly.part import Part
from circuits.lift import FloatArray

if TYPE_CHECKING:
    from circuits.base import Circuit

FLOOR = 1e-9
"""A point whose drive |[a]_+| is at most this share of kappa (1 - alpha), the drive of a tile that
was just recruited, counts as uncovered. What is left of W x after the bias is subtracted can be
rounding alone, and gain control would make a response of norm one of that."""

CELL = """
power : 1                          # |[a]_+|^2
size : 1                           # A = |[a]_+|, or 0 if the point is uncovered
gain : 1                           # 1/A
scale : 1                          # sqrt(A)
ratio : 1                          # sqrt(A/last)
covered : 1                        # 0: no tile responds
last : 1                           # A of the last covered point
smallest : 1 (shared)              # drives up to this are nothing
"""
SUM = "power_post = a_pre*clip(a_pre, 0, inf) : 1 (summed)"
MEASURE = """
size = where(sqrt(power) > smallest, sqrt(power), 0)
covered = int(size > 0)
gain = 1/where(size > 0, size, inf)
scale = sqrt(size)
ratio = where(size > 0, sqrt(size/last), 1)
last = where(size > 0, size, last)
"""


class GainControl(Part):
    """The cell, and the gain it sets."""

    equations = {"gain_control": CELL, "measuring": SUM, "excitatory": "gain : 1 (linked)"}
    groups = {"gain_control": 1}
    synapses = {"measuring": ("excitatory", "gain_control")}
    summed = {"measuring.power_post": "measure"}
    fields = {"gain_control.last": "last_size"}
    fixed = {"gain_control.smallest": "gain"}
    links = {"excitatory.gain": "gain_control.gain"}
    code = (("gain_control", "measure", MEASURE),)

    def __init__(self, c: Circuit) -> None:
        self.parameters = {"gain_control.smallest": c.floor}
        self._floor = c.floor

    def moves_rates(self) -> bool:
        """The closed form is that of the paper, whatever the gain."""
        return False

    def measure(self, s: Any) -> None:
        """The same in NumPy."""
        s.begin = start(s.a, self._floor, s.last_size)
        s.gain, s.last_size = s.begin.gain, s.begin.last


class ScaledStart(Part):
    """u and V start at the scale of the drive; h is held at zero where no tile responds."""

    links = {
        **{"excitatory.covered": "gain_control.covered", "inhibitory.scale": "gain_control.scale"},
        "inhibitory.ratio": "gain_control.ratio",
    }

    def __init__(self, c: Circuit) -> None:
        kept = not c.parameters.reset
        self.equations = {
            "excitatory": "covered : 1 (linked)",
            "inhibitory": "u_start : 1\nscale : 1 (linked)\nratio : 1 (linked)"
            + ("\nkept : 1" if kept else ""),
        }
        rescale = "u_start = scale*u_rest" + ("\nkept = ratio" if kept else "")
        self.code = (
            ("inhibitory", "before_restart", rescale, "rescale"),
            ("excitatory", "after_restart", "h = where(covered > 0, h, 0)", "silence"),
        )

    def before_restart(self, s: Any) -> None:
        """The same in NumPy."""
        s.u_start, s.kept = s.begin.scale * s.u_rest, s.begin.ratio

    def after_restart(self, s: Any) -> None:
        """Hold h at zero where no tile responds."""
        if not s.begin.covered:
            s.h = np.zeros_like(s.h)


@dataclass(frozen=True)
class Start:
    """What the cell says of a presentation before it begins."""

    gain: float
    scale: float
    ratio: float
    covered: float
    last: float


def start(a: FloatArray, floor: float, last: float, gain: float | None = None) -> Start:
    """How a presentation with the drive a starts, ``last`` being the A of the one before it; with
    a constant ``gain`` nothing is scaled."""
    size = measured(a, floor)
    if gain is not None:
        return Start(gain, 1.0, 1.0, 1.0, last)
    if size == 0:
        return Start(0.0, 0.0, 1.0, 0.0, last)
    return Start(1 / size, math.sqrt(size), math.sqrt(size / last), 1.0, size)


def measured(a: FloatArray, floor: float) -> float:
    """A = |[a]_+|, or 0 where it is at most the floor."""
    positive = np.maximum(a, 0.0)
    size = math.sqrt(positive @ positive)
    return size if size > floor else 0.0
