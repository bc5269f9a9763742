"""`ManifoldClassifier` on data that people know: ``python -m simulations.known_data``.

Everything is as it comes: both estimators with their defaults, the data as scikit-learn ships them.
The defaults were chosen on digits, iris, wine, breast cancer and two moons, with other labels than
those here (seeds from 10,000 on). Where points are the same for every seed, only the choice of what
is labelled is new. `UNSEEN` data had no part in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from circuits import ManifoldClassifier
from circuits.lift import FloatArray
from circuits.storage import files
from simulations.datasets import spiral_arcs, two_moons

SEEDS = range(100)
"""Ten leave a standard error of 0.006 on iris, as large as what there is to tell."""

OUT = Path("results/known-data/known_data.json")

POINTS, CHUNK = 1_000_000, 10_000
"""Of the long stream, and of each call of ``partial_fit``."""

Data = tuple[FloatArray, NDArray[np.int64]]


def _shipped(name: str, scale: float = 1.0) -> Callable[[int], Data]:
    """Data that come with scikit-learn, the same for every seed."""

    def load(seed: int) -> Data:
        import sklearn.datasets

        points, classes = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return points / scale, classes

    return load


def _standardised(load: Callable[[int], Data]) -> Callable[[int], Data]:
    """The same with every coordinate of mean zero and variance one."""

    def standardised(seed: int) -> Data:
        points, classes = load(seed)
        return (points - points.mean(axis=0)) / points.std(axis=0), classes

    return standardised


def _moons(seed: int) -> Data:
    points, classes = two_moons(1000, 0.05, np.random.default_rng(seed))
    return points, (classes + 1) // 2


def _circles(seed: int) -> Data:
    from sklearn.datasets import make_circles

    points, classes = make_circles(1000, noise=0.05, factor=0.5, random_state=seed)
    return points, classes


def _arcs(seed: int) -> Data:
    points, classes = spiral_arcs(1000, 0.05, np.random.default_rng(seed))
    return points, (classes + 1) // 2


def _blobs(seed: int) -> Data:
    from sklearn.datasets import make_blobs

    points, classes = make_blobs(1000, 20, centers=5, cluster_std=5.0, random_state=seed)
    return points, classes


DATA: dict[str, tuple[Callable[[int], Data], int]] = {
    "digits": (_shipped("digits", 16.0), 10),
    "iris": (_shipped("iris"), 10),
    "wine": (_shipped("wine"), 10),
    "wine, standardised": (_standardised(_shipped("wine")), 10),
    "two moons": (_moons, 10),
    "two moons, one label each": (_moons, 1),
    "circles": (_circles, 10),
    "spiral arcs": (_arcs, 10),
    "blobs in 20 dimensions": (_blobs, 10),
}
"""Data by name, and how many labels every class has."""

UNSEEN = ("circles", "spiral arcs", "blobs in 20 dimensions")
"""Of these, what no default was chosen on."""


def some_labels(classes: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Labels of so many points of every class, at random, and -1 for the others."""
    rng = np.random.default_rng(seed)
    labels = np.full(len(classes), -1)
    for label in np.unique(classes):
        chosen = rng.choice(np.flatnonzero(classes == label), count, replace=False)
        labels[chosen] = label
    return labels


