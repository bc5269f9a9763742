"""What the paper says and what we found, as a value, as lines of text and as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from circuits.storage import files

Power = Mapping[str, Mapping[str, str]]
"""By experiment and claim: how often the registered number of repeats gives which verdict."""


@dataclass(frozen=True)
class Claim:
    """A statement, of the paper or of ours, and what we found."""

    claim: str
    paper: str
    """The paper's words; empty where the claim is ours."""
    statistic: str
    """What is computed and what decides, fixed before the reported seeds were looked at."""
    figure: str
    """Our numbers, with their spread."""
    short: str
    """The one number that decides, with its standard error or p-value."""
    holds: bool | None
    """None where the result does not decide."""
    control: str = ""
    """What could have made it false, and what it gave."""
    constructed: bool = False
    """Whether it holds by the way the circuit is made, and so says nothing about the data."""
    experiment: str = field(default="")

    @property
    def verdict(self) -> str:
        """What became of it, in words."""
        word = {True: "holds", False: "does not hold", None: "not decided"}[self.holds]
        return f"{word} (by construction)" if self.constructed and self.holds else word

    @property
    def emphasised(self) -> str:
        """The verdict in Markdown, in bold unless the claim holds."""
        return self.verdict if self.holds else f"**{self.verdict}**"

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def line(self) -> str:
        """The claim for a terminal."""
        control = f"; control: {self.control}" if self.control else ""
        return f"{self.verdict}: {self.claim}: {self.figure}{control}"


def tally(claims: Iterable[Claim]) -> str:
    """How many claims hold, in a sentence."""
    verdicts = [claim.holds for claim in claims]
    return (
        f"of {len(verdicts)} claims {verdicts.count(True)} hold, {verdicts.count(False)} do not "
        f"hold, {verdicts.count(None)} are not decided"
    )


def long_form(claims: Iterable[Claim], power: Power | None = None) -> str:
    """Claims one after the other in Markdown, with everything there is to say."""
    lines: list[str] = []
    experiment = ""
    for claim in claims:
        if claim.experiment != experiment:
            experiment = claim.experiment
            lines += [f"## {experiment}", ""]
        known = (power or {}).get(claim.experiment, {}).get(claim.claim, "")
        parts = {
            "The paper": f"“{claim.paper}”" if claim.paper else "",
            "Decided by": claim.statistic,
            "Power": known,
            "Found": claim.figure,
            "Control": claim.control,
            "Verdict": f"**{claim.verdict}**",
        }
        lines += [f"### {claim.claim}", ""]
        lines += [f"- {name}: {text}" for name, text in parts.items() if text]
        lines.append("")
    return "\n".join(lines)


def short_table(claims: Iterable[Claim]) -> str:
    """Claims as a Markdown table with one short figure each."""
    rows = ((claim.experiment, claim.claim, claim.short, claim.emphasised) for claim in claims)
    lines = [
        " | ".join(cell.replace("|", "\\|") for cell in row)
        for row in (("experiment", "claim", "our figure", "verdict"), ("---",) * 4, *rows)
    ]
    return "".join(f"| {line} |\n" for line in lines)


def save_claims(claims: list[Claim], out: Path) -> list[Path]:
    """Write claims as JSON and as Markdown."""
    return [
        files.write(out / "claims.json", to_json(claims, indent=1)),
        files.write(out / "claims.md", long_form(claims)),
    ]


def load_claims(path: Path) -> list[Claim]:
    """Claims as `save_claims` wrote them."""
    return [Claim(**values) for values in json.loads(path.read_text(encoding="utf-8"))]


def to_json(claims: Iterable[Claim], indent: int | None = None) -> str:
    """Claims as text that goes into files and attributes."""
    return json.dumps([claim.as_dict() for claim in claims], indent=indent, ensure_ascii=False)
