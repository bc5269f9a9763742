"""Which tiles are in use: all from the start, unless points recruit them. Idle tiles are silent."""

from __future__ import annotations

from typing import Any

import numpy as np

from circuits.assembly.part import Part

IN_USE = """
recruited : integer                # the presentation that started the tile, -1: it is idle
in_use = int(recruited >= 0) : 1   # 1: the tile is not idle
h_start = where(recruited >= 0, h_rest, 0) : 1 # idle tiles rest at zero
"""


class Tiles(Part):
    """Tiles that are all in use from the start."""

    equations = {"excitatory": IN_USE}
    fields = {"excitatory.recruited": "recruited"}

    def before_restart(self, s: Any) -> None:
        """Idle tiles rest at zero."""
        s.h_start = np.where(s.recruited >= 0, s.h_start, 0.0)
