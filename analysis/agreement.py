"""How closely two solvers agree on one stream."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from analysis.dynamics.common import check_presentation, number_of, step_times
from analysis.style import LABEL, figure_style, legend_beside, palette, whole_numbers
from analysis.theory import EPSILON
from circuits.errors import InputError
from circuits.lift import FloatArray

COMPARED = ("h", "u", "y", "W", "b", "w", "V")

FLOOR = 1e-18
"""Where differences of exactly zero are drawn on a log scale."""


def largest_differences(run: xr.Dataset, reference: xr.Dataset) -> dict[str, float]:
    """max |run - reference| of every variable that both hold, traces and snapshots included."""
    names = [
        name
        for name in run.data_vars
        if name in reference
        and str(name).removesuffix("_trace").removesuffix("_snapshots") in COMPARED
    ]
    return {
        str(name): float(np.abs(run[name].to_numpy() - reference[name].to_numpy()).max())
        for name in names
    }


def signs_agree(run: xr.Dataset, reference: xr.Dataset) -> bool:
    """Whether every predicted sign is the same."""
    return bool((np.sign(run["y"].to_numpy()) == np.sign(reference["y"].to_numpy())).all())


def _difference(run: xr.Dataset, reference: xr.Dataset, name: str) -> FloatArray:
    """|run - reference| of one variable; results of different streams cannot be compared."""
    ours, theirs = run[name].to_numpy(), reference[name].to_numpy()
    if ours.shape != theirs.shape:
        raise InputError(
            f"the two results do not belong to one stream: {name} has the shapes {ours.shape} "
            f"and {theirs.shape}"
        )
    return np.asarray(np.abs(ours - theirs))


def _draw_log(ax: Axes, x: ArrayLike, values: dict[str, FloatArray], joined: bool) -> None:
    """Differences on a log scale: zeros on the floor, machine precision as a line."""
    any_zero = False
    for (name, value), color, marker in zip(
        values.items(), palette(), ("o", "s", "^", "D"), strict=False
    ):
        shown = np.where(value > 0, value, FLOOR)
        zero = int((value == 0).sum())
        any_zero = any_zero or zero > 0
        label = f"{name} (largest {value.max():.1g})" if value.any() else f"{name} (all equal)"
        ax.plot(
            np.asarray(x), shown, color=color, label=label, lw=1.2 if joined else 0,
            marker="" if joined else marker, ms=3, mew=0, alpha=1 if joined else 0.6,
        )  # fmt: skip
    ax.axhline(EPSILON, color=LABEL, lw=0.9, ls="--", label="machine precision 2.2e−16")
    ax.set_yscale("log")
    top = max([float(value.max()) for value in values.values()] + [1e-12])
    ax.set_ylim(FLOOR / 5, 10 * top)
    if any_zero:
        ticks = [10.0**e for e in range(-16, int(np.floor(np.log10(10 * top))) + 1, 2)]
        names = [f"$10^{{{round(np.log10(tick))}}}$" for tick in ticks]
        ax.set_yticks([FLOOR, *ticks], ["equal", *names])
        ax.minorticks_off()
    legend_beside(ax)


@figure_style()
def plot_differences(run: xr.Dataset, reference: xr.Dataset, ax: Axes | None = None) -> Axes:
    """max |run - reference| of h, u and y at the end of every presentation, on a log scale."""
    names = ("h", "u", "y")
    values = {name: _difference(run, reference, name).max(axis=1) for name in names}
    ax = ax or plt.figure(figsize=(8, 3.6)).add_subplot()
    _draw_log(ax, run["presentation"].to_numpy(), values, joined=False)
    ax.set(xlabel="presentation", ylabel="largest |difference|")
    whole_numbers(ax.xaxis)
    return ax


@figure_style()
def plot_step_differences(
    run: xr.Dataset, reference: xr.Dataset, presentation: int = -1, ax: Axes | None = None
) -> Axes:
    """max |run - reference| of h, u, V and y after every step of one presentation, log scale.

    Draws what both results have recorded.
    """
    names = [n for n in "huVy" if f"{n}_trace" in run and f"{n}_trace" in reference]
    if not names:
        raise InputError(
            "step differences need traces in both results: run both with "
            "record=('h', 'u', 'V', 'y')"
        )
    presentation = check_presentation(run, presentation)
    values = {}
    for name in names:
        part = [d[[f"{name}_trace"]].isel(presentation=presentation) for d in (run, reference)]
        difference = _difference(part[0], part[1], f"{name}_trace")
        values[name] = difference.reshape(len(difference), -1).max(axis=1)
    ax = ax or plt.figure(figsize=(8, 3.6)).add_subplot()
    times = step_times(run)
    _draw_log(ax, times, values, joined=True)
    ax.set(xlabel="time in presentation (ms)", ylabel="largest |difference|")
    ax.set_xlim(0, times[-1])
    return ax


@figure_style()
def figure_agreement(
    run: xr.Dataset, reference: xr.Dataset, presentation: int | None = None
) -> Figure:
    """Two solvers over the stream and, where both recorded traces, step by step.

    ``presentation`` is the one shown step by step; by default the one whose h differs most.
    """
    worst = int(_difference(run, reference, "h").max(axis=1).argmax())
    chosen = worst if presentation is None else presentation
    traced = any(f"{n}_trace" in run and f"{n}_trace" in reference for n in "huVy")
    fig = plt.figure(figsize=(9, 6.4 if traced else 3.6))
    axes = fig.subplots(2 if traced else 1, 1, squeeze=False)[:, 0]
    plot_differences(run, reference, axes[0]).set_title("at the end of every presentation")
    if traced:
        note = ", where h differs most" if chosen == worst else ""
        ax = plot_step_differences(run, reference, chosen, axes[1])
        ax.set_title(f"step by step in presentation {number_of(run, chosen)}{note}")
    names = [str(data.attrs.get("engine", "?")) for data in (run, reference)]
    fig.suptitle(f"Agreement of {names[0]} with {names[1]}", fontweight="bold")
    return fig
