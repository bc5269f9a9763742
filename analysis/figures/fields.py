"""Fields that drift in noise on W. Made from the merged repeats of a result with the middles of the
fields of a ring of tiles, what they and the population keep of what they were, how far they move,
and the accuracy of readouts on moons."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.selection import first_repeat, reported, with_repeats
from analysis.style import GREY, figure_style, palette, whole_numbers
from analysis.theory import diffusion_by_noise
from circuits.lift import FloatArray

MARKED = 5
"""Tiles that are followed by a line of their own."""

KEPT = {
    "likeness": ("#0072B2", "similarity of points"),
    "own_field": ("#D55E00", "single fields"),
    "turned": ("#000000", "similarity, fields turned"),
}
"""What may stay as it was: colour and name."""

STREAMS = {"still": (":", "no noise"), "noise": ("-", "noise"), "frozen": ("--", "noise, w frozen")}
RULES = {"paper": ("#0072B2", 2.8, "paper's"), "gated": ("#E69F00", 1.3, "gated")}
"""Readouts: colour, width of the line (they lie on each other), name."""


def plot_centers(result: xr.Dataset, size: float, ax: Axes | None = None) -> Axes:
    """Where the middles of fields lie at every moment, in the first repeat; `MARKED` tiles have a
    line, which is broken where they jump more than a quarter round or are silent."""
    ax = ax or plt.figure().add_subplot()
    first = first_repeat(with_repeats(result))
    centers = first["center"].sel(size=size).transpose("moment", "tile").to_numpy()
    moments = first["moment"].to_numpy()
    ax.plot(moments, centers, ls="", marker=".", ms=3, color=GREY)
    apart = max(1, centers.shape[1] // MARKED)
    marked = np.argsort(centers[0])[apart // 2 :: apart][:MARKED]
    for color, tile in zip(palette(), marked, strict=False):
        x, y = np.repeat(moments, 2).astype(float)[:-1], np.full(2 * len(moments) - 1, np.nan)
        y[::2] = centers[:, tile]
        # Between two moments of a tile that did not jump, the line goes through the middle.
        near = np.abs(np.diff(y[::2])) < math.pi / 2
        y[1::2] = np.where(near, (y[:-1:2] + y[2::2]) / 2, np.nan)
        x[1::2] = (moments[:-1] + moments[1:]) / 2
        ax.plot(x, y, color=color, lw=1.3)
        ax.plot(moments, y[::2], ls="", marker="o", ms=3, color=color)
    ax.set(ylim=(-math.pi, math.pi), ylabel="middle of the field (rad)")
    ax.set_yticks([-math.pi, 0, math.pi], ["−π", "0", "π"])
    return _time(ax)


def plot_kept(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Correlation of single fields, and of the similarity of any two points, with what they were:
    mean and standard deviation over repeats, with noise and (dotted) without."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    shown = float(first_repeat(merged)["shown_size"])
    own = merged["own_field"].mean("tile")
    for name, (color, label) in KEPT.items():
        values = own if name == "own_field" else merged[name]
        sizes = (shown,) if name == "turned" else (shown, 0.0)
        for size in sizes:
            line = "--" if name == "turned" else "-" if size else ":"
            words = label if size else f"{label}, no noise"
            _band(ax, merged["moment"], values.sel(size=size), "moment", color, line, words)
    ax.axhline(0, color=GREY, lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set(ylabel="correlation with what was", ylim=(-0.2, 1.05))
    return _time(ax)


def plot_moved(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Mean squared displacement of tiles along the ring by time, one line per size of the noise."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result)).sortby("size")
    later = merged.isel(moment=slice(1, None))
    for color, size in zip(_shades(merged.sizes["size"]), merged["size"].to_numpy(), strict=True):
        mean = later["moved"].sel(size=size).mean("repeat").to_numpy()
        ax.plot(later["moment"], mean, color=color, marker="o", ms=3, label=_named(float(size)))
    ax.set(yscale="log", ylabel="squared displacement (rad²)")
    return _time(ax)


def plot_diffusion(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Diffusion constant over the size of the noise, of all steps and of those within a tile
    radius, with that of noise along the ring alone, and that without noise."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result)).sortby("size")
    noisy = merged.sel(size=merged["size"] > 0)
    sizes = noisy["size"].to_numpy()
    kinds = {
        "diffusion": ("#D55E00", "o", "all steps"),
        "creep": ("#0072B2", "s", "steps within a radius"),
    }
    for name, (color, marker, label) in kinds.items():
        values = noisy[name].transpose("repeat", "size").to_numpy()
        ax.errorbar(
            sizes, values.mean(axis=0), _spread(values), color=color, marker=marker, ms=4,
            capsize=2, elinewidth=0.9, label=label,
        )  # fmt: skip
    weight = float(noisy["weight"].mean())
    ax.plot(sizes, diffusion_by_noise(sizes, weight), color="k", ls="--", label="size²/(2|W|²)")
    still = float(merged["diffusion"].sel(size=0.0).mean())
    ax.axhline(still, color="k", lw=0.9, ls=":", label="no noise")
    ax.set(xscale="log", yscale="log", xlabel="noise on W per presentation")
    ax.set_ylabel("D (rad² per presentation)")
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.set_xticks([], minor=True)
    return ax


def plot_readout(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Accuracy on the moons in parts of the stream: mean and standard deviation over repeats."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    for rule, (color, width, name) in RULES.items():
        for stream, (line, words) in STREAMS.items():
            course = merged["readout_course"].sel(rule=rule, stream=stream)
            _band(ax, merged["part"], course, "part", color, line, f"{name}, {words}", width)
    ax.axhline(0.5, color=GREY, lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set(ylabel="accuracy", ylim=(0.25, 1.05))
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return _time(ax)


def _band(
    ax: Axes,
    times: xr.DataArray,
    values: xr.DataArray,
    dim: str,
    color: str,
    line: str,
    label: str,
    width: float = 1.6,
) -> None:
    """A line through the means over repeats, in a band of their standard deviation."""
    array = values.transpose("repeat", dim).to_numpy()
    mean, sd = array.mean(axis=0), _spread(array)
    x = times.to_numpy()
    ax.plot(x, mean, color=color, ls=line, lw=width, label=label)
    ax.fill_between(x, mean - sd, mean + sd, color=color, alpha=0.15, lw=0)


def _spread(values: FloatArray) -> FloatArray:
    """Standard deviation over repeats; none for a single one."""
    found: FloatArray = values.std(axis=0, ddof=min(1, len(values) - 1))
    return found


def _time(ax: Axes) -> Axes:
    ax.set_xlabel("presentations since the tiling")
    whole_numbers(ax.xaxis)
    return ax


def _shades(count: int) -> list[tuple[float, float, float, float]]:
    """Colours that tell an order without colour vision: dark is little."""
    return [plt.get_cmap("viridis")(0.9 * k / max(1, count - 1)) for k in range(count)]


def _named(size: float) -> str:
    return f"{size:g}" if size else "no noise"


def figure(result: xr.Dataset) -> Figure:
    """Tiles on the ring without and with noise, what is kept, how far tiles move, and whether
    readouts keep up."""
    with figure_style():
        fig = plt.figure(figsize=(13, 8.4))
        merged = with_repeats(result)
        size = float(first_repeat(merged)["shown_size"])
        parts: list[Any] = np.asarray(fig.subfigures(2, 3)).ravel().tolist()
        axes = [part.subplots() for part in parts]
        plot_centers(merged, 0.0, axes[0]).set_title("A ring of tiles, no noise")
        plot_centers(merged, size, axes[1]).set_title(f"Noise of {size:g} on W")
        plot_kept(merged, axes[2]).set_title("What is kept")
        plot_moved(merged, axes[3]).set_title("How far tiles move")
        plot_diffusion(merged, axes[4]).set_title("Diffusion constant")
        plot_readout(merged, axes[5]).set_title("Moons: two labels, none later")
        for part, ax in zip(parts[2:], axes[2:], strict=True):
            part.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig
