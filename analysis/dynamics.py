"""The circuit at work: settling, learning, tiles forming. Everything is drawn from a result.

Presentations, tiles and interneurons are counted from 0, as in the result.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import EllipseCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from analysis.style import LABEL, LOWER, UPPER, figure_style
from analysis.theory import (
    Modes,
    Target,
    gamma_of,
    growth_factor,
    lift_of,
    parameters_of,
    target_of,
)
from circuits import rules
from circuits.errors import InputError
from circuits.lift import FloatArray
from circuits.measures import tile_positions

PANELS = ("h", "u", "V", "current", "y", "distance")
"""What `plot_settling` draws, panel by panel."""

NEEDED = {
    "h": ("h",),
    "u": ("u",),
    "V": ("V",),
    "current": ("u", "V"),
    "y": ("y",),
    "distance": ("h",),
}
"""Traces that each panel is drawn from."""

TITLES = {
    "h": "excitatory rates",
    "u": "inhibitory rates",
    "V": "lateral synapses",
    "current": "inhibitory current",
    "y": "readout",
    "distance": "distance to the closed form",
}

LABELS = {"h": "h", "u": "u", "V": "V", "current": "Vᵀu", "y": "y", "distance": "|deviation of h|"}

SHOWN_TILES = 5
"""Tiles that get a colour of their own in one presentation: those that respond most."""

GREY = "0.75"

READOUT_MAP = LinearSegmentedColormap.from_list("classes", [UPPER, "#dddddd", LOWER])
"""Readout weights, from class -1 to class +1."""


def palette() -> list[str]:
    """The style's colours, whatever style the caller's own axes have."""
    with figure_style():
        return [
            f"#{color.lstrip('#')}" for color in mpl.rcParams["axes.prop_cycle"].by_key()["color"]
        ]


def require(run: xr.Dataset, names: Iterable[str], what: str) -> None:
    """Refuse a result that lacks variables, and say in one sentence what to record."""
    missing = [name for name in names if name not in run]
    if not missing:
        return
    traces = [name.removesuffix("_trace") for name in missing if name.endswith("_trace")]
    remedy = []
    if traces:
        remedy.append(f"record=({', '.join(map(repr, traces))}{',' if len(traces) == 1 else ''})")
    if any(name.startswith("snapshot") or name.endswith("_snapshots") for name in missing):
        remedy.append("snapshot_every=N")
    hint = f": run the circuit with {' and '.join(remedy)}" if remedy else ""
    raise InputError(f"{what} needs {', '.join(missing)}, which this result does not hold{hint}")


def _check_presentation(run: xr.Dataset, presentation: int) -> int:
    count = run.sizes["presentation"]
    if not -count <= presentation < count:
        raise InputError(
            f"there is no presentation {presentation}: this result holds 0 to {count - 1}"
        )
    return presentation % count


def _times(run: xr.Dataset) -> FloatArray:
    """Milliseconds since the presentation began, after each step."""
    p = parameters_of(run)
    return np.asarray(1e3 * p.dt_ * np.arange(1, p.steps_per_presentation + 1))


def _target(run: xr.Dataset, presentation: int) -> tuple[Target | None, str]:
    """The closed form, or why it cannot be known."""
    try:
        return target_of(run, presentation), ""
    except InputError as error:
        return None, str(error)


def _loudest(run: xr.Dataset, presentation: int) -> NDArray[np.intp]:
    h = run["h"][presentation].to_numpy()
    order = np.argsort(h)[::-1][:SHOWN_TILES]
    return np.asarray(order[h[order] > 0.01])  # a tenth of a per cent of |h|^2


@figure_style()
def plot_trace(run: xr.Dataset, presentation: int, name: str = "h", ax: Axes | None = None) -> Axes:
    """One quantity step by step through a presentation, with its closed form as a dashed target.

    ``name`` is "h", "u", "V" (one line per synapse), "current" (V^T u, which settles on [a]_+),
    "y", or "distance": the deviation of h from the closed form, along h* and across it, with the
    decay max|1 + lambda|^n that the linearised dynamics predicts for each.
    """
    if name not in PANELS:
        raise InputError(f"there is no panel {name!r}: choose from {', '.join(PANELS)}")
    require(run, [f"{part}_trace" for part in NEEDED[name]], f"the panel of {name}")
    presentation = _check_presentation(run, presentation)
    ax = ax or plt.figure().add_subplot()
    target, reason = _target(run, presentation)
    if name == "distance":
        _draw_distance(run, presentation, target, reason, ax)
    elif name == "u":
        _draw_rates(run, presentation, "u", target, ax)
    elif name == "y":
        _draw_rates(run, presentation, "y", target, ax)
    else:
        _draw_tiles(run, presentation, name, target, ax)
    ax.set(xlabel="time in presentation (ms)", ylabel=LABELS[name])
    ax.set_xlim(0, _times(run)[-1])
    if name in ("u", "V", "current"):
        ax.ticklabel_format(axis="y", scilimits=(-1, 3))
    if name == "distance" and not ax.lines:
        ax.set_ylabel("")
    return ax


def _draw_rates(
    run: xr.Dataset, presentation: int, name: str, target: Target | None, ax: Axes
) -> None:
    """u or y: one line per cell, in shades that tell them apart."""
    trace = run[f"{name}_trace"][presentation].to_numpy()
    goal = getattr(target, name) if target else None
    cell = "interneuron" if name == "u" else "readout"
    shades = plt.get_cmap("viridis")(np.linspace(0.05, 0.8, trace.shape[1]))
    few = trace.shape[1] <= SHOWN_TILES
    for j in range(trace.shape[1]):
        label = f"{cell} {j}" if few else None
        ax.plot(_times(run), trace[:, j], color=shades[j], label=label)
        if goal is not None:
            ax.axhline(goal[j], color=shades[j], lw=0.9, ls="--", zorder=1)
    if name == "y":
        ax.set_ylim(-1.15, 1.15)
        if target is not None and goal is None:
            text = "no closed form: w before the first\npresentation is not in the result"
            ax.text(0.5, 0.75, text, ha="center", transform=ax.transAxes, fontsize=8)


def _draw_tiles(
    run: xr.Dataset, presentation: int, name: str, target: Target | None, ax: Axes
) -> None:
    """h, V or V^T u: the tiles that respond most in colour, the others in grey."""
    if name == "current":
        u, V = (run[f"{part}_trace"][presentation].to_numpy() for part in "uV")
        trace = np.einsum("sk,skm->sm", u, V)[:, None]
        goal = np.maximum(target.a, 0)[None] if target else None
    else:
        trace = run[f"{name}_trace"][presentation].to_numpy()
        trace = trace[:, None] if name == "h" else trace
        goal = (target.h[None] if name == "h" else target.V) if target else None
    times, loudest = _times(run), _loudest(run, presentation)
    colors = dict(zip(loudest.tolist(), palette(), strict=False))
    others = [tile for tile in range(trace.shape[2]) if tile not in colors]
    for tile in (*others, *loudest.tolist()):
        color = colors.get(tile, GREY)
        for j in range(trace.shape[1]):
            label = f"tile {tile}" if tile in colors and j == 0 else None
            width = 1.2 if tile in colors else 0.6
            ax.plot(times, trace[:, j, tile], color=color, lw=width, label=label)
            if goal is not None and tile in colors:
                ax.axhline(goal[j, tile], color=color, lw=0.9, ls="--", zorder=1)


def deviations(run: xr.Dataset, presentation: int, target: Target) -> dict[str, FloatArray]:
    """Deviation of h from h* after every step: |h.h* - 1| along it and the norm across it."""
    trace = run["h_trace"][presentation].to_numpy()
    along = trace @ target.h
    across = trace - along[:, None] * target.h
    return {"along": np.abs(along - 1), "across": np.linalg.norm(across, axis=1)}


def envelope(deviation: FloatArray, factor: float, settled_set: int) -> FloatArray:
    """C factor^n, with the smallest C that bounds the deviation once it is small.

    The slope is predicted; the height is not, and is taken from the steps from ``settled_set`` on
    at which the deviation is below 0.01 (the linear range) and above 1e-13 (rounding).
    """
    n = np.arange(1, len(deviation) + 1)
    use = (n > settled_set) & (deviation < 0.01) & (deviation > 1e-13)
    if not use.any():
        return np.full(len(deviation), np.nan)
    logs = np.log(deviation[use]) - n[use] * np.log(factor)
    return np.asarray(np.exp(logs.max() + n * np.log(factor)))


def _draw_distance(
    run: xr.Dataset, presentation: int, target: Target | None, reason: str, ax: Axes
) -> None:
    if target is None or target.size == 0:
        text = reason or "no tile covers this point: h = 0, and nothing is left to settle"
        where: dict[str, Any] = {"ha": "center", "va": "center", "transform": ax.transAxes}
        ax.text(0.5, 0.5, textwrap.fill(text, 34), **where)
        ax.set_yticks([])
        return
    times, colors = _times(run), palette()
    active = run["h_trace"][presentation].to_numpy() > 0
    changing = np.flatnonzero((active != active[-1]).any(axis=1))
    settled_set = int(changing[-1]) + 1 if changing.size else 0
    directions: tuple[Modes, ...] = ("along", "across")
    for direction, color in zip(directions, colors, strict=False):
        deviation = deviations(run, presentation, target)[direction]
        if not deviation.any():
            continue  # one active tile has nothing across it
        factor = growth_factor(gamma_of(run), target.size, direction)
        shown = np.where(deviation > 0, deviation, np.nan)
        ax.semilogy(times, shown, color=color, label=f"{direction} h*")
        bound = envelope(deviation, factor, settled_set)
        if np.isfinite(bound).any():
            label = f"predicted {factor:.3f}ⁿ"
            ax.semilogy(times, bound, color=color, ls="--", lw=0.9, label=label)
    ax.set_ylim(1e-17, 1e4)
    ax.set_yticks(10.0 ** np.arange(-16, 1, 4))


@figure_style()
def plot_settling(
    run: xr.Dataset, presentation: int, axes: Sequence[Axes] | None = None
) -> NDArray[Any]:
    """h, u, V, V^T u, y and the distance to the closed form through one presentation, in six axes.

    Needs ``record=("h", "u", "V", "y")``, and for the closed form (dashed) ``snapshot_every=1``;
    where that cannot be known, the last panel says why.
    """
    names = dict.fromkeys(part for panel in PANELS for part in NEEDED[panel])
    require(run, [f"{part}_trace" for part in names], "a plot of settling")
    if axes is None:
        axes = list(plt.figure(figsize=(11, 6)).subplots(2, 3, sharex=True).flat)
    if len(axes) != len(PANELS):
        raise InputError(f"a plot of settling needs {len(PANELS)} axes, got {len(axes)}")
    for name, ax in zip(PANELS, axes, strict=True):
        plot_trace(run, presentation, name, ax)
    return np.array(axes, dtype=object)


@figure_style()
def figure_settling(run: xr.Dataset, presentations: Iterable[int] | None = None) -> Figure:
    """Settling in chosen presentations: one of them large, several as columns."""
    chosen = [_check_presentation(run, t) for t in _chosen(run, presentations, 1)]
    names = dict.fromkeys(part for panel in PANELS for part in NEEDED[panel])
    require(run, [f"{part}_trace" for part in names], "a plot of settling")
    if len(chosen) == 1:
        fig = plt.figure(figsize=(11, 6.2))
        grid = fig.subplots(2, 3, sharex=True)
        columns = [list(grid.flat)]
    else:
        fig = plt.figure(figsize=(max(3.4 * len(chosen), 6), 11))
        grid = fig.subplots(len(PANELS), len(chosen), sharex=True, squeeze=False)
        columns = [list(grid[:, j]) for j in range(len(chosen))]
    known = False
    for place, (t, axes) in enumerate(zip(chosen, columns, strict=True)):
        plot_settling(run, t, axes)
        target, _ = _target(run, t)
        known = known or target is not None
        for name, ax in zip(PANELS, axes, strict=True):
            bottom = name == PANELS[-1] if len(chosen) > 1 else name in PANELS[3:]
            ax.set_xlabel("time in presentation (ms)" if bottom else "")
            if len(chosen) == 1:
                ax.set_title(f"{TITLES[name]}")
            elif place:
                ax.set_ylabel("")
        if len(chosen) > 1:
            axes[0].set_title(f"presentation {t}")
        handles, labels = axes[0].get_legend_handles_labels()
        if target is not None:
            handles.append(Line2D([], [], color="0.3", ls="--", lw=0.9))
            labels.append("closed form")
        for ax, entries in ((axes[0], (handles, labels)), (axes[1], None), (axes[5], None)):
            found = entries or ax.get_legend_handles_labels()
            if not found[0] or (ax is axes[1] and place):
                continue
            ax.legend(*found, loc="upper right", ncols=2, columnspacing=1.0, handlelength=1.6)
        room = 0.45 if len(chosen) == 1 else 0.8
        for ax in axes[:2]:
            low, high = ax.get_ylim()
            ax.set_ylim(low, high + room * (high - low))  # for the legend
        if axes[5].lines and len(chosen) > 1:
            axes[5].set_ylim(top=1e8)
    which = f" in presentation {chosen[0]}" if len(chosen) == 1 else ""
    dashed = ": dashed, where theory says it leads" if known else ""
    fig.suptitle(f"How the circuit settles{which}{dashed}", fontweight="bold")
    return fig


def _chosen(run: xr.Dataset, presentations: Iterable[int] | None, count: int) -> list[int]:
    """The presentations asked for; else some spread over the later half of the stream."""
    if presentations is not None:
        chosen = [int(t) for t in presentations]
        if not chosen:
            raise InputError("no presentation was chosen")
        return chosen
    n = run.sizes["presentation"]
    return sorted({int(t) for t in np.linspace(n - 1, n // 2, count)})


@figure_style()
def plot_phase(
    run: xr.Dataset, presentations: Iterable[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Phase portrait: |h| against |u|, from the start (circle) to the fixed point (star).

    The fixed point is (1, sqrt(A)) by the closed form where the result holds snapshots, else the
    state after the last step.
    """
    require(run, ("h_trace", "u_trace"), "a phase portrait")
    chosen = [_check_presentation(run, t) for t in _chosen(run, presentations, 5)]
    ax = ax or plt.figure().add_subplot()
    p, colors = parameters_of(run), palette()
    exact = True
    for place, t in enumerate(chosen):
        color = colors[place % len(colors)]
        rates = [run[f"{name}_trace"][t].to_numpy() for name in "hu"]
        norm_h, norm_u = (np.linalg.norm(rate, axis=1) for rate in rates)
        if p.reset:
            start = rules.rest(p.n_tiles, p.n_interneurons, float(run.attrs["gain"]))[:2]
        elif t > 0:
            start = tuple(run[f"{name}_trace"][t - 1, -1].to_numpy() for name in "hu")  # type: ignore[assignment]
        else:
            start = rates[0][0], rates[1][0]
        target, _ = _target(run, t)
        exact = exact and target is not None
        end = (
            (np.linalg.norm(target.h), np.linalg.norm(target.u))
            if target
            else (norm_h[-1], norm_u[-1])
        )
        first = np.linalg.norm(start[0]), np.linalg.norm(start[1])
        ax.plot([first[0], *norm_h], [first[1], *norm_u], color=color, label=f"presentation {t}")
        ax.plot(*first, "o", mfc="white", mec=LABEL, ms=7, zorder=4)
        ax.plot(*end, "*", color=color, mec=LABEL, mew=0.6, ms=13, zorder=5)
    handles, labels = ax.get_legend_handles_labels()
    handles += [
        Line2D([], [], ls="", marker="o", mfc="white", mec=LABEL, ms=7),
        Line2D([], [], ls="", marker="*", color="white", mec=LABEL, ms=11),
    ]
    labels += ["start", "fixed point (closed form)" if exact else "last state or closed form"]
    ax.legend(handles, labels, loc="center left", bbox_to_anchor=(1.01, 0.5))
    ax.set(xlabel="excitation |h|", ylabel="inhibition |u|")
    return ax


