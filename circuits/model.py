"""The model as a value: equations, learning rules, connections, delay and order of events.

For example, a leak in the excitatory cells:

    from circuits import CircuitModel, ManifoldCircuit, Rule

    leaky = Rule("dh/dt = (gain*(a - inhibition) - 0.1*h)/tau_h : 1")
    circuit = ManifoldCircuit(parameters, lift, model=CircuitModel(excitatory=leaky))
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from circuits import readout, reference, tiling
from circuits.errors import InputError, ParameterError
from circuits.lift import FloatArray
from circuits.parameters import format_seconds, seconds
from circuits.parts.other_readouts import GATED, learn_gated
from circuits.stages import EACH_PRESENTATION, EACH_STEP

if TYPE_CHECKING:
    from circuits.parameters import CircuitParameters

SYNAPSES = {"lateral": "V", "feedforward": "W", "classifier": "w"}
"""The synapses, and the weights they have."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """One rule of the circuit: its Brian2 text, and the NumPy function that computes the same.

    Without a function the rule runs on Brian2 alone, and the NumPy reference refuses it.
    """

    brian2: str
    numpy: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "brian2", self.brian2.strip())


READOUT = {name: Rule(text, reference.ANSWER[name]) for name, text in readout.ANSWER.items()}
"""The readout's nonlinearities by name."""

CLASSIFY = {
    "paper": Rule(readout.CLASSIFIER, reference.learn_classifier),
    "gated": Rule(GATED, learn_gated),
}
"""How w learns, by name."""


