"""Sweeps of a real experiment: re-run from a file, on processes and on a cluster."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_info

from circuits.storage import results
from circuits.storage.files import FileError
from simulations import sweep
from simulations.experiments import get_experiment
from tests.refusing import refused
from tests.simulations.small import TINY
from tests.soak import processes

NAME = "square-balance"


def config(engine="exact", **changes):
    return get_experiment(NAME).config(engine, TINY[NAME] | changes)


def files(out) -> list[str]:
    return sorted(path.name for path in (out / NAME).iterdir())


def test_results_are_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "result.nc"
    results.save(xr.Dataset({"a": ("x", np.arange(3))}), path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        larger = xr.Dataset({"a": ("x", np.arange(4))})
        refused(lambda: results.save(larger, path), "result.nc: No space left", FileError)
    assert results.load(path)["a"].size == 3
    assert [item.name for item in tmp_path.iterdir()] == ["result.nc"]
    path.write_text("hello")
    refused(lambda: results.load(path), "result.nc", FileError)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # distributed's own, about its comms when a worker dies
def test_a_cluster_that_loses_a_worker_still_returns_every_run_once(tmp_path):
    pytest.importorskip("distributed")
    seeds = list(range(8))
    killed = []

    def kill_in_the_middle(worker):
        while not killed:
            if len(list((tmp_path / NAME).glob("seed-*.nc"))) >= 2:
                worker.send_signal(signal.SIGKILL)
                killed.append(time.time())
            time.sleep(0.01)

    chosen = config(n_points=1500)
    with processes.cluster() as (address, workers):
        thread = threading.Thread(target=kill_in_the_middle, args=workers[:1], daemon=True)
        thread.start()
        merged, _ = sweep.run_experiment(chosen, seeds, tmp_path, scheduler=address)
        assert killed
        thread.join()
    assert merged["seed"].to_numpy().tolist() == seeds
    assert files(tmp_path) == [f"seed-{seed:05d}.nc" for seed in seeds]
    local = sweep.run_job(sweep.Job(chosen.as_dict(), 7))
    # Another process may share its sums among threads otherwise: rounding, and no more.
    assert np.abs(merged["score"].to_numpy()[7] - local["score"].to_numpy()).max() <= sweep.ROUNDING


def test_a_scheduler_that_is_not_there(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep, "CONNECT_SECONDS", 0.2)
    address = "tcp://127.0.0.1:9"
    refused(lambda: sweep.run_experiment(config(), [0], tmp_path, scheduler=address), address)


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
