"""Count the faults that each test of a file finds alone: a test that finds none may go.

    python -m tests.alone tests/simulations/test_datasets.py simulations/datasets.py --sample 100

Faults are those of `tests.faults`. Each one is tried in a forked process that has the libraries
loaded already and imports the faulty module in place of the real one; no file is changed. Tests
that start other processes do not see the fault there.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.util
import itertools
import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from tests.faults import ROOT, faults, parsed

LIBRARIES = ("brian2", "matplotlib.pyplot", "pandas", "scipy.stats", "sklearn", "xarray")


class Faulty(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Gives one module another source."""

    def __init__(self, file: str, source: str) -> None:
        self.name = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self.file, self.source = file, source

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name != self.name:
            return None
        package = self.file.endswith("__init__.py")
        spec = importlib.util.spec_from_loader(name, self, is_package=package)
        if package and spec is not None:
            spec.submodule_search_locations = [str((ROOT / self.file).parent)]
        return spec

    def get_source(self, name: str) -> str:
        return self.source

    def exec_module(self, module: Any) -> None:
        module.__file__ = str(ROOT / self.file)
        exec(compile(self.source, module.__file__, "exec"), module.__dict__)


class Failures:
    """A pytest plugin that collects the names of failed tests, without their parameters."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.names.add(report.nodeid.partition("::")[2].partition("[")[0])

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.names.add("importing")


def failing(test: str, fault: Faulty | None, seconds: int) -> set[str]:
    """The tests of a file that fail with a fault; ``{"crash"}`` if there is no end or no answer."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "failed.json")
        child = os.fork()
        if child == 0:
            signal.alarm(seconds)
            os.setsid()
            os.environ["MANIFOLD_CIRCUIT_CACHE"] = folder
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            if fault is not None:
                sys.meta_path.insert(0, fault)
            failures = Failures()
            try:
                pytest.main(["-q", "-p", "no:cacheprovider", test], plugins=[failures])
                answer.write_text(json.dumps(sorted(failures.names)))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return set(json.loads(answer.read_text())) if answer.exists() else {"crash"}


def main() -> None:
    """Print, for every test of a file, how many faults it finds, and how many alone."""
    parser = argparse.ArgumentParser(prog="python -m tests.alone", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("test", help="a file of tests")
    parser.add_argument("modules", nargs="+", help="the files that get faults")
    parser.add_argument("--sample", type=int, default=100, help="how many faults to try")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--seconds", type=int, default=120, help="that all tests may take")
    arguments = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads do not survive a fork
    for library in LIBRARIES:
        importlib.import_module(library)
    if broken := failing(arguments.test, None, arguments.seconds):
        sys.exit(f"without a fault these fail: {', '.join(sorted(broken))}")
    places = [
        (file, n) for file in arguments.modules for n, _ in enumerate(faults(file, parsed(file)))
    ]
    sample = random.Random(arguments.seed).sample(places, min(arguments.sample, len(places)))
    found: list[set[str]] = []
    for file, number in sample:
        tree = parsed(file)
        next(itertools.islice(faults(file, tree), number, None))
        found.append(failing(arguments.test, Faulty(file, ast.unparse(tree)), arguments.seconds))
    alone = Counter(next(iter(names)) for names in found if len(names) == 1)
    together = Counter(name for names in found for name in names)
    print(f"{len(places)} faults, {len(sample)} tried, {sum(map(bool, found))} found")
    print("| test | lines | found | alone |\n| --- | --- | --- | --- |")
    for node in ast.parse((ROOT / arguments.test).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            lines = (node.end_lineno or 0) - node.lineno + 1
            print(f"| {node.name} | {lines} | {together[node.name]} | {alone[node.name]} |")


if __name__ == "__main__":
    main()
