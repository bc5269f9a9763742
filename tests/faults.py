"""Put faults into the code and count how many each tier of the tests finds.

    python -m tests.faults --sample 200 --seed 1
    python -m tests.faults --alone tests/circuits/test_lift.py --module circuits/lift.py

The first command measures which quick test reaches which line (the quick tier with coverage). Each
fault of a random sample is then planted alone in a copy of the project, where the quick tests that
reach its line run. The faults that are left are planted together: the whole quick tier runs once,
then the slow tests, and halving finds the faults behind each failing test. A test finds a fault if
it fails with the fault and passes without it.

The second command counts the faults that each test of a file finds alone: a test that finds none
may go.

Why not a library: mutmut (3.8) mutates bodies of undecorated functions and turns strings into
"XX...XX", so it makes no fault at all in `circuits/spiking/layers.py` and none inside Brian2
text, the heart of this project; cosmic-ray (8.7) leaves strings alone and runs the whole test
command, five minutes here, for every fault. Neither compares two tiers.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from brian2.utils.logger import BrianLogger

ROOT = Path(__file__).parents[1]
PACKAGES = ("circuits", "simulations", "analysis")
OURS = ("tests", *PACKAGES)
LIBRARIES = ("matplotlib.pyplot", "pandas", "scipy.stats", "sklearn", "xarray")
BUDGET = 40.0
"""Seconds of tests that run on a fault by itself."""

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


Place = tuple[str, int]
"""A file, and the number of a fault in it."""


class Fault(NamedTuple):
    """Where a change is, and what it is in words."""

    file: str
    line: int
    change: str
    at_import: bool


# What can be wrong


def faults(file: str, tree: ast.Module) -> Generator[Fault, bool | None, None]:
    """All faults of a module; each is in the tree until the next, or stays if True is sent."""
    for parent, field, index, node, running in list(_places(tree, False)):
        for new in _changes(node):
            new = ast.fix_missing_locations(ast.copy_location(new, node))
            change = f"{ast.unparse(node)[:60]!r} -> {ast.unparse(new)[:60]!r}"
            _put(parent, field, index, new)
            if not (yield Fault(file, node.lineno, change, not running)):
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
    """Which quick tests run which lines, and how long each takes."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(folder / "coverage"))
        self.data.read()
        self.seconds = {
            nodeid(case): float(case.get("time", 0))
            for case in ElementTree.parse(folder / "tests.xml").iter("testcase")
        }
        self.of_file: dict[str, set[str]] = defaultdict(set)
        for context in self.data.measured_contexts():
            self.of_file[context.partition("::")[0]].add(context.partition("|")[0])

    def tests(self, fault: Fault) -> list[str]:
        """The tests to run on a fault: those named like its module first, then the quickest."""
        by_line = self.data.contexts_by_lineno(str(ROOT / fault.file))
        lines = by_line.values() if fault.at_import else [by_line.get(fault.line, [])]
        reached: set[str] = set()
        for context in {context for line in lines for context in line if context}:
            test, _, phase = context.partition("|")
            # What a shared fixture runs counts for every test of the file.
            reached |= self.of_file[test.partition("::")[0]] if phase == "setup" else {test}
        stem, seconds = Path(fault.file).stem, 0.0
        chosen = []
        for test in sorted(reached, key=lambda t: (stem not in t, self.seconds.get(t, 1.0))):
            seconds += self.seconds.get(test, 1.0)
            if seconds < BUDGET:
                chosen.append(test)
        return chosen


def nodeid(case: ElementTree.Element) -> str:
    """What pytest calls a test case of its XML report."""
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def changed(folder: Path) -> dict[str, str]:
    """The environment in which tests of a copy of the project see that copy alone."""
    return {"PYTHONPATH": str(folder), "MANIFOLD_CIRCUIT_CACHE": str(folder / ".cache")}


def whole_tier(folder: Path, report: Path, *options: str, **environment: str) -> None:
    """Run a tier on two processes in a copy of the project and write an XML report."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
    subprocess.run(
        [*command, "-p", "tests.faults", "--dist", "worksteal", f"--junitxml={report}", *options],
        cwd=folder,
        env=os.environ | changed(folder) | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Fail a test that a fault keeps from ending."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def measure(folder: Path) -> None:
    """Run the quick tier, noting which test runs which line."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--cov-context=test", "--cov-report=", *(f"--cov={name}" for name in PACKAGES)]
    changes = {"COVERAGE_FILE": f"{folder}/coverage", "MANIFOLD_CIRCUIT_CACHE": f"{folder}/cache"}
    whole_tier(ROOT, folder / "tests.xml", *options, **changes)


