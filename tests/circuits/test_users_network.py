"""What users change in a circuit's network takes effect on every engine, or is refused.

Every change is compared with the NumPy reference, with a recursion written out here, or with the
statistics of random numbers. Cython runs the same loop as NumPy: it is tested where its own code
generation matters.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from circuits import CircuitModel, ManifoldCircuit, ReferenceCircuit, SphereLift, rules
from circuits.errors import EngineError
from circuits.rules import Rule
from tests.conftest import moons, small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
PARAMETERS = small_circuit(tile_radius=1.0)
STEPS = PARAMETERS.steps_per_presentation
CUT = 12
POINTS, _, LABELS = moons(30, after=5)

# Engines add in other orders, over 900 steps: rounding, as in test_agreement.
CLOSE = 1e-10

pytestmark = [
    pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning"),
    pytest.mark.usefixtures("quick_cython"),
]

CYTHON = pytest.param("cython", marks=pytest.mark.slow)
on_two_engines = pytest.mark.parametrize("engine", ["numpy", "cpp_standalone"])
on_all_engines = pytest.mark.parametrize("engine", ["numpy", "cpp_standalone", CYTHON])
mostly_on_numpy = pytest.mark.parametrize(
    "engine", ["numpy", pytest.param("cpp_standalone", marks=pytest.mark.slow)]
)


def in_two_parts(circuit):
    """Two runs, so that whatever has to go on from one to the next is seen to."""
    first = circuit.run(POINTS[:CUT], LABELS[:CUT])
    return first, circuit.run(POINTS[CUT:], LABELS[CUT:])


def reference(model=None, parameters=PARAMETERS, record=()):
    solver = ReferenceCircuit(parameters, LIFT, model=model)
    return solver.run(POINTS, LABELS, record=record)


def assert_close(parts, expected, names=("h", "u", "y", "W", "b", "w")):
    for name in names:
        found = parts[-1][name].values
        if name in "huy":
            found = np.concatenate([part[name].values for part in parts])
        assert np.abs(found - expected[name].values).max() <= CLOSE, name


# Objects that watch: one network per engine holds them all.


def add_watchers(network) -> SimpleNamespace:
    from brian2 import (
        Hz,
        NeuronGroup,
        PoissonGroup,
        PopulationRateMonitor,
        SpikeMonitor,
        StateMonitor,
        ms,
    )

    tiles = network["excitatory"]
    clock = tiles.clock
    own = SimpleNamespace()
    own.every = StateMonitor(tiles, "h", record=[0, 3], when="end", name="every_step")
    fifth = 5 * PARAMETERS.dt
    own.sparse = StateMonitor(tiles, "h", record=True, dt=fifth, when="end", name="every_fifth")
    own.synapses = StateMonitor(network["lateral"], "V", record=True, when="end", name="all_V")

    own.cells = NeuronGroup(
        2,
        "dv/dt = (1 + i - v)/(5*ms) : 1 (unless refractory)",
        threshold="v > 0.8",
        reset="v = 0",
        refractory=3 * PARAMETERS.dt,
        method="euler",
        clock=clock,
        name="ticking",
        namespace={"ms": ms},
    )
    own.spikes = SpikeMonitor(own.cells, name="ticks")
    own.rates = PopulationRateMonitor(own.cells, name="tick_rate")

    own.noise = PoissonGroup(50, 100 * Hz, clock=clock, name="noise")
    own.noise_spikes = SpikeMonitor(own.noise, name="noise_spikes")

    add_synapses(tiles, own)
    network.add(*vars(own).values())
    return own


def add_synapses(tiles, own) -> None:
    """To an own group, plastic ones among the tiles, and delayed ones that spikes take."""
    from brian2 import NeuronGroup, Synapses, ms

    clock = tiles.clock
    own.sums = NeuronGroup(3, "input : 1\ntotal : 1", clock=clock, name="adding")
    own.sums.run_regularly("total += input", clock=clock, when="end", name="add_up")
    own.weights = Synapses(
        tiles, own.sums, "q : 1\ninput_post = q*h_pre : 1 (summed)", clock=clock, name="reading"
    )
    own.weights.connect()
    own.weights.q = "0.1*(i + 1)*(j + 1)"

    own.plastic = Synapses(
        tiles,
        tiles,
        "dq/dt = (h_pre*h_post - q)/(50*ms) : 1 (clock-driven)",
        method="euler",
        clock=clock,
        order=20,  # in the slot "groups", when the rates have moved
        name="hebbian",
        namespace={"ms": ms},
    )
    own.plastic.connect(condition="i != j")

    own.target = NeuronGroup(1, "received : 1", clock=clock, name="receiving")
    own.delayed = Synapses(
        own.cells,
        own.target,
        "dleft/dt = -left/(20*ms) : 1 (event-driven)",
        on_pre="received_post += 1 + left\nleft += 1",
        delay=7 * PARAMETERS.dt,
        clock=clock,
        name="delayed",
        namespace={"ms": ms},
    )
    own.delayed.connect()


@pytest.fixture(scope="module")
def watched():
    """Circuits with all watchers after two runs, by engine."""
    import brian2

    made: dict[str, SimpleNamespace] = {}

    def get(engine):
        if engine not in made:
            brian2.seed(5)
            circuit = ManifoldCircuit(PARAMETERS, LIFT, engine)
            own = add_watchers(circuit.network)
            own.parts, own.circuit = in_two_parts(circuit), circuit
            made[engine] = own
        return made[engine]

    return get


@pytest.fixture(scope="module")
def traces():
    run = reference(record=("h", "V"))
    return {name: run[f"{name}_trace"].values.reshape(30 * STEPS, -1) for name in "hV"}


@on_all_engines
def test_watching_changes_nothing(engine, watched):
    assert_close(watched(engine).parts, reference())
    # Sources do not depend on what monitors hold, nor on other networks: nothing is compiled again.
    assert watched(engine).circuit.prepare() is False


@on_all_engines
def test_state_monitors(engine, watched, traces):
    own = watched(engine)
    assert np.abs(own.every.h.T - traces["h"][:, [0, 3]]).max() <= CLOSE
    steps = PARAMETERS.dt_ * np.arange(1, 30 * STEPS + 1)
    assert np.abs(np.asarray(own.every.t) - steps).max() <= 1e-9  # a millionth of a step
    # A clock of its own ticks on multiples of five steps: at the times 5, 10, ... dt.
    rows = np.round(np.asarray(own.sparse.t) / PARAMETERS.dt_).astype(int)
    assert rows.tolist() == list(range(5, 30 * STEPS + 1, 5))
    assert np.abs(own.sparse.h.T - traces["h"][rows - 1]).max() <= CLOSE
    assert np.abs(own.synapses.V.T - traces["V"]).max() <= CLOSE


def ticking() -> list[tuple[int, int]]:
    """When (in steps from 1) which of the two cells fires: leaky integration, then a rest of three
    steps from spike to next movement."""
    fired = []
    for cell in range(2):
        v, last = 0.0, -10
        for step in range(1, 30 * STEPS + 1):
            if step - last >= 3:
                v += PARAMETERS.dt_ / 0.005 * (1 + cell - v)
                if v > 0.8:
                    v, last = 0.0, step
                    fired.append((step, cell))
    return sorted(fired)


@on_all_engines
def test_spike_and_rate_monitors_of_own_groups(engine, watched):
    own, expected = watched(engine), ticking()
    steps = np.round(np.asarray(own.spikes.t) / PARAMETERS.dt_).astype(int)
    found = list(zip(steps.tolist(), np.asarray(own.spikes.i).tolist(), strict=True))
    assert found == expected
    assert np.asarray(own.spikes.count).tolist() == np.bincount([c for _, c in expected]).tolist()
    rate = np.zeros(30 * STEPS)
    np.add.at(rate, steps - 1, 1 / (2 * PARAMETERS.dt_))
    assert np.abs(np.asarray(own.rates.rate) - rate).max() <= 1e-9 * rate.max()


@on_all_engines
def test_poisson_group(engine, watched):
    """50 cells at 100 Hz: the count is binomial, and five standard deviations are one in 10^6."""
    trials, p = 50 * 30 * STEPS, 100 * PARAMETERS.dt_
    count = int(watched(engine).noise_spikes.num_spikes)
    assert abs(count - trials * p) <= 5 * math.sqrt(trials * p * (1 - p))


@on_all_engines
def test_own_synapses(engine, watched, traces):
    # The sum is taken in the slot "groups" before the rates move: it sees the step before.
    before = np.vstack([np.zeros(6), traces["h"][:-1]])
    recruited = reference()["recruited"].values
    in_use = (recruited >= 0) & (recruited <= np.arange(30)[:, None])
    before[::STEPS] = in_use * rules.rest(6, 2, None)[0]
    weights = 0.1 * np.outer(np.arange(1, 7), np.arange(1, 4))
    expected = (before @ weights).sum(axis=0)
    assert np.abs(np.asarray(watched(engine).sums.total) / expected - 1).max() <= CLOSE
    q = np.zeros((6, 6))
    for h in traces["h"]:
        q += PARAMETERS.dt_ / 0.05 * (np.outer(h, h) - q)
    synapses = watched(engine).plastic
    found = np.asarray(synapses.q)
    assert np.abs(found - q[np.asarray(synapses.i), np.asarray(synapses.j)]).max() <= CLOSE


@on_all_engines
def test_spikes_on_their_way_arrive_after_the_cut(engine, watched):
    """Each spike arrives seven steps later, with the trace its synapse has by then."""
    own = watched(engine)
    steps = np.round(np.asarray(own.spikes.t) / PARAMETERS.dt_).astype(int)
    cells = np.asarray(own.spikes.i)
    received = 0.0
    for cell in range(2):
        left, last = 0.0, 0
        for step in steps[cells == cell] + 7:
            if step <= 30 * STEPS:
                left *= math.exp(-(step - last) * PARAMETERS.dt_ / 0.02)
                received, left, last = received + 1 + left, left + 1, step
    assert any(step <= CUT * STEPS < step + 7 for step in steps)  # one is on its way at the cut
    assert abs(float(own.target.received[0]) - received) <= 1e-9 * received


# Objects that act


def halve(h, a, inhibition, gamma):
    return 0.99 * rules.step_excitatory(h, a, inhibition, gamma)


@mostly_on_numpy
def test_run_regularly_on_a_group_of_the_circuit(engine):
    def extend(network):
        tiles = network["excitatory"]
        # In the slot "groups" after the rates (order 4) and before the readout (10).
        tiles.run_regularly("h = 0.99*h", clock=tiles.clock, when="groups", order=5, name="fade")

    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, extend=extend)
    expected = reference(CircuitModel(excitatory=Rule(rules.EXCITATORY.brian2, halve)))
    assert_close(in_two_parts(circuit), expected)
    assert np.abs(expected["h"].values - reference()["h"].values).max() > 1e4 * CLOSE


@on_two_engines
def test_code_runner_and_a_rule_switched_off(engine):
    """b grows by a thousandth after every presentation, and W does not learn."""
    from brian2 import CodeRunner

    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine)
    network = circuit.network
    network["feedforward_learn"].active = False
    options = {"clock": network["inputs"].clock, "when": "end", "order": 2, "name": "growing"}
    network.add(CodeRunner(network["excitatory"], "stateupdate", code="b += 0.001", **options))
    parts = in_two_parts(circuit)
    model = CircuitModel(
        feedforward=Rule(rules.FEEDFORWARD.brian2, lambda W, h, x, eta: W),
        bias=Rule(rules.BIAS.brian2, lambda *values: rules.learn_bias(*values) + 0.001),
    )
    assert_close(parts, reference(model))
    assert parts[1].attrs["model_changes"] == (
        '{"objects added": ["growing"], "objects switched off": ["feedforward_learn"]}'
    )
    network["feedforward_learn"].active = True
    W = circuit.state.W
    assert np.abs(circuit.run(POINTS[:3])["W"].values - W).max() > 1e-4


@on_two_engines
def test_network_operation(engine):
    from brian2 import network_operation

    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine)
    seen = []

    @network_operation(clock=circuit.network["inputs"].clock, when="start")
    def look(t):
        seen.append(np.asarray(t))

    circuit.network.add(look)
    if engine == "cpp_standalone":
        refused(lambda: in_two_parts(circuit), "numpy", EngineError)
        circuit.network.remove(look)
    assert_close(in_two_parts(circuit), reference())
    assert len(seen) == (0 if engine == "cpp_standalone" else 30)


@mostly_on_numpy
def test_recurrent_synapses_among_tiles(engine):
    """Each tile is driven by its neighbour: the model leaves room, a user's synapses fill it."""
    model = CircuitModel(
        excitatory="""
        dh/dt = gain*(a - inhibition)/tau_h + neighbours/(10*ms) : 1
        neighbours : 1
        """
    )

    def extend(network):
        from brian2 import Synapses

        tiles = network["excitatory"]
        ring = Synapses(
            tiles,
            tiles,
            "g : 1\nneighbours_post = g*h_pre : 1 (summed)",
            clock=tiles.clock,
            name="ring",
        )
        ring.connect(j="(i + 1) % N_post")
        ring.g = 0.05
        ring.summed_updaters["neighbours_post"].order = 0  # with the other sums
        network.add(ring)

    def step(h, a, inhibition, gamma):
        recurrent = PARAMETERS.dt_ / 0.01 * 0.05 * np.roll(h, 1)
        return np.maximum(h + gamma * (a - inhibition) + recurrent, 0.0)

    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, model=model, extend=extend)
    expected = reference(CircuitModel(excitatory=Rule(model.excitatory.brian2, step)))
    assert_close(in_two_parts(circuit), expected)


