"""What users change in a circuit's network takes effect on every engine, or is refused.

Every change is compared with the NumPy reference, with a recursion written out here, or with the
statistics of random numbers. Cython runs the same loop as NumPy: it is tested where its own code
generation matters.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from circuits import CircuitModel, ManifoldCircuit, ReferenceCircuit, Rule, SphereLift, tiling
from circuits.errors import CircuitError, EngineError
from circuits.reference import learn_bias, rest
from tests.conftest import moons, small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
PARAMETERS = small_circuit(tile_radius=1.0)
STEPS = PARAMETERS.steps_per_presentation
CUT = 12
POINTS, _, LABELS = moons(30, after=5)

# Engines add in other orders, over 900 steps: rounding, as in test_agreement.
CLOSE = 1e-10

pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")


@pytest.fixture(autouse=True)
def quick_statements(quick_cython):
    """Let NumPy run what a user's statements need (connect, values as text): Cython compiles it."""
    from brian2 import prefs

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(prefs, "codegen.target", "numpy")
        yield


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


NOISY = """
dh/dt = gain*(drive - sqrt_alpha*b - inhibition)/tau_h : 1
dn/dt = -n/tau_n + size*sqrt(2/tau_n)*xi : 1
"""
"""n is an Ornstein-Uhlenbeck process of its own in every tile."""


def watch(engine, seed) -> SimpleNamespace:
    """A circuit whose network holds all watchers, before its first run."""
    import brian2
    from brian2 import NeuronGroup, SpikeMonitor, StateMonitor, ms

    brian2.seed(seed)
    model = CircuitModel(excitatory=NOISY, namespace={"tau_n": 5 * ms, "size": 0.3})
    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, model=model)
    network = circuit.network
    tiles = network["excitatory"]
    clock = tiles.clock
    own = SimpleNamespace()
    own.every = StateMonitor(tiles, "h", record=[0, 3], when="end", name="every_step")
    # Brian2 numbers clocks without a name; the program would be another one.
    fifth = brian2.Clock(5 * PARAMETERS.dt, name="fifth_clock")
    own.sparse = StateMonitor(tiles, "h", record=True, clock=fifth, when="end", name="every_fifth")
    own.synapses = StateMonitor(network["lateral"], "V", record=True, when="end", name="all_V")
    own.noisy = StateMonitor(tiles, "n", record=True, name="noisy")

    text = "dv/dt = (1 + i - v)/(9*ms) : 1 (unless refractory)"
    firing = {"threshold": "v > 0.8", "reset": "v = 0", "refractory": 3 * PARAMETERS.dt}
    common = {"clock": clock, "namespace": {"ms": ms}}
    own.cells = NeuronGroup(2, text, method="euler", name="ticking", **firing, **common)
    own.spikes = SpikeMonitor(own.cells, name="ticks")
    own.rates = brian2.PopulationRateMonitor(own.cells, name="tick_rate")

    add_synapses(tiles, own)
    network.add(*vars(own).values())
    own.circuit = circuit
    return own


def add_synapses(tiles, own) -> None:
    """To an own group, plastic ones among the tiles, and delayed ones that spikes take."""
    from brian2 import NeuronGroup, Synapses, ms

    clock, common = tiles.clock, {"clock": tiles.clock, "namespace": {"ms": ms}}
    own.sums = NeuronGroup(3, "input : 1\ntotal : 1", clock=clock, name="adding")
    own.sums.run_regularly("total += input", clock=clock, when="end", name="add_up")
    own.weights = Synapses(
        tiles, own.sums, "q : 1\ninput_post = q*h_pre : 1 (summed)", clock=clock, name="reading"
    )
    own.weights.connect()
    own.weights.q = "0.1*(i + 1)*(j + 1)"

    text = "dq/dt = (h_pre*h_post - q)/(50*ms) : 1 (clock-driven)"
    own.plastic = Synapses(tiles, tiles, text, method="euler", name="hebbian", **common)
    own.plastic.state_updater.when = "after_rates"
    own.plastic.connect(condition="i != j")

    own.target = NeuronGroup(1, "received : 1", clock=clock, name="receiving")
    own.delayed = Synapses(
        own.cells,
        own.target,
        "dleft/dt = -left/(20*ms) : 1 (event-driven)",
        on_pre="received_post += 1 + left\nleft += 1",
        delay=7 * PARAMETERS.dt,
        name="delayed",
        **common,
    )
    own.delayed.connect()


