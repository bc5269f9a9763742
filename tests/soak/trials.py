"""The trials by name, and how often each is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.soak import caches, circuits, damage, disks, kills, load
from tests.soak.row import Row


class Trial(NamedTuple):
    """An attempt to break the packages."""

    make: Callable[[int, Path], Row]
    count: int
    """How often, by ``make soak``."""
    few: int
    """How often, in the tests; 0 leaves it out."""


TRIALS = {
    "kill-run": Trial(partial(kills.kill_and_resume, "run"), 20, 1),
    "kill-reproduce": Trial(partial(kills.kill_and_resume, "reproduce"), 20, 1),
    "disk": Trial(disks.full_disk, 50, 5),
    "cache": Trial(caches.damaged_cache, 50, 1),
    "crowd": Trial(caches.cold_crowd, 8, 2),
    "damage": Trial(damage.damaged_results, 400, 10),
    "sweep": Trial(load.large_sweep, 1000, 2),
    "stream": Trial(load.long_stream, 200_000, 6000),
    "circuits": Trial(circuits.random_circuits, 300, 2),
    "workers": Trial(load.other_workers, 8, 2),
    "examples": Trial(load.fresh_examples, 5, 0),
}
