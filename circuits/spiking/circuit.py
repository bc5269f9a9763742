"""The spiking twin on Brian2: the interface of the rate circuit, and spikes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circuits import rules
from circuits.base import CHUNK, RECORDABLE, TRACE_BYTES
from circuits.checks import as_count
from circuits.circuit import ManifoldCircuit
from circuits.errors import ParameterError, shown, shown_path
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import MOST_SYNAPSES, CircuitParameters
from circuits.spiking.cells import Cells
from circuits.spiking.parameters import SpikingParameters
from circuits.spiking.wiring import SpikingWiring
from circuits.state import CircuitState

if TYPE_CHECKING:
    from brian2 import Network


class SpikingCircuit(ManifoldCircuit):
    """The circuit with cells that fire: V, W, b and w change by spikes and their traces alone.

    It does what `ManifoldCircuit` does, and its results have the same variables: h, u and y are
    spikes counted in a window at the end of each presentation, as rates in the circuit's units;
    traces (``record``) are those of the spikes; W, b and w are means over the cells of a unit.
    Besides there are the rates of all cells in Hz, and with ``record=("spikes",)`` their spikes.

    Gain control and recruiting are those of the rate circuit. What ``CircuitParameters`` says of
    time (dt, steps, time constants) is in ``spiking`` here.

    Parameters
    ----------
    parameters, lift, engine, extend, tile_centers
        As in `ManifoldCircuit`; ``reset=False`` and, with several cells per unit, ``recycle=True``
        are refused.
    spiking
        How cells fire, and how long a point is shown.
    seed
        Of escape and noise. The same seed gives the same run on the same engine.
    """

    wiring = SpikingWiring()
    recordable = (*RECORDABLE, "spikes")

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        engine: str = "auto",
        *,
        spiking: SpikingParameters | None = None,
        seed: int = 0,
        extend: Callable[[Network], Any] | None = None,
        tile_centers: ArrayLike | None = None,
    ) -> None:
        if spiking is not None and not isinstance(spiking, SpikingParameters):
            raise ParameterError(f"spiking must be SpikingParameters, got {shown(spiking)}")
        self.spiking = SpikingParameters() if spiking is None else spiking
        self.seed = as_count(seed, "seed")
        if isinstance(parameters, CircuitParameters):
            check_spiking(parameters, self.spiking)
        super().__init__(parameters, lift, engine, extend=extend, tile_centers=tile_centers)

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
        """The seed of a stream that starts in this state."""
        if not self.spiking.random:
            return None
        return int(np.random.SeedSequence([self.seed, state.shown]).generate_state(1)[0]) >> 1

    def recruit(self, state: CircuitState, x: FloatArray) -> None:
        """As in the rate circuit; the cells of the tile start alike."""
        before = state.recruited
        super().recruit(state, x)
        for tile in np.flatnonzero(before != state.recruited):
            Cells.of(self).forget(state, int(tile))

    def _answering(self, state: CircuitState, x: FloatArray) -> NDArray[np.bool_]:
        """A tile answers if any of its cells does."""
        own, p = Cells.of(self).expanded(state), self.parameters
        a = rules.drive(own["W"], own["b"], x, self.alpha)
        found = rules.answers(a, own["b"], self.alpha, p.recruit_below, self.floor)
        return np.asarray(found.reshape(p.n_tiles, -1).any(axis=1))

    def _fitting(self, state: CircuitState) -> CircuitState:
        return state

    def _chunk_size(self, record: tuple[str, ...], snapshots: bool) -> int:
        p, s = self.parameters, self.spiking
        m, k, r = p.n_tiles * s.cells, p.n_interneurons * s.cells, p.n_readouts * s.readout_cells
        width = {"h": m, "u": k, "y": r, "V": m * k, "spikes": 0}
        values = s.n_steps * sum(width[name] for name in record)
        if snapshots:
            values += m * (self.lift.n_inputs + 1 + r)
        return min(CHUNK, max(1, TRACE_BYTES // (8 * values))) if values else CHUNK

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

    @classmethod
    def load(  # type: ignore[override] # a spiking circuit has no model of its own
        cls,
        path: str | os.PathLike[str],
        engine: str = "auto",
        *,
        spiking: SpikingParameters | None = None,
        seed: int | None = None,
    ) -> Self:
        """The circuit that ``save`` wrote, on any engine; of a rate circuit, its spiking twin.

        ``spiking`` and ``seed`` are used instead of those in the file.
        """
        from circuits.keeping import Kept

        kept = Kept(path)
        if not kept.is_spiking and kept.values_set:
            raise ParameterError(
                f"{shown_path(path)} has values that were set on a rate circuit's network "
                f"({', '.join(kept.values_set)}), which its spiking twin does not have"
            )
        if kept.model.changes():
            raise ParameterError(
                f"{shown_path(path)} has a model of its own ({', '.join(kept.model.changes())}), "
                "which a spiking circuit cannot run"
            )
        circuit = cls(
            kept.parameters,
            kept.lift,
            engine,
            spiking=kept.spiking if spiking is None else spiking,
            seed=kept.seed if seed is None else seed,
        )
        circuit._engine.values_set = kept.values_set
        kept.restore(circuit)
        return circuit


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
