"""Users' files as they come: any two classes, other separators, holes, and what is odd in them."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import partial

import numpy as np
import pytest
import xarray as xr

from circuits import CircuitParameters, SphereLift
from circuits.errors import InputError
from simulations import own_data
from simulations.own_files import load_points
from tests.refusing import refused as one_sentence

# A sentence, besides the name of a file in a folder of pytest's.
refused = partial(one_sentence, error=InputError, most=450)

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-1, 1, (24, 2)).round(3)


def write(path, header: str, *columns):
    """A CSV file of the points and some columns more."""
    rows = zip(*POINTS.T, *columns, strict=True)
    lines = [header] * bool(header) + [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "points.csv"


def test_any_two_classes(path):
    signs = np.resize([1, -1, -1], 24)
    for names, mapping in (
        (("cat", "dog"), {"cat": -1, "dog": 1}),
        (("2", "10"), {"2": -1, "10": 1}),
        (("False", "True"), {"False": -1, "True": 1}),
        (("1.0", "2.0"), {"1": -1, "2": 1}),
        (("-1.0", "+1"), {}),
    ):
        cells = [names[(sign + 1) // 2] if i % 4 else "" for i, sign in enumerate(signs)]
        found = load_points(write(path, "x,y,Kind", cells), "kind")
        assert (found.points == POINTS).all()
        assert found.labels.tolist() == [sign if i % 4 else 0 for i, sign in enumerate(signs)]
        assert found.mapping == mapping
        assert found.classes is None


def test_sparse_labels_and_classes_that_only_score(path):
    classes = np.resize(["a", "b"], 24)
    labels = np.where(np.arange(24) < 4, classes, "NA")
    for header, option in (("x,y,label,class", None), ("x,y,label,truth", "truth")):
        found = load_points(write(path, header, labels, classes), None, option)
        assert found.points.shape == (24, 2)
        assert found.labels.tolist() == [-1, 1, -1, 1] + [0] * 20
        assert found.classes.tolist() == [-1, 1] * 12
        assert found.notes == []


def test_other_numbers_of_classes_are_named(path):
    for cells, words in (
        (["a", "b", "c"], "are 3: a, b, c"),
        (["a"], "is 1: a"),
        (range(24), "are 24: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 14 more"),
    ):
        write(path, "x,y,class", np.resize(cells, 24))
        refused(lambda: load_points(path, "class"), words)
    # Classes must be those of the labels, and of another column.
    write(path, "x,y,label,class", np.resize([-1, 0, 1], 24), np.resize(["a", "b"], 24))
    refused(lambda: load_points(path), "are 5: -1, 0, 1, a, b")
    refused(lambda: load_points(path, "class", "class"), "'class'")


def test_without_a_header_columns_are_counted(path):
    write(path, "", np.resize(["cat", "dog"], 24))
    found = load_points(path, "3")
    assert (found.points == POINTS).all()
    assert found.mapping == {"cat": -1, "dog": 1}
    refused(lambda: load_points(path), "column '3' .*'cat'.*--label-column 3")
    refused(lambda: load_points(path, "4"), "--label-column 4.* 1, 2, 3")


def test_what_looks_like_a_class_is_pointed_out_and_no_measurement(path, capsys):
    for name, values, words in (
        ("class", np.arange(24) / 7, "'class' .* --label-column class"),
        ("y2", np.resize([0, 1], 24), "'y2' .*2 different values"),
        ("six", np.resize(np.arange(6), 24), "'six' .*6 different values"),
        ("one", np.ones(24), "'one' is 1 "),
    ):
        found = load_points(write(path, f"x,y,{name}", values))
        assert found.points.shape == (24, 3)
        [note] = found.notes
        assert re.search(words, note)
    own_data.prepare(path, {})
    assert note in capsys.readouterr().err
    for values in (np.arange(24) / 7, np.arange(24) % 7, np.resize([0.5, 1], 24)):
        assert load_points(write(path, "x,y,z", values)).notes == []


def test_a_column_that_counts_rows_is_left_out(path):
    lines = [",x,y"] + [f"{i},{x},{y}" for i, (x, y) in enumerate(POINTS)]
    path.write_text("\n".join(lines))
    found = load_points(path)
    assert (found.points == POINTS).all()
    assert "counts the rows" in found.notes[0]


@pytest.mark.parametrize("kind", ["npy", "npz", "nc"])
def test_other_kinds_of_files(tmp_path, kind):
    classes = np.resize([-1.0, 1.0], 24)
    labels = np.where(np.arange(24) < 2, classes, 0)
    path = tmp_path / f"points.{kind}"
    if kind == "npy":
        np.save(path, np.column_stack([POINTS, labels]))
    elif kind == "npz":
        np.savez(path, points=POINTS, labels=labels, classes=classes)
    else:
        columns = {"labels": ("t", labels), "classes": ("t", classes)}
        xr.Dataset(columns | {"points": (("t", "d"), POINTS)}).to_netcdf(path, engine="h5netcdf")
    found = load_points(path, "3" if kind == "npy" else None)
    assert (found.points == POINTS).all()
    assert (found.labels == labels).all()
    assert found.classes is None if kind == "npy" else (found.classes == classes).all()


def test_arrays_of_names_and_arrays_that_are_not_there(tmp_path):
    path = tmp_path / "points.npz"
    np.savez(path, points=POINTS, kind=np.resize(["b", "a", ""], 24), classes=np.zeros((3, 24)))
    found = load_points(path, "kind")
    assert found.labels[:3].tolist() == [1, -1, 0]
    assert found.classes is None  # of another shape, and nobody asked for them
    refused(lambda: load_points(path, "kind", "classes"), r"classes .*\(24,\).*\(3, 24\)")
    refused(lambda: load_points(path, "labels"), "'labels'.* points, kind, classes")


def test_what_the_file_knows_goes_with_the_result(path):
    classes = np.resize(["a", "b", ""], 24)
    labels = np.where(np.arange(24) < 2, classes, "")
    stream = own_data.prepare(write(path, "x,y,label,class", labels, classes), {"n_tiles": 6})
    axes = ("presentation", "readout")
    run = xr.Dataset({"y": (axes, np.ones((24, 1))), "labels": (axes, stream.labels)})
    result = own_data.annotate(run, stream)
    assert result["classes"].to_numpy().tolist() == [-1, 1, 0] * 8
    assert json.loads(result.attrs["label_mapping"]) == {"a": -1, "b": 1}
    # Of the last 12 points four have no class, and half of the others are of class +1.
    assert own_data.score(result).startswith("accuracy 0.5000 on 8 unlabelled points")


def test_snapshots_of_many_wide_points_are_fewer(path):
    stream = own_data.prepare(write(path, ""), {"n_tiles": 4})
    assert own_data.snapshot_interval(stream) == 1
    wide = dataclasses.replace(
        stream,
        points=np.zeros((5000, 784)),
        parameters=CircuitParameters(n_tiles=40),
        lift=SphereLift(np.zeros(784), 1.0),
    )
    every = own_data.snapshot_interval(wide)
    # 40 tiles with 785 + 1 + 1 weights each, of 8 bytes.
    assert 5000 / every * 40 * 787 * 8 <= 2**28 < 5000 / (every - 1) * 40 * 787 * 8


@pytest.mark.parametrize("mark", ["\t", ";"])
def test_a_mark_that_only_ends_lines_leaves_doubt(path, mark):
    """1,2 may be two numbers, or one with a decimal comma."""
    path.write_text("".join(f"{x},{y}{mark}\n" for x, y in POINTS))
    refused(lambda: load_points(path), "line 1 has commas")
    path.write_text("".join(f"{x}{mark}\n" for x, _ in POINTS))
    assert (load_points(path).points[:, 0] == POINTS[:, 0]).all()
