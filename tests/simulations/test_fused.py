"""What the circuit's time is compared with takes its steps, or that time would mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ReferenceCircuit
from simulations import annarchy, bench, fused
from simulations.datasets import MOONS_LIFT


def assert_same_steps(advance, n_tiles, k, n_points, n_readouts=1):
    parameters, centers = bench.make_case(n_tiles, k, n_readouts)
    task = bench.make_task(n_points, n_readouts)
    circuit = ReferenceCircuit(parameters, MOONS_LIFT, tile_centers=centers)
    found, expected = advance(circuit, task), circuit._advance(circuit.state, task)
    # Rounding in another order over all steps; mu = 1000 multiplies it in y.
    assert np.abs(found["h"] - expected["h"]).max() <= 1e-10
    assert np.abs(found["y"] - expected["y"]).max() <= 1e-7


@pytest.mark.parametrize("n_readouts", [1, 3])
def test_the_fused_kernel_takes_the_same_steps(n_readouts):
    def advance(circuit, task):
        return fused.advance(circuit, circuit.state, task)

    assert_same_steps(advance, 40, 4, 60, n_readouts)


@pytest.mark.skipif(not annarchy.available(), reason="ANNarchy is not installed")
def test_annarchy_takes_the_same_steps():
    def advance(circuit, task):
        with annarchy.compiled(circuit) as peer:
            found = peer.advance(circuit.state.copy(), task)
        assert peer.seconds > 0
        return found

    assert_same_steps(advance, 12, 3, 10)