@on_all_engines
def test_watchers_see_every_step_and_change_nothing(engine, monkeypatch):
    """Two runs, the second of which is interrupted and run again: nobody notices."""
    own = watch(engine, seed=5)
    monkeypatch.setattr("circuits.base.CHUNK", 9)  # engines keep the chunk they were imported with

    def interrupt(done, total):
        if done >= 9:
            raise KeyboardInterrupt

    first = own.circuit.run(POINTS[:CUT], LABELS[:CUT])
    with pytest.raises(KeyboardInterrupt):
        own.circuit.run(POINTS[CUT:], LABELS[CUT:], progress=interrupt)
    assert own.every.h.shape == (2, CUT * STEPS)
    second = own.circuit.run(POINTS[CUT:], LABELS[CUT:])
    expected = reference(record=("h", "V"))
    assert_close([first, second], expected)
    # Sources do not depend on what monitors hold, nor on other networks: nothing is compiled again.
    assert own.circuit.prepare() is False

    traces = {name: expected[f"{name}_trace"].values.reshape(30 * STEPS, -1) for name in "hV"}
    check_state_monitors(own, traces)
    check_spikes(own)
    check_synapses(own, traces["h"], expected["recruited"].values)
    check_noise(np.array(own.noisy.n))
    for seed in (5, 6):
        other = watch(engine, seed)
        other.circuit.run(POINTS[:2], LABELS[:2])
        apart = np.abs(other.noisy.n - own.noisy.n[:, : 2 * STEPS]).max()
        assert apart == 0 if seed == 5 else apart > 0.1


def check_state_monitors(own, traces):
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
                v += PARAMETERS.dt_ / 0.009 * (1 + cell - v)
                if v > 0.8:
                    v, last = 0.0, step
                    fired.append((step, cell))
    return sorted(fired)


def check_spikes(own):
    """When cells fire; and each spike arrives seven steps later, with the trace its synapse has
    by then."""
    expected = ticking()
    steps = np.round(np.asarray(own.spikes.t) / PARAMETERS.dt_).astype(int)
    cells = np.asarray(own.spikes.i)
    assert list(zip(steps.tolist(), cells.tolist(), strict=True)) == expected
    assert np.asarray(own.spikes.count).tolist() == np.bincount([c for _, c in expected]).tolist()
    rate = np.zeros(30 * STEPS)
    np.add.at(rate, steps - 1, 1 / (2 * PARAMETERS.dt_))
    assert np.abs(np.asarray(own.rates.rate) - rate).max() <= 1e-9 * rate.max()

    received = 0.0
    for cell in range(2):
        left, last = 0.0, 0
        for step in steps[cells == cell] + 7:
            if step <= 30 * STEPS:
                left *= math.exp(-(step - last) * PARAMETERS.dt_ / 0.02)
                received, left, last = received + 1 + left, left + 1, step
    assert abs(float(own.target.received[0]) - received) <= 1e-9 * received
    # Some are on their way at the cut, others at the interrupt nine presentations later.
    at_cut, at_interrupt = (
        [step - end for step in steps if step <= end < step + 7]
        for end in (CUT * STEPS, (CUT + 9) * STEPS)
    )
    assert at_cut
    assert at_interrupt != at_cut


def check_synapses(own, h, recruited):
    # The sum is taken in the slot "groups" before the rates move: it sees the step before.
    before = np.vstack([np.zeros(6), h[:-1]])
    in_use = (recruited >= 0) & (recruited <= np.arange(30)[:, None])
    before[::STEPS] = in_use * rest(6, 2, None)[0]
    weights = 0.1 * np.outer(np.arange(1, 7), np.arange(1, 4))
    expected = (before @ weights).sum(axis=0)
    assert np.abs(np.asarray(own.sums.total) / expected - 1).max() <= CLOSE
    q = np.zeros((6, 6))
    for rates in h:
        q += PARAMETERS.dt_ / 0.05 * (np.outer(rates, rates) - q)
    i, j = np.asarray(own.plastic.i), np.asarray(own.plastic.j)
    assert np.abs(np.asarray(own.plastic.q) - q[i, j]).max() <= CLOSE


def check_noise(n):
    """With Euler steps of size d = dt/tau the variance is s^2 / (1 - d/2), and the correlation
    over k steps (1 - d)^k."""
    d = PARAMETERS.dt_ / 0.005
    settled = n[:, 100:]
    independent = settled.size * d / 2  # samples 2/d steps apart tell something new
    expected = 0.09 / (1 - d / 2)
    assert abs(settled.var() / expected - 1) <= 5 * math.sqrt(2 / independent)
    lagged = (settled[:, 3:] * settled[:, :-3]).mean() / settled.var()
    assert abs(lagged - (1 - d) ** 3) <= 5 / math.sqrt(independent)
    assert (n < 0).any()  # only h, u and V are rates


