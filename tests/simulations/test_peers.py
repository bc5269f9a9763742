"""Learners of other packages: what is counted and printed, by hand, and what they are given."""

from __future__ import annotations

import json

import numpy as np
import pytest

from circuits.errors import InputError
from simulations import peers, sweep
from simulations.experiments import get_experiment, manifold_drift
from tests.simulations.small import TINY

SECTION = peers.Section("labels", lambda seed: {"1": {"a": seed, "b": 1.0}}, (), "Made up.")
SMALL_DIGITS = {"n_points": 300, "first": 20, "n_tiles": 60}


@pytest.fixture
def made_sections(monkeypatch, tmp_path):
    """A function that puts made-up sections in the place of the real ones."""
    monkeypatch.setattr(peers, "OUT", tmp_path / "peers.json")
    return lambda **sections: monkeypatch.setattr(peers, "SECTIONS", sections)


def use_config(monkeypatch, name, changes):
    """Let an experiment have this configuration, whatever is asked for; return it."""
    config = get_experiment(name).config("exact", changes)
    monkeypatch.setattr(type(get_experiment(name)), "config", lambda *_: config)
    return config


def run_of(config):
    return sweep.run_job(sweep.Job(config.as_dict(), 3))


def test_values_are_collected_seed_by_seed_and_the_best_of_a_row_is_emphasised():
    assert peers.measure(SECTION, (3, 5)) == {"1": {"a": [3, 5], "b": [1.0, 1.0]}}
    measured = {"1": {"a": [0.5, 0.7], "b": [0.4, 0.4]}, "5": {"a": [0.5, 0.5], "b": [0.9, 0.7]}}
    lines = peers.section_table(SECTION, measured).splitlines()
    assert lines == [
        "| labels | a | b |",
        "| --- | --- | --- |",
        "| 1 | **0.600 ± 0.141** | 0.400 ± 0.000 |",
        "| 5 | 0.500 ± 0.000 | **0.800 ± 0.141** |",
        "",
        "Made up. Mean and standard deviation, 2 seeds.",
    ]


class Echo:
    """Answers with what it learned last, and keeps what it was asked."""

    def __init__(self) -> None:
        self.last, self.asked, self.learned = None, [], []

    def learn_one(self, features, label):
        self.last = label
        self.learned.append(features[0])

    def predict_one(self, features):
        self.asked.append(features[0])
        return self.last


def test_streams_are_answered_before_they_are_learned_from():
    points = np.arange(6.0)[:, None]
    truth = np.array([1, 1, 2, 1, 2, 2])
    labels = np.array([-1, 1, -1, -1, 2, -1])
    learner = Echo()
    # In the second half 3 is answered with 1, which is right, and 5 with 2.
    assert peers.prequential(learner, points, truth, labels) == 1
    assert (learner.learned, learner.asked) == ([1, 4], [3, 5])
    assert peers.prequential(Echo(), points, truth, np.full(6, -1)) == 0  # no answer
    assert peers.prequential(Echo(), points, np.full(6, 1), labels) == 0.5
    assert peers.prequential(Echo(), points, truth, labels, 2) == pytest.approx(2 / 3)


def test_packages_that_are_missing_are_named_with_the_extra(made_sections, tmp_path):
    peers.check_packages(["numpy"])
    with pytest.raises(InputError, match=r"^no_such_package not .*'manifold-circuit\[peers\]'$"):
        peers.check_packages(["numpy", "no_such_package"])
    made_sections(made=peers.Section("rows", lambda seed: {}, ("no_such_package",), ""))
    with pytest.raises(InputError, match="no_such_package"):
        peers.main([])
    with pytest.raises(InputError, match=r"'other'.* made"):
        peers.main(["other"])
    assert not any(tmp_path.iterdir())


def test_what_was_measured_of_other_sections_stays(made_sections, tmp_path, capsys):
    other = peers.Section("labels", lambda seed: {"1": {"a": 0.5}}, (), "Other.")
    made_sections(made=SECTION, other=other)
    peers.main(["other"])
    peers.main(["made"])
    kept = json.loads((tmp_path / "peers.json").read_text())
    assert list(kept) == ["made", "other"]
    assert kept["other"] == {"1": {"a": [0.5] * len(peers.SEEDS)}}
    assert "Other. Mean" in capsys.readouterr().out.splitlines()[-2]


