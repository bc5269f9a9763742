"""The compiled circuit goes once over V where it may, and gives the same numbers where it does."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import CircuitModel, ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.engines.scratch import scratch_folder
from circuits.rules import Rule
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


def assert_agree(circuit, model=None, parameters=PARAMETERS):
    run = circuit.run(POINTS, LABELS, record=TRACES)
    solver = ReferenceCircuit(parameters, LIFT, model=model)
    expected = solver.run(POINTS, LABELS, record=TRACES)
    for name in [f"{trace}_trace" for trace in TRACES]:
        assert np.abs(run[name].values - expected[name].values).max() <= CLOSE, name


@pytest.mark.parametrize("k", [1, 2, 4, 5, 8, 9])
def test_one_pass_gives_the_steps_of_the_reference(k):
    parameters = PARAMETERS.model_copy(update={"n_interneurons": k})
    circuit = make(parameters=parameters)
    assert functions(circuit) == {FUSED}
    assert_agree(circuit, parameters=parameters)


def test_one_pass_with_a_delay_line():
    model = CircuitModel(delay=2 * PARAMETERS.dt)
    circuit = make(model)
    assert functions(circuit) == {FUSED}
    assert_agree(circuit, model)


def test_users_see_the_objects_and_the_schedule_of_brian2():
    circuit = make()
    assert functions(circuit) == {FUSED}
    lateral = circuit.network["lateral"]
    parts = {lateral.name, *(item.name for item in lateral.contained_objects)}
    names = [item.name for item in circuit.network.sorted_objects if item.name in parts]
    assert [name for name in names if name not in ("lateral", "lateral_restart")] == [
        "lateral_summed_variable_excitation_post",
        "lateral_summed_variable_inhibition_pre",
        "lateral_stateupdater",
    ]


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


def between(network):
    """An object that acts between the sums and the step of V, and changes nothing."""
    first = network["lateral"].summed_updaters["inhibition_pre"].order
    network["inhibitory"].run_regularly(
        "u_before = u_before",
        clock=network["lateral"].clock,
        when="groups",
        order=first + 1,
        name="between",
    )
    network.add(network["inhibitory"].contained_objects[-1])


def test_what_acts_in_between_keeps_the_passes_apart():
    circuit = make(extend=between)
    assert functions(circuit) == SEPARATE
    assert_agree(circuit)


def test_what_acts_in_between_is_seen_to_act():
    """V grows between the sums and its own step: in one pass the step would not see it."""

    def grow(network):
        network["lateral"].run_regularly(
            "V = 1.01*V",
            clock=network["lateral"].clock,
            when="groups",
            order=network["lateral"].summed_updaters["inhibition_pre"].order + 1,
            name="growing",
        )
        network.add(network["lateral"].contained_objects[-1])

    compiled = make(extend=grow)
    assert functions(compiled) == SEPARATE
    run = compiled.run(POINTS, LABELS, record=TRACES)
    runtime = ManifoldCircuit(PARAMETERS, LIFT, "numpy", extend=grow)
    expected = runtime.run(POINTS, LABELS, record=TRACES)
    plain = make().run(POINTS, LABELS, record=TRACES)
    for name in [f"{trace}_trace" for trace in TRACES]:
        assert np.abs(run[name].values - expected[name].values).max() <= CLOSE, name
        assert np.abs(run[name].values - plain[name].values).max() > 1e-4, name


def test_rates_before_synapses_keep_the_passes_apart():
    model = CircuitModel(each_step=("sums", "rates", "lateral"))
    circuit = make(model)
    assert functions(circuit) == SEPARATE
    assert_agree(circuit, model)


def test_masked_synapses_keep_the_passes_apart():
    mask = np.ones((PARAMETERS.n_interneurons, PARAMETERS.n_tiles), bool)
    mask[1, 2] = mask[4, 6] = False
    model = CircuitModel(connections={"lateral": mask})
    circuit = make(model)
    assert functions(circuit) == SEPARATE
    assert_agree(circuit, model)


def test_a_sum_that_is_switched_off_is_not_taken():
    def without_inhibition(network):
        network["lateral"].summed_updaters["inhibition_pre"].active = False

    circuit = make(extend=without_inhibition)
    # What is left of the passes is one as well.
    assert functions(circuit) == {FUSED}
    run = circuit.run(POINTS, LABELS, record=TRACES)
    runtime = ManifoldCircuit(PARAMETERS, LIFT, "numpy", extend=without_inhibition)
    expected = runtime.run(POINTS, LABELS, record=TRACES)
    assert (circuit.network["excitatory"].inhibition == 0).all()
    for name in [f"{trace}_trace" for trace in TRACES]:
        worst = np.abs(run[name].values - expected[name].values).max()
        assert worst <= CLOSE * np.abs(expected[name].values).max(), name


@pytest.mark.parametrize(
    "text",
    [
        "dV/dt = (u_post*h_pre - V)/tau_V + 0.001*inhibition_pre/tau_V : 1 (clock-driven)",
        "dV/dt = (u_post*h_pre - V)/tau_V + 0.001*seen/tau_V : 1 (clock-driven)\n"
        "seen = excitation_post : 1",
        "dV/dt = (u_post*h_pre - V)/tau_V + 0*xi/sqrt(tau_V) : 1 (clock-driven)",
    ],
    ids=["reads a sum", "reads a sum by another name", "is random"],
)
def test_own_equations_that_need_the_passes_apart(text):
    model = CircuitModel(lateral=Rule(text))
    circuit = make(model)
    assert functions(circuit) == SEPARATE
    run = circuit.run(POINTS, LABELS, record=TRACES)
    expected = ManifoldCircuit(PARAMETERS, LIFT, "numpy", model=model)
    expected = expected.run(POINTS, LABELS, record=TRACES)
    for name in [f"{trace}_trace" for trace in TRACES]:
        assert np.abs(run[name].values - expected[name].values).max() <= CLOSE, name


def test_own_equations_that_do_not():
    text = "dV/dt = (u_post*h_pre - V)/tau_V - 0.1*q*V/tau_V : 1 (clock-driven)\n"
    model = CircuitModel(lateral=Rule(text + "dq/dt = (V - q)/tau_V : 1 (clock-driven)"))
    circuit = make(model)
    assert functions(circuit) == {FUSED}
    run = circuit.run(POINTS, LABELS, record=TRACES)
    expected = ManifoldCircuit(PARAMETERS, LIFT, "numpy", model=model)
    expected = expected.run(POINTS, LABELS, record=TRACES)
    for name in [f"{trace}_trace" for trace in TRACES]:
        assert np.abs(run[name].values - expected[name].values).max() <= CLOSE, name
