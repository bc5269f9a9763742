"""The fast synapses of spiking cells through a presentation."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.dynamics.common import (
    check_presentation,
    chosen_presentations,
    number_of,
    step_times,
)
from analysis.dynamics.settling import loudest
from analysis.firing.common import WINDOW
from analysis.firing.spikes import spiking_target
from analysis.holdings import require
from analysis.style import GREY, figure_style, legend_beside, palette
from analysis.theory import spiking_of
from analysis.tiles_in_use import in_use_at
from circuits.errors import InputError


@figure_style()
def plot_lateral(
    run: xr.Dataset, presentation: int = -1, interneuron: int = 0, ax: Axes | None = None
) -> Axes:
    """V of one interneuron through a presentation, a line per tile, and the u h^T that it settles
    on by the closed form of spiking cells (dashed; see `spiking_target`) where that can be known.

    Tiles that respond most have a colour, others are grey; spikes count in the shaded window.
    """
    require(run, ("V_trace", "h", "gain"), "a plot of V over a presentation")
    place = check_presentation(run, presentation)
    if not 0 <= interneuron < run.sizes["interneuron"]:
        raise InputError(
            f"there is no interneuron {interneuron}: there are {run.sizes['interneuron']}"
        )
    trace, s = run["V_trace"][place, :, interneuron].to_numpy(), spiking_of(run)
    try:
        goal = spiking_target(run, place).V[interneuron]
    except InputError:
        goal = None
    ax = ax or plt.figure().add_subplot()
    times = step_times(run)
    ax.axvspan(times[-1] - 1e3 * s.window_, times[-1], color=WINDOW, lw=0, zorder=0)
    colors = dict(zip(loudest(run, place), palette(), strict=False))
    used = np.flatnonzero(in_use_at(run, number_of(run, place)))
    for tile in [*(int(tile) for tile in used if tile not in colors), *colors]:
        color, chosen = colors.get(tile, GREY), tile in colors
        label = f"tile {tile}" if chosen else None
        ax.plot(times, trace[:, tile], color=color, lw=1.2 if chosen else 0.6, label=label)
        if goal is not None and chosen:
            ax.axhline(goal[tile], color=color, lw=1, ls="--", zorder=1)
    ax.set(xlabel="time in presentation (ms)", ylabel=f"V of interneuron {interneuron}")
    ax.set_xlim(0, times[-1])
    ax.ticklabel_format(axis="y", scilimits=(-1, 3))
    return ax


@figure_style()
def figure_lateral(run: xr.Dataset, presentation: int | None = None) -> Figure:
    """V of every interneuron through a presentation, of the last by default, with a title."""
    place = chosen_presentations(run, None if presentation is None else [presentation], 1)[0]
    count = min(run.sizes["interneuron"], 4)
    fig = plt.figure(figsize=(10, 2.0 + 1.5 * count))
    axes = fig.subplots(count, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for interneuron, ax in enumerate(axes):
        plot_lateral(run, place, interneuron, ax)
        ax.label_outer()
        ax.set_ylabel(f"V, interneuron {interneuron}")
    handles, labels = axes[0].get_legend_handles_labels()
    if any(line.get_linestyle() == "--" for line in axes[0].lines):
        handles.append(Line2D([], [], color="0.3", ls="--", lw=1))
        labels.append("closed form u hᵀ")
    if handles:
        legend_beside(axes[0], handles, labels)
    some = f" (the first {count} interneurons)" if count < run.sizes["interneuron"] else ""
    title = f"Fast synapses in presentation {number_of(run, place)}{some}"
    fig.suptitle(title, fontweight="bold")
    return fig
