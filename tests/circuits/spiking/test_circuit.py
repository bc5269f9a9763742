"""The spiking circuit does what a circuit does: goes on, predicts, is saved, refuses."""

from __future__ import annotations

import json
import pickle
from functools import partial

import numpy as np
import pytest

from circuits import (
    CircuitParameters,
    ManifoldCircuit,
    Part,
    ReferenceCircuit,
    SphereLift,
    SpikingCircuit,
    SpikingParameters,
)
from circuits.errors import InputError, ParameterError
from circuits.spiking.reference import SpikingReference
from circuits.spiking.trains import spike_trains
from tests.conftest import moons, small_circuit
from tests.refusing import refused

pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
SHORT = SpikingParameters(presentation="100 ms", window="50 ms", readout_cells=4)
ENGINES = ["numpy", pytest.param("cpp_standalone", marks=pytest.mark.slow)]
SEVERAL = SHORT.replace(cells=3, noise=0.0)


def circuit(engine="numpy", spiking=SHORT, **changes):
    return SpikingCircuit(small_circuit(**{"mu": 5.0} | changes), LIFT, engine, spiking=spiking)


def stream(n=12):
    points, classes, _ = moons(n, seed=11, after=0)
    labels = np.zeros(n, dtype=int)
    labels[[2, 5, 9]] = classes[[2, 5, 9]]
    return points, labels


def reference(spiking=SHORT):
    return SpikingReference(small_circuit(mu=5.0), LIFT, spiking=spiking)


@pytest.mark.parametrize("engine", ["reference", *ENGINES])
def test_two_halves_equal_one_whole(engine):
    points, labels = stream()
    whole, halves = (
        reference() if engine == "reference" else circuit(engine, SEVERAL) for _ in range(2)
    )
    record = {"record": ("spikes", "h")}
    one = whole.run(points, labels, **record)
    first = halves.run(points[:7], labels[:7], **record)
    before = halves.state
    y = halves.predict(points[:2])  # a look in between changes nothing
    assert (y.shape, halves.state.learned) == ((2, 1), 7)
    assert np.abs(y).max() <= 1
    for name in ("W", "b", "w", "recruited"):
        np.testing.assert_array_equal(getattr(halves.state, name), getattr(before, name))
    if engine == "reference":
        np.testing.assert_array_equal(halves.predict(points[:2]), y)
    second = halves.run(points[7:], labels[7:], **record)
    for name in ("h", "u", "y", "h_trace", "excitatory_hz", "gain"):
        both = np.concatenate([first[name], second[name]])
        np.testing.assert_allclose(both, one[name], rtol=1e-12, atol=1e-12)
    for name in ("W", "b", "w", "V", "recruited"):
        np.testing.assert_allclose(second[name], one[name], rtol=1e-12, atol=1e-12)
    for column in ("cell", "presentation", "step"):
        name = f"inhibitory_spike_{column}"
        np.testing.assert_array_equal(np.concatenate([first[name], second[name]]), one[name])
    if engine == "reference":
        return
    # A result says how its cells fire.
    assert SpikingParameters(**json.loads(one.attrs["spiking"])) == SEVERAL
    assert one["excitatory_hz"].dims == ("presentation", "excitatory_cell")
    assert one["excitatory_hz"].attrs["units"] == "Hz"
    # Rates of units are the means of their three cells, over the rate of one.
    h = one["excitatory_hz"].to_numpy().reshape(12, 6, 3).mean(axis=2) / 85
    np.testing.assert_allclose(h, one["h"], rtol=1e-12, atol=0)
    assert np.isnan(one["change"]).all()


def test_a_saved_or_pickled_circuit_goes_on_where_it_stopped(tmp_path):
    points, labels = stream()
    own = circuit(spiking=SEVERAL)
    own.seed = 7
    own.run(points[:6], labels[:6])
    own.save(tmp_path / "circuit.nc")
    loaded = SpikingCircuit.load(tmp_path / "circuit.nc", "numpy")
    copy = pickle.loads(pickle.dumps(own))
    one = own.run(points[6:10], labels[6:10])
    assert "excitatory_spike_time" not in one  # spikes are stored only if recorded
    for other in (loaded, copy):
        assert other.spiking == SEVERAL
        assert other.seed == 7
        run = other.run(points[6:10], labels[6:10])
        for name in ("h", "u", "y", "W", "b", "w"):
            np.testing.assert_array_equal(one[name], run[name])


