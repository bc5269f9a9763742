"""What the circuit bears. Made from the merged repeats of a result with coverage and accuracy after
lesions of tiles, errors of h with few interneurons and in noise, and settling with delays."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.selection import first_repeat, reported, with_repeats
from analysis.style import GREY, LABEL, figure_style, whole_numbers
from circuits.dataset import SETTLED_CHANGE
from circuits.lift import FloatArray

CONDITIONS = {
    "spare, learns": ("#009E73", "o", "idle tiles, learns"),
    "none, learns": ("#0072B2", "s", "no idle tiles, learns"),
    "spare, frozen": ("#D55E00", "^", "idle tiles, frozen"),
    "none, frozen": ("#CC79A7", "x", "no idle tiles, frozen"),
}
"""What a lesioned circuit has left: colour, marker, name."""

COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")
MARKERS = ("s", "o", "^", "D", "v")


def plot_lesions(result: xr.Dataset, what: str, ax: Axes | None = None) -> Axes:
    """ "coverage" or "accuracy" right after a lesion and later, over the share of tiles removed:
    mean and standard deviation over repeats."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result)).sortby("share")
    shares = merged["share"].to_numpy()
    after = merged[f"after_{what}"]
    _bars(ax, shares, after, "share", color=LABEL, marker="*", ls="-", label="right after")
    if what == "coverage":
        expected = merged["predicted_coverage"].mean("repeat").to_numpy()
        ax.plot(shares, expected, color=GREY, lw=4, zorder=0, label="expected right after")
    count = int(first_repeat(merged)["later"])
    for condition, (color, marker, label) in CONDITIONS.items():
        later = merged[f"later_{what}"].sel(condition=condition)
        frozen = condition.endswith("frozen")
        _bars(
            ax, shares, later, "share", color=color, marker=marker, ls=":" if frozen else "--",
            mfc="none" if frozen else color, label=f"{count} later, {label}",
        )  # fmt: skip
    ax.set(xlabel="share of tiles removed", ylabel=f"{what} of test points", ylim=(0, 1.05))
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def plot_interneurons(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Largest |h - closed form| of any repeat by the number of interneurons."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    least = np.finfo(float).eps  # a logarithm has no zero
    for name, along, color, marker, label in (
        ("interneuron_error", "interneurons", COLORS[1], "o", "made with so many"),
        ("left_error", "left", COLORS[0], "s", "so many left of 4"),
    ):
        error = merged[name].max("repeat").sortby(along)
        values = np.maximum(error.to_numpy(), least)
        ax.plot(error[along].to_numpy(), values, color=color, marker=marker, ms=5, label=label)
    cut = float(merged["cut_error"].min())
    ax.axhline(cut, color=COLORS[3], lw=1.2, ls="-.", label="4, half of V cut")
    ax.axhline(SETTLED_CHANGE, color=LABEL, lw=1, ls="--", label="counts as settled")
    ax.set_yscale("log")
    ax.set(xlabel="interneurons", ylabel="|h − closed form|, largest")
    whole_numbers(ax.xaxis)
    return ax


def plot_growth(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """What a step multiplies a small deviation by, over the delay: measured (markers) and by linear
    stability (lines); vertical, the critical delay."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result)).sortby("delay")
    first, times = first_repeat(merged), _times(merged)
    for i, tau in enumerate(merged["tau_u"].to_numpy()):
        color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
        ax.plot(times, first["predicted_growth"].sel(tau_u=tau), color=color, lw=1.4)
        measured = merged["growth"].sel(tau_u=tau)
        _bars(ax, times, measured, "delay", color=color, marker=marker, ls="", label=_tau(tau))
        _boundary(ax, merged, "critical_delay", tau, color)
    ax.axhline(1, color=GREY, lw=1, zorder=0)
    _explain(ax, "-", "linear stability")
    _explain(ax, "--", "critical delay")
    ax.set(xlabel="delay (ms)", ylabel="|deviation| factor per step")
    return ax


def plot_settled(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Share of presentations that settle over the delay; vertical, up to where they are predicted
    to settle in time."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result)).sortby("delay")
    times = _times(merged)
    for i, tau in enumerate(merged["tau_u"].to_numpy()):
        color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
        settled = merged["settled"].sel(tau_u=tau)
        _bars(ax, times, settled, "delay", color=color, marker=marker, ls="-", label=_tau(tau))
        _boundary(ax, merged, "settling_delay", tau, color)
        _boundary(ax, merged, "critical_delay", tau, color, ls=":")
    _explain(ax, "--", "predicted limit")
    _explain(ax, ":", "critical delay")
    ax.set(xlabel="delay (ms)", ylabel="presentations that settle", ylim=(-0.05, 1.08))
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def plot_noise(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Root mean square of |h - closed form| over the size of noise on h, u or V, with the linear
    response as lines."""
    ax = ax or plt.figure().add_subplot()
    merged, sizes = _sizes(result)
    for i, on in enumerate(str(name) for name in merged["on"].to_numpy()):
        color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
        predicted = merged["predicted_noise_error"].sel(on=on).mean("repeat").to_numpy()
        ax.plot(sizes, predicted, color=color, lw=1.4)
        error = merged["noise_error"].sel(on=on)
        _bars(ax, sizes, error, "size", color=color, marker=marker, ls="", label=f"noise on {on}")
    _explain(ax, "-", "linear response")
    ax.set_yscale("log")
    ax.set(xscale="log", xlabel="size of the noise", ylabel="|h − closed form|, r.m.s.")
    return ax


def plot_noise_accuracy(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Accuracy over the size of noise on h, u or V."""
    ax = ax or plt.figure().add_subplot()
    merged, sizes = _sizes(result)
    for i, on in enumerate(str(name) for name in merged["on"].to_numpy()):
        color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
        found = merged["noise_accuracy"].sel(on=on)
        _bars(ax, sizes, found, "size", color=color, marker=marker, ls="-", label=f"noise on {on}")
    ax.axhline(0.5, color=GREY, lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set(xscale="log", xlabel="size of the noise", ylabel="accuracy", ylim=(0.4, 1.04))
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def _bars(ax: Axes, places: FloatArray, values: xr.DataArray, along: str, **look: Any) -> None:
    """Mean and standard deviation over repeats."""
    rows = values.transpose("repeat", along).to_numpy()
    sd = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros(len(places))
    ax.errorbar(places, rows.mean(axis=0), sd, ms=5, capsize=2, elinewidth=0.9, lw=1.2, **look)


def _times(merged: xr.Dataset) -> FloatArray:
    times: FloatArray = merged["delay"].to_numpy() * float(first_repeat(merged)["dt_ms"])
    return times


def _tau(tau: float) -> str:
    return f"$\\tau_u$ = {tau:g} ms"


def _explain(ax: Axes, ls: str, label: str) -> None:
    """Say in the legend what lines of a kind are, whatever their colour."""
    ax.plot([], [], color=LABEL, lw=1.2, ls=ls, label=label)


def _boundary(
    ax: Axes, merged: xr.Dataset, name: str, tau: float, color: str, ls: Any = "--"
) -> None:
    """A predicted delay as a line, if it is on the axis."""
    first = first_repeat(merged)
    place = float(first[name].sel(tau_u=tau)) * float(first["dt_ms"])
    if place <= _times(merged).max():
        ax.axvline(place, color=color, lw=1.1, ls=ls, zorder=0)


def _sizes(result: xr.Dataset) -> tuple[xr.Dataset, FloatArray]:
    """Repeats with the sizes of noise in their order, without 0, which has no logarithm."""
    merged = reported(with_repeats(result)).sortby("size")
    merged = merged.sel({"size": merged["size"] > 0})
    return merged, merged["size"].to_numpy()


def figure(result: xr.Dataset) -> Figure:
    """Lesions of tiles, few interneurons, delays, and noise."""
    with figure_style():
        fig = plt.figure(figsize=(14, 8.4))
        top = ["coverage"] * 4 + ["accuracy"] * 4 + ["interneurons"] * 4
        bottom = ["growth"] * 3 + ["settled"] * 3 + ["noise"] * 3 + ["noisy"] * 3
        rows: list[Any] = [top, bottom]
        axes = fig.subplot_mosaic(rows)
        merged = with_repeats(result)
        plot_lesions(merged, "coverage", axes["coverage"]).set_title("Tiles removed: coverage")
        plot_lesions(merged, "accuracy", axes["accuracy"]).set_title("Tiles removed: accuracy")
        plot_interneurons(merged, axes["interneurons"]).set_title("One interneuron is enough")
        plot_growth(merged, axes["growth"]).set_title("Delay: deviations")
        plot_settled(merged, axes["settled"]).set_title("Delay: settling")
        plot_noise(merged, axes["noise"]).set_title("Noise: error of h")
        plot_noise_accuracy(merged, axes["noisy"]).set_title("Noise: accuracy")
        for ax in axes.values():
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, columnspacing=1)
    return fig
