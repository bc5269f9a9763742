"""Cells or synapses that are gone for good.

A tile that is gone does not fire, is not recruited, and has no synapses; an interneuron likewise; a
synapse that is cut has no weight. Cells are taken out of the state between two presentations, where
a stream is cut. Synapses that are cut are set to zero again after whatever could change them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from circuits.errors import ParameterError, shown
from circuits.parts.part import Part
from circuits.parts.timing import HOMES, Perturbation, Presentation, Seed, Share, ShareOrCells
from circuits.state import GONE, CircuitState, Task

if TYPE_CHECKING:
    from circuits.base import Circuit

LESIONED = ("tiles", "interneurons", "lateral", "feedforward", "classifier")
"""What a lesion can be of."""

WEIGHTS = {home: name for name, home in HOMES.items() if home in LESIONED}


class Lesion(Perturbation):
    """Cells or synapses that are gone for good.

    Each is a share of all that the circuit was made with, chosen at random from those that earlier
    lesions have left, or, of cells, their numbers.
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


class Lesions(Part):
    """All lesions of a circuit."""

    def __init__(self, c: Circuit, lesions: Sequence[Lesion]) -> None:
        p, n = c.parameters, c.lift.n_inputs
        m, k, r = p.n_tiles, p.n_interneurons, p.n_readouts
        self.lesions, self._pack = sorted(lesions, key=lambda one: one.at), c.model.packed
        self.shapes = {"tiles": (m,), "interneurons": (k,), "lateral": (k, m)}
        self.shapes |= {"feedforward": (m, n), "classifier": (r, m)}
        self._known: dict[tuple[str, int], NDArray[np.bool_]] = {}
        for lesion in lesions:
            lesion.require_hits({name: math.prod(shape) for name, shape in self.shapes.items()})
        self.events = sorted({one.at for one in lesions})
        last = self.events[-1]
        for name, count in (("tiles", m), ("interneurons", k)):
            if self.hit(name, last).all():
                raise ParameterError(
                    f"the lesions leave none of the {count} {name}: a circuit needs one at least"
                )
        self.cut = [s for s in WEIGHTS if any(getattr(one, s) is not None for one in lesions)]
        self.takes_tiles = any(lesion.tiles is not None for lesion in lesions)
        self.equations = dict.fromkeys(self.cut, "perturbed_intact : 1    # 0: it is cut")
        self._recruits = p.tiles == "recruit"
        if self.takes_tiles and self._recruits:
            self.equations["excitatory"] = "turn : integer\navailable : integer (shared)"
        stages: dict[str, tuple[str, ...]] = {"lateral": ("after_lateral", "after_restart")}
        stages["feedforward"] = ("after_learn", *(["after_recruit"] if self._recruits else []))
        self.code = tuple(
            (home, stage, f"{w} = where(perturbed_intact > 0, {w}, 0)", f"cut_{stage}")
            for home, w in WEIGHTS.items()
            if home in self.cut
            for stage in stages.get(home, ("after_learn",))
        )

    @property
    def name(self) -> str:
        """As users call it."""
        return "Lesion"

    def moves_rates(self) -> bool:
        """The closed form needs all of V that there is between cells."""
        return "lateral" in self.cut

    def hit(self, name: str, presentation: int) -> NDArray[np.bool_]:
        """Which cells or synapses of a name are gone at a presentation."""
        lesions = [lesion for lesion in self.lesions if lesion.at <= presentation]
        key = name, len(lesions)  # lesions only become more
        if key not in self._known:
            found = np.zeros(math.prod(self.shapes[name]), bool)
            for lesion in lesions:
                found |= lesion.chosen(name, ~found)
            self._known[key] = found.reshape(self.shapes[name])
        return self._known[key]

    def change(self, state: CircuitState, presentation: int) -> None:
        """Take from a state what is gone at a presentation; what was taken before stays so."""
        tiles, cells = self.hit("tiles", presentation), self.hit("interneurons", presentation)
        lost = {"excitatory.h": tiles, "inhibitory.u": cells}
        # New arrays, because those in the state may have been handed out.
        state.recruited = np.where(tiles, GONE, state.recruited)
        for name, gone in (("h", tiles), ("b", tiles), ("u", cells)):
            setattr(state, name, np.where(gone, 0.0, getattr(state, name)))
        state.W = np.where(tiles[:, None] | self.hit("feedforward", presentation), 0.0, state.W)
        state.w = np.where(tiles | self.hit("classifier", presentation), 0.0, state.w)
        gone_V = tiles | cells[:, None] | self.hit("lateral", presentation)
        state.V = np.where(gone_V, 0.0, state.V)
        for name, value in state.extra.items():  # rates on their way
            rate, past, _ = name.partition("_past_")
            if past:
                state.extra[name] = np.where(lost[rate], 0.0, value)

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """What is left at the start of a stream."""
        found: dict[str, Any] = {
            f"{home}.perturbed_intact": self._pack(
                home, np.where(self.hit(home, state.learned), 0.0, 1.0)
            )
            for home in self.cut
        }
        if "excitatory" in self.equations:
            there = state.recruited != GONE
            found["excitatory.turn"] = np.where(there, np.cumsum(there) - 1, -1)
            found["excitatory.available"] = int(there.sum())
        return found

    def adjust(self, values: dict[str, dict[str, Any]], state: CircuitState, task: Task) -> None:
        """Interneurons that are gone rest at zero."""
        gone, cells = self.hit("interneurons", state.learned), values["inhibitory"]
        cells["u_rest"] = np.where(gone, 0.0, cells["u_rest"])

    # The same in NumPy

    def _clear(self, s: Any, home: str) -> None:
        if home in self.cut:
            weights = getattr(s, WEIGHTS[home])
            setattr(s, WEIGHTS[home], np.where(self.hit(home, s.learned_at), 0.0, weights))

    def before_measure(self, s: Any) -> None:
        """Interneurons that are gone rest at zero."""
        s.u_rest = np.where(self.hit("interneurons", s.learned_at), 0.0, s.u_rest)

    def after_lateral(self, s: Any) -> None:
        """Cut V."""
        self._clear(s, "lateral")

    def after_restart(self, s: Any) -> None:
        """Cut V."""
        self._clear(s, "lateral")

    def after_recruit(self, s: Any) -> None:
        """Cut W of a tile that was recruited."""
        self._clear(s, "feedforward")

    def after_learn(self, s: Any) -> None:
        """Cut W and w."""
        self._clear(s, "feedforward")
        self._clear(s, "classifier")
