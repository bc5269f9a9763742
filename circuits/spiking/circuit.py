"""The spiking twin on Brian2: the interface of the rate circuit, and spikes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from circuits.circuit import ManifoldCircuit
from circuits.errors import ParameterError, shown, shown_path
from circuits.lift import SphereLift
from circuits.parameters import CircuitParameters
from circuits.spiking.base import Spiking
from circuits.spiking.parameters import SpikingParameters
from circuits.spiking.wiring import SpikingWiring

if TYPE_CHECKING:
    from brian2 import Network


class SpikingCircuit(Spiking, ManifoldCircuit):
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
        self._set_spiking(spiking, seed)
        super().__init__(parameters, lift, engine, extend=extend, tile_centers=tile_centers)

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
        from circuits.storage.saved_circuit import Kept

        kept = Kept(path)
        for what, found in (
            ("values set on a rate circuit's network", () if kept.is_spiking else kept.values_set),
            ("a model of its own", kept.model.changes()),
            ("perturbations", [shown(one) for one in kept.perturbations]),
            ("parts", [part.name for part in kept.parts_or(None)]),
        ):
            if found:
                raise ParameterError(
                    f"{shown_path(path)} has {what} ({', '.join(found)}), which a spiking circuit "
                    "cannot have"
                )
        spiking = kept.spiking if spiking is None else spiking
        seed = kept.seed if seed is None else seed
        made: Self = kept.restored(
            cls(kept.parameters, kept.lift, engine, spiking=spiking, seed=seed)
        )
        return made
