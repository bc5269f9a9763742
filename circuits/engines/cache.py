"""A per-user cache of compiled circuits.

A build is a folder named by a key that covers everything that shapes its code. It is made aside,
under a lock, and moved into place whole; it carries the digests of its files, and one that does not
match them is made again. Whatever else lies in the cache's folder is left alone.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

from circuits.engines.compiler import PROGRAM, toolchain
from circuits.engines.scratch import process_folder
from circuits.errors import EngineError

DIRECTORY_VARIABLE = "MANIFOLD_CIRCUIT_CACHE"
LIMIT_VARIABLE = "MANIFOLD_CIRCUIT_CACHE_LIMIT"
DEFAULT_LIMIT = 500 * 2**20
LOCK_SECONDS = 600

MADE_BY = "manifold-circuit"
MARKER = ".manifold-circuit"
"""The first file in a build: whatever becomes of the others, the folder is ours."""
MANIFEST = "manifest.json"
INTERFACE = "program.json"
MANIFEST_BYTES = 2**20
"""More than this no manifest of ours takes."""

KEY = re.compile(r"[0-9a-f]{24}")
IN_THE_MAKING = re.compile(r"([0-9a-f]{24})\.new-\w+")

UNUSABLE = (
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP),
    *(errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP),
)
"""What a folder answers that will not take builds, now or later; a full disk is another matter."""


Make = Callable[[Path], dict[str, Any]]
"""Writes a program into a folder and returns how to talk to it."""


class _UnusableError(Exception):
    """Builds cannot be made or run in a folder; the message is a clause that says why."""


def cache_directory() -> Path:
    """Where builds are kept: $MANIFOLD_CIRCUIT_CACHE, or the user's cache folder."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if not chosen:
        return Path(user_cache_dir("manifold-circuit")) / "builds"
    try:
        return Path(chosen).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        raise EngineError(
            f"{DIRECTORY_VARIABLE} is {chosen!r}, which leads nowhere ({error}): give it the whole "
            "path of a folder"
        ) from None


def cache_limit() -> int:
    """Bytes the cache may take: $MANIFOLD_CIRCUIT_CACHE_LIMIT, or 500 MiB."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return DEFAULT_LIMIT
    if not re.fullmatch("[0-9]{1,18}", text):
        raise EngineError(f"{LIMIT_VARIABLE} must be a number of bytes, got {text[:40]!r}")
    return int(text)


@dataclass(frozen=True)
class Build:
    """A compiled program, ready to run."""

    directory: Path
    interface: dict[str, Any]
    """What a launcher needs to know of the program."""
    identity: tuple[int, int, int]
    """Tells this file from another in its place: device, inode, time of change."""

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


@dataclass(frozen=True)
class _Order:
    """A build that is wanted."""

    key: str
    make: Make
    title: str
    instead_of: Build | None


def get_build(facts: dict[str, Any], make: Make, title: str) -> tuple[Build, bool]:
    """The build for these facts, made if it is not there: (build, whether it was made now).

    ``make`` writes sources and program into a folder and returns what a launcher needs to know.
    Where builds cannot be kept or run, they are made for this process alone.
    """
    return _fetch(_Order(_key(facts), make, title, instead_of=None))


def replace_build(bad: Build, facts: dict[str, Any], make: Make, title: str) -> tuple[Build, bool]:
    """As `get_build`, instead of a build that turned out not to run."""
    return _fetch(_Order(_key(facts), make, title, instead_of=bad))


def _key(facts: dict[str, Any]) -> str:
    text = json.dumps(facts | toolchain(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _fetch(order: _Order) -> tuple[Build, bool]:
    """What is ordered, from the cache or, where that takes no builds, from this process's own."""
    try:
        return _get(cache_directory(), order)
    except _UnusableError as reason:
        say_once(f"{reason}: what is compiled is kept for this process alone")
    try:
        return _get(process_folder(), order)
    except _UnusableError as reason:
        raise EngineError(
            f"compiled circuits can be neither in the build cache nor in the temporary folder "
            f"({reason}): point {DIRECTORY_VARIABLE} at another folder, or use engine='numpy'"
        ) from None


def is_intact(build: Build) -> bool:
    """Whether a build is still what it was when it was loaded."""
    return _load(build.directory) == build


def entries() -> list[Entry]:
    """What the cache holds, most recently used first."""
    found = [_entry(folder) for folder in _ours(cache_directory(), KEY)]
    return sorted(found, key=lambda entry: -entry.last_used)


