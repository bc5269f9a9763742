"""Put faults into the code, one at a time, and list those that no test notices."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutants.running import Module, preload, tried

ROOT = Path(__file__).parents[2]

WANTED = 0.9
"""Share of a module's faults that tests must notice, not counting those that cannot matter."""

EVERY = ["experiments", "power", "readme"]
"""Tests of every experiment."""

TESTS = {
    "circuits/rules.py": ["rules*", "recruiting"],
    "circuits/lift.py": ["lift", "measures", "inputs"],
    "circuits/base.py": ["base", "dataset"],
    "circuits/engines/streams.py": ["streams"],
    "circuits/making.py": ["making"],
    "circuits/perturbations.py": ["perturbations"],
    "circuits/perturbing.py": ["perturbations"],
    "circuits/gaussian.py": ["perturbations"],
    "circuits/estimator.py": ["estimator"],
    "circuits/choosing.py": ["choosing"],
    "circuits/measures.py": ["measures", "inputs"],
    "circuits/selection.py": ["measures"],
    "simulations/baselines.py": ["baselines", "chessboards"],
    "simulations/sweep.py": ["sweeping"],
    "simulations/combinations.py": ["combinations"],
    "simulations/kept_runs.py": ["parameter_sweep"],
    "simulations/assembling.py": ["parameter_sweep"],
    "simulations/parameter_sweep.py": ["parameter_sweep"],
    "simulations/experiments/claim.py": ["claims"],
    "simulations/experiments/evidence.py": ["evidence"],
    "simulations/experiments/experiment.py": ["experiments", "inputs_of_commands"],
    "simulations/experiments/tiling_arcs.py": ["tiling_arcs", *EVERY],
    "simulations/experiments/two_moons.py": ["two_moons", *EVERY],
    "simulations/experiments/chessboard_offline.py": ["chessboards", *EVERY],
    "simulations/experiments/chessboard_supervision.py": ["chessboards", *EVERY],
    "simulations/experiments/roll.py": ["chessboards", *EVERY],
    "simulations/experiments/square_balance.py": ["square_balance", *EVERY],
    "simulations/experiments/label_diffusion.py": ["label_diffusion", *EVERY],
    "simulations/experiments/tiling_objective.py": ["tiling_objective", *EVERY],
    "simulations/experiments/linear_tiles.py": ["linear_tiles", *EVERY],
    "simulations/experiments/label_change.py": ["label_change", *EVERY],
    "simulations/experiments/manifold_drift.py": ["manifold_drift", *EVERY],
    "simulations/experiments/label_swap.py": ["label_swap", *EVERY],
    "simulations/experiments/spiking_twin.py": ["spiking_twin", *EVERY],
    "simulations/experiments/digits.py": ["digits", *EVERY],
    "simulations/experiments/representational_drift.py": ["representational_drift", *EVERY],
    "simulations/experiments/damaging.py": ["lesions", *EVERY],
    "simulations/experiments/lesions.py": ["lesions", *EVERY],
}
"""Modules, and the tests beside them (tests/<package>/test_<name>.py) that should notice."""

COMPILED = ("simulations/experiments/spiking_twin.py",)
"""Those whose tests are too slow without compiled programs."""

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


@dataclass
class Row:
    """What became of a module's faults."""

    module: str
    listed: int
    found: int = 0
    left: int = 0

    @property
    def counted(self) -> int:
        return self.found + self.left

    @property
    def enough(self) -> bool:
        return self.found >= WANTED * self.counted

    def __str__(self) -> str:
        share = f"{self.found / self.counted:.1%}" if self.counted else "-"
        return (
            f"{self.module}: {self.found} of {self.counted} found ({share}), {self.listed} listed"
        )


def listed(module: str) -> dict[tuple[str, str], str]:
    """Why faults of a module cannot matter, by the text of their line and the change."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("fault", [])
    return {
        (entry["line"], change): entry["because"]
        for entry in entries
        if entry["file"] == module
        for change in entry["changes"]
    }


def tests_of(module: str, names: list[str]) -> list[str]:
    """The files of the tests of these names that are there."""
    folder = ROOT / "tests" / module.split("/")[0]
    found = [path for name in names for path in sorted(folder.glob(f"test_{name}.py"))]
    return [str(path.relative_to(ROOT)) for path in dict.fromkeys(found)]


def examine(file: str, tests: list[str], folder: Path, arguments: Any) -> Row:
    """Try the faults of one module."""
    module, known = Module.read(ROOT, file, tests, file in COMPILED), listed(file)
    stale = known.keys() - {(fault.text, fault.change) for fault in module.faults}
    if stale:
        sys.exit(f"{EQUIVALENT.name} lists what is no fault of {file}: {sorted(stale)}")
    todo = [fault for fault in module.faults if (fault.text, fault.change) not in known]
    row = Row(file, len(module.faults) - len(todo))
    if arguments.line is not None:
        todo = [fault for fault in todo if fault.line in arguments.line]
    if arguments.sample is not None and arguments.sample < len(todo):
        todo = random.Random(arguments.seed).sample(todo, arguments.sample)
    started = time.monotonic()
    for fault, survived in tried(module, todo, arguments.jobs, folder):
        if survived:
            row.left += 1
            print(f"{file}:{fault.line}  {fault.change}    [{fault.text}]", flush=True)
        row.found += not survived
        if sys.stderr.isatty():
            print(f"{row.counted} of {len(todo)}", end="\r", file=sys.stderr, flush=True)
    print(f"{row}, {time.monotonic() - started:.0f} s", flush=True)
    return row


def main() -> None:
    """Try all faults, or those that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--module", action="append", help="a file, or its end; may be repeated")
    parser.add_argument("--line", action="append", type=int, help="only faults of these lines")
    parser.add_argument("--sample", type=int, help="so many faults of each module, at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=1, help="faults tried at a time")
    arguments = parser.parse_args()
    wanted = {
        str(path.relative_to(ROOT)): names
        for pattern, names in TESTS.items()
        for path in sorted(ROOT.glob(pattern))
        if path.name != "__init__.py"
    }
    if arguments.module:
        wanted = {m: t for m, t in wanted.items() if m.endswith(tuple(arguments.module))}
    if not wanted:
        parser.error(f"there is no such module among {', '.join(TESTS)}")
    # One thread each: forks of a process with threads of its own would wait for them.
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    preload()
    with tempfile.TemporaryDirectory(prefix="manifold-circuit-mutants-") as folder:
        os.environ["TMPDIR"] = folder
        rows = [
            examine(file, tests_of(file, names), Path(folder), arguments)
            for file, names in wanted.items()
        ]
    print("\n".join(map(str, rows)))
    sys.exit(not all(row.enough for row in rows))


if __name__ == "__main__":
    main()
