"""Temporary folders that end with the process, even with one that is killed.

The owner of a folder holds a lock on a file in it. The lock ends with the process, in whatever
container it runs, and the next process removes folders whose lock nobody holds.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from circuits.errors import EngineError

# A program writes some hundred small files, which takes 1 ms in memory and 20 to 100 ms on disk.
# Chunks are bounded (`circuits.base`), so that many programs at once fit into this much room.
MEMORY = Path("/dev/shm")
MEMORY_ROOM = 2**30

LOCK = ".lock"
PREFIX = "manifold-circuit-"

_MAKING = threading.Lock()


@contextmanager
def scratch_folder(small: bool = False) -> Iterator[Path]:
    """A folder that is gone afterwards; in memory if what it holds is ``small``.

    A process that is forked meanwhile does not remove it: the folder is its parent's.
    """
    elsewhere = Path(tempfile.gettempdir())
    for parent in {MEMORY, elsewhere}:
        _sweep(parent)
    path, lock = _make_locked(MEMORY if small and _has_room(MEMORY) else elsewhere)
    owner = os.getpid()
    try:
        yield path
    finally:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)
        os.close(lock)  # without LOCK_UN, which would unlock it for a parent too


def process_folder() -> Path:
    """A folder of this process that is gone when it ends; a forked one gets its own."""
    with _MAKING:
        return _folder_of(os.getpid())


@lru_cache
def _folder_of(process: int) -> Path:
    until_exit = ExitStack()
    atexit.register(until_exit.close)
    return until_exit.enter_context(scratch_folder())


def _make_locked(parent: Path) -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock."""
    try:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = os.open(path / "unlocked", os.O_RDWR | os.O_CREAT, 0o600)
        with suppress(OSError):  # no locks on this file system: then nobody can sweep there either
            fcntl.flock(lock, fcntl.LOCK_EX)
        (path / "unlocked").rename(path / LOCK)  # a sweep looks for this name
    except OSError as error:
        raise EngineError(
            f"no folder can be made in {parent} ({error.strerror or error}): free some space, or "
            "point TMPDIR at another folder"
        ) from error
    return path, lock


@lru_cache
def _sweep(parent: Path) -> None:
    """Remove, once per process, the folders that killed processes have left behind."""
    for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent)


def _has_room(folder: Path) -> bool:
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > MEMORY_ROOM
    except OSError:
        return False
