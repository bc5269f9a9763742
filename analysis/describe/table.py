"""A table of text, whatever it will be written as."""

from __future__ import annotations

from dataclasses import dataclass


class Code(str):
    """Text that is set as code."""

    __slots__ = ()


@dataclass(frozen=True)
class Table:
    """A table of text; cells that are `Code` are set as code."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"{self.title}: {len(self.header)} columns, but a row {row}")
