"""What users type and which files they give: the right result, or one sentence and exit code 2."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from circuits import CircuitParameters
from circuits.errors import InputError, ParameterError
from simulations import baselines, datasets
from simulations.changes import parse_changes
from simulations.own_files import OwnPoints, class_mapping, class_names, load_points
from tests.refusing import refused as one_sentence
from tests.simulations.test_cli import refused as command_refused

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-1, 1, (24, 2)).round(3)
LABELS = np.resize([0, -1, 0, 1], 24)


# A sentence, besides the name of a file in a folder of pytest's.
refused = partial(one_sentence, most=450)


# --set


def test_changes_that_are_none():
    for items, words in (
        (["n_tiles"], "'n_tiles'"),
        ([" =3"], "' =3'"),
        (["mu=1", " mu =2"], "'mu' is given twice"),
        (["n_tiles=-" + "1" * 400], "401 digits"),
        (["mu=" + "[" * 10**5], "'mu' is nested"),
        (["self=1"], "'self'"),
        (["n_tiles=" + "1" * 300], "n_tiles .*got 111"),
        (["n_tiles=1000000000"], "37.3 GiB"),
        (["n_tiles=NaN"], "n_tiles .*nan"),
        (["tile_radius=-1e400"], "tile_radius"),
        (["mu=[1,[2]]"], "mu must be one number or one per readout"),
        (["tau_h=10 \udcff"], "tau_h must be a time with a unit"),
        (["mu=" + "x" * 10**6], "mu must be one number"),
    ):
        refused(lambda items=items: CircuitParameters(**parse_changes(items)), words)


def test_changes_are_read():
    digits = "1" * 400  # as many as a number may have
    assert parse_changes([f"n_tiles={digits}"]) == {"n_tiles": int(digits)}
    assert parse_changes(["mu=[1, 2.5]", " a = b = c ", "tau_h='8 ms'", "reset=false"]) == {
        "mu": [1, 2.5],
        "a": "b = c",
        "tau_h": "'8 ms'",
        "reset": False,
    }


NAMES = st.sampled_from([*CircuitParameters().as_dict(), "self", "x"])
VALUES = st.one_of(
    st.text(max_size=10),
    st.integers().map(str),
    st.floats().map(str),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=3)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    ).map(json.dumps),
)
ITEMS = st.lists(
    st.one_of(st.tuples(NAMES, VALUES).map("=".join), st.text(max_size=12)), max_size=3
)


@settings(max_examples=80, database=None)
@given(items=ITEMS)
def test_any_changes_are_read_or_refused(items):
    def read() -> CircuitParameters:
        return CircuitParameters(**parse_changes(items))

    try:
        assert isinstance(read(), CircuitParameters)
    except (InputError, ParameterError):
        refused(read)


# CSV


@pytest.fixture
def path(tmp_path):
    return tmp_path / "points.csv"


def test_csv_that_is_none(path):
    for content, words in (
        # A first line that is a point with something missing is not dropped as a header.
        ("0.5,?\n0.1,0.2\n0.3,0.4\n", r"line 1, column '2' holds '\?'"),
        ("0.5,\n0.1,0.2\n0.3,0.4\n", "line 1, column '2' is empty"),
        ("NA,NA\n0.1,0.2\n0.3,0.4\n", "line 1, column '1' holds 'NA'"),
        ("unknown,x\n0.1,0.2\n0.3,0.4\n", "line 1, column '1' holds 'unknown'"),
        ("0x1F,x\n0.1,0.2\n0.3,0.4\n", "line 1, column '1' holds '0x1F'"),
        ("x,0.5\n0.1,0.2\n0.3,0.4\n", "line 1, column '1' holds 'x'"),
        ("x,,z\n1,2,3\n", "line 1 has text, but column 2 is empty"),
        ("x;y\n1,5;2\n3;1.234,5\n5;6\n", "line 3, column 'y' holds '1.234,5'"),
        # Thousands, or decimals?
        ("x;y\n1,234;0.5\n2;3\n", "line 2, column 'x': '1,234'"),
        ('x,y\n"1,234",5\n2,3\n', "line 2, column 'x': '1,234'"),
        ("x;y\n1,234,567;0\n2;3\n3;4\n", "line 2, column 'x' holds '1,234,567'"),
        # Quotes
        ('x,y\n1,"2\n3,4\n5",6\n', "line 2 has a quote"),
        ('x,y\n1,"2"3\n', "line 2 has a quote"),
        # Cells that are no finite numbers
        ("x,y\n1,-Infinity\n", "line 2, column 'y' holds '-Infinity', which is not a finite"),
        ("x,y\n1,1e400\n", "line 2, column 'y' holds '1e400', which is not a finite"),
        ("x,y\n1,2\n1,NaN\n3,4\n", "line 3, column 'y' holds 'NaN', which is not a number"),
        ("x,y\n1,2\n1,1_000\n3,4\n", "line 3, column 'y' holds '1_000'"),
        ("x,y\n1,2\n1,\u0663\n3,4\n", "line 3, column 'y' holds '\u0663'"),
        ("x,y\n1,2\n\n3,\n", "line 4, column 'y' is empty"),
        ("x,day\n1,2020-01-01\n1,2020-01-02\n", "column 'day' holds text such as '2020-01-01'"),
        # Lines
        ("1,2\n3\n", "line 2 has 1 cell, but line 1 has 2"),
        ("\n\n1,2\n\n3,4,5\n", "line 5 has 3 cells, but line 3 has 2"),
        ("x,y\n,\n , \n", "no points"),
        (",,,\n,,,\n", "empty"),
        ("label\n1\n", "no column left"),
        ("x,y,x\n1,2,3\n", "two columns named 'x'"),
        ("x\n1,2\0\n", "line 2 holds a NUL"),
        ("x,y\n" + "9" * 200_000 + ",1\n", "not a finite number"),
        (b"x,y\n1,2\n\xe9,3\n", "line 3 is not UTF-8"),
        ("x,y\n1,2\n".encode("utf-16"), "UTF-16"),
        ("\ufeffx,y\n1,2\n".encode("utf-16-be"), "UTF-16"),
    ):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        refused(lambda: load_points(path), words, InputError)


def test_csv_of_any_form(path):
    for content, points in (
        ("  x , y \n 1 ,  2\n\n3,\t4\n,\n", [[1, 2], [3, 4]]),
        ('"a;b";"c,d"\n1;2\n', [[1, 2]]),
        ('"a;b",c\n1,2\n', [[1, 2]]),
        ("x;y\n0,5;1\n1;0,25\n", [[0.5, 1], [1, 0.25]]),
        ("0,5;0.7\n1;2\n", [[0.5, 0.7], [1, 2]]),
        ("x;y\n1,234;2,345\n", [[1.234, 2.345]]),
        ('x,y\n"0,5","1,234"\n', [[0.5, 1.234]]),
        (".5,-1.\n+2,1E-3\n", [[0.5, -1], [2, 1e-3]]),
        ("1st,2nd\n1,2\n", [[1, 2]]),
        (",x,y\n1,5,6\n2,7,8\n", [[5, 6], [7, 8]]),
        ('\ufeff"label",x,y\n1,5,6\n-1,7,8\n', [[5, 6], [7, 8]]),
        ("x,y\n1,2\x0b\n3,4\x0c\n", [[1, 2], [3, 4]]),
    ):
        path.write_bytes(content.encode())
        assert load_points(path).points.tolist() == points


def test_a_first_point_with_a_class_of_its_own_is_not_lost(path):
    """Two labels, each on one point: the usual stream."""
    path.write_text("0.5,0.3,iris\n0.1,0.2,\n0.3,0.4,rose\n0.6,0.1,\n")
    found = load_points(path, "3")
    assert found.points.tolist() == [[0.5, 0.3], [0.1, 0.2], [0.3, 0.4], [0.6, 0.1]]
    assert found.labels.tolist() == [-1, 0, 1, 0]
    refused(lambda: load_points(path, "species"), "species.* 1, 2, 3")


def test_counted_columns_beside_a_name_are_a_header_and_that_is_said(path):
    for first in ("0,1,target", "1,2,target"):
        path.write_text(f"{first}\n0.1,0.2,a\n0.3,0.4,b\n")
        found = load_points(path, "target")
        assert found.points.tolist() == [[0.1, 0.2], [0.3, 0.4]]
        assert "line 1 is read as names" in found.notes[0]
    path.write_text("0,1,a\n0.1,0.2,a\n0.3,0.4,b\n")  # the name recurs: it is a class
    assert load_points(path, "3").labels.tolist() == [-1, -1, 1]


def test_classes_keep_their_names():
    assert class_names(["1.0", "1", " a ", "NA", "", "1e400"]).tolist() == [
        "1", "1", "a", "", "", "1e400"
    ]  # fmt: skip
    assert class_names(np.array([b"a", b"caf\xe9"])).tolist() == ["a", "caf\ufffd"]
    # As floats these two are one.
    assert len(set(class_names([12345678901234567, 12345678901234568]))) == 2
    assert class_names([np.nan, None, 2.0, True]).tolist() == ["", "", "2", "True"]
    refused(lambda: class_names([1j]), "numbers or names, got complex")
    refused(lambda: class_names(np.array(["2020"], "M8[Y]")), "numbers or names, got datetime")
    refused(lambda: class_mapping([class_names(["a" * 10**6, "b", "c"])]), "there are 3")


CELLS = st.one_of(st.floats(width=32).map(str), st.sampled_from(["", "NA", "a", '"', '"a"', "0,5"]))
ROUGH = st.lists(st.lists(CELLS, max_size=4), max_size=5).map(
    lambda rows: "\n".join(";".join(row) for row in rows)
)


@settings(max_examples=150, database=None)
@given(
    content=st.one_of(
        ROUGH.map(str.encode),
        ROUGH.map(lambda text: text.replace(";", ",").encode("utf-8-sig")),
        st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.text('0123456789.,;\t\n\r"e-x ', max_size=40).map(str.encode),
        st.binary(max_size=40),
    ),
    label=st.sampled_from([None, "1", "a", "label"]),
)
def test_any_csv_is_read_or_refused(tmp_path_factory, content, label):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    path.write_bytes(content)
    try:
        found = load_points(path, label)
    except InputError:
        refused(lambda: load_points(path, label))
        return
    assert isinstance(found, OwnPoints)
    assert np.isfinite(found.points).all()
    lines = [line for line in content.replace(b"\r", b"\n").split(b"\n") if line.strip(b',;\t "')]
    assert len(found.points) in (len(lines), len(lines) - 1)


@settings(max_examples=120, database=None)
@given(
    values=st.integers(1, 5).flatmap(
        lambda d: st.lists(
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=d, max_size=d),
            min_size=1,
            max_size=6,
        )
    ),
    separator=st.sampled_from(",;\t"),
    comma=st.booleans(),
    header=st.booleans(),
    mark=st.booleans(),
    quotes=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    space=st.sampled_from(["", " "]),
    trailing=st.booleans(),
)
def test_what_was_written_is_read(
    tmp_path_factory, values, separator, comma, header, mark, quotes, end, space, trailing
):
    path = tmp_path_factory.getbasetemp() / "clean.csv"

    def cell(text: str) -> str:
        return space + (f'"{text}"' if quotes else text + space)

    rows = [[repr(value) for value in row] for row in values]
    # In one column nothing tells a decimal comma from a separator.
    if comma and separator != "," and len(rows[0]) > 1:
        rows = [[text.replace(".", ",") for text in row] for row in rows]
    if header:
        rows = [[f"x{i}, y" if quotes else f"x{i}" for i in range(len(rows[0]))], *rows]
    lines = [separator.join(map(cell, row)) + separator * trailing for row in rows]
    text = end.join(lines) + end
    path.write_bytes(text.encode("utf-8-sig" if mark else "utf-8"))
    assert load_points(path).points.tolist() == values


# Other files


def saved(array, **options) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def zipped(**members) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_npy", ".npy"), content)
    return file.getvalue()


class Trap:
    """Runs if it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("code from a file was run",))


