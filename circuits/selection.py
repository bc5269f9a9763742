"""Which repeats hyperparameters are chosen on, and which are reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

SELECTION_SEED = 10_000
"""Seeds from here on are for choosing hyperparameters; those that are reported are below."""


def with_repeats(result: xr.Dataset) -> xr.Dataset:
    """A single run as one repeat; merged repeats as they are."""
    if "repeat" in result.dims:
        return result
    seed = int(result.attrs.get("seed", 0))
    return result.expand_dims("repeat").assign_coords(seed=("repeat", [seed]))


def reported(merged: xr.Dataset) -> xr.Dataset:
    """The repeats that are reported (all of them if none has a seed for that)."""
    return _those(merged, merged["seed"].to_numpy() < SELECTION_SEED)


def selection(merged: xr.Dataset) -> xr.Dataset:
    """The repeats that hyperparameters are chosen on (all of them if none are kept for that)."""
    return _those(merged, merged["seed"].to_numpy() >= SELECTION_SEED)


def _those(merged: xr.Dataset, wanted: Any) -> xr.Dataset:
    return merged.isel(repeat=np.flatnonzero(wanted)) if wanted.any() else merged


def chosen_values(merged: xr.Dataset, name: str, grid: str) -> xr.DataArray:
    """The value of the hyperparameter ``grid`` with the least error ``name``, for every board and
    number of labels: the mean over time and over the repeats kept for choosing."""
    error = selection(merged)[name]
    averaged = [dim for dim in error.dims if dim not in ("board", "n_labels", grid)]
    return error.mean(averaged).idxmin(grid)


def chosen_errors(merged: xr.Dataset, name: str, grid: str) -> xr.DataArray:
    """The errors ``name`` of the reported repeats at the values of ``grid`` chosen on others."""
    return reported(merged)[name].sel({grid: chosen_values(merged, name, grid)})
