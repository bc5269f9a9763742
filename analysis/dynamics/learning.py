"""The slow synapses over the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.dynamics.common import check_readout
from analysis.holdings import SNAPSHOTS, require
from analysis.style import (
    GREY,
    LABEL,
    LOWER,
    UPPER,
    figure_style,
    legend_beside,
    palette,
    whole_numbers,
)
from analysis.tiles_in_use import (
    are_recruited,
    in_use_at_snapshots,
    in_words,
    recruited_of,
    tiles_in_use,
)
from circuits.errors import InputError
from circuits.lift import FloatArray

THIN: dict[str, Any] = {"lw": 0.7, "alpha": 0.7}
"""One line of many."""

MARKED_LABELS = 50
"""More labels than this would be a band of marks, and are not drawn."""


@figure_style()
def plot_learning(
    run: xr.Dataset, axes: Sequence[Axes] | None = None, readout: int = 0
) -> NDArray[Any]:
    """W, b and w of every tile over the stream, at the snapshots, in three axes.

    W has a colour per input where there are few, else its norms |W_i| are drawn. w is coloured by
    its final sign; triangles mark the labels. The line of a tile begins when it comes into use, and
    where tiles are recruited one by one, short lines under the biases mark when.
    """
    require(run, SNAPSHOTS, "a plot of learning")
    if axes is None:
        axes = list(plt.figure(figsize=(7, 7)).subplots(3, 1, sharex=True))
    if len(axes) != 3:
        raise InputError(f"a plot of learning needs 3 axes, got {len(axes)}")
    check_readout(run, readout)
    # A single snapshot makes no line.
    look = THIN | {"marker": "." if run.sizes["snapshot"] == 1 else ""}
    _draw_feedforward(run, axes[0], look)
    _draw_bias(run, axes[1], look)
    _draw_readout(run, axes[2], look, readout)
    axes[2].set_xlabel("presentations learned from")
    for ax in axes:
        whole_numbers(ax.xaxis)
        if ax.get_legend_handles_labels()[0]:
            legend_beside(ax)
    return np.array(axes, dtype=object)


def _draw_feedforward(run: xr.Dataset, ax: Axes, look: dict[str, Any]) -> None:
    learned, colors = run["snapshot"].to_numpy(), palette()
    W = _while_in_use(run, run["W_snapshots"].to_numpy())
    inputs = W.shape[2]
    if inputs > 4:
        ax.plot(learned, np.linalg.norm(W, axis=2), color=colors[0], **look)
        ax.set_ylabel("feed-forward |W| per tile")
        return
    for i in range(inputs):
        height = " (height of the lift)" if i == inputs - 1 else ""
        lines = ax.plot(learned, W[:, :, i], color=colors[i], **look)
        lines[0].set_label(f"input {i}{height}")
    ax.set_ylabel("feed-forward W")


def _draw_bias(run: xr.Dataset, ax: Axes, look: dict[str, Any]) -> None:
    learned = run["snapshot"].to_numpy()
    b = _while_in_use(run, run["b_snapshots"].to_numpy())
    ax.plot(learned, b, color=GREY, **look)[0].set_label("one tile")
    ax.plot(learned, np.nanmedian(b, axis=1), color=LABEL, marker=look["marker"], label="median")
    ax.set_ylabel("bias b")
    if are_recruited(run):
        # As with labels: the weights hold the tile once its presentation has been learned from.
        began = recruited_of(run)[tiles_in_use(run)]
        name = f"recruited: {in_words(len(began), run.sizes['tile'])}"
        began = 1 + began[np.isin(began, run["presentation"].to_numpy())]  # in this run
        marks: dict[str, Any] = {
            "transform": ax.get_xaxis_transform(),
            "ls": "",
            "marker": "|",
            "ms": 9,
        }
        ax.plot(began, np.full(len(began), 0.04), color=LABEL, label=name, **marks)


def _while_in_use(run: xr.Dataset, values: FloatArray) -> FloatArray:
    """Values (snapshot, tile, ...) of the tiles in use at the end, NaN before they were."""
    in_use = in_use_at_snapshots(run)
    in_use = in_use.reshape(*in_use.shape, *(1,) * (values.ndim - 2))
    return np.where(in_use, values, np.nan)[:, tiles_in_use(run)]


def _draw_readout(run: xr.Dataset, ax: Axes, look: dict[str, Any], readout: int) -> None:
    learned = run["snapshot"].to_numpy()
    w = _while_in_use(run, run["w_snapshots"].to_numpy()[:, readout])
    for sign, color, name in ((-1, UPPER, "ends below 0"), (1, LOWER, "ends above 0")):
        own = w[:, np.sign(w[-1]) == sign]
        if own.size:
            ax.plot(learned, own, color=color, **look)[0].set_label(name)
    ax.axhline(0, color="0.6", lw=0.8)
    ax.set_ylabel("readout w")
    labels = run["labels"].to_numpy()[:, readout]
    if np.count_nonzero(labels) > MARKED_LABELS:
        return
    # What a presentation taught is in the weights once it has been learned from.
    taught = run["presentation"].to_numpy() + 1
    reach = float(np.nanmax(np.abs(w))) or 1.0
    for sign, shape, color, name in ((1, "v", LOWER, "label +1"), (-1, "^", UPPER, "label −1")):
        at = taught[labels == sign]
        if at.size:
            height = np.full(len(at), 1.15 * sign * reach)
            ax.plot(at, height, shape, color=color, mec=LABEL, mew=0.5, ms=7, label=name)


@figure_style()
def figure_learning(run: xr.Dataset, readout: int = 0) -> Figure:
    """The slow synapses over the stream, with a title."""
    fig = plt.figure(figsize=(9, 7))
    axes = list(fig.subplots(3, 1, sharex=True))
    plot_learning(run, axes, readout)
    shown = run["presentation"].to_numpy()
    axes[0].set_xlim(shown[0], shown[-1] + 1)
    fig.suptitle("Slow learning over the whole stream, one line per tile", fontweight="bold")
    return fig
