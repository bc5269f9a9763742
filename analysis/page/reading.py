"""What a folder of results holds: results, claims, pictures."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from PIL import Image

from analysis.holdings import damage, lacking
from analysis.kinds import FIGURES
from analysis.selection import first_repeat, seeds_of
from circuits.errors import CircuitError, shown_path
from circuits.lift import SphereLift
from circuits.parameters import CircuitParameters
from circuits.storage import results
from circuits.storage.files import FileError
from circuits.storage.saved_circuit import ANSWERS, KIND

EXPLORED = ("points", "labels", "h", "u", "y", "W_snapshots", "b_snapshots", "w_snapshots")
"""What a result must hold to be explored, besides the presentations of its snapshots."""

REPEAT = "repeat"
"""Dimension along which the results of several seeds are put together in one file."""

EXPERIMENTS = [name for figure in FIGURES.values() for name in figure.experiments]
"""The paper's experiments, in the order of its figures."""

MOST_CELLS = 10_000
"""A model with more cells of a kind than this is not described: a file may name any number."""

MOST_PIXELS, MOST_BYTES = 5 * 10**7, 5 * 10**7
"""Pictures that are larger are left out: a small file may ask for all the memory there is."""

MOST_LETTERS = 500
"""Of a text in a file, this much is shown."""

Claim = dict[str, Any]
"""A claim as it is stored: whether it ``holds`` (``None``: not decided), and text."""


def in_short(value: Any, most: int = MOST_LETTERS) -> str:
    """Anything that stands in a file as text, on one line and cut where it gets absurdly long."""
    try:
        text = re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", str(value))
    except RecursionError:
        return "nested too deep to be shown"
    return text if len(text) <= most else f"{text[:most]}…"


@dataclass(frozen=True)
class Skipped:
    """Something in a folder that the page leaves out, and why."""

    name: str
    """Path within the folder."""
    reason: str


@dataclass(frozen=True)
class Result:
    """What the page says of one result file; the arrays stay on disk."""

    path: Path
    name: str
    """Path within the folder."""
    attributes: dict[str, Any]
    sizes: dict[str, int]
    seeds: tuple[int, ...]
    snapshots: int = 0
    """How many presentations can be explored."""
    complete: bool = False
    """Whether the weights were kept after every presentation."""

    @property
    def experiment(self) -> str:
        """The experiment's name, or that of the file."""
        name = Path(self.name).parts[0].removesuffix(".nc")
        return in_short(self.attributes.get("experiment", name)) or name

    @property
    def title(self) -> str:
        """What the experiment shows, or its name in words."""
        words = self.experiment.replace("-", " ")
        return in_short(self.attributes.get("title", words[:1].upper() + words[1:]))

    @property
    def is_spiking(self) -> bool:
        """Whether its cells spike; the page settles on rates alone."""
        return "spiking" in self.attributes

    @property
    def presentations(self) -> int:
        """Points that were shown, in all repeats."""
        return self.sizes.get("presentation", 0) * self.sizes.get(REPEAT, 1)

    @property
    def seconds(self) -> float | None:
        """How long the run took, if it says so."""
        value = self.attributes.get("seconds")
        if not isinstance(value, int | float | np.integer | np.floating):
            return None
        return float(value) if math.isfinite(value) and value >= 0 else None

    @property
    def claims(self) -> list[Claim]:
        """The claims that were checked on this result."""
        found = self._parsed("claims")
        return found if _are_claims(found) else []

    def text(self, attribute: str) -> str:
        """An attribute as text, or that it was not recorded."""
        return in_short(self.attributes.get(attribute, "not recorded"))

    def mapping(self, attribute: str) -> dict[str, Any]:
        """An attribute that holds a JSON object; empty if there is none."""
        value = self._parsed(attribute)
        return value if isinstance(value, dict) else {}

    def _parsed(self, attribute: str) -> Any:
        try:
            return json.loads(self.attributes[attribute])
        except (KeyError, TypeError, ValueError, RecursionError):
            return None

    def model(self) -> tuple[CircuitParameters, SphereLift] | None:
        """Parameters and front end of the circuit that made the result, if it says so.

        None for a circuit that was changed: the page settles by the paper's equations.
        """
        if self.mapping("model_changes"):
            return None
        values = self.mapping("parameters")
        try:
            parameters, lift = CircuitParameters(**values), SphereLift(**self.mapping("lift"))
        except (CircuitError, TypeError, ValueError):
            return None
        sizes = (parameters.n_tiles, parameters.n_interneurons, parameters.n_readouts)
        return (parameters, lift) if values and max(sizes) <= MOST_CELLS else None


