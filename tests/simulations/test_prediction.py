"""Circuits on disk that answer to files: numbers, names, scores, and what is refused."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import xarray as xr

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.storage import results
from simulations import prediction
from tests.simulations.test_cli import done as succeeded
from tests.simulations.test_cli import refused, run

POINTS = np.random.default_rng(0).uniform(-1, 1, (120, 2))
NEW = np.random.default_rng(1).uniform(-0.9, 0.9, (40, 2))
NAMES = np.where(POINTS[:, 0] < 0, "iris", 'rose, "red"')
LIFT = SphereLift((0.0, 0.0), 3.0)

pytestmark = [
    pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning"),
    pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning"),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, header, *columns, separator=","):
    with path.open("w", newline="") as file:
        rows = csv.writer(file, delimiter=separator)
        rows.writerows([header] * bool(header))
        rows.writerows(zip(*columns, strict=True))
    return path


def trained(path, n_readouts=1, **attributes):
    """A circuit that knows left from right, and with two readouts also above from below."""
    parameters = CircuitParameters(
        n_tiles=15, n_interneurons=2, tile_radius=0.8, n_readouts=n_readouts, mu=3.0
    )
    circuit = ReferenceCircuit(parameters, LIFT, settling="exact")
    circuit.run(POINTS, np.sign(POINTS[:, :n_readouts]))
    circuit.save(path, **attributes)
    return circuit


def done(*arguments, engine="exact"):
    return succeeded("predict", *arguments, "--engine", engine)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_from_a_file_with_names_to_answers_with_names(here):
    write(here / "flowers.csv", ["x", "y", "kind"], *POINTS.T, NAMES, separator=";")
    options = ("--label-column", "kind", "--engine", "exact", "--set", "n_tiles=15", "--out", "out")
    ran = succeeded("run", "--data", "flowers.csv", *options)
    assert "predict out/flowers-circuit.nc --data FILE" in ran.stdout
    classes = np.where(NEW[:, 0] < 0, "iris", 'rose, "red"')
    write(here / "new.csv", ["x", "y", "label"], *NEW.T, classes)
    result = done("out/flowers-circuit.nc", "--data", "new.csv")
    expected = ReferenceCircuit.load("out/flowers-circuit.nc", settling="exact").predict(NEW)[:, 0]
    header, *rows = rows_of(here / "new-answers.csv")
    assert header == ["y", "class"]
    assert [float(y) for y, _ in rows] == expected.tolist()  # to the last bit
    names = [name for _, name in rows]
    assert names == [{-1: "iris", 0: "", 1: 'rose, "red"'}[np.sign(y)] for y in expected]
    right = np.mean(names == classes)
    assert f"accuracy {right:.4f} on 40 answers with a known class\n" in result.stdout
    assert "40/40" in result.stderr
    assert "wrote new-answers.csv" in result.stdout


def test_every_engine_answers(here):
    """`exact` does above."""
    trained("c.nc")
    np.save("new.npy", NEW[:4])
    for engine, circuit in (
        ("reference", ReferenceCircuit.load("c.nc")),
        ("numpy", ManifoldCircuit.load("c.nc", engine="numpy")),
    ):
        done("c.nc", "--data", "new.npy", engine=engine)
        [[name], *rows] = rows_of(here / "new-answers.csv")
        assert name == "y"
        assert (np.array(rows, dtype=float) == circuit.predict(NEW[:4])).all(), engine


def test_several_readouts_and_netcdf(here):
    circuit = trained("c.nc", 2, label_mapping=json.dumps({"no": -1, "yes": 1}))
    y = circuit.predict(NEW)
    names = np.where(NEW < 0, "no", "yes")
    np.savez("new.npz", points=NEW, labels=names)
    result = done("c.nc", "--data", "new.npz", "--out", "out/a.nc")
    right = np.mean(np.sign(y) == np.sign(NEW))
    assert f"accuracy {right:.4f} on 80 answers" in result.stdout
    assert results.kind_of(here / "out" / "a.nc") == "answers"
    with xr.open_dataset("out/a.nc") as saved:
        assert (saved["points"].values == NEW).all()
        assert (saved["y"].values == y).all()
        assert (saved["class"].values == np.where(y < 0, "no", "yes")).all()
        assert saved.attrs["circuit"] == "c.nc"
    done("c.nc", "--data", "new.npz", "--out", "a.csv")
    header, *rows = rows_of(here / "a.csv")
    assert header == ["y_0", "y_1", "class_0", "class_1"]
    assert [[float(cell) for cell in row[:2]] for row in rows] == y.tolist()
    assert [row[2:] for row in rows] == np.where(y < 0, "no", "yes").tolist()
    done("c.nc", "--data", "new.npz", "--out", "out/a.nc")  # earlier answers are written over


@pytest.mark.parametrize(
    ("names", "mapping", "words"),
    [
        (["-1", "1", "0", ""], {}, "on 2 answers"),
        (["u", "v", "v", ""], {}, "on 3 answers"),  # -1 and +1 in their order, as in run --data
        (["u", "v", "w", ""], {}, "accuracy unknown: labels, and classes to score them by"),
        (["iris", "tulip", "rose", ""], {"iris": -1, "rose": 1}, "on 2 answers"),
        (["", "", "", ""], {"iris": -1, "rose": 1}, "accuracy unknown: no class is known"),
    ],
)
def test_what_is_counted(here, names, mapping, words):
    """To the last point no tile responds: it has no class."""
    trained("c.nc", **({"label_mapping": json.dumps(mapping)} if mapping else {}))
    points = [*NEW[:3], (2.5, 0.0)]
    write(here / "new.csv", ["x", "y", "label"], *np.transpose(points), names)
    result = done("c.nc", "--data", "new.csv")
    assert words in result.stdout
    assert "1 of 4 answers are zero: no tile" in result.stdout
    assert ("not counted: tulip" in result.stderr) == ("tulip" in names)
    given = [name for _, name in rows_of(here / "new-answers.csv")[1:]] if mapping else []
    assert [name in mapping for name in given] == [True, True, True, False][: len(given)]


def test_columns_in_another_order_are_refused(here):
    write(here / "a.csv", ["x", "y"], *POINTS.T)
    run("run", "--data", "a.csv", "--engine", "exact", "--set", "n_tiles=9", "--out", ".")
    write(here / "b.csv", ["y", "x"], *NEW.T)
    words = refused("predict", "a-circuit.nc", "--data", "b.csv", "--engine", "exact")
    assert "columns y, x, and the circuit has learned from x, y" in words
    write(here / "b.csv", ["u", "v"], *NEW.T)
    assert "u, v are taken for x, y" in done("a-circuit.nc", "--data", "b.csv").stderr
    write(here / "b.csv", [], *NEW.T)
    assert "taken for" not in done("a-circuit.nc", "--data", "b.csv").stderr


BAD = {
    "new.csv --data c.nc": "new.csv",
    "folder --data new.csv": "folder",
    "run.nc --data new.csv": "run.nc holds the result of a run",
    "cut.nc --data new.csv": "cut.nc",
    "future.nc --data new.csv": "future.nc is of format 99",
    "names.nc --data new.csv": "names.nc does not say what its labels are called",
    "c.nc --data nowhere.csv": "nowhere.csv",
    "c.nc --data c.nc": "'points'",
    "c.nc --data three.csv": "3 coordinates per point, and the circuit takes 2; ",
    "c.nc --data text.csv": "--label-column kind",
    "c.nc --data new.csv --label-column k": "--label-column k",
    "c.nc --data far.csv": "radius 3: point",
    "c.nc --data new.csv --engine gpu": "'gpu'",
    "c.nc --data new.csv --out folder": "folder is a folder",
    "c.nc --data new.csv --out a.txt": "a.txt",
}
BAD |= {
    f"c.nc --data new.csv --out {name}": f"{name} does not hold answers"
    for name in ("new.csv", "y.csv", "header.csv", "c.nc", "cut.nc")
}


def test_bad_input_is_one_sentence_and_changes_nothing(here):
    """A circuit, points, and much that is neither."""
    circuit = trained("c.nc")
    results.save(circuit.run(POINTS), here / "run.nc")
    (here / "cut.nc").write_bytes((here / "c.nc").read_bytes()[:-300])
    results.save(results.load(here / "c.nc").assign_attrs(format_version=99), here / "future.nc")
    trained("names.nc", label_mapping="[1, 2]")
    write(here / "new.csv", ["x", "y"], *NEW.T)
    write(here / "three.csv", ["x", "y", "z"], *NEW.T, NEW[:, 0])
    write(here / "text.csv", ["x", "y", "kind"], *NEW.T, ["a", "b"] * 20)
    write(here / "far.csv", ["x", "y"], *(9 * NEW).T)
    write(here / "y.csv", ["y"], [1, -1, 1])
    (here / "header.csv").write_text("y,class\n")
    (here / "folder").mkdir()

    def content():
        return {path: path.is_file() and path.read_bytes() for path in here.rglob("*")}

    before = content()
    for arguments, words in BAD.items():
        engine = () if "--engine" in arguments else ("--engine", "exact")
        assert words in refused("predict", *arguments.split(), *engine), arguments
        assert content() == before, arguments


def test_answers_are_not_written_over_the_points_they_are_to(here):
    circuit = ReferenceCircuit(
        CircuitParameters(n_tiles=3, n_interneurons=1), SphereLift((0.0,), 3.0), settling="exact"
    )
    circuit.run(POINTS[:, :1], np.sign(POINTS[:, 0]))
    circuit.save("line.nc")
    write(here / "x.csv", ["x"], NEW[:, 0])
    for first in ("first.csv", "first.nc"):
        done("line.nc", "--data", "x.csv", "--out", first)
        before = (here / first).read_bytes()
        words = ("predict", "line.nc", "--data", first, "--out", first, "--engine", "exact")
        assert first in refused(*words, notes=int(first == "first.csv"))
        assert (here / first).read_bytes() == before


def test_the_page_passes_over_circuits_and_answers(here):
    results.save(trained("out/c.nc").run(POINTS), here / "out" / "run.nc")
    np.save("new.npy", NEW)
    done("out/c.nc", "--data", "new.npy", "--out", "out/answers.nc")
    from analysis.page.reading import read_results

    found, skipped = read_results(here / "out")
    assert [result.name for result in found] == ["run.nc"]
    assert skipped == []


def test_rates_read_back_as_they_were():
    y = np.random.default_rng(0).normal(size=(200, 1)) * 10.0 ** np.arange(-100, 100)[:, None]
    answers = prediction.Answers(np.zeros((200, 2)), y, {})
    text = prediction.as_csv(answers).splitlines()
    assert [float(cell) for cell in text[1:]] == y[:, 0].tolist()
    assert all(prediction.ANSWER.fullmatch(cell) for cell in text[1:])
