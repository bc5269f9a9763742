"""The paper's Fig. 1: the network, and receptive fields of its tiles on two arcs. Made from a
result that holds ``h_final`` (the responses of the finished tiles) and ``position`` (the place
along the arcs) besides what every run holds."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]

from analysis.selection import first_repeat
from analysis.style import figure_style
from analysis.tiles_in_use import tiles_in_order
from circuits.lift import FloatArray

EXCITATORY, INHIBITORY, READOUT, INPUT = "#0072B2", "#D55E00", "#009E73", "#666666"
"""Colours of the populations."""

HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
"""Neighbouring tiles take turns in these."""


class Population(NamedTuple):
    """A row of neurons in the diagram."""

    x: FloatArray
    y: FloatArray
    color: str


def plot_network(run: xr.Dataset, ax: Axes | None = None) -> Axes:
    """The two layers and their synapses, with the sizes of this result."""
    ax = ax or plt.figure().add_subplot()
    sizes = run.sizes
    n, m, k, r = (sizes[dim] for dim in ("input", "tile", "interneuron", "readout"))
    inputs = _row(ax, n, (0.0, 0.0), 3, INPUT)
    tiles = _row(ax, m, (0.0, 2.3), 6, EXCITATORY)
    interneurons = _row(ax, k, (4.0, 2.3), 4, INHIBITORY, upright=True)
    readouts = _row(ax, r, (0.0, 4.6), 3, READOUT)
    _fan(ax, inputs, tiles)
    _fan(ax, tiles, readouts)
    right, left = tiles.x.max() + 0.45, interneurons.x.min() - 0.45
    _arrow(ax, (right, 2.6), (left, 2.6), EXCITATORY, bend=-0.3)
    _arrow(ax, (left, 2.0), (right, 2.0), INHIBITORY, bend=-0.3, inhibits=True)
    _arrow(ax, (tiles.x.min() - 1.3, 2.3), (tiles.x.min() - 0.42, 2.3), "0.3")
    label_end = readouts.x.max() + 0.36
    _arrow(ax, (label_end + 1.2, 4.6), (label_end, 4.6), "black")
    middle = (left + right) / 2
    for x, y, symbol, color in (
        (-1.6, 1.15, "W", "0.3"),
        (-1.2, 3.6, "w", "0.3"),
        (middle, 3.18, "V", EXCITATORY),
        (middle, 1.42, "V^\\top", INHIBITORY),
        (tiles.x.min() - 1.5, 2.3, "b", "0.3"),
        (label_end + 1.4, 4.6, "z", "black"),
    ):
        ax.text(x, y, f"${symbol}$", color=color, size=13, ha="center", va="center")
    for x, y, text, color, side in (
        (0.0, -0.45, f"inputs $x$ ({n})", INPUT, "center"),
        (tiles.x.min() + 0.1, 3.0, f"excitatory\ntiles $h$ ({m})", EXCITATORY, "right"),
        (4.0, min(interneurons.y.min() - 0.6, 1.2), f"inhibitory\n$u$ ({k})", INHIBITORY, "center"),
        (0.0, 5.1, f"readout $y$ ({r})", READOUT, "center"),
        (tiles.x.min() - 1.5, 1.92, "bias", "0.3", "center"),
        (label_end + 1.6, 4.6, "label\nchannel", "black", "left"),
    ):
        ax.text(x, y, text, color=color, ha=side, va="center", linespacing=1.1)
    ax.set(xlim=(-3.9, 4.7), ylim=(-0.8, 5.5), aspect="equal")
    ax.axis("off")
    return ax


def _row(
    ax: Axes,
    size: int,
    center: tuple[float, float],
    most: int,
    color: str,
    upright: bool = False,
) -> Population:
    """A population in its box: all of its neurons, or some of them and dots for the rest."""
    shown = min(size, most)
    gap = 0.62
    # Between the last two neurons there is room for the dots.
    along = np.arange(shown, dtype=float)
    along[-1] += 0.75 * (size > most)
    along = gap * (along - along[-1] / 2)
    x, y = np.full(shown, center[0]), np.full(shown, center[1])
    if upright:
        y = y - along
    else:
        x = x + along
    width, height = np.ptp(x), np.ptp(y)
    ax.add_patch(
        FancyBboxPatch(
            (x.min(), y.min()),
            float(width),
            float(height),
            boxstyle="round,pad=0.3,rounding_size=0.3",
            fc=(*to_rgb(color), 0.13),
            ec="none",
            zorder=0,
        )
    )
    for place in zip(x, y, strict=True):
        ax.add_patch(Circle(place, 0.19, fc=color, ec="white", lw=1, zorder=3))
    if size > most:
        middle = (x[-2] + x[-1]) / 2, (y[-2] + y[-1]) / 2
        for step in (-0.13, 0.0, 0.13):
            dot = (middle[0], middle[1] + step) if upright else (middle[0] + step, middle[1])
            ax.add_patch(Circle(dot, 0.035, fc=color, ec="none", zorder=3))
    return Population(x, y, color)


def _fan(ax: Axes, lower: Population, upper: Population) -> None:
    """Every neuron of one population to every one of the next."""
    for start in zip(lower.x, lower.y, strict=True):
        for end in zip(upper.x, upper.y, strict=True):
            ax.add_patch(
                FancyArrowPatch(
                    start,
                    end,
                    arrowstyle="-|>,head_length=2.2,head_width=1.1",
                    mutation_scale=1.4,
                    shrinkA=8,
                    shrinkB=8,
                    lw=0.6,
                    color=lower.color,
                    alpha=0.55,
                    zorder=1,
                )
            )


def _arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    color: str,
    bend: float = 0.0,
    inhibits: bool = False,
) -> None:
    """A bundle of synapses; a bar for a head means inhibition."""
    head = "|-|,widthA=0,widthB=4" if inhibits else "-|>,head_length=5,head_width=2.5"
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=head,
            mutation_scale=1.4,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=0,
            shrinkB=0,
            lw=2,
            color=color,
            zorder=2,
        )
    )


def tile_colors(n_tiles: int) -> list[tuple[float, float, float]]:
    """One colour per tile: neighbours differ in hue, tiles of one hue in lightness."""
    rounds = -(-n_tiles // len(HUES))
    shades = np.linspace(-0.35, 0.45, rounds) if rounds > 1 else np.zeros(1)
    colors = []
    for i in range(n_tiles):
        shade = shades[i // len(HUES)]
        mixed = (1 - abs(shade)) * np.array(to_rgb(HUES[i % len(HUES)])) + max(shade, 0.0)
        colors.append((float(mixed[0]), float(mixed[1]), float(mixed[2])))
    return colors


def plot_fields(run: xr.Dataset, ax: Axes3D | None = None) -> Axes3D:
    """Receptive fields: the points in the plane, above each the responses of the tiles to it."""
    if ax is None:
        ax = plt.figure().add_subplot(projection="3d")
    one = first_repeat(run)
    points, h = one["points"].to_numpy(), one["h_final"].to_numpy()
    ax.scatter(points[:, 0], points[:, 1], 0, s=1.5, c="black", lw=0, depthshade=False)
    # Colours follow the tiles along the arcs, so that neighbours are easy to tell apart.
    position = one["position"].to_numpy()
    order = tiles_in_order(one, position)
    responding = [int(tile) for tile in order if h[:, tile].any()]
    for tile, color in zip(responding, tile_colors(len(responding)), strict=True):
        active = h[:, tile] > 0
        field = np.column_stack([points[active], h[active, tile]])
        ax.scatter(*field.T, s=2, color=color, alpha=0.35, lw=0, depthshade=False)
        for arc in (position[active] < 0, position[active] >= 0):
            ax.plot(*_smooth(field[arc], position[active][arc]).T, color=color, lw=1.6)
    ax.set(xlabel="first coordinate", ylabel="second coordinate", zlabel="response h of a tile")
    ax.set_zlim(0, 1.02 * (h.max() or 1.0))
    width, depth = np.ptp(points, axis=0)
    ax.set_box_aspect((width, depth, 0.5 * max(width, depth)), zoom=0.95)
    ax.view_init(elev=42, azim=-60)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((1, 1, 1, 0))
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    return ax


def _smooth(field: FloatArray, position: FloatArray, group: int = 12) -> FloatArray:
    """Means of neighbours along the arc: a line the eye can follow through the points."""
    ordered = field[np.argsort(position, kind="stable")]
    parts = np.array_split(ordered, max(len(ordered) // group, 1)) if len(ordered) else []
    return np.array([part.mean(axis=0) for part in parts]).reshape(-1, field.shape[1])


def figure(run: xr.Dataset) -> Figure:
    """Both panels, from the first repeat."""
    with figure_style():
        fig = plt.figure(figsize=(11, 4.6))
        grid = fig.add_gridspec(1, 2, width_ratios=(1, 1.1))
        plot_network(run, fig.add_subplot(grid[0])).set_title("Network")
        fields = fig.add_subplot(grid[1], projection="3d")
        plot_fields(run, fields).set_title("Receptive fields on two arcs")
    return fig
