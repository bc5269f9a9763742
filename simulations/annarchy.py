"""The same circuit in another simulator, ANNarchy (extra ``peers``), for the benchmark alone.

ANNarchy sums, then moves the neurons, then the synapses. So that V moves by the rates before the
step, as in the circuit, the neurons keep those as ``before``. Its projections go one way: V is
there twice, from tiles to interneurons and back, and both copies take the same steps.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from circuits import reference
from circuits.base import Circuit
from circuits.engines.scratch import scratch_folder
from circuits.lift import FloatArray
from circuits.parts import gain_control
from circuits.state import CircuitState, Task

GAMMA = "gamma = 0.0 : population"
EXCITATORY = ("a = 0.0\n" + GAMMA, "before = r\nr = pos(r + gamma*(a - sum(inh)))")
INHIBITORY = (GAMMA, "before = r\nr = pos(r + gamma*(sum(exc) - r))")
LATERAL = (
    "gamma = 0.0 : projection",
    "w = pos(w + gamma*(post.before*pre.before - w))",
)


def available() -> bool:
    """Whether ANNarchy is there."""
    return importlib.util.find_spec("ANNarchy") is not None


@contextmanager
def compiled(circuit: Circuit) -> Iterator[AnnarchyCircuit]:
    """The circuit in ANNarchy, compiled in a folder that is gone afterwards."""
    with scratch_folder() as folder:
        yield AnnarchyCircuit(circuit, folder)


class AnnarchyCircuit:
    """Rates and fast synapses of a circuit in ANNarchy, on one thread; NumPy does the rest."""

    def __init__(self, circuit: Circuit, folder: Path) -> None:
        import ANNarchy

        self.circuit, p = circuit, circuit.parameters
        self.net = ANNarchy.Network(dt=1.0)
        self.net.config(num_threads=1)
        self.tiles, self.interneurons = (
            self.net.create(size, ANNarchy.Neuron(parameters=names, equations=text))
            for size, (names, text) in (
                (p.n_tiles, EXCITATORY),
                (p.n_interneurons, INHIBITORY),
            )
        )
        synapse = ANNarchy.Synapse(parameters=LATERAL[0], equations=LATERAL[1])
        self.forth = self.net.connect(self.tiles, self.interneurons, "exc", synapse)
        self.back = self.net.connect(self.interneurons, self.tiles, "inh", synapse)
        for projection in (self.forth, self.back):
            projection.all_to_all(weights=0.0)
        with _this_python_first():
            self.net.compile(directory=str(folder / "annarchy"), silent=True)
        _, self.interneurons.gamma, gamma_V = circuit.gamma(1.0)
        self.forth.gamma = self.back.gamma = gamma_V
        self.seconds = 0.0
        """Time in ANNarchy's own loop; what it takes to give it its values does not count."""

    def settle(self, a: FloatArray) -> FloatArray:
        """One presentation from rest: h after S steps."""
        p = self.circuit.parameters
        h, u, V = reference.rest(p.n_tiles, p.n_interneurons, self.circuit.gain)
        begin = gain_control.start(a, self.circuit.floor, 1.0, self.circuit.gain)
        h, u, V = begin.covered * h, begin.scale * u, begin.scale * V
        self.tiles.gamma = begin.gain * p.dt_ / p.tau_h_
        self.tiles.a, self.tiles.r, self.interneurons.r = a, h, u
        self.forth.w, self.back.w = V.tolist(), V.T.tolist()
        started = time.perf_counter()
        self.net.simulate(float(p.steps_per_presentation))
        self.seconds += time.perf_counter() - started
        return np.array(self.tiles.r)

    def advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """Present a stream from the start: the circuit's h and y."""
        p, alpha = self.circuit.parameters, self.circuit.alpha
        mu = np.array(p.mu_per_readout)
        found: dict[str, list[FloatArray]] = {"h": [], "y": []}
        for t, (x, z) in enumerate(zip(task.x, task.z, strict=True)):
            h = self.settle(reference.drive(state.W, state.b, x, alpha))
            y = reference.ANSWER[p.readout](state.w @ h, z, mu)
            state.w = reference.learn_classifier(state.w, y, h, 1 / (t + 1))
            state.W = reference.learn_feedforward(state.W, h, x, p.learning_rate)
            state.b = reference.learn_bias(state.b, h, alpha, p.learning_rate)
            found["h"].append(h)
            found["y"].append(y)
        return {name: np.array(values) for name, values in found.items()}


@contextmanager
def _this_python_first() -> Iterator[None]:
    """ANNarchy asks the first ``python3`` on the path where its libraries are."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before
