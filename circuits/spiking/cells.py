"""Units and the cells they are made of: weights of tiles as those of cells, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.base import CELLS as OWN
from circuits.lift import FloatArray
from circuits.spiking.trains import GROUPS

if TYPE_CHECKING:
    from circuits.spiking.base import Spiking
    from circuits.state import CircuitState


class Cells:
    """The cells of a circuit. A unit's rate, weight or bias is the mean of its cells'; cells are
    numbered unit by unit."""

    def __init__(self, circuit: Spiking) -> None:
        p, s = circuit.parameters, circuit.spiking
        tile, interneuron = (p.n_tiles, s.cells), (p.n_interneurons, s.cells)
        readout = (p.n_readouts, s.readout_cells)
        self.spiking = s
        self.axes: dict[str, tuple[tuple[int, int], ...]] = {
            **{"h": (tile,), "u": (interneuron,), "y": (readout,), "b": (tile,)},
            **{"W": (tile, (circuit.lift.n_inputs, 1)), "w": (readout, tile)},
            **{"V": (interneuron, tile), "recruited": (tile,)},
        }
        """Units and cells per unit along the axes of a variable."""

    def units(self, name: str, values: FloatArray) -> Any:
        """Means over the cells of each unit; the last axis of ``values`` numbers cells, or pairs of
        them as [post, pre]."""
        axes, lead = self.axes[name], values.shape[:-1]
        split = values.reshape(*lead, *(size for axis in axes for size in axis))
        return split.mean(axis=tuple(len(lead) + 2 * i + 1 for i in range(len(axes))))

    def repeated(self, name: str, values: Any) -> Any:
        """Values of units, for each of their cells."""
        for axis, (_, count) in enumerate(self.axes[name]):
            values = np.repeat(values, count, axis=axis)
        return values

    def of(self, state: CircuitState, name: str) -> Any:
        """The cells' W, b, w, or the presentations that recruited them."""
        values = self.repeated(name, getattr(state, name))
        own = state.extra.get(OWN + name)
        return values if own is None or own.shape != values.shape else values + own

    def take(self, state: CircuitState, name: str, values: FloatArray) -> None:
        """Put the cells' values of a variable into a state: the units', and how cells differ."""
        if name == "recruited":
            state.recruited = values[:: self.spiking.cells].astype(np.int64)
            return
        units = self.units(name, values.ravel())
        setattr(state, name, units)
        mean = self.repeated(name, units)
        state.extra[OWN + name] = values.reshape(mean.shape) - mean

    def phases(self, name: str) -> FloatArray:
        """Potentials at rest: cells of a unit start apart, those of a readout between the
        thresholds of both sides, escape cells at zero."""
        ((units, count),) = self.axes[name]
        phases = np.tile((np.arange(count) + 0.5) / count, units)
        if name == "y":
            return phases - 0.5
        return phases if self.spiking.neuron == "if" else np.zeros_like(phases)

    def results(
        self, state: CircuitState, recorded: dict[str, FloatArray], V: FloatArray
    ) -> dict[str, FloatArray]:
        """Results of units from what was recorded of cells, a row for each presentation or step,
        and from steps and cells of spikes; ``state`` takes the last rates and V.

        u and V in the circuit's units are those of the cells over the root of the gain.
        """
        s, gain = self.spiking, recorded["gain"]
        scale = np.divide(1, np.sqrt(gain), out=np.zeros_like(gain), where=gain > 0)
        found = {"gain": gain}
        for key, values in recorded.items():
            name, _, kind = key.partition("_")
            if name in self.axes:
                lead = (len(gain), s.n_steps) if kind == "trace" else (len(gain),)
                found[key] = self.units(name, values.reshape(*lead, -1))
        for key in {"u", "u_trace", "V_trace"} & found.keys():
            found[key] = (found[key].T * scale).T
        found["y"] = np.clip(found["y"], -1.0, 1.0)  # a pool may fire once more than its rate says
        # Nothing stands still among spikes: whether rates have settled cannot be told by a step.
        found["change"] = np.full(len(gain), np.nan)
        for group, name in zip(GROUPS, "huy", strict=True):
            found[f"{group}_hz"] = recorded[name] * getattr(s, f"rate_{name}_")
            if f"{group}_spikes" in recorded:
                step, cell = recorded[f"{group}_spikes"]  # counted from 1 in the circuit's life
                columns = {
                    "time": step * s.dt_,
                    "cell": cell,
                    "presentation": (step - 1) // s.n_steps - state.shown + state.learned,
                    "step": (step - 1) % s.n_steps + 1,
                }
                found |= {f"{group}_spike_{key}": values for key, values in columns.items()}
        state.h, state.u = found["h"][-1].copy(), found["u"][-1].copy()
        state.V = self.units("V", V) * scale[-1]
        return found
