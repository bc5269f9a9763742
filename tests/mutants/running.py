"""Running tests on a module with a fault in it, each time in a fork of its own.

Nothing is written to the checkout. A fault within a function is put into a process that has
collected all tests, by exchanging the function's code: that costs no more than the tests. One in
what an import runs is put into a process that has imported what our packages depend on, but none of
our own, and is taken in as the module is imported.
"""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutants.faults import Fault, faults

PRELOADED = (
    *("brian2", "xarray", "h5netcdf", "pandas", "matplotlib.pyplot", "hypothesis", "pydantic"),
    *("sklearn.svm", "sklearn.semi_supervised", "sklearn.linear_model", "sklearn.neighbors"),
    *("scipy.optimize", "scipy.stats", "scipy.integrate", "scipy.spatial.distance"),
    *("scipy.special", "scipy.linalg", "joblib", "tqdm", "typer.testing", "jinja2", "filelock"),
)
"""What takes seconds to import, and is not ours."""

LEFT_OUT = ("cpp_standalone", "cython", "cluster", "scheduler")
"""Tests with these words in their names compile, or start processes that do not have the fault."""

BUDGET = 60.0
"""Seconds of tests that a fault may take: the quickest that reach it come first."""

OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-summary", "--capture=sys"]
# Hypothesis was imported before; engines that are skipped while they are made end half made.
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:unraisableexception"]

Reach = dict[str, tuple[float, set[int]]]
"""The seconds that tests take and the lines of the module that they run, quickest first."""


@dataclass(frozen=True)
class Module:
    """What is tried: a file, its module's name, its faults, and where the tests are."""

    root: Path
    path: Path
    name: str
    tests: Sequence[str]
    tree: ast.Module
    faults: list[Fault]
    compiles: bool

    @classmethod
    def read(cls, root: Path, file: str, tests: Sequence[str], compiles: bool = False) -> Module:
        """The module of a file, its name as seen from ``root``. If it ``compiles``, its tests may
        use programs that are compiled: the first run makes them, and faults leave them as they
        are."""
        source = (root / file).read_text(encoding="utf-8")
        tree = ast.parse(source)
        name = file.removesuffix(".py").replace("/", ".")
        return cls(root, root / file, name, tests, tree, faults(tree, source), compiles)


