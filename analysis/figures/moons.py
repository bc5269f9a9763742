"""The paper's Fig. 2: two moons from two labels. Made from a result that holds ``classes`` and
``position`` (the place along the moons) besides what every run holds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from analysis.measures import tile_centers, tile_positions
from analysis.plane import LabelMarks, label_entries
from analysis.style import LABEL, LOWER, UPPER, figure_style, legend_beside, whole_numbers
from analysis.tiles_in_use import tiles_in_order

MARKERS = {-1: ("^", UPPER, "class −1"), 1: ("x", LOWER, "class +1")}


def plot_points(run: xr.Dataset, ax: Axes | None = None) -> Axes:
    """The data by class, with the labelled points."""
    ax = ax or plt.figure().add_subplot()
    points, classes = run["points"].to_numpy(), run["classes"].to_numpy()
    for label, (marker, color, name) in MARKERS.items():
        own = points[classes == label]
        ax.scatter(
            own[:, 0], own[:, 1], s=6, marker=marker, c=color, linewidths=0.6, alpha=0.6, label=name
        )
    labels = run["labels"].to_numpy()[:, 0]
    LabelMarks(ax).show(points, labels)
    ax.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    handles, names = ax.get_legend_handles_labels()
    signed, texts = label_entries(labels)
    legend_beside(ax, [*handles, *signed], [*names, *texts], markerscale=1.5)
    return ax


def plot_readout(run: xr.Dataset, ax: Axes | None = None, readout: int = 0) -> Axes:
    """The readout y at the end of every presentation, by true class, with arrows at the labels."""
    ax = ax or plt.figure().add_subplot()
    y, classes = run["y"].to_numpy()[:, readout], run["classes"].to_numpy()
    time = run["presentation"].to_numpy()
    for label, (marker, color, name) in MARKERS.items():
        own = classes == label
        ax.scatter(time[own], y[own], s=10, marker=marker, c=color, linewidths=0.6, label=name)
    labels = run["labels"].to_numpy()[:, readout]
    for t in np.flatnonzero(labels):
        ax.annotate(
            "label",
            (time[t], labels[t]),
            (time[t] + 0.06 * len(y), 0.6 * labels[t]),
            arrowprops={"arrowstyle": "->", "color": LABEL},
            va="center",
            bbox={"fc": "white", "ec": "none", "pad": 1},
        )
    ax.set(xlabel="presentation", ylabel="readout y", ylim=(-1.15, 1.15))
    whole_numbers(ax.xaxis)
    return ax


def plot_weights(
    run: xr.Dataset, ax: Axes | None = None, readout: int = 0, every: int = 100
) -> Axes:
    """Readout weights of the tiles, ordered along the manifold, after every 100th presentation.

    Tiles that stay idle are left out.
    """
    ax = ax or plt.figure().add_subplot()
    points, along = run["points"].to_numpy(), run["position"].to_numpy()
    position = tile_positions(tile_centers(run), points, along)
    order = tiles_in_order(run, along)
    learned = run["snapshot"].to_numpy()
    shown = learned % every == 0
    if not shown.any():  # a stream shorter than that: its end
        shown[-1] = True
    w, times = run["w_snapshots"].to_numpy()[shown][:, readout][:, order], learned[shown]
    colors = plt.get_cmap("cividis")(np.linspace(0.95, 0.05, len(times)))
    tiles = np.arange(1, len(order) + 1)
    for row, color in zip(w, colors, strict=True):
        ax.plot(tiles, row, color=color)
    scale = plt.cm.ScalarMappable(Normalize(times[0], times[-1]), "cividis_r")
    bar = ax.figure.colorbar(scale, ax=ax, label="presentations learned from")
    whole_numbers(bar.ax.yaxis)
    lower = position[order] >= 0
    if lower.any() and not lower.all():
        ax.axvline(tiles[lower][0] - 0.5, color="0.6", lw=0.8, ls=":")
    h, labels = run["h"].to_numpy(), run["labels"].to_numpy()[:, readout]
    reach = np.abs(w).max() or 1.0
    for t in np.flatnonzero(labels):
        tile = tiles[h[t][order].argmax()]
        tip = w[-1][tile - 1] if abs(w[-1][tile - 1]) > 0 else 0.0
        ax.annotate(
            "",
            (tile, tip),
            (tile, tip + 0.25 * reach * labels[t]),
            arrowprops={"arrowstyle": "->", "color": LABEL},
        )
    ax.axhline(0, color="0.6", lw=0.8)
    ax.margins(y=0.15)
    ax.set(xlabel="tile, ordered along the moons (upper | lower)", ylabel="readout weight w")
    whole_numbers(ax.xaxis)
    return ax


def figure(run: xr.Dataset) -> Figure:
    """All three panels."""
    with figure_style():
        fig = plt.figure(figsize=(9, 6.6))
        axes = fig.subplot_mosaic("aa;bc")
        plot_points(run, axes["a"]).set_title("Two moons, two labels")
        plot_readout(run, axes["b"]).set_title("What the circuit answers")
        plot_weights(run, axes["c"]).set_title("How the labels spread over the tiles")
    return fig
