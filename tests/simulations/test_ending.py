"""Commands end when they are asked to, wherever Python is at that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BUSY_DESTRUCTOR = """
import sys, time
from simulations.ending import ending_politely

class Slow:
    def __del__(self):
        print("ready", flush=True)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pass

with ending_politely():
    try:
        Slow()
        time.sleep(40)
    finally:
        print("tidied up", flush=True)
"""


CARELESS = """
import time
from simulations.ending import ending_politely

with ending_politely():
    try:
        try:
            print("ready", flush=True)
            time.sleep(20)
        except:
            pass  # as some modules do that are being imported
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pass
    finally:
        time.sleep(1.5)  # tidying up takes longer than an end that is lost is looked after
        print("tidied up", flush=True)
"""


@pytest.mark.parametrize(
    ("program", "number", "code"),
    [
        (BUSY_DESTRUCTOR, signal.SIGTERM, 143),
        (BUSY_DESTRUCTOR, signal.SIGINT, -2),
        (CARELESS, signal.SIGTERM, 143),
    ],
    ids=["destructor-SIGTERM", "destructor-SIGINT", "bare-except-SIGTERM"],
)
def test_an_end_that_is_swallowed_is_asked_for_again(program, number, code):
    """In a destructor, where Python only reports an exception, or by a bare ``except``; and not
    once more while things are tidied up."""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, complaint = process.communicate(timeout=30)
    assert process.returncode == code
    assert out == "tidied up\n"
    assert "Exception ignored" not in complaint


def test_other_faults_in_destructors_are_reported_as_ever():
    code = """
from simulations.ending import ending_politely
class Bad:
    def __del__(self):
        raise ValueError("seen")
with ending_politely():
    Bad()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "ValueError: seen" in done.stderr


def test_an_interrupt_of_code_that_was_given_as_text_does_not_change_the_exit_code(tmp_path):
    """As when it falls into an import that makes a namedtuple; only `python -m` looks at that."""
    (tmp_path / "interrupted.py").write_text(
        """
import sys
from simulations.ending import ending_politely
try:
    with ending_politely():
        exec("raise KeyboardInterrupt")
except KeyboardInterrupt:
    sys.exit(130)
"""
    )
    command = [sys.executable, "-m", "interrupted"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    assert subprocess.run(command, env=environment, check=False).returncode == 130
