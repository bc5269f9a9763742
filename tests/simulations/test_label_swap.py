"""Classes that exchange: errors against circuits of their own, and claims on planted ones."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from analysis.selection import SELECTION_SEED
from circuits import CircuitParameters, ReferenceCircuit
from simulations.datasets import MOONS_LIFT, first_of_each_class, two_moons
from simulations.experiments import get_experiment
from simulations.experiments import label_swap as module
from tests.refusing import refused
from tests.simulations.printed import assert_printed
from tests.simulations.small import assert_range, claim_named, planted, simulate

NAME = "label-swap"


READOUTS = {
    "printed": {"readout_rate": "running_mean"},
    "constant": {"readout_rate": 0.005},
    "gated": {"readout_rule": "gated", "readout_rate": 0.9, "clamp_labels": True},
}


def test_every_error_and_strength_is_that_of_a_circuit_of_its_own(run):
    rng = np.random.default_rng(0)
    points, steady = two_moons(800, 0.05, rng)
    classes = np.array([c if t < 400 else -c for t, c in enumerate(steady)])
    chance = rng.random(800)
    assert run["share"].values.tolist() == [0.05, 0.1, 0.2]
    for rule, own in READOUTS.items():
        grid = module.RULES[rule]
        for mu in run[grid].values[[0, 2]]:
            p = CircuitParameters(mu=float(mu), **own)
            for share in (0.05, 0.2):
                circuit = ReferenceCircuit(p, MOONS_LIFT, settling="exact")
                labels = np.where(chance < share, classes, 0)
                y = circuit.run(points, labels)["y"].to_numpy()[:, 0]
                for part in (1, 2, 3, 4):
                    wrong = []
                    for t in range(400 + 100 * (part - 1), 400 + 100 * part):
                        if chance[t] >= share:
                            wrong.append(0.5 if y[t] == 0 else float(np.sign(y[t]) != classes[t]))
                    found = run[f"{rule}_wrong"].sel({"share": share, "part": part, grid: mu})
                    # A readout among others may round otherwise: one point may change sides.
                    assert float(found) == pytest.approx(np.mean(wrong), abs=1.01 / len(wrong))
            circuit = ReferenceCircuit(p, MOONS_LIFT, settling="exact")
            two = circuit.run(points, first_of_each_class(steady, 60))
            strength = np.abs(two["y"].to_numpy()[-100:, 0]).mean()
            assert float(run[f"{rule}_strength"].sel({grid: mu})) == pytest.approx(strength)
            h = two["h"].to_numpy()[400:]
    S = sum(np.outer(row, row) for row in h) / 400
    # The tiles are the same whatever is read out.
    assert float(run["critical"]) == pytest.approx(1 / np.linalg.norm(S, 2))


def test_parts_count_points_without_a_label_by_hand():
    """Of 83 points 42 come after the exchange: four parts of ten, and two points more."""
    settings = get_experiment(NAME).config("exact", {"n_points": 83, "label_after": 0}).settings
    assert (settings.change, settings.part) == (41, 10)
    y, classes = np.ones((83, 1, 1)), np.ones(83, dtype=int)
    silent = np.ones((83, 1), dtype=bool)
    classes[51:56] = -1  # half of the second part
    y[61:71] = 0  # the third is silent
    y[72] = -1
    silent[71:79] = False  # of the fourth two points count, and both are right
    classes[81:] = -1
    assert module.by_part(y, classes, silent, settings).tolist() == [[[0], [0.5], [0.5], [0]]]
    silent[71:81] = False
    assert np.isnan(module.by_part(y, classes, silent, settings)[0, 3, 0])


def with_values(registered, values, choosing=None):
    """Planted (share, part, gain) errors by rule and (gain,) strengths by rule, with noise."""
    merged = registered
    selected = merged["seed"].values >= SELECTION_SEED
    for name, value in values.items():
        room = merged[name].transpose("repeat", ...)
        noise = np.random.default_rng(1).standard_normal((len(selected), *[1] * (room.ndim - 1)))
        array = np.broadcast_to(value, room.shape) + 1e-3 * noise
        if choosing is not None and name in choosing:
            array = np.where(selected.reshape(-1, *[1] * (room.ndim - 1)), choosing[name], array)
        merged = merged.assign({name: room.copy(data=array)})
    return merged


def errors(few_third, more_second, elsewhere=0.3):
    """Errors (share, part, gain), alike for all gains, in the two places that decide."""
    array = np.full((3, 4, 4), elsewhere)
    array[0, 2], array[1, 1] = few_third, more_second
    return array


@pytest.mark.parametrize("rule", module.RULES)
def test_a_readout_learns_anew_if_it_is_right_where_that_is_asked(registered, rule):
    other = {"printed": "constant", "constant": "gated", "gated": "printed"}[rule]
    cases = ((0.09, 0.015, 0.9, True), (0.11, 0.015, 0.3, False), (0.09, 0.025, 0.3, False))
    for few, more, elsewhere, expected in cases:
        # The other one is right, and decides nothing.
        values = {f"{rule}_wrong": errors(few, more, elsewhere), f"{other}_wrong": errors(0, 0)}
        merged = with_values(registered, values)
        assert claim_named(NAME, merged, f"{module.NAMES[rule]} learns").holds is expected


def test_the_gain_is_chosen_on_other_repeats(registered):
    own = errors(0.09, 0.015)
    own[..., [0, 1, 3]] = 0.9
    choosing = np.full((3, 4, 4), 0.4)
    choosing[..., 2] = 0.2
    merged = with_values(registered, {"constant_wrong": own}, {"constant_wrong": choosing})
    claim = claim_named(NAME, merged, "a constant rate learns")
    assert claim.holds is True
    assert "at μ = 100;" in claim.figure


UP, DOWN = (0.1, 0.9), (0.9, 0.1)


@pytest.mark.parametrize(
    ("below", "above", "faded", "kept", "critical", "expected"),
    [
        (0.48, 0.52, 0.48, 0.52, 14, True),  # all near the middle
        (0.52, 0.9, 0.1, 0.9, 14, False),  # not overwritten below
        (0.1, 0.48, 0.1, 0.9, 14, False),  # overwritten above
        (0.1, 0.9, 0.52, 0.9, 14, False),  # carried on below
        (0.1, 0.9, 0.1, 0.48, 14, False),  # faded above
        # Of the two gains on a side, either may be the one at which it does not.
        *((DOWN, 0.9, 0.1, 0.9, 14, False), (0.1, UP, 0.1, 0.9, 14, False)),
        *((0.1, 0.9, UP, 0.9, 14, False), (0.1, 0.9, 0.1, DOWN, 14, False)),
        # Where gains are all on one side there is nothing to part.
        (0.1, 0.1, 0.1, 0.1, 5000, None),
        (0.1, UP, 0.1, UP, 900, None),  # 1000 is near it
        (UP, 0.9, UP, 0.9, 2.2, None),  # 2 is
        # Within the factor a gain is on neither side: 100 is above 80, but not above 90.
        *((0.1, UP, 0.1, 0.9, 80, False), (0.1, UP, 0.1, 0.9, 90, True)),
        *((UP, 0.9, 0.1, 0.9, 4.7, True), (UP, 0.9, 0.1, 0.9, 4.9, False)),
    ],
)
def test_the_critical_gain_has_to_part_both(
    registered, below, above, faded, kept, critical, expected
):
    """Errors in the third part with few labels, and strengths, at μ = 2 and 4 and at 100 and
    1000; one number stands for two."""
    wrong = np.full((3, 4, 4), 0.3)
    pairs = [np.broadcast_to(value, 2) for value in (below, above, faded, kept)]
    wrong[0, 2] = np.concatenate(pairs[:2])
    strength = np.concatenate(pairs[2:])
    values = {"constant_wrong": wrong, "constant_strength": strength, "critical": critical}
    merged = with_values(registered, values)
    assert claim_named(NAME, merged, "a critical gain parts").holds is expected


def gated(registered, wrong, strength, few=0.3):
    """Errors in the third part with more labels (and with few), and strengths, at μ = 1.1 and
    1.2; what is found at 0.9 and 1 is bad."""
    array = np.full((3, 4, 4), 0.3)
    array[1, 2] = 0.9, 0.8, *np.broadcast_to(wrong, 2)
    array[0, 2] = 0.05, 0.06, *np.broadcast_to(few, 2)
    strengths = np.array([0.1, 0.2, *np.broadcast_to(strength, 2)])
    merged = with_values(registered, {"gated_wrong": array, "gated_strength": strengths})
    return claim_named(NAME, merged, "carries and is over")


def test_the_gated_readout_has_to_do_both_above_its_critical_gain(registered):
    assert gated(registered, 0.09, 0.52).holds is True
    assert gated(registered, 0.11, 0.6).holds is False
    assert gated(registered, 0.09, 0.48).holds is False
    for order in (1, -1):  # at every gain
        assert gated(registered, (0.05, 0.2)[::order], 0.9).holds is False
        assert gated(registered, 0.05, (0.1, 0.9)[::order]).holds is False


def test_below_the_registered_size_nothing_is_decided():
    for changes in ({"n_points": 7900}, {"repeats": 19}):
        merged = planted(NAME, lambda seed, run: {}, **changes)
        merged = with_values(merged, {"gated_wrong": errors(0.0, 0.0)})
        assert claim_named(NAME, merged, "the gated readout learns").holds is None


def test_numbers_are_printed(registered):
    claim = gated(registered, (0.05, 0.08), (0.9, 0.7), few=(0.4, 0.35))
    for number in ("0.920 ± 0.001", "0.700 ± 0.001", "0.650 ± 0.001"):
        assert number in claim.figure
    assert claim.short.startswith("0.920 and |y| 0.70, p < ")
    wrong = np.full((3, 4, 4), 0.3)
    wrong[1, 2], wrong[0, 2, 3] = (0.25, 0.2, 0.6, 0.65), 0.7
    values = {"constant_wrong": wrong, "printed_strength": np.array([0.15, 0.2, 0.9, 0.95])}
    merged = with_values(registered, values | {"critical": 14.0})
    # With more labels, above the critical gain: at 100, where 0.6 are wrong, and not at 1000.
    assert "0.400 ± 0.001" in claim_named(NAME, merged, "carries and is over").control
    # With the printed rate, below it: at 4, and not at 2.
    assert "0.200 ± 0.001" in claim_named(NAME, merged, "a critical gain parts").control
    anew = claim_named(NAME, merged, "a constant rate learns")
    assert "1000: 0.70 0.70 0.30 0.70 and 0.70 0.70 0.35 0.70" in anew.control
    assert_printed(NAME, registered, grids=True)


def test_settings_are_taken_within_their_range():
    for setting, within, beyond in (
        ("label_after", (0, 3980), (-1, 3981)),
        ("noise", (0, 1), (-0.01, 1.01)),
        ("few", (1e-6, 1), (0, 1.01, 0.02)),  # 0.02 is one of the other shares
        ("more", (1e-6, 1), (0, 1.01)),
        ("other_shares", ((1e-6, 1),), ((0,), (1.01,))),
        ("constant_rate", (1e-6, 1), (0, 1.01)),
        ("gated_rate", (1e-6, 1), (0, 1.01)),
        ("mu_grid", ((0,),), ((-1,), ())),
        ("gated_grid", ((0,),), ((-1,), ())),
    ):
        assert_range(NAME, setting, within, beyond)
    instead = {"mu": "mu_grid", "n_readouts": "mu_grid", "readout_rate": "constant_rate"}
    instead |= {"readout_rule": "gated_grid", "clamp_labels": "gated_grid"}
    for name, other in instead.items():
        make = partial(get_experiment(NAME).config, "exact", {name: 1})
        refused(make, f"{name}.* {other} ")


def test_all_points_may_be_labelled():
    run = simulate(NAME, more=1.0)
    assert np.isnan(run["constant_wrong"].sel(share=1.0)).all()
