"""Tables as GitHub Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from analysis.describe.table import Code, Table

SPECIAL = re.compile(r"[\\`*|]|\b_|_\b|<(?=[A-Za-z/!?])|\](?=[(\[])")
"""What would not stand for itself in a table's cell; an underscore within a word does."""


def to_markdown(tables: Iterable[Table]) -> str:
    """The tables as GitHub Markdown, a heading over each."""
    parts = ["# Model description"]
    for table in tables:
        lines = [_row(table.header), _row(["---"] * len(table.header))]
        lines += [_row([_cell(cell) for cell in row]) for row in table.rows]
        parts += [f"## {_cell(table.title)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    if not isinstance(text, Code):
        return " ".join(SPECIAL.sub(r"\\\g<0>", text).split())
    # A code span ends at as many backticks as it began with; a cell ends at any bare pipe.
    spans = []
    for line in text.replace("|", "\\|").splitlines():
        fence, pad = ("``", " ") if "`" in line else ("`", "")
        spans.append(f"{fence}{pad}{line.strip()}{pad}{fence}" if line.strip() else "")
    return "<br>".join(span for span in spans if span)
