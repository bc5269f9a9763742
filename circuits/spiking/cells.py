"""Units and the cells they are made of: weights of tiles as those of cells, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.base import CELLS as OWN
from circuits.lift import FloatArray
from circuits.spiking.parameters import SpikingParameters

if TYPE_CHECKING:
    from circuits.parameters import CircuitParameters
    from circuits.state import CircuitState


@dataclass(frozen=True)
class Cells:
    """The cells of a circuit. A unit's rate, weight or bias is the mean of its cells'; cells are
    numbered unit by unit."""

    parameters: CircuitParameters
    spiking: SpikingParameters
    n_inputs: int

    @classmethod
    def of(cls, circuit: Any) -> Cells:
        """The cells of a `SpikingCircuit`."""
        return cls(circuit.parameters, circuit.spiking, circuit.lift.n_inputs)

    @property
    def _axes(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Units and cells per unit along the axes of a variable."""
        p, n = self.parameters, self.spiking.cells
        tile, interneuron = (p.n_tiles, n), (p.n_interneurons, n)
        readout = (p.n_readouts, self.spiking.readout_cells)
        return {
            **{"h": (tile,), "u": (interneuron,), "y": (readout,), "b": (tile,)},
            **{"W": (tile, (self.n_inputs, 1)), "w": (readout, tile), "V": (interneuron, tile)},
            "recruited": (tile,),
        }

    def units(self, name: str, values: FloatArray) -> Any:
        """Means over the cells of each unit; the last axis of ``values`` numbers cells, or pairs of
        them as [post, pre]."""
        axes = self._axes[name]
        lead = values.shape[:-1]
        split = values.reshape(*lead, *(size for axis in axes for size in axis))
        return split.mean(axis=tuple(len(lead) + 2 * i + 1 for i in range(len(axes))))

    def repeated(self, name: str, values: Any) -> Any:
        """What belongs to units, for each of their cells."""
        for axis, (_, count) in enumerate(self._axes[name]):
            values = np.repeat(values, count, axis=axis)
        return values

    def expanded(self, state: CircuitState) -> dict[str, FloatArray]:
        """The cells' W, b, w, as matrices, and when they were recruited."""
        found: dict[str, Any] = {}
        for name in ("W", "b", "w"):
            found[name] = self.repeated(name, getattr(state, name))
            own = state.extra.get(OWN + name)
            if own is not None and own.shape == found[name].shape:
                found[name] = found[name] + own
        found["recruited"] = self.repeated("recruited", state.recruited)
        return found

    def take(self, state: CircuitState, name: str, values: FloatArray) -> None:
        """Put the cells' values of a variable into a state: the units', and how cells differ."""
        if name == "recruited":
            state.recruited = values[:: self.spiking.cells].astype(np.int64)
            return
        units = self.units(name, values)
        setattr(state, name, units)
        mean = self.repeated(name, units)
        state.extra[OWN + name] = values.reshape(mean.shape) - mean

    def forget(self, state: CircuitState, tile: int) -> None:
        """Let the cells of a tile that was just recruited be alike."""
        new = np.repeat(np.arange(self.parameters.n_tiles) == tile, self.spiking.cells)
        for name, cells in (("W", new[:, None]), ("b", new), ("w", new)):
            own = state.extra.get(OWN + name)
            if own is not None and (name != "w" or self.parameters.recycle):
                state.extra[OWN + name] = np.where(cells, 0.0, own)

    def phases(self, per_unit: int, units: int) -> FloatArray:
        """Potentials at rest: cells of a unit start apart, escape cells at zero."""
        if self.spiking.neuron == "escape":
            return np.zeros(per_unit * units)
        return np.tile((np.arange(per_unit) + 0.5) / per_unit, units)

    def readout_phases(self) -> FloatArray:
        """Potentials at rest of the readout cells, between the thresholds of both sides."""
        n = self.spiking.readout_cells
        return np.tile((np.arange(n) + 0.5) / n - 0.5, self.parameters.n_readouts)

    def results(self, rates: dict[str, FloatArray], gain: FloatArray) -> dict[str, FloatArray]:
        """Rates of units from those of cells (presentation, cell); u in the circuit's units, which
        are those of the cells over the root of the gain, its ``scale``."""
        s = self.spiking
        scale = np.where(gain > 0, 1 / np.sqrt(np.where(gain > 0, gain, 1)), 0.0)
        found = {name: self.units(name, rates[name]) for name in "huy"}
        found["u"] = found["u"] * scale[:, None]
        found["y"] = np.clip(found["y"], -1.0, 1.0)  # a pool may fire once more than its rate says
        # Nothing stands still among spikes: whether rates have settled cannot be told by a step.
        found["change"] = np.full(len(gain), np.nan)
        found |= {"gain": gain, "scale": scale}
        found["excitatory_hz"] = rates["h"] * s.rate_h_
        found["inhibitory_hz"] = rates["u"] * s.rate_u_
        found["readout_hz"] = rates["y"] * s.rate_y_
        return found
