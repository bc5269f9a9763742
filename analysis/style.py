"""How figures look and how they are saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import MaxNLocator

from circuits.storage import files

STYLE = Path(__file__).with_name("manifold.mplstyle")

UPPER, LOWER, LABEL = "#0072B2", "#D55E00", "#000000"
"""Class -1, class +1, and what is said of labels."""

GREY = "0.75"

READOUT_MAP = LinearSegmentedColormap.from_list("classes", [UPPER, "#dddddd", LOWER])
"""Readouts and their weights, from class -1 over silence to class +1."""


@contextmanager
def figure_style() -> Iterator[None]:
    """The project's style, for the figures made inside; the user's own is left alone."""
    with mpl.rc_context(fname=STYLE):
        yield


def palette() -> list[str]:
    """The style's colours, whatever style the caller's own axes have."""
    with figure_style():
        return [
            f"#{color.lstrip('#')}" for color in mpl.rcParams["axes.prop_cycle"].by_key()["color"]
        ]


def whole_numbers(axis: Axis) -> None:
    """Ticks at whole numbers only, as many as there is room for, on an axis that counts."""
    axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def legend_beside(ax: Axes, *entries: Any, **options: Any) -> Legend:
    """A legend to the right of the axes, where it covers nothing."""
    return ax.legend(*entries, loc="center left", bbox_to_anchor=(1.01, 0.5), **options)


def save_figure(
    figure: Figure,
    path: Path,
    formats: tuple[str, ...] = ("png", "pdf"),
    *,
    title: str | None = None,
    text: str | None = None,
) -> list[Path]:
    """Save a figure under ``path`` with each suffix, title and text inside; returns the files."""
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Title": title, "Description": text},
        # Without a date the same results give the same file.
        "pdf": {"Title": title, "Subject": text, "CreationDate": None},
    }
    written = []
    with figure_style():
        for suffix in formats:
            known = metadata.get(suffix, {})
            # What is None is left out; only a date that is None has a meaning.
            kept = {k: v for k, v in known.items() if v is not None or k == "CreationDate"}
            content = BytesIO()
            figure.savefig(content, format=suffix, metadata=kept or None)
            file = path.with_name(f"{path.name}.{suffix}")
            written.append(files.write(file, content.getvalue()))
    return written
