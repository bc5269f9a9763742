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
from analysis.kinds import require
from analysis.style import LABEL, figure_style, legend_beside, palette
from analysis.theory import finite_of, parameters_of
from circuits import rules
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
        first = [float(np.linalg.norm(rates)) for rates in _start(run, t)]
        target, _ = target_or_reason(run, t)
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


def _start(run: xr.Dataset, presentation: int) -> tuple[FloatArray, FloatArray]:
    """h and u as the presentation began: at rest, carried over, or the first that is known."""
    p = parameters_of(run)
    if p.reset:
        h, u, _ = rules.rest(p.n_tiles, p.n_interneurons, finite_of(run, "gain"))
        return h, u
    place = (presentation - 1, -1) if presentation else (0, 0)
    h, u = (run[f"{name}_trace"][place].to_numpy() for name in "hu")
    return h, u


@figure_style()
def figure_phase(run: xr.Dataset, presentations: Iterable[int] | None = None) -> Figure:
    """The phase portrait with a title."""
    fig = plt.figure(figsize=(7.5, 4.4))
    plot_phase(run, presentations, fig.add_subplot())
    fig.suptitle("Excitation and inhibition spiral into the fixed point", fontweight="bold")
    return fig
