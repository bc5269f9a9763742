"""The spiking twin on Brian2 against its NumPy reference: spike by spike, and statistically."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from circuits import SphereLift, SpikingCircuit, SpikingParameters
from circuits.spiking.reference import SpikingReference
from tests.conftest import moons, small_circuit

pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
SLOW = pytest.mark.slow
RECORD = ("h", "u", "V", "y", "spikes")
SHORT = {"presentation": "100 ms", "window": "50 ms", "readout_cells": 4}

CIRCUITS = {
    "default": ({"mu": 5.0}, {}),
    "gated, V frozen": (
        {"readout_rule": "gated", "mu": 1.1, "readout_rate": 0.9},
        {"V_rule": "freeze", "slope": 1.5},
    ),
    "tanh, clamped, recycled": (
        {"readout": "tanh", "mu": 3.0, "clamp_labels": True, "recycle": True, "n_tiles": 4},
        {"V_rule": "fade"},
    ),
    "constant gain and rate, several cells": (
        {"tiles": "first", "gain": "auto", "tile_radius": 0.6, "n_readouts": 2, "mu": (5.0, 0.5)}
        | {"readout_rate": 0.2},
        {"cells": 3, "noise": 0.0, "rate_u": "70 Hz", "tau_V": "30 ms"},
    ),
}


def stream(n_readouts: int):
    points, classes, _ = moons(11, seed=11, after=0)
    labels = np.zeros((11, n_readouts), dtype=int)
    labels[[2, 5, 9]] = classes[[2, 5, 9], None]
    return points, labels


def record_run(make, name: str, *arguments):
    changes, firing = CIRCUITS[name]
    p, s = small_circuit(**changes), SpikingParameters(**SHORT | firing)
    points, labels = stream(p.n_readouts)
    circuit = make(p, LIFT, *arguments, spiking=s)
    return circuit.run(points, labels, record=RECORD, snapshot_every=5)


@cache
def reference_run(name: str):
    return record_run(SpikingReference, name)


@pytest.mark.parametrize(
    ("engine", "name"),
    [("numpy", name) for name in CIRCUITS]
    + [("cpp_standalone", "default")]
    + [pytest.param("cpp_standalone", name, marks=SLOW) for name in [*CIRCUITS][1:]]
    + [pytest.param("cython", "default", marks=SLOW)],
)
def test_every_spike_comes_in_the_same_step_as_in_the_reference(engine, name, request):
    if engine == "cython":
        request.getfixturevalue("quick_cython")
    run, reference = record_run(SpikingCircuit, name, engine), reference_run(name)
    assert set(run) == set(reference)
    assert run["excitatory_spike_cell"].size > 50
    assert run["readout_spike_cell"].size > 5
    for group in ("excitatory", "inhibitory", "readout"):
        for column in ("cell", "presentation", "step"):
            np.testing.assert_array_equal(
                run[f"{group}_spike_{column}"], reference[f"{group}_spike_{column}"]
            )
    # Without -ffast-math or another order of sums there would be no difference at all; a spike that
    # comes a step earlier or later would be one of 1e-2 in the traces from there on.
    for variable in run:
        if variable != "change":  # unknown
            np.testing.assert_allclose(run[variable], reference[variable], rtol=1e-10, atol=1e-11)


NOISY = {
    "escape": ({"neuron": "escape", "cells": 36}, 60),
    "noise": ({"cells": 9, "noise": 1.0}, 100),
}
"""How cells fire at random, and how many presentations tell them from cells that do not: rates that
are off by 10 %, or twice the noise."""


def counts(circuit, state, points):
    """Spikes of every presentation: excitatory, inhibitory and, signed, of the readout."""
    circuit.state = state
    run = circuit.run(points)
    window = circuit.spiking.window_
    return {
        group: run[f"{group}_hz"].to_numpy().sum(axis=1) * window
        for group in ("excitatory", "inhibitory", "readout")
    }


def random_circuit(name: str):
    p = small_circuit(learning_rate=0.0, readout_rate=0.0, tiles="first", mu=2.0)
    return p, SpikingParameters(**SHORT | NOISY[name][0])


@pytest.mark.parametrize("name", ["noise", pytest.param("escape", marks=pytest.mark.slow)])
def test_random_cells_fire_as_often_as_those_of_the_reference(name, quick_compiler):
    """Two samples of presentations of one point.

    By chance this fails once in 10^4 (Bonferroni over three groups and two tests). A difference of
    means of six standard errors is found with a power of 0.96, and the last assertion keeps that
    below a tenth of the spikes: rates that are off by 10 % do not pass.
    """
    points, _, _ = moons(40, seed=2, after=0)
    p, s = random_circuit(name)
    teacher = SpikingReference(p, LIFT, spiking=s, tile_centers=points[:6])
    state = teacher.state
    state.w[:] = np.linspace(0.3, 0.6, 6)
    shown = np.tile(points[0], (NOISY[name][1], 1))
    own = counts(SpikingCircuit(p, LIFT, "cpp_standalone", spiking=s, seed=4), state, shown)
    reference = counts(SpikingReference(p, LIFT, spiking=s, seed=5), state, shown)
    for group, values in own.items():
        others = reference[group]
        assert stats.ttest_ind(values, others, equal_var=False).pvalue > 1e-4 / 6
        assert stats.ks_2samp(values, others).pvalue > 1e-4 / 6
        error = np.sqrt(values.var() / len(values) + others.var() / len(others))
        assert 6 * error < 0.1 * others.mean()


@pytest.mark.parametrize("engine", ["numpy", "cpp_standalone"])
def test_a_seed_makes_a_run_repeatable(engine, quick_compiler):
    p, s = random_circuit("noise")
    points, _ = stream(1)
    np.random.seed(1)
    before = np.random.get_state()[1].copy()

    def rates(seed):
        options = {"spiking": s, "seed": seed, "tile_centers": points[:6]}
        run = SpikingCircuit(p, LIFT, engine, **options).run(points[:2])
        return run["excitatory_hz"].to_numpy()

    first = rates(3)
    np.testing.assert_array_equal(first, rates(3))
    assert first.any()
    assert not np.array_equal(first, rates(4))
    # What belongs to the user is left alone.
    np.testing.assert_array_equal(np.random.get_state()[1], before)
