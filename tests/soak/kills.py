"""Commands that are killed again and again, and resumed."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

from circuits.storage import results
from tests.soak import processes
from tests.soak.row import Row

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

RUN = "simulations run two-moons --engine cpp_standalone --set label_after=100 --jobs 2"
REPRODUCE = "reproduce --engine exact --quick --jobs"

COMMANDS = {
    "run": f"{RUN} --set n_points=600 --repeats 8",
    "reproduce": f"simulations {REPRODUCE} 2",
    "tiny run": f"{RUN} --set n_points=200 --set n_streams=1 --repeats 2",
    "tiny reproduce": f"tests.soak.tiny {REPRODUCE} 1",
}
"""The first word is the module; a single kill is of the tiny ones."""


def kill_and_resume(name: str, count: int, folder: Path, seed: int = 0) -> Row:
    """Kill a command ``count`` times at random moments; resumed, it must end where it would have.

    No process may run on, and no half-written file may stay.
    """
    row = Row(f"`{name}` killed (SIGKILL, SIGTERM, SIGINT) and resumed")
    module, *command = COMMANDS[name if count > 1 else f"tiny {name}"].split()
    rng, trial, started = random.Random(seed), 0, time.monotonic()
    expected = folder / "whole"
    code, words = processes.run(*command, "--out", expected, cwd=folder, module=module)
    assert code == 0, words
    duration = time.monotonic() - started
    while row.tried < count:
        out = folder / f"trial-{trial}"
        trial += 1
        finished = False
        while not finished and row.tried < count:
            seconds = rng.uniform(0.2, duration)
            process, mark = processes.start(*command, "--out", out, cwd=folder, module=module)
            finished = not _kill(process, mark, seconds, rng.choice(SIGNALS), row)
        code, words = processes.run(*command, "--out", out, cwd=folder, module=module)
        if code != 0:
            row.lose(f"resuming failed: {words[-300:]}")
        _check(expected, out, row)
    return row


def _kill(
    process: subprocess.Popen[str], mark: str, seconds: float, number: signal.Signals, row: Row
) -> bool:
    """Kill a command after a time, with all that it started; False if it was done before."""
    assert process.stderr is not None
    with process.stderr:
        try:
            if process.wait(seconds) != 0:
                row.lose(f"exit code {process.returncode}: {process.stderr.read()[-300:]}")
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        process.wait()
        row.tried += 1
        if left := processes.left_after(mark, 30):
            row.lose(f"{len(left)} processes were still there after 30 s")
    return True


def _check(expected: Path, out: Path, row: Row) -> None:
    names, found = (
        {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
        for folder in (expected, out)
    )
    for name in sorted(names ^ found):
        row.lose(f"{name} is {'missing' if name in names else 'left behind'}")
    for name in sorted(names & found):
        if name.suffix == ".nc":
            row.compare(results.load(out / name), results.load(expected / name), str(name))
