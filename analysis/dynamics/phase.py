"""Excitation against inhibition through a presentation."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.dynamics.common import chosen_presentations, number_of, target_or_reason
from analysis.holdings import require
from analysis.style import LABEL, figure_style, legend_beside, palette
from analysis.theory import Target, start_of
from circuits.lift import FloatArray


@figure_style()
def plot_phase(
    run: xr.Dataset, presentations: Iterable[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Phase portrait: |h| against |u|, from the start (circle) to the fixed point (star).

    The fixed point is (1, sqrt(A)) by the closed form where the result holds snapshots, else the
    state after the last step.
    """
    require(run, ("h_trace", "u_trace"), "a phase portrait")
    chosen = chosen_presentations(run, presentations, 5)
    ax = ax or plt.figure().add_subplot()
    colors = palette()
    exact = True
    for place, t in enumerate(chosen):
        color = colors[place % len(colors)]
        path = [np.linalg.norm(run[f"{name}_trace"][t].to_numpy(), axis=1) for name in "hu"]
        target, _ = target_or_reason(run, t)
        first = [float(np.linalg.norm(rates)) for rates in _start(run, t, target)]
        exact = exact and target is not None
        end = (
            [float(np.linalg.norm(rates)) for rates in (target.h, target.u)]
            if target
            else [norm[-1] for norm in path]
        )
        ax.plot(
            [first[0], *path[0]],
            [first[1], *path[1]],
            color=color,
            label=f"presentation {number_of(run, t)}",
        )
        ax.plot(*first, "o", mfc="white", mec=LABEL, ms=7, zorder=4)
        ax.plot(*end, "*", color=color, mec=LABEL, mew=0.6, ms=13, zorder=5)
    handles, labels = ax.get_legend_handles_labels()
    handles += [
        Line2D([], [], ls="", marker="o", mfc="white", mec=LABEL, ms=7),
        Line2D([], [], ls="", marker="*", color="white", mec=LABEL, ms=11),
    ]
    labels += ["start", "fixed point (closed form)" if exact else "last state or closed form"]
    legend_beside(ax, handles, labels)
    ax.set(xlabel="excitation |h|", ylabel="inhibition |u|")
    return ax


def _start(run: xr.Dataset, presentation: int, target: Target | None) -> list[FloatArray]:
    """h and u as the presentation began where that is known, else after its first step."""
    if target is not None and (begun := start_of(run, presentation, target)) is not None:
        return list(begun[:2])
    return [run[f"{name}_trace"][presentation, 0].to_numpy() for name in "hu"]


@figure_style()
def figure_phase(run: xr.Dataset, presentations: Iterable[int] | None = None) -> Figure:
    """The phase portrait with a title."""
    fig = plt.figure(figsize=(7.5, 4.4))
    plot_phase(run, presentations, fig.add_subplot())
    fig.suptitle("Excitation and inhibition spiral into the fixed point", fontweight="bold")
    return fig
