"""How the spiking twin is laid out on Brian2 objects, and how its spikes become rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits import rules
from circuits.engines import streams
from circuits.engines.wiring import Wiring
from circuits.lift import FloatArray
from circuits.spiking.cells import Cells
from circuits.spiking.parameters import LOWEST, SpikingParameters, trace_step
from circuits.state import CircuitState, Task

if TYPE_CHECKING:
    from brian2 import Network

    from circuits.circuit import ManifoldCircuit

GROUPS = {"excitatory": "h", "inhibitory": "u", "readout": "y"}
"""Groups of cells, and the rates that their spikes are counted as."""


class SpikingWiring(Wiring):
    """Units are cells here: N for a tile or an interneuron, N_y for a readout."""

    computed: Mapping[str, tuple[str, ...]] = {
        "inputs": streams.COMPUTED["inputs"],
        "excitatory": (
            *("drive", "a", "joins", "rank", "current", "count", "h", "v", "inh", "tr"),
            *("tile", "share"),
        ),
        "inhibitory": ("count", "u", "v", "exc", "tr"),
        "gain_control": streams.COMPUTED["gain_control"],
        "readout": ("count", "y", "v", "net", "total", "z", "unit"),
        "classifier": ("learned", "rate"),
    }
    state: Mapping[str, str] = {
        "V": "lateral",
        "W": "feedforward",
        "b": "excitatory",
        "w": "classifier",
        "recruited": "excitatory",
    }
    sources = (
        *Wiring.sources,
        *(f"spiking/{name}.py" for name in ("equations", "network", "wiring")),
    )

    def build(self, circuit: Any, chunk: int) -> Network:
        """The network, for streams of up to ``chunk`` points."""
        from circuits.spiking.network import build_network

        return build_network(circuit, chunk)

    def initial_values(
        self,
        circuit: Any,
        state: CircuitState,
        task: Task,
        values_set: Mapping[str, FloatArray],
    ) -> dict[str, dict[str, Any]]:
        """Values of the network's variables before the first point of a stream is loaded, by group
        and name."""
        p, s, cells = circuit.parameters, circuit.spiking, Cells.of(circuit)
        own = cells.expanded(state)
        eta = p.learning_rate if task.learn else 0.0
        rest_h, direction = 1 / math.sqrt(p.n_tiles), rules.rest_direction(p.n_interneurons)
        rest_u = np.repeat(math.sqrt(2 if circuit.gain else circuit.strength) * direction, s.cells)
        learned = {"b": own["b"], "recruited": own["recruited"], "eta": eta}
        values: dict[str, dict[str, Any]] = {
            "inputs": {"presentation": -1},
            "excitatory": _excitatory(circuit, cells) | learned | {"h_rest": rest_h},
            "inhibitory": _inhibitory(circuit, cells) | {"u_rest": rest_u},
            "gain_control": streams.gain_values(circuit, state, task),
            "lateral": _lateral(s) | {"V": 0.0},
            "feedforward": {"W": own["W"].ravel()},
            "readout": _readout(circuit, cells),
            "classifier": _classifier(circuit, state, task, own["w"]),
        }
        streams.set_own(values, values_set, task)
        return values

    def shown(self, circuit: Any, state: CircuitState) -> dict[str, dict[str, Any]]:
        """The state as values of the cells' variables, by object and name."""
        own = Cells.of(circuit).expanded(state)
        found: dict[str, dict[str, Any]] = {}
        for name, group in self.state.items():
            if name != "V":  # restarts at every presentation
                found.setdefault(group, {})[name] = np.ravel(own[name])
        return found

    def take(
        self, circuit: ManifoldCircuit, state: CircuitState, name: str, value: FloatArray
    ) -> None:
        """Let a state variable be what a user has set it to on the cells."""
        Cells.of(circuit).take(state, name, value)

    def monitors(
        self, network: Network, record: tuple[str, ...], snapshots: bool
    ) -> dict[str, Any]:
        """Monitors of what a run returns, by the result they hold."""
        from circuits.spiking.network import monitors

        return monitors(network, record, snapshots)

    def follow_readout(self, network: Network, every_step: bool) -> None:
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
        for name in ("W", "b", "w", "recruited"):
            cells.take(state, name, final[f"{self.state[name]}.{name}"])
        state.h, state.u = arrays["h"][-1].copy(), arrays["u"][-1].copy()
        state.V = cells.units("V", final["lateral.V"]) * arrays["scale"][-1]
        state.last_size = float(final[streams.LAST_SIZE][0])
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
        p, s = circuit.parameters, circuit.spiking
        return {
            "spiking": [s.neuron, s.cells, s.readout_cells, s.sigma > 0],
            "readout": [p.readout, p.readout_rule, p.clamp_labels],
            "recycle": p.recycle,
        }

    def title(self, circuit: Any) -> str:
        """The program in a few words."""
        s = circuit.spiking
        noise = ", noise" if s.sigma > 0 else ""
        return f"spiking, {s.neuron}, {s.cells} per unit{noise}, {super().title(circuit)}"


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


