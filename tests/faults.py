"""Put faults into the code, one at a time, and count how many each tier of the tests finds.

    python -m tests.faults --sample 150 --seed 1

The first run measures which test reaches which line (the whole suite with coverage, about as long
as ``make test-full``). Each fault is then written into a copy of the project, where the tests that
reach its line run: those of the quick tier, and the slow ones if the quick tier notices nothing.

Why not a library: mutmut (3.8) mutates bodies of undecorated functions and turns strings into
"XX...XX", so it makes no fault at all in `circuits/spiking/equations.py` and none inside Brian2
text, the heart of this project; cosmic-ray (8.7) leaves strings alone and runs the whole test
command, five minutes here, for every fault. Neither compares two tiers.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PACKAGES = ("circuits", "simulations", "analysis")
BUDGET = {"quick": 120.0, "slow": 300.0}
"""Seconds of tests that a fault may take in each tier; tests named like its module come first."""

SWAPPED: dict[type, type] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult},
    **{ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
NAMES = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all", "mean": "sum"}
NAMES |= {new: old for old, new in NAMES.items() if new != "sum"}
TEXT = {" + ": " - ", " - ": " + ", "*": "/", "/": "*", " < ": " >= ", " > ": " <= "}
TEXT |= {" <= ": " > ", " >= ": " < ", " == ": " != "}


class Fault(NamedTuple):
    """Where a change is, and what it is in words."""

    file: str
    line: int
    change: str
    at_import: bool


# What can be wrong


def faults(file: str, tree: ast.Module) -> Iterator[Fault]:
    """All faults of a module; each is in the tree until the next one is asked for."""
    for parent, field, index, node, running in list(_places(tree, False)):
        for new in _changes(node):
            new = ast.fix_missing_locations(ast.copy_location(new, node))
            change = f"{ast.unparse(node)[:60]!r} -> {ast.unparse(new)[:60]!r}"
            _put(parent, field, index, new)
            yield Fault(file, node.lineno, change, not running)
            _put(parent, field, index, node)


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _places(parent: ast.AST, running: bool) -> Iterator[tuple[Any, str, int | None, Any, bool]]:
    """Nodes that may change, each with its place and whether a function's body holds it."""
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list", "exc", "cause", "msg"):
            continue
        inside = running or (isinstance(parent, ast.FunctionDef) and field == "body")
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(node, ast.AST) and not _only_said(node):
                if hasattr(node, "lineno"):
                    yield parent, field, index if isinstance(value, list) else None, node, inside
                yield from _places(node, inside)


def _only_said(node: ast.AST) -> bool:
    """Whether people or tools read a node, but the program does not depend on it."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Assert():
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return ast.unparse(func) in ("warnings.warn", "print", "report")
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.keyword(arg="strict"):
            return True
        case ast.JoinedStr(values=values):
            return not any(isinstance(v, ast.Constant) and _is_model(v.value) for v in values)
    return False


def _is_model(value: object) -> bool:
    """Whether a constant is Brian2 text."""
    return isinstance(value, str) and " = " in value and "*" in value


def _changes(node: Any) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare(ops=[operator]):
            yield ast.Compare(node.left, [SWAPPED[type(operator)]()], node.comparators)
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED:
            new = copy.copy(node)
            new.op = SWAPPED[type(op)]()
            yield new
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.IfExp() | ast.If() | ast.While():
            new = copy.copy(node)
            new.test = ast.UnaryOp(ast.Not(), node.test)
            yield new
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(1.1 * value if value else 1.0)
        case ast.Constant(value=text) if _is_model(text):
            for old, new in TEXT.items():
                for match in re.finditer(re.escape(old), text):
                    yield ast.Constant(text[: match.start()] + new + text[match.end() :])
        case ast.Attribute(attr=name) if name in NAMES:
            yield ast.Attribute(node.value, NAMES[name], node.ctx)
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            yield ast.Name(NAMES[name], node.ctx)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Slice(upper=ast.expr()):
            yield ast.Slice(node.lower, None, node.step)
        case ast.Expr() | ast.Raise() | ast.Break() | ast.Continue():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


# Which tests reach it


class Reach:
    """Which tests run which lines, how long each takes, and which are slow."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(folder / "coverage"))
        self.data.read()
        self.seconds: dict[str, float] = {}
        for case in ElementTree.parse(folder / "tests.xml").iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            self.seconds[name] = float(case.get("time", 0))
        self.slow = set(json.loads((folder / "slow.json").read_text()))
        self.of_file: dict[str, list[str]] = defaultdict(list)
        for test in self.data.measured_contexts():
            self.of_file[test.partition("::")[0]].append(test.partition("|")[0])

    def tests(self, fault: Fault) -> dict[str, list[str]]:
        """The tests to run on a fault, by tier, within the budgets of time."""
        by_line = self.data.contexts_by_lineno(str(ROOT / fault.file))
        lines = by_line.values() if fault.at_import else [by_line.get(fault.line, [])]
        reached: set[str] = set()
        for context in {context for line in lines for context in line if context}:
            test, _, phase = context.partition("|")
            # What a shared fixture runs counts for every test of the file.
            reached |= set(self.of_file[test.partition("::")[0]]) if phase == "setup" else {test}
        stem = Path(fault.file).stem

        def order(test: str) -> tuple[bool, float]:
            return stem not in test.partition("::")[0], self._seconds(test)

        chosen: dict[str, list[str]] = {"quick": [], "slow": []}
        left = dict(BUDGET)
        for test in sorted(reached, key=order):
            tier = "slow" if test in self.slow else "quick"
            if self._seconds(test) <= left[tier]:
                left[tier] -= self._seconds(test)
                chosen[tier].append(test)
        return chosen

    def _seconds(self, test: str) -> float:
        file, _, name = test.partition("::")
        return self.seconds.get(f"{file.removesuffix('.py').replace('/', '.')}::{name}", 1.0)


