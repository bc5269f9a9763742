"""The Brian2 side: clocks, names, and living together with a user's own Brian2 code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.engines.solvers import make_circuit
from tests.conftest import moons, small_circuit

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")


def test_names_do_not_decide_the_order(monkeypatch):
    """Brian2 sorts what slot and order leave open by name: with the names' order reversed all stays
    as it was."""
    from circuits.network import CircuitNetwork

    points, _, labels = moons(20, after=5)
    parameters = small_circuit(n_tiles=3, n_readouts=2, tile_radius=0.5, recycle=True)

    def run():
        return ManifoldCircuit(parameters, LIFT, "numpy").run(points, labels)

    def reversed_names(network):
        ties = itertools.groupby(by_name.fget(network), lambda item: (item.when, item.order))
        return [item for _, tied in ties for item in reversed(list(tied))]

    plain, by_name = run(), CircuitNetwork.sorted_objects
    assert (plain["recruited"].values > 3).any()  # tiles are recycled
    monkeypatch.setattr(CircuitNetwork, "sorted_objects", property(reversed_names))
    turned = run()
    for name in ("h", "u", "y", "W", "b", "w", "V"):
        # The same sums and products, each of the same numbers.
        assert np.abs(plain[name].values - turned[name].values).max() <= 1e-15, name


def long_stream(dt: str, engine: str, count: int = 2000):
    """Presentations of 200 steps with the same step sizes whatever dt is."""
    seconds = CircuitParameters(dt=dt, tau_u="500 ms", tau_V="2 ms").dt_
    factors = {"tau_h": 20, "tau_u": 30, "tau_V": 3}
    taus = {name: f"{factor * seconds!r} s" for name, factor in factors.items()}
    parameters = CircuitParameters(n_tiles=2, n_interneurons=1, tile_radius=2.0, dt=dt, **taus)
    points, _, labels = moons(2000, seed=4, after=10)
    return make_circuit(engine, parameters, LIFT).run(points[:count], labels[:count])


STEP_SIZES = (f"{2**-10!r} s", "1 ms", "0.1 ms", "0.3 ms")


def test_boundaries_fall_on_the_right_step():
    """A boundary one step late would move h by far more than rounding does.

    With dt = 1 ms the clocks, both up to 400 s, differ by 1e-13 s at many boundaries. The first dt
    is a power of two: its clocks are exact.
    """
    exact, *runs = (long_stream(dt, "cpp_standalone") for dt in STEP_SIZES)
    reference = long_stream(STEP_SIZES[0], "reference", 300)
    for name in ("h", "u", "change"):
        # dt/tau is the same to the last digit but one: rounding, over 400,000 steps.
        assert np.abs(exact[name].values[:300] - reference[name].values).max() <= 1e-10, name
        for dt, run in zip(STEP_SIZES[1:], runs, strict=True):
            assert np.abs(run[name].values - exact[name].values).max() <= 1e-10, (name, dt)


@pytest.mark.parametrize("dt", STEP_SIZES)
def test_clocks_meet_at_every_boundary_at_run_time(dt):
    """The presentation clock fires on steps S, 2S, ... and nowhere else, 5000 times."""
    from brian2 import Network, NeuronGroup, second

    from circuits.engines.codegen import using
    from circuits.network import Clock, PresentationClock

    parameters = CircuitParameters(dt=dt, tau_u="500 ms", tau_V="2 ms")
    steps = 3
    with using(target="numpy"):
        step = Clock(parameters.dt_ * second, name="a_step_clock")
        show = PresentationClock(step, steps, "a_presentation_clock")
        fast = NeuronGroup(1, "n : integer\nlate : integer", clock=step, name="fast_counter")
        fast.run_regularly("n += 1", clock=step, when="start")
        fast.run_regularly(f"late += int(n % {steps} != 0)", clock=show, when="end")
        slow = NeuronGroup(1, "n : integer", clock=show, name="slow_counter")
        slow.run_regularly("n += 1", clock=show)
        network = Network(fast, slow)
        network.t_ = parameters.dt_
        for part in (1, 1999, 3000):  # each part starts its clocks anew
            network.run(part * steps * parameters.dt_ * second, namespace={})
    assert (fast.n[0], slow.n[0], fast.late[0]) == (5000 * steps, 5000, 0)


def test_long_presentations_end_on_their_last_step():
    """From 10^4 steps on, Brian2's clocks would take the first step for a boundary."""
    parameters = CircuitParameters(n_tiles=3, n_interneurons=1, steps_per_presentation=10_100)
    points, _, _ = moons(2, after=0)
    run = ManifoldCircuit(parameters, LIFT, "numpy").run(points, [1, 0])
    reference = ReferenceCircuit(parameters, LIFT).run(points, [1, 0])
    for name in ("h", "y", "W", "w"):
        assert np.abs(run[name].values - reference[name].values).max() <= 1e-10, name


