"""What pictures of spikes share: colours and names of the groups of cells."""

from __future__ import annotations

import xarray as xr

from analysis.style import palette
from analysis.theory import spiking_of

UNITS = {"excitatory": "tile", "inhibitory": "interneuron", "readout": "readout"}
"""What the cells of a group make up."""

WINDOW = "0.9"
"""The shade of the time in which spikes count."""


def cells_per_unit(run: xr.Dataset, group: str) -> int:
    """How many cells a tile, an interneuron or a readout of a result is made of."""
    s = spiking_of(run)
    return s.readout_cells if group == "readout" else s.cells


def color_of(group: str) -> str:
    """The colour of a group's spikes."""
    return dict(zip(UNITS, palette(), strict=False))[group]
