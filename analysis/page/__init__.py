"""One self-contained HTML page for a folder of results: claims, explorer, figures, model, origin.

Everything in the page comes from the folder, and is escaped. The page loads nothing: its policy
allows the one script and the one style sheet in it, by their hashes, and images it contains.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from circuits import rules
from circuits.errors import CircuitError
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.reference import ReferenceCircuit

PAGE = Path(__file__).with_name("templates")

EXPLORER_BYTES = 6 * 2**20
"""What the explorer's arrays may take before base64; a longer stream is thinned out evenly."""

EXPLORED = ("points", "labels", "h", "u", "y", "W_snapshots", "b_snapshots", "w_snapshots")
"""What a result must hold to be explored, besides the presentations of its snapshots."""

REPEAT = "repeat"
"""Dimension along which the results of several seeds are put together in one file."""

VERDICTS = {
    True: ("holds", "✓ holds"),
    False: ("fails", "✗ does not hold"),
    None: ("open", "– not decided"),
}
CLAIM_COLUMNS = {
    "experiment": "Experiment",
    "claim": "Claim",
    "paper": "In the paper",
    "figure": "Found here",
}


class ReportError(CircuitError, OSError):
    """A folder that cannot be reported on, or a page that cannot be written."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True)
class Result:
    """What the page says of one result file; the arrays stay on disk."""

    path: Path
    name: str
    """Path within the folder."""
    attributes: dict[str, Any]
    sizes: dict[str, int]
    seeds: tuple[int, ...]
    snapshots: int
    """How many presentations can be explored."""
    complete: bool
    """Whether the weights were kept after every presentation."""

    @property
    def experiment(self) -> str:
        """The experiment's name, or that of the file."""
        return str(self.attributes.get("experiment", Path(self.name).parts[0].removesuffix(".nc")))

    @property
    def presentations(self) -> int:
        """Points that were shown, in all repeats."""
        return self.sizes.get("presentation", 0) * self.sizes.get(REPEAT, 1)

    def mapping(self, attribute: str) -> dict[str, Any]:
        """An attribute that holds a JSON object; empty if there is none."""
        try:
            value = json.loads(self.attributes[attribute])
        except (KeyError, TypeError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def model(self) -> tuple[CircuitParameters, SphereLift] | None:
        """Parameters and front end of the circuit that made the result, if it says so."""
        parameters, lift = self.mapping("parameters"), self.mapping("lift")
        try:
            return (CircuitParameters(**parameters), SphereLift(**lift)) if parameters else None
        except (CircuitError, TypeError):
            return None


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
    out = directory / "report.html" if out is None else Path(out)
    results, unreadable = _results(directory)
    if not results:
        broken = f" ({', '.join(unreadable)} could not be read)" if unreadable else ""
        raise ReportError(f"there is no result (a .nc file) in {directory} to report on{broken}")
    counted = _counted(results)
    explored = next((result for result in results if result.complete), None) or max(
        results, key=lambda result: result.snapshots
    )
    explorer = _explorer_data(explored) if explored.snapshots else None
    figures = sorted(directory.glob("*.png")) + sorted((directory / "figures").glob("*.png"))
    script, style = _part("page.js"), _part("page.css")
    page = _fill(
        _part("page.html"),
        {
            "policy": _policy(script, style),
            "title": html.escape(f"{directory.resolve().name}: manifold-circuit report"),
            "folder": html.escape(directory.resolve().name),
            "summary": _summary(counted),
            "style": style,
            "claims": _claims(directory / "claims.json"),
            "explorer": _explorer(explorer),
            "figures": _figures(figures),
            "model": _model([explored, *results]),
            "provenance": _provenance(counted, unreadable),
            "times": _times(counted),
            "data": "" if explorer is None else _json_block("explorer-data", explorer),
            "script": script,
        },
    )
    _write(out, page)
    return out


def _write(out: Path, page: str) -> None:
    """Put the page in place in one go."""
    partial = out.with_name(f".{out.name}.{secrets.token_hex(4)}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("x", encoding="utf-8") as file:
                file.write(page)
            partial.replace(out)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ReportError(f"cannot write {out}: {error.strerror or error}") from error


# The folder


def _results(directory: Path) -> tuple[list[Result], list[str]]:
    """The results in a folder, and the names of files that are none."""
    if not directory.is_dir():
        raise ReportError(f"there is no folder {directory} to report on")
    results, unreadable = [], []
    for path in sorted([*directory.glob("*.nc"), *directory.glob("*/*.nc")], key=_natural):
        name = path.relative_to(directory).as_posix()
        try:
            with xr.open_dataset(path, engine="h5netcdf") as dataset:
                results.append(_look_at(dataset, path, name))
        except (OSError, ValueError, KeyError):
            unreadable.append(name)
    return results, unreadable


def _natural(path: Path) -> list[Any]:
    """Sorts seed-2 before seed-10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.as_posix())]


def _look_at(dataset: xr.Dataset, path: Path, name: str) -> Result:
    sizes = {str(key): int(size) for key, size in dataset.sizes.items()}
    seeds = dataset["seed"].values if "seed" in dataset else dataset.attrs.get("seed", ())
    seeds = np.ravel(seeds)
    found = Result(
        path,
        name,
        dict(dataset.attrs),
        sizes,
        tuple(map(int, seeds)) if np.issubdtype(seeds.dtype, np.number) else (),
        0,
        False,
    )
    one = _one_repeat(dataset)
    if (
        not {*EXPLORED, "snapshot_presentation"} <= set(map(str, one.variables))
        or one["W_snapshots"].dims != ("snapshot", "tile", "input")
        or one["h"].dims != ("presentation", "tile")
        or found.model() is None
    ):
        return found
    count = sizes["presentation"]
    kept = one["snapshot_presentation"].values
    return replace(
        found,
        snapshots=int((kept + 1 < count).sum()),
        complete=count > 1 and np.array_equal(kept, np.arange(count)),
    )


def _one_repeat(dataset: xr.Dataset) -> xr.Dataset:
    return dataset.isel({REPEAT: 0}) if REPEAT in dataset.sizes else dataset


def _counted(results: Sequence[Result]) -> list[Result]:
    """Without files that put together others which are there: no run counts twice."""
    alone = {result.experiment for result in results if REPEAT not in result.sizes}
    return [r for r in results if REPEAT not in r.sizes or r.experiment not in alone]


# Pieces of HTML


def _part(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Put values into {{name}}; in one pass, so that no value is looked into."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)


def _policy(script: str, style: str) -> str:
    """What the page may do: run this script, use this style, show images it contains."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; img-src data:; script-src 'sha256-{digest(script)}'; "
        f"style-src 'sha256-{digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _json_block(identifier: str, value: Any) -> str:
    """Data for the script, in a block that no text in it can end."""
    text = json.dumps(value, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{identifier}">{text}</script>'


def _text(value: Any) -> str:
    return value if isinstance(value, Markup) else html.escape(str(value))


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str) -> str:
    """A table that scrolls by itself where it is wider than the screen, by keyboard too."""
    # Roles are stated because narrow screens show rows as blocks, which would lose them.
    head = "".join(f'<th role="columnheader" scope="col">{_text(cell)}</th>' for cell in header)
    body = "\n".join(
        '<tr role="row">'
        + "".join(
            f'<td role="cell" data-title="{html.escape(title)}">{_text(cell)}</td>'
            for title, cell in zip(header, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(caption)}">'
        f'<table role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{body}\n</tbody></table></div>'
    )


def _details(title: str, content: str, is_open: bool = False) -> str:
    state = " open" if is_open else ""
    return f"<details{state}><summary>{html.escape(title)}</summary>\n{content}</details>"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# Sections


def _summary(results: Sequence[Result]) -> str:
    presentations = sum(result.presentations for result in results)
    experiments = sorted({result.experiment for result in results})
    return html.escape(
        f"{_plural(len(results), 'result')} of {', '.join(experiments)}; "
        f"{presentations:,} presentations in all."
    )


def _claims(path: Path) -> str:
    try:
        claims = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "<p>This folder holds no claims (claims.json).</p>"
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise ReportError(f"{path} must hold a list of claims, each an object")
    # What an experiment adds to a claim (a measured value, say) gets a column of its own.
    columns = {name: title for name, title in CLAIM_COLUMNS.items() if _any_has(claims, name)}
    for claim in claims:
        for name in claim:
            if name != "holds":
                columns.setdefault(name, str(name).replace("_", " ").capitalize())
    verdicts = [
        VERDICTS[holds if isinstance(holds := claim.get("holds"), bool) else None]
        for claim in claims
    ]
    rows = [
        [
            Markup(f'<span class="verdict {kind}">{text}</span>'),
            *(_claim_cell(claim.get(name)) for name in columns),
        ]
        for claim, (kind, text) in zip(claims, verdicts, strict=True)
    ]
    counts = [sum(kind == name for kind, _ in verdicts) for name in ("holds", "fails", "open")]
    names = ("hold", "do not hold", "are not decided")
    text = ", ".join(f"{count} {name}" for count, name in zip(counts, names, strict=True) if count)
    return f"<p>Of {_plural(len(claims), 'claim')}, {text}.</p>" + _table(
        ["Verdict", *columns.values()], rows, "Claims of the paper"
    )


def _any_has(claims: Iterable[Mapping[str, Any]], name: str) -> bool:
    return any(claim.get(name) not in (None, "") for claim in claims)


def _claim_cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _figures(files: Sequence[Path]) -> str:
    if not files:
        return "<p>This folder holds no figures (figures/*.png).</p>"
    return "\n".join(map(_figure, files))


def _figure(file: Path) -> str:
    from PIL import Image, UnidentifiedImageError

    try:
        data = file.read_bytes()
        with Image.open(file) as image:
            image.load()
            (width, height), caption = image.size, str(image.info.get("Description", "")).strip()
    except (OSError, UnidentifiedImageError, SyntaxError):
        return f"<p>{html.escape(file.name)} is not a readable image.</p>"
    alternative = caption.split(". ")[0] or file.stem
    return (
        f'<figure class="card">'
        f'<img src="data:image/png;base64,{base64.b64encode(data).decode()}" decoding="async" '
        f'width="{width}" height="{height}" alt="{html.escape(alternative)}">'
        f"<figcaption><strong>{html.escape(file.stem)}</strong> {html.escape(caption)}"
        "</figcaption></figure>"
    )


def _model(candidates: Iterable[Result]) -> str:
    found = next(((result, model) for result in candidates if (model := result.model())), None)
    if found is None:
        return "<p>No result in this folder says which circuit made it.</p>"
    result, (parameters, lift) = found
    # Brian2 takes seconds to import; only this section needs it.
    from analysis.describe import Code, tables
    from circuits import ManifoldCircuit

    def cell(text: str) -> str:
        if not isinstance(text, Code):
            return text
        return Markup(f"<code>{html.escape(text)}</code>" if text else "")

    parts = [
        _details(
            table.title,
            _table(table.header, [list(map(cell, row)) for row in table.rows], table.title),
            number == 0,
        )
        for number, table in enumerate(tables(ManifoldCircuit(parameters, lift, engine="numpy")))
    ]
    note = f"The circuit of {result.name}, read from its Brian2 objects (tables of Nordlie et al."
    return f"<p>{html.escape(note)} 2009). Other parameters are under Provenance.</p>" + "\n".join(
        parts
    )


def _groups(results: Iterable[Result], *keys: str) -> list[list[Result]]:
    """Results of one experiment that share these attributes, in order of appearance."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        key = (result.experiment, *(str(result.attributes.get(name)) for name in keys))
        groups.setdefault(key, []).append(result)
    return list(groups.values())


def _provenance(results: Sequence[Result], unreadable: Sequence[str]) -> str:
    shared = ("parameters", "lift", "settings", "engine", "versions", "code")
    rows, details = [], []
    for group in _groups(results, *shared):
        first = group[0]
        versions = first.mapping("versions")
        engine, code = (first.attributes.get(name, "not recorded") for name in ("engine", "code"))
        rows.append(
            [
                first.experiment,
                len(group),
                _seeds(group),
                engine,
                Markup(f"<code>{html.escape(str(code))}</code>"),
                ", ".join(f"{name} {version}" for name, version in versions.items())
                or "not recorded",
            ]
        )
        values = [
            (Markup(f"<code>{html.escape(prefix + name)}</code>"), _plain(value))
            for prefix, attribute in (("", "parameters"), ("lift.", "lift"), ("", "settings"))
            for name, value in first.mapping(attribute).items()
        ]
        if values:
            title = f"Parameters: {first.experiment}, {engine}, seeds {_seeds(group)}"
            details.append(_details(title, _table(("Name", "Value"), values, title)))
    header = ("Experiment", "Results", "Seeds", "Engine", "Code", "Versions")
    parts = [_table(header, rows, "Provenance"), *details]
    if unreadable:
        names = html.escape(", ".join(unreadable))
        parts.append(f"<p>Not readable as results: {names}.</p>")
    return "\n".join(parts)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seeds(group: Iterable[Result]) -> str:
    """Seeds as text, neighbours joined: 0-4, 7."""
    runs: list[list[int]] = []
    for seed in sorted({seed for result in group for seed in result.seeds}):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in runs]
    return ", ".join(texts) or "not recorded"


def _times(results: Sequence[Result]) -> str:
    rows = []
    for group in _groups(results, "engine"):
        timed = [result for result in group if _seconds(result) is not None]
        seconds = sum(_seconds(result) or 0.0 for result in timed)
        shown = sum(result.presentations for result in timed)
        rows.append(
            [
                group[0].experiment,
                group[0].attributes.get("engine", "not recorded"),
                len(group),
                f"{sum(result.presentations for result in group):,}",
                f"{seconds / len(timed):.3g} s" if timed else "not recorded",
                f"{seconds:.3g} s" if timed else "not recorded",
                f"{1e3 * seconds / shown:.3g} ms" if shown else "",
            ]
        )
    header = ("Experiment", "Engine", "Results", "Presentations", "Each", "In all", "Per point")
    return _table(header, rows, "Run times")


def _seconds(result: Result) -> float | None:
    value = result.attributes.get("seconds")
    return float(value) if isinstance(value, int | float | np.number) else None


# The explorer


def _explorer(data: Mapping[str, Any] | None) -> str:
    if data is None:
        return (
            "<p>No result in this folder holds snapshots of its weights, which the explorer "
            "needs: run the circuit with <code>snapshot_every=1</code>.</p>"
        )
    return _fill(_part("explorer.html"), {"about": html.escape(data["about"])})


def _explorer_data(result: Result) -> dict[str, Any]:
    """What the page needs to settle on any presentation again, by the circuit's own steps.

    Presentation t starts from the weights that the snapshot after t - 1 holds, so the first one
    cannot be shown. All arrays are float64: float32 would cost the check five digits.
    """
    model = result.model()
    assert model is not None
    parameters, lift = model
    circuit = ReferenceCircuit(parameters, lift)
    with xr.open_dataset(result.path, engine="h5netcdf") as stored:
        dataset = _one_repeat(stored)
        count = dataset.sizes["presentation"]
        after = dataset["snapshot_presentation"].values.astype(int)
        rows = np.flatnonzero(after + 1 < count)
        per_moment = 8 * sum(
            dataset[name].size // dataset.sizes["snapshot"] for name in EXPLORED[-3:]
        ) + 8 * (2 * parameters.n_tiles + 2 * parameters.n_interneurons + lift.n_inputs + 4)
        stride = max(1, math.ceil(rows.size * per_moment / EXPLORER_BYTES))
        rows = rows[::stride]
        moments = after[rows] + 1
        arrays: dict[str, Any] = {
            name: dataset[f"{name}_snapshots"].isel(snapshot=rows).values
            for name in ("W", "b", "w")
        }
        arrays |= {
            name: dataset[name].isel(presentation=moments).values for name in ("h", "u", "y")
        }
        points = dataset["points"].values.astype(float)
        labels = dataset["labels"].isel(presentation=moments).values
        classes = dataset["classes"].values if "classes" in dataset else None
        position = dataset["position"].values if "position" in dataset else None
        if not parameters.reset:
            # V is only recorded at the end of a run; where a presentation settled it is u h^T.
            arrays["hBefore"] = dataset["h"].isel(presentation=moments - 1).values
            arrays["uBefore"] = dataset["u"].isel(presentation=moments - 1).values
        final = dataset["W_snapshots"].isel(snapshot=-1).values
    axes = [0, 2] if lift.n_coordinates == 3 else [0, min(1, lift.n_coordinates - 1)]
    arrays["x"] = lift(points[moments])
    arrays["labels"] = labels
    if (
        classes is not None
        and classes.shape == (count,)
        and np.issubdtype(classes.dtype, np.number)
    ):
        arrays["classes"] = classes[moments]
    arrays["restH"], arrays["restU"], arrays["restV"] = rules.rest(
        parameters.n_tiles, parameters.n_interneurons, circuit.gain
    )
    every = (
        "every presentation" if stride == 1 and result.complete else f"{len(rows)} presentations"
    )
    engine = str(result.attributes.get("engine", "unknown"))
    about = (
        f"{result.name} ({result.experiment}, {engine} engine): {every} of {count} after the "
        "first, each settled again in this page from the recorded weights, by the circuit's own "
        "steps in double precision."
    )
    if not parameters.reset:
        about += (
            " This circuit carries its state over from one presentation to the next; V, which is "
            "not recorded, is taken to have settled."
        )
    return {
        "about": about,
        "engine": engine,
        "count": count,
        "moments": moments.tolist(),
        "gamma": circuit.gamma,
        "alpha": circuit.alpha,
        "mu": parameters.mu_per_readout,
        "readout": parameters.readout,
        "reset": parameters.reset,
        "steps": parameters.steps_per_presentation,
        "tiles": parameters.n_tiles,
        "interneurons": parameters.n_interneurons,
        "readouts": parameters.n_readouts,
        "inputs": lift.n_inputs,
        "center": lift.center.tolist(),
        "radius": lift.radius,
        "axes": axes,
        "order": _tile_order(final, lift, points, position, axes),
        "alongManifold": position is not None and position.shape == (count,),
        "arrays": {name: _encoded(value) for name, value in arrays.items()},
    }


def _tile_order(
    W: FloatArray, lift: SphereLift, points: FloatArray, position: Any, axes: Sequence[int]
) -> list[int]:
    """Tiles along the manifold, by the place of the nearest point; from left to right without."""
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    centers = lift.center + lift.radius * W[:, :-1] / np.where(norms > 0, norms, 1)
    if position is None or position.shape != (len(points),):
        return np.argsort(centers[:, axes[0]], kind="stable").tolist()  # type: ignore[no-any-return]
    nearest = [int(np.argmin(((points - center) ** 2).sum(axis=1))) for center in centers]
    return np.argsort(position[nearest], kind="stable").tolist()  # type: ignore[no-any-return]


def _encoded(array: Any) -> str:
    """Little-endian float64 in base64: what a Float64Array reads."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()
