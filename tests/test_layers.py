"""The layers: which package may import which, and what importing does."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "circuits": {"circuits"},
    "analysis": {"analysis", "circuits"},
    "simulations": {"simulations", "analysis", "circuits"},
}
NEED_BRIAN2 = {
    "circuits.network",
    "circuits.engines.brian_objects",
    "circuits.engines.codegen",
    "circuits.engines.live",
}
"""Modules whose import brings Brian2 along, which takes a second: those that make its objects."""

NEED_OTHERS = {"circuits.learners.for_river", "circuits.learners.for_capymoa"}
"""Modules that are for a package which need not be installed."""


MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in MAY_IMPORT
    for path in sorted((ROOT / package).rglob("*.py"))
}
"""Every module of the three packages by its dotted name."""


def test_a_package_imports_only_what_lies_below_it():
    for module, path in MODULES.items():
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}: imports are absolute"
                found.add(node.module.split(".")[0])
        assert found & MAY_IMPORT.keys() <= MAY_IMPORT[module.split(".")[0]], module


def test_no_name_of_a_module_stands_in_two_packages():
    homes = defaultdict(set)
    for module in MODULES:
        package, *rest = module.split(".")
        if rest and rest[-1] != "__main__":
            homes[rest[-1]].add(package)
    assert not {stem: sorted(found) for stem, found in homes.items() if len(found) > 1}


def loaded_by(modules, package: str) -> list[str]:
    """Those of ``modules`` whose import, each after the ones before it, loads ``package``."""
    code = f"""
import importlib, sys
for name in {list(modules)}:
    importlib.import_module(name)
    if {package!r} in sys.modules:
        print(name)
        break
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_heavy_packages_are_imported_where_they_are_needed_and_nowhere_else():
    # The description of the model, which the page shows, is read from Brian2's objects.
    reading = ("analysis.describe", "analysis.page")
    light = [m for m in MODULES if m not in NEED_BRIAN2 | NEED_OTHERS]
    light = [m for m in light if not m.startswith(reading) and not m.endswith("__main__")]
    assert loaded_by(light, "brian2") == []
    # Neither the circuit nor the command line draws.
    quiet = [m for m in light if m.startswith("circuits")] + ["simulations.cli"]
    assert loaded_by(quiet, "matplotlib") == []


def test_importing_everything_runs_nothing(tmp_path):
    names = [n for n in MODULES if not n.endswith("__main__") and n not in NEED_OTHERS]
    code = f"""
import importlib, random
import matplotlib, numpy
matplotlib.use("Agg")
before = dict(matplotlib.rcParams), numpy.random.get_state()[1].tolist(), random.getstate()
for name in {names}:
    importlib.import_module(name)
after = dict(matplotlib.rcParams), numpy.random.get_state()[1].tolist(), random.getstate()
assert before == after
from matplotlib import pyplot
assert not pyplot.get_fignums()
import brian2
assert float(brian2.defaultclock.dt) == 1e-4
assert brian2.get_device().__class__.__name__ == "RuntimeDevice"
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
