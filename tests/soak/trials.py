"""The trials by name: how often each is made at full size and in the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.soak import caches, circuits, damage, disks, kills, load
from tests.soak.row import Row

TINY = "tiny reproduce"


class Trial(NamedTuple):
    """Something that is tried to break it."""

    make: Callable[[int, Path], Row]
    count: int
    """How often, by ``make soak``."""
    few: int
    """How often, by ``make test``."""


TRIALS = {
    "kill-run": Trial(lambda n, folder: kills.kill_and_resume("run", n, folder), 20, 2),
    "kill-reproduce": Trial(
        lambda n, folder: kills.kill_and_resume(
            "reproduce" if n > 1 else "tiny reproduce", n, folder
        ),
        20,
        1,
    ),
    "disk": Trial(disks.full_disk, 50, 10),
    "cache": Trial(caches.damaged_cache, 50, 2),
    "crowd": Trial(caches.cold_crowd, 8, 3),
    "damage": Trial(damage.damaged_results, 400, 12),
    "sweep": Trial(load.large_sweep, 1000, 6),
    "stream": Trial(load.long_stream, 200_000, 6000),
    "circuits": Trial(lambda n, folder: circuits.random_circuits(n), 300, 6),
    "workers": Trial(load.other_workers, 8, 2),
}
