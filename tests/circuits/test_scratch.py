"""Scratch folders: nobody removes another's, and nothing stays of who was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from circuits.engines import scratch
from circuits.engines.scratch import LOCK, _sweep, scratch_folder
from circuits.errors import EngineError
from tests.refusing import refused

HOLD = """
import sys, tempfile
from pathlib import Path
from circuits.engines import scratch
scratch.MEMORY = Path(tempfile.gettempdir())
with scratch.scratch_folder(small=True) as folder:
    print(folder, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def places(tmp_path, monkeypatch) -> Path:
    """One place for all folders, which nobody has swept yet."""
    monkeypatch.setattr(scratch, "MEMORY", tmp_path)
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    _sweep.cache_clear()
    return tmp_path


def holder(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process that uses a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def sweep(place: Path) -> None:
    _sweep.cache_clear()
    _sweep(place)


def aged(folder: Path) -> Path:
    long_ago = time.time() - 2 * scratch.UNLOCKED_SECONDS
    os.utime(folder, (long_ago, long_ago))
    return folder


def test_a_folder_in_use_stays_and_what_a_killed_process_left_goes(places):
    process, folder = holder(places)
    # As seen from another container: no process of that number is there.
    renamed = folder.rename(places / "manifold-circuit-999999999-abcdefgh")
    sweep(places)
    assert (aged(renamed) / LOCK).exists()
    sweep(places)
    assert (renamed / LOCK).exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # The number is this process's own: it says nothing.
    left = renamed.rename(places / f"manifold-circuit-{os.getpid()}-abcdefgh")
    (left / "results").mkdir()
    _sweep.cache_clear()
    with scratch_folder() as folder:
        assert not left.exists()
        assert [path.name for path in folder.iterdir()] == [LOCK]
    assert not folder.exists()


def test_what_is_not_ours_or_in_the_making_stays(places, monkeypatch):
    keep = [places / name for name in ("manifold-circuit-results", "manifold-circuit-1-", "other")]
    for folder in keep:
        folder.mkdir()
        (folder / LOCK).touch()
        aged(folder)
    target = places / "target"
    target.mkdir()
    (target / LOCK).touch()
    link = places / "manifold-circuit-1-aaaaaaaa"
    link.symlink_to(target)
    file = places / "manifold-circuit-1-bbbbbbbb"
    file.touch()
    young, old, linked, piped, theirs = (places / f"manifold-circuit-1-{c * 8}" for c in "cdefg")
    for folder in (young, old, linked, piped):
        folder.mkdir()
    (linked / LOCK).symlink_to(target / LOCK)  # leads elsewhere
    os.mkfifo(piped / LOCK)  # would block
    aged(old)
    sweep(places)
    assert not old.exists()
    theirs.mkdir()
    (theirs / LOCK).touch()
    user = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: user)
    sweep(places)
    assert all(path.exists() for path in [*keep, target / LOCK, link, file, theirs / LOCK])
    assert young.exists()
    assert linked.exists()


def test_a_folder_swept_before_it_was_locked_is_made_again(places, monkeypatch):
    swept = []
    lock = fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        if not swept:  # another process sees the folder just before it is locked
            (folder,) = places.glob("manifold-circuit-*")
            swept.append(folder)
            scratch._sweep_one(folder)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with scratch_folder() as folder:
        assert folder != swept[0]
        assert (folder / LOCK).exists()
    assert list(places.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_removes_nothing_of_its_parent(places):
    parent = os.getpid()
    try:
        with scratch_folder() as folder:
            child = os.fork()
            if child == 0:
                raise KeyboardInterrupt
            os.waitpid(child, 0)
            assert (folder / LOCK).exists()
            sweep(places)
            assert (folder / LOCK).exists()  # nor did the child unlock it
    finally:
        if os.getpid() != parent:
            os._exit(0)
    assert not folder.exists()


def test_the_folder_of_a_process_ends_with_it(places):
    code = """
import os
from circuits.engines.scratch import process_folder
folder = process_folder()
assert process_folder() == folder and folder.exists()
child = os.fork()
if child == 0:
    assert process_folder() != folder
    raise SystemExit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert folder.exists()
print(folder)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"TMPDIR": str(places)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(places))
    assert list(places.iterdir()) == []


def test_a_full_disk_is_one_sentence(places, monkeypatch):
    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    refused(scratch_folder().__enter__, f"{places}.*TMPDIR", EngineError, most=500)
    assert list(places.iterdir()) == []