@dataclass(frozen=True, eq=False)
class CircuitModel:
    """What a circuit computes; the default is the paper's.

    Every rule is a `Rule`: Brian2 text, and beside it the NumPy function of the same, which the
    reference needs. A text alone may be given where a rule is asked for. What stands in the texts
    besides the state is set by `CircuitParameters` (``gain``, ``tau_h``, ``eta``, ...), declared in
    the text itself, or found in ``namespace``.
    """

    excitatory: Rule = Rule(tiling.EXCITATORY, reference.step_excitatory)
    """Equations of the tiles: ``dh/dt``, and whatever else the cells have. NumPy:
    (h, a, inhibition, gamma_h) -> h."""
    inhibitory: Rule = Rule(tiling.INHIBITORY, reference.step_inhibitory)
    """Equations of the interneurons: ``du/dt``. NumPy: (u, excitation, gamma_u) -> u."""
    lateral: Rule = Rule(tiling.LATERAL, reference.step_lateral)
    """Equations of the fast synapses: ``dV/dt``. NumPy: (V, u, h, gamma_V) -> V."""
    readout: Rule | None = None
    """Code that computes y from ``net`` = w.h (w.h/sum(h) under the gated rule), z and mu. NumPy:
    (net, z, mu) -> y. ``None`` is the nonlinearity that ``CircuitParameters.readout`` names."""
    feedforward: Rule = Rule(tiling.FEEDFORWARD, reference.learn_feedforward)
    """Code by which W learns. NumPy: (W, h, x, eta) -> W."""
    bias: Rule = Rule(tiling.BIAS, reference.learn_bias)
    """Code by which b learns. NumPy: (b, h, alpha, eta) -> b."""
    classifier: Rule | None = None
    """Code by which w learns, at ``rate``. NumPy: (w, y, h, rate) -> w. ``None`` is the rule that
    ``CircuitParameters.readout_rule`` names."""
    connections: Mapping[str, Any] = field(default_factory=dict)
    """Which pairs are connected: a mask of the shape of V (k, m), W (m, n) or w (r, m) under
    "lateral", "feedforward" or "classifier"; all pairs where there is none."""
    delay: Any = "0 ms"
    """Transmission delay between excitatory and inhibitory cells, both ways, a time with a unit;
    rounded to steps. V itself learns from the rates as they are."""
    each_step: tuple[str, ...] = EACH_STEP
    """What happens every step, in this order; with "rates" before "lateral", V sees new rates."""
    each_presentation: tuple[str, ...] = EACH_PRESENTATION
    """What happens on the last step of a presentation; "learn" can be left out."""
    namespace: Mapping[str, Any] = field(default_factory=dict)
    """What names in the texts mean: numbers, Brian2 quantities, or TimedArrays."""

    def __post_init__(self) -> None:
        for name in RULES:
            self._set(name, _checked_rule(name, getattr(self, name)))
        self._set("connections", {k: _checked_mask(k, v) for k, v in self.connections.items()})
        self._set("namespace", dict(self.namespace))
        for value in self.namespace.values():
            described_value(value)  # refuses what cannot be described
        try:
            delay = seconds(self.delay)
        except ValueError as error:
            raise ParameterError(f"delay {error}") from None
        if not 0 <= delay < np.inf:
            raise ParameterError(f"delay must be finite and at least 0, got {self.delay!r}")
        self._set("delay", format_seconds(delay))
        self._set("each_step", tuple(self.each_step))
        if self.each_step not in (EACH_STEP, ("sums", "rates", "lateral")):
            raise ParameterError(
                f"each_step must be sums, then lateral and rates in either order, got "
                f"{', '.join(self.each_step)}"
            )
        self._set("each_presentation", tuple(self.each_presentation))
        frozen = tuple(name for name in EACH_PRESENTATION if name != "learn")
        if self.each_presentation not in (EACH_PRESENTATION, frozen):
            raise ParameterError(
                f"each_presentation must be {', '.join(EACH_PRESENTATION)}, with or without "
                f"learn, got {', '.join(self.each_presentation)}"
            )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def learns(self) -> bool:
        """Whether W, b and w change, but for tiles that are recruited."""
        return "learn" in self.each_presentation

    def answer(self, p: CircuitParameters) -> Rule:
        """The rule of the readout."""
        return READOUT[p.readout] if self.readout is None else self.readout

    def classify(self, p: CircuitParameters) -> Rule:
        """The rule by which w learns."""
        return CLASSIFY[p.readout_rule] if self.classifier is None else self.classifier

    def functions(self, p: CircuitParameters) -> dict[str, Any]:
        """The NumPy functions of all rules, by name."""
        named = {"readout": self.answer, "classifier": self.classify}
        rules = {n: named[n](p) if n in named else getattr(self, n) for n in RULES}
        for name, rule in rules.items():
            if rule.numpy is None:
                raise ParameterError(
                    f"the rule {name!r} has only Brian2 text, which the NumPy reference cannot "
                    f"run: give Rule(text, function), or use ManifoldCircuit"
                )
        return {name: rule.numpy for name, rule in rules.items()}

    def delay_steps(self, p: CircuitParameters) -> int:
        """The delay in steps of dt."""
        steps = round(seconds(self.delay) / p.dt_)
        if steps >= p.steps_per_presentation:
            raise ParameterError(
                f"a delay of {self.delay} is {steps} steps, and a presentation has only "
                f"{p.steps_per_presentation}: give a shorter one, or more steps_per_presentation"
            )
        return steps

    def delay_line(self, p: CircuitParameters) -> list[str]:
        """The variables that hold rates on their way, as "group.variable", the latest first."""
        return [
            f"{group}.{name}_past_{step}"
            for step in range(1, self.delay_steps(p) + 1)
            for group, name in (("excitatory", "h"), ("inhibitory", "u"))
        ]

    def mask(self, synapses: str) -> Mask | None:
        """Which pairs the synapses of this name connect, as (post, pre); None is all of them."""
        found: Mask | None = self.connections.get(synapses)
        return found

    def masked(self, synapses: str, weights: FloatArray) -> FloatArray:
        """Weights with those of unconnected pairs at zero."""
        mask = self.mask(synapses)
        return weights if mask is None else np.where(mask, weights, 0.0)

    def packed(self, synapses: str, weights: FloatArray) -> FloatArray:
        """Weights of the connected pairs in a row: as Brian2 numbers its synapses."""
        mask = self.mask(synapses)
        return weights.ravel() if mask is None else weights[mask]

    def unpacked(self, synapses: str, values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The inverse of `packed`, along the last axis of ``values``."""
        mask = self.mask(synapses)
        if mask is None:
            return values.reshape(*values.shape[:-1], *shape)
        weights = np.zeros((*values.shape[:-1], *shape))
        weights[..., mask] = values
        return weights

    def check(self, p: CircuitParameters, n_inputs: int) -> None:
        """Refuse what does not fit a circuit of this size."""
        for name, mask in self.connections.items():
            shape = p.shapes(n_inputs)[SYNAPSES[name]]
            if mask.shape != shape:
                raise InputError(
                    f"the mask of {name!r} must have the shape of {SYNAPSES[name]}, {shape}, got "
                    f"{mask.shape}"
                )
        self.delay_steps(p)

    def require_closed_form(self) -> None:
        """Refuse a model whose rates settle elsewhere than the paper's."""
        default = CircuitModel()
        changed = [
            name
            for name in ("excitatory", "inhibitory", "lateral", "delay", "each_step")
            if getattr(self, name) != getattr(default, name)
        ]
        changed += ["connections['lateral']"] if "lateral" in self.connections else []
        if changed:
            raise ParameterError(
                f"the closed form holds for the paper's dynamics, and this model changes "
                f"{', '.join(changed)}: use settling='dynamics'"
            )

    def as_dict(self) -> dict[str, Any]:
        """The model as text and plain values: what describes it, and what its build depends on."""
        described: dict[str, Any] = {
            name: rule.brian2 if rule is not None else None
            for name in RULES
            for rule in [getattr(self, name)]
        }
        described["connections"] = {
            name: ["".join("01"[value] for value in row) for row in mask.astype(int)]
            for name, mask in sorted(self.connections.items())
        }
        described |= {"delay": self.delay, "each_step": list(self.each_step)}
        described["each_presentation"] = list(self.each_presentation)
        described["namespace"] = {
            name: described_value(value) for name, value in sorted(self.namespace.items())
        }
        return described

    def changes(self) -> dict[str, Any]:
        """What differs from the paper's circuit; empty for the default."""
        default = CircuitModel().as_dict()
        return {name: value for name, value in self.as_dict().items() if value != default[name]}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CircuitModel):
            return NotImplemented
        same_rules = all(getattr(self, name) == getattr(other, name) for name in RULES)
        return same_rules and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.as_dict(), sort_keys=True))

    def __repr__(self) -> str:
        changes = ", ".join(f"{name}={value!r}" for name, value in self.changes().items())
        return f"CircuitModel({changes})"


