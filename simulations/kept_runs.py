"""Runs of a sweep on disk: many in one file, found again by what they were made from.

A run of the smallest experiment takes a tenth of a second, and to write a file of its own for it
nearly as long. So runs are kept a few seconds, and those of the same form written together.
"""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from circuits.storage import files, results
from simulations.sweep import TROUBLES

MOST_VALUES = 1000
"""Values of a variable that a sweep keeps of each run; larger ones are what `run` is for."""

KEEP_SECONDS, KEEP_SHARE = 5.0, 0.02
"""How long runs that are not on disk yet may have taken: so long, or this share of all the time."""

KNOWN = ("fingerprint", "seed", "seconds", "engine", "failed", *TROUBLES)
"""What is kept of the attributes of each run; the rest is the same for all, or in `config`."""

Key = tuple[str, int]
"""A fingerprint and a seed: what, with the code, a run is made from."""


def reduced(run: xr.Dataset) -> xr.Dataset:
    """What a sweep keeps of a run: variables that are not large, what they lie on, and `KNOWN`."""
    large = [str(name) for name in run.data_vars if run[name].size > MOST_VALUES]
    small = run.drop_vars(large)
    dims = {dim for variable in small.data_vars.values() for dim in variable.dims}
    idle = [name for name, values in small.coords.items() if not {*values.dims} <= dims]
    known = {name: run.attrs[name] for name in KNOWN if name in run.attrs}
    return (
        small.drop_vars(idle)
        .drop_attrs(deep=False)
        .assign_attrs(known, left_out=json.dumps(sorted(large)))
    )


def form(run: xr.Dataset) -> str:
    """Names, dimensions and kinds of a run's variables, and where they lie: runs of one form fit
    into one table."""
    variables = {
        str(name): [list(map(str, values.dims)), list(values.shape), values.dtype.kind]
        for name, values in run.variables.items()
    }
    places = {str(name): np.asarray(values).tolist() for name, values in run.coords.items()}
    known = sorted(name for name in run.attrs if name in KNOWN)
    return json.dumps([variables, places, known, run.attrs["left_out"]], sort_keys=True)


def tabled(runs: list[xr.Dataset]) -> xr.Dataset:
    """Runs of one form along a dimension ``run``."""
    first = runs[0]
    data = {
        name: (
            ("run", *values.dims),
            np.stack([run.variables[name].to_numpy() for run in runs]),
            values.attrs,
        )
        for name, values in first.data_vars.items()
    }
    known: dict[str, Any] = {
        f"run_{name}": ("run", [run.attrs[name] for run in runs])
        for name in KNOWN
        if name in first.attrs
    }
    return xr.Dataset(data, {**first.coords, **known}, {"left_out": first.attrs["left_out"]})


def _with_words(table: xr.Dataset) -> xr.Dataset:
    """With words as NumPy has them; from a file they come as objects."""
    words = [name for name, values in table.variables.items() if values.dtype.kind == "O"]
    return table.assign({name: table[name].astype(str) for name in words})


class KeptRuns:
    """The runs in a folder that were made by this code."""

    def __init__(self, folder: Path, experiment: str) -> None:
        self.folder, self.kind = folder, f"runs {experiment}"
        self.tables: list[xr.Dataset] = []
        self.places: dict[Key, tuple[int, int]] = {}
        """Of every run that is there: its table, and its row."""
        self.older: list[Path] = []
        """Files of other code."""
        self.of_other_code = 0
        self._waiting: list[xr.Dataset] = []
        self._began = self._written = time.monotonic()
        for path in sorted(folder.glob("runs-*.nc")):
            self._read(path)

    def prepare(self) -> None:
        """Make the folder, or say that nothing can be written there."""
        files.require_folder(self.folder)
        files.clear_partial(self.folder)

    def _read(self, path: Path) -> None:
        """Take over a file of this code; set aside what is not whole."""
        table = _with_words(results.load(path)) if results.is_whole(path) else xr.Dataset()
        needed = ("run_fingerprint", "run_seed", "run_seconds", "run_engine", "run_failed")
        if table.attrs.get("kind") != self.kind or not {*needed} <= {*table.coords}:
            results.set_aside(path)
        elif table.attrs.get("code") != results.code_revision():
            self.older.append(path)
            self.of_other_code += table.sizes["run"]
        else:
            self._take(table)

    def _take(self, table: xr.Dataset) -> None:
        number = len(self.tables)
        self.tables.append(table)
        keys = zip(table["run_fingerprint"].to_numpy(), table["run_seed"].to_numpy(), strict=True)
        self.places |= {
            (str(mark), int(seed)): (number, row) for row, (mark, seed) in enumerate(keys)
        }

    def add(self, run: xr.Dataset) -> None:
        """Keep a run; on disk a few seconds later, with others."""
        self._waiting.append(run)
        now = time.monotonic()
        if now - self._written > max(KEEP_SECONDS, KEEP_SHARE * (now - self._began)):
            self.write()

    def write(self) -> None:
        """Write the runs that are not on disk yet."""
        by_form: dict[str, list[xr.Dataset]] = {}
        for run in self._waiting:
            by_form.setdefault(form(run), []).append(run)
        for runs in by_form.values():
            table = tabled(runs).assign_attrs(kind=self.kind, code=results.code_revision())
            results.save(table, self.folder / f"runs-{secrets.token_hex(6)}.nc")
            self._take(table)
            self._waiting = [run for run in self._waiting if all(run is not one for one in runs)]
        self._written = time.monotonic()

    def remove_older(self) -> None:
        """Remove the runs of other code."""
        for path in self.older:
            path.unlink(missing_ok=True)
