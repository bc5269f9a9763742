"""Brian2's own loop in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from circuits.base import CHUNK
from circuits.engines.brian import import_brian2
from circuits.engines.engine import Engine
from circuits.errors import EngineError
from circuits.lift import FloatArray
from circuits.state import CircuitState, Task

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit


class RuntimeEngine(Engine):
    """Code objects in NumPy or Cython, called step by step."""

    def __init__(self, circuit: ManifoldCircuit, target: str) -> None:
        super().__init__(circuit)
        self.target = target

    @property
    def has_network(self) -> bool:
        """Always: the network is what runs."""
        return True

    def advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """One ``network.run`` for the chunk."""
        import_brian2()
        from brian2 import Network, NetworkOperation, second

        from circuits.engines.codegen import driving, loading_objects, seeded, using
        from circuits.network import stream_arrays

        live, network, circuit = self.live, self.live.network, self.circuit
        wiring = circuit.wiring
        with using(target=self.target), seeded(circuit.seed_of(state)):
            # The step after those that were shown; a run that was interrupted stopped elsewhere.
            network.t_ = (state.shown * circuit.n_steps + 1) * circuit.dt_
            wiring.follow_readout(circuit, network, "y" in task.record)
            live.write(self.values(state, task))
            streams = stream_arrays(task.streams, CHUNK)
            for group in ("inputs", "readout"):
                network[group].namespace.update(streams)
            watching = wiring.monitors(network, task.record, task.snapshots)
            waiting = [True]

            def load_first_point() -> None:
                """Do once, before the first step, what happens between two points."""
                while waiting:
                    waiting.pop()
                    for item in loading_objects(network):
                        item.run()

            clock = network["excitatory"].clock
            first = NetworkOperation(load_first_point, clock=clock, when="before_start")
            network.add(first, *watching.values())
            try:
                # Diverging rates overflow; the caller finds and names them.
                with driving(network), np.errstate(over="ignore", invalid="ignore"):
                    network.run(
                        len(task.x) * circuit.n_steps * circuit.dt_ * second,
                        report=lambda _, done, *times: task.report(int(done * len(task.x))),
                        report_period=0.2 * second,
                        namespace={},
                    )
                    if Network._globally_stopped:  # so Brian2 answers to Ctrl-C: the run is cut
                        raise KeyboardInterrupt
                    if network._stopped:
                        raise EngineError("an object has stopped the network before the last point")
            finally:
                network.remove(first, *watching.values())
                wiring.follow_readout(circuit, network, False)
            recorded = {
                result: {
                    # (time, element), as a view: StateMonitor itself would return it transposed.
                    column: np.array(monitor.variables[column].get_value())
                    for column in monitor.record_variables
                }
                for result, monitor in watching.items()
            }
        return wiring.collect(circuit, state, task, live.final(), recorded)
