"""Classes that exchange in mid-stream. Made from the merged repeats of a result with the errors of
three readouts after the exchange by share of labels and gain, and with what is left of two labels
where nothing is exchanged."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.heatmap import draw_shares
from analysis.selection import chosen_values, first_repeat, reported, with_repeats
from analysis.style import GREY, LABEL, figure_style

RULES = {
    "printed": ("#D55E00", "s", "mu", "rate 1/(t + 1)"),
    "constant": ("#0072B2", "o", "mu", "constant rate"),
    "gated": ("#009E73", "^", "gated_mu", "gated, labels clamp y"),
}
"""Readouts: colour, marker, their grid of gains, name."""


def plot_course(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Accuracy in the parts after the exchange at the gain chosen on other repeats, with few labels
    (dashed) and with more: mean and standard deviation over repeats."""
    ax = ax or plt.figure().add_subplot()
    merged = with_repeats(result)
    first = first_repeat(merged)
    ends = merged["part"].to_numpy() * int(first["part_size"])
    for rule, (color, marker, grid, label) in RULES.items():
        gain = float(chosen_values(merged, f"{rule}_wrong", grid))
        right = 1 - reported(merged)[f"{rule}_wrong"].sel({grid: gain})
        for share, line in (("more", "-"), ("few", "--")):
            value = float(first[f"{share}_share"])
            one = right.sel(share=value).transpose("repeat", "part").to_numpy()
            sd = one.std(axis=0, ddof=1) if len(one) > 1 else np.zeros(len(ends))
            ax.errorbar(
                ends, one.mean(axis=0), sd, color=color, ls=line, marker=marker, ms=5, capsize=2,
                mfc=color if share == "more" else "white", elinewidth=0.9,
                label=f"{label}, μ = {gain:g}, {value:.3g} labelled",
            )  # fmt: skip
    ax.axhline(0.5, color=GREY, lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set(xlabel="points since the exchange", ylabel="accuracy on unlabelled points")
    ax.set_ylim(-0.05, 1.05)
    ax.set_xticks(ends)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def plot_strength(result: xr.Dataset, rule: str, ax: Axes | None = None) -> Axes:
    """What is left of two labels at the end of a stream without an exchange, by gain."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    color, marker, grid, _ = RULES[rule]
    values = merged[f"{rule}_strength"].transpose("repeat", grid).to_numpy()
    places = np.arange(values.shape[1])
    sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(len(places))
    ax.errorbar(places, values.mean(axis=0), sd, color=color, marker=marker, ms=4, capsize=2)
    ax.set(ylabel="mean |y|", ylim=(-0.08, 1.15), yticks=[0, 1])
    _gains(ax, merged, grid)
    return _critical(ax, merged, rule)


def plot_map(result: xr.Dataset, rule: str, ax: Axes | None = None) -> Axes:
    """Mean accuracy in the third part after the exchange over gain and share of labels."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    grid, shares = RULES[rule][2], merged["share"].to_numpy()
    right = 1 - merged[f"{rule}_wrong"].sel(part=3).mean("repeat")
    values = right.transpose("share", grid).to_numpy()
    draw_shares(ax, values, shares, merged[grid].to_numpy())
    ax.set(ylabel="share of labels", xlabel="gain μ")
    return _critical(ax, merged, rule)


def _gains(ax: Axes, merged: xr.Dataset, grid: str) -> None:
    gains = merged[grid].to_numpy()
    ax.set_xticks(range(len(gains)), [f"{gain:g}" for gain in gains])
    ax.set_xlim(-0.5, len(gains) - 0.5)


def _critical(ax: Axes, merged: xr.Dataset, rule: str) -> Axes:
    """The critical gain as a line: between the gains of the grid that it lies between."""
    gains = merged[RULES[rule][2]].to_numpy()
    value = 1.0 if rule == "gated" else float(merged["critical"].mean())
    order = np.argsort(gains)
    place = np.interp(value, gains[order], order)
    if gains.min() <= value <= gains.max():
        for width, color, label in ((3.2, "w", None), (1.6, LABEL, f"critical μ = {value:.3g}")):
            ax.axvline(float(place), color=color, lw=width, ls="-" if label is None else "--",
                       label=label)  # fmt: skip
    return ax


def figure(result: xr.Dataset) -> Figure:
    """The course after the exchange; for two readouts what is carried on and what is overwritten,
    over the gain."""
    with figure_style():
        fig = plt.figure(figsize=(13, 5.4))
        axes = fig.subplot_mosaic(
            [["course", "constant carries", "gated carries"], ["course", "constant", "gated"]],
            height_ratios=(1, 3),
            width_ratios=(1.15, 1, 1),
        )
        merged = with_repeats(result)
        plot_course(merged, axes["course"]).set_title("Classes are exchanged")
        titles = {"constant": "Paper's readout, constant rate", "gated": "Gated readout"}
        for rule, title in titles.items():
            plot_strength(merged, rule, axes[f"{rule} carries"]).set_title(title)
            axes[f"{rule} carries"].tick_params(labelbottom=False)
            plot_map(merged, rule, axes[rule])
        handles, labels = axes["course"].get_legend_handles_labels()
        for rule in titles:
            line, name = axes[rule].get_legend_handles_labels()
            handles, labels = handles + line, labels + [f"{name[0]}, {rule}"] * bool(name)
        fig.legend(handles, labels, loc="outside lower center", ncols=4)
    return fig
