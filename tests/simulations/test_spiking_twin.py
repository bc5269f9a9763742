"""The spiking twin's experiment: measures by hand, and claims on planted figures."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import xarray as xr

from analysis.measures import tile_centers_of
from analysis.selection import SELECTION_SEED
from circuits import CircuitParameters, ReferenceCircuit, SpikingParameters
from circuits.spiking.reference import SpikingReference
from simulations.datasets import MOONS_LIFT, ROLL_LIFT, chessboard, swiss_roll, two_moons
from simulations.experiments import get_experiment
from simulations.experiments import spiking_twin as module
from simulations.experiments import two_moons as moons
from simulations.experiments.roll import PARAMETERS as ROLL
from tests.simulations.printed import assert_printed
from tests.simulations.small import assert_range, claim_named, planted, simulate

NAME = "spiking-twin"
CELLS = np.array([1, 2])
"""Numbers of escape cells in the small run."""

BRIEF = partial(SpikingParameters, dt="1 ms", presentation="60 ms", window="30 ms")
"""Parameters of the quick run, in which all durations are a quarter of the registered ones."""

REGULAR = {
    "one cell": {},
    "four cells": {"cells": 4},
    "twice as long": {"presentation": "120 ms", "window": "60 ms"},
    "four times as long": {"presentation": "240 ms", "window": "120 ms"},
}

GOOD = {
    "error": [0.08, 0.05, 0.05, 0.03],
    "direction_error": [0.05, 0.03, 0.03, 0.02],
    "correlation": [0.996, 0.998, 0.998, 0.999],
    "escape_direction_error": 0.2 / np.sqrt(CELLS),
    "inhibition": [1.0, 1.01, 1.0, 1.0],
    "accuracy": 0.9995,
    "plain_accuracy": [0.98, 0.6, 0.4],
    "spikes_before_labels": 0.0,
    "tile_distance": 0.01,
    "mean_hz": 45.0,
    "most_hz": 96.0,
    "inhibitory_hz": 80.0,
    "board_error": [0.16, 0.2],
    "rate_board_error": [0.15, 0.2],
}
"""What makes every claim true, but for noise."""


@cache
def brief_run() -> xr.Dataset:
    """A run in NumPy with short presentations, and an odd number of points on the chessboard."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SpikingParameters", BRIEF)
        patch.setattr(module, "REGULAR", REGULAR)
        short = {"n_points": 60, "label_after": 10, "board_points": 101}
        return simulate(NAME, "reference", seed=3, **short)


@cache
def registered() -> xr.Dataset:
    """Repeats of the registered size; each test plants its own numbers."""
    return planted(NAME, lambda seed, run: {}, run=brief_run())


def result(**changes) -> xr.Dataset:
    """Repeats of the registered size with these values and a little noise of their own."""
    merged, rng = registered(), np.random.default_rng(0)
    for name, value in (GOOD | changes).items():
        room = merged[name].transpose("repeat", ...)
        spread = 0.0 if name in ("accuracy", "spikes_before_labels") else 0.002
        noise = 1 + spread * rng.standard_normal(room.shape)
        merged = merged.assign({name: room.copy(data=np.asarray(value) * noise)})
    return merged


def verdicts(merged) -> dict[str, bool | None]:
    return {claim.claim: claim.holds for claim in get_experiment(NAME).claims(merged)}


def test_all_claims_hold_where_all_figures_are_good():
    claims = get_experiment(NAME).claims(result())
    assert [claim.holds for claim in claims] == [True] * 11
    assert [claim.constructed for claim in claims].count(True) == 1
    assert_printed(NAME, result())


