"""Tiles forming on the data, snapshot by snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from analysis.dynamics.common import check_readout
from analysis.holdings import require
from analysis.kinds import KINDS
from analysis.measures import tile_centers_of
from analysis.plane import LabelMarks, flatten, label_entries, name_axes
from analysis.style import LABEL, READOUT_MAP, figure_style
from analysis.theory import finite_of, lift_of, parameters_of
from analysis.tiles_in_use import are_recruited, in_use_at_snapshots, in_words, recruited_of
from circuits.errors import InputError
from circuits.lift import FloatArray

NEEDED = KINDS["tiles"].needs[0]

PRESENTED, COMING, TRAIL = "0.5", "0.8", "0.0"
"""Points that have been presented, points that have not, and the way of a tile since the start."""


def tiles_at(run: xr.Dataset, snapshot: int) -> tuple[FloatArray, FloatArray]:
    """Where tiles lie in the data at a snapshot, and how far they reach.

    The centre is W_i put back from the sphere. A tile is driven, a_i > 0, by inputs with
    x.W_i/|W_i| > sqrt(alpha) b_i/|W_i|: by points within sqrt(2 R^2 (1 - that)) on the sphere.
    """
    lift = lift_of(run)
    W = run["W_snapshots"][snapshot].to_numpy()
    b = run["b_snapshots"][snapshot].to_numpy()
    norm = np.linalg.norm(W, axis=1)
    threshold = np.sqrt(finite_of(run, "alpha")) * b
    overlap = np.divide(threshold, norm, out=np.ones_like(norm), where=norm > 0)
    return tile_centers_of(W, lift), lift.radius * np.sqrt(2 * np.clip(1 - overlap, 0, 2))


@figure_style()
def plot_tile_map(
    run: xr.Dataset,
    snapshot: int = -1,
    ax: Axes | None = None,
    *,
    readout: int = 0,
    coordinates: tuple[int, int] | None = None,
) -> Axes:
    """The tiles on the data at one snapshot: each disc is the region that drives the tile.

    Discs and their centres are coloured by the readout weight, blue below zero and orange above, on
    the scale of the last snapshot; a line leads to each centre from where it was at the first
    snapshot that the tile was in use at. Idle tiles are not drawn; where tiles are recruited, the
    title says how many are in use. Dark points have been presented by then, light ones not yet;
    those that were labelled carry the label's sign.
    """
    require(run, NEEDED, "a map of the tiles")
    count = run.sizes["snapshot"]
    if not -count <= snapshot < count:
        raise InputError(f"there is no snapshot {snapshot}: this result holds {count}")
    ax = ax or plt.figure().add_subplot()
    TileMap(run, ax, readout, coordinates).show(snapshot)
    return ax


class TileMap:
    """One map of the tiles that can show any snapshot."""

    def __init__(
        self, run: xr.Dataset, ax: Axes, readout: int, coordinates: tuple[int, int] | None
    ) -> None:
        self.run, self.ax, self.coordinates = run, ax, coordinates
        self.readout = check_readout(run, readout)
        self.points = flatten(run["points"].to_numpy(), coordinates)
        self.labels = run["labels"].to_numpy()[:, readout]
        self.in_use, self.start = in_use_at_snapshots(run), _starts(run)
        self.recruits = are_recruited(run)
        m, scale = run.sizes["tile"], readout_scale(run, readout)
        colored: dict[str, Any] = {"cmap": scale.cmap, "norm": scale.norm}
        self.discs = EllipseCollection(
            np.zeros(m), np.zeros(m), np.zeros(m), units="xy", offsets=np.zeros((m, 2)),
            offset_transform=ax.transData, alpha=0.22, linewidths=0, zorder=1, **colored,
        )  # fmt: skip
        ax.add_collection(self.discs, autolim=False)
        ax.scatter(self.points[:, 0], self.points[:, 1], s=4, c=COMING, linewidths=0, zorder=2)
        self.presented = ax.scatter([], [], s=4, c=PRESENTED, linewidths=0, zorder=3)
        self.trails = LineCollection([], colors=TRAIL, linewidths=1.3, zorder=4)
        ax.add_collection(self.trails, autolim=False)
        self.dots = ax.scatter(
            np.zeros(m), np.zeros(m), s=26, c=np.zeros(m), edgecolors=LABEL, linewidths=0.7,
            zorder=5, **colored,
        )  # fmt: skip
        self.marks = LabelMarks(ax)
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        margin = max(parameters_of(run).tile_radius, 0.05 * float((high - low).max()))
        ax.set_xlim(low[0] - margin, high[0] + margin)
        ax.set_ylim(low[1] - margin, high[1] + margin)
        ax.set_aspect("equal")
        name_axes(ax, run.sizes["coordinate"], coordinates)

    def show(self, snapshot: int) -> None:
        """Move everything to a snapshot."""
        shown = int(self.run["snapshot_presentation"][snapshot]) + 1
        used = np.flatnonzero(self.in_use[snapshot])
        centers, reach = (values[used] for values in tiles_at(self.run, snapshot))
        flat = flatten(centers, self.coordinates)
        start = flatten(self.start[snapshot, used], self.coordinates)
        w = self.run["w_snapshots"][snapshot, self.readout].to_numpy()[used]
        self.presented.set_offsets(self.points[:shown])
        self.trails.set_segments(list(np.stack([start, flat], axis=1)))
        for collection in (self.dots, self.discs):
            collection.set_offsets(flat)
            collection.set_array(w)
        self.discs.set_widths(2 * reach)
        self.discs.set_heights(2 * reach)
        self.discs.set_angles(np.zeros(len(used)))
        self.marks.show(self.points[:shown], self.labels[:shown])
        learned = int(self.run["snapshot"][snapshot])
        known = f"\n{in_words(len(used), self.in_use.shape[1])}" if self.recruits else ""
        self.ax.set_title(f"after {learned} presentation{'s' * (learned != 1)}{known}")


def _starts(run: xr.Dataset) -> FloatArray:
    """Where the tiles of every snapshot started, (snapshot, tile, coordinate): at the first
    snapshot at which a tile was in use, or the first since it moved (``recycle``)."""
    in_use, recruited = in_use_at_snapshots(run), recruited_of(run)
    centers = _all_centers(run)
    moved = run["snapshot"].to_numpy()[:, None] > recruited
    first = np.where(moved & in_use, moved.argmax(axis=0), in_use.argmax(axis=0))
    return np.asarray(np.take_along_axis(centers, first[:, :, None], axis=0))


def _all_centers(run: xr.Dataset) -> FloatArray:
    """Where the tiles lie at every snapshot: (snapshot, tile, coordinate)."""
    W = run["W_snapshots"].to_numpy()
    count, m, inputs = W.shape
    return tile_centers_of(W.reshape(-1, inputs), lift_of(run)).reshape(count, m, -1)


def moments_of_change(run: xr.Dataset, wanted: int, readout: int = 0) -> list[int]:
    """``wanted`` snapshots between which about equally much changes, the first and last among them.

    What counts is how far the tiles move, in tile radii, their readout weights, in units of the
    largest at the end, and tiles that come into use.
    """
    count = run.sizes["snapshot"]
    if count <= wanted:
        return list(range(count))
    in_use, starts = in_use_at_snapshots(run), _starts(run)
    moved = np.where(in_use[:, :, None], _all_centers(run) - starts, 0.0).reshape(count, -1)
    w = run["w_snapshots"].to_numpy()[:, readout]
    parts = moved / parameters_of(run).tile_radius, w / _reach(run, readout), in_use.astype(float)
    state = np.hstack(parts)
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(state, axis=0), axis=1))])
    # Where nothing changes at the end, the last is not the first that has all of the change.
    picked = np.searchsorted(way, np.linspace(0, way[-1], wanted)[:-1])
    return sorted({0, *picked.clip(0, count - 1).tolist(), count - 1})


@figure_style()
def plot_tiles(
    run: xr.Dataset,
    snapshots: Iterable[int] | None = None,
    axes: Sequence[Axes] | None = None,
    *,
    readout: int = 0,
    coordinates: tuple[int, int] | None = None,
) -> NDArray[Any]:
    """Tiles forming on the manifold: one map (`plot_tile_map`) per snapshot.

    By default six, or as many as there are axes, chosen so that each shows about equally much
    change (`moments_of_change`).
    """
    require(run, NEEDED, "a map of the tiles")
    check_readout(run, readout)
    if snapshots is None:
        chosen = moments_of_change(run, 6 if axes is None else len(axes), readout)
    else:
        chosen = [int(s) for s in snapshots]
    if axes is None:
        axes = _panels(run, len(chosen), coordinates)
    if len(axes) != len(chosen):
        raise InputError(f"{len(chosen)} snapshots need as many axes, got {len(axes)}")
    for snapshot, ax in zip(chosen, axes, strict=True):
        plot_tile_map(run, snapshot, ax, readout=readout, coordinates=coordinates)
        ax.label_outer()
    return np.array(axes, dtype=object)


def _panels(run: xr.Dataset, count: int, coordinates: tuple[int, int] | None) -> list[Axes]:
    """Axes in rows of three, of the shape of the data."""
    columns = min(3, count)
    rows = -(-count // columns)
    spans = np.ptp(flatten(run["points"].to_numpy(), coordinates), axis=0)
    spans = spans + 2 * parameters_of(run).tile_radius
    titles = 0.65 if are_recruited(run) else 0.45
    height = float(np.clip(3.2 * spans[1] / spans[0], 0.7, 4.0)) + titles
    fig = plt.figure(figsize=(3.6 * columns + 0.9, height * rows + 0.8))
    grid = fig.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for ax in grid.flat[count:]:
        ax.remove()
    return list(grid.flat[:count])


def _reach(run: xr.Dataset, readout: int) -> float:
    """The largest readout weight at the end."""
    return float(np.abs(run["w_snapshots"].to_numpy()[-1, readout]).max()) or 1.0


def readout_scale(run: xr.Dataset, readout: int) -> ScalarMappable:
    """The colours of readout weights, on the scale of the last snapshot."""
    reach = _reach(run, readout)
    return ScalarMappable(Normalize(-reach, reach), READOUT_MAP)


def add_scale(fig: Figure, axes: Sequence[Axes], run: xr.Dataset, readout: int) -> bool:
    """The scale of the colours, beside the maps; without a label there is none, and no scale."""
    taught = bool(run["w_snapshots"].to_numpy()[-1, readout].any())
    if taught:
        scale = readout_scale(run, readout)
        fig.colorbar(scale, ax=axes, label="readout weight w", shrink=0.8, pad=0.02)
    return taught


def add_legend(fig: Figure, labels: ArrayLike, columns: int = 5) -> None:
    """What the marks on a map of points with these labels mean, below the maps."""
    dot: dict[str, Any] = {"ls": "", "marker": "o"}
    handles: list[Any] = [
        Line2D([], [], color=PRESENTED, ms=3, **dot),
        Line2D([], [], color=COMING, ms=3, **dot),
        (
            Line2D([], [], color=TRAIL, lw=1.3),
            Line2D([], [], mfc="#dddddd", mec=LABEL, ms=5, markevery=[1], **dot),
        ),
    ]
    names = ["presented", "not yet presented", "tile, and its way since its first snapshot"]
    signed, texts = label_entries(labels)
    handles += signed
    fig.legend(
        handles,
        [*names, *texts],
        loc="outside lower center",
        ncols=columns,
    )


@figure_style()
def figure_tiles(
    run: xr.Dataset,
    snapshots: Iterable[int] | None = None,
    *,
    readout: int = 0,
    coordinates: tuple[int, int] | None = None,
) -> Figure:
    """A sheet of tiles forming, with a title, a legend and the scale of the colours."""
    axes = plot_tiles(run, snapshots, readout=readout, coordinates=coordinates)
    fig: Figure = axes[0].figure
    add_legend(fig, run["labels"].to_numpy()[:, readout])
    taught = add_scale(fig, list(axes), run, readout)
    words = " and take up the labels" if taught else ""
    fig.suptitle(f"Tiles form on the data{words}", fontweight="bold")
    return fig