def methods(seed: int) -> dict[str, Any]:
    """The estimators that are compared, by name. The last has the labelled points alone: what the
    others know from those without a label, it does not."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.semi_supervised import LabelSpreading

    return {
        "ManifoldClassifier": ManifoldClassifier(random_state=seed),
        "LabelSpreading": LabelSpreading(),
        "nearest label": KNeighborsClassifier(1),
    }


def accuracies(name: str, seed: int) -> dict[str, float]:
    """Share of the points without a label that each method puts into their class."""
    load, count = DATA[name]
    points, classes = load(seed)
    labels = some_labels(classes, count, seed)
    silent = labels == -1
    found = {}
    for method, estimator in methods(seed).items():
        own = ~silent if method == "nearest label" else slice(None)
        with warnings.catch_warnings():
            # LabelSpreading on points that are far from each other, and that it did not converge.
            warnings.simplefilter("ignore")
            answers = estimator.fit(points[own], labels[own]).predict(points[silent])
        found[method] = float((answers == classes[silent]).mean())
    return found


def compare(seeds: range = SEEDS) -> dict[str, dict[str, list[float]]]:
    """Accuracies of all methods on all data, seed by seed."""
    found: dict[str, dict[str, list[float]]] = {}
    jobs = [(name, seed) for name in DATA for seed in seeds]
    for name, seed in tqdm(jobs, unit="fit", disable=sys.stderr is None):
        for method, value in accuracies(name, seed).items():
            found.setdefault(name, {}).setdefault(method, []).append(value)
    return found


def stream(count: int, chunk: int = CHUNK) -> dict[str, float]:
    """Two moons of so many points, one in a hundred with a label, through ``partial_fit``: peak
    memory of this process (MB) after the first tenth and at the end, and accuracy on new points.

    In a process of its own, or it is the peak of what came before.
    """
    import resource  # which Windows does not have

    estimator, peaks = ManifoldClassifier(), []
    steps = -(-count // chunk)
    for step in tqdm(range(steps), unit="chunk", disable=sys.stderr is None):
        points, classes = two_moons(chunk, 0.05, np.random.default_rng(step))
        known = np.random.default_rng(2**32 + step).random(chunk) < 0.01
        labels = np.where(known, (classes + 1) // 2, -1)
        estimator.partial_fit(points, labels, classes=[0, 1])
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    points, classes = two_moons(1000, 0.05, np.random.default_rng(2**33))
    return {
        "points": steps * chunk,
        "first": peaks[max(0, steps // 10 - 1)],
        "peak": peaks[-1],
        "accuracy": float(estimator.score(points, (classes + 1) // 2)),
    }


def stream_apart(count: int) -> dict[str, float]:
    """`stream` in a process of its own."""
    code = "import json; from simulations.known_data import stream; "
    code += f"print(json.dumps(stream({count})))"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(measured: dict[str, Any]) -> str:
    """What was measured, as text for the documentation."""
    names = list(next(iter(measured["accuracy"].values())))
    lines = [
        f"| data, labels per class | {' | '.join(names)} | difference to LabelSpreading |",
        "| --- " * (len(names) + 2) + "|",
    ]
    for data, found in measured["accuracy"].items():
        values = {name: np.array(found[name]) for name in names}
        cells = [f"{one.mean():.3f} ± {one.std(ddof=1):.3f}" for one in values.values()]
        apart = values["ManifoldClassifier"] - values["LabelSpreading"]
        error = apart.std(ddof=1) / np.sqrt(apart.size)
        count = DATA[data][1]
        lines.append(
            f"| {data}, {count} | {' | '.join(cells)} | {apart.mean():+.3f} ± {error:.3f} (s.e.) |"
        )
    long = measured["stream"]
    n = long["points"]
    seeds = len(next(iter(measured["accuracy"].values()))[names[0]])
    lines += [
        "",
        f"Accuracy on the points without a label, mean and standard deviation over {seeds} seeds, "
        'all with their defaults. "Nearest label" knows the labelled points alone. Defaults were '
        f"chosen on the same data, but for {', '.join(UNSEEN)}, with other points labelled.",
        "",
        f"A stream of {n:,.0f} points through `partial_fit`, one in a hundred with a label: the "
        f"process had a peak of {long['first']:.0f} MB after the first tenth and of "
        f"{long['peak']:.0f} MB at the end, with everything that was imported; LabelSpreading's "
        f"matrix of as many points would take {8 * n**2 / 1e12:.2g} TB. Accuracy on new points "
        f"{long['accuracy']:.3f}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Compare, run the long stream, print the table, and write what was measured."""
    measured = {"accuracy": compare(), "stream": stream_apart(POINTS)}
    print(table(measured))
    print(f"wrote {files.write(OUT, json.dumps(measured, indent=1))}")


if __name__ == "__main__":
    main()
