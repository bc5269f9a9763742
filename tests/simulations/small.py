"""Experiments at small size, and results of the registered size whose truth is planted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import xarray as xr

from circuits.errors import ParameterError
from circuits.storage import results
from simulations import sweep
from simulations.experiments import EXPERIMENTS, Entry, get_experiment
from simulations.experiments.claim import Claim

TINY: dict[str, dict[str, Any]] = {
    "tiling-arcs": {"n_points": 300},
    "two-moons": {"n_points": 300, "label_after": 60, "n_streams": 2},
    "chessboard-supervision": {
        "n_points": 320,
        "label_counts": (20, 40),
        "mu_grid": (3, 10),
        "rate_grid": (0.1, 1),
        "gamma_grid": (100,),
    },
    "chessboard-offline": {
        "n_points": 500,
        "n_test": 100,
        "every": 250,
        "mu_grid": (3, 10),
        "svm_grid": ((0.01, 1.0), (0.1, 0.1)),
        "labels_grid": ((0.01, 100.0), (0.1, 10.0)),
        "plain_grid": (0.01, 0.1),
    },
    "square-balance": {"n_points": 300, "label_after": 60},
    "label-diffusion": {
        "n_tiling": 200,
        "moments": (0, 20),
        "n_probe": 150,
        "n_points": 300,
        "mu_grid": (30, 100),
    },
    "tiling-objective": {"n_points": 40, "n_stream": 200, "n_starts": 2, "n_shown": 30},
    "linear-tiles": {"n_points": 200, "n_test": 100, "penalty_grid": (0.01, 1.0)},
    "label-change": {"n_points": 400, "window": 50, "lag": 100, "mu_grid": (1, 10)},
    "manifold-drift": {
        **{"n_points": 400, "drift_after": 200, "label_after": 60, "measured": 100},
        **{"speed": 20.0, "fast_speed": 40.0, "deform_speed": 40.0, "windows": (10, 20, 30)},
        **{"map_after": 100, "map_speeds": (25.0, 100.0), "map_rates": (0.01, 0.04)},
        "map_tiles": 16,
    },
    "label-swap": {
        **{"n_points": 800, "label_after": 60, "other_shares": (0.2,), "few": 0.05, "more": 0.1},
        **{"mu_grid": (2, 4, 100, 1000), "gated_grid": (0.9, 1.0, 1.1, 1.2)},
    },
    "spiking-twin": {
        **{"n_points": 100, "label_after": 30, "frozen_points": 10, "cells": (1, 2)},
        **{"board_points": 100, "board_cells": 2, "mu_grid": (5, 20)},
    },
    "digits": {"n_points": 400, "first": 100, "n_tiles": 80},
    "representational-drift": {
        **{"n_points": 200, "n_tiling": 150, "label_after": 120, "size": 1e-4},
        **{"other_sizes": (1e-3,), "moons_size": 1e-3},
    },
    "lesions": {
        **{"n_points": 300, "later": 100, "n_test": 60, "n_noisy": 6, "n_tried": 2},
        **{"n_delayed": 1, "label_after": 60, "shares": (0.3, 0.7), "delays": (0, 2, 4)},
        **{"taus": (12.5, 25.0), "delay_steps": 150, "sizes": (0.03, 1.0)},
    },
}


def simulate(name: str, engine: str = "exact", seed: int = 0, **changes: Any) -> xr.Dataset:
    """One repeat at small size."""
    config = get_experiment(name).config(engine, TINY[name] | changes)
    return sweep.run_job(sweep.Job(config.as_dict(), seed))


@cache
def small_run(name: str) -> xr.Dataset:
    """One repeat at small size, computed once and shared: do not change it."""
    return simulate(name)


def planted(
    name: str,
    values: Callable[[int, xr.Dataset], Mapping[str, Any]],
    repeats: int | None = None,
    run: xr.Dataset | None = None,
    **changes: Any,
) -> xr.Dataset:
    """Merged repeats of the registered size by their attributes (but for ``changes``).

    ``values(seed, run)`` replaces variables of ``run``, which is a repeat at small size if none
    is given.
    """
    experiment = get_experiment(name)
    run = small_run(name) if run is None else run
    config = json.dumps(experiment.config("exact", changes).as_dict())
    return sweep.merge(
        [
            run.assign(
                {key: run[key].copy(data=value) for key, value in values(seed, run).items()}
            ).assign_attrs(seed=seed, config=config)
            for seed in experiment.seeds(repeats or experiment.repeats)
        ]
    )


def register_toy(monkeypatch: pytest.MonkeyPatch, toy: type) -> None:
    """Make a class the experiment "toy" while a test runs; it has been asked for nothing yet."""
    monkeypatch.setitem(EXPERIMENTS, "toy", Entry("toy_of_tests.Toy", "Fig. 0", "A toy"))
    place = "simulations.experiments.toy_of_tests"
    monkeypatch.setitem(sys.modules, place, SimpleNamespace(Toy=toy))
    toy.asked.clear()  # type: ignore[attr-defined]


def flip_bit(path: Path) -> None:
    """Damage a file in its middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def resaved(change: Callable[[xr.Dataset], xr.Dataset]) -> Callable[[Path], Path]:
    """A function that changes a result and saves it as whole as any other."""
    return lambda path: results.save(change(results.load(path)), path)


def claim_named(name: str, merged: xr.Dataset, words: str) -> Claim:
    """The one claim of an experiment whose name holds some words."""
    (found,) = (one for one in get_experiment(name).claims(merged) if words in one.claim)
    return found


def assert_range(name: str, setting: str, within: Iterable[Any], beyond: Iterable[Any]) -> None:
    """That an experiment takes these values of a setting, and refuses those by its name."""
    experiment = get_experiment(name)
    for value in within:
        assert getattr(experiment.config("exact", {setting: value}).settings, setting) == value
    for value in beyond:
        with pytest.raises(ParameterError, match=setting):
            experiment.config("exact", {setting: value})
