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

from circuits.checks import as_count
from circuits.errors import CircuitError, DivergenceError, InputError, ParameterError, shown
from circuits.parts.perturbations import Perturbation
from circuits.storage import results
from simulations import sweep as repeats_of
from simulations.assembling import assembled
from simulations.combinations import Combinations, combine
from simulations.experiments import get_experiment
from simulations.experiments.experiment import Report
from simulations.kept_runs import MOST_VALUES, KeptRuns, reduced
from simulations.run_bar import counting


@dataclass(frozen=True)
class Point(repeats_of.Job):
    """One run of a sweep."""

    words: str = ""
    """Its combination, as it begins a sentence on what went wrong."""


def run_point(point: Point, report: Report = lambda word: None) -> xr.Dataset:
    """One run, as far as a sweep keeps it.

    One that fails because of its values has no variables, and says why: it would fail again, and
    the others need not. What this machine lacks ends the sweep.
    """
    try:
        return reduced(repeats_of.run_job(point, report, measured=True).assign_attrs(failed=""))
    except (DivergenceError, InputError, ParameterError) as error:
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
    are there, made from the same values by the same code, are not computed again. A run that fails
    is unknown (NaN), and if all do an `InputError` says why.
    """
    chosen, folder = get_experiment(experiment), _folder(out)
    count = (chosen.quick_repeats if quick else chosen.repeats) if repeats is None else repeats
    count, jobs = as_count(count, "repeats", 1), as_count(jobs, "jobs", 1)
    seed = as_count(seed, "seed")
    seeds = chosen.seeds(count, seed)[:count]  # without those on which values are chosen
    combinations = combine(chosen, engine, over, changes or {}, count, quick, perturbations)
    target, kind = folder / f"sweep-{experiment}.nc", f"sweep {experiment}"
    kept = KeptRuns(folder / f"sweep-{experiment}", experiment)
    if scheduler is None:  # elsewhere there may be what is not here
        _check(combinations, seeds, kept)
    results.make_way(target, kind)
    kept.prepare()
    _compute(combinations, seeds, kept, jobs, scheduler)
    found = assembled(combinations, seeds, kept).assign_attrs(kind=kind)
    results.save(found, target)
    kept.remove_older()
    print("\n".join(remarks(found)))
    return found


def _folder(out: Any) -> Path:
    """A folder for results, or an error that says what is one."""
    try:
        return Path(out)
    except TypeError:
        raise InputError(f"out must be the name of a folder, got {shown(out)}") from None


def _check(combinations: Combinations, seeds: list[int], kept: KeptRuns) -> None:
    """Refuse runs that are not there and lack what they need: data, packages."""
    # Tens of thousands may take a while, as where each looks at its data.
    for i, mark in enumerate(
        tqdm(combinations.marks, "checks", leave=False, delay=2, disable=sys.stderr is None)
    ):
        missing = [seed for seed in seeds if (mark, seed) not in kept.places]
        try:
            combinations.experiment.check(combinations.configs[i], missing)
        except CircuitError as error:
            raise type(error)(f"with {combinations.words(i)}: {error}") from error


def _compute(
    combinations: Combinations,
    seeds: list[int],
    kept: KeptRuns,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Compute the runs that are not kept, every combination before the next seed."""
    name = combinations.experiment.name
    marks = combinations.marks
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
    with counting(name, "sweep ", total - len(todo), total, jobs, scheduler) as bar:
        try:
            for run in repeats_of.compute(todo, jobs, scheduler, bar.set_postfix_str, run_point):
                kept.add(run)
                bar.set_postfix_str("", refresh=False)
                bar.add()
        finally:
            kept.write()


def remarks(found: xr.Dataset) -> list[str]:
    """What there is to say of a sweep: what went wrong, what its file lacks or calls otherwise."""
    name = found.attrs["experiment"]
    lines = [f"{name}: {repeats_of.troubles(found)}"]
    if failed := int(found["run_failed"].sum()):
        lines.append(
            f"{name}: {failed} of {found['run_failed'].size} runs failed and are NaN, "
            f"{found.attrs['failed']}"
        )
    for attribute, reason in (
        ("large", f"more than {MOST_VALUES} values a run"),
        ("differing", "another shape or place in other runs"),
    ):
        if which := json.loads(found.attrs[attribute]):
            lines.append(f"{name}: left out, because of {reason}: {', '.join(which)}")
    for old, new in json.loads(found.attrs["renamed"]).items():
        lines.append(f"{name}: the experiment's own {old} is called {new}")
    return lines