def clear() -> int:
    """Remove every build; returns how many there were.

    The empty lock files stay: removing one that somebody waits for would let two makers in.
    """
    root = cache_directory()
    count, left = 0, []
    for folder in _ours(root, KEY) + _ours(root, IN_THE_MAKING):
        with _cache_errors(root, folder.name[:24]), _lock(root, folder.name[:24]):
            there = _is_ours(folder)
            _remove(folder)
            if folder.exists():
                left.append(folder.name)
            elif KEY.fullmatch(folder.name):
                count += there
    if left:
        raise EngineError(
            f"{count} builds were removed from {root}, but {len(left)} cannot be: check who owns "
            f"{root / left[0]}"
        )
    return count


def _lock(root: Path, key: str, timeout: float = LOCK_SECONDS) -> FileLock:
    return FileLock(root / f"{key}.lock", timeout=timeout)


@contextmanager
def _cache_errors(root: Path, key: str) -> Iterator[None]:
    """Let what goes wrong with the cache's files be one sentence."""
    try:
        yield
    except Timeout:
        raise EngineError(
            f"another process has been making this build for {LOCK_SECONDS} s: if none is, remove "
            f"{root / key}.lock"
        ) from None
    except OSError as error:
        raise EngineError(
            f"the build cache at {root} cannot be used ({error.strerror or error}): free some "
            f"space, or point {DIRECTORY_VARIABLE} at another folder"
        ) from error


@lru_cache
def say_once(text: str) -> None:
    """Tell the user, once per process."""
    print(f"manifold-circuit: {text}", file=sys.stderr)


# Looking for a build, and making one


def _get(root: Path, order: _Order) -> tuple[Build, bool]:
    """The build of an order in a cache's folder, made if need be."""
    home = root / order.key

    def found() -> Build | None:
        build = _load(home)
        return None if build == order.instead_of else build

    with _cache_errors(root, order.key):
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_trust(root)
            build = found()
            if build is not None:
                return build, False
            _check_place(root)
            cache_limit()  # nonsense is refused before anything is compiled
            with _lock(root, order.key):
                build = found()
                if build is not None:
                    return build, False
                print(f"manifold-circuit: compiling {order.title}", file=sys.stderr)
                _make(home, order)
                build = _load(home)
            _evict(root, keep=order.key)
        except OSError as error:
            if error.errno not in UNUSABLE:
                raise
            reason = error.strerror or error
            raise _UnusableError(f"the build cache at {root} cannot be used ({reason})") from None
    if build is None:
        raise EngineError(f"the build in {home} was damaged while it was made: try again")
    return build, True


def _check_trust(root: Path) -> None:
    """Refuse a folder from which we would run what others have put there."""
    about = root.stat()
    if not stat.S_ISDIR(about.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root))
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


def _check_place(root: Path) -> None:
    """See, before compiling, whether programs can be written to a folder and executed there."""
    if os.statvfs(root).f_flag & getattr(os, "ST_NOEXEC", 0):
        raise _UnusableError(f"the build cache at {root} does not allow programs to be executed")
    if not os.access(root, os.W_OK | os.X_OK):
        raise _UnusableError(f"the build cache at {root} cannot be written")


