"""How the spiking twin is laid out on Brian2 objects, and how its spikes become rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from circuits.engines.wiring import Wiring, monitor
from circuits.lift import FloatArray
from circuits.spiking.cells import Cells
from circuits.spiking.trains import GROUPS
from circuits.state import CircuitState, Task


class SpikingWiring(Wiring):
    """Units are cells here: N for a tile or an interneuron, N_y for a readout."""

    sources = (*Wiring.sources, "spiking/layers.py", "spiking/wiring.py")
    paced = "excitatory_tally"
    settled: Mapping[str, list[str]] = {"h": ["h"], "u": ["u"], "y": ["y"]}
    traced: Mapping[str, str] = {"h": "tr", "u": "tr", "y": "output"}

    def packed(self, circuit: Any, state: CircuitState, name: str) -> Any:
        """A field of the state, for every cell; V restarts at every presentation."""
        field = circuit.parts.fields[name]
        if field in ("V", "last_size"):
            return 0.0 if field == "V" else state.last_size
        return Cells(circuit).of(state, field).ravel()

    def take(self, circuit: Any, state: CircuitState, name: str, value: FloatArray) -> None:
        """Let a field of the state be what the cells' "object.variable" holds."""
        field = circuit.parts.fields[name]
        if field == "last_size":
            state.last_size = float(value[0])
        else:
            Cells(circuit).take(state, field, value)

    def monitors(self, network: Any, record: tuple[str, ...], snapshots: bool) -> dict[str, Any]:
        """Monitors of what a run returns, by the result they hold."""
        from brian2 import SpikeMonitor

        traces = tuple(name for name in record if name != "spikes")
        found = super().monitors(network, traces, snapshots)
        show = found["h"].clock
        found["gain"] = monitor(network, "excitatory", ["gain"], "gain", show)
        for group in GROUPS if "spikes" in record else ():
            found[f"{group}_spikes"] = SpikeMonitor(network[group], name=f"{group}_spikes")
        return found

    def follow_readout(self, circuit: Any, network: Any, every_step: bool) -> None:
        """Its cells move at every step anyway."""

    def collect(
        self,
        circuit: Any,
        state: CircuitState,
        task: Task,
        final: dict[str, FloatArray],
        recorded: dict[str, dict[str, FloatArray]],
    ) -> dict[str, FloatArray]:
        """Update ``state`` after a stream and return its results: rates and weights of units."""
        columns: dict[str, Any] = {}
        for name, values in recorded.items():
            if "i" in values:
                steps = np.rint(values["t"] / circuit.dt_)
                columns[name] = np.array([steps, values["i"]], dtype=np.int64)
            else:
                (columns[name],) = values.values()
        columns["gain"] = circuit.strength * columns["gain"][:, 0]
        for name, field in circuit.parts.fields.items():
            if field != "V":
                self.take(circuit, state, name, final[name])
        arrays = Cells(circuit).results(state, columns, final["lateral.V"])
        state.shown += len(task.x)
        state.learned += len(task.x) * task.learn
        return arrays

    def title(self, circuit: Any) -> str:
        """The program in a few words."""
        s = circuit.spiking
        noise = ", noise" if s.sigma > 0 else ""
        return f"spiking, {s.neuron}, {s.cells} per unit{noise}, {super().title(circuit)}"
