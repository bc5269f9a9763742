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
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from circuits import CircuitParameters, results
from circuits.dataset import versions
from circuits.errors import InputError, LostLabelWarning, ParameterError, UnsettledWarning
from circuits.files import FileError
from simulations import sweep
from simulations.experiments import EXPERIMENTS, Entry, get_experiment
from simulations.experiments.experiment import Experiment, Settings

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
    asked: list[int] = []  # noqa: RUF012 - shared on purpose

    def simulate(self, config, seed, report):
        self.asked.append(seed)
        report("simulating")
        warnings.warn("still moving", UnsettledWarning, stacklevel=1)
        warnings.warn("label lost", LostLabelWarning, stacklevel=1)
        troubles = {"unsettled_share": 0.25 * seed, "uncovered_share": 0.5, "lost_labels": seed}
        values = np.full(config.settings.n_points, float(seed))
        return xr.Dataset({"b": ("x", values), "a": ((), seed)}, attrs=troubles)

    def claims(self, merged):
        return [Said(f"{merged.sizes['repeat']} repeats")]


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, NAME, Entry("toy_of_tests.Toy", "Fig. 0", "A toy"))
    place = "simulations.experiments.toy_of_tests"
    monkeypatch.setitem(sys.modules, place, SimpleNamespace(Toy=Toy))
    Toy.asked.clear()


def config(**changes):
    return get_experiment(NAME).config("exact", changes)


def job(seed=2, **changes):
    return sweep.Job(config(**changes).as_dict(), seed)


def test_a_repeat_knows_where_it_comes_from():
    said, started = [], time.perf_counter()
    run = sweep.run_job(job(), said.append)  # warnings are errors here: none gets through
    took = time.perf_counter() - started
    assert said == ["simulating"]
    assert run["b"].values.tolist() == [2, 2, 2]
    assert 0 < run.attrs["seconds"] < took
    assert {
        name: run.attrs[name] for name in ("experiment", "title", "engine", "seed", "kind")
    } == {
        "experiment": NAME,
        "title": "A toy",
        "engine": "exact",
        "seed": 2,
        "kind": "run toy",
    }
    assert json.loads(run.attrs["config"]) == config().as_dict()
    assert run.attrs["fingerprint"] == config().fingerprint()
    assert run.attrs["code"] == results.code_revision()
    assert json.loads(run.attrs["versions"]) == versions()
    assert run.attrs["variables"] == '{"a": [], "b": [3]}'
    assert run.attrs["lost_labels"] == 2  # what the experiment says itself stays


def test_other_warnings_of_a_repeat_get_through(monkeypatch):
    def simulate(self, config, seed, report):
        warnings.warn("something else", UserWarning, stacklevel=1)

    monkeypatch.setattr(Toy, "simulate", simulate)
    with pytest.raises(UserWarning, match="something else"):
        sweep.run_job(job())


def test_the_engine_that_a_repeat_names_is_kept(monkeypatch):
    simulate = Toy.simulate
    monkeypatch.setattr(
        Toy, "simulate", lambda *arguments: simulate(*arguments).assign_attrs(engine="other")
    )
    assert sweep.run_job(job()).attrs["engine"] == "other"


def test_runs_of_other_code_are_made_again(tmp_path, capsys, monkeypatch):
    """The commit changed between two calls: what the first one left is replaced, not kept."""
    sweep.run_experiment(config(), [0, 1, 2], tmp_path)
    path = sweep.job_path(tmp_path, NAME, 1)
    results.save(results.load(path).assign_attrs(code="another commit"), path)
    assert sweep.finished(tmp_path, config(), [0, 1, 2]) == [0, 2]
    Toy.asked.clear()
    capsys.readouterr()
    merged, _ = sweep.run_experiment(config(), [0, 1, 2], tmp_path)
    assert Toy.asked == [1]
    said = capsys.readouterr().out
    assert "toy: 2 of 3 runs were finished before\n" in said
    assert "toy: 1 runs of other settings or other code are replaced\n" in said
    assert merged["run_code"].values.tolist() == [results.code_revision()] * 3
    monkeypatch.setattr(results, "code_revision", lambda: "a later commit")
    assert sweep.finished(tmp_path, config(), [0, 1, 2]) == []
    assert sorted(item.name for item in path.parent.iterdir()) == [  # whole: not set aside
        f"seed-0000{seed}.nc" for seed in range(3)
    ]


def test_a_first_sweep_finds_nothing_and_replaces_nothing(tmp_path, capsys):
    sweep.run_experiment(config(), [3], tmp_path)
    said = capsys.readouterr().out
    assert "before" not in said
    assert "replaced" not in said
    sweep.run_experiment(config(n_points=4), [3, 4], tmp_path)
    said = capsys.readouterr().out
    assert "before" not in said
    assert "toy: 1 runs of other settings or other code are replaced\n" in said
    assert Toy.asked == [3, 3, 4]


