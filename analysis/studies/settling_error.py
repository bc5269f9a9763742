"""How many steps presentations need to settle, as they were run or with other time constants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.holdings import require
from analysis.style import LABEL, figure_style, legend_beside, palette, whole_numbers
from analysis.theory import (
    EPSILON,
    Gamma,
    gain_of,
    gamma_of,
    growth_factor,
    parameters_of,
    rest_on,
    step_sizes,
    target_of,
)
from circuits import reference
from circuits.errors import InputError

FLOOR = 1e-18
"""Where errors below it are drawn on a log scale."""


def settling_errors(run: xr.Dataset) -> xr.Dataset:
    """max |h - h*| after every step of a recorded result: what a shorter S would have left.

    Needs ``h_trace`` and snapshots; presentations whose closed form cannot be known are left out.
    Returns ``error`` (setting, presentation, step) and ``factor``, the predicted contraction.
    """
    if "h_trace" not in run:
        raise InputError("settling errors need h_trace: run with record=('h',), snapshot_every=1")
    if "W_snapshots" not in run:
        target_of(run, 0)  # says what is missing
    gain_of(run)  # says what is wrong with it, if something is
    errors, factors, kept = [], [], []
    for t in range(run.sizes["presentation"]):
        try:
            target = target_of(run, t)
        except InputError:
            continue
        kept.append(t)
        errors.append(np.abs(run["h_trace"][t].to_numpy() - target.h).max(axis=1))
        factors.append(_factor(gamma_of(run, target.size), target.size))
    if not kept:
        raise InputError("no presentation has a snapshot before it: run with snapshot_every=1")
    name = str(run.attrs.get("engine", "unknown engine"))
    return _settling_dataset([name], kept, [errors], [factors], run)


def settling_study(
    run: xr.Dataset,
    settings: Mapping[str, Mapping[str, str]],
    *,
    n_presentations: int = 40,
    steps: int | None = None,
) -> xr.Dataset:
    """How fast the presentations of a result would settle with other time constants.

    The drives a of ``n_presentations`` presentations, spread over the result's stream, are settled
    on from rest with `circuits.reference.step`. ``settings`` maps a name to the parameters to
    change: dt, tau_h, tau_u, tau_V. The result must hold snapshots (``snapshot_every=1``, or any:
    then presentations next to a snapshot are taken). Returns as `settling_errors` does.
    """
    base = parameters_of(run)
    for changes in settings.values():
        if extra := set(changes) - {"dt", "tau_h", "tau_u", "tau_V"}:
            raise InputError(
                f"settings may change dt, tau_h, tau_u and tau_V, not {sorted(extra)[0]}"
            )
    if "W_snapshots" not in run:
        target_of(run, 0)  # says what is missing
    known = run["snapshot_presentation"].to_numpy()
    count = min(n_presentations, len(known))
    kept = known[np.unique(np.linspace(0, len(known) - 1, count).round().astype(int))]
    targets = [target_of(run, int(t)) for t in kept]
    n_steps = steps or base.steps_per_presentation
    starts = [rest_on(run, int(t), target) for t, target in zip(kept, targets, strict=True)]
    errors, factors = [], []
    for changes in settings.values():
        p = base.replace(**changes)
        rows = []
        for target, state in zip(targets, starts, strict=True):
            gamma = step_sizes(p, gain_of(run), target.size)
            row = []
            # Unstable settings are part of the question; their rates may overflow.
            with np.errstate(over="ignore", invalid="ignore"):
                for _ in range(n_steps):
                    state = reference.step(*state, target.a, gamma)
                    row.append(np.abs(state[0] - target.h).max())
            rows.append(row)
        errors.append(rows)
        factors.append([_factor(step_sizes(p, gain_of(run), t.size), t.size) for t in targets])
    return _settling_dataset(list(settings), kept, errors, factors, run)


def _factor(gamma: Gamma, size: float) -> float:
    """The predicted contraction; none where nothing drives a tile."""
    return growth_factor(gamma, size) if size > 0 else math.nan


def _settling_dataset(
    names: list[str], kept: Any, errors: Any, factors: Any, run: xr.Dataset
) -> xr.Dataset:
    array = np.array(errors, dtype=float)
    return xr.Dataset(
        {
            "error": (("setting", "presentation", "step"), array),
            "factor": (("setting", "presentation"), np.array(factors, dtype=float)),
        },
        coords={
            "setting": names,
            "presentation": run["presentation"].to_numpy()[kept],
            "step": np.arange(1, array.shape[2] + 1),
        },
        attrs={"study": "settling", "parameters": run.attrs["parameters"]},
    )


@figure_style()
def plot_settling_error(study: xr.Dataset, ax: Axes | None = None) -> Axes:
    """max |h - h*| against the number of steps S: median and 5 to 95 % of the presentations.

    ``study`` is from `settling_errors` or `settling_study`. A dotted line has the
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
    legend_beside(ax)
    whole_numbers(ax.xaxis)
    return ax


@figure_style()
def figure_settling_error(study: xr.Dataset) -> Figure:
    """Settling error against S with a title."""
    fig = plt.figure(figsize=(9, 4.4))
    plot_settling_error(study, fig.add_subplot())
    fig.suptitle("How many steps a presentation needs", fontweight="bold")
    return fig


def figure_settling_error_of(run: xr.Dataset) -> Figure:
    """Settling error against S of a recorded result."""
    return figure_settling_error(settling_errors(run))
