"""The hypothesis tests of the suite with examples that no run before has seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.soak.processes import ROOT, environment
from tests.soak.row import Row


def fresh_examples(count: int, folder: Path) -> Row:
    """Run all hypothesis tests ``count`` times on random examples; a failing run is a loss.

    The end of its output goes to the details: it holds the failing example and its blob.
    """
    row = Row("runs of all hypothesis tests on fresh examples", tried=count)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", "-p", "no:cacheprovider"]
    for _ in range(count):
        done = subprocess.run(
            [*command, f"--basetemp={folder / 'pytest'}"],
            cwd=ROOT,
            env=environment(HYPOTHESIS_PROFILE="fresh examples"),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            row.lose(f"exit code {done.returncode}: {(done.stdout + done.stderr)[-5000:]}")
    return row
