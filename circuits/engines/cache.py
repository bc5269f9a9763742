"""A per-user cache of compiled circuits.

A build is a folder named by a key that covers everything that shapes its code. It is made aside,
under a lock, and renamed into place. It carries the digests of its files: a build that does not
match them is made again. Other files in the cache's folder are left alone.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_dir
from pydantic import BaseModel

from circuits.engines.compiler import PROGRAM, toolchain
from circuits.engines.scratch import process_folder
from circuits.errors import EngineError

DIRECTORY_VARIABLE = "MANIFOLD_CIRCUIT_CACHE"
LIMIT_VARIABLE = "MANIFOLD_CIRCUIT_CACHE_LIMIT"
DEFAULT_LIMIT = 500 * 2**20
LOCK_SECONDS = 600

MANIFEST = "manifest.json"
INTERFACE = "program.json"
KEY = "[0-9a-f]" * 24
"""Pattern of a build's folder; while it is made, ``.new-`` and a random name follow."""

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of folders that cannot hold builds, now or later; a full disk is another matter."""

Make = Callable[[Path], dict[str, Any]]
"""Writes a program into a folder and returns its interface."""


class _UnusableError(EngineError):
    """Builds cannot be kept or run in a folder."""


class _Manifest(BaseModel):
    """Title of a build, and the SHA-256 digests of its files by name."""

    title: str
    digests: dict[str, str]


@dataclass(frozen=True)
class Build:
    """A compiled program, ready to run."""

    directory: Path
    interface: dict[str, Any]
    """What a launcher needs to know of the program."""

    @property
    def program(self) -> Path:
        """The executable."""
        return self.directory / PROGRAM


@dataclass(frozen=True)
class Entry:
    """A line of the cache's listing."""

    key: str
    title: str
    size: int
    last_used: float


