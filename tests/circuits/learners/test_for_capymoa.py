"""The circuit in CapyMOA: its own evaluation, and the estimator itself as oracle."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ManifoldClassifier
from circuits.errors import InputError
from tests.circuits.learners.streams import assert_same, moons, taught

pytest.importorskip("capymoa")

from capymoa.base import learner_from_params
from capymoa.classifier import NaiveBayes
from capymoa.core import LabeledInstance
from capymoa.evaluation import prequential_ssl_evaluation
from capymoa.stream import NumpyStream

from circuits.learners.for_capymoa import CapyMOAManifoldClassifier


def test_the_estimator_instance_by_instance():
    X, y, known = moons(120, 0.3)
    stream = NumpyStream(X, y)
    model = CapyMOAManifoldClassifier(stream.schema, model=ManifoldClassifier(30), first=50)
    seen = []
    for i, instance in enumerate(stream):
        seen.append(instance)
        assert (model.predict(instance) is None) == (i < 50)
        assert (model.predict_proba(instance) is None) == (i < 50)
        if known[i]:
            model.train(instance)
        elif i % 2:
            model.train_on_unlabeled(instance)
        else:  # a class that is missing
            model.train(LabeledInstance.from_array(stream.schema, X[i], -1))
    oracle = taught(X, np.where(known, y, -1), 50, [0, 1], n_tiles=30)
    assert_same(model._learner.model, oracle)
    for instance, x in zip(seen, X, strict=True):
        assert (model.predict_proba(instance) == oracle.predict_proba([x])[0]).all()
        assert model.predict(instance) == oracle.predict([x])[0]


def test_a_class_that_never_came_has_an_answer():
    """The schema names three classes, of which two occur."""
    X, y, _ = moons(60, 1.0)
    schema = NumpyStream(X, np.arange(60) % 3).schema
    model = CapyMOAManifoldClassifier(schema, first=40)
    for x, label in zip(X, y, strict=True):
        model.train(LabeledInstance.from_array(schema, x, label))
    answers = np.array([model.predict_proba(LabeledInstance.from_array(schema, x, 0)) for x in X])
    assert answers.shape == (60, 3)
    assert (answers.argmax(axis=1) == y).mean() > 0.9
    assert (answers[:, 2] <= answers.min(axis=1)).all()


def test_what_cannot_be_learned_is_refused():
    X, y, _ = moons(10, 1.0)
    schema = NumpyStream(X, y).schema
    model = CapyMOAManifoldClassifier(schema)
    for method in (model.train, model.train_on_unlabeled, model.predict_proba):
        for x in ([0.0, np.nan], [0.0, 0.0, 0.0]):
            with pytest.raises(InputError, match="points"):
                method(LabeledInstance.from_array(schema, np.array(x), 0))


@pytest.mark.parametrize("seed", [0, 1])
def test_their_evaluation_finds_that_unlabelled_points_help(seed):
    """Two moons, one label in twenty, beside naive Bayes, which takes points with a label."""
    X, y, _ = moons(1200, 0.0, seed)
    stream = NumpyStream(X, y)
    accuracy = []
    for learner in (CapyMOAManifoldClassifier(stream.schema), NaiveBayes(stream.schema)):
        found = prequential_ssl_evaluation(
            stream, learner, window_size=400, label_probability=0.05, random_seed=seed
        )
        accuracy.append(found.windowed.accuracy()[-1])
        assert 0.02 < 1 - found.other_metrics()["unlabeled_ratio"] < 0.08
    own, other = accuracy
    assert own > 98
    assert other < 92


def test_made_again_from_its_parameters():
    X, y, _ = moons(60, 1.0)
    stream = NumpyStream(X, y)
    given = ManifoldClassifier(20)
    model = CapyMOAManifoldClassifier(stream.schema, 5, model=given, first=40)
    assert model.random_seed == 5
    assert model.get_params() == {"model": given, "first": 40}
    name = f"{CapyMOAManifoldClassifier.__module__}.CapyMOAManifoldClassifier"
    again = learner_from_params({"learner": name, "params": model.get_params()}, stream.schema)
    for instance in stream:
        model.train(instance)
        again.train(instance)
    assert_same(again._learner.model, model._learner.model)