@on_two_engines
def test_values_set_on_groups_and_synapses(engine):
    """tau_h before the first run; half of W and a lesion of two tiles before the second."""
    from brian2 import ms

    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine)
    tiles, synapses = circuit.network["excitatory"], circuit.network["feedforward"]
    assert np.asarray(tiles.tau_h) == PARAMETERS.tau_h_  # what will run is what is shown
    tiles.tau_h = 16 * ms
    first = circuit.run(POINTS[:CUT], LABELS[:CUT])
    synapses.W = synapses.W[:] / 2
    synapses.W["j < 2"] = 0
    second = circuit.run(POINTS[CUT:], LABELS[CUT:])

    solver = ReferenceCircuit(PARAMETERS.replace(tau_h="16 ms"), LIFT)
    assert_close([first], solver.run(POINTS[:CUT], LABELS[:CUT]))
    state = solver.state
    state.W /= 2
    state.W[:2] = 0
    solver.state = state
    assert_close([second], solver.run(POINTS[CUT:], LABELS[CUT:]))
    assert (second["h"].values[:, :2] == 0).all()
    assert second.attrs["model_changes"] == '{"values set": {"excitatory.tau_h": [0.016]}}'
    frozen = circuit.predict(POINTS[:5])
    assert np.abs(frozen - solver.predict(POINTS[:5])).max() <= 1e3 * CLOSE  # mu multiplies w.h


