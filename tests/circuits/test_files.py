"""Files that are whole or not there, whatever happens while they are written."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from circuits.storage import files
from circuits.storage.files import FileError
from tests.refusing import refused

WRITER = """
    import sys, time
    from pathlib import Path
    from circuits.storage import files
    with files.writing(Path(sys.argv[1])) as partial:
        partial.write_text("half")
        print(partial, flush=True)
        time.sleep(60)
"""


def writer(path):
    """A process in the middle of writing a file, and the file it writes to."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, Path(process.stdout.readline().strip())


def test_the_new_takes_the_place_of_the_old(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    assert files.write(path, "one") == path
    assert files.write(path, b"two").read_bytes() == b"two"
    assert [item.name for item in path.parent.iterdir()] == ["file.txt"]
    mask = os.umask(0o022)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask  # as of any file the user makes


def test_what_fails_leaves_the_old(tmp_path):
    path = tmp_path / "file.txt"
    files.write(path, "old")
    with pytest.raises(UnicodeEncodeError):
        files.write(path, "half\udcff")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "a-file").write_text("")
    (tmp_path / "a-folder" / "within").mkdir(parents=True)
    for place, reason in (
        ("a-file/x.txt", "Not a directory|File exists"),
        ("a-folder", "Is a directory"),
        ("x" * 300, "File name too long"),
    ):
        refused(lambda p=place: files.write(tmp_path / p, "text"), reason, FileError, most=500)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a-file", "a-folder"]
    # Folders are refused before anything is computed.
    for place in ("a-file", "a-file/below"):
        refused(lambda p=place: files.require_folder(tmp_path / p), place, FileError, most=500)
    files.require_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("room", [0, 99_999])
def test_no_room_for_all_of_it(tmp_path, room):
    """The kernel refuses to let a file grow beyond a size, as a full disk does."""
    path = tmp_path / "file"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(FileError, match=r"^cannot write .*file: File too large$"):
            files.write(path, bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_goes_and_what_a_living_one_writes_stays(tmp_path):
    """And nothing else goes, however alike its name."""
    others = [".x.manifold-circuit-partial", ".0123456789abcdef.partial", "partial"]
    for name in others:
        (tmp_path / name).write_text("a user's")
    dead, left = writer(tmp_path / "dead.txt")
    living, written = writer(tmp_path / "living.txt")
    try:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert left.exists()
        files.write(tmp_path / "next.txt", "next")
        assert not left.exists()
        assert written.exists()
        living.send_signal(signal.SIGINT)
        living.wait()
        assert sorted(item.name for item in tmp_path.iterdir()) == sorted([*others, "next.txt"])
    finally:
        for process in (dead, living):
            process.kill()
            process.wait()
            process.stdout.close()