def test_what_a_sweep_leaves(tmp_path, capsys):
    merged, claims = sweep.run_experiment(config(), [0, 2, 1], tmp_path)
    assert claims == [Said("3 repeats", "toy")]
    saved = results.load(tmp_path / "toy.nc")
    assert saved.identical(merged)
    assert json.loads(saved.attrs["claims"])[0]["words"] == "3 repeats"
    assert saved.attrs["experiment"] == NAME
    assert saved.attrs["kind"] == "merged toy"
    assert saved.attrs["title"] == "A toy"
    assert "variables" not in saved.attrs
    assert saved["b"].values.tolist() == [[0, 0, 0], [2, 2, 2], [1, 1, 1]]
    assert (
        "toy: at most 50.00% of presentations unsettled and 50.00% uncovered in any run, 3 labels "
        "lost in all\n"
    ) in capsys.readouterr().out


def test_another_kind_of_result_is_not_written_over(tmp_path):
    mine = xr.Dataset({"a": ("x", [1.0])}, attrs={"kind": "data toy.csv"})
    results.save(mine, tmp_path / "toy.nc")
    with pytest.raises(FileError, match="holds another kind of result"):
        sweep.run_experiment(config(), [0], tmp_path)
    assert results.load(tmp_path / "toy.nc").identical(mine)
    assert Toy.asked == []


def test_a_file_is_not_written_over_by_its_own_rerun(tmp_path):
    sweep.run_experiment(config(), [0], tmp_path)
    Toy.asked.clear()
    with pytest.raises(FileError, match="written over by what is made from it"):
        sweep.rerun(sweep.job_path(tmp_path, NAME, 0), tmp_path)
    assert Toy.asked == []


def test_the_bar_counts_runs_that_were_finished_before(tmp_path, capsys):
    sweep.run_experiment(config(), [0], tmp_path)
    assert "1/1" in capsys.readouterr().err
    sweep.run_experiment(config(), [0, 1, 2], tmp_path)
    said = capsys.readouterr().err
    assert "1/3" in said
    assert "3/3" in said
    assert "toy: " in said
    assert "run/s" in said


def test_a_sweep_without_a_terminal_to_write_to(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert sweep.run_experiment(config(), [0], tmp_path)[0].sizes["repeat"] == 1


BROKEN = {
    "nothing": None,
    "a list": [],
    "a key less": {"experiment": NAME, "engine": "exact", "parameters": {}},
    "a key more": {"experiment": NAME, "engine": "exact", "parameters": {}, "settings": {}, "x": 1},
    "no text": {"experiment": 1, "engine": "exact", "parameters": {}, "settings": {}},
    "no names": {"experiment": NAME, "engine": "exact", "parameters": {}, "settings": []},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_configuration_is_refused(name):
    sentence = "its config must hold experiment, engine, parameters, settings, and does not"
    with pytest.raises(InputError, match=sentence):
        sweep.config_from(BROKEN[name])


def test_a_configuration_is_made_of_its_plain_values():
    wanted = config(n_points=7, n_tiles=9)
    assert sweep.config_from(wanted.as_dict()) == wanted
    with pytest.raises(InputError, match="there is no engine 'steam'"):
        sweep.config_from(wanted.as_dict() | {"engine": "steam"})


def test_jobs_one_after_the_other_report_and_many_go_to_processes(monkeypatch):
    import joblib

    asked, said = [], []

    class Pool:
        def __init__(self, **options):
            asked.append(options)

        def __call__(self, calls):
            return (function(*arguments, **options) for function, arguments, options in calls)

    monkeypatch.setattr(joblib, "Parallel", Pool)
    for count, jobs in ((2, 1), (1, 4), (0, 4)):
        todo = [job(seed) for seed in range(count)]
        assert [run.attrs["seed"] for run in sweep.compute(todo, jobs, None, said.append)] == [
            *range(count)
        ]
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
    ("failing", "error", "message"),
    [
        (ParameterError("too many tiles"), ParameterError, "^too many tiles$"),
        (OSError("cut"), InputError, r"at tcp://there is gone \(OSError\): what was finished"),
        (Elsewhere.CancelledError(), InputError, r"is gone \(CancelledError\)"),
        (ZeroDivisionError("by hand"), ZeroDivisionError, "by hand"),
    ],
)
def test_errors_that_come_back_from_dask(monkeypatch, failing, error, message):
    monkeypatch.setitem(sys.modules, "distributed", Elsewhere(failing))
    with pytest.raises(error, match=message):
        list(sweep.compute([job(0)], 1, "tcp://there"))


def test_dask_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", Elsewhere())
    with pytest.raises(InputError, match="no Dask scheduler at tcp://nowhere: no route"):
        list(sweep.compute([job(0)], 1, "tcp://nowhere"))
    with pytest.raises(InputError, match="no Dask scheduler at 5: "):
        list(sweep.compute([job(0)], 1, 5))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"needs dask.distributed: pip install"):
        list(sweep.compute([job(0)], 1, "tcp://there"))


