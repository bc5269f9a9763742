"""Writing the page: templates, the policy that keeps it to itself, the file."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.describe import Code
from analysis.page import pieces
from analysis.page.explorer import explorer_data
from analysis.page.reading import (
    read_claims,
    read_pictures,
    read_results,
    without_merged,
)
from circuits import files
from circuits.files import FileError

TEMPLATES = Path(__file__).with_name("templates")
SCRIPTS = ("figures.js", "explorer.js")
STYLE = "page.css"
START = b"<!doctype html>"


def write_report(directory: Path, out: Path | None = None) -> Path:
    """Write the page for a folder of results; returns its file.

    Parameters
    ----------
    directory
        Holds results (``*.nc``, ``*/*.nc``) and, if there are any, ``claims.json`` and
        ``figures/*.png``.
    out
        The HTML file; ``report.html`` in the folder by default. It is either whole or not there.
    """
    directory = Path(directory)
    results, unreadable = read_results(directory)
    counted = without_merged(results)
    explored = next((result for result in results if result.complete), None) or max(
        results, key=lambda result: result.snapshots
    )
    claims = read_claims(directory, results)
    scripts, style = [_own_text(name) for name in SCRIPTS], _own_text(STYLE)
    page = (
        _environment()
        .get_template("page.html")
        .render(
            policy=_policy(scripts, style),
            title=pieces.title(counted),
            summary=pieces.summary(counted, directory.resolve().name),
            claims=pieces.claims_table(claims) if claims else None,
            explorer=explorer_data(explored) if explored.snapshots else None,
            pictures=read_pictures(directory),
            model=pieces.model_tables([explored, *results]),
            provenance=pieces.provenance_tables(counted),
            unreadable=unreadable,
            times=pieces.times_table(counted),
            style=style,
            scripts=scripts,
        )
    )
    out = directory / "report.html" if out is None else Path(out)
    _require_page(out)
    return files.write(out, page.encode(errors="replace"))


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
