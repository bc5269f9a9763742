"""The model description against the live objects it is made from."""

from __future__ import annotations

import re
import subprocess
from itertools import chain

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
    prefs,
)

from analysis.describe import Code, Table, latex, notes, tables, to_latex, to_markdown
from circuits import CircuitModel, CircuitParameters, ManifoldCircuit, SphereLift
from circuits.engines import cache
from circuits.parts.other_readouts import GATED
from circuits.parts.recruiting import COUNTS
from circuits.parts.recycling import RANK
from circuits.readout import ANSWER

ANSWERING = COUNTS.partition(" = ")[2].partition(" : ")[0]

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


def at_the_start(found):
    """Values at the start, by object and variable."""
    rows = columns(table(found, "D1"), "Object", "Equation", "At the start")
    return {(group, name.split(" = ")[0]): value for group, name, value in rows}


def all_text(found):
    return "\n".join(cell for item in found for row in item.rows for cell in row)


def assert_every_object_appears(circuit, found):
    names = {str(cell) for item in found for row in item.rows for cell in row}
    assert [item.name for item in circuit.network.sorted_objects if item.name not in names] == []


def test_tables_hold_the_populations_and_synapses_of_the_network(described, found):
    titles = [item.title.split(".")[0] for item in found]
    assert titles == ["A", "B", "C", "D1", "D2", "E", "F", "G", "H", "I"]
    assert_every_object_appears(described, found)
    sizes = column(table(found, "B"), "Name", "Size")
    assert sizes == {
        **{"inputs": "5", "excitatory": "7", "inhibitory": "3"},
        **{"gain_control": "1", "recruiter": "1", "readout": "2"},
    }
    rows = columns(table(found, "C"), "Name", "Source", "Target", "Pattern", "Synapses")
    names = {"feedforward", "lateral", "classifier", "pooling", "measuring"}
    assert {row[0] for row in rows} == names
    for name, source, target, pattern, count in rows:
        assert int(count) == int(sizes[source]) * int(sizes[target]) == len(described.network[name])
        assert pattern == "all-to-all"


def test_every_equation_appears_once_with_its_unit(described, found):
    rows = columns(table(found, "D1"), "Object", "Equation", "Unit")
    expected = []
    groups = ("inputs", "excitatory", "inhibitory", "gain_control", "readout", "recruiter")
    for name in (*groups, "feedforward", "lateral", "measuring", "pooling", "classifier"):
        expected += [(name, str(eq)) for eq in described.network[name].equations.ordered]
    sums = [row for row in rows if re.match(r"\w+_(pre|post) = ", row[1])]
    plain = [row for row in rows if row not in sums]
    # str(eq) is Brian2's "equation : unit (flags)".
    assert [(name, f"{eq} : {unit}") for name, eq, unit in plain] == [
        (name, text.partition(" (")[0] if "=" not in text else re.sub(r" \([\w-]+\)$", "", text))
        for name, text in expected
    ]
    assert sorted(row[:2] for row in sums) == [
        ("classifier", "wh_post = w*h_pre"),
        ("lateral", "excitation_post = V*h_seen_pre"),
        ("lateral", "inhibition_pre = V*u_seen_post"),
        ("measuring", "power_post = a_pre*clip(a_pre, 0, inf)"),
        ("pooling", f"answering_post = {ANSWERING}"),
        ("pooling", "used_post = in_use_pre"),
    ]


def test_regular_code_is_the_code_of_the_objects(described, found):
    shown = {}
    for letter, names in (
        ("D2", ("Update", "Code")),
        ("E", ("Update", "Code")),
        ("F", ("Part", "Definition")),
        ("G", ("Name", "Variables")),
    ):
        shown |= column(table(found, letter), *names)
    seen = 0
    for item in described.network.sorted_objects:
        if type(item).__name__ == "CodeRunner":
            assert shown[item.name].split("\n") == item.abstract_code.strip().split("\n")
            seen += 1
    assert seen == 22


def test_plasticity_is_what_learns(found):
    slow = ("feedforward_learn", "excitatory_learn", "classifier_learn")
    slow += ("excitatory_recruit", "feedforward_recruit")
    expected = {"lateral_stateupdater": "step"} | dict.fromkeys(slow, "80 steps")
    assert column(table(found, "E"), "Update", "Every") == expected
    summary = column(table(found, "A"), "Aspect", "Description")["Plasticity"]
    learned = {"lateral: V", "feedforward: W", "excitatory: b", "classifier: w"}
    assert set(summary.split("; ")) == learned


