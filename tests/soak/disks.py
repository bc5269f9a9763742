"""Commands that run out of room while they write."""

from __future__ import annotations

import io
import os
import resource
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np

from circuits.storage import results
from tests.soak.row import Row, contents

SMALL = ("--engine", "exact", "--set", "n_points=200", "--set", "label_after=50")


def _commands(folder: Path) -> list[list[str]]:
    out = str(folder / "out")
    return [
        ["run", "square-balance", *SMALL, "--repeats", "2", "--out", out],
        ["run", "--data", str(folder / "points.csv"), "--engine", "exact", "--out", out],
        ["plot", str(folder / "out" / "points.nc"), "--kind", "raster", "--out", out],
        ["report", out],
        ["run", "square-balance", *SMALL, "--set", "mu=3", "--repeats", "1", "--out", out],
    ]


def full_disk(count: int, folder: Path) -> Row:
    """Let files grow to ``count`` different sizes and no further, as a full disk would.

    A command must end well, or with one sentence and exit code 2, and leave what was there.
    """
    row = Row("disk full at as many sizes, five commands")
    points = np.random.default_rng(0).uniform(0, 1, (120, 2))
    np.savetxt(folder / "points.csv", points, delimiter=",")
    commands = _commands(folder)
    for command in commands[:4]:  # in this process: the forked ones have all imports
        assert _command(command, io.StringIO()) == 0
    # Most files are some 10 kB to 1 MB long: sizes around these, and none at all; all differ.
    sizes = np.geomspace(1, 2e6, count).astype(int) - 1 + np.arange(count)
    for i, size in enumerate(sizes):
        command = commands[i % len(commands)]
        before = contents(folder)
        code, words = command_with_room(command, int(size))
        row.tried += 1
        _check(folder, before, code, words, f"{command[0]} with {size} bytes", row)
    return row


def _check(
    folder: Path, before: dict[str, bytes], code: int, words: str, what: str, row: Row
) -> None:
    after = contents(folder)
    said = [line for line in words.splitlines() if line.startswith("manifold-circuit: ")]
    if code not in (0, 2) or "Traceback" in words:
        row.lose(f"{what}: exit code {code}: {words[-300:]}")
    elif code == 2 and len(said) != 1:
        row.hush(f"{what}: said {words!r}")
    for name in before.keys() - after.keys():
        row.lose(f"{what}: {name} is gone")
    for name in after:
        if name.endswith(".nc") and not results.is_whole(folder / name):
            row.lose(f"{what}: {name} is not whole")
        if "partial" in name:
            row.lose(f"{what}: {name} is left behind")
        # Runs that were finished before the disk was full replace older ones of other settings.
        kept = code == 2 and name in before and not name.startswith("out/square-balance")
        if kept and before[name] != after[name]:
            row.lose(f"{what}: {name} was changed")


def command_with_room(arguments: list[str], room: int) -> tuple[int, str]:
    """A command in a forked process whose files may not grow beyond ``room`` bytes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code, words = 1, io.StringIO()
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            code = _command(arguments, words)
        except BaseException as error:
            words.write(f"Traceback {error!r}")
        finally:
            os.write(writing, words.getvalue().encode()[-60_000:])
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), text


def _command(arguments: list[str], words: io.StringIO) -> int:
    from simulations.cli import main

    told = patch.object(sys, "argv", ["manifold-circuit", *arguments])
    with told, warnings.catch_warnings(), redirect_stderr(words), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0
