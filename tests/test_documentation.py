"""What the documentation shows is run as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.filterwarnings("ignore")  # Jupyter's own, about event loops and paths
def test_notebook_runs():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "docs" / "tour.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    text = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )
    differences = dict(re.findall(r"^(\w+) +(\d\.\de[-+]\d+)$", text, flags=re.MULTILINE))
    assert {"h", "u", "y", "W", "V_trace"} <= set(differences)
    # The steps of 450 presentations: rounding, as in test_agreement.
    assert max(float(value) for value in differences.values()) <= 1e-8
    images = [o for cell in notebook.cells for o in cell.get("outputs", []) if "data" in o]
    assert sum("image/png" in output["data"] for output in images) >= 4


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_readme_examples_run(number, tmp_path):
    code = "import matplotlib; matplotlib.use('Agg')\n" + python_blocks()[number]
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_readme_names_only_files_and_commands_that_exist():
    text = (ROOT / "README.md").read_text()
    for name in re.findall(r"`([\w./-]+\.(?:md|py|cff|toml|png|ipynb))`|\]\(([\w./-]+)\)", text):
        path = next(part for part in name if part)
        assert (ROOT / path).exists(), path
    help_text = subprocess.run(
        [sys.executable, "-m", "simulations", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for command in re.findall(r"manifold-circuit ([a-z]+)", text):
        assert f"\n  {command} " in help_text, command
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make ([a-z]+)", text, flags=re.MULTILINE):
        assert f"\n{target}:" in makefile, target
