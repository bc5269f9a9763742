"""How a circuit and its Brian2 objects exchange values: all of it follows from the parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.lift import FloatArray
from circuits.parts.timing import HOMES
from circuits.state import CircuitState, Task, relative_change

if TYPE_CHECKING:
    from brian2 import Clock, Network, StateMonitor

    from circuits.base import Circuit
    from circuits.circuit import ManifoldCircuit

Values = dict[str, dict[str, Any]]
"""Values of variables, by object and name, in SI units."""

WEIGHTS = ("V", "W", "w")
SNAPSHOTS = ("W", "b", "w")


class Wiring:
    """The rate circuit's; the spiking circuit has its own."""

    sources: tuple[str, ...] = (
        "network.py",
        "stages.py",
        "tiling.py",
        "readout.py",
        "assembly",
        "parts",
    )
    """Files and folders of `circuits` that shape the programs, besides those of the engines."""

    paced = "inputs"
    """An object that acts once per presentation."""
    settled: Mapping[str, list[str]] = {"h": ["h", "h_before"], "u": ["u", "u_before"], "y": ["y"]}
    """Results of a presentation, and the variables to record."""
    traced: Mapping[str, str] = {}
    """Results of a step whose variable has another name."""

    def initial_values(
        self, circuit: Circuit, state: CircuitState, task: Task, values_set: dict[str, FloatArray]
    ) -> Values:
        """Values before the first point of a stream is loaded; ``values_set`` are parameters that
        the user has set on the network instead."""
        parts = circuit.parts
        given = {name: self.packed(circuit, state, name) for name in parts.fields}
        given |= parts.parameters | parts.state
        for part in parts.all:
            given |= part.start(state, task)
        given |= state.extra | values_set
        given |= dict.fromkeys(() if task.learn else parts.learning, 0)
        found = by_object(given)
        values = {home: found.get(home, {}) for home in parts.lines}
        for part in parts.all:
            part.adjust(values, state, task)
        return values

    def packed(self, circuit: Circuit, state: CircuitState, name: str) -> Any:
        """What "object.variable" holds of a field of the state."""
        field = circuit.parts.fields[name]
        value = getattr(state, field)
        return circuit.model.packed(HOMES[field], value) if field in WEIGHTS else value

    def shown(self, circuit: ManifoldCircuit, state: CircuitState) -> Values:
        """The state as values of the network's variables."""
        return by_object({name: self.packed(circuit, state, name) for name in circuit.parts.fields})

    def take(self, circuit: Circuit, state: CircuitState, name: str, value: FloatArray) -> None:
        """Let a field of the state be what "object.variable" holds."""
        field = circuit.parts.fields[name]
        if field == "last_size":
            state.last_size = float(value[0])
            return
        before = getattr(state, field)
        if field in WEIGHTS:
            value = circuit.model.unpacked(HOMES[field], value, before.shape)
        setattr(state, field, value.reshape(before.shape).astype(before.dtype))

    def monitors(
        self, network: Network, record: tuple[str, ...], snapshots: bool
    ) -> dict[str, Any]:
        """Monitors of what a run returns, by the result they hold: the settled rates once per
        presentation, traces at every step, weights after learning."""
        step, show = network["excitatory"].clock, network[self.paced].clock
        found = {
            name: monitor(network, HOMES[name], variables, "settled", show)
            for name, variables in self.settled.items()
        }
        for name in record:
            variable = self.traced.get(name, name)
            found[f"{name}_trace"] = monitor(network, HOMES[name], [variable], "trace", step)
        for name in SNAPSHOTS if snapshots else ():
            found[f"{name}_snapshots"] = monitor(
                network, HOMES[name], [name], "snapshots", show, "before_load"
            )
        return found

    def follow_readout(self, circuit: ManifoldCircuit, network: Network, every_step: bool) -> None:
        """Let the readout follow h at every step, to be recorded, or once per presentation."""
        clock = network["excitatory" if every_step else "inputs"].clock
        for updater in network["classifier"].summed_updaters.values():
            updater._clock = clock
        names = {"readout_answer"} | {
            f"{entry[0]}_{entry[3]}"
            for part in circuit.parts.all
            if part.follows_h
            for entry in part.code
        }
        for name in names:
            network[name]._clock = clock

    def collect(
        self,
        circuit: Circuit,
        state: CircuitState,
        task: Task,
        final: dict[str, FloatArray],
        recorded: dict[str, dict[str, FloatArray]],
    ) -> dict[str, FloatArray]:
        """Update ``state`` after a stream and return its results.

        ``final`` holds the variables at the end as "object.variable"; ``recorded`` the monitors'
        columns as (time, element), by the result they belong to.
        """
        fields = circuit.parts.fields
        for name in fields:
            self.take(circuit, state, name, np.array(final[name]))
        state.extra = {name: value.copy() for name, value in final.items() if name not in fields}
        state.shown += len(task.x)
        state.learned += len(task.x) * task.learn
        arrays = {name: recorded[name][name] for name in ("h", "u", "y")}
        arrays["change"] = relative_change(
            *(recorded[name][name + suffix] for name in "hu" for suffix in ("_before", ""))
        )
        for name in task.record:
            trace = recorded[f"{name}_trace"][name]
            arrays[f"{name}_trace"] = trace.reshape(len(task.x), -1, trace.shape[-1])
        for name in SNAPSHOTS if task.snapshots else ():
            arrays[f"{name}_snapshots"] = recorded[f"{name}_snapshots"][name]
        for key, values in arrays.items():
            if (name := key.partition("_")[0]) in WEIGHTS:
                shape = getattr(state, name).shape
                arrays[key] = circuit.model.unpacked(HOMES[name], values, shape)
        return arrays

    def facts(self, circuit: ManifoldCircuit) -> dict[str, Any]:
        """What shapes the program of a circuit, besides its sizes and what is recorded."""
        model = circuit.model
        return {
            "parts": [part.texts() for part in circuit.parts.all],
            "options": [dict(part.options) for part in circuit.parts.all],
            "users": circuit.parts.described(),
            "model": model.as_dict() | {"delay": model.delay_steps(circuit.parameters)},
        }

    def title(self, circuit: ManifoldCircuit) -> str:
        """The program in a few words."""
        p = circuit.parameters
        title = (
            f"{p.n_tiles} tiles, {p.n_interneurons} interneurons, {p.n_readouts} readouts, "
            f"{circuit.lift.n_inputs} inputs, {p.readout}"
        )
        title += "" if circuit.gain is None else ", constant gain"
        title += ", gated" if p.readout_rule == "gated" else ""
        title += ", clamped" if p.clamp_labels else ""
        title += ", recycled" if p.recycle else ""
        title += "" if p.reset else ", carried over"
        title += ", perturbed" if circuit.perturbations else ""
        title += "".join(f", {part.name}" for part in circuit.parts.users)
        changes = circuit.model.changes()
        return title + (f", own {' '.join(changes)}" if changes else "")


def by_object(named: Mapping[str, Any]) -> Values:
    """Values of "object.variable", by object and variable."""
    found: Values = {}
    for name, value in named.items():
        home, _, variable = name.partition(".")
        found.setdefault(home, {})[variable] = value
    return found


def monitor(
    network: Network,
    home: str,
    variables: list[str],
    label: str,
    clock: Clock,
    stage: str = "record",
) -> StateMonitor:
    """A monitor of all elements of an object."""
    from brian2 import StateMonitor

    name = f"{home}_{label}"
    return StateMonitor(network[home], variables, record=True, clock=clock, when=stage, name=name)
