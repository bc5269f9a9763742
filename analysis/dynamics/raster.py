"""Which tiles respond to which points."""

from __future__ import annotations

from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.holdings import require
from analysis.style import figure_style, whole_numbers
from analysis.tiles_in_use import are_recruited, in_words, tiles_in_order
from circuits.errors import InputError


@figure_style()
def plot_raster(
    run: xr.Dataset,
    ax: Axes | None = None,
    by: Literal["position", "time"] | None = None,
    *,
    colorbar: bool = True,
) -> Axes:
    """Raster-like map of h: a row per tile in use, a column per presentation.

    Tiles are along the manifold where the result holds ``position``, else from left to right.
    Presentations are ordered ``by`` "position" along the manifold (if the result holds it, and then
    by default) or by "time".
    """
    known = "position" in run
    by = by or ("position" if known else "time")
    if by not in ("position", "time"):
        raise InputError(f"by must be 'position' or 'time', got {by!r}")
    if by == "position" and not known:
        raise InputError(
            "this result does not hold position, the place of each point along the manifold: "
            "choose by='time'"
        )
    require(run, ("h", "W", "points"), "a map of responses")
    ax = ax or plt.figure().add_subplot()
    position = run["position"].to_numpy() if known else None
    h = run["h"].to_numpy()[:, tiles_in_order(run, position)]
    first = int(run["presentation"][0])
    if by == "position":
        h, first = h[np.argsort(run["position"].to_numpy(), kind="stable")], 0
    # A column around the number of its presentation, a row around that of its tile.
    borders = (first - 0.5, first + len(h) - 0.5, -0.5, h.shape[1] - 0.5)
    colors = plt.get_cmap("magma_r").with_extremes(bad="white")
    image = ax.imshow(
        np.where(h.T > 0, h.T, np.nan), aspect="auto", origin="lower", cmap=colors, vmin=0, vmax=1,
        extent=borders, interpolation="nearest",
    )  # fmt: skip
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label="rate h (white: silent)", pad=0.02)
    along = ", ordered along the manifold"
    ax.set_xlabel("presentation" if by == "time" else "place among the presentations" + along)
    used = f"\n({in_words(h.shape[1], run.sizes['tile'])})" if are_recruited(run) else ""
    ax.set_ylabel("tile" + (along if known else ", from left to right in the data") + used)
    for axis in (ax.xaxis, ax.yaxis):
        whole_numbers(axis)
    return ax


@figure_style()
def figure_raster(run: xr.Dataset, by: Literal["position", "time"] | None = None) -> Figure:
    """The map of h with a title."""
    fig = plt.figure(figsize=(9, 4.6))
    plot_raster(run, fig.add_subplot(), by)
    fig.suptitle("Which tiles respond to which points", fontweight="bold")
    return fig
