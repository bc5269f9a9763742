"""The theory of the fast dynamics against brute force on the rules themselves."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from analysis import agreement, studies, theory
from circuits import CircuitParameters, ReferenceCircuit, SphereLift, rules
from circuits.errors import InputError
from tests.conftest import moons

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
GAMMAS = [(300.0, 0.02, 0.5), (300.0, 0.5, 0.02), (120.0, 0.1, 0.3), (700.0, 0.05, 0.9)]
SIZE = 1e-3


def brute_force_spectrum(gamma, a, k):
    """Eigenvalues of one step at the fixed point, by finite differences of `rules.step`."""
    m = len(a)
    h, u, V = rules.fixed_point(a, rules.rest_direction(k))
    fixed = np.concatenate([h, u, V.ravel()])

    def step(flat):
        state = flat[:m], flat[m : m + k], flat[m + k :].reshape(k, m)
        return np.concatenate([part.ravel() for part in rules.step(*state, a, gamma)])

    assert np.abs(step(fixed) - fixed).max() < 1e-15
    # The step is quadratic, so central differences have no error but rounding where nothing is
    # rectified: h and u of active tiles are pushed by far less than they are. Silent tiles (a < 0,
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
@pytest.mark.parametrize(("k", "silent"), [(1, 0), (3, 0), (2, 2)])
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


@pytest.mark.parametrize("gamma", GAMMAS)
def test_roots_solve_the_polynomials(gamma):
    along, across = (theory.roots(gamma, SIZE, modes) for modes in ("along", "across"))
    assert np.abs(np.polyval(theory.cubic(gamma, SIZE), along)).max() < 1e-14
    assert np.abs(np.polyval(theory.quadratic(gamma, SIZE), across)).max() < 1e-14
    slowest = max(abs(1 + value) for value in (*along, *across))
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


def test_in_small_steps_only_equal_rates_do_not_settle():
    drive, ratios = 0.3, (0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0)
    for ratio in ratios:
        rates = np.array([drive, 0.5 * ratio, 0.5])
        # All three rates shrink together, as dt does.
        stable = [theory.is_stable(tuple(rates * dt), 1.0) for dt in (1.0, 1e-3, 1e-5)]
        assert stable[1:] == [ratio != 1.0] * 2 or abs(ratio - 1) < 0.2, ratio
        assert stable[2] == (ratio != 1.0), ratio
    assert theory.critical_drive(1e-6, 3e-6) == pytest.approx(0.25, abs=1e-4)  # ((3-1)/(3+1))^2


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


def test_convergence_has_slope_one_and_can_fail():
    study = studies.convergence_study("reference", (32, 64, 128, 256))
    # Euler's method: order one, up to the next power of dt, a few per cent at these steps.
    assert study.attrs["order"] == pytest.approx(1, abs=0.1)
    assert (np.diff(study["error"].values) < 0).all()
    with pytest.raises(InputError, match="multiples of 32"):
        studies.convergence_study("reference", (33,))


@pytest.fixture(scope="module")
def recorded():
    points, _, labels = moons(60, after=45)
    parameters = CircuitParameters(n_tiles=30, n_interneurons=3, tile_radius=0.5)
    circuit = ReferenceCircuit(parameters, LIFT)
    return circuit.run(points, labels, record=("h", "u"), snapshot_every=1)


def test_the_closed_form_of_a_result_is_where_it_settled(recorded):
    errors = studies.settling_errors(recorded)
    assert errors.sizes == {"setting": 1, "presentation": 60, "step": 200}
    final = errors["error"].values[0, :, -1]
    # As the circuit's own tests: 200 steps reach 1e-6 for nearly all presentations.
    assert np.mean(final < 1e-6) >= 0.9
    for t in (0, 30):
        target = theory.target_of(recorded, t)
        assert np.linalg.norm(target.h) == pytest.approx(1)
        assert np.linalg.norm(target.u) == pytest.approx(math.sqrt(target.size))


def test_undoing_the_last_learning_gives_the_snapshot_before(recorded):
    for t in (1, 25, 59):
        others = recorded["snapshot_presentation"].values != t - 1
        undone = theory.weights_before(recorded.isel(snapshot=others), t)
        direct = theory.weights_before(recorded, t)
        for name in ("W", "b", "w"):
            # Rounding, over 1 - rate >= 1/2.
            assert np.abs(undone[name] - direct[name]).max() < 1e-15, (name, t)
    first = theory.weights_before(recorded, 0)
    x = LIFT(recorded["points"].values)
    assert np.abs(first["W"] - x[:30] * 2 / 30).max() < 1e-15  # where tiles start
    assert "w" not in first


def test_what_is_not_stored_is_said(recorded):
    bare = recorded.drop_vars(["W_snapshots", "b_snapshots", "w_snapshots"])
    for needs in (theory.target_of, lambda run, _: studies.settling_errors(run)):
        with pytest.raises(InputError, match="snapshot_every=1"):
            needs(bare, 3)
    sparse = recorded.isel(snapshot=[10])
    with pytest.raises(InputError, match=r"before presentation 30.*snapshot_every=1"):
        theory.target_of(sparse, 30)
    with pytest.raises(InputError, match=r"record=\('h',\)"):
        studies.settling_errors(recorded.drop_vars("h_trace"))


def test_settling_study_repeats_the_circuit_and_obeys_theory(recorded):
    settings = {"as run": {}, "equal": {"tau_u": "2.01 ms"}}
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


def test_largest_differences_and_signs_still_work(recorded):
    assert set(agreement.largest_differences(recorded, recorded).values()) == {0.0}
    assert agreement.signs_agree(recorded, recorded)
