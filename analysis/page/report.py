"""Writing the report: what a folder holds, laid out as a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from analysis.describe import Code
from analysis.page import pieces
from analysis.page.explorer import explorer_data
from analysis.page.layout import require_page, write_page
from analysis.page.reading import (
    Result,
    Skipped,
    read_claims,
    read_pictures,
    read_results,
    reason_of,
    without_merged,
)
from analysis.page.spikes import has_spikes, spikes_data
from circuits.storage.files import FileError

SCRIPTS = ("figures.js", "circuit.js", "drawing.js", "explorer.js", "spikes.js")
TESTS = {
    "code": lambda cell: isinstance(cell, Code),
    "verdict": lambda cell: isinstance(cell, pieces.Verdict),
}
"""What the templates ask about a cell of a table."""


def write_report(directory: Path, out: Path | None = None) -> Path:
    """Write the page for a folder of results; returns its file.

    What is in the folder and cannot be used is left out, and said in the page and on stderr.

    Parameters
    ----------
    directory
        Holds results (``*.nc``, ``*/*.nc``) and, if there are any, ``claims.json`` and
        ``figures/*.png``.
    out
        The HTML file; ``report.html`` in the folder by default. It is either whole or not there.
    """
    directory = Path(directory)
    out = directory / "report.html" if out is None else Path(out)
    if not directory.is_dir():
        raise FileError(f"there is no folder {directory} to report on")
    require_page(out)
    results, skipped = read_results(directory)
    counted = without_merged(results)
    claims, pictures = read_claims(directory, results), read_pictures(directory)
    skipped += [
        Skipped(picture.name, "is not a readable image")
        for picture in pictures
        if not picture.source
    ]
    explored, spikes = _explored(results, skipped), _spikes(results, skipped)
    write_page(
        out,
        "page.html",
        SCRIPTS,
        ("page.css",),
        tests=TESTS,
        title=pieces.title(counted),
        summary=pieces.summary(counted, directory.resolve().name),
        claims=pieces.claims_table(claims) if claims else None,
        explorer=explored[1] if explored else None,
        spikes=spikes,
        pictures=pictures,
        model=pieces.model_tables([*explored[:1], *results] if explored else results),
        provenance=pieces.provenance_tables(counted),
        skipped=skipped,
        times=pieces.times_table(counted),
    )
    if skipped:
        listed = "; ".join(f"{file.name} {file.reason}" for file in skipped)
        print(f"manifold-circuit: the page leaves out {listed}", file=sys.stderr)
    return out


def _explored(
    results: list[Result], skipped: list[Skipped]
) -> tuple[Result, dict[str, Any]] | None:
    """The first complete result, or the one with most snapshots, and its data for the explorer.

    One whose arrays do not fit together is skipped.
    """
    complete = [result for result in results if result.complete]
    others = [result for result in results if not result.complete]
    for result in [*complete, *sorted(others, key=lambda result: -result.snapshots)]:
        if not result.snapshots:
            break
        try:
            return result, explorer_data(result)
        except Exception as error:  # whatever a file of any content makes this raise
            reason = f"cannot be explored ({reason_of(error)})"
            skipped.append(Skipped(result.name, reason))
    return None


def _spikes(results: list[Result], skipped: list[Skipped]) -> dict[str, Any] | None:
    """The spikes of the first result that holds some; one whose arrays do not fit is skipped."""
    for result in filter(has_spikes, results):
        try:
            return spikes_data(result)
        except Exception as error:  # whatever a file of any content makes this raise
            reason = f"has spikes that cannot be shown ({reason_of(error)})"
            skipped.append(Skipped(result.name, reason))
    return None
