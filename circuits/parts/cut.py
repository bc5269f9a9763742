"""Synapses that a lesion has cut have no weight: it is set to zero after all that may change it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.assembly.part import Part
from circuits.model import SYNAPSES
from circuits.parts.lesion import Lesion, Lesioned

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task

CHANGED = {
    "after_lateral": ("lateral",),
    "after_restart": ("lateral",),
    "after_learn": ("feedforward", "classifier"),
    "after_recruit": ("feedforward",),
}
"""Where weights may have changed."""


class CutSynapses(Part):
    """The synapses that a circuit's lesions cut."""

    called = "Lesion"

    def __init__(self, c: Circuit, lesions: Sequence[Lesion], hits: Lesioned) -> None:
        cut = [home for home in SYNAPSES if any(getattr(one, home) is not None for one in lesions)]
        self._hit, self._pack, self._cut, code = hits.hit, c.model.packed, cut, []
        self.equations = dict.fromkeys(cut, "perturbed_intact : 1    # 0: it is cut")
        recruits = c.parameters.tiles == "recruit"
        for stage, homes in CHANGED.items():
            changed = [home for home in homes if home in cut]
            if not changed or (stage == "after_recruit" and not recruits):
                continue
            for home in changed:
                w = SYNAPSES[home]
                text = f"{w} = where(perturbed_intact > 0, {w}, 0)"
                code.append((home, stage, text, f"cut_{stage}"))
            setattr(self, stage, partial(self._clear, changed))
        self.code = code

    def moves_rates(self) -> bool:
        """The closed form needs all of V that there is between cells."""
        return "lateral" in self._cut

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """What is left at the start of a stream."""
        left = {home: np.where(self._hit(home, state.learned), 0.0, 1.0) for home in self._cut}
        return {f"{h}.perturbed_intact": self._pack(h, flags) for h, flags in left.items()}

    def _clear(self, homes: Sequence[str], s: Any) -> None:
        """The same in NumPy."""
        for home in homes:
            weights = getattr(s, SYNAPSES[home])
            setattr(s, SYNAPSES[home], np.where(self._hit(home, s.learned_at), 0.0, weights))
