"""Circuits on disk: what was saved goes on as if it had never stopped."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from circuits import CircuitModel, ManifoldCircuit, ReferenceCircuit, Rule, reference, tiling
from circuits.engines.solvers import make_circuit
from circuits.errors import EngineError, InputError, ParameterError
from circuits.state import CircuitState
from circuits.storage import results
from circuits.storage import saved_circuit as keeping
from circuits.storage.files import FileError
from tests.circuits.test_agreement import LIFT
from tests.conftest import moons, small_circuit
from tests.refusing import refused

pytestmark = [
    pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning"),
    pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning"),
]

SLOW = pytest.mark.slow
POINTS, _, LABELS = moons(60, seed=2, after=10)


def load(path, solver):
    if solver in ("reference", "exact"):
        settling = "exact" if solver == "exact" else "dynamics"
        return ReferenceCircuit.load(path, settling=settling)
    return ManifoldCircuit.load(path, engine=solver)


VARIANTS = {
    "default": {},
    "carry over": {"reset": False},
    "recycled": {"n_tiles": 2, "recycle": True},
    "gated": {"readout_rule": "gated", "readout_rate": 0.5, "clamp_labels": True},
    "constant gain": {"gain": "auto", "tiles": "first", "reset": False, "tau_h": "8 ms"},
}


@pytest.mark.parametrize(
    ("solver", "variant"),
    [
        *(("reference", variant) for variant in VARIANTS),
        *(("exact", "recycled"), ("numpy", "constant gain")),
        pytest.param("cpp_standalone", "gated", marks=SLOW),
    ],
)
def test_saved_and_loaded_goes_on_as_if_nothing_had_happened(solver, variant, tmp_path):
    common = {"tile_radius": 1.0, "n_readouts": 2, "mu": (1000.0, 3.0)}
    parameters = small_circuit(**common | {"steps_per_presentation": 10} | VARIANTS[variant])
    circuit = make_circuit(solver, parameters, LIFT)
    points, _, labels = (part[:25] for part in moons(60, seed=2, after=3))
    circuit.run(points[:10], labels[:10])
    circuit.predict(points[:3])
    path = circuit.save(tmp_path / "deep" / "circuit.nc")
    loaded = load(path, solver)
    assert loaded.parameters == parameters
    assert loaded.lift.as_dict() == LIFT.as_dict()
    assert (loaded.state.learned, loaded.state.shown) == (10, 13)
    if variant == "default":
        assert loaded.state.w.any()
        assert 0 < loaded.state.in_use.sum() < 6  # others are recruited later
    first, second = circuit.run(points[10:], labels[10:]), loaded.run(points[10:], labels[10:])
    # The same computation from the same numbers, by the same solver.
    assert first.equals(second)
    assert (circuit.predict(points) == loaded.predict(points)).all()
    for field in dataclasses.fields(CircuitState):
        ours, theirs = (getattr(one.state, field.name) for one in (circuit, loaded))
        assert np.array_equal(ours, theirs) or ours == theirs, field.name


def test_another_solver_takes_over(tmp_path):
    """A solver that loads a file does what it does from the state of the one that saved it."""
    parameters = small_circuit(tile_radius=1.0, reset=False, steps_per_presentation=10)
    circuit = ManifoldCircuit(parameters, LIFT, "cpp_standalone")
    circuit.run(POINTS[:30], LABELS[:30])
    state, path = circuit.state, circuit.save(tmp_path / "circuit.nc")
    expected = circuit.run(POINTS[30:40])
    for solver in ("numpy", "cpp_standalone", "reference", "exact"):
        other = make_circuit(solver, parameters, LIFT)
        other.state = state
        loaded = load(path, solver)
        assert loaded.engine == solver
        found = loaded.run(POINTS[30:40])
        assert found.equals(other.run(POINTS[30:40])), solver
        for name in ("h", "u", "y", "W", "b", "w", "V") if solver != "exact" else ():
            # Sums in other orders, over 10 presentations.
            assert np.abs(found[name].values - expected[name].values).max() <= 1e-10, name


def test_every_field_of_the_state_is_in_the_file(tmp_path):
    circuit = ReferenceCircuit(small_circuit(tile_radius=1.0), LIFT, tile_centers=POINTS[:6])
    path = circuit.save(tmp_path / "circuit.nc")  # before it was shown anything
    whole = results.load(path)
    for field in dataclasses.fields(CircuitState):
        if field.name == "extra":
            continue
        assert (field.name in whole) != (field.name in whole.attrs), field.name
        results.save(whole.drop_vars(field.name, errors="ignore"), path)
        if field.name in whole.attrs:
            less = whole.copy()
            del less.attrs[field.name]
            results.save(less, path)
        refused(lambda: ReferenceCircuit.load(path), f"no {field.name}", FileError)


def test_a_model_of_ones_own_and_values_set_on_the_network(tmp_path):
    from brian2 import ms

    mask = np.ones((2, 6), dtype=bool)
    mask[0, ::2] = False
    leaky = "dh/dt = (gain*(drive - sqrt_alpha*b - inhibition) - leak*h*(slow/tau_h))/tau_h : 1"
    model = CircuitModel(
        excitatory=Rule(leaky),
        connections={"lateral": mask},
        delay="2 ms",
        namespace={"leak": 0.1, "slow": 3 * ms},
    )
    parameters = small_circuit(tile_radius=1.0, steps_per_presentation=10, reset=False)
    circuit = ManifoldCircuit(parameters, LIFT, "numpy", model=model)
    path = tmp_path / "circuit.nc"
    refused(lambda: circuit.save(path), "no state", InputError)
    circuit.run(POINTS[:30], LABELS[:30])
    assert circuit.save(path) == path
    loaded = ManifoldCircuit.load(path, "numpy")
    assert loaded.model.as_dict() == model.as_dict()
    later = POINTS[30:40], LABELS[30:40]
    assert loaded.run(*later).equals(circuit.run(*later))
    refused(lambda: ReferenceCircuit.load(path), "Brian2 text", ParameterError)
    circuit.network["excitatory"].tau_h = 20 * ms
    again = ManifoldCircuit.load(circuit.save(path), "numpy")
    assert set(again.values_set) == {"excitatory.tau_h"}
    assert again.run(POINTS[:9]).equals(circuit.run(POINTS[:9]))
    extended = ManifoldCircuit(parameters, LIFT, "numpy", extend=lambda network: None)
    refused(lambda: extended.save(tmp_path / "extended.nc"), "extended", EngineError)
    assert list(tmp_path.iterdir()) == [path]


def test_values_set_on_a_network_that_is_compiled(tmp_path):
    from brian2 import ms

    parameters = small_circuit(tile_radius=1.0, steps_per_presentation=10)
    circuit = ManifoldCircuit(parameters, LIFT, "cpp_standalone", tile_centers=POINTS[:6])
    before = circuit.respond(POINTS)
    circuit.network["excitatory"].tau_h = 20 * ms
    path = circuit.save(tmp_path / "circuit.nc")
    expected = circuit.respond(POINTS)
    assert (expected != before).any()
    assert (ManifoldCircuit.load(path, "cpp_standalone").respond(POINTS) == expected).all()
    refused(lambda: ReferenceCircuit.load(path), "excitatory.tau_h", ParameterError)


def test_numpy_functions_come_from_the_one_who_loads(tmp_path):
    """Also where a rule has the paper's text: what it computed in NumPy is not in the file."""
    slower = Rule(tiling.BIAS, lambda b, h, alpha, eta: reference.learn_bias(b, h, alpha, 0))
    model = CircuitModel(bias=slower, namespace={"part": 0.5, "truth": True, "whole": 3})
    circuit = ReferenceCircuit(small_circuit(tile_radius=1.0), LIFT, model=model)
    circuit.run(POINTS[:30])
    path = circuit.save(tmp_path / "circuit.nc")
    refused(lambda: ReferenceCircuit.load(path), "'bias'", ParameterError)
    assert repr(dict(keeping.Kept(path).model.namespace)) == repr(dict(model.namespace))
    loaded = ReferenceCircuit.load(path, model=model)
    assert loaded.run(POINTS[30:]).equals(circuit.run(POINTS[30:]))


