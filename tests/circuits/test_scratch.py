"""Scratch folders: nobody removes another's, and nothing stays of who was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
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


def test_a_folder_in_use_stays_and_what_a_killed_process_left_goes(places):
    process, folder = holder(places)
    sweep(places)
    assert (folder / LOCK).exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (folder / "results").mkdir()
    _sweep.cache_clear()
    with scratch_folder() as another:
        assert not folder.exists()
        assert [path.name for path in another.iterdir()] == [LOCK]
    assert not another.exists()


def test_what_is_not_ours_stays(places):
    keep = [places / name for name in ("manifold-circuit-results", "other")]
    for folder in keep:
        folder.mkdir()
        (folder / "notes").touch()
    (places / "other" / LOCK).touch()
    link = places / "manifold-circuit-linked"
    link.symlink_to(places / "other")
    (places / "manifold-circuit-notes").touch()
    before = sorted(places.rglob("*"))
    sweep(places)
    assert sorted(places.rglob("*")) == before


def test_a_folder_in_the_making_stays(places, monkeypatch):
    lock = fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        sweep(places)  # as another process does, just before the folder is locked
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with scratch_folder() as folder:
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

    monkeypatch.setattr(scratch.tempfile, "mkdtemp", full)
    refused(scratch_folder().__enter__, f"{places}.*TMPDIR", EngineError, most=500)
    assert list(places.iterdir()) == []
