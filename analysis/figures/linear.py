"""A linear classifier with all labels, on points and on tiles. Made from the merged repeats of a
result with its errors by features, its answers on the sheet, and the graph of overlaps."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.selection import chosen_errors, chosen_values, first_repeat, with_repeats
from analysis.style import LOWER, UPPER, figure_style

FEATURES = {
    "raw": "points",
    "lifted": "lifted points",
    "random": "random projections",
    "placed": "tiles, not learned",
    "tiles": "tiles",
    "permuted": "tiles, classes permuted",
}

LOOKS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D"), ("#CC79A7", "^"))
"""Colour and marker of the boards, in their order."""


def plot_answers(
    result: xr.Dataset, ax: Axes | None = None, features: str = "tiles", board: int = 0
) -> Axes:
    """Answers to the test points of the first repeat on the unrolled sheet, by class, at the
    penalty that was chosen."""
    ax = ax or plt.figure().add_subplot()
    penalty = chosen_values(with_repeats(result), f"{features}_error", "penalty")
    one = first_repeat(result).isel(board=board)
    sheet = one["test_unrolled"].to_numpy()
    answers = one["linear_answer"].sel(shown=features, penalty=penalty.isel(board=board))
    for label, color, name in ((-1, UPPER, "class −1"), (1, LOWER, "class +1")):
        own = sheet[answers.to_numpy() == label]
        ax.scatter(own[:, 0], own[:, 1], s=4, color=color, lw=0, label=f"answer: {name}")
    return _sheet(ax)


def plot_graph(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Tiles of the first repeat where they lie on the sheet, joined where they overlap."""
    ax = ax or plt.figure().add_subplot()
    one = first_repeat(result)
    places, overlaps = one["tile_place"].to_numpy(), one["overlaps"].to_numpy().astype(bool)
    pairs = np.argwhere(np.triu(overlaps, 1))
    ax.add_collection(LineCollection(list(places[pairs]), colors="0.75", linewidths=0.5))
    used = overlaps.any(axis=0)
    ax.scatter(places[used, 0], places[used, 1], s=8, color="black", lw=0, zorder=2)
    return _sheet(ax)


def _sheet(ax: Axes) -> Axes:
    ax.set(xlabel="along the spiral", ylabel="height", aspect="equal", xlim=(0, 2), ylim=(0, 1))
    ax.set_xticks((0, 1, 2))
    ax.set_yticks((0, 0.5, 1))
    return ax


def plot_errors(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Error on test points by features and board: mean and standard deviation."""
    ax = ax or plt.figure().add_subplot()
    merged = with_repeats(result)
    boards = merged["board"].to_numpy()
    rows = np.arange(len(FEATURES), dtype=float)
    errors = [chosen_errors(merged, f"{name}_error", "penalty") for name in FEATURES]
    for i, board in enumerate(boards):
        color, marker = LOOKS[i % len(LOOKS)]
        own = [error.isel(board=i).to_numpy() for error in errors]
        ax.errorbar(
            [values.mean() for values in own],
            rows + 0.18 * (i - (len(boards) - 1) / 2),
            xerr=[values.std(ddof=1) if values.size > 1 else 0.0 for values in own],
            color=color,
            marker=marker,
            ls="",
            ms=4,
            capsize=2,
            elinewidth=0.9,
            label=f"squares of side {board}",
        )
    ax.axvline(0.5, color="0.6", lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set_yticks(rows, list(FEATURES.values()))
    ax.invert_yaxis()
    ax.set(xlabel="error on test points", xlim=(0, 0.6))
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def figure(result: xr.Dataset) -> Figure:
    """Answers on points and on tiles, errors by features, and the graph of overlaps."""
    boards = result["board"].to_numpy()
    n = len(boards)
    with figure_style():
        fig = plt.figure(figsize=(2 + 3.0 * max(n, 2), 6.6))
        top, bottom = fig.subfigures(2, 1, squeeze=False, height_ratios=(1.15, 1))[:, 0]
        grid = top.subplots(2, n, sharex=True, sharey=True, squeeze=False)
        for row, features in zip(grid, ("raw", "tiles"), strict=True):
            for board, ax in enumerate(row):
                plot_answers(result, ax, features, board)
                ax.set_title(f"{FEATURES[features]}, squares of side {boards[board]}")
                ax.label_outer()
        handles, labels = grid[0, 0].get_legend_handles_labels()
        top.legend(handles, labels, loc="outside lower center", ncols=2, markerscale=3)
        left, right = bottom.subplots(1, 2)
        plot_errors(result, left).set_title("All labels, fresh points")
        left.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncols=n)
        plot_graph(result, right).set_title("Tiles that overlap")
    return fig
