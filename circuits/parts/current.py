"""Current into cells: tau_h dh/dt, tau_u du/dt, or mu w.h + z are larger by it.

The unit of h is that of a settled response, |h| = 1; the unit of u is its size where it settles,
u_start/u_rest. Tiles that are not in use, and a circuit that no point drives, get none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from circuits.assembly.part import Part
from circuits.errors import ParameterError, shown
from circuits.lift import FloatArray
from circuits.parts.timing import HOMES, Amounts, Cells, Timed
from circuits.readout import LABEL

if TYPE_CHECKING:
    from circuits.base import Circuit


class Current(Timed):
    """Current into cells; see `circuits.parts.current`."""

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
        """Before ``steps``."""
        if len(self.amount) == 1:
            return self.amount[0] * self.active(presentations)
        since = presentations - self.at
        given = (since >= 0) & (since < len(self.amount))
        amounts = np.array(self.amount)[np.clip(since, 0, len(self.amount) - 1)]
        return np.where(given, amounts, 0.0) * self.active(presentations)


class Injected(Part):
    """One current; ``number`` is its column among the strengths."""

    called = "Current"

    def __init__(self, c: Circuit, number: int, current: Current) -> None:
        p, into = c.parameters, current.into
        self._number, self._current, home = number, current, HOMES[into]
        (size,) = p.shapes(c.lift.n_inputs)[into]
        if current.cells is not None and max(current.cells) >= size:
            raise ParameterError(
                f"a current into cell {shown(max(current.cells))} of {into}: there are {size}, "
                "counted from 0"
            )
        if current.steps is not None and len(current.steps) != p.steps_per_presentation:
            raise ParameterError(
                f"a current with {len(current.steps)} steps: a presentation has "
                f"steps_per_presentation={p.steps_per_presentation}"
            )
        self._cells = np.zeros(size)
        self._cells[slice(None) if current.cells is None else list(current.cells)] = 1.0
        pattern = f"perturbed_pattern_{number}"
        self.equations = {home: f"{pattern} : 1    # 1: the cell gets the current"}
        self.parameters: Mapping[str, Any] = {f"{home}.{pattern}": self._cells}
        amount = f"perturbed_{number}*{pattern}"
        amount += (
            "" if current.steps is None else f"*envelope_{number}((perturbed_step - 1)*usecond)"
        )
        self.follows_h = into == "y"
        self.code = {
            "h": (
                (
                    "before_rates",
                    f"inhibition -= where(in_use > 0, 1/where(gain > 0, gain, inf), 0)*{amount}",
                ),
            ),
            "u": (
                ("before_rates", f"excitation += u_start/where(u_rest > 0, u_rest, inf)*{amount}"),
            ),
            # z is the label again when it is cleared: others ask whether there is one.
            "y": (("before_answer", f"z += {amount}"), ("after_answer", LABEL)),
        }[into]
        self.code = tuple((home, *entry, f"current_{number}_{entry[0]}") for entry in self.code)
        for entry in self.code:
            setattr(self, entry[1], getattr(self, f"_{entry[1]}"))

    @property
    def namespace(self) -> dict[str, Any]:  # type: ignore[override]
        """What it is multiplied by from step to step."""
        if self._current.steps is None:
            return {}
        from brian2 import TimedArray, us

        name = f"envelope_{self._number}"
        return {name: TimedArray(np.array(self._current.steps), dt=us, name=name)}

    def texts(self) -> dict[str, Any]:
        """What it adds to the program, with the steps, which are compiled in."""
        return super().texts() | {"steps": self._current.steps}

    def moves_rates(self) -> bool:
        """A constant current into h only moves where the rates settle."""
        return self._current.into == "u" or self._current.steps is not None

    def _amount(self, s: Any) -> Any:
        steps = self._current.steps
        return (
            s.strengths[self._number] * (1.0 if steps is None else steps[s.step - 1]) * self._cells
        )

    # The same in NumPy; a part has the methods of its own stages.

    def _before_rates(self, s: Any) -> None:
        if self._current.into == "u":
            there = s.u_rest > 0
            unit = np.divide(s.u_start, s.u_rest, out=np.zeros_like(s.u_rest), where=there)
            s.excitation = s.excitation + unit * self._amount(s)
        elif np.all(s.gain > 0):
            s.inhibition = s.inhibition - np.where(s.recruited >= 0, self._amount(s) / s.gain, 0.0)

    def settled(self, s: Any, a: FloatArray) -> FloatArray:
        """The drive that the rates settle on with the current."""
        if self._current.into != "h" or not s.gain > 0:
            return a
        driven: FloatArray = a + np.where(s.recruited >= 0, self._amount(s) / s.gain, 0.0)
        return driven

    def _before_answer(self, s: Any) -> None:
        s.z = s.z + self._amount(s)

    def _after_answer(self, s: Any) -> None:
        s.z = s.label
