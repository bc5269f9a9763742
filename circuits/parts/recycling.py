"""Recycling: where no tile is idle, the least used one moves to the point, and forgets its w.

The least used tile is that with the smallest b; of several, the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from circuits.assembly.part import Part
from circuits.lift import FloatArray
from circuits.parts.recruiting import WANTED

RANK = (
    "rank_post = int((turn_pre >= 0) and "
    "((b_pre < b_post) or ((b_pre == b_post) and (i_pre < i_post)))) : 1 (summed)"
)
LEAST_USED = f"({WANTED}) and (used >= available) and (turn >= 0) and (rank == 0)"


class Recycling(Part):
    """What it adds to `circuits.parts.recruiting`."""

    equations = {"excitatory": "rank : 1    # tiles with a smaller b", "competition": RANK}
    synapses = {"competition": ("excitatory", "excitatory")}
    summed = {"competition.rank_post": "recruit"}
    code = (
        ("excitatory", "recruit", f"joins = int({LEAST_USED} or (joins > 0))", "recycle"),
        ("classifier", "after_recruit", "w = where(joins_pre > 0, 0, w)", "recruit"),
    )

    def recruit(self, s: Any) -> None:
        """The same in NumPy."""
        if s.wanted and s.joins is None:
            s.joins = least_used(s.b, s.recruited)

    def after_recruit(self, s: Any) -> None:
        """The tile forgets its w."""
        if s.joins is not None:
            s.w = np.where(np.arange(len(s.b)) == s.joins, 0.0, s.w)


def least_used(b: FloatArray, recruited: NDArray[np.int64]) -> int:
    """The tile with the smallest b, of those that no lesion has removed."""
    return int(np.argmin(np.where(recruited >= -1, b, np.inf)))
