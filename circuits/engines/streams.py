"""What a Brian2 engine is given at the start of a stream, and what it gives back at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits import rules
from circuits.base import relative_change
from circuits.lift import FloatArray

if TYPE_CHECKING:
    from circuits.base import Circuit, CircuitState, Task


def initial_values(circuit: Circuit, state: CircuitState, task: Task) -> dict[str, dict[str, Any]]:
    """Values of the network's variables at the start of a stream, by group and name (in SI units).

    They include the first presentation, which no earlier one has loaded.
    """
    p = circuit.parameters
    h, u, V = rules.rest(p.n_tiles, p.n_interneurons, circuit.gain)
    rest_h, rest_u = h[0], u
    if not p.reset:
        h, (u, V) = state.h, rules.carry_over(state.u, state.V, circuit.gain)
    eta = p.learning_rate if task.learn else 0.0
    running = p.readout_rate == "running_mean"
    return {
        "inputs": {
            "x": task.x[0],
            "presentation": 0,
            "n_presentations": len(task.x),
            "reset": int(p.reset),
            "restart": 0,
            "carry": 0,
        },
        "excitatory": {
            "h": h,
            "b": state.b,
            "drive": state.W @ task.x[0],
            "h_rest": float(rest_h),
            "gain": circuit.gain,
            "sqrt_alpha": math.sqrt(circuit.alpha),
            "eta": eta,
            "tau_h": p.tau_h_,
        },
        "inhibitory": {"u": u, "u_rest": rest_u, "tau_u": p.tau_u_},
        "lateral": {"V": V.ravel(), "tau_V": p.tau_V_},
        "feedforward": {"W": state.W.ravel()},
        "readout": {"z": task.z[0], "mu": np.array(p.mu_per_readout)},
        "classifier": {
            "w": state.w.ravel(),
            "learned": state.learned,
            "running": float(task.learn and running),
            "rate": 0.0 if running or not task.learn else float(p.readout_rate),
        },
    }


def collect(
    circuit: Circuit,
    state: CircuitState,
    task: Task,
    final: dict[str, FloatArray],
    recorded: dict[str, dict[str, FloatArray]],
) -> dict[str, FloatArray]:
    """Update ``state`` after a stream and return its results.

    ``final`` holds h, u, V, W, b and w at the end; ``recorded`` the monitors' columns as
    (time, element), by the result they belong to.
    """
    for name, value in final.items():
        setattr(state, name, value.reshape(getattr(state, name).shape).copy())
    state.shown += len(task.x)
    if task.learn:
        state.learned += len(task.x)
    shape = {name: getattr(state, name).shape for name in ("h", "u", "V", "W", "b", "w")}
    shape["y"] = (circuit.parameters.n_readouts,)
    arrays = {name: recorded[name][name] for name in ("h", "u", "y")}
    arrays["change"] = relative_change(
        *(recorded[name][name + suffix] for name in "hu" for suffix in ("_before", ""))
    )
    for name in task.record:
        trace = recorded[f"{name}_trace"][name]
        arrays[f"{name}_trace"] = trace.reshape(len(task.x), -1, *shape[name])
    if task.snapshots:
        for name in ("W", "b", "w"):
            arrays[f"{name}_snapshots"] = recorded[f"{name}_snapshots"][name].reshape(
                len(task.x), *shape[name]
            )
    return arrays
