"""The machinery of sweeps, on an experiment so small that every number is known."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import joblib
import numpy as np
import pytest
import xarray as xr

from circuits import CircuitParameters
from circuits.dataset import versions
from circuits.errors import InputError, LostLabelWarning, ParameterError, UnsettledWarning
from circuits.storage import results
from circuits.storage.files import FileError
from simulations import sweep
from simulations.experiments import get_experiment
from simulations.experiments.experiment import Experiment, Settings
from tests.refusing import refused
from tests.simulations.small import flip_bit, register_toy, resaved

NAME = "toy"


@dataclass(frozen=True)
class Said:
    """Stands for a claim."""

    words: str
    experiment: str = ""

    def as_dict(self):
        return asdict(self)


class ToySettings(Settings):
    n_points: int = 3


class Toy(Experiment[ToySettings]):
    """A repeat is its seed, n_points times; counts what it was asked for."""

    settings_class = ToySettings
    parameters = CircuitParameters()
    asked: list[int] = []

    def simulate(self, config, seed, report):
        self.asked.append(seed)
        report("simulating")
        warnings.warn("still moving", UnsettledWarning, stacklevel=1)
        warnings.warn("label lost", LostLabelWarning, stacklevel=1)
        troubles = {"unsettled_share": 0.25 * seed, "uncovered_share": 0.125, "lost_labels": seed}
        values = np.full(config.settings.n_points, float(seed))
        return xr.Dataset({"b": ("x", values), "a": ((), seed)}, attrs=troubles)

    def claims(self, merged):
        return [Said(f"{merged.sizes['repeat']} repeats")]


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    register_toy(monkeypatch, Toy)


def config(**changes):
    return get_experiment(NAME).config("exact", changes)


def job(seed=2, **changes):
    return sweep.Job(config(**changes).as_dict(), seed)


def kept(out: Path) -> list[str]:
    return sorted(item.name for item in (out / NAME).iterdir())


def test_a_repeat_knows_where_it_comes_from(monkeypatch):
    said, started = [], time.perf_counter()
    run = sweep.run_job(job(), said.append)  # warnings are errors here: none gets through
    took = time.perf_counter() - started
    assert said == ["simulating"]
    assert run["b"].values.tolist() == [2, 2, 2]
    assert 0 < run.attrs["seconds"] < took
    expected = {"experiment": NAME, "title": "A toy", "engine": "exact", "seed": 2}
    expected |= {"kind": "run toy", "fingerprint": config().fingerprint()}
    expected |= {"code": results.code_revision(), "variables": '{"a": [], "b": [3]}'}
    expected |= {"lost_labels": 2}  # an attribute of the experiment stays
    assert {name: run.attrs[name] for name in expected} == expected
    assert json.loads(run.attrs["config"]) == config().as_dict()
    assert json.loads(run.attrs["versions"]) == versions()
    simulate = Toy.simulate
    monkeypatch.setattr(Toy, "simulate", lambda *rest: simulate(*rest).assign_attrs(engine="other"))
    assert sweep.run_job(job()).attrs["engine"] == "other"
    monkeypatch.setattr(Toy, "simulate", lambda *rest: warnings.warn("else", stacklevel=1))
    with pytest.raises(UserWarning, match="else"):
        sweep.run_job(job())


def test_runs_of_other_settings_or_other_code_are_made_again(tmp_path, capsys, monkeypatch):
    """The commit changed between two calls: what the first one left is replaced, not kept."""
    sweep.run_experiment(config(), [0, 1, 2], tmp_path)
    said = capsys.readouterr()
    assert not any(word in said.out for word in ("before", "replaced"))
    path = sweep.job_path(tmp_path, NAME, 1)
    assert path == tmp_path / "toy" / "seed-00001.nc"
    results.save(results.load(path).assign_attrs(code="another commit"), path)
    assert sweep.finished(tmp_path, config(), [0, 1, 2]) == [0, 2]
    Toy.asked.clear()
    merged, _ = sweep.run_experiment(config(), [0, 1, 2], tmp_path)
    assert Toy.asked == [1]
    assert merged["run_code"].values.tolist() == [results.code_revision()] * 3
    said = capsys.readouterr()
    assert "toy: 2 of 3 runs" in said.out
    assert "toy: 1 runs of other settings or other code" in said.out
    assert "2/3" in said.err
    sweep.run_experiment(config(n_points=4), [1, 3], tmp_path)
    assert Toy.asked == [1, 1, 3]
    monkeypatch.setattr(results, "code_revision", lambda: "a later commit")
    assert sweep.finished(tmp_path, config(), [0, 1, 2]) == []
    assert kept(tmp_path) == [f"seed-0000{seed}.nc" for seed in range(4)]  # whole: not set aside


def test_an_interrupted_sweep_goes_on(tmp_path, monkeypatch):
    real = Toy.simulate

    def interrupted(self, config, seed, report):
        if seed == 2:
            raise KeyboardInterrupt
        return real(self, config, seed, report)

    with monkeypatch.context() as patch:
        patch.setattr(Toy, "simulate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sweep.run_experiment(config(), [0, 1, 2, 3], tmp_path)
    assert kept(tmp_path) == ["seed-00000.nc", "seed-00001.nc"]
    assert sweep.run_experiment(config(), [0, 1, 2, 3], tmp_path)[0].sizes["repeat"] == 4
    assert Toy.asked == [0, 1, 2, 3]
    # A partial file of a killed sweep is removed even where nothing is written beside it.
    left = tmp_path / "toy" / f".{'0' * 16}.manifold-circuit-partial.nc"
    left.write_bytes(b"half")
    monkeypatch.setattr(sys, "stderr", None)  # nor is a terminal needed
    sweep.run_experiment(config(), [0, 1, 2, 3], tmp_path)
    assert not left.exists()
    assert len(Toy.asked) == 4


def test_what_a_sweep_leaves(tmp_path, capsys):
    merged, claims = sweep.run_experiment(config(), [0, 2, 1], tmp_path)
    assert claims == [Said("3 repeats", "toy")]
    saved = results.load(tmp_path / "toy.nc")
    assert saved.identical(merged)
    assert json.loads(saved.attrs["claims"])[0]["words"] == "3 repeats"
    names = {"experiment": NAME, "kind": "merged toy", "title": "A toy"}
    assert {name: saved.attrs[name] for name in names} == names
    assert "variables" not in saved.attrs
    assert saved["b"].values.tolist() == [[0, 0, 0], [2, 2, 2], [1, 1, 1]]
    printed = capsys.readouterr().out
    for number in ("50.00% of presentations unsettled", "12.50% uncovered", "3 labels"):
        assert number in printed


def test_another_kind_of_result_is_not_written_over(tmp_path):
    path = tmp_path / "toy.nc"
    (tmp_path / "file").write_text("in the way")
    refused(lambda: sweep.run_experiment(config(), [0], tmp_path / "file"), "file", FileError)
    mine = xr.Dataset({"a": ("x", [1.0])}, attrs={"kind": "data toy.csv"})
    results.save(mine, path)
    refused(lambda: sweep.run_experiment(config(), [0], tmp_path), "toy.nc", FileError)
    assert results.load(path).identical(mine)
    assert Toy.asked == []
    path.write_bytes(b"damaged")
    sweep.run_experiment(config(), [0], tmp_path)
    assert (tmp_path / "toy.nc.set-aside").read_bytes() == b"damaged"


def make_folder(path):
    path.unlink()
    path.mkdir()


SPOILED = {
    "arrays damaged": flip_bit,
    "no variables": resaved(lambda old: old.drop_vars(old.data_vars).assign_attrs(variables="{}")),
    "a variable less": resaved(lambda old: old.drop_vars("a")),
    "shorter": resaved(lambda old: old.isel(x=slice(1))),
    "of another seed": resaved(lambda old: old.assign_attrs(seed=7)),
    "of another kind": resaved(lambda old: old.assign_attrs(kind="run other")),
    "a folder": make_folder,
    "not sealed": lambda path: path.write_bytes(path.read_bytes()[: -results.SEAL_BYTES]),
}


def test_what_is_not_a_whole_run_is_set_aside_and_made_again(tmp_path, capsys):
    expected, _ = sweep.run_experiment(config(), [0, 1], tmp_path)
    path = sweep.job_path(tmp_path, NAME, 1)
    whole = path.read_bytes()
    for name, spoil in SPOILED.items():
        spoil(path)
        assert sweep.finished(tmp_path, config(), [0, 1, 2]) == [0], name
        assert kept(tmp_path) == ["seed-00000.nc", "seed-00001.nc.set-aside"], name
        assert str(path) in capsys.readouterr().err
        aside = path.with_name("seed-00001.nc.set-aside")
        (aside.rmdir if aside.is_dir() else aside.unlink)()
        path.write_bytes(whole)
    flip_bit(path)
    merged, _ = sweep.run_experiment(config(), [0, 1], tmp_path)
    assert Toy.asked == [0, 1, 1]
    assert results.is_whole(path)
    assert merged["b"].variable.equals(expected["b"].variable)


def test_jobs_one_after_the_other_report_and_many_go_to_processes(monkeypatch):
    asked, said = [], []

    class Pool:
        def __init__(self, **options):
            asked.append(options)

        def __call__(self, calls):
            return (function(*arguments, **options) for function, arguments, options in calls)

    monkeypatch.setattr(joblib, "Parallel", Pool)
    for count, jobs in ((2, 1), (1, 4), (0, 4)):
        todo = [job(seed) for seed in range(count)]
        found = sweep.compute(todo, jobs, None, said.append)
        assert [run.attrs["seed"] for run in found] == [*range(count)]
    assert said == ["simulating"] * 3
    assert asked == []
    assert len(list(sweep.compute([job(0), job(1)], 4, None, said.append))) == 2
    # One at a time to whoever is free, each result as soon as it is there.
    expected = {"n_jobs": 4, "batch_size": 1, "pre_dispatch": "2*n_jobs"}
    expected |= {"return_as": "generator_unordered", "initializer": sweep._follow}
    assert asked == [expected | {"initargs": (os.getpid(),)}]
    assert said == ["simulating"] * 3


def test_a_worker_ends_when_its_parent_is_gone(monkeypatch):
    parents, killed = [7, 7, 1], []
    monkeypatch.setattr(sweep, "PARENT_SECONDS", 0.001)
    monkeypatch.setattr(os, "getppid", lambda: parents.pop(0))
    monkeypatch.setattr(os, "kill", lambda *arguments: killed.append(arguments))
    started = []
    real = sweep.threading.Thread
    monkeypatch.setattr(
        sweep.threading, "Thread", lambda **options: started.append(real(**options)) or started[0]
    )
    sweep._follow(7)
    started[0].join(10)
    assert killed == [(os.getpid(), signal.SIGKILL)]
    assert parents == []
    assert started[0].daemon


class Elsewhere:
    """Stands for dask.distributed: computes what is submitted when it is asked for."""

    class CancelledError(Exception):
        pass

    def __init__(self, failing=None):
        self.failing, self.log = failing, []
        elsewhere = self

        class Future:
            def __init__(self, function, argument):
                self.call = function, argument

            def result(self):
                if elsewhere.failing is not None:
                    raise elsewhere.failing
                function, argument = self.call
                return function(argument)

            def release(self):
                elsewhere.log.append("released")

        class Client:
            def __init__(self, address, timeout):
                elsewhere.log.append((address, timeout))
                if "nowhere" in address:
                    raise OSError("no route")

            def __enter__(self):
                return self

            def __exit__(self, *error):
                elsewhere.log.append("closed")

            def submit(self, function, argument, **options):
                elsewhere.log.append(options)
                return Future(function, argument)

        self.Client, self.as_completed = Client, reversed


def test_jobs_are_sent_to_a_dask_address(monkeypatch):
    there = Elsewhere()
    monkeypatch.setitem(sys.modules, "distributed", there)
    found = list(sweep.compute([job(0), job(1)], 1, "tcp://there"))
    assert [run.attrs["seed"] for run in found] == [1, 0]  # as they are finished
    # A job is not taken for another of the same arguments, and survives two workers.
    submitted = {"pure": False, "retries": 2}
    assert there.log == [
        *(("tcp://there", 10), submitted, submitted),
        *("released", "released", "closed"),
    ]


@pytest.mark.parametrize(
    ("failing", "address", "error", "words"),
    [
        (ParameterError("too many tiles"), "tcp://there", ParameterError, "^too many tiles$"),
        (OSError("cut"), "tcp://there", InputError, r"tcp://there.*\(OSError\)"),
        (Elsewhere.CancelledError(), "tcp://there", InputError, "CancelledError"),
        (ZeroDivisionError("by hand"), "tcp://there", ZeroDivisionError, "by hand"),
        (None, "tcp://nowhere", InputError, "tcp://nowhere: no route"),
        (None, 5, InputError, "at 5: "),
    ],
)
def test_errors_that_come_back_from_dask(monkeypatch, failing, address, error, words):
    monkeypatch.setitem(sys.modules, "distributed", Elsewhere(failing))
    with pytest.raises(error, match=words):
        list(sweep.compute([job(0)], 1, address))
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(lambda: list(sweep.compute([job(0)], 1, "tcp://there")), r"dask\.distributed")


def one(seed, values, x=(0, 1), **attributes):
    data = {"a": ("x", np.array(values))}
    return xr.Dataset(data, {"x": list(x)}, {"seed": seed, "seconds": 0.5 * seed, **attributes})


def test_repeats_are_merged_by_hand():
    known = {"engine": "exact", "code": "abc", "uncovered_share": 0.1}
    parts = [
        one(4, [1.0, 2.0], lost_labels=1, same="s", **known),
        one(2, [3.0, 4.0], lost_labels=5, same="s", engine="numpy"),
    ]
    merged = sweep.merge(parts)
    assert merged["a"].dims == ("repeat", "x")
    assert merged["a"].values.tolist() == [[1, 2], [3, 4]]
    coords = {name: merged[name].values.tolist() for name in merged.coords if name != "x"}
    assert coords == {
        "seed": [4, 2],
        "run_seconds": [2.0, 1.0],
        "run_engine": ["exact", "numpy"],
        "run_code": ["abc", "unknown"],
        "run_lost_labels": [1, 5],  # the others are not known of every run
    }
    assert all(merged[name].dims == ("repeat",) for name in coords)
    assert merged.attrs["seconds"] == 3.0
    assert merged.attrs["same"] == "s"
    assert "engine" not in merged.attrs
    with pytest.raises(InputError, match="no runs"):
        sweep.merge([])
    with pytest.raises(ValueError, match="exact"):
        sweep.merge([parts[0], one(1, [0.0, 0.0], x=(0, 2))])


def test_a_rerun_is_compared_with_what_it_repeats(tmp_path):
    sweep.run_experiment(config(), [2], tmp_path)
    path = sweep.job_path(tmp_path, NAME, 2)
    again, difference = sweep.rerun(path, tmp_path / "again")
    assert again == tmp_path / "again" / "toy" / "seed-00002.nc"
    assert difference == 0.0
    assert results.load(again)["b"].values.tolist() == [2, 2, 2]
    old = results.load(path)
    results.save(old.assign(b=("x", [2.0, 2.5, 1.0])), path)
    assert sweep.rerun(path, tmp_path / "again")[1] == 1.0  # the same settings may be there
    without = [
        old.drop_attrs().assign_attrs({key: old.attrs[key] for key in old.attrs if key != name})
        for name in ("config", "seed")
    ]
    Toy.asked.clear()
    for changed, out, error in (
        (old, tmp_path, FileError),  # it would replace itself
        (old, path / "within", FileError),
        (old.drop_vars(["a", "b"]), tmp_path / "more", InputError),
        *((one, tmp_path / "more", InputError) for one in without),
    ):
        results.save(changed, path)
        refused(lambda out=out: sweep.rerun(path, out), "seed-00002.nc", error)
    assert Toy.asked == []
    assert not (tmp_path / "more").exists()
    results.save(sweep.run_job(job(n_points=4)), path)
    refused(lambda: sweep.rerun(path, tmp_path / "again"), "again.*other settings")


PLAIN = {"experiment": NAME, "engine": "exact", "parameters": {}, "settings": {}}
NO_JOBS = [
    *({"config": text} for text in ("{", "[" * 100_000, "null", "[]", 5)),
    *(
        {"config": json.dumps(values)}
        for values in (
            {name: value for name, value in PLAIN.items() if name != "settings"},
            PLAIN | {"x": 1},
            PLAIN | {"experiment": 1},
            PLAIN | {"settings": []},
            PLAIN | {"engine": "steam"},
        )
    ),
    *({"seed": seed} for seed in (-1, 2**32, np.uint64(2**63), 1.0, "1", [1, 2], np.zeros(0, int))),
]


def test_a_file_that_does_not_say_how_it_was_made():
    run = sweep.run_job(job())
    for said in NO_JOBS:
        named = "|".join([*said, "steam"])
        refused(lambda said=said: sweep._job_of(Path("a.nc"), run.assign_attrs(said)), named)
    long = run.assign_attrs(config=json.dumps(PLAIN | {"experiment": "x" * 500}))
    refused(lambda: sweep._job_of(Path("a.nc"), long))  # a long reason is cut
    for seed in (0, 2**32 - 1, np.int64(5)):
        found = sweep._job_of(Path("a.nc"), run.assign_attrs(seed=seed))
        assert found == sweep.Job(config().as_dict(), int(seed))
        assert type(found.seed) is int


def of(**variables):
    return xr.Dataset({name: ("x", np.array(values)) for name, values in variables.items()})


NAN = float("nan")


def test_the_largest_difference_by_hand():
    for old, new, difference in (
        (of(a=[1.0, 2.0], b=[0, 0]), of(a=[1.5, 2.0], b=[0, -3]), 3.0),
        (of(a=[5.0, 2.0], b=[0, 0]), of(a=[1.0, 2.0], b=[0, 1]), 4.0),
        (of(a=[True, False]), of(a=[True, True]), 1.0),
        (of(a=np.array([0, 1], np.uint8)), of(a=np.array([1, 0], np.uint8)), 1.0),
        (of(a=[1.0, NAN]), of(a=[1.25, NAN]), 0.25),
        (of(a=[1.0, NAN]), of(a=[1.0, 2.0]), np.inf),
        (of(a=[1.0, 2.0]), of(a=[1.0, NAN]), np.inf),
        (of(a=[1.0, 2.0]), of(a=[1.0]), np.inf),
        (of(a=[1.0]), of(b=[1.0]), np.inf),
        (of(a=["x", "y"], b=[1.0, 2.0]), of(a=["x", "y"], b=[1.0, 4.0]), 2.0),
        (of(a=["x", "y"]), of(a=["x", "z"]), np.inf),
        (of(a=["1", "2"]), of(a=[1.0, 2.0]), np.inf),
    ):
        assert sweep._largest_difference(old, new) == difference, (old, new)


def test_what_cannot_be_run_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    asked = []

    def check(self, config, seeds):
        asked.append((config, list(seeds)))
        if 3 in asked[-1][1]:
            raise InputError("there is no 3")

    out = tmp_path / "results"
    monkeypatch.setattr(Toy, "check", check)
    refused(lambda: sweep.run_experiment(config(), [2, 3], out), "there is no 3")
    assert not out.exists()
    sweep.run_experiment(config(), [1, 2], out)
    sweep.run_experiment(config(), [1, 2], out)  # what is there needs nothing any more
    assert asked == [(config(), [2, 3]), (config(), [1, 2]), (config(), [])]
    # On a cluster there may be what is not here.
    monkeypatch.setattr(sweep, "_on_cluster", lambda todo, address, work: map(work, todo))
    sweep.run_experiment(config(), [3], out, scheduler="tcp://there")
    assert len(asked) == 3
    other = tmp_path / "again"
    refused(lambda: sweep.rerun(out / NAME / "seed-00003.nc", other), "there is no 3")
    assert asked[3:] == [(config(), [3])]
    assert not other.exists()
