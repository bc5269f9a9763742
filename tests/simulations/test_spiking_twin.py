"""The spiking twin's experiment: measures by hand, and claims on planted figures."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from circuits import ReferenceCircuit, SpikingParameters
from circuits.selection import SELECTION_SEED
from simulations.experiments import get_experiment
from simulations.experiments import spiking_twin as module
from simulations.experiments import two_moons as moons
from tests.simulations.small import claim_named, planted, simulate

NAME = "spiking-twin"
CELLS = np.array([1, 2])
"""Numbers of escape cells in the small run."""

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


def result(**changes) -> xr.Dataset:
    """Repeats of the registered size with these values and a little noise of their own."""

    def values(seed, run):
        rng = np.random.default_rng(seed)
        found = GOOD | changes
        return {
            name: np.asarray(value) * (1 + 0.002 * rng.standard_normal(np.shape(value)))
            if name not in ("accuracy", "spikes_before_labels")
            else np.asarray(value)
            for name, value in found.items()
        }

    return planted(NAME, values)


def test_all_claims_hold_where_all_figures_are_good():
    claims = get_experiment(NAME).claims(result())
    assert len(claims) == 11
    assert [claim.holds for claim in claims] == [True] * 11
    assert [claim.claim for claim in claims if claim.constructed] == [
        "the readout is silent before the first label"
    ]


BROKEN = {
    "one integrate-and-fire cell": [
        {"error": [0.11, 0.05, 0.05, 0.03]},
        {"correlation": [0.98, 0.998, 0.998, 0.999]},
    ],
    "with four cells": [{"error": [0.08, 0.075, 0.05, 0.03]}, {"error": [0.04, 0.05, 0.05, 0.03]}],
    "shown for 500 ms": [{"error": [0.08, 0.05, 0.065, 0.03]}, {"error": [0.04, 0.05, 0.05, 0.03]}],
    "with escape cells": [
        {"escape_direction_error": 0.2 / CELLS},
        {"escape_direction_error": 0.2 / CELLS**0.3},
    ],
    "inhibition has the size": [
        {"inhibition": [1.0, 1.1, 1.0, 1.0]},
        {"inhibition": [1.0, 0.9, 1.0, 1.0]},
    ],
    "two moons": [{"accuracy": 0.997}],
    "nothing but inhibition": [
        {"plain_accuracy": [0.65, 0.6, 0.4]},
        {"plain_accuracy": [0.98, 0.75, 0.4]},
    ],
    "silent": [{"spikes_before_labels": 3.0}],
    "tiles end": [{"tile_distance": 0.04}],
    "cells fire": [{"mean_hz": 55.0}, {"most_hz": 140.0}, {"inhibitory_hz": 170.0}],
    "a chessboard": [{"board_error": [0.19, 0.2]}],
}


@pytest.mark.parametrize(
    ("words", "changes"), [(words, one) for words, many in BROKEN.items() for one in many]
)
def test_a_claim_does_not_hold_where_its_figure_is_bad_and_no_other_minds(words, changes):
    merged = result(**changes)
    assert claim_named(NAME, merged, words).holds is False
    others = [c for c in get_experiment(NAME).claims(merged) if words not in c.claim]
    # One cell that is as good as four breaks what is said of both.
    expected = {"error": 1} if changes.get("error", [1])[0] == 0.04 else {}
    assert sum(claim.holds is not True for claim in others) == len(expected)


def test_a_worst_seed_among_many_good_ones_counts():
    """A third of seeds below 0.99, with a mean that is above its bound."""
    merged = result()
    accuracy = np.where(np.arange(merged.sizes["repeat"]) % 3 == 0, 0.985, 1.0)
    assert accuracy.mean() < 0.998
    merged["accuracy"] = ("repeat", accuracy)
    assert claim_named(NAME, merged, "two moons").holds is not True


def test_the_gain_on_the_board_is_chosen_on_other_seeds():
    """On seeds for choosing the second gain is better, on those reported the first."""
    merged = result()
    chosen = merged["seed"].to_numpy() >= SELECTION_SEED
    assert chosen.sum() == 5
    for name in ("board_error", "rate_board_error"):
        merged[name] = (
            ("repeat", "mu"),
            np.where(chosen[:, None], [0.3, 0.1], [0.1, 0.3]),
        )
    assert "0.300" in claim_named(NAME, merged, "a chessboard").figure
    assert "μ = 20" in claim_named(NAME, merged, "a chessboard").figure


def test_the_circuit_without_gain_control_is_a_circuit_where_inhibition_is_all_there_is():
    """Three runs again; with V frozen cells end up firing at nearly every step, 2000 times a
    second."""
    stream = moons.make_stream(moons.Settings(n_points=1000, label_after=30), 7000)
    p = get_experiment(NAME).parameters.replace(**module.PLAIN)
    assert (p.gain, p.tiles) == ("auto", "first")
    hz = {}
    for rule in ("spikes", "freeze"):
        circuit = module.twin("exact", p, stream.lift, SpikingParameters(V_rule=rule), 0)
        rates = circuit.run(stream.points, stream.labels)["excitatory_hz"].to_numpy()[-100:]
        hz[rule] = rates[rates > 0].mean()
    assert hz["spikes"] < 50
    assert hz["freeze"] > 1000


def test_slopes_of_powers_are_their_exponents():
    cells = np.array([1, 2, 4, 16])
    errors = np.stack([0.3 * cells**-0.5, 0.1 * cells**-1.0])
    np.testing.assert_allclose(module.slopes(cells, errors), [-0.5, -1.0], atol=1e-12)
    assert np.isnan(module.slopes(np.array([4]), errors[:, :1])).all()


def test_distances_are_to_the_nearest_of_the_others():
    points = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert module.nearest(points, np.array([[0.0, 1.0], [3.0, 0.0], [10.0, 10.0]])) == 2.5


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


def test_cells_and_durations_are_those_that_are_named():
    plans = module.regular()
    assert [(s.cells, s.presentation_, s.window_) for s in plans.values()] == [
        *((1, 0.25, 0.125), (4, 0.25, 0.125), (1, 0.5, 0.25), (1, 1.0, 0.5)),
    ]
    assert [(s.neuron, s.cells) for s in module.escape((1, 16)).values()] == [
        *(("escape", 1), ("escape", 16)),
    ]


def test_a_run_holds_what_the_twin_does_on_its_own():
    """The learning part once more, from the parts that it is made of."""
    found = simulate(NAME, seed=3)
    p = get_experiment(NAME).parameters
    stream = moons.make_stream(moons.Settings(n_points=100, label_after=30), 3, p)
    rates = ReferenceCircuit(p, stream.lift, settling="exact").run(stream.points, stream.labels)
    assert float(found["rate_accuracy"]) == moons.accuracies(rates["y"].to_numpy(), stream)[0]
    run = module.twin("exact", p, stream.lift, SpikingParameters(), 3).run(
        stream.points, stream.labels
    )
    assert float(found["accuracy"]) == moons.accuracies(run["y"].to_numpy(), stream)[0]
    assert float(found["most_hz"]) == run["excitatory_hz"].to_numpy().max()
    assert float(found["spikes_before_labels"]) == 0
    assert found.attrs["engine"] == run.attrs["engine"]
    # After a hundred points tiles are still near where they began.
    assert float(found["tile_distance"]) < 0.03
    assert list(found["V_rule"].to_numpy()) == ["spikes", "freeze", "fade"]
    # Nothing is close to the closed form while V is frozen.
    assert (found["error_at_rest"] > 5 * found["error"]).all()


@pytest.mark.parametrize("engine", ["numpy", "reference"])
def test_the_twin_runs_on_the_engine_that_is_named(engine):
    circuit = module.twin(
        engine, get_experiment(NAME).parameters, module.MOONS_LIFT, SpikingParameters(), 0
    )
    assert circuit.engine == {"numpy": "numpy", "reference": "spiking reference"}[engine]
