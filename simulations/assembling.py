"""From the runs of a sweep to one data set, with a dimension for every parameter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from circuits.dataset import versions
from circuits.errors import InputError
from circuits.storage import results
from simulations.combinations import Combinations
from simulations.experiments import EXPERIMENTS
from simulations.experiments.experiment import Experiment
from simulations.kept_runs import KeptRuns
from simulations.sweep import TROUBLES

MOST_NAMED = 5
"""Combinations that a remark on failed runs names."""

OWN = "own_"
"""What begins the names of an experiment that a sweep needs for itself."""


def assembled(combinations: Combinations, seeds: list[int], kept: KeptRuns) -> xr.Dataset:
    """The runs of all combinations and seeds as one data set.

    Variables that do not have the same dimensions at the same places in every run are left out. A
    run that failed is unknown (NaN).
    """
    places = [kept.places[mark, seed] for mark in combinations.marks for seed in seeds]
    table_of, row_of = np.array(places).T
    tables = {int(i): kept.tables[i] for i in np.unique(table_of)}
    shape = (*combinations.shape, len(seeds))
    runs = _Runs(tables, table_of.reshape(shape), row_of.reshape(shape))
    whole = [table for table in tables.values() if table.data_vars]
    reasons = runs.values("run_failed", "")
    if not whole:
        raise InputError(
            f"every run of the sweep failed, {_failures(combinations, seeds, reasons)}"
        )
    outer = (*combinations.over, "repeat")
    coords: dict[str, Any] = {
        name: (name, *combinations.coordinate(name)) for name in combinations.over
    }
    coords |= {"seed": ("repeat", seeds), "swept_parameter": list(combinations.over)}
    for name in ("seconds", *TROUBLES):
        if f"run_{name}" in whole[0]:
            coords[f"run_{name}"] = (outer, runs.values(f"run_{name}", np.nan))
    coords["run_failed"] = (outer, reasons != "")
    swept = ("swept_parameter", [*combinations.shape], {"long_name": "number of values"})
    first, alike = whole[0], _alike(whole)
    own = _own_names(first[alike], {*coords, *outer, "swept"})
    data: dict[str, Any] = {"swept": swept}
    for name in alike:
        dims = (*outer, *(own[str(dim)] for dim in first[name].dims[1:]))
        missing = "" if first[name].dtype.kind == "U" else np.nan
        data[own[name]] = (dims, runs.values(name, missing), first[name].attrs)
    for name, values in first[alike].coords.items():
        if str(name) in own:
            coords[own[str(name)]] = ([own[str(dim)] for dim in values.dims], values.to_numpy())
    said = _said(whole, alike, own, coords)
    said["failed"] = _failures(combinations, seeds, reasons)
    said |= _drawn(combinations.experiment, own)
    return xr.Dataset(data, coords, _attributes(combinations) | said)


@dataclass(frozen=True)
class _Runs:
    """Where the runs of a sweep are kept, over parameters and repeats."""

    tables: dict[int, xr.Dataset]
    table_of: NDArray[np.int64]
    row_of: NDArray[np.int64]

    def values(self, name: str, missing: Any) -> NDArray[Any]:
        """A variable of all runs, and something for those that do not have it."""
        parts = {i: one[name].to_numpy() for i, one in self.tables.items() if name in one}
        kinds = [part.dtype for part in parts.values()]
        if len(parts) < len(self.tables):
            kinds.append(np.asarray(missing).dtype)
        inner = next(iter(parts.values())).shape[1:]
        found: NDArray[Any] = np.empty((*self.table_of.shape, *inner), np.result_type(*kinds))
        for i in self.tables:
            here = self.table_of == i
            found[here] = parts[i][self.row_of[here]] if i in parts else missing
        return found


def _failures(combinations: Combinations, seeds: list[int], reasons: NDArray[Any]) -> str:
    """Where runs failed, and why the first of them did; nothing if none did."""
    flat = reasons.reshape(-1, len(seeds))
    where = np.argwhere(flat != "")
    if not len(where):
        return ""
    which, (first, repeat) = np.unique(where[:, 0]), where[0]
    named = "; ".join(combinations.words(int(i)) for i in which[:MOST_NAMED])
    more = f" and {len(which) - MOST_NAMED} more" if len(which) > MOST_NAMED else ""
    return f"at {named}{more}; the first, with seed {seeds[repeat]}: {flat[first, repeat]}"


def _alike(tables: Sequence[xr.Dataset]) -> list[str]:
    """Names of the variables that lie alike in all tables."""

    def lies(table: xr.Dataset, name: str) -> Any:
        values = table[name]
        places = {dim: table[dim].to_numpy().tolist() for dim in values.dims if dim in table.coords}
        return values.dims, values.shape[1:], values.dtype.kind == "U", places

    return [
        str(name)
        for name in tables[0].data_vars
        if all(name in table.data_vars for table in tables)
        and all(lies(table, str(name)) == lies(tables[0], str(name)) for table in tables[1:])
    ]


def _own_names(table: xr.Dataset, taken: set[str]) -> dict[str, str]:
    """What an experiment's variables, dimensions and coordinates are called beside names that are
    taken."""
    own = {str(name) for name in (*table.variables, *table.dims)}
    own = {name for name in own if name != "run" and not name.startswith("run_")}
    names: dict[str, str] = {}
    for name in sorted(own):
        names[name] = name
        while names[name] in taken or (names[name] != name and names[name] in own):
            names[name] = OWN + names[name]
    return names


def _attributes(combinations: Combinations) -> dict[str, Any]:
    """What a sweep was made from, but for the seeds, which are a coordinate."""
    experiment, config = combinations.experiment, combinations.configs[0].as_dict()
    for part in ("parameters", "settings"):
        config[part] = {
            name: value for name, value in config[part].items() if name not in combinations.over
        }
    return {
        "experiment": experiment.name,
        "title": EXPERIMENTS[experiment.name].title,
        "config": json.dumps(config),
        "over": json.dumps(combinations.over),
        "versions": json.dumps(versions()),
        "code": results.code_revision(),
    }


def _drawn(experiment: Experiment[Any], own: dict[str, str]) -> dict[str, Any]:
    """What a figure shows of a sweep unless something else is chosen."""
    main_at = {own.get(dim, dim): place for dim, place in experiment.main_at.items()}
    return {"main": own.get(experiment.main, experiment.main), "main_at": json.dumps(main_at)}


def _said(
    tables: Sequence[xr.Dataset], alike: Sequence[str], own: dict[str, str], coords: dict[str, Any]
) -> dict[str, Any]:
    """What is to be said of the runs of a sweep."""
    every = {str(name) for table in tables for name in table.data_vars}
    large = {name for table in tables for name in json.loads(table.attrs["left_out"])}
    engines = {engine for table in tables for engine in table["run_engine"].to_numpy().tolist()}
    return {
        "engine": " and ".join(sorted(engines)),
        "large": json.dumps(sorted(large)),
        "differing": json.dumps(sorted(every - {*alike} - large)),
        "renamed": json.dumps({old: new for old, new in own.items() if old != new}),
        "seconds": float(np.nansum(coords["run_seconds"][1])),
    }
