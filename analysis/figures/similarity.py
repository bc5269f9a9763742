"""What outputs of tiles keep of the similarity of inputs, and the objective of Eq. (1) against its
optimum. Made from the merged repeats of a result with curves, pairs and objectives by manifold."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis.selection import first_repeat, reported, with_repeats
from analysis.style import figure_style

CURVES = {
    "online": ("#0072B2", "-", "circuit, mean"),
    "optimum": ("#009E73", "--", "best found offline, mean"),
    "random": ("#666666", ":", "random projections, mean"),
}
"""Outputs whose mean is drawn, and how."""

MANIFOLDS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D"), ("#CC79A7", "^"))
"""Colour and marker of the manifolds, in their order."""


def plot_pairs(result: xr.Dataset, ax: Axes | None = None, manifold: int = 0) -> Axes:
    """h.h' against the similarity of inputs on one manifold: pairs of the first repeat, and means
    over all repeats."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result)).isel(manifold=manifold)
    one = first_repeat(merged)
    similarity = merged["similarity"].to_numpy()
    inputs, outputs = (one[name].to_numpy() for name in ("pair_similarity", "pair_output"))
    ax.scatter(inputs, outputs, s=6, color="0.7", lw=0, label="pairs of points")
    for name, (color, line, label) in CURVES.items():
        values = merged["overlap_curve"].sel(output=name).mean("repeat").to_numpy()
        ax.plot(similarity, values, color=color, ls=line, lw=1.6, label=label)
    straight = (similarity.min(), 0.0, 1.0)
    ax.plot(straight, (0, 0, 1), color="black", lw=0.8, label="[x.x′ − α]₊ / (1 − α)")
    ax.axvline(0, color="0.6", lw=0.8, ls=(0, (1, 2)), zorder=0)
    ax.set(
        xlabel="(x.x′ − α) / (1 − α)",
        ylabel="h.h′",
        xlim=(similarity.min(), 1.02),
        ylim=(-0.03, 1.05),
    )
    return ax


def plot_growth(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Objective relative to the optimum as the stream grows, and of tiles that never learned."""
    ax = ax or plt.figure().add_subplot()
    merged = reported(with_repeats(result))
    times = merged["time"].to_numpy()
    for i, name in enumerate(merged["manifold"].to_numpy()):
        color, marker = MANIFOLDS[i % len(MANIFOLDS)]
        growth = merged["growth"].sel(manifold=name)
        several = growth.sizes["repeat"] > 1
        sd = growth.std("repeat", ddof=1) if several else 0 * growth.isel(repeat=0)
        ax.errorbar(
            times * 1.04 ** (i - 1.5),  # beside one another
            growth.mean("repeat").to_numpy(),
            sd.to_numpy(),
            color=color,
            marker=marker,
            ms=4,
            capsize=2,
            elinewidth=0.9,
            label=str(name),
        )
        placed = float(merged["ratio"].sel(manifold=name, output="placed").mean())
        ax.axhline(placed, color=color, lw=0.9, ls=":")
    ax.axhline(1, color="0.6", lw=0.8)
    ax.set_xscale("log")
    ax.set_xticks(times, [f"{time}" for time in times])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set(xlabel="presentations", ylabel="objective / best found offline")
    return ax


def plot_orthogonal(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Share of orthogonal pairs below the threshold: of all, and of those right below."""
    ax = ax or plt.figure().add_subplot()
    values = reported(with_repeats(result))["measure_value"].sel(output="online")
    names = values["manifold"].to_numpy()
    looks = {
        "orthogonal": ("#0072B2", "o", "all below α"),
        "orthogonal_near": ("#D55E00", "s", "right below α"),
    }
    for measure, (color, marker, label) in looks.items():
        chosen = values.sel(measure=measure).transpose("repeat", "manifold").to_numpy()
        places = np.broadcast_to(np.arange(len(names)), chosen.shape)
        ax.scatter(places, chosen, s=14, marker=marker, color=color, alpha=0.6, lw=0, label=label)
    ax.set_xticks(range(len(names)), [str(name) for name in names])
    ax.set(
        xlabel="manifold",
        ylabel="share of pairs with h.h′ < 0.01",
        xlim=(-0.5, len(names) - 0.5),
        ylim=(-0.03, 1.03),
    )
    return ax


def figure(result: xr.Dataset) -> Figure:
    """Pairs on every manifold; below, the objective and the share of orthogonal pairs."""
    names = result["manifold"].to_numpy()
    with figure_style():
        fig = plt.figure(figsize=(11, 6.4))
        top, bottom = fig.subfigures(2, 1, squeeze=False)[:, 0]
        axes = top.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for i, ax in enumerate(axes):
            plot_pairs(result, ax, i).set_title(str(names[i]))
            if i:
                ax.set_ylabel("")
        handles, labels = axes[0].get_legend_handles_labels()
        top.legend(handles, labels, loc="outside lower center", ncols=len(handles), markerscale=2)
        left, right = bottom.subplots(1, 2)
        plot_growth(result, left).set_title("Objective (dotted: placed, not learned)")
        plot_orthogonal(result, right).set_title("Orthogonal pairs, a mark per repeat")
        for ax in (left, right):
            ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return fig
