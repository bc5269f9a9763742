"""The circuit as a Brian2 network, put together from its parts.

Time runs on three clocks. Every dt the *step* clock moves h, u and V. On the last step of each
presentation the *presentation* clock fires too: the readout answers and the slow synapses learn.
With it fires the *loading* clock, unless that was the last presentation: the next point is loaded.
So nothing slow costs anything on the other steps, and T presentations are T S steps.

For the presentation clock to fire on the last step rather than on the first, simulated time starts
at dt instead of 0: the state that a monitor in the slot "end" records at time t = n dt is the state
after n steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import (
    BrianObjectException,
    Clock,
    NeuronGroup,
    Synapses,
    TimedArray,
    linked_var,
    second,
    us,
)
from brian2.equations.equations import EquationError, Equations

from circuits.engines.brian_objects import (
    AllToAll,
    CircuitNetwork,
    LoadingClock,
    PresentationClock,
    ProjectedEuler,
    network_of,
)
from circuits.errors import ParameterError
from circuits.lift import FloatArray
from circuits.stages import EACH_STEP, LOADING, PAIRS, schedule, slots, where

if TYPE_CHECKING:
    from circuits.base import Circuit

# A stream is looked up by its row, not by the time: "time" is the row in microseconds. So what is
# compiled for one dt and S serves them all.
ROW = us


def build_network(circuit: Circuit, chunk: int, name: str = "circuit") -> CircuitNetwork:
    """The circuit's groups and synapses, with zero weights and streams of ``chunk`` rows."""
    try:
        return Builder(circuit, chunk).network(name)
    except (BrianObjectException, EquationError, SyntaxError, TypeError, ValueError, KeyError) as e:
        if isinstance(e, ParameterError) or not (circuit.model.changes() or circuit.parts.users):
            raise
        what = "these parts" if circuit.parts.users else "this model"
        raise ParameterError(f"Brian2 refuses {what}: {e}") from e


class Builder:
    """Makes the objects of a network from the parts of a circuit."""

    def __init__(self, circuit: Circuit, chunk: int) -> None:
        self.circuit, self.parts = circuit, circuit.parts
        self.step = Clock(dt=circuit.dt_ * second, name="step_clock")
        self.show = PresentationClock(self.step, circuit.n_steps, "presentation_clock")
        self.next = LoadingClock(self.step, circuit.n_steps, "loading_clock")
        self.streams = stream_arrays(circuit.nothing().streams, chunk)
        self.names = {
            "where": where(),
            **circuit.model.namespace,
            **self.parts.collected("namespace"),
        }
        self.made: dict[str, Any] = {}
        self.placed = 0

    def network(self, name: str) -> CircuitNetwork:
        """All of it."""
        for home, size in (self.circuit.sizes() | self.parts.groups).items():
            self.made[home] = self.cells(home, size)
        for variable, target in self.parts.links.items():
            (home, own), (other, linked) = variable.split("."), target.split(".")
            setattr(self.made[home], own, linked_var(self.made[other], linked))
        for home, (source, target) in (PAIRS | self.parts.synapses).items():
            self.made[home] = self.connect(home, self.made[source], self.made[target])
        self.schedule()
        return network_of(list(self.made.values()), name, schedule(self.circuit.model.each_step))

    def cells(self, home: str, size: int) -> NeuronGroup:
        """A group of cells."""
        return NeuronGroup(
            size,
            clock=self.step if home in self.parts.moves else self.show,
            namespace=self.names | (self.streams if home in ("inputs", "readout") else {}),
            **self.common(home),
        )

    def common(self, home: str) -> dict[str, Any]:
        """Arguments that cells and synapses have in common."""
        text, moved = self.parts.equations(home), self.parts.moves.get(home)
        found = Equations(text)
        for rate in moved[1] if moved else ():
            if rate not in found.diff_eq_names:
                raise ParameterError(f"the equations of {rate} must have d{rate}/dt, got: {text}")
        method = {"method": ProjectedEuler(*moved[1])} if moved else {}
        return {"model": found, "name": home, **method, **self.parts.options.get(home, {})}

    def connect(self, home: str, source: Any, target: Any) -> Synapses:
        """Synapses between all pairs, or those of the model's mask, numbered by (post, pre)."""
        mask = self.circuit.model.mask(home)
        kind = AllToAll if mask is None else Synapses
        synapses = kind(
            source, target, clock=self.step, namespace=dict(self.names), **self.common(home)
        )
        pairs = np.ones((target.N, source.N), bool) if mask is None else mask
        post, pre = np.nonzero(pairs)
        synapses.connect(i=pre, j=post)
        return synapses

    def schedule(self) -> None:
        """Put everything that acts into its slot; in one slot the parts act in their order."""
        made = self.made
        for home, (stage, _) in self.parts.moves.items():
            self.place(stage, made[home].state_updater)
        for part in self.parts.all:
            for order, (home, path) in enumerate(name.split(".") for name in part.paths):
                getattr(made[home], path).order = order
        for variable, stage in self.parts.summed.items():
            home, _, name = variable.partition(".")
            self.place(stage, made[home].summed_updaters[name])
        for home, stage, text, label in self.parts.codes():
            self.run(home, stage, text, label)

    def run(self, home: str, stage: str, text: str, label: str) -> None:
        """Let code run on an object at a stage."""
        self.placed += 1
        self.made[home].run_regularly(
            text,
            clock=self.clock(stage),
            when=stage,
            order=self.placed,
            name=f"{home}_{label}",
        )

    def place(self, stage: str, item: Any) -> None:
        """Let an object act at a stage."""
        self.placed += 1
        item.when, item.order, item._clock = stage, self.placed, self.clock(stage)

    def clock(self, stage: str) -> Clock:
        """The clock of a stage."""
        if stage in (*slots(*EACH_STEP), "groups"):
            return self.step
        return self.next if stage in LOADING else self.show


def stream_arrays(streams: dict[str, FloatArray], rows: int) -> dict[str, Any]:
    """Streams as groups look them up, padded to ``rows`` rows, because their length is part of the
    generated code."""
    return {
        name: TimedArray(np.pad(values, ((0, rows - len(values)), (0, 0))), dt=ROW, name=name)
        for name, values in streams.items()
    }
