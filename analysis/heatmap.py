"""Shares over two parameters, as a map with its numbers."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from circuits.lift import FloatArray


def draw_shares(
    ax: Axes, values: FloatArray, rows: Iterable[float], columns: Iterable[float]
) -> None:
    """Shares (row, column) from 0 to 1 as colours and numbers, the first row lowest, with the
    values of both parameters at the axes."""
    colors = plt.get_cmap("viridis")
    ax.imshow(values, cmap=colors, vmin=0, vmax=1, origin="lower", aspect="auto")
    for j, row in enumerate(values):
        for k, value in enumerate(row):
            # In a box of the cell's colour, because a line may run through it.
            box = {"fc": colors(value), "ec": "none", "pad": 1}
            ax.text(
                k, j, f"{value:.2f}", ha="center", va="center", fontsize=7, bbox=box, zorder=3,
                color="k" if value > 0.6 else "w",
            )  # fmt: skip
    for axis, numbers in ((ax.yaxis, rows), (ax.xaxis, columns)):
        names = [f"{number:.4g}" for number in numbers]
        axis.set_ticks(range(len(names)), names)
        axis.set_minor_locator(NullLocator())
    ax.grid(visible=False)
