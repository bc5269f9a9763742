"""What a trial found, as a row of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xarray as xr


@dataclass
class Row:
    """A trial: how often it was made, and what came of it."""

    what: str
    tried: int = 0
    lost: int = 0
    """Results that are gone, not whole or left behind; inputs that were changed."""
    silent: int = 0
    """Faults that nothing was said about."""
    disagreement: float = 0.0
    """The largest difference from what should have come out."""
    seconds: float = 0.0
    note: str = ""
    details: list[str] = field(default_factory=list)
    """Everything that was lost or silent."""

    def lose(self, detail: str) -> None:
        """Count a loss."""
        self.lost += 1
        self.details.append(f"lost: {detail}")

    def hush(self, detail: str) -> None:
        """Count something that should have been said."""
        self.silent += 1
        self.details.append(f"silent: {detail}")

    def compare(self, found: xr.Dataset, expected: xr.Dataset, what: str) -> None:
        """Take in how far two results differ; one that lacks something is a loss."""
        if set(found.data_vars) != set(expected.data_vars):
            self.lose(f"{what}: other variables")
            return
        self.disagreement = max(self.disagreement, difference(found, expected))


def difference(one: xr.Dataset, other: xr.Dataset) -> float:
    """How far all of one result is from another; infinite where only one knows a number."""
    largest = 0.0
    for name in one.data_vars:
        a, b = one[name].values, other[name].values
        if a.shape != b.shape:
            return math.inf
        if a.dtype.kind not in "fiub":
            largest = max(largest, 0.0 if (a == b).all() else math.inf)
            continue
        a, b = a.astype(float), b.astype(float)
        if (np.isnan(a) != np.isnan(b)).any():
            return math.inf
        largest = max(largest, float(np.abs(np.nan_to_num(a - b)).max(initial=0.0)))
    return largest


def table(rows: Iterable[Row]) -> str:
    """Rows in Markdown."""
    lines = [
        "| what was tried | how often | lost | silent | largest disagreement |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        what = f"{row.what}; {row.note}" if row.note else row.what
        far = f"{row.disagreement:.1e}" if row.disagreement else "0"
        lines.append(f"| {what} | {row.tried:,} | {row.lost} | {row.silent} | {far} |")
    return "\n".join(lines) + "\n"


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder with what they hold."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
