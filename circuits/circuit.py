"""The circuit on Brian2, and the solvers in NumPy that check it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from circuits.assembly.part import Part
from circuits.base import Circuit
from circuits.engines import choose_engine, make_engine
from circuits.engines.wiring import Wiring
from circuits.errors import EngineError, ParameterError, shown, shown_path
from circuits.lift import FloatArray, SphereLift
from circuits.model import SYNAPSES, CircuitModel
from circuits.parameters import CircuitParameters
from circuits.parts.perturbations import Perturbation
from circuits.reference import Paper, fixed_point
from circuits.stages import ALL, EACH_PRESENTATION, slots
from circuits.state import CircuitState, Task, relative_change

if TYPE_CHECKING:
    from brian2 import Network

FIELDS = ("h", "u", "V", "W", "b", "w", "recruited", "last_size")
"""What `Scene` takes from a `CircuitState` as it is."""


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
        `circuits.parts.perturbations`.
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
        return self._engine.live.network

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
        made: Self = kept.make(cls, engine, model=model, parts=parts)
        return made

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


class ReferenceCircuit(Circuit):
    """The circuit without Brian2: `circuits.reference` and the NumPy twins of the parts, stage by
    stage.

    Parameters
    ----------
    settling
        "dynamics" takes the S steps of every presentation one by one, as the Brian2 circuit does;
        "exact" jumps to where they lead (`circuits.reference.fixed_point`).
    model
        Equations and rules; each must have a NumPy function.
    """

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        *,
        settling: Literal["dynamics", "exact"] = "dynamics",
        model: CircuitModel | None = None,
        tile_centers: ArrayLike | None = None,
        perturbations: Iterable[Perturbation] = (),
        parts: Iterable[Part] = (),
    ) -> None:
        if settling not in ("dynamics", "exact"):
            raise ParameterError(f"settling must be 'dynamics' or 'exact', got {shown(settling)}")
        super().__init__(
            parameters,
            lift,
            model=model,
            tile_centers=tile_centers,
            perturbations=perturbations,
            parts=parts,
        )
        self.model.functions(parameters)  # refuses rules that only Brian2 can run
        self.parts.require_numpy()
        if settling == "exact":
            self.model.require_closed_form()
            self.parts.require_closed_form()
        self.settling = settling
        self.engine = "reference" if settling == "dynamics" else "exact"

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        settling: Literal["dynamics", "exact"] = "dynamics",
        model: CircuitModel | None = None,
        parts: Iterable[Part] | None = None,
    ) -> Self:
        """The circuit that ``save`` wrote, of this class or on Brian2.

        ``model`` and ``parts`` are used instead of those in the file, which have no NumPy functions
        of their own.
        """
        from circuits.storage.saved_circuit import Kept

        kept = Kept(path)
        if kept.values_set:
            raise ParameterError(
                f"{shown_path(path)} has values that were set on a network "
                f"({', '.join(kept.values_set)}), which NumPy does not have: use ManifoldCircuit"
            )
        made: Self = kept.make(cls, settling=settling, model=model, parts=parts)
        return made

    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        s = Scene(self, state, task)
        out: dict[str, list[Any]] = {}
        # Diverging rates overflow; the caller finds and names them.
        with np.errstate(over="ignore", invalid="ignore"):
            for done in range(len(task.x)):
                for name, value in s.present(done).items():
                    out.setdefault(name, []).append(value)
                task.report(done + 1)
        s.store(state)
        return {name: np.array(values) for name, values in out.items()}


class Scene:
    """A circuit in NumPy while a stream goes through it: what the methods of parts call ``s``."""

    a: FloatArray
    y: FloatArray
    u_rest: FloatArray

    def __init__(self, circuit: ReferenceCircuit, state: CircuitState, task: Task) -> None:
        self._circuit, self._task, core = circuit, task, Paper(circuit)

        def methods(stage: str, follows_h: bool = False) -> list[Any]:
            """What happens at a stage, and right before and after it."""
            found: list[Any] = []
            for slot in slots(stage):
                found += filter(callable, [getattr(core, slot, None)])
                found += circuit.parts.methods(slot, follows_h)
            return found

        self._stages = {stage: methods(stage) for stage in ALL}
        self._following = methods("answer", follows_h=True)
        self._path: list[Any] = []
        self.learn, self.learned_at, self.learned = task.learn, state.learned, state.learned
        self.sqrt_alpha = circuit.alpha**0.5
        for field in FIELDS:
            setattr(self, field, getattr(state, field))
        for name, value in circuit.parts.read(circuit, state, task).items():
            setattr(self, name, value)

    def present(self, done: int) -> dict[str, Any]:
        """One presentation, from loading its point to learning from it: what a result holds."""
        task, answer = self._task, EACH_PRESENTATION.index("load")
        self.x, self.z, self.label = task.x[done], task.z[done], task.z[done]
        self.number, self.step = task.first + done, 0
        for name, values in task.more.items():
            setattr(self, name, values[done])
        for stage in EACH_PRESENTATION[answer:]:
            self.at(stage)
        self._path.clear()
        before = self._jump() if self._circuit.settling == "exact" else self._settle()
        found = {
            f"{name}_trace": np.array(self._followed())
            if name == "y"
            else np.array([row["huV".index(name)] for row in self._path])
            for name in task.record
        }
        self.at("answer")
        for name in task.record:  # what parts have made of it since
            found[f"{name}_trace"][-1] = getattr(self, name)
        found |= {"h": self.h, "u": self.u, "y": self.y}
        found["change"] = relative_change(before[0], self.h, before[1], self.u)
        self.at("record")
        for stage in EACH_PRESENTATION[1:answer]:
            self.at(stage)
        self.learned += self.learn
        if task.snapshots:
            found |= {f"{name}_snapshots": getattr(self, name) for name in ("W", "b", "w")}
        return found

    def at(self, stage: str) -> None:
        """What happens at a stage."""
        for method in self._stages[stage]:
            method(self)

    def mask(self) -> None:
        """Leave no weights where there are no synapses."""
        for home in self._circuit.model.connections:
            weights = self._circuit.model.masked(home, getattr(self, SYNAPSES[home]))
            setattr(self, SYNAPSES[home], weights)

    def _settle(self) -> tuple[FloatArray, FloatArray]:
        """Take the steps; returns h and u before the last."""
        before = self.h, self.u
        for step in range(1, self._circuit.n_steps + 1):
            self.step, before = step, (self.h, self.u)
            self.move()
            if self._task.record:
                self._path.append((self.h, self.u, self.V))
        return before

    def move(self) -> None:
        """One step of dt."""
        for stage in self._circuit.model.each_step:
            self.at(stage)

    def _jump(self) -> tuple[FloatArray, FloatArray]:
        """Jump to the closed form, with u in the direction of its rest; a trace stays there."""
        a, direction = self.a, self.u_rest / np.linalg.norm(self.u_rest)
        for part in self._circuit.parts.all:
            a = part.settled(self, a)
        self.h, self.u, self.V = fixed_point(a, direction, self._circuit.floor)
        self._path += [(self.h, self.u, self.V)] * self._circuit.n_steps
        return self.h, self.u

    def _followed(self) -> list[FloatArray]:
        """y as it follows h at every step."""
        settled, found = self.h, []
        for h, _, _ in self._path:
            self.h = h
            for method in self._following:
                method(self)
            found.append(self.y)
        self.h = settled
        return found

    def store(self, state: CircuitState) -> None:
        """Put everything that a circuit remembers back into its state."""
        for field in FIELDS:
            setattr(state, field, getattr(self, field))
        state.shown += len(self._task.x)
        state.learned = self.learned
        state.extra |= self._circuit.parts.write(self._circuit, self)
