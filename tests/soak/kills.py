"""Commands that are killed again and again, and go on."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from circuits import results
from tests.soak import processes
from tests.soak.row import Row

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

COMMANDS = {
    "run": (
        *("run", "two-moons", "--engine", "cpp_standalone", "--repeats", 8, "--jobs", 2),
        *("--set", "n_points=600", "--set", "label_after=100"),
    ),
    "reproduce": ("reproduce", "--engine", "exact", "--quick", "--jobs", 2),
}


def kill_and_resume(name: str, count: int, folder: Path, seed: int = 0) -> Row:
    """Kill a command ``count`` times at random moments; resumed, it must end where it would have.

    Nothing may run on, and nothing half-written may stay.
    """
    row = Row(f"`{name}` killed (SIGKILL, SIGTERM, SIGINT) and resumed")
    command, rng = COMMANDS[name], random.Random(seed)
    started = time.monotonic()
    expected = folder / "whole"
    done = processes.run(*command, "--out", expected, cwd=folder)
    assert done.returncode == 0, done.stderr
    duration = time.monotonic() - started
    trial = 0
    while row.tried < count:
        out = folder / f"trial-{trial}"
        trial += 1
        finished = False
        while not finished and row.tried < count:
            finished = not _kill(command, out, rng.uniform(0.2, duration), rng, folder, row)
        done = processes.run(*command, "--out", out, cwd=folder)
        if done.returncode != 0:
            row.lose(f"resuming failed: {done.stderr[-300:]}")
        _check(expected, out, row)
    row.seconds = time.monotonic() - started
    return row


def _kill(
    command: tuple[object, ...],
    out: Path,
    seconds: float,
    rng: random.Random,
    folder: Path,
    row: Row,
) -> bool:
    """Start a command and kill it after a time; False if it was done before."""
    process, mark = processes.start(*command, "--out", out, cwd=folder)
    assert process.stderr is not None
    with process.stderr:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if process.poll() is not None:
                if process.returncode != 0:
                    row.lose(f"exit code {process.returncode}: {process.stderr.read()[-300:]}")
                return False
            time.sleep(0.02)
        process.send_signal(rng.choice(SIGNALS))
        process.wait()
        row.tried += 1
        if left := processes.left_after(mark, 30):
            row.lose(f"{len(left)} processes were still there after 30 s")
    return True


def _check(expected: Path, out: Path, row: Row) -> None:
    names = {path.relative_to(expected) for path in expected.rglob("*") if path.is_file()}
    found = {path.relative_to(out) for path in out.rglob("*") if path.is_file()}
    for name in sorted(names ^ found):
        row.lose(f"{name} is {'missing' if name in names else 'left behind'}")
    for name in sorted(names & found):
        if name.suffix == ".nc":
            row.compare(results.load(out / name), results.load(expected / name), str(name))
