"""What the documentation shows is run as it stands, and what it names is there."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from circuits.errors import UnsettledWarning

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
MARK = "# -> "
"""What stands before the output that a page shows."""

NOT_RUN = "<!-- not run -->\n"
"""What stands before an example that is no complete program."""

SLOW = ("learners.md", "spiking.md")
"""Pages whose examples take longer."""


def python_blocks(page: Path) -> list[tuple[str, str]]:
    """Python examples of a page that are run: the heading above each, and the code."""
    found, heading = [], ""
    block = rf"^(#+ .*|(?:{NOT_RUN})?```python\n(?:.*\n)*?```)$"
    for piece in re.split(block, page.read_text(), flags=re.MULTILINE):
        if piece.startswith("#"):
            heading = piece.strip("# ")
        elif piece.startswith("```python\n"):
            found.append((heading, piece.removeprefix("```python\n").removesuffix("```")))
    return found


# The notebooks


def outputs(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def check_tour(notebook: dict[str, Any]) -> None:
    """The tour's outputs: pictures, and differences from the reference of rounding size."""
    found = outputs(notebook)
    text = "".join("".join(output.get("text", "")) for output in found)
    differences = dict(re.findall(r"^(\w+) +(\d\.\de[-+]\d+)$", text, flags=re.MULTILINE))
    assert {"h", "u", "y", "W", "V_trace"} <= set(differences)
    # The steps of 450 presentations: rounding, as in test_agreement.
    assert max(float(value) for value in differences.values()) <= 1e-8
    assert sum("image/png" in output.get("data", {}) for output in found) >= 5


def check_lesson(notebook: dict[str, Any]) -> None:
    """Seven exercises, each with a check in it, which an error would show, and a picture."""
    assert sum("image/png" in output.get("data", {}) for output in outputs(notebook)) == 7
    code = ["".join(cell["source"]) for cell in code_cells(notebook)]
    assert len(code) == 8
    assert all("\nassert " in source for source in code[1:])


NOTEBOOKS = {"tour": check_tour, "lesson": check_lesson}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.filterwarnings("ignore")  # Jupyter's own, about event loops and paths
def test_notebook_runs(name):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(DOCS / f"{name}.ipynb", as_version=4)
    # A cell that fails raises its error here.
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    NOTEBOOKS[name](notebook)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_is_kept_with_its_outputs(name):
    text = (DOCS / f"{name}.ipynb").read_text()
    notebook = json.loads(text)
    NOTEBOOKS[name](notebook)
    code = code_cells(notebook)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for output in outputs(notebook):
        assert output["output_type"] != "error"
        assert output.get("name") != "stderr"
    # Nothing of the machine it was run on.
    assert not re.search(r"/(home|tmp|root|work|usr)/", text)
    assert len(text) < 500_000
    # What it imports is there; the slow test runs the rest.
    for node in ast.parse("".join(code[0]["source"])).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node))


# README


def test_readme_is_one_page():
    assert len((ROOT / "README.md").read_text().split()) <= 900
    [(heading, code)] = python_blocks(ROOT / "README.md")
    assert heading == "Ten lines of Python"
    assert sum(bool(line) and not line.startswith(MARK) for line in code.splitlines()) <= 10


def test_equations_of_readme_are_those_of_the_script():
    [shown] = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    script = (DOCS / "minimal_circuit.py").read_text()
    equations = [line.partition("#")[0].strip() for line in shown.splitlines()]
    assert len(equations) == 7
    assert [equation for equation in equations if equation not in script] == []


def test_readme_names_only_files_and_commands_that_exist():
    command = [sys.executable, "-m", "simulations", "--help"]
    help_text = subprocess.check_output(command, cwd=ROOT, text=True)
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES:
        text = page.read_text()
        for command in re.findall(r"manifold-circuit ([a-z]+)", text):
            assert f"\n  {command} " in help_text, (page, command)
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, flags=re.MULTILINE):
            assert f"\n{target}:" in makefile, (page, target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page):
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        module = re.fullmatch(r"(?:\.\./)?api/([\w.]+)", link)  # a page that Sphinx makes
        path = ROOT / module[1].replace(".", "/") if module else page.parent / link
        assert path.exists() or path.with_suffix(".py").exists(), link
    for name in re.findall(r"`([\w./-]+\.(?:md|py|cff|toml|txt|png|ipynb|cpp))`", text):
        assert (ROOT / name).exists(), name
    for folder in re.findall(r"`((?:circuits|analysis|simulations|tests|docs)/[\w/]*)`", text):
        assert (ROOT / folder).is_dir(), folder


def test_the_playground_in_the_docs_is_current(tmp_path):
    """`make playground` writes it."""
    from simulations.playing import make_playground

    fresh = make_playground(tmp_path, 0, [])
    assert fresh.read_bytes() == (DOCS / "playground.html").read_bytes()
    assert (DOCS / "playground.png").stat().st_size > 50_000


# Examples


@contextmanager
def numpy_code():
    """Let Brian2 make Python code for users' own objects: nothing has to be compiled for them."""
    from brian2 import prefs

    before, prefs.codegen.target = prefs.codegen.target, "numpy"
    try:
        yield
    finally:
        prefs.codegen.target = before


