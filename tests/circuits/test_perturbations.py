"""Perturbations: the same on every engine and in the reference, and as described."""

from __future__ import annotations

import copy
import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from circuits import (
    CircuitModel,
    CircuitParameters,
    Current,
    Delay,
    Freeze,
    Lesion,
    ManifoldCircuit,
    Noise,
    ReferenceCircuit,
    Rule,
    SphereLift,
    SpikingCircuit,
    UnequalGain,
)
from circuits.engines.solvers import make_circuit
from circuits.errors import InputError, ParameterError
from circuits.parts.gain_control import measured
from circuits.parts.gaussian import gaussian
from circuits.parts.lesion import Lesioned
from circuits.parts.noise import NoiseOn
from circuits.parts.perturbations import NOISY, Timed, parse_perturbation
from circuits.reference import drive
from circuits.spiking.parameters import SpikingParameters
from circuits.state import GONE
from circuits.storage.saved_circuit import load_circuit
from tests.conftest import differences
from tests.refusing import refused

# Agreement is not about settling.
pytestmark = [
    pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning"),
    pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning"),
]

LIFT = SphereLift(center=(0.0, 0.0), radius=4.0)
STEPS = 30
SMALL = CircuitParameters(
    n_tiles=12, n_interneurons=3, tile_radius=0.6, learning_rate=0.05, steps_per_presentation=STEPS
)
RECORD = ("h", "u", "V", "y")


def stream(count: int = 60, seed: int = 1):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, (count, 2))
    labels = np.where(rng.random(count) < 0.3, np.where(points[:, 0] > 0, 1, -1), 0)
    return points, labels


# Each case has the variant of the circuit that it is run with.
CASES = {
    "tiles and slow plasticity": ("recycled", [Lesion(tiles=0.5, at=20), Freeze(at=20, until=30)]),
    "tiles in use and idle ones": ("plain", [Lesion(tiles=(1, 11, 5), at=3)]),
    "an interneuron and synapses": (
        "carried over",
        [
            Lesion(interneurons=(0,), at=20),
            Lesion(lateral=0.3, feedforward=0.3, classifier=0.3, at=20, seed=4),
        ],
    ),
    "currents": (
        "carried over",
        [
            Current(into="h", amount=0.1, at=10, until=30, cells=(0, 2)),
            Current(into="h", amount=0.1, at=10, steps=np.sin(np.arange(STEPS))),
            Current(into="h", amount=np.linspace(0, 0.1, 20), at=10),
            Current(into="u", amount=0.05, at=10, until=30),
            Current(into="y", amount=0.3, at=10, until=30),
            Current(into="y", amount=-0.2, at=20),
        ],
    ),
    "noise on rates": (
        "plain",
        [Noise(on="h", size=0.05, seed=3, at=5), Noise(on="u", size=0.05, at=5, until=30)],
    ),
    "noise on synapses": (
        "recycled",
        [*(Noise(on=name, size=0.05, seed=5) for name in "Vbwy"), Noise(on="W", size=0.003)],
    ),
    "fast plasticity": ("carried over", [Freeze(what="V", at=20, until=22)]),
    "delay and gain": ("plain", [Delay(time="2 ms"), UnequalGain(spread=0.3, seed=2)]),
}
VARIANTS = {
    "plain": {},
    "recycled": {"recycle": True, "n_tiles": 13, "tile_radius": 0.3},
    "carried over": {"reset": False},
}
EVERYTHING = [
    Lesion(tiles=0.3, interneurons=(1,), feedforward=0.1, lateral=0.1, classifier=0.1, at=25),
    Lesion(tiles=(0,), at=40),
    *(Noise(on=name, size=0.01) for name in "huyVbw"),
    Noise(on="W", size=0.003),
    Noise(on="h", size=0.02, seed=9),
    Current(into="h", amount=0.02, steps=np.linspace(0, 1, STEPS)),
    Current(into="u", amount=(0.02, 0.03)),
    Current(into="y", amount=0.02, at=3),
    Freeze(what=("W", "b", "w", "tiles"), at=45, until=50),
    Freeze(what="V", at=50, until=52),
    Delay(time="1 ms"),
    UnequalGain(spread=0.2),
]


