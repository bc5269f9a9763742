"""One presentation step by step, with the closed form it should settle on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from analysis.dynamics.common import (
    check_presentation,
    chosen_presentations,
    number_of,
    step_times,
    target_or_reason,
)
from analysis.holdings import TRACES, require
from analysis.style import GREY, figure_style, palette
from analysis.theory import EPSILON, Modes, Target, gamma_of, growth_factor
from analysis.tiles_in_use import in_use_at
from circuits.errors import InputError
from circuits.lift import FloatArray

PANELS = {
    "h": ("excitatory rates", "h", ("h",)),
    "u": ("inhibitory rates", "u", ("u",)),
    "V": ("lateral synapses", "V", ("V",)),
    "current": ("inhibitory current", "Vᵀu", ("u", "V")),
    "y": ("readout", "y", ("y",)),
    "distance": ("distance to the closed form", "|deviation of h|", ("h",)),
}
"""What `plot_settling` draws: title, axis, and the traces that the panel is drawn from."""

SHOWN_TILES = 5
"""Tiles that get a colour of their own in one presentation: those that respond most."""

FLOOR = 1e-17
"""Where deviations below it are drawn on a log scale: rates of size one differ by rounding only
from 2e-16 down, and how much of that is zero depends on the machine."""

TOP = 1e4
"""Where the scale of deviations ends: they start near one, and the legend lies above."""


@figure_style()
def plot_trace(run: xr.Dataset, presentation: int, name: str = "h", ax: Axes | None = None) -> Axes:
    """One quantity step by step through a presentation, with its closed form as a dashed target.

    ``name`` is "h", "u", "V" (one line per synapse), "current" (V^T u, which settles on [a]_+),
    "y", or "distance": the deviation of h from the closed form, along h* and across it, with the
    decay max|1 + lambda|^n that the linearised dynamics predicts for each.
    """
    if name not in PANELS:
        raise InputError(f"there is no panel {name!r}: choose from {', '.join(PANELS)}")
    _, label, traces = PANELS[name]
    require(run, [f"{part}_trace" for part in traces], f"the panel of {name}")
    presentation = check_presentation(run, presentation)
    ax = ax or plt.figure().add_subplot()
    target, reason = target_or_reason(run, presentation)
    ax.set(xlabel="time in presentation (ms)", ylabel=label)
    ax.set_xlim(0, step_times(run)[-1])
    if name == "distance":
        _draw_distance(run, presentation, target, reason, ax)
    elif name in ("u", "y"):
        _draw_cells(run, presentation, name, target, ax)
    else:
        _draw_tiles(run, presentation, name, target, ax)
    if name in ("u", "V", "current"):
        ax.ticklabel_format(axis="y", scilimits=(-1, 3))
    return ax


def _draw_cells(
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
        ax.plot(step_times(run), trace[:, j], color=shades[j], label=label)
        if goal is not None:
            ax.axhline(goal[j], color=shades[j], lw=0.9, ls="--", zorder=1)
    if name == "y":
        ax.set_ylim(-1.15, 1.15)
        if target is not None and goal is None:
            text = "no closed form: w before the first\npresentation is not in the result"
            ax.text(0.5, 0.75, text, ha="center", transform=ax.transAxes, fontsize=8)


def loudest(run: xr.Dataset, presentation: int) -> list[int]:
    """The tiles that respond most."""
    h = run["h"][presentation].to_numpy()
    order = np.argsort(h)[::-1][:SHOWN_TILES]
    return [int(tile) for tile in order if h[tile] > 0.01]  # a tenth of a per cent of |h|^2


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
    times, most = step_times(run), loudest(run, presentation)
    colors = dict(zip(most, palette(), strict=False))
    used = np.flatnonzero(in_use_at(run, number_of(run, presentation)))
    others = [int(tile) for tile in used if tile not in colors]
    for tile in (*others, *most):
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
        ax.set_ylabel("")
        return
    times, colors = step_times(run), palette()
    active = run["h_trace"][presentation].to_numpy() > 0
    changing = np.flatnonzero((active != active[-1]).any(axis=1))
    settled_set = int(changing[-1]) + 1 if changing.size else 0
    found = deviations(run, presentation, target)
    directions: tuple[Modes, ...] = ("along", "across")
    for direction, color in zip(directions, colors, strict=False):
        deviation = found[direction]
        if deviation.max() < 8 * EPSILON:
            continue  # rounding: one tile that alone responds has nothing across it
        ax.semilogy(times, np.maximum(deviation, FLOOR), color=color, label=f"{direction} h*")
        factor = growth_factor(gamma_of(run, target.size), target.size, direction)
        bound = envelope(deviation, factor, settled_set)
        if np.isfinite(bound).any():
            label = f"predicted {factor:.3f}ⁿ"
            ax.semilogy(times, bound, color=color, ls="--", lw=0.9, label=label)
    ax.set_ylim(FLOOR / 3, TOP)
    ax.set_yticks(10.0 ** np.arange(-16, 1, 4))


@figure_style()
def plot_settling(
    run: xr.Dataset, presentation: int, axes: Sequence[Axes] | None = None
) -> NDArray[Any]:
    """h, u, V, V^T u, y and the distance to the closed form through one presentation, in six axes.

    Needs ``record=("h", "u", "V", "y")``, and for the closed form (dashed) ``snapshot_every=1``;
    where that cannot be known, the last panel says why.
    """
    require(run, TRACES, "a plot of settling")
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
    chosen = chosen_presentations(run, presentations, 1)
    require(run, TRACES, "a plot of settling")
    alone = len(chosen) == 1
    if alone:
        fig = plt.figure(figsize=(11, 6.2))
        columns = [list(fig.subplots(2, 3, sharex=True).flat)]
    else:
        fig = plt.figure(figsize=(max(3.4 * len(chosen), 6), 11))
        grid = fig.subplots(len(PANELS), len(chosen), sharex=True, squeeze=False)
        columns = [list(grid[:, j]) for j in range(len(chosen))]
    for place, (t, axes) in enumerate(zip(chosen, columns, strict=True)):
        plot_settling(run, t, axes)
        _trim(axes, alone, first=place == 0)
        if not alone:
            axes[0].set_title(f"presentation {number_of(run, t)}")
        _add_legends(axes, target_or_reason(run, t)[0] is not None, alone, first=place == 0)
    known = any(target_or_reason(run, t)[0] is not None for t in chosen)
    which = f" in presentation {number_of(run, chosen[0])}" if alone else ""
    dashed = ": dashed, where theory says it leads" if known else ""
    fig.suptitle(f"How the circuit settles{which}{dashed}", fontweight="bold")
    return fig


def _trim(axes: Sequence[Axes], alone: bool, first: bool) -> None:
    """Titles over the panels of one presentation; of several, names at the borders only."""
    for place, (ax, (title, _, _)) in enumerate(zip(axes, PANELS.values(), strict=True)):
        bottom = place >= 3 if alone else place == len(PANELS) - 1
        if not bottom:
            ax.set_xlabel("")
        if alone:
            ax.set_title(title)
        elif not first:
            ax.set_ylabel("")


def _add_legends(axes: Sequence[Axes], known: bool, alone: bool, first: bool) -> None:
    """Legends of h, u and the distance, in room made for them above the curves."""
    handles, labels = axes[0].get_legend_handles_labels()
    if known:
        handles.append(Line2D([], [], color="0.3", ls="--", lw=0.9))
        labels.append("closed form")
    entries = {0: (handles, labels), 5: axes[5].get_legend_handles_labels()}
    if first:
        entries[1] = axes[1].get_legend_handles_labels()
    for place, found in entries.items():
        if found[0]:
            axes[place].legend(
                *found, loc="upper right", ncols=2, columnspacing=1.0, handlelength=1.6
            )
    for ax in axes[:2]:
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + (0.45 if alone else 0.8) * (high - low))
    if axes[5].lines and not alone:
        axes[5].set_ylim(top=1e4 * TOP)
