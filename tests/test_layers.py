"""The layers: which package may import which, and what importing does."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "circuits": {"circuits"},
    "analysis": {"analysis", "circuits"},
    "simulations": {"simulations", "analysis", "circuits"},
}
NEED_BRIAN2 = {
    "circuits.network",
    "circuits.engines.codegen",
    "circuits.engines.live",
    "circuits.spiking.network",
}
"""Modules whose import brings Brian2 along, which takes a second: those that make its objects."""

NEED_OTHERS = {"circuits.streaming.for_river": "river", "circuits.streaming.for_capymoa": "capymoa"}
"""Modules that are for a package which need not be installed."""


MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in MAY_IMPORT
    for path in sorted((ROOT / package).rglob("*.py"))
}
"""Every module of the three packages by its dotted name."""

BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""What can hold statements."""


def imported_names(nodes: list[ast.AST], everywhere: bool) -> set[str]:
    """Dotted names that statements import; only those that importing runs unless ``everywhere``."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not everywhere:
            continue
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            found |= imported_names(node.body if everywhere else node.orelse, everywhere)
        else:
            inner = [n for n in ast.iter_child_nodes(node) if isinstance(n, BLOCKS)]
            found |= imported_names(inner, everywhere)
    return found


@cache
def imports(module: str, everywhere: bool = True) -> set[str]:
    return imported_names(ast.parse(MODULES[module].read_text()).body, everywhere)


def test_a_package_imports_only_what_lies_below_it():
    for module in MODULES:
        forbidden = MAY_IMPORT.keys() - MAY_IMPORT[module.split(".")[0]]
        assert not {name for name in imports(module) if name.split(".")[0] in forbidden}, module


def test_the_parser_sees_imports_wherever_they_stand():
    code = """
import one
from two import a
if TYPE_CHECKING:
    import three
def f():
    try:
        from four.five import b
    except ImportError:
        import six
class C:
    import seven
    def g(self):
        import eight
with x:
    import nine
"""
    body = ast.parse(code).body
    late = {"three", "four.five", "four.five.b", "six", "eight"}
    now = {"one", "two", "two.a", "seven", "nine"}
    assert imported_names(body, everywhere=True) == now | late
    assert imported_names(body, everywhere=False) == now


def test_no_name_of_a_module_stands_in_two_packages():
    homes = defaultdict(set)
    for module in MODULES:
        package, *rest = module.split(".")
        if rest and rest[-1] != "__main__":
            homes[rest[-1]].add(package)
    assert not {stem: sorted(found) for stem, found in homes.items() if len(found) > 1}


def needing(target: str) -> set[str]:
    """Modules whose import imports ``target``, by themselves or through others of ours."""
    direct = {}
    for module in MODULES:
        names = imports(module, everywhere=False)
        # Importing a module imports the packages that it lies in.
        parents = {module.rsplit(".", n)[0] for n in range(1, module.count(".") + 1)}
        direct[module] = {
            ".".join(name.split(".")[: n + 1])
            for name in names | parents
            for n in range(name.count(".") + 1)
        }
    found = {module for module, names in direct.items() if target in names}
    while more := {m for m, names in direct.items() if names & found} - found:
        found |= more
    return found


def test_heavy_packages_are_imported_where_they_are_needed_and_nowhere_else():
    # The description of the model, which the page shows, is read from Brian2's objects.
    reading = ("analysis.describe", "analysis.page")
    assert {m for m in needing("brian2") if not m.startswith(reading)} == NEED_BRIAN2
    for module, package in NEED_OTHERS.items():
        assert needing(package) == {module}
    # Neither the circuit nor the command line draws.
    drawing = needing("matplotlib")
    assert not {m for m in drawing if m.startswith("circuits")}
    assert "simulations.cli" not in drawing


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
