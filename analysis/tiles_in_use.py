"""Which tiles of a result are in use, since when, and in which order they lie."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from analysis.measures import tile_centers, tile_order
from circuits.errors import InputError

Flags = NDArray[np.bool_]


def recruited_of(run: xr.Dataset) -> NDArray[np.int64]:
    """The presentation of the circuit's life that started each tile, -1 for one that is idle
    and -2 for one that a lesion has removed.

    A result that does not say so has all its tiles in use from the start.
    """
    if "recruited" not in run:
        return np.zeros(run.sizes["tile"], dtype=np.int64)
    stored = run["recruited"]
    if stored.dims != ("tile",) or stored.dtype.kind not in "iuf":
        raise InputError("this result does not say as one number per tile when it was recruited")
    return np.asarray(np.nan_to_num(stored.to_numpy(), nan=-1), dtype=np.int64)


def tiles_in_use(run: xr.Dataset) -> NDArray[np.intp]:
    """The tiles that a result ends with: those that are not idle."""
    return np.flatnonzero(recruited_of(run) >= 0)


def are_recruited(run: xr.Dataset) -> bool:
    """Whether tiles came into use one by one, or some never did: else there is nothing to tell."""
    return bool((recruited_of(run) != 0).any())


def in_use_at(run: xr.Dataset, number: int, b: ArrayLike | None = None) -> Flags:
    """Which tiles were in use during a presentation, counted in the circuit's life.

    A tile that moves (``recycle``) was in use before it did, and so was one that a lesion removed:
    the result holds no more than when it moved last, or that it is gone, but a tile that is in use
    has a bias ``b`` at the time.
    """
    recruited = recruited_of(run)
    found: Flags = (recruited >= 0) & (recruited <= number)
    return found if b is None else found | (recruited != -1) & (np.asarray(b) > 0)


def in_use_at_snapshots(run: xr.Dataset) -> Flags:
    """Which tiles were in use when each snapshot was taken: (snapshot, tile)."""
    learned, b = run["snapshot"].to_numpy(), run["b_snapshots"].to_numpy()
    rows = [in_use_at(run, int(n) - 1, row) for n, row in zip(learned, b, strict=True)]
    return np.array(rows).reshape(b.shape)


def tiles_in_order(
    run: xr.Dataset, position: ArrayLike | None = None, axis: int = 0
) -> NDArray[np.intp]:
    """The tiles in use, in the order of `analysis.measures.tile_order`."""
    used = tiles_in_use(run)
    if not used.size:
        raise InputError("no tile of this result is in use")
    return used[tile_order(tile_centers(run)[used], run["points"].to_numpy(), position, axis)]


def in_words(used: int, n_tiles: int) -> str:
    """How many tiles are in use.

    >>> in_words(25, 40), in_words(1, 1)
    ('25 of 40 tiles in use', '1 of 1 tile in use')
    """
    return f"{used} of {n_tiles} tile{'s' * (n_tiles != 1)} in use"