def cache_directory() -> Path:
    """Where builds are kept: $MANIFOLD_CIRCUIT_CACHE, or the user's cache folder."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if not chosen:
        return Path(user_cache_dir("manifold-circuit")) / "builds"
    try:
        return Path(chosen).expanduser().absolute()
    except RuntimeError as error:
        raise EngineError(
            f"{DIRECTORY_VARIABLE} is {chosen!r} ({error}): give it the whole path of a folder"
        ) from None


def cache_limit() -> int:
    """Bytes the cache may take: $MANIFOLD_CIRCUIT_CACHE_LIMIT, or 500 MiB."""
    text = os.environ.get(LIMIT_VARIABLE) or str(DEFAULT_LIMIT)
    if not re.fullmatch("[0-9]{1,18}", text):
        raise EngineError(f"{LIMIT_VARIABLE} must be a number of bytes, got {text[:40]!r}")
    return int(text)


def get_build(facts: dict[str, Any], make: Make, title: str) -> tuple[Build, bool]:
    """The build for these facts, and whether it had to be made now.

    Where the cache's folder cannot hold programs, they are compiled for this process alone.
    """
    text = json.dumps(facts | toolchain(), sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:24]
    limit = cache_limit()
    try:
        build, made = _get(cache_directory(), key, make, title)
        if made:
            _evict(limit)
        return build, made
    except _UnusableError as error:
        say_once(f"{error}. For now, programs are compiled for this process alone")
    return _get(process_folder(), key, make, title)


def is_intact(build: Build) -> bool:
    """Whether a build still has the files with which it was made."""
    return _load(build.directory) is not None


def entries() -> list[Entry]:
    """The builds in the cache, most recently used first."""
    root = cache_directory()
    if not root.is_dir():
        return []
    _check_trust(root)
    found = []
    for path in root.glob(f"{KEY}/{MANIFEST}"):
        folder, manifest = path.parent, _manifest(path.parent)
        with suppress(OSError):  # another process has just removed it
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            title = manifest.title if manifest else "damaged"
            found.append(Entry(folder.name, title, size, path.stat().st_mtime))
    return sorted(found, key=lambda entry: -entry.last_used)


def clear() -> int:
    """Remove every build; returns how many there were.

    The empty lock files stay: removing one while a process waits for it would let two in.
    """
    root = cache_directory()
    builds = [entry.key for entry in entries()]
    for name in [*builds, *(path.name for path in root.glob(f"{KEY}.new-*"))]:
        with _lock(root, name[:24]):
            if (root / name).exists():
                shutil.rmtree(root / name)
    return len(builds)


@lru_cache
def say_once(text: str) -> None:
    """Tell the user, once per process."""
    print(f"manifold-circuit: {text}", file=sys.stderr)


def _get(root: Path, key: str, make: Make, title: str) -> tuple[Build, bool]:
    """The build of a key in a folder, made if need be, and whether it was."""
    home = root / key
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_trust(root)
        if build := _load(home):
            return build, False
        if os.statvfs(root).f_flag & getattr(os, "ST_NOEXEC", 0):
            raise PermissionError(errno.EACCES, "it does not allow programs to be executed")
        with _lock(root, key):
            if build := _load(home):
                return build, False  # another process or thread has made it meanwhile
            print(f"manifold-circuit: compiling {title}", file=sys.stderr)
            return _make(home, make, title), True
    except OSError as error:
        kind = _UnusableError if error.errno in READ_ONLY + WITHOUT_LOCKS else EngineError
        raise kind(
            f"the build cache at {root} cannot be used ({error.strerror or error}): point "
            f"{DIRECTORY_VARIABLE} at a folder with room for programs, or use engine='numpy'"
        ) from error


def _lock(root: Path, key: str, timeout: float = LOCK_SECONDS) -> FileLock:
    return FileLock(root / f"{key}.lock", timeout=timeout)


def _check_trust(root: Path) -> None:
    """Refuse a folder from which we would run the programs of others."""
    about = root.stat()
    if about.st_uid != os.getuid():
        raise EngineError(
            f"the build cache {root} belongs to another user, whose programs are not run: point "
            f"{DIRECTORY_VARIABLE} at a folder of your own"
        )
    if about.st_mode & 0o022:
        raise EngineError(
            f"the build cache {root} can be written by others, whose programs are not run: "
            f"chmod go-w {root}, or point {DIRECTORY_VARIABLE} at another folder"
        )


def _make(home: Path, make: Make, title: str) -> Build:
    """Make a build beside its place, and rename it; the caller holds the lock."""
    aside = f"{home.name}.new-"
    for left in home.parent.glob(f"{aside}*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    with TemporaryDirectory(prefix=aside, dir=home.parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        interface = json.dumps(make(folder))
        (folder / INTERFACE).write_text(interface, encoding="utf-8")
        files = [folder / PROGRAM, folder / INTERFACE, *(folder / "static_arrays").iterdir()]
        digests = {path.relative_to(folder).as_posix(): _digest(path) for path in files}
        manifest = _Manifest(title=title, digests=digests)
        (folder / MANIFEST).write_text(manifest.model_dump_json(), encoding="utf-8")
        if home.exists():  # damaged
            shutil.rmtree(home)
        folder.rename(home)
    return Build(home, json.loads(interface))


def _load(home: Path) -> Build | None:
    """The build in a folder, or None if it is missing or damaged."""
    manifest = _manifest(home)
    if manifest is None or not os.access(home / PROGRAM, os.X_OK):
        return None
    try:
        if any(_digest(home / name) != digest for name, digest in manifest.digests.items()):
            return None
        interface = json.loads((home / INTERFACE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    with suppress(OSError):  # a cache that cannot be written can be used
        os.utime(home / MANIFEST)  # used now: the last to be evicted
    return Build(home, interface)


def _manifest(folder: Path) -> _Manifest | None:
    """The manifest of a build, or None if it is missing or damaged."""
    try:
        return _Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _evict(limit: int) -> None:
    """Remove the least recently used builds until the rest fits the limit."""
    root, total = cache_directory(), 0
    for entry in entries():
        total += entry.size
        recent = time.time() - entry.last_used < 60  # another process may be starting it right now
        if total > limit and not recent:
            total -= entry.size
            with suppress(OSError), _lock(root, entry.key, timeout=0):
                shutil.rmtree(root / entry.key)