WHOLE = saved(POINTS)
OBJECTS = saved(np.array([[Trap(), 1]], dtype=object), allow_pickle=True)
FORGED = WHOLE.replace(b"'shape': (24, 2), }          ", b"'shape': (9999999999, 2), } ")


def test_arrays_that_are_none(tmp_path):
    for suffix, content, words in (
        ("npy", OBJECTS, "Python objects"),
        ("npy", pickle.dumps(Trap()), "cannot be read"),
        ("npy", saved(POINTS + 0j), "[+]0.j"),
        ("npy", saved(np.zeros((3, 2), dtype=[("x", float)])), "'x', '<f8'"),
        ("npy", saved(POINTS.astype(str)), "dtype=.<U32"),
        ("npy", saved(POINTS.astype("M8[s]")), "datetime64"),
        ("npy", saved(POINTS[0]), r"got \(2,\)"),
        ("npy", saved(POINTS[:0]), "no points"),
        ("npy", saved(POINTS[:, :0]), r"got \(24, 0\)"),
        ("npy", saved(POINTS * np.nan), "finite"),
        ("npy", WHOLE[:-8], "cannot be read"),
        ("npy", FORGED, "cannot be read"),
        ("npy", zipped(points_npy=WHOLE), "one array"),
        ("npz", WHOLE, "an archive of arrays"),
        ("npz", zipped(points_npy=WHOLE, labels_npy=OBJECTS), "Python objects"),
        ("npz", zipped(points_npy=WHOLE[:90]), "cannot be read"),
        ("npz", zipped(points=b"not an array"), "b'not"),
        ("npz", zipped(readme=b"no array"), "'points', only readme"),
        ("npz", zipped(points_npy=WHOLE, labels_npy=saved(LABELS + 0j)), "numbers or names"),
        ("npz", zipped(points_npy=WHOLE, labels_npy=saved(np.arange(24))), "are 24"),
    ):
        path = tmp_path / f"points.{suffix}"
        path.write_bytes(content)
        refused(lambda path=path: load_points(path), words, InputError)
    # An array that is not asked for is not read.
    path.write_bytes(zipped(points_npy=WHOLE, other_npy=OBJECTS))
    assert (load_points(path).points == POINTS).all()


