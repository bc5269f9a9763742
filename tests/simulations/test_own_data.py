"""Users' files as they come: any two classes, other separators, holes, and what is odd in them."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
import xarray as xr

from circuits import CircuitParameters, SphereLift
from circuits.errors import InputError
from simulations import own_data
from simulations.own_files import load_points

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-1, 1, (24, 2)).round(3)


def write(path, header: str, *columns, separator: str = ",", encoding: str = "utf-8"):
    """A CSV file of the points and some columns more."""
    rows = zip(*POINTS.T, *columns, strict=True)
    lines = [header] * bool(header) + [separator.join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "points.csv"


@pytest.mark.parametrize(
    ("names", "mapping"),
    [
        (("cat", "dog"), {"cat": -1, "dog": 1}),
        (("0", "1"), {"0": -1, "1": 1}),
        (("2", "10"), {"2": -1, "10": 1}),
        (("False", "True"), {"False": -1, "True": 1}),
        (("1.0", "2.0"), {"1": -1, "2": 1}),
        (("-1", "1"), {}),
        (("-1.0", "+1"), {}),
    ],
)
def test_any_two_classes(path, names, mapping):
    signs = np.resize([1, -1, -1], 24)
    cells = [names[(sign + 1) // 2] if i % 4 else "" for i, sign in enumerate(signs)]
    write(path, "x,y,Kind", cells)
    found = load_points(path, "kind")
    assert (found.points == POINTS).all()
    assert found.labels.tolist() == [sign if i % 4 else 0 for i, sign in enumerate(signs)]
    assert found.mapping == mapping
    assert found.classes is None


def test_silence_in_signs_stays_silence(path):
    labels = np.resize([0, -1, 0, 1], 24)
    found = load_points(write(path, "x,y,label", labels))
    assert found.labels.tolist() == labels.tolist()
    assert found.mapping == {}


def test_sparse_labels_and_classes_that_only_score(path):
    classes = np.resize(["a", "b"], 24)
    labels = np.where(np.arange(24) < 4, classes, "NA")
    for header, option in (("x,y,label,class", None), ("x,y,label,truth", "truth")):
        found = load_points(write(path, header, labels, classes), None, option)
        assert found.points.shape == (24, 2)
        assert found.labels.tolist() == [-1, 1, -1, 1] + [0] * 20
        assert found.classes.tolist() == [-1, 1] * 12
        assert found.notes == []


def test_classes_must_be_those_of_the_labels(path):
    write(path, "x,y,label,class", np.resize([-1, 0, 1], 24), np.resize(["a", "b"], 24))
    with pytest.raises(InputError, match=r"two classes .* there are 5: -1, 0, 1, a, b"):
        load_points(path)
    with pytest.raises(InputError, match="'class' is given as labels and as classes"):
        load_points(path, "class", "class")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["a", "b", "c"], "two classes .* there are 3: a, b, c"),
        (["0", "1", "2"], "two classes .* there are 3: 0, 1, 2"),
        (["a"], "two classes .* there is 1: a"),
        ([str(i) for i in range(24)], "there are 24: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 14 more"),
    ],
)
def test_other_numbers_of_classes_are_named(path, cells, words):
    write(path, "x,y,class", np.resize(cells, 24))
    with pytest.raises(InputError, match=words):
        load_points(path, "class")


def test_without_a_header_columns_are_counted(path):
    write(path, "", np.resize(["cat", "dog"], 24))
    found = load_points(path, "3")
    assert (found.points == POINTS).all()
    assert found.mapping == {"cat": -1, "dog": 1}
    with pytest.raises(InputError, match=r"column '3' holds text such as 'cat'.*--label-column 3"):
        load_points(path)
    with pytest.raises(InputError, match="--label-column 4: there is no such column, only 1, 2, 3"):
        load_points(path, "4")


def test_numbers_can_be_names_of_columns(path):
    """As a table without names is written by others."""
    found = load_points(write(path, "0,1,target", np.resize([0, 1], 24)), "target")
    assert (found.points == POINTS).all()
    assert found.mapping == {"0": -1, "1": 1}


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_other_separators_and_a_mark_at_the_start(path, separator, decimal):
    write(path, f"x{separator}y", separator=separator, encoding="utf-8-sig")
    if decimal == "," and separator == ";":
        path.write_text(path.read_text(encoding="utf-8").replace(".", ","), encoding="utf-8")
    found = load_points(path)
    assert (found.points == POINTS).all()
    assert found.notes == []


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("class", np.arange(24) / 7, "'class' looks like a class .* --label-column class"),
        ("y2", np.resize([0, 1], 24), "'y2' looks like a class \\(2 different values\\)"),
        ("z", np.resize([0, 0, 1, -1], 24), "'z' looks like a class .* --label-column z"),
        ("one", np.ones(24), "'one' is 1 everywhere"),
    ],
)
def test_what_looks_like_a_class_is_pointed_out(path, capsys, name, values, words):
    found = load_points(write(path, f"x,y,{name}", values))
    assert found.points.shape == (24, 3)
    [note] = found.notes
    assert re.search(words, note)
    own_data.prepare(path, {})
    assert note in capsys.readouterr().err


def test_measurements_are_not_pointed_out(path):
    assert load_points(write(path, "x,y,z", np.arange(24) / 7)).notes == []
    assert load_points(write(path, "x,y,z", np.arange(24))).notes == []


def test_a_column_that_counts_rows_is_left_out(path):
    lines = [",x,y"] + [f"{i},{x},{y}" for i, (x, y) in enumerate(POINTS)]
    path.write_text("\n".join(lines))
    found = load_points(path)
    assert (found.points == POINTS).all()
    assert "counts the rows" in found.notes[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n3\n", "line 3 has 1 cell, but line 1 has 2"),
        ("a,b\n1,2\n\n3,\n", "line 4, column 'b' is empty"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but line 1 has 2"),
        ("", "it is empty"),
        ("\n\n", "it is empty"),
        ("a,b\n", "it has a header but no points"),
        ("1,2\n3,x\n5,6\n", "line 2, column '2' holds 'x', which is not a number"),
        ("1,nan\n3,4\n", "line 1, column '2' holds 'nan', which is not a number"),
        ("1,inf\n3,4\n", "finite"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        ("label\n1\n", "no column left for the points"),
    ],
)
def test_damaged_csv(path, content, words):
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        load_points(path)


@pytest.mark.parametrize("kind", ["npy", "npz", "nc"])
def test_other_kinds_of_files(tmp_path, kind):
    labels, classes = np.zeros(24), np.resize([-1.0, 1.0], 24)
    labels[:2] = classes[:2]
    path = tmp_path / f"points.{kind}"
    if kind == "npy":
        np.save(path, np.column_stack([POINTS, labels]))
    elif kind == "npz":
        np.savez(path, points=POINTS, labels=labels, classes=classes)
    else:
        xr.Dataset(
            {"points": (("t", "d"), POINTS), "labels": ("t", labels), "classes": ("t", classes)}
        ).to_netcdf(path, engine="h5netcdf")
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
    with pytest.raises(InputError, match=r"classes must have the shape \(24,\)"):
        load_points(path, "kind", "classes")
    with pytest.raises(InputError, match="no array named 'labels', only points, kind, classes"):
        load_points(path, "labels")
    np.savez(path, data=POINTS)
    with pytest.raises(InputError, match="no array named 'points', only data"):
        load_points(path)


def test_what_the_file_knows_goes_with_the_result(path):
    classes = np.resize(["a", "b", ""], 24)
    labels = np.where(np.arange(24) < 2, classes, "")
    stream = own_data.prepare(write(path, "x,y,label,class", labels, classes), {"n_tiles": 6})
    run = xr.Dataset(
        {
            "y": (("presentation", "readout"), np.ones((24, 1))),
            "labels": (("presentation", "readout"), stream.labels),
        }
    )
    result = own_data.annotate(run, stream)
    assert result["classes"].to_numpy().tolist() == [-1, 1, 0] * 8
    assert json.loads(result.attrs["label_mapping"]) == {"a": -1, "b": 1}
    # Of the last 12 points four have no class, and half of the others are of class +1.
    assert own_data.score(result).startswith("accuracy 0.5000 on 8 unlabelled points")


def test_snapshots_of_many_wide_points_are_fewer(path):
    points = np.random.default_rng(0).uniform(0, 1, (30, 2))
    np.savetxt(path, points, delimiter=",")
    stream = own_data.prepare(path, {"n_tiles": 4})
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
    with pytest.raises(InputError, match="line 1 has commas and ends in"):
        load_points(path)
    path.write_text("".join(f"{x}{mark}\n" for x, _ in POINTS))
    assert (load_points(path).points[:, 0] == POINTS[:, 0]).all()
