"""What a Brian2 engine is given at the start of a stream, and what it gives back at the end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits import rules
from circuits.lift import FloatArray
from circuits.state import relative_change

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task

FINAL = {
    "h": "excitatory",
    "u": "inhibitory",
    "V": "lateral",
    "W": "feedforward",
    "b": "excitatory",
    "w": "classifier",
    "recruited": "excitatory",
}
"""State variables and the objects of the network they belong to."""

LAST_SIZE = "gain_control.last"
"""Where the network keeps `CircuitState.last_size`."""

GROUPS = (
    "inputs",
    "excitatory",
    "inhibitory",
    "gain_control",
    "readout",
    "lateral",
    "feedforward",
    "pooling",
    "classifier",
)
"""The circuit's own objects."""

COMPUTED = {
    "inputs": ("x", "presentation"),
    "excitatory": ("drive", "a", "inhibition", "h_before", "joins", "rank"),
    "inhibitory": ("excitation", "u_before", "u_start", "kept"),
    "gain_control": (
        *("answering", "used", "power", "size", "gain", "scale", "ratio", "covered", "last"),
        "first_presentation",
    ),
    "readout": ("net", "pooled", "total", "y", "z"),
    "classifier": ("learned", "rate"),
}
"""Variables that the circuit computes or loads by itself: whatever they are set to is gone."""


LEARNING = (
    "excitatory.eta",
    "gain_control.recruiting",
    "classifier.running",
    "classifier.constant_rate",
)
"""Rates that are zero while weights are frozen."""


def initial_values(
    circuit: Circuit,
    state: CircuitState,
    task: Task,
    values_set: Mapping[str, FloatArray] = MappingProxyType({}),
) -> dict[str, dict[str, Any]]:
    """Values of the network's variables before the first point of a stream is loaded, by group and
    name (in SI units). ``values_set`` are parameters that the user has set on the network instead.
    """
    p, model = circuit.parameters, circuit.model
    h, u, _ = rules.rest(p.n_tiles, p.n_interneurons, circuit.gain)
    rest_u = values_set.get("inhibitory.u_rest", u)
    rest_u = np.where(circuit.perturbed.gone("interneurons", state.learned), 0.0, rest_u)
    for name in model.delay_line(p):
        # Before the first presentation nothing is on its way but what the rates are.
        state.extra.setdefault(name, state.h if ".h_" in name else state.u)
    eta = p.learning_rate if task.learn else 0.0
    running = p.readout_rate == "running_mean"
    values: dict[str, dict[str, Any]] = {
        "inputs": {
            "presentation": -1,
        },
        "excitatory": {
            "h": state.h,
            "b": state.b,
            "recruited": state.recruited,
            "h_rest": float(h[0]),
            "kappa": p.kappa,
            "sqrt_alpha": math.sqrt(circuit.alpha),
            "eta": eta,
            "tau_h": p.tau_h_,
        },
        "inhibitory": {"u": state.u, "u_rest": rest_u, "tau_u": p.tau_u_},
        "gain_control": gain_values(circuit, state, task),
        "lateral": {"V": model.packed("lateral", state.V), "tau_V": p.tau_V_},
        "feedforward": {"W": model.packed("feedforward", state.W)},
        "readout": {"mu": np.array(p.mu_per_readout)},
        "classifier": {
            "w": model.packed("classifier", state.w),
            "learned": state.learned,
            "running": float(task.learn and running),
            "constant_rate": 0.0 if running or not task.learn else float(p.readout_rate),
        },
    }
    for group, named in circuit.perturbed.values(state, task).items():
        values[group] |= {
            name: model.packed(group, value) if np.ndim(value) == 2 else value
            for name, value in named.items()
        }
    for group, named in circuit.parts.values(state).items():
        values[group] |= named
    set_own(values, {**state.extra, **values_set}, task)
    values["inhibitory"]["u_rest"] = rest_u  # of those that are still there
    return values


def gain_values(circuit: Circuit, state: CircuitState, task: Task) -> dict[str, Any]:
    """Values of the gain control's variables before the first point of a stream."""
    p = circuit.parameters
    return {
        "last": state.last_size,
        "smallest": circuit.floor,
        "controlled": float(circuit.gain is None),
        "constant_gain": circuit.gain or 0.0,
        "recruiting": int(task.learn and p.tiles == "recruit"),
        "least": (p.recruit_below + rules.TIE) * (1 - circuit.alpha),
        "first_presentation": state.learned,
    }


def set_own(values: dict[str, dict[str, Any]], own: Mapping[str, FloatArray], task: Task) -> None:
    """Put what a user has set, as "group.variable", in the place of the values of a circuit."""
    for name, value in own.items():
        group, _, variable = name.partition(".")
        if task.learn or name not in LEARNING:
            values[group][variable] = value


def collect(
    circuit: Circuit,
    state: CircuitState,
    task: Task,
    final: dict[str, FloatArray],
    recorded: dict[str, dict[str, FloatArray]],
) -> dict[str, FloatArray]:
    """Update ``state`` after a stream and return its results.

    ``final`` holds the variables at the end as "group.variable"; ``recorded`` the monitors' columns
    as (time, element), by the result they belong to.
    """
    shape = {name: getattr(state, name).shape for name in FINAL}
    shape["y"] = (circuit.parameters.n_readouts,)

    def unpacked(name: str, values: FloatArray) -> FloatArray:
        if name in ("V", "W", "w"):
            return circuit.model.unpacked(FINAL[name], values, shape[name])
        return values.reshape(*values.shape[:-1], *shape[name])

    for name, group in FINAL.items():
        setattr(state, name, unpacked(name, final[f"{group}.{name}"]).copy())
    state.recruited = state.recruited.astype(np.int64)
    state.last_size = float(final[LAST_SIZE][0])
    known = {f"{group}.{name}" for name, group in FINAL.items()} | {LAST_SIZE}
    state.extra = {name: value.copy() for name, value in final.items() if name not in known}
    state.shown += len(task.x)
    if task.learn:
        state.learned += len(task.x)
    arrays = {name: recorded[name][name] for name in ("h", "u", "y")}
    arrays["change"] = relative_change(
        *(recorded[name][name + suffix] for name in "hu" for suffix in ("_before", ""))
    )
    for name in task.record:
        trace = recorded[f"{name}_trace"][name]
        arrays[f"{name}_trace"] = unpacked(name, trace.reshape(len(task.x), -1, trace.shape[-1]))
    if task.snapshots:
        for name in ("W", "b", "w"):
            arrays[f"{name}_snapshots"] = unpacked(name, recorded[f"{name}_snapshots"][name])
    return arrays
