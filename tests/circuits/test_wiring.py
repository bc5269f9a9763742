"""What engines are given and give back, by hand: no engine runs here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from circuits import CircuitModel, ReferenceCircuit, SphereLift
from circuits.engines.wiring import Wiring
from circuits.state import CircuitState, Task
from tests.conftest import small_circuit

LIFT = SphereLift(center=(0.0,), radius=100.0)
WIRING = Wiring()
TIMES = {"tau_h": "2 ms", "tau_u": "3 ms", "tau_V": "4 ms", "dt": "1 ms"}


def circuit_of(model=None, **changes) -> ReferenceCircuit:
    changes = {"n_tiles": 3, "tile_radius": 1.0, "initial_weight": 0.5} | TIMES | changes
    return ReferenceCircuit(small_circuit(**changes), LIFT, model=model)


def state_of(circuit: ReferenceCircuit) -> CircuitState:
    """Tiles at 0 and 5, the third idle, after seven presentations, with rates of all sizes."""
    rng, p = np.random.default_rng(1), circuit.parameters
    state = circuit._idle()
    state.W = np.vstack([0.5 * LIFT([[0.0], [5.0]]), np.zeros((1, 2))])
    state.b = 0.5 * math.sqrt(circuit.alpha) * np.array([1.0, 1.0, 0.0])
    state.recruited = np.array([0, 4, -1])
    state.h, state.u = rng.random(3), 1 + rng.random(p.n_interneurons)
    state.V, state.w = 1 + rng.random((p.n_interneurons, 3)), rng.random((p.n_readouts, 3))
    state.last_size, state.learned, state.shown = 0.25, 7, 9
    return state


def task_of(learn: bool, readouts: int = 1, **options) -> Task:
    z = np.array([[1.0] * readouts, [0.0] * readouts])
    settings = {"record": (), "snapshots": False} | options
    return Task(LIFT([[0.1], [9.0]]), z, learn, settings["record"], settings["snapshots"], print)


def same(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for group, values in expected.items():
        assert found[group].keys() == values.keys(), group
        for name, value in values.items():
            # Both are computed by the same operations, but for the order of some products.
            np.testing.assert_allclose(found[group][name], value, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("learn", [True, False])
def test_a_stream_that_restarts_under_gain_control(learn):
    circuit = circuit_of(n_readouts=2, mu=(3.0, 4.0), recruit_below=0.25, learning_rate=0.1)
    state, task = state_of(circuit), task_of(learn, 2)
    found = WIRING.initial_values(circuit, state, task, {})
    alpha = circuit.alpha
    expected = {
        "inputs": {"presentation": -1},
        "excitatory": {"h": state.h, "b": state.b, "recruited": [0, 4, -1], "kappa": 0.5}
        | {"h_rest": 1 / math.sqrt(3), "tau_h": 2e-3}
        | {"sqrt_alpha": math.sqrt(alpha), "eta": 0.1 if learn else 0.0},
        # Two interneurons rest at 1 and 1.5, divided by the norm of both.
        "inhibitory": {"u": state.u, "u_rest": [1 / 3.25**0.5, 1.5 / 3.25**0.5], "tau_u": 3e-3},
        "gain_control": {"last": 0.25, "smallest": circuit.floor},
        "measuring": {},
        "recruiter": {"recruiting": int(learn), "smallest": circuit.floor}
        | {"least": (0.25 + 1e-9) * (1 - alpha), "first_presentation": 7},
        "pooling": {},
        "lateral": {"V": state.V.ravel(), "tau_V": 4e-3},
        "feedforward": {"W": state.W.ravel()},
        "readout": {"mu": [3.0, 4.0]},
        "classifier": {"w": state.w.ravel(), "learned": 7, "running": float(learn)},
    }
    same(found, expected)


def test_what_a_user_has_set_is_used_instead():
    circuit = circuit_of()
    state, task = state_of(circuit), task_of(False)
    state.extra = {"excitatory.noise": np.array([1.0, 2.0, 3.0])}
    # All tiles share one h_rest: a network has it as an array of one element.
    values = {"excitatory.h_rest": np.array([0.2]), "inhibitory.u_rest": np.array([0.3, 0.4])}
    learning_rates = ("excitatory.eta", "classifier.running", "recruiter.recruiting")
    assert set(learning_rates) == set(circuit.parts.learning)
    values |= {name: np.array([9.0]) for name in learning_rates}
    values |= {"excitatory.tau_h": np.array([7.0])}
    found = WIRING.initial_values(circuit, state, task, values)
    assert found["excitatory"]["noise"].tolist() == [1, 2, 3]
    assert found["excitatory"]["h_rest"].tolist() == [0.2]
    assert found["inhibitory"]["u_rest"].tolist() == [0.3, 0.4]
    assert found["excitatory"]["tau_h"] == 7.0
    # Rates of learning stay at zero while weights are frozen, whoever set them.
    chosen = [name.split(".") for name in learning_rates]
    assert [found[group][name] for group, name in chosen] == [0.0] * 3
    learning = WIRING.initial_values(circuit, state, task_of(True), values)
    assert [learning[group][name] for group, name in chosen] == [9.0] * 3


MASKS = {
    "lateral": np.array([[True, False, True], [False, True, True]]),
    "feedforward": np.array([[True, True], [False, True], [True, False]]),
    "classifier": np.array([[False, True, True]]),
}


FINAL = {
    "excitatory.h": np.array([1.0, 2.0, 3.0]),
    "excitatory.b": np.array([4.0, 5.0, 6.0]),
    "excitatory.recruited": np.array([0.0, 4.0, 8.0]),
    "inhibitory.u": np.array([7.0, 8.0]),
    "lateral.V": np.arange(6.0),
    "feedforward.W": np.arange(6.0) + 10,
    "classifier.w": np.array([0.1, 0.2, 0.3]),
    "gain_control.last": np.array([0.75]),
    "excitatory.noise": np.array([9.0]),
}
RECORDED = {
    "h": {"h": np.array([[3.0, 0.0, 4.0]] * 2), "h_before": np.array([[3.0, 0.0, 3.5]] * 2)},
    "u": {"u": np.array([[0.6, 0.8]] * 2), "u_before": np.array([[0.6, 0.8], [0.6, 0.6]])},
    "y": {"y": np.array([[0.5], [-0.5]])},
    "V_trace": {"V": np.arange(24.0).reshape(4, 6)},
    "y_trace": {"y": np.arange(4.0)[:, None]},
    "W_snapshots": {"W": np.arange(12.0).reshape(2, 6)},
    "b_snapshots": {"b": np.arange(6.0).reshape(2, 3)},
    "w_snapshots": {"w": np.arange(6.0).reshape(2, 3) + 1},
}


@pytest.mark.parametrize("learn", [True, False])
def test_what_an_engine_gives_back(learn):
    circuit = circuit_of()
    state = state_of(circuit)
    task = task_of(learn, record=("V", "y"), snapshots=True)
    found = WIRING.collect(circuit, state, task, FINAL, RECORDED)
    for name, value in {
        **{"h": [1, 2, 3], "u": [7, 8], "b": [4, 5, 6], "V": [[0, 1, 2], [3, 4, 5]]},
        **{"W": [[10, 11], [12, 13], [14, 15]], "w": [[0.1, 0.2, 0.3]], "recruited": [0, 4, 8]},
    }.items():
        assert getattr(state, name).tolist() == value, name
    assert state.recruited.dtype == np.int64
    assert state.last_size == 0.75
    assert list(state.extra) == ["excitatory.noise"]
    assert state.extra["excitatory.noise"].tolist() == [9.0]
    for name in ("h", "u", "b", "W", "w"):  # nothing is shared
        assert not np.shares_memory(
            getattr(state, name), FINAL[next(f for f in FINAL if f.endswith(f".{name}"))]
        )
    assert not np.shares_memory(state.extra["excitatory.noise"], FINAL["excitatory.noise"])
    assert (state.shown, state.learned) == (11, 9 if learn else 7)
    assert found.keys() == {"h", "u", "y", "change", "V_trace", "y_trace"} | {
        f"{name}_snapshots" for name in "Wbw"
    }
    for name in "huy":
        assert found[name] is RECORDED[name][name]
    # |dh|/|h| = 0.5/5; in the second |du|/|u| = 0.2/1 is larger.
    assert found["change"] == pytest.approx([0.1, 0.2], rel=1e-14)
    assert (found["V_trace"] == np.arange(24.0).reshape(2, 2, 2, 3)).all()
    assert found["y_trace"].tolist() == [[[0.0], [1.0]], [[2.0], [3.0]]]
    assert (found["W_snapshots"] == np.arange(12.0).reshape(2, 3, 2)).all()
    assert (found["b_snapshots"] == np.arange(6.0).reshape(2, 3)).all()
    assert (found["w_snapshots"] == np.arange(6.0).reshape(2, 1, 3) + 1).all()


def test_masked_weights_are_unpacked_wherever_they_come_back():
    """Three tiles, two inputs, two interneurons: zeros where there is no synapse."""
    circuit = circuit_of(CircuitModel(connections=MASKS))
    state, task = state_of(circuit), task_of(True, record=("V",), snapshots=True)
    final = FINAL | {
        "lateral.V": np.array([1.0, 2.0, 3.0, 4.0]),
        "feedforward.W": np.array([5.0, 6.0, 7.0, 8.0]),
        "classifier.w": np.array([9.0, 10.0]),
    }
    recorded = RECORDED | {
        "V_trace": {"V": np.arange(8.0).reshape(2, 4) + 1},
        "W_snapshots": {"W": np.arange(8.0).reshape(2, 4) + 1},
        "w_snapshots": {"w": np.array([[1.0, 2.0], [3.0, 4.0]])},
    }
    found = WIRING.collect(circuit, state, task, final, recorded)
    assert "y_trace" not in found  # which was not asked for
    assert state.V.tolist() == [[1, 0, 2], [0, 3, 4]]
    assert state.W.tolist() == [[5, 6], [0, 7], [8, 0]]
    assert state.w.tolist() == [[0, 9, 10]]
    # Two presentations of one step each.
    assert found["V_trace"].tolist() == [[[[1, 0, 2], [0, 3, 4]]], [[[5, 0, 6], [0, 7, 8]]]]
    assert found["W_snapshots"].tolist() == [[[1, 2], [0, 3], [4, 0]], [[5, 6], [0, 7], [8, 0]]]
    assert found["w_snapshots"].tolist() == [[[0, 1, 2]], [[0, 3, 4]]]
