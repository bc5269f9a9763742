"""Commands that are killed again and again, and go on."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

from circuits import results
from tests.soak import processes
from tests.soak.row import Row

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

RUN = (
    *("run", "two-moons", "--engine", "cpp_standalone", "--repeats", 8, "--jobs", 2),
    *("--set", "n_points=600", "--set", "label_after=100"),
)
REPRODUCE = ("reproduce", "--engine", "exact", "--quick")

COMMANDS: dict[str, tuple[str, tuple[object, ...]]] = {
    "run": ("simulations", RUN),
    "reproduce": ("simulations", (*REPRODUCE, "--jobs", 2)),
    "tiny reproduce": ("tests.soak.tiny", (*REPRODUCE, "--jobs", 1)),
}
"""Each with the module that it is a command of."""


def kill_and_resume(name: str, count: int, folder: Path, seed: int = 0) -> Row:
    """Kill a command ``count`` times at random moments; resumed, it must end where it would have.

    Nothing may run on, and nothing half-written may stay.
    """
    row = Row(f"`{name}` killed (SIGKILL, SIGTERM, SIGINT) and resumed")
    (module, command), rng = COMMANDS[name], random.Random(seed)
    trial = 0
    started = time.monotonic()
    expected = folder / "whole"
    done = processes.run(*command, "--out", expected, cwd=folder, module=module)
    assert done.returncode == 0, done.stderr
    duration = time.monotonic() - started
    while row.tried < count:
        out = folder / f"trial-{trial}"
        trial += 1
        finished = False
        while not finished and row.tried < count:
            seconds = rng.uniform(0.2, duration)
            process, mark = processes.start(*command, "--out", out, cwd=folder, module=module)
            finished = not _kill(process, mark, seconds, rng.choice(SIGNALS), row)
        done = processes.run(*command, "--out", out, cwd=folder, module=module)
        if done.returncode != 0:
            row.lose(f"resuming failed: {done.stderr[-300:]}")
        _check(expected, out, row)
    row.seconds = time.monotonic() - started
    return row


def _kill(
    process: subprocess.Popen[str], mark: str, seconds: float, number: signal.Signals, row: Row
) -> bool:
    """Kill a command after a time, with all that it started; False if it was done before."""
    assert process.stderr is not None
    with process.stderr:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if process.poll() is not None:
                if process.returncode != 0:
                    row.lose(f"exit code {process.returncode}: {process.stderr.read()[-300:]}")
                return False
            time.sleep(0.02)
        process.send_signal(number)
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
