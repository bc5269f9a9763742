"""Put the numbers of full runs into the documentation: ``python -m simulations.readme``.

The pages mark where they go; nobody copies numbers by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from circuits import files
from circuits.errors import CircuitError, InputError
from simulations.bench import table
from simulations.experiments.claim import load_claims, long_table, short_table

Insertion = tuple[Path, str, str]
"""A file, the name of the marks in it, and what is to stand between them."""


def insert(text: str, name: str, content: str) -> str:
    """Replace what stands between the marks ``<!-- name -->`` and ``<!-- /name -->``."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if start not in text or end not in text:
        raise InputError(f"the text has no marks {start} and {end}")
    head, _, rest = text.partition(start)
    _, _, tail = rest.partition(end)
    return f"{head}{start}\n{content.strip()}\n{end}{tail}"


def update(insertions: Iterable[Insertion]) -> None:
    """Insert contents into files; all of them, or none if a file or a mark is missing."""
    texts: dict[Path, str] = {}
    for path, name, content in insertions:
        if not path.exists():
            raise InputError(f"there is no file {path} to insert {name} into")
        try:
            text = texts.get(path) or path.read_text(encoding="utf-8")
            texts[path] = insert(text, name, content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    for path, text in texts.items():
        files.write(path, text)


def measured(reproduced: Path, benchmarked: Path, soaked: Path) -> list[Insertion]:
    """The tables of full runs, of those that are there: short for README, long for the pages
    behind it."""
    found: list[Insertion] = []
    path = reproduced / "claims.json"
    try:
        if path.exists():
            claims = load_claims(path)
            found.append((Path("README.md"), "claims", short_table(claims)))
            found.append((Path("docs/results.md"), "claims", long_table(claims)))
        path = benchmarked / "bench.json"
        if path.exists():
            times = table(json.loads(path.read_text(encoding="utf-8")))
            found.append((Path("docs/speed.md"), "bench", f"```\n{times}\n```"))
        path = soaked / "soak.md"
        if path.exists():
            trials = path.read_text(encoding="utf-8")
            found += [(Path(page), "soak", trials) for page in ("README.md", "docs/faults.md")]
    except Exception as error:  # whatever a file of any content makes a table raise
        raise InputError(f"{path} holds no such table ({type(error).__name__}: {error})") from error
    if not found:
        raise InputError(f"there are no results in {reproduced}, {benchmarked} or {soaked}")
    return found


if __name__ == "__main__":
    folders = [Path("results") / name for name in ("reproduce", "bench", "soak")]
    given = [Path(argument) for argument in sys.argv[1:]]
    try:
        update(measured(*given, *folders[len(given) :]))
    except CircuitError as error:
        sys.exit(f"{error}")