def _excitatory(circuit: Any, cells: Cells) -> dict[str, Any]:
    """Tiles' cells at rest, and their constants."""
    p, s = circuit.parameters, circuit.spiking
    phases = cells.phases(s.cells, p.n_tiles)
    return _counting(s, s.rate_h_) | {
        **{"v": phases, "v_rest": phases, "inh": 0.0, "tr": 0.0, "count": 0.0, "h": 0.0},
        **{"tile": np.repeat(np.arange(p.n_tiles), s.cells), "share": 1 / s.cells, "joins": 0},
        **{"kappa": p.kappa, "sqrt_alpha": math.sqrt(circuit.alpha), "lowest": LOWEST},
        **{"strength": circuit.strength, "slope": s.slope, "rate_h": s.rate_h_},
        **{"tau_i": s.tau_i_, "tau_m": s.tau_m_, "tau_trace": s.tau_trace_, "sigma": s.sigma},
        "q_trace": trace_step(s.dt_, s.tau_trace_, s.rate_h_),
    }


def _inhibitory(circuit: Any, cells: Cells) -> dict[str, Any]:
    """Interneurons' cells at rest, and their constants."""
    s = circuit.spiking
    phases = cells.phases(s.cells, circuit.parameters.n_interneurons)
    return _counting(s, s.rate_u_) | {
        **{"v": phases, "v_rest": phases, "exc": 0.0, "tr": 0.0, "count": 0.0, "u": 0.0},
        **{"rate_u": s.rate_u_, "tau_e": s.tau_e_, "tau_u": s.tau_u_},
        **{"tau_trace": s.tau_trace_, "sigma": s.sigma},
        "q_trace": trace_step(s.dt_, s.tau_trace_, s.rate_u_),
    }


def _readout(circuit: Any, cells: Cells) -> dict[str, Any]:
    """Readouts' cells at rest, and their constants."""
    p, s = circuit.parameters, circuit.spiking
    phases = cells.readout_phases()
    totals = {"total": 0.0} if p.readout_rule == "gated" else {}
    return (
        _counting(s, s.rate_y_)
        | totals
        | {
            **{"v": phases, "v_rest": phases, "net": 0.0, "count": 0.0, "y": 0.0},
            **{"mu": np.repeat(p.mu_per_readout, s.readout_cells)},
            **{"unit": np.repeat(np.arange(p.n_readouts), s.readout_cells)},
            **{"rate_y": s.rate_y_, "tau_y": s.tau_y_},
        }
    )


def _counting(s: SpikingParameters, rate: float) -> dict[str, Any]:
    """What makes rates of spikes: those in the last window of a presentation, over what a cell
    of rate one fires in it."""
    return {"steps": s.n_steps, "window": s.window_steps, "q_window": 1 / (rate * s.window_)}


def _lateral(s: SpikingParameters) -> dict[str, Any]:
    """Constants of the fast synapses."""
    return {
        **{"tau_V": s.tau_V_, "decays": float(s.V_rule != "freeze")},
        "potentiates": float(s.V_rule == "spikes"),
        "q_e": 1 / (s.cells * s.rate_h_ * s.tau_e_),
        "q_i": 1 / (s.cells * s.rate_u_ * s.tau_i_),
        "c_h": 0.5 / (s.rate_h_ * s.tau_V_),
        "c_u": 0.5 / (s.rate_u_ * s.tau_V_),
        "own": 0.5 if s.neuron == "if" else 0.0,
    }


def _classifier(circuit: Any, state: CircuitState, task: Task, w: FloatArray) -> dict[str, Any]:
    """The readouts' synapses and their constants."""
    p, s = circuit.parameters, circuit.spiking
    running = float(task.learn and p.readout_rate == "running_mean")
    constant = 0.0 if p.readout_rate == "running_mean" or not task.learn else float(p.readout_rate)
    return {
        **{"w": w.ravel(), "learned": state.learned},
        **{"running": running, "constant_rate": constant},
        "q_net": 1 / (s.cells * s.rate_h_ * s.tau_y_),
    }
