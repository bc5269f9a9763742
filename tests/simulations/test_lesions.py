"""Lesions, delays and noise: measures against circuits of their own, and claims on planted ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from analysis import theory
from circuits import CircuitParameters, Delay, Freeze, Lesion, Noise, ReferenceCircuit
from simulations.datasets import MOONS_LIFT, first_of_each_class, two_moons
from simulations.experiments import damaging, get_experiment
from simulations.experiments import lesions as module
from tests.refusing import refused
from tests.simulations.printed import assert_printed
from tests.simulations.small import assert_range, claim_named, planted

NAME = "lesions"
P = CircuitParameters(n_tiles=100, initial_weight=0.05)


@pytest.fixture(scope="module")
def data():
    """Streams of the run, the intact circuit's rates on the test points, and the tiles that go."""
    rng = np.random.default_rng(0)
    points, classes = two_moons(400, 0.05, rng)
    others, known = two_moons(60, 0.05, rng)
    labels = np.concatenate([first_of_each_class(classes, 60)[:300], np.zeros(100, dtype=int)])
    whole = ReferenceCircuit(P, MOONS_LIFT, settling="exact")
    whole.run(points[:300], labels[:300])
    used = np.flatnonzero(whole.state.in_use)
    orders = [rng.permutation(used) for _ in range(5)]
    return points, labels, others, known, whole, orders


def scores(circuit, others, known):
    """Coverage and accuracy by a loop over what a circuit answers."""
    h, y = circuit.respond(others), circuit.predict(others)[:, 0]
    right = [0.5 if y[t] == 0 else float(np.sign(y[t]) == known[t]) for t in range(len(y))]
    return [np.mean([any(row > 0) for row in h]), np.mean(right)]


def test_lesions_are_those_of_circuits_that_run_in_one_go(run, data):
    points, labels, others, known, whole, orders = data
    idle = np.flatnonzero(~whole.state.in_use)

    def stored(one, when):
        return [float(one[f"{when}_{measure}"]) for measure in ("coverage", "accuracy")]

    assert stored(run, "before") == pytest.approx(scores(whole, others, known))
    for share in (0.3, 0.7):
        gone = [order[: round(share * len(order))] for order in orders]
        after = []
        for tiles in gone:
            done = [Lesion(tiles=tiles, at=300)]
            circuit = ReferenceCircuit(P, MOONS_LIFT, settling="exact", perturbations=done)
            circuit.run(points[:300], labels[:300])
            after.append(scores(circuit, others, known))
        found = run.sel(share=share)
        assert stored(found, "after") == pytest.approx(np.mean(after, axis=0))
        for condition in module.CONDITIONS:
            tiles = gone[0] if "spare" in condition else np.concatenate([gone[0], idle])
            done = [Lesion(tiles=tiles, at=300)] + [Freeze(at=300)] * ("frozen" in condition)
            circuit = ReferenceCircuit(P, MOONS_LIFT, settling="exact", perturbations=done)
            circuit.run(points, labels)
            later = stored(found.sel(condition=condition), "later")
            assert later == pytest.approx(scores(circuit, others, known))


def test_expected_coverage_is_the_mean_over_all_lesions():
    """Four tiles, of which two go; points that none, one, two and three of them answer."""
    tiles = [set(), {0}, {1, 2}, {0, 1, 3}]
    covered = [
        np.mean([bool(own - set(gone)) for own in tiles])
        for gone in itertools.combinations(range(4), 2)
    ]
    found = damaging.expected_coverage(np.array([0, 1, 2, 3]), 4, 2)
    assert found == pytest.approx(np.mean(covered))
    assert damaging.expected_coverage(np.array([1, 2]), 5, 0) == 1
    # One tile is left at least.
    assert [damaging.lost(share, 10) for share in (0.04, 0.3, 0.96)] == [0, 3, 9]


