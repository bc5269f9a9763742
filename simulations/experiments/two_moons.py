"""Two moons from two labels: the paper's Fig. 2."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from circuits import ReferenceCircuit
from circuits.lift import FloatArray, SphereLift
from circuits.measures import accuracy
from circuits.parameters import CircuitParameters
from circuits.results import code_revision
from simulations.baselines import label_propagation, label_spreading
from simulations.datasets import (
    MOONS_LIFT,
    Classes,
    first_of_each_class,
    position_on_moons,
    two_moons,
)
from simulations.experiments import experiment as base


class Settings(base.Settings):
    """The data and its labels."""

    n_points: int = Field(default=2000, ge=10)
    noise: float = Field(default=0.05, ge=0)
    label_after: int = Field(default=200, ge=0)
    """Presentations before the first label: by then the tiles have separated the moons."""
    passes: int = Field(default=1, ge=1)
    """How often the points are presented; labels are given in the first pass."""
    n_streams: int = Field(default=10, ge=1)
    """Streams per repeat for the exact solver, the repeat's own and others; see `stream_seeds`."""


@dataclass(frozen=True)
class Stream:
    """A stream with all it takes to present it."""

    parameters: CircuitParameters
    lift: SphereLift
    points: FloatArray
    classes: Classes
    labels: Classes
    position: FloatArray
    settings: Settings


def make_stream(
    settings: Settings, seed: int, parameters: CircuitParameters | None = None
) -> Stream:
    """Points in random order, ``passes`` times, and one label per class."""
    points, classes = two_moons(settings.n_points, settings.noise, seed)
    labels = first_of_each_class(classes, settings.label_after)
    silent = np.zeros(len(points) * (settings.passes - 1), dtype=labels.dtype)
    return Stream(
        parameters or CircuitParameters(),
        MOONS_LIFT,
        np.tile(points, (settings.passes, 1)),
        np.tile(classes, settings.passes),
        np.concatenate([labels, silent]),
        np.tile(position_on_moons(points), settings.passes),
        settings,
    )


def annotate(run: xr.Dataset, stream: Stream, seed: int) -> xr.Dataset:
    """Add to a run what its stream knows: true classes, places along the moons, provenance."""
    return run.assign(
        classes=("presentation", stream.classes), position=("presentation", stream.position)
    ).assign_attrs(
        experiment="two-moons",
        seed=seed,
        settings=json.dumps(stream.settings.model_dump(mode="json")),
        code=code_revision(),
    )


PLACEMENTS = ("late", "first")
"""Where the two labels are: after ``label_after``, or on the first point of each class."""

CONTROL: dict[str, Any] = {"tiles": "first", "tile_radius": 0.4, "recycle": False}
"""Tiles on the first points whether or not they cover the moons: this misses the bounds."""

LEAST_MEAN, LEAST_WORST, FAILED = 0.999, 0.99, 0.92
"""Accuracies: what the mean and the worst seed have to reach, and what counts as a failure."""


