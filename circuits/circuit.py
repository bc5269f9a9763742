"""The circuit on Brian2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from circuits.base import Circuit, CircuitState, Task
from circuits.engines import choose_engine, make_engine
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters

if TYPE_CHECKING:
    from brian2 import Network


class ManifoldCircuit(Circuit):
    """The paper's network as Brian2 groups and synapses.

    Parameters
    ----------
    parameters, lift
        The circuit and its front end.
    engine
        "cpp_standalone" compiles the circuit (once per shape, then it is cached), "cython" and
        "numpy" run it in Brian2's Python loop; "auto" is "cpp_standalone" where a compiler works
        and "numpy" elsewhere, and says on stderr which.
    tile_centers
        (n_tiles, d): where the tiles start, instead of on the first points of the stream.
    """

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        engine: str = "auto",
        *,
        tile_centers: ArrayLike | None = None,
    ) -> None:
        super().__init__(parameters, lift, tile_centers=tile_centers)
        self.engine = choose_engine() if engine == "auto" else engine
        self._engine = make_engine(self.engine, self)

    @property
    def network(self) -> Network:
        """The Brian2 network: groups ``inputs``, ``excitatory``, ``inhibitory``, ``readout``,
        synapses ``feedforward`` (W), ``lateral`` (V), ``classifier`` (w).

        Monitors can be added to it before a run, whatever the engine.
        """
        return self._engine.network

    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        return self._engine.advance(state, task)