def test_schedule_is_in_the_order_of_the_network(described, found):
    rows = columns(table(found, "H"), "Object", "Slot", "Order", "Part of", "Every")
    steps = {"step_clock": "step", "presentation_clock": "80 steps", "loading_clock": "80 steps"}
    expected = [
        (item.name, item.when, str(item.order), item.group.name, steps[item.clock.name])
        for item in described.network.sorted_objects
        if not item.contained_objects
    ]
    live = {row[0] for row in expected}
    assert [row for row in rows if row[0] in live] == expected
    # What a run adds to record, and when: settled rates before learning, weights after.
    names = [row[0] for row in rows]
    assert len(set(names) - live) == 10
    order = ["excitatory_settled", "feedforward_learn", "feedforward_snapshots", "inputs_load"]
    order += ["feedforward_drive", "excitatory_choose", "excitatory_recruit", "feedforward_recruit"]
    order += ["gain_control_measure", "excitatory_restart", "lateral_restart"]
    assert [name for name in names if name in order] == order


def test_changed_parameters_show_up():
    times = {"tau_h": "11 ms", "tau_u": "123.456789 ms", "tau_V": "3.25 ms", "dt": "0.5 ms"}
    others = {"tile_radius": 0.123456789, "learning_rate": 0.0625, "mu": (30.0, 10.0)}
    others |= {"readout_rate": 0.125, "reset": False, "gain": 17.5}
    found = tables(make(**times, **others))
    values = column(table(found, "I"), "Name", "Value")
    assert {name: values[name] for name in times} == times
    assert float(values["tile_radius"]) == others["tile_radius"]
    assert (values["mu"], values["reset"], values["gain, as used"]) == ("30, 10", "false", "17.5")
    start = at_the_start(found)
    for group, expected in {
        "excitatory": {"tau_h": "11 ms", "eta": "0.0625", "gain": "17.5"},
        "inhibitory": {"tau_u": "123.456789 ms"},
        "lateral": {"tau_V": "3.25 ms"},
        "readout": {"mu": "30, 10"},
        "classifier": {"constant_rate": "0.125", "running": "1"},
    }.items():
        assert {name: start[group, name] for name in expected} == expected


@pytest.mark.parametrize(("n_tiles", "tiles"), [(1, "recruit"), (7, "recruit"), (7, "first")])
def test_what_the_data_decide_is_not_given_a_value(n_tiles, tiles):
    found = tables(make(n_tiles=n_tiles, tiles=tiles))
    rows = columns(table(found, "D1"), "Object", "Equation", "At the start")
    # Idle tiles look nowhere; others start on the first points.
    expected = {("feedforward", "W")} if tiles == "first" else set()
    assert {(g, name) for g, name, value in rows if value == "from the data"} == expected


def test_tiles_that_are_there_from_the_start_are_not_recruited(described, found):
    assert at_the_start(found)["excitatory", "recruited"] == "-1"
    centers = LIFT.center + np.linspace(-0.3, 0.3, 7)[:, None]
    given = ManifoldCircuit(described.parameters, LIFT, "numpy", tile_centers=centers)
    assert at_the_start(tables(given))["excitatory", "recruited"] == "0"


def test_recycling_and_the_gated_readout_show_up():
    circuit = make(recycle=True, readout_rule="gated", readout_rate=0.9, clamp_labels=True)
    found = tables(circuit)
    assert_every_object_appears(circuit, found)
    assert "competition" in column(table(found, "C"), "Name", "Pattern")
    code = column(table(found, "E"), "Update", "Code")
    assert code["classifier_learn"].endswith(GATED)
    assert code["classifier_recruit"] == "w = where(joins_pre > 0, 0, w)"
    code = column(table(found, "D2"), "Update", "Code")
    assert code["readout_answer"] == ANSWER["clip"]
    assert code["readout_clamp"] == "y = where(z != 0, z, y)"
    text = all_text(found)
    assert RANK.partition(" : ")[0].strip() in text
    assert "total_post = h_pre" in text


def test_values_at_the_start_are_those_of_a_run(ran):
    """After a run the groups hold what they were given and what has not moved since; the code
    shown before it is the code that Brian2 has used."""
    circuit, before, _ = ran
    shown = column(table(before, "D2"), "Update", "Code")
    for name in ("excitatory_stateupdater", "inhibitory_stateupdater"):
        assert shown[name] == circuit.network[name].abstract_code
    assert shown["excitatory_stateupdater"].endswith("h = clip(_h, 0, inf)")
    constant = "h_rest u_rest smallest least recruiting"
    constant += " kappa sqrt_alpha eta mu running constant_rate"
    for (group, name), value in at_the_start(before).items():
        if value and name in constant.split():
            held = np.unique(circuit.network[group].variables[name].get_value())
            shown = np.unique([float(number) for number in value.split(", ")])
            np.testing.assert_allclose(shown, held, rtol=1e-5)  # six digits are shown