class TwoMoons(base.Experiment[Settings]):
    """Two labels, one pass: the circuit on one stream per repeat, the exact solver on many."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters()
    lift: ClassVar = MOONS_LIFT
    repeats: ClassVar = 20
    size: ClassVar = ("n_points", "n_streams")
    quick: ClassVar = {"n_streams": 2}
    quick_repeats: ClassVar = 3

    def stream_seeds(self, settings: Settings, seed: int) -> list[int]:
        """Data seeds of a repeat's streams, its own first: the registered number of repeats from
        seed s on has all those from s to s + 199, each once."""
        return [seed + self.repeats * i for i in range(settings.n_streams)]

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """The run itself, with snapshots of the weights after every presentation; then the other
        placement of labels, the exact solver on many streams, and offline methods."""
        stream = make_stream(config.settings, seed, config.parameters)
        circuit = base.make_circuit(config.engine, config.parameters, stream.lift)
        run = circuit.run(stream.points, stream.labels, snapshot_every=1)
        report("labels on the first points")
        other = base.make_circuit(config.engine, config.parameters, stream.lift)
        # With snapshots, which nobody needs, because the program that takes them is compiled.
        again = other.run(stream.points, _first_labels(stream), snapshot_every=1)
        run = annotate(run.assign_attrs(base.joined([again, run])), stream, seed)
        answers = np.stack([one["y"].to_numpy()[:, 0] for one in (run, again)], axis=1)
        report("exact solver")
        seeds = self.stream_seeds(config.settings, seed)
        streams = [stream, *(make_stream(config.settings, s, config.parameters) for s in seeds[1:])]
        exact = [solved(one, config.parameters) for one in streams]
        control = config.parameters.replace(
            **CONTROL | {"n_tiles": min(config.parameters.n_tiles, config.settings.n_points)}
        )
        report("baselines")
        y, width = answers[:, 0], 100
        windows = [slice(i, i + width) for i in range(0, len(y) - width + 1, width)]
        offline = _offline(stream)
        return run.assign(
            offline_accuracy=("offline_method", list(offline.values())),
            accuracy_over_time=("window", [accuracy(y[i], stream.classes[i]) for i in windows]),
            circuit_accuracy=("placement", accuracies(answers, stream)),
            exact_accuracy=(
                ("stream", "placement"),
                [accuracies(one, of) for one, of in zip(exact, streams, strict=True)],
            ),
            control_accuracy=(
                ("stream", "placement"),
                [accuracies(solved(one, control), one) for one in streams],
            ),
            stream_seed=("stream", seeds),
            largest_difference=np.abs(answers - exact[0]).max(),
            other_signs=int((np.sign(answers) != np.sign(exact[0])).sum()),
        ).assign_coords(
            offline_method=list(offline),
            window=[part.stop for part in windows],
            placement=list(PLACEMENTS),
        )

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Zero before labels, right afterwards, weights of one sign per moon."""
        before, signs = [], []
        for _, run in merged.groupby("repeat"):
            one = run.squeeze("repeat", drop=True)
            y, classes = one["y"].to_numpy()[:, 0], one["classes"].to_numpy()
            first = np.flatnonzero(one["labels"].to_numpy()[:, 0])[0]
            before.append(np.abs(y[:first]).max(initial=0))
            # A tile belongs to the moon whose points it responds to most; an idle one to none.
            mass = classes @ one["h"].to_numpy()
            w, alive = one["w"].to_numpy()[0], mass != 0
            signs.append(np.mean(np.sign(w[alive]) == np.sign(mass[alive])))
        return [
            base.Claim(
                "the readout is silent until the first label",
                "the output is zero until labeled points arrive",
                f"largest |y| before the first label {max(before):.1e}",
                f"largest |y| {max(before):.1g}, {base.seeds(before)}",
                # True by construction, whatever the size.
                self.decide(merged, max(before) == 0, repeats=1, n_points=1, n_streams=1),
            ),
            self._two_labels_suffice(merged),
            base.Claim(
                "weights take the sign of their moon",
                "all synapses corresponding to 'green moon' get positive weights and, all 'blue' "
                "ones - negative weights",
                f"share of tiles with the sign of their moon {base.spread(signs)}, "
                f"worst {min(signs):.3f}",
                f"{base.spread(signs)} of tiles, {base.seeds(signs)}",
                # So in all of 40 seeds: a few at full length decide.
                self.decide(merged, min(signs) == 1, repeats=self.quick_repeats, n_streams=1),
            ),
        ]

    def _two_labels_suffice(self, merged: xr.Dataset) -> base.Claim:
        """Mean and worst accuracy over seeds, of both placements, exact and on the circuit."""
        # More repeats than registered share streams.
        _, once = np.unique(merged["stream_seed"].to_numpy(), return_index=True)
        of_streams = {
            name: merged[f"{name}_accuracy"].to_numpy().reshape(-1, len(PLACEMENTS))[once]
            for name in ("exact", "control")
        }
        exact, circuit = of_streams["exact"], merged["circuit_accuracy"].to_numpy()
        settings = json.loads(merged.attrs["settings"])
        places = (f"labels after presentation {settings['label_after']}", "labels first")

        def listed(values: FloatArray) -> str:
            return ", ".join(f"{p} {_summary(v)}" for p, v in zip(places, values.T, strict=True))

        growth = merged["accuracy_over_time"]
        after = growth.sel(window=growth["window"] > settings["label_after"])
        grows = ", ".join(
            f"{int(end)}: {base.spread(after.sel(window=end))}"
            for end in after["window"].to_numpy()[:4]
        )
        offline = merged["offline_accuracy"]
        others = ", ".join(
            f"{name} {base.spread(offline.sel(offline_method=name))}"
            for name in offline["offline_method"].to_numpy()
        )
        engines = " and ".join(np.unique(merged["run_engine"].to_numpy()))
        apart = np.abs(circuit - merged["exact_accuracy"].isel(stream=0).to_numpy()).max()
        return base.Claim(
            "two labels suffice",
            "the responses stabilize to correct values: 1 for green, -1 for blue",
            f"accuracy on the second half, exact solver, {len(exact)} seeds: {listed(exact)}; "
            f"the circuit itself ({engines}, {base.seeds(circuit)}): {listed(circuit)}, at most "
            f"{apart:.1g} from the exact solver, {int(merged['other_signs'].sum())} signs of y "
            f"differ, y by at most {float(merged['largest_difference'].max()):.1g}; bounds: mean "
            f"{LEAST_MEAN}, worst {LEAST_WORST}. Control, tiles on the first points, radius "
            f"{CONTROL['tile_radius']}: {listed(of_streams['control'])}. In the hundred "
            f"presentations up to {grows} (offline, all points: {others})",
            f"{exact.mean():.4f} accuracy, worst {exact.min():.3f}, {base.seeds(exact)}",
            # About one seed in forty ends below on other tiles: a few repeats would not show it.
            self.decide(merged, within_bounds(exact) and within_bounds(circuit)),
        )


