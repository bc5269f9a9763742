"""Handwritten digits from a few labels. Made from the merged repeats of a result with the right
answers of several learners, and pictures of tiles and of images that are hard to answer."""

from __future__ import annotations

import math
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter

from analysis.selection import first_repeat, reported, with_repeats
from analysis.style import LABEL, LOWER, figure_style, whole_numbers
from circuits.lift import FloatArray

Line = Literal["-", "--", "-.", ":"]

LEARNERS: dict[str, tuple[str, str, Line, str]] = {
    "gated": ("#0072B2", "o", "-", "circuit, gated rule"),
    "paper": ("#56B4E9", "s", "-", "circuit, paper's rule"),
    "spreading_tuned": ("#D55E00", "^", "--", "LabelSpreading, chosen"),
    "spreading": ("#E69F00", "v", "--", "LabelSpreading, defaults"),
    "nearest": ("#000000", "D", ":", "nearest label"),
    "logistic": ("#009E73", "P", ":", "logistic regression on tiles"),
}
"""Colour, marker and line of the learners that are drawn, and how they are called."""

STREAM_LEARNERS = {"gated": "circuit", "nearest": "nearest label so far"}

LINES: tuple[Line, ...] = ("--", "-", "-.", ":")
"""Lines of the shares of labels, in their order."""

HARD = {
    "undecided": "Undecided (?), or least decided",
    "wrong": "Wrong, and most decided",
}
"""Images that are hard to answer, as they are called."""

HARD_ROWS = 3
"""Rows of them."""


def plot_labels(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Right answers by labels per class: mean and standard deviation over repeats."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    counts = merged["n_labels"].to_numpy()
    for i, (name, (color, marker, line, label)) in enumerate(LEARNERS.items()):
        own = merged["few_accuracy"].sel(learner=name).transpose("repeat", "n_labels").to_numpy()
        ax.errorbar(
            np.arange(len(counts)) + 0.07 * (i - (len(LEARNERS) - 1) / 2),
            own.mean(axis=0),
            own.std(axis=0, ddof=1) if len(own) > 1 else None,
            color=color,
            marker=marker,
            ls=line,
            label=label,
            ms=4.5,
            capsize=2,
            elinewidth=0.9,
        )
    ax.set_xticks(range(len(counts)), [str(count) for count in counts])
    ax.set(xlabel="labels per class", ylabel="images in their class")
    ax.set_ylim(top=1)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return ax


def plot_streams(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Right answers when images arrive, in parts of the stream, by share of labels: mean and
    standard deviation over repeats."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    times = merged["time"].to_numpy()
    shares = merged["share"].to_numpy()
    for name, label in STREAM_LEARNERS.items():
        color, marker, _, _ = LEARNERS[name]
        for i, share in enumerate(shares):
            own = merged["stream_course"].sel(stream_learner=name).isel(share=i)
            values = own.transpose("repeat", "time").to_numpy()
            mean = values.mean(axis=0)
            ax.plot(
                times, mean, color=color, marker=marker, ms=4, ls=LINES[i % len(LINES)],
                label=f"{label}, {share:.3%} labelled".replace(".000%", "%"),
            )  # fmt: skip
            if len(values) > 1:
                sd = values.std(axis=0, ddof=1)
                ax.fill_between(times, mean - sd, mean + sd, color=color, alpha=0.15, lw=0)
    ax.set(xlabel="images seen", ylabel="right when they arrive", xlim=(0, None), ylim=(0, 1))
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    whole_numbers(ax.xaxis)
    return ax


def plot_tiles(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """What tiles of the first repeat stand for, a row for every answer of their readouts; framed,
    with the class, where most of their output is on images of another one."""
    ax = ax or plt.figure().add_subplot()
    one = first_repeat(result)
    images = one["tile_image"].transpose("answer", "shown_tile", "pixel").to_numpy()
    classes = one["tile_class"].transpose("answer", "shown_tile").to_numpy()
    mosaic(ax, images)
    for row, column in np.argwhere((classes >= 0) & (classes != np.arange(len(classes))[:, None])):
        ax.add_patch(
            Rectangle((column - 0.47, row - 0.47), 0.94, 0.94, fill=False, ec=LOWER, lw=1.2)
        )
        ax.text(
            column + 0.44, row - 0.44, str(classes[row, column]),
            color=LOWER, fontsize=7, fontweight="bold", ha="right", va="top",
        )  # fmt: skip
    ax.set_yticks(range(len(images)), [str(label) for label in range(len(images))])
    ax.set(ylabel="answer of the readout", xlabel="tiles, from the most to the least used")
    return ax


def plot_hard(result: xr.Dataset, ax: Axes | None = None, kind: str = "undecided") -> Axes:
    """Images of the first repeat that are hard to answer, under each its answer and its class."""
    ax = ax or plt.figure().add_subplot()
    one = first_repeat(result).sel(hard=kind)
    images = one["hard_image"].transpose("example", "pixel").to_numpy()
    answers, classes = (one[f"hard_{name}"].to_numpy() for name in ("answer", "class"))
    columns = -(-len(images) // HARD_ROWS)
    grid = np.full((HARD_ROWS * columns, images.shape[1]), np.nan)
    grid[: len(images)] = images
    mosaic(ax, grid.reshape(HARD_ROWS, columns, -1), below=0.4)
    for i in np.flatnonzero(classes >= 0):
        said = "?" if answers[i] < 0 else str(answers[i])
        color = LOWER if 0 <= answers[i] != classes[i] else LABEL
        ax.text(
            i % columns, i // columns + 0.2, f"{said} ({classes[i]})",
            color=color, fontsize=8, ha="center", va="top",
        )  # fmt: skip
    ax.set_yticks([])
    ax.set_xlabel("answer (class)")
    return ax


def mosaic(ax: Axes, images: FloatArray, below: float = 0.0) -> None:
    """Square images (row, column, pixel) with their middles at whole numbers, black where there is
    most ink, none where they are NaN; ``below`` each there is room, as a share of its side."""
    rows, columns, pixels = images.shape
    side = math.isqrt(pixels)
    gap = max(1, side // 6)
    width, height = side + gap, side + gap + round(below * side)
    canvas = np.full((rows, height, columns, width), np.nan)
    start = gap // 2
    own = images.reshape(rows, columns, side, side).transpose(0, 2, 1, 3)
    canvas[:, start : start + side, :, start : start + side] = own
    ax.imshow(
        canvas.reshape(rows * height, columns * width),
        cmap="Greys",
        vmin=0,
        vmax=np.nanmax(images, initial=np.finfo(float).tiny),
        extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
        aspect=height / width,
    )
    ax.set_xticks([])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def figure(result: xr.Dataset) -> Figure:
    """Right answers by labels and along streams, what tiles stand for, and what is hard."""
    most = int(result["n_labels"].max())
    with figure_style():
        fig = plt.figure(figsize=(13, 7))
        left, middle, right = fig.subfigures(1, 3, squeeze=False, width_ratios=(1.15, 1, 1))[0]
        few, stream = left.subplots(2, 1)
        plot_labels(result, few).set_title("A few labels, one readout per class")
        plot_streams(result, stream).set_title("A stream, some labelled")
        for ax, place in ((few, "upper"), (stream, "lower")):
            left.legend(*ax.get_legend_handles_labels(), loc=f"outside {place} center", ncols=2)
        tiles = middle.subplots()
        plot_tiles(result, tiles).set_title(f"What tiles stand for, {most} labels per class")
        for ax, (kind, title) in zip(right.subplots(2, 1), HARD.items(), strict=True):
            plot_hard(result, ax, kind).set_title(title)
    return fig
