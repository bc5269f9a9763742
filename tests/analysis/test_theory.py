"""The theory of the fast dynamics against brute force on the rules themselves."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from analysis import agreement, studies, theory
from analysis.tiles_in_use import in_use_at_snapshots, tiles_in_use
from circuits import (
    CircuitModel,
    CircuitParameters,
    Current,
    Freeze,
    Lesion,
    Noise,
    ReferenceCircuit,
    SphereLift,
    reference,
)
from circuits.circuit import Scene
from circuits.errors import InputError
from circuits.model import EACH_PRESENTATION, Rule
from circuits.parts import Part, gain_control
from circuits.state import Task, empty_state
from tests.analysis.drawing import CONSTANT
from tests.conftest import moons

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
GAMMAS = [(300.0, 0.5, 0.02), (700.0, 0.05, 0.9)]
SIZE = 1e-3
BASE = {"n_tiles": 30, "n_interneurons": 3, "tile_radius": 0.5}


def brute_force_spectrum(gamma, a, k):
    """Eigenvalues of one step at the fixed point, by finite differences of `reference.step`."""
    m = len(a)
    h, u, V = reference.fixed_point(a, reference.rest_direction(k))
    fixed = np.concatenate([h, u, V.ravel()])

    def step(flat):
        state = flat[:m], flat[m : m + k], flat[m + k :].reshape(k, m)
        return np.concatenate([part.ravel() for part in reference.step(*state, a, gamma)])

    assert np.abs(step(fixed) - fixed).max() < 1e-15
    # The step is quadratic: central differences have no error but rounding. Silent tiles (a < 0,
    # h = V = 0) can be pushed up only; there the one-sided slope is the one that counts.
    push = 1e-5
    columns = []
    for i, value in enumerate(fixed):
        up, down = fixed.copy(), fixed.copy()
        up[i] += push
        down[i] -= push if value > 2 * push else 0
        columns.append((step(up) - step(down)) / (up[i] - down[i]))
    return np.linalg.eigvals(np.array(columns).T)


def paired_distance(found, expected):
    """Largest distance between two sets of eigenvalues, matched greedily."""
    left, worst = list(expected), 0.0
    for value in found:
        nearest = min(left, key=lambda other: abs(other - value))
        left.remove(nearest)
        worst = max(worst, abs(nearest - value))
    assert not left
    return worst


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(("k", "silent"), [(1, 0), (2, 2)])
def test_spectrum_is_that_of_the_rules(gamma, k, silent):
    positive = SIZE * np.array([0.48, 0.6, 0.64])
    a = np.concatenate([positive, np.full(silent, -0.7 * SIZE)])
    found = brute_force_spectrum(gamma, a, k)
    expected = theory.spectrum(gamma, SIZE, len(a), k, 3)
    # Differences are good to 1e-11, but some eigenvalues are defective (multiplicity up to 10):
    # a double one moves by the square root of the error, 1e-5.5.
    assert paired_distance(found, expected) < 1e-5
    wrong = theory.spectrum((gamma[0] * 1.01, *gamma[1:]), SIZE, len(a), k, 3)
    assert paired_distance(found, wrong) > 1e-4  # the comparison can tell one per cent
    slowest = max(
        abs(1 + value) for way in ("along", "across") for value in theory.roots(gamma, SIZE, way)
    )
    assert theory.growth_factor(gamma, SIZE) == pytest.approx(slowest, rel=1e-14)


def test_the_boundary_is_where_the_factor_is_one():
    rates = (0.003, 0.02, 0.1, 0.3, 0.5, 0.8, 1.0)
    some_stable = 0
    for gamma_u, gamma_V in itertools.product(rates, rates):
        critical = float(theory.critical_drive(gamma_u, gamma_V))
        for drive in (1e-3, 0.01, 0.1, 0.3, 0.6, 0.9, 0.99, 1.5):
            gamma = (drive, gamma_u, gamma_V)
            assert theory.is_stable(gamma, 1.0) == (theory.growth_factor(gamma, 1.0) < 1), gamma
        if critical > 0:
            some_stable += 1
            assert critical < 1
            at = theory.growth_factor((critical, gamma_u, gamma_V), 1.0)
            # Simple roots: rounding of the coefficients, 1e-16, over rates of 1e-3.
            assert at == pytest.approx(1, abs=1e-10)
    assert some_stable > 10


def test_measured_contraction_is_the_predicted():
    ratios, drives = [0.1, 0.5, 3.0, 20.0], [0.1, 0.4, 0.8, 1.1]
    study = studies.stability_map(ratios, drives)
    # The slope of 225 logs: an oscillation of the deviation's size by a factor e leaves 1/225 of
    # it times its period over 225.
    difference = np.abs(study["measured"] - study["predicted"]).values
    assert difference.max() < 4e-3
    assert np.median(difference) < 5e-4
    clear = np.abs(study["predicted"].values - 1) > 4e-3
    below = study["drive"].values[:, None] < study["critical"].values
    assert ((study["measured"].values < 1) == below)[clear].all()
    assert 0 < below[clear].mean() < 1


@pytest.mark.parametrize("gain", ["control", "auto"])
def test_convergence_has_slope_one_and_can_fail(gain):
    study = studies.convergence_study("reference", (32, 64, 128, 256), gain=gain)
    # Euler's method: order one, up to the next power of dt, a few per cent at these steps.
    assert study.attrs["order"] == pytest.approx(1, abs=0.1)
    assert (np.diff(study["error"].values) < 0).all()
    with pytest.raises(InputError, match="multiples of 32"):
        studies.convergence_study("reference", (33,))


GATED = {"readout_rule": "gated", "readout_rate": 0.9, "clamp_labels": True, "mu": 1.1}
CIRCUITS = {
    "control": {},
    "constant": CONSTANT,
    "constant, recruit": CONSTANT | {"tiles": "recruit"},
    "recycled": {"n_tiles": 8, "recycle": True},
    "gated": GATED,
}


class Witness(Part):
    """Keeps the drive and the w of every presentation."""

    def __init__(self):
        self.seen = []

    def after_restart(self, s):
        self.seen.append((s.a, s.w))


def witnessed(**changes):
    points, _, labels = moons(60, after=45)
    circuit, witness = ReferenceCircuit(CircuitParameters(**BASE | changes), LIFT), Witness()
    circuit.parts.all += (witness,)  # not as a user's, which would be in the result
    return circuit.run(points, labels, record=("h", "u"), snapshot_every=1), witness.seen


@pytest.fixture(scope="module", params=["control", "constant"])
def recorded(request):
    return witnessed(**CIRCUITS[request.param])[0]


@pytest.fixture(scope="module", params=CIRCUITS)
def witness(request):
    """The name of a circuit, a result of it, and its drives and w."""
    return request.param, *witnessed(**CIRCUITS[request.param])


def test_the_drive_of_a_result_is_the_one_it_had(witness):
    """Also of presentations that recruited a tile, or moved one."""
    name, run, seen = witness
    recruits = 0
    for t, (a, w) in enumerate(seen):
        target = theory.target_of(run, t)
        # From the snapshot before it is the same sum; for the first, learning is undone.
        assert np.abs(target.a - a).max() <= (0 if t else 1e-15), t
        if t:
            assert (theory.weights_before(run, t)["w"] == w).all()
            before = run["W_snapshots"].values[t - 1]
            recruits += (theory.weights_before(run, t)["W"] != before).any()
    assert (recruits >= 7) == (CIRCUITS[name].get("tiles") != "first")


def test_the_closed_form_of_a_result_is_where_it_settled(witness):
    _, run, _ = witness
    errors = studies.settling_errors(run)
    steps = run.sizes["step"]
    assert errors.sizes == {"setting": 1, "presentation": 60, "step": steps}
    final = errors["error"].values[0, :, -1]
    if run.attrs["gain"] == "control":
        assert final.max() < 1e-8  # every presentation, whatever its drive
        # One contraction for all: the quotient of polynomials' roots, to rounding.
        assert np.ptp(errors["factor"].values) < 1e-12
    else:
        # As the circuit's own tests: 200 steps reach 1e-6 for nearly all presentations.
        assert np.mean(final < 1e-6) >= 0.9
        assert np.ptp(errors["factor"].values) > 0.01
    for t in (0, 30, 59):
        target = theory.target_of(run, t)
        assert np.linalg.norm(target.h) == pytest.approx(1)
        assert np.linalg.norm(target.u) == pytest.approx(math.sqrt(target.size))
        if target.y is not None and final[t] < 1e-8:
            # mu w.h, with mu of 1000 and w below 1 (w.h/sum(h) under the gated rule)
            assert np.abs(target.y - run["y"].values[t]).max() < 1e-5


def test_drives_up_to_the_floor_are_none():
    run, _ = witnessed()
    assert theory.floor_of(run) == pytest.approx(
        gain_control.FLOOR * 2 / BASE["n_tiles"] * (1 - run.attrs["alpha"]), rel=1e-14
    )
    faint = run.copy(deep=True)
    for name in ("W_snapshots", "b_snapshots"):
        faint[name][29] *= 1e-10
    uncovered = theory.target_of(faint, 30)
    assert (np.maximum(uncovered.a, 0) > 0).any()
    assert (uncovered.size, uncovered.h.any(), uncovered.u.any()) == (0, False, False)
    for part in theory.start_of(faint, 30, uncovered):
        assert not part.any()
    assert theory.gamma_of(faint, 0.0)[0] == 0
    assert theory.floor_of(witnessed(**CONSTANT)[0]) == 0


def test_undoing_the_last_learning_gives_the_weights_before(witness):
    _, run, _ = witness
    p = theory.parameters_of(run)
    for t in (1, 25, 59):
        others = run["snapshot_presentation"].values != t - 1
        undone = theory.weights_before(run.isel(snapshot=others), t)
        direct = theory.weights_before(run, t)
        for name in ("W", "b", "w"):
            # Rounding, over 1 - rate >= 1/2; the gated rule leaves as little as 1 - 0.9 of w.
            bound = 1e-15 if p.readout_rule == "paper" else 1e-14
            assert np.abs(undone[name] - direct[name]).max() < bound, (name, t)
    first = theory.weights_before(run, 0)
    x = LIFT(run["points"].values)
    start = np.zeros_like(first["W"])  # where tiles start
    count = p.n_tiles if p.tiles == "first" else 1
    start[:count] = x[:count] * p.kappa
    assert np.abs(first["W"] - start).max() < 1e-15
    assert ("w" in first) is (p.readout_rate != "running_mean")


def changed(model=None, *perturbations):
    """A short result of a circuit that something was done to."""
    circuit = ReferenceCircuit(
        CircuitParameters(**BASE), LIFT, model=model, perturbations=perturbations
    )
    return circuit.run(moons(20, after=5)[0], snapshot_every=1)


def test_learning_that_is_not_the_papers_is_not_undone():
    model = CircuitModel(bias=Rule("b += 0*b", lambda b, h, alpha, eta: b))
    weights = Freeze(what="W"), Noise(on="b", size=1e-3), Lesion(tiles=(0,), at=10)
    for run in (changed(model), *(changed(None, done) for done in weights)):
        with pytest.raises(InputError, match="is not the paper's"):
            theory.weights_before(run.isel(snapshot=[19]), 19)
    for done in (Noise(on="y", size=1e-3), Current(into="h", amount=0.01)):
        run = changed(None, done)
        found = theory.weights_before(run.isel(snapshot=[19]), 19)["W"]
        # Rounding, over 1 - eta.
        assert np.abs(found - run["W_snapshots"].values[18]).max() < 1e-15
    frozen = CircuitModel(each_presentation=[name for name in EACH_PRESENTATION if name != "learn"])
    run = changed(frozen)
    assert (theory.weights_before(run.isel(snapshot=[19]), 19)["W"] == run["W"].values).all()


def test_a_tile_that_a_lesion_removes_was_in_use_before():
    run = changed(None, Lesion(tiles=(0,), at=15))
    used = in_use_at_snapshots(run)[:, 0]
    # The lesion comes before presentation 15, after which the sixteenth snapshot is taken.
    assert used.tolist() == [True] * 15 + [False] * 5
    assert 0 not in tiles_in_use(run)


def test_what_is_not_stored_is_said(recorded):
    bare = recorded.drop_vars(["W_snapshots", "b_snapshots", "w_snapshots"])
    with pytest.raises(InputError, match="snapshot_every=1"):
        studies.settling_errors(bare)
    for run in (bare, recorded.isel(snapshot=[10])):
        with pytest.raises(InputError, match="snapshot_every=1"):
            theory.target_of(run, 30)
    with pytest.raises(InputError, match=r"record=\('h',\)"):
        studies.settling_errors(recorded.drop_vars("h_trace"))


def test_settling_study_repeats_the_circuit_and_obeys_theory(recorded):
    equal = 1.005 * theory.parameters_of(recorded).tau_V_
    settings = {"as run": {}, "equal": {"tau_u": f"{equal} s"}}
    study = studies.settling_study(recorded, settings, n_presentations=10)
    own = studies.settling_errors(recorded)["error"].sel(presentation=study["presentation"])
    # The same steps from a drive that differs by rounding, while it does not grow.
    assert np.abs(study["error"].values[0] - own.values[0]).max() < 1e-10
    assert (study["factor"].values[0] < 1).all()
    assert (study["factor"].values[1] > 1).all()
    last = np.median(study["error"].values[:, :, -1], axis=1)
    assert last[0] < 1e-6 < 1e-2 < last[1]
    with pytest.raises(InputError, match="not n_tiles"):
        studies.settling_study(recorded, {"x": {"n_tiles": "3"}})
    assert set(agreement.largest_differences(recorded, recorded).values()) == {0.0}
    assert agreement.signs_agree(recorded, recorded)


# --- delays and noise ---------------------------------------------------------------------------


def delayed_jacobian(delay):
    """The Jacobian of a step of the reference circuit with a delay at its fixed point, by central
    differences, with the vectors that span h, u, V and the delay lines: three tiles, of which one
    is silent, and two interneurons."""
    p = CircuitParameters(n_tiles=3, n_interneurons=2)
    model = CircuitModel(delay=f"{delay * 1000 / 1024} ms")
    circuit = ReferenceCircuit(p, SphereLift(center=(0.0, 0.0), radius=3.0), model=model)
    a, size = np.array([0.3, 0.4, -0.2]), 0.5
    direction = reference.rest_direction(2)
    fixed = reference.fixed_point(a, direction)
    line = model.delay_line(p)
    gamma = circuit.gamma(size)

    def step(vector):
        state = empty_state(circuit)
        state.h, state.u, state.V = vector[:3], vector[3:5], vector[5:11].reshape(2, 3)
        past = np.split(vector[11:], np.cumsum([3, 2] * delay)[:-1]) if delay else []
        state.extra = dict(zip(line, past, strict=True))
        shown = Scene(circuit, state, Task(a[None], a[None], True, (), False, print))
        shown.a, shown.gain = a, 1 / size
        shown.move()
        moved = [getattr(shown, name.partition(".")[2]) for name in line]
        return np.concatenate([shown.h, shown.u, shown.V.ravel(), *moved])

    rest = np.concatenate([fixed[0], fixed[1], fixed[2].ravel(), *[fixed[0], fixed[1]] * delay])
    np.testing.assert_allclose(step(rest), rest, atol=1e-15)
    push = 1e-5
    columns = [
        (step(rest + push * e) - step(rest - push * e)) / (2 * push) for e in np.eye(len(rest))
    ]
    return np.array(columns).T, gamma, size, fixed, direction


def embedded(fixed, direction, size, delay, along):
    """Columns: the deviations p, s, v and their past along h*, or q and r across it, as vectors of
    all h, u, V and delay lines."""
    h = fixed[0] if along else np.array([fixed[0][1], -fixed[0][0], 0.0])
    root = np.sqrt(size)
    n = 11 + 5 * delay
    columns = np.zeros((3 + 2 * delay, n))
    columns[0, :3] = h
    columns[1, 3:5] = root * direction
    columns[2, 5:11] = root * np.outer(direction, h).ravel()
    for k in range(delay):
        columns[3 + k, 11 + 5 * k : 14 + 5 * k] = h
        columns[3 + delay + k, 14 + 5 * k : 16 + 5 * k] = root * direction
    return columns.T


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_the_delayed_step_is_the_jacobian_of_the_reference(delay):
    jacobian, gamma, size, fixed, direction = delayed_jacobian(delay)
    E = embedded(fixed, direction, size, delay, along=True)
    # The step is a polynomial of degree two: central differences are exact but for rounding,
    # 1e-16/1e-5.
    expected = E @ theory.delayed_step(gamma, size, delay)
    np.testing.assert_allclose(jacobian @ E, expected, atol=1e-9)
    # A delay does not touch the modes across h.
    E = embedded(fixed, direction, size, delay, along=False)
    across = np.array([[1, -gamma[0] * size], [gamma[2], 1 - gamma[2]]])
    moved = (jacobian @ E[:, [0, 2]])[:11]
    np.testing.assert_allclose(moved, (E[:, [0, 2]] @ across)[:11], atol=1e-9)
    # There the past moves nothing but the past.
    np.testing.assert_allclose(jacobian[:11] @ E[:, 3 : 3 + delay], 0, atol=1e-9)


def test_the_critical_delay_parts_delays_that_settle_from_those_that_do_not():
    gamma = 0.390625, 0.0390625, 0.9765625
    found = theory.critical_delay(gamma, 1.0)
    assert 11 < found < 12
    low, high = (theory.delayed_factor(gamma, 1.0, steps) for steps in (11, 12))
    assert low < 1 < high
    assert found == pytest.approx(11 + (1 - low) / (high - low))
    assert theory.delayed_factor(gamma, 1.0) == pytest.approx(theory.growth_factor(gamma, 1.0))
    # Across h* there is no delay, and it may be the slowest.
    slow = 0.2, 0.9, 0.1
    assert theory.delayed_factor(slow, 1.0, 1) >= theory.growth_factor(slow, 1.0, "across")
    assert theory.critical_delay(gamma, 1.0, most=11) == np.inf
    assert theory.critical_delay(gamma, 1.0, factor=0.7) == 0  # 0.726 without a delay
    assert theory.critical_delay((0.39, 0.5, 0.5), 1.0) == 0  # equal rates never settle
    half = theory.critical_delay((0.78125, *gamma[1:]), 0.5)
    assert half == pytest.approx(found)  # gamma_h A is what counts


def test_noise_across_is_that_of_a_recursion_of_two_steps():
    """With gV = 1, q <- q - G q_before + n: the variance of AR(2) with coefficients 1 and -G."""
    G = 0.3
    variance = (1 + G) / ((1 - G) * ((1 + G) ** 2 - 1))
    assert theory.noise_response((G, 0.05, 1.0), 1.0, "h")[1] == pytest.approx(variance)
    assert theory.noise_response((G, 0.05, 1.0), 1.0, "V")[1] == pytest.approx(G**2 * variance)
    assert theory.noise_response((G, 0.05, 1.0), 1.0, "u")[1] == 0


def test_noise_along_is_the_sum_of_what_every_step_leaves():
    gamma = 0.39, 0.039, 0.98
    step = theory.delayed_step(gamma, 1.0)
    for place, on in enumerate("huV"):
        kick, total = np.eye(3)[place], 0.0
        for _ in range(400):  # 0.73 to the power of it is nothing
            total += kick[0] ** 2
            kick = step @ kick
        assert theory.noise_response(gamma, 1.0, on)[0] == pytest.approx(total, rel=1e-12)