def same(shown: str, printed: str) -> bool:
    """Whether a line prints what the page shows: numbers to one in their last digit, all else as
    it stands."""
    number = r"-?\d+\.?\d*(?:e[-+]\d+)?"
    if re.sub(number, "#", shown).split() != re.sub(number, "#", printed).split():
        return False
    for a, b in zip(re.findall(number, shown), re.findall(number, printed), strict=True):
        decimals = len(a.partition(".")[2])
        if abs(float(a) - float(b)) > 1.01 * 10.0**-decimals * ("." in a):
            return False
    return True


def check_printed(code: str, printed: str) -> None:
    """What an example prints is what it shows."""
    shown = [line.partition(MARK)[2] for line in code.splitlines() if MARK in line]
    # Without the remarks of a sweep.
    lines = [line for line in printed.splitlines() if not line.startswith("two-moons: ")]
    assert len(shown) == len(lines), lines
    for expected, line in zip(shown, lines, strict=True):
        assert same(expected, line), (expected, line)


def test_what_counts_as_the_same_line():
    assert same("0.974 True [1 2]", "0.975 True [1  2]")
    for shown, printed in (("0.974", "0.976"), ("12", "13"), ("0.974 True", "0.974 False")):
        assert not same(shown, printed)


def check_ten_lines(printed: str, names: dict[str, Any]) -> None:
    answers, classes, share = re.fullmatch(r"\[(.*)\] \[(.*)\] (.*)\n", printed).groups()
    assert set(classes.split()) == {"-1", "1"}
    # Every answer has the sign of its class, and is sure of it.
    sure = np.array(answers.split(), float) * np.array(classes.split(), float)
    assert sure.min() > 0.9
    assert float(share) >= 0.99
    assert Path("answers.png").stat().st_size > 10_000


def check_sweep(printed: str, names: dict[str, Any]) -> None:
    # Tiles too small to cover the moons, and tiles that do.
    rows = re.findall(r"\[+([\d. ]+)\]", printed)
    small, large = (np.array(row.split(), float) for row in rows)
    assert small.max() < 0.5 < 0.99 < large.min()
    assert Path("results/sweep-two-moons.nc").is_file()


def check_learner(printed: str, names: dict[str, Any]) -> None:
    share, undecided = map(float, printed.split())
    assert share > 0.92
    assert undecided < 0.01


def check_stream(printed: str, names: dict[str, Any]) -> None:
    assert float(printed) > 0.98


def check_spikes(printed: str, names: dict[str, Any]) -> None:
    share, most = map(float, printed.split())
    assert share >= 0.99
    assert 60 <= most <= 130
    assert sum(map(len, names["trains"].values())) > 10


CHECKS = {
    "Ten lines of Python": check_ten_lines,
    "Parameter sweeps": check_sweep,
    "scikit-learn": check_learner,
    "river": check_stream,
    "Two moons from two labels": check_spikes,
}
"""More that has to hold of what an example prints, by its heading."""

EXAMPLES = [
    pytest.param(
        *(page, number),
        id=f"{page.stem}: {heading}",
        marks=[pytest.mark.slow] if page.name in SLOW else [],
    )
    for page in PAGES
    for number, (heading, _) in enumerate(python_blocks(page))
]


def test_every_further_check_has_its_example():
    assert {heading for page in PAGES for heading, _ in python_blocks(page)} > set(CHECKS)


@pytest.mark.parametrize(("page", "number"), EXAMPLES)
def test_example(page, number, tmp_path, monkeypatch, capsys):
    """It prints what it shows. The first example of a page is common to all others of it, and names
    the engine."""
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(page)
    (_, first), (heading, code) = blocks[0], blocks[number]
    names: dict[str, Any] = {}
    if "river" in code:
        pytest.importorskip("river")
    with numpy_code() if "cpp_standalone" in first else nullcontext():
        first = first.replace("cpp_standalone", "numpy")
        exec(first, names)
        if number:
            capsys.readouterr()
            # Noise does not settle, as the page says.
            noisy = re.search(r"\bxi\b", code)
            with pytest.warns(UnsettledWarning) if noisy else nullcontext():
                exec(code, names)
            assert MARK in code
    printed = capsys.readouterr().out
    check_printed(code, printed)
    if heading in CHECKS:
        CHECKS[heading](printed, names)


# The spiking twin


def test_equations_of_spiking_are_those_that_run():
    from analysis.describe import Code, tables
    from circuits import CircuitParameters, SphereLift, SpikingCircuit, SpikingParameters

    lift = SphereLift(center=(0.0,), radius=1.0)
    kinds = ({}, {"cells": 2}, {"neuron": "escape"})
    run = {
        line
        for kind in kinds
        for table in tables(
            SpikingCircuit(CircuitParameters(), lift, "numpy", spiking=SpikingParameters(**kind))
        )
        for row in table.rows
        for cell in row
        if isinstance(cell, Code)
        for line in cell.splitlines()
    }
    text = (DOCS / "spiking.md").read_text()
    blocks = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines()]
    assert len(shown) > 20
    assert [line for line in shown if line not in run] == []