@pytest.mark.parametrize(
    "engine", ["numpy", pytest.param("cpp_standalone", marks=pytest.mark.slow)]
)
def test_a_monitor_added_between_runs_and_another_in_its_place(engine):
    from brian2 import StateMonitor

    parameters = small_circuit(tile_radius=1.0)
    points, _, labels = moons(30, after=5)
    circuit = ManifoldCircuit(parameters, LIFT, engine)
    circuit.run(points[:10], labels[:10])
    groups = {"u": "inhibitory", "h": "excitatory"}
    reference = ReferenceCircuit(parameters, LIFT).run(points, labels, record=("h", "u"))
    for part, name in ((slice(10, 20), "u"), (slice(20, 30), "h")):
        # At the default place, the start of a step, a monitor sees the state before it: the first
        # of each presentation is the rest state, and the settled one is not among them.
        monitor = StateMonitor(circuit.network[groups[name]], name, record=True, name="mine")
        circuit.network.add(monitor)
        circuit.run(points[part], labels[part])
        seen = np.array(getattr(monitor, name)).T.reshape(10, 30, -1)
        expected = reference[f"{name}_trace"].values[part]
        assert np.abs(seen[:, 1:] - expected[:, :-1]).max() <= 1e-10
        circuit.network.remove(monitor)


@pytest.mark.parametrize("engine", ["numpy", "cpp_standalone"])
def test_the_network_shows_the_state_after_a_run(engine):
    points, _, labels = moons(30, after=5)
    circuit = ManifoldCircuit(small_circuit(tile_radius=1.0), LIFT, engine)
    run = circuit.run(points, labels)
    homes = {"h": "excitatory", "b": "excitatory", "u": "inhibitory"}
    homes |= {"V": "lateral", "W": "feedforward", "w": "classifier"}
    for name, home in homes.items():
        last = run[name].values[-1] if name in "hu" else run[name].values
        assert (np.asarray(getattr(circuit.network[home], name)) == last.ravel()).all(), name


def test_circuits_and_a_users_own_brian2_code_do_not_disturb_each_other():
    import brian2

    brian2.prefs.codegen.target = "numpy"
    before = brian2.get_device(), brian2.defaultclock.dt_, brian2.prefs.codegen.target

    def users_simulation():
        text = "dv/dt = (1 - v)/(10*ms) : 1"
        group = brian2.NeuronGroup(3, text, method="exact", name="excitatory")
        monitor = brian2.StateMonitor(group, "v", record=True)
        network = brian2.Network(group, monitor)
        network.run(5 * brian2.ms)
        return np.array(monitor.v)

    alone = users_simulation()
    points, _, labels = moons(20, after=10)
    pairs = []
    for engine, m, k in (("numpy", 4, 1), ("cpp_standalone", 6, 2), ("numpy", 7, 3)):
        shape = {"n_tiles": m, "n_interneurons": k}
        parameters = small_circuit(**shape, tile_radius=1.0, steps_per_presentation=10)
        pairs.append([make_circuit(name, parameters, LIFT) for name in (engine, "reference")])
    assert (users_simulation() == alone).all()
    for part in (slice(10), slice(10, 20)):
        for circuit, reference in pairs:
            run = circuit.run(points[part], labels[part])
            expected = reference.run(points[part], labels[part])
            assert np.abs(run["h"].values - expected["h"].values).max() <= 1e-10
            assert np.abs(run["W"].values - expected["W"].values).max() <= 1e-10
            assert (users_simulation() == alone).all()
    assert (brian2.get_device(), brian2.defaultclock.dt_, brian2.prefs.codegen.target) == before


def test_magic_run_leaves_the_circuit_alone():
    """brian2.run() collects the objects it sees, and the circuit's are not among them."""
    import brian2

    brian2.prefs.codegen.target = "numpy"
    parameters = small_circuit(tile_radius=1.0)
    points, _, labels = moons(20, after=5)
    circuit = ManifoldCircuit(parameters, LIFT, "numpy")
    excitatory, lateral = circuit.network["excitatory"], circuit.network["lateral"]
    group = brian2.NeuronGroup(1, "dv/dt = -v/(10*ms) : 1", method="exact")
    group.v = 1
    brian2.run(10 * brian2.ms)
    assert group.v[0] == pytest.approx(np.exp(-1), rel=1e-12)  # a hundred exact steps
    assert (np.asarray(excitatory.h) == 0).all()
    run = circuit.run(points, labels)
    expected = ReferenceCircuit(parameters, LIFT).run(points, labels)
    assert np.abs(run["h"].values - expected["h"].values).max() <= 1e-10
    assert np.abs(np.asarray(lateral.V).reshape(2, 6) - expected["V"].values).max() <= 1e-10