@figure_style()
def figure_phase(run: xr.Dataset, presentations: Iterable[int] | None = None) -> Figure:
    """The phase portrait with a title."""
    fig = plt.figure(figsize=(7.5, 4.4))
    plot_phase(run, presentations, fig.add_subplot())
    fig.suptitle("Excitation and inhibition spiral into the fixed point", fontweight="bold")
    return fig


@figure_style()
def plot_learning(
    run: xr.Dataset, axes: Sequence[Axes] | None = None, readout: int = 0
) -> NDArray[Any]:
    """W, b and w of every tile over the stream, at the snapshots, in three axes.

    W has a colour per input where there are few, else its norms |W_i| are drawn. w is coloured by
    its final sign; triangles mark the labels.
    """
    require(run, [f"{name}_snapshots" for name in ("W", "b", "w")], "a plot of learning")
    if axes is None:
        axes = list(plt.figure(figsize=(7, 7)).subplots(3, 1, sharex=True))
    if len(axes) != 3:
        raise InputError(f"a plot of learning needs 3 axes, got {len(axes)}")
    if not 0 <= readout < run.sizes["readout"]:
        raise InputError(f"there is no readout {readout}: there are {run.sizes['readout']}")
    times = run["snapshot_presentation"].to_numpy()
    thin: dict[str, Any] = {"lw": 0.7, "alpha": 0.7}
    marker = "." if len(times) == 1 else ""
    W, b = run["W_snapshots"].to_numpy(), run["b_snapshots"].to_numpy()
    colors = palette()
    if W.shape[2] <= 4:
        for i in range(W.shape[2]):
            height = " (height of the lift)" if i == W.shape[2] - 1 else ""
            lines = axes[0].plot(times, W[:, :, i], color=colors[i], marker=marker, **thin)
            lines[0].set_label(f"input {i}{height}")
        axes[0].set_ylabel("feed-forward W")
        axes[0].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    else:
        norms = np.linalg.norm(W, axis=2)
        axes[0].plot(times, norms, color=colors[0], marker=marker, **thin)
        axes[0].set_ylabel("feed-forward |W| per tile")
    axes[1].plot(times, b, color=GREY, marker=marker, **thin)
    axes[1].plot(times, np.median(b, axis=1), color=LABEL, marker=marker, label="median")
    axes[1].lines[0].set_label("one tile")
    axes[1].set_ylabel("bias b")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    w = run["w_snapshots"].to_numpy()[:, readout]
    for sign, color, name in ((-1, UPPER, "ends below 0"), (1, LOWER, "ends above 0")):
        own = w[:, np.sign(w[-1]) == sign]
        if own.size:
            axes[2].plot(times, own, color=color, marker=marker, **thin)[0].set_label(name)
    axes[2].axhline(0, color="0.6", lw=0.8)
    labels = run["labels"].to_numpy()[:, readout]
    if labels.any():
        at = np.flatnonzero(labels)
        reach = float(np.abs(w).max()) or 1.0
        if len(at) <= 50:
            for sign, shape in ((1, "v"), (-1, "^")):
                own = at[labels[at] == sign]
                axes[2].plot(own, np.full(len(own), 1.15 * sign * reach), shape, color=LABEL, ms=6)
            axes[2].plot([], [], "v", color=LABEL, ms=6, label="label +1")
            axes[2].plot([], [], "^", color=LABEL, ms=6, label="label −1")
    if axes[2].get_legend_handles_labels()[0]:  # before the first label there is none
        axes[2].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    axes[2].set(xlabel="presentation", ylabel="readout w")
    return np.array(axes, dtype=object)


