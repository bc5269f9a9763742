"""Writing the page: templates, the policy that keeps it to itself, the file."""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.describe import Code
from analysis.page import pieces
from analysis.page.explorer import explorer_data
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
from circuits import files
from circuits.files import FileError

TEMPLATES = Path(__file__).with_name("templates")
SCRIPTS = ("figures.js", "explorer.js", "spikes.js")
STYLE = "page.css"
START = b"<!doctype html>"


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
    _require_page(out)
    files.require_folder(out.parent)
    results, skipped = read_results(directory)
    counted = without_merged(results)
    claims, pictures = read_claims(directory, results), read_pictures(directory)
    skipped += [
        Skipped(picture.name, "is not a readable image")
        for picture in pictures
        if not picture.source
    ]
    explored, spikes = _explored(results, skipped), _spikes(results, skipped)
    scripts, style = [_own_text(name) for name in SCRIPTS], _own_text(STYLE)
    page = (
        _environment()
        .get_template("page.html")
        .render(
            policy=_policy(scripts, style),
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
            style=style,
            scripts=scripts,
        )
    )
    files.write(out, page.encode(errors="replace"))
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


def _environment() -> Environment:
    """Templates in which all that comes from a folder is escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["code"] = lambda cell: isinstance(cell, Code)
    environment.tests["verdict"] = lambda cell: isinstance(cell, pieces.Verdict)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    return environment


def _own_text(name: str) -> Markup:
    """A script or style sheet of ours, which goes into the page as it is."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def _policy(scripts: list[Markup], style: Markup) -> str:
    """What the page may do: run these scripts, use this style, show images it contains."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; img-src data:; script-src {' '.join(map(digest, scripts))}; "
        f"style-src {digest(style)}; base-uri 'none'; form-action 'none'"
    )


def _require_page(out: Path) -> None:
    """Refuse to write over a file that is not a page."""
    try:
        with out.open("rb") as file:
            is_page = file.read(len(START)).lower() == START
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"cannot write {out}: {error.strerror or error}") from None
    if not is_page:
        raise FileError(f"{out} is not a page and is not written over: give another --out")
