"""How the spiking twin is laid out on Brian2 objects, and how its spikes become rates."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.base import CELLS
from circuits.engines.wiring import Values, Wiring
from circuits.lift import FloatArray
from circuits.spiking.cells import Cells
from circuits.state import CircuitState, Task

if TYPE_CHECKING:
    from circuits.base import Circuit

GROUPS = {"excitatory": "h", "inhibitory": "u", "readout": "y"}
"""Groups of cells, and the rates that their spikes are counted as."""


class SpikingWiring(Wiring):
    """Units are cells here: N for a tile or an interneuron, N_y for a readout."""

    sources = (*Wiring.sources, "spiking/layers.py", "spiking/wiring.py")

    def packed(self, circuit: Any, field: str, value: Any) -> Any:
        """A field of the state, for every cell; V restarts at every presentation."""
        return value if field == "last_size" else 0.0 if field == "V" else value

    def initial_values(
        self, circuit: Any, state: CircuitState, task: Task, *options: Any
    ) -> Values:
        """Values before the first point of a stream is loaded, of all cells."""
        values = super().initial_values(circuit, self._of_cells(circuit, state), task, *options)
        return values

    def shown(self, circuit: Any, state: CircuitState) -> Values:
        """The state as values of the cells' variables."""
        found = super().shown(circuit, self._of_cells(circuit, state))
        del found["lateral"]
        return found

    def _of_cells(self, circuit: Any, state: CircuitState) -> CircuitState:
        """A state whose weights are those of cells, in rows."""
        own = Cells.of(circuit).expanded(state)
        extra = {k: v for k, v in state.extra.items() if not k.startswith(CELLS)}
        rows: dict[str, Any] = {name: np.ravel(values) for name, values in own.items()}
        return dataclasses.replace(state, extra=extra, **rows)

    def take(self, circuit: Circuit, state: CircuitState, name: str, value: FloatArray) -> None:
        """Let a field of the state be what the cells' "object.variable" holds."""
        field = circuit.parts.fields[name]
        if field == "last_size":
            state.last_size = float(value[0])
        else:
            Cells.of(circuit).take(state, field, value)

    def monitors(self, network: Any, record: tuple[str, ...], snapshots: bool) -> dict[str, Any]:
        """Monitors of what a run returns, by the result they hold."""
        return monitors(network, record, snapshots)

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
        s, cells = circuit.spiking, Cells.of(circuit)
        gain = circuit.strength * recorded["gain"]["gain"][:, 0]
        arrays = cells.results({name: recorded[name][name] for name in "huy"}, gain)
        for name, field in circuit.parts.fields.items():
            if field != "V":
                self.take(circuit, state, name, final[name])
        state.h, state.u = arrays["h"][-1].copy(), arrays["u"][-1].copy()
        state.V = cells.units("V", final["lateral.V"]) * arrays["scale"][-1]
        shown, learned = state.shown, state.learned
        state.shown += len(task.x)
        if task.learn:
            state.learned += len(task.x)
        for name in task.record:
            if name == "spikes":
                continue
            (trace,) = recorded[f"{name}_trace"].values()
            trace = cells.units(name, trace.reshape(len(task.x), s.n_steps, -1))
            if name in "uV":
                trace = trace * arrays["scale"].reshape(-1, *[1] * (trace.ndim - 1))
            arrays[f"{name}_trace"] = trace
        if task.snapshots:
            for name in ("W", "b", "w"):
                arrays[f"{name}_snapshots"] = cells.units(name, recorded[f"{name}_snapshots"][name])
        if "spikes" in task.record:
            for group in GROUPS:
                spikes = recorded[f"{group}_spikes"]
                found = _spikes(spikes, s.n_steps, s.dt_, shown, learned)
                arrays |= {f"{group}_spike_{name}": values for name, values in found.items()}
        del arrays["scale"]
        return arrays

    def facts(self, circuit: Any) -> dict[str, Any]:
        """What shapes the program of a circuit, besides its sizes and what is recorded."""
        s = circuit.spiking
        return super().facts(circuit) | {
            "spiking": [s.neuron, s.cells, s.readout_cells, s.sigma > 0]
        }

    def title(self, circuit: Any) -> str:
        """The program in a few words."""
        s = circuit.spiking
        noise = ", noise" if s.sigma > 0 else ""
        return f"spiking, {s.neuron}, {s.cells} per unit{noise}, {super().title(circuit)}"


TRACED = {
    "h": ("excitatory", "tr"),
    "u": ("inhibitory", "tr"),
    "V": ("lateral", "V"),
    "y": ("readout", "output"),
}
"""What is recorded at every step: traces of spikes, the synapses, and the readout's drive."""

SNAPSHOTS = {"W": "feedforward", "b": "excitatory", "w": "classifier"}


def monitors(network: Any, record: tuple[str, ...], snapshots: bool) -> dict[str, Any]:
    """Monitors of what a run returns, by the result they hold."""
    from brian2 import SpikeMonitor, StateMonitor

    step, show = network["excitatory"].clock, network["excitatory_tally"].clock

    def monitor(group: str, variable: str, label: str, clock: Any, stage: str = "record") -> Any:
        name = f"{group}_{label}"
        return StateMonitor(
            network[group], [variable], record=True, clock=clock, when=stage, name=name
        )

    found: dict[str, Any] = {
        name: monitor(group, name, "settled", show) for group, name in GROUPS.items()
    }
    found["gain"] = monitor("excitatory", "gain", "gain", show)
    for name, (group, variable) in TRACED.items():
        if name in record:
            found[f"{name}_trace"] = monitor(group, variable, "trace", step)
    if "spikes" in record:
        for group in GROUPS:
            found[f"{group}_spikes"] = SpikeMonitor(network[group], name=f"{group}_spikes")
    if snapshots:
        for name, group in SNAPSHOTS.items():
            found[f"{name}_snapshots"] = monitor(group, name, "snapshots", show, "before_load")
    return found


def _spikes(
    recorded: dict[str, FloatArray], n_steps: int, dt: float, shown: int, learned: int
) -> dict[str, FloatArray]:
    """Spikes of a group in the order of time and cells.

    ``time`` and ``cell`` are what Brian2's SpikeMonitor gives: a spike of the step n = 1, 2, ... of
    the circuit's life has the time n dt. ``presentation`` counts from the circuit's first, and
    ``step`` from 1 in each of them.
    """
    step = np.rint(np.asarray(recorded["t"]) / dt).astype(np.int64)
    cell = np.asarray(recorded["i"]).astype(np.int64)
    order = np.lexsort((cell, step))
    step, cell = step[order], cell[order]
    return {
        "time": step * dt,
        "cell": cell,
        "presentation": (step - 1) // n_steps - shown + learned,
        "step": (step - 1) % n_steps + 1,
    }