def test_a_changed_circuit_says_what_was_changed():
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
    start = at_the_start(found)
    assert start["excitatory", "tau_h"] == "33 ms"
    assert ("excitatory", "h_past_1") in start


def test_every_parameter_is_there_and_explained(described, found):
    rows = {str(row[0]): row[1:] for row in table(found, "I").rows}
    assert set(described.parameters.as_dict()) < set(rows)
    assert float(rows["alpha"][0]) == pytest.approx(described.alpha, rel=1e-5)
    gamma = ", ".join(rows[name][0] for name in ("gamma_h A", "gamma_u, gamma_V")).split(", ")
    assert [float(value) for value in gamma] == pytest.approx(described.gamma(1.0), rel=1e-5)
    assert float(rows["floor"][0]) == pytest.approx(described.floor, rel=1e-5)
    constant = make(gain="auto")
    own = {str(row[0]): row[1] for row in table(tables(constant), "I").rows}
    assert float(own["gain, as used"]) == pytest.approx(constant.gain, rel=1e-5)
    gamma = [float(value) for value in own["gamma"].split(", ")]
    assert gamma == pytest.approx(constant.gamma(1.0), rel=1e-5)
    assert [name for name, (_, meaning) in rows.items() if not meaning] == []
    assert rows["n_tiles"][0] == "7"
    front = all_text([table(found, "F")])
    assert repr(LIFT) in front
    assert "5 values a row" in front


def test_measurements_are_those_of_a_run(ran):
    circuit, before, run = ran
    for result, count in columns(table(before, "G"), "Result", "Cells"):
        if result:
            width = 2 if result.endswith("_trace") else 1
            assert int(count) == np.prod(run[result].shape[width:]), result
    # A recorded run leaves the schedule as it was.
    assert column(table(before, "H"), "Object", "Every")["readout_answer"] == "80 steps"
    assert table(tables(circuit), "H") == table(before, "H")


def test_objects_of_any_kind_get_a_row(circuit, monkeypatch):
    """Sources of spikes, functions of Python, synapses on synapses or without any pair, noise, a
    current from a TimedArray: each is named, and whatever is known of it is said."""
    monkeypatch.setitem(prefs, "codegen.target", "numpy")  # of the user's objects: no compiler
    network = circuit.network

    @network_operation(dt=2 * ms, name="meddle")
    def meddle():
        """Looks at the clock."""

    current = TimedArray(np.zeros((4, 3)), dt=5 * ms, name="current")
    equations = "dv/dt = (I - v)/ms + xi*ms**-0.5 : 1\nI = current(t, i) : 1\nheight : volt"
    spiking = {"threshold": "v > 1", "reset": "v = 0", "method": "euler"}
    noisy = NeuronGroup(3, equations, namespace={"current": current}, name="noisy", **spiking)
    poisson = PoissonGroup(2, 10 * Hz, name="poisson")
    spikes = SpikeGeneratorGroup(2, [0], [1] * ms, name="generator")
    kicks = PoissonInput(noisy, "v", 5, 10 * Hz, 0.1)
    unwired = Synapses(noisy, noisy, "s : 1", name="unwired")
    wires = Synapses(poisson, noisy[:2], "s : 1", on_pre="v_post += s", name="wires")
    wires.connect()
    gates = Synapses(noisy, wires, "q : 1", on_pre="s_post += q", name="gates")
    gates.connect(i=[0], j=[1])
    rate = PopulationRateMonitor(noisy, name="rate_of_noisy")
    noisy.run_regularly("v += 1", dt=3 * ms, name="pump")
    watch = StateMonitor(network["excitatory"], "h", record=[2, 4], name="watch")
    heard = SpikeMonitor(noisy, name="heard")
    network.add(meddle, noisy, poisson, spikes, kicks, unwired, wires, gates, rate, watch, heard)

    found = tables(circuit)
    patterns = column(table(found, "C"), "Name", "Pattern")
    assert patterns["unwired"] == "0 of 9 pairs"
    assert patterns["wires"] == "all-to-all"
    assert patterns["gates"] == "1 of 12 pairs"
    sizes = column(table(found, "B"), "Name", "Size")
    assert (sizes["poisson"], sizes["generator"], sizes["noisy"]) == ("2", "2", "3")
    assert ("noisy", "height", "V") in columns(table(found, "D1"), "Object", "Equation", "Unit")
    updates = {row[0]: row[1:] for row in columns(table(found, "D2"), "Update", "Every", "Code")}
    assert kicks.name in updates
    assert updates["pump"] == ("3 ms", "v += 1")
    assert updates["wires_pre"][1] == "v_post += s"
    about = columns(table(found, "D2"), "Update", "Every", "What it does")
    assert ("meddle", "2 ms", "NetworkOperation: Looks at the clock.") in about
    assert ("current", "noisy", "3 values a row, 4 rows of 5 ms") in columns(
        table(found, "F"), "Part", "Part of", "Definition"
    )
    recorded = column(table(found, "G"), "Name", "Cells")
    assert {"rate_of_noisy", "heard"} < set(recorded)
    assert recorded["watch"] == "2"
    assert_every_object_appears(circuit, found)


