"""The model description against the live objects it is made from."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from brian2 import (
    Hz,
    NeuronGroup,
    PoissonGroup,
    PoissonInput,
    PopulationRateMonitor,
    SpikeGeneratorGroup,
    SpikeMonitor,
    StateMonitor,
    Synapses,
    TimedArray,
    ms,
    network_operation,
)

from analysis.describe import Code, Table, latex, notes, tables, to_latex, to_markdown
from circuits import CircuitParameters, ManifoldCircuit, SphereLift, rules
from circuits.engines import cache
from circuits.engines.compiler import compiler_works

SHAPE = {"n_tiles": 7, "n_interneurons": 3, "n_readouts": 2}
LIFT = SphereLift(center=(0.5, 0.25, -1.0, 2.0), radius=3.0)  # 4 coordinates, 5 inputs


def make(engine="numpy", **changes):
    return ManifoldCircuit(CircuitParameters(**(SHAPE | changes)), LIFT, engine=engine)


@pytest.fixture(scope="module")
def described():
    """A circuit that no test runs or changes."""
    return make()


@pytest.fixture(scope="module")
def found(described):
    """Its description."""
    return tables(described)


@pytest.fixture(scope="module")
def ran():
    """A circuit after a run that recorded all there is, its description from before, the run."""
    circuit = make()
    before = tables(circuit)
    return circuit, before, run_briefly(circuit, record=("h", "u", "V", "y"), snapshot_every=1)


@pytest.fixture
def circuit():
    return make()


def table(found, letter):
    (match,) = [item for item in found if item.title.startswith(f"{letter}.")]
    return match


def columns(item, *names):
    """The given columns of a table, as plain tuples of text."""
    places = [item.header.index(name) for name in names]
    return [tuple(str(row[place]) for place in places) for row in item.rows]


def column(item, key, value):
    return dict(columns(item, key, value))


def all_text(found):
    return "\n".join(cell for item in found for row in item.rows for cell in row)


def test_tables_are_the_ones_of_nordlie(found):
    titles = [item.title.split(".")[0] for item in found]
    assert titles == ["A", "B", "C", "D1", "D2", "E", "F", "G", "H", "I"]


def test_population_sizes_are_those_of_the_objects(described, found):
    sizes = column(table(found, "B"), "Name", "Size")
    assert sizes == {
        "inputs": "5",
        "excitatory": "7",
        "inhibitory": "3",
        "gain_control": "1",
        "readout": "2",
    }
    assert sizes == {name: str(described.network[name].N) for name in sizes}


def test_number_of_synapses_is_the_product_of_the_populations(described, found):
    sizes = column(table(found, "B"), "Name", "Size")
    rows = columns(table(found, "C"), "Name", "Source", "Target", "Pattern", "Synapses")
    assert {row[0] for row in rows} == {"feedforward", "lateral", "pooling", "classifier"}
    for name, source, target, pattern, count in rows:
        assert int(count) == int(sizes[source]) * int(sizes[target]) == len(described.network[name])
        assert pattern == "all-to-all"


def test_every_object_of_the_network_appears(described, found):
    codes = {str(cell) for t in found for row in t.rows for cell in row}
    missing = [item.name for item in described.network.sorted_objects if item.name not in codes]
    assert missing == []


def test_every_equation_appears_once_with_its_unit(described, found):
    rows = columns(table(found, "D1"), "Object", "Equation", "Unit")
    expected = []
    for name in ("inputs", "excitatory", "inhibitory", "gain_control", "readout"):
        expected += [(name, str(eq)) for eq in described.network[name].equations.ordered]
    for name in ("feedforward", "lateral", "pooling", "classifier"):
        expected += [(name, str(eq)) for eq in described.network[name].equations.ordered]
    sums = [row for row in rows if re.match(r"\w+_(pre|post) = ", row[1])]
    plain = [row for row in rows if row not in sums]
    # str(eq) is Brian2's "equation : unit (flags)".
    assert [(name, f"{eq} : {unit}") for name, eq, unit in plain] == [
        (name, text.partition(" (")[0] if "=" not in text else re.sub(r" \([\w-]+\)$", "", text))
        for name, text in expected
    ]
    assert sorted(row[:2] for row in sums) == [
        ("classifier", "net_post = w*h_pre"),
        ("lateral", "excitation_post = V*h_pre"),
        ("lateral", "inhibition_pre = V*u_post"),
        ("pooling", f"answering_post = {rules.ANSWERS}"),
        ("pooling", "power_post = a_pre*clip(a_pre, 0, inf)"),
        ("pooling", "used_post = in_use_pre"),
    ]


def test_linked_variables_say_what_they_are_linked_to(found):
    rows = columns(table(found, "D1"), "Object", "Equation", "Kind")
    linked = {row[:2]: row[2] for row in rows if "linked" in row[2]}
    from_inputs = {("readout", "presentation"), ("excitatory", "presentation")}
    for group in ("excitatory", "inhibitory", "gain_control"):
        from_inputs |= {(group, "restart"), (group, "carry")}
    told = ("gain", "covered", "recruiting", "answering", "used", "first_presentation")
    from_control = {("excitatory", name) for name in told}
    from_control |= {("inhibitory", "scale"), ("inhibitory", "ratio")}
    assert set(linked) == from_inputs | from_control
    for (group, name), kind in linked.items():
        source = "inputs" if (group, name) in from_inputs else "gain_control"
        assert kind.endswith(f"linked to {source}.{name}")


def test_regular_code_is_the_code_of_the_objects(described, found):
    shown = {}
    for letter, names in (
        ("D2", ("Update", "Code")),
        ("E", ("Update", "Code")),
        ("F", ("Part", "Definition")),
        ("G", ("Name", "Variables")),
    ):
        shown |= column(table(found, letter), *names)
    runners = [
        item for item in described.network.sorted_objects if type(item).__name__ == "CodeRunner"
    ]
    assert len(runners) == 19
    for item in runners:
        assert shown[item.name].split("\n") == item.abstract_code.strip().split("\n")


def test_plasticity_is_what_learns(found):
    assert column(table(found, "E"), "Update", "Every") == {
        "lateral_stateupdater": "step",
        "feedforward_learn": "80 steps",
        "excitatory_learn": "80 steps",
        "classifier_learn": "80 steps",
        "excitatory_recruit": "80 steps",
        "feedforward_recruit": "80 steps",
    }
    summary = column(table(found, "A"), "Aspect", "Description")["Plasticity"]
    assert set(summary.split("; ")) == {
        "lateral: V",
        "feedforward: W",
        "excitatory: b",
        "classifier: w",
    }


def test_step_of_the_rates_is_the_one_that_runs(ran):
    """The code shown before a run is the code Brian2 has used after one."""
    circuit, before, _ = ran
    shown = column(table(before, "D2"), "Update", "Code")
    for name in ("excitatory_stateupdater", "inhibitory_stateupdater"):
        assert shown[name] == circuit.network[name].abstract_code
    assert shown["excitatory_stateupdater"].endswith("h = clip(_h, 0, inf)")


def test_schedule_is_in_the_order_of_the_network(described, found):
    rows = columns(table(found, "H"), "Object", "Slot", "Order", "Part of", "Every")
    steps = {"step_clock": "step", "presentation_clock": "80 steps"}
    expected = [
        (item.name, item.when, str(item.order), item.group.name, steps[item.clock.name])
        for item in described.network.sorted_objects
        if not item.contained_objects
    ]
    live = {row[0] for row in expected}
    assert [row for row in rows if row[0] in live] == expected
    # What a run adds to record, and when: settled rates before learning, weights after.
    added = [row[0] for row in rows if row[0] not in live]
    assert len(added) == 10
    names = [row[0] for row in rows]
    assert names.index("excitatory_settled") < names.index("feedforward_learn")
    assert names.index("feedforward_learn") < names.index("feedforward_snapshots")
    after = ["feedforward_snapshots", "inputs_load", "feedforward_drive", "excitatory_choose"]
    after += ["excitatory_recruit", "feedforward_recruit", "gain_control_measure"]
    after += ["excitatory_restart", "lateral_restart"]
    assert [name for name in names if name in after] == after


# With dt = 0.1 ms the clocks' ratio falls short of 49 and 59: cut off, it would be 48 and 58.
@pytest.mark.parametrize("steps", [1, 3, 49, 59, 1000])
def test_steps_per_presentation_show_up(steps):
    found = tables(make(dt="0.1 ms", steps_per_presentation=steps))
    every = column(table(found, "H"), "Clock", "Every")["presentation_clock"]
    assert every == ("step" if steps == 1 else f"{steps} steps")


@pytest.mark.parametrize("readout", ["clip", "tanh"])
def test_readout_shows_its_nonlinearity(readout):
    code = column(table(tables(make(readout=readout)), "D2"), "Update", "Code")["readout_answer"]
    assert code.startswith(f"y = {readout}(")


def test_changed_parameters_show_up():
    changed = {
        "tau_h": "11 ms",
        "tau_u": "123.456789 ms",
        "tau_V": "3.25 ms",
        "dt": "0.5 ms",
        "tile_radius": 0.123456789,
        "learning_rate": 0.0625,
        "mu": (30.0, 10.0),
        "readout_rate": 0.125,
        "reset": False,
        "gain": 17.5,
    }
    found = tables(make(**changed))
    values = column(table(found, "I"), "Name", "Value")
    for name in ("tau_h", "tau_u", "tau_V", "dt"):
        assert values[name] == changed[name]
    assert float(values["tile_radius"]) == changed["tile_radius"]
    assert (values["mu"], values["reset"], values["gain, as used"]) == ("30, 10", "false", "17.5")

    start = {
        (group, name.split(" = ")[0]): value
        for group, name, value in columns(table(found, "D1"), "Object", "Equation", "At the start")
    }
    assert start["excitatory", "tau_h"] == "11 ms"
    assert start["inhibitory", "tau_u"] == "123.456789 ms"
    assert start["lateral", "tau_V"] == "3.25 ms"
    assert start["excitatory", "eta"] == "0.0625"
    assert start["gain_control", "gain"] == start["gain_control", "constant_gain"] == "17.5"
    assert start["gain_control", "controlled"] == "0"
    assert start["readout", "mu"] == "30, 10"
    assert start["classifier", "constant_rate"] == "0.125"
    assert start["classifier", "running"] == start["inputs", "reset"] == "0"


@pytest.mark.parametrize("tiles", ["recruit", "first"])
@pytest.mark.parametrize("n_tiles", [1, 7])
def test_what_the_data_decide_is_not_given_a_value(n_tiles, tiles):
    found = tables(make(n_tiles=n_tiles, tiles=tiles))
    rows = columns(table(found, "D1"), "Object", "Equation", "At the start")
    expected = {
        ("inputs", "n_presentations"),
        ("inputs", "x"),
        ("readout", "z"),
        ("feedforward", "W"),
    }
    # The first point has recruited a tile that looks right at it: that drive is the model's.
    expected |= {("excitatory", "drive"), ("excitatory", "a")} if tiles == "first" else set()
    assert {(g, name) for g, name, value in rows if value == "from the data"} == expected


def test_a_stream_starts_with_the_tile_that_its_first_point_recruits(described, found):
    start = {
        row[:2]: row[2] for row in columns(table(found, "D1"), "Object", "Equation", "At the start")
    }
    size = described.parameters.kappa * (1 - described.alpha)
    assert float(start["gain_control", "size"]) == pytest.approx(size, rel=1e-5)
    assert float(start["gain_control", "gain"]) == pytest.approx(1 / size, rel=1e-5)
    assert start["excitatory", "recruited"] == "-1 to 0"
    circuit = make()
    point = LIFT.center + 0.1
    circuit.run(point[None])
    assert circuit.state.recruited.tolist() == [0] + [-1] * 6
    # Settled, the interneurons tell what was measured: |u|^2 = A.
    assert (circuit.state.u**2).sum() == pytest.approx(size, rel=1e-8)
    # Tiles that are there from the start are not recruited.
    centers = LIFT.center + np.linspace(-0.3, 0.3, 7)[:, None]
    given = ManifoldCircuit(described.parameters, LIFT, "numpy", tile_centers=centers)
    rows = columns(table(tables(given), "D1"), "Object", "Equation", "At the start")
    assert {row[2] for row in rows if row[:2] == ("excitatory", "recruited")} == {"0"}


@pytest.mark.parametrize(
    ("changes", "aspect", "words"),
    [
        ({}, "Gain", "1/A with A = |[a]_+| measured once per presentation"),
        ({"gain": 17.5}, "Gain", "constant, 17.5"),
        ({"recruit_below": 0.4}, "Tiles", "1 - (distance/rho)^2 exceeds 0.4 starts the next idle"),
        ({"tiles": "first"}, "Tiles", "the first 7 distinct points"),
        ({"recycle": True}, "Tiles", "the one with the smallest b moves"),
    ],
)
def test_gain_and_tiles_are_told_in_words(changes, aspect, words):
    summary = column(table(tables(make(**changes)), "A"), "Aspect", "Description")
    assert words in summary[aspect]


def test_recycling_and_the_gated_readout_show_up():
    circuit = make(recycle=True, readout_rule="gated", readout_rate=0.9, clamp_labels=True)
    found = tables(circuit)
    test_every_object_of_the_network_appears(circuit, found)
    assert "competition" in column(table(found, "C"), "Name", "Pattern")
    code = column(table(found, "E"), "Update", "Code")
    assert code["classifier_learn"].endswith(rules.GATED.brian2)
    assert code["classifier_recruit"] == rules.TAKE_w
    answer = column(table(found, "D2"), "Update", "Code")["readout_answer"]
    assert answer == f"{rules.READOUT['clip'].brian2}\n{rules.CLAMP}"
    every = [str(cell) for item in found for row in item.rows for cell in row]
    assert "rank_post = " + rules.RANK in every
    assert "pooled_post = w*h_pre" in every


def test_values_at_the_start_are_those_of_a_run(ran):
    """After a run the groups hold what they were given and what has not moved since."""
    circuit, before, _ = ran
    rows = columns(table(before, "D1"), "Object", "Equation", "At the start")
    for group, name, value in rows:
        if value and name in (
            "h_rest",
            "u_rest",
            "constant_gain",
            "controlled",
            "smallest",
            "least",
            "recruiting",
            "kappa",
            "sqrt_alpha",
            "eta",
            "mu",
            "running",
            "constant_rate",
        ):
            held = np.unique(circuit.network[group].variables[name].get_value())
            shown = np.unique([float(number) for number in value.split(", ")])
            np.testing.assert_allclose(shown, held, rtol=1e-5)  # six digits are shown


def test_a_changed_circuit_says_what_was_changed():
    from brian2 import ms

    from circuits import CircuitModel

    model = CircuitModel(
        feedforward="W += eta_post*h_post*(x_pre - h_post*W)",
        delay="1 ms",
        connections={"classifier": [[1, 0, 1, 1, 1, 1, 1]]},
    )
    circuit = ManifoldCircuit(
        CircuitParameters(n_tiles=7, n_interneurons=2), LIFT, "numpy", model=model
    )
    circuit.network["excitatory"].tau_h = 33 * ms
    found = tables(circuit)
    summary = dict(table(found, "A").rows)
    for word in ("h_post*W", "'1011111'", "1 ms", "'excitatory.tau_h': [0.033]"):
        assert word in summary["Changed from the paper's circuit"]
    assert "classifier: excitatory to readout, 6 of 7 pairs" in summary["Connectivity"]
    start = {
        row[:2]: row[2] for row in columns(table(found, "D1"), "Object", "Equation", "At the start")
    }
    assert start["excitatory", "tau_h"] == "33 ms"
    assert ("excitatory", "h_past_1") in start


def test_every_parameter_is_there_and_explained(described, found):
    rows = {str(row[0]): row[1:] for row in table(found, "I").rows}
    assert set(described.parameters.as_dict()) < set(rows)
    assert float(rows["alpha"][0]) == pytest.approx(described.alpha, rel=1e-5)
    gamma = [float(value) for value in rows["gamma_u, gamma_V"][0].split(", ")]
    assert gamma == pytest.approx(described.gamma(1.0)[1:], rel=1e-5)
    assert float(rows["gamma_h A"][0]) == pytest.approx(described.gamma(1.0)[0], rel=1e-5)
    assert float(rows["floor"][0]) == pytest.approx(described.floor, rel=1e-5)
    constant = make(gain="auto")
    own = {str(row[0]): row[1] for row in table(tables(constant), "I").rows}
    assert float(own["gain, as used"]) == pytest.approx(constant.gain, rel=1e-5)
    gamma = [float(value) for value in own["gamma"].split(", ")]
    assert gamma == pytest.approx(constant.gamma(1.0), rel=1e-5)
    assert [name for name, (_, meaning) in rows.items() if not meaning] == []
    assert rows["n_tiles"] == ("7", "m, the number of excitatory cells.")


def test_front_end_is_described(found):
    text = all_text([table(found, "F")])
    assert repr(LIFT) in text
    assert "4 coordinates become 5 inputs" in text
    assert "5 values a row" in text
    assert "2 values a row" in text


def test_measurements_are_those_of_a_run(ran):
    _, before, run = ran
    rows = columns(table(before, "G"), "Result", "Variables", "Cells")
    cells = {result: int(count) for result, _, count in rows if result}
    for result, count in cells.items():
        width = 2 if result.endswith("_trace") else 1
        assert count == np.prod(run[result].shape[width:]), result


def test_a_recorded_run_leaves_the_schedule_as_it_was(ran):
    circuit, before, _ = ran
    assert column(table(before, "H"), "Object", "Every")["readout_answer"] == "80 steps"
    assert table(tables(circuit), "H") == table(before, "H")


def test_objects_of_the_users_own_appear(circuit):
    network = circuit.network
    cells = NeuronGroup(
        4,
        "dv/dt = -v/tau : volt\ntau : second",
        threshold="v > 1*volt",
        method="euler",
        name="mine",
    )
    wires = Synapses(cells, cells, "s : 1", on_pre="v_post += s*volt", name="wires")
    wires.connect(i=[0, 1, 2], j=[1, 2, 3])
    steady = cells.run_regularly("v += 1*volt", dt=3 * ms, name="pump")
    watch = StateMonitor(network["excitatory"], "h", record=[2, 4], name="watch")
    spikes = SpikeMonitor(cells, name="spikes")
    network.add(cells, wires, watch, spikes)

    found = tables(circuit)
    assert column(table(found, "B"), "Name", "Size")["mine"] == "4"
    assert ("wires", "3 of 16 pairs", "3") in columns(
        table(found, "C"), "Name", "Pattern", "Synapses"
    )
    assert ("mine", "dv/dt = -v/tau", "V") in columns(
        table(found, "D1"), "Object", "Equation", "Unit"
    )
    updates = {row[0]: row[1:] for row in columns(table(found, "D2"), "Update", "Code", "Every")}
    assert updates[steady.name] == ("v += 1*volt", "3 ms")
    assert updates["wires_pre"][0] == "v_post += s*volt"
    cells_recorded = column(table(found, "G"), "Name", "Cells")
    assert cells_recorded["watch"] == "2"
    assert "spikes" in cells_recorded
    names = {str(cell) for t in found for row in t.rows for cell in row}
    assert [item.name for item in network.sorted_objects if item.name not in names] == []


def test_objects_of_any_kind_get_a_row(circuit):
    """Sources of spikes, functions of Python, synapses on synapses or without any pair, noise, a
    current from a TimedArray: each is named, and whatever is known of it is said."""
    network = circuit.network

    @network_operation(dt=2 * ms, name="meddle")
    def meddle():
        """Looks at the clock."""

    current = TimedArray(np.zeros((4, 3)), dt=5 * ms, name="current")
    noisy = NeuronGroup(
        3,
        "dv/dt = (I - v)/ms + xi*ms**-0.5 : 1\nI = current(t, i) : 1",
        threshold="v > 1",
        reset="v = 0",
        method="euler",
        namespace={"current": current},
        name="noisy",
    )
    poisson = PoissonGroup(2, 10 * Hz, name="poisson")
    spikes = SpikeGeneratorGroup(2, [0], [1] * ms, name="generator")
    kicks = PoissonInput(noisy, "v", 5, 10 * Hz, 0.1)
    unwired = Synapses(noisy, noisy, "s : 1", name="unwired")
    wires = Synapses(poisson, noisy[:2], "s : 1", on_pre="v_post += s", name="wires")
    wires.connect()
    gates = Synapses(noisy, wires, "q : 1", on_pre="s_post += q", name="gates")
    gates.connect(i=[0], j=[1])
    rate = PopulationRateMonitor(noisy, name="rate_of_noisy")
    network.add(meddle, noisy, poisson, spikes, kicks, unwired, wires, gates, rate)

    found = tables(circuit)
    patterns = column(table(found, "C"), "Name", "Pattern")
    assert patterns["unwired"] == "0 of 9 pairs"
    assert patterns["wires"] == "all-to-all"
    assert patterns["gates"] == "1 of 12 pairs"
    sizes = column(table(found, "B"), "Name", "Size")
    assert (sizes["poisson"], sizes["generator"], sizes["noisy"]) == ("2", "2", "3")
    rows = {
        row[0]: row[1:] for row in columns(table(found, "D2"), "Update", "Every", "What it does")
    }
    assert rows["meddle"] == ("2 ms", "NetworkOperation: Looks at the clock.")
    assert kicks.name in rows
    assert ("current", "noisy", "3 values a row, 4 rows of 5 ms") in columns(
        table(found, "F"), "Part", "Part of", "Definition"
    )
    assert "rate_of_noisy" in column(table(found, "G"), "Name", "Of")
    names = {str(cell) for t in found for row in t.rows for cell in row}
    assert [item.name for item in network.sorted_objects if item.name not in names] == []


def test_a_replaced_rule_is_the_one_that_is_described(circuit):
    feedforward = circuit.network["feedforward"]
    old = circuit.network["feedforward_learn"]
    old.active = False
    feedforward.run_regularly("W += 0.5*x_pre", clock=old.clock, when="end", name="faster")
    found = tables(circuit)
    assert column(table(found, "E"), "Update", "Code")["faster"] == "W += 0.5*x_pre"
    every = column(table(found, "E"), "Update", "Every")
    assert (every["faster"], every["feedforward_learn"]) == ("80 steps", "never: inactive")
    assert column(table(found, "A"), "Aspect", "Description")["Plasticity"].count("W") == 1
    types = column(table(found, "H"), "Object", "Type")
    assert types["faster"] == "CodeRunner"
    assert types["feedforward_learn"] == "CodeRunner (inactive)"


def test_an_object_without_a_note_still_appears(described, monkeypatch):
    monkeypatch.setattr(notes, "NOTES", {})
    test_every_object_of_the_network_appears(described, tables(described))
    assert column(table(tables(described), "B"), "Name", "Size")["excitatory"] == "7"
    # Without its note the rule of W is still known to be plasticity: it changes a synapse.
    assert "feedforward_learn" in column(table(tables(described), "E"), "Update", "Code")


def test_notes_are_about_something_that_is_there(found):
    found = [*found, *tables(make(recycle=True))]
    names = {str(cell) for t in found for row in t.rows for cell in row}
    assert set(notes.NOTES) <= names


def test_describing_leaves_the_circuit_as_it_is(circuit):
    before = [item.name for item in circuit.network.sorted_objects]
    first = tables(circuit)
    assert [item.name for item in circuit.network.sorted_objects] == before
    with pytest.raises(Exception, match="no state yet"):
        _ = circuit.state
    seen, fresh = run_briefly(circuit), run_briefly(make())
    for name in ("h", "u", "y", "W", "b", "w", "V"):
        np.testing.assert_array_equal(seen[name], fresh[name])
    assert tables(circuit) == first


@pytest.mark.skipif(not compiler_works(), reason="needs a C++ compiler")
def test_a_standalone_circuit_is_described_without_compiling(described, monkeypatch):
    def refuse(*_args, **_kwds):
        raise AssertionError("describing must not compile")

    standalone = make(engine="cpp_standalone")
    monkeypatch.setattr(cache, "get_build", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert tables(standalone) == tables(described)


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="2 columns"):
        Table("T", ("a", "b"), (("only one",),))


# What a cell must survive: every character that means something to Markdown or LaTeX.
NASTY = r"a|b \ {c} $d$ & #e %f _g_ h_i ^j ~k <b> *l* `m` [n](o) ρ"
NASTY_TABLE = Table(
    f"T {NASTY}", ("plain", "code"), ((NASTY, Code(NASTY)), ("", Code("x = a|b\n\ny += 1")))
)


def markdown_tables(text):
    """Rows of cells, split as GitHub does: at pipes that no backslash precedes."""
    blocks = [block for block in text.split("\n\n") if block.startswith("|")]
    return [
        [re.split(r"(?<!\\)\|", line.strip())[1:-1] for line in block.splitlines()]
        for block in blocks
    ]


def test_markdown_rows_have_as_many_cells_as_the_header(found):
    found = [*found, NASTY_TABLE]
    parsed = markdown_tables(to_markdown(found))
    assert len(parsed) == len(found)
    for item, rows in zip(found, parsed, strict=True):
        assert len(rows) == len(item.rows) + 2
        assert {len(row) for row in rows} == {len(item.header)}
        assert all(cell.strip() == "---" for cell in rows[1])


def test_markdown_gives_back_what_was_put_in(found):
    found = [*found, NASTY_TABLE]
    for item, rows in zip(found, markdown_tables(to_markdown(found)), strict=True):
        for row, cells in zip(item.rows, rows[2:], strict=True):
            for text, cell in zip(row, cells, strict=True):
                if isinstance(text, Code):
                    lines = [line for line in cell.strip().split("<br>") if line]
                    read = [
                        re.sub(r"^(`+) ?(.*?) ?\1$", r"\2", line).replace(r"\|", "|")
                        for line in lines
                    ]
                    assert read == [line for line in text.split("\n") if line]
                else:
                    assert re.sub(r"\\([\\`*_|<\]])", r"\1", cell.strip()) == text


def test_markdown_has_no_stray_html(found):
    text = to_markdown([*found, NASTY_TABLE])
    outside = re.sub(r"(`+).*?\1", "", text.replace("<br>", ""))
    assert re.findall(r"(?<!\\)<[A-Za-z/!?]", outside) == []


def check_latex(text):
    """Braces and environments nest, and no character is special that should not be."""
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert text.isascii()
    commands_gone = re.sub(r"\\[A-Za-z]+|\\[{}$&#%_]", "", text)
    assert re.findall(r"[\\$#%_^~<>|]", commands_gone) == []


def test_latex_is_balanced_and_escaped(found):
    found = [*found, NASTY_TABLE]
    text = to_latex(found)
    check_latex(text)
    assert text.count(r"\begin{longtable}") == len(found)
    assert text.startswith(r"\documentclass")
    assert text.endswith("\\end{document}\n")
    assert set(re.findall(r"\\usepackage\{(\w+)\}", text)) == {"booktabs", "longtable"}


def test_latex_rows_have_as_many_cells_as_the_table_has_columns(found):
    found = [*found, NASTY_TABLE]
    bodies = re.findall(r"\\begin\{longtable\}(.*?)\\end\{longtable\}", to_latex(found), re.DOTALL)
    for item, body in zip(found, bodies, strict=True):
        rows = [line for line in body.splitlines() if line.endswith(r"\tabularnewline")]
        assert len(rows) == len(item.rows) + 1
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(item.header)}
        spec = body.splitlines()[0]
        shares = [float(share) for share in re.findall(r"dimexpr ([\d.]+)", spec)]
        assert len(shares) == len(item.header)
        assert sum(shares) == pytest.approx(1, abs=0.01)  # three digits each


def test_latex_gives_back_what_was_put_in(found):
    back = {escaped: plain for plain, escaped in latex.ESCAPES.items()}
    text = to_latex(found).replace(r"\allowbreak{}", "")
    text = re.sub(
        "|".join(map(re.escape, sorted(back, key=len, reverse=True))), lambda m: back[m[0]], text
    )
    for item in found:
        for row in item.rows:
            for cell in row:
                for line in cell.split("\n"):
                    wanted = rf"\texttt{{{line.strip()}}}" if isinstance(cell, Code) else line
                    assert not line or wanted in text


def test_latex_tables_can_be_had_without_the_document(found):
    body = to_latex(found, document=False)
    check_latex(body)
    assert "documentclass" not in body
    assert body in to_latex(found)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not on PATH")
def test_latex_compiles(circuit, tmp_path):
    (tmp_path / "model.tex").write_text(to_latex([*tables(circuit), NASTY_TABLE]), encoding="ascii")
    result = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "model.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:]
    assert (tmp_path / "model.pdf").stat().st_size > 10_000


def run_briefly(circuit, **options):
    """A few presentations around the centre of the lift."""
    rng = np.random.default_rng(0)
    points = LIFT.center + rng.uniform(-0.3, 0.3, (8, LIFT.n_coordinates))
    labels = np.array([1, -1, 0, 0, 0, 0, 0, 0])
    return circuit.run(points, labels, **options)