def test_answers_are_counted_by_hand(run, data):
    """Of four points one is silent, one is answered wrong, two right."""
    whole = data[4]
    signs = np.sign(whole.state.w[0])
    up, down = int(np.flatnonzero(signs > 0)[0]), int(np.flatnonzero(signs < 0)[0])
    h = np.zeros((4, 100))
    h[[0, 1, 2], [up, down, up]] = 1
    learned = damaging.Learned(P, whole.state, None, np.array([1, -1, -1, 1]), None, None)
    assert damaging.measured(h, learned, whole.state) == pytest.approx((0.75, 2.5 / 4, 2 / 3))
    silent = damaging.measured(np.zeros((4, 100)), learned, whole.state)
    assert silent[:2] == (0, 0.5)
    assert np.isnan(silent[2])
    deaf = learned._replace(parameters=P.replace(mu=0))
    assert damaging.measured(h, deaf, whole.state)[1] == 0.5
    faint = learned._replace(parameters=P.replace(mu=0.01))
    assert damaging.measured(h, faint, whole.state)[1] == 2.5 / 4


def test_interneurons_against_the_closed_form_and_a_circuit_of_one(run, data):
    _, _, others, _, whole, _ = data
    # 80 steps shrink deviations to 1e-11; with one left of four, u starts at half its size.
    assert float(run["interneuron_error"].max()) < 1e-10
    assert float(run["left_error"].max()) < 1e-6
    exact = whole.respond(others[:2])
    done = [Lesion(lateral=0.5)]
    circuit = ReferenceCircuit(P, MOONS_LIFT, perturbations=done)
    circuit.state = whole.state
    with pytest.warns(UserWarning, match="still moving"):
        apart = np.linalg.norm(circuit.respond(others[:2]) - exact, axis=1).max()
    assert float(run["cut_error"]) == pytest.approx(apart)
    assert apart > 1e-4
    damaging.quietly(circuit, others[:2])  # it need not settle, and does not warn


def test_noise_is_that_of_a_circuit_with_one_noise(run, data):
    _, _, others, known, whole, _ = data
    exact = whole.respond(others[:6])
    for on in "huV":
        circuit = ReferenceCircuit(P, MOONS_LIFT, perturbations=[Noise(on=on, size=0.03, seed=0)])
        circuit.state = whole.state
        h = circuit.respond(others[:6])
        found = run.sel(on=on, size=0.03)
        error = np.sqrt(np.mean([np.sum((a - b) ** 2) for a, b in zip(h, exact, strict=True)]))
        assert float(found["noise_error"]) == pytest.approx(error)
        right = np.sign(circuit.predict(others[:6])[:, 0]) == known[:6]
        assert float(found["noise_accuracy"]) == pytest.approx(right.mean())
        # Few points, whose error along h* has one degree of freedom.
        assert float(found["predicted_noise_error"]) == pytest.approx(error, rel=0.6)


def test_settling_with_a_delay_is_that_of_a_circuit_with_it(run, data):
    *_, others, _, whole, _ = data
    for tau, delay in ((12.5, 0), (12.5, 4), (25.0, 2), (25.0, 4)):
        p = P.replace(tau_u=f"{tau} ms", steps_per_presentation=150)
        late = Delay(time=f"{delay * 1000 / 1024} ms")
        circuit = ReferenceCircuit(p, MOONS_LIFT, perturbations=[late, Freeze()])
        circuit.state = whole.state
        point = others[whole.respond(others).any(axis=1)][:1]
        with np.testing.suppress_warnings() as quiet:
            quiet.filter(UserWarning)
            change = float(circuit.run(point)["change"][0])
        assert float(run["settled"].sel(tau_u=tau, delay=delay)) == (change <= 1e-6)
    learned = damaging.Learned(P, whole.state, others, None, None, None)
    points = others[whole.respond(others).any(axis=1)][:2]
    own = {"tau_u": "12.5 ms", "steps_per_presentation": 150}
    assert [damaging.share_settled(learned, points, delay, own) for delay in (0, 4)] == [1, 0]


