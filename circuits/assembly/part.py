"""A part: a piece of a circuit. The paper's two layers are parts, and so is all that is added.

A part says, for Brian2, which lines it adds to the equations of an object and what happens at which
stage; and for the NumPy reference the same in methods that are named after the stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from circuits.assembly.lines import lines_of, needs_start, plain_text
from circuits.errors import ParameterError, shown
from circuits.lift import FloatArray
from circuits.stages import ALL, EACH_STEP, STAGES, slots

if TYPE_CHECKING:
    from circuits.state import CircuitState, Task

OBJECTS = (
    *("inputs", "excitatory", "inhibitory", "readout"),
    *("lateral", "feedforward", "classifier"),
)
"""The objects of the network that a part can add to."""

SETTLING = {*"huV", "gain", "h_seen", "u_seen", "inhibition_pre", "excitation_post"}
"""Variables whose equations decide how the rates settle."""

OWN = ("groups", "synapses", "links", "summed")
"""What a part can say of objects of its own."""


class Part:
    """A piece of a circuit.

    Subclasses set what they need:

    equations
        Lines for the equations of an object of the network, by its name.
    state
        Initial values of the variables that a circuit remembers, by "object.variable": a number, or
        an array with one for each cell, or for each synapse (post, pre). A variable that is read
        before it is computed is remembered too, and starts at zero.
    parameters
        Values of the variables that stay as they are, in the same form.
    code
        (object, stage, Brian2 text), with a stage of `circuits.stages`, such as "after_learn".
    namespace
        What names in the texts mean, besides where(condition, a, b).

    A line for a variable that the circuit has already, but does not remember, takes the place of
    the circuit's.

    The reference calls the method of a stage's name with the circuit ``s``, which has ``h``, ``u``,
    ``V``, ``W``, ``b``, ``w``, ``recruited``, ``x``, ``z`` and ``a``, from "answer" on ``y``, at
    every step ``inhibition`` and ``excitation``, and the part's own variables. What the method does
    to them holds from then on.
    """

    equations: Mapping[str, str] = {}
    state: Mapping[str, float] = {}
    parameters: Mapping[str, Any] = {}
    code: Sequence[tuple[str, ...]] = ()
    namespace: Mapping[str, Any] = {}

    # Objects of its own.
    groups: Mapping[str, int] = {}
    """Groups of cells of its own, and how many."""
    synapses: Mapping[str, tuple[str, str]] = {}
    """Synapses of its own, from one group to another."""
    links: Mapping[str, str] = {}
    """"object.variable" of linked variables, and those that they are linked to."""
    summed: Mapping[str, str] = {}
    """"synapses.variable_post" of sums over synapses, and the stages at which they are made."""

    # What the circuit's own parts need besides. Their code may have a fourth text: the label in
    # the name of the Brian2 object.
    fields: Mapping[str, str] = {}
    """"object.variable", and the field of `CircuitState` that holds it between two streams."""
    learning: Sequence[str] = ()
    """Parameters that are zero in a prediction."""
    added: Sequence[str] = ()
    """Variables of a model's own equations: a circuit remembers them, and users may set them."""
    fixed: Mapping[str, str] = {}
    """Variables that cannot be set on the network, and the `CircuitParameters` to give instead."""
    moves: Mapping[str, tuple[str, tuple[str, ...]]] = {}
    """Objects that move at every step: the stage, and the variables that are cut at zero."""
    options: Mapping[str, Mapping[str, str]] = {}
    """Further arguments of Brian2's objects."""
    paths: Sequence[str] = ()
    """Pathways of spikes, in the order in which they act in a step."""
    events: Sequence[int] = ()
    """Presentations before which it changes the state: a stream is cut there."""
    called = ""
    """What the part is called in files and results, if not by its class."""
    follows_h = False
    """Whether its code on the readout runs at every step if y is recorded."""

    @property
    def name(self) -> str:
        """What the part is called in files, results and the names of Brian2 objects."""
        return self.called or type(self).__name__

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """Further values of variables at the start of a stream."""
        return {}

    def streams(self, presentations: NDArray[np.int64], learn: bool) -> dict[str, FloatArray]:
        """Streams of its own beside points and labels: (presentation, column), by name. Texts on
        inputs and readout look them up as name(presentation*usecond, column), methods as
        ``s.name``."""
        return {}

    def change(self, state: CircuitState, presentation: int) -> None:
        """Change a state, at one of its events or later."""

    def adjust(self, values: dict[str, dict[str, Any]], state: CircuitState, task: Task) -> None:
        """Change values at the start of a stream, once all parts and the user have set them."""

    def settled(self, s: Any, a: FloatArray) -> FloatArray:
        """The drive that the rates settle on, if the part changes it."""
        return a

    def moves_rates(self) -> bool:
        """Whether it acts while the rates settle, so that the closed form does not hold."""
        lines = [line for text in self.equations.values() for line in lines_of(text).values()]
        moved = {line.name for line in lines}
        during = slots(*EACH_STEP)
        acts = any(callable(getattr(self, stage, None)) for stage in during)
        acts |= any(entry[1] in during for entry in self.code)
        acts |= any(line.differential for line in lines)
        return acts or bool(SETTLING & moved)

    def texts(self) -> dict[str, Any]:
        """What it adds to the network's program."""
        own = {name: dict(getattr(self, name)) for name in OWN}
        return {
            "name": self.name,
            "equations": {k: plain_text(v) for k, v in sorted(self.equations.items())},
            "code": [[*entry[:2], plain_text(entry[2])] for entry in self.code],
        } | {name: values for name, values in own.items() if values}

    def described(self) -> dict[str, Any]:
        """The part as text and numbers, for results and files."""
        from circuits.model import described_value

        return self.texts() | {
            "state": {k: self.value(k, v).tolist() for k, v in sorted(self.state.items())},
            "parameters": {
                k: self.value(k, v).tolist() for k, v in sorted(self.parameters.items())
            },
            "namespace": {k: described_value(v) for k, v in sorted(self.namespace.items())},
        }

    def value(self, name: str, given: Any) -> FloatArray:
        """A value of its state or parameters, in SI units."""
        try:
            found: FloatArray = np.array(given, dtype=float)
        except (TypeError, ValueError):
            found = np.array(np.nan)
        if not np.isfinite(found).all():
            raise ParameterError(
                f"{self.name} gives {name} the value {shown(given)}: give a finite number, or an "
                "array of them"
            )
        return found

    def _check_kinds(self) -> None:
        for name in ("equations", "state", "parameters", "namespace", *OWN):
            if not isinstance(given := getattr(self, name), Mapping):
                raise ParameterError(
                    f"{name} of {self.name} must be a dictionary, got {shown(given)}"
                )
        for home, text in self.equations.items():
            if not isinstance(text, str):
                raise ParameterError(
                    f"the equations that {self.name} adds to {home} must be text, got {shown(text)}"
                )
        for entry in self.code:
            whole = isinstance(entry, tuple | list) and len(entry) in (3, 4)
            if not whole or not all(isinstance(text, str) for text in entry):
                raise ParameterError(
                    f"{self.name} has the code {shown(entry)}: each entry is (object, stage, text)"
                )

    def check(self) -> None:
        """Refuse what no circuit could have."""
        self._check_kinds()
        for name in vars(type(self)):
            if name.startswith(("before_", "after_")) and name not in STAGES:
                raise ParameterError(f"{self.name} has a method {name}, and there is no such stage")
        for name in [*self.groups, *self.synapses]:
            if name in OBJECTS:
                raise ParameterError(
                    f"{self.name} has objects of its own called {name}, as the circuit has: give "
                    "them another name"
                )
        homes = (*OBJECTS, *self.groups, *self.synapses)
        for home in [*self.equations, *(entry[0] for entry in self.code)]:
            if home not in homes:
                raise ParameterError(
                    f"{self.name} adds to {shown(home)}: use one of {', '.join(homes)}"
                )
        for _, stage, *_ in self.code:
            if stage not in STAGES:
                raise ParameterError(
                    f"{self.name} has code at {shown(stage)}: use one of "
                    f"{', '.join(ALL)}, or before_ or after_ one of "
                    "them"
                )
        declared = {
            f"{k}.{n}": line for k, t in self.equations.items() for n, line in lines_of(t).items()
        }
        for name in [*self.state, *self.parameters]:
            if name not in declared:
                raise ParameterError(
                    f"{self.name} gives a value to {shown(name)}, which its equations do not "
                    "declare: name it as object.variable"
                )
            self.value(name, {**self.parameters, **self.state}[name])
        remembered = {name for name, line in declared.items() if line.differential}
        remembered |= {f"{home}.{n}" for home, _, text, *_ in self.code for n in needs_start(text)}
        for name in sorted(remembered & declared.keys() - self.state.keys()):
            raise ParameterError(
                f"{self.name} computes {name} from what it was before: give its initial value in "
                "state"
            )
