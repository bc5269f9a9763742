"""Perturbations as values: lesions, currents, noise, frozen plasticity, delays, unequal gains.

    from circuits import Lesion, ManifoldCircuit, Noise

    lesioned = [Lesion(tiles=0.5, at=1000), Noise(on="W", size=1e-3)]
    circuit = ManifoldCircuit(parameters, lift, perturbations=lesioned)

Times are presentations of the circuit's life, the first being 0: what holds ``at`` one holds for
that presentation and those after it, up to ``until``, which is not included. A prediction finds the
circuit as the next presentation would. `circuits.perturbing` says what each of them does, on Brian2
and in NumPy.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, field_validator, model_validator

from circuits.errors import ParameterError, shown
from circuits.lift import FloatArray
from circuits.parameters import Duration, Number, Parameters

MOST = 2**31 - 1
"""Presentations and seeds are 32-bit integers to Brian2."""


def _plain(value: Any) -> Any:
    """NumPy's arrays and numbers, and ranges, as Python's own."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    several = isinstance(value, list | tuple | range)
    return [_plain(one) for one in value] if several else value


def _listed(value: Any) -> Any:
    """Several values for one or many."""
    value = _plain(value)
    return value if isinstance(value, list) else (value,)


Presentation = Annotated[int, Field(ge=0, le=MOST, strict=True), BeforeValidator(_plain)]
Seed = Annotated[int, Field(ge=0, le=MOST, strict=True), BeforeValidator(_plain)]
Share = Annotated[float, Field(gt=0, le=1, strict=True), BeforeValidator(_plain)]
Cells = Annotated[
    tuple[Annotated[int, Field(ge=0, strict=True)], ...],
    Field(min_length=1),
    BeforeValidator(_listed),
]
ShareOrCells = Annotated[Share | Cells, BeforeValidator(_plain)]
Amounts = Annotated[
    tuple[Annotated[Number, Field(allow_inf_nan=False)], ...],
    Field(min_length=1),
    BeforeValidator(_listed),
]


class Perturbation(Parameters):
    """What all perturbations have in common."""

    def as_dict(self) -> dict[str, Any]:
        """Its values as plain numbers and text; what was left out is left out."""
        return self.model_dump(by_alias=True, mode="json", exclude_defaults=True)

    def described(self) -> dict[str, Any]:
        """Its kind and its values, as results hold them."""
        return {"kind": kind_of(self), **self.as_dict()}


class Timed(Perturbation):
    """A perturbation that begins, and may end."""

    at: Presentation = 0
    """The first presentation it holds for."""
    until: Presentation | None = None
    """The first one it holds for no more; None is never."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise ValueError(f"until={self.until} must be after at={self.at}")
        return self

    def active(self, presentations: NDArray[np.int64]) -> FloatArray:
        """1 for the presentations it holds for, 0 for others."""
        ended = False if self.until is None else presentations >= self.until
        return np.where((presentations >= self.at) & ~np.asarray(ended), 1.0, 0.0)


LESIONED = ("tiles", "interneurons", "lateral", "feedforward", "classifier")
"""What a lesion can be of."""


class Lesion(Perturbation):
    """Cells or synapses that are gone for good.

    A tile that is gone does not fire, is not recruited, and has no synapses; an interneuron
    likewise; a synapse that is cut has no weight. Each is a share of all that the circuit was made
    with, chosen at random from those that earlier lesions have left, or, of cells, their numbers.
    """

    at: Presentation = 0
    """The first presentation that finds them gone."""
    tiles: ShareOrCells | None = None
    interneurons: ShareOrCells | None = None
    lateral: Share | None = None
    """Share of the synapses V."""
    feedforward: Share | None = None
    """Share of the synapses W."""
    classifier: Share | None = None
    """Share of the synapses w."""
    seed: Seed = 0
    """Of the choice."""

    @model_validator(mode="after")
    def _check_something(self) -> Self:
        if all(getattr(self, name) is None for name in LESIONED):
            raise ValueError(f"a lesion must say of what: give one of {', '.join(LESIONED)}")
        return self

    def require_hits(self, counts: dict[str, int]) -> None:
        """Refuse what would hit nothing of a circuit that has so many."""
        for name in LESIONED:
            value, count = getattr(self, name), counts[name]
            if isinstance(value, float) and round(value * count) == 0:
                raise ParameterError(
                    f"a lesion of {name}={value:g} hits none of {count}: give a larger share"
                )
            if isinstance(value, tuple) and max(value) >= count:
                raise ParameterError(
                    f"a lesion of {name} {shown(max(value))}: there are {count}, counted from 0"
                )

    def chosen(self, name: str, left: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which are hit: a share of all, rounded to whole ones, from those that are ``left``, or
        those of these numbers."""
        value, found = getattr(self, name), np.zeros(len(left), bool)
        if isinstance(value, float):
            rng = np.random.default_rng([self.seed, LESIONED.index(name)])
            found[rng.permutation(np.flatnonzero(left))[: round(value * len(left))]] = True
        elif value is not None:
            found[list(value)] = True
        return found


