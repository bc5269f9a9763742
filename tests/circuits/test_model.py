"""The model as a value: what it refuses, what it says of itself, and that it is what runs."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from circuits import CircuitModel, ManifoldCircuit, ReferenceCircuit, Rule, SphereLift, reference
from circuits.engines import cache
from circuits.errors import CircuitError, ParameterError
from tests.conftest import moons, small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
PARAMETERS = small_circuit(tile_radius=1.0)
POINTS, _, LABELS = moons(30, after=5)

pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")


def oja(W, h, x, eta):
    return W + eta * h[:, None] * (x - h[:, None] * W)


OJA = Rule("W += eta_post*h_post*(x_pre - h_post*W)", oja)
MASKS = {
    "lateral": [[1, 1, 0, 1, 0, 1], [0, 1, 1, 1, 1, 0]],
    "feedforward": [[1, 1, 1]] * 4 + [[0, 1, 1]] * 2,
    "classifier": [[1, 0, 1, 1, 1, 1]],
}
NO_LEARNING = ("answer", "load", "drive", "recruit", "measure", "restart")
MODELS = {
    "delay": CircuitModel(delay="3 ms"),
    "V after the rates": CircuitModel(each_step=("sums", "rates", "lateral")),
    "masks": CircuitModel(connections=MASKS),
    "masks and delay": CircuitModel(connections=MASKS, delay="1 ms"),
    "no learning": CircuitModel(each_presentation=NO_LEARNING),
    "rules": CircuitModel(
        feedforward=OJA,
        readout=Rule("y = net/(1 + abs(net)) + z", lambda net, z, mu: net / (1 + abs(net)) + z),
        bias=Rule("b += eta*(sqrt_alpha*h**2 - b)", lambda b, h, a, e: b + e * (a**0.5 * h**2 - b)),
    ),
}


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("numpy", "V after the rates"),
        ("numpy", "no learning"),
        ("numpy", "rules"),
        ("cpp_standalone", "masks and delay"),
        pytest.param("numpy", "masks and delay", marks=pytest.mark.slow),
        pytest.param("cpp_standalone", "rules", marks=pytest.mark.slow),
    ],
)
def test_every_engine_runs_the_model_that_the_reference_runs(engine, name):
    """Two runs each, with and without restarts, every step of the second recorded."""
    model = MODELS[name]
    for reset in (True, False):
        parameters = PARAMETERS.replace(reset=reset)
        circuits = [
            ManifoldCircuit(parameters, LIFT, engine, model=model),
            ReferenceCircuit(parameters, LIFT, model=model),
        ]
        options = {"record": ("h", "u", "V", "y"), "snapshot_every": 1}
        for part in (slice(0, 12), slice(12, 30)):
            run, expected = (c.run(POINTS[part], LABELS[part], **options) for c in circuits)
            for variable in expected.data_vars:
                difference = np.abs(run[variable] * 1.0 - expected[variable] * 1.0).max()
                # Rounding over 900 steps; where masks keep h from settling it grows on the way.
                assert difference <= 1e-9, (variable, reset)
        assert json.loads(run.attrs["model_changes"]) == model.changes()
        plain = ReferenceCircuit(parameters, LIFT).run(POINTS, LABELS)
        assert np.abs(plain["W"].values - run["W"].values).max() > 1e-6  # the model matters


@pytest.mark.parametrize("engine", ["numpy", "cpp_standalone"])
def test_variables_that_a_model_adds_go_on_from_run_to_run(engine):
    """Adaptation c of the tiles, dc/dt = (h - c)/tau_c, over two runs of an untouched circuit."""
    text = """
    dh/dt = gain*(drive - sqrt_alpha*b - inhibition)/tau_h - 0.1*c/(10*ms) : 1
    dc/dt = (h - c)/(200*ms) : 1
    """
    c = np.zeros(6)

    def step(h, drive, inhibition, gamma):
        nonlocal c
        push = gamma * (drive - inhibition) - PARAMETERS.dt_ / 0.01 * 0.1 * c
        c = c + PARAMETERS.dt_ / 0.2 * (h - c)
        return np.maximum(h + push, 0.0)

    model = CircuitModel(excitatory=Rule(text, step))
    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, model=model)
    parts = [circuit.run(POINTS[part], LABELS[part]) for part in (slice(0, 12), slice(12, 30))]
    expected = ReferenceCircuit(PARAMETERS, LIFT, model=model).run(POINTS, LABELS)
    h = np.concatenate([part["h"].values for part in parts])
    assert np.abs(h - expected["h"].values).max() <= 1e-10
    before = circuit.state
    circuit.predict(POINTS[:3])  # leaves the circuit as it was, adaptation included
    assert np.abs(circuit.state.extra["excitatory.c"] - before.extra["excitatory.c"]).max() == 0
    assert (before.extra["excitatory.c"] > 0).any()


@pytest.mark.parametrize("engine", ["numpy", "cpp_standalone"])
def test_a_state_takes_no_parameters_along(engine):
    first = ManifoldCircuit(PARAMETERS, LIFT, engine)
    first.run(POINTS[:12], LABELS[:12])
    assert first.state.extra == {}
    other = PARAMETERS.replace(readout_rate=0.25, learning_rate=0.1, tau_h="16 ms", mu=3.0)
    circuits = ManifoldCircuit(other, LIFT, engine), ReferenceCircuit(other, LIFT)
    for circuit in circuits:
        circuit.state = first.state
    run, expected = (circuit.run(POINTS[12:], LABELS[12:]) for circuit in circuits)
    for name in ("h", "y", "W", "b", "w"):
        assert np.abs(run[name].values - expected[name].values).max() <= 1e-10, name


def test_a_delayed_step_by_hand():
    """One tile, one interneuron, a delay of one step: three steps worked out by hand."""
    p = small_circuit(n_tiles=1, n_interneurons=1, steps_per_presentation=3, tile_radius=1.0)
    circuit = ReferenceCircuit(p, LIFT, model=CircuitModel(delay="1 ms"), tile_centers=[[0.5, 0.2]])
    state = circuit.state
    run = circuit.run([[0.6, 0.2]], record=("h", "u", "V"))
    a = float((state.W @ LIFT([[0.6, 0.2]])[0])[0] - circuit.alpha**0.5 * state.b[0])
    gamma_h, gamma_u, gamma_V = circuit.gamma(a)
    h, u, V = 1.0, a**0.5, a**0.5  # at the scale of the drive
    h_past, u_past = h, u  # what is on its way when the presentation starts
    for step in range(3):
        inhibition, excitation = V * u_past, V * h_past
        V = V + gamma_V * (u * h - V)
        h_past, u_past = h, u
        h = max(h + gamma_h * (a - inhibition), 0)
        u = max(u + gamma_u * (excitation - u), 0)
        found = [float(run[f"{name}_trace"][0, step].values.ravel()[0]) for name in "huV"]
        assert found == pytest.approx([h, u, V], rel=1e-13)
    assert CircuitModel(delay="0.4 ms").delay_steps(p) == 0  # less than half a step


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"excitatory": ""}, "excitatory"),
        ({"bias": 3}, "bias"),
        ({"connections": {"W": [[1]]}}, "connections"),
        ({"connections": {"lateral": [[0, 0]]}}, "lateral"),
        ({"connections": {"lateral": [[1, 1]]}}, r"V, \(2, 6\), got \(1, 2\)"),
        ({"delay": 3}, "delay.*unit"),
        ({"delay": "-1 ms"}, "delay"),
        ({"delay": "1 s"}, "30"),  # steps
        ({"each_step": ("rates", "sums", "lateral")}, "each_step"),
        ({"each_presentation": ("load",)}, "each_presentation"),
        ({"namespace": {"f": print}}, "namespace"),
        ({"excitatory": "dh/dt = nonsense*( : 1"}, "Brian2"),
        ({"excitatory": "h : 1"}, "dh/dt"),
        ({"feedforward": "W += eta_post*nowhere"}, "nowhere"),
    ],
)
def test_models_that_are_refused(change, words):
    with pytest.raises(CircuitError, match=words):
        ManifoldCircuit(PARAMETERS, LIFT, "numpy", model=CircuitModel(**change)).run(POINTS)


def test_models_that_the_reference_refuses():
    inhibitory = Rule("du/dt = -u/tau_u : 1", reference.step_inhibitory)
    for model, settling, words in (
        (CircuitModel(feedforward="W += eta_post*(x_pre - W)"), "dynamics", "'feedforward'"),
        ("dh/dt = 0 : 1", "dynamics", "CircuitModel"),
        (MODELS["delay"], "exact", "delay"),
        (CircuitModel(connections={"lateral": MASKS["lateral"]}), "exact", "lateral"),
        (CircuitModel(inhibitory=inhibitory), "exact", "inhibitory"),
    ):
        make = partial(ReferenceCircuit, PARAMETERS, LIFT, model=model, settling=settling)
        refused(make, words, ParameterError)


def test_the_closed_form_takes_other_ways_of_learning():
    model = CircuitModel(feedforward=OJA)
    circuit = ReferenceCircuit(PARAMETERS, LIFT, model=model, settling="exact")
    run = circuit.run(POINTS, LABELS, snapshot_every=1)
    W, h = run["W_snapshots"].values, run["h"].values
    still = ~np.isin(np.arange(30), run["recruited"].values)  # no tile starts here
    for t in np.flatnonzero(still[1:]) + 1:
        learned = oja(W[t - 1], h[t], LIFT(POINTS[t : t + 1])[0], PARAMETERS.learning_rate)
        assert np.abs(W[t] - learned).max() <= 1e-15
    assert still.sum() > 10


def test_models_are_values():
    model = CircuitModel(connections=MASKS, delay="2 ms", feedforward=OJA)
    same = CircuitModel(connections=MASKS, delay="0.002 s", feedforward=OJA)
    assert model == same
    assert hash(model) == hash(same)
    assert pickle.loads(pickle.dumps(model)) == model
    assert replace(model, delay="3 ms") != model
    assert CircuitModel().changes() == {}
    assert set(model.changes()) == {"connections", "delay", "feedforward"}
    assert json.loads(json.dumps(model.as_dict())) == model.as_dict()
    with pytest.raises(AttributeError):
        model.delay = "1 ms"
    with pytest.raises(ValueError, match="read-only"):
        model.connections["lateral"][0, 0] = False


def test_the_model_is_part_of_the_builds_key(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(tmp_path))
    keys = []

    def look(facts, make, title):
        keys.append(json.dumps(facts, sort_keys=True))
        raise KeyboardInterrupt

    monkeypatch.setattr(cache, "get_build", look)
    models = [None, CircuitModel(), *MODELS.values()]
    for model in models:
        with pytest.raises(KeyboardInterrupt):
            ManifoldCircuit(PARAMETERS, LIFT, "cpp_standalone", model=model).prepare()
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(models) - 1


def test_results_have_coordinates_and_units():
    circuit = ReferenceCircuit(PARAMETERS, LIFT)
    circuit.run(POINTS[:10])
    run = circuit.run(POINTS[10:], record=("h",), snapshot_every=4)
    assert run["presentation"].values.tolist() == list(range(10, 30))
    assert run["snapshot"].values.tolist() == [12, 16, 20, 24, 28]
    assert run["step"].values.tolist() == list(range(1, 31))
    assert run["time"].attrs["units"] == "s"
    assert np.abs(run["time"].values / PARAMETERS.dt_ - run["step"].values).max() <= 1e-12
    for name, variable in run.variables.items():
        assert variable.attrs["units"], name
        assert variable.attrs["long_name"], name
    assert set(run.dims) <= set(run.coords)
