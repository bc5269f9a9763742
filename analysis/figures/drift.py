"""Moons that move. Made from the merged repeats of a result with the accuracy of circuits and of
baselines on moons that move, in windows and at the end, a map of speeds, and tiles at moments."""

from __future__ import annotations

import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.dynamics.animation import targets_of, write_film
from analysis.heatmap import draw_shares
from analysis.selection import first_repeat, reported, with_repeats
from analysis.style import GREY, LABEL, LOWER, READOUT_MAP, UPPER, figure_style, whole_numbers

UNIT = 10_000
"""Speeds are in cycles per so many points."""

COLORS = ("#0072B2", "#D55E00", "#000000", "#CC79A7", "#009E73", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "x", "D", "^", "v", "<")

PANELS = 5
"""Moments that are drawn, of all that a result holds."""

STREAMS = {
    **{"rotate": "half a turn", "noisy": "the same,\nmore noise", "translate": "translate"},
    **{"deform": "deform", "fast": "two turns"},
}
"""Streams, as the axis names them."""

FOLLOWERS = {"paper": "paper's readout", "gated": "gated readout", "frozen": "frozen"}


def _shown(merged: xr.Dataset) -> dict[str, str]:
    """What is drawn of those that follow, and its name: circuits with tiles that move on, frozen
    ones, and all baselines."""
    names = [str(name) for name in merged["follower"].to_numpy()]
    return {name: FOLLOWERS.get(name, name) for name in names if "kept" not in name}


def plot_tiles(result: xr.Dataset, moment: int, ax: Axes | None = None) -> Axes:
    """Tiles at a moment of the rotating stream, coloured by what their synapse to the readout
    says, on the last points, coloured by class."""
    ax = ax or plt.figure().add_subplot()
    first = first_repeat(with_repeats(result)).isel(moment=moment)
    points = first["shown_point"].transpose("shown", "coordinate").to_numpy()
    colors = np.where(first["shown_class"].to_numpy() < 0, UPPER, LOWER)
    x, y = points.T
    ax.scatter(x, y, s=5, c=colors, alpha=0.35, lw=0)
    used = first["tile_used"].to_numpy() > 0
    centers = first["tile_center"].transpose("tile", "coordinate").to_numpy()[used]
    weight = first["tile_weight"].to_numpy()[used]
    largest = np.abs(weight).max() or 1.0
    x, y = centers.T
    ax.scatter(x, y, s=26, c=weight / largest, cmap=READOUT_MAP, vmin=-1, vmax=1, ec="k", lw=0.6)
    ax.set(aspect="equal", title=f"{int(first['moment_time'])} points")
    return ax


def plot_course(result: xr.Dataset, ax: Axes | None = None, stream: str = "noisy") -> Axes:
    """Accuracy in windows of a stream: mean over repeats, with its spread for the circuits."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    times = merged["time"].to_numpy()
    for i, (name, label) in enumerate(_shown(merged).items()):
        course = merged["course"].sel({"stream": stream, "follower": name})
        values = course.transpose("repeat", "time").to_numpy()
        mean = values.mean(axis=0)
        color = COLORS[i % len(COLORS)]
        ax.plot(times, mean, color=color, lw=1.8 if name in FOLLOWERS else 1.1, label=label)
        if name in FOLLOWERS and len(values) > 1:
            sd = values.std(axis=0, ddof=1)
            ax.fill_between(times, mean - sd, mean + sd, color=color, alpha=0.15, lw=0)
    ax.axvline(float(first_repeat(merged)["drift_after"]), color="0.4", lw=0.8, ls="--")
    ax.set(xlabel="points seen", ylabel="accuracy", xlim=(0, times[-1]))
    whole_numbers(ax.xaxis)
    return _accuracies(ax)


def plot_streams(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Accuracy over the end of every stream: mean and standard deviation over repeats."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    streams = [str(name) for name in merged["stream"].to_numpy()]
    shown = _shown(merged)
    places = np.arange(len(streams))
    for i, (name, label) in enumerate(shown.items()):
        one = merged["accuracy"].sel({"follower": name}).transpose("repeat", "stream").to_numpy()
        sd = one.std(axis=0, ddof=1) if len(one) > 1 else np.zeros(len(streams))
        ax.errorbar(
            places + 0.1 * (i - (len(shown) - 1) / 2), one.mean(axis=0), sd, ls="",
            color=COLORS[i % len(COLORS)], marker=MARKERS[i % len(MARKERS)], ms=4, capsize=2,
            elinewidth=0.9, label=label,
        )  # fmt: skip
    ax.set_xticks(places, [STREAMS.get(name, name) for name in streams])
    ax.set(xlabel="stream", ylabel="accuracy at the end")
    return _accuracies(ax)


def plot_map(result: xr.Dataset, ax: Axes | None = None, tiles: str = "recruited") -> Axes:
    """Mean accuracy over speed and eta, with the line on which tiles lag by their radius,
    v / eta = rho."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    found = merged["map"].sel(tiles=tiles).mean("repeat").transpose("eta", "speed").to_numpy()
    speeds, etas = merged["speed"].to_numpy(), merged["eta"].to_numpy()
    draw_shares(ax, found, etas, speeds)
    first = first_repeat(merged)
    way = 2 * math.pi * float(first["travel"]) / UNIT / float(first["tile_radius"])
    if len(speeds) > 1 and len(etas) > 1:
        # Cells are evenly spaced, and speeds in between lie by their logarithms.
        along = np.geomspace(speeds.min(), speeds.max(), 200)
        x = np.interp(np.log(along), np.log(speeds), range(len(speeds)))
        y = np.interp(np.log(along * way), np.log(etas), range(len(etas)), np.nan, np.nan)
        ax.plot(x, y, color="w", lw=3.2)
        ax.plot(x, y, color=LABEL, lw=1.6, ls="--", label="v / η = ρ")
    ax.set(xlabel="turns per 10,000 points", ylabel="learning rate η")
    return ax


