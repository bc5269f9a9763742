"""Labels that change: windows and what is left by hand, and claims on planted errors."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from analysis.selection import SELECTION_SEED
from circuits import ReferenceCircuit
from simulations import sweep
from simulations.datasets import ROLL_LIFT, chessboard, swiss_roll
from simulations.experiments import get_experiment
from simulations.experiments import label_change as module
from tests.refusing import refused
from tests.simulations.printed import assert_printed
from tests.simulations.small import assert_range, claim_named, planted, simulate

NAME = "label-change"


def test_windows_by_hand():
    """Two windows of two points, one stream, one gain; the last point is one too many."""
    y = np.array([0.5, -0.5, 0.0, 1.0, 1.0]).reshape(5, 1, 1)
    classes = np.array([1, 1, 1, -1, 1]).reshape(5, 1)
    for labelled, expected in (([], [0.5, 0.75]), ([1, 3], [0, 0.5]), ([0, 1, 4], [np.nan, 0.75])):
        found = module.windowed(y, classes, np.isin(np.arange(5), labelled), 2)
        np.testing.assert_array_equal(found, [[expected]])


def test_every_error_is_that_of_a_circuit_of_its_own(run):
    """One readout at a time, and errors counted point by point."""
    p, rng = get_experiment(NAME).parameters, np.random.default_rng(0)
    points, unrolled = swiss_roll(400, rng)
    steady = chessboard(unrolled, 0.5)
    mask = rng.random(400) < 0.05
    assert run["time"].values.tolist() == list(range(50, 401, 50))
    assert (int(run["change_at"]), int(run["decided_at"])) == (200, 300)
    for stream, classes in (
        ("steady", steady),
        ("changed", np.array([c if t < 200 else -c for t, c in enumerate(steady)])),
    ):
        labels = np.where(mask, classes, 0)
        for rule, rate in (("printed", "running_mean"), ("constant", 0.002)):
            for mu in (1, 10):
                own = p.replace(mu=float(mu), readout_rate=rate)
                circuit = ReferenceCircuit(own, ROLL_LIFT, settling="exact")
                y = circuit.run(points, labels)["y"].to_numpy()[:, 0]
                for end in run["time"].values:
                    asked = [t for t in range(end - 50, end) if not mask[t]]
                    wrong = sum(abs(np.sign(y[t]) - classes[t]) / 2 for t in asked)
                    found = run[f"{rule}_error"].sel(stream=stream, mu=mu, time=end)
                    # A readout among others may round otherwise: at most one point changes sides.
                    assert float(found) == pytest.approx(wrong / len(asked), abs=1.01 / len(asked))
                    if end <= 200:
                        before = run[f"{rule}_error"].sel(mu=mu, time=end)
                        assert float(before[0]) == float(before[1])


def test_what_is_left_of_a_change_by_hand(registered):
    template = registered["printed_error"].isel(mu=0, time=0, repeat=slice(4))
    template = template.transpose("repeat", "stream")
    values = np.array([[0.1, 0.1], [0.1, 0.5], [0.1, 0.9], [0.6, 0.2]])  # steady, changed
    found = module.left_over(template.copy(data=values))
    np.testing.assert_allclose(found, [0, 1, 2, 1])
    # Guessing without a change leaves no room to adapt in.
    assert module.left_over(template.copy(data=np.full((4, 2), 0.5))).tolist() == [1] * 4


def with_errors(registered, rule, reported, choosing):
    """Errors of one rule (stream, mu, time) on either kind of repeat; guessing for the other."""
    merged = registered
    selected = merged["seed"].values >= SELECTION_SEED
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(selected))
    for name in module.RULES:
        room = merged[f"{name}_error"].transpose("repeat", "stream", "mu", "time")
        array = np.full(room.shape, 0.5)
        if name == rule:
            array[:] = np.where(selected[:, None, None, None], choosing, reported)
            array += noise[:, None, None, None] * np.array([0, 1])[:, None, None]
        merged = merged.assign({f"{name}_error": room.copy(data=array)})
    return merged


def course(steady, decided, elsewhere=0.3):
    """Errors (stream, mu, time): of the changed stream at the time that decides, and at others;
    alike for both gains."""
    array = np.full((2, 2, 8), elsewhere)
    array[0] = steady
    array[1, :, 5] = decided  # the window up to 300, 100 points after the change at 200
    return array


@pytest.mark.parametrize("rule", module.RULES)
def test_a_readout_has_adapted_if_less_than_half_of_the_change_is_left(registered, rule):
    words = {"printed": "the printed", "constant": "a constant"}
    cases = ((0.3, 0.1, 0.3, None), (0.26, 0.1, 0.9, True), (0.34, 0.1, 0.0, False))
    # 0.4 of the way from 0.1 to 0.5, and 0.6. Only the stream without a change counts besides.
    for decided, steady, elsewhere, expected in (*cases, (0.34, 0.3, 0.3, True)):
        given = course(steady, decided, elsewhere)
        merged = with_errors(registered, rule, given, given)
        for own, name in words.items():
            holds = claim_named(NAME, merged, f"with {name} rate").holds
            assert holds is (expected if own == rule else False)  # the other one guesses


def test_the_gain_is_chosen_on_other_repeats_by_the_changed_stream(registered):
    """There the second gain is better after the change, and the first one without it."""
    choosing = course(0.1, 0.3)
    choosing[0, 1], choosing[1, 0], choosing[1, 1] = 0.45, 0.4, 0.2
    reported = course(0.1, 0.9)
    reported[1, 1] = 0.15
    merged = with_errors(registered, "printed", reported, choosing)
    claim = claim_named(NAME, merged, "printed")
    assert claim.holds is True
    assert "at μ = 10;" in claim.figure
    assert float(module.chosen_mu(merged, "printed")) == 10
    # The first gain stands if every point of the repeats for choosing had a label.
    merged = with_errors(registered, "printed", reported, np.full((2, 2, 8), np.nan))
    assert module.chosen(merged, "printed")["mu"].values.tolist() == 1


def test_below_the_registered_size_nothing_is_decided(registered):
    errors = course(0.1, 0.1)
    sizes = ({"n_points": 4500, "lag": 1250}, {"lag": 1000})
    smaller = [planted(NAME, lambda seed, run: {}, **changes) for changes in sizes]
    for few in (*smaller, registered.isel(repeat=slice(1, None))):
        merged = with_errors(few, "printed", errors, errors)
        assert claim_named(NAME, merged, "printed").holds is None


def test_claims_name_errors_with_and_without_the_change(run):
    merged = sweep.merge([run, simulate(NAME, seed=1)])
    for rule, other in (("printed", "constant"), ("constant", "printed")):
        claim = claim_named(NAME, merged, "a constant" if rule == "constant" else "the printed")
        assert claim.holds is None
        best = module.chosen(merged, rule).mean("repeat")
        for lag in (0, 100, 200):
            one = best.sel(time=200 + lag)
            changed, steady = (float(one.sel(stream=s)) for s in ("changed", "steady"))
            assert f"{lag}: {changed:.2f} ({steady:.2f})" in claim.figure
        last = float(best.sel(time=400, stream="steady"))
        elsewhere = float(module.chosen(merged, other).mean("repeat").sel(time=400)[0])
        assert re.search(f"{last:.2f}.*{elsewhere:.2f}", claim.control)
        assert ("a constant 0.002" in claim.statistic) == (rule == "constant")
    assert_printed(NAME, merged, grids=True)


def test_settings_are_taken_within_their_range():
    for setting, within, beyond in (
        ("board", (1e-3, 2.0), (0.99e-3, 0.0)),
        ("labelled", (1e-4, 0.5, 1.0), (0.0, 1.01)),
        ("constant_rate", (1e-6, 0.5, 1.0), (0.0, 1.01)),
        ("mu_grid", ((0.0,),), ((-1.0,), ())),
        ("lag", (2500,), (2750, 1300)),  # half of the points; 1300 is no multiple of a window
        ("n_points", (4500,), (5100,)),  # whose half is no multiple of a window
    ):
        assert_range(NAME, setting, within, beyond)
    instead = {"readout_rate": "constant_rate", "mu": "mu_grid", "n_readouts": "mu_grid"}
    for name, other in instead.items():
        make = partial(get_experiment(NAME).config, "exact", {name: 1})
        refused(make, f"{name}.* {other} ")
    seeds = get_experiment(NAME).seeds(10)
    assert seeds == [*range(10), *range(SELECTION_SEED, SELECTION_SEED + 5)]