RULES = tuple(f.name for f in fields(CircuitModel) if "Rule" in str(f.type))
"""Names of the fields that are rules."""


def _checked_rule(name: str, rule: Any) -> Rule | None:
    if rule is None and name in ("readout", "classifier"):
        return None
    if isinstance(rule, str):
        rule = Rule(rule)
    if not isinstance(rule, Rule) or not rule.brian2:
        raise ParameterError(f"{name} must be a Rule or its Brian2 text, got {rule!r}")
    return rule


def _checked_mask(name: str, mask: Any) -> Mask:
    if name not in SYNAPSES:
        raise ParameterError(f"connections takes {', '.join(SYNAPSES)}, got {name!r}")
    found = np.array(mask)
    if found.ndim != 2 or not np.isin(found, (0, 1)).all():
        raise ParameterError(f"the mask of {name!r} must be a matrix of 0 and 1")
    if not found.any():
        raise ParameterError(f"the mask of {name!r} connects nothing")
    found = found.astype(bool)
    found.flags.writeable = False
    return found


def described_value(value: Any) -> Any:
    """A value of the namespace as something to read, and to tell it from others."""
    values = getattr(value, "values", None)
    if isinstance(values, np.ndarray):  # a TimedArray
        digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]
        about = {"values": digest, "shape": list(values.shape), "dt": float(value.dt)}
        return about | {"dimensions": str(getattr(value, "dim", ""))}
    if isinstance(value, bool | int | float | np.number):
        return float(value)
    if hasattr(value, "dim") and np.ndim(value) == 0:
        return {"value": float(value), "dimensions": str(value.dim)}
    raise ParameterError(
        f"namespace takes numbers, quantities and TimedArrays, got {value!r}: other objects can be "
        "added with extend="
    )
