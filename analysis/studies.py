"""Computations behind the agreement plots: convergence in dt, settling, stability.

Each returns an `xarray.Dataset` that can be saved like any result; `analysis.agreement` draws them.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from analysis.theory import (
    Gamma,
    critical_drive,
    gamma_of,
    growth_factor,
    parameters_of,
    target_of,
)
from circuits import rules
from circuits.base import Circuit
from circuits.circuit import ManifoldCircuit
from circuits.errors import InputError, UnsettledWarning
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.reference import ReferenceCircuit

CHECKPOINTS = 32
"""Times at which the circuit is compared with the differential equation."""


def convergence_study(
    engine: str = "reference", steps: Iterable[int] = (32, 64, 128, 256, 512, 1024)
) -> xr.Dataset:
    """Distance of the circuit to its differential equation when dt shrinks.

    Four tiles, of which all respond, are shown one point for 32 ms. Time constants stay fixed and
    dt = 32 ms / steps; the solution of dh/dt = gain (a - V^T u)/tau_h, du/dt = (V h - u)/tau_u,
    dV/dt = (u h^T - V)/tau_V is that of an eighth-order solver at a tolerance of 1e-12. A step is
    Euler's, so the largest distance is proportional to dt.

    ``engine`` is "reference" or one of the Brian2 engines. Returns ``error`` and ``dt`` (s) over
    ``steps``, and in the attributes ``order``, the slope of log error over log dt.
    """
    counts = [int(n) for n in steps]
    if bad := [n for n in counts if n < CHECKPOINTS or n % CHECKPOINTS]:
        raise InputError(f"steps must be multiples of {CHECKPOINTS}, got {bad[0]}")
    lift = SphereLift(center=(0.5, 0.25), radius=3.0)
    centers = np.array([[0.5, 0.25], [0.55, 0.3], [0.45, 0.2], [0.6, 0.25]])
    point = np.array([[0.52, 0.26]])
    duration = 0.032
    fixed: dict[str, Any] = {"n_tiles": 4, "n_interneurons": 2, "tile_radius": 0.4}
    fixed |= {"tau_h": "40 ms", "tau_u": "50 ms", "tau_V": "8 ms"}
    probe = ReferenceCircuit(CircuitParameters(**fixed), lift, tile_centers=centers)
    times = duration * np.arange(1, CHECKPOINTS + 1) / CHECKPOINTS
    solution = _solve_ode(probe, lift(point)[0], times)
    errors = []
    for n in counts:
        parameters = CircuitParameters(**fixed, dt=f"{duration / n!r} s", steps_per_presentation=n)
        circuit: Circuit
        if engine == "reference":
            circuit = ReferenceCircuit(parameters, lift, tile_centers=centers)
        else:
            circuit = ManifoldCircuit(parameters, lift, engine, tile_centers=centers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsettledWarning)  # it is stopped on its way
            run = circuit.run(point, record=("h", "u", "V"))
        every = slice(n // CHECKPOINTS - 1, None, n // CHECKPOINTS)
        states = [run[f"{name}_trace"].to_numpy()[0, every] for name in "huV"]
        flat = np.concatenate([state.reshape(CHECKPOINTS, -1) for state in states], axis=1)
        errors.append(float(np.abs(flat - solution).max()))
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0] if len(counts) > 1 else math.nan
    return xr.Dataset(
        {"error": ("steps", errors), "dt": ("steps", duration / np.array(counts))},
        coords={"steps": counts},
        attrs={
            "study": "convergence",
            "engine": engine,
            "order": float(order),
            "parameters": json.dumps(probe.parameters.as_dict()),
        },
    )


def _solve_ode(circuit: Circuit, x: FloatArray, times: FloatArray) -> FloatArray:
    """h, u and V, flat, at ``times``: the solution of the differential equation from rest."""
    p, state = circuit.parameters, circuit.state
    m, k = p.n_tiles, p.n_interneurons
    a = rules.drive(state.W, state.b, x, circuit.alpha)

    def slope(_time: float, flat: FloatArray) -> FloatArray:
        h, u, V = flat[:m], flat[m : m + k], flat[m + k :].reshape(k, m)
        dh = circuit.gain * (a - u @ V) / p.tau_h_
        dV = (np.outer(u, h) - V) / p.tau_V_
        return np.concatenate([dh, (V @ h - u) / p.tau_u_, dV.ravel()])

    rest = np.concatenate([value.ravel() for value in rules.rest(m, k, circuit.gain)])
    solution = solve_ivp(
        slope, (0, times[-1]), rest, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-14
    )
    if solution.y.min() <= 0:  # the smooth equation would no longer be the circuit's
        raise InputError("a rate reached zero, where the differential equation has a corner")
    path: FloatArray = solution.y.T
    return path


def settling_errors(run: xr.Dataset) -> xr.Dataset:
    """max |h - h*| after every step of a recorded result: what a shorter S would have left.

    Needs ``h_trace`` and snapshots; presentations whose closed form cannot be known are left out.
    Returns ``error`` (setting, presentation, step) and ``factor``, the predicted contraction.
    """
    if "h_trace" not in run:
        raise InputError("settling errors need h_trace: run with record=('h',), snapshot_every=1")
    if "W_snapshots" not in run:
        target_of(run, 0)  # says what is missing
    gamma = gamma_of(run)
    errors, factors, kept = [], [], []
    for t in range(run.sizes["presentation"]):
        try:
            target = target_of(run, t)
        except InputError:
            continue
        kept.append(t)
        errors.append(np.abs(run["h_trace"][t].to_numpy() - target.h).max(axis=1))
        factors.append(growth_factor(gamma, target.size) if target.size > 0 else math.nan)
    if not kept:
        raise InputError("no presentation has a snapshot before it: run with snapshot_every=1")
    name = str(run.attrs["engine"])
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
    on from rest with `circuits.rules.step`. ``settings`` maps a name to the parameters to change:
    dt, tau_h, tau_u, tau_V. The result must hold snapshots (``snapshot_every=1``, or any: then
    presentations next to a snapshot are taken). Returns as `settling_errors` does.
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
    gain = float(run.attrs["gain"])
    errors, factors = [], []
    for changes in settings.values():
        p = base.replace(**changes)
        gamma = gain * p.dt_ / p.tau_h_, p.dt_ / p.tau_u_, p.dt_ / p.tau_V_
        rows = []
        for target in targets:
            state = rules.rest(p.n_tiles, p.n_interneurons, gain)
            row = []
            # Unstable settings are part of the question; their rates may overflow.
            with np.errstate(over="ignore", invalid="ignore"):
                for _ in range(n_steps):
                    state = rules.step(*state, target.a, gamma)
                    row.append(np.abs(state[0] - target.h).max())
            rows.append(row)
        errors.append(rows)
        factors.append([growth_factor(gamma, t.size) if t.size > 0 else math.nan for t in targets])
    return _settling_dataset(list(settings), kept, errors, factors, run)


def _settling_dataset(
    names: list[str], kept: ArrayLike, errors: Any, factors: Any, run: xr.Dataset
) -> xr.Dataset:
    array = np.array(errors, dtype=float)
    return xr.Dataset(
        {
            "error": (("setting", "presentation", "step"), array),
            "factor": (("setting", "presentation"), np.array(factors, dtype=float)),
        },
        coords={
            "setting": names,
            "presentation": np.asarray(kept),
            "step": np.arange(1, array.shape[2] + 1),
        },
        attrs={"study": "settling", "parameters": run.attrs["parameters"]},
    )


def measured_factor(gamma: Gamma, *, steps: int = 300) -> float:
    """What a step multiplies small deviations by, measured by taking steps near the fixed point.

    ``gamma`` is (gamma_h A, gamma_u, gamma_V): u and V are taken in units of sqrt(A), so A = 1.
    `circuits.rules.step` is iterated from a deviation of 1e-6, which is scaled back to that size
    after every step; the factor is the slope of the log of all it was scaled by. The first quarter,
    in which the slowest mode wins, is left out. One interneuron and two tiles have all the modes
    that a start with V = u h^T can excite.
    """
    push = 1e-6
    a = np.array([0.6, 0.8])
    fixed = np.concatenate([part.ravel() for part in rules.fixed_point(a, np.ones(1))])
    deviation = push * np.array([0.7, -0.3, 0.5, -0.2, 0.4])  # some of every mode
    grown = np.empty(steps)
    for n in range(steps):
        state = fixed + deviation
        h, u, V = rules.step(state[:2], state[2:3], state[3:].reshape(1, 2), a, gamma)
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

    The settled interneurons tell the drive: A = |u|^2. Points that no tile covers do not count.
    """
    gamma_h, gamma_u, gamma_V = gamma_of(run)
    u = run["u"].to_numpy()[run["covered"].to_numpy().astype(bool)]
    if not len(u):
        raise InputError("no tile covers any point of this result: there is no drive to show")
    quantiles = np.quantile(gamma_h * (u**2).sum(axis=1), (0.05, 0.5, 0.95))
    return np.array([gamma_V / gamma_u, *quantiles])
