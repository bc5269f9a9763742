"""What firing costs. Made from the merged repeats of a result with errors of the rates of spikes,
accuracies on two moons and errors on a chessboard, of the spiking twin and of the rate circuit."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.firing.deviations import plot_error_by_cells
from analysis.selection import reported, with_repeats
from analysis.style import GREY, LABEL, figure_style, palette
from circuits.lift import FloatArray

REGULAR = {"one cell": "one cell\n250 ms", "four cells": "four cells\n250 ms"}
REGULAR |= {"twice as long": "one cell\n500 ms", "four times as long": "one cell\n1000 ms"}
"""Integrate-and-fire cells, as the axis names them."""

V_RULES = {"spikes": "learned", "freeze": "frozen", "fade": "fading"}
"""What becomes of V in the circuit without gain control."""


def plot_escape(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Error of the direction of escape cells against their number, with the bound for counts of
    independent spikes; integrate-and-fire cells beside them."""
    merged = reported(with_repeats(result))
    cells = merged["escape"].to_numpy()
    errors = merged["escape_direction_error"].transpose("repeat", "escape").to_numpy()
    bound = merged["escape_bound"].mean("repeat").to_numpy()
    ax = plot_error_by_cells(cells, {"escape": errors}, ax, bound=bound)
    regular = merged["direction_error"].sel(regular=["one cell", "four cells"])
    values = regular.transpose("repeat", "regular").to_numpy()
    color = palette()[1]
    ax.errorbar(
        [1, 4], values.mean(axis=0), values.std(axis=0), color=color, marker="s", ms=5, capsize=3,
        label="integrate-and-fire",
    )  # fmt: skip
    low = min(values.mean(axis=0).min(), errors.mean(axis=0).min())
    ax.set_ylim(bottom=0.7 * low)
    return ax


def plot_regular(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Error of integrate-and-fire cells on frozen weights in every repeat, over cells and time, and
    what it would be of counts of independent spikes."""
    merged = reported(with_repeats(result))
    errors = merged["error"].transpose("repeat", "regular").to_numpy()
    ax = _strips(errors, ax, palette()[1])
    bound = merged["bound"].mean("repeat").to_numpy()
    for place, value in enumerate(bound):
        label = "Poisson bound √(Σh/(N r T))" if place == 0 else ""
        ax.hlines(value, place - 0.3, place + 0.3, color=LABEL, ls=":", lw=1.5, label=label)
    ax.set_xticks(range(len(REGULAR)), [REGULAR[str(name)] for name in merged["regular"].values])
    ax.set(ylabel="error |h − h*|", xlabel="cells per unit, time a point is shown")
    ax.set_ylim(0, 1.25 * max(bound.max(), errors.max()))
    return ax


def plot_moons(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Accuracy on two moons in every repeat: twin, rate circuit, and the controls of V in a circuit
    where only inhibition normalises rates."""
    merged = reported(with_repeats(result))
    plain = merged["plain_accuracy"].transpose("repeat", "V_rule").to_numpy()
    both = np.column_stack([merged[name].to_numpy() for name in ("accuracy", "rate_accuracy")])
    ax = _strips(np.column_stack([both, plain]), ax, palette()[0])
    rules = [f"V {V_RULES[str(name)]}\nfixed gain" for name in merged["V_rule"].to_numpy()]
    ax.set_xticks(range(2 + len(rules)), ["spiking\ntwin", "rate\ncircuit", *rules])
    ax.axvline(1.5, color=GREY, lw=0.8)
    ax.set(ylabel="accuracy, two moons", ylim=(0, 1.05), xlabel="circuit")
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def plot_board(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Error on the chessboard by gain, of the twin and of the rate circuit."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    gains = merged["mu"].to_numpy()
    drawn = {"board_error": ("spiking twin", "o"), "rate_board_error": ("rate circuit", "s")}
    for i, (name, (label, marker)) in enumerate(drawn.items()):
        values = merged[name].transpose("repeat", "mu").to_numpy()
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(len(gains))
        ax.errorbar(
            np.arange(len(gains)) + 0.06 * (2 * i - 1), values.mean(axis=0), spread,
            color=palette()[3 * i], marker=marker, ms=5, capsize=3, label=label,
        )  # fmt: skip
    ax.axhline(0.5, color=LABEL, lw=0.8, ls=":", label="guessing")
    ax.set_xticks(range(len(gains)), [f"{gain:g}" for gain in gains])
    ax.set(xlabel="gain μ", ylabel="error, chessboard", ylim=(0, 0.55))
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def _strips(values: FloatArray, ax: Axes | None, color: str) -> Axes:
    """A dot for every repeat, side by side, and a bar at the mean of each column."""
    ax = ax or plt.figure().add_subplot()
    shift = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(1)
    for place, column in enumerate(values.T):
        ax.plot(place + shift, column, "o", color=color, ms=3.5, alpha=0.7, mew=0)
        ax.hlines(column.mean(), place - 0.3, place + 0.3, color="0.2", lw=1.5)
    ax.set_xlim(-0.5, values.shape[1] - 0.5)
    return ax


def figure(result: xr.Dataset) -> Figure:
    """Errors over cells and time, accuracies on two moons, and errors on a chessboard."""
    with figure_style():
        fig = plt.figure(figsize=(10, 7.4))
        axes = fig.subplots(2, 2)
        plot_escape(result, axes[0, 0]).set_title("More cells per unit")
        plot_regular(result, axes[0, 1]).set_title("Integrate-and-fire cells, every repeat")
        plot_moons(result, axes[1, 0]).set_title("Two moons from two labels")
        plot_board(result, axes[1, 1]).set_title("A chessboard on a roll")
        for ax in axes[0]:
            ax.legend(loc="upper right", fontsize="small")
        axes[1, 1].legend(loc="lower right", fontsize="small", ncols=3)
    return fig