class Notes:
    """A pytest plugin that writes down the slow tests."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_collection_finish(self, session: Any) -> None:
        slow = [item.nodeid for item in session.items if item.get_closest_marker("slow")]
        self.path.write_text(json.dumps(slow))


def measure(folder: Path) -> None:
    """Run the whole suite, noting which test runs which line."""
    import pytest

    folder.mkdir(parents=True, exist_ok=True)
    pytest.main(["--collect-only", "-qq", "-m", ""], plugins=[Notes(folder / "slow.json")])
    options = ["--cov-context=test", "--cov-report=", *(f"--cov={name}" for name in PACKAGES)]
    options += ["-q", "-m", "", "-n", "2", "--dist", "worksteal", f"--junitxml={folder}/tests.xml"]
    environment = os.environ | {"COVERAGE_FILE": str(folder / "coverage")}
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, env=environment)


# Trying


def parsed(file: str) -> ast.Module:
    """The syntax tree of a file of the project."""
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def found_by(fault: Fault, source: str, reach: Reach, folder: Path) -> str:
    """The tier that finds a fault in a copy of the project; "nobody" if neither does."""
    path = folder / fault.file
    path.write_text(source, encoding="utf-8")
    try:
        for tier, tests in reach.tests(fault).items():
            if tests and not passes(tests, folder, 60 + 4 * BUDGET[tier]):
                return tier
    finally:
        shutil.copy(ROOT / fault.file, path)
    return "nobody"


def passes(tests: list[str], folder: Path, seconds: float) -> bool:
    """Whether these tests pass in a copy of the project, in reasonable time."""
    chosen = folder / "chosen.txt"
    chosen.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", ""]
    process = subprocess.Popen(
        [*command, f"@{chosen}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()


def main() -> None:
    """Try a random sample of faults and print what became of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--module", default="", help="only files whose path contains this")
    parser.add_argument("--sample", type=int, default=200, help="how many faults to try")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at a time")
    parser.add_argument("--measured", type=Path, default=ROOT / "results/faults")
    arguments = parser.parse_args()
    if not (arguments.measured / "tests.xml").exists():
        measure(arguments.measured)
    reach = Reach(arguments.measured)
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    names = [str(path.relative_to(ROOT)) for path in files]
    everything = [
        (name, number)
        for name in names
        if arguments.module in name
        for number, _ in enumerate(faults(name, parsed(name)))
    ]
    sample = random.Random(arguments.seed).sample(
        everything, min(arguments.sample, len(everything))
    )
    print(f"{len(everything)} faults in {arguments.module or 'all packages'}, {len(sample)} tried")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory(prefix="manifold-circuit-faults-") as scratch:
        copies: SimpleQueue[Path] = SimpleQueue()
        for job in range(arguments.jobs):
            skipped = shutil.ignore_patterns(".git", ".venv*", "results", "build", ".*_cache")
            copies.put(shutil.copytree(ROOT, Path(scratch, str(job)), ignore=skipped))

        def attempt(place: tuple[str, int]) -> None:
            (name, number), tree = place, parsed(place[0])
            fault = next(itertools.islice(faults(name, tree), number, None))
            folder = copies.get()
            tier = found_by(fault, ast.unparse(tree), reach, folder)
            copies.put(folder)
            counts[name.partition("/")[0]][tier] += 1
            if tier != "quick":
                print(f"{tier}: {name}:{fault.line} {fault.change}", flush=True)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(attempt, sample))
    counts["all"] = sum(counts.values(), Counter())
    print("| package | tried | found by the full suite | of these by the quick tier |")
    print("| --- | --- | --- | --- |")
    for package, count in counts.items():
        full = count["quick"] + count["slow"]
        share = f"{count['quick']} ({count['quick'] / full:.1%})" if full else "-"
        print(f"| {package} | {count.total()} | {full} | {share} |")


if __name__ == "__main__":
    main()