def test_npy_of_any_form(tmp_path):
    path = tmp_path / "points.npy"
    for form in (np.float32, ">f8", np.int16, bool):
        array = np.asfortranarray(np.round(POINTS * 100).astype(form))
        np.save(path, array)
        assert (load_points(path).points == array).all()
    # Labels that are missing are NaN.
    np.save(path, np.column_stack([POINTS, np.where(LABELS == 0, np.nan, LABELS)]))
    assert (load_points(path, "3").labels == LABELS).all()


def test_files_that_are_none(tmp_path, path):
    refused(lambda: load_points(path), "there is no file")
    path.mkdir()
    refused(lambda: load_points(path), "is a folder")
    os.mkfifo(tmp_path / "pipe.csv")
    refused(lambda: load_points(tmp_path / "pipe.csv"), "not a regular file")
    refused(lambda: load_points(Path("a\0b.csv")), "not the name of a file")
    refused(lambda: load_points(tmp_path / ("n" * 300 + ".csv")), "there is no file")
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")
    refused(lambda: load_points(Path(name)), r"there is no file .*caf\\xe9")


# Data sets and baselines


GENERATOR = np.random.default_rng(0)
OUTPUTS = np.abs(POINTS)


def test_arguments_that_make_no_sense():
    for call, words in (
        (lambda: datasets.two_moons(0, 0.1, GENERATOR), "n_points"),
        (lambda: datasets.spiral_arcs(2.5, 0.1, GENERATOR), "n_points"),
        (lambda: datasets.swiss_roll(None, GENERATOR), "n_points"),
        (lambda: datasets.unit_square(True, 0, GENERATOR), "n_points"),
        (lambda: datasets.two_moons(9, -1, GENERATOR), "noise"),
        (lambda: datasets.two_moons(9, 0.1, "seed"), "rng"),
        (lambda: datasets.two_moons(9, 0.1, 2**40), "rng"),
        (lambda: datasets.spiral_arcs(9, np.nan, GENERATOR), "noise"),
        (lambda: datasets.spiral_arcs(9, 0.1, 3), "rng"),
        (lambda: datasets.swiss_roll(9, None), "rng"),
        (lambda: datasets.roll([[1.0]]), r"\(T, 2\)"),
        (lambda: datasets.roll([[-9.0, 0.0]]), "the roll is 2 long"),
        (lambda: datasets.chessboard([[1.0, 0.0]], 1e-300), "too small to count squares"),
        (lambda: datasets.chessboard("x", 1), "points"),
        (lambda: datasets.unit_square(9, 2.5, GENERATOR), "after must be a whole number"),
        (lambda: datasets.unit_square(9, 2, 7), "rng"),
        (lambda: datasets.position_on_moons([[1, 2, 3]]), r"\(T, 2\)"),
        (lambda: datasets.position_on_arcs([[np.nan, 0]]), "finite"),
        (lambda: datasets.first_of_each_class([1, 2], 0), "classes must be -1 or"),
        (lambda: datasets.first_of_each_class("ab", 0), "classes must be real"),
        (lambda: datasets.first_of_each_class([1, -1], -1), "after"),
        (lambda: baselines.OnlineLogistic(2, "a"), "rates"),
        (lambda: baselines.OnlineLogistic(2, 1.0).run(OUTPUTS, LABELS * 3), "labels"),
        (lambda: baselines.OnlineLogistic(2, 1.0).run(None, LABELS), "tile outputs"),
        (lambda: baselines.OnlineLogistic(2, 1.0).decision([[1j, 2]]), "1j"),
        (lambda: baselines.LaplacianSVM(None, 1), "lam"),
        (lambda: baselines.LaplacianSVM(1, "a"), "mu"),
        (lambda: baselines.LaplacianSVM(1, 1).fit(OUTPUTS, LABELS[:3]), "labels"),
        (lambda: baselines.LaplacianSVM(1, 1).fit(OUTPUTS, LABELS, np.ones(3)), "laplacian"),
        (lambda: baselines.label_spreading(POINTS, LABELS, gamma=-1.0), "gamma"),
        (lambda: baselines.label_spreading(POINTS, LABELS, kernel="x"), "kernel"),
        (lambda: baselines.label_spreading(POINTS, LABELS, alpha=np.nan), "alpha"),
        (lambda: baselines.label_spreading(POINTS, LABELS, kernel="knn", n_neighbors=99), "99"),
        (lambda: baselines.label_spreading(POINTS, LABELS > 0), "True and False"),
        (lambda: baselines.label_spreading(POINTS * 1e200, LABELS), "so far apart"),
        (lambda: baselines.label_propagation(POINTS, LABELS, max_iter=0), "max_iter"),
        (lambda: baselines.label_propagation(POINTS[:0], LABELS), "no points"),
    ):
        refused(call, words)


# Commands, as users run them


def test_commands_refuse_in_one_sentence(path):
    np.savetxt(path, POINTS, delimiter=",", header="x,y", comments="")
    given = {"POINTS": path, "FOLDER": path.parent}
    out = path.parent / "out"
    for arguments, words in {
        "describe --cells 2": "--cells does nothing without --spiking",
        "describe --spiking --set-spiking self=1": "'self'",
        "describe --spiking --neuron leaky": "neuron",
        "describe --spiking --set reset=false": "reset",
        "describe --spiking --cells 1000000": "synapses",
        "run two-moons --set n_tiles=" + "1" * 5000: "5000 digits",
        "run --data POINTS --set tile_radius=1e-12": "too small for a lift",
        "compare --data FOLDER": ".csv",
    }.items():
        line = command_refused(*(given.get(word, word) for word in arguments.split()), "--out", out)
        assert len(line) < 450
        assert words in line
    assert not out.exists()
