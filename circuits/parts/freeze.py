"""Plasticity that stops: V stays as the last presentation left it, W, b and w do not learn, and
no tile is recruited. What is frozen is kept before it would change, and put back after."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from circuits.assembly.part import Part
from circuits.parts.timing import HOMES, SIDE, Timed, listed


class Freeze(Timed):
    """Plasticity that stops, of V, W, b and w, and of "tiles", which are no more recruited."""

    what: Annotated[
        tuple[Literal["V", "W", "b", "w", "tiles"], ...],
        Field(min_length=1),
        BeforeValidator(listed),
    ] = ("W", "b", "w", "tiles")

    @field_validator("what")
    @classmethod
    def _check_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("must name nothing twice")
        return value


class Frozen(Part):
    """One `Freeze`; ``number`` is its column among the strengths."""

    called = "Freeze"

    def __init__(self, number: int, freeze: Freeze, recruits: bool) -> None:
        self._number, self._what, self._kept = number, freeze.what, {}  # type: ignore[var-annotated]
        self.equations, code = {}, []
        for name in freeze.what:
            if name == "tiles":
                if recruits:
                    held = f"joins = int(where(perturbed_{number} > 0, 0, joins))"
                    code.append(("excitatory", "recruit", held, f"freeze_{number}"))
                continue
            home, kept = HOMES[name], f"perturbed_kept_{name}_{number}"
            held = f"(perturbed_{number}{SIDE.get(home, '')} > 0)"
            self.equations[home] = (
                f"{self.equations.get(home, '')}\n{kept} : 1    # {name} as it was"
            )
            places = [("before_learn", "after_learn", held)]
            if name == "V":  # at rest before the circuit's first presentation
                first = f"{held} and (perturbed_number_pre > 0)"
                places = [("before_sums", "after_lateral", held)]
                places += [("before_restart", "after_restart", first)]
            for before, after, when in places:
                code.append((home, before, f"{kept} = {name}", f"freeze_{number}_{before}"))
                put_back = f"{name} = where({when}, {kept}, {name})"
                code.append((home, after, put_back, f"freeze_{number}_{after}"))
                setattr(self, before, self._keep)
                setattr(self, after, partial(self._put_back, "V" if name == "V" else "Wbw"))
        self.code = code

    def moves_rates(self) -> bool:
        """Rates settle elsewhere only if V cannot follow."""
        return "V" in self._what

    # The same in NumPy; a part has the methods of its own stages.

    def recruit(self, s: Any) -> None:
        """Tiles are not recruited."""
        if "tiles" in self._what and s.strengths[self._number] > 0:
            s.joins = None

    def _keep(self, s: Any) -> None:
        self._kept |= {name: getattr(s, name) for name in self._what if name != "tiles"}

    def _put_back(self, names: str, s: Any) -> None:
        """Not before the circuit's first presentation, where V was never left by another."""
        for name in names if s.strengths[self._number] > 0 else ():
            if name in self._what and (name != "V" or s.number > 0 or s.step > 0):
                setattr(s, name, self._kept[name])
