"""Spikes of a result, as Brian2's SpikeMonitor gives them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from circuits.errors import InputError, shown
from circuits.lift import FloatArray

if TYPE_CHECKING:
    import xarray as xr

GROUPS = ("excitatory", "inhibitory", "readout")
"""Groups of cells that fire."""


def spike_trains(
    run: xr.Dataset, group: str = "excitatory", *, presentation: int | None = None
) -> dict[int, FloatArray]:
    """Spike times in seconds of every cell of a group: ``{cell: times}``, silent cells included.

    ``presentation`` (as in the result's coordinate) takes the spikes of that one alone, with times
    since it began. The result must come from a run with ``record=("spikes",)``.
    """
    if group not in GROUPS:
        raise InputError(f"group must be one of {', '.join(GROUPS)}, got {shown(group)}")
    if f"{group}_spike_time" not in run:
        raise InputError("the result has no spikes: run the circuit with record=('spikes',)")
    times = run[f"{group}_spike_time"].to_numpy()
    cells = run[f"{group}_spike_cell"].to_numpy()
    if presentation is not None:
        if presentation not in run.presentation:
            first, last = int(run.presentation[0]), int(run.presentation[-1])
            raise InputError(
                f"presentation must be from {first} to {last}, got {shown(presentation)}"
            )
        chosen = run[f"{group}_spike_presentation"].to_numpy() == presentation
        steps = run[f"{group}_spike_step"].to_numpy()
        times, cells = steps[chosen] * float(run.attrs["dt"]), cells[chosen]
    order = np.lexsort((times, cells))
    ends = np.searchsorted(cells[order], np.arange(run.sizes[f"{group}_cell"] + 1))
    return {
        cell: times[order][start:stop]
        for cell, (start, stop) in enumerate(itertools.pairwise(ends))
    }
