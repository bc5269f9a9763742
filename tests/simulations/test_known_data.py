"""The estimator on known data: what is counted, by hand, and what is said of it."""

from __future__ import annotations

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from simulations import known_data


def test_every_class_has_so_many_labels_and_a_seed_chooses_them():
    classes = np.repeat([0, 1, 2], (5, 10, 20))
    labels = known_data.some_labels(classes, 4, seed=3)
    assert [(labels == label).sum() for label in (0, 1, 2, -1)] == [4, 4, 4, 23]
    assert (labels[labels != -1] == classes[labels != -1]).all()
    assert (labels != known_data.some_labels(classes, 4, seed=4)).any()
    assert known_data.methods(3)["ManifoldClassifier"].random_state == 3
    assert known_data.accuracies("iris", 77)["ManifoldClassifier"] > 0.85


DATA = {
    "digits": ((1797, 64), 10),
    "iris": ((150, 4), 3),
    "wine": ((178, 13), 3),
    "wine, standardised": ((178, 13), 3),
    "two moons": ((1000, 2), 2),
}


def test_data_are_what_they_are_called():
    for name, (shape, classes) in DATA.items():
        load, _ = known_data.DATA[name]
        points, labels = load(0)
        assert points.shape == shape
        assert np.unique(labels).tolist() == list(range(classes))
        assert (load(1)[0] == points).all() == (name != "two moons")
        if name == "digits":
            assert (points.min(), points.max()) == (0, 1)
        if name == "wine, standardised":
            np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-12)
            np.testing.assert_allclose(points.std(axis=0), 1)


class Fixed:
    """Knows the classes of some points, and how many points it was given."""

    def __init__(self, wrong: int) -> None:
        self.wrong = wrong

    def fit(self, points, labels):
        self.given = len(points), (labels == -1).sum()
        return self

    def predict(self, points):
        return np.where(np.arange(len(points)) < self.wrong, 7, points[:, 0].astype(int))


def test_points_without_a_label_are_counted_by_hand(monkeypatch):
    classes = np.repeat([0, 1], 10)
    data = np.column_stack([classes, np.arange(20)]).astype(float), classes
    monkeypatch.setitem(known_data.DATA, "made", (lambda seed: data, 2))
    made = {"ManifoldClassifier": Fixed(4), "LabelSpreading": Fixed(0), "nearest label": Fixed(8)}
    monkeypatch.setattr(known_data, "methods", lambda seed: made)
    found = known_data.accuracies("made", 0)
    assert found == {"ManifoldClassifier": 0.75, "LabelSpreading": 1.0, "nearest label": 0.5}
    assert made["ManifoldClassifier"].given == made["LabelSpreading"].given == (20, 16)
    assert made["nearest label"].given == (4, 0)
    monkeypatch.setattr(known_data, "DATA", {"made": known_data.DATA["made"]})
    assert known_data.compare(range(2))["made"]["ManifoldClassifier"] == [0.75, 0.75]


def test_the_table_by_hand():
    accuracy = {"ManifoldClassifier": [0.9, 1.0], "LabelSpreading": [0.8, 0.8]}
    accuracy["nearest label"] = [0.5, 0.7]
    stream = {"points": 1e6, "first": 200.4, "peak": 201.0, "accuracy": 0.99}
    text = known_data.table({"accuracy": {"iris": accuracy}, "stream": stream})
    # Differences 0.1 and 0.2: mean 0.15, standard deviation 0.0707, error 0.05.
    row = "| iris, 10 | 0.950 ± 0.071 | 0.800 ± 0.000 | 0.600 ± 0.141 | +0.150 ± 0.050 (s.e.) |"
    for words in (row, "over 2 seeds", "1,000,000 points", "200 MB ", "201 MB ", "8 TB"):
        assert words in text


def test_a_stream_comes_in_chunks_and_its_memory_is_noted_after_each(monkeypatch):
    grown = itertools.count(1)
    usage = SimpleNamespace(
        RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_maxrss=1024 * next(grown))
    )
    monkeypatch.setitem(sys.modules, "resource", usage)
    # 20 chunks: a tenth of them are two.
    found = known_data.stream(1950, 100)
    assert found.pop("accuracy") > 0.97
    assert found == {"points": 2000, "first": 2, "peak": 20}


@pytest.mark.slow
def test_a_stream_does_not_need_more_memory_as_it_grows():
    found = known_data.stream_apart(20_000)
    assert found["points"] == 20_000
    # Ten thousand points of 400 rates are 32 MB: nobody keeps them.
    assert found["peak"] - found["first"] < 8
    assert found["accuracy"] > 0.97
