"""Run the tour and the lesson and keep them with their outputs: ``python docs/run_notebooks.py``,
with a name for one of them alone.

What tells of the machine or the moment (messages on stderr, times) is left out.
"""

import base64
import sys
from io import BytesIO
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

NOTEBOOKS = ("tour", "lesson")


def run(name: str) -> None:
    """Execute a notebook in place."""
    path = Path(__file__).parent / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False).execute()
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = {}, f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    output.data["image/png"] = smaller(output.data["image/png"])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nbformat.write(notebook, path)


def smaller(png: str) -> str:
    """A picture in as few colours as it takes: a third of the size."""
    picture = Image.open(BytesIO(base64.b64decode(png))).convert("RGB")
    few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(file := BytesIO(), "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NOTEBOOKS:
        run(chosen)
