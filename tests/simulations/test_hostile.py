"""Commands given files, settings and places that nobody in their right mind would give them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from circuits.base import Circuit
from circuits.errors import ParameterError
from circuits.storage import results
from simulations import sweep
from simulations.experiments import EXPERIMENTS, get_experiment
from tests.simulations.test_cli import ROOT, refused, run
from tests.simulations.test_experiments import LEAST

TINY = {"n_points": 30, "label_after": 5, "n_tiles": 8, "n_interneurons": 2, "tile_radius": 0.5}


def start(*arguments, **options):
    """A command in a process of its own, wherever it is started."""
    options.setdefault("env", {**os.environ, "PYTHONPATH": str(ROOT)})
    command = [sys.executable, "-m", "simulations", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def result() -> xr.Dataset:
    """A run, as `run` saves it."""
    config = get_experiment("two-moons").config("exact", TINY)
    return sweep.run_job(sweep.Job(config.as_dict(), 0))


# --- run --from --------------------------------------------------------------------------------


def with_(part=None, **changes):
    """A function that changes a configuration, or one of its parts, and makes it text."""

    def change(config):
        whole = json.loads(json.dumps(config))
        place = whole if part is None else whole[part]
        place |= changes
        return json.dumps(whole)

    return change


CONFIGS = [
    np.arange(3),
    "9" * 5000,  # more digits than Python reads
    with_(experiment="x" * 2**20),
    with_(experiment="\ud800"),
    with_(experiment="a\n\x1b[31mb"),
    with_("parameters", self=1),
    with_("parameters", dt="9" * 5000 + " s"),
    with_("parameters", n_tiles=10**12),
    with_("settings", colour="red"),
    with_("settings", n_points=10**12),
    with_("settings", noise=1e6),  # beyond the lift
]
"""`test_sweeping.py` has more."""


def test_a_result_that_does_not_say_how_it_was_made_is_not_run_again(result, tmp_path):
    for value in CONFIGS:
        config = value(json.loads(result.attrs["config"])) if callable(value) else value
        path = results.save(result[["y"]].assign_attrs(config=config), tmp_path / "in.nc")
        before = contents(tmp_path)
        refused("run", "--from", path, "--out", tmp_path / "out")
        assert contents(tmp_path) == before


def test_other_numbers_than_a_rerun_gives_are_said(result, tmp_path):
    path = results.save(result.assign(h=result["h"] + 1), tmp_path / "in.nc")
    before = path.read_bytes()
    found = run("run", "--from", path, "--out", tmp_path / "out")
    assert found.returncode == 1
    assert "numbers that differ by 1" in found.stdout
    assert path.read_bytes() == before
    again = results.load(tmp_path / "out" / "two-moons" / "seed-00000.nc")
    xr.testing.assert_identical(again["h"], result["h"])


PLOTTED = ("demo.nc", "merged.nc", "foreign.nc")
"""Files that cannot be run again and can be plotted, or take a process to be read."""


def test_what_is_not_a_result_of_run_is_not_run_again(result, tmp_path):
    """Results of other commands, files of other kinds, and what is no file at all."""
    whole = results.save(result, tmp_path / "whole.nc").read_bytes()
    other = result.drop_attrs(deep=False)
    results.save(other.assign_attrs(kind="demo", seed=0), tmp_path / "demo.nc")
    merged = sweep.merge([result, result.assign_attrs(seed=1)])
    results.save(merged.assign_attrs(kind="merged two-moons"), tmp_path / "merged.nc")
    results.save(xr.Dataset(attrs=result.attrs), tmp_path / "no-variables.nc")
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "empty.nc").touch()
    (tmp_path / "truncated.nc").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "flipped.nc").write_bytes(whole[:3000] + b"\x00\xff" + whole[3002:])
    os.mkfifo(tmp_path / "pipe.nc")
    xr.Dataset({"t": ("x", [1.0])}).to_netcdf(tmp_path / "foreign.nc", engine="h5netcdf")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.nc")).write_bytes(b"x")
    (tmp_path / "loop.nc").symlink_to(tmp_path / "loop.nc")
    before = contents(tmp_path)
    paths = [path for path in tmp_path.iterdir() if path.name != "whole.nc"]
    for path in [*paths, tmp_path / "missing.nc", tmp_path / ("x" * 300), tmp_path / "a" / "b.nc"]:
        for command in (("run", "--from", path), ("plot", path)):
            if command[0] == "plot" and path.name in PLOTTED:
                continue
            sentence = refused(*command, "--out", tmp_path / "out")
            assert path.name.split("\udcff")[0][-50:] in sentence
    assert contents(tmp_path) == before


# --- places to write to ------------------------------------------------------------------------

COMMANDS = {
    "demo": ("demo",),
    "demo --spiking": ("demo", "--spiking"),
    "run": ("run", "two-moons", "--engine", "exact"),
    "run --data": ("run", "--data", "{folder}/points.csv"),
    "run --from": ("run", "--from", "{folder}/in/a.nc"),
    "compare": ("compare", "--points", "20"),
    "compare --spiking": ("compare", "--spiking"),
    "compare --data": ("compare", "--data", "{folder}/points.csv"),
    "plot": ("plot", "{folder}/in/a.nc"),
    "report": ("report", "{folder}/in"),
    "playground": ("playground",),
    "describe": ("describe",),
    "reproduce": ("reproduce", "--quick"),
    "bench": ("bench", "--quick"),
}
PLACES = ("{folder}/taken", "{folder}/taken/a/b", "{folder}/loop/a", "/proc/nowhere/a")
"""A file, what lies under it, under a link to itself, and where nobody can write."""


@pytest.fixture
def computing_fails(monkeypatch):
    """Whoever computes before looking at --out is caught."""

    def caught(*_, **__):
        raise AssertionError("computed before looking at --out")

    from analysis import kinds
    from analysis.page import report
    from simulations import bench

    for place, name in (
        (Circuit, "run"),
        (bench, "run_benchmark"),
        (kinds, "save"),
        (report, "read_results"),
        (sweep, "run_job"),
    ):
        monkeypatch.setattr(place, name, caught)


@pytest.mark.usefixtures("computing_fails")
@pytest.mark.parametrize("command", COMMANDS)
def test_places_that_cannot_be_written_to_are_refused_before_computing(command, result, tmp_path):
    (tmp_path / "in").mkdir()
    results.save(result, tmp_path / "in" / "a.nc")
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "loop").symlink_to("loop")
    points = np.random.default_rng(0).random((60, 2))
    np.savetxt(tmp_path / "points.csv", points, delimiter=",", header="a,b", comments="")
    before = contents(tmp_path)
    arguments = [part.format(folder=tmp_path) for part in COMMANDS[command]]
    for place in PLACES if command in ("describe", "report") else PLACES[1::2]:
        out = place.format(folder=tmp_path)
        found = run(*arguments, "--out", out)
        assert found.returncode == 2, (out, found.stderr)
        last = found.stderr.strip().splitlines()[-1]
        assert last.startswith("manifold-circuit: "), out
        assert out.removesuffix("/a")[:60] in last
    found = run(*arguments, "--out", f"{tmp_path}/a\0b")
    assert (found.returncode, "null byte" in found.stderr) == (2, True)
    if command == "report":
        assert "directory" in refused(*arguments, "--out", tmp_path)
    if command in ("report", "playground"):
        assert "a.nc" in refused(*arguments, "--out", tmp_path / "in" / "a.nc")
    assert contents(tmp_path) == before


# --- settings ----------------------------------------------------------------------------------

ABSURD = [
    *(float("nan"), float("inf"), -float("inf"), -1, -0.5, 0, 1e-300, 1e300, 10**9, 10**30),
    *(True, False, None, "", "x", "1e400", b"x", 1j, {}, {"a": 1}, object()),
    *([], [0], [-1], [True], [None], ["x"], [[]], [[0, 0]], [[1, 2, 3]], [1, 1], [2, 1]),
    *([float("nan")], [1e300], [10**30], [[float("inf"), 1]], [[-1, -1]], [0.1, 0.10001]),
]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_are_in_range_or_refused_in_a_sentence(name):
    """What is taken can be stored, read again, and is finite; truth values are never numbers."""
    experiment = get_experiment(name)
    for field in experiment.settings_class.model_fields:
        complaints = []
        for value in ABSURD:
            try:
                config = experiment.config("exact", {field: value})
            except ParameterError as error:
                complaints.append(str(error))
                continue
            assert not any(isinstance(part, bool) for part in np.ravel(np.array(value, object)))
            numbers = np.array(getattr(config.settings, field), dtype=float)
            assert numbers.size
            assert np.isfinite(numbers).all()
            assert (numbers >= 0).all()
            rows = np.atleast_1d(numbers)
            assert len({str(row) for row in rows}) == len(rows)
            assert sweep.config_from(json.loads(json.dumps(config.as_dict()))) == config
        assert all("\n" not in complaint and len(complaint) < 300 for complaint in complaints)
        assert len(complaints) > len(ABSURD) / 2, field


EXTREME = [
    ("two-moons", {"noise": 0.05, "label_after": 0, "mu": 1e300}),
    ("chessboard-offline", {"every": 500, "early_every": 500, "boards": [0.5], "labelled": 1e-300}),
    ("lesions", {"later": 10, "label_after": 5, "shares": [0.5], "delays": [100, 0]}),
]
"""Values at the ends of what a setting may be, where an experiment has to look out."""


@pytest.mark.parametrize(("name", "changes"), EXTREME)
def test_extreme_settings_that_are_taken_give_a_result(name, changes):
    experiment = get_experiment(name)
    small = {"n_tiles": 8, "n_interneurons": 2, "tile_radius": 0.5, "steps_per_presentation": 20}
    with warnings.catch_warnings():
        # Means over nothing and slopes of constants are NaN; claims then say so.
        warnings.simplefilter("ignore")
        config = experiment.config("exact", small | LEAST[name] | changes)
        merged = sweep.merge([sweep.run_job(sweep.Job(config.as_dict(), 0))])
    assert all(claim.line() for claim in experiment.claims(merged))


# --- interrupts --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "sign", "number"),
    [("run", "two-moons:", signal.SIGINT), ("plot", "wrote", signal.SIGTERM)],
)
def test_an_interrupt_ends_a_command_and_leaves_whole_files(
    command, sign, number, result, tmp_path
):
    """`test_sweep_command.py` interrupts several processes."""
    source = results.save(result, tmp_path / "in.nc")
    before = source.read_bytes()
    arguments = {
        "run": ("run", "two-moons", "--engine", "exact", "--set", "n_points=100000"),
        "plot": ("plot", str(source), "--kind", "raster", "--kind", "answers"),
    }[command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with start(*arguments, "--out", str(tmp_path / "out"), env=environment) as process:
        stream = process.stdout if command == "plot" else process.stderr
        seen = ""
        while sign not in seen:
            seen += stream.read(1)
            assert process.poll() is None, seen
        time.sleep(0.3)
        process.send_signal(number)
        began = time.perf_counter()
        _, complaint = process.communicate(timeout=60)
        taken = time.perf_counter() - began
    assert process.returncode == 128 + number
    assert taken < 10  # 2.4 s where nobody else needs the processor
    assert "Traceback" not in complaint
    assert complaint.endswith("manifold-circuit: interrupted\n") == (number == signal.SIGINT)
    assert ("0 of 20 runs are kept, and the same" in complaint) == (command == "run")
    assert source.read_bytes() == before
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path != source]
    for path in left:  # figures may be there, and are whole
        assert path.suffix in (".png", ".pdf")
        assert path.read_bytes()[-20:].rstrip().endswith((b"IEND\xaeB`\x82", b"%%EOF"))
    assert command == "plot" or not left


# --- surroundings ------------------------------------------------------------------------------


def test_a_reader_that_goes_away_is_no_error_of_ours():
    with start("list") as process:
        process.stdout.close()
        assert process.wait() == 1
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_commands_work_without_a_terminal_a_home_or_unicode(result, tmp_path):
    """File names and words that the terminal cannot show are written as escapes."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.nc"))
    shutil.move(results.save(result, tmp_path / "a.nc"), path)
    bare = {
        key: value
        for key, value in os.environ.items()
        if key not in ("HOME", "LANG", "LANGUAGE", "TERM", "XDG_CACHE_HOME")
    }
    environment = bare | {
        "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "TERM": "dumb",
    }  # fmt: skip
    with start("plot", os.fspath(path), "--kind", "raster", env=environment) as process:
        out, err = process.communicate()
    assert (process.returncode, "Traceback" in err) == (0, False), err
    assert "\\udcff-raster.png" in out
    assert len(list((tmp_path / "figures").iterdir())) == 2


def test_a_working_directory_that_takes_no_files_is_named(monkeypatch):
    monkeypatch.chdir("/proc")
    assert "results/demo" in refused("demo")


@pytest.mark.slow
def test_arguments_that_are_not_utf8_do_not_stop_brian2(tmp_path):
    """Which logs them."""
    out = os.fsencode(tmp_path) + b"/caf\xe9"
    done = subprocess.run(
        [sys.executable, "-m", "simulations", "describe", "--out", out],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (Path(os.fsdecode(out)) / "model.md").exists()
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_stderr_stops_nothing(tmp_path):
    np.savetxt(tmp_path / "a.csv", np.random.default_rng(0).uniform(0, 1, (30, 2)), delimiter=",")
    command = f"{sys.executable} -m simulations run --data {tmp_path}/a.csv --out {tmp_path}/out"
    done = subprocess.run(
        ["sh", "-c", f"{command} --engine exact --set n_tiles=5 2>&-"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert results.is_whole(tmp_path / "out" / "a.nc")
