"""The Brian2 circuit against the NumPy reference, on every engine."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from circuits import CircuitParameters, ManifoldCircuit, Noise, ReferenceCircuit, SphereLift
from circuits.engines.solvers import make_circuit
from tests.conftest import CONSTANT_GAIN, FIRST_TILES, differences, moons, small_circuit

# Agreement is not about settling.
pytestmark = [
    pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning"),
    pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning"),
]

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


@pytest.mark.parametrize(
    ("engine", "tiles", "gain"),
    [
        ("numpy", "recruit", "control"),
        ("numpy", "first", "auto"),
        ("cpp_standalone", "recruit", "auto"),
        pytest.param("cython", "recruit", "control", marks=pytest.mark.slow),
    ],
)
def test_every_step_of_25_presentations(engine, tiles, gain):
    parameters = CircuitParameters(
        **CONSTANT_GAIN | {"gain": gain, "steps_per_presentation": 100},
        **{"n_tiles": 40 if tiles == "recruit" else 20, "tiles": tiles, "tile_radius": 0.4},
        **{"n_readouts": 2, "mu": (1000.0, 50.0)},
    )
    points, classes, _ = moons(25, seed=3, after=0)
    labels = np.zeros((25, 2), dtype=int)
    labels[3, 0], labels[5, 1] = classes[[3, 5]]
    record = ("h", "u", "V", "y")
    run, reference = (
        circuit.run(points, labels, record=record, snapshot_every=4)
        for circuit in (
            ManifoldCircuit(parameters, LIFT, engine),
            ReferenceCircuit(parameters, LIFT),
        )
    )
    assert run["V_trace"].shape == (25, 100, 4, parameters.n_tiles)
    assert np.abs(reference["y_trace"].values).max() > 0.1  # the labels do something
    # Each step multiplies and adds a few hundred numbers of order one: 1e-10 leaves five digits
    # for their rounding to grow over 2500 steps, and is far below any error of order or timing.
    found = differences(run.astype(float), reference.astype(float), reference.data_vars)
    assert max(found.values()) <= 1e-10, found
    assert set(run.variables) == set(reference.variables)
    for name in run.variables:
        assert run[name].dims == reference[name].dims


def test_one_object_of_each_kind_on_cython(quick_cython, monkeypatch):
    """A sum over synapses, steps of synapses and of cells, and noise.

    The engine's other objects run in NumPy: Cython compiles four modules instead of thirty.
    """
    from brian2 import CodeRunner, StateMonitor
    from brian2.codegen.runtime.numpy_rt.numpy_rt import NumpyCodeObject

    compiled = {"lateral_summed_variable_inhibition_pre", "lateral_stateupdater"}
    compiled |= {"excitatory_stateupdater", "excitatory_noise_h"}
    seen = set()

    def extend(network):
        for item in network.sorted_objects:
            if item.name in compiled:
                seen.add(item.name)
            elif isinstance(item, CodeRunner):
                item.codeobj_class = NumpyCodeObject

    monitor = partial(StateMonitor, codeobj_class=NumpyCodeObject)
    monkeypatch.setattr("brian2.StateMonitor", monitor)
    parameters = small_circuit(tile_radius=1.0)
    points, _, labels = moons(4, seed=2, after=0)
    done = [Noise(on="h", size=0.05, seed=2**31 - 1)]
    circuit = ManifoldCircuit(parameters, LIFT, "cython", extend=extend, perturbations=done)
    run = circuit.run(points, labels)
    assert seen == compiled
    kinds = {
        type(item.codeobj).__name__ for item in circuit.network.sorted_objects if item.name in seen
    }
    assert kinds == {"CythonCodeObject"}
    reference = ReferenceCircuit(parameters, LIFT, perturbations=done).run(points, labels)
    found = differences(run, reference, ("h", "u", "y", "V", "W", "b", "w", "change"))
    assert max(found.values()) <= 1e-10, found  # rounding, as above
    assert np.abs(reference["w"].values).max() > 0.1


@pytest.mark.parametrize(
    ("n_points", "seed", "changes"),
    [
        (400, 0, {}),
        (400, 1, FIRST_TILES),
        pytest.param(2000, 1, {}, marks=pytest.mark.slow),
        pytest.param(2000, 0, CONSTANT_GAIN | FIRST_TILES, marks=pytest.mark.slow),
    ],
)
def test_long_run_of_two_moons(n_points, seed, changes):
    points, _, labels = moons(n_points, seed=seed, after=200)
    parameters = CircuitParameters(**changes)
    run = ManifoldCircuit(parameters, LIFT, "cpp_standalone").run(points, labels)
    reference = ReferenceCircuit(parameters, LIFT).run(points, labels)
    covered = reference["covered"].values
    assert covered.mean() > 0.95
    assert np.abs(run["h"].values - reference["h"].values)[covered].max() <= 1e-8
    found = differences(run, reference, ("W", "b", "w"))
    assert max(found.values()) <= 1e-10, found
    assert (np.sign(run["y"].values) == np.sign(reference["y"].values)).all()


VARIANTS = [
    {"readout": "tanh"},
    {"readout_rate": 0.05},
    {"gain": 200.0},
    {"gain": 200.0, "reset": False},
    {"tiles": "first"},
    {"recruit_below": 0.9},
    {"clamp_labels": True},
    {"readout_rule": "gated", "readout_rate": 0.9},
    {"recycle": True, "recruit_below": 0.9},
]
COMBINED = {"recycle": True, "readout": "tanh", "readout_rule": "gated", "readout_rate": 0.9}


@pytest.mark.parametrize(
    ("engine", "changes"),
    [
        *(("numpy", changes) for changes in VARIANTS),
        ("cpp_standalone", COMBINED),
        *(pytest.param("cpp_standalone", changes, marks=pytest.mark.slow) for changes in VARIANTS),
    ],
)
def test_variants(engine, changes):
    parameters = small_circuit(tile_radius=1.0, steps_per_presentation=100, mu=2.0, **changes)
    points, _, labels = moons(25, seed=5, after=10)
    run = ManifoldCircuit(parameters, LIFT, engine).run(points, labels)
    reference = ReferenceCircuit(parameters, LIFT).run(points, labels)
    found = differences(run, reference, ("h", "u", "y", "V", "W", "b", "w"))
    assert max(found.values()) <= 1e-10, found  # rounding, as above
    last = "readout_rule" if "readout_rule" in changes else list(changes)[-1]
    default = parameters.replace(**{last: CircuitParameters().as_dict()[last]})
    default = ReferenceCircuit(default, LIFT).run(points, labels)
    assert np.abs(default["y"].values - reference["y"].values).max() > 1e-3  # the variant matters


sizes = st.fixed_dictionaries(
    {
        "n_tiles": st.integers(1, 8),
        "n_interneurons": st.integers(1, 4),
        "n_readouts": st.integers(1, 3),
        "steps_per_presentation": st.integers(1, 25),
    }
)
values = st.fixed_dictionaries(
    {
        "tile_radius": st.floats(0.3, 2.0),
        "mu": st.floats(0.0, 2000.0),
        "learning_rate": st.floats(0.0, 0.2),
        "readout_rate": st.one_of(st.just("running_mean"), st.floats(0.0, 1.0)),
        "reset": st.booleans(),
        "tau_h": st.floats(20.0, 200.0).map(lambda value: f"{value} ms"),
        "tau_u": st.floats(10.0, 100.0).map(lambda value: f"{value} ms"),
        "tau_V": st.floats(1.0, 9.0).map(lambda value: f"{value} ms"),
        "dt": st.sampled_from(["0.9765625 ms", "1 ms", "0.3 ms"]),
    }
)


def assert_agrees(engine: str, parameters: CircuitParameters, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, (12, 2))
    labels = rng.choice([-1, 0, 0, 1], (12, parameters.n_readouts))
    centers = rng.uniform(-1, 1, (parameters.n_tiles, 2))
    run = ManifoldCircuit(parameters, LIFT, engine, tile_centers=centers).run(points, labels)
    reference = ReferenceCircuit(parameters, LIFT, tile_centers=centers).run(points, labels)
    for name in ("h", "u", "y", "V", "W", "b", "w"):
        # mu multiplies what rounding leaves in w.h, hence its place in the bound of y.
        bound = 1e-10 * (max(1.0, max(parameters.mu_per_readout)) if name == "y" else 1.0)
        assert np.abs(run[name].values - reference[name].values).max() <= bound, name


@settings(max_examples=5)
@given(sizes, values, st.integers(0, 2**16))
def test_random_circuits_at_run_time(shape, parameters, seed):
    assert_agrees("numpy", CircuitParameters(**shape, **parameters), seed)


@settings(max_examples=30)
@given(st.integers(1, 60), values, st.integers(0, 2**16))
@example(1, {"learning_rate": 0.0, "mu": 0.0}, 0)
def test_random_parameters_on_one_build(steps, parameters, seed):
    shape = {"n_tiles": 6, "n_interneurons": 2, "n_readouts": 2, "steps_per_presentation": steps}
    assert_agrees("cpp_standalone", CircuitParameters(**shape, **parameters), seed)


@settings(max_examples=8)
@given(st.lists(st.integers(1, 59), min_size=1, max_size=4, unique=True))
@example([1, 7])  # fewer points than there are tiles
@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("solver", ["cpp_standalone", "reference", "exact"])
def test_a_stream_cut_anywhere_gives_what_the_uncut_stream_gives(solver, reset, cuts):
    parameters = small_circuit(tile_radius=1.0, reset=reset, n_readouts=2, mu=(1000.0, 3.0))
    points, _, labels = moons(60, seed=2, after=10)
    whole = make_circuit(solver, parameters, LIFT).run(points, labels)
    pieces = make_circuit(solver, parameters, LIFT)
    edges = [0, *sorted(cuts), len(points)]
    runs = [pieces.run(points[a:b], labels[a:b]) for a, b in itertools.pairwise(edges)]
    # NumPy repeats itself to the last bit. The program starts each piece from a drive W x that
    # NumPy has summed in another order: rounding.
    bound = 0.0 if solver != "cpp_standalone" else 1e-10
    for name in ("h", "u", "y", "change"):
        joined = np.concatenate([run[name].values for run in runs])
        assert np.abs(joined - whole[name].values).max() <= bound, name
    for name in ("W", "b", "w", "V", "recruited"):
        assert np.abs(runs[-1][name].values - whole[name].values).max() <= bound, name


def test_streams_longer_than_a_chunk(monkeypatch):
    parameters = small_circuit(tile_radius=1.0)
    points, _, labels = moons(50, seed=2, after=10)
    whole = ManifoldCircuit(parameters, LIFT, "cpp_standalone").run(
        points, labels, snapshot_every=7
    )
    monkeypatch.setattr("circuits.base.CHUNK", 16)
    pieces = ManifoldCircuit(parameters, LIFT, "cpp_standalone").run(
        points, labels, snapshot_every=7
    )
    for name in ("h", "u", "y", "W", "b", "w", "W_snapshots", "w_snapshots", "b_snapshots"):
        # The drive at the start of a chunk is summed by NumPy: rounding.
        assert np.abs(pieces[name].values - whole[name].values).max() <= 1e-12, name
    assert pieces["W_snapshots"].shape[0] == 7
