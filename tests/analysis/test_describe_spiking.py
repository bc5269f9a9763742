"""The description of a spiking circuit against the live objects it is made from."""

from __future__ import annotations

import re

import pytest
from brian2 import NeuronGroup, SpikeMonitor, Synapses, ms
from brian2.groups.neurongroup import Resetter, Thresholder
from brian2.synapses.synapses import SynapticPathway

from analysis.describe import tables
from circuits import CircuitParameters, SpikingCircuit, SpikingParameters
from circuits.engines.compiler import compiler_works
from tests.analysis.test_describe import (
    LIFT,
    SHAPE,
    assert_every_object_appears,
    column,
    columns,
    forbid_compiling,
    make,
    run_briefly,
    table,
)

KINDS = {
    "if": {},
    "several": {"cells": 3},
    "escape": {"neuron": "escape"},
    "gated": {"recycle": True, "readout_rule": "gated", "readout_rate": 0.9, "clamp_labels": True},
    "constant gain": {"gain": "auto", "tiles": "first", "readout": "tanh"},
}
OF_CELLS = set(SpikingParameters().as_dict())
BRIEF = {"presentation": "10 ms", "window": "5 ms", "readout_cells": 3}


def twin_of(engine="numpy", extend=None, **changes):
    cells = BRIEF | {name: value for name, value in changes.items() if name in OF_CELLS}
    rest = SHAPE | {name: value for name, value in changes.items() if name not in OF_CELLS}
    spiking = SpikingParameters(**cells)
    return SpikingCircuit(CircuitParameters(**rest), LIFT, engine, spiking=spiking, extend=extend)


@pytest.fixture(scope="module", params=KINDS)
def described(request):
    """A circuit of every kind, which no test runs or changes, and its description."""
    circuit = twin_of(**KINDS[request.param])
    return circuit, tables(circuit)


def groups(circuit):
    """The circuit's groups and synapses that have equations."""
    return [item for item in circuit.network.sorted_objects if hasattr(item, "equations")]


def updates(found):
    """Rows about updates, by name: code, when it runs, and what it does."""
    rows = columns(table(found, "D2"), "Update", "Code", "Every", "What it does")
    rows += columns(table(found, "E"), "Update", "Code", "Every", "What it does")
    rows += columns(table(found, "F"), "Part", "Definition", "Every", "What it does")
    rows += columns(table(found, "G"), "Name", "Variables", "Every", "When")
    return {name: rest for name, *rest in rows}


def test_every_object_appears_with_its_code_and_a_remark(described):
    circuit, found = described
    assert_every_object_appears(circuit, found)
    for letter in ("D2", "E"):
        for row in table(found, letter).rows:
            assert all(row), row
    for row in table(found, "B").rows + table(found, "G").rows:
        assert row[-1], row
    assert [name for name, _, meaning in table(found, "I").rows if not meaning] == []
    for name in ("D2", "E", "F", "G", "H"):
        every = [row[table(found, name).header.index("Every")] for row in table(found, name).rows]
        # Nothing falls between the steps.
        assert set(every) <= {"step", "20 steps", "point", "spike"} | {
            f"spike of {group.name}" for group in groups(circuit)
        }


def test_thresholds_and_resets_are_those_of_the_groups(described):
    circuit, found = described
    rows = updates(found)
    network = circuit.network
    seen = 0
    for item in network.sorted_objects:
        group = getattr(item, "group", None)
        if isinstance(item, Thresholder):
            assert rows[item.name][:2] == [group.events["spike"], "step"]
        elif isinstance(item, Resetter):
            assert rows[item.name][:2] == [group.event_codes["spike"].strip(), "spike"]
        else:
            continue
        seen += 1
    assert seen == 6
    neurons = column(table(found, "A"), "Aspect", "Description")["Neuron model"]
    for name in ("excitatory", "inhibitory", "readout"):
        (words,) = [text for text in neurons.split("; ") if text.startswith(f"{name}: spiking")]
        assert words.endswith(f"a spike if {network[name].events['spike']}")
        assert ("white noise" in words) == ("xi" in str(network[name].equations))
    assert "inputs: rate units, no dynamics" in neurons


def test_pathways_are_told_with_code_and_in_order(described):
    circuit, found = described
    rows = updates(found)
    paths = [item for item in circuit.network.sorted_objects if isinstance(item, SynapticPathway)]
    names = ["lateral_pre", "lateral_post", "classifier_pre", "classifier_post", "feedforward_post"]
    assert [item.name for item in paths] == names
    for item in paths:
        assert rows[item.name][:2] == [item.code, f"spike of {item.source.name}"]
    schedule = columns(table(found, "H"), "Object", "Slot", "Order", "Part of", "Every")
    assert [row for row in schedule if row[1] == "synapses"] == [
        (item.name, "synapses", str(number), item.synapses.name, "step")
        for number, item in enumerate(paths)
    ]
    # What moves cells is in one table, what changes synapses in the other; some do both.
    moving, learning = (column(table(found, letter), "Update", "Code") for letter in ("D2", "E"))
    both = {name for name in moving if name in learning}
    fades = circuit.parameters.readout_rule == "gated"
    assert {item.name for item in paths} & both == {"lateral_pre", "lateral_post"} | (
        {"classifier_pre"} if fades else set()
    )
    assert ("classifier_pre" in learning) == fades
    model = column(table(found, "A"), "Aspect", "Description")["Synapse model"]
    for item in paths:
        for line in item.code.splitlines():
            delivers = re.match(r"\w+_(pre|post) ", line) is not None
            assert (f"{line} on a spike of {item.source.name}" in model) == delivers


