"""The circuit in scikit-learn's conventions: their own checks, and the circuit itself as oracle."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from circuits import CircuitParameters, ManifoldClassifier, ReferenceCircuit
from circuits.errors import InputError


@parametrize_with_checks([ManifoldClassifier()])
def test_what_scikit_learn_expects(estimator, check):
    check(estimator)


def refused(words: str):
    """An error of ours that says so, whatever its class: all are ValueErrors."""
    return pytest.raises(ValueError, match=words)


def blobs(n: int = 200, seed: int = 0):
    return make_blobs(n, centers=[[0, 0], [4, 0], [0, 4]], cluster_std=0.5, random_state=seed)


def few(y, count: int = 3, missing=-1):
    """The first labels of every class, and none for the other points."""
    some = np.full(len(y), missing, dtype=np.asarray(y).dtype)
    for label in np.unique(y):
        some[np.flatnonzero(y == label)[:count]] = label
    return some


def test_one_readout_per_class_by_hand():
    """The same points and labels in the same order through a circuit with the same parameters."""
    X, y = blobs(60)
    labels = few(y)
    made = ManifoldClassifier(20, 1.5, recruit_below=0.75, random_state=3).fit(X, labels)
    circuit = ReferenceCircuit(
        CircuitParameters(
            **{"n_tiles": 20, "n_readouts": 3, "tile_radius": 1.5, "recruit_below": 0.75},
            **{"learning_rate": 0.001, "readout_rule": "gated", "readout_rate": 0.1, "mu": 1.0},
        ),
        made.circuit_.lift,
        settling="exact",
    )
    order = np.random.RandomState(3).permutation(60)
    circuit.run(X[order])
    z = np.where(labels[:, None] == np.arange(3), 1, -1) * (labels[:, None] != -1)
    for _ in range(3):
        circuit.run(X[order], z[order])
    h, w = circuit.respond(X), circuit.state.w
    assert (made.transform(X) == h).all()
    expected = []
    for row in h:
        scores = [1 + sum(w[c] * row) / sum(row) if row.any() else 1 for c in range(3)]
        expected.append(np.array(scores) / sum(scores))
    # Sums in another order.
    np.testing.assert_allclose(made.predict_proba(X), expected, atol=1e-14)
    assert (made.predict(X) == np.argmax(expected, axis=1)).all()
    assert (made.predict(X) == y).all()


def test_a_stream_goes_on_where_it_stopped():
    X, y = blobs(90)
    whole, parts = (ManifoldClassifier(tile_radius=1.5) for _ in range(2))
    # The lift is of the first points: they have to be the same.
    whole.partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    size = len(pickle.dumps(whole.circuit_))
    whole.partial_fit(X[30:], y[30:])
    parts.partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    for start, end in ((30, 31), (31, 60), (60, 90)):
        parts.partial_fit(X[start:end], y[start:end])
    assert (whole.circuit_.state.w == parts.circuit_.state.w).all()
    assert (whole.circuit_.state.W == parts.circuit_.state.W).all()
    assert parts.circuit_.state.learned == 90
    assert len(parts.undecided_) == 30
    # Points are not kept: 60 more would take 960 bytes.
    assert abs(len(pickle.dumps(whole.circuit_)) - size) < 100


def test_any_labels():
    X, y = blobs()
    texts = ["ant", "bee", "cat"]
    for names, missing in (
        (np.array(texts), "-1"),
        (np.array(texts, dtype=object), -1),
        (np.array([10.0, 20.0, 30.0]), -1),
    ):
        made = ManifoldClassifier(random_state=0).fit(X, few(names[y], missing=missing))
        assert made.classes_.tolist() == names.tolist()
        assert (made.predict(X) == names[y]).mean() > 0.99


def test_minus_one_is_a_class_where_there_is_but_one_other():
    X, y = blobs()
    signs = np.where(y == 0, 1, -1)
    fitted = ManifoldClassifier(random_state=0).fit(X, signs)
    for made in (fitted, ManifoldClassifier().partial_fit(X, signs, classes=[-1, 1])):
        assert made.classes_.tolist() == [-1, 1]
        assert (made.predict(X) == signs).mean() > 0.99
    # Where two others are named, it is silence.
    silent = ManifoldClassifier().partial_fit(X, np.full(len(X), -1), classes=[0, 1])
    assert silent.undecided_.all()


def test_points_that_no_tile_answers():
    X, y = blobs()
    made = ManifoldClassifier(tile_radius=1.0, random_state=0).fit(X, few(y))
    far = np.array([[2.0, 2.0], [100.0, -100.0], [-1e6, 0.0]])
    assert not made.transform(far).any()
    assert (made.predict_proba(far) == 1 / 3).all()
    assert made.undecided(far).all()
    assert (made.predict(far) == made.classes_[0]).all()
    assert (made.undecided_ == made.undecided(X)).all()
    assert not made.undecided_[few(y) != -1].any()


def test_numbers_of_any_size_are_moved_to_the_rim():
    """Squares of such numbers are infinite."""
    X, y = blobs()
    made = ManifoldClassifier(tile_radius=1.5).partial_fit(X, y)
    lift = made.circuit_.lift
    largest = np.array([[1e200, 0.0], [-1e308, 1e308]])
    along = np.array([[1.0, 0.0], [-(0.5**0.5), 0.5**0.5]])
    np.testing.assert_allclose(made._within(largest), lift.center + 0.999 * lift.radius * along)
    assert np.isfinite(made.predict_proba(largest)).all()
    assert np.isfinite(made.partial_fit(largest, [0, 0]).predict_proba(largest)).all()


def corners(**options) -> ManifoldClassifier:
    """Four points around 0, one class each, a tile of radius 1/4 on every one."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    made = ManifoldClassifier(tile_radius=0.25, recruit_below=0.5, **options)
    return made.partial_fit(X, [0, 1, 2, 3])


