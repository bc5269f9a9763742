"""Tiles that points recruit, and the readout that forgets only where tiles respond."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import CircuitParameters, ReferenceCircuit, SphereLift
from circuits.errors import InputError, ParameterError
from circuits.parts.other_readouts import learn_gated, pooled
from circuits.tuning import cover
from simulations.datasets import first_of_each_class, two_moons
from simulations.experiments.experiment import make_circuit
from tests.conftest import moons, small_circuit
from tests.refusing import refused

pytestmark = [
    pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning"),
    pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning"),
]

# Far wider than the line of points below: products are distances to 1e-4.
LIFT = SphereLift(center=(0.0,), radius=100.0)
COMPILED = pytest.param("cpp_standalone", marks=pytest.mark.slow)
SOLVERS = ("numpy", COMPILED, "reference", "exact")


def line(*places: float) -> np.ndarray:
    return np.array(places, dtype=float)[:, None]


@pytest.mark.parametrize("solver", SOLVERS)
def test_points_on_a_line_recruit_by_hand(solver):
    """rho = 1, theta = 0.5: a point further than sqrt(0.5) = 0.707 from every tile starts one."""
    parameters = small_circuit(n_tiles=4, tile_radius=1.0, learning_rate=0, dt="1 ms")
    circuit = make_circuit(solver, parameters, LIFT)
    first = circuit.run(line(0.0, 0.7, 0.71, 0.2, 1.4))  # 0, and 0.71; 1.4 is 0.69 from it
    assert first["recruited"].values.tolist() == [0, 2, -1, -1]
    run = circuit.run(line(1.5, -0.6, -0.8, 5.0, -5.0))  # 1.5, -0.8; then none is idle
    assert run["recruited"].values.tolist() == [0, 2, 5, 7]
    assert circuit.state.in_use.all()
    assert run["covered"].values.tolist() == [True, True, True, False, False]
    kappa, x = 0.5, LIFT(line(0.0, 0.71, 1.5, -0.8))
    assert np.abs(run["W"].values - kappa * x).max() <= 1e-16
    assert np.abs(run["b"].values - kappa * circuit.alpha**0.5).max() <= 1e-16
    circuit.predict(line(9.0))  # recruits nothing
    assert circuit.state.recruited.tolist() == [0, 2, 5, 7]


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_least_used_tile_moves_and_forgets(solver):
    """Two tiles: the first is used more, so that a far point takes the second."""
    changes = {"n_tiles": 2, "tile_radius": 1.0, "learning_rate": 0.1, "recycle": True}
    circuit = make_circuit(solver, small_circuit(**changes), LIFT)
    points = line(0.0, 3.0, 0.0, 0.0, 0.0)
    run = circuit.run(points, [1, -1, 0, 0, 0])
    assert run["recruited"].values.tolist() == [0, 1]
    assert run["b"].values[0] > run["b"].values[1] > 0
    assert run["w"].values[0, 1] < 0
    moved = circuit.run(line(-7.0))
    assert moved["recruited"].values.tolist() == [0, 5]
    assert moved["w"].values[0, 1] == 0  # it was silent when it came: y = 0 there
    assert (circuit.predict(line(3.0)) == 0).all()  # where nobody looks any more
    assert circuit.predict(line(0.0))[0, 0] > 0


def test_a_grid_is_no_tie():
    """At a distance of just sqrt(1 - theta) rho rounding would decide; a margin does instead."""
    parameters = small_circuit(n_tiles=20, tile_radius=1.0, recruit_below=0.75, learning_rate=0)
    points = line(*np.arange(0, 5, 0.5))
    expected = None
    for scale in (1.0, 1e-3, 7.0, 1 / 3):
        lift = SphereLift(center=(0.0,), radius=100 * scale)
        p = parameters.replace(tile_radius=scale)
        run = ReferenceCircuit(p, lift, settling="exact").run(scale * points)
        found = run["recruited"].values.tolist()
        expected = expected or found
        assert found == expected


def test_tiles_that_faded_do_not_stand_in_the_way():
    """A tile that nobody visits loses its weights; where they are below the floor a point that
    comes back recruits, instead of being answered by nobody."""
    parameters = small_circuit(n_tiles=3, tile_radius=1.0, learning_rate=0.5)
    circuit = ReferenceCircuit(parameters, LIFT, settling="exact")
    circuit.run(line(0.0, *[5.0] * 40))  # 0.5^40 = 1e-12
    run = circuit.run(line(0.0))
    assert run["recruited"].values.tolist() == [0, 1, 41]
    assert run["covered"].values.all()


def test_idle_tiles_are_silent_and_stay_so():
    points, _, labels = moons(60, after=20)
    circuit = ReferenceCircuit(CircuitParameters(n_tiles=60), SphereLift((0.5, 0.25), 3.0))
    run = circuit.run(points, labels, record=("h", "V"))
    idle = run["recruited"].values < 0
    assert idle.any()
    for name in ("h_trace", "V_trace", "W", "w"):
        axis = run[name].dims.index("tile")
        assert (np.compress(idle, run[name].values, axis=axis) == 0).all(), name


def test_states_that_cannot_be():
    circuit = ReferenceCircuit(small_circuit(), SphereLift((0.5, 0.25), 3.0))
    circuit.run(moons(20, after=5)[0])
    for name, value in (
        ("recruited", np.array([0, -1, 3, -1, -1, -1])),  # a gap
        ("recruited", np.array([0, 1])),
        ("last_size", 0.0),
    ):
        state = circuit.state
        setattr(state, name, value)
        refused(lambda state=state: setattr(circuit, "state", state), "the state's")
    other = ReferenceCircuit(small_circuit(n_readouts=2), SphereLift((0.5, 0.25), 3.0))
    words = r"w .*\(2, 6\), got \(1, 6\)"
    refused(lambda: setattr(other, "state", circuit.state), words, InputError)


# The gated readout


def test_a_gated_readout_by_hand():
    """y is the mean of w over responding tiles; w moves towards y where they respond."""
    w, h = np.array([[0.5, -0.5, 0.25]]), np.array([0.6, 0.0, 0.8])
    net = (0.5 * 0.6 + 0.25 * 0.8) / 1.4
    y = 1.5 * pooled(w @ h, h)
    assert y == pytest.approx([1.5 * net], rel=1e-15)
    assert pooled(w @ (0 * h), 0 * h) == [0.0]
    learned = learn_gated(w, y, h, 0.9)[0]
    by_hand = [value + 0.9 * rate * (y[0] - value) for value, rate in zip(w[0], h, strict=True)]
    assert learned == pytest.approx(by_hand, rel=1e-15)
    assert learned[1] == w[0, 1]  # a silent tile forgets nothing
    for m in (1, 7, 300):  # with all w equal the answer is that w, whatever the tiles
        h = np.random.default_rng(m).random(m)
        assert pooled(np.full((1, m), 0.3) @ h, h) == pytest.approx([0.3], rel=1e-13)


# What the data choose


def test_for_points_chooses_the_same_in_another_unit(capsys):
    points, _ = two_moons(2000, 0.05, 7)
    parameters = CircuitParameters.for_points(points, learning_rate=0.01)
    said = capsys.readouterr().err
    assert parameters.learning_rate == 0.01
    for name in ("tile_radius", "n_tiles", "mu"):
        assert f"{name}={getattr(parameters, name):g}" in said
    # Within the radius a point has a tenth of all points: half of the moons' length 2 pi, twice.
    assert parameters.tile_radius == pytest.approx(0.1 * 2 * np.pi / 2, rel=0.1)
    again = CircuitParameters.for_points(1e-6 * points)
    assert again.tile_radius == pytest.approx(1e-6 * parameters.tile_radius, rel=0.01)
    assert again.n_tiles == parameters.n_tiles


def test_for_points_leaves_what_is_given_and_refuses_what_cannot_be(capsys):
    points, _ = two_moons(500, 0.05, 7)
    given = {"tile_radius": 0.3, "n_tiles": 50, "mu": 7.0}
    assert CircuitParameters.for_points(points, **given) == CircuitParameters(**given)
    assert capsys.readouterr().err == ""
    few = CircuitParameters.for_points(points, n_tiles=5)
    assert len(cover(points, few.tile_radius, 0.5)) <= 5
    refused(lambda: CircuitParameters.for_points(np.ones((20, 2))), "coincide", InputError)
    other = {"radius": 3}
    refused(lambda: CircuitParameters.for_points([[0.0], [1.0]], **other), "radius", ParameterError)


@pytest.mark.parametrize("dimensions", [1, 784])
def test_for_points_in_any_dimension(dimensions):
    points = np.random.default_rng(dimensions).normal(size=(300, dimensions))
    parameters = CircuitParameters.for_points(points)
    circuit = ReferenceCircuit(parameters, SphereLift.around(points), settling="exact")
    assert circuit.run(points).attrs["uncovered_share"] == 0


def test_what_was_chosen_classifies_two_moons():
    """3 seeds that nothing was chosen on (those were 300 to 439)."""
    right = []
    for seed in range(7000, 7003):
        points, classes = two_moons(2000, 0.05, seed)
        parameters = CircuitParameters.for_points(points)
        circuit = ReferenceCircuit(parameters, SphereLift.around(points), settling="exact")
        y = circuit.run(points, first_of_each_class(classes, 200))["y"].values[1000:, 0]
        right.append((np.sign(y) == classes[1000:]).mean())
    assert min(right) >= 0.99
    assert np.mean(right) >= 0.999