def trained():
    circuit = ReferenceCircuit(small_circuit(tile_radius=1.0), LIFT, settling="exact")
    circuit.run(POINTS)
    return circuit


def test_only_a_circuit_is_written_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    circuit = trained()
    results.save(circuit.run(POINTS), tmp_path / "run.nc")
    (tmp_path / "points.csv").write_text("1,2")
    (tmp_path / "cut.nc").write_bytes(circuit.save("whole.nc").read_bytes()[:-1])
    (tmp_path / "gone.nc").symlink_to("nowhere")
    before = {p.name: p.is_file() and p.read_bytes() for p in tmp_path.iterdir()}
    for name in ("run.nc", "points.csv", "cut.nc", "gone.nc"):
        refused(lambda n=name: circuit.save(n), f"^{name} ", FileError)
    for folder in ("", tmp_path):
        refused(lambda f=folder: circuit.save(f), "does not hold a circuit", FileError)
    assert {p.name: p.is_file() and p.read_bytes() for p in tmp_path.iterdir()} == before
    for name in (None, 3, b"bytes"):
        for use in (circuit.save, ReferenceCircuit.load, ManifoldCircuit.load):
            refused(lambda u=use, n=name: u(n), "name of a file", InputError)
    circuit.run(POINTS)
    circuit.save("whole.nc")
    assert ReferenceCircuit.load("whole.nc").state.learned == 180
    assert circuit.save("without-a-suffix") == Path("without-a-suffix")
    assert ReferenceCircuit.load("without-a-suffix").state.learned == 180
    # Texts are kept with it.
    circuit.save("whole.nc", comment="of Tuesday", label_mapping="{}")
    assert keeping.Kept("whole.nc").attributes["comment"] == "of Tuesday"
    for attributes in ({"model": "x"}, {"learned": "x"}, {"number": 3}):
        refused(lambda a=attributes: circuit.save("whole.nc", **a), "kept with", InputError)


