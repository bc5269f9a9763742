"""Recruiting: tiles start on points that no tile responds to.

A tile responds with r = a sqrt(alpha)/(b (1 - alpha)) = 1 - (d/rho)^2 at the distance d from its
centre. A point at which no r exceeds theta recruits the next idle tile:

    W_i <- kappa x,     b_i <- kappa sqrt(alpha)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from circuits.assembly.part import Part
from circuits.lift import FloatArray
from circuits.parts.idle_tiles import IN_USE, Tiles

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task

TIE = 1e-9
"""Added to the threshold: on a grid r is a round number, and rounding would decide."""

LINKED = ("recruiting", "answering", "used", "first_presentation")

TILES = f"""
{IN_USE}
joins : integer                    # 1: the point recruits the tile
turn = i : integer                 # how many tiles are recruited before it
available = N : integer            # how many tiles there are
kappa : 1 (shared)                 # norm of W of a tile that starts
recruiting : integer (linked)
answering : 1 (linked)
used : 1 (linked)
first_presentation : integer (linked)
presentation : integer (linked)
"""
CELL = """
answering : 1                      # tiles that respond to the point
used : 1                           # tiles in use
recruiting : integer (shared)      # 0 in a prediction
smallest : 1 (shared)              # drives up to this are nothing
least : 1 (shared)                 # theta (1 - alpha)
first_presentation : integer (shared) # the number of the stream's first
"""
COUNTS = (
    "answering_post = int((a_pre*sqrt_alpha_pre > least_post*b_pre) "
    "and (a_pre > smallest_post)) : 1 (summed)\n"
    "used_post = in_use_pre : 1 (summed)"
)
WANTED = "(recruiting > 0) and (answering == 0)"
NEXT = f"joins = int({WANTED} and (turn == int(used + 0.5)))"
TAKE = """
recruited = int(where(joins > 0, presentation + first_presentation, recruited))
b = where(joins > 0, kappa*sqrt_alpha, b)
drive = where(joins > 0, 0, drive)
"""
TAKE_W = "W = where(joins_post > 0, kappa_post*x_pre, W)"
SUM = "drive_post += where(joins_post > 0, W*x_pre, 0)"
DRIVE = "a = where(joins > 0, drive - sqrt_alpha*b, a)"


class Recruiting(Tiles):
    """Tiles that points recruit."""

    equations = {"excitatory": TILES, "recruiter": CELL, "pooling": COUNTS}
    groups = {"recruiter": 1}
    synapses = {"pooling": ("excitatory", "recruiter")}
    summed = {"pooling.answering_post": "recruit", "pooling.used_post": "recruit"}
    links = {
        **{f"excitatory.{name}": f"recruiter.{name}" for name in LINKED},
        "excitatory.presentation": "inputs.presentation",
    }
    learning = ("recruiter.recruiting",)
    fixed = {
        "excitatory.kappa": "initial_weight",
        **{f"recruiter.{n}": "recruit_below or tiles" for n in ("recruiting", "least", "smallest")},
    }
    code = (
        ("excitatory", "recruit", NEXT, "choose"),
        ("excitatory", "after_recruit", TAKE, "recruit"),
        ("feedforward", "after_recruit", TAKE_W, "recruit"),
    )

    def __init__(self, c: Circuit) -> None:
        p = c.parameters
        self._p, self._alpha, self._floor, self._model = p, c.alpha, c.floor, c.model
        self.parameters = {
            **{"excitatory.kappa": p.kappa, "recruiter.recruiting": 1},
            **{"recruiter.smallest": c.floor},
            "recruiter.least": (p.recruit_below + TIE) * (1 - c.alpha),
        }

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """Presentations are numbered in the circuit's life."""
        return {"recruiter.first_presentation": state.learned}

    def recruit(self, s: Any) -> None:
        """The same in NumPy: the next idle tile joins if no tile responds."""
        responding = answers(s.a, s.b, self._alpha, self._p.recruit_below, self._floor)
        s.wanted = s.learn and not responding.any()
        s.joins = next_idle(s.recruited) if s.wanted else None

    def after_recruit(self, s: Any) -> None:
        """Start the tile."""
        if s.joins is None:
            return
        new = np.arange(len(s.b)) == s.joins
        W = np.where(new[:, None], self._p.kappa * s.x, s.W)
        s.W = self._model.masked("feedforward", W)
        s.b = np.where(new, self._p.kappa * math.sqrt(self._alpha), s.b)
        s.recruited = np.where(new, s.learned, s.recruited)


class DriveOfNewTile(Part):
    """The drive of the tile that was recruited."""

    code = (
        ("feedforward", "after_recruit", SUM, "look"),
        ("excitatory", "after_recruit", DRIVE, "look_again"),
    )

    def after_recruit(self, s: Any) -> None:
        """The same in NumPy."""
        if s.joins is not None:
            new = np.arange(len(s.b)) == s.joins
            s.a = np.where(new, s.W @ s.x - s.sqrt_alpha * s.b, s.a)


def answers(
    a: FloatArray, b: FloatArray, alpha: float, recruit_below: float, floor: float
) -> NDArray[np.bool_]:
    """Which tiles respond above ``recruit_below``; one that faded below the floor does not."""
    least = (recruit_below + TIE) * (1 - alpha)
    return (a * math.sqrt(alpha) > least * b) & (a > floor)


def next_idle(recruited: NDArray[np.int64]) -> int | None:
    """The first tile that is idle, if there is one."""
    idle = np.flatnonzero(recruited == -1)
    return int(idle[0]) if idle.size else None