def test_notes_are_about_something_that_is_there_and_objects_appear_without(
    described, found, monkeypatch
):
    found = [*found, *tables(make(recycle=True))]
    assert set(notes.NOTES) <= {str(cell) for t in found for row in t.rows for cell in row}
    monkeypatch.setattr(notes, "NOTES", {})
    found = tables(described)
    assert_every_object_appears(described, found)
    # Without its note the rule of W is still known to be plasticity: it changes a synapse.
    assert "feedforward_learn" in column(table(found, "E"), "Update", "Code")


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


def forbid_compiling(monkeypatch):
    def refuse(*_args, **_kwds):
        raise AssertionError("describing must not compile")

    monkeypatch.setattr(cache, "get_build", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)


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


def test_markdown_gives_back_what_was_put_in(found):
    found = [*found, NASTY_TABLE]
    text = to_markdown(found)
    for item, rows in zip(found, markdown_tables(text), strict=True):
        assert len(rows) == len(item.rows) + 2
        assert {len(row) for row in rows} == {len(item.header)}
        assert all(cell.strip() == "---" for cell in rows[1])
        cells = chain.from_iterable(rows[2:])
        for put_in, cell in zip(chain.from_iterable(item.rows), cells, strict=True):
            if isinstance(put_in, Code):
                lines = [line for line in cell.strip().split("<br>") if line]
                lines = [re.sub(r"^(`+) ?(.*?) ?\1$", r"\2", line) for line in lines]
                expected = [line for line in put_in.split("\n") if line]
                assert [line.replace(r"\|", "|") for line in lines] == expected
            else:
                assert re.sub(r"\\([\\`*_|<\]])", r"\1", cell.strip()) == put_in
    # Outside code there is no HTML.
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
    """Read back, it holds what was put in."""
    found = [*found, NASTY_TABLE]
    text = to_latex(found)
    check_latex(text)
    bodies = re.findall(r"\\begin\{longtable\}(.*?)\\end\{longtable\}", text, re.DOTALL)
    for item, body in zip(found, bodies, strict=True):
        rows = [line for line in body.splitlines() if line.endswith(r"\tabularnewline")]
        assert len(rows) == len(item.rows) + 1
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(item.header)}
        shares = re.findall(r"dimexpr ([\d.]+)", body.splitlines()[0])
        assert len(shares) == len(item.header)
        assert sum(map(float, shares)) == pytest.approx(1, abs=0.01)  # three digits each
    # The tables can be had without the document.
    body = to_latex(found, document=False)
    assert "documentclass" not in body
    assert body in text
    back = {escaped: plain for plain, escaped in latex.ESCAPES.items()}
    longest_first = "|".join(map(re.escape, sorted(back, key=len, reverse=True)))
    text = re.sub(longest_first, lambda m: back[m[0]], text.replace(r"\allowbreak{}", ""))
    for cell in (cell for item in found[:-1] for row in item.rows for cell in row):
        for line in cell.split("\n"):
            wanted = rf"\texttt{{{line.strip()}}}" if isinstance(cell, Code) else line
            assert not line or wanted in text


def run_briefly(circuit, **options):
    """A few presentations around the centre of the lift."""
    rng = np.random.default_rng(0)
    points = LIFT.center + rng.uniform(-0.3, 0.3, (8, LIFT.n_coordinates))
    labels = np.array([1, -1, 0, 0, 0, 0, 0, 0])
    return circuit.run(points, labels, **options)
