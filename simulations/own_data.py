"""A user's own stream: from a file to a circuit that suits it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from circuits import results
from circuits.errors import InputError
from circuits.lift import FloatArray, SphereLift, as_labels, as_points, tile_radius_for
from circuits.parameters import CircuitParameters

LABEL_NAMES = ("label", "labels", "z")


@dataclass(frozen=True)
class OwnStream:
    """Points, labels, and the circuit to present them to."""

    points: FloatArray
    labels: FloatArray
    parameters: CircuitParameters
    lift: SphereLift


def load_points(path: Path) -> tuple[FloatArray, FloatArray | None]:
    """Points (T, d) and labels (T,) or (T, r) from a file; labels are None where it has none.

    CSV: a row per point; with a header, a column named ``label`` holds the labels. NPY: an array
    of points. NPZ and NetCDF: arrays ``points`` and, if there are any, ``labels``.
    """
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(f"there is no file {path}")
    try:
        if suffix == ".csv":
            points, labels = _from_csv(path)
        elif suffix == ".npy":
            points, labels = np.load(path), None
        elif suffix == ".npz":
            with np.load(path) as arrays:
                points, labels = arrays["points"], arrays.get("labels")
        elif suffix in (".nc", ".h5"):
            dataset = results.load(path)
            points = dataset["points"].to_numpy()
            labels = dataset["labels"].to_numpy() if "labels" in dataset else None
        else:
            raise InputError(f"{path} must be a .csv, .npy, .npz or .nc file")
    except KeyError as error:
        raise InputError(f"{path} has no array named {error}") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return as_points(points), None if labels is None else np.asarray(labels, dtype=float)


def _from_csv(path: Path) -> tuple[Any, Any]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise ValueError("it is empty")
    header: list[str] = []
    try:
        [float(cell) for cell in rows[0]]
    except ValueError:
        header = [name.strip().lower() for name in rows.pop(0)]
    for number, row in enumerate(rows, 2 if header else 1):
        if len(row) != len(rows[0]):
            raise ValueError(f"line {number} has {len(row)} cells, others have {len(rows[0])}")
    values = np.array(rows, dtype=float)
    place = next((i for i, name in enumerate(header) if name in LABEL_NAMES), None)
    if place is None:
        return values, None
    return np.delete(values, place, axis=1), values[:, place]


def prepare(path: Path, changes: dict[str, Any]) -> OwnStream:
    """A stream from a file, a lift around it, and parameters: what is not given suits the data."""
    points, labels = load_points(path)
    changes = dict(changes)
    columns = labels.shape[1] if labels is not None and labels.ndim == 2 else 1
    changes.setdefault("n_readouts", columns)
    distinct = len(np.unique(points, axis=0))
    changes.setdefault("n_tiles", min(CircuitParameters().n_tiles, distinct))
    parameters = CircuitParameters(**changes)
    if "tile_radius" not in changes:
        radius = tile_radius_for(points, parameters.n_tiles)
        parameters = parameters.replace(tile_radius=float(f"{radius:.6g}"))
    return OwnStream(
        points,
        as_labels(labels, len(points), parameters.n_readouts),
        parameters,
        SphereLift.around(points),
    )
