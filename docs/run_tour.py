"""Run the tour and keep it with its outputs: ``python docs/run_tour.py``.

What tells of the machine or the moment (messages on stderr, times) is left out.
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

TOUR = Path(__file__).parent / "tour.ipynb"


def run() -> None:
    """Execute the notebook in place."""
    notebook = nbformat.read(TOUR, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False).execute()
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = {}, f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nbformat.write(notebook, TOUR)


if __name__ == "__main__":
    run()
