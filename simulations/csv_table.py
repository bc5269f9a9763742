"""A CSV file as a table of cells: separators, decimal marks, quotes, and whether it has a header.

What is not sure is refused: a first line that is a point must not be lost as a header, nor a
thousand be read as one.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
from dataclasses import dataclass, field
from typing import Any

from circuits.errors import InputError, listed, shown

MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "-nan", "NULL", "null", "None")
)
"""Cells that hold nothing."""

NOT_NAMES = frozenset(
    ("true", "false", "n.a.", "n.d.", "n/d", "nd", "n.k.", "unknown", "missing", "undefined")
)
"""Words (in lower case) that stand for values, so that a line with one is hardly a header."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]+")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}")


@dataclass
class CsvTable:
    """Columns of cells, their names, and the lines of the file that the rows come from."""

    names: list[str]
    columns: list[Any]
    """Text without white space around it, or numbers (of a file that has them as such)."""
    lines: list[int]
    separator: str = ""
    notes: list[str] = field(default_factory=list)


def number(cell: str) -> float | None:
    """What a cell says with a decimal point or a decimal comma; None if it is no number."""
    if _NUMBER.fullmatch(cell):
        return float(cell.replace(",", "."))
    if _INFINITE.fullmatch(cell):
        return float(cell)
    return None


def read_table(content: bytes) -> CsvTable:
    """The table in a CSV file."""
    text = _text(content)
    lines, rows, separator = _rows(text)
    width = len(rows[0])
    for line, row in zip(lines, rows, strict=True):
        if len(row) != width:
            cells = f"{len(row)} cell{'s' * (len(row) != 1)}"
            raise InputError(f"line {line} has {cells}, but line {lines[0]} has {width}")
    notes = []
    while width > 1 and not any(row[width - 1] for row in rows):
        width -= 1
    if width < len(rows[0]):
        notes.append("the last column is empty everywhere: it is left out")
        rows = [row[:width] for row in rows]
    names = [str(place) for place in range(1, width + 1)]
    if _is_header(rows, lines[0]):
        if any(number(cell) is not None for cell in rows[0]):
            notes.append(f"line {lines[0]} is read as names of columns, not as a point")
        names = [cell or name for cell, name in zip(rows[0], names, strict=True)]
        lines, rows = lines[1:], rows[1:]
    if not rows:
        raise InputError("it has a header but no points")
    return CsvTable(
        names, [list(cells) for cells in zip(*rows, strict=True)], lines, separator, notes
    )


def _text(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError("it is UTF-16 text: save it as UTF-8")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"line {line} is not UTF-8 text: save the file as UTF-8") from None
    # Marks of the byte order, wherever programs that joined files have left them.
    text = text.replace("\ufeff", "").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(f"line {line} holds a NUL character: this is not a text file")
    return text


def _rows(text: str) -> tuple[list[int], list[list[str]], str]:
    """Cells of every line that is not blank, the numbers of those lines, and the separator."""
    # Not ``splitlines``, which also breaks lines where no editor does.
    all_lines = text.split("\n")
    first = next((line for line in all_lines if line.strip()), "")
    outside_quotes = re.sub(r'"[^"]*"', "x", first)
    separator = next((mark for mark in ";\t" if mark in outside_quotes), ",")
    between = separator in outside_quotes.rstrip(f" {separator}")
    if separator != "," and "," in outside_quotes and not between:
        raise InputError(
            f"line {all_lines.index(first) + 1} has commas and ends in {separator!r}, so that "
            "either may separate: remove what the lines end in"
        )
    lines, rows = [], []
    for count, line in enumerate(all_lines, start=1):
        cells = _quoted(line, count, separator) if '"' in line else line.split(separator)
        cells = [cell.strip() for cell in cells]
        if any(cells):
            lines.append(count)
            rows.append(cells)
    if not rows:
        raise InputError("it is empty")
    return lines, rows, separator


