"""Every engine and solver makes the circuit that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import CircuitParameters, SphereLift, SpikingCircuit, SpikingParameters
from circuits.engines import ENGINES
from circuits.errors import InputError
from circuits.making import SOLVERS, make_circuit

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


@pytest.mark.parametrize("engine", [*ENGINES, *SOLVERS])
def test_every_engine_and_solver_makes_a_circuit(engine):
    circuit = make_circuit(engine, CircuitParameters(), LIFT)
    assert circuit.engine == engine or engine == "auto"


def test_other_engines_are_refused():
    with pytest.raises(InputError, match=r"no engine 'gpu': use auto, .*exact"):
        make_circuit("gpu", CircuitParameters(), LIFT)
    with pytest.raises(InputError, match=r"exact has no cells that fire: .* auto, cpp_standalone"):
        make_circuit("exact", CircuitParameters(), LIFT, spiking=SpikingParameters())


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


def test_names_of_any_kind_are_refused():
    for name in (3, None, ["exact"]):
        with pytest.raises(InputError, match="there is no engine"):
            make_circuit(name, CircuitParameters(), LIFT)
