"""What spikes say: their rows in a raster, intervals between them, and how far the rates that they
are counted as lie from the closed form.

Spiking cells have a finite slope G where the paper's rates integrate: with the drive scaled by the
``gain`` g of a presentation they settle where h = G [g a - V^T u]_+, u = V h, V = u h^T, at

    h = [a]_+/|[a]_+|,   |u|^2 = |[a]_+| - 1/(G g),   V = u h^T

(u and V in the units of the result, in which g is divided out). A drive g |[a]_+| of at most 1/G
leaves the inhibitory cells silent, and h = G g [a]_+.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from analysis.dynamics.common import check_presentation
from analysis.holdings import require
from analysis.theory import Target, spiking_of, target_of
from analysis.tiles_in_use import tiles_in_order
from circuits import reference
from circuits.errors import InputError
from circuits.lift import FloatArray
from circuits.spiking.trains import GROUPS

LEAST_INTERVALS = 4
"""Trains with fewer intervals say nothing about how regular a cell fires."""


def row_cells(run: xr.Dataset, group: str) -> NDArray[np.intp]:
    """The cells of a group in the order of a raster's rows, from the bottom.

    Excitatory cells are those of the tiles in use, tile by tile along the manifold where the result
    holds ``position``, else from left to right; others are in the order of their numbers.
    """
    cells = run.sizes[f"{group}_cell"]
    if group != "excitatory":
        return np.arange(cells)
    per_tile = spiking_of(run).cells
    if cells != per_tile * run.sizes["tile"]:
        raise InputError(
            f"this result says cells={per_tile} and holds {cells} excitatory cells for "
            f"{run.sizes['tile']} tiles: it was changed"
        )
    position = run["position"].to_numpy() if "position" in run else None
    tiles = tiles_in_order(run, position)
    return np.asarray((per_tile * tiles[:, None] + np.arange(per_tile)).ravel())


def rows_of(run: xr.Dataset, group: str, cells: NDArray[np.int64]) -> NDArray[np.intp]:
    """The rows, counted from the bottom, in which cells of a group stand (`row_cells`)."""
    order = row_cells(run, group)
    row = np.full(run.sizes[f"{group}_cell"], -1)
    row[order] = np.arange(len(order))
    if (row[cells] < 0).any():
        raise InputError("a tile that was never in use has spikes in this result: it was changed")
    return np.asarray(row[cells])


@dataclass(frozen=True)
class Spikes:
    """Spikes of a group, one number of each kind for every spike."""

    cell: NDArray[np.int64]
    presentation: NDArray[np.int64]
    """Place in the result, from 0."""
    step: NDArray[np.int64]
    """Step of the presentation, from 1."""

    @classmethod
    def of(cls, run: xr.Dataset, group: str) -> Spikes:
        """Those of a result of a run with ``record=("spikes",)``."""
        if group not in GROUPS:
            raise InputError(f"group must be one of {', '.join(GROUPS)}, got {group!r}")
        names = [f"{group}_spike_{name}" for name in ("cell", "presentation", "step")]
        require(run, names, "a picture of spikes")
        columns = np.array([run[name].to_numpy() for name in names], dtype=float)
        columns = columns[:, np.isfinite(columns).all(axis=0)]  # merged repeats differ in length
        columns[1] -= float(run["presentation"][0])
        tops = run.sizes[f"{group}_cell"], run.sizes["presentation"], spiking_of(run).n_steps + 1
        lows = np.array([[0], [0], [1]])
        if not ((columns >= lows) & (columns < np.array(tops)[:, None])).all():
            raise InputError(f"the {group} spikes of this result are not those of its cells")
        return cls(*columns.astype(np.int64))

    def among(self, chosen: NDArray[np.bool_]) -> Spikes:
        """Some of the spikes."""
        return Spikes(self.cell[chosen], self.presentation[chosen], self.step[chosen])


def interspike_intervals(times: ArrayLike) -> FloatArray:
    """Times between successive spikes of one cell, t_(i+1) - t_i, in the units of ``times``.

    >>> interspike_intervals([0.5, 0.1, 0.2]).round(3).tolist()
    [0.1, 0.3]
    """
    return np.diff(np.sort(np.asarray(times, dtype=float)))


def coefficients_of_variation(
    intervals: Iterable[ArrayLike], least: int = LEAST_INTERVALS
) -> FloatArray:
    """The coefficient of variation of each train's ``intervals``, std/mean: 0 where a cell fires
    like a clock, 1 of a Poisson train that is long; short ones look more regular than they are.

    Trains of fewer than ``least`` intervals are left out.

    >>> coefficients_of_variation([[1, 1, 1], [1, 3]], least=2).tolist()
    [0.0, 0.5]
    """
    trains = [np.asarray(train, dtype=float) for train in intervals]
    found = [train.std() / train.mean() for train in trains if len(train) >= max(least, 1)]
    return np.array(found, dtype=float)


def window_intervals(run: xr.Dataset, group: str = "excitatory") -> list[FloatArray]:
    """Intervals, in seconds, between the spikes of every cell in the window of every presentation;
    what precedes the window settles, and would make regular cells look irregular."""
    s, spikes = spiking_of(run), Spikes.of(run, group)
    spikes = spikes.among(spikes.step > s.n_steps - s.window_steps)
    order = np.lexsort((spikes.step, spikes.cell, spikes.presentation))
    train = (spikes.presentation * run.sizes[f"{group}_cell"] + spikes.cell)[order]
    ends = np.flatnonzero(np.diff(train)) + 1
    times = np.split(spikes.step[order] * s.dt_, ends)
    return [interspike_intervals(each) for each in times if len(each) > 1]


def poisson_bound(total: ArrayLike, cells: ArrayLike, rate: float, window: ArrayLike) -> FloatArray:
    """The error |h_spikes - h| to expect of independent Poisson cells, sqrt(sum(h)/(N r T)).

    Of N cells that fire at the rate r h_i for a time T, the mean count over r T has the variance
    h_i/(N r T). ``total`` is sum(h), ``cells`` N, ``rate`` r in Hz, ``window`` T in seconds.
    """
    per_rate = np.asarray(cells, dtype=float) * rate * np.asarray(window, dtype=float)
    return np.asarray(np.sqrt(np.asarray(total, dtype=float) / per_rate))


def rate_errors(h: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """|h - h*| of every row, and the same of the directions, |h/|h| - h*/|h*||.

    The direction of a row of zeros is zero.
    """
    counted, exact = (np.atleast_2d(np.asarray(rows, dtype=float)) for rows in (h, target))
    return _distances(counted, exact), _distances(_directions(counted), _directions(exact))


def _distances(rows: FloatArray, others: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(rows - others, axis=1))


def _directions(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0))


def spiking_target(run: xr.Dataset, presentation: int) -> Target:
    """Where the spiking cells of a presentation lead on average (see the module), for weights that
    are the same for all the cells of a unit; the direction of u is that of its start."""
    s, place = spiking_of(run), check_presentation(run, presentation)
    require(run, ("gain",), "the closed form of spiking cells")
    target, gain = target_of(run, place), float(run["gain"][place])
    scaled = gain * target.size
    if not scaled > 0:
        return target
    u = math.sqrt(max(target.size - 1 / (s.slope * gain), 0.0)) * reference.rest_direction(
        len(target.u)
    )
    h = min(1.0, s.slope * scaled) * target.h
    return replace(target, h=h, u=u, V=reference.outer(u, h))


def closed_forms(run: xr.Dataset, most: int) -> tuple[NDArray[np.intp], FloatArray]:
    """Up to ``most`` presentations, spread over those whose closed form can be known, and h there:
    places in the result, and rates (place, tile)."""
    require(run, ("W_snapshots", "b_snapshots", "w_snapshots"), "the closed form")
    taken = run["snapshot_presentation"].to_numpy()
    count = min(most, len(taken))
    places = taken[np.unique(np.linspace(0, len(taken) - 1, count).round().astype(int))]
    return places, np.array([spiking_target(run, int(t)).h for t in places])
