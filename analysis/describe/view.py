"""The objects of a circuit's network, sorted into kinds."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from brian2 import (
    EventMonitor,
    Group,
    Network,
    PopulationRateMonitor,
    StateMonitor,
    Synapses,
    TimedArray,
)
from brian2.groups.group import CodeRunner
from brian2.synapses.synapses import SummedVariableUpdater, SynapticPathway

from analysis.describe import notes, twin
from analysis.describe.notes import Note
from analysis.describe.objects import delivered, equations, update_code, written
from circuits.dataset import SPIKE_COLUMNS
from circuits.engines.codegen import using
from circuits.parameters import format_seconds

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit

MONITORS = (StateMonitor, EventMonitor, PopulationRateMonitor)


class View:
    """A circuit's objects by kind. Those that a user has added or replaced are among them: what is
    what is told by types and code, never by a list of names."""

    def __init__(self, circuit: ManifoldCircuit) -> None:
        self.circuit = circuit
        self.notes = notes.NOTES | (twin.NOTES if twin.is_spiking(circuit) else {})
        self.network = circuit.network
        self.measured: dict[str, tuple[Any, str]] = {}
        """The monitors that a run adds, by the result they hold, and when it does."""
        # They are made as a run makes them, to be looked at; none is added to the network.
        watching = circuit.wiring.monitors
        with using():
            for condition, record, snapshots in (
                ("in every run", (), False),
                ("if record asks for it", circuit.recordable, False),
                ("if snapshot_every is given", (), True),
            ):
                for result, monitor in watching(self.network, record, snapshots).items():
                    self.measured.setdefault(result, (monitor, condition))
            scratch = Network(name="description*")
        # Brian2 itself puts them into order. Network.add refuses objects that have run.
        scratch.schedule = self.network.schedule
        scratch.objects = set(self.network.objects) | {m for m, _ in self.measured.values()}
        self.scheduled: list[Any] = scratch.sorted_objects
        clocks = {item.clock.name: item.clock for item in self.scheduled}
        self.clocks = sorted(clocks.values(), key=lambda clock: (clock.dt_, clock.name))
        self._sort(self.network.sorted_objects)

    def _sort(self, objects: list[Any]) -> None:
        """Tell what is what; updates in the order in which they run, the rest as in the notes."""
        known = sorted(objects, key=self._position)
        self.synapses = [item for item in known if isinstance(item, Synapses)]
        self.added_monitors = [item for item in known if isinstance(item, MONITORS)]
        other_groups = (Synapses, SynapticPathway, *MONITORS)
        self.populations = [
            item for item in known if isinstance(item, Group) and not isinstance(item, other_groups)
        ]
        self.streams: dict[str, TimedArray] = {
            name: value
            for item in self.populations + self.synapses
            for name, value in (getattr(item, "namespace", None) or {}).items()
            if isinstance(value, TimedArray)
        }
        # Sums stand among the equations; a group without dynamics has an updater that is idle.
        elsewhere = [*self.populations, *self.synapses, *self.added_monitors]
        active = [
            item
            for item in objects
            if item not in elsewhere
            and not isinstance(item, SummedVariableUpdater)
            and (update_code(item) or not hasattr(item, "method_choice"))
        ]
        self.updates = [
            item for item in active if isinstance(item, CodeRunner) and update_code(item)
        ]
        self.others = [item for item in active if item not in self.updates]
        """What acts on the network by other means than code, such as functions of Python."""

    def _position(self, item: Any) -> tuple[int, str]:
        """Sorts objects: known ones in the order of the notes, then the others by name."""
        names = list(self.notes)
        return names.index(item.name) if item.name in names else len(names), item.name

    def note(self, item: Any) -> Note:
        """The remark on an object, or on a name."""
        return self.notes.get(item if isinstance(item, str) else item.name, Note(""))

    def tables_of(self, update: Any) -> str:
        """The letters of the tables that an update belongs to."""
        if table := self.note(update).table:
            return table
        if isinstance(update.group, Synapses) and written(update):
            # A spike may move cells, and change the synapse that it comes through.
            return "DE" if isinstance(update, SynapticPathway) and delivered(update) else "E"
        loads = not hasattr(update, "method_choice") and any(
            uses(update_code(update), name) for name in self.streams
        )
        return "F" if loads else "D"

    def kept(self, update: Any) -> list[Any]:
        """The variables of its own group that an update changes for longer than a presentation."""
        computed, home = self.circuit.parts.computed, update.group.name
        return [one for one in written(update) if f"{home}.{one.varname}" not in computed]

    def results(self, name: str) -> str:
        """What a monitor that a run adds becomes in the result."""
        monitor, _ = self.measured[name]
        if not isinstance(monitor, EventMonitor):
            return name
        return ", ".join(f"{monitor.source.name}_spike_{column}" for column in SPIKE_COLUMNS)

    def readers(self, stream: str) -> list[Any]:
        """The updates and groups whose code or equations look something up in a stream."""
        return [item for item in self.updates if uses(update_code(item), stream)] or [
            group
            for group in self.populations + self.synapses
            if any(uses(str(equation), stream) for equation in equations(group))
        ]

    def every(self, clock: Any) -> str:
        """How often a clock fires, in steps of the circuit."""
        # Rounded here: Brian2's own summary cuts off, and makes 48 steps of 49 times 0.1 ms.
        ratio = clock.dt_ / self.circuit.dt_
        steps = round(ratio)
        if not math.isclose(ratio, steps, rel_tol=1e-9):
            return format_seconds(clock.dt_)  # the clock of something added
        return "step" if steps == 1 else f"{steps} steps"


def uses(code: str, name: str) -> bool:
    """Whether code calls a function of this name."""
    return re.search(rf"\b{re.escape(name)}\(", code) is not None