@figure_style()
def figure_learning(run: xr.Dataset, readout: int = 0) -> Figure:
    """The slow synapses over the stream, with a title."""
    fig = plt.figure(figsize=(9, 7))
    axes = list(fig.subplots(3, 1, sharex=True))
    plot_learning(run, axes, readout)
    for ax in axes:
        ax.set_xlim(0, run.sizes["presentation"])
    fig.suptitle("Slow learning over the whole stream, one line per tile", fontweight="bold")
    return fig


def tiles_at(run: xr.Dataset, snapshot: int) -> tuple[FloatArray, FloatArray]:
    """Where tiles lie in the data at a snapshot, and how far they reach.

    The centre is W_i put back from the sphere. A tile is driven, a_i > 0, by inputs with
    x.W_i/|W_i| > sqrt(alpha) b_i/|W_i|: by points within sqrt(2 R^2 (1 - that)) on the sphere.
    """
    lift = lift_of(run)
    W = run["W_snapshots"][snapshot].to_numpy()
    b = run["b_snapshots"][snapshot].to_numpy()
    norm = np.linalg.norm(W, axis=1)
    safe = np.where(norm > 0, norm, 1.0)
    centers = lift.center + lift.radius * W[:, :-1] / safe[:, None]
    overlap = np.where(norm > 0, np.sqrt(float(run.attrs["alpha"])) * b / safe, 1.0)
    return centers, lift.radius * np.sqrt(2 * np.clip(1 - overlap, 0, 2))


