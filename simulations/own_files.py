"""A user's file of points: CSV, NPY, NPZ or NetCDF, with any two classes as labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circuits.checks import read_bytes, require_file
from circuits.errors import InputError, listed, shown, shown_path
from circuits.lift import FloatArray, as_points
from circuits.storage import results
from simulations.csv_table import MISSING, CsvTable, coordinates, number, read_table

LABEL_NAMES = ("label", "labels")
CLASS_NAMES = ("class", "classes")
TELLING_NAMES = (*LABEL_NAMES, *CLASS_NAMES, "target", "species", "category", "group")
"""Columns of these names are classes, most likely."""

FEW = 10
"""So few different whole numbers look like classes, not like measurements."""

Names = NDArray[np.object_]
"""Names of classes as text, "" where there is none."""


@dataclass
class Content:
    """What a file holds: points, and what it says of their classes, by name."""

    points: FloatArray
    labels: Names | None = None
    classes: Names | None = None
    notes: list[str] = field(default_factory=list)
    """What a user should know about how the file was read."""
    columns: list[str] = field(default_factory=list)
    """Names of the coordinates; empty if they have none."""


@dataclass(frozen=True)
class OwnPoints:
    """Points (T, d), labels (T,) or (T, r) and classes (T,), of -1, +1, and 0 where unknown."""

    points: FloatArray
    labels: FloatArray | None
    classes: FloatArray | None
    mapping: dict[str, int]
    """Which class of the file became which number; empty if they were -1, 0 and +1."""
    notes: list[str]
    columns: list[str]
    """Names of the coordinates; empty if they have none."""


def load_points(
    path: Path, label_column: str | None = None, class_column: str | None = None
) -> OwnPoints:
    """What a file holds, with numbers for the names of its classes; see `read_content`."""
    content = read_content(path, label_column, class_column)
    with _named(path):
        return _numbered(content)


def read_content(
    path: Path, label_column: str | None = None, class_column: str | None = None
) -> Content:
    """Read a file.

    CSV: a row per point. With a header, ``label_column`` names the column that the circuit is
    shown as labels (default: ``label``, if there is one) and ``class_column`` one that is only for
    scoring (default: ``class``, if there are labels besides); without one they are counted from 1.
    An empty cell (or NA, nan, None, ...) is an unlabelled point. NPY: the same, without a header.
    NPZ and NetCDF: arrays ``points``, ``labels`` and ``classes``, or those that are named.
    """
    path = Path(path)
    readers: dict[str, Any] = {".csv": _csv, ".npy": _npy, ".npz": _npz, ".nc": _nc, ".h5": _nc}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{shown_path(path)} must be a .csv, .npy, .npz or .nc file")
    require_file(path)
    with _named(path):
        found: Content = reader(path, label_column, class_column)
    return found


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Around work on what is in a file: an error says which."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{shown_path(path)}: {error}") from None


def _numbered(content: Content) -> OwnPoints:
    """What a file holds, with numbers for the names of classes."""
    given = [names for names in (content.labels, content.classes) if names is not None]
    mapping = class_mapping(given)

    def numbers(names: Names | None) -> FloatArray | None:
        if names is None:
            return None
        found = np.array([mapping.get(name, 0) for name in names.ravel()], dtype=float)
        return found.reshape(names.shape)

    same = all(name == str(number) for name, number in mapping.items())
    return OwnPoints(
        content.points,
        numbers(content.labels),
        numbers(content.classes),
        {} if same else mapping,
        content.notes,
        content.columns,
    )


def class_names(values: ArrayLike) -> Names:
    """Cells or numbers as names: "1.0" and 1 are the same class, NaN and "" are none."""
    array = np.asarray(values)
    if array.dtype.kind not in "biufUSO":
        raise InputError(f"classes must be numbers or names, got {array.dtype}")
    found: Names = np.array([_class_name(value) for value in array.ravel().tolist()], dtype=object)
    return found.reshape(array.shape)


def _class_name(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    text = text.strip()
    if text in MISSING:
        return ""
    amount = number(text)
    if amount is None or not np.isfinite(amount):
        return text
    # Whole numbers keep all their digits: two long identifiers are two classes.
    return str(int(text)) if text.lstrip("+-").isdigit() else f"{amount:.15g}"


def class_mapping(columns: list[Names]) -> dict[str, int]:
    """Which number stands for which name, in columns that speak of the same classes.

    -1, 0 (silent) and +1 stay what they are. Any other two names, 0 and 1 among them, become -1
    and +1 in their order.
    """
    found = {name for column in columns for name in column.ravel()} - {""}
    if found <= {"-1", "0", "1"} and found != {"0", "1"}:
        return {name: int(name) for name in sorted(found, key=int)}

    def order(name: str) -> tuple[float, str]:
        try:
            return float(name), name
        except ValueError:
            return np.inf, name

    names = sorted(found, key=order)
    if len(names) != 2:
        some = listed(names, FEW)
        raise InputError(
            "labels, and classes to score them by, must name the same two classes (or be -1, 0 "
            f"and +1), but there "
            f"{'is 1' if len(names) == 1 else f'are {len(names)}'}: {some}"
        )
    return {names[0]: -1, names[1]: 1}


def _csv(path: Path, label_column: str | None, class_column: str | None) -> Content:
    return _from_table(read_table(read_bytes(path)), label_column, class_column)


def _from_table(table: CsvTable, label_column: str | None, class_column: str | None) -> Content:
    """Columns to coordinates, labels and classes."""
    label = _find(table.names, label_column, LABEL_NAMES, "--label-column")
    usual = tuple(name for name in CLASS_NAMES if label and name != label.lower())
    scored = _find(table.names, class_column, usual, "--class-column")
    if label is not None and label == scored:
        raise InputError(
            f"column {shown(label)} is given as labels and as classes: what the circuit is shown "
            "cannot be what it is scored by"
        )
    columns = dict(zip(table.names, table.columns, strict=True))
    names = [name for name in table.names if name not in (label, scored)]
    notes = list(table.notes)
    if names and _is_index(columns, names[0]):
        names = names[1:]
        notes.append("the first column has no name and counts the rows: it is left out")
    if not names:
        raise InputError("there is no column left for the points")
    left = CsvTable(names, [columns[name] for name in names], table.lines, table.separator)
    points = np.array(coordinates(left)).T
    notes += [
        note
        for name, values in zip(names, points.T, strict=True)
        if (note := _suspicion(name, values, label is None)) is not None
    ]
    return Content(
        as_points(np.ascontiguousarray(points)),
        None if label is None else class_names(columns[label]),
        None if scored is None else class_names(columns[scored]),
        notes,
        [] if all(name.isdigit() for name in names) else names,
    )


def _find(names: list[str], asked: str | None, usual: tuple[str, ...], option: str) -> str | None:
    """The column that was asked for, or one with a usual name, or none."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"there are two columns named {shown(twice)}")
    if asked is None:
        return next((name for name in names if name.lower() in usual), None)
    found = [name for name in names if name == asked] or [
        name for name in names if name.lower() == asked.lower()
    ]
    if not found:
        raise InputError(
            f"{option} {listed([asked])}: there is no such column, only {listed(names)}"
        )
    return found[0]


