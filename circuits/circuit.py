"""The circuit on Brian2."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from circuits.base import Circuit
from circuits.engines import choose_engine, make_engine
from circuits.engines.wiring import Wiring
from circuits.errors import EngineError, ParameterError, shown_path
from circuits.lift import FloatArray, SphereLift
from circuits.model import CircuitModel
from circuits.parameters import CircuitParameters
from circuits.parts import Part
from circuits.perturbations import Perturbation
from circuits.state import CircuitState, Task

if TYPE_CHECKING:
    from brian2 import Network


class ManifoldCircuit(Circuit):
    """The paper's network as Brian2 groups and synapses.

    What it is asked to do (``run``, ``predict``, ``respond``, ...) is in `circuits.base.Circuit`.

    Parameters
    ----------
    parameters, lift
        The circuit and its front end.
    engine
        "cpp_standalone" compiles the circuit (once per shape, then it is cached), "cython" and
        "numpy" run it in Brian2's Python loop; "auto" is "cpp_standalone" where a compiler works
        and "numpy" elsewhere, and says on stderr which.
    model
        Equations and rules; the paper's by default.
    extend
        A function of the network that adds Brian2 objects to it, or changes those that are there.
        It is called when the objects are made, on every engine.
    tile_centers
        (n_tiles, d): where the tiles start, instead of on the first points of the stream.
    perturbations
        Lesions, currents, noise, frozen plasticity, a delay, unequal gains; see
        `circuits.perturbations`.
    parts
        Variables and rules of your own; see `circuits.Part`.
    """

    wiring: Wiring = Wiring()
    """How the circuit is laid out on Brian2 objects."""

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        engine: str = "auto",
        *,
        model: CircuitModel | None = None,
        extend: Callable[[Network], Any] | None = None,
        tile_centers: ArrayLike | None = None,
        perturbations: Iterable[Perturbation] = (),
        parts: Iterable[Part] = (),
    ) -> None:
        if extend is not None and not callable(extend):
            raise ParameterError(f"extend must be a function of the network, got {extend!r}")
        super().__init__(
            parameters,
            lift,
            model=model,
            tile_centers=tile_centers,
            perturbations=perturbations,
            parts=parts,
        )
        self.extend = extend
        self.engine = choose_engine() if engine == "auto" else engine
        self._engine = make_engine(self.engine, self)

    @property
    def network(self) -> Network:
        """The Brian2 network: groups ``inputs``, ``excitatory``, ``inhibitory``, ``readout``,
        synapses ``feedforward`` (W), ``lateral`` (V), ``classifier`` (w).

        What is done to it takes effect on the next run, whatever the engine: objects can be added,
        switched off (``active = False``) or given other code, and values can be set.
        """
        return self._engine.network

    def seed_of(self, state: CircuitState) -> int | None:
        """The seed of what is random in a stream that starts in this state; None leaves it to
        Brian2's ``seed``. The rate circuit has nothing random of its own."""
        return None

    @property
    def values_set(self) -> dict[str, FloatArray]:
        """Parameters that were set on the network, as "group.variable"."""
        return self._engine.current_values_set()

    def changes(self) -> dict[str, Any]:
        """What differs from the paper's circuit, besides parameters: empty if nothing does."""
        return super().changes() | self._engine.changes()

    def prepare(self, *, record: Iterable[str] = (), snapshot_every: int | None = None) -> bool:
        """Compile what a run with these options needs, if it is not there; returns whether it was
        not."""
        names = self._checked(record, snapshot_every)
        return self._engine.prepare(names, snapshot_every is not None)

    def save(self, path: str | os.PathLike[str], **attributes: str) -> Path:
        """Write the circuit to a NetCDF file, with all it takes to go on or to predict; see
        `Circuit.save`."""
        if self.extend is not None or self._engine.changed_by_hand:
            raise EngineError(
                "a circuit whose network was extended or changed by hand cannot be saved: put the "
                "changes into the model, or save circuit.state yourself"
            )
        return super().save(path, **attributes)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        engine: str = "auto",
        *,
        model: CircuitModel | None = None,
        parts: Iterable[Part] | None = None,
    ) -> Self:
        """The circuit that ``save`` wrote, on any engine; of a spiking circuit, its rates.

        ``model`` and ``parts`` are used instead of those in the file, which have no NumPy functions
        of their own.
        """
        from circuits.storage.saved_circuit import Kept

        kept = Kept(path)
        if kept.is_spiking and kept.values_set:
            raise ParameterError(
                f"{shown_path(path)} has values that were set on a spiking circuit's network "
                f"({', '.join(kept.values_set)}): use SpikingCircuit.load"
            )
        if model is None:
            model = kept.model
        circuit = cls(
            kept.parameters,
            kept.lift,
            engine,
            model=model,
            perturbations=kept.perturbations,
            parts=kept.parts_or(parts),
        )
        circuit._engine.values_set = kept.values_set
        kept.restore(circuit)
        return circuit

    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        return self._engine.advance(state, task)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        with self._engine.attempt():
            yield

    def _take_changes(self, state: CircuitState) -> None:
        self._engine.take_changes(state)

    def _keep(self, state: CircuitState) -> None:
        super()._keep(state)
        self._engine.show(state)

    def __getstate__(self) -> dict[str, Any]:
        if self._engine.changed_by_hand:
            raise EngineError(
                "a circuit whose network was changed by hand cannot be copied or pickled: make the "
                "changes in a function given as extend=, or in the model"
            )
        values = super().__getstate__() | {"_engine": dict(self._engine.values_set)}
        if self._state is not None:
            values["_state"] = self.state
        return values

    def __setstate__(self, values: dict[str, Any]) -> None:
        values_set = values.pop("_engine")
        super().__setstate__(values)
        self._engine = make_engine(self.engine, self)
        self._engine.values_set = values_set