def test_plasticity_is_all_that_changes_weights(described):
    _, found = described
    summary = column(table(found, "A"), "Aspect", "Description")["Plasticity"]
    learned = {"lateral: V", "feedforward: W", "excitatory: b", "classifier: w"}
    assert set(summary.split("; ")) == learned
    shown = column(table(found, "E"), "Update", "Code")
    for name, code in updates(found).items():
        owner = name.rpartition("_")[0].partition("_")[0]
        weight = {
            "lateral": "V",
            "feedforward": "W",
            "excitatory": "b",
            "classifier": "(w|learned)",
        }
        changed = owner in weight and re.search(rf"^{weight[owner]} [-+]?=", code[0], re.MULTILINE)
        # V of a new presentation is where it starts, not what it learned.
        assert (name in shown) == bool(changed and name != "lateral_restart"), name
    assert "b += eta*sqrt_alpha*q_window*inside" in shown["excitatory_spike_resetter"]
    assert shown["lateral_stateupdater"] == "_V = V + dt*(-decays*V/tau_V)\nV = _V"


def test_measurements_and_steps_are_those_of_a_run():
    """The code shown before a run is the code that Brian2 has used after it."""
    circuit = twin_of(cells=2)
    found = tables(circuit)
    rows = columns(table(found, "G"), "Name", "Of", "Cells", "Every", "Result", "When")
    code = column(table(found, "D2"), "Update", "Code")
    assert "_sample_xi = randn()/sqrt(dt)" in code["excitatory_stateupdater"]
    assert code["excitatory_stateupdater"].endswith("v = clip(_v, 0, inf)")
    run = run_briefly(circuit, record=circuit.recordable, snapshot_every=1)
    for group in ("excitatory", "inhibitory", "readout"):
        updater = circuit.network[f"{group}_stateupdater"]
        assert code[updater.name] == updater.abstract_code
    results = [name for row in rows for name in row[4].split(", ") if name]
    derived = {f"{group}_hz" for group in ("excitatory", "inhibitory", "readout")}
    given = {"W", "b", "w", "V", "recruited", "points", "labels", "change", "covered"}
    assert set(results) == set(run.data_vars) - derived - given - {"snapshot_presentation"}
    sizes = {name: len(circuit.network[name]) for _, name, *_ in rows}
    assert all(int(count) == sizes[of] for _, of, count, *_ in rows)
    spikes = {row[0]: row for row in rows if row[3] == "spike"}
    assert set(spikes) == {"excitatory_spikes", "inhibitory_spikes", "readout_spikes"}
    for _, of, *_, result, _ in spikes.values():
        assert result.split(", ")[:2] == [f"{of}_spike_time", f"{of}_spike_cell"]


def extra(network):
    """Cells of one's own that listen to the tiles, with a delay."""
    equations = "dv/dt = -v/tau : volt\ntau : second\ncount : integer"
    spiking = {"threshold": "v > 1*volt", "reset": "v = 0*volt\ncount += 1", "refractory": "2*ms"}
    clock = network["excitatory"].clock
    cells = NeuronGroup(4, equations, method="euler", clock=clock, name="listeners", **spiking)
    wires = Synapses(network["excitatory"], cells, "s : 1", on_pre="v_post += s*volt", name="wires")
    wires.connect(j="i % 4")
    wires.delay = "(1 + j)*ms"
    network.add(cells, wires, SpikeMonitor(cells, name="heard"))
    network["excitatory"].run_regularly("inh += 0.1", dt=3 * ms, name="pump")


def test_what_a_user_adds_is_described():
    found = tables(twin_of(extend=extra))
    assert column(table(found, "B"), "Name", "Size")["listeners"] == "4"
    assert ("wires", "7 of 28 pairs") in columns(table(found, "C"), "Name", "Pattern")
    rows = {
        row[:2]: row[2:]
        for row in columns(table(found, "D1"), "Object", "Equation", "Unit", "What it is")
    }
    # A remark on a variable of the circuit is none on somebody else's of the same name.
    assert rows["listeners", "dv/dt = -v/tau"] == ("V", "")
    assert rows["listeners", "count"] == ("1", "")
    seen = updates(found)
    *when, about = seen["listeners_spike_thresholder"]
    assert (when, "2*ms" in about) == (["v > 1*volt", "step"], True)
    assert seen["listeners_spike_resetter"][:2] == ["v = 0*volt\ncount += 1", "spike"]
    assert seen["wires_pre"][:2] == ["v_post += s*volt", "spike of excitatory, 1 ms to 4 ms later"]
    assert seen["pump"][:2] == ["inh += 0.1", "6 steps"]
    assert column(table(found, "G"), "Name", "Cells")["heard"] == "4"
    summary = column(table(found, "A"), "Aspect", "Description")
    assert "listeners: spiking units, dv/dt, a spike if v > 1*volt" in summary["Neuron model"]
    delayed = "wires: v_post += s*volt on a spike of excitatory, 1 ms to 4 ms later"
    assert delayed in summary["Synapse model"]
    assert "Changed from the spiking circuit" in summary


@pytest.mark.skipif(not compiler_works(), reason="needs a C++ compiler")
@pytest.mark.parametrize("maker", [make, twin_of])
def test_a_standalone_circuit_is_described_without_compiling(maker, monkeypatch):
    standalone, expected = maker("cpp_standalone"), tables(maker())
    forbid_compiling(monkeypatch)
    assert tables(standalone) == expected
