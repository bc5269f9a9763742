"""Files that are either whole or not there."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from circuits.errors import CircuitError, shown_path

PARTIAL = "manifold-circuit-partial"
"""What the name of a file has in it while the file is written."""


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

    If the block fails, nothing is left. If the process is killed, the next one that writes to the
    folder removes the file.
    """
    with _reporting(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_partial(path.parent)
        # The suffix stays last: some writers choose a format by it.
        partial = path.with_name(f".{secrets.token_hex(8)}.{PARTIAL}{path.suffix}")
        with partial.open("xb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield partial
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)


def require_folder(folder: Path) -> None:
    """Make a folder for results before any is computed, or say why it cannot be written to."""
    with _reporting(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError("permission denied")


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Around writing: an error of the system becomes one sentence that names the file."""
    if "\0" in str(path):
        raise FileError(f"{shown_path(path)} cannot be the name of a file")
    try:
        yield
    except CircuitError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {shown_path(path)}: {error.strerror or error}") from error


def clear_partial(folder: Path) -> None:
    """Remove the files that killed processes were writing.

    Who still writes a file holds its lock, or has only just made it.
    """
    for path in folder.glob(f".{'[0-9a-f]' * 16}.{PARTIAL}*"):
        with suppress(OSError), path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.stat().st_size > 0:
                path.unlink()
