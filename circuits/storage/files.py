"""Files that are either whole or not there."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from circuits.errors import CircuitError, shown_path

PARTIAL = re.compile(r"\.[0-9a-f]{16}\.manifold-circuit-partial(\.\w+)?")
"""Names of files that are being written."""


class FileError(CircuitError, OSError):
    """A file that cannot be written or read."""


def write(path: Path, *parts: str | bytes | memoryview) -> Path:
    """Write a file; until it is complete, and on the disk, the old one or none stays in place."""
    with writing(path) as partial, partial.open("wb") as file:
        for part in parts:
            file.write(part.encode() if isinstance(part, str) else part)
        file.flush()
        os.fsync(file.fileno())  # some disks only say now that they are full
    return path


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A file to write to, which takes the place of ``path`` when the block ends well.

    If it does not, nothing is left; what a process that was killed has left is removed by the next
    that writes to the folder.
    """
    _require_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_partial(path.parent)
        partial, lock = _start(path)
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
            os.close(lock)
    except OSError as error:
        if isinstance(error, CircuitError):
            raise
        raise FileError(f"cannot write {shown_path(path)}: {error.strerror or error}") from error


def require_folder(folder: Path) -> None:
    """Make a folder for results, or say that nothing can be written there before any is made."""
    _require_name(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"cannot write to {shown_path(folder)}: {error.strerror or error}"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"cannot write to {shown_path(folder)}: permission denied")


def _require_name(path: Path) -> None:
    if "\0" in str(path):
        raise FileError(f"{shown_path(path)} cannot be the name of a file")


def clear_partial(folder: Path) -> None:
    """Remove what processes that were killed were writing in a folder.

    Whoever writes holds a lock on the file, which ends with the process.
    """
    with suppress(OSError):
        for path in folder.iterdir():
            if PARTIAL.fullmatch(path.name):
                _remove_dead(path)


def _remove_dead(partial: Path) -> None:
    with suppress(OSError):
        lock = os.open(partial, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.unlink()
        finally:
            os.close(lock)


def _start(path: Path) -> tuple[Path, int]:
    """An empty file beside ``path``, and a descriptor that holds a lock on it."""
    while True:
        # The suffix stays last: some writers choose a format by it.
        name = f".{secrets.token_hex(8)}.manifold-circuit-partial{path.suffix}"
        partial = path.with_name(name)
        lock = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Between the two calls it may have looked like one that a dead process left.
            if partial.exists() and os.path.samestat(partial.stat(), os.fstat(lock)):
                return partial, lock
        except BaseException:
            partial.unlink(missing_ok=True)
            os.close(lock)
            raise
        os.close(lock)
