"""How closely two solvers agree on one stream."""

from __future__ import annotations

import numpy as np
import xarray as xr

COMPARED = ("h", "u", "y", "W", "b", "w", "V")


def largest_differences(run: xr.Dataset, reference: xr.Dataset) -> dict[str, float]:
    """max |run - reference| of every variable that both hold, traces and snapshots included."""
    names = [
        name
        for name in run.data_vars
        if name in reference
        and str(name).removesuffix("_trace").removesuffix("_snapshots") in COMPARED
    ]
    return {
        str(name): float(np.abs(run[name].to_numpy() - reference[name].to_numpy()).max())
        for name in names
    }


def signs_agree(run: xr.Dataset, reference: xr.Dataset) -> bool:
    """Whether every predicted sign is the same."""
    return bool((np.sign(run["y"].to_numpy()) == np.sign(reference["y"].to_numpy())).all())