def assert_agrees(parameters, perturbations, engine, count=60):
    """Compare every step of a stream, and predictions after it, with the reference."""
    points, labels = stream(count)
    circuit = ManifoldCircuit(parameters, LIFT, engine, perturbations=perturbations)
    reference = ReferenceCircuit(parameters, LIFT, perturbations=perturbations)
    run = circuit.run(points, labels, record=RECORD, snapshot_every=7)
    expected = reference.run(points, labels, record=RECORD, snapshot_every=7)
    found = differences(run.astype(float), expected.astype(float), list(expected.data_vars))
    # As in test_agreement.py: rounding of a few hundred numbers of order one over 1800 steps.
    assert max(found.values()) <= 1e-10, found
    assert np.abs(circuit.predict(points[:20]) - reference.predict(points[:20])).max() <= 1e-10
    return expected


@pytest.mark.parametrize("name", CASES)
def test_every_step_agrees_with_the_reference(name):
    variant, done = CASES[name]
    parameters = SMALL.replace(**VARIANTS[variant])
    expected = assert_agrees(parameters, done, "numpy", 40)
    plain = ReferenceCircuit(parameters, LIFT).run(*stream(40), record=RECORD)
    # It has an effect, and none before its time.
    starts = min(getattr(one, "at", 0) for one in done)
    apart = sum(np.abs(plain[v].values - expected[v].values).max(axis=1) for v in "huy")
    assert apart[starts:].max() > 1e-3
    assert apart[:starts].max(initial=0) == 0


GATED = {"readout_rule": "gated", "readout_rate": 0.3, "recycle": True}


@pytest.mark.parametrize("changes", [{}, pytest.param(GATED, marks=pytest.mark.slow)])
def test_all_perturbations_together(changes):
    expected = assert_agrees(SMALL.replace(**changes), EVERYTHING, "cpp_standalone")
    assert np.abs(expected["h"].values).max() < 10


