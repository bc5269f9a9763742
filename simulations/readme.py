"""Put the numbers of full runs into the documentation: ``python -m simulations.readme``.

What full runs measured is kept in ``docs/measured``; the pages mark where their tables go, and
nobody copies numbers by hand. ``--check`` changes nothing and fails where a page says otherwise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from circuits import files
from circuits.errors import CircuitError, InputError
from simulations import known_data, peers
from simulations.bench import table
from simulations.experiments.claim import load_claims, long_form, short_table
from simulations.power import in_sentences

MEASURED = Path("docs/measured")
"""What the tables are made from."""

SOURCES = {
    "claims.json": Path("results/reproduce"),
    "power.json": Path("results/pilot"),
    "bench.json": Path("results/bench"),
    "soak.md": Path("results/soak"),
    "known_data.json": Path("results/known-data"),
    "peers.json": Path("results/peers"),
}
"""Where full runs leave it."""

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


def updated(insertions: Iterable[Insertion]) -> dict[Path, str]:
    """The texts of files with contents inserted; an error if a file or a mark is missing."""
    texts: dict[Path, str] = {}
    for path, name, content in insertions:
        if not path.exists():
            raise InputError(f"there is no file {path} to insert {name} into")
        try:
            text = texts.get(path) or path.read_text(encoding="utf-8")
            texts[path] = insert(text, name, content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    return texts


def take_over(sources: dict[str, Path], measured: Path) -> list[Path]:
    """Copy what full runs left, as far as it is there."""
    return [
        files.write(measured / name, (folder / name).read_text(encoding="utf-8"))
        for name, folder in sources.items()
        if (folder / name).exists()
    ]


def tables(measured: Path) -> list[Insertion]:
    """The tables of what was measured: short for README, long for the pages behind it."""
    path = measured
    try:
        path = measured / "power.json"
        power = in_sentences(json.loads(path.read_text(encoding="utf-8")))
        path = measured / "claims.json"
        claims = load_claims(path)
        short, long = short_table(claims), long_form(claims, power)
        path = measured / "bench.json"
        times = table(json.loads(path.read_text(encoding="utf-8")))
        path = measured / "soak.md"
        trials = path.read_text(encoding="utf-8")
        path = measured / "known_data.json"
        known = known_data.table(json.loads(path.read_text(encoding="utf-8")))
        path = measured / "peers.json"
        beside = peers.table(json.loads(path.read_text(encoding="utf-8")))
    except Exception as error:  # whatever a file of any content makes a table raise
        raise InputError(f"{path} holds no such table ({type(error).__name__}: {error})") from error
    return [
        (Path("README.md"), "claims", short),
        (Path("docs/claims.md"), "claims", long),
        (Path("docs/speed.md"), "bench", f"```\n{times}\n```"),
        (Path("README.md"), "soak", trials),
        (Path("docs/faults.md"), "soak", trials),
        (Path("README.md"), "known-data", known),
        (Path("README.md"), "peers", beside),
    ]


def differing(texts: dict[Path, str]) -> list[Path]:
    """Files that hold something else."""
    return [path for path, text in texts.items() if path.read_text(encoding="utf-8") != text]


def main(arguments: list[str]) -> None:
    """Take over what was measured and write the tables, or check them."""
    if unknown := set(arguments) - {"--check"}:
        raise InputError(f"the only option is --check, got {' '.join(sorted(unknown))}")
    if arguments:
        if wrong := differing(updated(tables(MEASURED))):
            names = ", ".join(map(str, wrong))
            raise InputError(f"{names}: not what {MEASURED} says; run python -m simulations.readme")
        return
    written = take_over(SOURCES, MEASURED)
    texts = updated(tables(MEASURED))
    written += [files.write(path, texts[path]) for path in differing(texts)]
    print("\n".join(f"wrote {path}" for path in written) or "nothing has changed")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except CircuitError as error:
        sys.exit(f"{error}")
