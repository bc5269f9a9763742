"""Circuits on disk: what was saved goes on as if it had never stopped."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from circuits import CircuitModel, CircuitParameters, ManifoldCircuit, ReferenceCircuit, results
from circuits.errors import CircuitError, EngineError, InputError, ParameterError
from circuits.files import FileError
from circuits.rules import Rule
from simulations.experiments.experiment import make_circuit
from tests.circuits.test_agreement import LIFT
from tests.conftest import moons, small_circuit

pytestmark = [
    pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning"),
    pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning"),
]

SOLVERS = ("numpy", "cython", "cpp_standalone", "reference", "exact")
POINTS, _, LABELS = moons(60, seed=2, after=10)


def load(path, solver):
    if solver in ("reference", "exact"):
        settling = "exact" if solver == "exact" else "dynamics"
        return ReferenceCircuit.load(path, settling=settling)
    return ManifoldCircuit.load(path, engine=solver)


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_saved_and_loaded_goes_on_as_if_nothing_had_happened(solver, reset, tmp_path):
    parameters = small_circuit(
        tile_radius=1.0, reset=reset, n_readouts=2, mu=(1000.0, 3.0), steps_per_presentation=10
    )
    circuit = make_circuit(solver, parameters, LIFT)
    circuit.run(POINTS[:30], LABELS[:30])
    circuit.predict(POINTS[:3])
    path = circuit.save(tmp_path / "deep" / "circuit.nc")
    loaded = load(path, solver)
    assert loaded.parameters == parameters
    assert loaded.lift.as_dict() == LIFT.as_dict()
    assert loaded.state.learned == 30
    assert loaded.state.shown == 33
    first, second = circuit.run(POINTS[30:], LABELS[30:]), loaded.run(POINTS[30:], LABELS[30:])
    # The same computation from the same numbers, by the same solver.
    assert first.equals(second)
    assert (circuit.predict(POINTS) == loaded.predict(POINTS)).all()


def test_another_solver_takes_over(tmp_path):
    parameters = small_circuit(tile_radius=1.0, steps_per_presentation=10)
    circuit = ManifoldCircuit(parameters, LIFT, "cpp_standalone")
    circuit.run(POINTS[:30], LABELS[:30])
    path = circuit.save(tmp_path / "circuit.nc")
    expected = circuit.run(POINTS[30:], LABELS[30:])
    for solver in ("numpy", "cython", "reference"):
        found = load(path, solver).run(POINTS[30:], LABELS[30:])
        for name in ("h", "u", "y", "W", "b", "w", "V"):
            # Sums in other orders, over 30 presentations.
            assert np.abs(found[name].values - expected[name].values).max() <= 1e-10, name


def test_a_model_of_ones_own_and_values_set_on_the_network(tmp_path):
    from brian2 import ms

    mask = np.ones((2, 6), dtype=bool)
    mask[0, ::2] = False
    leaky = "dh/dt = (gain*(drive - sqrt_alpha*b - inhibition) - leak*h*(slow/tau_h))/tau_h : 1"
    model = CircuitModel(
        excitatory=Rule(leaky),
        connections={"lateral": mask},
        delay="2 ms",
        namespace={"leak": 0.1, "slow": 3 * ms},
    )
    parameters = small_circuit(tile_radius=1.0, steps_per_presentation=10, reset=False)
    circuit = ManifoldCircuit(parameters, LIFT, "numpy", model=model)
    circuit.run(POINTS[:30], LABELS[:30])
    path = circuit.save(tmp_path / "circuit.nc")
    loaded = ManifoldCircuit.load(path, "numpy")
    assert loaded.model.as_dict() == model.as_dict()
    assert loaded.run(POINTS[30:], LABELS[30:]).equals(circuit.run(POINTS[30:], LABELS[30:]))
    with pytest.raises(ParameterError, match="only Brian2 text"):
        ReferenceCircuit.load(path)
    circuit.network["excitatory"].tau_h = 20 * ms
    again = ManifoldCircuit.load(circuit.save(path), "numpy")
    assert set(again.values_set) == {"excitatory.tau_h"}
    assert again.run(POINTS[:9]).equals(circuit.run(POINTS[:9]))


def test_what_cannot_be_saved_says_so(tmp_path):
    path = tmp_path / "circuit.nc"
    parameters = small_circuit(tile_radius=1.0, steps_per_presentation=5)
    with pytest.raises(InputError, match="no state yet"):
        ManifoldCircuit(parameters, LIFT, "numpy").save(path)
    extended = ManifoldCircuit(parameters, LIFT, "numpy", extend=lambda network: None)
    extended.run(POINTS)
    with pytest.raises(EngineError, match="extended or changed by hand cannot be saved"):
        extended.save(path)
    assert not path.exists()


def test_what_is_no_circuit_is_refused(tmp_path):
    path = tmp_path / "circuit.nc"
    circuit = ReferenceCircuit(small_circuit(tile_radius=1.0), LIFT, settling="exact")
    run = circuit.run(POINTS)
    results.save(run, tmp_path / "run.nc")
    with pytest.raises(FileError, match="does not hold a circuit"):
        ReferenceCircuit.load(tmp_path / "run.nc")
    with pytest.raises(FileError, match="another kind of result"):
        circuit.save(tmp_path / "run.nc")  # nor is a result written over
    circuit.save(path)
    circuit.save(path)  # but an earlier circuit is
    whole = results.load(path)
    for change in (
        lambda kept: kept.assign_attrs(format_version=99),
        lambda kept: kept.assign_attrs(parameters="{}{"),
        lambda kept: kept.assign_attrs(parameters=json.dumps({"n_tiles": 7})),
        lambda kept: kept.assign_attrs(lift="[]"),
        lambda kept: kept.assign_attrs(model="{}"),
        lambda kept: kept.assign_attrs(learned="many"),
        lambda kept: kept.drop_vars("W"),
        lambda kept: kept.assign(W=kept["W"] * np.nan),
        lambda kept: xr.Dataset(attrs=kept.attrs),
    ):
        results.save(change(whole), path)
        with pytest.raises(CircuitError) as refused:
            ReferenceCircuit.load(path)
        assert "\n" not in str(refused.value)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileError, match="is not a result"):
        ReferenceCircuit.load(path)


def test_the_parameters_of_any_circuit_come_back(tmp_path):
    parameters = CircuitParameters(n_tiles=3, dt="0.7 ms", tau_h="9.1 ms", readout="tanh", gain=7.0)
    circuit = ReferenceCircuit(parameters, LIFT, settling="exact")
    circuit.run(POINTS)
    assert ReferenceCircuit.load(circuit.save(tmp_path / "c.nc")).parameters == parameters
