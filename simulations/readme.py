"""Put the numbers of full runs into the documentation: ``python -m simulations.readme``.

The pages mark where they go; nobody copies numbers by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from circuits import files
from circuits.errors import InputError
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
    if (reproduced / "claims.json").exists():
        claims = load_claims(reproduced / "claims.json")
        found.append((Path("README.md"), "claims", short_table(claims)))
        found.append((Path("docs/results.md"), "claims", long_table(claims)))
    if (benchmarked / "bench.json").exists():
        bench = json.loads((benchmarked / "bench.json").read_text(encoding="utf-8"))
        found.append((Path("docs/speed.md"), "bench", f"```\n{table(bench)}\n```"))
    if (soaked / "soak.md").exists():
        trials = (soaked / "soak.md").read_text(encoding="utf-8")
        found += [(Path(page), "soak", trials) for page in ("README.md", "docs/faults.md")]
    if not found:
        raise InputError(f"there are no results in {reproduced}, {benchmarked} or {soaked}")
    return found


if __name__ == "__main__":
    folders = [Path("results") / name for name in ("reproduce", "bench", "soak")]
    given = [Path(argument) for argument in sys.argv[1:]]
    update(measured(*given, *folders[len(given) :]))
