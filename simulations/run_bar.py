"""A bar for runs that take a while: how many are done, how long the others take, what stays."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm


class RunBar(tqdm):  # type: ignore[type-arg]
    """A bar whose time left is told from runs as they follow each other.

    The first of every process carries its start and what is compiled, which may take a hundred
    times as long as a run: they are counted, but not timed.
    """

    def __init__(self, untimed: int, initial: int, **options: Any) -> None:
        self.finished = initial
        """How many are done, also where no bar is shown."""
        self._timed_from, self._since = initial + untimed, 0.0
        super().__init__(initial=initial, unit="run", disable=sys.stderr is None, **options)

    def add(self) -> None:
        """Count one run."""
        self.finished += 1
        if self.finished == self._timed_from:
            self._since = time.monotonic()
        self.update()

    @property
    def format_dict(self) -> dict[str, Any]:
        """With the pace of the runs that are timed; with 0, which is shown as unknown, until there
        are some."""
        known: dict[str, Any] = {**super().format_dict}
        timed = self.finished - self._timed_from
        if timed > 0:
            pace: float | None = timed / max(time.monotonic() - self._since, 1e-9)
        else:
            pace = None if known["n"] == known["total"] else 0.0  # all that there were
        return known | {"rate": pace}


@contextmanager
def counting(
    experiment: str, word: str, done: int, total: int, jobs: int, scheduler: str | None
) -> Iterator[RunBar]:
    """A bar for runs, some of which are done already, and a sentence on what stays if they are
    interrupted. ``word`` begins the bar."""
    todo = total - done
    several = scheduler is None and min(jobs, todo) > 1
    bar = RunBar(min(jobs, todo) if several else 1, done, total=total, desc=word + experiment)
    try:
        with bar:
            if several or (scheduler is not None and todo):
                bar.set_postfix_str("starting workers" if several else "waiting for the cluster")
            yield bar
    except (KeyboardInterrupt, SystemExit):
        print(
            f"{experiment}: {bar.finished} of {total} runs are kept, and the same command goes on "
            "from there",
            file=sys.stderr,
        )
        raise
