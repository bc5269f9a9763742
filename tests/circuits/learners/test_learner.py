"""The first points of a stream, kept until they can decide; the estimator itself as oracle."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ManifoldClassifier
from circuits.errors import InputError, ParameterError
from circuits.learners.stream import StreamLearner
from tests.circuits.learners.streams import assert_same, moons, taught
from tests.refusing import refused


def stream(n: int = 90, share: float = 0.3):
    """Points, classes as words or None, and the same as the estimator wants them."""
    X, y, known = moons(n, share)
    words = [["low", "high"][c] if k else None for c, k in zip(y, known, strict=True)]
    return X, words, np.where(known, y, -1)


@pytest.mark.parametrize(
    ("parts", "later"),
    [([1] * 90, None), ([90], [90]), ([50, 39, 1], [89, 90]), ([30, 45, 15], [75, 90])],
)
def test_the_first_points_decide_in_whatever_parts_they_come(parts, later):
    X, words, labels = stream()
    given, own = ManifoldClassifier(30), X.copy()
    learner = StreamLearner(given, 50, ["low", "high"])
    start = 0
    for size in parts:
        learner.learn(own[start : start + size], words[start : start + size])
        own[start : start + size] = 7  # points are copied
        start += size
        assert learner.started == (start >= 50)
    oracle = taught(X, labels, 50, [0, 1], later, n_tiles=30)
    assert oracle.circuit_.state.learned == 90
    assert_same(learner.model, oracle)
    assert (learner.answer(X) == oracle.predict_proba(X)).all()
    assert not hasattr(given, "circuit_")
    assert learner.model.get_params() == given.get_params()


def test_classes_are_those_of_the_first_points_unless_they_are_named():
    X, _, _ = stream()
    words = ["bee", None, "ant"] * 20 + ["cat"]
    learner = StreamLearner(None, 60, None)
    refused(lambda: learner.learn(X[:61], words), r"'cat' .*\['bee', 'ant'\]", InputError)
    # What came before it is learned, and the stream can go on.
    assert learner.started
    learner.learn(X[61:62], ["ant"])
    assert learner.model.circuit_.state.learned == 61
    assert list(learner.classes) == ["bee", "ant"]
    named = StreamLearner(None, 60, np.array(["cat", "ant", "bee"]))
    named.learn(X[:61], words)
    assert list(named.classes) == ["cat", "ant", "bee"]
    numbers = [-1 if word is None else ["cat", "ant", "bee"].index(word) for word in words]
    assert_same(named.model, taught(X[:61], numbers, 60, [0, 1, 2]))


def test_first_points_that_cannot_decide_are_kept_and_more_with_them():
    X, _, _ = stream()
    learner = StreamLearner(None, 10, None)
    assert learner.answer(X[:2]).shape == (2, 0)
    learner.learn(X[:9], [None] * 9)
    for i in (9, 10):
        refused(lambda i=i: learner.learn(X[i : i + 1], [None]), "no labels", InputError)
    learner.learn(X[11:13], [-1, -1])  # a class like any other
    oracle = taught(X[:13], [-1] * 11 + [0, 0], 12, [0])
    assert_same(learner.model, oracle)
    # Before the start all classes are as likely.
    waiting = StreamLearner(None, 50, None)
    waiting.learn(X[:3], ["a", None, "b"])
    assert waiting.answer(X[:2]).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_arguments_that_cannot_work():
    X, _, _ = stream()
    refused(lambda: StreamLearner(3, 50, None), "model .*got 3", ParameterError)
    refused(lambda: StreamLearner(None, 0, None), "first .*from 1, got 0", ParameterError)
    refused(lambda: StreamLearner(None, 50, None).learn(X[:2], ["a"]), "1 for 2", InputError)
    refused(lambda: StreamLearner(None, 60, ["cat"]).learn(X[:1], ["dog"]), "'dog'", InputError)
