"""Moons that move: streams and answers against circuits of their own, and claims on planted
accuracies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from circuits import CircuitParameters, ReferenceCircuit
from circuits.errors import ParameterError
from circuits.measures import tile_centers_of
from simulations.baselines import nearest_chain, window_propagation
from simulations.datasets import DRIFT_LIFT, drifting_moons
from simulations.experiments import get_experiment
from simulations.experiments import manifold_drift as module
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


def circuit(rule, **changes):
    parameters = CircuitParameters(**PARAMETERS | READOUTS[rule] | {"recycle": True} | changes)
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


@pytest.mark.parametrize("name", ["rotate", "fast"])
def test_every_accuracy_is_that_of_a_circuit_of_its_own(run, settings, name):
    stream = settings.stream(name, 0)
    answers = {}
    for rule in READOUTS:
        for follower, recycle in ((rule, True), (f"{rule}, tiles kept", False)):
            own = circuit(rule, recycle=recycle).run(stream.points, stream.labels)
            answers[follower] = own["y"].to_numpy()[:, 0]
    frozen = circuit("gated")
    begun = frozen.run(stream.points[:200], stream.labels[:200])["y"].to_numpy()[:, 0]
    answers["frozen"] = np.append(begun, frozen.predict(stream.points[200:])[:, 0])
    given = np.array([c if t < 200 else 0 for t, c in enumerate(stream.classes)])
    for window in (10, 20, 30):
        answers[f"chain {window}"] = nearest_chain(stream.points, given, window)
    answers["propagation"] = window_propagation(stream.points, given, 200, 100)
    assert sorted(answers) == sorted(run["follower"].values)
    for follower, y in answers.items():
        right = [
            0.5 if a == 0 else float(np.sign(a) == c)
            for a, c in zip(y, stream.classes, strict=True)
        ]
        found = run.sel({"stream": name, "follower": follower})
        assert float(found["accuracy"]) == pytest.approx(np.mean(right[-100:]))
        # Windows of 400 // 48 points.
        assert run["time"].values.tolist() == list(range(8, 401, 8))
        windows = [np.mean(right[i : i + 8]) for i in range(0, 400, 8)]
        np.testing.assert_allclose(found["course"], windows)


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


def test_silence_is_half_right():
    found = module.correct(np.array([0.0, 0.2, -0.1, 3.0]), np.array([1, 1, 1, -1]))
    assert found.tolist() == [0.5, 1, 0, 0]


def test_windows_leave_out_what_does_not_fill_one():
    assert module.windowed(np.array([[1.0, 0, 0, 1, 1]]), 2).tolist() == [[0.5, 0.5]]


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


def registered(values=None, **changes):
    """Repeats with planted accuracies (stream, follower), by name; the others are 0.9, all with a
    little noise."""
    values = values or {}

    def made(seed, run):
        array = np.full(run["accuracy"].shape, 0.9)
        for (stream, follower), value in values.items():
            place = [
                list(run[d].values).index(n)
                for d, n in (("stream", stream), ("follower", follower))
            ]
            array[tuple(place)] = value
        return {"accuracy": array + 2e-4 * np.random.default_rng(seed).standard_normal(array.shape)}

    return planted(NAME, made, **changes)


@pytest.mark.parametrize("rule", module.RULES)
def test_moons_are_followed_if_the_mean_and_the_worst_are_high(rule):
    words = f"{module._NAMES[rule]} follows moons until"

    def verdict(value, of=rule):
        return claim_named(NAME, registered({("rotate", of): value}), words).holds

    assert verdict(0.995) is True
    assert verdict(0.985) is False
    assert verdict(0.995, "gated" if rule == "paper" else "paper") is False
    merged = registered({("rotate", rule): 0.997})
    at = {"stream": 0, "follower": list(merged["follower"].values).index(rule), "repeat": 3}
    merged["accuracy"][at] = 0.97  # one that is lost, with the mean still above
    assert claim_named(NAME, merged, words).holds is False
    assert "worst 0.970" in claim_named(NAME, merged, words).short


@pytest.mark.parametrize("rule", module.RULES)
def test_in_noise_the_best_chain_has_to_be_beaten(rule):
    words = f"in noise {module._NAMES[rule]}"

    def verdict(own, *chains):
        names = [("noisy", rule), ("noisy", "chain 10"), ("noisy", "chain 30")]
        merged = registered(dict(zip(names, (own, *chains), strict=True)))
        return claim_named(NAME, merged, words).holds

    assert verdict(0.995, 0.9, 0.992) is True
    assert verdict(0.995, 0.997, 0.9) is False
    assert verdict(0.995, 0.9, 0.997) is False
    assert verdict(0.985, 0.9, 0.9) is False


@pytest.mark.parametrize("rule", module.RULES)
def test_both_other_ways_have_to_be_followed(rule):
    words = f"{module._NAMES[rule]} follows moons that"

    def verdict(translate, deform):
        return claim_named(
            NAME, registered({("translate", rule): translate, ("deform", rule): deform}), words
        ).holds

    assert verdict(0.995, 0.995) is True
    assert verdict(0.985, 0.995) is False
    assert verdict(0.995, 0.985) is False


def test_recycling_has_to_help_either_readout_on_the_fast_stream():
    def verdict(paper, gated, stream="fast"):
        values = {(stream, "paper"): 0.9 + paper, (stream, "gated"): 0.9 + gated}
        return claim_named(NAME, registered(values), "used tiles move on").holds

    assert verdict(0.05, 0.05) is True
    assert verdict(0.05, -0.05) is False
    assert verdict(-0.05, 0.05) is False
    assert verdict(0.05, 0.05, "noisy") is not True


def test_the_limit_is_near_the_line_or_it_is_not():
    """On the map of two speeds accuracy falls from 1 to 0, through 0.75 a quarter of the way (of
    the logarithm): at 25 x 4^0.25 = 35.4 cycles per 10,000 points."""
    way = 2 * math.pi * module.travel() * 35.36e-4  # per point

    def verdict(rates, tiles="recruited"):
        def made(seed, run):
            array = np.full(run["map"].shape, 0.5)
            fall = np.array([1.0, 0.0]) + 0.01 * np.random.default_rng(seed).standard_normal(2)
            array[list(module.TILES).index(tiles)] = fall
            return {"map": array, "eta": np.array([way / rate / 0.4 for rate in rates])}

        run = simulate(NAME)
        merged = planted(NAME, made, run=run.reset_index("eta"))
        return claim_named(NAME, merged.set_xindex("eta"), "the limit of speed").holds

    assert verdict((1.0, 1.5)) is True
    assert verdict((0.6, 1.8)) is True
    assert verdict((1.0, 2.5)) is False
    assert verdict((0.4, 1.0)) is False


def test_below_the_registered_size_nothing_is_decided():
    merged = registered({("rotate", "gated"): 0.995}, n_points=11_000)
    assert claim_named(NAME, merged, "the gated readout follows moons until").holds is None
    merged = registered({("rotate", "gated"): 0.995}, measured=4000)
    assert claim_named(NAME, merged, "the gated readout follows moons until").holds is None
    few = registered({("rotate", "gated"): 0.995}, repeats=29)
    assert claim_named(NAME, few, "the gated readout follows moons until").holds is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label_after": 1990}, "label_after=1990 must be 20 points or more before drift_after"),
        ({"map_after": 1010}, "label_after=1000 must be 20 points or more before map_after=1010"),
        ({"measured": 10_001}, "drift_after=2000 and measured=10001 do not fit into n_points"),
        ({"mu": 3}, "sets mu itself: set paper_mu or gated_mu instead"),
        ({"readout_rate": 0.1}, "sets readout_rate itself: set paper_rate or gated_rate instead"),
        ({"recycle": False}, "sets recycle itself: set n_tiles instead"),
        ({"speed": 0}, "speed"),
        ({"map_speeds": [1e-3]}, "map_speeds"),
        ({"windows": [0]}, "windows"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        get_experiment(NAME).config("exact", changes)


@pytest.mark.parametrize(
    ("setting", "within", "beyond"),
    [
        ("label_after", (0, 1980), (-1, 1981)),
        ("drift_after", (1020, 7000), (1019, 7001)),
        ("map_after", (1020,), (1019,)),
        ("measured", (10, 10_000), (9, 10_001)),
        ("noise", (0, 1), (-0.01, 1.01)),
        ("more_noise", (0, 1), (-0.01, 1.01)),
        ("speed", (0.01, 1000), (0.009, 1001)),
        ("deform_speed", (0.01, 1000), (0.009, 1001)),
        ("fast_speed", (0.01, 1000), (0.009, 1001)),
        ("paper_mu", (0,), (-0.1,)),
        ("gated_mu", (0,), (-0.1,)),
        ("paper_rate", (1e-6, 1), (0, 1.01)),
        ("gated_rate", (1e-6, 1), (0, 1.01)),
        ("windows", ((1, 10_000),), ((0,), (10_001,))),
        ("map_speeds", ((0.01, 1000),), ((0.009,), (1001,))),
        ("map_rates", ((1e-6, 1),), ((0,), (1.01,))),
        ("map_tiles", (2, 1000), (1, 1001)),
    ],
)
def test_settings_are_taken_within_their_range(setting, within, beyond):
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


def test_what_claims_say_by_hand():
    merged = registered({("translate", "gated"): 0.7, ("deform", "gated"): 0.8})
    claim = claim_named(NAME, merged, "the gated readout follows moons that")
    assert claim.short.startswith("0.700 (translate), 0.800 (deform), p ")
    assert claim.figure == "0.700 ± 0.000 (translate), 0.800 ± 0.000 (deform)"
    assert "frozen: 0.900 ± 0.000 (translate), 0.900 ± 0.000 (deform); translate:" in claim.control
    assert "propagation 0.900 ± 0.000, chain 10 0.900 ± 0.000, chain 20 0.9" in claim.control
    gains = claim_named(NAME, registered({("fast", "paper"): 0.95}), "used tiles move on")
    assert gains.short.startswith("+0.050 (paper), ")


def test_claims_are_worded_as_they_are_printed():
    merged = registered()
    assert all(len(claim.short) <= 60 for claim in get_experiment(NAME).claims(merged))
    assert_printed(NAME, merged, grids=True)


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


def in_halves(y, classes):
    """Right answers, silence being half of one."""
    return [0.5 if a == 0 else float(a * c > 0) for a, c in zip(y, classes, strict=True)]


@pytest.fixture(scope="module")
def few():
    return simulate(NAME, seed=5, **FEW)


@pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")
@pytest.mark.parametrize("name", module.STREAMS)
def test_where_tiles_are_few_they_move_or_are_kept(few, name):
    settings = get_experiment(NAME).config("exact", FEW).settings
    stream = settings.stream(name, 5)
    answers = {}
    for rule in module.RULES:
        for follower, recycle in ((rule, True), (f"{rule}, tiles kept", False)):
            run = of_few(rule, recycle).run(stream.points, stream.labels)
            answers[follower] = run["y"].to_numpy()[:, 0]
    assert (answers["gated"] != answers["gated, tiles kept"]).any()
    frozen = of_few("gated")
    begun = frozen.run(stream.points[:52], stream.labels[:52])["y"].to_numpy()[:, 0]
    answers["frozen"] = np.append(begun, frozen.predict(stream.points[52:])[:, 0])
    assert few["time"].values.tolist() == list(range(2, 103, 2))
    for follower, y in answers.items():
        right = in_halves(y, stream.classes)
        found = few.sel(stream=name, follower=follower)
        assert float(found["accuracy"]) == pytest.approx(np.mean(right[-31:])), follower
        windows = [np.mean(right[i : i + 2]) for i in range(0, 102, 2)]
        np.testing.assert_allclose(found["course"], windows)


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


def test_a_window_is_a_forty_eighth_of_the_stream():
    experiment = get_experiment(NAME)
    for n_points, window in ((480, 10), (489, 10), (528, 11)):
        settings = experiment.config("exact", FEW | {"n_points": n_points}).settings
        assert module.window_of(settings) == window


def test_accuracy_that_does_not_fall_through_the_middle_has_no_limit_on_the_map():
    speeds = np.array([1.0, 4.0, 16.0])
    assert module.crossing(speeds, np.array([1.0, module.LOST, module.LOST])) == 16


@pytest.mark.parametrize("rule", module.RULES)
def test_the_worst_repeat_may_be_as_low_as_is_said(rule):
    merged = registered({("rotate", rule): 0.999})
    at = {"stream": 0, "follower": list(merged["follower"].values).index(rule), "repeat": 3}
    for worst, holds in ((module.WORST, True), (module.WORST - 1e-9, False)):
        merged["accuracy"][at] = worst
        words = f"{module._NAMES[rule]} follows moons until"
        assert claim_named(NAME, merged, words).holds is holds


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
    assert claim.short.startswith("v/(ηρ) at the limit 0.80 to 1.25, p < ")
    assert claim.figure.startswith("limit of v/(η ρ): 0.80 (η = ")
    assert ", 1.25 (η = " in claim.figure
    assert ": 2.40 (η = " in claim.control
    assert ", 3.75 (η = " in claim.control
    for rates, holds in (
        *(((0.53, 1.9), True), ((1.9, 0.53), True)),
        *(((1.0, 2.1), False), ((2.1, 1.0), False)),
        *(((0.47, 1.0), False), ((1.0, 0.47), False)),
    ):
        assert limit(run, *rates).holds is holds, rates


def test_gains_of_both_readouts_are_said():
    merged = registered({("fast", "paper"): 0.95, ("fast", "gated"): 0.92})
    claim = claim_named(NAME, merged, "used tiles move on")
    assert claim.short.startswith("+0.050 (paper), +0.020 (gated), p ")


def test_the_rule_of_the_readout_is_not_for_users_to_set():
    with pytest.raises(ParameterError, match="sets readout_rule itself: set paper_mu or gated_mu"):
        get_experiment(NAME).config("exact", {"readout_rule": "paper"})