def test_the_growth_of_a_push_is_the_spectral_radius(run):
    # 150 steps leave some of the modes that fade.
    np.testing.assert_allclose(run["growth"], run["predicted_growth"], atol=0.003)
    assert float(run["critical_delay"][0]) == pytest.approx(2.27, abs=0.01)
    assert run["critical_delay"].values[1] == np.inf  # not up to twice the longest delay


def test_growth_of_planted_modes():
    steps = np.arange(300)
    for modes, turn in (((0.8,), 1), ((1.01,), 1), ((0.9, 0.7), 1), ((1.02,), np.exp(0.3j))):
        d = sum(1e-6 * (z * turn) ** steps for z in modes)
        found = damaging.growth_of(np.column_stack([np.real(d), np.imag(d * 1j)]))
        # A mode of 0.7 is all but gone beside one of 0.9, and rounding is 1e-16 of it.
        assert found == pytest.approx(modes[0], abs=1e-6)
    # Steps have to be between rounding and large.
    assert np.isnan(damaging.growth_of(np.full((100, 2), 1e-15)))
    assert np.isnan(damaging.growth_of(np.full((100, 2), 1e-3)))
    # Four in the last half are enough: there are as many equations as it takes, and some more.
    modes = 1e-6 * 0.9 ** np.arange(7)[:, None] * [1, 2] + 1e-6 * 0.5 ** np.arange(7)[:, None]
    assert damaging.growth_of(modes) == pytest.approx(0.9, abs=1e-9)
    assert np.isnan(damaging.growth_of(modes[:6]))


@pytest.mark.parametrize(
    ("on", "times"),
    [("h", 250), *(pytest.param(on, 500, marks=pytest.mark.slow) for on in "huV")],
)
def test_the_linear_response_is_that_of_many_presentations(data, on, times):
    """Of one point, again and again, each time with other noise."""
    *_, others, known, whole, _ = data
    learned = damaging.Learned(P, whole.state, others, known, None, None)
    h = whole.respond(others)
    point = int(np.argmax((h > 0).sum(axis=1)))
    active = (h[[point]] > 0).sum(axis=1)
    assert active[0] >= 3  # so that what is along and what is across h* can be told apart
    used = int(whole.state.in_use.sum())
    response = damaging.noise_variance(learned, others[[point]], active, used)[on]
    size, tau = 0.01, {"h": P.tau_h_, "u": P.tau_u_, "V": P.tau_V_}[on]
    circuit = ReferenceCircuit(P, MOONS_LIFT, perturbations=[Noise(on=on, size=size, seed=2)])
    circuit.state = whole.state
    found = circuit.respond(np.repeat(others[[point]], times, axis=0)) - h[point]
    # 500 sums of a few squares: a standard error of 4 to 7 %, of 250 a factor of 1.4 more; one
    # active tile more or less makes a difference of a quarter or more, where it makes one.
    expected = size**2 * P.dt_ / tau * response
    assert (found**2).sum(axis=1).mean() == pytest.approx(expected, rel=0.12)


def test_the_delay_that_settles_in_time_is_where_the_factor_says_so(run):
    in_time = 1e-6 ** (1 / 150)
    for tau, limit in zip((12.5, 25.0), run["settling_delay"].values, strict=True):
        gamma = theory.step_sizes(P.replace(tau_u=f"{tau} ms"), None, 1.0)
        low, high = (
            theory.delayed_factor(gamma, 1.0, int(d)) for d in (np.floor(limit), np.ceil(limit))
        )
        assert low <= in_time <= high


def with_values(registered, spread=0.0, **values):
    """Planted values of variables, alike in all repeats but for some noise."""
    for name, value in values.items():
        room = registered[name].transpose("repeat", ...)
        rng = np.random.default_rng(1)
        noise = rng.standard_normal((room.sizes["repeat"], *[1] * (room.ndim - 1)))
        array = np.broadcast_to(value, room.shape) + spread * noise
        registered = registered.assign({name: room.copy(data=array)})
    return registered


def verdict(registered, words, spread=1e-3, **values):
    return claim_named(NAME, with_values(registered, spread, **values), words).holds