BROKEN = {
    "one integrate": [{"error": [0.11, 0.05, 0.05, 0.03]}, {"correlation": [0.98, 1, 1, 1]}],
    "with four cells": [{"error": [0.08, 0.075, 0.05, 0.03]}, {"error": [0.04, 0.05, 0.05, 0.03]}],
    "shown for 500 ms": [{"error": [0.08, 0.05, 0.065, 0.03]}, {"error": [0.04, 0.05, 0.05, 0.03]}],
    "with escape cells": [{"escape_direction_error": 0.2 / CELLS**n} for n in (1, 0.3)],
    "inhibition has the size": [{"inhibition": [1.0, one, 1.0, 1.0]} for one in (1.1, 0.9)],
    "two moons": [{"accuracy": 0.997}],
    "nothing but": [{"plain_accuracy": [0.65, 0.6, 0.4]}, {"plain_accuracy": [0.98, 0.75, 0.4]}],
    "silent": [{"spikes_before_labels": 3.0}],
    "tiles end": [{"tile_distance": 0.04}],
    "cells fire": [{"mean_hz": 55.0}, {"most_hz": 140.0}, {"inhibitory_hz": 170.0}],
    "a chessboard": [{"board_error": [0.19, 0.2]}],
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_claim_does_not_hold_where_its_figure_is_bad_and_no_other_minds(words):
    for changes in BROKEN[words]:
        found = verdicts(result(**changes))
        (own,) = (claim for claim in found if words in claim)
        assert found.pop(own) is False, changes
        # One cell that is as good as four breaks the claims on four cells and on 500 ms.
        also = int(changes.get("error", [1])[0] == 0.04)
        assert sum(holds is not True for holds in found.values()) == also, changes


def test_a_worst_seed_among_many_good_ones_counts():
    """With one seed of twenty below 0.99 it may be that a quarter of all is: (3/4)^20 is below the
    level, 20 (3/4)^19/4 is not. The mean is above its bound."""
    merged = result()
    for worst, holds in ((0.9899, None), (0.99, True)):
        accuracy = np.where(np.arange(merged.sizes["repeat"]) == 3, worst, 1.0)
        merged["accuracy"] = ("repeat", accuracy)
        assert claim_named(NAME, merged, "two moons").holds is holds
    # Fewer than half a spike in the mean counts as none.
    for spikes, holds in ((0.48, True), (0.52, False)):
        assert claim_named(NAME, result(spikes_before_labels=spikes), "silent").holds is holds


def test_below_the_registered_size_nothing_is_decided():
    def holds(repeats=20, **changes):
        values = {"tile_distance": GOOD["tile_distance"]}
        merged = planted(NAME, lambda seed, run: values, repeats, brief_run(), **changes)
        return claim_named(NAME, merged, "tiles end").holds

    assert holds() is True
    assert holds(19) is None
    for changes in ({"n_points": 1999}, {"frozen_points": 249}, {"board_points": 1999}):
        assert holds(**changes) is None


def test_settings_are_taken_within_their_range():
    assert_range(NAME, "cells", ((1, 64),), ((0,), (65,), ()))
    assert_range(NAME, "labelled", (1e-6, 1), (0, 1.01))
    assert_range(NAME, "mu_grid", ((1e-6,),), ((0,), ()))


def test_numbers_are_printed():
    merged = result()
    ones = np.ones((merged.sizes["repeat"], 1))
    merged["escape_direction_error"] = ("repeat", "escape"), ones * [0.2, 0.15]
    merged["direction_error"] = ("repeat", "regular"), ones * [0.05, 0.03, 0.5, 0.5]
    claim = claim_named(NAME, merged, "with escape cells")
    # log(0.15/0.2)/log 2, and log(0.03/0.05)/log 4.
    assert "-0.415 ± 0.000" in claim.figure
    assert "-0.368 ± 0.000" in claim.control
    # On seeds for choosing the second gain is better, on those reported the first.
    choosing = merged["seed"].to_numpy()[:, None] >= SELECTION_SEED
    assert choosing.sum() == 5
    for name in ("board_error", "rate_board_error"):
        merged[name] = ("repeat", "mu"), np.where(choosing, [0.3, 0.1], [0.1, 0.3])
    figure = claim_named(NAME, merged, "a chessboard").figure
    assert ("0.300" in figure, "μ = 20" in figure) == (True, True)


def test_slopes_distances_plans_and_engines():
    cells = np.array([1, 2, 4, 16])
    errors = np.stack([0.3 * cells**-0.5, 0.1 * cells**-1.0])
    np.testing.assert_allclose(module.slopes(cells, errors), [-0.5, -1.0], atol=1e-12)
    assert np.isnan(module.slopes(np.array([4]), errors[:, :1])).all()
    # Distances are to the nearest of the others.
    points = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert module.nearest(points, np.array([[0.0, 1.0], [3.0, 0.0], [10.0, 10.0]])) == 2.5
    plans = module.regular()
    assert [(s.cells, s.presentation_, s.window_) for s in plans.values()] == [
        *((1, 0.25, 0.125), (4, 0.25, 0.125), (1, 0.5, 0.25), (1, 1.0, 0.5)),
    ]
    escape = [(s.neuron, s.cells) for s in module.escape((1, 16)).values()]
    assert escape == [("escape", 1), ("escape", 16)]
    engines = {"numpy": "numpy", "reference": "spiking reference", "exact": "cpp_standalone"}
    for engine, expected in engines.items():
        circuit = module.twin(engine, CircuitParameters(), MOONS_LIFT, SpikingParameters(), 0)
        assert circuit.engine == expected


def test_rates_are_compared_by_hand():
    """Two points, two tiles, one interneuron of two cells."""
    s = SpikingParameters(cells=2, slope=2.0, strength=2.0, rate_u="100 Hz", rate_h="100 Hz")
    run = xr.Dataset(
        {
            "h": (("presentation", "tile"), [[0.6, 0.8], [0.0, 2.0]]),
            "inhibitory_hz": (("presentation", "inhibitory_cell"), [[100.0, 100.0], [200.0, 0.0]]),
        }
    )
    h = np.array([[0.6, 0.8], [0.0, 1.0]])
    found = module.compared(run, h, np.zeros((2, 2)), s)
    assert found.error == pytest.approx(0.5)
    assert found.direction_error == pytest.approx(0.0, abs=1e-15)
    assert found.norm == 1.5
    assert found.error_at_rest == pytest.approx(1.0)
    # |u|^2 is (1 + 1)/2 and (4 + 0)/2, in the mean 1.5; strength - 1/slope is 1.5, too.
    assert found.inhibition == pytest.approx(1.0)
    assert found.inhibition_without == pytest.approx(0.75)
    # sqrt(sum h/(N r T)): sums 1.4 and 1, N r T = 2 * 100 * 0.125.
    assert found.bound == pytest.approx((np.sqrt(1.4 / 25) + np.sqrt(1 / 25)) / 2)
    own, other = np.array([0.6, 0.8, 0.0, 2.0]), np.array([0.6, 0.8, 0.0, 1.0])
    assert found.correlation == pytest.approx(np.corrcoef(own, other)[0, 1])


@pytest.fixture(scope="module")
def stream() -> moons.Stream:
    return moons.make_stream(moons.Settings(n_points=60, label_after=10), 3)


@pytest.fixture
def rate(stream) -> ReferenceCircuit:
    """The rate circuit after the stream."""
    circuit = ReferenceCircuit(CircuitParameters(), MOONS_LIFT, settling="exact")
    circuit.run(stream.points, stream.labels)
    return circuit


def firing(p=None, lift=MOONS_LIFT, **spiking) -> SpikingReference:
    return SpikingReference(p or CircuitParameters(), lift, spiking=BRIEF(**spiking), seed=3)


def test_a_run_holds_what_the_twin_does_on_its_own(stream, rate):
    found, points, labels = brief_run(), stream.points, stream.labels

    def accuracy(run):
        y, classes = run["y"].to_numpy()[:, 0], stream.classes
        return np.mean([np.sign(y[t]) == classes[t] for t in range(len(y) // 2, len(y))])

    again = ReferenceCircuit(CircuitParameters(), MOONS_LIFT, settling="exact").run(points, labels)
    run, frozen = (firing(V_rule=rule).run(points, labels) for rule in ("spikes", "freeze"))
    assert float(found["rate_accuracy"]) == accuracy(again)
    assert float(found["accuracy"]) == accuracy(run)
    assert float(found["frozen_V_accuracy"]) == accuracy(frozen)
    for name, one in (("mean_hz", run), ("frozen_V_hz", frozen)):
        fired = [hz for hz in one["excitatory_hz"].to_numpy().ravel() if hz > 0]
        assert float(found[name]) == pytest.approx(np.mean(fired))
    assert float(found["most_hz"]) == run["excitatory_hz"].to_numpy().max()
    rates = np.sort(run["inhibitory_hz"].to_numpy().ravel())
    # 99 % of the way from the first to the last.
    place = 0.99 * (rates.size - 1)
    low, high = rates[int(place)], rates[int(place) + 1]
    assert float(found["inhibitory_hz"]) == pytest.approx(low + (place % 1) * (high - low))
    assert float(found["spikes_before_labels"]) == 0
    assert run["readout_hz"].to_numpy().any()
    # After so few points tiles are still near where they began.
    used, rate_used = ([r for r in one["recruited"].to_numpy() if r >= 0] for one in (run, again))
    assert 0 in used
    centers = tile_centers_of(rate.state.W, MOONS_LIFT)[: len(rate_used)]
    assert (rate.state.recruited[: len(rate_used)] == rate_used).all()
    start = [np.linalg.norm(points[t] - centers, axis=1).min() for t in used]
    assert float(found["start_distance"]) == pytest.approx(np.mean(start))
    assert float(found["tile_distance"]) < 0.03


@pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")
def test_controls_without_gain_control_are_circuits_of_their_own(stream):
    p = CircuitParameters(
        **{"gain": "auto", "tiles": "first", "recycle": False},
        **{"n_tiles": 60, "tile_radius": 0.4, "learning_rate": 0.03},
    )  # of 80 tiles as many as there are points
    found = brief_run()["plain_accuracy"]
    for rule in ("spikes", "fade"):
        run = firing(p, V_rule=rule).run(stream.points, stream.labels)
        assert float(found.sel(V_rule=rule)) == moons.accuracies(run["y"].to_numpy(), stream)[0]


def test_frozen_weights_are_shown_other_points(rate):
    fresh, _ = two_moons(10, 0.05, 3 + 65536)
    p = CircuitParameters(learning_rate=0, readout_rate=0, tiles="first", recycle=False)
    plans = [("", {"regular": name}, spiking) for name, spiking in REGULAR.items()]
    plans += [("escape_", {"escape": n}, {"neuron": "escape", "cells": n}) for n in (1, 2)]
    for prefix, place, spiking in plans:
        h = rate.respond(fresh)  # every time: what is random depends on what was shown before
        for name, rule in (("error", "spikes"), ("error_at_rest", "freeze")):
            if rule == "freeze" and "presentation" in spiking:
                continue  # which takes long, and the short ones have V at rest, too
            circuit = firing(p, V_rule=rule, **spiking)
            circuit.state = rate.state
            own = circuit.run(fresh)["h"].to_numpy()
            expected = np.linalg.norm(own - h, axis=1)[h.any(axis=1)].mean()
            found = float(brief_run()[prefix + name].sel(place))
            assert found == pytest.approx(expected), (place, name)


def test_the_board_is_that_of_circuits_of_its_own():
    rng = np.random.default_rng(3)
    points, unrolled = swiss_roll(101, rng)
    classes = chessboard(unrolled, 0.5)
    labels = np.where(rng.random(101) < 0.05, classes, 0)
    p = ROLL.replace(n_readouts=2, mu=(5, 20))
    many = np.stack([labels, labels], axis=1)
    counted = [t for t in range(50, 101) if labels[t] == 0]
    runs = {
        "board_error": firing(p, ROLL_LIFT, readout_cells=2).run(points, many),
        "rate_board_error": ReferenceCircuit(p, ROLL_LIFT, settling="exact").run(points, many),
    }
    for name, run in runs.items():
        y = run["y"].to_numpy()
        for i in range(2):
            wrong = [0.5 if y[t, i] == 0 else float(y[t, i] * classes[t] < 0) for t in counted]
            assert float(brief_run()[name][i]) == pytest.approx(np.mean(wrong)), name


def test_without_a_label_the_readout_is_silent_to_the_end(monkeypatch):
    """Ten points: of the tiles of the circuit without gain control there are no more, either."""
    monkeypatch.setattr(module, "SpikingParameters", BRIEF)
    stream = moons.make_stream(moons.Settings(n_points=10, label_after=0), 3)
    silent = replace(stream, labels=np.zeros(10, dtype=int))
    rates = ReferenceCircuit(CircuitParameters(), MOONS_LIFT, settling="exact").run(silent.points)
    engine, learned = module.learn("reference", CircuitParameters(), silent, rates, 3)
    assert (engine, learned["spikes_before_labels"]) == ("spiking reference", 0)
