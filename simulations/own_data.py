"""A user's own stream: from a file to a circuit that suits it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from analysis.measures import accuracy
from circuits.engines.solvers import make_circuit
from circuits.errors import shown_path
from circuits.lift import FloatArray, SphereLift, as_labels
from circuits.parameters import CircuitParameters
from circuits.parts.perturbations import Perturbation
from circuits.spiking.parameters import SpikingParameters
from circuits.storage import files, results
from circuits.storage.files import FileError
from circuits.storage.saved_circuit import KIND
from simulations.experiments import EXPERIMENTS
from simulations.own_files import load_points

SNAPSHOT_BYTES = 256 * 2**20
"""What the snapshots of a run may take: those of every point, unless there are very many."""


@dataclass(frozen=True)
class OwnStream:
    """Points, labels, what is known of their classes, and the circuit to present them to."""

    points: FloatArray
    labels: FloatArray
    parameters: CircuitParameters
    lift: SphereLift
    classes: FloatArray | None
    """-1, +1, or 0 where unknown; the circuit does not see them."""
    mapping: dict[str, int]
    """Which class of the file became which number."""
    columns: list[str]
    """Names of the coordinates; empty if they have none."""


def prepare(
    path: Path,
    changes: dict[str, Any],
    label_column: str | None = None,
    class_column: str | None = None,
) -> OwnStream:
    """A stream from a file, a lift around it, and parameters: what is not given suits the data.

    What a user should know about how the file was read goes to stderr.
    """
    found = load_points(path, label_column, class_column)
    for note in found.notes:
        print(f"{path}: {note}", file=sys.stderr)
    points, labels = found.points, found.labels
    changes = dict(changes)
    columns = labels.shape[1] if labels is not None and labels.ndim == 2 else 1
    changes.setdefault("n_readouts", columns)
    parameters = CircuitParameters.for_points(points, **changes)
    return OwnStream(
        points,
        as_labels(labels, len(points), parameters.n_readouts),
        parameters,
        SphereLift.around(points),
        found.classes,
        found.mapping,
        found.columns,
    )


def target_for(path: Path, out: Path) -> Path:
    """Where the result of a file goes: ``points.nc`` for ``points.csv``, or ``points.csv.nc`` where
    that (or the place of the circuit beside it) is taken by something else, or would be by an
    experiment."""
    kind = _kind(path)
    short, long = out / f"{path.stem}.nc", out / f"{path.name}.nc"
    for target in (long,) if path.stem in EXPERIMENTS else (short, long):
        beside = circuit_beside(target)
        if results.is_free(target, kind, path) and results.is_free(beside, KIND, path):
            return target
    raise FileError(
        f"{shown_path(long)} is not a result of {shown_path(path)} and is not written over: give "
        "another --out"
    )


def circuit_beside(result: Path) -> Path:
    """Where the circuit goes that has made a result: ``points-circuit.nc``."""
    return result.with_name(f"{result.stem}-circuit.nc")


def _kind(path: Path) -> str:
    """Files of one name in other folders are others."""
    folder = hashlib.sha256(os.fsencode(path.resolve().parent)).hexdigest()[:8]
    return f"data {shown_path(path.name)} of folder {folder}"


def run_file(
    path: Path,
    stream: OwnStream,
    engine: str,
    out: Path,
    spiking: SpikingParameters | None = None,
    seed: int = 0,
    perturbations: Iterable[Perturbation] = (),
) -> None:
    """Present the stream to a circuit, or to its spiking twin with a seed; save the result, and
    print what happened."""
    circuit = make_circuit(
        *(engine, stream.parameters, stream.lift),
        spiking=spiking,
        seed=seed,
        perturbations=perturbations,
    )
    files.require_folder(out)
    target = target_for(path, out)
    every = snapshot_interval(stream)
    result = circuit.run(stream.points, stream.labels, snapshot_every=every, progress=True)
    result = annotate(result, stream).assign_attrs(
        experiment=f"data {shown_path(path.name)}",
        kind=_kind(path),
        code=results.code_revision(),
    )
    saved = results.save(result, target)
    known = {"label_mapping": stream.mapping, "columns": stream.columns}
    about = {name: json.dumps(value) for name, value in known.items() if value}
    kept = circuit.save(circuit_beside(target), **about)
    p = stream.parameters
    print(f"{len(stream.points)} points, {int((stream.labels != 0).any(axis=1).sum())} labelled")
    if stream.mapping:
        print("classes " + ", ".join(f"{k} is {v:+d}" for k, v in stream.mapping.items()))
    used = int((result["recruited"].to_numpy() >= 0).sum())
    print(f"{used} of {p.n_tiles} tiles in use, radius {p.tile_radius:g}, lift {stream.lift}")
    covered = f"{1 - result.attrs['uncovered_share']:.2%}"
    if spiking is None:
        settled = f"{1 - result.attrs['unsettled_share']:.2%} of presentations settled"
        print(f"{settled}, {covered} covered by a tile")
    else:
        from analysis.likeness import firing_rates  # imports matplotlib

        print(f"{covered} of presentations covered by a tile")
        print(firing_rates(result))
    if result.attrs["lost_labels"]:
        print(f"{result.attrs['lost_labels']} labels lost on points that no tile responded to")
    if stream.classes is not None:
        print(score(result))
    print(f"wrote {saved}; 'manifold-circuit plot {saved}' shows it")
    print(f"wrote {kept}; 'manifold-circuit predict {kept} --data FILE' lets it answer")


def snapshot_interval(stream: OwnStream) -> int:
    """How often weights can be stored without taking more than `SNAPSHOT_BYTES`."""
    p = stream.parameters
    weights = 8 * p.n_tiles * (stream.lift.n_inputs + 1 + p.n_readouts)
    return max(1, math.ceil(len(stream.points) * weights / SNAPSHOT_BYTES))


def annotate(result: xr.Dataset, stream: OwnStream) -> xr.Dataset:
    """Add to a run what its file knows: classes, and what they are called."""
    if stream.classes is not None:
        result = result.assign(classes=("presentation", stream.classes.astype(np.int8)))
    if stream.mapping:
        result = result.assign_attrs(label_mapping=json.dumps(stream.mapping))
    return result


def score(result: xr.Dataset) -> str:
    """How often the circuit was right when it had seen half of the stream, as a sentence.

    Counted are points whose class is known and was not shown as a label.
    """
    half = result.sizes["presentation"] // 2
    rest = result.isel(presentation=slice(half, None))
    y, classes = rest["y"].to_numpy(), rest["classes"].to_numpy()
    counted = (classes != 0) & (rest["labels"].to_numpy() == 0).all(axis=1)
    if not counted.any() or y.shape[1] != 1:
        return "accuracy unknown: no point of the second half has a class and no label"
    share = accuracy(y[counted, 0], classes[counted])
    return f"accuracy {share:.4f} on {int(counted.sum())} unlabelled points of the second half"
