"""Lines of Brian2 equations: which variable each declares, and of what kind it is."""

from __future__ import annotations

import re
from typing import NamedTuple

from circuits.errors import ParameterError

LINE = re.compile(r"\s*(?:d(?=\w+\s*/dt))?(\w+)\s*(/dt)?\s*(=[^:#]*)?:[^(#]*(?:\(([^)#]*)\))?")
ASSIGNED = re.compile(r"^\s*(\w+)\s*([-+*/]?)=(.*)$", re.MULTILINE)
"""A statement: the variable, the operator of an augmented assignment, the value."""


class Line(NamedTuple):
    """A line of equations."""

    name: str
    text: str
    differential: bool
    derived: bool
    """A subexpression, a sum or a link: its value is not its own."""
    shared: bool
    about: str
    """Its comment."""


def lines_of(text: str) -> dict[str, Line]:
    """The lines of equations, by the variable that each of them declares."""
    found: dict[str, Line] = {}
    for row in filter(str.strip, text.splitlines()):
        match = LINE.match(row)
        if match is None:  # it goes on with the line before
            name = next(reversed(found), row)
            line = found.get(name, Line(row, "", False, True, False, ""))
            found[name] = line._replace(text=f"{line.text}\n{row.strip()}")
            continue
        name, differential, value, flags = match.groups()
        if name in found:
            raise ParameterError(f"{name} is declared twice, at last as {row.strip()}")
        flags = flags or ""
        derived = bool(value and not differential) or "linked" in flags
        about = row.partition("#")[2].strip()
        line = Line(name, row.strip(), bool(differential), derived, "shared" in flags, about)
        found[name] = line
    return found


def plain_text(text: str) -> str:
    """Text without blank lines and indentation."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def needs_start(code: str) -> set[str]:
    """Variables that statements compute from what they were before."""
    return {
        name
        for name, operator, value in ASSIGNED.findall(code)
        if operator or re.search(rf"\b{name}\b", value)
    }
