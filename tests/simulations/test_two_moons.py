"""The paper's claim: two moons are classified from two labels, in one pass."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ManifoldCircuit, ReferenceCircuit
from circuits.measures import accuracy
from simulations.experiments.two_moons import Settings, make_stream


def second_half(run, classes) -> float:
    return accuracy(run["y"][1000:, 0], classes[1000:])


def test_accuracy_over_twenty_seeds():
    shares = []
    for seed in range(20):
        stream = make_stream(Settings(), seed)
        assert (stream.labels != 0).sum() == 2
        circuit = ReferenceCircuit(stream.parameters, stream.lift, settling="exact")
        shares.append(second_half(circuit.run(stream.points, stream.labels), stream.classes))
    assert np.mean(shares) >= 0.998
    assert min(shares) >= 0.99


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_accuracy_on_the_standalone_circuit(seed):
    stream = make_stream(Settings(), seed)
    circuit = ManifoldCircuit(stream.parameters, stream.lift, "cpp_standalone")
    run = circuit.run(stream.points, stream.labels)
    assert second_half(run, stream.classes) >= 0.998
    first = np.flatnonzero(stream.labels)[0]
    assert (run["y"].values[:first] == 0).all()
