"""How far a run has come, shown the way the caller wants."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from circuits.errors import InputError, shown

Progress = Callable[[int, int], None]
"""Called with the presentations done and the presentations in all."""


@contextmanager
def reporting(progress: bool | Progress, total: int, title: str) -> Iterator[Callable[[int], Any]]:
    """A function of the presentations done that shows them the way the caller wants."""
    if callable(progress):
        yield lambda done: progress(done, total)
    elif not isinstance(progress, bool):
        raise InputError(f"progress must be True, False or a function, got {shown(progress)}")
    elif not progress or sys.stderr is None:
        yield lambda done: None  # no silent tqdm: its locks outlive a killed worker
    else:
        from tqdm import tqdm

        with tqdm(total=total, desc=title, unit="pt", mininterval=0.2) as bar:
            yield lambda done: bar.update(done - bar.n)
