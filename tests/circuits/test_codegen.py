"""Generated code: one pass over V where that gives the same numbers; a notice before Cython."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import CircuitModel, ManifoldCircuit, ReferenceCircuit, Rule, SphereLift
from circuits.engines.cache import say_once
from circuits.engines.codegen import using
from circuits.engines.scratch import scratch_folder
from tests.conftest import CONSTANT_GAIN, moons, small_circuit

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
# Five interneurons: four rows at once, and one that is left.
# Slow cells under a constant gain, so that what a test changes is seen, and nothing diverges.
SLOW = {name: value for name, value in CONSTANT_GAIN.items() if name != "steps_per_presentation"}
PARAMETERS = small_circuit(tile_radius=1.0, n_tiles=7, n_interneurons=5, **SLOW)
POINTS, _, LABELS = moons(8, after=3)
TRACES = ("h", "u", "V")

# The compiler adds in another order than NumPy, over 240 steps.
CLOSE = 1e-10

FUSED = "lateral_step_codeobject"
SEPARATE = {
    "lateral_summed_variable_inhibition_pre_codeobject",
    "lateral_summed_variable_excitation_post_codeobject",
    "lateral_stateupdater_codeobject",
}

pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")


def make(model=None, parameters=PARAMETERS, extend=None):
    return ManifoldCircuit(parameters, LIFT, "cpp_standalone", model=model, extend=extend)


def functions(circuit):
    """Names of the functions that the program calls, and that it has, for the lateral synapses."""
    with scratch_folder() as folder:
        circuit._engine._generate(folder, (), False)
        main = (folder / "main.cpp").read_text()
        sources = {path.stem for path in (folder / "code_objects").glob("lateral_*.cpp")}
    names = {FUSED, *SEPARATE}
    called = {name for name in names if f", _run_{name});" in main}
    assert called == sources & names
    return called


def assert_agree(circuit, solver, relative=False):
    run, expected = (one.run(POINTS, LABELS, record=TRACES) for one in (circuit, solver))
    for name in [f"{trace}_trace" for trace in TRACES]:
        size = np.abs(expected[name].values).max() if relative else 1
        assert np.abs(run[name].values - expected[name].values).max() <= CLOSE * size, name
    return run


# Rows are taken four at a time: left over, just four, and twice four and one. Quick tests have two
# in test_agreement.py, and five with the monitors below.
@pytest.mark.parametrize(
    "k", [9, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 4, 5, 8))]
)
def test_one_pass_gives_the_steps_of_the_reference(k):
    parameters = PARAMETERS.model_copy(update={"n_interneurons": k})
    circuit = make(parameters=parameters)
    assert functions(circuit) == {FUSED}
    assert_agree(circuit, ReferenceCircuit(parameters, LIFT))


def test_monitors_watch_the_synapses_of_the_one_pass():
    from brian2 import StateMonitor

    circuit = make()
    network = circuit.network
    every = StateMonitor(network["lateral"], "V", record=True, when="end", name="all_V")
    some = StateMonitor(network["lateral"], "V", record=[3, 11], when="end", name="some_V")
    none = StateMonitor(
        network["lateral"], "V", record=[0], when="end", dt=1e6 * PARAMETERS.dt, name="rare_V"
    )
    network.add(every, some, none)
    assert functions(circuit) == {FUSED}
    solver = ReferenceCircuit(PARAMETERS, LIFT)
    expected = solver.run(POINTS, LABELS, record=("V",))["V_trace"].values
    circuit.run(POINTS[:7], LABELS[:7])
    circuit.run(POINTS[7:], LABELS[7:])
    expected = expected.reshape(len(POINTS) * PARAMETERS.steps_per_presentation, -1)
    assert every.V.shape == expected.T.shape
    assert np.abs(every.V.T - expected).max() <= CLOSE
    assert np.array_equal(every.V[[3, 11]], some.V)
    assert none.V.shape[1] <= 1


def acting_between(network):
    """V grows between the sums and its own step: in one pass the step would not see it."""
    network["lateral"].run_regularly(
        "V = 1.01*V", clock=network["lateral"].clock, when="after_sums", name="growing"
    )
    network.add(network["lateral"].contained_objects[-1])


def without_inhibition(network):
    network["lateral"].summed_updaters["inhibition_pre"].active = False


MASK = np.ones((PARAMETERS.n_interneurons, PARAMETERS.n_tiles), bool)
MASK[1, 2] = MASK[4, 6] = False
V = "dV/dt = (u_post*h_pre - V)/tau_V"
DRIVEN = "(clock-driven)"
READS_BY_NAME = f"{V} + 0.001*seen/tau_V : 1 {DRIVEN}\nseen = excitation_post : 1"
READS_NO_SUM = f"{V} - 0.1*q*V/tau_V : 1 {DRIVEN}\ndq/dt = (V - q)/tau_V : 1 {DRIVEN}"


def lateral(text):
    return {"model": CircuitModel(lateral=Rule(text))}


# What a circuit has of its own, and the functions that its program goes over V with.
CHANGES = {
    "an object between": ({"extend": acting_between}, SEPARATE),
    "a sum switched off": ({"extend": without_inhibition}, {FUSED}),
    "a delay": ({"model": CircuitModel(delay=2 * PARAMETERS.dt)}, {FUSED}),
    "rates first": ({"model": CircuitModel(each_step=("sums", "rates", "lateral"))}, SEPARATE),
    "a mask": ({"model": CircuitModel(connections={"lateral": MASK})}, SEPARATE),
    "reads a sum": (lateral(f"{V} + 0.001*inhibition_pre/tau_V : 1 {DRIVEN}"), SEPARATE),
    "reads a sum by another name": (lateral(READS_BY_NAME), SEPARATE),
    "is random": (lateral(f"{V} + 0*xi/sqrt(tau_V) : 1 {DRIVEN}"), SEPARATE),
    "reads no sum": (lateral(READS_NO_SUM), {FUSED}),
}
QUICK = ("an object between", "a sum switched off")


def test_one_pass_only_where_it_is_the_same():
    for name, (options, expected) in CHANGES.items():
        assert functions(make(**options)) == expected, name


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CHANGES],
)
def test_passes_give_the_numbers_of_brian2(name):
    options, _ = CHANGES[name]
    circuit = make(**options)
    if name in ("a delay", "rates first", "a mask"):  # which the reference can do as well
        solver = ReferenceCircuit(PARAMETERS, LIFT, **options)
    else:
        solver = ManifoldCircuit(PARAMETERS, LIFT, "numpy", **options)
    # Without inhibition rates grow: their rounding is relative.
    run = assert_agree(circuit, solver, relative=name == "a sum switched off")
    if name == "a sum switched off":
        assert (circuit.network["excitatory"].inhibition == 0).all()
    if name == "an object between":
        plain = ReferenceCircuit(PARAMETERS, LIFT).run(POINTS, LABELS, record=TRACES)
        for trace in [f"{trace}_trace" for trace in TRACES]:
            assert np.abs(run[trace].values - plain[trace].values).max() > 1e-4, trace


def test_cython_is_announced_before_the_first_module(tmp_path, capsys, quick_cython):
    """Once per process, and not for modules that were compiled before."""
    from brian2 import prefs
    from brian2.codegen.runtime.cython_rt.extension_manager import cython_extension_manager

    def load(code):
        cython_extension_manager._code_cache.clear()  # as in a new process
        with using(target="cython"):
            cython_extension_manager.create_extension(code)
        return capsys.readouterr().err

    original = cython_extension_manager._load_module
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(prefs, "codegen.runtime.cython.cache_dir", str(tmp_path))
        patch.setattr(cython_extension_manager, "_code_cache", {})
        say_once.cache_clear()
        said = load("x = 1")
        assert "Cython" in said
        assert len(said.splitlines()) == 1
        assert load("x = 2") == ""  # said once
        say_once.cache_clear()
        assert load("x = 1") == ""  # found
    assert cython_extension_manager._load_module == original
