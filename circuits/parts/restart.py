"""How h, u and V begin a presentation: at rest, or where the last one left them.

At rest |h| = 1, V = u h^T, and |u|^2 is the usual size of the drive. From u = 0 and V = 0
inhibition would never start, so u and V that carry over are at least a share of their rest values:

    u <- max(kept u, SPARK u_start)         V <- max(kept V, SPARK u_start h_start^T)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from circuits.assembly.part import Part
from circuits.lift import FloatArray

SPARK = 0.5
"""Share of their values at rest below which u and V do not start a presentation: from half of them
they settle within the steps of a presentation, from a tenth only to 2e-7."""


class Restart(Part):
    """Every presentation starts at rest."""

    code = (
        ("excitatory", "restart", "h = h_start"),
        ("inhibitory", "restart", "u = u_start"),
        ("lateral", "restart", "V = u_start_post*h_start_pre"),
    )

    def restart(self, s: Any) -> None:
        """The same in NumPy."""
        s.h, s.u = s.h_start, s.u_start
        s.V = s.u_start[:, None] * s.h_start


class CarryOver(Part):
    """A presentation starts where the last one ended."""

    equations = {"inhibitory": "kept = 1.0 : 1    # what u and V are multiplied by"}
    code = (
        ("inhibitory", "restart", f"u = clip(kept*u, {SPARK}*u_start, inf)"),
        ("lateral", "restart", f"V = clip(kept_post*V, {SPARK}*u_start_post*h_start_pre, inf)"),
    )

    def restart(self, s: Any) -> None:
        """The same in NumPy."""
        rest = s.u_start[:, None] * s.h_start
        s.u, s.V = carry_over(s.kept * s.u, s.kept * s.V, s.u_start, rest)


def carry_over(
    u: FloatArray, V: FloatArray, rest_u: FloatArray, rest_V: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """u and V that carry over, with a spark of what they are at rest."""
    return np.maximum(u, SPARK * rest_u), np.maximum(V, SPARK * rest_V)


class Remembered(Part):
    """The rates before the last step, which tell whether they have settled."""

    equations = {
        "excitatory": "h_before : 1    # h before the last step",
        "inhibitory": "u_before : 1    # u before the last step",
    }
    code = (
        ("excitatory", "start", "h_before = h", "remember"),
        ("inhibitory", "start", "u_before = u", "remember"),
    )
