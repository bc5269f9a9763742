"""Spikes one by one: of one presentation, and of many along the manifold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from analysis.dynamics.common import check_presentation, chosen_presentations, number_of
from analysis.firing.common import UNITS, WINDOW, cells_per_unit, color_of
from analysis.firing.spikes import Spikes, row_cells, rows_of
from analysis.style import figure_style, whole_numbers
from analysis.theory import spiking_of
from analysis.tiles_in_use import are_recruited, in_words
from circuits.errors import InputError
from circuits.spiking.trains import GROUPS

PANELS = GROUPS[::-1]
"""Groups from the top: what comes in enters at the bottom."""

HEIGHTS = {"readout": 1.4, "inhibitory": 1.0, "excitatory": 3.2}

SHOWN_ALONG = 60
"""Presentations that are drawn beside each other if nobody says which."""

TICK, SHORTEST = 0.42, 1 / 200
"""Half the height of a spike in rows, and, where those are many, as a share of the axes."""


@figure_style()
def plot_spikes(
    run: xr.Dataset, presentation: int = -1, axes: Sequence[Axes] | None = None
) -> NDArray[Any]:
    """Raster of one presentation: a row per cell, a tick per spike; readout, inhibitory and
    excitatory cells in three axes.

    Excitatory rows are ordered as in `row_cells`. Spikes count as rates in the shaded window.
    """
    spikes = {group: Spikes.of(run, group) for group in PANELS}
    place = check_presentation(run, presentation)
    s, rows = spiking_of(run), {group: len(row_cells(run, group)) for group in PANELS}
    axes = _panels(plt.figure(figsize=(7, 6))) if axes is None else axes
    if len(axes) != len(PANELS):
        raise InputError(f"a raster needs {len(PANELS)} axes, got {len(axes)}")
    for group, ax in zip(PANELS, axes, strict=True):
        found = spikes[group].among(spikes[group].presentation == place)
        # A spike has the time at which its step ends: half a step more takes in those that count.
        window = s.n_steps - s.window_steps, s.n_steps
        begin, end = (1e3 * s.dt_ * (steps + 0.5) for steps in window)
        ax.axvspan(begin, end, color=WINDOW, lw=0, zorder=0)
        at = rows_of(run, group, found.cell)
        _draw(ax, 1e3 * s.dt_ * found.step, at, rows[group], color_of(group))
        ax.set_xlim(0, end)
        ax.set_ylabel(_row_name(run, group, rows[group]))
    axes[-1].set_xlabel("time in presentation (ms)")
    return np.array(axes, dtype=object)


def _panels(fig: Figure) -> list[Axes]:
    heights = [HEIGHTS[group] for group in PANELS]
    return list(fig.subplots(len(PANELS), 1, sharex=True, height_ratios=heights))


def _draw(
    ax: Axes, times: Any, at: NDArray[Any], rows: int, color: str, width: float = 1.1
) -> None:
    """A tick for every spike, in its row."""
    half = max(TICK, SHORTEST * rows)
    ax.vlines(times, at - half, at + half, color=color, lw=width, rasterized=True)
    ax.set_ylim(-0.75, rows - 0.25)
    whole_numbers(ax.yaxis)


def _row_name(run: xr.Dataset, group: str, rows: int) -> str:
    per_unit, unit = cells_per_unit(run, group), UNITS[group]
    name = f"{unit} cell" if per_unit > 1 else unit
    if group != "excitatory":
        return name
    along = "ordered along the manifold" if "position" in run else "from left to right"
    used = ""
    if are_recruited(run):
        used = f"\n({in_words(rows // per_unit, run.sizes['tile'])})"
    return f"{name}, {along}{used}"


@figure_style()
def figure_spikes(run: xr.Dataset, presentation: int | None = None) -> Figure:
    """The raster of a presentation, of the last by default, with a title."""
    place = chosen_presentations(run, None if presentation is None else [presentation], 1)[0]
    fig = plt.figure(figsize=(9, 6.4))
    axes = _panels(fig)
    plot_spikes(run, place, axes)
    handle = [Patch(color=WINDOW)]
    fig.legend(handle, ["spikes count as rates h, u, y"], loc="outside lower center")
    fig.suptitle(f"Spikes of presentation {number_of(run, place)}", fontweight="bold")
    return fig


@figure_style()
def plot_spikes_along(
    run: xr.Dataset, presentations: Iterable[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Raster of the excitatory cells over many presentations, put in the order of the manifold
    where the result holds ``position``, else in that of time.

    By default up to ``SHOWN_ALONG`` from the later half of the stream, spread over the manifold.
    Each takes up a column, through which its time runs from left to right.
    """
    spikes, rows = Spikes.of(run, "excitatory"), len(row_cells(run, "excitatory"))
    chosen, n_steps = _along(run, presentations), spiking_of(run).n_steps
    ax = ax or plt.figure(figsize=(9, 4.6)).add_subplot()
    column = np.full(run.sizes["presentation"], -1)
    column[chosen] = np.arange(len(chosen))
    found = spikes.among(column[spikes.presentation] >= 0)
    times = column[found.presentation] + (found.step - 0.5) / n_steps - 0.5
    for place in range(1, len(chosen), 2):  # every other column, to tell them apart
        ax.axvspan(place - 0.5, place + 0.5, color="0.95", lw=0, zorder=0)
    at = rows_of(run, "excitatory", found.cell)
    _draw(ax, times, at, rows, color_of("excitatory"), width=0.7)
    ax.set_xlim(-0.5, len(chosen) - 0.5)
    duration = 1e3 * spiking_of(run).presentation_
    order = "along the manifold" if "position" in run else "in time"
    ax.set_xlabel(f"place among {len(chosen)} presentations {order}, of {duration:g} ms each")
    ax.set_ylabel(_row_name(run, "excitatory", rows))
    whole_numbers(ax.xaxis)
    return ax


def _along(run: xr.Dataset, presentations: Iterable[int] | None) -> NDArray[np.intp]:
    """Places of the presentations to show, from left to right."""
    count = run.sizes["presentation"]
    later = range(count // 2 if count > SHOWN_ALONG else 0, count)
    chosen = np.array(
        chosen_presentations(run, later if presentations is None else presentations, 1)
    )
    if "position" in run:
        position = run["position"].to_numpy()[chosen]
        chosen = chosen[np.argsort(position, kind="stable")]
    if presentations is None and len(chosen) > SHOWN_ALONG:
        chosen = chosen[np.linspace(0, len(chosen) - 1, SHOWN_ALONG).round().astype(int)]
    return chosen


@figure_style()
def figure_spikes_along(run: xr.Dataset) -> Figure:
    """The raster of many presentations, with a title."""
    fig = plt.figure(figsize=(10, 4.8))
    plot_spikes_along(run, ax=fig.add_subplot())
    fig.suptitle("Spikes of the tiles along the manifold", fontweight="bold")
    return fig