def _plane(points: FloatArray, coordinates: tuple[int, int]) -> FloatArray:
    if points.shape[1] == 1:
        return np.column_stack([points[:, 0], np.zeros(len(points))])
    if not all(0 <= c < points.shape[1] for c in coordinates):
        raise InputError(
            f"coordinates must be two of 0 to {points.shape[1] - 1}, got {coordinates}"
        )
    return points[:, list(coordinates)]


@figure_style()
def plot_tile_map(
    run: xr.Dataset,
    snapshot: int = -1,
    ax: Axes | None = None,
    *,
    readout: int = 0,
    coordinates: tuple[int, int] = (0, 1),
) -> Axes:
    """The tiles on the data at one snapshot: each disc is the region that drives the tile.

    Discs are coloured by the readout weight, blue below zero and orange above, on the scale of the
    last snapshot. Dark points have been presented by then, light ones not yet; stars are labelled.
    """
    require(run, [f"{name}_snapshots" for name in ("W", "b", "w")], "a map of the tiles")
    count = run.sizes["snapshot"]
    if not -count <= snapshot < count:
        raise InputError(f"there is no snapshot {snapshot}: this result holds {count}")
    ax = ax or plt.figure().add_subplot()
    _TileMap(run, ax, readout, coordinates).show(snapshot)
    return ax