def one(seed, values, x=(0, 1), **attributes):
    data = {"a": ("x", np.array(values))}
    return xr.Dataset(data, {"x": list(x)}, {"seed": seed, "seconds": 0.5 * seed, **attributes})


def test_repeats_are_merged_by_hand():
    parts = [
        one(
            4, [1.0, 2.0], engine="exact", code="abc", lost_labels=1, uncovered_share=0.1, same="s"
        ),
        one(2, [3.0, 4.0], engine="numpy", lost_labels=5, same="s"),
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
    with pytest.raises(InputError, match="no runs to merge"):
        sweep.merge([])
    with pytest.raises(ValueError, match="exact"):
        sweep.merge([parts[0], one(1, [0.0, 0.0], x=(0, 2))])


def test_a_variable_that_all_share_is_merged_too():
    assert sweep.merge([one(1, [0.0, 0.0]), one(2, [0.0, 0.0])])["a"].dims == ("repeat", "x")


def test_a_rerun_is_compared_with_what_it_repeats(tmp_path):
    sweep.run_experiment(config(), [2], tmp_path)
    path = sweep.job_path(tmp_path, NAME, 2)
    assert path == tmp_path / "toy" / "seed-00002.nc"
    again, difference = sweep.rerun(path, tmp_path / "again")
    assert again == tmp_path / "again" / "toy" / "seed-00002.nc"
    assert difference == 0.0
    assert results.load(again)["b"].values.tolist() == [2, 2, 2]
    old = results.load(path)
    results.save(old.assign(b=("x", [2.0, 2.5, 1.0])), path)
    assert sweep.rerun(path, tmp_path / "again")[1] == 1.0  # the same settings may be there
    results.save(old.drop_vars(["a", "b"]), path)
    with pytest.raises(InputError, match="holds no variables: there is nothing to compare"):
        sweep.rerun(path, tmp_path / "again")
    results.save(sweep.run_job(job(n_points=4)), path)
    with pytest.raises(InputError, match="holds a run of other settings: give another --out"):
        sweep.rerun(path, tmp_path / "again")
    for attribute in ("config", "seed"):
        kept = {name: value for name, value in old.attrs.items() if name != attribute}
        results.save(old.drop_attrs().assign_attrs(kept), path)
        with pytest.raises(InputError, match="only results of 'run' can be re-run"):
            sweep.rerun(path, tmp_path / "more")
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize("seed", [-1, 2**32, 1.0, "1", [1, 2]])
def test_a_seed_that_is_none_is_refused(seed):
    old = sweep.run_job(job()).assign_attrs(seed=seed)
    with pytest.raises(InputError, match=r"its seed must be a whole number from 0 to 2\^32 - 1"):
        sweep._job_of(Path("a.nc"), old)


@pytest.mark.parametrize("seed", [0, 2**32 - 1, np.int64(5)])
def test_seeds_from_the_first_to_the_last(seed):
    found = sweep._job_of(Path("a.nc"), sweep.run_job(job()).assign_attrs(seed=seed))
    assert found == sweep.Job(config().as_dict(), int(seed))
    assert type(found.seed) is int


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[]", '{"experiment": 1}', 5])
def test_a_file_that_does_not_say_how_it_was_made(text):
    old = sweep.run_job(job()).assign_attrs(config=text)
    with pytest.raises(InputError, match=r"a.nc does not say how it was made: its config must"):
        sweep._job_of(Path("a.nc"), old)


def test_a_long_reason_is_cut():
    named = config().as_dict() | {"experiment": "x" * 500}
    old = sweep.run_job(job()).assign_attrs(config=json.dumps(named))
    with pytest.raises(InputError) as error:
        sweep._job_of(Path("a.nc"), old)
    start = "a.nc does not say how it was made: "
    assert str(error.value).startswith(start)
    assert len(str(error.value)) == len(start) + 200


def of(**variables):
    return xr.Dataset({name: ("x", np.array(values)) for name, values in variables.items()})


NAN = float("nan")


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        (of(a=[1.0, 2.0]), of(a=[1.0, 2.0]), 0.0),
        (of(a=[1.0, 2.0], b=[0, 0]), of(a=[1.5, 2.0], b=[0, -3]), 3.0),
        (of(a=[5.0, 2.0], b=[0, 0]), of(a=[1.0, 2.0], b=[0, 1]), 4.0),
        (of(a=[True, False]), of(a=[True, True]), 1.0),
        (of(a=np.array([0, 1], np.uint8)), of(a=np.array([1, 0], np.uint8)), 1.0),
        (of(a=[1.0, NAN]), of(a=[1.25, NAN]), 0.25),
        (of(a=[NAN, NAN]), of(a=[NAN, NAN]), 0.0),
        (of(a=[1.0, NAN]), of(a=[1.0, 2.0]), np.inf),
        (of(a=[1.0, 2.0]), of(a=[1.0, NAN]), np.inf),
        (of(a=[1.0, 2.0]), of(a=[1.0]), np.inf),
        (of(a=[1.0]), of(b=[1.0]), np.inf),
        (of(a=["x", "y"]), of(a=["x", "y"]), 0.0),
        (of(a=["x", "y"], b=[1.0, 2.0]), of(a=["x", "y"], b=[1.0, 4.0]), 2.0),
        (of(a=["x", "y"]), of(a=["x", "z"]), np.inf),
        (of(a=["1", "2"]), of(a=[1.0, 2.0]), np.inf),
        (of(a=[1.0, 2.0]), of(a=["1", "2"]), np.inf),
    ],
)
def test_the_largest_difference_by_hand(old, new, difference):
    assert sweep._largest_difference(old, new) == difference


