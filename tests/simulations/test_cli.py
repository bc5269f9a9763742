"""The command line as a user meets it."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from circuits.engines import ENGINES
from circuits.engines.solvers import SOLVERS, make_circuit
from simulations import cli
from simulations.experiments import EXPERIMENTS


def run(*arguments) -> SimpleNamespace:
    """A command in this process, which has imported already what a new one would import first."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    before = sys.argv
    sys.argv = ["manifold-circuit", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of which a command does not die
            cli.main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def start(*arguments, **options):
    """A command in a process of its own."""
    command = [sys.executable, "-m", "simulations", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def done(*arguments) -> SimpleNamespace:
    """A command in this process that succeeds."""
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    return result


def refused(*arguments, notes: int = 0) -> str:
    """The one sentence that a command in this process is refused with, after some notes."""
    result = run(*arguments)
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    *before, line = result.stderr.strip().splitlines()
    assert len(before) == notes, before
    assert line.startswith("manifold-circuit: ")
    assert len(line) < 1000
    return line


def leave_figures_empty(monkeypatch) -> None:
    """Draw figures and save them as empty files; `tests/analysis` looks at them."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)


@pytest.fixture
def empty_figures(monkeypatch):
    leave_figures_empty(monkeypatch)


ROOT = Path(__file__).parents[2]

COMMANDS = [
    *("demo", "list", "run", "sweep", "predict", "compare", "plot", "report"),
    *("playground", "describe", "reproduce", "bench", "cache"),
]


def examples(command: str) -> list[list[str]]:
    """The examples in a command's help, as a shell would split them."""
    text = re.sub(r"\s+", " ", run(command, "--help").stdout)
    # An example ends where the next begins, or what the command takes.
    found = re.findall(r"Example: manifold-circuit (.*?) (?=Example:|Arguments:|Options:)", text)
    return [shlex.split(example) for example in found]


def test_the_demo_and_what_its_result_can_show(tmp_path, monkeypatch):
    """The examples of demo and plot, on a short stream, and the command that the demo offers."""
    from circuits import ManifoldCircuit
    from simulations.experiments import two_moons

    make, prepare = two_moons.make_stream, ManifoldCircuit.prepare
    short = two_moons.Settings(n_points=60, label_after=20)
    asked = []

    def prepared(self, **options):
        asked.append(options)
        prepare(self, **options)
        return True  # as if it had been compiled

    monkeypatch.setattr(two_moons, "make_stream", lambda _, seed: make(short, seed))
    monkeypatch.setattr(ManifoldCircuit, "prepare", prepared)
    monkeypatch.chdir(tmp_path)
    example, _ = examples("demo")
    result = done(*example, "--engine", "numpy")
    assert asked == [{"snapshot_every": 1}]
    values = {line[:21].strip(): line[21:] for line in result.stdout.splitlines()}
    assert re.match(r"in \d", values["compiled"])
    assert float(values["largest difference"].split()[0]) <= 1e-8
    assert values["predicted signs"] == "all equal"
    assert "60/60" in result.stderr
    demo = tmp_path / "results" / "demo"
    assert (demo / "two-moons.png").stat().st_size > 50_000
    with xr.open_dataset(demo / "two-moons.nc") as saved:
        classes = make(short, 3).classes
        right = np.sign(saved["y"].values[:, 0]) == classes
        assert saved.attrs["seed"] == 3
    assert values["accuracy"].startswith(f"{right[30:].mean():.4f} on the second half of 60")
    example, _ = examples("plot")
    done(*example)
    assert (demo / "figures" / "two-moons-raster.png").exists()
    words = shlex.split(values["to use the circuit"])[1:]
    used = done(*words, "--engine", "exact")
    y = np.loadtxt(demo / "two-moons-answers.csv", skiprows=1)
    assert y.shape == (60,)
    # The points of a result come with labels, and with classes that score all of them.
    assert f"accuracy {np.mean(np.sign(y) == classes):.4f} on 60 answers" in used.stdout


BAD = {
    "demo --engine gpu": "'gpu'",
    "demo --seed -1": "--seed",
    "fly": "'fly'",
    "run": "name an experiment",
    "run moons": "'moons'",
    "run two-moons --set colour=red": "'colour'",
    "run --data nowhere.csv": "nowhere.csv",
    "compare --set n_tiles=0": "n_tiles",
    f"report {ROOT / 'tests'}": "tests",
    "run two-moons --label-column x": "--label-column does nothing without --data",
    "compare --class-column x": "--class-column does nothing without --data",
    "compare --data x.csv --seed 3": "--seed does nothing with --data",
    "run two-moons --jobs 2 --scheduler tcp://x": "--jobs does nothing",
    "reproduce --jobs 2 --scheduler tcp://x": "--jobs does nothing",
    "sweep two-moons --over mu=1 --jobs 2 --scheduler x": "--jobs",
    "sweep two-moons": "--over",
    "run --data x.csv --seed 0": "--seed does nothing",
    "run --data x.csv --quick": "--quick does nothing",
    "run --from x.nc --engine exact": "--engine does nothing",
    "run two-moons --set label_after=5000": "no point of class",
    "run chessboard-offline --set every=6000": "n_points=5000",
}


def test_bad_input_exits_with_2_and_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, words in BAD.items():
        result = run(*arguments.split())
        assert result.returncode == 2, arguments
        assert words in result.stderr, arguments
        assert "Traceback" not in result.stderr


def test_every_command_has_an_example_and_help_imports_nothing_heavy():
    overview = run("--help").stdout.split("Commands:")[1]
    assert re.findall(r"^  (\w+)", overview, flags=re.MULTILINE) == COMMANDS
    for command in COMMANDS:
        assert examples(command), command
        assert all(example[0] == command for example in examples(command))
    check = "import sys, simulations.cli; assert not {'brian2', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_the_list_names_experiments_and_engines():
    [example] = examples("list")
    listed = run(*example).stdout
    for name, entry in EXPERIMENTS.items():
        assert re.search(
            rf"^{name} +{re.escape(entry.figure)}: {re.escape(entry.title)}$", listed, re.M
        )
    words = re.findall(r"\w+", listed.splitlines()[-1])
    assert {*ENGINES, *SOLVERS} <= set(words)


def test_examples_that_take_long_are_understood(monkeypatch):
    """What they would do is tested elsewhere, at a smaller size."""
    from simulations import bench, parameter_sweep, reproduction, sweep

    calls, given = [], []

    def stop(*arguments, **options):
        calls.append(arguments)
        given.append(options)
        raise SystemExit(0)

    monkeypatch.setattr(sweep, "run_experiment", stop)
    monkeypatch.setattr(reproduction, "run_all", stop)
    monkeypatch.setattr(bench, "run_benchmark", stop)
    monkeypatch.setattr(parameter_sweep, "sweep", stop)
    long = (examples("run")[0], *examples("reproduce"), *examples("bench"), *examples("sweep"))
    for example in long:
        done(*example)
    (config, seeds, _, jobs, _), (*_, quick), timing, over, words = calls
    assert over == ("two-moons", {"tile_radius": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    assert (given[3]["repeats"], given[3]["jobs"]) == (5, 2)
    assert words == ("two-moons", {"mu": [1, 10, 100, 1000], "readout": ["clip", "tanh"]})
    assert config.engine == given[3]["engine"] == "cpp_standalone"
    assert config.parameters.mu == 100
    assert config.parameters.tau_h_ == 0.01
    assert (seeds, jobs, quick, timing) == ([0, 1, 2, 3, 4], 2, True, (True, 3))


def test_examples_on_own_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    points = np.random.default_rng(0).uniform(0, 1, (120, 2))
    labels = np.where(np.arange(120) % 9 == 8, np.sign(points[:, 0] - 0.5), 0)
    rows = np.column_stack([points, labels])
    np.savetxt("points.csv", rows, delimiter=",", header="x,y,label", comments="")
    table = "".join(f"{x},{y},{'iris' if x < 0.5 else 'rose'}\n" for x, y in points)
    (tmp_path / "flowers.csv").write_text("length,width,species\n" + table)
    own = [example for example in examples("run") if "--data" in example]
    own = [example for example in own if "--spiking" not in example]  # in test_twins.py
    assert len(own) == 2
    for example in own:
        result = done(*example, "--engine", "exact")
        assert "'manifold-circuit plot results/" in result.stdout
    assert "classes iris is -1, rose is +1" in result.stdout
    [example] = examples("predict")
    np.savetxt(tmp_path / "new.csv", points, delimiter=",")
    done(*example, "--engine", "exact")
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 121
    with xr.open_dataset(tmp_path / "results" / "flowers.nc") as saved:
        assert json.loads(saved.attrs["label_mapping"]) == {"iris": -1, "rose": 1}
        assert (saved["labels"][:, 0] == np.where(points[:, 0] < 0.5, -1, 1)).all()


def test_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MANIFOLD_CIRCUIT_CACHE", str(tmp_path))
    assert "0 compiled circuits" in run("cache").stdout
    [example] = examples("cache")
    assert "removed 0" in run(*example).stdout


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("empty_figures")
def test_quick_benchmark(tmp_path, monkeypatch, compiled):
    from simulations import bench

    monkeypatch.setattr(bench, "SIZES", ((40, 4),))
    monkeypatch.setattr(bench, "MOONS", 40)
    monkeypatch.setattr(bench, "LENGTH", dict.fromkeys(bench.LENGTH, 40))
    monkeypatch.setattr(bench, "SPIKING", {"rates": None})
    if not compiled:  # the closed form instead, and a process whose parts take 1, 2 and 3 s

        def solved(engine, *arguments, **options):
            engine = "exact" if engine == "cpp_standalone" else engine
            return make_circuit(engine, *arguments, **options)

        def exact(parameters, lift, engine, tile_centers):
            return solved(engine, parameters, lift, tile_centers)

        first = "import time; now = time.time(); print([[now, now + 1, now + 3, now + 6], 0])"
        monkeypatch.setattr(bench, "ManifoldCircuit", exact)
        monkeypatch.setattr(bench, "make_circuit", solved)
        monkeypatch.setattr(bench, "children_clock", time.perf_counter)
        monkeypatch.setattr(bench, "FIRST_STEP", first)
    result = done("bench", "--quick", "--repeats", "1", "--out", tmp_path)
    saved = json.loads((tmp_path / "bench.json").read_text())
    assert set(saved["sizes"]) == {"40 x 4"}
    cost = saved["sizes"]["40 x 4"]["us_per_step"]
    assert set(cost) == set(bench.QUICK) == {"fused", "cpp_standalone", *SOLVERS}
    assert all(value > 0 for value in cost.values())
    *parts, total, brian2_imported = saved["second_process"].values()
    assert total == pytest.approx(sum(parts))
    assert not brian2_imported
    assert compiled or parts[1:] == pytest.approx([1, 2, 3])
    assert "/ fused" in result.stdout
    assert (tmp_path / "bench.png").exists()


def test_a_timing_leaves_the_circuit_as_it_was():
    from simulations import bench
    from simulations.datasets import MOONS_LIFT

    parameters, centers = bench.make_case(6, 2)
    circuit = make_circuit("numpy", parameters, MOONS_LIFT, centers)
    before = circuit.state
    for _ in range(2):  # the second starts where the first left the network
        assert bench.seconds(circuit, circuit._advance, 3) > 0
    for name in ("W", "b", "w", "h", "u", "V"):
        assert (getattr(circuit.state, name) == getattr(before, name)).all(), name


def small(*arguments):
    """Options that make the square experiment quick."""
    return [*arguments, "--engine", "exact", "--set", "n_points=200", "--set", "label_after=50"]


@pytest.mark.usefixtures("empty_figures")
def test_run_and_what_follows_from_it(tmp_path):
    words = small("run", "square-balance", "--repeats", 2, "--out", tmp_path)
    result = done(*words)
    assert "not decided: the circuit fluctuates more: " in result.stdout
    assert "2 of 2 runs were finished before" in done(*words).stdout
    path = tmp_path / "square-balance" / "seed-00001.nc"
    assert "--out" in refused("run", "--from", path, "--out", tmp_path)
    rerun = done("run", "--from", path, "--out", tmp_path / "again")
    assert "run again gives the same numbers" in rerun.stdout
    done("plot", tmp_path / "square-balance.nc")
    assert (tmp_path / "figures" / "square-balance-fig4.png").exists()


def differences_in(printed: str) -> dict[str, float]:
    """The largest differences that a comparison prints."""
    found = re.findall(r"^  (\w+) +(\d\.\de[-+]\d+)$", printed, flags=re.MULTILINE)
    return {name: float(value) for name, value in found}


CONSTANT_GAIN = ("gain=auto", "tau_h=8 ms", "tau_u=50 ms", "tau_V=2 ms", "tiles=first")


@pytest.mark.usefixtures("empty_figures")
def test_own_data_compared_with_the_reference(tmp_path):
    """With a constant gain and tiles on the first points, which takes other code."""
    points = np.random.default_rng(0).uniform(0, 10, (120, 3))
    labels = np.where(np.arange(120) % 20 == 19, np.sign(points[:, 0] - 5), 0)
    path = tmp_path / "mine.csv"
    rows = np.column_stack([points, labels, np.sign(points[:, 0] - 5)])
    np.savetxt(path, rows, delimiter=",", header="x,y,z,label,class", comments="")
    changes = [f"--set={change}" for change in ("n_tiles=15", "mu=10", *CONSTANT_GAIN)]
    ran = done("run", "--data", path, "--out", tmp_path, *changes, "--engine", "exact")
    assert "120 points, 6 labelled" in ran.stdout
    with xr.open_dataset(tmp_path / "mine.nc") as saved:
        assert np.abs(saved["points"].values - points).max() < 1e-12  # text keeps 18 digits
        assert (saved["labels"].values[:, 0] == labels).all()
        assert (saved["classes"].values == rows[:, -1]).all()
        later = np.arange(60, 120)[labels[60:] == 0]
        right = np.mean(np.sign(saved["y"].values[later, 0]) == rows[later, -1])
    assert f"accuracy {right:.4f} on 57 unlabelled points of the second half" in ran.stdout
    options = ["--engine", "numpy", "--points", 40, *changes, "--out", tmp_path / "compare"]
    compared = done("compare", "--data", path, *options)
    values = differences_in(compared.stdout)
    assert {"h", "W", "V_trace"} <= set(values)
    assert max(values.values()) <= 1e-10  # the bound of all engines
    assert "2 of 40 presentations had a label" in compared.stdout
    assert (tmp_path / "compare" / "agreement.png").exists()


@pytest.mark.usefixtures("empty_figures")
def test_two_moons_compared_with_the_reference(tmp_path, monkeypatch):
    """With the studies at few steps and on a coarse map: the fine one is 1110 times the same."""
    from analysis import studies
    from analysis.studies import stability

    two_steps = partial(studies.convergence_study, "reference", (32, 64))
    monkeypatch.setattr(studies, "convergence_study", two_steps)
    make = stability.stability_map
    coarse = (np.geomspace(1 / 64, 64, 7), np.linspace(0.04, 1.2, 6))
    monkeypatch.setattr(stability, "stability_map", lambda *_, **options: make(*coarse, **options))
    options = ("--engine", "numpy", "--points", 20, "--out", tmp_path)
    result = done("compare", "--studies", *options)
    found = differences_in(result.stdout)
    assert {"h", "u", "V", "W", "b", "h_trace", "V_trace"} <= set(found)
    assert max(found.values()) <= 1e-10  # the bound of all engines
    # Two moons are labelled after presentation 200; the command's example shows more.
    assert re.search(r"none of the 20 presentations .*at presentation 20\d", result.stdout)
    example = examples("compare")[0]
    assert int(example[example.index("--points") + 1]) > 205
    with xr.open_dataset(tmp_path / "steps.nc") as steps:
        assert steps["V_trace"].shape == (5, 80, 4, 40)
    assert {path.stem for path in tmp_path.glob("*.png")} == {
        *("agreement", "agreement-steps", "settling-error", "convergence", "stability")
    }


def test_describe_a_circuit_and_its_spiking_twin(tmp_path):
    described = done("describe", "--set", "n_tiles=7", "--out", tmp_path / "model")
    assert "excitatory (7)" in described.stdout
    assert (tmp_path / "model" / "model.tex").read_text().startswith("\\documentclass")
    words = ["--neuron", "escape", "--cells", 2, "--set-spiking", "dt=0.25 ms"]
    described = done("describe", "--spiking", *words, "--set", "n_tiles=7", "--out", tmp_path)
    assert "excitatory (14)" in described.stdout
    assert "rand() < rate_h*clip(v, 0, inf)*dt" in described.stdout
    assert "| `spiking.dt` | 0.25 ms |" in described.stdout
    assert "rate\\_h" in (tmp_path / "model.tex").read_text()


def test_playground(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [example] = examples("playground")
    assert run(*example).stdout == "wrote ring.html\n"
    page = Path("ring.html").read_text()
    assert '"data": "ring"' in page
    assert '"n_tiles": 80' in page
    done("playground", "--seed", 4, "--out", tmp_path)
    assert '"seed": 4' in (tmp_path / "playground.html").read_text()
    Path("mine.html").write_text("no page")
    assert "mine.html" in refused("playground", "--out", "mine.html")
    assert Path("mine.html").read_text() == "no page"
    assert "4294967295" in refused("playground", "--seed", 2**32, "--out", "new.html")
    for change, words in (
        *(("data=torus", "'torus'"), ("drift=1", "drift"), ("noise=x", "noise"), ("mu=[3]", "mu")),
        *(("noise=3", "0.2"), ("gain=auto", "100000"), ("n_readouts=2", "one readout")),
        *(("tiles=first", "tiles"), ("tau_q=1", "'tau_q'")),
    ):
        assert words in refused("playground", "--out", "new.html", "--set", change)
    assert not Path("new.html").exists()