# Objects that act


@mostly_on_numpy
def test_synapses_currents_and_code_that_change_h(engine):
    """Each tile is driven by its neighbour and by a current, and fades at every step."""
    from brian2 import Synapses, TimedArray

    strength = 0.2 * np.sin(np.arange(30 * STEPS + 1) / 50)
    model = CircuitModel(
        excitatory="""
        dh/dt = gain*(a - inhibition)/tau_h + (neighbours + injected(t))/(10*ms) : 1
        neighbours : 1
        """,
        namespace={"injected": TimedArray(strength, dt=PARAMETERS.dt, name="injected")},
    )

    def extend(network):
        tiles = network["excitatory"]
        text = "g : 1\nneighbours_post = g*h_pre : 1 (summed)"
        ring = Synapses(tiles, tiles, text, clock=tiles.clock, name="ring")
        ring.connect(j="(i + 1) % N_post")
        ring.g = 0.05
        tiles.run_regularly("h = 0.99*h", clock=tiles.clock, when="after_rates", name="fade")
        network.add(ring)

    steps = itertools.count(1)  # simulated time starts at dt

    def step(h, a, inhibition, gamma):
        push = PARAMETERS.dt_ / 0.01 * (0.05 * np.roll(h, 1) + strength[next(steps)])
        return 0.99 * np.maximum(h + gamma * (a - inhibition) + push, 0.0)

    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, model=model, extend=extend)
    expected = reference(CircuitModel(excitatory=Rule(model.excitatory.brian2, step)))
    assert_close(in_two_parts(circuit), expected)


@mostly_on_numpy
def test_code_runner_and_a_rule_switched_off(engine):
    """In the second of three runs b grows by a thousandth after every presentation, and W does not
    learn."""
    from brian2 import CodeRunner

    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine)
    network = circuit.network
    options = {"clock": network["inputs"].clock, "when": "after_learn", "name": "growing"}
    growing = CodeRunner(network["excitatory"], "stateupdate", code="b += 0.001", **options)
    model = CircuitModel(
        feedforward=Rule(tiling.FEEDFORWARD, lambda W, h, x, eta: W),
        bias=Rule(tiling.BIAS, lambda *values: learn_bias(*values) + 0.001),
    )
    state = None
    for part, changed in ((slice(6), False), (slice(6, CUT), True), (slice(CUT, 30), False)):
        if changed:
            network.add(growing)
        elif "growing" in network:
            network.remove(growing)
        network["feedforward_learn"].active = not changed
        solver = ReferenceCircuit(PARAMETERS, LIFT, model=model if changed else None)
        if state is not None:
            solver.state = state
        run = circuit.run(POINTS[part], LABELS[part])
        assert_close([run], solver.run(POINTS[part], LABELS[part]))
        state = solver.state
        found = {"objects added": ["growing"], "objects switched off": ["feedforward_learn"]}
        assert json.loads(run.attrs["model_changes"]) == (found if changed else {})


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


# What is refused


def add_a_name_that_brian2_cannot_find(network):
    from brian2 import NeuronGroup

    clock, text = network["excitatory"].clock, "dv/dt = -v/missing : 1"
    network.add(NeuronGroup(1, text, method="euler", clock=clock, name="lost"))


REFUSED = [
    (lambda network: setattr(network["excitatory"], "drive", 1), "excitatory.drive"),
    (lambda network: setattr(network["readout"], "z", 1), "readout.z"),
    (lambda network: setattr(network["excitatory"], "h", 1), "excitatory.h.*CircuitParameters"),
    (lambda network: setattr(network["excitatory"], "kappa", 1), "weight to CircuitParameters"),
    (lambda network: network.remove(network["classifier"]), "'classifier'.*'active'"),
    (lambda network: setattr(network["excitatory"].clock, "dt", 2 * PARAMETERS.dt), "dt to "),
    (lambda network: network.run(PARAMETERS.dt), "circuit.run"),
    (add_a_name_that_brian2_cannot_find, r"missing.*namespace="),
]


@on_two_engines
def test_what_would_be_lost_is_refused(engine):
    for change, words in REFUSED:
        circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, extend=change)
        with pytest.raises(CircuitError, match=words):
            circuit.run(POINTS, LABELS)


# Copying


def watch_readout(network, name="watched"):
    from brian2 import StateMonitor

    return StateMonitor(network["readout"], "y", record=True, when="end", name=name)


@mostly_on_numpy
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
    circuit.network.add(watch_readout(circuit.network, "by_hand"))
    refused(lambda: copy.deepcopy(circuit), "extend=", EngineError)
