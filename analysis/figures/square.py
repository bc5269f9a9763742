"""The paper's Fig. 4: two labels share a square. Made from a result that holds ``score``, the
prediction for every silent point by either approach, and ``majority``."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.style import LABEL, LOWER, UPPER, figure_style, whole_numbers
from circuits.selection import first_repeat

APPROACHES = {
    "laplacian": ("Laplacian (offline)", "#009E73", "///"),
    "circuit": ("circuit (online)", "#0072B2", ""),
}
"""What each is called and how it is drawn."""

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


def plot_imbalance(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """In how many repeats the larger class had which share of the points."""
    ax = ax or plt.figure().add_subplot()
    majority = result["majority"]
    # Undecided points belong to neither class: the larger one may then have less than half.
    lowest = min(0.5, BIN * np.floor(float(majority.min()) / BIN))
    edges = lowest + BIN * np.arange(round((1 - lowest) / BIN) + 1)
    # A share of exactly 1, or one that rounding puts past an edge, belongs to the last bin.
    values = {
        name: np.clip(np.atleast_1d(majority.sel(approach=name).to_numpy()), edges[0], edges[-1])
        for name in APPROACHES
    }
    width = 0.42 * BIN
    for side, (name, (label, color, hatch)) in zip((-0.5, 0.5), APPROACHES.items(), strict=True):
        counts, _ = np.histogram(values[name], edges)
        middle = edges[:-1] + BIN / 2 + side * width
        ax.bar(middle, counts, width, color=color, hatch=hatch, ec="white", lw=0.5, label=label)
    n = len(values["circuit"])
    for name, (_, color, _) in APPROACHES.items():
        ax.axvline(values[name].mean(), color=color, lw=1.2, ls=":", zorder=0)
    ax.set(
        xlabel="share of points in the larger class",
        ylabel=f"runs (of {n})",
        xlim=(edges[0], edges[-1]),
    )
    whole_numbers(ax.yaxis)
    ax.legend(
        title="dotted: means",
        title_fontsize=8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
    )
    return ax


def figure(result: xr.Dataset) -> Figure:
    """Both solutions of the first repeat, and the histogram over repeats."""
    with figure_style():
        fig = plt.figure(figsize=(11, 3.9))
        axes = fig.subplot_mosaic("abc", width_ratios=(1, 1, 1.15))
        plot_solution(result, axes["a"], "laplacian").set_title("Laplacian regularisation, offline")
        plot_solution(result, axes["b"], "circuit").set_title("Circuit, online")
        axes["b"].set_ylabel("")
        plot_imbalance(result, axes["c"]).set_title("Imbalance over runs")
        handles: dict[str, Artist] = {}
        for name in "ab":
            for handle, label in zip(*axes[name].get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        fig.legend(
            list(handles.values()),
            list(handles),
            loc="outside lower left",
            ncols=len(handles),
            markerscale=2,
        )
    return fig
