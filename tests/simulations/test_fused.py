"""The benchmark's fused kernel takes the circuit's steps, or its time would mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ReferenceCircuit
from simulations import bench, fused
from simulations.datasets import MOONS_LIFT


@pytest.mark.parametrize("n_readouts", [1, 3])
def test_the_fused_kernel_takes_the_same_steps(n_readouts):
    parameters, centers = bench.make_case(40, 4, n_readouts)
    task = bench.make_task(60, n_readouts)
    circuit = ReferenceCircuit(parameters, MOONS_LIFT, tile_centers=centers)
    found = fused.advance(circuit, circuit.state, task)
    expected = circuit._advance(circuit.state, task)
    # Rounding in another order, as between the engines; mu = 1000 multiplies it in y.
    assert np.abs(found["h"] - expected["h"]).max() <= 1e-10
    assert np.abs(found["y"] - expected["y"]).max() <= 1e-7
