"""Commands in processes of their own, and the processes they leave running."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = "MANIFOLD_CIRCUIT_SOAK"
"""An environment variable that identifies all processes a command starts."""


def environment(**more: str) -> dict[str, str]:
    """The environment of a process that can import the packages."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def start(*arguments: object, cwd: Path, module: str) -> tuple[subprocess.Popen[str], str]:
    """Start a command of a module; also returns the mark of all its processes."""
    mark = secrets.token_hex(8)
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=cwd,
        env=environment(**{MARK: mark}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, mark


def run(*arguments: object, cwd: Path, module: str) -> tuple[int, str]:
    """Run a command of a module to its end: exit code and stderr."""
    process, _ = start(*arguments, cwd=cwd, module=module)
    _, words = process.communicate()
    return process.returncode, words


def running(mark: str) -> list[int]:
    """Processes that carry a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def left_after(mark: str, seconds: float) -> list[int]:
    """Processes with a mark that are still there after so long."""
    end = time.monotonic() + seconds
    while (found := running(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


@contextmanager
def cluster(
    workers: int = 2, threads: int = 1, **variables: str
) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """A Dask scheduler and workers on loopback: its address and the workers."""

    def launch(tool: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"distributed.cli.{tool}", *arguments]
        return subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--no-dashboard"],
            env=environment(PYTHONWARNINGS="ignore", **variables),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if tool == "dask_scheduler" else subprocess.DEVNULL,
            text=True,
        )

    scheduler = launch("dask_scheduler", "--port", "0", "--no-show")
    assert scheduler.stderr is not None
    address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at:" in line)
    options = ("--nthreads", str(threads), "--no-nanny")
    started = [launch("dask_worker", address, *options) for _ in range(workers)]
    drain = threading.Thread(target=scheduler.stderr.read, daemon=True)
    drain.start()
    try:
        yield address, started
    finally:
        for process in (*started, scheduler):
            process.kill()
            process.wait()
        drain.join(timeout=5)
        scheduler.stderr.close()
