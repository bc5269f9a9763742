"""What the documentation shows is run as it stands, and what it names is there."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from contextlib import contextmanager
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


def python_blocks(page: Path) -> list[tuple[str, str]]:
    """Python examples of a page: the heading above each, and the code."""
    found, heading = [], ""
    pieces = re.split(r"^(#+ .*|```python\n(?:.*\n)*?```)$", page.read_text(), flags=re.MULTILINE)
    for piece in pieces:
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


README = python_blocks(ROOT / "README.md")


@pytest.fixture
def run_readme(tmp_path, monkeypatch, capsys):
    """A function that runs README's example under a heading: its names and what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(heading: str) -> tuple[dict[str, Any], str]:
        names: dict[str, Any] = {}
        exec(compile(dict(README)[heading], "README.md", "exec"), names)
        return names, capsys.readouterr().out

    return run


def test_readme_example_answers_right(run_readme, tmp_path):
    heading = "Ten lines of Python"
    assert len([line for line in dict(README)[heading].splitlines() if line]) <= 10
    _, printed = run_readme(heading)
    answers, classes, share = re.fullmatch(r"\[(.*)\] \[(.*)\] (.*)\n", printed).groups()
    assert set(classes.split()) == {"-1", "1"}
    # Every answer has the sign of its class, and is sure of it.
    sure = np.array(answers.split(), float) * np.array(classes.split(), float)
    assert sure.min() > 0.9
    assert float(share) >= 0.99
    assert f"`{printed.strip()}`" in (ROOT / "README.md").read_text()
    assert (tmp_path / "answers.png").stat().st_size > 10_000


@pytest.mark.slow
def test_readme_example_of_spikes_answers_right(run_readme):
    names, printed = run_readme("The same with spikes")
    share, most = map(float, printed.split())
    assert share >= 0.99
    assert 60 <= most <= 130
    assert f"`{printed.strip()}`" in (ROOT / "README.md").read_text()
    assert sum(map(len, names["trains"].values())) > 10


@pytest.mark.slow
def test_readme_examples_of_learners_answer_right(run_readme):
    _, printed = run_readme("In scikit-learn")
    share, undecided = map(float, printed.split())
    assert share > 0.92
    assert undecided < 0.01
    pytest.importorskip("river")
    _, printed = run_readme("Point by point, in river and CapyMOA")
    assert float(printed) > 0.98


def test_readme_example_of_a_sweep(run_readme, tmp_path):
    _, printed = run_readme("Over parameters")
    # Tiles too small to cover the moons, and tiles that do.
    rows = re.findall(r"\[+([\d. ]+)\]", printed)
    small, large = (np.array(row.split(), float) for row in rows)
    assert small.max() < 0.5 < 0.99 < large.min()
    assert (tmp_path / "results" / "sweep-two-moons.nc").is_file()


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


# Extending


EXTENDING = python_blocks(DOCS / "extending.md")


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
    lines = printed.splitlines()
    assert shown
    assert len(shown) == len(lines), lines
    for expected, line in zip(shown, lines, strict=True):
        assert same(expected, line), (expected, line)


def test_what_counts_as_the_same_line():
    assert same("0.974 True [1 2]", "0.975 True [1  2]")
    for shown, printed in (("0.974", "0.976"), ("12", "13"), ("0.974 True", "0.974 False")):
        assert not same(shown, printed)


@pytest.mark.parametrize(
    "number", range(1, len(EXTENDING)), ids=[heading for heading, _ in EXTENDING[1:]]
)
def test_examples_of_extending(number, capsys):
    """The first example is common to all; it names the engine."""
    assert "cpp_standalone" in EXTENDING[0][1]
    code = EXTENDING[number][1]
    names: dict[str, Any] = {}
    with numpy_code():
        exec(EXTENDING[0][1].replace("cpp_standalone", "numpy"), names)
        if re.search(r"\bxi\b", code):  # noise does not settle, as the page says
            with pytest.warns(UnsettledWarning):
                exec(code, names)
        else:
            exec(code, names)
    check_printed(code, capsys.readouterr().out)


# The spiking twin


@pytest.mark.slow
def test_examples_of_spiking(tmp_path, monkeypatch, capsys):
    """One after the other: the second goes on with what the first has made."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for _, code in python_blocks(DOCS / "spiking.md"):
        assert "cpp_standalone" in code
        exec(code.replace("cpp_standalone", "numpy"), names)
        check_printed(code, capsys.readouterr().out)


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