class _TileMap:
    """One map of the tiles that can show any snapshot."""

    def __init__(
        self, run: xr.Dataset, ax: Axes, readout: int, coordinates: tuple[int, int]
    ) -> None:
        if not 0 <= readout < run.sizes["readout"]:
            raise InputError(f"there is no readout {readout}: there are {run.sizes['readout']}")
        self.run, self.ax, self.readout, self.coordinates = run, ax, readout, coordinates
        self.points = _plane(run["points"].to_numpy(), coordinates)
        self.labelled = run["labels"].to_numpy()[:, readout] != 0
        reach = float(np.abs(run["w_snapshots"].to_numpy()[-1, readout]).max()) or 1.0
        self.norm = Normalize(-reach, reach)
        m = run.sizes["tile"]
        ax.scatter(self.points[:, 0], self.points[:, 1], s=3, c="0.88", linewidths=0, zorder=1)
        self.seen = ax.scatter([], [], s=3, c="0.45", linewidths=0, zorder=2)
        self.discs = EllipseCollection(
            np.zeros(m), np.zeros(m), np.zeros(m), units="xy", offsets=np.zeros((m, 2)),
            transOffset=ax.transData, cmap=READOUT_MAP, norm=self.norm, alpha=0.4, linewidths=0.5,
            edgecolors="0.55", zorder=3,
        )  # fmt: skip
        ax.add_collection(self.discs, autolim=False)
        self.dots = ax.scatter(
            np.zeros(m), np.zeros(m), s=16, c=np.zeros(m), cmap=READOUT_MAP, norm=self.norm,
            edgecolors=LABEL, linewidths=0.5, zorder=4,
        )  # fmt: skip
        self.stars = ax.scatter([], [], s=110, marker="*", c=LABEL, ec="white", lw=0.6, zorder=5)
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        margin = max(parameters_of(run).tile_radius, 0.05 * float((high - low).max()))
        ax.set_xlim(low[0] - margin, high[0] + margin)
        ax.set_ylim(low[1] - margin, high[1] + margin)
        ax.set_aspect("equal")
        ax.set(xlabel="first coordinate", ylabel="second coordinate")
        if coordinates != (0, 1):
            ax.set(xlabel=f"coordinate {coordinates[0]}", ylabel=f"coordinate {coordinates[1]}")

    def show(self, snapshot: int) -> None:
        """Move everything to a snapshot."""
        time = int(self.run["snapshot_presentation"][snapshot])
        centers, reach = tiles_at(self.run, snapshot)
        flat = _plane(centers, self.coordinates)
        w = self.run["w_snapshots"][snapshot, self.readout].to_numpy()
        self.seen.set_offsets(self.points[: time + 1])
        self.dots.set_offsets(flat)
        self.discs.set_offsets(flat)
        self.discs.set_widths(2 * reach)
        self.discs.set_heights(2 * reach)
        self.dots.set_array(w)
        self.discs.set_array(w)
        self.stars.set_offsets(self.points[: time + 1][self.labelled[: time + 1]])
        self.ax.set_title(f"after {time + 1} presentations")


