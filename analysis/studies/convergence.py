"""Distance of the circuit to its differential equation when dt shrinks."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from analysis.holdings import require
from analysis.style import figure_style, palette
from circuits import reference
from circuits.base import Circuit
from circuits.circuit import ManifoldCircuit, ReferenceCircuit
from circuits.errors import InputError, UnsettledWarning
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.parts import gain_control

CHECKPOINTS = 32
"""Times at which the circuit is compared with the differential equation."""


def convergence_study(
    engine: str = "reference",
    steps: Iterable[int] = (32, 64, 128, 256, 512, 1024),
    *,
    gain: str | float = "control",
) -> xr.Dataset:
    """Distance of the circuit to its differential equation when dt shrinks.

    Four tiles, of which all respond, are shown one point for 32 ms. Time constants stay fixed and
    dt = 32 ms / steps; the solution of dh/dt = gain (a - V^T u)/tau_h, du/dt = (V h - u)/tau_u,
    dV/dt = (u h^T - V)/tau_V is that of an eighth-order solver at a tolerance of 1e-12. A step is
    Euler's, so the largest distance is proportional to dt.

    ``engine`` is "reference" or one of the Brian2 engines, ``gain`` as in the parameters. Returns
    ``error`` and ``dt`` (s) over ``steps``, and in the attributes ``order``, the slope of log error
    over log dt.
    """
    counts = [int(n) for n in steps]
    if bad := [n for n in counts if n < CHECKPOINTS or n % CHECKPOINTS]:
        raise InputError(f"steps must be multiples of {CHECKPOINTS}, got {bad[0]}")
    lift = SphereLift(center=(0.5, 0.25), radius=3.0)
    centers = np.array([[0.5, 0.25], [0.55, 0.3], [0.45, 0.2], [0.6, 0.25]])
    point = np.array([[0.52, 0.26]])
    duration = 0.032
    fixed: dict[str, Any] = {"n_tiles": 4, "n_interneurons": 2, "tile_radius": 0.4, "gain": gain}
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
    a = reference.drive(state.W, state.b, x, circuit.alpha)
    begin = gain_control.start(a, circuit.floor, state.last_size, circuit.gain)

    def slope(_time: float, flat: FloatArray) -> FloatArray:
        h, u, V = flat[:m], flat[m : m + k], flat[m + k :].reshape(k, m)
        dh = begin.gain * (a - u @ V) / p.tau_h_
        dV = (np.outer(u, h) - V) / p.tau_V_
        return np.concatenate([dh, (V @ h - u) / p.tau_u_, dV.ravel()])

    h, u, _ = reference.rest(m, k, circuit.gain)
    u = begin.scale * u
    rest = np.concatenate([h, u, np.outer(u, h).ravel()])
    solution = solve_ivp(
        slope, (0, times[-1]), rest, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-14
    )
    if solution.y.min() <= 0:  # the smooth equation would no longer be the circuit's
        raise InputError("a rate reached zero, where the differential equation has a corner")
    path: FloatArray = solution.y.T
    return path


@figure_style()
def plot_convergence(study: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Distance to the differential equation against dt, with a guide of slope one.

    ``study`` is from `convergence_study`.
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
