"""What a circuit on disk answers to the points of a file."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from analysis.measures import accuracy
from circuits import ReferenceCircuit, SpikingCircuit
from circuits.base import Circuit
from circuits.dataset import versions
from circuits.engines.solvers import SOLVERS, check_engine
from circuits.errors import InputError, listed, shown_path
from circuits.lift import FloatArray
from circuits.storage import files, results
from circuits.storage.files import FileError
from circuits.storage.saved_circuit import ANSWERS, Kept, load_circuit
from simulations.own_files import Content, Names, class_mapping, read_content

ANSWER = re.compile(r"-?[0-9]\.[0-9]{16}e[+-][0-9]{2,3}")
"""A rate in a CSV file: 17 digits, with which it reads back as exactly the same number."""


@dataclass(frozen=True)
class Answers:
    """Readout rates (T, r) for points (T, d), and what the two signs are called, if anything."""

    points: FloatArray
    y: FloatArray
    mapping: dict[str, int]

    def classes(self) -> Names | None:
        """The names of the answers (T, r), "" where the rate is zero; None without names."""
        if not self.mapping:
            return None
        names = {number: name for name, number in self.mapping.items()}
        signs = np.sign(self.y).astype(int)
        found: Names = np.array([names.get(sign, "") for sign in signs.ravel()], dtype=object)
        return found.reshape(signs.shape)


@dataclass(frozen=True)
class Trained:
    """A circuit, and what is known of the file it has learned from."""

    circuit: Circuit
    mapping: dict[str, int]
    """Which class became which label; empty if they had no names."""
    columns: list[str]
    """Names of the coordinates; empty if they had none."""


def load_trained(path: Path, engine: str) -> Trained:
    """A circuit from a file, on an engine or on one of the two NumPy solvers, which have no cells
    that fire: of a spiking circuit they know the rates alone, and that is said on stderr."""
    if check_engine(engine) in SOLVERS:
        settling: Any = {"reference": "dynamics", "exact": "exact"}[engine]
        circuit: Circuit = ReferenceCircuit.load(path, settling=settling)
    else:
        circuit = load_circuit(path, engine)
    kept = Kept(path)
    if kept.is_spiking and not isinstance(circuit, SpikingCircuit):
        print(
            f"{shown_path(path)} holds a spiking circuit: engine {engine} answers with rates",
            file=sys.stderr,
        )
    attributes = kept.attributes
    try:
        mapping = dict(json.loads(attributes.get("label_mapping", "{}")))
        columns = [str(name) for name in json.loads(attributes.get("columns", "[]"))]
    except (TypeError, ValueError, RecursionError):
        mapping, columns = {"": 0}, []
    if mapping and sorted(mapping.values(), key=str) != [-1, 1]:
        raise FileError(f"{shown_path(path)} does not say what its labels are called")
    return Trained(circuit, mapping, columns)


def answer_file(
    source: Path,
    data: Path,
    engine: str,
    out: Path | None,
    label_column: str | None = None,
    class_column: str | None = None,
) -> None:
    """Let a circuit answer to the points of a file, write the answers, and print how it went."""
    target = data.with_name(f"{data.stem}-answers.csv") if out is None else out
    trained = load_trained(source, engine)
    circuit, mapping = trained.circuit, trained.mapping
    content = read_content(data, label_column, class_column)
    for note in content.notes:
        print(f"{shown_path(data)}: {note}", file=sys.stderr)
    _require_points(content, data, trained)
    known, words = _known(content, mapping, circuit.parameters.n_readouts)
    _require_free(target, data)
    files.require_folder(target.parent)
    print(f"preparing engine {circuit.engine}", file=sys.stderr)
    circuit.prepare()
    answers = Answers(content.points, circuit.predict(content.points, progress=True), mapping)
    if target.suffix.lower() == ".csv":
        files.write(target, as_csv(answers))
    else:
        about = {"circuit": shown_path(source), "data": shown_path(data), "engine": circuit.engine}
        results.save(as_dataset(answers).assign_attrs(about), target)
    silent = int((answers.y == 0).sum())
    if silent:
        weakly = ", or too weakly to be heard" if isinstance(circuit, SpikingCircuit) else ""
        print(
            f"{silent} of {answers.y.size} answers are zero: no tile that a label has reached "
            f"responds there{weakly}"
        )
    if known is not None and known.any():
        share = accuracy(answers.y[known != 0], known[known != 0])
        words = f"accuracy {share:.4f} on {int((known != 0).sum())} answers with a known class"
    if words:
        print(words)
    print(f"wrote {target}")


def _require_points(content: Content, data: Path, trained: Trained) -> None:
    """Refuse points that the circuit cannot be shown."""
    points, lift = content.points, trained.circuit.lift
    width, wanted = points.shape[1], lift.n_coordinates
    if width != wanted:
        more = "; a column of classes is named by --label-column" if width > wanted else ""
        raise InputError(
            f"{shown_path(data)} has {width} coordinate{'s' * (width != 1)} per point, and the "
            f"circuit takes {wanted}{more}"
        )
    here, there = content.columns, trained.columns
    if here and there and here != there:
        if sorted(here) == sorted(there):
            raise InputError(
                f"{shown_path(data)} has the columns {listed(here)}, and the circuit has learned "
                f"from {listed(there)}: put them in that order"
            )
        print(
            f"{shown_path(data)}: columns {listed(here)} are taken for {listed(there)}",
            file=sys.stderr,
        )
    try:
        lift(points)
    except InputError as error:
        reason = str(error).removesuffix("; use a larger radius")  # it has the one it has
        raise InputError(
            f"{shown_path(data)}: {reason}; use a circuit that has learned from points as far out"
        ) from None


def _known(
    content: Content, mapping: dict[str, int], n_readouts: int
) -> tuple[FloatArray | None, str]:
    """What a file says of the classes, as (T, r) of -1, +1, and 0 where unknown, or why nothing.

    Names are those of the circuit; if it has none, numbers stand for them as in `run --data`.
    """
    names = content.labels if content.classes is None else content.classes
    if names is None:
        return None, ""
    try:
        numbers = mapping or class_mapping([names])
    except InputError as error:
        return None, f"accuracy unknown: {error}"
    names = names if names.ndim == 2 else names[:, None]
    shape = (len(content.points), n_readouts)
    if names.shape not in (shape, (shape[0], 1)):
        return None, f"accuracy unknown: classes of the shape {names.shape} are not {shape}"
    found = {str(name) for name in names.ravel()} - {""}
    if mapping and not found <= set(mapping):
        others = listed(sorted(found - set(mapping)))
        print(f"classes that the circuit does not know are not counted: {others}", file=sys.stderr)
    known = np.array([numbers.get(name, 0) for name in names.ravel()], dtype=float)
    return np.broadcast_to(known.reshape(names.shape), shape), "accuracy unknown: no class is known"


def as_csv(answers: Answers) -> str:
    """A row per point: the rate of every readout, and what it is called."""
    classes = answers.classes()
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_header(answers.y.shape[1], classes is not None))
    for place, row in enumerate(answers.y):
        names = [] if classes is None else classes[place].tolist()
        table.writerow([f"{value:.16e}" for value in row] + names)
    return text.getvalue()


def _header(n_readouts: int, named: bool) -> list[str]:
    columns = ["y", "class"] if named else ["y"]
    if n_readouts == 1:
        return columns
    return [f"{name}_{readout}" for name in columns for readout in range(n_readouts)]


def as_dataset(answers: Answers) -> xr.Dataset:
    """The answers with the points they are to."""
    data: dict[str, Any] = {
        "points": (("point", "coordinate"), answers.points),
        "y": (("point", "readout"), answers.y),
    }
    attributes = {"kind": ANSWERS, "versions": json.dumps(versions())}
    classes = answers.classes()
    if classes is not None:
        data["class"] = (("point", "readout"), classes.astype(str))
        attributes["label_mapping"] = json.dumps(answers.mapping)
    return xr.Dataset(data, attrs=attributes | {"code": results.code_revision()})


def _require_free(target: Path, data: Path) -> None:
    """Refuse to write answers over anything but earlier ones, or over what they are made from."""
    where, suffix = shown_path(target), target.suffix.lower()
    if target.is_dir():
        raise FileError(f"{where} is a folder: give --out the name of a .csv or .nc file")
    if suffix not in (".csv", ".nc"):
        raise InputError(f"answers go into a .csv or .nc file, got {where}: give another --out")
    try:
        same = target.samefile(data)
    except OSError:
        same = False
    if suffix == ".csv":
        free = not os.path.lexists(target) or _holds_answers(target)
    else:
        free = results.is_free(target, ANSWERS)
    if same or not free:
        raise FileError(
            f"{where} does not hold answers that may be written over: give another --out"
        )


def _holds_answers(path: Path) -> bool:
    """Whether a CSV file is one of ours: by its header and its 17 digits."""
    if not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError, csv.Error):
        return False
    count = sum(name.startswith("y") for name in header)
    ours = count > 0 and header in (_header(count, False), _header(count, True))
    cells = [cell for row in rows for cell in row[:count]]
    return ours and bool(cells) and all(map(ANSWER.fullmatch, cells))