def test_a_stream_in_pieces_through_copies_and_files(tmp_path):
    """Two pieces give the whole stream, whoever runs the second: the circuit itself, its copies,
    or circuits made from its file."""
    points, labels = stream()
    options = {"engine": "cpp_standalone", "perturbations": EVERYTHING}
    whole = ManifoldCircuit(SMALL, LIFT, **options).run(points, labels)
    assert '"kind": "lesion"' in whole.attrs["perturbations"]
    circuit = ManifoldCircuit(SMALL, LIFT, **options)
    first = circuit.run(points[:33], labels[:33])
    path = circuit.save(tmp_path / "circuit.nc")
    others = [copy.deepcopy(circuit), pickle.loads(pickle.dumps(circuit))]
    others += [ReferenceCircuit.load(path), load_circuit(path, "cpp_standalone")]
    # A program that is started anew adds up the first drive in NumPy, which may round otherwise.
    assert np.abs(first["h"].values - whole["h"].values[:33]).max() <= 1e-10
    for other in (circuit, *others):
        assert other.perturbations == tuple(EVERYTHING)
        assert other.model.delay == "1 ms"
        rest = other.run(points[33:], labels[33:])
        assert np.abs(rest["h"].values - whole["h"].values[33:]).max() <= 1e-10
        assert np.abs(rest["W"] - whole["W"]).max() <= 1e-10
    plain = ReferenceCircuit(SMALL, LIFT)
    assert plain.run(points, labels).attrs["perturbations"] == "[]"
    assert "perturbations" not in plain.changes()
    assert "perturbations" in circuit.changes()
    # Times, amounts and seeds are given to the same program.
    earlier = [one.replace(at=one.at // 2) if hasattr(one, "at") else one for one in EVERYTHING]
    noisy = {"size": 0.02, "seed": 7}
    earlier = [one.replace(**noisy) if isinstance(one, Noise) else one for one in earlier]
    same = ManifoldCircuit(SMALL, LIFT, "cpp_standalone", perturbations=earlier)
    assert same.prepare() is False
    expected = ReferenceCircuit(SMALL, LIFT, perturbations=earlier).run(points, labels)
    assert np.abs(same.run(points, labels)["h"] - expected["h"]).max() <= 1e-10


# What each of them does, by hand


def test_tiles_that_are_gone_stay_gone():
    p, gone = SMALL.replace(n_tiles=30, recycle=True), [0, 3, 29]
    circuit = ReferenceCircuit(p, LIFT, perturbations=[Lesion(tiles=gone, at=50)])
    run, state = circuit.run(*stream(200)), circuit.state
    assert (run["h"][:50, [0, 3]] > 0).any()
    assert (run["h"][50:, gone] == 0).all()
    assert (state.recruited[gone] == GONE).all()
    for weights in (state.W, state.w.T, state.b, state.in_use):
        assert not weights[gone].any()
    assert (state.recruited >= 50).sum() > 3  # others are still recruited


def test_a_lesion_takes_the_share_it_names():
    for share, count in ((0.5, 6), (0.25, 3), (1 / 12, 1)):
        assert Lesion(tiles=share).chosen("tiles", np.ones(12, bool)).sum() == count
    whole = np.ones(40, bool)
    drawn = [tuple(Lesion(tiles=0.5, seed=s).chosen("tiles", whole)) for s in range(20)]
    assert len(set(drawn)) == 20
    lesion = Lesion(feedforward=0.25, seed=1)
    circuit = ReferenceCircuit(SMALL, LIFT, perturbations=[lesion])
    circuit.run(*stream())
    W = circuit.state.W.ravel()
    cut = lesion.chosen("feedforward", np.ones(W.size, bool))
    assert cut.sum() == round(W.size / 4)
    assert not W[cut].any()
    assert np.count_nonzero(W[~cut]) > 10


def test_current_into_tiles_moves_the_fixed_point():
    """tau_h dh/dt = gain (a - V^T u) + I vanishes where the drive is a + I/gain."""
    points, _ = stream(30)
    done = [Current(into="h", amount=0.2, cells=(0, 1))]
    p = SMALL.replace(steps_per_presentation=600, learning_rate=0.0, tiles="first")
    slow = ReferenceCircuit(p, LIFT, perturbations=done)
    exact = ReferenceCircuit(p, LIFT, perturbations=done, settling="exact")
    found = slow.run(points)["h"].values
    assert np.abs(found - exact.run(points)["h"].values).max() <= 1e-7
    x, state = LIFT(points), slow.state
    for row, h in zip(x, found, strict=True):
        a = drive(state.W, state.b, row, slow.alpha)
        size = measured(a, slow.floor)
        if size:
            driven = np.maximum(a + size * 0.2 * np.isin(np.arange(12), (0, 1)), 0)
            assert h == pytest.approx(driven / np.linalg.norm(driven), abs=1e-7)


def test_current_into_the_readout_is_added_to_its_input():
    points, labels = stream(40)
    p = SMALL.replace(mu=3.0)
    run = ReferenceCircuit(p, LIFT, perturbations=[Current(into="y", amount=0.25, at=20)])
    found = run.run(points, labels, snapshot_every=1)
    for t in range(1, 40):
        net = found["w_snapshots"].values[t - 1] @ found["h"].values[t]
        injected = 0.25 if t >= 20 else 0.0
        expected = np.clip(3.0 * net + labels[t] + injected, -1, 1)
        assert found["y"].values[t] == pytest.approx(expected, abs=1e-12)


def test_amounts_last_as_long_as_they_are_given():
    for amount, until, expected in (
        ((1.0, 2.0, 3.0), 6, [0, 0, 0, 0, 1, 2, 0, 0, 0]),
        ((1.0, 2.0, 3.0), None, [0, 0, 0, 0, 1, 2, 3, 0, 0]),
        (2, None, [0, 0, 0, 0, 2, 2, 2, 2, 2]),
    ):
        current = Current(into="h", amount=amount, at=4, until=until)
        assert current.strength(np.arange(9)).tolist() == expected


def test_noise_on_synapses_is_what_is_drawn():
    points, labels = stream(30)
    p = SMALL.replace(learning_rate=0.0, tiles="first")
    done = [Noise(on="W", size=0.01, seed=5, at=10, until=20)]
    run = ReferenceCircuit(p, LIFT, perturbations=done).run(points, labels, snapshot_every=1)
    steps = np.diff(run["W_snapshots"].values, axis=0)  # after presentations 1, 2, ...
    cells = np.arange(steps[0].size).reshape(steps[0].shape)
    for t in range(1, 30):
        drawn = 0.01 * gaussian(5, NOISY.index("W"), t, 0, cells) if 10 <= t < 20 else 0 * cells
        assert np.abs(steps[t - 1] - drawn).max() <= 1e-15
    # Whoever gives noise to several with one seed means independent noise.
    done = [Noise(on=on, size=1.0) for on in NOISY]
    parts = ReferenceCircuit(SMALL, LIFT, perturbations=done).parts
    sizes = parts.streams(np.arange(9), True)["strengths"][7]
    s = SimpleNamespace(strengths=sizes, number=7)
    noises = [part for part in parts.all if isinstance(part, NoiseOn)]
    assert len(noises) == len(NOISY)
    for part in noises:
        number = NOISY.index(part.code[0][-1].partition("_")[2])
        first = np.ravel(part.drawn(s, 2))[:1]
        assert first == sizes[number] * gaussian(0, number, 7, 2, 0)


def test_noise_of_a_step_goes_with_its_root():
    """White noise: variances add up to size^2 per time constant, whatever dt is."""
    for name, tau in (("h", "tau_h_"), ("u", "tau_u_"), ("V", "tau_V_")):
        for dt in ("0.5 ms", "0.25 ms"):
            p = SMALL.replace(dt=dt)
            circuit = ReferenceCircuit(p, LIFT, perturbations=[Noise(on=name, size=0.02)])
            of_step = circuit.parts.streams(np.array([0]), True)["strengths"][0, 0]
            assert of_step**2 * getattr(p, tau) / p.dt_ == pytest.approx(0.02**2)


def test_frozen_weights_do_not_change():
    points, labels = stream()
    for name in ("W", "b", "w"):
        done = [Freeze(what=(name, "tiles"), at=20, until=40)]
        circuit = ReferenceCircuit(SMALL, LIFT, perturbations=done)
        run = circuit.run(points, labels, snapshot_every=1)
        moved = np.abs(np.diff(run[f"{name}_snapshots"].values, axis=0)).reshape(59, -1).max(axis=1)
        assert (moved[19:39] == 0).all()  # presentations 20 to 39
        assert (moved[:19] > 0).any()
        assert (moved[39:] > 0).any()
    for frozen, times in ((Freeze(what="tiles", at=5), range(5)), (Freeze(until=5), range(5, 60))):
        circuit = ReferenceCircuit(SMALL, LIFT, perturbations=[frozen])
        recruited = circuit.run(points, labels)["recruited"].values
        used = recruited[recruited >= 0]
        assert used.min() == times[0]
        assert used.max() in times
    # V stays as the last presentation left it.
    circuit = ReferenceCircuit(SMALL, LIFT, perturbations=[Freeze(what="V", at=20, until=23)])
    V = circuit.run(points[:24], labels[:24], record=("V",))["V_trace"].values
    assert (V[20:23] == V[19, -1]).all()
    assert np.abs(V[23, -1] - V[19, -1]).max() > 1e-3


def test_a_delay_is_that_of_the_model():
    points, labels = stream()
    model = CircuitModel(delay="2 ms")
    given = ReferenceCircuit(SMALL, LIFT, model=model).run(points, labels)
    found = ReferenceCircuit(SMALL, LIFT, perturbations=[Delay(time="2 ms")]).run(points, labels)
    assert (found["h"] == given["h"]).all()
    both = {"model": model, "perturbations": [Delay(time="1 ms")]}
    refused(lambda: ReferenceCircuit(SMALL, LIFT, **both), "2 ms", ParameterError)


def test_unequal_gains_have_mean_one():
    factors = np.concatenate([UnequalGain(spread=0.5, seed=s).factors(100) for s in range(100)])
    # The standard error of the mean of 10,000 such numbers is 0.005.
    assert factors.mean() == pytest.approx(1, abs=0.02)
    assert np.log(factors).std() == pytest.approx(0.5, abs=0.02)
    assert UnequalGain(spread=0).factors(3).tolist() == [1, 1, 1]


def test_a_prediction_finds_the_circuit_as_the_next_presentation_would():
    points, labels = stream(30)
    lesion = Lesion(tiles=0.5, at=30)
    circuit = ReferenceCircuit(SMALL, LIFT, perturbations=[lesion])
    circuit.run(points, labels)
    gone = lesion.chosen("tiles", np.ones(12, bool))
    assert (circuit.state.recruited[gone] != GONE).any()
    assert not circuit.respond(points)[:, gone].any()
    noisy = ReferenceCircuit(SMALL, LIFT, perturbations=[Noise(on="h", size=0.1)])
    noisy.run(points, labels)
    first = noisy.respond(points[[0, 0]])
    assert np.abs(first[0] - first[1]).max() > 1e-3  # another presentation, other noise
    assert (noisy.respond(points[[0, 0]]) == first).all()  # the same call, the same noise
    weights = ReferenceCircuit(SMALL, LIFT, perturbations=[Noise(on="W", size=0.1)])
    weights.run(points, labels)
    before = weights.state.W
    weights.predict(points)
    assert np.array_equal(weights.state.W, before)


# Pieces of a stream: the first presentation of each is not loaded by the one before


PIECES = {
    "tiles frozen from the start": ("recruit", [Freeze(what="tiles", until=5)]),
    "V frozen from the start, tiles where a piece begins and where a lesion cuts the stream": (
        "recruit",
        [Freeze(what="V", until=4), Freeze(what="tiles", at=3, until=20), Lesion(tiles=(0,), at=6)],
    ),
    "V frozen from the start and after a point that no tile responds to": (
        "first",
        [Freeze(what="V", until=4), Freeze(what="V", at=21, until=25)],
    ),
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces_are_perturbed_as_the_whole_is(name):
    tiles, done = PIECES[name]
    p = SMALL.replace(tiles=tiles)
    points, labels = stream(30)
    points[20] = 2.5  # from where no tile is near; recruited, it has no neighbours
    # Where the first points are tiles, the first piece has to hold them all.
    cuts = [0, 21, 22, 30] if tiles == "first" else [0, 4, 12, 21, 22, 30]
    expected = ReferenceCircuit(p, LIFT, perturbations=done).run(points, labels)
    for engine, edges in (("reference", cuts), ("numpy", cuts), ("numpy", [0, 30])):
        circuit = make_circuit(engine, p, LIFT, perturbations=done)
        parts = [circuit.run(points[a:b], labels[a:b]) for a, b in itertools.pairwise(edges)]
        for variable in ("h", "u", "y"):
            together = np.concatenate([part[variable].values for part in parts])
            # Rounding of numbers of order ten: without V to hold them, rates rise.
            assert np.abs(together - expected[variable].values).max() <= 1e-9
        assert (circuit.state.recruited == expected["recruited"].values).all()


def test_a_first_presentation_has_the_v_it_starts_with():
    """Frozen from the start, V is that of rest at the scale of the drive."""
    points, _ = stream(3)
    for centers in (None, np.random.default_rng(3).uniform(-1, 1, (12, 2))):
        circuits = (
            ReferenceCircuit(SMALL, LIFT, perturbations=done, tile_centers=centers)
            for done in ([Freeze(what="V")], [])
        )
        frozen, free = (circuit.run(points[:1], record=("V",)) for circuit in circuits)
        start, left = (run["V_trace"].values[0, 0] for run in (frozen, free))
        # The first step of the free one moves V by a part of itself.
        assert 0.1 < np.linalg.norm(start) / np.linalg.norm(left) < 10
        assert (frozen["V_trace"].values[0] == start).all()
        assert frozen["h"].values.any()


# Lesions one after the other


@pytest.mark.parametrize("name", ["tiles", "lateral"])
def test_lesions_take_what_earlier_ones_have_left(name):
    """Three times a quarter is three quarters, in whatever order they are given."""
    given = [Lesion(**{name: 0.25}, at=at) for at in (30, 10, 20)]
    lesions = Lesioned(ReferenceCircuit(SMALL, LIFT), given)
    hit = [lesions.hit(name, at) for at in (9, 10, 20, 30)]
    assert [one.mean() for one in hit] == [0, 0.25, 0.5, 0.75]
    for before, after in itertools.pairwise(hit):
        assert (after | before == after).all()


def test_states_of_lesioned_and_delayed_circuits(tmp_path):
    """A state with lesions or a delay needs a circuit with them; spiking circuits have neither."""
    points, labels = stream(30)
    lesion = Lesion(tiles=(0, 1), at=5)
    for done, words in ((lesion, "2 tiles"), (Delay(time="2 ms"), "delay")):
        circuit = ReferenceCircuit(SMALL, LIFT, perturbations=[done])
        circuit.run(points[:8], labels[:8])
        for kind in (ReferenceCircuit, ManifoldCircuit, SpikingCircuit):
            other = kind(SMALL, LIFT)
            refused(lambda o=other, c=circuit: setattr(o, "state", c.state), words, InputError)
        path = circuit.save(tmp_path / "circuit.nc")
        refused(lambda p=path: SpikingCircuit.load(p, "numpy"), "perturbations", ParameterError)
        if done is lesion:
            same = ManifoldCircuit(SMALL, LIFT, "numpy", perturbations=[lesion])
            same.state = circuit.state
            found, expected = (one.run(points[8:], labels[8:]) for one in (same, circuit))
            assert (found["recruited"].values == expected["recruited"].values).all()
    options = {"spiking": SpikingParameters(), "perturbations": [Noise(on="h", size=0.1)]}
    refused(lambda: make_circuit("numpy", SMALL, LIFT, **options), "perturbations", InputError)


def test_noise_on_y_leaves_another_readout_its_range():
    model = CircuitModel(readout=Rule("y = mu*net + z", lambda net, z, mu: mu * net + z))
    p, (points, labels) = SMALL.replace(mu=5.0), stream()
    done = [Noise(on="y", size=0.1, at=30)]
    free, noisy = (
        ReferenceCircuit(p, LIFT, model=model, perturbations=some).run(points, labels)["y"].values
        for some in ([], done)
    )
    assert (noisy[:30] == free[:30]).all()
    assert np.abs(noisy[30:] - free[30:]).max() > 0.1
    assert np.abs(noisy).max() > 1.5
    brian = ManifoldCircuit(p, LIFT, "numpy", model=model, perturbations=done)
    # mu multiplies what rounding leaves in w.h.
    assert np.abs(brian.run(points, labels)["y"].values - noisy).max() <= 5e-10


def test_gaussian_numbers_follow_splitmix():
    """The key of zeros by hand, in Python's whole numbers."""

    def mix(key):
        key = (key + 0x9E3779B97F4A7C15) % 2**64
        key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) % 2**64
        return key ^ (key >> 31)

    assert mix(0) == 0xE220A8397B1DCDAF  # the first number of SplitMix64 from 0, as published
    for counters in ((0,) * 5, (3, 1, 41, 59, 26), (2**31 - 1, 6, 10**9, 10**6, 10**7)):
        key = 0
        for counter in counters:
            key = mix((key + counter) % 2**64)
        first, second = (((k >> 11) + 0.5) / 2**53 for k in (key, mix(key)))
        expected = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)
        assert gaussian(*counters) == pytest.approx(expected, abs=1e-14)


# Values


def test_perturbations_as_they_are_typed():
    for text, value in {
        "lesion:tiles=.5,at=1000": Lesion(tiles=0.5, at=1000),
        "lesion:tiles=3+5, seed=2": Lesion(tiles=(3, 5), seed=2),
        "lesion:tiles=3": Lesion(tiles=(3,)),
        "current:into=h,amount=0.1+0.2,at=5": Current(into="h", amount=(0.1, 0.2), at=5),
        "noise:on=W,size=1e+2": Noise(on="W", size=100),
        "freeze": Freeze(),
        "delay:time=2ms": Delay(time="2 ms"),
        "gain:spread=0.2": UnequalGain(spread=0.2),
    }.items():
        assert parse_perturbation(text) == value


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ("lesin.*lesion", ["lesin:tiles=0.5"]),
        ("''", [""]),
        ("tiles", ["lesion", "lesion:tiles", "lesion:tiles=", "lesion:tiles=-1"]),
        ("tiles.*1.5", ["lesion:tiles=1.5"]),
        ("'tils'", ["lesion:tils=3"]),
        ("at", ["freeze:at=-1", "freeze:at=true", f"freeze:at={2**31}"]),
        ("on", ["noise:on=q,size=1", "noise:on=h,size=1,on=u"]),
        ("size", ["noise:on=h,size=nan", "noise:on=h,size=-1"]),
        ("seed", [f"noise:on=h,size=1,seed={2**31}"]),
        ("amount", ["current:into=h,amount=inf"]),
        ("steps", ["current:into=y,amount=1,steps=1+2"]),
        ("until=5.*at=5", ["freeze:at=5,until=5"]),
        ("what", ["freeze:what=W+W", "freeze:what=h"]),
        ("finite", ["delay:time=1e400 s"]),
        ("spread", ["gain:spread=4", "gain:spread=-1"]),
    ],
)
def test_typed_perturbations_that_are_refused(words, texts):
    for text in texts:
        refused(lambda t=text: parse_perturbation(t), words, ParameterError)


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ([Lesion(tiles=(12,))], "12"),
        ([Lesion(tiles=0.04)], "0.04"),
        ([Lesion(tiles=1.0)], "12 tiles"),
        ([Lesion(interneurons=(0, 1)), Lesion(interneurons=(2,), at=9)], "3 interneurons"),
        ([Current(into="u", amount=1, cells=(3,))], "cell 3 of u"),
        ([Current(into="h", amount=1, steps=(1, 2))], "2 steps: .*steps_per_presentation=30"),
        ([Delay(time="1 ms"), Delay(time="2 ms")], "Delay"),
        ([UnequalGain(spread=0), UnequalGain(spread=0)], "UnequalGain"),
        ([Timed(at=3)], "Lesion"),  # the base class
        ([{"kind": "noise"}], "Lesion"),
        ("lesion:tiles=1", "list"),
        (7, "list"),
    ],
)
def test_perturbations_that_do_not_fit_a_circuit(done, words):
    refused(lambda: ReferenceCircuit(SMALL, LIFT, perturbations=done), words, ParameterError)