def _quoted(line: str, count: int, separator: str) -> list[str]:
    """Cells of a line with quotes. A cell ends on its line: no number goes on on the next."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True, skipinitialspace=True))
    except csv.Error:
        raise InputError(
            f"line {count} has a quote that does not end a cell on that line: {shown(line)}"
        ) from None


def _is_header(rows: list[list[str]], line: int) -> bool:
    """Whether the first row is one of names: all text, or beside text the counted columns.

    A row with numbers is a point even if it has text, a class that may never recur.
    """
    first = rows[0]
    kinds = [_kind(cell) for cell in first]
    if "text" not in kinds or "value" in kinds:
        return False
    if "number" not in kinds:
        # The column that counts rows often has no name.
        nameless = [place for place, kind in enumerate(kinds) if kind == "empty" and place > 0]
        if nameless:
            raise InputError(
                f"line {line} has text, but column {nameless[0] + 1} is empty: name every column "
                "if it is a header, fill in every number if it is a point"
            )
        return True
    counted = any(
        all(
            kind == "text" or cell == str(place)
            for place, (cell, kind) in enumerate(zip(first, kinds, strict=True), start=start)
        )
        for start in (0, 1)
    )
    return counted and not any(
        any(row[place] == first[place] for row in rows[1:])
        for place, kind in enumerate(kinds)
        if kind == "text"
    )


def _kind(cell: str) -> str:
    """What a cell of the first line looks like: a "number", nothing ("empty"), "text" that can be
    a name, or some other "value", such as "?", "NA", "12 %" or "2020-01-01"."""
    if not cell:
        return "empty"
    if number(cell) is not None:
        return "number"
    letters = {mark for mark in cell if mark.isalpha()}
    measured = not cell[0].isalpha() and letters <= {"e", "E"}
    if measured or cell in MISSING or cell.lower() in NOT_NAMES or _HEXADECIMAL.fullmatch(cell):
        return "value"
    return "text"


def coordinates(table: CsvTable) -> list[Any]:
    """All columns as finite numbers, or an error that names the first cell that is none."""
    found = [_coordinate(table, place) for place in range(len(table.names))]
    _check_marks(table)
    return found


def _coordinate(table: CsvTable, place: int) -> Any:
    cells = table.columns[place]
    if not isinstance(cells, list):
        return cells
    try:
        values = list(map(float, cells))  # which also reads "1_000" and digits of other scripts
        joined = "".join(cells)
        if "_" not in joined and joined.isascii() and all(map(math.isfinite, values)):
            return values
    except ValueError:
        pass
    found = [number(cell) for cell in cells]
    if all(value is not None and math.isfinite(value) for value in found):
        return [value for value in found if value is not None]
    name = table.names[place]
    text = [
        cell
        for cell, value in zip(cells, found, strict=True)
        if value is None and cell not in MISSING
    ]
    if len(text) > len(cells) / 2:
        raise InputError(
            f"column {shown(name)} holds text such as {shown(text[0])}: points are numbers; if it "
            f"is a class, say --label-column {listed([name])}, or --class-column if it is only for "
            "scoring"
        )
    row = next(i for i, value in enumerate(found) if value is None or not math.isfinite(value))
    raise InputError(f"line {table.lines[row]}, column {shown(name)} {_complaint(cells[row])}")


def _complaint(cell: str) -> str:
    if cell == "":
        return "is empty"
    if number(cell) is not None:
        return f"holds {shown(cell)}, which is not a finite number"
    return f"holds {shown(cell)}, which is not a number"


def _check_marks(table: CsvTable) -> None:
    """Refuse a cell that may be thousands, such as 1,234, where the decimal mark is in doubt."""
    if not any(isinstance(cells, list) and "," in "".join(cells) for cells in table.columns):
        return
    marks: dict[str, list[tuple[int, str, str]]] = {",": [], ".": []}
    for name, cells in zip(table.names, table.columns, strict=True):
        for line, cell in zip(table.lines, cells, strict=True):
            for mark, places in marks.items():
                if mark in cell:
                    places.append((line, name, cell))
    doubtful = [at for places in marks.values() for at in places if _THOUSANDS.fullmatch(at[2])]
    clear = len(doubtful) < len(marks[","]) + len(marks["."])
    in_doubt = bool(marks["."]) or (table.separator == "," and not clear)
    if doubtful and in_doubt:
        line, name, cell = min(doubtful)
        raise InputError(
            f"line {line}, column {shown(name)}: {shown(cell)} may be a thousand or a decimal "
            "fraction, as other numbers have another mark: write all with a decimal point"
        )
