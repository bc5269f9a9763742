"""How labels diffuse over tiles: the paper's Eq. (exdiff), E(Δw) = η (μ S w − w). Made from a
result that holds the ``measured`` and the ``predicted`` mean change of every weight, and how often
two readouts have the ``same_sign``."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.measures import diffusion_slopes
from analysis.selection import first_repeat, with_repeats
from analysis.style import figure_style, whole_numbers

MARKERS = ("o", "s", "^", "D", "v", "P")

READOUTS = {"clip": ("#0072B2", "o"), "tanh": ("#E69F00", "x")}


DATA = {"moons": ("#0072B2", "o"), "board": ("#D55E00", "s"), "square": ("#009E73", "^")}
"""Data sets on which they are compared, and how these are drawn."""


def plot_change(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Measured against predicted mean change of w, in units of η: a point per tile and repeat."""
    ax = ax or plt.figure().add_subplot()
    moments = result["moment"].to_numpy()
    colors = plt.get_cmap("cividis")(np.linspace(0.9, 0.05, len(moments)))
    # The latest changes are the largest; drawn first, they leave the others in sight.
    for i in reversed(range(len(moments))):
        one = result.isel(moment=i)
        ax.scatter(
            one["predicted"].to_numpy().ravel(),
            one["measured"].to_numpy().ravel(),
            s=10,
            marker=MARKERS[i % len(MARKERS)],
            color=colors[i],
            alpha=0.7,
            lw=0,
            label=f"{moments[i]}",
        )
    pairs = [result[name].to_numpy().ravel() for name in ("predicted", "measured")]
    reach = 1.08 * max(np.abs(pairs).max(), 1e-12)
    ax.axline((0, 0), slope=1, color="black", lw=1, ls="--", zorder=0)
    found = diffusion_slopes(result)
    spread = f" ± {found.std(ddof=1):.3f}" if len(found) > 1 else ""
    text = f"slope {found.mean():.3f}{spread}\n(dashed: 1)"
    ax.text(0.97, 0.05, text, ha="right", transform=ax.transAxes)
    ax.set(
        xlabel="predicted change of w, (μ S w − w)",
        ylabel="measured mean change of w, E(Δw) / η",
        xlim=(-reach, reach),
        ylim=(-reach, reach),
        aspect="equal",
    )
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles[::-1],
        labels[::-1],
        title="points since the labels",
        markerscale=1.8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=len(handles),
    )
    return ax


def plot_readouts(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """The readout over time with either nonlinearity, on the stream of the first repeat; enlarged,
    the time after the first label, when they differ."""
    ax = ax or plt.figure().add_subplot()
    y = first_repeat(result)["readout_y"]
    _draw_readouts(ax, y, 10)
    ax.set(xlabel="presentation", ylabel="readout y", ylim=(-1.15, 1.15))
    whole_numbers(ax.xaxis)
    answered = np.flatnonzero((y != 0).any("readout_kind").to_numpy())
    if answered.size:
        number, span = y["presentation"].to_numpy(), y.sizes["presentation"]
        first = int(number[answered[0]])
        after = min(max(span // 25, 20), int(number[-1]) - first + 1)
        zoom = ax.inset_axes((0.45, 0.17, 0.52, 0.66))
        _draw_readouts(zoom, y, 22)
        zoom.set(xlim=(first - 0.06 * after, first + after), ylim=(-1.1, 1.1), yticks=(-1, 0, 1))
        zoom.set_title("after the first label", size=8, weight="normal")
        zoom.spines[["top", "right"]].set_visible(True)
        ax.indicate_inset_zoom(zoom, edgecolor="0.5")
        whole_numbers(zoom.xaxis)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return ax


def plot_agreement(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Share of points that clip and tanh answer with the same sign, against the gain: mean and
    standard error over repeats; dotted, the gains above which labels carry."""
    ax = ax or plt.figure().add_subplot()
    same, critical = (with_repeats(result)[name] for name in ("same_sign", "critical_mu"))
    # "used" stands for the gain of another experiment, which is a number of the others.
    gains = [gain for gain in same["gain"].to_numpy() if gain != "used"]
    mu = np.array([float(gain) for gain in gains])
    for i, (name, (color, marker)) in enumerate(DATA.items()):
        one = same.sel(data=name, gain=gains)
        # Side by side, so that one does not hide the other.
        ax.errorbar(
            mu * 1.06 ** (i - 1),
            one.mean("repeat").to_numpy(),
            # Of a single repeat it is not known, and drawn as none.
            one.std("repeat").to_numpy() / np.sqrt(max(one.sizes["repeat"] - 1, 1)),
            color=color,
            marker=marker,
            ms=4.5,
            lw=1.2,
            elinewidth=0.8,
            capsize=2,
            label=name,
        )
        ax.axvline(critical.sel(data=name).mean().item(), color=color, lw=1, ls=":", zorder=0)
    ax.set(
        xscale="log", xlabel="gain μ of the readout", ylabel="share of points with the same sign"
    )
    ax.legend(
        title="dotted: critical gain",
        title_fontsize=8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=3,
    )
    return ax


def _draw_readouts(ax: Axes, y: xr.DataArray, size: float) -> None:
    time = y["presentation"].to_numpy()
    for kind, (color, marker) in READOUTS.items():
        look: dict[str, Any] = {"color": color}
        if marker == "o":
            look = {"facecolors": "none", "edgecolors": color}
        values = y.sel(readout_kind=kind).to_numpy()
        ax.scatter(time, values, s=size, marker=marker, linewidths=0.9, label=kind, **look)


def figure(result: xr.Dataset) -> Figure:
    """The equation, and clip against tanh over time and over gains."""
    with figure_style():
        fig = plt.figure(figsize=(13.5, 4.4))
        axes = fig.subplot_mosaic("abc", width_ratios=(1, 1.15, 0.95))
        plot_change(result, axes["a"]).set_title("Mean change of w: measured, predicted")
        plot_readouts(result, axes["b"]).set_title("Readout by clip and by tanh")
        plot_agreement(result, axes["c"]).set_title("Same answer by clip and tanh")
    return fig
