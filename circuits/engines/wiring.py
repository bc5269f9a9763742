"""How a circuit and its Brian2 objects exchange values: all of it follows from the parts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.lift import FloatArray
from circuits.state import CircuitState, Task, relative_change

if TYPE_CHECKING:
    from brian2 import Network

    from circuits.assembly.collection import Parts
    from circuits.base import Circuit
    from circuits.circuit import ManifoldCircuit

Values = dict[str, dict[str, Any]]
"""Values of variables, by object and name, in SI units."""

WEIGHTS = ("V", "W", "w")


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

    def groups(self, parts: Parts) -> list[str]:
        """The circuit's own objects."""
        return list(parts.lines)

    def final(self, parts: Parts) -> list[str]:
        """What is read at the end of a stream, as "object.variable"."""
        return list(parts.fields)

    def build(self, circuit: ManifoldCircuit, chunk: int) -> Network:
        """The network, for streams of up to ``chunk`` points."""
        from circuits.network import build_network

        return build_network(circuit, chunk)

    def initial_values(
        self,
        circuit: Circuit,
        state: CircuitState,
        task: Task,
        values_set: Mapping[str, FloatArray] = MappingProxyType({}),
    ) -> Values:
        """Values before the first point of a stream is loaded; ``values_set`` are parameters that
        the user has set on the network instead."""
        parts = circuit.parts
        values: Values = {home: {} for home in parts.lines}

        def put(name: str, value: Any) -> None:
            home, _, variable = name.partition(".")
            values[home][variable] = value

        for name, field in parts.fields.items():
            put(name, self.packed(circuit, field, getattr(state, field)))
        for name, value in (parts.parameters | parts.state).items():
            put(name, value)
        for part in parts.all:
            for name, value in part.start(state, task).items():
                put(name, value)
        for name, value in (state.extra | dict(values_set)).items():
            put(name, value)
        for name in () if task.learn else parts.learning:
            put(name, 0)
        for part in parts.all:
            part.adjust(values, state, task)
        return values

    def packed(self, circuit: Circuit, field: str, value: Any) -> Any:
        """A field of the state as its variable on the network has it."""
        home = {"V": "lateral", "W": "feedforward", "w": "classifier"}.get(field)
        return circuit.model.packed(home, value) if home else value

    def shown(self, circuit: ManifoldCircuit, state: CircuitState) -> Values:
        """The state as values of the network's variables."""
        found: Values = {}
        for name, field in circuit.parts.fields.items():
            home, _, variable = name.partition(".")
            found.setdefault(home, {})[variable] = self.packed(
                circuit, field, getattr(state, field)
            )
        return found

    def take(self, circuit: Circuit, state: CircuitState, name: str, value: FloatArray) -> None:
        """Let a field of the state be what "object.variable" holds."""
        field, home = circuit.parts.fields[name], name.partition(".")[0]
        if field == "last_size":
            state.last_size = float(value[0])
            return
        before = getattr(state, field)
        if field in WEIGHTS:
            value = circuit.model.unpacked(home, value, before.shape)
        setattr(state, field, value.reshape(before.shape).astype(before.dtype))

    def monitors(
        self, network: Network, record: tuple[str, ...], snapshots: bool
    ) -> dict[str, Any]:
        """Monitors of what a run returns, by the result they hold."""
        from circuits.network import monitors

        return monitors(network, record, snapshots)

    def follow_readout(self, circuit: ManifoldCircuit, network: Network, every_step: bool) -> None:
        """Let the readout answer at every step, to be recorded, or once per presentation."""
        from circuits.network import follow_readout

        follow_readout(circuit, network, every_step)

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
        if task.learn:
            state.learned += len(task.x)
        arrays = {name: recorded[name][name] for name in ("h", "u", "y")}
        arrays["change"] = relative_change(
            *(recorded[name][name + suffix] for name in "hu" for suffix in ("_before", ""))
        )
        homes = {field: name.partition(".")[0] for name, field in fields.items()}

        def unpacked(name: str, values: FloatArray) -> FloatArray:
            if name in WEIGHTS:
                return circuit.model.unpacked(homes[name], values, getattr(state, name).shape)
            return values

        for name in task.record:
            trace = recorded[f"{name}_trace"][name]
            shape = (len(task.x), -1, trace.shape[-1])
            arrays[f"{name}_trace"] = unpacked(name, trace.reshape(shape))
        for name in ("W", "b", "w") if task.snapshots else ():
            arrays[f"{name}_snapshots"] = unpacked(name, recorded[f"{name}_snapshots"][name])
        return arrays

    def facts(self, circuit: ManifoldCircuit) -> dict[str, Any]:
        """What shapes the program of a circuit, besides its sizes and what is recorded."""
        p, model = circuit.parameters, circuit.model
        return {
            "parts": [part.texts() for part in circuit.parts.all],
            "users": circuit.parts.described(),
            "model": model.as_dict() | {"delay": model.delay_steps(p)},
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
