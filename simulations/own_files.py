"""A user's file of points: CSV, NPY, NPZ or NetCDF, with any two classes as labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from circuits import results
from circuits.errors import InputError
from circuits.lift import FloatArray, as_points

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


@dataclass(frozen=True)
class OwnPoints:
    """Points (T, d), labels (T,) or (T, r) and classes (T,), of -1, +1, and 0 where unknown."""

    points: FloatArray
    labels: FloatArray | None
    classes: FloatArray | None
    mapping: dict[str, int]
    """Which class of the file became which number; empty if they were -1, 0 and +1."""
    notes: list[str]


def load_points(
    path: Path, label_column: str | None = None, class_column: str | None = None
) -> OwnPoints:
    """Read a file.

    CSV: a row per point. With a header, ``label_column`` names the column that the circuit is
    shown as labels (default: ``label``, if there is one) and ``class_column`` one that is only for
    scoring (default: ``class``, if there are labels besides); without one they are counted from 1.
    An empty cell is an unlabelled point. NPY: the same, without a header. NPZ and NetCDF: arrays
    ``points``, ``labels`` and ``classes``, or those that are named.
    """
    if not path.exists():
        raise InputError(f"there is no file {path}")
    readers: dict[str, Any] = {".csv": _csv, ".npy": _npy, ".npz": _npz, ".nc": _nc, ".h5": _nc}
    if path.suffix.lower() not in readers:
        raise InputError(f"{path} must be a .csv, .npy, .npz or .nc file")
    try:
        content: Content = readers[path.suffix.lower()](path, label_column, class_column)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except ValueError as error:
        reason = str(error).split("C error: ")[-1].strip()
        raise InputError(f"{path} cannot be read: {reason}") from None
    given = [names for names in (content.labels, content.classes) if names is not None]
    try:
        mapping = class_mapping(given)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None

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
    )


def class_names(values: ArrayLike) -> Names:
    """Cells or numbers as names: "1.0" and 1 are the same class, NaN and "" are none."""
    array = np.asarray(values, dtype=object)

    def name(value: Any) -> str:
        if pd.isna(value):
            return ""
        text = str(value).strip()
        try:
            return f"{float(text):.15g}" if text else ""
        except ValueError:
            return text

    found: Names = np.array([name(value) for value in array.ravel()], dtype=object)
    return found.reshape(array.shape)


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
        some = ", ".join(names[:FEW]) + (", ..." if len(names) > FEW else "")
        raise InputError(
            "labels, and classes to score them by, must name the same two classes (or be -1, 0 "
            f"and +1), but there "
            f"{'is 1' if len(names) == 1 else f'are {len(names)}'}: {some}"
        )
    return {names[0]: -1, names[1]: 1}


def _csv(path: Path, label_column: str | None, class_column: str | None) -> Content:
    text = path.read_text(encoding="utf-8-sig")
    if not text.strip():
        raise ValueError("it is empty")
    first = text.lstrip("\r\n").splitlines()[0]
    separator = next((mark for mark in ";\t" if mark in first), ",")
    # Empty lines are kept until lines have been counted, so that errors name the right one.
    table = pd.read_csv(
        StringIO(text.lstrip("\r\n")),
        sep=separator,
        header=None,
        dtype=str,
        skip_blank_lines=False,
        skipinitialspace=True,
    )
    table.index += 1
    table = table.dropna(how="all")
    names = [str(number) for number in range(1, table.shape[1] + 1)]
    if _is_header(table):
        header = table.iloc[0].fillna("").str.strip()
        names = [text or number for text, number in zip(header, names, strict=True)]
        table = table.iloc[1:]
    if table.empty:
        raise ValueError("it has a header but no points")
    table.columns = pd.Index(names)
    if separator == ";":  # where a comma may be the decimal point
        table = table.apply(
            lambda column: column.where(_numbers(column).notna(), column.str.replace(",", "."))
        )
    return _from_table(table, label_column, class_column)


def _is_header(table: Any) -> bool:
    """Whether the first row is a header: it has text, none of which recurs below it."""
    first = table.iloc[0]
    text = [
        place for place in table.columns if pd.notna(first[place]) and not _is_number(first[place])
    ]
    return bool(text) and all((table[place].iloc[1:] != first[place]).all() for place in text)


def _is_number(cell: str) -> bool:
    return bool(pd.notna(pd.to_numeric(cell.replace(",", "."), errors="coerce")))


def _numbers(column: Any) -> Any:
    return pd.to_numeric(column, errors="coerce")


def _from_table(table: Any, label_column: str | None, class_column: str | None) -> Content:
    """Columns to coordinates, labels and classes."""
    label = _find(table, label_column, LABEL_NAMES, "--label-column")
    usual = tuple(name for name in CLASS_NAMES if label and name != label.lower())
    scored = _find(table, class_column, usual, "--class-column")
    if label is not None and label == scored:
        raise InputError(
            f"column {label!r} is given as labels and as classes: what the circuit is shown "
            "cannot be what it is scored by"
        )
    taken = [name for name in (label, scored) if name is not None]
    coordinates = table.drop(columns=taken)
    notes = []
    first = coordinates.columns[0] if len(coordinates.columns) else None
    if first is not None and _is_index(table, first):
        coordinates = coordinates.drop(columns=[first])
        notes.append("the first column has no name and counts the rows: it is left out")
    if coordinates.empty:
        raise InputError("there is no column left for the points")
    points = np.column_stack([_coordinate(coordinates[name], name) for name in coordinates.columns])
    notes += [
        note
        for name, values in zip(coordinates.columns, points.T, strict=True)
        if (note := _suspicion(name, values, label is None)) is not None
    ]
    return Content(
        as_points(points),
        None if label is None else class_names(table[label]),
        None if scored is None else class_names(table[scored]),
        notes,
    )


def _find(table: Any, asked: str | None, usual: tuple[str, ...], option: str) -> str | None:
    """The column that was asked for, or one with a usual name, or none."""
    names = list(table.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"there are two columns named {twice!r}")
    if asked is None:
        return next((name for name in names if name.lower() in usual), None)
    found = [name for name in names if name == asked] or [
        name for name in names if name.lower() == asked.lower()
    ]
    if not found:
        raise InputError(f"{option} {asked}: there is no such column, only {', '.join(names)}")
    return str(found[0])


def _is_index(table: Any, name: str) -> bool:
    """Whether a column without a name counts the rows of a table whose others have names."""
    others = [other for other in table.columns if other != name]
    if name != "1" or not others or all(other.isdigit() for other in others):
        return False
    counted = _numbers(table[name]).to_numpy() - np.arange(len(table))
    return bool((counted == counted[0]).all() and counted[0] in (0, 1))


def _coordinate(column: Any, name: str) -> FloatArray:
    """A column as finite numbers, or an error that names the first cell that is none."""
    values = _numbers(column)
    if values.notna().all():
        return np.asarray(values, dtype=float)
    text = column[column.notna() & values.isna()]
    if len(text) > len(column) / 2:
        raise InputError(
            f"column {name!r} holds text such as {text.iloc[0]!r}: points are numbers; if it is a "
            f"class, say --label-column {name}, or --class-column {name} if it is only for scoring"
        )
    line = values.index[values.isna()][0]
    cell = column[line]
    what = "is empty" if pd.isna(cell) else f"holds {cell!r}, which is not a number"
    raise InputError(f"line {line}, column {name!r} {what}")


def _suspicion(name: str, values: FloatArray, unlabelled: bool) -> str | None:
    """What is odd about a column that is read as a coordinate."""
    distinct = np.unique(values)
    few = len(distinct) <= min(FEW, len(values) // 4) and (distinct % 1 == 0).all()
    if len(distinct) == 1 and len(values) > 1:
        return f"column {name!r} is {distinct[0]:g} everywhere: as a coordinate it says nothing"
    if name.lower() in TELLING_NAMES or few:
        option = "--label-column" if unlabelled else "--class-column"
        return (
            f"column {name!r} looks like a class ({len(distinct)} different values) but is read "
            f"as a coordinate; if it is a class, say {option} {name}"
        )
    return None


def _npy(path: Path, label_column: str | None, class_column: str | None) -> Content:
    array = np.load(path)
    if array.ndim != 2 or array.size == 0:
        return Content(as_points(array))  # which says what is wrong
    names = [str(number) for number in range(1, array.shape[1] + 1)]
    table = pd.DataFrame(array, columns=pd.Index(names))
    table.index += 1
    return _from_table(table, label_column, class_column)


def _npz(path: Path, label_column: str | None, class_column: str | None) -> Content:
    with np.load(path) as arrays:
        return _from_arrays(dict(arrays), label_column, class_column)


def _nc(path: Path, label_column: str | None, class_column: str | None) -> Content:
    dataset = results.load(path)
    arrays = {str(name): values.to_numpy() for name, values in dataset.variables.items()}
    return _from_arrays(arrays, label_column, class_column)


def _from_arrays(arrays: dict[str, Any], label_name: str | None, class_name: str | None) -> Content:
    for name in ("points", label_name, class_name):
        if name is not None and name not in arrays:
            there = ", ".join(map(str, arrays)) or "none"
            raise InputError(f"there is no array named {name!r}, only {there}")
    points = as_points(arrays["points"])
    labels = arrays.get(label_name or "labels")
    classes = arrays.get(class_name or "classes")
    if classes is not None and np.shape(classes) != (len(points),):
        if class_name is not None:
            raise InputError(
                f"{class_name} must have the shape ({len(points)},) to go with the points, got "
                f"{np.shape(classes)}"
            )
        classes = None  # of another kind, as the boards of the paper's Fig. 3
    return Content(
        points,
        None if labels is None else class_names(labels),
        None if classes is None else class_names(classes),
    )
