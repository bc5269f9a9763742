"""How regular cells fire: intervals between spikes, and their coefficient of variation."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.firing.common import color_of
from analysis.firing.spikes import (
    LEAST_INTERVALS,
    coefficients_of_variation,
    window_intervals,
)
from analysis.style import LABEL, figure_style
from analysis.theory import spiking_of
from circuits.lift import FloatArray

COMPARED = ("excitatory", "inhibitory")

MOST_BINS = 60


@figure_style()
def plot_intervals(run: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Histogram of the intervals between the spikes of a cell in the window, t_(i+1) - t_i, of all
    excitatory and of all inhibitory cells. Intervals are whole steps, and bars are as well."""
    found = {group: _joined(window_intervals(run, group)) for group in COMPARED}
    ax = ax or plt.figure(figsize=(5, 3.6)).add_subplot()
    s = spiking_of(run)
    width = max(1, int(np.ceil(s.window_steps / MOST_BINS)))
    edges = [1e3 * s.dt_ * (width * n + 0.5) for n in range(s.window_steps // width + 2)]
    for group, intervals in found.items():
        _histogram(ax, 1e3 * intervals, edges, group, lambda v: f"median {np.median(v):.1f} ms")
    ax.set(xlabel="interval between spikes in the window (ms)", ylabel="% of intervals")
    ax.set_xlim(0, 1e3 * s.window_)
    return ax


@figure_style()
def plot_variation(run: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Histogram of the coefficients of variation of intervals, std/mean (see
    `coefficients_of_variation`), one for each cell and presentation with enough of them."""
    found = {group: coefficients_of_variation(window_intervals(run, group)) for group in COMPARED}
    ax = ax or plt.figure(figsize=(5, 3.6)).add_subplot()
    edges = [n / 20 for n in range(41)]
    for group, values in found.items():
        _histogram(ax, values, edges, group, lambda v: f"mean {v.mean():.2f}")
    ax.axvline(1, color=LABEL, ls=":", label="a long Poisson train")
    ax.set_xlabel("coefficient of variation of a cell's intervals")
    ax.set_ylabel(f"% of trains with at least {LEAST_INTERVALS} intervals")
    most = max((float(values.max(initial=0)) for values in found.values()), default=0.0)
    ax.set_xlim(0, float(np.clip(most, 1.1, edges[-1])))
    return ax


def _joined(trains: list[FloatArray]) -> FloatArray:
    return np.concatenate([np.empty(0), *trains])


def _histogram(
    ax: Axes, values: FloatArray, edges: list[float], group: str, say: Callable[[FloatArray], str]
) -> None:
    """Shares in per cent of all values, those beyond the last edge in the last bar."""
    if not values.size:
        ax.plot([], [], color=color_of(group), label=f"{group}: too few spikes")
        return
    weights = np.full(len(values), 100 / len(values))
    inside = np.minimum(values, edges[-1])
    ax.hist(
        inside, edges, weights=weights, histtype="step", lw=1.5, color=color_of(group),
        label=f"{group}: {say(values)}",
    )  # fmt: skip


@figure_style()
def figure_intervals(run: xr.Dataset) -> Figure:
    """Intervals and their coefficients of variation, with a title."""
    fig = plt.figure(figsize=(10, 4.2))
    left, right = fig.subplots(1, 2)
    plot_intervals(run, left)
    plot_variation(run, right)
    for ax in (left, right):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    fig.suptitle("How regular cells fire", fontweight="bold")
    return fig
