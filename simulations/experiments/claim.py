"""What the paper says and what we found, as a value, as lines of text and as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from circuits import files

UNDECIDED = "not decided at this size"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what we found."""

    claim: str
    paper: str
    """The paper's words."""
    figure: str
    """Our numbers, with their spread."""
    short: str
    """The one number that decides."""
    holds: bool | None
    """None where the result is too small to decide."""
    experiment: str = field(default="")

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def line(self) -> str:
        """The claim for a terminal."""
        verdict = {True: "holds", False: "FAILS", None: "open"}[self.holds]
        doubt = f" ({UNDECIDED})" if self.holds is None else ""
        return f"{verdict:<6} {self.claim}{doubt}: {self.figure}"


VERDICTS = {True: "yes", False: "**no**", None: UNDECIDED}


def long_table(claims: Iterable[Claim]) -> str:
    """Claims as a Markdown table, with the paper's words and all figures."""
    header = ("experiment", "claim", "the paper's words", "our figure", "holds")
    return _markdown(
        header,
        (
            (claim.experiment, claim.claim, f"“{claim.paper}”", claim.figure, VERDICTS[claim.holds])
            for claim in claims
        ),
    )


def short_table(claims: Iterable[Claim]) -> str:
    """Claims as a Markdown table with one short figure each."""
    return _markdown(
        ("experiment", "claim", "our figure", "holds"),
        ((claim.experiment, claim.claim, claim.short, VERDICTS[claim.holds]) for claim in claims),
    )


def _markdown(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [
        " | ".join(cell.replace("|", "\\|") for cell in row)
        for row in (header, ("---",) * len(header), *rows)
    ]
    return "".join(f"| {line} |\n" for line in lines)


def save_claims(claims: list[Claim], out: Path) -> list[Path]:
    """Write claims as JSON and as a Markdown table."""
    return [
        files.write(out / "claims.json", to_json(claims, indent=1)),
        files.write(out / "claims.md", long_table(claims)),
    ]


def load_claims(path: Path) -> list[Claim]:
    """Claims as `save_claims` wrote them."""
    return [Claim(**values) for values in json.loads(path.read_text(encoding="utf-8"))]


def to_json(claims: Iterable[Claim], indent: int | None = None) -> str:
    """Claims as text that goes into files and attributes."""
    return json.dumps([claim.as_dict() for claim in claims], indent=indent)