def test_every_figure_has_to_be_as_predicted(registered):
    plain = with_values(registered, predicted_coverage=[0.9, 0.7])
    for found, holds in (([0.94, 0.66], True), ([0.96, 0.7], False), ([0.9, 0.64], False)):
        assert verdict(plain, "as overlaps predict", after_coverage=found) is holds
    assert claim_named(NAME, plain, "as overlaps predict").constructed
    same = {"interneuron_error": 1e-9, "left_error": 1e-8, "interneuron_accuracy": 1.0}
    for values, holds in (
        ({}, True),
        ({"interneuron_error": [2e-6, *[0] * 7]}, False),
        ({"left_error": [0, 0, 0, 2e-6]}, False),
        ({"interneuron_accuracy": [0.9, *[1.0] * 7]}, False),
    ):
        assert verdict(registered, "one interneuron", 0.0, **same | values) is holds
    predicted = registered["predicted_growth"].isel(repeat=0).to_numpy()
    for off, holds in ((0.002, True), (0.004, False), (np.nan, False)):  # nan: not measured
        growth = predicted.copy()
        growth[1, 2] += off
        assert verdict(registered, "linear stability", 0.0, growth=growth) is holds


def table(**conditions):
    """(share, condition), 0.5 where nothing is said."""
    names = {"spare": 0, "spare_frozen": 1, "none": 2, "none_frozen": 3}
    array = np.full((2, 4), 0.5)
    for name, value in conditions.items():
        array[:, names[name]] = value
    return array


def test_healing_needs_coverage_and_accuracy_at_every_share(registered):
    for coverage, accuracy, holds in (
        (0.995, 0.995, True),
        ([0.995, 0.985], 0.995, False),
        (0.995, [0.985, 0.995], False),
    ):
        later = {"later_coverage": table(spare=coverage), "later_accuracy": table(spare=accuracy)}
        assert verdict(registered, "heals by itself", **later) is holds
    # And the tiles that are left have to answer right.
    assert verdict(registered, "only silence", after_answered=[0.995, 0.995]) is True
    assert verdict(registered, "only silence", after_answered=[0.995, 0.98]) is False


def test_without_idle_tiles_a_part_is_closed(registered):
    for none, frozen, holds in ((0.9, 0.8, True), (0.995, 0.8, False), (0.8, 0.9, False)):
        merged = with_values(registered, later_coverage=table(none=none, none_frozen=frozen))
        noise = 1e-3 * np.random.default_rng(2).standard_normal(merged["later_coverage"].shape)
        merged = merged.assign(later_coverage=merged["later_coverage"] + noise)
        assert claim_named(NAME, merged, "closes a part").holds is holds


def test_limits_have_to_be_within_a_step(registered):
    # The limit is the last delay before the first that fails.
    for settled, limits in (([[1.0, 0.5, 1.0], [1.0, 1.0, 0.6]], [0, 4]), (0.0, [-1, -1])):
        merged = with_values(registered, settled=np.array(settled))
        assert module.settling_limits(merged)[0].tolist() == limits
    settled = np.array([[1.0, 0, 0], [1, 1, 0]])  # up to 0 and up to 2

    def claim(first, second):
        merged = with_values(registered, settled=settled, settling_delay=[first, second])
        return claim_named(NAME, merged, "up to the delay")

    assert claim(0.9, 1.1).holds is True
    # Limits 0 and 2 against the predictions 0.9 and 1.1, each with each.
    assert "1.1 steps" in claim(0.9, 1.1).control
    for predicted in ((1.1, 2), (0, 3.1), (0, 0.9)):
        assert claim(*predicted).holds is False