def _make(home: Path, order: _Order) -> None:
    with _workshop(home) as folder:
        interface = order.make(folder)
        (folder / INTERFACE).write_text(json.dumps(interface), encoding="utf-8")
        program = folder / PROGRAM
        if not os.access(program, os.X_OK):
            raise _UnusableError(
                f"the build cache at {home.parent} does not allow programs to be executed"
            )
        files = [program, folder / INTERFACE, *sorted((folder / "static_arrays").iterdir())]
        manifest = {
            "made_by": MADE_BY,
            "title": order.title,
            "digests": {path.relative_to(folder).as_posix(): _digest(path) for path in files},
        }
        (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        _make_way(home)
        folder.rename(home)


@contextmanager
def _workshop(home: Path) -> Iterator[Path]:
    """A folder beside the build's place that is gone afterwards, whatever happens.

    Those of makers that were killed go too; we hold the lock.
    """
    for left in home.parent.glob(f"{home.name}.new-*"):
        if _is_ours(left):
            _remove(left)
        with suppress(OSError):
            left.rmdir()  # empty: the maker did not come as far as the marker
    folder, owner = Path(_new_folder(home, "new")), os.getpid()
    try:
        (folder / MARKER).touch()
        yield folder
    finally:
        if os.getpid() == owner:  # a process that was forked meanwhile removes nothing
            shutil.rmtree(folder, ignore_errors=True)


def _new_folder(home: Path, purpose: str) -> str:
    return tempfile.mkdtemp(prefix=f"{home.name}.{purpose}-", dir=home.parent)


def _make_way(home: Path) -> None:
    """Remove a damaged build; what is not ours is moved aside."""
    with suppress(OSError):
        home.rmdir()  # empty
    if not os.path.lexists(home):
        return
    if _is_ours(home):
        old = Path(_new_folder(home, "new"))
        home.rename(old)  # at once: nobody finds half a build
        _remove(old)
    else:
        aside = _new_folder(home, "aside")
        home.rename(Path(aside) / home.name)
        say_once(f"{home} was no build, and is now in {aside}")


def _load(home: Path) -> Build | None:
    """The build in a folder, or None if it is missing or damaged."""
    manifest = _manifest(home)
    if manifest is None:
        return None
    try:
        about = home.lstat()
        if about.st_uid != os.getuid() or about.st_mode & 0o022:
            return None
        for name, digest in manifest["digests"].items():
            if _digest(home / name) != digest:
                return None
        interface = json.loads((home / INTERFACE).read_text(encoding="utf-8"))
        program = (home / PROGRAM).lstat()
    except (OSError, ValueError):
        return None
    if not os.access(home / PROGRAM, os.X_OK):
        return None
    with suppress(OSError):  # a cache that cannot be written can be used
        os.utime(home / MANIFEST)  # used now: not the next to be evicted
    return Build(home, interface, (program.st_dev, program.st_ino, program.st_mtime_ns))


def _read_manifest(folder: Path) -> dict[str, Any]:
    """What a manifest says; nothing if it cannot be read."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return {}
        with _open_plain(folder / MANIFEST) as file:
            text = file.read(MANIFEST_BYTES + 1)
        said = json.loads(text.decode()) if len(text) <= MANIFEST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a build, or None if there is none that we could have written."""
    manifest = _read_manifest(folder)
    if manifest.get("made_by") != MADE_BY:
        return None
    digests = manifest.get("digests")
    if not isinstance(manifest.get("title"), str) or not isinstance(digests, dict):
        return None
    if not {PROGRAM, INTERFACE} <= digests.keys():
        return None
    for name, digest in digests.items():
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts or not isinstance(digest, str):
            return None
    return manifest


def _digest(path: Path) -> str:
    with _open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open_plain(path: Path) -> Any:
    """Open a plain file: no link that leads elsewhere, no pipe that blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(descriptor, "rb")


# What is ours in the cache's folder


def _ours(root: Path, name: re.Pattern[str]) -> list[Path]:
    """The folders of a cache whose names have a form and that were made here."""
    with _cache_errors(root, ""):
        if not root.exists():
            return []
        _check_trust(root)
        found = [folder for folder in sorted(root.iterdir()) if name.fullmatch(folder.name)]
        return [folder for folder in found if _is_ours(folder)]


def _is_ours(folder: Path) -> bool:
    """Whether a folder, damaged or not, was made here."""
    with suppress(OSError):
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return False
        if stat.S_ISREG((folder / MARKER).lstat().st_mode):
            return True
    said = _read_manifest(folder)
    # The second is what manifests were like before there was a marker.
    return said.get("made_by") == MADE_BY or said.keys() >= {"digests", "results", "variables"}


def _entry(folder: Path) -> Entry:
    manifest = _manifest(folder)
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(parent, name).lstat().st_size
    if manifest is None:
        return Entry(folder.name, "damaged", size, 0.0)
    try:
        return Entry(folder.name, manifest["title"], size, (folder / MANIFEST).stat().st_mtime)
    except OSError:  # somebody has just removed it
        return Entry(folder.name, "damaged", size, 0.0)


def _remove(folder: Path) -> None:
    """Remove a folder of ours, even one that was made read-only; links are not followed."""
    with suppress(OSError):
        folder.chmod(0o700)
        for parent, _, _ in os.walk(folder):
            Path(parent).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _evict(root: Path, keep: str) -> None:
    """Remove the builds that were not used for longest until the rest fits the limit."""
    total, limit = 0, cache_limit()
    listed = sorted(map(_entry, _ours(root, KEY)), key=lambda entry: -entry.last_used)
    for entry in listed:
        total += entry.size
        recent = time.time() - entry.last_used < 60  # somebody may be starting it right now
        if total > limit and entry.key != keep and not recent:
            with suppress(Timeout, OSError), _lock(root, entry.key, timeout=0):
                _remove(root / entry.key)
                total -= entry.size
