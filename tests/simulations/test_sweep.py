"""Sweeps: saved as they go, resumed, re-run from a file, on processes and on a cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_info

from circuits import results
from circuits.errors import InputError
from circuits.files import FileError
from simulations import sweep
from simulations.experiments import get_experiment
from tests.simulations.small import TINY
from tests.soak import processes

NAME = "square-balance"


def config(**changes):
    return get_experiment(NAME).config("exact", TINY[NAME] | changes)


def files(out: Path) -> list[str]:
    return sorted(path.name for path in (out / NAME).iterdir())


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_file_per_run_and_one_for_all(tmp_path, jobs):
    merged, claims = sweep.run_experiment(config(), [0, 1, 2], tmp_path, jobs)
    assert files(tmp_path) == ["seed-00000.nc", "seed-00001.nc", "seed-00002.nc"]
    assert merged["seed"].to_numpy().tolist() == [0, 1, 2]
    saved = results.load(tmp_path / f"{NAME}.nc")
    assert saved["majority"].equals(merged["majority"])
    for i in range(3):
        one = results.load(tmp_path / NAME / f"seed-0000{i}.nc")
        assert (one["majority"].to_numpy() == merged["majority"].to_numpy()[i]).all()
        assert one.attrs["seed"] == i
    assert len(claims) == 5


def test_an_interrupted_sweep_goes_on_and_says_so(tmp_path, capsys, monkeypatch):
    calls = []
    real = sweep.run_job

    def counting(job, report):
        calls.append(job.seed)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(job, report)

    monkeypatch.setattr(sweep, "run_job", counting)
    with pytest.raises(KeyboardInterrupt):
        sweep.run_experiment(config(), [0, 1, 2, 3], tmp_path)
    assert files(tmp_path) == ["seed-00000.nc", "seed-00001.nc"]
    calls.clear()
    calls.extend([-1, -1, -1])
    merged, _ = sweep.run_experiment(config(), [0, 1, 2, 3], tmp_path)
    assert "2 of 4 runs were finished before" in capsys.readouterr().out
    assert calls[3:] == [2, 3]
    assert merged.sizes["repeat"] == 4


def test_other_settings_are_not_taken_for_finished(tmp_path):
    sweep.run_experiment(config(), [0, 1], tmp_path)
    assert sweep.finished(tmp_path, config(), [0, 1, 2]) == [0, 1]
    assert sweep.finished(tmp_path, config(mu=3), [0, 1]) == []
    assert files(tmp_path) == ["seed-00000.nc", "seed-00001.nc"]  # they are whole


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replace_by(change):
    """The result with some change, saved as whole as any other."""
    return lambda path: results.save(change(results.load(path)), path)


def make_folder(path):
    path.unlink()
    path.mkdir()


SPOILED = {
    "arrays damaged": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:2000]),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello"),
    "no variables": replace_by(lambda old: old.drop_vars(old.data_vars)),
    "a variable less": replace_by(lambda old: old.drop_vars("majority")),
    "shorter": replace_by(lambda old: old.isel({old["score"].dims[0]: slice(1)})),
    "of another seed": replace_by(lambda old: old.assign_attrs(seed=7)),
    "of another kind": replace_by(lambda old: old.assign_attrs(kind="demo")),
    "a folder": make_folder,
    "not sealed": lambda path: path.write_bytes(path.read_bytes()[: -results.SEAL_BYTES]),
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_what_is_not_a_whole_run_is_set_aside_and_made_again(tmp_path, capsys, spoil):
    expected, _ = sweep.run_experiment(config(), [0, 1], tmp_path)
    path = tmp_path / NAME / "seed-00001.nc"
    SPOILED[spoil](path)
    merged, _ = sweep.run_experiment(config(), [0, 1], tmp_path)
    said = capsys.readouterr()
    assert f"{path} is damaged or of another version: kept as seed-00001.nc.set-aside" in said.err
    assert "1 of 2 runs were finished before" in said.out
    assert files(tmp_path)[-1] == "seed-00001.nc.set-aside"
    assert results.is_whole(path)
    for name in expected.data_vars:
        assert (merged[name].values == expected[name].values).all(), name


def test_a_merged_result_of_another_kind_is_not_written_over(tmp_path, capsys):
    mine = xr.Dataset({"a": ("x", [1.0])}, attrs={"kind": f"data {NAME}.csv"})
    results.save(mine, tmp_path / f"{NAME}.nc")
    with pytest.raises(FileError, match="holds another kind of result"):
        sweep.run_experiment(config(), [0], tmp_path)
    assert results.load(tmp_path / f"{NAME}.nc").identical(mine)
    (tmp_path / f"{NAME}.nc").write_bytes(b"damaged")
    sweep.run_experiment(config(), [0], tmp_path)
    assert (tmp_path / f"{NAME}.nc.set-aside").read_bytes() == b"damaged"


def test_a_rerun_of_nothing_is_not_the_same_numbers(tmp_path):
    sweep.run_experiment(config(), [0], tmp_path)
    path = tmp_path / NAME / "seed-00000.nc"
    whole = results.load(path)
    results.save(whole.drop_vars(whole.data_vars), path)
    with pytest.raises(InputError, match="holds no variables"):
        sweep.rerun(path, tmp_path / "again")
    results.save(whole.drop_vars("majority"), path)
    assert sweep.rerun(path, tmp_path / "again")[1] == np.inf
    results.save(whole.assign(majority=whole["majority"] + 0.5), path)
    assert sweep.rerun(path, tmp_path / "again")[1] == pytest.approx(0.5, rel=1e-15)  # rounding
    with pytest.raises(FileError, match="written over by what is made from it"):
        sweep.rerun(path, tmp_path)


@pytest.mark.parametrize("engine", ["exact", "cpp_standalone"])
def test_a_file_run_again_from_itself_gives_the_same_numbers(tmp_path, engine):
    chosen = get_experiment(NAME).config(engine, TINY[NAME])
    sweep.run_experiment(chosen, [4], tmp_path)
    path, difference = sweep.rerun(tmp_path / NAME / "seed-00004.nc", tmp_path / "again")
    assert difference == 0
    old, new = results.load(tmp_path / NAME / "seed-00004.nc"), results.load(path)
    for name in old.data_vars:
        assert (old[name].to_numpy() == new[name].to_numpy()).all(), name


def test_results_are_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "result.nc"
    results.save(xr.Dataset({"a": ("x", np.arange(3))}), path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"cannot write .*result.nc: No space left"):
        results.save(xr.Dataset({"a": ("x", np.arange(4))}), path)
    monkeypatch.undo()
    assert results.load(path)["a"].size == 3
    assert [item.name for item in tmp_path.iterdir()] == ["result.nc"]


def test_files_that_are_no_results(tmp_path):
    with pytest.raises(FileError, match="no result file"):
        results.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(FileError, match="not a result"):
        results.load(tmp_path / "text.nc")


@pytest.mark.filterwarnings("ignore")  # distributed's own, about its comms when a worker dies
def test_a_cluster_that_loses_a_worker_still_returns_every_run_once(tmp_path):
    pytest.importorskip("distributed")
    with processes.cluster() as (address, workers):
        lose_a_worker(tmp_path, address, workers[0])


def lose_a_worker(tmp_path, address, worker):
    seeds = list(range(8))
    killed = []

    def kill_in_the_middle():
        while not killed:
            if len(list((tmp_path / NAME).glob("seed-*.nc"))) >= 2:
                worker.send_signal(signal.SIGKILL)
                killed.append(time.time())
            time.sleep(0.01)

    thread = threading.Thread(target=kill_in_the_middle, daemon=True)
    thread.start()
    merged, _ = sweep.run_experiment(config(n_points=1500), seeds, tmp_path, scheduler=address)
    assert killed
    thread.join()
    assert merged["seed"].to_numpy().tolist() == seeds
    assert files(tmp_path) == [f"seed-{seed:05d}.nc" for seed in seeds]
    local = sweep.run_job(sweep.Job(config(n_points=1500).as_dict(), 7))
    # Another process may share its sums among threads otherwise: rounding, and no more.
    assert np.abs(merged["score"].to_numpy()[7] - local["score"].to_numpy()).max() <= sweep.ROUNDING


def test_a_scheduler_that_is_not_there(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep, "CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match=r"no Dask scheduler at tcp://127.0.0.1:9"):
        sweep.run_experiment(config(), [0], tmp_path, scheduler="tcp://127.0.0.1:9")


def test_the_blas_has_one_thread_while_a_repeat_runs(monkeypatch):
    experiment = get_experiment("tiling-arcs")
    seen = []

    def simulate(self, config, seed, report):
        seen.extend(library["num_threads"] for library in threadpool_info())
        return xr.Dataset({"x": 1.0})

    monkeypatch.setattr(type(experiment), "simulate", simulate)
    before = [library["num_threads"] for library in threadpool_info()]
    sweep.run_job(sweep.Job(experiment.config("exact", {}).as_dict(), 0))
    assert set(seen) == {1}
    assert [library["num_threads"] for library in threadpool_info()] == before