class Current(Timed):
    """Current into cells, in the units of their rates: tau_h dh/dt, tau_u du/dt, and mu w.h + z,
    of which y is the clipped value, are larger by it.

    The unit of h is that of a settled response, |h| = 1. The unit of u is sqrt(|[a]_+|) under gain
    control, the size of u where it settles: so a current matters alike for strong and weak drives,
    and a circuit that no point drives gets none. With a constant gain it is 1. Tiles that are not
    in use get none.
    """

    into: Literal["h", "u", "y"]
    amount: Amounts
    """One number, or one for each presentation from ``at`` on; after the last there is none."""
    cells: Cells | None = None
    """Numbers of the cells that get it; None is all."""
    steps: Amounts | None = None
    """What it is multiplied by at every step of a presentation; None is 1."""

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        if self.into == "y" and self.steps is not None:
            raise ValueError("steps does nothing for y, which answers once per presentation")
        return self

    def strength(self, presentations: NDArray[np.int64]) -> FloatArray:
        """The current at these presentations, before ``steps``."""
        if len(self.amount) == 1:
            return self.amount[0] * self.active(presentations)
        since = presentations - self.at
        given = (since >= 0) & (since < len(self.amount))
        amounts = np.array(self.amount)[np.clip(since, 0, len(self.amount) - 1)]
        return np.where(given, amounts, 0.0) * self.active(presentations)


NoisyVariable = Literal["h", "u", "y", "V", "W", "b", "w"]
NOISY: tuple[str, ...] = get_args(NoisyVariable)
"""What there can be noise on; the place of each is part of what its numbers follow from."""


class Noise(Timed):
    """Gaussian noise on rates or synapses, independent from cell to cell and variable to variable.

    h, u and V: white noise, ``size`` sqrt(dt/tau) n at every step, in the units of `Current`, after
    which they are cut at zero; y: ``size`` n, once per presentation, after which it is cut at -1
    and 1 unless the model has a readout of its own; W, b and w: ``size`` n after every presentation
    that the circuit learns from, of tiles in use, frozen or not. The numbers n follow from seed,
    variable, presentation, step and cell (`circuits.parts.gaussian`): the same variable and seed
    give the same numbers.
    """

    on: NoisyVariable
    size: Number = Field(ge=0, allow_inf_nan=False)
    seed: Seed = 0


class Freeze(Timed):
    """Plasticity that stops: of V, which stays as the last presentation left it, of W, b and w,
    which no more learn, and of "tiles", which are no more recruited."""

    what: Annotated[
        tuple[Literal["V", "W", "b", "w", "tiles"], ...],
        Field(min_length=1),
        BeforeValidator(_listed),
    ] = ("W", "b", "w", "tiles")

    @field_validator("what")
    @classmethod
    def _check_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("must name nothing twice")
        return value


class Delay(Perturbation):
    """Transmission delay between excitatory and inhibitory cells, both ways: `CircuitModel.delay`.

    It holds from the start.
    """

    time_: Duration = Field(alias="time", ge=0, allow_inf_nan=False)


class UnequalGain(Perturbation):
    """Tiles whose net input is multiplied by factors that differ: exp(spread n - spread^2/2), with
    mean 1. It holds from the start."""

    spread: Number = Field(ge=0, le=3)
    seed: Seed = 0

    def factors(self, count: int) -> FloatArray:
        """One for each tile."""
        drawn = np.random.default_rng(self.seed).standard_normal(count)
        return np.exp(self.spread * drawn - self.spread**2 / 2)


KINDS: dict[str, type[Perturbation]] = {
    "lesion": Lesion,
    "current": Current,
    "noise": Noise,
    "freeze": Freeze,
    "delay": Delay,
    "gain": UnequalGain,
}
"""Perturbations by the names they have on the command line and in files."""


def kind_of(perturbation: Perturbation) -> str:
    """The name of its kind."""
    return next(name for name, kind in KINDS.items() if type(perturbation) is kind)


def checked_perturbations(given: Any) -> tuple[Perturbation, ...]:
    """Perturbations as a tuple, or an error that says which one is none."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ParameterError(f"perturbations must be a list of them, got {shown(given)}")
    found = tuple(given)
    for one in found:
        if not isinstance(one, Perturbation) or type(one) not in KINDS.values():
            names = ", ".join(kind.__name__ for kind in KINDS.values())
            raise ParameterError(f"a perturbation is one of {names}, got {shown(one)}")
    return found


def perturbation_from(values: Any) -> Perturbation:
    """A perturbation from what `Perturbation.described` made of it."""
    if not isinstance(values, dict):
        raise ParameterError(f"a perturbation must have a kind and values, got {shown(values)}")
    kind = values.get("kind")
    return _class_of(kind)(**{name: value for name, value in values.items() if name != "kind"})


def parse_perturbation(text: str) -> Perturbation:
    """A perturbation as it is typed, KIND:KEY=VALUE,KEY=VALUE; several values have a + between.

    >>> parse_perturbation("lesion:tiles=0.5,at=1000")
    Lesion(at=1000, tiles=0.5)
    """
    kind, _, rest = text.partition(":")
    values: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, separator, value = (part.strip() for part in item.partition("="))
        if not separator or not key or not value:
            raise ParameterError(
                f"a perturbation is kind:key=value,key=value such as lesion:tiles=0.5,at=1000, got "
                f"{shown(text)}"
            )
        if key in values:
            raise ParameterError(f"{shown(key)} is given twice in {shown(text)}")
        values[key] = _value(value)
    return _class_of(kind.strip())(**values)


def _class_of(kind: Any) -> type[Perturbation]:
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    near = difflib.get_close_matches(kind, KINDS, 1) if isinstance(kind, str) else []
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(KINDS)}"
    raise ParameterError(f"there is no perturbation {shown(kind)}: {hint}")


def _value(text: str) -> Any:
    """A number, a word, or several with a + between them; 1e+3 is one number."""
    for read in (json.loads, float):  # the first tells whole numbers, the second reads .5
        try:
            return read(text)
        except (ValueError, RecursionError):
            continue
    parts = text.split("+")
    return [_value(part.strip()) for part in parts] if len(parts) > 1 else text