def test_the_lift_reaches_beyond_the_first_points_by_hand():
    """Its radius is 7/4 of the farthest point, or of two radii of a tile if that is more."""
    made = corners()
    assert made.circuit_.lift.center.tolist() == [0.0, 0.0]
    assert made.circuit_.lift.radius == 1.75
    for radius, reach in ((0.5, 1.0), (0.75, 1.5)):
        near = ManifoldClassifier(tile_radius=radius).partial_fit([[-1.0], [1.0]], [0, 1])
        assert near.circuit_.lift.radius == 1.75 * reach
    # A point on the rim is inside, and one in the centre has no direction.
    inside = np.array([[1.75, 0.0], [0.0, -1.75], [0.0, 0.0], [5e-324, 0.0], [1.05, 1.4]])
    assert (made._within(inside) == inside).all()
    outside = np.array([[1.76, 0.0], [0.0, -2.0], [1.06, 1.41]])
    length = np.sqrt((outside**2).sum(axis=1, keepdims=True))
    # Some roundings.
    np.testing.assert_allclose(
        made._within(outside), 0.999 * 1.75 * outside / length, rtol=1e-14, atol=1e-14
    )


def test_tiles_are_recycled_only_if_asked_for():
    """Four tiles are in use: the fifth point finds none, or takes one."""
    far = [[0.7, 0.7]]
    assert corners(n_tiles=4).partial_fit(far, [0]).undecided_.tolist() == [True]
    again = corners(n_tiles=4, recycle=True).partial_fit(far, [0])
    assert again.undecided_.tolist() == [False]
    assert again.circuit_.state.in_use.sum() == 4


def test_all_classes_ruled_out_are_as_likely():
    """Where every readout says no with all its weight, nothing is left to divide by."""
    made = corners()
    state = made.circuit_.state
    state.w[:] = -1.0
    made.circuit_.state = state
    # The first point is answered by its own tile alone.
    assert made.predict_proba([[1.0, 0.0]]).tolist() == [[0.25] * 4]
    state.w[2] = 0.0
    made.circuit_.state = state
    assert made.predict_proba([[1.0, 0.0]]).tolist() == [[0.0, 0.0, 1.0, 0.0]]
    assert made.undecided([[1.0, 0.0]]).tolist() == [False]  # three classes it is not


def test_how_many_points_are_presented_at_once_does_not_matter(monkeypatch):
    X, y = blobs(50)
    results = []
    for at_once in (1000, 50, 7):
        monkeypatch.setattr("circuits.learners.classifier.AT_A_TIME", at_once)
        made = ManifoldClassifier(tile_radius=1.5, random_state=0).fit(X, few(y))
        assert made.circuit_.state.learned == 4 * 50
        results.append((made.circuit_.state.w, made.transform(X), made.predict_proba(X)))
        assert made.undecided_.shape == (50,)
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            # Products of matrices of another size may add in another order.
            np.testing.assert_allclose(same, one, atol=1e-12)


def test_unlabelled_points_help():
    """Two labels on two moons: with the other points all are right, without them they are not."""
    X, y = make_moons(600, noise=0.05, random_state=1)
    labels = few(y, count=1)
    made = ManifoldClassifier(random_state=0).fit(X, labels)
    assert made.score(X, y) > 0.99
    known = labels != -1
    alone = clone(made).set_params(tile_radius=made.circuit_.parameters.tile_radius)
    assert alone.fit(X[known], labels[known]).score(X, y) < 0.9


