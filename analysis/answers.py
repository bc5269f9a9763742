"""What a circuit answers, over the data it was shown, its own or the user's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from analysis.dynamics.common import check_readout
from analysis.holdings import lacking, require
from analysis.kinds import KINDS
from analysis.measures import accuracy
from analysis.plane import LabelMarks, flatten, label_entries, name_axes
from analysis.style import LABEL, READOUT_MAP, figure_style
from analysis.theory import has_closed_form, lift_of, parameters_of
from analysis.tiles_in_use import recruited_of
from circuits.circuit import ReferenceCircuit
from circuits.lift import FloatArray
from circuits.state import CircuitState

GRID = 120
"""Places along each side of the plane at which the answer is computed (on a line, four times)."""

MOST_PANELS = 6
"""Readouts that get a panel; more are not drawn."""

SCALE = Normalize(-1, 1)
"""Readouts lie between -1 and 1."""


def final_answers(run: xr.Dataset, points: FloatArray) -> FloatArray | None:
    """The answer (T, r) to points by the weights a result ends with, by the closed form.

    Points outside the lift have none (NaN). None at all where the result does not hold the weights,
    or was made by a circuit that a user has changed, which need not have the closed form.
    """
    if lacking(run, ("W", "b", "w", "V")) or not has_closed_form(run):
        return None
    lift, parameters = lift_of(run), parameters_of(run)
    circuit = ReferenceCircuit(parameters, lift, settling="exact")
    rates = np.zeros(parameters.n_tiles), np.zeros(parameters.n_interneurons)
    W, b, w, V = (run[name].to_numpy() for name in ("W", "b", "w", "V"))
    circuit.state = CircuitState(W, b, w, *rates, V, recruited=recruited_of(run))
    answers = np.full((len(points), parameters.n_readouts), np.nan)
    inside = ((points - lift.center) ** 2).sum(axis=1) <= lift.radius**2
    if inside.any():
        answers[inside] = circuit.predict(points[inside])
    return answers


def known_classes(run: xr.Dataset, readout: int = 0) -> FloatArray | None:
    """The class of every point, -1 or +1, or 0 where it is not known; None if there are none."""
    if "classes" not in run or not set(run["classes"].dims) <= {"presentation", "readout"}:
        return None
    stored = run["classes"].isel(readout=readout, missing_dims="ignore").to_numpy().astype(float)
    classes = np.where(np.isin(stored, (-1.0, 1.0)), stored, 0.0)
    return classes if classes.any() else None


@dataclass(frozen=True)
class FinalAnswers:
    """What the circuit answers at the end: to the points, and on a grid around them."""

    points: FloatArray
    """(presentation, readout)"""
    axes: tuple[FloatArray, ...]
    """The grid, an axis for every coordinate; none for data of more than two."""
    grid: FloatArray
    """(..., readout); NaN outside the lift."""

    @classmethod
    def of(cls, run: xr.Dataset) -> FinalAnswers | None:
        """Those of a result; None where they cannot be known (`final_answers`)."""
        points = run["points"].to_numpy()
        d = points.shape[1]
        answers = final_answers(run, points)
        if answers is None:
            return None
        count = {1: 4 * GRID, 2: GRID}.get(d, 0)
        axes = tuple(np.linspace(*limits, count) for limits in _frame(points)) if count else ()
        places = np.stack(np.meshgrid(*axes), axis=-1) if axes else np.empty((0, d))
        found = final_answers(run, places.reshape(-1, d))
        assert found is not None  # as above
        return cls(answers, axes, found.reshape(*places.shape[:-1], found.shape[1]))


def verdict(run: xr.Dataset, readout: int = 0, final: FinalAnswers | None = None) -> str:
    """How many answers were right, where classes are known: in words, empty where they are not.

    Before the first label a circuit cannot know which side is which, and a labelled point is told:
    neither counts.
    """
    classes, labels = known_classes(run, readout), run["labels"].to_numpy()[:, readout]
    told = np.flatnonzero(labels)
    if classes is None or not told.size:
        return ""
    counts = (classes != 0) & (labels == 0) & (np.arange(len(labels)) > told[0])
    if not counts.any():
        return ""
    answers = {"when shown": run["y"].to_numpy()}
    if final:
        answers["at the end"] = final.points
    shares = [
        f"{accuracy(y[counts, readout], classes[counts]):.1%} {when}" for when, y in answers.items()
    ]
    number = int(counts.sum())
    since = f"({number} unlabelled point{'s' * (number != 1)} since the first label)"
    return f"accuracy {', '.join(shares)}\n{since}"


def _frame(points: FloatArray) -> list[tuple[float, float]]:
    """From where to where the axes go: the points, and some room around them."""
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.08 * float((high - low).max()) or 1.0
    return [(float(a) - margin, float(b) + margin) for a, b in zip(low, high, strict=True)]


@figure_style()
def plot_answers(
    run: xr.Dataset,
    ax: Axes | None = None,
    readout: int = 0,
    *,
    coordinates: tuple[int, int] | None = None,
) -> Axes:
    """The data, each point coloured by what the circuit answered when it was shown.

    Labelled points carry the sign of the label. Behind points of two coordinates lies what the
    circuit answers at the end everywhere within its lift; for points on a line both are drawn as
    heights. Grey is silence. The title says how many answers were right, where classes are known.
    """
    require(run, KINDS["answers"].needs[0], "a plot of answers")
    check_readout(run, readout)
    ax = ax or plt.figure().add_subplot()
    return _draw(run, ax, readout, coordinates, FinalAnswers.of(run))


def _draw(
    run: xr.Dataset,
    ax: Axes,
    readout: int,
    coordinates: tuple[int, int] | None,
    final: FinalAnswers | None,
) -> Axes:
    points, y = run["points"].to_numpy(), run["y"].to_numpy()[:, readout]
    if points.shape[1] == 1:
        shown = np.column_stack([points[:, 0], y])
        ax.set(xlabel="coordinate", ylabel="readout y", xlim=_frame(points)[0], ylim=(-1.2, 1.2))
        if final:
            line = final.grid[:, readout]
            ax.plot(final.axes[0], line, color=LABEL, lw=1, zorder=2, label="answer at the end")
    else:
        shown = flatten(points, coordinates)
        frame = _frame(shown)
        ax.set(xlim=frame[0], ylim=frame[1], aspect="equal")
        name_axes(ax, points.shape[1], coordinates)
        if final and final.axes and coordinates in (None, (0, 1)):
            ax.pcolormesh(
                *final.axes, final.grid[..., readout], cmap=READOUT_MAP,
                norm=SCALE, alpha=0.45, shading="nearest", zorder=1, rasterized=True,
            )  # fmt: skip
    ax.scatter(
        shown[:, 0], shown[:, 1], s=13, c=y, cmap=READOUT_MAP, norm=SCALE, edgecolors="0.25",
        linewidths=0.3, zorder=3,
    )  # fmt: skip
    LabelMarks(ax).show(shown, run["labels"].to_numpy()[:, readout])
    ax.set_title(verdict(run, readout, final))
    return ax


@figure_style()
def figure_answers(run: xr.Dataset, *, coordinates: tuple[int, int] | None = None) -> Figure:
    """The answers of every readout, at most ``MOST_PANELS``, with title, legend and scale."""
    require(run, KINDS["answers"].needs[0], "a plot of answers")
    count = run.sizes["readout"]
    shown = min(count, MOST_PANELS)
    columns = min(shown, 3)
    rows = -(-shown // columns)
    width = 5.4 if shown == 1 else 3.8
    # As high as the data are beside their width.
    spans = [high - low for low, high in _frame(flatten(run["points"].to_numpy(), coordinates))]
    flat = run.sizes["coordinate"] == 1
    height = 0.6 * width if flat else width * float(np.clip(spans[1] / spans[0], 0.4, 1.2))
    fig = plt.figure(figsize=(width * columns + 1.4, (height + 0.6) * rows + 1.1))
    grid = fig.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for ax in grid.flat[shown:]:
        ax.remove()
    axes, final = list(grid.flat[:shown]), FinalAnswers.of(run)
    mu = parameters_of(run).mu_per_readout
    for readout, ax in enumerate(axes):
        _draw(run, ax, readout, coordinates, final)
        if count > 1:
            name, found = f"readout {readout}, μ = {mu[readout]:g}", ax.get_title()
            ax.set_title(f"{name}\n{found.splitlines()[0]}" if found else name, fontsize=8)
            ax.label_outer()
    fig.colorbar(
        ScalarMappable(SCALE, READOUT_MAP), ax=axes, label="readout y (grey: silent)", shrink=0.8,
        pad=0.02,
    )  # fmt: skip
    handles, names = axes[0].get_legend_handles_labels()
    signed, texts = label_entries(run["labels"].to_numpy()[:, :shown])
    entries: list[Any] = [*handles, *signed]
    if entries:
        fig.legend(entries, [*names, *texts], loc="outside lower center", ncols=len(entries))
    some = f" (the first {shown} of {count} readouts)" if shown < count else ""
    end = ", and to the plane at the end" if final and len(final.axes) == 2 else ""
    fig.suptitle(f"What the circuit answered to each point{end}{some}", fontweight="bold")
    return fig