def _accuracies(ax: Axes) -> Axes:
    ax.axhline(0.5, color=GREY, lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set_ylim(0, 1.05)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def figure(result: xr.Dataset) -> Figure:
    """Tiles that follow, the course of accuracy, accuracy at the end, and the map of speeds."""
    with figure_style():
        fig = plt.figure(figsize=(12, 8.6))
        parts = fig.subfigures(2, 1, height_ratios=(1, 2.2))
        top, bottom = parts[0], parts[1]  # type: ignore[index]
        merged = with_repeats(result)
        moments = np.unique(np.linspace(0, merged.sizes["moment"] - 1, PANELS).round().astype(int))
        panels = np.atleast_1d(top.subplots(1, len(moments), sharex=True, sharey=True))
        for moment, ax in zip(moments, panels, strict=True):
            plot_tiles(merged, int(moment), ax)
            ax.set(xlabel="x", ylabel="y" if moment == 0 else "")
        scale = ScalarMappable(Normalize(-1, 1), READOUT_MAP)
        bar = top.colorbar(scale, ax=panels, shrink=0.8, ticks=[-1, 0, 1])
        bar.set_label("w of a tile / largest")
        grid = bottom.subplots(2, 2, width_ratios=(1.5, 1))
        plot_course(merged, grid[0, 0]).set_title("Half a turn in more noise")
        plot_streams(merged, grid[1, 0]).set_title("Where the streams end")
        plot_map(merged, grid[0, 1]).set_title("Speed limit, tiles to spare")
        plot_map(merged, grid[1, 1], "shifted").set_title("Speed limit, no tile to spare")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        line, name = grid[0, 1].get_legend_handles_labels()
        bottom.legend(handles + line, labels + name, loc="outside lower center", ncols=4)
    return fig


@figure_style()
def animate_drift(run: xr.Dataset, path: str | os.PathLike[str], *, fps: int = 8) -> list[Path]:
    """Write tiles that follow rotating moons as a film, one frame per moment that a result holds.

    The path is as in `analysis.dynamics.animate_tiles`. Returns the files.
    """
    targets = targets_of(Path(path))
    points = first_repeat(with_repeats(run))["shown_point"]
    low, high = float(points.min()) - 0.1, float(points.max()) + 0.1
    fig = plt.figure(figsize=(5, 4.4), dpi=100)
    try:
        ax = fig.add_subplot()
        fig.colorbar(
            ScalarMappable(Normalize(-1, 1), READOUT_MAP), ax=ax, ticks=[-1, 0, 1],
            label="w of a tile / largest",
        )  # fmt: skip
        ax.set(xlim=(low, high), ylim=(low, high), aspect="equal", xlabel="x", ylabel="y")
        fig.canvas.draw()
        fig.set_layout_engine("none")  # nothing may move from frame to frame but moons and tiles

        def show(moment: int) -> None:
            for collection in list(ax.collections):
                collection.remove()
            plot_tiles(run, moment, ax)
            ax.set_title(f"after {ax.get_title()}")

        write_film(fig, show, list(range(run.sizes["moment"])), targets, fps)
    finally:
        plt.close(fig)
    return targets
