"""A part: something that a circuit has besides the paper's two layers.

A part says, for Brian2, which lines it adds to the equations of an object and what happens at which
stage; and for the NumPy reference the same in methods that are named after the stages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.errors import ParameterError, shown
from circuits.lift import FloatArray
from circuits.stages import EACH_STEP, STAGES, slots

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState

OBJECTS = (
    *("inputs", "excitatory", "inhibitory", "readout"),
    *("lateral", "feedforward", "classifier"),
)
"""The objects of the network that a part can add to."""

DECLARED = re.compile(
    r"^\s*(?:d(?=\w+/dt))?(\w+)(/dt)?[^:\n]*:[^(#\n]*(\([^#\n]*\bshared\b[^#\n]*\))?", re.MULTILINE
)
"""A line of equations: its variable, /dt if it is differential, and its flags if it is shared."""


ASSIGNED = re.compile(r"^\s*(\w+)\s*([-+*/]?)=(.*)$", re.MULTILINE)
"""A statement: the variable, the operator of an augmented assignment, the value."""


class Part:
    """Something that a circuit has besides the paper's two layers.

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

    The reference calls the method of a stage's name with the circuit ``s``, which has ``h``, ``u``,
    ``V``, ``W``, ``b``, ``w``, ``recruited``, ``x``, ``z``, ``a`` and ``y``, at every step
    ``inhibition`` and ``excitation``, and the part's own variables. What the method assigns to them
    holds from then on.
    """

    equations: Mapping[str, str] = {}
    state: Mapping[str, float] = {}
    parameters: Mapping[str, float] = {}
    code: Sequence[tuple[str, str, str]] = ()
    namespace: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """What the part is called in files, results and the names of Brian2 objects."""
        return type(self).__name__

    def described(self) -> dict[str, Any]:
        """The part as text and numbers: what results hold, and what a program depends on."""
        from circuits.model import described_value

        return {
            "name": self.name,
            "equations": {k: _plain_text(v) for k, v in sorted(self.equations.items())},
            "state": {k: float(v) for k, v in sorted(self.state.items())},
            "parameters": {k: float(v) for k, v in sorted(self.parameters.items())},
            "code": [[home, stage, _plain_text(text)] for home, stage, text in self.code],
            "namespace": {k: described_value(v) for k, v in sorted(self.namespace.items())},
        }

    def variables(self) -> dict[str, bool]:
        """The variables that its equations declare, as "object.variable", and which are shared."""
        return {
            f"{home}.{match[1]}": match[3] is not None
            for home, text in self.equations.items()
            for match in DECLARED.finditer(text)
        }

    def check(self) -> None:
        """Refuse what no circuit could have."""
        for home in [*self.equations, *(home for home, _, _ in self.code)]:
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
        declared = self.variables()
        for name in [*self.state, *self.parameters]:
            if name not in declared:
                raise ParameterError(
                    f"{self.name} gives a value to {shown(name)}, which its equations do not "
                    "declare: name it as object.variable"
                )
        for name in self._remembered() - self.state.keys():
            raise ParameterError(
                f"{self.name} computes {name} from what it was before: give its initial value in "
                "state"
            )

    def _remembered(self) -> set[str]:
        """Variables whose values follow from their last ones."""
        found = {
            f"{home}.{match[1]}"
            for home, text in self.equations.items()
            for match in DECLARED.finditer(text)
            if match[2]
        }
        for home, _, text in self.code:
            for name, operator, value in ASSIGNED.findall(text):
                if operator or re.search(rf"\b{name}\b", value):
                    found.add(f"{home}.{name}")
        return found & self.variables().keys()


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
    """The parts of one circuit."""

    def __init__(self, circuit: Circuit, parts: tuple[Part, ...]) -> None:
        self.all = parts
        p, n = circuit.parameters, circuit.lift.n_inputs
        m, k, r = p.n_tiles, p.n_interneurons, p.n_readouts
        self._shapes: dict[str, tuple[int, ...]] = {
            **{"inputs": (n,), "excitatory": (m,), "inhibitory": (k,), "readout": (r,)},
            **{"lateral": (k, m), "feedforward": (m, n), "classifier": (r, m)},
        }
        self._model = circuit.model
        self.shared: dict[str, bool] = {}
        for part in parts:
            for name, shared in part.variables().items():
                if name in self.shared:
                    raise ParameterError(f"two parts declare {name}: give one another name")
                self.shared[name] = shared
        self.short = {name.partition(".")[2]: name for name in self.shared}
        """The parts' variables as the reference's methods call them."""

    @cached_property
    def state(self) -> dict[str, float]:
        """Initial values of what is remembered."""
        return {name: float(v) for part in self.all for name, v in part.state.items()}

    @cached_property
    def parameters(self) -> dict[str, float]:
        """Values of what stays as it is."""
        return {name: float(v) for part in self.all for name, v in part.parameters.items()}

    def computed(self) -> set[str]:
        """Variables that are neither: the circuit computes them anew."""
        return self.shared.keys() - self.state.keys() - self.parameters.keys()

    def described(self) -> list[dict[str, Any]]:
        """All of them as text and numbers."""
        return [part.described() for part in self.all]

    def equations(self, home: str) -> str:
        """What they add to the equations of an object."""
        return "".join(f"\n{part.equations[home]}\n" for part in self.all if home in part.equations)

    def namespace(self) -> dict[str, Any]:
        """What names in their texts mean."""
        return {name: value for part in self.all for name, value in part.namespace.items()}

    def codes(self) -> list[tuple[str, str, str, str]]:
        """(part, object, stage, text): one for each object and stage of a part."""
        texts: dict[tuple[str, str, str], list[str]] = {}
        for part in self.all:
            for home, stage, text in part.code:
                texts.setdefault((part.name, home, stage), []).append(_plain_text(text))
        return [(*key, "\n".join(lines)) for key, lines in texts.items()]

    def values(self, state: CircuitState) -> dict[str, dict[str, Any]]:
        """Values of their variables at the start of a stream, by object and name."""
        found: dict[str, dict[str, Any]] = {}
        for name, value in (self.parameters | self.state).items():
            home, _, variable = name.partition(".")
            found.setdefault(home, {})[variable] = state.extra.get(name, value)
        return found

    # NumPy

    def require_numpy(self) -> None:
        """Refuse parts that only Brian2 can run."""
        for part in self.all:
            for _, stage, _ in part.code:
                if not callable(getattr(part, stage, None)):
                    raise ParameterError(
                        f"{part.name} has Brian2 text at {stage!r} and no method of that name, "
                        "which the NumPy reference needs: define it, or use ManifoldCircuit"
                    )

    def require_closed_form(self) -> None:
        """Refuse parts that act while the rates settle."""
        during = slots(*EACH_STEP)
        for part in self.all:
            moving = [m[1] for text in part.equations.values() for m in DECLARED.finditer(text)]
            acts = [stage for stage in during if callable(getattr(part, stage, None))]
            acts += [stage for _, stage, _ in part.code if stage in during]
            if acts or {"h", "u", "V"} & set(moving):
                raise ParameterError(
                    f"the closed form holds for rates that settle undisturbed, and {part.name} "
                    "acts while they do: use settling='dynamics', or another engine"
                )

    def at(self, stage: str, s: Scene) -> None:
        """What the parts do at a stage."""
        for part in self.all:
            method = getattr(part, stage, None)
            if callable(method):
                method(s)

    def read(self, state: CircuitState, name: str) -> Any:
        """The value of a variable as NumPy's methods see it."""
        home = name.partition(".")[0]
        value = state.extra.get(name, self.state.get(name, self.parameters.get(name, 0.0)))
        if self.shared[name]:
            return float(np.ravel(value)[0])
        shape = self._shapes[home]
        if len(shape) == 2 and np.ndim(value):
            return self._model.unpacked(home, np.asarray(value), shape)
        return np.broadcast_to(value, shape).astype(float)

    def write(self, state: CircuitState, name: str, value: Any) -> None:
        """Keep the value of a variable as Brian2 has it."""
        home, shape = name.partition(".")[0], self._shapes[name.partition(".")[0]]
        found: FloatArray = np.array(value, dtype=float)
        if self.shared[name]:
            found = found.reshape(1)
        else:
            found = np.broadcast_to(found, shape).copy()
            found = self._model.packed(home, found) if len(shape) == 2 else found
        state.extra[name] = found


class Scene:
    """The circuit as parts of the reference see it: ``s``."""

    def __init__(self, parts: Parts, state: CircuitState, **now: Any) -> None:
        self.__dict__.update(_parts=parts, state=state, **now)

    def __getattr__(self, name: str) -> Any:
        if name in self._parts.short:
            return self._parts.read(self.state, self._parts.short[name])
        return getattr(self.state, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._parts.short:
            self._parts.write(self.state, self._parts.short[name], value)
        elif name in self.__dict__:
            self.__dict__[name] = value
        elif hasattr(self.state, name):
            setattr(self.state, name, np.asarray(value))
        else:
            raise AttributeError(f"a circuit has no {name!r}: declare it in a part's equations")
