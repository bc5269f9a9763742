"""The first points of a stream, kept until they can decide; the estimator itself as oracle."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ManifoldClassifier
from circuits.errors import InputError, ParameterError
from circuits.streaming.learner import StreamLearner
from tests.circuits.streaming.streams import assert_same, moons, taught


def stream(n: int = 90, share: float = 0.3):
    """Points, classes as words or None, and the same as the estimator wants them."""
    X, y, known = moons(n, share)
    words = [["low", "high"][c] if k else None for c, k in zip(y, known, strict=True)]
    return X, words, np.where(known, y, -1)


@pytest.mark.parametrize(
    ("parts", "later"),
    [
        ([1] * 90, None),
        ([90], [90]),
        ([49, 1, 40], [90]),
        ([50, 39, 1], [89, 90]),
        ([30, 45, 15], [75, 90]),
    ],
)
def test_the_first_points_decide_in_whatever_parts_they_come(parts, later):
    X, words, labels = stream()
    learner = StreamLearner(ManifoldClassifier(30), 50, ["low", "high"])
    start = 0
    for size in parts:
        learner.learn(X[start : start + size], words[start : start + size])
        start += size
        assert learner.started == (start >= 50)
    oracle = taught(X, labels, 50, [0, 1], later, n_tiles=30)
    assert oracle.circuit_.state.learned == 90
    assert_same(learner.model, oracle)
    assert (learner.answer(X) == oracle.predict_proba(X)).all()


def test_classes_are_those_of_the_first_points_unless_they_are_named():
    X, _, _ = stream()
    words = ["bee", None, "ant"] * 20 + ["cat"]
    learner = StreamLearner(None, 60, None)
    with pytest.raises(InputError, match=r"class 'cat' is not among \['bee', 'ant'\]: name all"):
        learner.learn(X[:61], words)
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
    with pytest.raises(InputError, match="class 'dog' is not among"):
        StreamLearner(None, 60, ["cat"]).learn(X[:1], ["dog"])


def test_minus_one_is_a_class_like_any_other():
    X, y, known = moons(90, 0.3)
    labels = [2 * int(c) - 1 if k else None for c, k in zip(y, known, strict=True)]
    learner = StreamLearner(None, 60, [-1, 1])
    learner.learn(X, labels)
    assert_same(learner.model, taught(X, np.where(known, y, -1), 60, [0, 1], [90]))


def test_first_points_that_cannot_decide_are_kept_and_more_with_them():
    X, _, _ = stream()
    learner = StreamLearner(None, 10, None)
    learner.learn(X[:9], [None] * 9)
    for i in (9, 10):
        with pytest.raises(InputError, match="there are no labels: give some points a class"):
            learner.learn(X[i : i + 1], [None])
    learner.learn(X[11:13], ["a", "a"])
    oracle = taught(X[:13], [-1] * 11 + [0, 0], 12, [0])
    assert_same(learner.model, oracle)


def test_points_are_copied():
    X, words, labels = stream()
    learner, own = StreamLearner(None, 50, ["low", "high"]), X.copy()
    learner.learn(own[:30], words[:30])
    own[:30] = 7
    learner.learn(own[30:], words[30:])
    assert_same(learner.model, taught(X, labels, 50, [0, 1], [90]))


def test_the_model_that_was_given_is_left_as_it_was():
    X, words, _ = stream()
    given = ManifoldClassifier(20, random_state=1)
    learner = StreamLearner(given, 50, ["low", "high"])
    learner.learn(X, words)
    assert not hasattr(given, "circuit_")
    assert learner.model.get_params() == given.get_params()


def test_before_the_start_all_classes_are_as_likely():
    X, _, _ = stream()
    learner = StreamLearner(None, 50, None)
    assert learner.answer(X[:2]).shape == (2, 0)
    learner.learn(X[:3], ["a", None, "b"])
    assert learner.answer(X[:2]).tolist() == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3, 50, None), "model must be a ManifoldClassifier, got 3"),
        ((None, 0, None), "first must be a whole number from 1, got 0"),
        ((None, 2.5, None), "first must be a whole number from 1, got 2.5"),
    ],
)
def test_bad_parameters_are_named(arguments, words):
    with pytest.raises(ParameterError, match=words):
        StreamLearner(*arguments)


def test_every_point_has_a_label_or_none():
    X, _, _ = stream()
    with pytest.raises(InputError, match="there must be a label per point, got 1 for 2"):
        StreamLearner(None, 50, None).learn(X[:2], ["a"])