def test_rate_circuit_and_twin_take_each_others_files_and_states(tmp_path):
    points, labels = stream(60)
    p = CircuitParameters(n_tiles=20, mu=5.0)
    rate = ReferenceCircuit(p, LIFT, settling="exact")
    rate.run(points, labels)
    rate.save(tmp_path / "rate.nc")
    twin = SpikingCircuit.load(tmp_path / "rate.nc", "numpy")
    assert twin.spiking == SpikingParameters()
    np.testing.assert_array_equal(twin.state.W, rate.state.W)
    h = twin.respond(points[:3])
    # Single spikes: 0.094 each; see test_rules.
    assert np.linalg.norm(h - rate.respond(points[:3]), axis=1).max() < 0.25
    twin.run(points[:2])
    twin.save(tmp_path / "twin.nc")
    back = ManifoldCircuit.load(tmp_path / "twin.nc", "numpy")
    np.testing.assert_array_equal(back.state.W, twin.state.W)
    assert not [name for name in back.state.extra if name.startswith("cells.")]
    rate.state = twin.state
    np.testing.assert_array_equal(rate.predict(points[:5]).shape, (5, 1))
    own = type("Own", (Part,), {})()
    ReferenceCircuit(p, LIFT, tile_centers=points[:20], parts=[own]).save(tmp_path / "own.nc")
    refused(lambda: SpikingCircuit.load(tmp_path / "own.nc", "numpy"), "parts .*Own")


def test_weights_of_a_unit_are_the_mean_of_its_cells():
    points, labels = stream()
    own = circuit(spiking=SEVERAL, learning_rate=0.2)
    run = own.run(points[:6], labels[:6])
    cells = np.asarray(own.network["feedforward"].W).reshape(6, 3, 3)  # tile, cell, input
    np.testing.assert_allclose(cells.mean(axis=1), run["W"], rtol=0, atol=1e-15)
    assert np.ptp(cells, axis=1).max() > 1e-3  # cells are not copies of each other
    b = np.asarray(own.network["excitatory"].b).reshape(6, 3)
    np.testing.assert_allclose(b.mean(axis=1), run["b"], rtol=0, atol=1e-15)
    w = np.asarray(own.network["classifier"].w).reshape(1, 4, 6, 3)
    np.testing.assert_allclose(w.mean(axis=(1, 3)), run["w"], rtol=0, atol=1e-15)
    # A user may set those of cells; the unit's follow.
    own.network["excitatory"].b = 0.3
    np.testing.assert_allclose(own.state.b, 0.3, rtol=0, atol=1e-15)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_users_spike_monitor_sees_the_recorded_spikes(engine):
    from brian2 import SpikeMonitor

    points, labels = stream()
    added = []

    def extend(network):
        added.append(SpikeMonitor(network["excitatory"], name="mine"))
        network.add(added[0])

    own = SpikingCircuit(small_circuit(mu=5.0), LIFT, engine, spiking=SHORT, extend=extend)
    run = own.run(points[:5], labels[:5], record=("spikes",))
    trains = spike_trains(run, "excitatory")
    theirs = added[0].spike_trains()
    assert set(trains) == set(theirs)
    for cell, times in trains.items():
        np.testing.assert_allclose(times, np.asarray(theirs[cell]), rtol=0, atol=1e-12)
    assert sum(map(len, trains.values())) == run.sizes["excitatory_spike"] > 20
    one = spike_trains(run, "excitatory", presentation=3)
    number = int((run["excitatory_spike_presentation"] == 3).sum())
    assert sum(map(len, one.values())) == number > 0
    assert max(times.max(initial=0) for times in one.values()) <= 0.1 + 1e-12


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_set_on_the_network_takes_effect(engine):
    """Without potentiation V fades: the same as a parameter, and set on the synapses."""
    points, labels = stream()
    own = circuit(engine)
    own.network["lateral"].potentiates = 0
    run = own.run(points[:3], labels[:3])
    other = circuit(engine, SHORT.replace(V_rule="fade")).run(points[:3], labels[:3])
    normal = circuit(engine).run(points[:3], labels[:3])
    np.testing.assert_allclose(run["h"], other["h"], rtol=0, atol=1e-12)
    assert np.abs(run["h"] - normal["h"]).max() > 0.5
    own.network["excitatory"].current = 1
    refused(lambda: own.run(points[:1]), r"excitatory\.current", InputError)


def test_what_a_spiking_circuit_cannot_be_is_refused():
    def make(changes, options):
        return SpikingCircuit(small_circuit(**changes), LIFT, "numpy", **options)

    for changes, options, words in (
        ({"reset": False}, {}, "reset .*True"),
        ({"recycle": True}, {"spiking": SpikingParameters(cells=2)}, "recycle=True"),
        ({"n_tiles": 5000}, {"spiking": SpikingParameters(cells=60)}, "33554432"),
        ({}, {"spiking": {"cells": 2}}, "spiking .*got {'cells': 2}"),
        ({}, {"seed": -1}, "seed .*got -1"),
    ):
        refused(partial(make, changes, options), words, ParameterError)
    point = [[0.0, 0.0]]
    refused(lambda: circuit().run(point, record=("rates",)), "spikes, got 'rates'")
    rate = ManifoldCircuit(small_circuit(), LIFT, "numpy")
    refused(lambda: rate.run(point, record=("spikes",)), "'spikes'", InputError)
    run = reference().run(point)
    refused(lambda: spike_trains(run), "record", InputError)
    refused(lambda: spike_trains(run, "inputs"), "group .*inputs", InputError)
    run = reference().run(point, record=("spikes",))
    refused(lambda: spike_trains(run, presentation=1), "presentation", InputError)