def read_results(directory: Path) -> tuple[list[Result], list[Skipped]]:
    """The results in a folder, the paper's experiments first, and the files that are none.

    Circuits and their answers are no results of runs, and nothing to complain of; nor are runs that
    are kept for a sweep.
    """
    found, skipped, sweeps = list[Result](), list[Skipped](), list[Skipped]()
    for path in sorted([*directory.glob("*.nc"), *directory.glob("*/*.nc")], key=_natural):
        name = in_short(shown_path(path.relative_to(directory).as_posix()))
        try:
            with results.opened(path) as dataset:
                kind = str(dataset.attrs.get("kind"))
                if kind.startswith("sweep "):
                    sweeps.append(Skipped(name, "is a sweep: 'manifold-circuit plot' draws it"))
                elif kind not in (KIND, ANSWERS) and not kind.startswith("runs "):
                    found.append(_look_at(dataset, path, name))
        except FileError as error:
            skipped.append(Skipped(name, str(error).removeprefix(f"{path} ")))
        except Exception as error:  # whatever a file of any content makes a reader raise
            skipped.append(Skipped(name, f"cannot be read ({reason_of(error)})"))
    if not found:
        broken = f" ({', '.join(file.name for file in skipped)} could not be read)" * bool(skipped)
        broken += "".join(f" ({file.name} {file.reason})" for file in sweeps)
        raise FileError(f"there is no result (a .nc file) in {directory} to report on{broken}")
    return sorted(found, key=lambda result: _place(result.experiment, EXPERIMENTS)), [
        *skipped,
        *sweeps,
    ]


def reason_of(error: Exception) -> str:
    """What an error says, on one line."""
    return in_short(str(error).strip().partition("\n")[0] or type(error).__name__)


def _natural(path: Path) -> list[Any]:
    """Sorts seed-2 before seed-10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.as_posix())]


def _place(name: str, known: Sequence[str]) -> int:
    """Sorts known names in their order, and others after them."""
    return known.index(name) if name in known else len(known)


def _look_at(dataset: xr.Dataset, path: Path, name: str) -> Result:
    sizes = {str(key): int(size) for key, size in dataset.sizes.items()}
    found = Result(path, name, dict(dataset.attrs), sizes, tuple(seeds_of(dataset)))
    needed = (*EXPLORED, "snapshot_presentation")
    if lacking(dataset, needed):
        return found
    if wrong := damage(dataset, needed):
        raise FileError(f"is damaged: {wrong}")
    if found.model() is None or found.is_spiking:
        return found
    one = first_repeat(dataset)
    count = sizes["presentation"]
    kept = one["snapshot_presentation"].values
    return replace(
        found,
        snapshots=int((kept + 1 < count).sum()),
        complete=count > 1 and np.array_equal(kept, np.arange(count)),
    )


def without_merged(found: Sequence[Result]) -> list[Result]:
    """Without files that put together others which are there: no run counts twice."""
    alone = {result.experiment for result in found if REPEAT not in result.sizes}
    return [r for r in found if REPEAT not in r.sizes or r.experiment not in alone]


def read_claims(directory: Path, found: Iterable[Result]) -> list[Claim]:
    """All claims in a folder, those of one experiment together.

    Those that a result carries were checked on it and count; those in ``claims.json`` count for
    the experiments of which no result carries any.
    """
    by_experiment: dict[str, list[Claim]] = {}
    for claim in _listed_claims(directory / "claims.json"):
        by_experiment.setdefault(str(claim.get("experiment", "")), []).append(claim)
    by_experiment |= {
        result.experiment: [{"experiment": result.experiment} | claim for claim in result.claims]
        for result in found
        if result.claims
    }
    return [claim for claims in by_experiment.values() for claim in claims]


def _listed_claims(path: Path) -> list[Claim]:
    if not os.path.lexists(path):
        return []
    try:
        _require_file(path)
        claims = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path} cannot be read as JSON: {error}") from None
    if not _are_claims(claims):
        raise FileError(f"{path} must hold a list of claims, each an object")
    return list(claims)


def _are_claims(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(claim, dict) for claim in value)


@dataclass(frozen=True)
class Picture:
    """A figure with its caption; without a source if it could not be read."""

    name: str
    source: str = ""
    width: int = 0
    height: int = 0
    caption: str = ""

    @property
    def alternative(self) -> str:
        """What it shows, in a few words."""
        return self.caption.split(". ")[0] or self.name


def read_pictures(directory: Path) -> list[Picture]:
    """The figures of a folder: the paper's in the paper's order, then the others by name."""
    files = [*directory.glob("*.png"), *(directory / "figures").glob("*.png")]
    files.sort(key=lambda file: (_place(file.stem, list(FIGURES)), _natural(file)))
    return [_picture(file) for file in files]


def _require_file(path: Path) -> None:
    """Refuse what is not a file: a pipe could keep its reader waiting for ever."""
    if not path.is_file():
        raise FileError("it is not a file")


def _picture(file: Path) -> Picture:
    name = in_short(shown_path(file.name))
    try:
        _require_file(file)
        if file.stat().st_size > MOST_BYTES:
            return Picture(name)
        data = file.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is large: what is too large is refused below
            image = Image.open(BytesIO(data), formats=["PNG"])
        with image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                return Picture(name)
            image.load()
            caption = str(image.info.get("Description", "")).strip()
    except Exception:  # whatever a file of any content makes a reader raise
        return Picture(name)
    source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return Picture(name.removesuffix(".png"), source, width, height, caption)
