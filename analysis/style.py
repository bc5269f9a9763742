"""How figures look and how they are saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("manifold.mplstyle")

UPPER, LOWER, LABEL = "#0072B2", "#D55E00", "#000000"
"""Class -1, class +1, and labelled points."""


@contextmanager
def figure_style() -> Iterator[None]:
    """The project's style, for the figures made inside; the user's own is left alone."""
    with mpl.rc_context(fname=STYLE):
        yield


def save_figure(
    figure: Figure, path: Path, formats: tuple[str, ...] = ("png", "pdf")
) -> list[Path]:
    """Save a figure under ``path`` with each suffix; returns the files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_name(f"{path.name}.{suffix}") for suffix in formats]
    with figure_style():
        for file in files:
            figure.savefig(file)
    return files
