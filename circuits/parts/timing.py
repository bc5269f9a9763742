"""What perturbations have in common: values that can be written down, and when they hold.

A perturbation that comes and goes has a strength for every presentation, zero where it does not
hold. The strengths are a stream like the points and labels, with a column for each perturbation;
``perturbed_0``, ``perturbed_1``, ... are those of the presentation that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from circuits.assembly.part import Part
from circuits.lift import FloatArray
from circuits.parameters import Number, Parameters

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task

MOST = 2**31 - 1
"""Presentations and seeds are 32-bit integers to Brian2."""


def plain(value: Any) -> Any:
    """NumPy's arrays and numbers, and ranges, as Python's own."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    several = isinstance(value, list | tuple | range)
    return [plain(one) for one in value] if several else value


def listed(value: Any) -> Any:
    """Several values for one or many."""
    value = plain(value)
    return value if isinstance(value, list) else (value,)


Presentation = Annotated[int, Field(ge=0, le=MOST, strict=True), BeforeValidator(plain)]
Seed = Presentation
Share = Annotated[float, Field(gt=0, le=1, strict=True), BeforeValidator(plain)]
Cells = Annotated[
    tuple[Annotated[int, Field(ge=0, strict=True)], ...],
    Field(min_length=1),
    BeforeValidator(listed),
]
ShareOrCells = Annotated[Share | Cells, BeforeValidator(plain)]
Amounts = Annotated[
    tuple[Annotated[Number, Field(allow_inf_nan=False)], ...],
    Field(min_length=1),
    BeforeValidator(listed),
]

HOMES = {
    **{"h": "excitatory", "u": "inhibitory", "y": "readout", "b": "excitatory"},
    **{"V": "lateral", "W": "feedforward", "w": "classifier"},
}
"""The object of the network that a variable belongs to."""

SIDE = {"lateral": "_pre", "feedforward": "_post", "classifier": "_pre"}
"""From a synapse to the cell at which it looks a strength up."""


class Perturbation(Parameters):
    """What all perturbations have in common."""

    def as_dict(self) -> dict[str, Any]:
        """Its values as plain numbers and text, without defaults."""
        return self.model_dump(by_alias=True, mode="json", exclude_defaults=True)


class Timed(Perturbation):
    """A perturbation that begins, and may end."""

    at: Presentation = 0
    """The first presentation it holds for."""
    until: Presentation | None = None
    """The first presentation that it no longer affects; None: it never ends."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise ValueError(f"until={self.until} must be after at={self.at}")
        return self

    def active(self, presentations: NDArray[np.int64]) -> FloatArray:
        """1 for the presentations it holds for, 0 for others."""
        ended = False if self.until is None else presentations >= self.until
        return np.where((presentations >= self.at) & ~np.asarray(ended), 1.0, 0.0)

    def strength(self, presentations: NDArray[np.int64]) -> FloatArray:
        """How strong it is at these presentations."""
        return self.active(presentations)

    def factor(self, c: Circuit, learn: bool) -> float:
        """What its strength is multiplied by in a circuit, in a run that learns or not."""
        return 1.0


class Timing(Part):
    """Strengths, seeds, and the numbers of the presentation and of the step, where perturbations
    look them up."""

    def __init__(self, c: Circuit, timed: Sequence[Any]) -> None:
        self._timed = [(one, one.factor(c, False), one.factor(c, True)) for one in timed]
        seeds = {
            f"perturbed_seed_{i}": one.seed for i, one in enumerate(timed) if hasattr(one, "seed")
        }
        strengths = [f"perturbed_{i}" for i in range(len(timed))]
        numbers = [*seeds, "perturbed_number", "perturbed_step"]
        declared = [f"{name} : 1" for name in strengths] + [f"{name} : integer" for name in numbers]
        cells = ("excitatory", "inhibitory", "readout")
        self.equations = {"inputs": "\n".join(f"{line} (shared)" for line in declared)}
        self.equations |= dict.fromkeys(cells, "\n".join(f"{line} (linked)" for line in declared))
        self.links = {f"{c}.{n}": f"inputs.{n}" for c in cells for n in strengths + numbers}
        rows = [f"{n} = strengths(presentation*usecond, {i})" for i, n in enumerate(strengths)]
        load = "\n".join([*rows, "perturbed_number += 1", "perturbed_step = 0"])
        self.code = (
            ("inputs", "load", load, "perturbed_load"),
            ("inputs", "before_sums", "perturbed_step += 1", "count"),
        )
        self._seeds = seeds

    def moves_rates(self) -> bool:
        """It only counts."""
        return False

    def streams(self, presentations: NDArray[np.int64], learn: bool) -> dict[str, FloatArray]:
        """(presentation, perturbation): how strong each is."""
        columns = [one.strength(presentations) * factors[learn] for one, *factors in self._timed]
        return {"strengths": np.array(columns).T}

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """Presentations are numbered in the circuit's life."""
        return {"inputs.perturbed_number": task.first - 1} | {
            f"inputs.{name}": seed for name, seed in self._seeds.items()
        }
