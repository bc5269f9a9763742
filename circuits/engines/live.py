"""The Brian2 objects of a circuit as its user sees and changes them.

They are ordinary runtime objects whatever the engine: what a user adds, sets or switches off is
done to them at once, by Brian2's own rules. Before every stream the engine takes over what has
changed; after it the objects show what the stream has done.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import BrianObject, Network
from brian2.core.variables import ArrayVariable, DynamicArrayVariable
from brian2.synapses.synapses import SynapticPathway

from circuits.base import CHUNK
from circuits.engines.codegen import CARRIED, MONITORS, runtime_device, using
from circuits.errors import EngineError, InputError
from circuits.lift import FloatArray
from circuits.network import build_network
from circuits.state import CircuitState, empty_state

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit
    from circuits.engines.engine import Engine
    from circuits.engines.wiring import Wiring


class LiveNetwork:
    """A circuit's network, what is the circuit's in it, and what it showed last."""

    def __init__(self, engine: Engine) -> None:
        self._engine = weakref.ref(engine)  # which owns this
        with using(target=engine.target):
            self.network = build_network(self.circuit, CHUNK)
        self._own = self._made = self._facts()
        self._shown: dict[str, FloatArray] = {}
        self.spikes: dict[str, str] = {}
        """Spikes on their way between two launches of a program, by pathway."""

    def extend(self, function: Callable[[Network], Any] | None) -> None:
        """Let a user's function add to the network."""
        if function is not None:
            with using(target=self.engine.target):
                added = function(self.network)
                if added is not None:
                    self.network.add(added)
            self._made = self._facts()

    @property
    def changed_by_hand(self) -> bool:
        """Whether objects were added, removed or altered since the network was made."""
        return self._facts() != self._made

    def _facts(self) -> dict[str, dict[str, Any]]:
        return {item.name: _facts(item) for item in self.network.sorted_objects}

    @property
    def engine(self) -> Engine:
        """The engine that runs the network."""
        engine = self._engine()
        assert engine is not None
        return engine

    @property
    def circuit(self) -> ManifoldCircuit:
        """The circuit whose network this is."""
        return self.engine.circuit

    @property
    def wiring(self) -> Wiring:
        """How the circuit is laid out."""
        return self.circuit.wiring

    # What is in the network

    @property
    def added(self) -> list[BrianObject]:
        """Objects that the user has added, with those they contain."""
        return [item for item in self.network.sorted_objects if item.name not in self._own]

    def variables(self, items: list[BrianObject]) -> Iterator[tuple[str, ArrayVariable]]:
        """The array variables that objects own, as "object.variable"."""
        for item in items:
            own = (
                v for v in getattr(item, "variables", {}).values() if isinstance(v, ArrayVariable)
            )
            for variable in {id(variable): variable for variable in own}.values():
                if getattr(variable.owner, "name", None) == item.name:
                    yield f"{item.name}.{variable.name}", variable

    def extra(self) -> list[str]:
        """Variables that the model or the user adds to the circuit's own groups."""
        managed = set(self._managed(empty_state(self.circuit)))
        groups = [self.network[name] for name in self.circuit.parts.lines]
        return [
            name
            for name, variable in self.variables(groups)
            if not (
                variable.read_only
                or variable.name.startswith("_")  # Brian2's own, such as the spikes of a step
                or name in managed
                or self._is_computed(name)
            )
        ]

    def _is_computed(self, name: str) -> bool:
        """Whether the circuit computes "object.variable" by itself."""
        return name in self.circuit.parts.computed

    def changes(self) -> dict[str, Any]:
        """What differs from the network as it was made, by kind; watching changes nothing."""
        now = self._facts()
        watching = {item.name for item in self.network.objects if isinstance(item, MONITORS)}
        own = {name: facts for name, facts in now.items() if name in self._own}
        switched = [name for name in own if own[name]["active"] != self._own[name]["active"]]
        altered = [name for name in own if own[name] != self._own[name] and name not in switched]
        return {
            "objects added": sorted(set(now) - set(self._own) - watching),
            "objects removed": sorted(set(self._own) - set(now)),
            "objects switched off": sorted(switched),
            "objects altered": sorted(altered),
        }

    # Values

    def show(self, state: CircuitState | None) -> None:
        """Show the parameters and, if there is one, the state; remember what was shown."""
        circuit = self.circuit
        shown = state.copy() if state is not None else empty_state(circuit)
        extra = dict(shown.extra)
        values = self._idle_values(shown)
        managed = self._managed(shown)
        for name, value in extra.items():  # as it is, not as a presentation would start
            group, _, variable = name.partition(".")
            if group in values:
                values[group][variable] = value
        for group, named in self.wiring.shown(circuit, shown).items():
            values[group] |= named
        for name in circuit.parts.computed:
            group, _, variable = name.partition(".")
            values[group].pop(variable, None)
        self.write(values)
        self._remember(name for name in managed if not self._is_computed(name))

    def _idle_values(self, state: CircuitState) -> dict[str, dict[str, Any]]:
        """What the engines set at the start of a stream, for one that shows nothing."""
        circuit, set_ = self.circuit, self.engine.values_set
        return self.wiring.initial_values(circuit, state, circuit.nothing(), set_)

    def _managed(self, state: CircuitState) -> list[str]:
        """Variables whose values are the circuit's parameters and state."""
        values = self._idle_values(state)  # fills in what is on its way, which is extra
        names = [f"{group}.{name}" for group, named in values.items() for name in named]
        kept = {*state.extra, *self.circuit.parts.state}
        return [name for name in names if name not in kept]

    def write(self, values: dict[str, dict[str, Any]]) -> None:
        """Set variables, by group and name, in SI units."""
        for group, named in values.items():
            for name, value in named.items():
                self.network[group].variables[name].set_value(value)

    def read(self, name: str) -> FloatArray:
        """The value of "group.variable"."""
        group, _, variable = name.partition(".")
        return np.array(self.network[group].variables[variable].get_value())

    def final(self) -> dict[str, FloatArray]:
        """State and extra variables as they are now."""
        return {name: self.read(name) for name in [*self.circuit.parts.fields, *self.extra()]}

    def receive(self, values: dict[str, FloatArray]) -> None:
        """Take over the variables of a program that has ended; what its monitors recorded joins
        what they had."""
        for name, variable in self.variables(self.network.sorted_objects):
            value = values[name]
            if not isinstance(variable.owner, MONITORS):
                if not variable.read_only or variable.name in CARRIED:
                    variable.set_value(value)
            elif isinstance(variable, DynamicArrayVariable):
                had, *width = variable.get_value().shape
                value = value.reshape(-1, *width)
                variable.resize((had + len(value), *width) if width else had + len(value))
                variable.get_value()[had:] = value
            elif variable.name in ("N", "count"):
                variable.set_value(variable.get_value() + value)

    def _remember(self, shown: Iterable[str]) -> None:
        own = self.variables([self.network[name] for name in self.circuit.parts.lines])
        computed = [name for name, _ in own if self._is_computed(name)]
        self._shown = {name: self.read(name) for name in [*shown, *computed]}

    def take_changes(self, state: CircuitState) -> None:
        """What the user has set since it was last shown: weights go into ``state``, parameters stay
        set, and what would be overwritten is refused."""
        self._check_objects()
        p = self.circuit.parameters
        for name, before in self._shown.items():
            now = self.read(name)
            if np.array_equal(now, before, equal_nan=True):
                continue
            variable = name.partition(".")[2]
            if self._is_computed(name):
                raise InputError(
                    f"{name} was set, but the circuit computes it anew: change the model, or add "
                    "code of your own with run_regularly"
                )
            if parameter := self.circuit.parts.fixed.get(name):
                raise InputError(f"{name} was set: give {parameter} to CircuitParameters instead")
            if variable in ("h", "u", "V") and p.reset:
                raise InputError(
                    f"{name} was set, but h, u and V restart at every presentation: use "
                    "CircuitParameters(reset=False), or set h_rest and u_rest"
                )
            if name in self.circuit.parts.fields:
                self.wiring.take(self.circuit, state, name, now)
            else:
                self.engine.values_set[name] = now
        unfilled = set(self.circuit.model.delay_line(p)) - set(state.extra)
        for name in self.extra():
            if name not in unfilled:  # before the first run nothing is on its way
                state.extra[name] = self.read(name)

    def _check_objects(self) -> None:
        """Refuse a network that the circuit cannot run any more."""
        present = {item.name for item in self.network.objects}
        for name in self.circuit.parts.lines:
            if name not in present:
                raise InputError(
                    f"{name!r} was removed from the circuit's network: set its 'active' to False "
                    "instead"
                )
        if self.network["excitatory"].clock.dt_ != self.circuit.dt_:
            raise InputError(
                f"the time step was set to {self.network['excitatory'].clock.dt}: give dt to "
                "CircuitParameters instead"
            )
        for name, variable in self.variables(self.added):
            if variable.device is not runtime_device():
                raise EngineError(
                    f"{name.split('.')[0]!r} was made for another Brian2 device: make it in a "
                    "function given as extend=, or before set_device"
                )

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """Put the user's objects back, and show the circuit's state, if what is inside fails."""
        kept = [(variable, _kept(variable)) for _, variable in self.variables(self.added)]
        queues = [
            (item, item.queue._full_state() if item.queue is not None else None)
            for item in self.added
            if isinstance(item, SynapticPathway)
        ]
        extra = {name: self.read(name) for name in self.extra()}
        shown = {name: self.read(name) for name in self._shown}
        spikes = dict(self.spikes)
        try:
            yield
        except BaseException:
            self.spikes = spikes
            for variable, value in kept:
                _put_back(variable, value)
            for item, queue in queues:
                if item.queue is not None:
                    item.queue._restore_from_full_state(queue)
            for name, value in (extra | shown).items():
                group, _, variable_name = name.partition(".")
                self.network[group].variables[variable_name].set_value(value)
            raise


def _kept(variable: ArrayVariable) -> Any:
    """What it takes to put a variable back: a monitor's record only grows, so its length does."""
    if isinstance(variable, DynamicArrayVariable) and isinstance(variable.owner, MONITORS):
        return np.shape(variable.get_value())
    return np.array(variable.get_value())


def _put_back(variable: ArrayVariable, kept: Any) -> None:
    if isinstance(kept, tuple):
        variable.resize(kept if len(kept) == 2 else kept[0])
    else:
        variable.set_value(kept)


def _facts(item: BrianObject) -> dict[str, Any]:
    """What an object does, to see whether it was changed."""
    code = getattr(item, "abstract_code", None) if type(item).__name__ == "CodeRunner" else None
    return {
        "active": item.active,
        "when": (item.when, item.order),
        "clock": id(item.clock),
        "code": code,
        "equations": str(getattr(item, "equations", "")),
    }
