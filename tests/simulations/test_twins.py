"""Commands with the spiking twin: what they print and save, and what they refuse."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from circuits import (
    CircuitParameters,
    SphereLift,
    SpikingCircuit,
    SpikingParameters,
)
from circuits.errors import InputError
from circuits.storage import results
from circuits.storage.saved_circuit import load_circuit
from simulations.changes import parse_changes, spiking_parameters
from simulations.experiments import two_moons
from tests.simulations.test_cli import done, examples, leave_figures_empty, refused, run

LIFT = SphereLift((0.0, 0.0), 3.0)
SHORT = {"presentation": "40 ms", "window": "20 ms", "readout_cells": 3}
"""Presentations that take little time and show little."""
QUICK = [word for key, value in SHORT.items() for word in ("--set-spiking", f"{key}={value}")]
QUICK += ["--engine", "numpy"]
POINTS = np.random.default_rng(0).uniform(-1, 1, (8, 2)).round(3)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with points, of which every fourth has a label."""
    monkeypatch.chdir(tmp_path)
    leave_figures_empty(monkeypatch)
    rows = np.column_stack([POINTS, [0, 0, 0, 1, 0, 0, 0, -1]])
    np.savetxt("points.csv", rows, delimiter=",", header="x,y,label", comments="")
    return tmp_path


def twin():
    """A small spiking circuit that has learned a little."""
    parameters = CircuitParameters(n_tiles=4, n_interneurons=2, tile_radius=0.9, mu=5.0)
    circuit = SpikingCircuit(parameters, LIFT, "numpy", spiking=SpikingParameters(**SHORT))
    circuit.run(POINTS[:6], np.sign(POINTS[:6, 0]))
    return circuit


def assert_comparison(text, out, gain):
    """That a comparison of spikes, rates and the closed form prints what its results hold."""
    assert "if cells, 2 per tile and interneuron, with noise, 40 ms per point, engine nu" in text
    assert "2 of 8 presentations had a label" in text
    names = ("spiking", "rate", "closed-form", "frozen")
    spiking, rate, exact, frozen = (results.load(out / f"{name}.nc") for name in names)
    assert (out / "spiking.png").exists()
    assert spiking.attrs["spiking_seed"] == 3
    assert json.loads(spiking.attrs["spiking"])["cells"] == 2
    assert "spiking" not in rate.attrs
    assert exact.attrs["engine"] == "exact"

    # The weights that all three were given are those that the closed form ends with.
    lift = SphereLift(**json.loads(exact.attrs["lift"]))
    threshold = math.sqrt(exact.attrs["alpha"]) * exact["b"].values.ravel()
    drive = np.maximum(lift(POINTS) @ exact["W"].values.T - threshold, 0)
    size = np.linalg.norm(drive, axis=1)
    covered = size > 0
    assert f"frozen: {covered.sum()} of 8 covered" in text
    frozen = frozen.isel(presentation=covered)
    h, size = drive[covered] / size[covered, None], size[covered]
    assert np.abs(frozen["h"].values - h).max() < 1e-12
    power = size * (2 / size if gain == "control" else gain) - 0.5
    assert np.abs(frozen["u_power_expected"].values - power).max() < 1e-12
    u = frozen["inhibitory_hz"].values / 85
    assert u.shape[1] == 4

    rows = re.findall(r"^  (\S.{24,}?) +((?:\S+ *)+)$", text, flags=re.MULTILINE)
    found = {name.strip(): cells.split() for name, cells in rows if "  " not in name.strip()}
    apart = np.linalg.norm(frozen["h_spiking"].values - h, axis=1).mean()
    assert float(found["mean |h - closed form|"][0]) == pytest.approx(apart, abs=1e-4)
    own, none, expected = found["mean sum of u^2/N, cells"]
    assert float(own) == pytest.approx((u**2).sum(axis=1).mean() / 2, abs=1e-4)
    assert none == "-"
    assert float(expected) == pytest.approx(power.mean(), abs=1e-4)
    in_use = [str((r["recruited"].values >= 0).sum()) for r in (spiking, rate, exact)]
    assert found["tiles in use"] == in_use
    assert found["signs of y as rate circuit"][1] == "100.00%"
    top = frozen["excitatory_hz"].values.max()
    assert float(found["E cells at most, Hz"][0]) == pytest.approx(top, abs=0.05)


def test_compare_says_what_its_results_hold(here):
    words = ("compare", "--spiking", "--data", "points.csv", "--seed", 3, "--cells", 2, *QUICK)
    words = (*words, "--set", "n_tiles=5", "--set", "n_interneurons=2", "--out", "out", "--set")
    for gain in ("control", 3.0):  # the second is written over the first
        assert_comparison(done(*words, f"gain={gain}").stdout, here / "out", gain)
    frozen = here / "out" / "frozen.nc"
    results.save(results.load(frozen).assign_attrs(kind="mine"), frozen)
    assert "mine" in refused(*words, "gain=3.0", notes=1)


