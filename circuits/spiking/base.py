"""What spiking circuits have in common, whoever computes their steps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from circuits.assembly.collection import Parts
from circuits.assembly.part import Part
from circuits.base import RECORDABLE, Circuit
from circuits.checks import as_count
from circuits.errors import ParameterError, shown
from circuits.parameters import MOST_SYNAPSES, CircuitParameters
from circuits.parts.gain_control import GainControl
from circuits.parts.idle_tiles import Tiles
from circuits.parts.other_readouts import ConstantRate
from circuits.parts.recruiting import DriveOfNewTile, Recruiting
from circuits.parts.recycling import Recycling
from circuits.spiking.layers import DriveOfTile, RecruitedTogether, SpikingReadout, SpikingTiling
from circuits.spiking.parameters import SpikingParameters
from circuits.state import CircuitState


class Spiking(Circuit):
    """A circuit of cells that fire."""

    recordable = (*RECORDABLE, "spikes")
    spiking: SpikingParameters
    seed: int

    def _set_spiking(self, spiking: Any, seed: Any) -> None:
        """Set the parameters of the cells, and the seed."""
        if spiking is not None and not isinstance(spiking, SpikingParameters):
            raise ParameterError(f"spiking must be SpikingParameters, got {shown(spiking)}")
        self.spiking = SpikingParameters() if spiking is None else spiking
        self.seed = as_count(seed, "seed")

    @property
    def n_steps(self) -> int:
        """Steps of a presentation."""
        return self.spiking.n_steps

    @property
    def dt_(self) -> float:
        """The time step in seconds."""
        return self.spiking.dt_

    @property
    def strength(self) -> float:
        """What the current into the excitatory cells is multiplied by, besides the gain: under gain
        control the size that every drive is scaled to."""
        return self.spiking.strength if self.gain is None else 1.0

    def seed_of(self, state: CircuitState) -> int | None:
        """The seed of a stream that starts in this state, if anything in it is random."""
        if not self.spiking.random:
            return None
        return int(np.random.SeedSequence([self.seed, state.shown]).generate_state(1)[0]) >> 1

    def _assembled(self, users: tuple[Part, ...]) -> Parts:
        """The circuit's parts."""
        check_spiking(self.parameters, self.spiking)
        p, recruits = self.parameters, self.parameters.tiles == "recruit"
        found: list[Part] = [SpikingTiling(self), SpikingReadout(self)]
        found += [Recruiting(self), RecruitedTogether()] if recruits else [Tiles()]
        found += [Recycling()] if p.recycle else []
        found += [GainControl(self), DriveOfTile()] if self.gain is None else []
        found += [ConstantRate(self)] if p.readout_rate != "running_mean" else []
        return Parts([*found, *([DriveOfNewTile()] if recruits else [])], users)

    def sizes(self) -> dict[str, int]:
        """Groups of cells, and how many there are."""
        s, units = self.spiking, super().sizes()
        per_unit = {"inputs": 1, "readout": s.readout_cells}
        return {name: count * per_unit.get(name, s.cells) for name, count in units.items()}

    def _fitting(self, state: CircuitState) -> CircuitState:
        return state

    def attributes(self) -> dict[str, Any]:
        """How the cells fire, for results and files."""
        return {
            "spiking": json.dumps(self.spiking.as_dict()),
            "spiking_seed": self.seed,
            "dt": self.dt_,
        }

    def __repr__(self) -> str:
        s = self.spiking
        cells = f"{s.neuron} cells, {s.cells} per unit"
        return super().__repr__().replace(", engine", f", {cells}, engine", 1)


def check_spiking(p: CircuitParameters, s: SpikingParameters) -> None:
    """Refuse what a spiking circuit cannot be."""
    if not p.reset:
        raise ParameterError(
            "a spiking circuit restarts at every presentation: reset must be True, got False"
        )
    if p.recycle and s.cells > 1:
        raise ParameterError(
            f"recycle=True needs one cell per unit in a spiking circuit, got cells={s.cells}"
        )
    cells = s.cells * p.n_tiles
    synapses = cells * (s.cells * p.n_interneurons + s.readout_cells * p.n_readouts)
    if synapses > MOST_SYNAPSES:
        raise ParameterError(
            f"n_tiles={p.n_tiles} with cells={s.cells} and readout_cells={s.readout_cells} makes "
            f"{synapses} synapses, more than the {MOST_SYNAPSES} that can be held"
        )
