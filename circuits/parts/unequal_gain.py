"""Tiles whose net input is multiplied by factors that differ: exp(spread n - spread^2/2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from circuits.assembly.part import Part
from circuits.lift import FloatArray
from circuits.parameters import Number
from circuits.parts.timing import Perturbation, Seed

if TYPE_CHECKING:
    from circuits.base import Circuit


class UnequalGain(Perturbation):
    """Tiles whose net input is multiplied by factors that differ: exp(spread n - spread^2/2), with
    mean 1. It holds from the start."""

    spread: Number = Field(ge=0, le=3)
    seed: Seed = 0

    def factors(self, count: int) -> FloatArray:
        """One for each tile."""
        drawn = np.random.default_rng(self.seed).standard_normal(count)
        return np.exp(self.spread * drawn - self.spread**2 / 2)


class GainFactors(Part):
    """The factors, on a gain that is constant or set by gain control."""

    called = "UnequalGain"

    fixed = {"excitatory.common_gain": "gain"}

    def __init__(self, c: Circuit, gain: UnequalGain) -> None:
        self._factors = gain.factors(c.parameters.n_tiles)
        common = "common_gain : 1 (linked)" if c.gain is None else "common_gain : 1 (shared)"
        self.equations = {
            "excitatory": f"""
{common}
perturbed_gain : 1                 # its factor
gain = common_gain*perturbed_gain : 1
"""
        }
        self.links = {"excitatory.common_gain": "gain_control.gain"} if c.gain is None else {}
        self.parameters = {"excitatory.perturbed_gain": self._factors}
        self.parameters |= {} if c.gain is None else {"excitatory.common_gain": c.gain}

    def after_measure(self, s: Any) -> None:
        """The same in NumPy."""
        s.gain = s.gain * self._factors