@on_all_engines
def test_noise_in_an_equation(engine):
    """n is an Ornstein-Uhlenbeck process: with Euler steps of size d = dt/tau its variance is
    s^2 / (1 - d/2), and its correlation over k steps (1 - d)^k."""
    import brian2

    model = CircuitModel(
        excitatory="""
        dh/dt = gain*(drive - sqrt_alpha*b - inhibition)/tau_h : 1
        dn/dt = -n/tau_n + size*sqrt(2/tau_n)*xi : 1
        """,
        namespace={"tau_n": 5 * brian2.ms, "size": 0.3},
    )

    def run(seed):
        brian2.seed(seed)
        circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, model=model)
        monitor = brian2.StateMonitor(circuit.network["excitatory"], "n", record=True, name="noisy")
        circuit.network.add(monitor)
        return in_two_parts(circuit), np.array(monitor.n)

    parts, n = run(1)
    assert_close(parts, reference())
    d = PARAMETERS.dt_ / 0.005
    settled = n[:, 100:]
    independent = settled.size * d / 2  # samples 2/d steps apart tell something new
    expected = 0.09 / (1 - d / 2)
    assert abs(settled.var() / expected - 1) <= 5 * math.sqrt(2 / independent)
    lagged = (settled[:, 3:] * settled[:, :-3]).mean() / settled.var()
    assert abs(lagged - (1 - d) ** 3) <= 5 / math.sqrt(independent)
    assert (n < 0).any()  # only h, u and V are rates
    again, other = run(1)[1], run(2)[1]
    assert (again == n).all()
    assert np.abs(other - n).max() > 0.1


