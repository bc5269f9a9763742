"""Folders in which a program and its caller exchange values."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

# A program writes some hundred small files, which takes 1 ms in memory and 20 to 100 ms on disk.
# Chunks are bounded (`circuits.base`), so that many programs at once fit into this much room.
MEMORY = Path("/dev/shm")
MEMORY_ROOM = 2**30


@contextmanager
def scratch_folder(small: bool) -> Iterator[Path]:
    """A folder that is gone afterwards; in memory if what it holds is ``small``."""
    parent = MEMORY if small and _has_room(MEMORY) else Path(tempfile.gettempdir())
    _sweep(parent)
    prefix = f"manifold-circuit-{os.getpid()}-"
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@lru_cache
def _sweep(parent: Path) -> None:
    """Remove, once per process, what processes that were killed have left behind."""
    for folder in parent.glob("manifold-circuit-*-*"):
        process = folder.name.split("-")[2]
        if process.isdigit() and not Path(f"/proc/{process}").exists() and Path("/proc").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _has_room(folder: Path) -> bool:
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > MEMORY_ROOM
    except OSError:
        return False
