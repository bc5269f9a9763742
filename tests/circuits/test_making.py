"""Every engine and solver makes the circuit that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import CircuitParameters, SphereLift, SpikingCircuit, SpikingParameters
from circuits.engines import ENGINES
from circuits.errors import InputError
from circuits.making import SOLVERS, make_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
CENTERS = np.array([[0.0, 0.5], [1.0, 0.0]])


@pytest.mark.parametrize("engine", [*ENGINES, *SOLVERS])
def test_every_engine_and_solver_makes_a_circuit(engine):
    circuit = make_circuit(engine, CircuitParameters(n_tiles=2), LIFT, CENTERS)
    assert circuit.engine == engine or engine == "auto"
    settling = {"reference": "dynamics", "exact": "exact"}.get(engine)
    assert getattr(circuit, "settling", None) == settling
    np.testing.assert_allclose(circuit.state.W, LIFT(CENTERS), atol=1e-12)


def test_other_engines_are_refused():
    parameters, spiking = CircuitParameters(), SpikingParameters()
    for name, words in (("gpu", "'gpu'.*auto, .*exact"), (None, "None"), (["exact"], "exact")):
        refused(lambda name=name: make_circuit(name, parameters, LIFT), words, InputError)
    refused(lambda: make_circuit("exact", parameters, LIFT, spiking=spiking), "exact", InputError)


def test_a_circuit_by_name_with_spikes():
    parameters = CircuitParameters(n_tiles=2)
    spiking = SpikingParameters(cells=2)
    circuit = make_circuit("numpy", parameters, LIFT, CENTERS, spiking=spiking, seed=3)
    assert type(circuit) is SpikingCircuit
    assert (circuit.spiking, circuit.seed) == (spiking, 3)
    np.testing.assert_allclose(circuit.state.W, LIFT(CENTERS), atol=1e-12)
    assert make_circuit("numpy", parameters, LIFT, spiking=spiking).seed == 0
