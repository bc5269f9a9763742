"""Moons that move: streams and answers against circuits of their own, and claims on planted
accuracies."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from analysis.measures import tile_centers_of
from circuits import ReferenceCircuit
from circuits.errors import ParameterError
from simulations.baselines import nearest_chain, window_propagation
from simulations.datasets import DRIFT_LIFT, drifting_moons, first_of_each_class
from simulations.experiments import get_experiment
from simulations.experiments import manifold_drift as module
from tests.refusing import refused
from tests.simulations.printed import assert_printed
from tests.simulations.small import TINY, assert_range, claim_named, planted, simulate

NAME = "manifold-drift"


FEW = {
    **{"n_points": 103, "drift_after": 52, "label_after": 20, "measured": 31},
    **{"windows": (7, 11, 30)},
    **{"speed": 20.0, "deform_speed": 40.0, "fast_speed": 60.0, "noise": 0.04, "more_noise": 0.1},
    **{"map_after": 50, "map_speeds": (500.0, 1000.0), "map_rates": (0.02, 0.04), "map_tiles": 6},
    **{"paper_mu": 20.0, "paper_rate": 0.02, "gated_mu": 1.05, "gated_rate": 0.8, "n_tiles": 12},
}
"""So few tiles that they have to move, and numbers that nothing divides."""

READOUTS = {
    "paper": {"readout_rule": "paper", "readout_rate": 0.02, "mu": 20.0},
    "gated": {"readout_rule": "gated", "readout_rate": 0.8, "mu": 1.05},
}


def configured(changes):
    return get_experiment(NAME).config("exact", changes)


@pytest.fixture(scope="module")
def run():
    return simulate(NAME, seed=5, **FEW)


def circuit(rule, recycle=True, **changes):
    """A circuit as they are at the size `FEW`."""
    p = get_experiment(NAME).parameters.replace(n_tiles=12, recycle=recycle)
    return ReferenceCircuit(p.replace(**READOUTS[rule] | changes), DRIFT_LIFT, settling="exact")


def test_streams_are_what_they_are_called():
    settings = configured(TINY[NAME]).settings
    speeds = {"rotate": 20, "noisy": 20, "translate": 20, "deform": 40, "fast": 40}
    for k, name in enumerate(module.STREAMS):
        stream = settings.stream(name, 3)
        drift = name if name in ("translate", "deform") else "rotate"
        noise = 0.1 if name == "noisy" else 0.05
        rng = np.random.default_rng([3, k])
        points, classes = drifting_moons(400, noise, rng, drift, speeds[name], 200)
        assert (stream.points == points).all()
        assert (stream.classes == classes).all()
        assert (stream.labels == first_of_each_class(classes, 60)).all()


def test_the_map_is_of_moons_that_make_half_a_turn():
    settings = configured(TINY[NAME]).settings
    slow = settings.turned(25.0, 3)
    # Half a cycle at 25 cycles per 10,000 points takes 200, at 100 it takes 50. All are of the
    # points of the slowest, each moved at its own speed.
    for speed, length in ((25.0, 300), (100.0, 150)):
        rng = np.random.default_rng([3, 5])
        points, classes = drifting_moons(300, 0.05, rng, "rotate", speed, 100)
        stream = settings.turned(speed, 3)
        assert len(stream.points) == length
        assert (stream.points == points[:length]).all()
        assert (stream.classes == classes[:length]).all()
        assert (stream.labels == slow.labels[:length]).all()
    assert len(settings.turned(3000.0, 3).points) == 102
    assert np.count_nonzero(slow.labels) == 2


def in_halves(y, classes):
    """Right answers, silence being half of one."""
    return [0.5 if a == 0 else float(a * c > 0) for a, c in zip(y, classes, strict=True)]


@pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")
@pytest.mark.parametrize("name", module.STREAMS)
def test_every_accuracy_is_that_of_a_circuit_of_its_own(run, name):
    settings = configured(FEW).settings
    stream, after = settings.stream(name, 5), settings.drift_after
    answers = {}
    for rule in module.RULES:
        for follower, recycle in ((rule, True), (f"{rule}, tiles kept", False)):
            own = circuit(rule, recycle).run(stream.points, stream.labels)
            answers[follower] = own["y"].to_numpy()[:, 0]
    frozen = circuit("gated")
    begun = frozen.run(stream.points[:after], stream.labels[:after])["y"].to_numpy()[:, 0]
    answers["frozen"] = np.append(begun, frozen.predict(stream.points[after:])[:, 0])
    given = np.array([c if t < after else 0 for t, c in enumerate(stream.classes)])
    for window in settings.windows:
        answers[f"chain {window}"] = nearest_chain(stream.points, given, window)
    answers["propagation"] = window_propagation(stream.points, given, 200, 100)
    assert sorted(answers) == sorted(run["follower"].values)
    ends = list(range(2, 103, 2))
    assert run["time"].values.tolist() == ends
    for follower, y in answers.items():
        right = in_halves(y, stream.classes)
        found = run.sel(stream=name, follower=follower)
        assert float(found["accuracy"]) == pytest.approx(np.mean(right[-31:])), follower
        np.testing.assert_allclose(found["course"], [np.mean(right[i - 2 : i]) for i in ends])
    assert (answers["gated"] != answers["gated, tiles kept"]).any()


def test_answers_and_windows_by_hand():
    """Silence is half right; windows leave out the points that do not fill one."""
    found = module.correct(np.array([0.0, 0.2, -0.1, 3.0]), np.array([1, 1, 1, -1]))
    assert found.tolist() == [0.5, 1, 0, 0]
    assert module.windowed(np.array([[1.0, 0, 0, 1, 1]]), 2).tolist() == [[0.5, 0.5]]
    # A window is a forty-eighth of the stream.
    for n_points, window in ((480, 10), (489, 10), (528, 11)):
        assert module.window_of(configured(FEW | {"n_points": n_points}).settings) == window


def test_how_far_points_travel():
    """The root mean square distance of many points of either moon from the middle."""
    points, _ = drifting_moons(20_000, 0.0, np.random.default_rng(0), "rotate", 1.0, 20_000)
    distance = np.linalg.norm(points - DRIFT_LIFT.center, axis=1)
    # Points of a moon are evenly spaced, ends included: 1e-4 of them more than on the curve.
    assert module.travel() == pytest.approx(math.sqrt((distance**2).mean()), rel=1e-4)


def test_where_accuracy_falls_through_the_middle_by_hand():
    speeds = np.array([1.0, 4.0, 16.0])
    assert module.crossing(speeds, np.array([1.0, 0.5, 0.0])) == pytest.approx(2.0)
    assert module.crossing(speeds, np.array([1.0, 0.95, 0.15])) == pytest.approx(4 * 4**0.25)
    assert module.crossing(speeds, np.array([1.0, 0.9, 0.8])) == 16
    assert module.crossing(speeds, np.array([0.7, 0.9, 0.1])) == 1
    assert module.crossing(speeds, np.array([1.0, 0.75, 0.25])) == 4
    assert module.crossing(speeds, np.array([1.0, module.LOST, module.LOST])) == 16


def plant(registered, values):
    """Repeats with planted accuracies (stream, follower), by name; the others are 0.9, all with a
    little noise."""
    accuracy = registered["accuracy"].transpose("repeat", "stream", "follower")
    noise = 2e-4 * np.random.default_rng(0).standard_normal(accuracy.shape)
    accuracy = accuracy.copy(data=0.9 + noise)
    for (stream, follower), value in values.items():
        accuracy.loc[{"stream": stream, "follower": follower}] += value - 0.9
    return registered.assign(accuracy=accuracy)


@pytest.fixture(scope="module")
def verdicts(registered):
    """The verdicts for the two readouts on a claim, given the accuracies of both."""

    def of(words, values):
        merged = plant(registered, values)
        names = [words.format(module._NAMES[rule]) for rule in ("paper", "gated")]
        return [claim_named(NAME, merged, name).holds for name in names]

    return of


def test_moons_are_followed_if_the_mean_and_the_worst_are_high(registered, verdicts):
    for paper, gated, expected in (
        *((0.995, 0.985, [True, False]), (0.985, 0.995, [False, True])),
        (0.99, 0.99, [None, None]),
    ):
        values = {("rotate", "paper"): paper, ("rotate", "gated"): gated}
        assert verdicts("{} follows moons until", values) == expected
    merged = plant(registered, {("rotate", "gated"): 0.999})
    at = {"stream": 0, "follower": list(merged["follower"].values).index("gated"), "repeat": 3}
    # One repeat that is lost, with the mean still above.
    for worst, holds in ((module.WORST, True), (module.WORST - 1e-9, False), (0.97, False)):
        merged["accuracy"][at] = worst
        claim = claim_named(NAME, merged, "the gated readout follows moons until")
        assert claim.holds is holds
    assert "worst 0.970" in claim.short


CHAINS = ("chain 7", "chain 30")


def test_in_noise_the_best_chain_has_to_be_beaten(verdicts):
    for paper, gated, chains, expected in (
        (0.995, 0.985, (0.9, 0.9), [True, False]),
        (0.985, 0.995, (0.9, 0.992), [False, True]),
        (0.995, 0.999, (0.997, 0.9), [False, True]),
        (0.999, 0.995, (0.9, 0.997), [True, False]),
    ):
        own = {"paper": paper, "gated": gated} | dict(zip(CHAINS, chains, strict=True))
        values = {("noisy", name): value for name, value in own.items()}
        assert verdicts("in noise {}", values) == expected


def test_both_other_ways_have_to_be_followed(registered, verdicts):
    good, bad = 0.995, 0.985
    for paper, gated, expected in (
        ((good, good), (bad, good), [True, False]),
        ((good, bad), (good, good), [False, True]),
        ((bad, good), (good, bad), [False, False]),
    ):
        ways = {"paper": paper, "gated": gated}
        values = {
            (way, rule): ways[rule][i]
            for i, way in enumerate(("translate", "deform"))
            for rule in ways
        }
        assert verdicts("{} follows moons that", values) == expected
    merged = plant(registered, {("translate", "gated"): 0.7, ("deform", "gated"): 0.8})
    claim = claim_named(NAME, merged, "the gated readout follows moons that")
    assert "0.700 ± 0.000 (translate), 0.800 ± 0.000 (deform)" in claim.figure
    assert "frozen: 0.900 ± 0.000 (translate), 0.900 ± 0.000 (deform)" in claim.control


def test_recycling_has_to_help_either_readout_on_the_fast_stream(registered):
    for stream, paper, gated, expected in (
        ("fast", 0.95, 0.92, True),
        ("fast", 0.95, 0.85, False),
        ("fast", 0.85, 0.95, False),
        ("noisy", 0.95, 0.95, None),
    ):
        values = {(stream, "paper"): paper, (stream, "gated"): gated}
        claim = claim_named(NAME, plant(registered, values), "used tiles move on")
        assert claim.holds is expected
        if expected:
            assert "+0.050 (paper), +0.020 (gated)" in claim.short


def limit(run, *rates):
    """The claim on a map whose limits, v/(eta rho), are spread about these by a factor of 1.02
    either way, at one eta each; without tiles to spare about three times these."""
    way = 2 * math.pi * module.travel() * 1e-4 / get_experiment(NAME).parameters.tile_radius

    def made(seed, run):
        speeds = np.array([1.0, 1e4])
        limits = np.array([rates, [3 * rate for rate in rates]]) * 1.02 ** (-1) ** seed
        etas = 50 * way / np.array(rates)  # so that the limit is a speed of 50
        share = np.log(limits * etas / way) / np.log(1e4)
        # From 1 on a straight line through LOST at that share of the way, or a little above it.
        map_ = np.stack([np.ones_like(share), 1 - (1 - module.LOST) / share], axis=-1)
        return {"map": map_, "eta": etas, "speed": speeds}

    merged = planted(NAME, made, run=run.reset_index(["eta", "speed"]))
    return claim_named(NAME, merged.set_xindex("eta").set_xindex("speed"), "the limit of speed")


def test_the_limit_is_the_geometric_mean_at_every_rate(run):
    claim = limit(run, 0.8, 1.25)
    assert "limit 0.80 to 1.25" in claim.short
    for rates, text in (((0.8, 1.25), claim.figure), ((2.4, 3.75), claim.control)):
        assert all(f" {rate:.2f} (η = " in text for rate in rates)
    cases = {(0.53, 1.9): True, (2.1, 1.0): False, (1.0, 0.47): False, (1.0, 2.0): None}
    for rates, holds in cases.items():
        assert limit(run, *rates).holds is holds, rates


def test_below_the_registered_size_nothing_is_decided(registered, run):
    for smaller in ({"n_points": 11_000}, {"measured": 4000}, {"repeats": 29}):
        few = planted(NAME, lambda seed, one: {}, run=run, **smaller)
        merged = plant(few, {("rotate", "gated"): 0.995})
        assert claim_named(NAME, merged, "the gated readout follows moons until").holds is None
    merged = plant(registered, {})
    assert all(len(claim.short) <= 60 for claim in get_experiment(NAME).claims(merged))
    assert_printed(NAME, merged, grids=True)


def test_settings_that_do_not_fit_are_refused():
    for changes, words in (
        ({"label_after": 1990}, "label_after=1990 .* drift_after"),
        ({"map_after": 1010}, "label_after=1000 .* map_after=1010"),
        ({"measured": 10_001}, "drift_after=2000 and measured=10001 .* n_points"),
        ({"mu": 3}, "mu .* paper_mu or gated_mu"),
        ({"readout_rule": "paper"}, "readout_rule .* paper_mu or gated_mu"),
        ({"readout_rate": 0.1}, "readout_rate .* paper_rate or gated_rate"),
        ({"recycle": False}, "recycle .* n_tiles"),
    ):
        refused(partial(get_experiment(NAME).config, "exact", changes), words, ParameterError)
    for setting, within, beyond in (
        ("label_after", (0, 1980), (-1, 1981)),
        ("drift_after", (1020, 7000), (1019, 7001)),
        ("map_after", (1020,), (1019,)),
        ("measured", (10, 10_000), (9, 10_001)),
        *((name, (0, 1), (-0.01, 1.01)) for name in ("noise", "more_noise")),
        *((name, (0.01, 1000), (0.009, 1001)) for name in ("speed", "deform_speed", "fast_speed")),
        *((name, (0,), (-0.1,)) for name in ("paper_mu", "gated_mu")),
        *((name, (1e-6, 1), (0, 1.01)) for name in ("paper_rate", "gated_rate")),
        ("windows", ((1, 10_000),), ((0,), (10_001,))),
        ("map_speeds", ((0.01, 1000),), ((0.009,), (1001,))),
        ("map_rates", ((1e-6, 1),), ((0,), (1.01,))),
        ("map_tiles", (2, 1000), (1, 1001)),
    ):
        assert_range(NAME, setting, within, beyond)


@pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")
def test_every_cell_of_the_map_is_of_a_circuit_of_its_own(run):
    assert run["map"].dims == ("tiles", "eta", "speed")
    # Half a turn takes ten points and five, of which the last five and three count.
    for speed, length, last in ((500.0, 60, 5), (1000.0, 55, 3)):
        turned = configured(FEW).settings.turned(speed, 5)
        assert len(turned.points) == length
        for eta in (0.02, 0.04):
            shifted = {"n_tiles": 6, "recycle": False}
            for tiles, changes in (("recruited", {}), ("shifted", shifted)):
                own = circuit("gated", learning_rate=eta, **changes)
                y = own.run(turned.points, turned.labels)["y"].to_numpy()[-last:, 0]
                expected = np.mean(in_halves(y, turned.classes[-last:]))
                assert run["map"].sel(tiles=tiles, eta=eta, speed=speed).item() == expected


@pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")
def test_pictures_are_of_moments_from_the_start_of_the_drift_to_the_end(run):
    stream, own = configured(FEW).settings.stream("rotate", 5), circuit("gated")
    moments = [int(52 + k * 51 / 40) for k in range(41)]
    assert run["moment_time"].values.tolist() == moments
    for k, (start, end) in enumerate(zip([0, *moments], moments, strict=False)):
        own.run(stream.points[start:end], stream.labels[start:end])
        one = run.isel(moment=k)
        assert (one["tile_center"].values == tile_centers_of(own.state.W, DRIFT_LIFT)).all()
        assert (one["tile_weight"].values == own.state.w[0]).all()
        assert (one["tile_used"].values == own.state.in_use).all()
        # All points there are before anything moves, where they are fewer than 120.
        assert (one["shown_point"].values == stream.points[end - 52 : end]).all()
        assert (one["shown_class"].values == stream.classes[end - 52 : end]).all()
    longer = configured(FEW | {"n_points": 170, "drift_after": 130})
    stream = longer.settings.stream("rotate", 5)
    shown = module.pictures(longer, stream)["shown_point"][1]
    assert (shown[0] == stream.points[10:130]).all()
