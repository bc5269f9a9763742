"""Tables as LaTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from analysis.describe.table import Code, Table

ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\symbol{36}",  # \$ takes a font that small installations lack
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}

BREAK = r"\allowbreak{}"

START = r"""\documentclass[a4paper]{article}
\usepackage{booktabs}
\usepackage{longtable}
\addtolength{\textwidth}{5cm}
\addtolength{\oddsidemargin}{-2.5cm}
\addtolength{\textheight}{4cm}
\addtolength{\topmargin}{-2cm}
\begin{document}
\section*{Model description}
"""
END = "\\end{document}\n"

LINE = 115
"""Characters of code that fit side by side into the width of the page."""


def to_latex(tables: Iterable[Table], *, document: bool = True) -> str:
    r"""The tables as a LaTeX document, or as tables to ``\input`` into one of your own.

    That one needs ``booktabs`` and ``longtable``.
    """
    body = "\n".join(map(_table, tables))
    return f"{START}{body}{END}" if document else body


def _table(table: Table) -> str:
    columns = "".join(
        rf"p{{\dimexpr {share:.3f}\linewidth-2\tabcolsep\relax}}" for share in _shares(table)
    )
    header = " & ".join(rf"\raggedright\textbf{{{_escape(name)}}}" for name in table.header)
    lines = [
        rf"\subsection*{{{_escape(table.title)}}}",
        r"{\footnotesize",
        rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        rf"{header} \tabularnewline",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        # \raggedright takes \\ for itself; \tabularnewline ends a row all the same.
        *(
            " & ".join(rf"\raggedright {_cell(cell)}" for cell in row) + r" \tabularnewline"
            for row in table.rows
        ),
        r"\end{longtable}}",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    if not isinstance(text, Code):
        return _escape(" ".join(text.split()))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return r"\newline ".join(rf"\texttt{{{_escape(line, BREAK)}}}" for line in lines)


def _escape(text: str, after_joints: str = "") -> str:
    """Text for LaTeX; in code, lines may break after the characters that join words."""
    return "".join(_character(c) + (after_joints if c in "_*/(,=" else "") for c in text)


def _character(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isascii():
        return character
    # A plain article has no glyph for most others: better their name than nothing.
    name = unicodedata.name(character, f"U+{ord(character):04X}")
    return name.rpartition(" ")[2].lower() if name.startswith("GREEK") else f"({name.lower()})"


def _shares(table: Table) -> list[float]:
    """Each column's share of the width: short text whole, of other text the longest word, and of
    the rest what the text wants."""
    columns: list[Sequence[str]] = list(zip(table.header, *table.rows, strict=True))
    words = [max(len(w) for c in column for w in re.split(r"[\s_*/(,=]", c)) for column in columns]
    wanted = [max(len(line) for c in column for line in c.split("\n")) for column in columns]
    least = [(w if w <= 10 else word) + 4 for word, w in zip(words, wanted, strict=True)]
    rest = max(LINE - sum(least), 0)
    extra = [max(min(want, 60) + 4 - low, 0) for want, low in zip(wanted, least, strict=True)]
    scale = rest / max(sum(extra), 1)
    widths = [low + scale * more for low, more in zip(least, extra, strict=True)]
    return [width / sum(widths) for width in widths]
