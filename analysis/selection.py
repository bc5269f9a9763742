"""Which repeats are shown, which are reported, and which hyperparameters are chosen on."""

from __future__ import annotations

from collections.abc import Iterable
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


def first_repeat(result: xr.Dataset) -> xr.Dataset:
    """The first of merged repeats; a single run is its own."""
    return result.isel(repeat=0, missing_dims="ignore")


def seeds_of(result: xr.Dataset) -> list[int]:
    """Seeds of the repeats; a result that does not know its seed has none."""
    if "seed" in result.coords:
        return [int(seed) for seed in np.atleast_1d(result["seed"].to_numpy())]
    return [int(result.attrs["seed"])] if "seed" in result.attrs else []


def in_words(numbers: Iterable[int]) -> str:
    """Seeds in few words: 0 to 3, 7."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = (", ".join(map(str, run)) if len(run) < 3 else f"{run[0]} to {run[-1]}" for run in runs)
    return ", ".join(words) or "unknown"


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
    error = selection(merged[[name]])[name]
    averaged = [dim for dim in error.dims if dim not in ("board", "n_labels", grid)]
    return error.mean(averaged).idxmin(grid)


def chosen_errors(merged: xr.Dataset, name: str, grid: str | None) -> xr.DataArray:
    """The errors ``name`` of the reported repeats at the values of ``grid`` chosen on others; a
    method without a grid has nothing to choose."""
    errors = reported(merged[[name]])[name]
    return errors.sel({grid: chosen_values(merged, name, grid)}) if grid else errors
