"""The paper's Fig. 3: chessboards on a Swiss roll. Made from the merged repeats of two results,
one with the errors of online methods by number of labels, one with online and offline errors by
number of points seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import LogLocator, MaxNLocator, PercentFormatter, ScalarFormatter
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]

from analysis.selection import chosen_errors, first_repeat, reported, with_repeats
from analysis.style import LOWER, UPPER, figure_style

CLASSES = {-1: (UPPER, "class −1"), 1: (LOWER, "class +1")}

Look = tuple[str | None, str, str, str, str]
"""What a method chooses (if anything), and the colour, marker, line and name it is drawn with."""

SUPERVISION: dict[str, Look] = {
    "circuit": ("mu", "#0072B2", "o", "-", "circuit (semi-supervised)"),
    "logistic": ("rate", "#D55E00", "s", "--", "logistic (fully supervised)"),
    "logistic_origin": ("rate", "#E69F00", "D", "-.", "logistic, no intercept"),
    "hebbian": (None, "#882255", "v", ":", "Hebbian mean of labelled h"),
    "spreading": ("gamma", "#666666", "^", ":", "label spreading (offline)"),
}
"""Methods on the unlabelled points of the stream; two are controls."""

STREAM: dict[str, Look] = {
    "online": ("mu", "#0072B2", "o", "-", "circuit (online)"),
    "offline": ("svm", "#009E73", "D", "--", "Laplacian SVM (offline)"),
    "offline_origin": ("svm", "#882255", "v", ":", "the same, no intercept"),
}
"""Methods on test points as the stream goes on."""


def plot_roll(result: xr.Dataset, ax: Axes3D | None = None, board: int = 0) -> Axes3D:
    """The Swiss roll of the first repeat, coloured by the classes of a board."""
    if ax is None:
        ax = plt.figure().add_subplot(projection="3d")
    one = first_repeat(result)
    points, classes = one["points"].to_numpy(), one["classes"].isel(board=board).to_numpy()
    # One collection, so that what is in front hides what is behind, whatever its class.
    colors = [CLASSES[int(label)][0] for label in classes]
    ax.scatter(*points.T, s=5, c=colors, lw=0, depthshade=False)
    ax.set_box_aspect(tuple(np.ptp(points, axis=0)), zoom=1.65)
    ax.view_init(elev=10, azim=-76)
    # Distances are those of the sheets; axes would only hide the roll.
    ax.set_axis_off()
    return ax


def plot_board(result: xr.Dataset, ax: Axes | None = None, board: int = 0) -> Axes:
    """A board on the unrolled sheet: the points of the first repeat by class."""
    ax = ax or plt.figure().add_subplot()
    one = first_repeat(result)
    sheet, classes = one["unrolled"].to_numpy(), one["classes"].isel(board=board).to_numpy()
    for label, (color, name) in CLASSES.items():
        own = sheet[classes == label]
        ax.scatter(own[:, 0], own[:, 1], s=4, color=color, lw=0, label=name)
    ax.set(
        xlabel="along the spiral",
        ylabel="height",
        aspect="equal",
        xlim=(0, np.ceil(10 * sheet[:, 0].max()) / 10),
        ylim=(0, 1),
        yticks=(0, 0.5, 1),
    )
    ax.xaxis.set_major_locator(MaxNLocator(2))
    return ax


def plot_supervision(result: xr.Dataset, ax: Axes | None = None, board: int = 0) -> Axes:
    """Error on unlabelled points against the number of labels: mean and standard deviation."""
    ax = ax or plt.figure().add_subplot()
    counts = result["n_labels"].to_numpy()
    for i, name in enumerate(SUPERVISION):
        # Shifted a little, so that bars do not hide each other.
        shift = 1 + 0.04 * (i - (len(SUPERVISION) - 1) / 2)
        _draw_errors(ax, result, name, SUPERVISION[name], board, counts * shift)
    ax.set_xscale("log")
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.minorticks_off()
    ax.set(xlabel="labelled points", ylabel="error on unlabelled points")
    return _error_axis(ax)


def plot_stream(result: xr.Dataset, ax: Axes | None = None, board: int = 0) -> Axes:
    """Error on test points against points seen: mean and standard deviation."""
    ax = ax or plt.figure().add_subplot()
    times = result["time"].to_numpy()
    for i, name in enumerate(STREAM):
        _draw_errors(ax, result, name, STREAM[name], board, times * (1 + 0.04 * (i - 1)))
    # The first thousand points are of as much interest as all the others.
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.minorticks_off()
    ax.set(xlabel="points seen", ylabel="error on test points")
    return _error_axis(ax)


def _draw_errors(
    ax: Axes,
    result: xr.Dataset,
    name: str,
    look: Look,
    board: int,
    x: Any,
) -> None:
    grid, color, marker, line, label = look
    merged = with_repeats(result)
    error = chosen_errors(merged, f"{name}_error", grid).isel(board=board)
    # One repeat has no spread: its bar has no length.
    several = error.sizes["repeat"] > 1
    sd = error.std("repeat", ddof=1) if several else 0 * error.isel(repeat=0)
    ax.errorbar(
        x,
        error.mean("repeat").to_numpy(),
        sd.to_numpy(),
        color=color,
        marker=marker,
        ls=line,
        ms=4,
        capsize=2,
        elinewidth=0.9,
        label=label,
    )


def _error_axis(ax: Axes) -> Axes:
    """Errors in per cent, from none to what guessing gives."""
    ax.axhline(0.5, color="0.6", lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set_ylim(0, 0.56)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def figure(supervision: xr.Dataset, stream: xr.Dataset) -> Figure:
    """The roll, and for every board the sheet, semi- against fully supervised errors, and online
    against offline errors."""
    boards = supervision["board"].to_numpy()
    n = len(boards)
    with figure_style():
        fig = plt.figure(figsize=(3 + 2.7 * n, 7.6))
        grid = fig.add_gridspec(3, n + 1, width_ratios=(1.1, *[1] * n), height_ratios=(1, 1.4, 1.4))
        roll = fig.add_subplot(grid[0, 0], projection="3d")
        plot_roll(supervision, roll).set_title("Swiss roll")
        rows: list[list[Axes]] = []
        for row, (draw, result) in enumerate(
            ((plot_board, supervision), (plot_supervision, supervision), (plot_stream, stream))
        ):
            shared: Axes | None = None
            made = []
            for board in range(n):
                place = grid[row, board + 1]
                ax = fig.add_subplot(place, sharex=shared, sharey=shared)
                shared = shared or ax
                draw(result, ax, board)
                if board:
                    ax.set_ylabel("")
                    ax.tick_params(labelleft=False)
                made.append(ax)
            rows.append(made)
        for ax, board in zip(rows[0], boards, strict=True):
            ax.set_title(f"squares of side {board}")
        repeats = [reported(with_repeats(r)).sizes["repeat"] for r in (supervision, stream)]
        _legend(fig, grid[0, 0], rows[0][0], "", 0)
        _legend(fig, grid[1, 0], rows[1][0], "Semi- against\nfully supervised", repeats[0])
        _legend(fig, grid[2, 0], rows[2][0], "Online against\noffline", repeats[1])
    return fig


def _by_board(result: xr.Dataset, draw: Callable[..., Axes]) -> Figure:
    """A panel per board, with one legend."""
    boards = result["board"].to_numpy()
    with figure_style():
        fig = plt.figure(figsize=(3.6 * len(boards), 3.2))
        axes = fig.subplots(1, len(boards), squeeze=False)[0]
        for board, ax in enumerate(axes):
            draw(result, ax, board).set_title(f"squares of side {boards[board]}")
        handles, labels = axes[0].get_legend_handles_labels()
        # The dots of points on a sheet are too small for a legend.
        scale = 3 if draw is plot_board else 1
        place: Literal["outside lower center"] = "outside lower center"
        fig.legend(handles, labels, loc=place, ncols=len(handles), markerscale=scale)
    return fig


def figure_supervision(result: xr.Dataset) -> Figure:
    """Semi- against fully supervised errors on every board."""
    return _by_board(result, plot_supervision)


def figure_stream(result: xr.Dataset) -> Figure:
    """Online against offline errors on every board."""
    return _by_board(result, plot_stream)


def figure_boards(result: xr.Dataset) -> Figure:
    """Every board on the unrolled sheet."""
    return _by_board(result, plot_board)


def _legend(fig: Figure, place: SubplotSpec, source: Axes, title: str, repeats: int) -> None:
    """What the lines of a row mean, in the first column."""
    ax = fig.add_subplot(place)
    ax.axis("off")
    if not title:
        legend = ax.legend(
            *source.get_legend_handles_labels(),
            loc="upper center",
            bbox_to_anchor=(0.5, 0.02),
            ncols=2,
            markerscale=3,
            handletextpad=0.1,
        )
        legend.set_in_layout(False)
        return
    ax.text(0, 0.95, title, weight="bold", size=10, va="top", transform=ax.transAxes)
    legend = ax.legend(
        *source.get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(-0.04, 0.76)
    )
    legend.set_in_layout(False)
    note = f"bars: ± 1 sd of {repeats} repeats\ndotted line: guessing"
    below = 0.62 - 0.085 * len(source.containers)
    ax.text(0, below, note, size=8, color="0.35", va="center", transform=ax.transAxes)
