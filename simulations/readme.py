"""Put the numbers of full runs into the documentation: ``python -m simulations.readme``.

What full runs measured is kept in ``docs/measured``; the pages mark where their tables go, and
nobody copies numbers by hand. ``--check`` changes nothing and fails where a page says otherwise.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from circuits.errors import CircuitError, InputError
from circuits.storage import files
from simulations import known_data, peers
from simulations.bench import table
from simulations.experiments.claim import Claim, load_claims, long_form, short_table, tally
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

FRONT = {
    "two labels": "two labels suffice for two moons | accuracy {}",
    "spread gradually": "labels spread gradually along the moons | rank correlation {}",
    "beats the": "on chessboards it beats logistic regression with intercept | error lower by {}",
    "side 0.5": "unlabelled points help, squares of side 0.5 | error lower by {}",
    "side 0.333": "unlabelled points help, side 0.333 | error lower by {}",
    "side 0.25": "unlabelled points help, side 0.25 | error lower by {}",
    "outputs follow": "similar inputs get equally similar outputs | correlation {}, bound {}",
    "right below": "inputs just below α get orthogonal outputs | {} of pairs, bound {}",
    "after the tiling": "after the tiling, classes are linear | error {} or less",
    "printed rate": "with the printed rate it adapts quickly to new labels | {} of the change left",
}
"""Claims of the paper on the front page: the main ones, and all that do not hold. Part of a claim,
and the row with places for the numbers of its short figure."""

NUMBER = re.compile(r"-?\d[\d.]*(?: ± [\d.]+)?")

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


def front_page(claims: Iterable[Claim]) -> str:
    """The rows of `FRONT` as a table, and how many of the paper's claims hold in all."""
    paper = [claim for claim in claims if claim.paper]
    rows = [
        f"| {row.format(*NUMBER.findall(claim.short))} | {claim.emphasised} |\n"
        for part, row in FRONT.items()
        for claim in paper
        if part in claim.claim
    ]
    head = "| the paper's claim | we found | verdict |\n| --- | --- | --- |\n"
    return f"{head}{''.join(rows)}\nIn all, {tally(paper)}."


def tables(measured: Path) -> list[Insertion]:
    """What was measured as tables, and where each of them stands."""
    path = measured
    try:
        path = measured / "power.json"
        power = in_sentences(json.loads(path.read_text(encoding="utf-8")))
        path = measured / "claims.json"
        claims = load_claims(path)
        front, short, long = front_page(claims), short_table(claims), long_form(claims, power)
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
        (Path("README.md"), "claims", front),
        (Path("docs/claims.md"), "verdicts", short),
        (Path("docs/claims.md"), "claims", long),
        (Path("docs/speed.md"), "bench", f"```\n{times}\n```"),
        (Path("docs/faults.md"), "soak", trials),
        (Path("docs/learners.md"), "known-data", known),
        (Path("docs/beyond-the-paper.md"), "peers", beside),
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
