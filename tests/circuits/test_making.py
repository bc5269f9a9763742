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


@pytest.mark.parametrize("engine", [*ENGINES, *SOLVERS])
def test_every_engine_and_solver_makes_a_circuit(engine):
    circuit = make_circuit(engine, CircuitParameters(), LIFT)
    assert circuit.engine == engine or engine == "auto"


def test_other_engines_are_refused():
    parameters, spiking = CircuitParameters(), SpikingParameters()
    for name, words in (
        ("gpu", "'gpu'.*auto, .*exact"),
        (3, "3"),
        (None, "None"),
        (["exact"], "exact"),
    ):
        refused(lambda name=name: make_circuit(name, parameters, LIFT), words, InputError)
    refused(lambda: make_circuit("exact", parameters, LIFT, spiking=spiking), "exact", InputError)


def test_a_circuit_by_name_with_spikes():
    parameters = CircuitParameters(n_tiles=2)
    spiking = SpikingParameters(cells=2)
    centers = [[0.0, 0.5], [1.0, 0.0]]
    circuit = make_circuit("numpy", parameters, LIFT, centers, spiking=spiking, seed=3)
    assert type(circuit) is SpikingCircuit
    assert (circuit.spiking, circuit.seed) == (spiking, 3)
    np.testing.assert_allclose(circuit.state.W, LIFT(np.array(centers)), atol=1e-12)
    assert make_circuit("numpy", parameters, LIFT, spiking=spiking).seed == 0


@pytest.mark.parametrize(("engine", "settling"), [("reference", "dynamics"), ("exact", "exact")])
def test_solvers_of_a_name_start_with_the_tiles_they_are_given(engine, settling):
    centers = [[0.0, 0.5], [1.0, 0.0]]
    circuit = make_circuit(engine, CircuitParameters(n_tiles=2), LIFT, centers)
    assert circuit.settling == settling
    np.testing.assert_allclose(circuit.state.W, LIFT(np.array(centers)), atol=1e-12)