def test_only_weak_noise_counts(registered):
    """Noise of up to a tenth is weak, and none at all says nothing."""
    for sizes, first, ratio, holds in (
        ((0.03, 1.0), [0.1, 0.2, 0.3], [[0.9, 0.1], [1.1, 0.1], [1.0, 0.1]], True),
        ((0.03, 1.0), [0.1, 0.2, 0.3], [[0.9, 1.0], [1.2, 1.0], [1.0, 1.0]], False),
        ((0.03, 1.0), [0.1, 0.2, 0.3], [[0.8, 1.0], [1.0, 1.0], [1.0, 1.0]], False),
        ((0.0, 0.1), [0.0, 0.0, 0.0], 1.3, False),
        ((0.0, 0.1), [0.0, 0.0, 0.0], 1.0, True),
    ):
        predicted = np.column_stack([first, [3.0] * 3])
        merged = registered.assign_coords(size=list(sizes))
        merged = with_values(merged, predicted_noise_error=predicted)
        found = predicted * np.asarray(ratio)
        assert verdict(merged, "noise moves h", noise_error=found) is holds
    for second, accuracy, holds in (
        (1.0, [[0.995, 0.5], [0.995, 0.5], [0.995, 0.5]], True),
        (1.0, [[0.995, 1.0], [0.98, 1.0], [0.995, 1.0]], False),
        (0.1, [[0.995, 0.98], [0.995, 0.995], [0.995, 0.995]], False),
    ):
        merged = registered.assign_coords(size=[0.03, second])
        assert verdict(merged, "told apart", noise_accuracy=np.array(accuracy)) is holds


def test_below_the_registered_size_nothing_is_decided(run):
    for changes in ({"later": 999}, {"n_points": 1900}, {"n_noisy": 199}):
        merged = planted(NAME, lambda seed, run: {}, run=run, **changes)
        assert {claim.holds for claim in get_experiment(NAME).claims(merged)} == {None}


def test_numbers_are_printed(registered):
    """Means over repeats, in claims and controls."""
    merged = with_values(
        registered,
        later_coverage=table(spare=[0.8, 0.7], spare_frozen=[0.8, 0.6]),
        later_accuracy=table(spare=[0.9, 0.6]),
        critical_delay=[2.0, 8.0],
        settling_delay=[1.0, 4.0],
        noise_accuracy=np.array([[1.0, 0.55], [1.0, 0.65], [1.0, 0.75]]),
    )
    told = claim_named(NAME, merged, "told apart").control
    assert "0.550 ± 0.000 (h), 0.650 ± 0.000 (u), 0.750 ± 0.000 (V)" in told
    heals = claim_named(NAME, merged, "heals by itself")
    assert "0.900 at 0.3, 0.600 at 0.7, coverage 0.800 at 0.3, 0.700 at 0.7" in heals.figure
    assert "coverage at least 0.600" in heals.control
    # Steps of 1000/1024 ms.
    said = "2.0 steps, 2.0 ms (τ_u = 12.5 ms), 8.0 steps, 7.8 ms (τ_u = 25 ms)"
    assert said in claim_named(NAME, merged, "linear stability").figure
    assert all(len(claim.short) <= 60 for claim in get_experiment(NAME).claims(merged))
    assert_printed(NAME, merged, grids=True)
    assert get_experiment(NAME).main in merged


def test_settings_are_taken_within_their_range():
    for setting, within, beyond in (
        ("noise", (0, 1), (-0.01, 1.01)),
        ("label_after", (0, 1990), (-1, 1991)),
        ("shares", ((1e-6, 0.999),), ((0,), (1,), ())),
        ("delays", ((0, 100),), ((-1,), (101,), (0.5,), ())),
        ("taus", ((0.01, 1e4),), ((0.009,), (1e5,), ())),
        ("delay_steps", (101, 10_000), (100, 10_001)),
        ("sizes", ((0, 5),), ((-1,), ())),
        *((name, (300,), (301,)) for name in ("n_noisy", "n_tried", "n_delayed")),
    ):
        assert_range(NAME, setting, within, beyond)
    for name, value, instead in (("n_readouts", 2, "shares"), ("reset", False, "delays")):
        refused(
            lambda given={name: value}: get_experiment(NAME).config("exact", given),
            f"{name}.* {instead} ",
        )