@pytest.mark.parametrize(
    "engine", ["reference", "numpy", pytest.param("cpp_standalone", marks=pytest.mark.slow)]
)
def test_engines_agree(engine):
    X, y = blobs(12)
    labels = few(y)
    options = {"n_tiles": 20, "tile_radius": 1.5, "n_passes": 1, "random_state": 3}
    exact = ManifoldClassifier(**options).fit(X, labels)
    other = ManifoldClassifier(**options, engine=engine).fit(X, labels)
    assert other.circuit_.engine == engine
    # What 80 steps leave unsettled.
    np.testing.assert_allclose(other.transform(X), exact.transform(X), atol=1e-6)
    assert (other.predict(X) == exact.predict(X)).all()


def test_it_goes_where_estimators_go():
    X, y = blobs()
    made = make_pipeline(StandardScaler(), ManifoldClassifier(random_state=0)).fit(X, few(y))
    assert made.score(X, y) > 0.97
    again = pickle.loads(pickle.dumps(made))
    assert (again.predict_proba(X) == made.predict_proba(X)).all()
    names = made[-1].get_feature_names_out()
    assert names[[0, -1]].tolist() == ["manifoldclassifier0", "manifoldclassifier399"]


def test_order_is_of_the_random_state_and_passes_are_counted():
    X, y = blobs(60)
    options = ((0, 3), (0, 3), (1, 3), (0, 1), (0, np.int64(2)))
    made = [ManifoldClassifier(random_state=s, n_passes=n).fit(X, few(y)) for s, n in options]
    states = [one.circuit_.state for one in made]
    assert (states[0].W == states[1].W).all()
    assert not (states[0].W == states[2].W).all()
    # One pass more, in silence.
    assert [state.learned for state in states] == [4 * 60, 4 * 60, 4 * 60, 2 * 60, 3 * 60]


def test_bad_parameters_are_named():
    X, y = blobs(30)
    for changes, words in (
        ({"engine": "gpu"}, "engine 'gpu'.*auto, cpp_standalone"),
        ({"engine": ["exact"]}, "engine"),
        *(({"n_passes": value}, f"n_passes .*got {value}") for value in (0, 1.5, True)),
        *(({name: -1.0}, name) for name in ("n_tiles", "tile_radius", "mu")),
    ):
        made = ManifoldClassifier(**changes)
        with refused(words):
            made.fit(X, y)
        assert not hasattr(made, "circuit_")


def test_bad_labels_are_named():
    X, y = blobs(30)
    made = ManifoldClassifier()
    # A stream whose first call is refused begins with the next one.
    with refused("got 9"):
        made.partial_fit(X, np.full(30, 9), classes=[0, 1, 2])
    assert not hasattr(made, "circuit_")
    assert made.partial_fit(X, y, classes=[0, 1, 2]).circuit_.state.learned == 30
    for labels, classes, words in (
        (np.append(y[:29], 7), None, r"\[0, 1, 2\] or -1, got 7"),
        ([-1, 8, 7] * 10, None, "got 8"),  # the first of several
        (y, [0, 1], r"first call, \[0, 1, 2\]"),
    ):
        with pytest.raises(InputError, match=words):
            made.partial_fit(X, labels, classes=classes)
    with pytest.raises(NotFittedError):
        ManifoldClassifier().predict(X)
    for points, labels, words in (
        (X, np.full(30, -1), "no labels"),
        (np.full((30, 2), np.nan), y, "NaN"),
        (X, np.array(["a", None, "b"] * 10, dtype=object), "texts.*got None"),
        (X, np.array(["a", -1, "b"] * 9 + ["a", "b", 3], dtype=object), "texts.*got 3"),
    ):
        with refused(words):
            ManifoldClassifier().fit(points, labels)


def test_a_radius_needs_points_that_differ():
    for points in (np.ones((1, 2)), np.ones((10, 2))):
        labels = np.arange(len(points)) % 2
        with refused("tile_radius .*one sample"):
            ManifoldClassifier().partial_fit(points, labels, classes=[0, 1])
        made = ManifoldClassifier(tile_radius=0.5).partial_fit(points, labels, classes=[0, 1])
        assert made.transform(points)[0].tolist() == [1.0] + [0.0] * 399
        assert not made.transform(points + 1).any()


def test_units_do_not_matter():
    """A power of ten is not one of two: rounding of the points moves rates by some 1e-13."""
    (X, y), unit = blobs(60), 1e-200
    own, other = (ManifoldClassifier(random_state=0).fit(X * s, few(y)) for s in (1.0, unit))
    np.testing.assert_allclose(other.transform(X * unit), own.transform(X), atol=1e-9)
    assert (other.predict(X * unit) == own.predict(X)).all()
