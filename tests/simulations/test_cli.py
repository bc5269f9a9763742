"""The command line as a user meets it."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from circuits.engines import ENGINES
from circuits.making import SOLVERS
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


ROOT = Path(__file__).parents[2]

COMMANDS = [
    "demo",
    "list",
    "run",
    "sweep",
    "predict",
    "compare",
    "plot",
    "report",
    "playground",
    "describe",
    "reproduce",
    "bench",
    "cache",
]


def examples(command: str) -> list[list[str]]:
    """The examples in a command's help, as a shell would split them."""
    text = re.sub(r"\s+", " ", run(command, "--help").stdout)
    # An example ends where the next begins, or what the command takes.
    found = re.findall(r"Example: manifold-circuit (.*?) (?=Example:|Arguments:|Options:)", text)
    return [shlex.split(example) for example in found]


def test_demo(tmp_path, monkeypatch):
    """The example, in a process of its own, and what its result can show."""
    example, _ = examples("demo")
    result = start(*example, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert result.returncode == 0, result.stderr
    values = {line[:21].strip(): line[21:] for line in result.stdout.splitlines()}
    assert float(values["accuracy"].split()[0]) >= 0.99
    assert float(values["largest difference"].split()[0]) <= 1e-8
    assert values["predicted signs"] == "all equal"
    assert values["time"].endswith("for 2000 presentations")
    assert "2000/2000" in result.stderr
    demo = tmp_path / "results" / "demo"
    assert (demo / "two-moons.png").stat().st_size > 50_000
    with xr.open_dataset(demo / "two-moons.nc") as saved:
        assert saved["y"].shape == (2000, 1)
        assert saved.attrs["seed"] == 3
    monkeypatch.chdir(tmp_path)
    example, _ = examples("plot")
    drawn = run(*example)
    assert drawn.returncode == 0, drawn.stderr
    assert (demo / "figures" / "two-moons-raster.png").exists()
    words = shlex.split(values["to use the circuit"])[1:]
    used = run(*words, "--engine", "exact")
    assert used.returncode == 0, used.stderr
    share, count = re.search(r"accuracy (\S+) on (\d+) answers", used.stdout).groups()
    assert float(share) >= 0.99
    assert int(count) == 2000
    assert len((demo / "two-moons-answers.csv").read_text().splitlines()) == 2001


def test_the_demo_says_apart_what_compiling_took(tmp_path, monkeypatch):
    from circuits import ManifoldCircuit
    from simulations.experiments import two_moons

    real = two_moons.make_stream
    short = two_moons.Settings(n_points=300, label_after=60)
    monkeypatch.setattr(two_moons, "make_stream", lambda _, seed: real(short, seed))
    asked = []

    def prepare(self, **options):
        asked.append(options)
        return True

    monkeypatch.setattr(ManifoldCircuit, "prepare", prepare)
    result = run("demo", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert asked == [{"snapshot_every": 1}]
    assert re.search(r"^compiled +in \d", result.stdout, flags=re.MULTILINE)
    assert re.search(r"^time +\d.* for 300 presentations", result.stdout, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("demo", "--engine", "gpu"), "no engine 'gpu'"),
        (("demo", "--seed", "-1"), "--seed"),
        (("fly",), "No such command 'fly'"),
        (("run",), "name an experiment"),
        (("run", "moons"), "no experiment 'moons'"),
        (("run", "two-moons", "--set", "colour=red"), "no parameter 'colour'"),
        (("run", "two-moons", "--set", "mu=-1"), "mu must be finite and at least 0, got -1"),
        (("run", "--data", "nowhere.csv"), "no file nowhere.csv"),
        (("run", "--from", "nowhere.nc"), "no result file nowhere.nc"),
        (("plot", "nowhere.nc"), "no result file nowhere.nc"),
        (("compare", "--set", "n_tiles=0"), "n_tiles must be greater"),
        (("report", "nowhere"), "nowhere"),
        (("run", "two-moons", "--seed", "9999"), "20 repeats from seed 9999 on leave the range"),
        (("run", "two-moons", "--label-column", "x"), "--label-column does nothing without --data"),
        (("compare", "--class-column", "x"), "--class-column does nothing without --data"),
        (("compare", "--data", "x.csv", "--seed", "3"), "--seed does nothing with --data"),
        (("run", "two-moons", "--jobs", "2", "--scheduler", "tcp://x"), "--jobs does nothing"),
        (("reproduce", "--jobs", "2", "--scheduler", "tcp://x"), "--jobs does nothing"),
        (("sweep", "moons", "--over", "mu=1"), "no experiment 'moons'"),
        (("sweep", "two-moons"), "--over"),
        (("sweep", "two-moons", "--over", "mu=1:2"), "--over takes name=a,b,c"),
        *(
            (("run", "--data", "x.csv", *option), f"{option[0]} does nothing with --data")
            for option in (
                ("--seed", "0"),
                ("--repeats", "2"),
                ("--jobs", "1"),
                ("--scheduler", "tcp://x"),
                ("--quick",),
            )
        ),
        *(
            (("run", "--from", "x.nc", *option), f"{option[0]} does nothing with --from")
            for option in (("--engine", "exact"), ("--set", "mu=1"), ("--quick",))
        ),
        (("run", "two-moons", "--data", "x.csv"), "name an experiment"),
        (("run", "two-moons", "--set", "label_after=5000"), "no point of class"),
        (("run", "chessboard-offline", "--set", "mu=3"), "set mu_grid instead"),
        (("run", "chessboard-offline", "--set", "every=6000"), "must not exceed n_points=5000"),
    ],
)
def test_bad_input_exits_with_2_and_a_sentence(arguments, words):
    result = run(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
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

    calls = []

    def stop(*arguments, **options):
        calls.append(arguments)
        given.append(options)
        raise SystemExit(0)

    given = []

    monkeypatch.setattr(sweep, "run_experiment", stop)
    monkeypatch.setattr(reproduction, "run_all", stop)
    monkeypatch.setattr(bench, "run_benchmark", stop)
    monkeypatch.setattr(parameter_sweep, "sweep", stop)
    long = (examples("run")[0], *examples("reproduce"), *examples("bench"), *examples("sweep"))
    for example in long:
        assert run(*example).returncode == 0
    (config, seeds, _, jobs, _), (*_, quick), timing, over, words = calls
    assert over == ("two-moons", {"tile_radius": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    assert (given[3]["repeats"], given[3]["jobs"]) == (5, 2)
    assert words == ("two-moons", {"mu": [1, 10, 100, 1000], "readout": ["clip", "tanh"]})
    assert config.parameters.mu == 100
    assert config.parameters.tau_h_ == 0.01
    assert (seeds, jobs, quick, timing) == ([0, 1, 2, 3, 4], 2, True, (True, 3))


def test_examples_on_own_data(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 1, (120, 2))
    table = "".join(
        f"{x},{y},{int(np.sign(x - 0.5)) * (i % 9 == 8)}\n" for i, (x, y) in enumerate(points)
    )
    (tmp_path / "points.csv").write_text("x,y,label\n" + table)
    table = "".join(f"{x},{y},{'iris' if x < 0.5 else 'rose'}\n" for x, y in points)
    (tmp_path / "flowers.csv").write_text("length,width,species\n" + table)
    monkeypatch.chdir(tmp_path)
    own = [example for example in examples("run") if "--data" in example]
    own = [example for example in own if "--spiking" not in example]  # in test_twins.py
    assert len(own) == 2
    for example in own:
        result = run(*example)
        assert result.returncode == 0, result.stderr
        assert "'manifold-circuit plot results/" in result.stdout
    assert "classes iris is -1, rose is +1" in result.stdout
    [example] = examples("predict")
    np.savetxt(tmp_path / "new.csv", points, delimiter=",")
    answered = run(*example)
    assert answered.returncode == 0, answered.stderr
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 121
    with xr.open_dataset(tmp_path / "results" / "flowers.nc") as saved:
        assert json.loads(saved.attrs["label_mapping"]) == {"iris": -1, "rose": 1}
        assert (saved["labels"][:, 0] == np.where(points[:, 0] < 0.5, -1, 1)).all()


def test_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MANIFOLD_CIRCUIT_CACHE", str(tmp_path))
    assert "0 compiled circuits" in run("cache").stdout
    [example] = examples("cache")
    assert "removed 0" in run(*example).stdout


def test_quick_benchmark(tmp_path, monkeypatch):
    from simulations import bench

    monkeypatch.setattr(bench, "SIZES", ((40, 4),))
    monkeypatch.setattr(bench, "LENGTH", dict.fromkeys(bench.LENGTH, 40))
    monkeypatch.setattr(bench, "SPIKING", {"rates": None})
    result = run("bench", "--quick", "--repeats", "1", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    saved = json.loads((tmp_path / "bench.json").read_text())
    assert set(saved["sizes"]) == {"40 x 4"}
    cost = saved["sizes"]["40 x 4"]["us_per_step"]
    assert set(cost) == set(bench.QUICK) == {"fused", "cpp_standalone", *SOLVERS}
    assert all(value > 0 for value in cost.values())
    assert "/ fused" in result.stdout
    assert (tmp_path / "bench.png").exists()


@pytest.mark.parametrize("engine", ["numpy", "cpp_standalone", "reference"])
def test_a_timing_leaves_the_circuit_as_it_was(engine):
    from circuits.making import make_circuit
    from simulations import bench
    from simulations.datasets import MOONS_LIFT

    parameters, centers = bench.make_case(6, 2)
    circuit = make_circuit(engine, parameters, MOONS_LIFT, centers)
    before = circuit.state
    for _ in range(2):  # the second starts where the first left the network
        assert bench.seconds(circuit, circuit._advance, 3) > 0
    for name in ("W", "b", "w", "h", "u", "V"):
        assert (getattr(circuit.state, name) == getattr(before, name)).all(), name


def small(*arguments):
    """Options that make the square experiment quick."""
    return [*arguments, "--engine", "exact", "--set", "n_points=200", "--set", "label_after=50"]


def test_run_and_what_follows_from_it(tmp_path):
    result = run(*small("run", "square-balance", "--repeats", 2, "--out", tmp_path))
    assert result.returncode == 0, result.stderr
    assert "not decided: the circuit fluctuates more: " in result.stdout
    assert "2/2" in result.stderr
    again = run(*small("run", "square-balance", "--repeats", 2, "--out", tmp_path))
    assert "2 of 2 runs were finished before" in again.stdout
    path = tmp_path / "square-balance" / "seed-00001.nc"
    assert "give another --out" in run("run", "--from", path, "--out", tmp_path).stderr
    rerun = run("run", "--from", path, "--out", tmp_path / "again")
    assert "run again gives the same numbers" in rerun.stdout
    with xr.open_dataset(tmp_path / "square-balance.nc") as merged:
        claims = json.loads(merged.attrs["claims"])
    assert [claim["holds"] for claim in claims] == [None] * 5
    drawn = run("plot", tmp_path / "square-balance.nc")
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "figures" / "square-balance-fig4.png").exists()


def test_own_data_compared_with_the_reference(tmp_path):
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 10, (120, 3))
    labels = np.where(np.arange(120) % 20 == 19, np.sign(points[:, 0] - 5), 0)
    path = tmp_path / "mine.csv"
    rows = np.column_stack([points, labels, np.sign(points[:, 0] - 5)])
    np.savetxt(path, rows, delimiter=",", header="x,y,z,label,class", comments="")
    small = ["--set", "n_tiles=15", "--set", "mu=10"]
    done = run("run", "--data", path, "--out", tmp_path, *small, "--engine", "exact")
    assert done.returncode == 0, done.stderr
    assert "120 points, 6 labelled" in done.stdout
    with xr.open_dataset(tmp_path / "mine.nc") as saved:
        assert np.abs(saved["points"].values - points).max() < 1e-12  # text keeps 18 digits
        assert (saved["labels"].values[:, 0] == labels).all()
        assert (saved["classes"].values == rows[:, -1]).all()
        later = np.arange(60, 120)[labels[60:] == 0]
        right = np.mean(np.sign(saved["y"].values[later, 0]) == rows[later, -1])
    assert f"accuracy {right:.4f} on 57 unlabelled points of the second half" in done.stdout
    drawn = run("plot", tmp_path / "mine.nc", "--kind", "raster", "--out", tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "mine-raster.png").exists()
    options = ["--engine", "cpp_standalone", *small, "--out", tmp_path / "compare"]
    compared = run("compare", "--data", path, *options)
    assert compared.returncode == 0, compared.stderr
    values = dict(re.findall(r"^  (\w+) +(\d\.\de[-+]\d+)$", compared.stdout, flags=re.MULTILINE))
    assert {"h", "W", "V_trace"} <= set(values)
    assert max(map(float, values.values())) <= 1e-8
    assert "6 of 120 presentations had a label" in compared.stdout
    assert (tmp_path / "compare" / "agreement.png").exists()


def test_a_comparison_without_labels_says_so(tmp_path):
    """And its example has some: two moons are labelled after presentation 200."""
    example = examples("compare")[0]
    assert int(example[example.index("--points") + 1]) > 205
    result = run("compare", "--engine", "numpy", "--points", 50, "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.search(
        r"none of the 50 presentations had a label.*at presentation 20\d", result.stdout
    )


CONSTANT = ("gain=auto", "tau_h=8 ms", "tau_u=50 ms", "tau_V=2 ms", "tile_radius=0.4")


@pytest.mark.parametrize("values", [(), CONSTANT, (*CONSTANT, "tiles=first")])
def test_either_gain_and_either_start_is_compared_with_the_reference(tmp_path, values):
    changes = [word for value in values for word in ("--set", value)]
    result = run("compare", "--engine", "numpy", "--points", 60, *changes, "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    found = dict(re.findall(r"^  (\w+) +(\d\.\de[-+]\d+)$", result.stdout, flags=re.MULTILINE))
    assert {"h", "u", "V", "W", "b", "h_trace", "V_trace"} <= set(found)
    assert max(map(float, found.values())) <= 1e-10  # the bound of all engines


def test_compare_with_studies(tmp_path, monkeypatch):
    from analysis import studies

    # A coarse map: the fine one is 1110 times the same.
    coarse = partial(studies.stability_map, np.geomspace(1 / 64, 64, 7), np.linspace(0.04, 1.2, 6))
    monkeypatch.setattr(studies, "stability_map", coarse)
    result = run("compare", "--points", 210, "--studies", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "2 of 210 presentations had a label" in result.stdout
    for name in ("agreement", "agreement-steps", "settling-error", "convergence", "stability"):
        assert (tmp_path / f"{name}.png").exists(), name
    with xr.open_dataset(tmp_path / "steps.nc") as steps:
        assert steps["V_trace"].shape == (5, 80, 4, 40)


def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "points.txt").write_text("1 2")
    result = run("run", "--data", tmp_path / "points.txt")
    assert result.returncode == 2
    assert "must be a .csv, .npy, .npz or .nc file" in result.stderr
    assert "cannot be read" not in result.stderr


def test_describe_and_report(tmp_path):
    described = run("describe", "--set", "n_tiles=7", "--out", tmp_path / "model")
    assert described.returncode == 0, described.stderr
    assert "excitatory (7)" in described.stdout
    assert (tmp_path / "model" / "model.tex").read_text().startswith("\\documentclass")
    result = run("report", tmp_path)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_playground(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [example] = examples("playground")
    assert run(*example).stdout == "wrote ring.html\n"
    page = Path("ring.html").read_text()
    assert '"data": "ring"' in page
    assert '"n_tiles": 80' in page
    assert run("playground", "--seed", 4, "--out", tmp_path).returncode == 0
    assert '"seed": 4' in (tmp_path / "playground.html").read_text()
    Path("mine.html").write_text("no page")
    for arguments, words in (
        (("--out", "mine.html"), "is not a page and is not written over"),
        (("--seed", 2**32), "seed must lie from 0 to 4294967295"),
        (
            ("--set", "data=torus"),
            "data must be one of moons, arcs, square, ring, own, got 'torus'",
        ),
        (("--set", "drift=1"), "drift must be true or false"),
        (("--set", "noise=x"), "noise must be a number"),
        (("--set", "noise=3"), "noise must be from 0 to 0.2 in the playground, got 3"),
        (("--set", "gain=auto"), "gain must be 'control' or from 1 to 100000"),
        (("--set", "n_tiles=300"), "n_tiles must be from 5 to 200 in the playground, got 300"),
        (("--set", "n_readouts=2"), "the playground has one readout"),
        (("--set", "mu=[3]"), "mu must be one number in the playground"),
        (("--set", "tiles=first"), "tiles of the playground are recruited"),
        (("--set", "tau_q=1"), "no parameter 'tau_q'"),
    ):
        result = run("playground", "--out", "new.html", *arguments)
        assert result.returncode == 2, words
        [line] = result.stderr.splitlines()
        assert words in line
    assert not Path("new.html").exists()


def test_describe_the_spiking_twin(tmp_path):
    words = ["--neuron", "escape", "--cells", 2, "--set-spiking", "dt=0.25 ms"]
    described = run("describe", "--spiking", *words, "--set", "n_tiles=7", "--out", tmp_path)
    assert described.returncode == 0, described.stderr
    assert "excitatory (14)" in described.stdout
    assert "rand() < rate_h*clip(v, 0, inf)*dt" in described.stdout
    assert "| `spiking.dt` | 0.25 ms |" in described.stdout
    assert "rate\\_h" in (tmp_path / "model.tex").read_text()
