"""Moons that move: streams and answers against circuits of their own, and claims on planted
accuracies."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from circuits import CircuitParameters, ReferenceCircuit
from circuits.errors import ParameterError
from circuits.measures import tile_centers_of
from simulations.baselines import nearest_chain, window_propagation
from simulations.datasets import DRIFT_LIFT, drifting_moons
from simulations.experiments import get_experiment
from simulations.experiments import manifold_drift as module
from tests.refusing import refused
from tests.simulations.printed import assert_printed
from tests.simulations.small import TINY, assert_range, claim_named, planted, simulate

NAME = "manifold-drift"
PARAMETERS = {"n_tiles": 80, "tile_radius": 0.4, "recruit_below": 0.2, "learning_rate": 0.005}
READOUTS = {
    "paper": {"readout_rule": "paper", "readout_rate": 0.01, "mu": 30.0},
    "gated": {"readout_rule": "gated", "readout_rate": 0.9, "mu": 1.1},
}


@pytest.fixture(scope="module")
def run():
    return simulate(NAME)


@pytest.fixture(scope="module")
def settings():
    return get_experiment(NAME).config("exact", TINY[NAME]).settings


def circuit(rule, recycle=True, **changes):
    parameters = CircuitParameters(**PARAMETERS | READOUTS[rule] | {"recycle": recycle} | changes)
    return ReferenceCircuit(parameters, DRIFT_LIFT, settling="exact")


def test_streams_are_what_they_are_called(settings):
    speeds = {"rotate": 20, "noisy": 20, "translate": 20, "deform": 40, "fast": 40}
    for k, name in enumerate(module.STREAMS):
        stream = settings.stream(name, 3)
        drift = name if name in ("translate", "deform") else "rotate"
        noise = 0.1 if name == "noisy" else 0.05
        rng = np.random.default_rng([3, k])
        points, classes = drifting_moons(400, noise, rng, drift, speeds[name], 200)
        assert (stream.points == points).all()
        assert (stream.classes == classes).all()
        given = np.flatnonzero(stream.labels)
        assert len(given) == 2
        for label in (-1, 1):
            first = 60 + np.flatnonzero(classes[60:] == label)[0]
            assert stream.labels[first] == label


def test_the_map_is_of_moons_that_make_half_a_turn(settings):
    stream = settings.turned(25.0, 3)
    rng = np.random.default_rng([3, 5])
    # Half a cycle at 25 cycles per 10,000 points takes 200.
    points, classes = drifting_moons(300, 0.05, rng, "rotate", 25.0, 100)
    assert (stream.points == points).all()
    assert (stream.classes == classes).all()
    assert len(settings.turned(3000.0, 3).points) == 102
    # All are of the points of the slowest, each moved at its own speed.
    rng = np.random.default_rng([3, 5])
    points, classes = drifting_moons(300, 0.05, rng, "rotate", 100.0, 100)
    faster = settings.turned(100.0, 3)
    assert (faster.points == points[:150]).all()
    assert (faster.classes == classes[:150]).all()
    assert (faster.points[:101] == stream.points[:101]).all()
    assert (faster.labels == stream.labels[:150]).all()
    assert np.count_nonzero(faster.labels) == 2


def in_halves(y, classes):
    """Right answers, silence being half of one."""
    return [0.5 if a == 0 else float(a * c > 0) for a, c in zip(y, classes, strict=True)]


def assert_followed(result, settings, name, seed, make):
    """Accuracies on a stream are those of circuits that ``make`` gives; returns their answers."""
    stream, after = settings.stream(name, seed), settings.drift_after
    answers = {}
    for rule in module.RULES:
        for follower, recycle in ((rule, True), (f"{rule}, tiles kept", False)):
            own = make(rule, recycle).run(stream.points, stream.labels)
            answers[follower] = own["y"].to_numpy()[:, 0]
    frozen = make("gated")
    begun = frozen.run(stream.points[:after], stream.labels[:after])["y"].to_numpy()[:, 0]
    answers["frozen"] = np.append(begun, frozen.predict(stream.points[after:])[:, 0])
    given = np.array([c if t < after else 0 for t, c in enumerate(stream.classes)])
    for window in settings.windows:
        answers[f"chain {window}"] = nearest_chain(stream.points, given, window)
    answers["propagation"] = window_propagation(stream.points, given, 200, 100)
    assert sorted(answers) == sorted(result["follower"].values)
    width = settings.n_points // 48
    ends = list(range(width, settings.n_points + 1, width))
    assert result["time"].values.tolist() == ends
    for follower, y in answers.items():
        right = in_halves(y, stream.classes)
        found = result.sel(stream=name, follower=follower)
        expected = np.mean(right[-settings.measured :])
        assert float(found["accuracy"]) == pytest.approx(expected), follower
        np.testing.assert_allclose(found["course"], [np.mean(right[i - width : i]) for i in ends])
    return answers


@pytest.mark.parametrize("name", ["rotate", "fast"])
def test_every_accuracy_is_that_of_a_circuit_of_its_own(run, settings, name):
    assert_followed(run, settings, name, 0, circuit)


def test_every_cell_of_the_map_is_of_a_circuit_of_its_own(run, settings):
    assert run["map"].dims == ("tiles", "eta", "speed")
    for speed, length in ((25.0, 200), (100.0, 50)):
        stream = settings.turned(speed, 0)
        for eta in (0.01, 0.04):
            for tiles, changes in (
                ("recruited", {}),
                ("shifted", {"n_tiles": 16, "recycle": False}),
            ):
                own = circuit("gated", learning_rate=eta, **changes)
                y = own.run(stream.points, stream.labels)["y"].to_numpy()[-length // 2 :, 0]
                right = module.correct(y, stream.classes[-length // 2 :]).mean()
                assert float(run["map"].sel(tiles=tiles, eta=eta, speed=speed)) == right


def test_pictures_are_of_moments_from_the_start_of_the_drift_to_the_end(run, settings):
    stream = settings.stream("rotate", 0)
    own = circuit("gated")
    assert run["moment_time"].values.tolist() == list(range(200, 401, 5))
    for k, end in enumerate(range(200, 401, 5)):
        start = 0 if k == 0 else end - 5
        own.run(stream.points[start:end], stream.labels[start:end])
        one = run.isel(moment=k)
        assert (one["tile_center"].values == tile_centers_of(own.state.W, DRIFT_LIFT)).all()
        assert (one["tile_weight"].values == own.state.w[0]).all()
        assert (one["tile_used"].values == own.state.in_use).all()
        assert (one["shown_point"].values == stream.points[end - 120 : end]).all()
        assert (one["shown_class"].values == stream.classes[end - 120 : end]).all()


def test_answers_and_windows_by_hand():
    """Silence is half right; windows leave out the points that do not fill one."""
    found = module.correct(np.array([0.0, 0.2, -0.1, 3.0]), np.array([1, 1, 1, -1]))
    assert found.tolist() == [0.5, 1, 0, 0]
    assert module.windowed(np.array([[1.0, 0, 0, 1, 1]]), 2).tolist() == [[0.5, 0.5]]
    # A window is a forty-eighth of the stream.
    for n_points, window in ((480, 10), (489, 10), (528, 11)):
        settings = get_experiment(NAME).config("exact", FEW | {"n_points": n_points}).settings
        assert module.window_of(settings) == window


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


def plant(run, values=None, **changes):
    """Repeats with planted accuracies (stream, follower), by name; the others are 0.9, all with a
    little noise."""

    def made(seed, one):
        noise = 2e-4 * np.random.default_rng(seed).standard_normal(one["accuracy"].shape)
        accuracy = one["accuracy"].copy(data=0.9 + noise)
        for (stream, follower), value in (values or {}).items():
            accuracy.loc[{"stream": stream, "follower": follower}] += value - 0.9
        return {"accuracy": accuracy.values}

    return planted(NAME, made, run=run, **changes)


@pytest.mark.parametrize("rule", module.RULES)
def test_moons_are_followed_if_the_mean_and_the_worst_are_high(run, rule):
    words = f"{module._NAMES[rule]} follows moons until"

    def verdict(value, of=rule):
        return claim_named(NAME, plant(run, {("rotate", of): value}), words).holds

    assert verdict(0.995) is True
    assert verdict(0.99) is None
    assert verdict(0.985) is False
    assert verdict(0.995, "gated" if rule == "paper" else "paper") is False
    merged = plant(run, {("rotate", rule): 0.999})
    at = {"stream": 0, "follower": list(merged["follower"].values).index(rule), "repeat": 3}
    # One repeat that is lost, with the mean still above.
    for worst, holds in ((module.WORST, True), (module.WORST - 1e-9, False), (0.97, False)):
        merged["accuracy"][at] = worst
        claim = claim_named(NAME, merged, words)
        assert claim.holds is holds
    assert "worst 0.970" in claim.short


@pytest.mark.parametrize("rule", module.RULES)
def test_in_noise_the_best_chain_has_to_be_beaten(run, rule):
    def verdict(own, *chains):
        names = [("noisy", rule), ("noisy", "chain 10"), ("noisy", "chain 30")]
        merged = plant(run, dict(zip(names, (own, *chains), strict=True)))
        return claim_named(NAME, merged, f"in noise {module._NAMES[rule]}").holds

    assert verdict(0.995, 0.9, 0.992) is True
    assert verdict(0.995, 0.997, 0.9) is False
    assert verdict(0.995, 0.9, 0.997) is False
    assert verdict(0.985, 0.9, 0.9) is False


@pytest.mark.parametrize("rule", module.RULES)
def test_both_other_ways_have_to_be_followed(run, rule):
    def verdict(translate, deform):
        merged = plant(run, {("translate", rule): translate, ("deform", rule): deform})
        return claim_named(NAME, merged, f"{module._NAMES[rule]} follows moons that").holds

    assert verdict(0.995, 0.995) is True
    assert verdict(0.985, 0.995) is False
    assert verdict(0.995, 0.985) is False


def test_recycling_has_to_help_either_readout_on_the_fast_stream(run):
    def claim(paper, gated, stream="fast"):
        values = {(stream, "paper"): 0.9 + paper, (stream, "gated"): 0.9 + gated}
        return claim_named(NAME, plant(run, values), "used tiles move on")

    both = claim(0.05, 0.02)
    assert both.holds is True
    assert both.short.startswith("+0.050 (paper), +0.020 (gated), p ")
    assert claim(0.05, -0.05).holds is False
    assert claim(-0.05, 0.05).holds is False
    assert claim(0.05, 0.05, "noisy").holds is not True


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
    assert claim.holds is True
    assert "limit 0.80 to 1.25, p < " in claim.short
    assert ": 0.80 (η = " in claim.figure
    assert ", 1.25 (η = " in claim.figure
    assert ": 2.40 (η = " in claim.control
    assert ", 3.75 (η = " in claim.control
    for rates, holds in (
        *(((0.53, 1.9), True), ((1.9, 0.53), True)),
        *(((1.0, 2.1), False), ((2.1, 1.0), False)),
        *(((0.47, 1.0), False), ((1.0, 0.47), False)),
        ((1.0, 2.0), None),
    ):
        assert limit(run, *rates).holds is holds, rates


def test_below_the_registered_size_nothing_is_decided(run):
    for smaller in ({"n_points": 11_000}, {"measured": 4000}, {"repeats": 29}):
        merged = plant(run, {("rotate", "gated"): 0.995}, **smaller)
        assert claim_named(NAME, merged, "the gated readout follows moons until").holds is None


def test_what_claims_say_by_hand(run):
    merged = plant(run, {("translate", "gated"): 0.7, ("deform", "gated"): 0.8})
    claim = claim_named(NAME, merged, "the gated readout follows moons that")
    assert claim.short.startswith("0.700 (translate), 0.800 (deform), p ")
    assert claim.figure == "0.700 ± 0.000 (translate), 0.800 ± 0.000 (deform)"
    assert "frozen: 0.900 ± 0.000 (translate), 0.900 ± 0.000 (deform); translate:" in claim.control
    assert "propagation 0.900 ± 0.000, chain 10 0.900 ± 0.000, chain 20 0.9" in claim.control


def test_claims_are_worded_as_they_are_printed(run):
    merged = plant(run)
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


def test_settings_are_taken_within_their_range():
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


def test_the_registered_settings_are_those_that_were_chosen():
    config = get_experiment(NAME).config("exact", {})
    assert config.parameters == CircuitParameters(**PARAMETERS, recycle=True)
    settings = config.settings
    assert (settings.paper_mu, settings.paper_rate) == (30, 0.01)
    assert (settings.gated_mu, settings.gated_rate) == (1.1, 0.9)
    assert (settings.n_points, settings.drift_after, settings.measured) == (12_000, 2000, 5000)
    assert (settings.label_after, settings.map_after) == (1000, 2000)
    quick = get_experiment(NAME).config("exact", {}, quick=True).settings
    # Some cells of the whole map.
    assert set(quick.map_speeds) < set(settings.map_speeds)
    assert set(quick.map_rates) < set(settings.map_rates)


FEW = {
    **{"n_points": 103, "drift_after": 52, "label_after": 20, "measured": 31, "windows": (7,)},
    **{"speed": 20.0, "deform_speed": 40.0, "fast_speed": 60.0, "noise": 0.04, "more_noise": 0.1},
    **{"map_after": 50, "map_speeds": (1000.0,), "map_rates": (0.02,), "map_tiles": 6},
    **{"paper_mu": 20.0, "paper_rate": 0.02, "gated_mu": 1.05, "gated_rate": 0.8, "n_tiles": 12},
}
"""So few tiles that they have to move, and numbers that nothing divides."""

FEW_READOUTS = {
    "paper": {"readout_rule": "paper", "readout_rate": 0.02, "mu": 20.0},
    "gated": {"readout_rule": "gated", "readout_rate": 0.8, "mu": 1.05},
}


def of_few(rule, recycle=True, **changes):
    """A circuit as they are at the size `FEW`."""
    p = get_experiment(NAME).parameters.replace(n_tiles=12, recycle=recycle)
    return ReferenceCircuit(p.replace(**FEW_READOUTS[rule] | changes), DRIFT_LIFT, settling="exact")


@pytest.fixture(scope="module")
def few():
    return simulate(NAME, seed=5, **FEW)


@pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")
@pytest.mark.parametrize("name", module.STREAMS)
def test_where_tiles_are_few_they_move_or_are_kept(few, name):
    settings = get_experiment(NAME).config("exact", FEW).settings
    answers = assert_followed(few, settings, name, 5, of_few)
    assert (answers["gated"] != answers["gated, tiles kept"]).any()


@pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")
def test_where_tiles_are_few_the_map_and_the_pictures_are_of_tiles_that_move(few):
    settings = get_experiment(NAME).config("exact", FEW).settings
    turned = settings.turned(1000.0, 5)
    assert len(turned.points) == 55
    for tiles, own in (
        ("recruited", of_few("gated", learning_rate=0.02)),
        ("shifted", of_few("gated", False, n_tiles=6, learning_rate=0.02)),
    ):
        y = own.run(turned.points, turned.labels)["y"].to_numpy()[:, 0]
        # The last three of five points.
        expected = np.mean(in_halves(y[52:], turned.classes[52:]))
        assert few["map"].sel(tiles=tiles).item() == expected
    stream, own = settings.stream("rotate", 5), of_few("gated")
    moments = [int(52 + k * 51 / 40) for k in range(41)]
    assert few["moment_time"].values.tolist() == moments
    for k, (start, end) in enumerate(zip([0, *moments], moments, strict=False)):
        own.run(stream.points[start:end], stream.labels[start:end])
        one = few.isel(moment=k)
        assert (one["tile_center"].values == tile_centers_of(own.state.W, DRIFT_LIFT)).all()
        # All points there are before anything moves, where they are fewer than 120.
        assert (one["shown_point"].values == stream.points[end - 52 : end]).all()


def test_others_are_given_what_comes_before_the_drift():
    """A point is of another class than all before it, and the next one is at its place: that has
    its answer if the class was given, which it is up to the drift."""
    settings = get_experiment(NAME).config("exact", FEW).settings
    points = np.random.default_rng(0).normal(size=(103, 2)) * 0.1
    for odd, answer in ((51, -1), (52, 1)):
        classes = np.ones(103, dtype=int)
        classes[odd] = -1
        points[odd + 1] = points[odd]
        stream = module.Stream(points, classes, np.zeros(103, dtype=int))
        found = module.others(settings, stream)
        assert found.keys() == {"chain 7", "propagation"}
        assert found["chain 7"][odd + 1] == answer
    # Two hundred points in a window, a hundred at a time.
    settings = get_experiment(NAME).config("exact", TINY[NAME]).settings
    stream = settings.stream("noisy", 1)
    given = np.where(np.arange(400) < 200, stream.classes, 0)
    wanted = window_propagation(stream.points, given, 200, 100)
    assert (module.others(settings, stream)["propagation"] == wanted).all()
    for other in ((201, 100), (200, 101)):
        assert (window_propagation(stream.points, given, *other) != wanted).any()