def _is_index(columns: dict[str, Any], name: str) -> bool:
    """Whether a column without a name counts the rows of a table whose others have names."""
    others = [other for other in columns if other != name]
    if name != "1" or not others or all(other.isdigit() for other in others):
        return False
    cells = columns[name]
    return any(
        all(cell == str(row) for row, cell in enumerate(cells, start=start)) for start in (0, 1)
    )


def _suspicion(name: str, values: FloatArray, unlabelled: bool) -> str | None:
    """What is odd about a column that is read as a coordinate."""
    distinct = np.unique(values)
    few = len(distinct) <= min(FEW, len(values) // 4) and (distinct % 1 == 0).all()
    if len(distinct) == 1 and len(values) > 1:
        return (
            f"column {shown(name)} is {distinct[0]:g} everywhere: as a coordinate it says nothing"
        )
    if name.lower() in TELLING_NAMES or few:
        option = "--label-column" if unlabelled else "--class-column"
        return (
            f"column {shown(name)} looks like a class ({len(distinct)} different values) but is "
            f"read as a coordinate; if it is a class, say {option} {listed([name])}"
        )
    return None


def _npy(path: Path, label_column: str | None, class_column: str | None) -> Content:
    with _loaded(path, np.ndarray, "one array, as numpy.save writes it") as array:
        if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "biuf":
            return Content(as_points(array))  # which says what is wrong
        names = [str(place) for place in range(1, array.shape[1] + 1)]
        table = CsvTable(names, list(array.T), list(range(1, len(array) + 1)))
        return _from_table(table, label_column, class_column)


def _npz(path: Path, label_column: str | None, class_column: str | None) -> Content:
    kind = np.lib.npyio.NpzFile
    with _loaded(path, kind, "an archive of arrays, as numpy.savez writes it") as archive:
        return _from_arrays(archive.files, archive.__getitem__, label_column, class_column)


@contextmanager
def _loaded(path: Path, kind: type[Any], words: str) -> Iterator[Any]:
    """What NumPy finds in a file. Nothing is unpickled: objects could run code."""
    with _reading():
        file = path.open("rb")  # which NumPy would leave open if it fails
    with file:
        with _reading():
            found = np.load(file, allow_pickle=False)
        if not isinstance(found, kind):
            raise InputError(f"it must hold {words}")
        yield found


@contextmanager
def _reading() -> Iterator[None]:
    """Around reading arrays: whatever a damaged file leads NumPy and zipfile to is one error."""
    try:
        yield
    except Exception as error:
        reason = str(error).partition("\n")[0][:100] or type(error).__name__
        if "pickle" in reason:
            reason = "it holds Python objects, which could do anything: save plain numbers"
        raise InputError(f"it cannot be read ({reason})") from None


def _nc(path: Path, label_column: str | None, class_column: str | None) -> Content:
    variables = results.load(path).variables
    names = [str(name) for name in variables]
    return _from_arrays(names, lambda name: variables[name].to_numpy(), label_column, class_column)


def _from_arrays(
    names: list[str],
    get: Callable[[str], Any],
    label_name: str | None,
    class_name: str | None,
) -> Content:
    def find(asked: str | None, usual: str) -> Any:
        name = asked or usual
        if name in names:
            with _reading():
                return get(name)
        if asked is not None:
            there = listed(names) or "none"
            raise InputError(f"there is no array named {shown(asked)}, only {there}")
        return None

    labels, classes = find(label_name, "labels"), find(class_name, "classes")
    points = as_points(find("points", ""))
    if classes is not None and np.shape(classes) != (len(points),):
        if class_name is not None:
            raise InputError(
                f"{listed([class_name])} must have the shape ({len(points)},) to go with the "
                f"points, got {np.shape(classes)}"
            )
        classes = None  # of another kind, as the boards of the paper's Fig. 3
    return Content(
        points,
        None if labels is None else class_names(labels),
        None if classes is None else class_names(classes),
    )
