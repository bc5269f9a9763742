"""What plots of the dynamics share: places in a result, times, and the closed form."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from analysis.theory import Target, target_of
from circuits.errors import InputError
from circuits.lift import FloatArray


def check_presentation(run: xr.Dataset, presentation: int) -> int:
    """The place of a presentation in a result, counted from 0."""
    count = run.sizes["presentation"]
    if not -count <= presentation < count:
        raise InputError(
            f"there is no presentation {presentation}: this result holds 0 to {count - 1}"
        )
    return presentation % count


def check_readout(run: xr.Dataset, readout: int) -> int:
    """A readout that a result holds."""
    if not 0 <= readout < run.sizes["readout"]:
        raise InputError(f"there is no readout {readout}: there are {run.sizes['readout']}")
    return readout


def chosen_presentations(
    run: xr.Dataset, presentations: Iterable[int] | None, count: int
) -> list[int]:
    """The presentations asked for; else ``count`` spread over the later half of the stream."""
    if presentations is not None:
        chosen = [check_presentation(run, int(t)) for t in presentations]
        if not chosen:
            raise InputError("no presentation was chosen")
        return chosen
    n = run.sizes["presentation"]
    return sorted({int(t) for t in np.linspace(n - 1, n // 2, count)})


def number_of(run: xr.Dataset, presentation: int) -> int:
    """The number of a presentation in the circuit's life."""
    return int(run["presentation"][presentation])


def step_times(run: xr.Dataset) -> FloatArray:
    """Milliseconds since the presentation began, after each step."""
    return np.asarray(1e3 * run["time"].to_numpy())


def target_or_reason(run: xr.Dataset, presentation: int) -> tuple[Target | None, str]:
    """The closed form, or why it cannot be known."""
    try:
        return target_of(run, presentation), ""
    except InputError as error:
        return None, str(error)
