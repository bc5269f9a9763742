"""What the pages have in common: templates, the policy that keeps a page to itself, the file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from circuits.lift import SphereLift
from circuits.parameters import CircuitParameters
from circuits.parts import gain_control, recruiting, restart
from circuits.storage import files
from circuits.storage.files import FileError

TEMPLATES = Path(__file__).with_name("templates")
START = b"<!doctype html>"


def write_page(
    out: Path,
    template: str,
    scripts: Sequence[str],
    styles: Sequence[str],
    **values: Any,
) -> Path:
    """Write a page made from a template, with scripts and style sheets of ours; returns its file.

    All other values are escaped where the template shows them.
    """
    code, style = [_own_text(name) for name in scripts], Markup().join(map(_own_text, styles))
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.tests |= values.pop("tests", {})
    page = environment.get_template(template).render(
        policy=_policy(code, style), style=style, scripts=code, **values
    )
    return files.write(out, page.encode(errors="replace"))


def require_page(out: Path) -> None:
    """Refuse to write over a file that is not a page, or where nothing can be written."""
    try:
        with out.open("rb") as file:
            is_page = file.read(len(START)).lower() == START
    except FileNotFoundError:
        files.require_folder(out.parent)
        return
    except OSError as error:
        raise FileError(f"cannot write {out}: {error.strerror or error}") from None
    if not is_page:
        raise FileError(f"{out} is not a page and is not written over: give another --out")


def scripted(parameters: CircuitParameters, lift: SphereLift) -> dict[str, Any]:
    """A circuit as the scripts take it (``derived`` in circuit.js): the names of the parameters,
    times in seconds, and what the rules hold fixed."""
    lift.alpha(parameters.tile_radius)  # refuses a radius that does not fit
    times = {name: getattr(parameters, f"{name}_") for name in ("dt", "tau_h", "tau_u", "tau_V")}
    fixed = {"FLOOR": gain_control.FLOOR, "SPARK": restart.SPARK, "TIE": recruiting.TIE}
    mu = {"mu": list(parameters.mu_per_readout)}
    return parameters.as_dict() | times | fixed | mu | lift.as_dict()


def _own_text(name: str) -> Markup:
    """A script or style sheet of ours, which goes into the page as it is."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def _policy(scripts: Sequence[Markup], style: Markup) -> str:
    """What the page may do: run these scripts, use this style, show images it contains."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; img-src data:; script-src {' '.join(map(digest, scripts))}; "
        f"style-src {digest(style)}; base-uri 'none'; form-action 'none'"
    )
