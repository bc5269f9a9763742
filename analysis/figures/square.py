"""The paper's Fig. 4: two labels share a square. Made from a result that holds ``score``, the
prediction for every silent point by every approach, and ``majority``."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.selection import first_repeat
from analysis.style import LABEL, LOWER, UPPER, figure_style, whole_numbers

METHODS = {
    "laplacian": ("Laplacian (offline)", "#009E73", "///"),
    "circuit": ("circuit (online)", "#0072B2", ""),
}
CUT = {"minimum cut": ("minimum of the circuit's objective (offline)", "#CC79A7", "...")}
"""What each approach is called and how it is drawn."""

PANELS = {
    "labels first": METHODS,
    "labels late": {f"{name}, late": look for name, look in METHODS.items()},
    "minimum cut": CUT,
}
"""Approaches whose histograms are drawn together."""

BIN = 0.05
"""Width of the histogram's bins."""


def plot_solution(result: xr.Dataset, ax: Axes | None = None, approach: str = "laplacian") -> Axes:
    """The square of the first repeat, points coloured by predicted label, with the two labelled."""
    ax = ax or plt.figure().add_subplot()
    one = first_repeat(result)
    points, score = one["points"].to_numpy(), one["score"].sel(approach=approach).to_numpy()
    for sign, color, marker, name in (
        (-1, UPPER, "^", "predicted −1"),
        (1, LOWER, "x", "predicted +1"),
        (0, "0.6", ".", "undecided"),
    ):
        own = points[np.sign(score) == sign]
        if len(own):
            ax.scatter(
                own[:, 0], own[:, 1], s=7, marker=marker, c=color, linewidths=0.6, label=name
            )
    inset = _inset(result)
    for label, place, away in ((-1, inset, 1), (1, 1 - inset, -1)):
        ax.annotate(
            f"label {'+' if label > 0 else '−'}1",
            (place, place),
            (place + 0.16 * away, place + 0.13 * away),
            ha="left" if away > 0 else "right",
            va="center",
            weight="bold",
            bbox={"fc": "white", "ec": "none", "alpha": 0.85, "pad": 1.5},
            arrowprops={"arrowstyle": "-|>", "color": LABEL, "lw": 1.5, "shrinkB": 5},
        )
        ax.scatter(place, place, s=130, marker="*", c=LABEL, ec="white", zorder=3)
    ax.plot((0, 1), (1, 0), color=LABEL, lw=1, ls="--", label="even cut")
    ax.set(
        xlabel="first coordinate",
        ylabel="second coordinate",
        aspect="equal",
        xlim=(0, 1),
        ylim=(0, 1),
        xticks=(0, 0.5, 1),
        yticks=(0, 0.5, 1),
    )
    return ax


def _inset(result: xr.Dataset) -> float:
    """How far from the corners the labelled points lie."""
    if "inset" in result.attrs:
        return float(result.attrs["inset"])
    return float(json.loads(result.attrs["config"])["settings"]["inset"])


def plot_imbalance(result: xr.Dataset, ax: Axes | None = None, panel: str = "labels first") -> Axes:
    """In how many repeats the larger class had which share of the points, for the approaches of
    one of `PANELS`."""
    ax = ax or plt.figure().add_subplot()
    majority, approaches = result["majority"], PANELS[panel]
    # Undecided points belong to neither class: the larger one may then have less than half.
    lowest = min(0.5, BIN * np.floor(float(majority.min()) / BIN))
    edges = lowest + BIN * np.arange(round((1 - lowest) / BIN) + 1)
    # A share of exactly 1, or one that rounding puts past an edge, belongs to the last bin.
    values = {
        name: np.clip(np.atleast_1d(majority.sel(approach=name).to_numpy()), edges[0], edges[-1])
        for name in approaches
    }
    width = 0.84 * BIN / len(approaches)
    for i, (name, (label, color, hatch)) in enumerate(approaches.items()):
        counts, _ = np.histogram(values[name], edges)
        middle = edges[:-1] + BIN / 2 + (i - (len(approaches) - 1) / 2) * width
        ax.bar(middle, counts, width, color=color, hatch=hatch, ec="white", lw=0.5, label=label)
        ax.axvline(values[name].mean(), color=color, lw=1.2, ls=":", zorder=0)
    ax.set(
        xlabel="share of points in the larger class",
        ylabel=f"runs (of {majority.sizes.get('repeat', 1)})",
        xlim=(edges[0], edges[-1]),
    )
    whole_numbers(ax.yaxis)
    return ax


def figure(result: xr.Dataset) -> Figure:
    """The solutions of the first repeat; below, the histograms over repeats: with the labels
    first, as in the paper, and the controls."""
    with figure_style():
        fig = plt.figure(figsize=(11, 7.9))
        axes = fig.subplot_mosaic("abc;def", height_ratios=(1.35, 1))
        for place, approach, title in (
            ("a", "laplacian", "Laplacian regularisation, offline"),
            ("b", "circuit", "Circuit, online"),
            ("c", "minimum cut", "Minimum of the circuit's objective"),
        ):
            plot_solution(result, axes[place], approach).set_title(title)
        for place, panel, title in (
            ("d", "labels first", "Imbalance, labels first"),
            ("e", "labels late", "Control: labels late"),
            ("f", "minimum cut", "Control: minimum of the objective"),
        ):
            plot_imbalance(result, axes[place], panel).set_title(title)
        for place in "bcef":
            axes[place].set_ylabel("")
        handles: dict[str, Artist] = {}
        for place in "abcdf":
            for handle, label in zip(*axes[place].get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        fig.legend(
            list(handles.values()),
            list(handles),
            title="dotted: means",
            title_fontsize=8,
            loc="outside lower center",
            ncols=4,
            markerscale=2,
        )
    return fig
