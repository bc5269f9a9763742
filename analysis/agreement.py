"""How closely two solvers agree on one stream, and the circuit with what theory says."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from analysis.dynamics import palette, require
from analysis.studies import rates_of_ratio
from analysis.style import LABEL, figure_style
from analysis.theory import critical_drive, parameters_of
from circuits.errors import InputError
from circuits.lift import FloatArray

COMPARED = ("h", "u", "y", "W", "b", "w", "V")

EPSILON = float(np.finfo(float).eps)
"""Machine precision: the distance from 1 to the next number, 2.2e-16."""

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
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


@figure_style()
def plot_differences(run: xr.Dataset, reference: xr.Dataset, ax: Axes | None = None) -> Axes:
    """max |run - reference| of h, u and y at the end of every presentation, on a log scale."""
    names = ("h", "u", "y")
    values = {name: _difference(run, reference, name).max(axis=1) for name in names}
    ax = ax or plt.figure(figsize=(8, 3.6)).add_subplot()
    _draw_log(ax, np.arange(run.sizes["presentation"]), values, joined=False)
    ax.set(xlabel="presentation", ylabel="largest |difference|")
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
    count = run.sizes["presentation"]
    if not -count <= presentation < count:
        raise InputError(
            f"there is no presentation {presentation}: this result holds 0 to {count - 1}"
        )
    values = {}
    for name in names:
        part = [d[[f"{name}_trace"]].isel(presentation=presentation) for d in (run, reference)]
        difference = _difference(part[0], part[1], f"{name}_trace")
        values[name] = difference.reshape(len(difference), -1).max(axis=1)
    ax = ax or plt.figure(figsize=(8, 3.6)).add_subplot()
    p = parameters_of(run)
    times = 1e3 * p.dt_ * np.arange(1, p.steps_per_presentation + 1)
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
        ax.set_title(f"step by step in presentation {chosen}{note}")
    names = [str(data.attrs.get("engine", "?")) for data in (run, reference)]
    fig.suptitle(f"Agreement of {names[0]} with {names[1]}", fontweight="bold")
    return fig


@figure_style()
def plot_convergence(study: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Distance to the differential equation against dt, with a guide of slope one.

    ``study`` is from `analysis.studies.convergence_study`.
    """
    require(study, ("error", "dt"), "a plot of convergence")
    ax = ax or plt.figure(figsize=(5, 4)).add_subplot()
    dt, error = 1e3 * study["dt"].to_numpy(), study["error"].to_numpy()
    order = f"order {study.attrs['order']:.2f}"
    guide = error[-1] * dt / dt[-1]
    ax.loglog(dt, guide, color="0.5", ls="--", lw=0.9, label="slope 1")
    label = f"{study.attrs['engine']}, {order}"
    ax.loglog(dt, error, "o-", color=palette()[0], ms=5, label=label)
    ax.set(xlabel="time step dt (ms)", ylabel="largest |difference| to the ODE")
    ax.legend(loc="upper left")
    return ax


@figure_style()
def figure_convergence(study: xr.Dataset) -> Figure:
    """Convergence in dt with a title."""
    fig = plt.figure(figsize=(5.6, 4.4))
    plot_convergence(study, fig.add_subplot())
    fig.suptitle("Halving dt halves the error", fontweight="bold")
    return fig


@figure_style()
def plot_settling_error(study: xr.Dataset, ax: Axes | None = None) -> Axes:
    """max |h - h*| against the number of steps S: median and 5 to 95 % of the presentations.

    ``study`` is from `analysis.studies.settling_errors` or `settling_study`. A dotted line has the
    slope that theory predicts for the median presentation.
    """
    require(study, ("error", "factor"), "a plot of settling errors")
    ax = ax or plt.figure(figsize=(7, 4)).add_subplot()
    steps = study["step"].to_numpy()
    colors = palette()
    for i, name in enumerate(study["setting"].to_numpy().tolist()):
        error = study["error"].to_numpy()[i]
        # Rates that overflowed stay off the scale instead of breaking the quantiles.
        error = np.where(np.isfinite(error), np.maximum(error, FLOOR), 1e300)
        low, middle, high = np.quantile(error, (0.05, 0.5, 0.95), axis=0)
        color = colors[i % len(colors)]
        factors = study["factor"].to_numpy()[i]
        known = factors[np.isfinite(factors)]  # points that no tile covers have none
        factor = float(np.median(known)) if known.size else 1.0
        # Many bands on top of each other would hide the medians.
        shade = 0.2 if study.sizes["setting"] <= 2 else 0.08
        ax.fill_between(steps, low, high, color=color, alpha=shade, lw=0)
        ax.plot(steps, middle, color=color, label=f"{name}: median")
        line = np.exp(np.log(middle[0]) + (steps - steps[0]) * np.log(factor))
        if factor >= 1:
            line, note = np.full(len(steps), np.nan), f"predicted not to settle, {factor:.3f}ⁿ"
        else:
            note = f"predicted {factor:.3f}ⁿ"
        ax.plot(steps, line, color=color, ls=":", lw=1.2, label=note)
    ax.fill_between([], [], [], color="0.5", alpha=0.3, lw=0, label="5 to 95 % of presentations")
    ax.axhline(EPSILON, color=LABEL, lw=0.9, ls="--", label="machine precision")
    ax.set_yscale("log")
    ax.set_ylim(EPSILON / 20, 10)
    ax.set_xlim(0, steps[-1])
    ax.set(xlabel="steps per presentation S", ylabel="largest |h − closed form|")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return ax


@figure_style()
def figure_settling_error(study: xr.Dataset) -> Figure:
    """Settling error against S with a title."""
    fig = plt.figure(figsize=(9, 4.4))
    plot_settling_error(study, fig.add_subplot())
    fig.suptitle("How many steps a presentation needs", fontweight="bold")
    return fig


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

    ``study`` is from `analysis.studies.stability_map`. Purple settles, orange does not; the black
    line is where theory puts the change, the dotted one its limit for small steps.
    ``working_point`` is what `analysis.studies.working_points` says of a result.
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
        label=f"theory, dt/τ = {fast:g} for the faster of u and V",
    )
    limit = ((fine - 1) / (fine + 1)) ** 2
    ax.plot(fine, limit, color=LABEL, lw=1.2, ls=":", label="theory, u and V in small steps")
    if working_point is not None:
        at, few, middle, many = np.asarray(working_point, dtype=float)
        ax.errorbar(
            at, middle, [[middle - few], [many - middle]], fmt="o", color=LABEL, mfc="white",
            capsize=3, ms=6, label="the result: median, 5 to 95 %",
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