def test_runs_that_differ_by_rounding_count_as_the_same():
    """What `rerun` of the command line says of a difference depends on this bound."""
    assert sweep.ROUNDING == 1e-8


def test_where_nothing_can_be_written_nothing_is_computed(tmp_path):
    (tmp_path / "toy").write_text("in the way")
    path = results.save(sweep.run_job(job()), tmp_path / "one.nc")
    for call in (
        lambda: sweep.run_experiment(config(), [0], tmp_path),
        lambda: sweep.rerun(path, tmp_path),
    ):
        Toy.asked.clear()
        with pytest.raises(FileError, match="cannot write to"):
            call()
        assert Toy.asked == []


def test_what_cannot_be_run_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    asked = []

    def check(self, config, seeds):
        asked.append((config, list(seeds)))
        if 3 in asked[-1][1]:
            raise InputError("there is no 3")

    out = tmp_path / "results"
    monkeypatch.setattr(Toy, "check", check)
    with pytest.raises(InputError, match="there is no 3"):
        sweep.run_experiment(config(), [2, 3], out)
    assert not out.exists()
    sweep.run_experiment(config(), [1, 2], out)
    sweep.run_experiment(config(), [1, 2], out)  # what is there needs nothing any more
    assert asked == [(config(), [2, 3]), (config(), [1, 2]), (config(), [])]
    # On a cluster there may be what is not here.
    monkeypatch.setattr(sweep, "_on_cluster", lambda todo, address, work: map(work, todo))
    sweep.run_experiment(config(), [3], out, scheduler="tcp://there")
    assert len(asked) == 3
    other = tmp_path / "again"
    with pytest.raises(InputError, match="there is no 3"):
        sweep.rerun(out / NAME / "seed-00003.nc", other)
    assert asked[3:] == [(config(), [3])]
    assert not other.exists()


def test_what_a_killed_sweep_was_writing_is_removed(tmp_path):
    """Even where all runs are there and nothing is written beside them."""
    sweep.run_experiment(config(), [0], tmp_path)
    left = tmp_path / "toy" / f".{'0' * 16}.manifold-circuit-partial.nc"
    left.write_bytes(b"half")
    sweep.run_experiment(config(), [0], tmp_path)
    assert not left.exists()
    assert Toy.asked == [0]


def test_a_run_without_variables_is_none(tmp_path):
    path = sweep.job_path(tmp_path, NAME, 0)
    path.parent.mkdir()
    empty = sweep.run_job(job(0)).drop_vars(["a", "b"]).assign_attrs(variables="{}")
    results.save(empty, path)
    assert sweep.finished(tmp_path, config(), [0]) == []
    assert not path.exists()


@pytest.mark.parametrize("said", [{"kind": "run other"}, {"seed": 7}, {"variables": '{"a": []}'}])
def test_a_run_that_says_it_is_another_is_set_aside(tmp_path, said):
    sweep.run_experiment(config(), [0, 1], tmp_path)
    path = sweep.job_path(tmp_path, NAME, 0)
    results.save(results.load(path).assign_attrs(said), path)
    assert sweep.finished(tmp_path, config(), [0, 1, 2]) == [1]
    assert sorted(item.name for item in path.parent.iterdir()) == [
        "seed-00000.nc.set-aside",
        "seed-00001.nc",
    ]
