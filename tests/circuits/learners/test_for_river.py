"""The circuit in river: river's own checks, and the estimator itself as oracle."""

from __future__ import annotations

import itertools
import pickle
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from circuits import ManifoldClassifier
from circuits.errors import InputError, PackageError
from tests.circuits.learners.streams import assert_same, moons, taught
from tests.refusing import refused

pytest.importorskip("river")

from river import checks, naive_bayes

from circuits.learners.for_river import RiverManifoldClassifier

LONG = "check_bounded_memory_growth"
"""Takes 2000 points of each of three streams: the last is enough."""

EVERY = list(checks.yield_checks(RiverManifoldClassifier()))
SKIPPED = RiverManifoldClassifier()._unit_test_skips()
CHECKS = [
    pytest.param(check, marks=[pytest.mark.slow] if check.__name__ == LONG else [])
    for number, check in enumerate(EVERY, 1)
    if check.__name__ not in SKIPPED and (check.__name__ != LONG or number == len(EVERY))
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_river_expects(check):
    assert len(CHECKS) > 40
    # Most checks have 200 points: some come after the first ones.
    check(RiverManifoldClassifier(first=170))


NAMES = np.array(["red", "blue"])


def as_rows(X, y, known):
    """Points as dictionaries, and labels or None."""
    rows = [{"east": float(a), "north": float(b)} for a, b in X]
    return rows, [str(NAMES[c]) if k else None for c, k in zip(y, known, strict=True)]


def test_the_estimator_point_by_point():
    X, y, known = moons(120, 0.3)
    rows, labels = as_rows(X, y, known)
    unnamed = RiverManifoldClassifier(first=50)
    assert unnamed.predict_proba_one(rows[0]) == {}
    assert unnamed.predict_one(rows[0]) is None
    model = RiverManifoldClassifier(ManifoldClassifier(30), first=50, classes=["red", "blue"])
    # The order of features is that of the first point.
    for i, (x, label) in enumerate(zip(rows, labels, strict=True)):
        model.learn_one(dict(reversed(x.items())) if i % 2 else x, label)
    oracle = taught(X, np.where(known, y, -1), 50, [0, 1], n_tiles=30)
    assert_same(model._learner.model, oracle)
    for x, point, expected in zip(rows, X, oracle.predict(X), strict=True):
        found = model.predict_proba_one(dict(reversed(x.items())))
        assert list(found) == ["red", "blue"]
        assert list(found.values()) == oracle.predict_proba([point])[0].tolist()
        assert model.predict_one(x) == NAMES[expected]


def test_the_estimator_in_batches():
    X, y, known = moons(120, 0.3)
    rows, labels = as_rows(X, y, known)
    model = RiverManifoldClassifier(first=50, classes=["red", "blue"])
    table = pd.DataFrame(rows, index=range(1000, 1120))
    # Columns in the other order in the second part, and another sign of a missing label.
    for part, missing, columns in (
        (slice(0, 70), None, ["east", "north"]),
        (slice(70, 120), np.nan, ["north", "east"]),
    ):
        given = [missing if label is None else label for label in labels[part]]
        assert given.count(missing) > 20
        model.learn_many(table[part][columns], pd.Series(given, dtype=object))
    oracle = taught(X, np.where(known, y, -1), 50, [0, 1], [70, 120])
    assert_same(model._learner.model, oracle)
    answers = model.predict_proba_many(table[["north", "east"]])
    assert answers.index.tolist() == table.index.tolist()
    assert answers.columns.tolist() == ["red", "blue"]
    assert (answers.to_numpy() == oracle.predict_proba(X)).all()
    assert (model.predict_many(table) == NAMES[oracle.predict(X)]).all()


@pytest.mark.parametrize("learned", [1, 30])
def test_features_stay_those_of_the_first_point(learned):
    X, y, known = moons(30, 1.0)
    rows, labels = as_rows(X, y, known)
    model = RiverManifoldClassifier(first=20)
    # A first point that is refused decides nothing.
    refused(lambda: model.learn_one({"a": np.inf}, None), "finite", InputError)
    refused(lambda: model.learn_one({}, None), r"got \(1, 0\)", InputError)
    for x, label in itertools.islice(zip(rows, labels, strict=True), learned):
        model.learn_one(x, label)
    before = pickle.dumps(model)
    first = "first, east, north; got "
    for wrong, words in [
        ({"east": 0.0}, first + "east$"),
        ({"east": 0.0, "north": 1.0, "up": 2.0}, first + "east, north, up$"),
        ({"east": 0.0, "up": 2.0}, first + "east, up$"),
        ({}, first + "none$"),
        ({"east": 0.0, "north": "far"}, "'far'"),
        ({"east": 0.0, "north": None}, "real numbers"),
        ({"east": 0.0, "north": np.nan}, "finite"),
    ]:
        refused(lambda x=wrong: model.learn_one(x, "red"), words, InputError)
        refused(lambda x=wrong: model.predict_proba_one(x), words, InputError)
    narrow = pd.DataFrame({"east": [0.0]})
    refused(lambda: model.learn_many(narrow, pd.Series(["red"])), first + "east$", InputError)
    assert pickle.dumps(model) == before


def test_copies():
    X, y, known = moons(60, 0.5)
    rows, labels = as_rows(X, y, known)
    model = RiverManifoldClassifier(ManifoldClassifier(20), first=40, classes=["red", "blue"])
    for x, label in zip(rows[:50], labels[:50], strict=True):
        model.learn_one(x, label)
    again = pickle.loads(pickle.dumps(model))
    fresh = model.clone()
    assert fresh.predict_proba_one({"any": 1.0}) == {"red": 0.5, "blue": 0.5}
    assert (fresh.first, fresh.model.get_params()) == (40, model.model.get_params())
    for x, label in zip(rows[50:], labels[50:], strict=True):
        model.learn_one(x, label)
        again.learn_one(x, label)
    assert_same(again._learner.model, model._learner.model)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_unlabelled_points_help_along_the_stream(seed):
    """Two moons, one label in fifty: what answers before it learns, beside river's naive Bayes,
    which only takes points with a label."""
    X, y, known = moons(900, 0.02, seed)
    rows, labels = as_rows(X, y, known)
    model, other = RiverManifoldClassifier(classes=["red", "blue"]), naive_bayes.GaussianNB()
    right = {model: [], other: []}
    for i, (x, label) in enumerate(zip(rows, labels, strict=True)):
        for asked in right:
            if i >= 500:
                right[asked].append(asked.predict_one(x) == NAMES[y[i]])
            if asked is model or label is not None:
                asked.learn_one(x, label)
    assert np.mean(right[model]) > 0.95
    assert np.mean(right[other]) < 0.9


@pytest.mark.parametrize(("package", "name"), [("river", "for_river"), ("capymoa", "for_capymoa")])
def test_without_the_package_a_sentence_says_what_to_install(monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, f"{package}.base", None)
    monkeypatch.delitem(sys.modules, f"circuits.learners.{name}", raising=False)
    words = f"learners.{name} needs .*pip install .*{package}"
    refused(lambda: import_module(f"circuits.learners.{name}"), words, PackageError)
