"""What pictures of spikes share: colours and names of the groups of cells."""

from __future__ import annotations

from analysis.style import palette

UNITS = {"excitatory": "tile", "inhibitory": "interneuron", "readout": "readout"}
"""What the cells of a group make up."""

PLURALS = {"excitatory": "tiles", "inhibitory": "interneurons", "readout": "readouts"}

WINDOW = "0.9"
"""The shade of the time in which spikes count."""


def color_of(group: str) -> str:
    """The colour of a group's spikes."""
    return dict(zip(UNITS, palette(), strict=False))[group]
