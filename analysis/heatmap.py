"""Values over two parameters, as a map with its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from circuits.lift import FloatArray

MOST_NUMBERS = 12
"""Rows or columns of a map in which there is room for numbers, and for the names of all values."""


def draw_shares(
    ax: Axes, values: FloatArray, rows: Iterable[float], columns: Iterable[float]
) -> None:
    """Shares (row, column) from 0 to 1 as colours and numbers, the first row lowest, with the
    values of both parameters at the axes."""
    up, across = ([f"{number:.4g}" for number in numbers] for numbers in (rows, columns))
    draw_map(ax, values, up, across, (0, 1))


def draw_map(
    ax: Axes,
    values: FloatArray,
    rows: Sequence[str],
    columns: Sequence[str],
    scale: tuple[float, float],
) -> None:
    """Values (row, column) on a scale as colours and, where there is room, as numbers, the first
    row lowest, with the names of rows and columns at the axes. What is unknown is a dash."""
    colors, (low, high) = plt.get_cmap("viridis"), scale
    reach = high - low
    ax.imshow(values, cmap=colors, vmin=low, vmax=high, origin="lower", aspect="auto")
    # Three digits of what differs.
    digits = min(max(2 - math.floor(math.log10(reach)), 0), 6) if reach > 0 else 3
    numbers = max(values.shape) <= MOST_NUMBERS
    for (j, k), value in np.ndenumerate(values if numbers else values[:0]):
        known = bool(np.isfinite(value))
        place = (value - low) / reach if reach > 0 and known else 0.0
        # In a box of the cell's colour, because a line may run through it.
        box = {"fc": colors(place) if known else "w", "ec": "none", "pad": 1}
        ax.text(
            k, j, (f"{value:.{digits}f}" if abs(value) < 1e5 else f"{value:.3g}") if known else "–",
            ha="center", va="center", fontsize=7, bbox=box, zorder=3,
            color="k" if place > 0.6 or not known else "w",
        )  # fmt: skip
    for axis, names in ((ax.yaxis, rows), (ax.xaxis, columns)):
        every = math.ceil(len(names) / MOST_NUMBERS)
        axis.set_ticks(range(0, len(names), every), names[::every])
        axis.set_minor_locator(NullLocator())
    ax.grid(visible=False)
