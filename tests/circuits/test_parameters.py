"""What is accepted, what is refused and in which words."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.errors import EngineError, InputError, ParameterError
from tests.conftest import small_circuit

LIFT = SphereLift(center=(0.0, 0.0), radius=2.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"n_tiles": 0}, "n_tiles must be greater than or equal to 1, got 0"),
        ({"n_interneurons": 0}, "n_interneurons.*1, got 0"),
        ({"n_readouts": -1}, "n_readouts.*1, got -1"),
        ({"n_tiles": 2.5}, "n_tiles must be a valid integer.*got 2.5"),
        ({"tile_radius": 0}, "tile_radius must be greater than 0, got 0"),
        ({"tile_radius": float("nan")}, "tile_radius.*finite.*got nan"),
        ({"mu": (1.0, 2.0)}, "got 2 values for n_readouts=1"),
        ({"mu": -1.0}, "mu.*at least 0, got -1"),
        ({"mu": float("inf")}, "mu must be finite.*got inf"),
        ({"readout": "sigmoid"}, "readout must be 'clip' or 'tanh', got 'sigmoid'"),
        ({"learning_rate": 1.5}, "learning_rate.*equal to 1, got 1.5"),
        ({"readout_rate": 2.0}, "readout_rate.*from 0 to 1, got 2"),
        ({"readout_rate": "mean"}, "readout_rate.*running_mean.*got 'mean'"),
        ({"steps_per_presentation": 0}, "steps_per_presentation.*1, got 0"),
        ({"tau_u": "1 ms"}, "tau_u and tau_V must differ, got 1 ms"),
        ({"tau_h": 8}, "tau_h must be a time with a unit.*got 8"),
        ({"tau_h": "8 mV"}, "tau_h.*got '8 mV'"),
        ({"tau_V": "-2 ms"}, "tau_V must be greater than 0"),
        ({"gain": "none"}, "gain must be 'control', 'auto' or a finite number above 0"),
        ({"tiles": "random"}, "tiles must be 'recruit' or 'first', got 'random'"),
        ({"recruit_below": 1.0}, "recruit_below must be less than 1, got 1"),
        ({"recruit_below": -0.1}, "recruit_below must be greater than or equal to 0"),
        ({"readout_rule": "gated"}, "needs a constant readout_rate, such as 0.9"),
        ({"recycle": True, "tiles": "first"}, "needs tiles='recruit', got tiles='first'"),
        ({"dt": "3 ms"}, "dt must not exceed tau_V=1 ms, got 3 ms"),
        ({"gain": 0}, "gain.*above 0, got 0"),
        ({"colour": 1}, "there is no parameter 'colour'"),
    ],
)
def test_values_that_cannot_work(values, words):
    with pytest.raises(ParameterError, match=words) as caught:
        CircuitParameters(**values)
    assert "\n" not in str(caught.value)


def test_brian2_units():
    from brian2 import ms, mV, second

    parameters = CircuitParameters(tau_h=10 * ms, dt=0.5 * ms, tau_u=0.1 * second)
    assert parameters.tau_h == 10 * ms
    assert parameters.dt == 0.5 * ms
    assert parameters.tau_u_ == 0.1
    with pytest.raises(ParameterError, match="tau_h must be one time"):
        CircuitParameters(tau_h=10 * mV)
    with pytest.raises(ParameterError, match="tau_h must be one time"):
        CircuitParameters(tau_h=[1, 2] * ms)


def test_frozen_and_readable():
    parameters = CircuitParameters(mu=5.0)
    with pytest.raises(Exception, match="frozen"):
        parameters.mu = 3.0
    assert "mu=5.0" in repr(parameters)
    assert "tau_h='2.5 ms'" in repr(parameters)
    assert eval(repr(parameters)) == parameters
    assert parameters.replace(mu=6.0).mu == 6.0
    assert CircuitParameters(mu=np.array([1.0, 2.0]), n_readouts=2).mu == (1.0, 2.0)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"n_readouts": 2, "mu": (1.5, 1e-3), "readout": "tanh", "readout_rate": 0.1},
        {"dt": "0.3 ms", "tau_h": f"{1 / 3!r} s", "gain": 12.5, "reset": False},
    ],
)
def test_toml_round_trip(tmp_path, values):
    parameters = CircuitParameters(**values)
    parameters.to_toml(tmp_path / "circuit.toml")
    assert CircuitParameters.from_toml(tmp_path / "circuit.toml") == parameters


def test_toml_mistakes(tmp_path):
    path = tmp_path / "circuit.toml"
    path.write_text("n_tiles = = 3")
    with pytest.raises(ParameterError, match="not valid TOML"):
        CircuitParameters.from_toml(path)
    path.write_text("n_tiles = 0")
    with pytest.raises(ParameterError, match="n_tiles"):
        CircuitParameters.from_toml(path)


def test_lift_geometry():
    points = np.array([[0.0, 0.0], [1.0, 0.5], [-0.3, 1.2]])
    x = LIFT(points)
    # Norms and products of three-vectors: rounding.
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-15
    chord = np.linalg.norm(2.0 * (x[1] - x[2]))
    assert x[1] @ x[2] == pytest.approx(1 - chord**2 / (2 * 2.0**2), abs=1e-15)
    assert LIFT.alpha(0.5) == 1 - 0.25 / 8
    small = SphereLift(center=(0.0, 0.0), radius=100.0)(points)
    distance = np.linalg.norm(points[1] - points[2])
    # Flat to order (|s|/R)^2 = 2e-4 of the distance term, which itself is 1e-4.
    assert small[1] @ small[2] == pytest.approx(1 - distance**2 / 2e4, abs=1e-7)


def test_lift_around_data():
    points = np.random.default_rng(0).normal(size=(50, 3))
    lift = SphereLift.around(points)
    assert lift(points).shape == (50, 4)
    assert np.linalg.norm(points - lift.center, axis=1).max() == pytest.approx(lift.radius / 1.75)
    with pytest.raises(InputError, match="equal"):
        SphereLift.around(np.ones((4, 2)))


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([[3.0, 0.0]], r"point 0 at \[3.0, 0.0\] is 3 from the center; use a larger radius"),
        ([[0.0, np.nan]], r"finite.*point 0 at \[0.0, nan\]"),
        ([[0.0, 0.0, 0.0]], r"shape \(T, 2\), got \(1, 3\)"),
        ([0.0, 0.0], r"shape \(T, 2\), got \(2,\)"),
        (np.zeros((0, 2)), "no points"),
        ([["a", "b"]], "must be real numbers in an array, got text"),
    ],
)
def test_points_that_cannot_be_shown(points, words):
    circuit = ReferenceCircuit(small_circuit(n_tiles=1), LIFT)
    with pytest.raises(InputError, match=words):
        circuit.run(points)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 2], "got 2 at point 1"),
        ([0, np.nan], "got nan at point 1"),
        ([0, 1, 1], r"shape \(2,\) or \(2, 1\).*got \(3,\)"),
        ([[0, 1], [0, 1]], r"got \(2, 2\)"),
        (["cat", "dog"], "labels must be"),
    ],
)
def test_labels_that_mean_nothing(labels, words):
    circuit = ReferenceCircuit(small_circuit(n_tiles=1), LIFT)
    with pytest.raises(InputError, match=words):
        circuit.run([[0.0, 0.1], [0.2, 0.0]], labels)


def test_circuits_that_cannot_be_made():
    with pytest.raises(ParameterError, match=r"tile_radius.*2.82843\), got 3"):
        ReferenceCircuit(small_circuit(tile_radius=3.0), LIFT)
    with pytest.raises(ParameterError, match="settling must be"):
        ReferenceCircuit(small_circuit(), LIFT, settling="fast")
    with pytest.raises(EngineError, match="no engine 'gpu': use auto, cpp_standalone"):
        ManifoldCircuit(small_circuit(), LIFT, "gpu")
    with pytest.raises(InputError, match=r"6 tiles need.*only 2 in the first 3"):
        ReferenceCircuit(small_circuit(tiles="first"), LIFT).run([[0, 0], [0, 0], [1, 0]])
    with pytest.raises(InputError, match="n_tiles=6 points, got 1"):
        ReferenceCircuit(small_circuit(), LIFT, tile_centers=[[0, 0]])
    with pytest.raises(InputError, match="no state yet"):
        ReferenceCircuit(small_circuit(), LIFT).predict([[0, 0]])
    with pytest.raises(InputError, match="record takes h, u, V, y, got 'W'"):
        ReferenceCircuit(small_circuit(n_tiles=1), LIFT).run([[0, 0]], record=("W",))
    with pytest.raises(InputError, match=r"snapshot_every.*got 0"):
        ReferenceCircuit(small_circuit(n_tiles=1), LIFT).run([[0, 0]], snapshot_every=0)
    with pytest.raises(ParameterError, match="radius must be"):
        SphereLift((0, 0), -1)
    with pytest.raises(ParameterError, match="lift must be"):
        ReferenceCircuit(small_circuit(), None)


@pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")
def test_tiles_start_on_the_first_distinct_points():
    points = np.array([[0, 0], [0, 0], [1, 0], [0, 1], [1, 0], [0.5, 0.5]], dtype=float)
    fixed = small_circuit(n_tiles=3, learning_rate=0, tile_radius=0.9, tiles="first")
    circuit = ReferenceCircuit(fixed, LIFT)
    run = circuit.run(points)
    kappa = 2 / 3
    assert np.abs(run["W"].values - kappa * LIFT(points[[0, 2, 3]])).max() == 0
    assert np.abs(run["b"].values - kappa * LIFT.alpha(0.9) ** 0.5).max() == 0
