"""A per-user cache of compiled circuits.

A build is a folder named by a key that covers everything that shapes its code. It is made aside,
under a lock, and moved into place whole; it carries the digests of its files, and one that does not
match them is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

from circuits.errors import EngineError

FLAGS = ("-w", "-O3", "-ffast-math", "-fno-finite-math-only", "-march=native", "-std=c++11")
"""Compiler flags; rates that became NaN must still be seen as such."""

DIRECTORY_VARIABLE = "MANIFOLD_CIRCUIT_CACHE"
LIMIT_VARIABLE = "MANIFOLD_CIRCUIT_CACHE_LIMIT"
DEFAULT_LIMIT = 500 * 2**20
LOCK_SECONDS = 600


def cache_directory() -> Path:
    """Where builds are kept: $MANIFOLD_CIRCUIT_CACHE, or the user's cache folder."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    return Path(chosen) if chosen else Path(user_cache_dir("manifold-circuit")) / "builds"


def cache_limit() -> int:
    """Bytes the cache may take: $MANIFOLD_CIRCUIT_CACHE_LIMIT, or 500 MiB."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return DEFAULT_LIMIT
    if not text.isdigit():
        raise EngineError(f"{LIMIT_VARIABLE} must be a number of bytes, got {text!r}")
    return int(text)


@dataclass(frozen=True)
class Build:
    """A compiled program, ready to run."""

    directory: Path
    manifest: dict[str, Any]

    @property
    def program(self) -> Path:
        """The executable."""
        return self.directory / "main"


@dataclass(frozen=True)
class Entry:
    """A line of the cache's listing."""

    key: str
    title: str
    size: int
    last_used: float


def get_build(
    facts: dict[str, Any], make: Callable[[Path], dict[str, Any]], title: str
) -> tuple[Build, bool]:
    """The build for these facts, made if it is not there: (build, whether it was made now).

    ``make`` writes sources and program into an empty folder and returns the manifest.
    """
    text = json.dumps(facts | toolchain(), sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:24]
    root = cache_directory()
    home = root / key
    try:
        root.mkdir(parents=True, exist_ok=True)
        build = _load(home)
        if build is None:
            with FileLock(root / f"{key}.lock", timeout=LOCK_SECONDS):
                build = _load(home)
                if build is None:
                    print(f"manifold-circuit: compiling {title}", file=sys.stderr)
                    _make(home, make, title)
                    _evict(root, keep=key)
                    return _loaded(home), True
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
    return build, False


def entries() -> list[Entry]:
    """What the cache holds, most recently used first."""
    found = []
    for manifest in cache_directory().glob("*/manifest.json"):
        try:
            title = json.loads(manifest.read_text(encoding="utf-8")).get("title", "")
            size = sum(path.stat().st_size for path in manifest.parent.rglob("*") if path.is_file())
            found.append(Entry(manifest.parent.name, title, size, manifest.stat().st_mtime))
        except (OSError, ValueError):
            found.append(Entry(manifest.parent.name, "damaged", 0, 0.0))
    return sorted(found, key=lambda entry: -entry.last_used)


def clear() -> int:
    """Remove every build; returns how many there were.

    The empty lock files stay: removing one that somebody waits for would let two makers in.
    """
    root = cache_directory()
    count = 0
    for folder in [path for path in root.glob("*") if path.is_dir()]:
        key, _, in_the_making = folder.name.partition(".new-")
        with FileLock(root / f"{key}.lock", timeout=LOCK_SECONDS):
            count += folder.exists() and not in_the_making
            shutil.rmtree(folder, ignore_errors=True)
    return count


def compiler() -> str | None:
    """The C++ compiler: $CXX, or the first of g++, c++ and clang++ on the path."""
    candidates = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++", "clang++"]
    return next((found for name in candidates if (found := shutil.which(name))), None)


def require_compiler() -> str:
    """The C++ compiler, or an error that says what to do without one."""
    found = compiler()
    if found is None:
        wanted = os.environ.get("CXX") or "g++"
        raise EngineError(
            f"the engine 'cpp_standalone' needs a C++ compiler and {wanted!r} is not on the path: "
            "install one, set CXX, or use engine='numpy'"
        )
    return found


def toolchain() -> dict[str, Any]:
    """What shapes a program besides its sources: compiler, flags and processor."""
    path = require_compiler()
    return {"compiler": path, "version": _version(path), "flags": FLAGS, "cpu": _cpu()}


@lru_cache
def compiler_works() -> bool:
    """Whether a program can be compiled and run here (tried once)."""
    path = compiler()
    if path is None:
        return False
    with tempfile.TemporaryDirectory(prefix="manifold-circuit-") as folder:
        source = Path(folder) / "try.cc"
        source.write_text("#include <vector>\nint main() { return std::vector<int>().size(); }\n")
        program = Path(folder) / "try"
        try:
            subprocess.run(
                [path, "-std=c++11", str(source), "-o", str(program)],
                check=True,
                capture_output=True,
            )
            subprocess.run([str(program)], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


@lru_cache
def _version(path: str) -> str:
    result = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return (result.stdout.splitlines() or ["unknown"])[0]


@lru_cache
def _cpu() -> str:
    """The processor that -march=native means."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return hashlib.sha256("\n".join(sorted(set(wanted))).encode()).hexdigest()


def _make(home: Path, make: Callable[[Path], dict[str, Any]], title: str) -> None:
    with _workshop(home) as folder:
        manifest = make(folder)
        files = [folder / "main", *sorted((folder / "static_arrays").iterdir())]
        manifest |= {
            "title": title,
            "digests": {str(path.relative_to(folder)): _digest(path) for path in files},
        }
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        if home.exists():
            shutil.rmtree(home)
        folder.rename(home)


@contextmanager
def _workshop(home: Path) -> Iterator[Path]:
    """A folder beside the build's place that is gone afterwards, whatever happens."""
    for left in home.parent.glob(f"{home.name}.new-*"):
        shutil.rmtree(left, ignore_errors=True)  # by a process that was killed; we hold the lock
    folder = Path(tempfile.mkdtemp(prefix=f"{home.name}.new-", dir=home.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _load(home: Path) -> Build | None:
    """The build in a folder, or None if it is missing or damaged."""
    try:
        manifest = json.loads((home / "manifest.json").read_text(encoding="utf-8"))
        for name, digest in manifest["digests"].items():
            if _digest(home / name) != digest:
                return None
        os.utime(home / "manifest.json")  # used now: not the next to be evicted
    except (OSError, ValueError, KeyError):
        return None
    return Build(home, manifest)


def _loaded(home: Path) -> Build:
    build = _load(home)
    if build is None:
        raise EngineError(f"the build in {home} was damaged while it was made: try again")
    return build


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _evict(root: Path, keep: str) -> None:
    """Remove the builds that were not used for longest until the rest fits the limit."""
    total = 0
    for entry in entries():
        total += entry.size
        recent = time.time() - entry.last_used < 60  # somebody may be starting it right now
        if total > cache_limit() and entry.key != keep and not recent:
            with suppress(Timeout), FileLock(root / f"{entry.key}.lock", timeout=0):
                shutil.rmtree(root / entry.key, ignore_errors=True)
                total -= entry.size
