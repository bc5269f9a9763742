"""All parts of a circuit together: whose equations, values and stages follow each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from circuits.assembly.lines import Line, lines_of, plain_text
from circuits.assembly.part import OWN, Part
from circuits.errors import ParameterError, shown
from circuits.lift import FloatArray
from circuits.stages import EACH_STEP, LOADING, PAIRS, STAGES, slots

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task


class _Read(Part):
    """A part read from a file, without NumPy methods."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.called = str(values["name"])
        self.equations, self.state = dict(values["equations"]), dict(values["state"])
        self.parameters = dict(values["parameters"])
        self.code = [(home, stage, text) for home, stage, text in values["code"]]
        self.namespace = dict(values["namespace"])
        for name in OWN:
            setattr(self, name, dict(values.get(name, {})))


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
            raise ParameterError(
                f"two parts are called {part.name}: give one another name (called)"
            )
        names.add(part.name)
    return found


NAMES = (
    *(*"xzahuVWbwy", "recruited", "inhibition", "excitation", "gain", "net", "rate", "label"),
    *("h_start", "u_start", "u_rest", "kept", "begin", "joins", "wanted", "last_size"),
    *("learn", "learned", "learned_at", "number", "step", "strengths", "sqrt_alpha"),
    *("at", "mask", "move", "present", "store"),
)
"""What NumPy's methods find besides the variables of parts."""