class Swapped(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a module from its tree."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.module.name:
            return None
        return importlib.util.spec_from_file_location(name, self.module.path, loader=self)

    def exec_module(self, module: Any) -> None:
        exec(compile(self.module.tree, str(self.module.path), "exec"), module.__dict__)


def exchange(module: Module) -> None:
    """Give every function of an imported module the code that its tree has now."""
    codes: dict[tuple[str, int], CodeType] = {}

    def collect(code: CodeType) -> None:
        for part in code.co_consts:
            if isinstance(part, CodeType):
                codes[part.co_qualname, part.co_firstlineno] = part
                collect(part)

    collect(compile(module.tree, str(module.path), "exec"))
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            code = function.__code__
            if code.co_filename == str(module.path):
                function.__code__ = codes[code.co_qualname, code.co_firstlineno]


class Watcher:
    """A pytest plugin: skips what would compile, and knows which tests passed."""

    def __init__(self, compiles: bool) -> None:
        self.compiles = compiles
        self.passed: set[str] = set()
        self.failed = ""

    def pytest_runtest_setup(self) -> None:
        if self.compiles:
            return

        def skip(*arguments: Any, **options: Any) -> None:
            pytest.skip("compiles")

        if "circuits" in sys.modules:
            standalone = importlib.import_module("circuits.engines.standalone")
            standalone.StandaloneEngine.__init__ = skip

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = f"{report.nodeid} ({str(report.longrepr).splitlines()[-1]})"
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def run(self, items: Sequence[Any]) -> bool:
        """Whether these tests pass; stops at the first that does not."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return False
        return True


class Tracer:
    """Notes which lines of a file tests run, and how long they take."""

    def __init__(self, path: Path) -> None:
        self.file, self.test = str(path), ""
        self.lines: dict[str, set[int]] = defaultdict(set)
        self.fixtures: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}

    def reached(self, test: str) -> set[int]:
        """Lines that a test runs, and those of its fixtures, whichever test made them."""
        return self.lines[test].union(*(self.lines[name] for name in self.fixtures[test]))

    def trace(self, frame: Any, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename == self.file else None

    def _line(self, frame: Any, event: str, argument: Any) -> Any:
        self.lines[self.test].add(frame.f_lineno)
        return self._line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.test, started = item.nodeid, time.perf_counter()
        self.fixtures[item.nodeid] = set(item.fixturenames)
        # Callbacks of a collection at the limit of a recursion are traced one frame too deep, and
        # what is said of that goes to the error stream, which some tests read.
        gc.disable()
        sys.settrace(self.trace)
        threading.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            gc.enable()
            self.seconds[item.nodeid] = time.perf_counter() - started

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        # Those of a module are made for its first test, and serve all the others.
        test, self.test = self.test, fixturedef.argname
        try:
            return (yield)
        finally:
            self.test = test


class Session(Watcher):
    """Collects the tests once, and then tries faults in forks."""

    def __init__(self, module: Module, todo: Sequence[Fault], jobs: int, answer: Any) -> None:
        super().__init__(module.compiles)
        self.module, self.todo, self.jobs, self.answer = module, todo, jobs, answer

    def say(self, *values: Any) -> None:
        self.answer.write(json.dumps(values) + "\n")
        self.answer.flush()

    def pytest_runtestloop(self, session: Any) -> bool:
        if session.testsfailed:
            return self.say("failed", "a file cannot be collected") is None
        items = {item.nodeid: item for item in session.items}
        importlib.import_module(self.module.name)
        # Traced in a fork: what the tests leave behind must not be there when faults are tried.
        os.waitpid(fork(lambda: self.measure(session)), 0)
        measured = Path(self.answer.name).read_text(encoding="utf-8").splitlines()
        if not measured or json.loads(measured[0])[0] == "failed":
            return True
        tests = {test: (seconds, set(lines)) for test, seconds, lines in json.loads(measured[0])[1]}

        def work(fault: Fault, chosen: Sequence[str]) -> bool:
            fault.apply()
            exchange(self.module)
            return not self.run([items[test] for test in chosen])

        for fault, survived in survivors(self.todo, tests, self.jobs, work):
            self.say(self.module.faults.index(fault), survived)
        return True

    def measure(self, session: Any) -> int:
        tracer = Tracer(self.module.path)
        session.config.pluginmanager.register(tracer)
        if not self.run(session.items):
            self.say("failed", self.failed)
            return 1
        found = [(test, tracer.seconds[test], sorted(tracer.reached(test))) for test in self.passed]
        self.say("tests", sorted(found, key=lambda test: test[1]))
        return 0


def preload() -> None:
    """Import what is not ours, once for all forks."""
    for name in PRELOADED:
        importlib.import_module(name)


def fork(work: Callable[[], int]) -> int:
    """Run a function in a fork that says nothing and ends with its exit code; returns its id."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        code = int(work())
    finally:
        os._exit(code)


def chosen(fault: Fault, tests: Reach) -> dict[str, float]:
    """The tests to run on a fault: those that reach its lines, within the budget of time."""
    taken: dict[str, float] = {}
    for test, (seconds, lines) in tests.items():
        # What an import runs is there for every test, also one that runs no line of the module.
        reached = fault.statement is None or bool(lines & set(fault.statement))
        if reached and (not taken or sum(taken.values()) + seconds < BUDGET):
            taken[test] = seconds
    return taken


def survivors(
    todo: Sequence[Fault],
    tests: Reach,
    jobs: int,
    work: Callable[[Fault, Sequence[str]], int],
) -> Iterator[tuple[Fault, bool]]:
    """Every fault with whether it survived its tests, as they end; one that none reaches does."""
    waiting, running = list(reversed(todo)), dict[int, tuple[Fault, float]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            fault = waiting.pop()
            selected = chosen(fault, tests)
            if not selected:
                yield fault, True
                continue
            pid = fork(lambda fault=fault, selected=selected: work(fault, list(selected)))
            # Tests take longer on a busy machine; a fault that makes one endless is found.
            running[pid] = fault, time.monotonic() + 30 + 5 * sum(selected.values())
        for pid, (fault, deadline) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended or time.monotonic() > deadline:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)  # and all that it started
                if not ended:
                    os.waitpid(pid, 0)
                del running[pid]
                yield fault, ended != 0 and status == 0
        time.sleep(0.005)


def tried(
    module: Module, todo: Sequence[Fault], jobs: int, folder: Path
) -> Iterator[tuple[Fault, bool]]:
    """Every fault with whether it survived the module's tests.

    Ends the program where a test fails: without a fault all must pass.
    """
    answers = folder / f"{module.name}.jsonl"
    within = [fault for fault in todo if fault.statement is not None]
    words = " and ".join(f"not {word}" for word in LEFT_OUT)

    def collect() -> int:
        os.chdir(module.root)
        sys.path.insert(0, str(module.root))
        with answers.open("w", encoding="utf-8") as answer:
            session = Session(module, within, jobs, answer)
            return pytest.main([*OPTIONS, "-k", words, *module.tests], plugins=[session])

    answers.write_text("")  # not what an earlier trial left
    pid = fork(collect)
    tests: Reach = {}
    with answers.open(encoding="utf-8") as answer:
        for key, value in _lines(answer, pid):
            if key == "failed":
                raise SystemExit(f"without any fault in {module.path.name}, a test fails: {value}")
            if key == "tests":
                tests = {test: (seconds, set(lines)) for test, seconds, lines in value}
            else:
                yield module.faults[key], value
    if not tests:
        raise SystemExit(f"the tests of {module.path.name} cannot be run: {' '.join(module.tests)}")

    def work(fault: Fault, selected: Sequence[str]) -> int:
        os.chdir(module.root)
        sys.path.insert(0, str(module.root))
        fault.apply()
        sys.meta_path.insert(0, Swapped(module))
        return pytest.main(["-x", *OPTIONS, *selected], plugins=[Watcher(module.compiles)])

    at_import = [fault for fault in todo if fault.statement is None]
    yield from survivors(at_import, tests, jobs, work)


def _lines(file: Any, pid: int) -> Iterator[Any]:
    """What a process writes into a file line by line, until it ends."""
    ended, line = 0, ""
    while True:
        line += file.readline()
        if line.endswith("\n"):
            yield json.loads(line)
            line = ""
        elif ended:
            return
        else:
            time.sleep(0.05)
            ended, _ = os.waitpid(pid, os.WNOHANG)
