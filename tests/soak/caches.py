"""Build caches that are damaged, and cold ones that many processes want at once."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

from tests.circuits.damages import DAMAGES
from tests.soak.processes import environment
from tests.soak.row import Row, contents

ONE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift
parameters = CircuitParameters(n_tiles=3, n_interneurons=2, steps_per_presentation=10)
points = np.random.default_rng(0).uniform(-1, 1, (20, 2))
lift = SphereLift((0, 0), 3)
circuit = ManifoldCircuit(parameters, lift, "cpp_standalone")
made = circuit.prepare()
run = circuit.run(points, np.ones(20))
assert made or "brian2" not in sys.modules
expected = ReferenceCircuit(parameters, lift).run(points, np.ones(20))
far = max(float(abs(run[name].values - expected[name].values).max()) for name in "huyWbwV")
print(json.dumps([made, far]))
"""


def _start(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ONE],
        env=environment(MANIFOLD_CIRCUIT_CACHE=str(cache)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _answer(process: subprocess.Popen[str], what: str, row: Row) -> bool | None:
    """Whether the process compiled; None if it failed."""
    output, words = process.communicate()
    if process.returncode != 0:
        row.lose(f"{what}: {words[-300:]}")
        return None
    made, far = json.loads(output)
    row.disagreement = max(row.disagreement, far)
    return bool(made)


def damaged_cache(count: int, folder: Path) -> Row:
    """Damage a cache in ``count`` of the known forms; the next circuit must run all the same, and
    what else is in the folder must stay."""
    row = Row("forms of damaged build cache")
    whole = folder / "whole"
    assert _answer(_start(whole), "first", row) is True
    names = list(DAMAGES)
    for name in names if count >= len(names) else random.Random(0).sample(names, count):
        cache = folder / name
        shutil.copytree(whole, cache, symlinks=True)
        kept = cache / "0123456789abcdef01234567"
        kept.mkdir()
        (kept / "thesis.txt").write_text("a user's")
        (home,) = (path.parent for path in cache.glob("*/manifest.json"))
        DAMAGES[name](home)
        row.tried += 1
        _answer(_start(cache), name, row)
        if contents(kept) != {"thesis.txt": b"a user's"}:
            row.lose(f"{name}: a folder that is no build is gone")
        if _answer(_start(cache), f"{name}, again", row):
            row.lose(f"{name}: compiled twice")
    return row


def cold_crowd(count: int, folder: Path) -> Row:
    """So many processes at once want a circuit that nobody has compiled: one of them does."""
    row = Row("processes at once on a cold cache", tried=count)
    crowd = [_start(folder / "cache") for _ in range(count)]
    made = [_answer(process, f"process {i}", row) for i, process in enumerate(crowd)]
    if made.count(True) != 1:
        row.lose(f"{made.count(True)} processes compiled")
    if len(list((folder / "cache").glob("*/manifest.json"))) != 1:
        row.lose("there is not one build")
    if left := list((folder / "cache").glob("*.new-*")):
        row.lose(f"{len(left)} builds in the making are left")
    return row
