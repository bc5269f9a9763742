"""Fields that drift: measures by hand, runs against circuits of their own, and claims on planted
drift."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import xarray as xr

from analysis.theory import diffusion_by_noise
from circuits import CircuitParameters, Freeze, Noise, ReferenceCircuit
from simulations.datasets import MOONS_LIFT, RING_LIFT, first_of_each_class, ring, two_moons
from simulations.experiments import get_experiment
from simulations.experiments import representational_drift as module
from tests.refusing import refused
from tests.simulations.printed import assert_printed
from tests.simulations.small import assert_range, claim_named, planted, small_run

NAME = "representational-drift"
PARAMETERS = {"n_tiles": 40, "tile_radius": 0.4, "tiles": "first"}
READOUTS = {
    "paper": {"readout_rule": "paper", "readout_rate": 0.01, "mu": 30.0},
    "gated": {"readout_rule": "gated", "readout_rate": 0.9, "mu": 1.1},
}


def small():
    """One small repeat, which is simulated once."""
    return small_run(NAME)


@pytest.fixture
def run():
    return small()


def circuit(rule, lift, *perturbations):
    parameters = CircuitParameters(**PARAMETERS, **READOUTS[rule])
    return ReferenceCircuit(parameters, lift, settling="exact", perturbations=perturbations)


# Runs


ANGLES = 2 * np.pi * np.arange(120) / 120


def ring_fields(*perturbations):
    """Fields of a circuit on the ring from the start of the noise on, and its mean weight then."""
    points, _ = ring(350, np.random.default_rng([0, 0]))
    own = circuit("paper", RING_LIFT, *perturbations)
    test = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
    own.run(points[:150])
    fields = [own.respond(test)]
    weight = np.hypot(*own.state.W[:, :2].T).mean()
    for end in range(160, 351, 10):
        own.run(points[end - 10 : end])
        fields.append(own.respond(test))
    return fields, weight


def own_correlations(first, last):
    """Of the tiles that answer both times."""
    both = first.any(axis=0) & last.any(axis=0)
    return {int(i): np.corrcoef(first[:, i], last[:, i])[0, 1] for i in np.flatnonzero(both)}


@pytest.mark.parametrize("size", [0.0, 1e-3])
def test_the_ring_is_that_of_a_circuit_of_its_own(run, size):
    fields, weight = ring_fields(*[Noise(on="W", size=size, at=150)] * bool(size))
    found = run.sel(size=size)
    assert run["moment"].values.tolist() == list(range(0, 201, 10))
    # The same sums in another order.
    assert float(found["weight"]) == pytest.approx(weight, rel=1e-12)
    first, last = fields[0], fields[-1]
    for i, same in own_correlations(first, last).items():
        assert float(found["own_field"][-1, i]) == pytest.approx(same, abs=1e-10)
    pairs = np.triu_indices(120, 1)
    products = [(h @ h.T)[pairs] for h in (first, last)]
    assert float(found["likeness"][-1]) == pytest.approx(np.corrcoef(*products)[0, 1], abs=1e-10)
    assert float(found["likeness"][0]) == pytest.approx(1)
    answering = [(h > 0).any(axis=0).mean() for h in fields]
    np.testing.assert_allclose(found["answering"], answering)
    i = int(np.flatnonzero(last.any(axis=0))[0])
    middle = np.angle((last[:, i] * np.exp(1j * ANGLES)).sum())
    assert float(found["center"][-1, i]) == pytest.approx(middle, abs=1e-9)


def test_noise_on_b_is_of_the_same_size(run):
    fields, _ = ring_fields(Noise(on="b", size=1e-4, at=150))
    for i, same in own_correlations(fields[0], fields[-1]).items():
        assert float(run["bias_field"][-1, i]) == pytest.approx(same, abs=1e-10)
    assert float(run["bias_diffusion"]) > 0


@pytest.mark.parametrize("rule", module.RULES)
@pytest.mark.parametrize("stream", module.STREAMS)
def test_accuracies_on_the_moons_are_those_of_circuits_of_their_own(run, rule, stream):
    points, classes = two_moons(350, 0.05, np.random.default_rng([0, 1]))
    labels = first_of_each_class(classes, 120)
    assert np.flatnonzero(labels).min() >= 120
    changes = {
        "still": [],
        "noise": [Noise(on="W", size=1e-3, at=150)],
        "frozen": [Noise(on="W", size=1e-3, at=150), Freeze(what="w", at=150)],
    }
    own = circuit(rule, MOONS_LIFT, *changes[stream])
    y = own.run(points[:150], labels[:150])["y"].to_numpy()[:, 0]
    test, _ = two_moons(120, 0.0, 0)
    before = own.respond(test)
    y = np.append(y, own.run(points[150:], labels[150:])["y"].to_numpy()[:, 0])
    same = module.own_correlations(np.stack([before, own.respond(test)]))[1].mean()
    assert float(run["moons_field"].sel(rule=rule, stream=stream)) == pytest.approx(same, abs=1e-9)
    right = np.where(y == 0, 0.5, np.sign(y) == classes)[150:].reshape(20, 10).mean(axis=1)
    found = run["readout_course"].sel(rule=rule, stream=stream)
    np.testing.assert_allclose(found, right)
    assert run["part"].values.tolist() == list(range(10, 201, 10))


# Measures, by hand


def drift(centers):
    return module.Drift(np.empty(0), centers, 1.0)


def test_fields_middles_and_steps():
    fields = np.zeros((3, 4, 3))
    fields[0, 0], fields[1, 0, 0], fields[1, 1, 1], fields[2, 0] = 1, 2, 5, 3
    found = module.own_correlations(fields)
    # Four points, one of them 1: another one of them has the correlation -1/3.
    np.testing.assert_allclose(found, [[1, 1, 1], [1, -1 / 3, 0], [1, 1, 1]], atol=1e-12)
    fields = np.zeros((1, 120, 3))
    fields[0, [29, 30, 31], 0] = 1, 4, 1  # 30 of 120 points is a quarter round
    fields[0, [90, 91], 1] = 0.5
    (found,) = module.centers_of(fields)
    np.testing.assert_allclose(found, [np.pi / 2, -np.pi / 2 + np.pi / 120, np.nan])
    # Steps go the shorter way, and over silence.
    centers = np.array([[3.0, 0.0], [-3.0, np.nan], [-2.5, np.nan], [-2.6, 0.7]])
    steps = drift(centers).steps
    np.testing.assert_allclose(steps, [[2 * np.pi - 6, 0], [0.5, 0], [-0.1, 0.7]])


def test_the_diffusion_constant_of_planted_walks():
    # Squared displacements 2 D t in the mean: tiles at +-sqrt(2 D t).
    moments = [0, 100, 200, 400]
    way = np.sqrt(2 * 3e-4 * np.array(moments))
    steps = np.diff(np.stack([way, -way], axis=1), axis=0)
    assert module.diffusion(moments, steps) == pytest.approx(3e-4)
    # The angle of a vector of length 0.02 with noise of 1e-4 across it is a random walk. Many
    # tiles: 1 % of error are three of its deviations.
    steps = 1e-4 / 0.02 * np.random.default_rng(0).standard_normal((20, 100_000))
    turned = module.diffusion(list(range(21)), steps)
    assert diffusion_by_noise(1e-4, 0.02) == pytest.approx(turned, rel=0.015)


def test_jumps_and_likeness():
    steps = np.array([[0.3, -0.5], [0.4, 0.0]])
    assert module.jump_share(steps, 0.4) == pytest.approx(0.25 / 0.5)
    assert math.isnan(module.jump_share(np.zeros((2, 2)), 0.4))
    # Likeness heeds points, and not which tile is which.
    h = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert module.likeness(h, 3 * h[:, ::-1]) == pytest.approx(1)
    # Products of pairs are 1, 0, 0 before and 0, 0, 1 after.
    after = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert module.likeness(h, after) == pytest.approx(-0.5)
    assert math.isnan(module.likeness(h, np.zeros_like(h)))


def test_fields_that_are_turned_keep_their_form():
    h = np.zeros((120, 2))
    h[[0, 1, 2], 0] = 1, 2, 1
    h[60, 1] = 3
    rng = np.random.default_rng(3)
    turn = np.random.default_rng(3).integers(120)
    found = module.turned(h, rng)
    np.testing.assert_allclose(np.flatnonzero(found[:, 0]), sorted((np.arange(3) + turn) % 120))
    norm = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(norm[norm > 0], 1)
    assert (found[:, 1] > 0).sum() == 1


def test_neighbours_that_step_together():
    """Two pairs of neighbours; one steps together and one apart, far pairs not at all."""
    place = np.array([0.0, 0.1, 3.0, 3.1])

    def found(*steps):
        return module.together(drift(np.stack([place, place + np.array(steps)])), 0.4)

    np.testing.assert_allclose(found(0.1, 0.1, 0.1, 0.1)[[0, -1]], 1)
    np.testing.assert_allclose(found(0.1, -0.1, 0.1, -0.1)[[0, -1]], [-1, 0], atol=1e-12)
    # A jump of one tile is left out, and with it its pairs: of the mean square 0.01 remains.
    np.testing.assert_allclose(found(0.1, 0.1, 0.5, 0.1)[[0, -1]], 1)
    assert small()["near"].values.tolist() == [0.2, 0.4, 0.8, 1.6, np.pi]
    # Two neighbours step together, then apart, and one of them falls silent after that.
    centers = np.array([[0.0, 0.1], [0.1, 0.2], [0.2, 0.1], [0.3, np.nan]])
    # Products 0.01 and -0.01 of steps whose mean squares are 0.01: as much together as apart.
    assert module.together(drift(centers), 0.4)[0] == pytest.approx(0, abs=1e-12)
    assert module.together(drift(centers[[0, 1, 3]]), 0.4)[0] == pytest.approx(1)
    # Pairs are counted by their distance before the step.
    for apart, bin_ in ((0.19, 0), (0.21, 1), (0.39, 1), (0.41, 2), (0.79, 2), (0.81, 3)):
        together = module.together(drift(np.array([[0.0, apart], [0.1, apart + 0.1]])), 0.4)
        assert np.flatnonzero(~np.isnan(together)).tolist() == [bin_]
        assert together[bin_] == pytest.approx(1)


def test_courses_halves_and_quarters():
    # Moments 2, 4, 8 and 20 of 20, ten presentations each.
    text = module._course(small(), np.arange(21)[None] / 100)
    assert text == "0.02 (20), 0.04 (40), 0.08 (80), 0.20 (200)"
    values = np.zeros((1, 21))
    values[0, 10], values[0, 11:] = 100, np.arange(10)
    assert module.second_half(values).tolist() == [4.5]
    course = xr.DataArray([[*range(15), 5, 6, 7, 8, 9]], dims=("repeat", "part"))
    assert module.last_quarter(course).tolist() == [7]


# Claims


@cache
def repeats(**changes):
    return planted(NAME, lambda seed, run: {}, **changes)


def registered(values, **changes):
    """Repeats in which variables have planted values, by name: a number, or one for every size (0,
    1e-4 and 1e-3), or an array; all with a little noise."""
    merged, rng = repeats(**changes), np.random.default_rng(0)
    for name, value in values.items():
        room = merged[name].transpose("repeat", ...)
        array = np.asarray(value, dtype=float)
        if array.ndim == 1:
            array = array.reshape(-1, *[1] * (room.ndim - 2))
        noise = 1 + 1e-3 * rng.standard_normal(room.shape)
        merged = merged.assign({name: room.copy(data=array * noise)})
    return merged


def verdict(words, values, **changes):
    return claim_named(NAME, registered(values, **changes), words).holds


def at_moment(moment, before, *values):
    """Own fields of every size at one moment, and what they are at the others."""
    profile = np.full((3, 21, 40), before)
    profile[:, moment] = np.array(values)[:, None]
    return profile


PAIRS = np.full((3, 5), 0.2)
PAIRS[:, 0] = 0.4, 0.1, 0.4


@pytest.mark.parametrize(
    ("words", "values", "expected"),
    [
        ("fields forget", {"own_field": (0.9, 0.21, 0.1)}, False),
        ("fields forget", {"own_field": (0.79, 0.1, 0.1)}, False),
        # What counts is the last moment, and all tiles alike.
        ("fields forget", {"own_field": at_moment(-1, 0.5, 0.81, 0.19, 0.9)}, True),
        ("fields forget", {"own_field": at_moment(-2, 0.5, 0.81, 0.19, 0.9)}, False),
        # Similarities have to stay, more than by chance.
        ("which points are alike", {"likeness": (0.1, 0.86, 0.1), "turned": 0.84}, True),
        ("which points are alike", {"likeness": (0.9, 0.84, 0.9), "turned": 0.7}, False),
        ("which points are alike", {"likeness": (0.9, 0.9, 0.9), "turned": 0.92}, False),
        # Jumps have to be most of the way.
        ("tiles jump", {"jumps": (0.0, 0.52, 0.0)}, True),
        ("tiles jump", {"jumps": (0.9, 0.48, 0.9)}, False),
        # Neighbours move together without noise alone, and of near pairs alone.
        ("each tile by itself", {"together": (0.21, 0.19, 0.4)}, True),
        ("each tile by itself", {"together": (0.4, 0.21, 0.1)}, False),
        ("each tile by itself", {"together": (0.19, 0.1, 0.1)}, False),
        ("each tile by itself", {"together": PAIRS}, True),
    ],
)
def test_claims_follow_what_is_planted(words, values, expected):
    assert verdict(words, values) is expected


def test_below_the_registered_size_nothing_is_decided():
    for changes in ({"n_points": 24_000}, {"repeats": 7}):
        assert verdict("fields forget", {"own_field": (0.9, 0.1, 0.9)}, **changes) is None


def test_the_exponent_is_that_of_the_planted_constants():
    words = "square of the noise"
    for exponent, holds in ((1.45, False), (1.55, True), (2.45, True), (2.55, False)):
        # The sizes are a factor of ten apart.
        assert verdict(words, {"diffusion": (5.0, 1e-6, 1e-6 * 10**exponent)}) is holds
    claim = claim_named(NAME, registered({"diffusion": (1, 1e-6, 1e-4), "weight": 0.02}), words)
    assert "2.00, p " in claim.short
    # D_0 = (1e-4/0.02)^2/2 = 1.25e-5, and a hundred times as much at the larger size.
    assert "D/D₀ 0, 0 at sizes 0.0001, 0.001" in claim.figure
    assert all(len(claim.short) <= 60 for claim in get_experiment(NAME).claims(repeats()))
    assert_printed(NAME, repeats(), grids=True)


@pytest.mark.parametrize("rule", module.RULES)
def test_a_readout_keeps_up_if_it_is_right_and_ahead_of_a_frozen_one(rule):
    def found(noise, frozen, late=True):
        course = np.full(small()["readout_course"].shape, 0.5)
        part = slice(15, None) if late else slice(None, 15)
        course[module.RULES.index(rule), 1, part] = noise
        course[module.RULES.index(rule), 2, part] = frozen
        return verdict(f"{module._NAMES[rule]} keeps up", {"readout_course": course})

    assert found(0.955, 0.6) is True
    assert found(0.945, 0.6) is False
    assert found(0.96, 0.99) is False
    assert found(0.99, 0.6, late=False) is False


# Settings


def test_settings_are_taken_within_their_range():
    for setting, within, beyond in (
        ("n_points", (20,), (19,)),
        ("label_after", (0, 4980), (-1, 4981)),
        ("n_tiling", (220,), (219,)),
        ("noise", (0, 1), (-0.01, 1.01)),
        ("size", (1e-300, 1), (0, 1.01, 1e-5)),  # 1e-5 is one of the other sizes
        ("other_sizes", ((1e-300, 1),), ((0,), (1.01,), (1e-6, 1e-6))),
        ("moons_size", (1e-300, 1), (0, 1.01)),
        *((f"{rule}_mu", (0,), (-0.1,)) for rule in module.RULES),
        *((f"{rule}_rate", (1e-6, 1), (0, 1.01)) for rule in module.RULES),
    ):
        assert_range(NAME, setting, within, beyond)
    for name, value in (("mu", 3), ("readout_rule", "gated"), ("readout_rate", 0.1)):
        own = name if name != "readout_rule" else "mu"
        instead = own.removeprefix("readout_")
        refused(
            lambda given={name: value}: get_experiment(NAME).config("exact", given),
            f"{name}.* paper_{instead} or gated_{instead}",
        )