def test_poisson_learning_tells_clusters_apart():
    """Clusters that touch: it needs a graph in one piece."""
    pytest.importorskip("graphlearning")
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 40)
    points = rng.normal(0, 0.25, (80, 6)) + 0.6 * truth[:, None]
    labels = np.full(80, -1)
    labels[[0, 40]] = 0, 1
    assert (peers.poisson_learning(points, labels) == truth).mean() > 0.9
    labels[[0, 40]] = 1, 0
    assert (peers.poisson_learning(points, labels) == truth).mean() < 0.1


def test_rivers_learners_learn_from_labels():
    pytest.importorskip("river")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    points = rng.normal(0, 0.1, (200, 3)) + truth[:, None]
    for name, learner in peers.river_learners(0).items():
        assert peers.prequential(learner, points, truth, np.where(rng.random(200) < 0.3, truth, -1))
        assert peers.prequential(learner, points, truth, np.full(200, -1)) > 0.9, name


def test_streams_and_labels_are_those_of_the_experiment(monkeypatch):
    """On few images, with Poisson learning and river's learners replaced."""
    run = run_of(use_config(monkeypatch, "digits", SMALL_DIGITS))
    seen = []

    def answered(points, labels):
        seen.append((labels >= 0).sum())
        return np.zeros(len(points), dtype=int)

    monkeypatch.setattr(peers, "poisson_learning", answered)
    monkeypatch.setattr(peers, "river_learners", lambda seed: {"echo": Echo()})
    found = peers.digits_with_few_labels(3)
    assert seen == [10, 50, 100]
    for count, own in found.items():
        few = run["few_accuracy"].sel(n_labels=int(count))
        assert own["circuit, one pass"] == float(few.sel(learner="gated"))
        assert own["LabelSpreading"] == float(few.sel(learner="spreading"))
        assert 0.05 < own["Poisson learning"] < 0.15  # the share of zeros
    streamed = peers.digits_in_streams(3)
    assert list(streamed) == ["2%", "5%"]
    for share, own in zip((0.02, 0.05), streamed.values(), strict=True):
        late = run["stream_accuracy"].sel(share=share)
        assert own["circuit"] == float(late.sel(stream_learner="gated"))
        assert 0 <= own["echo"] < 0.4


def test_moving_moons_are_those_of_the_experiment(monkeypatch):
    config = use_config(monkeypatch, "manifold-drift", TINY["manifold-drift"])
    run = run_of(config)
    monkeypatch.setattr(peers, "MOVING_LABELS", 0.2)
    made = []

    def learners(seed, window):
        assert (seed, window) == (3, 20)
        made.append(Echo())
        return {"echo": made[-1]}

    monkeypatch.setattr(peers, "river_learners", learners)
    found = peers.moving_moons(3)
    assert list(found) == list(run["stream"].values)
    for (name, own), echo in zip(found.items(), made, strict=True):
        # Both labels come long before what is counted.
        accuracy = run["accuracy"].sel({"stream": name, "follower": "gated"})
        assert own["circuit, two labels"] == pytest.approx(float(accuracy))
        points, classes, _ = config.settings.stream(name, 3)
        known = np.random.default_rng([3, 2**20]).random(400) < 0.2
        circuit = manifold_drift.circuit_for(config, "gated")
        y = circuit.run(points, np.where(known, classes, 0))["y"].to_numpy()[:, 0]
        late = [t for t in range(300, 400) if not known[t]]
        right = [0.5 if y[t] == 0 else float(np.sign(y[t]) == classes[t]) for t in late]
        assert own["circuit"] == pytest.approx(np.mean(right))
        assert 0.3 < own["echo"] < 0.7
        # A fifth of 400 points, and the others of the last 100: five standard deviations.
        assert 40 < len(echo.learned) < 120
        assert 60 < len(echo.asked) < 100