@mostly_on_numpy
def test_an_injected_current(engine):
    from brian2 import TimedArray

    strength = 0.2 * np.sin(np.arange(30 * STEPS + 1) / 50)
    current = TimedArray(strength, dt=PARAMETERS.dt, name="injected")
    text = "dh/dt = gain*(drive - sqrt_alpha*b - inhibition)/tau_h + injected(t)/(10*ms) : 1"
    steps = itertools.count(1)  # simulated time starts at dt

    def step(h, a, inhibition, gamma):
        push = PARAMETERS.dt_ / 0.01 * strength[next(steps)]
        return np.maximum(h + gamma * (a - inhibition) + push, 0.0)

    model = CircuitModel(excitatory=text, namespace={"injected": current})
    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, model=model)
    assert_close(in_two_parts(circuit), reference(CircuitModel(excitatory=Rule(text, step))))


# What is refused


REFUSED = [
    (lambda network: setattr(network["excitatory"], "drive", 1), "excitatory.drive"),
    (lambda network: setattr(network["readout"], "z", 1), "readout.z"),
    (lambda network: setattr(network["excitatory"], "h", 1), "excitatory.h.*CircuitParameters"),
    (lambda network: setattr(network["inputs"], "reset", 0), "reset to CircuitParameters"),
    (lambda network: network.remove(network["classifier"]), "'classifier'.*'active'"),
    (
        lambda network: setattr(network["excitatory"].clock, "dt", 2 * PARAMETERS.dt),
        "dt to CircuitParameters",
    ),
    (lambda network: network.run(PARAMETERS.dt), "circuit.run"),
]


