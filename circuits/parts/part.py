"""A part: a piece of a circuit. The paper's two layers are parts, and so is all that is added.

A part says, for Brian2, which lines it adds to the equations of an object and what happens at which
stage; and for the NumPy reference the same in methods that are named after the stages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from circuits.errors import ParameterError, shown
from circuits.lift import FloatArray
from circuits.stages import EACH_STEP, STAGES, slots

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task

OBJECTS = (
    *("inputs", "excitatory", "inhibitory", "readout"),
    *("lateral", "feedforward", "classifier"),
)
"""The objects of the network that a part can add to."""

LINE = re.compile(r"\s*(?:d(?=\w+\s*/dt))?(\w+)\s*(/dt)?\s*(=[^:#]*)?:[^(#]*(?:\(([^)#]*)\))?")
ASSIGNED = re.compile(r"^\s*(\w+)\s*([-+*/]?)=(.*)$", re.MULTILINE)
"""A statement: the variable, the operator of an augmented assignment, the value."""


class Line(NamedTuple):
    """A line of equations."""

    name: str
    text: str
    differential: bool
    derived: bool
    """A subexpression, a sum or a link: its value is not its own."""
    shared: bool
    about: str
    """Its comment."""


def lines_of(text: str) -> dict[str, Line]:
    """The lines of equations, by the variable that each of them declares."""
    found: dict[str, Line] = {}
    for row in filter(str.strip, text.splitlines()):
        match = LINE.match(row)
        if match is None:  # it goes on with the line before
            name = next(reversed(found), row)
            line = found.get(name, Line(row, "", False, True, False, ""))
            found[name] = line._replace(text=f"{line.text}\n{row.strip()}")
            continue
        name, differential, value, flags = match.groups()
        if name in found:
            raise ParameterError(f"{name} is declared twice, at last as {row.strip()}")
        flags = flags or ""
        derived = bool(value and not differential) or "linked" in flags
        about = row.partition("#")[2].strip()
        line = Line(name, row.strip(), bool(differential), derived, "shared" in flags, about)
        found[name] = line
    return found


class Part:
    """A piece of a circuit.

    Subclasses set what they need:

    equations
        Lines for the equations of an object of the network, by its name.
    state
        Initial values of the variables that a circuit remembers, by "object.variable".
    parameters
        Values of the variables that stay as they are, by "object.variable".
    code
        (object, stage, Brian2 text), with a stage of `circuits.stages`, such as "after_learn".
    namespace
        What names in the texts mean, besides where(condition, a, b).

    A line for a variable that the circuit has already, but does not remember, takes the place of
    the circuit's.

    The reference calls the method of a stage's name with the circuit ``s``, which has ``h``, ``u``,
    ``V``, ``W``, ``b``, ``w``, ``recruited``, ``x``, ``z``, ``a`` and ``y``, at every step
    ``inhibition`` and ``excitation``, and the part's own variables. What the method assigns to them
    holds from then on.
    """

    equations: Mapping[str, str] = {}
    state: Mapping[str, float] = {}
    parameters: Mapping[str, Any] = {}
    code: Sequence[tuple[str, ...]] = ()
    namespace: Mapping[str, Any] = {}

    # What the circuit's own parts need besides. Their code may have a fourth text: the label in
    # the name of the Brian2 object.
    groups: Mapping[str, int] = {}
    """Groups of cells of its own, and how many."""
    synapses: Mapping[str, tuple[str, str]] = {}
    """Synapses of its own, from one group to another."""
    links: Mapping[str, str] = {}
    """"object.variable" of linked variables, and those that they are linked to."""
    summed: Mapping[str, str] = {}
    """"synapses.variable_post" of sums over synapses, and the stages at which they are made."""
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
    follows_h = False
    """Whether its code on the readout runs at every step if y is recorded."""

    @property
    def name(self) -> str:
        """What the part is called in files, results and the names of Brian2 objects."""
        return type(self).__name__

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """Further values of variables at the start of a stream."""
        return {}

    def streams(self, presentations: NDArray[np.int64], learn: bool) -> dict[str, FloatArray]:
        """Streams of its own beside points and labels: (presentation, column), by name. Its texts
        look them up as name(presentation*usecond, column), its methods as ``s.name``."""
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
        moved = [line for text in self.equations.values() for line in lines_of(text)]
        during = slots(*EACH_STEP)
        acts = any(callable(getattr(self, stage, None)) for stage in during)
        acts |= any(entry[1] in during for entry in self.code)
        return acts or bool({"h", "u", "V", "gain", "h_seen", "u_seen"} & set(moved))

    def texts(self) -> dict[str, Any]:
        """What it adds to the network's program."""
        return {
            "name": self.name,
            "equations": {k: _plain_text(v) for k, v in sorted(self.equations.items())},
            "code": [[*entry[:2], _plain_text(entry[2])] for entry in self.code],
        }

    def described(self) -> dict[str, Any]:
        """The part as text and numbers, for results and files."""
        from circuits.model import described_value

        return self.texts() | {
            "state": {k: float(v) for k, v in sorted(self.state.items())},
            "parameters": {k: float(v) for k, v in sorted(self.parameters.items())},
            "namespace": {k: described_value(v) for k, v in sorted(self.namespace.items())},
        }

    def check(self) -> None:
        """Refuse what no circuit could have."""
        for home in [*self.equations, *(entry[0] for entry in self.code)]:
            if home not in OBJECTS:
                raise ParameterError(
                    f"{self.name} adds to {shown(home)}: use one of {', '.join(OBJECTS)}"
                )
        for _, stage, _ in self.code:
            if stage not in STAGES:
                names = ", ".join(name for name in STAGES if not name.startswith(("before", "aft")))
                raise ParameterError(
                    f"{self.name} has code at {shown(stage)}: use one of {names}, "
                    "or before_ or after_ one of them"
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
        remembered = {name for name, line in declared.items() if line.differential}
        for home, _, text in self.code:
            for name, operator, value in ASSIGNED.findall(text):
                if operator or re.search(rf"\b{name}\b", value):
                    remembered.add(f"{home}.{name}")
        for name in sorted(remembered & declared.keys() - self.state.keys()):
            raise ParameterError(
                f"{self.name} computes {name} from what it was before: give its initial value in "
                "state"
            )


class _Read(Part):
    """A part read from a file, without NumPy methods."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._name = str(values["name"])
        self.equations, self.state = dict(values["equations"]), dict(values["state"])
        self.parameters = dict(values["parameters"])
        self.code = [(home, stage, text) for home, stage, text in values["code"]]
        self.namespace = dict(values["namespace"])

    @property
    def name(self) -> str:
        """As it was saved."""
        return self._name


def part_from(values: Mapping[str, Any]) -> Part:
    """A part from what `Part.described` made of it; it runs on Brian2 alone."""
    if any(isinstance(value, Mapping) for value in values["namespace"].values()):
        raise ParameterError(
            f"the part {values['name']} has quantities or arrays in its namespace: give the part "
            "itself with parts="
        )
    return _Read(values)


def checked_parts(given: Any) -> tuple[Part, ...]:
    """Parts as a tuple, or an error that names what is not a part."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ParameterError(f"parts must be a list of parts, got {shown(given)}")
    found = tuple(given)
    names: set[str] = set()
    for part in found:
        if not isinstance(part, Part):
            raise ParameterError(f"a part must be an instance of circuits.Part, got {shown(part)}")
        part.check()
        if part.name in names:
            raise ParameterError(f"two parts are called {part.name}: give one of them another name")
        names.add(part.name)
    return found


def _plain_text(text: str) -> str:
    """Text without what does not matter: blank lines and indentation."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


class Parts:
    """All parts of a circuit, the paper's first and the user's last."""

    def __init__(self, own: Sequence[Part], users: Sequence[Part]) -> None:
        self.all, self.users = (*own, *users), tuple(users)
        self.lines: dict[str, dict[str, Line]] = {}
        """The equations of every object, by variable."""
        self.overridden: dict[str, str] = {}
        """Variables whose line was replaced, and the part that did."""
        owners: dict[str, Part] = {}
        for part in self.all:
            for home, text in part.equations.items():
                known = self.lines.setdefault(home, {})
                for name, line in lines_of(text).items():
                    variable = f"{home}.{name}"
                    if name in known:
                        self._require_free(variable, owners[variable], part)
                        self.overridden[variable] = part.name
                        line = line._replace(about=line.about or known[name].about)
                    known[name], owners[variable] = line, part
        self.state = self._collected("state")
        self.fields: dict[str, str] = self._collected("fields")
        self.links = {
            name: target
            for part in self.all
            for name, target in part.links.items()
            if owners.get(name) is part
        }
        self.summed = self._collected("summed")
        self.synapses = self._collected("synapses")
        self.parameters = {
            name: value
            for part in self.all
            for name, value in part.parameters.items()
            if owners.get(name) is part
        }
        """Values of what stays as it is."""
        self.learning = [name for part in self.all for name in part.learning]
        self.fixed = {
            name: given
            for name, given in self._collected("fixed").items()
            if name in self.parameters
        }
        added = [name for part in self.all for name in part.added]
        kept = {*self.state, *self.fields, *self.parameters, *added}
        self.computed = {
            f"{home}.{line.name}"
            for home, lines in self.lines.items()
            for line in lines.values()
            if not line.derived and f"{home}.{line.name}" not in kept
        }
        """Variables that the circuit computes anew."""
        self.short = {
            name.partition(".")[2]: name
            for name in owners
            if owners[name] in users or name in self.state
        }
        """Variables of users' parts, and those remembered, as methods in NumPy call them."""

    def streams(self, presentations: NDArray[np.int64], learn: bool) -> dict[str, FloatArray]:
        """The streams of all parts."""
        found = [part.streams(presentations, learn) for part in self.all]
        return {name: values for streams in found for name, values in streams.items()}

    def _collected(self, what: str) -> dict[str, Any]:
        return {name: value for part in self.all for name, value in getattr(part, what).items()}

    def _require_free(self, variable: str, first: Part, second: Part) -> None:
        """Refuse a second line for what a part remembers, or for what two users declare."""
        if variable in {*first.state, *first.fields} or first in self.users:
            raise ParameterError(
                f"{second.name} and {first.name} both declare {variable}: give one another name"
            )

    def about(self, home: str, name: str) -> str:
        """What a variable is, as its declaration says, or that of the one it is linked to."""
        home, _, name = self.links.get(f"{home}.{name}", f"{home}.{name}").partition(".")
        line = self.lines.get(home, {}).get(name)
        return line.about if line else ""

    def described(self) -> list[dict[str, Any]]:
        """The user's parts as text and numbers."""
        return [part.described() for part in self.users]

    def equations(self, home: str) -> str:
        """The equations of an object."""
        return "\n".join(line.text for line in self.lines[home].values())

    def codes(self) -> list[tuple[str, str, str, str]]:
        """(object, stage, text, label): one for each object, stage and label of a part."""
        texts: dict[tuple[int, str, str, str], list[str]] = {}
        for number, part in enumerate(self.all):
            for home, stage, text, *label in part.code:
                word = f"{part.name}_{stage}" if part in self.users else stage
                key = number, home, stage, *(label or [word])
                texts.setdefault(key, []).append(_plain_text(text))  # type: ignore[arg-type]
        return [(k[1], k[2], "\n".join(lines), k[3]) for k, lines in texts.items()]

    # NumPy

    def require_numpy(self) -> None:
        """Refuse parts that only Brian2 can run."""
        for part in self.users:
            for _, stage, *_ in part.code:
                if not callable(getattr(part, stage, None)):
                    raise ParameterError(
                        f"{part.name} has Brian2 text at {stage!r} and no method of that name, "
                        "which the NumPy reference needs: define it, or use ManifoldCircuit"
                    )

    def require_closed_form(self) -> None:
        """Refuse parts that act while the rates settle; the first two are the paper's layers."""
        for part in self.all[2:]:
            if part.moves_rates():
                raise ParameterError(
                    f"the closed form holds for rates that settle undisturbed, and {part.name} "
                    "acts while they do: use settling='dynamics', or another engine"
                )

    def methods(self, slot: str, follows_h: bool = False) -> list[Any]:
        """What the parts do in a slot, in NumPy."""
        found = []
        for part in self.all:
            method = getattr(part, slot, None)
            if callable(method) and (part.follows_h or not follows_h):
                found.append(_checking(method) if part in self.users else method)
        return found

    def read(self, c: Circuit, state: CircuitState, task: Task) -> dict[str, Any]:
        """What the parts remember, and all that the user's declare, as their methods call it."""
        values = self.state | self.parameters
        values |= {name: v for part in self.all for name, v in part.start(state, task).items()}
        found: dict[str, Any] = {}
        for short, name in self.short.items():
            value = state.extra.get(name, values.get(name, 0.0))
            home, _, variable = name.partition(".")
            if self.lines[home][variable].shared:
                found[short] = float(np.ravel(value)[0])
            elif len(shape := self._shape(c, home)) == 2 and np.ndim(value):
                found[short] = c.model.unpacked(home, np.asarray(value, dtype=float), shape)
            else:
                found[short] = np.broadcast_to(value, shape).astype(float)
        return found

    def write(self, c: Circuit, s: Any) -> dict[str, FloatArray]:
        """The inverse, of what is remembered: as Brian2 has it."""
        found = {}
        for name in self.state:
            home, _, variable = name.partition(".")
            value: FloatArray = np.array(getattr(s, variable), dtype=float)
            if self.lines[home][variable].shared:
                found[name] = value.reshape(1)
                continue
            value = np.broadcast_to(value, self._shape(c, home)).copy()
            found[name] = c.model.packed(home, value) if value.ndim == 2 else value
        return found

    def _shape(self, c: Circuit, home: str) -> tuple[int, ...]:
        p, n = c.parameters, c.lift.n_inputs
        m, k, r = p.n_tiles, p.n_interneurons, p.n_readouts
        return {
            **{"inputs": (n,), "excitatory": (m,), "inhibitory": (k,), "readout": (r,)},
            **{"lateral": (k, m), "feedforward": (m, n), "classifier": (r, m)},
        }[home]


def _checking(method: Any) -> Any:
    """A user's method, which may assign to what there is, and to nothing else."""

    def call(s: Any) -> None:
        known = set(vars(s))
        method(s)
        for name in vars(s).keys() - known:
            raise AttributeError(f"a circuit has no {name!r}: declare it in a part's equations")

    return call
