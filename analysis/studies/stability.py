"""Where in the plane of time constants and drive the circuit settles."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from analysis.holdings import require
from analysis.style import LABEL, figure_style
from analysis.theory import Gamma, critical_drive, gain_of, gamma_of, growth_factor
from circuits import reference
from circuits.errors import InputError
from circuits.lift import FloatArray


def measured_factor(gamma: Gamma, *, steps: int = 300) -> float:
    """What a step multiplies small deviations by, measured by taking steps near the fixed point.

    ``gamma`` is (gamma_h A, gamma_u, gamma_V): u and V are taken in units of sqrt(A), so A = 1.
    `circuits.reference.step` is iterated from a deviation of 1e-6, which is scaled back to that
    size after every step; the factor is the slope of the log of all it was scaled by. The first
    quarter, in which the slowest mode wins, is left out. One interneuron and two tiles have all the
    modes that a start with V = u h^T can excite.
    """
    push = 1e-6
    a = np.array([0.6, 0.8])
    fixed = np.concatenate([part.ravel() for part in reference.fixed_point(a, np.ones(1))])
    deviation = push * np.array([0.7, -0.3, 0.5, -0.2, 0.4])  # some of every mode
    grown = np.empty(steps)
    for n in range(steps):
        state = fixed + deviation
        h, u, V = reference.step(state[:2], state[2:3], state[3:].reshape(1, 2), a, gamma)
        deviation = np.concatenate((h, u, V[0])) - fixed
        grown[n] = math.sqrt(deviation @ deviation) / push
        deviation /= grown[n]
    total = np.cumsum(np.log(grown))[steps // 4 :]
    return math.exp(np.polyfit(np.arange(len(total)), total, 1)[0])


def stability_map(
    ratios: ArrayLike | None = None,
    drives: ArrayLike | None = None,
    *,
    fast: float = 0.5,
    steps: int = 300,
) -> xr.Dataset:
    """Measured and predicted contraction per step over tau_u/tau_V and gamma_h A.

    The faster of u and V has the step size ``fast`` (dt/tau), the other follows from the ratio.
    Returns ``measured`` and ``predicted`` (drive, ratio), and ``critical`` (ratio): the largest
    stable gamma_h A by theory.
    """
    if not 0 < fast <= 1:
        raise InputError(f"fast must lie above 0 and not exceed 1, got {fast}")
    r = np.geomspace(1 / 64, 64, 37) if ratios is None else np.asarray(ratios, dtype=float)
    g = np.linspace(0.04, 1.2, 30) if drives is None else np.asarray(drives, dtype=float)
    gamma_u, gamma_V = rates_of_ratio(r, fast)
    measured, predicted = np.empty((len(g), len(r))), np.empty((len(g), len(r)))
    for i, drive in enumerate(g):
        for j in range(len(r)):
            gamma = float(drive), float(gamma_u[j]), float(gamma_V[j])
            measured[i, j] = measured_factor(gamma, steps=steps)
            predicted[i, j] = growth_factor(gamma, 1.0)
    return xr.Dataset(
        {
            "measured": (("drive", "ratio"), measured),
            "predicted": (("drive", "ratio"), predicted),
            "critical": ("ratio", critical_drive(gamma_u, gamma_V)),
        },
        coords={"drive": g, "ratio": r},
        attrs={"study": "stability", "fast": fast, "steps": steps},
    )


def rates_of_ratio(ratio: ArrayLike, fast: float) -> tuple[FloatArray, FloatArray]:
    """gamma_u and gamma_V for tau_u/tau_V = ``ratio`` when the larger of them is ``fast``."""
    r = np.asarray(ratio, dtype=float)
    return fast * np.minimum(1, 1 / r), fast * np.minimum(1, r)


def working_points(run: xr.Dataset) -> FloatArray:
    """tau_u/tau_V and the 5 %, 50 % and 95 % quantiles of gamma_h A over a result's presentations.

    Under gain control gamma_h A = dt/tau_h for every presentation, and the three are one. With a
    constant gain the settled interneurons tell the drive, A = |u|^2; points that no tile covers do
    not count.
    """
    u = run["u"].to_numpy()[run["covered"].to_numpy().astype(bool)]
    if not len(u):
        raise InputError("no tile covers any point of this result: there is no drive to show")
    gamma_h, gamma_u, gamma_V = gamma_of(run, 1.0)
    drives = np.full(1, gamma_h) if gain_of(run) is None else gamma_h * (u**2).sum(axis=1)
    return np.array([gamma_V / gamma_u, *np.quantile(drives, (0.05, 0.5, 0.95))])


def _edges(centers: FloatArray) -> FloatArray:
    """Borders of the cells around sorted centres."""
    if len(centers) < 2:
        raise InputError("a stability map needs at least two values on each axis")
    middle = (centers[1:] + centers[:-1]) / 2
    ends = 2 * centers[0] - middle[0], 2 * centers[-1] - middle[-1]
    return np.array([ends[0], *middle, ends[1]])


@figure_style()
def plot_stability_map(
    study: xr.Dataset, ax: Axes | None = None, *, working_point: ArrayLike | None = None
) -> Axes:
    """Measured contraction per step over tau_u/tau_V and gamma_h A, with the theory's boundary.

    ``study`` is from `stability_map`. Purple settles, orange does not; the black
    line is where theory puts the change, the dotted one its limit for small steps.
    ``working_point`` is what `working_points` says of a result.
    """
    require(study, ("measured",), "a stability map")
    ax = ax or plt.figure(figsize=(7, 4.6)).add_subplot()
    ratio, drive = study["ratio"].to_numpy(), study["drive"].to_numpy()
    measured = study["measured"].to_numpy()
    low, high = min(float(measured.min()), 0.99), max(float(measured.max()), 1.01)
    edges = np.exp(_edges(np.log(ratio))), _edges(drive)
    image = ax.pcolormesh(
        *edges, measured, cmap="PuOr_r", norm=TwoSlopeNorm(1, low, high), rasterized=True
    )
    bar = ax.figure.colorbar(image, ax=ax, label="measured |deviation| factor per step", pad=0.02)
    bar.ax.axhline(1, color=LABEL, lw=1.5)
    fine = np.geomspace(ratio.min(), ratio.max(), 2001)
    fast = float(study.attrs["fast"])
    critical = np.maximum(critical_drive(*rates_of_ratio(fine, fast)), 0)
    ax.plot(
        fine,
        critical,
        color=LABEL,
        lw=2,
        label=f"theory, dt/τ = {fast:.3g} for the faster of u and V",
    )
    limit = ((fine - 1) / (fine + 1)) ** 2
    ax.plot(fine, limit, color=LABEL, lw=1.2, ls=":", label="theory, u and V in small steps")
    if working_point is not None:
        at, few, middle, many = np.asarray(working_point, dtype=float)
        one = few == many
        ax.errorbar(
            at, middle, None if one else [[middle - few], [many - middle]], fmt="o", color=LABEL,
            mfc="white", capsize=3, ms=6,
            label="the result: " + ("every presentation" if one else "median, 5 to 95 %"),
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set(xlim=edges[0][[0, -1]], ylim=edges[1][[0, -1]])
    ax.set(xlabel=r"$\tau_u / \tau_V$", ylabel=r"$\gamma_h A$  (gain · dt/$\tau_h$ · |[a]$_+$|)")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, columnspacing=1.2)
    return ax


@figure_style()
def figure_stability_map(study: xr.Dataset, working_point: ArrayLike | None = None) -> Figure:
    """The stability map with a title."""
    fig = plt.figure(figsize=(7.5, 5.2))
    plot_stability_map(study, fig.add_subplot(), working_point=working_point)
    fig.suptitle(
        "Where the circuit settles: measured, and the boundary by theory", fontweight="bold"
    )
    return fig


def figure_stability_of(run: xr.Dataset) -> Figure:
    """The stability map for the time constants of a result, with the place where it works."""
    points, rates = working_points(run), gamma_of(run, 1.0)[1:]
    widest, highest = max(64.0, 1.5 * points[0], 1.5 / points[0]), max(1.2, 1.1 * points[-1])
    study = stability_map(
        np.geomspace(1 / widest, widest, 37), np.linspace(0.04, highest, 30), fast=max(rates)
    )
    return figure_stability_map(study, points)
