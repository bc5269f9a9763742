"""Put the numbers of a full run into the README: ``python -m simulations.readme``.

The README marks where they go; nobody copies numbers by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from circuits.errors import InputError
from simulations.bench import table


def insert(text: str, name: str, content: str) -> str:
    """Replace what stands between the marks ``<!-- name -->`` and ``<!-- /name -->``."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if start not in text or end not in text:
        raise InputError(f"the text has no marks {start} and {end}")
    head, _, rest = text.partition(start)
    _, _, tail = rest.partition(end)
    return f"{head}{start}\n{content.strip()}\n{end}{tail}"


def update(readme: Path, reproduced: Path, benchmarked: Path) -> None:
    """Insert the table of claims and the benchmark."""
    text = readme.read_text(encoding="utf-8")
    text = insert(text, "claims", (reproduced / "claims.md").read_text(encoding="utf-8"))
    results = json.loads((benchmarked / "bench.json").read_text(encoding="utf-8"))
    text = insert(text, "bench", f"```\n{table(results)}\n```")
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    folders = [Path(argument) for argument in sys.argv[1:]] or [
        Path("results/reproduce"),
        Path("results/bench"),
    ]
    update(Path("README.md"), *folders)
