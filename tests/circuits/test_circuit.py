"""What a user does with a circuit: run, go on, predict, follow progress, keep results."""

from __future__ import annotations

import json

import numpy as np
import pytest

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.engines import compiler
from circuits.errors import EngineError
from tests.conftest import ENGINES, moons, small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")


def make(solver: str, parameters: CircuitParameters):
    if solver in ENGINES:
        return ManifoldCircuit(parameters, LIFT, solver)
    settling = "dynamics" if solver == "reference" else "exact"
    return ReferenceCircuit(parameters, LIFT, settling=settling)


SOLVERS = ("numpy", "cpp_standalone", "reference", "exact")


@pytest.mark.parametrize("solver", SOLVERS)
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


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_returns_the_same_data_set(solver):
    points, _, labels = moons(20, after=5)
    options = {"record": ("u", "y"), "snapshot_every": 6}
    run = make(solver, small_circuit(tile_radius=1.0, n_readouts=2)).run(points, labels, **options)
    shapes = {
        "h": {"presentation": 20, "tile": 6},
        "u": {"presentation": 20, "interneuron": 2},
        "y": {"presentation": 20, "readout": 2},
        "W": {"tile": 6, "input": 3},
        "b": {"tile": 6},
        "w": {"readout": 2, "tile": 6},
        "V": {"interneuron": 2, "tile": 6},
        "recruited": {"tile": 6},
        "u_trace": {"presentation": 20, "step": 30, "interneuron": 2},
        "y_trace": {"presentation": 20, "step": 30, "readout": 2},
        "W_snapshots": {"snapshot": 3, "tile": 6, "input": 3},
        "b_snapshots": {"snapshot": 3, "tile": 6},
        "w_snapshots": {"snapshot": 3, "readout": 2, "tile": 6},
        "snapshot_presentation": {"snapshot": 3},
        "points": {"presentation": 20, "coordinate": 2},
        "labels": {"presentation": 20, "readout": 2},
        "change": {"presentation": 20},
        "covered": {"presentation": 20},
    }
    assert {name: dict(run[name].sizes) for name in run.data_vars} == shapes
    assert run["snapshot_presentation"].values.tolist() == [5, 11, 17]
    assert CircuitParameters(**json.loads(run.attrs["parameters"])).n_readouts == 2
    assert SphereLift(**json.loads(run.attrs["lift"])).radius == 3.0
    assert "brian2" in json.loads(run.attrs["versions"])
    assert run.attrs["engine"] == solver
    assert (run["u_trace"].values[:, -1] == run["u"].values).all()
    assert (run["y_trace"].values[:, -1] == run["y"].values).all()


@pytest.mark.parametrize("solver", SOLVERS)
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