class Parts:
    """All parts of a circuit, the paper's first and the user's last."""

    def __init__(self, own: Sequence[Part], users: Sequence[Part]) -> None:
        self.all, self.users = (*own, *users), tuple(users)
        self.lines: dict[str, dict[str, Line]] = {}
        """The equations of every object, by variable."""
        owners: dict[str, Part] = {}
        replaced: list[str] = []
        for part in self.all:
            for home, text in part.equations.items():
                known = self.lines.setdefault(home, {})
                for name, line in lines_of(text).items():
                    variable = f"{home}.{name}"
                    if name in known:
                        self._require_free(variable, owners[variable], part)
                        replaced.append(variable)
                        line = line._replace(about=line.about or known[name].about)
                    known[name], owners[variable] = line, part
        self.state = self.collected("state")
        self.fields: dict[str, str] = self.collected("fields")
        self.parameters = self.collected("parameters", owners)
        """Values of what stays as it is."""
        rows = [line for lines in self.lines.values() for line in lines.values()]
        sums = {line.name.rpartition("_")[0] for line in rows if "(summed)" in line.text}
        for name in _left_over(users):
            if name not in self.parameters and name.partition(".")[2] not in sums:
                self.state.setdefault(name, 0.0)
        self.links = self.collected("links", owners)
        self.summed = self.collected("summed")
        self.synapses, self.groups = self.collected("synapses"), self.collected("groups")
        self.moves, self.options = self.collected("moves"), self.collected("options")
        self._replacing = {owners[name].name: name for name in replaced if owners[name] in users}
        self._check_namespaces()
        self.learning = [name for part in self.all for name in part.learning]
        self.fixed = {
            name: given
            for name, given in self.collected("fixed").items()
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
        self.shown = [name for name in owners if owners[name] in users or name in self.state]
        """Variables of users' parts, and those remembered: methods in NumPy see them."""

    def streams(self, presentations: NDArray[np.int64], learn: bool) -> dict[str, FloatArray]:
        """The streams of all parts."""
        found = [part.streams(presentations, learn) for part in self.all]
        return {name: values for streams in found for name, values in streams.items()}

    def collected(self, what: str, owners: Mapping[str, Part] | None = None) -> dict[str, Any]:
        """What all parts declare, or only those whose line for the variable holds."""
        numbers = what in ("state", "parameters")
        return {
            name: part.value(name, value) if numbers and part in self.users else value
            for part in self.all
            for name, value in getattr(part, what).items()
            if owners is None or owners.get(name) is part
        }

    def _require_free(self, variable: str, first: Part, second: Part) -> None:
        """Refuse a second line for what a part remembers, or for what two users declare."""
        if variable in {*first.state, *first.fields} or first in self.users:
            raise ParameterError(
                f"{second.name} and {first.name} both declare {variable}: give one another name"
            )

    def _check_namespaces(self) -> None:
        """Refuse a name that means one thing to one part and something else to another."""
        from circuits.model import described_value

        meanings: dict[str, tuple[Part, Any]] = {}
        for part in self.all:
            for name, value in part.namespace.items():
                first, known = meanings.setdefault(name, (part, value))
                if part not in self.users or known is value:
                    continue
                if first not in self.users or described_value(known) != described_value(value):
                    raise ParameterError(
                        f"{part.name} and {first.name} both have {name} in their namespaces: give "
                        "one another name"
                    )

    def fit(self, c: Circuit) -> None:
        """Refuse values of users' parts that do not fit; arrays are held as Brian2 has them."""
        for values in (self.state, self.parameters):
            for name, value in values.items():
                if not isinstance(value, np.ndarray) or name not in self.shown:
                    continue
                home, _, variable = name.partition(".")
                shape = () if self.lines[home][variable].shared else self._shape(c, home)
                if value.ndim and value.shape != shape:
                    wanted = f"one number or {shape}" if shape else "one number"
                    raise ParameterError(
                        f"{name} must be {wanted}, got an array of the shape {value.shape}"
                    )
                flat = c.model.packed(home, value) if value.ndim == 2 else value
                values[name] = flat if flat.ndim else flat.item()

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
                texts.setdefault(key, []).append(plain_text(text))  # type: ignore[arg-type]
        return [(k[1], k[2], "\n".join(lines), k[3]) for k, lines in texts.items()]

    # NumPy

    def require_numpy(self) -> None:
        """Refuse parts that only Brian2 can run, and names that mean two things in NumPy."""
        named: dict[str, str] = {name: f"the circuit's {name}" for name in NAMES}
        for variable in self.shown:
            name = variable.partition(".")[2]
            if name in named:
                raise ParameterError(
                    f"{variable} and {named[name]} are both s.{name} in NumPy: give one of them "
                    "another name, or use ManifoldCircuit"
                )
            named[name] = variable
        for part in self.users:
            lines = [line for text in part.equations.values() for line in lines_of(text).values()]
            moving = [line.name for line in lines if line.differential or "(summed)" in line.text]
            moving += [self._replacing[part.name]] if part.name in self._replacing else []
            if moving and not any(callable(getattr(part, stage, None)) for stage in STAGES):
                raise ParameterError(
                    f"{part.name} has equations of {moving[0]} and no method, which the NumPy "
                    "reference needs: define one for a stage, or use ManifoldCircuit"
                )
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
        for name in self.shown:
            value = state.extra.get(name, values.get(name, 0.0))
            home, _, short = name.partition(".")
            line = self.lines[home][short]
            declared = line.text.partition("#")[0].partition(":")[2].split()
            kind = int if "integer" in declared else bool if "boolean" in declared else float
            if line.shared:
                found[short] = kind(np.ravel(value)[0])
            elif len(shape := self._shape(c, home)) == 2 and np.ndim(value):
                found[short] = c.model.unpacked(home, np.asarray(value, dtype=kind), shape)
            else:
                found[short] = np.broadcast_to(value, shape).astype(kind)
        return found

    def write(self, c: Circuit, s: Any) -> dict[str, FloatArray]:
        """What is remembered, as arrays of Brian2: the inverse of `read`."""
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
        """(cell,) of a group, (post, pre) of synapses."""
        sizes, pairs = c.sizes() | self.groups, PAIRS | self.synapses
        return (sizes[home],) if home in sizes else tuple(sizes[one] for one in pairs[home][::-1])


def _left_over(parts: Sequence[Part]) -> list[str]:
    """Variables of parts that are read before they are computed: the last point has left them."""
    order = (*LOADING, *slots(*EACH_STEP), *STAGES)
    texts = [entry[:3] for part in parts for entry in part.code]
    texts += [
        (home, "before_sums", line.text.partition("=")[2])
        for part in parts
        for home, text in part.equations.items()
        for line in lines_of(text).values()
    ]
    texts.sort(key=lambda entry: order.index(entry[1]))
    rows = [(home, row) for home, _, text in texts for row in text.splitlines()]

    def is_read(home: str, name: str) -> bool:
        for at, row in rows:
            if re.search(rf"\b{name}(_pre|_post)?\b", row):
                return not (at == home and re.match(rf"\s*{name}\s*=(?!=)", row))
        return False

    return [
        f"{home}.{line.name}"
        for part in parts
        for home, text in part.equations.items()
        for line in lines_of(text).values()
        if not line.derived and is_read(home, line.name)
    ]


def _checking(method: Any) -> Any:
    """A user's method, refused where it gives the circuit an attribute that it does not have."""

    def call(s: Any) -> None:
        known = set(vars(s))
        for name, value in vars(s).items():  # or changes in place would change results as well
            if isinstance(value, np.ndarray):
                vars(s)[name] = value.copy()
        method(s)
        s.mask()
        for name in vars(s).keys() - known:
            raise AttributeError(f"a circuit has no {name!r}: declare it in a part's equations")

    return call