@on_two_engines
def test_what_would_be_lost_is_refused(engine):
    for change, words in REFUSED:
        circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, extend=change)
        refused(lambda circuit=circuit: circuit.run(POINTS, LABELS), words)


@on_two_engines
def test_names_that_brian2_cannot_find(engine):
    from brian2 import NeuronGroup

    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine)
    clock = circuit.network["excitatory"].clock
    text = "dv/dt = -v/missing : 1"
    circuit.network.add(NeuronGroup(1, text, method="euler", clock=clock, name="lost"))
    with pytest.raises(EngineError, match=r"missing.*namespace="):
        circuit.run(POINTS, LABELS)


# Failing and copying


@on_all_engines
def test_an_interrupted_run_rolls_users_objects_back(engine, monkeypatch):
    """The stream goes through the engine in pieces; the interrupt comes after the second.

    A cell that counts the steps fires on every eleventh, and its spikes arrive seven steps later:
    one is on its way at the interrupt (step 720), none where the run had started (step 360).
    """
    from brian2 import NeuronGroup, StateMonitor, Synapses

    monkeypatch.setattr("circuits.base.CHUNK", 6)
    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine)
    tiles = circuit.network["excitatory"]
    counting = NeuronGroup(
        1, "n : integer", threshold="n % 11 == 0", clock=tiles.clock, name="counting"
    )
    counting.run_regularly("n += 1", clock=tiles.clock, name="count")
    monitor = StateMonitor(tiles, "h", record=[0, 3], when="end", name="every_step")
    arriving = NeuronGroup(1, "received : 1", clock=tiles.clock, name="arriving")
    delay = 7 * PARAMETERS.dt
    way = Synapses(counting, arriving, on_pre="received_post += 1", delay=delay, clock=tiles.clock)
    way.connect()
    circuit.network.add(counting, monitor, arriving, way)

    def interrupt(done, total):
        if done >= 12:
            raise KeyboardInterrupt

    first = circuit.run(POINTS[:CUT], LABELS[:CUT])
    with pytest.raises(KeyboardInterrupt):
        circuit.run(POINTS[CUT:], LABELS[CUT:], progress=interrupt)
    assert monitor.h.shape == (2, CUT * STEPS)
    assert counting.n[0] == CUT * STEPS
    second = circuit.run(POINTS[CUT:], LABELS[CUT:])
    expected = reference(record=("h",))
    assert_close([first, second], expected)
    trace = expected["h_trace"].values.reshape(30 * STEPS, -1)[:, [0, 3]]
    assert np.abs(monitor.h.T - trace).max() <= CLOSE
    assert counting.n[0] == 30 * STEPS
    assert arriving.received[0] == (30 * STEPS - 7) // 11


def watch_readout(network, name="watched"):
    from brian2 import StateMonitor

    return StateMonitor(network["readout"], "y", record=True, when="end", order=1, name=name)


@on_two_engines
def test_copies_go_on_alike(engine):
    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, extend=watch_readout)
    circuit.network["excitatory"].tau_h = "0.016*second"
    circuit.run(POINTS[:CUT], LABELS[:CUT])
    copies = [copy.deepcopy(circuit), pickle.loads(pickle.dumps(circuit))]
    expected = circuit.run(POINTS[CUT:], LABELS[CUT:])
    for other in copies:
        found = other.run(POINTS[CUT:], LABELS[CUT:])
        assert_close([found], expected)
        assert found.attrs["model_changes"] == expected.attrs["model_changes"]
        assert np.abs(other.network["watched"].y.T - found["y"].values).max() <= CLOSE
    for part in ("6 tiles", "2 interneurons", f"engine {engine}", "30 presentations"):
        assert part in repr(circuit)
    circuit.network.add(watch_readout(circuit.network, "by_hand"))
    refused(lambda: copy.deepcopy(circuit), "extend=", EngineError)