def _spread(count: int, wanted: int) -> list[int]:
    """``wanted`` of ``count`` snapshots: dense early, where most happens, and the last one."""
    if count <= wanted:
        return list(range(count))
    picked = np.unique(np.geomspace(1, count, wanted).round().astype(int) - 1)
    missing = [i for i in range(count) if i not in set(picked.tolist())]
    return sorted([*picked.tolist(), *missing[: wanted - len(picked)]])


@figure_style()
def plot_tiles(
    run: xr.Dataset,
    snapshots: Iterable[int] | None = None,
    axes: Sequence[Axes] | None = None,
    *,
    readout: int = 0,
    coordinates: tuple[int, int] = (0, 1),
) -> NDArray[Any]:
    """Tiles forming on the manifold: one map (`plot_tile_map`) per snapshot, six by default."""
    require(run, [f"{name}_snapshots" for name in ("W", "b", "w")], "a map of the tiles")
    count = run.sizes["snapshot"]
    if snapshots is None:
        chosen = _spread(count, 6 if axes is None else len(axes))
    else:
        chosen = [int(s) for s in snapshots]
    if axes is None:
        columns = min(3, len(chosen))
        rows = -(-len(chosen) // columns)
        spans = np.ptp(_plane(run["points"].to_numpy(), coordinates), axis=0)
        spans = spans + 2 * parameters_of(run).tile_radius
        height = float(np.clip(3.2 * spans[1] / spans[0], 1.4, 4.0)) + 0.45
        fig = plt.figure(figsize=(3.6 * columns + 0.9, height * rows + 0.5))
        grid = fig.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for ax in grid.flat[len(chosen) :]:
            ax.remove()
        axes = list(grid.flat[: len(chosen)])
    if len(axes) != len(chosen):
        raise InputError(f"{len(chosen)} snapshots need as many axes, got {len(axes)}")
    for snapshot, ax in zip(chosen, axes, strict=True):
        plot_tile_map(run, snapshot, ax, readout=readout, coordinates=coordinates)
        ax.label_outer()
    return np.array(axes, dtype=object)


def _readout_scale(run: xr.Dataset, readout: int) -> ScalarMappable:
    reach = float(np.abs(run["w_snapshots"].to_numpy()[-1, readout]).max()) or 1.0
    return ScalarMappable(Normalize(-reach, reach), READOUT_MAP)


@figure_style()
def figure_tiles(
    run: xr.Dataset,
    snapshots: Iterable[int] | None = None,
    *,
    readout: int = 0,
    coordinates: tuple[int, int] = (0, 1),
) -> Figure:
    """A sheet of tiles forming, with a title and the scale of the colours."""
    axes = plot_tiles(run, snapshots, readout=readout, coordinates=coordinates)
    fig: Figure = axes[0].figure
    fig.colorbar(
        _readout_scale(run, readout), ax=list(axes), label="readout weight w", shrink=0.8, pad=0.02
    )
    fig.suptitle("Tiles form on the data and take up the labels", fontweight="bold")
    return fig


@figure_style()
def animate_tiles(
    run: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    fps: int = 10,
    max_frames: int = 60,
    readout: int = 0,
    coordinates: tuple[int, int] = (0, 1),
) -> list[Path]:
    """Write tiles forming over time as a film: one frame per snapshot, at most ``max_frames``.

    A path that ends in .gif or .mp4 writes that; any other gets .gif, and .mp4 too where ffmpeg is
    installed. Returns the files.
    """
    require(run, [f"{name}_snapshots" for name in ("W", "b", "w")], "an animation of the tiles")
    path = Path(path)
    if path.suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise InputError("writing .mp4 needs ffmpeg, which is not installed: choose a .gif file")
    if path.suffix in (".gif", ".mp4"):
        files = [path]
    else:
        suffixes = [".gif", *([".mp4"] if FFMpegWriter.isAvailable() else [])]
        files = [path.with_name(path.name + suffix) for suffix in suffixes]
    path.parent.mkdir(parents=True, exist_ok=True)
    count = run.sizes["snapshot"]
    frames = np.unique(np.linspace(0, count - 1, min(count, max_frames)).round().astype(int))
    fig = plt.figure(figsize=(6, 4), dpi=100)
    try:
        ax = fig.add_subplot()
        tile_map = _TileMap(run, ax, readout, coordinates)
        fig.colorbar(_readout_scale(run, readout), ax=ax, label="readout weight w", shrink=0.8)
        tile_map.show(int(frames[-1]))
        fig.canvas.draw()
        fig.set_layout_engine("none")  # nothing may move from frame to frame but the tiles

        def draw(frame: int) -> list[Artist]:
            tile_map.show(frame)
            return []

        film = FuncAnimation(fig, draw, frames=frames.tolist(), init_func=lambda: [])
        for file in files:
            writer = FFMpegWriter(fps=fps) if file.suffix == ".mp4" else PillowWriter(fps=fps)
            film.save(file, writer=writer, dpi=100)
    finally:
        plt.close(fig)
    return files


def tile_order(run: xr.Dataset) -> NDArray[np.intp]:
    """Tiles along the manifold where the result holds ``position``, else by when they win.

    A tile's time is the median of the presentations it responds to most; silent tiles come last.
    """
    if "position" in run:
        return np.argsort(tile_positions(run), kind="stable")
    time = np.arange(run.sizes["presentation"], dtype=float)
    return np.argsort(tile_positions(run.assign(position=("presentation", time))), kind="stable")


@figure_style()
def plot_raster(
    run: xr.Dataset,
    ax: Axes | None = None,
    by: Literal["position", "time"] | None = None,
    *,
    colorbar: bool = True,
) -> Axes:
    """Raster-like map of h: a row per tile, a column per presentation.

    Tiles are in `tile_order`. Presentations are ordered ``by`` "position" along the manifold (if
    the result holds it, and then by default) or by "time".
    """
    by = by or ("position" if "position" in run else "time")
    if by not in ("position", "time"):
        raise InputError(f"by must be 'position' or 'time', got {by!r}")
    if by == "position" and "position" not in run:
        raise InputError(
            "this result does not hold position, the place of each point along the manifold: "
            "choose by='time'"
        )
    ax = ax or plt.figure().add_subplot()
    h = run["h"].to_numpy()[:, tile_order(run)]
    if by == "position":
        h = h[np.argsort(run["position"].to_numpy(), kind="stable")]
    colors = plt.get_cmap("magma_r").with_extremes(bad="white")
    image = ax.imshow(
        np.where(h.T > 0, h.T, np.nan), aspect="auto", origin="lower", cmap=colors, vmin=0, vmax=1
    )
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label="rate h (white: silent)", pad=0.02)
    along = ", ordered along the manifold"
    ax.set_xlabel("presentation" + (along if by == "position" else ""))
    ax.set_ylabel("tile" + (along if "position" in run else ", by the median time it wins"))
    return ax


@figure_style()
def figure_raster(run: xr.Dataset, by: Literal["position", "time"] | None = None) -> Figure:
    """The map of h with a title."""
    fig = plt.figure(figsize=(9, 4.6))
    plot_raster(run, fig.add_subplot(), by)
    fig.suptitle("Which tiles respond to which points", fontweight="bold")
    return fig
