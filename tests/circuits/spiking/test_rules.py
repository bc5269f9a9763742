"""What the spiking twin computes, against closed forms and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import make_s_curve

from circuits import CircuitParameters, ReferenceCircuit, SphereLift
from circuits.spiking.parameters import SpikingParameters, trace_step
from circuits.spiking.reference import SpikingReference
from tests.conftest import moons, small_circuit

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


def test_the_mean_of_a_trace_is_the_firing_rate_over_the_rate_of_one():
    dt, tau, rate = 0.5e-3, 10e-3, 85.0
    trace, total = 0.0, 0.0
    for step in range(40_000):
        trace *= 1 - dt / tau
        total += trace * dt
        if step % 40 == 0:  # every 20 ms: 50 Hz
            trace += trace_step(dt, tau, rate)
    # 20 s of spikes; what the last one still has to give is 1e-4 of it.
    assert total / 20 == pytest.approx(50 / rate, rel=2e-3)


@pytest.mark.parametrize(
    ("slope", "strength", "cells"), [(1.0, 2.5, 1), (4.0, 1.5, 1), (1.0, 1.5, 8), (4.0, 2.5, 8)]
)
def test_one_tile_fires_at_the_rate_of_one_whatever_its_drive(slope, strength, cells):
    """h = [a]_+/|[a]_+| = 1 and |u|^2 = strength - 1/slope, in 1.5 s of a 2 s presentation."""
    s = SpikingParameters(
        **{"slope": slope, "strength": strength, "cells": cells, "readout_cells": 1},
        presentation="2 s",
        window="1.5 s",
    )
    p = small_circuit(n_tiles=1, n_interneurons=3, learning_rate=0.0, tiles="first")
    circuit = SpikingReference(p, LIFT, spiking=s, tile_centers=[[0.4, 0.2]])
    run = circuit.run([[0.45, 0.2]])
    # A spike of one cell is 1/(85 * 1.5) = 0.008 of a rate; that current arrives in packets while
    # V changes costs up to 2 % more.
    assert run["h"].item() == pytest.approx(1.0, abs=0.035)
    if cells == 1:  # single cells lock to each other, and share inhibition as they happen to
        return
    u = run["inhibitory_hz"].to_numpy()[0] / s.rate_u_
    # Eight noisy cells still lock a little, the more the steeper they are: 7 % at a slope of 4.
    assert (u**2).sum() / cells == pytest.approx(strength - 1 / slope, rel=0.08)


def test_on_other_data_spikes_settle_on_the_closed_form():
    """Frozen weights, on an S-curve in three dimensions."""
    points, _ = make_s_curve(400, random_state=23)
    lift = SphereLift.around(points)
    p = CircuitParameters(n_tiles=150, tile_radius=0.5, recruit_below=0.5, learning_rate=0.0)
    rate = ReferenceCircuit(p, lift, settling="exact")
    rate.run(points)
    spiking = SpikingReference(p, lift)
    spiking.state = rate.state
    h, own = rate.respond(points[:40]), spiking.respond(points[:40])
    error = np.linalg.norm(own - h, axis=1)
    # A spike is 1/(85 * 0.125) = 0.094 of a rate, and about eight cells respond: rounding alone
    # would give sqrt(8/12) * 0.094 = 0.077.
    assert error.mean() < 0.12
    assert np.corrcoef(own.ravel(), h.ravel())[0, 1] > 0.985
    # A point is answered by the tiles that it lies in, and by no others.
    assert (own[h == 0] > 0).mean() < 0.002


def test_W_b_and_the_first_label_do_what_the_rate_circuit_does():
    """W <- (1 - eta) W + eta h x^T and b <- (1 - eta) b + eta sqrt(alpha) h, with the h that was
    counted in the window; exactly, because both are the same spikes."""
    points, _, labels = moons(15, seed=5, after=8)
    p = small_circuit(learning_rate=0.1, n_tiles=15, tile_radius=0.5)
    circuit = SpikingReference(p, LIFT, spiking=SpikingParameters(readout_cells=4))
    run = circuit.run(points, labels, snapshot_every=1, record=("spikes",))
    x, h, eta = LIFT(points), run["h"].to_numpy(), 0.1
    W, b = run["W_snapshots"].to_numpy(), run["b_snapshots"].to_numpy()
    recruited = run["recruited"].to_numpy()
    for t in range(1, 15):
        new = recruited == t
        before_W = np.where(new[:, None], p.kappa * x[t], W[t - 1])
        before_b = np.where(new, p.kappa * math.sqrt(circuit.alpha), b[t - 1])
        np.testing.assert_allclose(
            W[t], before_W + eta * (np.outer(h[t], x[t]) - before_W), rtol=0, atol=1e-13
        )
        expected = before_b + eta * (math.sqrt(circuit.alpha) * h[t] - before_b)
        np.testing.assert_allclose(b[t], expected, rtol=0, atol=1e-13)
    # The readout is silent until the first label comes, and then fires at once.
    first = int(np.flatnonzero(labels)[0])
    assert run["readout_spike_presentation"].min() == first
    assert run["readout_spike_time"].min() > first * 0.25
    assert (run["y"][:first] == 0).all()
    assert run["y"][first].item() == pytest.approx(labels[first], abs=1e-9)


@pytest.mark.parametrize("rule", ["paper", "gated"])
def test_w_learns_what_the_rule_of_the_rate_circuit_says_but_for_single_spikes(rule):
    """A labelled point: y is 1, and w moves to rate y h (paper), or by rate h (y - w) (gated)."""
    points, _, _ = moons(8, seed=5, after=0)
    rate = 0.4
    p = small_circuit(
        **{"n_tiles": 8, "mu": 0.0, "readout_rule": rule, "readout_rate": rate, "tiles": "first"},
        learning_rate=0.0,
        tile_radius=0.6,
    )
    s = SpikingParameters(presentation="2 s", window="1.8 s")
    circuit = SpikingReference(p, LIFT, spiking=s, tile_centers=points)
    state = circuit.state
    state.w[:] = -0.2
    circuit.state = state
    run = circuit.run(points[:1], [1])
    h, w = run["h"].to_numpy()[0], run["w"].to_numpy()[0]
    assert run["y"].item() == pytest.approx(1.0, abs=0.01)
    # w forgets spike by spike under the gated rule, by exp(-rate h) in the limit of many.
    kept = np.exp(-rate * h)
    expected = {
        "paper": (1 - rate) * -0.2 + rate * h,
        "gated": kept * -0.2 + (1 - kept),
    }[rule]
    # A spike of h is 0.0065; the trace of 10 ms sees the window's edges.
    np.testing.assert_allclose(w, expected, atol=0.012)


def test_readout_cells_add_up_to_the_integral_of_their_drive_however_small():
    """y = mu w.h of 0.01 is a tenth of a spike per cell, and of 0.3 some three."""
    points, _, _ = moons(8, seed=5, after=0)
    for target in (0.01, -0.3):
        p = small_circuit(
            **{"n_tiles": 8, "mu": 1.0, "tiles": "first", "tile_radius": 0.6},
            learning_rate=0.0,
            readout_rate=0.0,
        )
        circuit = SpikingReference(p, LIFT, tile_centers=points)
        state = circuit.state
        h = circuit.run(points[:1])["h"].to_numpy()[0]
        state.w[:] = target * h / (h @ h)
        circuit.state = state
        y = circuit.run(points[:1])["y"].item()
        # One spike of twenty cells is 0.005; net is as uneven as the spikes that make it.
        assert y == pytest.approx(target, abs=0.005 + 0.1 * abs(target))
        assert np.sign(y) == np.sign(target)


def test_idle_tiles_and_points_that_nothing_answers_stay_silent_in_any_noise():
    points, _, _ = moons(40, seed=6, after=0)
    s = SpikingParameters(cells=3, noise=3.0, readout_cells=2)
    p = small_circuit(n_tiles=12)
    circuit = SpikingReference(p, LIFT, spiking=s)
    circuit.run(points[:3])
    run = circuit.run(points[3:5])
    idle = np.repeat(run["recruited"].to_numpy() < 0, 3)
    assert idle.sum() >= 9
    assert (run["excitatory_hz"].to_numpy()[:, idle] == 0).all()
    far = circuit.respond([[2.9, 0.3]])
    assert (far == 0).all()