def test_what_is_no_circuit_is_refused(tmp_path):
    path = tmp_path / "circuit.nc"
    circuit = trained()
    whole = results.load(circuit.save(path))
    results.save(circuit.run(POINTS), tmp_path / "run.nc")
    results.save(xr.Dataset({"a": ("x", [1.0])}), tmp_path / "other.nc")
    results.save(whole.assign_attrs(format_version=99), tmp_path / "later.nc")
    (tmp_path / "cut.nc").write_bytes(path.read_bytes()[:-200])
    for name in ("run.nc", "other.nc", "later.nc", "cut.nc", "nowhere", ""):
        refused(lambda n=name: ReferenceCircuit.load(tmp_path / n), error=FileError, most=400)
    model = json.loads(whole.attrs["model"])
    changes = (
        {"format_version": 0},
        {"parameters": "{}{"},
        {"parameters": "[" * 10**5},
        {"lift": "[]"},
        {"lift": json.dumps({"center": [0, 0, 0], "radius": 3})},
        {"model": "{}"},
        {"model": json.dumps(model | {"changed": ["bias"], "bias": 3})},
        {"model": json.dumps(model | {"changed": ["connections"], "connections": [1]})},
        {"model": json.dumps(model | {"changed": ["delay"], "delay": "1 h"})},
        {"learned": -1},
        {"shown": [1, 2]},
    )
    broken = [whole.assign_attrs(change) for change in changes]
    broken += [whole.assign(W=whole["W"] * np.nan), whole.assign(V=whole["V"].astype(str))]
    broken += [whole.isel(tile=slice(3)), xr.Dataset(attrs=whole.attrs)]
    words = f"^{re.escape(str(path))} does not hold a whole circuit"
    for kept in broken:
        results.save(kept, path)
        refused(lambda: ReferenceCircuit.load(path), words, FileError, most=600)
    refused(lambda: ManifoldCircuit.load(path, "numpy"), words, FileError, most=600)
