"""What theory says of the dynamics, shown on the simulation."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sklearn.datasets import load_digits

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift, reference
from circuits.engines.brian import import_brian2
from circuits.errors import DivergenceError, LostLabelWarning, UnsettledWarning
from circuits.parts.gain_control import measured, start
from simulations.experiments.experiment import make_circuit
from tests.conftest import FIRST_TILES, moons, small_circuit

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


def stream(name: str) -> tuple[np.ndarray, dict[str, float]]:
    """Points, and what a circuit for them needs."""
    if name == "moons":
        return moons(400, seed=21)[0], {"tile_radius": 0.28}
    digits = load_digits().data[np.random.default_rng(21).permutation(1797)[:400]] / 16
    return digits, {"tile_radius": 1.92, "recruit_below": 0.4, "learning_rate": 0.001}


@pytest.mark.parametrize(
    ("name", "reset", "tiles"),
    [
        ("moons", True, "recruit"),
        ("moons", False, "first"),
        pytest.param("digits", True, "first", marks=pytest.mark.slow),
        pytest.param("digits", False, "recruit", marks=pytest.mark.slow),
    ],
)
def test_every_covered_presentation_settles_under_gain_control(name, reset, tiles):
    """Within 1e-8 of the closed form of its own weights, whatever its drive; and the pass ends
    where a pass of the closed form ends."""
    points, changes = stream(name)
    lift = SphereLift.around(points)
    parameters = CircuitParameters(n_tiles=60, reset=reset, tiles=tiles, **changes)
    rng = np.random.default_rng(5)
    labels = rng.choice([-1, 0, 1], len(points), p=[0.05, 0.9, 0.05])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostLabelWarning)
        circuit = ManifoldCircuit(parameters, lift, "cpp_standalone")
        run = circuit.run(points, labels, snapshot_every=1)
        solver = ReferenceCircuit(parameters, lift, settling="exact")
        exact = solver.run(points, labels)
    assert (run["recruited"].values == exact["recruited"].values).all()
    x, errors, drives = lift(points), [], []
    recruited = run["recruited"].values
    for t in range(1, len(points)):
        W, b = (run[f"{weight}_snapshots"].values[t - 1].copy() for weight in "Wb")
        if tiles == "recruit":  # what was shown found the tile that it had started
            W[recruited == t] = parameters.kappa * x[t]
            b[recruited == t] = parameters.kappa * solver.alpha**0.5
        a = reference.drive(W, b, x[t], solver.alpha)
        size = measured(a, solver.floor)
        assert (size > 0) == run["covered"].values[t]
        h, u, _ = reference.fixed_point(a, reference.rest_direction(4), solver.floor)
        errors.append(np.abs(run["h"].values[t] - h).max())
        if size == 0:
            continue
        # u starts where the interneurons' directions are known to stay, at the scale of the drive.
        errors.append(np.abs(run["u"].values[t] - u).max() / size**0.5)
        drives.append(size)
    assert max(errors) <= 1e-8
    drives = np.array(drives)
    # They settle alike although their drives are not; recruited tiles answer more evenly.
    assert drives.max() > (5 if tiles == "first" else 2) * drives.min()
    for weight in ("W", "b", "w"):
        assert np.abs(run[weight].values - exact[weight].values).max() <= 1e-6
    assert (np.sign(run["y"].values) == np.sign(exact["y"].values)).all()


def test_drives_of_rounding_size_count_as_nothing():
    """On the rim of the only tile what is left of W x - sqrt(alpha) b is rounding; amplified to
    |h| = 1 it would be a response, and engines would disagree."""
    parameters = small_circuit(n_tiles=1, tile_radius=0.5, dt="1 ms", learning_rate=0)
    lift = SphereLift(center=(0.0, 0.0), radius=2.0)
    angles = np.linspace(0, 2 * np.pi, 40)
    # Around a tile at the origin x.c = sqrt(1 - s^2/R^2), which is alpha at this distance.
    distance = 2 * math.sqrt(1 - lift.alpha(0.5) ** 2)
    rim = distance * np.column_stack([np.cos(angles), np.sin(angles)])
    for solver in ("numpy", "reference", "exact"):
        circuit = make_circuit(solver, parameters, lift, [[0.0, 0.0]])
        assert (circuit.respond(rim) == 0).all()
        assert (circuit.respond((1 - 1e-10) * rim) == 0).all()  # a drive of 1e-12, below the floor
        assert (circuit.respond(0.999999 * rim) > 0).all()


CENTERS = np.array([[0.5, 0.25], [0.55, 0.3], [0.45, 0.2], [0.6, 0.25]])


@pytest.mark.parametrize("gain", ["control", "auto"])
def test_convergence_in_dt_to_the_ode(gain):
    """With time constants fixed, halving dt halves the distance to the differential equation."""
    point = np.array([[0.52, 0.26]])
    duration, k = 0.032, 2
    fixed = {"n_tiles": 4, "n_interneurons": k, "tile_radius": 0.4, "gain": gain}
    fixed |= {"tau_h": "40 ms", "tau_u": "50 ms", "tau_V": "8 ms"}
    probe = ReferenceCircuit(CircuitParameters(**fixed), LIFT, tile_centers=CENTERS)
    state, p = probe.state, probe.parameters
    a = reference.drive(state.W, state.b, LIFT(point)[0], probe.alpha)
    begin = start(a, 0.0, 1.0, probe.gain)
    h_rest, u_rest, V_rest = reference.rest(4, k, probe.gain)
    rest = h_rest, begin.scale * u_rest, begin.scale * V_rest

    def slope(_time, flat):
        h, u, V = flat[:4], flat[4 : 4 + k], flat[4 + k :].reshape(k, 4)
        dh = begin.gain * (a - u @ V) / p.tau_h_
        return np.concatenate(
            [dh, (V @ h - u) / p.tau_u_, ((np.outer(u, h) - V) / p.tau_V_).ravel()]
        )

    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
    options["t_eval"] = duration * np.arange(1, 33) / 32
    begins = np.concatenate([value.ravel() for value in rest])
    solution = solve_ivp(slope, (0, duration), begins, **options)
    assert solution.y.min() > 0.01 * solution.y.max(axis=1).min()  # nothing is rectified
    errors, steps = [], [32, 64, 128, 256, 512, 1024]
    for n in steps:
        parameters = CircuitParameters(**fixed, dt=f"{duration / n!r} s", steps_per_presentation=n)
        circuit = ManifoldCircuit(parameters, LIFT, "cpp_standalone", tile_centers=CENTERS)
        with pytest.warns(UnsettledWarning):  # it is stopped on its way
            run = circuit.run(point, record=("h", "u", "V"))
        every = slice(n // 32 - 1, None, n // 32)
        states = [run[f"{name}_trace"].values[0, every].reshape(32, -1) for name in "huV"]
        errors.append(np.abs(np.concatenate(states, axis=1) - solution.y.T).max())
    order = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert order == pytest.approx(1.0, abs=0.1), errors


def cubic(gamma: tuple[float, float, float], size: float) -> np.ndarray:
    """Coefficients of the characteristic polynomial at the fixed point."""
    h, u, v = gamma
    return np.array([1, u + v, h * size * (u + v), 4 * h * size * u * v])


def perturbed(parameters: CircuitParameters, push: float):
    """A circuit a little off its fixed point, |[a]_+|, and the point to show it."""
    circuit = ManifoldCircuit(parameters, LIFT, "cpp_standalone", tile_centers=CENTERS)
    state = circuit.state
    a = reference.drive(state.W, state.b, LIFT(CENTERS[:1])[0], circuit.alpha)
    h, u, V = reference.fixed_point(a, reference.rest_direction(parameters.n_interneurons))
    state.h, state.u, state.V = h * (1 + push), u, V
    state.last_size = size = float(np.linalg.norm(np.maximum(a, 0)))
    circuit.state = state
    return circuit, size, CENTERS[:1]


@pytest.mark.parametrize("changes", [{}, {"gain": "auto", "tile_radius": 0.4}])
def test_growth_rate_near_the_fixed_point(changes):
    """|h| - 1 obeys the three-term recurrence whose roots are 1 + the roots of the cubic."""
    changes |= {"tau_h": "8 ms", "tau_u": "50 ms", "tau_V": "2 ms", "learning_rate": 0}
    parameters = small_circuit(n_tiles=4, reset=False, steps_per_presentation=60, **changes)
    circuit, size, point = perturbed(parameters, 1e-6)
    run = circuit.run(point, record=("h", "u", "V"))  # the program of the test above
    s = np.linalg.norm(run["h_trace"].values[0], axis=1) - 1
    past = np.column_stack([s[2:-1], s[1:-2], s[:-3]])
    recurrence, *_ = np.linalg.lstsq(past, s[3:], rcond=None)
    seen = np.sort_complex(np.roots([1, *-recurrence]))
    expected = np.sort_complex(1 + np.roots(cubic(circuit.gamma(size), size)))
    # The push is 1e-6 and what is neglected is its square: relative errors of 1e-6, times the
    # condition of fitting three roots (below 100).
    assert np.abs(seen - expected).max() < 1e-4
    assert np.abs(expected).max() < 1


@pytest.mark.parametrize("solver", ["cpp_standalone", "reference"])
def test_a_diverging_run_stops_and_names_the_time_constants(solver):
    parameters = small_circuit(tile_radius=1.0, gain=1e9)
    points, _, labels = moons(60)
    circuit = make_circuit(solver, parameters, LIFT)
    with pytest.raises(DivergenceError, match=r"presentation \d+.*tau_h .*2.5 ms"):
        circuit.run(points, labels)
    assert circuit._state is None  # as before the call


def test_a_run_knows_how_much_of_it_settled():
    points, _, _ = moons(20, after=0)
    short = CircuitParameters(steps_per_presentation=20)
    circuit = ManifoldCircuit(short, LIFT, "numpy")
    with pytest.warns(UnsettledWarning, match="steps_per_presentation"):
        run = circuit.run(points, record=("h", "u"))
    moved = np.zeros(len(points))
    for name in "hu":
        trace = run[f"{name}_trace"].values
        step = np.linalg.norm(trace[:, -1] - trace[:, -2], axis=1)
        moved = np.maximum(moved, step / np.linalg.norm(trace[:, -1], axis=1))
    assert np.abs(run["change"].values - moved).max() < 1e-12
    assert run.attrs["unsettled_share"] == (moved > 1e-6).mean() > 0.5
    settled = ManifoldCircuit(CircuitParameters(), LIFT, "cpp_standalone").run(points)
    assert settled.attrs["unsettled_share"] < 0.05


@pytest.mark.parametrize("solver", ["cpp_standalone", "reference"])
def test_answers_that_did_not_settle_are_counted_in_a_warning(solver):
    import_brian2()  # which redirects warnings, and must not do so while they are recorded
    points, _, _ = moons(60)
    short = CircuitParameters(steps_per_presentation=20)
    circuit = make_circuit(solver, short, LIFT)
    with pytest.warns(UnsettledWarning):
        circuit.run(points)
    for answer in (circuit.predict, circuit.respond):
        with pytest.warns(UnsettledWarning, match=r"\d+ of 50") as said:
            answer(points[:50])
        assert [warning.filename for warning in said] == [__file__]
    settled = ReferenceCircuit(short, LIFT, settling="exact")
    settled.run(points)
    settled.predict(points)  # the closed form has settled: no warning


@pytest.mark.parametrize("solver", ["cpp_standalone", "reference", "exact"])
def test_points_that_no_tile_responds_to_are_silent_and_counted(solver):
    """A label on such a point leaves w as it was."""
    points, classes, _ = moons(60)
    stream = np.concatenate([[[2.0, 2.0]], points[:3], [[-1.5, -1.0], [2.0, 2.0]]])
    labels = np.array([1, 0, classes[1], 0, -1, 0])
    circuit = make_circuit(solver, CircuitParameters(**FIRST_TILES), LIFT)
    assert circuit.run(points).attrs["lost_labels"] == 0
    before = circuit.state
    with pytest.raises(LostLabelWarning):  # a warning that is an error leaves all as it was
        circuit.run(stream, labels)
    for name in ("W", "b", "w", "h", "u", "V", "learned", "shown"):
        assert np.array_equal(getattr(circuit.state, name), getattr(before, name)), name
    with pytest.warns(LostLabelWarning, match="2 of 3"):
        run = circuit.run(stream, labels)
    assert run.attrs["lost_labels"] == 2
    assert run["covered"].values.tolist() == [False, True, True, True, False, False]
    assert run.attrs["uncovered_share"] == 0.5
    assert (run["h"].values[[0, 4, 5]] == 0).all()
    taught = circuit.state.w
    again = make_circuit(solver, CircuitParameters(**FIRST_TILES), LIFT)
    again.run(points)
    again.run(stream, np.array([0, 0, classes[1], 0, 0, 0]))
    assert (again.state.w == taught).all()  # the same computation: what was lost changed nothing


def test_what_carries_over_wakes_up_after_a_long_silence():
    """From u = V = 0 inhibition would never start again, and h would grow without bound."""
    points, _, _ = moons(60)
    parameters = CircuitParameters(reset=False, **FIRST_TILES)
    silence = np.tile([[2.0, 2.0]], (60, 1))
    stream = np.concatenate([points, silence, points[:10]])
    run = ManifoldCircuit(parameters, LIFT, "cpp_standalone").run(stream)
    size = np.linalg.norm(run["h"].values, axis=1)
    assert (size[60:120] == 0).all()
    assert np.abs(size[120:] - 1).max() < 1e-8  # settled again at once
    expected = ReferenceCircuit(parameters, LIFT).run(stream)
    assert np.abs(run["h"].values - expected["h"].values).max() <= 1e-9  # rounding, over a silence