def within_bounds(found: FloatArray) -> bool:
    """Whether accuracies (seed, placement) have the mean and the worst seed that are claimed."""
    means: FloatArray = found.mean(axis=0)
    return bool(means.min() >= LEAST_MEAN and found.min() >= LEAST_WORST)


def _summary(values: FloatArray) -> str:
    failed = f"{(values < LEAST_WORST).mean():.1%} below {LEAST_WORST}"
    return (
        f"{values.mean():.4f} (worst {values.min():.3f}, {failed}, "
        f"{(values < FAILED).mean():.1%} below {FAILED})"
    )


def _first_labels(stream: Stream) -> Classes:
    """The labels of a stream on the first point of each class instead."""
    return first_of_each_class(stream.classes, 0)


def solved(stream: Stream, parameters: CircuitParameters) -> FloatArray:
    """What the exact solver answers to a stream, (T, placement): two readouts of one run."""
    both = np.stack([stream.labels, _first_labels(stream)], axis=1)
    p = parameters.replace(n_readouts=len(PLACEMENTS), mu=parameters.mu_per_readout[0])
    solver = ReferenceCircuit(p, stream.lift, settling="exact")
    answers: FloatArray = solver.run(stream.points, both)["y"].to_numpy()
    return answers


def accuracies(y: FloatArray, stream: Stream) -> list[float]:
    """Accuracy of answers (T, placement) on the second half of the last pass."""
    half = stream.settings.n_points - stream.settings.n_points // 2
    return [accuracy(one[-half:], stream.classes[-half:]) for one in y.T]


def _offline(stream: Stream) -> dict[str, float]:
    """Accuracy of offline methods on the unlabelled points of one pass."""
    once = slice(stream.settings.n_points)
    points, classes, labels = stream.points[once], stream.classes[once], stream.labels[once]
    silent = labels == 0
    return {
        method.__name__: accuracy(
            method(points, labels, max_iter=200).scores[silent], classes[silent]
        )
        for method in (label_spreading, label_propagation)
    }
