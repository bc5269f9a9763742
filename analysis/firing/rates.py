"""Spikes counted as rates: against the closed form, and in Hz."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from analysis.firing.common import color_of
from analysis.firing.spikes import closed_forms, poisson_bound, rate_errors
from analysis.holdings import require
from analysis.style import LABEL, figure_style, palette
from analysis.theory import spiking_of
from circuits.errors import InputError
from circuits.lift import FloatArray

MOST_COMPARED = 200
"""Presentations whose closed form is computed."""

MOST_BINS = 40


@figure_style()
def plot_counted_rates(
    run: xr.Dataset, ax: Axes | None = None, exact: ArrayLike | None = None
) -> Axes:
    """Rates h counted from spikes against those of the closed form, [a]_+/|[a]_+| of the weights
    that each presentation began with: a dot per tile and presentation, and a line where they agree.

    Needs snapshots; up to ``MOST_COMPARED`` presentations are shown. ``exact``, rates
    (presentation, tile) of another circuit on the same stream, stands in for the closed form.
    """
    require(run, ("h",), "a plot of counted rates")
    h = run["h"].to_numpy()
    if exact is None:
        places, target = closed_forms(run, MOST_COMPARED)
        h = h[places]
    else:
        target = np.asarray(exact, dtype=float)
    if h.shape != target.shape:
        raise InputError(f"exact must have the shape {h.shape} of h, got {target.shape}")
    ax = ax or plt.figure(figsize=(5, 5)).add_subplot()
    shown = (h > 0) | (target > 0)
    top = 1.05 * max(1.0, float(h.max()), float(target.max()))
    ax.plot([0, top], [0, top], color=LABEL, lw=0.9, ls="--", label="equal", zorder=1)
    name = f"tile in one of {len(h)} presentations"
    look: dict[str, Any] = {"ls": "", "marker": ".", "ms": 5, "alpha": 0.35, "mew": 0}
    ax.plot(target[shown], h[shown], color=color_of("excitatory"), label=name, zorder=2, **look)
    ax.set(xlim=(-0.03 * top, top), ylim=(-0.03 * top, top), aspect="equal")
    ax.set(xlabel="rate h by the closed form", ylabel="rate h counted from spikes in the window")
    ax.set_title(_agreement(h, target), fontweight="normal", fontsize=9)
    return ax


def _agreement(h: FloatArray, target: FloatArray) -> str:
    """How far rates lie apart, over the points that some tile covers."""
    covered = target.any(axis=1)
    if not covered.any():
        return "no tile covers any of these points"
    errors, directions = rate_errors(h[covered], target[covered])
    return f"mean |h − h*| = {errors.mean():.3f}, of directions {directions.mean():.3f}"


@figure_style()
def figure_counted_rates(run: xr.Dataset) -> Figure:
    """Counted rates against the closed form, beside a histogram of the errors, with a title."""
    fig = plt.figure(figsize=(10.5, 4.8))
    left, right = fig.subplots(1, 2)
    plot_counted_rates(run, left)
    places, target = closed_forms(run, MOST_COMPARED)
    covered = target.any(axis=1)
    colors = palette()
    if covered.any():
        h, s = run["h"].to_numpy()[places][covered], spiking_of(run)
        found = rate_errors(h, target[covered])
        top = max(float(np.quantile(np.concatenate(found), 0.995)), 1e-3)
        bins = np.linspace(0, top, 31)
        for errors, name, color in zip(found, ("|h − h*|", "of directions"), colors, strict=False):
            right.hist(errors, bins, histtype="step", lw=1.5, color=color, label=name)
        total = float(target[covered].sum(axis=1).mean())
        bound = float(poisson_bound(total, s.cells, s.rate_h_, s.window_))
        right.axvline(bound, color=LABEL, ls=":", label="Poisson cells: √(Σh/(N r T))")
    right.set(xlabel="error of a presentation", ylabel="presentations")
    for ax in (left, right):
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    fig.suptitle("Rates counted from spikes, and the closed form", fontweight="bold")
    return fig


@figure_style()
def plot_firing_rates(run: xr.Dataset, group: str = "excitatory", ax: Axes | None = None) -> Axes:
    """Histogram of the firing rates of the cells of a group, in Hz, over the presentations that
    some tile answered: of excitatory cells those that respond, of others all.

    A cell fires a whole number of times in the window T: bars are 1/T wide, or a multiple of it.
    """
    require(run, (f"{group}_hz", "h"), "a histogram of firing rates")
    answered = run["h"].to_numpy().any(axis=1)
    rates = np.abs(run[f"{group}_hz"].to_numpy()[answered]).ravel()
    if not np.isfinite(rates).all():
        raise InputError(f"the {group} firing rates of this result are not all finite")
    if group == "excitatory":
        rates = rates[rates > 0]
    if not rates.size:
        raise InputError(f"no {group} cell of this result fires in the window")
    ax = ax or plt.figure(figsize=(5, 3.6)).add_subplot()
    # The largest count decides how many of them share a bar.
    window = spiking_of(run).window_
    most = round(rates.max() * window)
    width = most // MOST_BINS + 1
    edges = (width * np.arange(most // width + 2) - 0.5) / window
    ax.hist(
        rates, edges, weights=np.full(len(rates), 100 / len(rates)), color=color_of(group),
        ec="white", lw=0.5,
    )  # fmt: skip
    high = float(np.quantile(rates, 0.99))
    ax.axvline(rates.mean(), color=LABEL, ls="--", label=f"mean {rates.mean():.0f} Hz")
    ax.axvline(high, color=LABEL, ls=":", label=f"99 % quantile {high:.0f} Hz")
    ax.set(xlabel=f"firing rate in the window (Hz), at most {rates.max():.0f}")
    ax.set_ylabel("% of cells, over all presentations")
    return ax


@figure_style()
def figure_firing_rates(run: xr.Dataset) -> Figure:
    """Firing rates of excitatory and inhibitory cells, with a title."""
    fig = plt.figure(figsize=(10, 4))
    names = {"excitatory": "excitatory cells that respond", "inhibitory": "inhibitory cells"}
    for (group, title), ax in zip(names.items(), fig.subplots(1, 2), strict=True):
        plot_firing_rates(run, group, ax)
        ax.set_title(title)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    fig.suptitle("How fast cells fire", fontweight="bold")
    return fig