def test_the_closed_form_refuses_what_it_does_not_know():
    for done in (
        *(Noise(on="h", size=0.1), Noise(on="V", size=0.1), Current(into="u", amount=0.1)),
        Current(into="h", amount=0.1, steps=(1.0,) * STEPS),
        *(Freeze(what="V"), Lesion(lateral=0.1), UnequalGain(spread=0.1), Delay(time="2 ms")),
    ):
        options = {"settling": "exact", "perturbations": [done]}
        refused(lambda o=options: ReferenceCircuit(SMALL, LIFT, **o), error=ParameterError)


def test_the_closed_form_takes_the_rest():
    """Without an interneuron u = s d keeps its direction, but for the component that is gone."""
    points, labels = stream()
    p = SMALL.replace(steps_per_presentation=500)
    lost = Lesion(interneurons=(2,), at=10)
    done = [
        lost,
        Lesion(tiles=0.3, feedforward=0.1, classifier=0.1, at=20),
        *(Noise(on=name, size=0.002) for name in "Wbwy"),
        Current(into="h", amount=0.05),
        Current(into="y", amount=0.05),
        Freeze(at=40, until=50),
    ]
    slow = ReferenceCircuit(p, LIFT, perturbations=done).run(points, labels)
    exact, without, plain = (
        ReferenceCircuit(p, LIFT, perturbations=some, settling="exact").run(points, labels)
        for some in (done, [lost], [])
    )
    for name in ("h", "u", "W"):
        assert np.abs(slow[name] - exact[name]).max() <= 1e-7  # as far as 500 steps settle
    assert (slow["u"][10:, 2] == 0).all()
    assert (slow["u"][:10, 2] > 0).all()
    assert np.abs(without["h"] - plain["h"]).max() <= 1e-12  # nobody else notices


def test_users_may_not_set_what_perturbations_set():
    points, labels = stream(10)
    circuit = ManifoldCircuit(SMALL, LIFT, "numpy", perturbations=[Noise(on="h", size=0.1)])
    circuit.network["inputs"].perturbed_0 = 3
    refused(lambda: circuit.run(points, labels), "inputs.perturbed_0 was set", InputError)
