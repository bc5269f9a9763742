"""The spiking twin beside the circuit whose rates its spikes stand for: numbers and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from analysis.firing.spikes import rate_errors
from analysis.measures import tile_centers
from analysis.style import LABEL, figure_style, palette, whole_numbers
from analysis.theory import values_of
from circuits.errors import InputError
from circuits.lift import FloatArray
from circuits.spiking.parameters import SpikingParameters

MOST_DOTS = 20_000
"""Of more rates than this every so-manieth is drawn."""


@dataclass(frozen=True)
class Likeness:
    """How far rates h (T, m) are from others, over the presentations in which those are not 0."""

    difference: float
    """Mean |h - other|, the others being of norm 1."""
    correlation: float
    """Of all rates with all others."""
    direction: float
    """Mean |h/|h| - other|; where h = 0 that is 1."""
    norm: float
    """Mean |h|."""


def likeness(h: ArrayLike, other: ArrayLike) -> Likeness:
    """How far rates are from others; all NaN if the others are all zero."""
    found, wanted = np.asarray(h, dtype=float), np.asarray(other, dtype=float)
    if found.shape != wanted.shape or found.ndim != 2:
        raise InputError(f"the rates to compare have the shapes {found.shape} and {wanted.shape}")
    there = wanted.any(axis=1)
    if not there.any():
        return Likeness(*[float("nan")] * 4)
    found, wanted = found[there], wanted[there]
    wanted = wanted / _norms(wanted)[:, None]
    errors, directions = rate_errors(found, wanted)
    varied = min(float(np.ptp(found)), float(np.ptp(wanted))) > 0
    return Likeness(
        float(errors.mean()),
        float(np.corrcoef(found.ravel(), wanted.ravel())[0, 1]) if varied else float("nan"),
        float(directions.mean()),
        float(_norms(found).mean()),
    )


def _norms(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(rows, axis=1))


def same_signs(run: xr.Dataset, other: xr.Dataset) -> float:
    """Share of the other's answers whose sign a run has; NaN if the other is always silent."""
    y, wanted = (np.sign(result["y"].to_numpy()) for result in (run, other))
    answered = wanted != 0
    return float((y == wanted)[answered].mean()) if answered.any() else float("nan")


def tile_distance(run: xr.Dataset, other: xr.Dataset) -> float:
    """Mean distance from a tile of a run to the other's nearest, in the units of the data; NaN if
    either has none in use."""
    ours, theirs = (tile_centers(r)[r["recruited"].to_numpy() >= 0] for r in (run, other))
    if not len(ours) or not len(theirs):
        return float("nan")
    return nearest(ours, theirs)


def nearest(points: FloatArray, others: FloatArray) -> float:
    """Mean distance from points (T, d) to the nearest of others."""
    apart = np.linalg.norm(points[:, None] - others[None], axis=2)
    return float(apart.min(axis=1).mean())


@dataclass(frozen=True)
class FiringRates:
    """Firing rates in Hz in the window; NaN if nothing fired."""

    excitatory_mean: float
    """Of excitatory cells in those presentations in which they fired."""
    excitatory_most: float
    inhibitory_most: float
    """99 % of the inhibitory cells' rates are below."""

    def __str__(self) -> str:
        return (
            f"excitatory cells that respond fire at {self.excitatory_mean:.1f} Hz, at most at "
            f"{self.excitatory_most:.1f} Hz; 99 % of inhibitory rates are up to "
            f"{self.inhibitory_most:.1f} Hz"
        )


def firing_rates(result: xr.Dataset) -> FiringRates:
    """How fast the cells of a spiking circuit fire, from all presentations of a result."""
    for name in ("excitatory_hz", "inhibitory_hz"):
        if name not in result:
            raise InputError(f"the result holds no {name}: it is not of a spiking circuit")
    hz = result["excitatory_hz"].to_numpy()
    hz = hz[hz > 0]
    if not hz.size:
        return FiringRates(*[float("nan")] * 3)
    most = np.percentile(result["inhibitory_hz"].to_numpy(), 99)
    return FiringRates(float(hz.mean()), float(hz.max()), float(most))


@dataclass(frozen=True)
class Row:
    """A line of a table: a name, and values of the spiking twin, the rate circuit and the closed
    form, as far as they have one."""

    name: str
    values: tuple[float, ...]
    form: str = ".4f"

    def __str__(self) -> str:
        return f"  {self.name:<26}" + "".join(f"{self._text(value):>14}" for value in self.values)

    def _text(self, value: float) -> str:
        if np.isnan(value):
            return "-"
        # What is not zero should not look as if it were.
        small = self.form.endswith("f") and 0 < abs(value) < 1e-3
        return f"{value:.1e}" if small else f"{value:{self.form}}"


def frozen_rows(frozen: xr.Dataset) -> list[Row]:
    """What `simulations.twins` found with frozen weights."""
    h = frozen["h"].to_numpy()
    alike = [likeness(frozen[name].to_numpy(), h) for name in ("h_spiking", "h_rate", "h")]
    covered = frozen["covered"].to_numpy()
    power = [
        float(frozen[name].to_numpy()[covered].mean()) if covered.any() else float("nan")
        for name in ("u_power", "u_power_expected")
    ]
    rates = firing_rates(frozen)
    return [
        Row("mean |h - closed form|", tuple(one.difference for one in alike[:2])),
        Row("correlation of h", tuple(one.correlation for one in alike[:2])),
        Row("direction error of h", tuple(one.direction for one in alike[:2])),
        Row("mean |h|", tuple(one.norm for one in alike)),
        Row("mean sum of u^2/N, cells", (power[0], float("nan"), power[1])),
        Row("E cells that respond, Hz", (rates.excitatory_mean,), ".1f"),
        Row("E cells at most, Hz", (rates.excitatory_most,), ".1f"),
        Row("99 % of I cells up to, Hz", (rates.inhibitory_most,), ".1f"),
    ]


