"""How far a run has come, shown the way the caller wants."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from circuits.errors import InputError, shown

Progress = Callable[[int, int], None]
"""Called with the presentations done and the presentations in all."""


@contextmanager
def reporting(progress: bool | Progress, total: int, title: str) -> Iterator[Callable[[int], None]]:
    """A function of the presentations done that shows them the way the caller wants."""
    if not (callable(progress) or isinstance(progress, bool)):
        raise InputError(f"progress must be True, False or a function, got {shown(progress)}")
    if callable(progress):
        show = progress
        yield lambda done: show(done, total)
    elif progress:
        from tqdm import tqdm

        closed = sys.stderr is None
        with tqdm(total=total, desc=title, unit="pt", mininterval=0.2, disable=closed) as bar:

            def update(done: int) -> None:
                bar.update(done - bar.n)

            yield update
    else:
        yield lambda done: None
