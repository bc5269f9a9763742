"""Cells or synapses that are gone for good.

A tile that is gone does not fire, is not recruited, and has no synapses; an interneuron likewise; a
synapse that is cut has no weight. Cells are taken out of the state between two presentations, where
a stream is cut; synapses, see `circuits.parts.cut`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from circuits.assembly.part import Part
from circuits.errors import ParameterError, shown
from circuits.model import SYNAPSES
from circuits.parts.timing import Perturbation, Presentation, Seed, Share, ShareOrCells
from circuits.state import GONE, CircuitState, Task

if TYPE_CHECKING:
    from circuits.base import Circuit

LESIONED = ("tiles", "interneurons", "lateral", "feedforward", "classifier")
"""What a lesion can be of."""


class Lesion(Perturbation):
    """Cells or synapses that are gone for good.

    Each is a share of all that the circuit was made with, chosen at random from those that earlier
    lesions have left, or, of cells, their numbers.
    """

    at: Presentation = 0
    """The first presentation that finds them gone."""
    tiles: ShareOrCells | None = None
    interneurons: ShareOrCells | None = None
    lateral: Share | None = None  # of the synapses V
    feedforward: Share | None = None  # W
    classifier: Share | None = None  # w
    seed: Seed = 0

    @model_validator(mode="after")
    def _check_something(self) -> Self:
        if all(getattr(self, name) is None for name in LESIONED):
            raise ValueError(f"a lesion must say of what: give one of {', '.join(LESIONED)}")
        return self

    def chosen(self, name: str, left: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which are hit: a share of all, rounded to whole ones, from those that are ``left``, or
        those of these numbers."""
        value, count, found = getattr(self, name), len(left), np.zeros(len(left), bool)
        if isinstance(value, float):
            if round(value * count) == 0:
                raise ParameterError(
                    f"a lesion of {name}={value:g} hits none of {count}: give a larger share"
                )
            rng = np.random.default_rng([self.seed, LESIONED.index(name)])
            found[rng.permutation(np.flatnonzero(left))[: round(value * count)]] = True
        elif value is not None:
            if max(value) >= count:
                raise ParameterError(
                    f"a lesion of {name} {shown(max(value))}: there are {count}, counted from 0"
                )
            found[list(value)] = True
        return found


class Lesioned(Part):
    """All lesions of a circuit."""

    called = "Lesion"

    def __init__(self, c: Circuit, lesions: Sequence[Lesion]) -> None:
        sizes = c.parameters.shapes(c.lift.n_inputs)
        hurt = {"tiles": "h", "interneurons": "u", **SYNAPSES}
        shapes = {name: sizes[variable] for name, variable in hurt.items()}
        self.events = sorted({one.at for one in lesions})
        hit = {name: np.zeros(math.prod(shape), bool) for name, shape in shapes.items()}
        self._hit = {name: [flags.reshape(shapes[name])] for name, flags in hit.items()}
        for event in self.events:
            for name, shape in shapes.items():
                for lesion in (one for one in lesions if one.at == event):
                    hit[name] = hit[name] | lesion.chosen(name, ~hit[name])
                self._hit[name].append(hit[name].reshape(shape))
        for name in ("tiles", "interneurons"):
            if hit[name].all():
                raise ParameterError(
                    f"the lesions leave none of the {len(hit[name])} {name}: a circuit needs one "
                    "at least"
                )
        self.equations = {}
        if c.parameters.tiles == "recruit" and hit["tiles"].any():
            self.equations["excitatory"] = "turn : integer\navailable : integer (shared)"

    def hit(self, name: str, presentation: int) -> NDArray[np.bool_]:
        """Which cells or synapses of a name are gone at a presentation."""
        return self._hit[name][bisect.bisect_right(self.events, presentation)]

    def change(self, state: CircuitState, presentation: int) -> None:
        """Set to zero, in a state, all that is gone at a presentation."""
        tiles, cells = self.hit("tiles", presentation), self.hit("interneurons", presentation)
        # New arrays, because those in the state may have been handed out.
        state.recruited = np.where(tiles, GONE, state.recruited)
        gone = {"h": tiles, "b": tiles, "u": cells}
        gone["W"] = tiles[:, None] | self.hit("feedforward", presentation)
        gone["w"] = tiles | self.hit("classifier", presentation)
        gone["V"] = tiles | cells[:, None] | self.hit("lateral", presentation)
        for name, flags in gone.items():
            setattr(state, name, np.where(flags, 0.0, getattr(state, name)))
        lost = {"excitatory.h": tiles, "inhibitory.u": cells}
        for name, value in state.extra.items():  # rates on their way
            rate, past, _ = name.partition("_past_")
            if past:
                state.extra[name] = np.where(lost[rate], 0.0, value)

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """Which tiles are left to recruit."""
        if not self.equations:
            return {}
        there = state.recruited != GONE
        turn = np.where(there, np.cumsum(there) - 1, -1)
        return {"excitatory.turn": turn, "excitatory.available": int(there.sum())}

    def adjust(self, values: dict[str, dict[str, Any]], state: CircuitState, task: Task) -> None:
        """Interneurons that are gone rest at zero."""
        gone, cells = self.hit("interneurons", state.learned), values["inhibitory"]
        cells["u_rest"] = np.where(gone, 0.0, cells["u_rest"])

    # The same in NumPy

    def before_measure(self, s: Any) -> None:
        """Interneurons that are gone rest at zero."""
        s.u_rest = np.where(self.hit("interneurons", s.learned_at), 0.0, s.u_rest)
