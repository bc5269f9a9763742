"""Noise on rates or synapses: Gaussian, independent from cell to cell and variable to variable.

    h, u, V    x <- [x + size sqrt(dt/tau) n]_+    at every step
    y          y <- clip(y + size n, -1, 1)        once per presentation
    W, b, w    x <- x + size n                     once per presentation, of tiles in use

The units of u and V are those in which they settle (u_start/u_rest). The numbers n follow from
seed, variable, presentation, step and cell (`circuits.parts.gaussian`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from circuits.assembly.part import Part
from circuits.lift import FloatArray
from circuits.parameters import Number
from circuits.parts.gaussian import NAME, noise_of
from circuits.parts.timing import HOMES, SIDE, Seed, Timed

if TYPE_CHECKING:
    from circuits.base import Circuit

NoisyVariable = Literal["h", "u", "y", "V", "W", "b", "w"]
NOISY: tuple[str, ...] = get_args(NoisyVariable)
"""What there can be noise on; the place of each is part of what its numbers follow from."""


class Noise(Timed):
    """Gaussian noise, of rates and V per root of their time constant; see `circuits.parts.noise`.

    W, b and w get it frozen or not, and not in predictions; y is cut at -1 and 1 unless the model
    has a readout of its own. The same variable and seed give the same numbers.
    """

    on: NoisyVariable
    size: Number = Field(ge=0, allow_inf_nan=False)
    seed: Seed = 0

    def strength(self, presentations: NDArray[np.int64]) -> FloatArray:
        """Its size."""
        return self.size * self.active(presentations)

    def factor(self, c: Circuit, learn: bool) -> float:
        """sqrt(dt/tau) in a step, whatever the step; weights that do not learn, in a prediction,
        get none."""
        p = c.parameters
        tau = {"h": p.tau_h_, "u": p.tau_u_, "V": p.tau_V_}.get(self.on, p.dt_)
        return math.sqrt(p.dt_ / tau) if learn or self.on not in ("W", "b", "w") else 0.0


class NoiseOn(Part):
    """All the noise on one variable."""

    called = "Noise"

    def __init__(self, c: Circuit, on: str, given: Sequence[tuple[int, Noise]]) -> None:
        self._on, self._given = on, given
        home, p = HOMES[on], c.parameters
        at = SIDE.get(home, "")
        step = f"perturbed_step{at}" if on in "huV" else "0"
        cell = "i_post*N_pre + i_pre" if at else "i"
        place = f"{NOISY.index(on)}, perturbed_number{at}, {step}, {cell}"
        n = " + ".join(
            f"{NAME}(perturbed_{i}{at}, perturbed_seed_{i}{at}, {place})" for i, _ in given
        )
        self._bounded = c.model.readout is None
        self.follows_h = on == "y"
        stage, text = {
            "h": (
                "after_rates",
                f"h = clip(h + where((in_use > 0) and (gain > 0), {n}, 0), 0, inf)",
            ),
            "u": (
                "after_rates",
                f"u = clip(u + u_start/where(u_rest > 0, u_rest, inf)*({n}), 0, inf)",
            ),
            "V": (
                "after_lateral",
                "V = clip(V + where(in_use_pre > 0, "
                f"u_start_post/where(u_rest_post > 0, u_rest_post, inf), 0)*({n}), 0, inf)",
            ),
            "y": ("after_answer", f"y = clip(y + {n}, -1, 1)" if self._bounded else f"y += {n}"),
        }.get(on, ("after_learn", f"{on} += where(in_use{at} > 0, {n}, 0)"))
        self.code = ((home, stage, text, f"noise_{on}"),)
        shape = p.shapes(c.lift.n_inputs)[on]
        self._cells = np.arange(math.prod(shape)).reshape(shape)
        setattr(self, stage, getattr(self, f"_{stage}"))

    @property
    def namespace(self) -> dict[str, Any]:  # type: ignore[override]
        """The Gaussian numbers."""
        from circuits.parts.gaussian import brian2_function

        return {NAME: brian2_function()}

    def drawn(self, s: Any, step: int) -> Any:
        """The sum of what is drawn for the variable."""
        found: Any = 0.0
        for i, one in self._given:
            place = NOISY.index(self._on), s.number, step, self._cells
            found = found + noise_of(s.strengths[i], one.seed, *place)
        return found

    # The same in NumPy; a part has the method of its own stage.

    def _after_rates(self, s: Any) -> None:
        n = self.drawn(s, s.step)
        if self._on == "h":
            s.h = np.maximum(s.h + np.where((s.recruited >= 0) & (s.gain > 0), n, 0.0), 0.0)
        else:
            s.u = np.maximum(s.u + _unit(s) * n, 0.0)

    def _after_lateral(self, s: Any) -> None:
        unit = np.where(s.recruited >= 0, _unit(s)[:, None], 0.0)
        s.V = np.maximum(s.V + unit * self.drawn(s, s.step), 0.0)

    def _after_answer(self, s: Any) -> None:
        y = s.y + self.drawn(s, 0)
        s.y = np.clip(y, -1.0, 1.0) if self._bounded else y

    def _after_learn(self, s: Any) -> None:
        there = s.recruited >= 0
        n = np.where(there[:, None] if self._on == "W" else there, self.drawn(s, 0), 0.0)
        setattr(s, self._on, getattr(s, self._on) + n)


def _unit(s: Any) -> Any:
    """The units in which u settles, 0 for interneurons that are gone."""
    return np.divide(s.u_start, s.u_rest, out=np.zeros_like(s.u_rest), where=s.u_rest > 0)
