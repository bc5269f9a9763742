"""How a circuit is laid out on Brian2 objects: what an engine needs to know to run one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from circuits.engines import streams
from circuits.lift import FloatArray
from circuits.perturbing import is_perturbed
from circuits.state import CircuitState, Task

if TYPE_CHECKING:
    from brian2 import Network

    from circuits.circuit import ManifoldCircuit


class Wiring:
    """The rate circuit's; other circuits have their own."""

    groups: tuple[str, ...] = streams.GROUPS
    """The circuit's own objects."""
    computed: Mapping[str, tuple[str, ...]] = streams.COMPUTED
    """Variables that the circuit computes or loads by itself, by object."""
    state: Mapping[str, str] = streams.FINAL
    """State variables, and the objects they belong to."""
    fixed: Mapping[str, str] = {
        "excitatory.sqrt_alpha": "tile_radius",
        "excitatory.kappa": "initial_weight",
    }
    """Variables that the circuit works with outside of the network as well, and the parameters
    they come from."""
    sources: tuple[str, ...] = (
        *("network.py", "rules.py", "stages.py", "perturbing.py"),
        *("parts/part.py", "parts/gaussian.py"),
    )
    """Files of `circuits` that shape the programs, besides those of the engines."""

    @property
    def final(self) -> list[str]:
        """What is read at the end of a stream, as "object.variable"."""
        return [*(f"{group}.{name}" for name, group in self.state.items()), streams.LAST_SIZE]

    def computed_by(self, name: str) -> tuple[str, ...]:
        """What the object of "object.variable" computes by itself."""
        group, _, variable = name.partition(".")
        return (*self.computed.get(group, ()), *([variable] if is_perturbed(variable) else []))

    def build(self, circuit: ManifoldCircuit, chunk: int) -> Network:
        """The network, for streams of up to ``chunk`` points."""
        from circuits.network import build_network

        return build_network(circuit, chunk)

    def initial_values(
        self,
        circuit: ManifoldCircuit,
        state: CircuitState,
        task: Task,
        values_set: Mapping[str, FloatArray],
    ) -> dict[str, dict[str, Any]]:
        """See `streams.initial_values`."""
        return streams.initial_values(circuit, state, task, values_set)

    def shown(self, circuit: ManifoldCircuit, state: CircuitState) -> dict[str, dict[str, Any]]:
        """The state as values of the network's variables, by object and name."""
        found: dict[str, dict[str, Any]] = {}
        for name, group in self.state.items():
            value = getattr(state, name)
            if name in ("V", "W", "w"):
                value = circuit.model.packed(group, value)
            found.setdefault(group, {})[name] = value
        return found

    def take(
        self, circuit: ManifoldCircuit, state: CircuitState, name: str, value: FloatArray
    ) -> None:
        """Let a state variable be what a user has set it to on the network."""
        shape = getattr(state, name).shape
        if name in ("V", "W", "w"):
            value = circuit.model.unpacked(self.state[name], value, shape)
        setattr(state, name, value.reshape(shape))

    def monitors(
        self, network: Network, record: tuple[str, ...], snapshots: bool
    ) -> dict[str, Any]:
        """Monitors of what a run returns, by the result they hold."""
        from circuits.network import monitors

        return monitors(network, record, snapshots)

    def follow_readout(self, network: Network, every_step: bool) -> None:
        """Let the readout answer at every step, to be recorded, or once per presentation."""
        from circuits.network import follow_readout

        follow_readout(network, every_step)

    def collect(
        self,
        circuit: ManifoldCircuit,
        state: CircuitState,
        task: Task,
        final: dict[str, FloatArray],
        recorded: dict[str, dict[str, FloatArray]],
    ) -> dict[str, FloatArray]:
        """See `streams.collect`."""
        return streams.collect(circuit, state, task, final, recorded)

    def facts(self, circuit: ManifoldCircuit) -> dict[str, Any]:
        """What shapes the program of a circuit, besides its sizes and what is recorded."""
        p, model = circuit.parameters, circuit.model
        described = model.as_dict() | {"delay": model.delay_steps(p)}
        return {
            "model": described | {"readout": model.answer(p).brian2},
            "readout": [p.readout_rule, p.clamp_labels],
            "recycle": p.recycle,
            "reset": p.reset,
            "perturbed": circuit.perturbed.shape(),
            "parts": circuit.parts.described(),
        }

    def title(self, circuit: ManifoldCircuit) -> str:
        """The program in a few words."""
        p = circuit.parameters
        title = (
            f"{p.n_tiles} tiles, {p.n_interneurons} interneurons, {p.n_readouts} readouts, "
            f"{circuit.lift.n_inputs} inputs, {p.readout}"
        )
        title += ", gated" if p.readout_rule == "gated" else ""
        title += ", clamped" if p.clamp_labels else ""
        title += ", recycled" if p.recycle else ""
        title += "" if p.reset else ", carried over"
        title += ", perturbed" if circuit.perturbations else ""
        title += "".join(f", {part.name}" for part in circuit.parts.all)
        changes = circuit.model.changes()
        return title + (f", own {' '.join(changes)}" if changes else "")
