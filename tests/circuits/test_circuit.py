"""What a user does with a circuit: run, go on, predict, follow progress, keep results."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from circuits import (
    CircuitParameters,
    ManifoldCircuit,
    ReferenceCircuit,
    SphereLift,
    SpikingCircuit,
    SpikingParameters,
)
from circuits.engines import ENGINES, compiler
from circuits.engines.solvers import SOLVERS, make_circuit
from circuits.errors import EngineError, InputError, UnsettledWarning
from tests.conftest import moons, small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")


def make(solver: str, parameters: CircuitParameters):
    return make_circuit(solver, parameters, LIFT)


RUNNING = ("numpy", "cpp_standalone", "reference", "exact")


@pytest.mark.parametrize("engine", [*ENGINES, *SOLVERS])
def test_every_engine_and_solver_makes_a_circuit(engine):
    centers = np.array([[0.0, 0.5], [1.0, 0.0]])
    circuit = make_circuit(engine, CircuitParameters(n_tiles=2), LIFT, centers)
    assert circuit.engine == engine or engine == "auto"
    settling = {"reference": "dynamics", "exact": "exact"}.get(engine)
    assert getattr(circuit, "settling", None) == settling
    np.testing.assert_allclose(circuit.state.W, LIFT(centers), atol=1e-12)
    if engine == "numpy":
        spiking = SpikingParameters(cells=2)
        twin = make_circuit(engine, circuit.parameters, LIFT, centers, spiking=spiking, seed=3)
        assert type(twin) is SpikingCircuit
        assert (twin.spiking, twin.seed) == (spiking, 3)
        np.testing.assert_allclose(twin.state.W, LIFT(centers), atol=1e-12)
        assert make_circuit(engine, circuit.parameters, LIFT, spiking=spiking).seed == 0


def test_other_engines_are_refused():
    parameters, spiking = CircuitParameters(), SpikingParameters()
    for name, words in (("gpu", "'gpu'.*auto, .*exact"), (None, "None"), (["exact"], "exact")):
        refused(lambda name=name: make_circuit(name, parameters, LIFT), words, InputError)
    refused(lambda: make_circuit("exact", parameters, LIFT, spiking=spiking), "exact", InputError)


@pytest.mark.parametrize("solver", RUNNING)
@pytest.mark.parametrize("reset", [True, False])
def test_predict_learns_nothing(solver, reset):
    parameters = small_circuit(tile_radius=1.0, reset=reset, steps_per_presentation=10)
    points, _, labels = moons(60, after=10)
    circuit, twin = make(solver, parameters), make(solver, parameters)
    circuit.run(points[:40], labels[:40])
    twin.run(points[:40], labels[:40])
    before = circuit.state
    y = circuit.predict(points[40:])
    after = circuit.state
    assert y.shape == (20, 1)
    assert np.abs(y).max() <= 1
    for name in ("W", "b", "w", "h", "u", "V"):
        assert (getattr(before, name) == getattr(after, name)).all(), name
    assert before.learned == after.learned
    going_on, expected = circuit.run(points[40:]), twin.run(points[40:])
    assert (going_on["y"].values == expected["y"].values).all()


def test_predict_is_the_readout_of_the_settled_state():
    points, _, labels = moons(300, after=100)
    circuit = ManifoldCircuit(CircuitParameters(), LIFT, "cpp_standalone")
    circuit.run(points, labels)
    exact = ReferenceCircuit(CircuitParameters(), LIFT, settling="exact")
    exact.state = circuit.state
    new, classes, _ = moons(200, seed=8)
    y, expected = circuit.predict(new), exact.predict(new)
    # Where the circuit has settled; mu = 1000 multiplies what is left of the transient.
    assert np.mean(np.abs(y - expected) < 1e-3) > 0.95
    assert np.mean(np.sign(y[:, 0]) == classes) > 0.9


@pytest.mark.parametrize("solver", ["numpy", "exact"])  # others: see test_agreement.py
def test_every_solver_returns_the_same_data_set(solver):
    points, _, labels = moons(20, after=5)
    options = {"record": ("u", "y"), "snapshot_every": 6}
    run = make(solver, small_circuit(tile_radius=1.0, n_readouts=2)).run(points, labels, **options)
    assert {name: " ".join(map(str, run[name].dims)) for name in run.data_vars} == {
        **{"h": "presentation tile", "u": "presentation interneuron", "y": "presentation readout"},
        **{"W": "tile input", "b": "tile", "w": "readout tile", "V": "interneuron tile"},
        **{"u_trace": "presentation step interneuron", "y_trace": "presentation step readout"},
        **{"W_snapshots": "snapshot tile input", "b_snapshots": "snapshot tile"},
        **{"w_snapshots": "snapshot readout tile", "snapshot_presentation": "snapshot"},
        **{"points": "presentation coordinate", "labels": "presentation readout"},
        **{"recruited": "tile", "change": "presentation", "covered": "presentation"},
    }
    sizes = {"presentation": 20, "step": 30, "tile": 6, "interneuron": 2, "readout": 2}
    assert run.sizes == sizes | {"input": 3, "coordinate": 2, "snapshot": 3}
    assert run["snapshot_presentation"].values.tolist() == [5, 11, 17]
    assert CircuitParameters(**json.loads(run.attrs["parameters"])).n_readouts == 2
    assert SphereLift(**json.loads(run.attrs["lift"])).radius == 3.0
    assert "brian2" in json.loads(run.attrs["versions"])
    assert run.attrs["engine"] == solver
    assert (run["u_trace"].values[:, -1] == run["u"].values).all()
    assert (run["y_trace"].values[:, -1] == run["y"].values).all()


@pytest.mark.parametrize("solver", RUNNING)
def test_progress_reaches_the_end(solver, capsys):
    points, _, labels = moons(20, after=5)
    seen = []
    circuit = make(solver, small_circuit(tile_radius=1.0))
    circuit.run(points, labels, progress=lambda done, total: seen.append((done, total)))
    done = [pair[0] for pair in seen]
    assert done == sorted(done)
    assert seen[-1] == (20, 20)
    circuit.run(points, labels, progress=True)
    assert "20/20" in capsys.readouterr().err


def test_auto_chooses_an_engine_that_works(capsys, monkeypatch):
    assert ManifoldCircuit(small_circuit(), LIFT).engine == "cpp_standalone"
    assert "engine cpp_standalone" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "compiler_works", lambda: False)
        assert ManifoldCircuit(small_circuit(), LIFT).engine == "numpy"
        assert "engine numpy" in capsys.readouterr().err
    monkeypatch.setenv("PATH", "")  # where no compiler is
    monkeypatch.delenv("CXX", raising=False)
    assert ManifoldCircuit(small_circuit(), LIFT).engine == "numpy"
    for engine in ("cpp_standalone", "cython"):
        refused(lambda e=engine: make(e, small_circuit()), "compiler.*engine='numpy'", EngineError)


@pytest.mark.parametrize("solver", ["numpy", "cpp_standalone", "reference"])
def test_a_failed_run_leaves_the_circuit_as_it_was(solver):
    points, _, labels = moons(40, after=10)
    # So many steps that the slowest engine says how far it is while it is on its way.
    parameters = small_circuit(tile_radius=1.0, steps_per_presentation=400)
    circuit = make(solver, parameters)
    circuit.run(points[:20], labels[:20])
    before = circuit.state

    def interrupt(done, total):
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        circuit.run(points[20:], labels[20:], progress=interrupt)
    after = circuit.state
    assert all((getattr(before, n) == getattr(after, n)).all() for n in "WbwhuV")
    assert (before.learned, before.shown) == (after.learned, after.shown)
    going_on = circuit.run(points[20:], labels[20:])
    whole = make("reference", parameters).run(points, labels)
    assert np.abs(going_on["h"].values - whole["h"].values[20:]).max() <= 1e-10


def test_results_and_snapshots_of_two_halves():
    points, _, labels = moons(20, after=5)
    parameters = small_circuit(tile_radius=1.0)
    buffer = points.copy()
    whole = make("exact", parameters).run(buffer, labels, snapshot_every=4)
    buffer[:] = 0
    assert (whole["points"].values == points).all()  # results keep a copy
    pieces = make("exact", parameters)
    halves = [
        pieces.run(points[s], labels[s], snapshot_every=4) for s in (slice(10), slice(10, 20))
    ]
    assert whole["snapshot_presentation"].values.tolist() == [3, 7, 11, 15, 19]
    assert [run["snapshot_presentation"].values.tolist() for run in halves] == [[3, 7], [1, 5, 9]]
    joined = np.concatenate([run["w_snapshots"].values for run in halves])
    assert (joined == whole["w_snapshots"].values).all()


def test_one_readout_per_label_channel():
    """Readouts do not see each other: r of them give what r circuits give."""
    points, classes, _ = moons(120, after=10)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((120, 3)) < 0.2, classes[:, None], 0)
    mu = (1000.0, 10.0, 1.0)
    together = make("exact", CircuitParameters(n_readouts=3, mu=mu)).run(points, labels)
    for readout in range(3):
        run = make("exact", CircuitParameters(mu=mu[readout])).run(points, labels[:, readout])
        # Sums may come in another order; mu = 1000 multiplies the rounding.
        assert np.abs(run["y"].values[:, 0] - together["y"].values[:, readout]).max() < 1e-9


@pytest.mark.parametrize(("moving", "warns"), [(4, False), (5, True)])
def test_runs_and_predictions_warn_if_a_quarter_still_moves(monkeypatch, moving, warns):
    """Relative changes of which so many are just above one in a million, the others just below."""
    points, _, _ = moons(20, after=5)
    circuit = make("exact", small_circuit(tile_radius=1.0))
    advance, change = circuit._advance, np.where(np.arange(20) < moving, 1.01e-6, 0.99e-6)
    monkeypatch.setattr(circuit, "_advance", lambda *given: advance(*given) | {"change": change})
    for present in (circuit.run, circuit.predict, circuit.respond):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = present(points)
        assert [warning.category for warning in said] == [UnsettledWarning] * warns
        if warns:
            assert "5 of 20" in str(said[0].message)
        if present == circuit.run:
            assert found.attrs["unsettled_share"] == moving / 20
