"""How the error of counted rates falls: with cells per unit, and with the time they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from analysis.style import LABEL, figure_style, palette
from circuits.errors import InputError
from circuits.lift import FloatArray

NEURONS = {"if": "integrate-and-fire", "escape": "escape noise"}
"""Cells in words."""

MARKS = "os^D"


@figure_style()
def plot_error_by_cells(
    cells: ArrayLike,
    errors: Mapping[str, ArrayLike],
    ax: Axes | None = None,
    *,
    bound: ArrayLike | None = None,
) -> Axes:
    """Error of rates against the number N of cells per unit, both on log scales.

    ``errors`` has for every kind of neuron an array (repeat, cells): means and standard deviations
    over repeats are drawn. ``bound`` is `poisson_bound` for each of ``cells``.
    """
    ax = ax or plt.figure(figsize=(5, 3.8)).add_subplot()
    _draw(ax, np.asarray(cells, dtype=float), errors, bound, "Poisson bound √(Σh/(N r T))")
    ax.set(xlabel="cells per unit N", ylabel="error of direction |h/|h| − h*|")
    return ax


@figure_style()
def plot_error_by_duration(
    durations: ArrayLike,
    errors: ArrayLike,
    ax: Axes | None = None,
    *,
    bound: ArrayLike | None = None,
    neuron: str = "if",
) -> Axes:
    """Error of rates against the time that a point is shown, in seconds, both on log scales.

    ``errors`` is (repeat, duration); ``bound`` is `poisson_bound` for each of ``durations``.
    """
    ax = ax or plt.figure(figsize=(5, 3.8)).add_subplot()
    times = 1e3 * np.asarray(durations, dtype=float)
    _draw(ax, times, {neuron: errors}, bound, "Poisson bound √(Σh/(N r T))")
    ax.set(xlabel="time that a point is shown (ms)", ylabel="error |h − h*|")
    return ax


def _draw(
    ax: Axes,
    along: FloatArray,
    errors: Mapping[str, ArrayLike],
    bound: ArrayLike | None,
    bound_name: str,
) -> None:
    """Mean and standard deviation over repeats, and the bound, on log scales."""
    tops = []
    for place, (name, given) in enumerate(errors.items()):
        values = np.atleast_2d(np.asarray(given, dtype=float))
        if values.shape[1] != len(along):
            raise InputError(
                f"errors of {name} must have the shape (repeat, {len(along)}), got {values.shape}"
            )
        mean, spread = values.mean(axis=0), values.std(axis=0)
        color, mark = palette()[place], MARKS[place % len(MARKS)]
        ax.errorbar(
            along, mean, spread, color=color, marker=mark, ms=5, capsize=3,
            label=NEURONS.get(name, name),
        )  # fmt: skip
        tops.append(mean)
    if bound is not None:
        limit = np.broadcast_to(np.asarray(bound, dtype=float), along.shape)
        ax.plot(along, limit, color=LABEL, ls=":", label=bound_name)
        tops.append(limit)
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(along, [f"{value:g}" for value in along])
    ax.xaxis.set_minor_locator(NullLocator())
    values = np.concatenate(tops)
    ticks = _ticks(float(values.min()), float(values.max()))
    ax.set_yticks(ticks, [f"{value:g}" for value in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.margins(y=0.12)


def _ticks(low: float, high: float) -> Sequence[float]:
    """1, 2 and 5 times powers of ten around a range: a range of errors is often below a decade."""
    exponents = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
    found = [digit * 10.0**power for power in exponents for digit in (1, 2, 5)]
    return [value for value in found if low / 2 <= value <= 2 * high]


@figure_style()
def figure_errors(
    cells: ArrayLike,
    by_cells: Mapping[str, ArrayLike],
    durations: ArrayLike,
    by_duration: ArrayLike,
    *,
    cells_bound: ArrayLike | None = None,
    duration_bound: ArrayLike | None = None,
) -> Figure:
    """Errors against cells per unit, and against the time that a point is shown, with a title."""
    fig = plt.figure(figsize=(10, 4.2))
    left, right = fig.subplots(1, 2)
    plot_error_by_cells(cells, by_cells, left, bound=cells_bound)
    plot_error_by_duration(durations, by_duration, right, bound=duration_bound)
    for ax in (left, right):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    fig.suptitle("Errors of rates that are counted from spikes", fontweight="bold")
    return fig
