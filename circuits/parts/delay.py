"""A transmission delay between tiles and interneurons, both ways: sums see the rates of D steps
ago, V learns from those that are now."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from circuits.assembly.part import Part
from circuits.errors import ParameterError, shown
from circuits.parameters import Duration, format_seconds
from circuits.parts.timing import Perturbation

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.model import CircuitModel
    from circuits.state import CircuitState, Task


class Delay(Perturbation):
    """Transmission delay between excitatory and inhibitory cells, both ways: `CircuitModel.delay`.

    It holds from the start.
    """

    time_: Duration = Field(alias="time", ge=0, allow_inf_nan=False)


def delayed(model: CircuitModel, perturbations: Iterable[Any]) -> CircuitModel:
    """The model with the delay that is among the perturbations, if there is one."""
    for one in perturbations:
        if isinstance(one, Delay):
            if model.delay != "0 ms":
                raise ParameterError(
                    f"the model has a delay of {model.delay}, and {shown(one)} is another: leave "
                    "one out"
                )
            return dataclasses.replace(model, delay=format_seconds(one.time_))
    return model


class DelayLine(Part):
    """The rates of the last D steps: ``h_past_1`` is the latest."""

    called = "Delay"

    def __init__(self, c: Circuit) -> None:
        self._reset = c.parameters.reset
        line = c.model.delay_line(c.parameters)
        self.state = dict.fromkeys(line, 0.0)
        self._past = {r: [n.partition(".")[2] for n in line if f".{r}_" in n] for r in "hu"}
        code: list[tuple[str, ...]] = []
        self.equations = {}
        for home, rate in (("excitatory", "h"), ("inhibitory", "u")):
            past = self._past[rate]
            lines = [f"{name} : 1    # on its way" for name in past]
            self.equations[home] = "\n".join([*lines, f"{rate}_seen = {past[-1]} : 1"])
            move = "\n".join(f"{to} = {source}" for to, source in self._moves(rate))
            code.append((home, "before_rates", move, "transmit"))
            kept = "where(gain > 0, {}, 0)" if rate == "h" else "kept*{}"
            begin = [f"{name} = {rate if self._reset else kept.format(name)}" for name in past]
            code.append((home, "after_restart", "\n".join(begin), "refill"))
        self.code = code

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """Before the first presentation nothing is on its way but what the rates are."""
        now = {"h": state.h, "u": state.u}
        return {n: now[n.partition(".")[2][0]] for n in self.state if n not in state.extra}

    def _moves(self, rate: str) -> Iterator[tuple[str, str]]:
        """The oldest rate first: each takes the value of the one after it."""
        past = self._past[rate]
        return zip(reversed(past), [*reversed(past[:-1]), rate], strict=True)

    # The same in NumPy

    def sums(self, s: Any) -> None:
        """The sums see late rates."""
        h, u = (getattr(s, self._past[rate][-1]) for rate in "hu")
        s.inhibition, s.excitation = u @ s.V, s.V @ h

    def before_rates(self, s: Any) -> None:
        """Rates move along."""
        for to, source in (move for rate in "hu" for move in self._moves(rate)):
            setattr(s, to, getattr(s, source))

    def after_restart(self, s: Any) -> None:
        """Fill the line, or scale what carries over."""
        covered = float(np.all(np.asarray(s.gain) > 0))
        for rate, kept in (("h", covered), ("u", s.kept)):
            for name in self._past[rate]:
                setattr(s, name, getattr(s, rate) if self._reset else kept * getattr(s, name))
