"""Labels that change in the middle of a stream. Made from the merged repeats of a result with the
errors of either rate of the readout, by gain, with and without a change."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.selection import chosen_values, first_repeat, reported, with_repeats
from analysis.style import figure_style, whole_numbers

RULES = {
    "printed": ("#D55E00", "s", "rate 1/(t + 1)"),
    "constant": ("#0072B2", "o", "constant rate"),
}
STREAMS = {"changed": ("-", ""), "steady": (":", ", no change")}


def _chosen(merged: xr.Dataset, rule: str) -> xr.DataArray:
    changed = merged.sel(stream="changed", drop=True)
    mu = chosen_values(changed, f"{rule}_error", "mu")
    return reported(merged)[f"{rule}_error"].sel(mu=mu)


def plot_course(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Error in windows of the stream at the chosen gain: mean over repeats with its spread, and
    the first repeat (thin)."""
    ax = ax or plt.figure().add_subplot()
    merged = with_repeats(result)
    times = merged["time"].to_numpy()
    for rule, (color, marker, label) in RULES.items():
        error = _chosen(merged, rule)
        for stream, (line, suffix) in STREAMS.items():
            one = error.sel(stream=stream).transpose("repeat", "time").to_numpy()
            mark = marker if stream == "changed" else ""
            mean = one.mean(axis=0)
            ax.plot(times, mean, color=color, ls=line, marker=mark, ms=3, label=label + suffix)
            if stream == "changed":
                sd = one.std(axis=0, ddof=1) if len(one) > 1 else np.zeros_like(mean)
                ax.fill_between(times, mean - sd, mean + sd, color=color, alpha=0.2, lw=0)
                ax.plot(times, one[0], color=color, lw=0.5)
    first = first_repeat(merged)
    for name in ("change_at", "decided_at"):
        ax.axvline(float(first[name]), color="0.4", lw=0.8, ls="--" if name == "change_at" else ":")
    ax.set(xlabel="points seen", ylabel="error on unlabelled points", xlim=(0, times[-1]))
    whole_numbers(ax.xaxis)
    return _errors(ax)


def plot_gains(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Error in the window that decides, by gain, with and without a change."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    at = merged.sel(time=int(first_repeat(merged)["decided_at"]))
    gains = merged["mu"].to_numpy()
    places = np.arange(len(gains))
    for i, (rule, (color, marker, label)) in enumerate(RULES.items()):
        for stream, (line, suffix) in STREAMS.items():
            one = at[f"{rule}_error"].sel(stream=stream).transpose("repeat", "mu").to_numpy()
            sd = one.std(axis=0, ddof=1) if len(one) > 1 else np.zeros(len(gains))
            ax.errorbar(
                places + 0.06 * (2 * i - 1),
                one.mean(axis=0),
                sd,
                color=color,
                ls=line,
                marker=marker,
                ms=4,
                mfc=color if stream == "changed" else "white",
                capsize=2,
                elinewidth=0.9,
                label=label + suffix,
            )
    ax.set_xticks(places, [f"{gain:g}" for gain in gains])
    ax.set(xlabel="gain μ", ylabel="error where it is decided")
    return _errors(ax)


def _errors(ax: Axes) -> Axes:
    ax.axhline(0.5, color="0.6", lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def figure(result: xr.Dataset) -> Figure:
    """The course of the error, and the error by gain where it is decided."""
    with figure_style():
        fig = plt.figure(figsize=(10, 4.2))
        left, right = fig.subplots(1, 2, width_ratios=(1.5, 1))
        plot_course(result, left).set_title("Classes are exchanged in the middle")
        plot_gains(result, right).set_title("At every gain")
        handles, labels = right.get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return fig
