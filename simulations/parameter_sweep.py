"""Sweeps over parameters: an experiment at every combination of their values.

>>> from simulations.parameter_sweep import sweep
>>> found = sweep("two-moons", {"mu": [1, 10, 100]}, repeats=20, jobs=2)  # doctest: +SKIP
>>> found["circuit_accuracy"].mean("repeat")  # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from circuits import results
from circuits.checks import as_count
from circuits.errors import CircuitError, DivergenceError
from circuits.perturbations import Perturbation
from simulations import sweep as repeats_of
from simulations.assembling import assembled
from simulations.combinations import Combinations, combine
from simulations.experiments import get_experiment
from simulations.experiments.experiment import Report
from simulations.kept_runs import MOST_VALUES, KeptRuns, reduced


@dataclass(frozen=True)
class Point(repeats_of.Job):
    """One run of a sweep."""

    words: str = ""
    """Its combination, as it begins a sentence on what went wrong."""


def run_point(point: Point, report: Report = lambda word: None) -> xr.Dataset:
    """One run, as far as a sweep keeps it. One that diverges has no variables, and says so."""
    try:
        return reduced(repeats_of.run_job(point, report, measured=True).assign_attrs(failed=""))
    except DivergenceError as error:
        mark = repeats_of.config_from(point.config).fingerprint()
        known = {"fingerprint": mark, "seed": point.seed, "seconds": np.nan, "engine": ""}
        return reduced(xr.Dataset(attrs=known | {"failed": str(error)}))
    except CircuitError as error:
        sentence = f"with {point.words} and seed {point.seed}: {error}"
        raise type(error)(sentence) from error


def sweep(
    experiment: str,
    over: Mapping[str, Sequence[Any]],
    *,
    changes: Mapping[str, Any] | None = None,
    repeats: int | None = None,
    seed: int = 0,
    engine: str = "cpp_standalone",
    jobs: int = 1,
    scheduler: str | None = None,
    out: str | os.PathLike[str] = "results",
    quick: bool = False,
    perturbations: Iterable[Perturbation] = (),
) -> xr.Dataset:
    """Run an experiment at every combination of values of its parameters or settings.

    Returns, and writes to ``sweep-EXPERIMENT.nc`` in ``out``, a data set with a dimension for every
    name in ``over``, one for the repeats (seeds from ``seed`` on), and those of the experiment.
    ``changes`` are values that stay the same, as do the perturbations of the circuits. Runs that
    are there, made from the same values by the same code, are not computed again.
    """
    chosen = get_experiment(experiment)
    count = (chosen.quick_repeats if quick else chosen.repeats) if repeats is None else repeats
    count, jobs = as_count(count, "repeats", 1), as_count(jobs, "jobs", 1)
    seeds = chosen.seeds(count, seed)[:count]  # without those on which values are chosen
    combinations = combine(chosen, engine, over, changes or {}, count, quick, perturbations)
    target, kind = Path(out) / f"sweep-{experiment}.nc", f"sweep {experiment}"
    results.make_way(target, kind)
    kept = KeptRuns(Path(out) / f"sweep-{experiment}", experiment)
    _compute(combinations, seeds, kept, jobs, scheduler)
    found = assembled(combinations, seeds, kept).assign_attrs(kind=kind)
    results.save(found, target)
    kept.remove_older()
    print("\n".join(remarks(found)))
    return found


def _compute(
    combinations: Combinations,
    seeds: list[int],
    kept: KeptRuns,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Compute the runs that are not kept, every combination before the next seed."""
    name = combinations.experiment.name
    marks = [config.fingerprint() for config in combinations.configs]
    plain = [config.as_dict() for config in combinations.configs]
    words = [combinations.words(i) for i in range(len(plain))]
    todo = [
        Point(plain[i], seed, words[i])
        for seed in seeds
        for i, mark in enumerate(marks)
        if (mark, seed) not in kept.places
    ]
    total = len(marks) * len(seeds)
    if len(todo) < total:
        print(f"{name}: {total - len(todo)} of {total} runs were finished before")
    if kept.of_other_code:
        print(f"{name}: {kept.of_other_code} runs of other code are replaced")
    bar = tqdm(
        total=total,
        initial=total - len(todo),
        desc=f"sweep {name}",
        unit="run",
        disable=sys.stderr is None,
    )
    with bar:
        try:
            for run in repeats_of.compute(todo, jobs, scheduler, bar.set_postfix_str, run_point):
                kept.add(run)
                bar.update()
        finally:
            kept.write()


def remarks(found: xr.Dataset) -> list[str]:
    """What there is to say of a sweep: what went wrong, what its file lacks or calls otherwise."""
    name = found.attrs["experiment"]
    lines = [f"{name}: {repeats_of.troubles(found)}"]
    if failed := int(found["run_failed"].sum()):
        lines.append(f"{name}: {failed} of {found['run_failed'].size} runs diverged and are NaN")
    for attribute, reason in (
        ("large", f"more than {MOST_VALUES} values a run"),
        ("differing", "another shape or place in other runs"),
    ):
        if which := json.loads(found.attrs[attribute]):
            lines.append(f"{name}: left out, because of {reason}: {', '.join(which)}")
    for old, new in json.loads(found.attrs["renamed"]).items():
        lines.append(f"{name}: the experiment's own {old} is called {new}")
    return lines
