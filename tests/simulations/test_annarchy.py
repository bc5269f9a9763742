"""The peer takes the circuit's steps, or its time would mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ReferenceCircuit
from simulations import annarchy, bench
from simulations.datasets import MOONS_LIFT


@pytest.mark.skipif(not annarchy.available(), reason="ANNarchy is not installed")
def test_annarchy_takes_the_same_steps():
    parameters, centers = bench.make_case(12, 3)
    task = bench.make_task(10)
    circuit = ReferenceCircuit(parameters, MOONS_LIFT, tile_centers=centers)
    with annarchy.compiled(circuit) as peer:
        found = peer.advance(circuit.state.copy(), task)
    expected = circuit._advance(circuit.state, task)
    # Rounding in another order over 2000 steps; mu = 1000 multiplies it in y.
    assert np.abs(found["h"] - expected["h"]).max() <= 1e-10
    assert np.abs(found["y"] - expected["y"]).max() <= 1e-7
    assert peer.seconds > 0