# Trying


def parsed(file: str) -> ast.Module:
    """The syntax tree of a file of the project."""
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def plant(places: Iterable[Place], folder: Path) -> list[Fault]:
    """Put these faults, and no others, into a copy of the project."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for file, number in places:
        wanted[file].add(number)
    planted = []
    for path in (path for package in PACKAGES for path in (folder / package).rglob("*.py")):
        file = str(path.relative_to(folder))
        source = (ROOT / file).read_text(encoding="utf-8")
        if file in wanted:
            tree = ast.parse(source)
            every, keep = faults(file, tree), None
            for number in range(max(wanted[file]) + 1):
                fault = every.send(keep)
                keep = number in wanted[file]
                planted += [fault] * keep
            source = ast.unparse(tree)
        if path.read_text(encoding="utf-8") != source:
            path.write_text(source, encoding="utf-8")
    return planted


class Failures:
    """A pytest plugin that collects the names of the tests that fail."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.names.add(report.nodeid)

    pytest_collectreport = pytest_runtest_logreport


def failing(tests: list[str], folder: Path, seconds: float, *options: str) -> set[str]:
    """The tests that fail in a copy of the project; all if they neither end nor answer.

    They run in a forked process, which has the libraries loaded already.
    """
    answer = folder / "failed.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        BrianLogger._pid = os.getpid()  # or it drops its file unclosed, and the first test fails
        os.chdir(folder)
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
        sys.path.insert(0, str(folder))
        os.environ.update(changed(folder))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        failures = Failures()
        try:
            command = ["-q", "-p", "no:cacheprovider", "-m", "", *options, *tests]
            if pytest.main(command, [failures]) in (0, 1):  # all passed, or some failed
                answer.write_text(json.dumps(sorted(failures.names)))
        finally:
            os._exit(0)
    until = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.05)
    return set(json.loads(answer.read_text())) if answer.exists() else set(tests)


def finds(tests: list[str], places: list[Place], folder: Path) -> bool:
    """Whether one of the tests fails with the faults and passes without them."""
    plant(places, folder)
    failed = failing(tests, folder, 60 + 4 * BUDGET, "-x")
    if not failed:
        return False
    plant([], folder)
    if failing(sorted(failed), folder, 60 + 4 * BUDGET):
        shutil.rmtree(folder / ".cache", ignore_errors=True)  # a fault spoilt it
        failed -= failing(sorted(failed), folder, 60 + 4 * BUDGET)
    return bool(failed)


def culprits(test: str, suspects: list[Place], folder: Path) -> list[Place]:
    """Those of the faults that a test finds, by halving."""
    if not suspects or not finds([test], suspects, folder):
        return []
    if len(suspects) == 1:
        return suspects
    half = len(suspects) // 2
    return culprits(test, suspects[:half], folder) + culprits(test, suspects[half:], folder)


def found_by(tests: list[str], suspects: list[Place], folder: Path) -> set[Place]:
    """The faults that some of the tests find, one test after the other."""
    found: set[Place] = set()
    for test in tests:
        found |= set(culprits(test, [p for p in suspects if p not in found], folder))
    return found


def found_together(
    tier: str, suspects: list[Place], copies: list[Path], pool: ProcessPoolExecutor
) -> set[Place]:
    """The faults that a whole tier finds: it runs once with all of them planted."""
    plant(suspects, copies[0])
    whole_tier(copies[0], copies[0] / "tests.xml", "-m", tier)
    cases = ElementTree.parse(copies[0] / "tests.xml").iter("testcase")
    bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    failed = [nodeid(case) for case in sorted(bad, key=lambda case: float(case.get("time", 0)))]
    print(f"{len(failed)} tests fail with {len(suspects)} faults at once ({tier})", flush=True)
    shares = [failed[job :: len(copies)] for job in range(len(copies))]
    return set().union(*pool.map(found_by, shares, [suspects] * len(copies), copies))