def learning_rows(spiking: xr.Dataset, rate: xr.Dataset, exact: xr.Dataset) -> list[Row]:
    """The three after learning from scratch on one stream."""
    runs = (spiking, rate, exact)
    return [
        Row("signs of y as rate circuit", tuple(same_signs(run, rate) for run in runs), ".2%"),
        Row("distance to its tiles", tuple(tile_distance(run, rate) for run in runs)),
        Row("tiles in use", tuple(int((r["recruited"] >= 0).sum()) for r in runs), ".0f"),
        Row("labels lost", tuple(run.attrs["lost_labels"] for run in runs), ".0f"),
    ]


@figure_style()
def figure_twin(frozen: xr.Dataset, spiking: xr.Dataset, rate: xr.Dataset) -> Figure:
    """Spikes against rates: h and firing with frozen weights, answers and tiles after learning."""
    fig = plt.figure(figsize=(9, 7))
    rates, firing, answers, tiles = fig.subplots(2, 2).ravel()
    plot_rates(frozen, rates).set_title("with frozen weights")
    plot_firing(frozen, firing).set_title("firing in the window")
    plot_answers(spiking, rate, answers).set_title("learning from scratch")
    plot_both_tiles(spiking, rate, tiles).set_title("where tiles end")
    fig.suptitle("The spiking twin beside the circuit of rates", fontweight="bold")
    return fig


def plot_rates(frozen: xr.Dataset, ax: Axes | None = None) -> Axes:
    """h of spikes against that of the closed form, a dot per tile and presentation."""
    ax = ax or plt.figure().add_subplot()
    h, spikes = (frozen[name].to_numpy().ravel() for name in ("h", "h_spiking"))
    shown = np.flatnonzero((h > 0) | (spikes > 0))
    shown = shown[:: max(1, len(shown) // MOST_DOTS)]
    ax.scatter(h[shown], spikes[shown], s=3, linewidths=0, alpha=0.3, rasterized=True)
    ax.plot([0, 1], [0, 1], color=LABEL, lw=0.9, ls="--", label="equal")
    ax.set(xlabel="h, closed form", ylabel="h, spikes in the window")
    ax.legend(loc="upper left")
    return ax


def plot_firing(frozen: xr.Dataset, ax: Axes | None = None) -> Axes:
    """How often firing rates occur, of cells that fired."""
    ax = ax or plt.figure().add_subplot()
    hz = {name: frozen[f"{name}_hz"].to_numpy() for name in ("excitatory", "inhibitory")}
    # A rate is a number of spikes in the window: bins hold one such number each.
    one = 1 / SpikingParameters(**values_of(frozen, "spiking")).window_
    most = max(round(float(values.max()) / one) for values in hz.values())
    edges = (one * (np.arange(1, max(most, 1) + 2) - 0.5)).tolist()
    for (name, values), color in zip(hz.items(), palette(), strict=False):
        share = np.full(values.size, 1 / values.size)
        ax.hist(values.ravel(), edges, weights=share, color=color, alpha=0.6, label=name)
    ax.set(xlabel="firing rate (Hz)", ylabel="share of cells and presentations")
    ax.legend()
    return ax


def plot_answers(spiking: xr.Dataset, rate: xr.Dataset, ax: Axes | None = None) -> Axes:
    """y of both at the end of every presentation."""
    ax = ax or plt.figure().add_subplot()
    time = rate["presentation"].to_numpy()
    for run, name, marker, color in (
        (rate, "rate circuit", "o", LABEL),
        (spiking, "spiking twin", "x", palette()[1]),
    ):
        ax.scatter(time, run["y"].to_numpy()[:, 0], s=8, marker=marker, linewidths=0.6, c=color,
                   alpha=0.6, label=name)  # fmt: skip
    ax.set(xlabel="presentation", ylabel="readout y", ylim=(-1.15, 1.6))
    whole_numbers(ax.xaxis)
    ax.legend(loc="upper center", ncols=2)
    return ax


def plot_both_tiles(spiking: xr.Dataset, rate: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Tile centres of both on the points, along the first two coordinates."""
    ax = ax or plt.figure().add_subplot()

    def dots(places: FloatArray, **options: Any) -> None:
        flat = np.zeros(len(places))  # for points on a line
        ax.scatter(places[:, 0], places[:, 1] if places.shape[1] > 1 else flat, **options)

    dots(rate["points"].to_numpy(), s=3, c="0.8", linewidths=0, label="points")
    for run, name, marker, color in (
        (rate, "rate circuit", "o", LABEL),
        (spiking, "spiking twin", "x", palette()[1]),
    ):
        used = run["recruited"].to_numpy() >= 0
        options = {"facecolors": "none", "edgecolors": color} if marker == "o" else {"c": color}
        dots(tile_centers(run)[used], s=24, marker=marker, linewidths=0.9, label=name, **options)
    ax.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    ax.legend(loc="best")
    return ax