def test_a_spiking_circuit_from_a_file_to_its_answers(here):
    options = ("--set", "n_tiles=5", "--neuron", "escape", "--seed", 7, *QUICK, "--out", "out")
    text = done("run", "--data", "points.csv", "--spiking", *options).stdout
    assert "excitatory cells that respond fire at " in text
    assert "settled" not in text  # nothing stands still among spikes
    kept = SpikingCircuit.load("out/points-circuit.nc", "numpy")
    assert (kept.spiking.neuron, kept.seed) == ("escape", 7)
    assert "spiking" in results.load(here / "out" / "points.nc").attrs
    np.save("new.npy", POINTS[:5])
    answered = done("predict", "out/points-circuit.nc", "--data", "new.npy", "--engine", "numpy")
    _, *rows = (here / "new-answers.csv").read_text().splitlines()
    y = kept.predict(POINTS[:5])[:, 0]
    assert [float(row) for row in rows] == y.tolist()
    assert ("or too weakly to be heard" in answered.stdout) == bool((y == 0).any())
    assert "with rates" not in answered.stderr


def test_the_demo_with_spikes(here, monkeypatch):
    real = two_moons.make_stream
    short = two_moons.Settings(n_points=10, label_after=4)
    small = CircuitParameters(n_tiles=6, n_interneurons=2)
    monkeypatch.setattr(two_moons, "make_stream", lambda _, seed: real(short, seed, small))
    text = done("demo", "--spiking", "--seed", 2, *QUICK, "--out", "out").stdout
    values = {line[:21].strip(): line[21:] for line in text.splitlines()}
    assert re.fullmatch(r"\d+\.\d\d% as the NumPy reference of rates", values["predicted signs"])
    assert values["firing"].startswith("excitatory cells that respond fire at ")
    assert "largest difference" not in values
    assert load_circuit("out/two-moons-circuit.nc", "numpy").seed == 2
    saved = results.load(here / "out" / "two-moons.nc")
    assert json.loads(saved.attrs["spiking"])["presentation"] == "40 ms"


def test_examples_with_spikes_are_understood(here, monkeypatch):
    """What they do is tested above, at a smaller size."""
    from simulations import demo, own_data, twins

    calls = []
    for module, name in ((demo, "run_demo"), (own_data, "run_file"), (twins, "compare_spiking")):
        monkeypatch.setattr(module, name, lambda *given: calls.append(given))
    for command in ("demo", "run", "compare"):
        [example] = [words for words in examples(command) if "--spiking" in words]
        done(*example)
    (*_, first), (*_, second, seed, _), (_, _, points, _, third, _, _) = calls
    assert first == SpikingParameters(cells=4)
    assert (second, seed) == (SpikingParameters(), 0)
    assert (third, points) == (SpikingParameters(cells=4, presentation="500 ms"), 500)


BAD = {
    "demo --neuron if": "--neuron does nothing without --spiking",
    "compare --cells 2": "--cells does nothing without --spiking",
    "run --data points.csv --set-spiking slope=3": "--set-spiking does nothing without --spiking",
    "run two-moons --spiking": "--spiking does nothing without --data",
    "run --from x.nc --spiking": "--spiking does nothing without --data",
    "compare --spiking --studies": "--studies does nothing with --spiking",
    "compare --spiking --neuron lif": "got 'lif'",
    "compare --spiking --cells 0": "--cells",
    "demo --spiking --set-spiking colour=red": "'colour'",
    "demo --spiking --set-spiking dt": "--set-spiking takes key=value, got 'dt'",
    "demo --spiking --cells 2 --set-spiking cells=3": "--cells is what --set-spiking cells sets",
    "demo --spiking --set-spiking window=1000ms": "window",
    "run --data points.csv --spiking --engine exact": "engine exact",
    "compare --spiking --engine exact": "'exact'",
    "compare --spiking --data nowhere.csv": "nowhere.csv",
    "compare --spiking --set reset=false": "reset",
}


def test_bad_input_is_one_sentence_and_writes_nothing(here):
    before = sorted(here.rglob("*"))
    for arguments, words in BAD.items():
        ended = run(*arguments.split())
        assert ended.returncode == 2, (arguments, ended.stdout)
        assert words in ended.stderr, arguments
        assert "Traceback" not in ended.stderr
    assert sorted(here.rglob("*")) == before


def test_spiking_parameters_from_options():
    given = ["presentation=500 ms", "slope=3", "noise=0.5"]
    assert spiking_parameters("if", 3, given) == SpikingParameters(
        neuron="if", cells=3, presentation="500 ms", slope=3, noise=0.5
    )
    assert spiking_parameters("escape", None, []).neuron == "escape"
    assert spiking_parameters(None, None, []) == SpikingParameters()
    for words in (["slope=1", "slope=2"], ["slope=" + "[" * 50_000], ["slope=" + "1" * 500]):
        with pytest.raises(InputError, match=r"^--set-spiking "):
            spiking_parameters(None, None, words)
        with pytest.raises(InputError, match=r"^--set "):
            parse_changes(words)