def found_singly(folder: Path, trials: list[tuple[Place, list[str]]]) -> set[Place]:
    """The faults that some of the tests given for each of them find."""
    return {place for place, tests in trials if tests and finds(tests, [place], folder)}


def copy_of_project(folder: Path) -> Path:
    """A copy without environments, results and history."""
    skipped = shutil.ignore_patterns(".git", ".venv*", "results", "build", ".*_cache")
    return Path(shutil.copytree(ROOT, folder, ignore=skipped))


def compare_tiers(sample: list[Place], reach: Reach, scratch: Path, jobs: int) -> None:
    """Print how many faults each tier finds, and name those that the quick tier misses."""
    copies = [copy_of_project(scratch / str(job)) for job in range(jobs)]
    trials = [(place, reach.tests(*plant([place], copies[0]))) for place in sample]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        shares = [trials[job::jobs] for job in range(jobs)]
        quick = set().union(*pool.map(found_singly, copies, shares))
        print(f"{len(quick)} found by the quick tests that reach them", flush=True)
        quick |= found_together("not slow", [p for p in sample if p not in quick], copies, pool)
        slow = found_together("slow", [p for p in sample if p not in quick], copies, pool)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for place in sample:
        tier = "quick" if place in quick else "slow" if place in slow else "nobody"
        counts[place[0].partition("/")[0]][tier] += 1
        counts["all"][tier] += 1
        if tier != "quick":
            [fault] = plant([place], copies[0])
            print(f"{tier}: {fault.file}:{fault.line} {fault.change}")
    print("| package | tried | found by the full suite | of these by the quick tier |")
    print("| --- | --- | --- | --- |")
    for package in (*PACKAGES, "all"):
        tried, found = counts[package], counts[package]["quick"] + counts[package]["slow"]
        share = f"{tried['quick']} ({tried['quick'] / found:.1%})" if found else "-"
        print(f"| {package} | {tried.total()} | {found} | {share} |")


def count_alone(sample: list[Place], test: str, scratch: Path) -> None:
    """Print for every test of a file how many faults it finds, and how many alone."""
    folder = copy_of_project(scratch / "copy")
    if broken := failing([test], folder, 600):
        sys.exit(f"without a fault these fail: {', '.join(sorted(broken))}")
    found = []
    for place in sample:
        plant([place], folder)
        failed = failing([test], folder, 60 + 4 * BUDGET)
        found.append({name.partition("::")[2].partition("[")[0] for name in failed})
    alone = Counter(next(iter(names)) for names in found if len(names) == 1)
    together = Counter(name for names in found for name in names)
    print(f"{sum(map(bool, found))} found\n| test | lines | found | alone |")
    print("| --- | --- | --- | --- |")
    for node in parsed(test).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            lines = (node.end_lineno or 0) - node.lineno + 1
            print(f"| {node.name} | {lines} | {together[node.name]} | {alone[node.name]} |")


def main() -> None:
    """Try a random sample of faults and print what became of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--alone", metavar="TEST", help="count what each test of this file finds")
    parser.add_argument("--module", default="", help="only files whose path contains this")
    parser.add_argument("--sample", type=int, default=200, help="how many faults to try")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at a time")
    parser.add_argument("--measured", type=Path, default=ROOT / "results/faults")
    arguments = parser.parse_args()
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    names = [name for path in paths if arguments.module in (name := str(path.relative_to(ROOT)))]
    everything = [(name, n) for name in names for n, _ in enumerate(faults(name, parsed(name)))]
    size = min(arguments.sample, len(everything))
    sample = random.Random(arguments.seed).sample(everything, size)
    print(f"{len(everything)} faults in {arguments.module or 'all packages'}, {size} tried")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads do not survive a fork
    with tempfile.TemporaryDirectory(prefix="manifold-circuit-faults-") as scratch:
        if not arguments.alone and not (arguments.measured / "tests.xml").exists():
            measure(arguments.measured)
        for library in LIBRARIES:
            importlib.import_module(library)
        if arguments.alone:
            count_alone(sample, arguments.alone, Path(scratch))
        else:
            compare_tiers(sample, Reach(arguments.measured), Path(scratch), arguments.jobs)


if __name__ == "__main__":
    main()
