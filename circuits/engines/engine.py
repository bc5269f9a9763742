"""What all engines have in common: one circuit, its Brian2 objects, and what users do to them."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from circuits.engines.brian import import_brian2
from circuits.lift import FloatArray
from circuits.state import CircuitState, Task, empty_state

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit
    from circuits.engines.live import LiveNetwork


class Engine(ABC):
    """Computes presentations on a Brian2 network."""

    target = "numpy"
    """What Brian2 makes code for when a user's statements need some."""

    def __init__(self, circuit: ManifoldCircuit) -> None:
        # Weak, because the circuit owns its engine: without a cycle both go when it goes.
        self.circuit: ManifoldCircuit = weakref.proxy(circuit)
        self._live: LiveNetwork | None = None
        self.values_set: dict[str, FloatArray] = {}
        """Values that the user has set on the network, as "group.variable"."""

    @property
    def live(self) -> LiveNetwork:
        """The Brian2 objects; made when they are first needed."""
        if self._live is None:
            import_brian2()
            from circuits.engines.live import LiveNetwork

            self._live = LiveNetwork(self)
            self._live.show(self.circuit._state)
            self._live.extend(self.circuit.extend)
        return self._live

    @property
    def has_network(self) -> bool:
        """Whether there is a network that a user has, or may have, changed."""
        return self._live is not None or self.circuit.extend is not None

    @property
    def changed_by_hand(self) -> bool:
        """Whether the network holds what neither the model nor ``extend`` could make again."""
        return self._live is not None and self._live.changed_by_hand

    def changes(self) -> dict[str, Any]:
        """What the user has done to the network, to be stored with results."""
        values = {name: value.tolist() for name, value in self.current_values_set().items()}
        found: dict[str, Any] = {"values set": values}
        if self.circuit.extend is not None:
            found["extend"] = getattr(self.circuit.extend, "__qualname__", "a function")
        if self._live is not None:
            found |= self._live.changes()
        return {name: value for name, value in found.items() if value}

    def take_changes(self, state: CircuitState) -> None:
        """Let values that the user has set on the network take effect, on ``state`` or for good."""
        if self.has_network:
            self.live.take_changes(state)

    def current_values_set(self) -> dict[str, FloatArray]:
        """Parameters that the user has set on the network so far."""
        if self._live is not None:
            self._live.take_changes(empty_state(self.circuit))
        return dict(self.values_set)

    def values(self, state: CircuitState, task: Task) -> dict[str, dict[str, Any]]:
        """The network's variables at the start of a stream."""
        return self.circuit.wiring.initial_values(self.circuit, state, task, self.values_set)

    def show(self, state: CircuitState | None) -> None:
        """Let the network's variables show a state."""
        if self._live is not None:
            self._live.show(state)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Undo what code inside did to the network, if it fails."""
        kept = dict(self.values_set)
        with self.live.undoing() if self.has_network else nullcontext():
            try:
                yield
            except BaseException:
                self.values_set = kept
                raise

    def prepare(self, record: tuple[str, ...], snapshots: bool) -> bool:
        """Make ready what a run with these options needs; returns whether it had to compile."""
        return False

    @abstractmethod
    def advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """See `Circuit._advance`."""
