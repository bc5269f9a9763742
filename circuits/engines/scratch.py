"""Folders for as long as something takes, which nobody else removes and nobody leaves behind.

The owner of a folder keeps a lock on a file in it. The lock ends with the process, however it ends,
and wherever it runs: in another container the number of a process means nothing, a lock does.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from circuits.errors import EngineError

# A program writes some hundred small files, which takes 1 ms in memory and 20 to 100 ms on disk.
# Chunks are bounded (`circuits.base`), so that many programs at once fit into this much room.
MEMORY = Path("/dev/shm")
MEMORY_ROOM = 2**30

LOCK = ".lock"
PREFIX = "manifold-circuit-"
NAME = re.compile(rf"{PREFIX}\d+-[a-z0-9_]{{8}}")
"""Names of folders that were made here: a user's own may begin alike."""

UNLOCKED_SECONDS = 24 * 3600
"""Age from which a folder without a lock is nobody's: until then it may be in the making."""

_process_folder: tuple[int, Path] | None = None
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
    global _process_folder
    with _MAKING:
        process = os.getpid()
        if _process_folder is None or _process_folder[0] != process:
            parent = Path(tempfile.gettempdir())
            _sweep(parent)
            path, _ = _make_locked(parent)  # locked for as long as the process lives
            _process_folder = (process, path)
            atexit.register(_remove_at_exit, process, path)
        return _process_folder[1]


def _remove_at_exit(owner: int, path: Path) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _make_locked(parent: Path) -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock."""
    try:
        return _try_to_make(parent)
    except OSError as error:
        raise EngineError(
            f"no folder can be made in {parent} ({error.strerror or error}): free some space, or "
            "point TMPDIR at another folder"
        ) from error


def _try_to_make(parent: Path) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
        try:
            lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue  # swept away by one whose clock is a day ahead
        except OSError:
            path.rmdir()
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), os.lstat(path / LOCK)):
                return path, lock
        except (BlockingIOError, FileNotFoundError):
            pass  # somebody has swept it between making and locking
        except OSError:
            return path, lock  # no locks on this file system: then nobody can sweep there either
        os.close(lock)


@lru_cache
def _sweep(parent: Path) -> None:
    """Remove, once per process, what processes that were killed have left behind."""
    try:
        folders = [Path(entry.path) for entry in os.scandir(parent) if NAME.fullmatch(entry.name)]
    except OSError:
        return
    for folder in folders:
        with suppress(OSError):
            _sweep_one(folder)


def _sweep_one(folder: Path) -> None:
    """Remove a folder of this user's that nobody holds."""
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        return
    try:
        # Neither a link nor a pipe that somebody put there may lead away or block.
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        if time.time() - about.st_mtime > UNLOCKED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _has_room(folder: Path) -> bool:
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > MEMORY_ROOM
    except OSError:
        return False
