"""Two moons from two labels: the paper's Fig. 2."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from analysis.measures import accuracy, purity, tile_centers, tile_classes, tile_positions
from circuits import ReferenceCircuit
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.storage.results import code_revision
from simulations.baselines import label_propagation, label_spreading
from simulations.datasets import (
    MOONS_LIFT,
    Classes,
    first_of_each_class,
    position_on_moons,
    two_moons,
)
from simulations.experiments import evidence
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
"""Accuracies: what the mean and nearly every seed have to reach, and what counts as a failure."""

RARE = 0.05
"""What nearly every seed does, all but this share of them do."""

PURE = 0.999
"""A tile with this share of its output on one moon is not shared; the rest is noise."""

SAME = 0.002
"""Accuracies this near are the same but for rounding: it may turn a point or two on the border."""

GRADUAL = 0.5
"""Rank correlation of distance and time above which a signal spreads from where it began."""


class TwoMoons(base.Experiment[Settings]):
    """Two labels, one pass: the circuit on one stream per repeat, the exact solver on many."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters()
    lift: ClassVar = MOONS_LIFT
    main: ClassVar = "circuit_accuracy"
    repeats: ClassVar = 20
    size: ClassVar = ("n_points", "n_streams")
    quick: ClassVar = {"n_streams": 2}
    quick_repeats: ClassVar = 3

    def stream_seeds(self, settings: Settings, seed: int) -> list[int]:
        """Data seeds of a repeat's streams, its own first: the registered number of repeats from
        seed s on has all those from s to s + 199, each once."""
        return [seed + self.repeats * i for i in range(settings.n_streams)]

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """What a sweep measures; then the exact solver on many streams, and offline methods."""
        stream = make_stream(config.settings, seed, config.parameters)
        run, answers = self._presented(config, stream, seed, report)
        report("exact solver")
        seeds = self.stream_seeds(config.settings, seed)
        streams = [stream, *(make_stream(config.settings, s, config.parameters) for s in seeds[1:])]
        control = config.parameters.replace(
            **CONTROL | {"n_tiles": min(config.parameters.n_tiles, config.settings.n_points)}
        )
        found = {
            name: [solved(one, parameters) for one in streams]
            for name, parameters in (("exact", config.parameters), ("control", control))
        }
        report("baselines")
        own = found["exact"][0].y
        offline = _offline(stream)
        return (
            run.assign(
                {
                    f"{name}_{measure}": (dims, [getattr(one, measure) for one in many])
                    for name, many in found.items()
                    for measure, dims in (
                        ("accuracy", ("stream", "placement")),
                        ("signs", ("stream", "placement")),
                        ("pure", "stream"),
                    )
                }
            )
            .assign(
                offline_accuracy=("offline_method", list(offline.values())),
                stream_seed=("stream", seeds),
                largest_difference=np.abs(answers - own).max(),
                other_signs=int((np.sign(answers) != np.sign(own)).sum()),
            )
            .assign_coords(offline_method=list(offline))
        )

    def measure(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """The circuit alone, and how labels spread in it: of the time that a repeat takes, offline
        methods and the exact solver on other streams have all but a hundredth."""
        stream = make_stream(config.settings, seed, config.parameters)
        return self._presented(config, stream, seed, report)[0]

    def _presented(
        self, config: base.Config[Settings], stream: Stream, seed: int, report: base.Report
    ) -> tuple[xr.Dataset, FloatArray]:
        """The run itself, with snapshots of the weights after every presentation and what they
        show; and answers (T, placement), with the other placement of labels."""
        circuit = config.circuit(config.parameters, stream.lift)
        run = circuit.run(stream.points, stream.labels, snapshot_every=1)
        report("labels on the first points")
        other = config.circuit(config.parameters, stream.lift)
        # With snapshots, which nobody needs, because the program that takes them is compiled.
        again = other.run(stream.points, _first_labels(stream), snapshot_every=1)
        run = annotate(run.assign_attrs(base.joined([again, run])), stream, seed)
        answers = np.stack([one["y"].to_numpy()[:, 0] for one in (run, again)], axis=1)
        correlation, last, at_once = waking(run, stream)
        over_time = _over_time(answers[:, 0], stream)
        measured = run.assign(
            circuit_accuracy=("placement", accuracies(answers, stream)),
            circuit_strength=("placement", np.abs(answers[-_half(stream) :]).mean(axis=0)),
            accuracy_over_time=("window", list(over_time.values())),
            spread_correlation=correlation,
            spread_presentations=last,
            control_correlation=at_once,
        ).assign_coords(window=list(over_time), placement=list(PLACEMENTS))
        return measured, answers

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Zero before labels, right afterwards, tiles and weights of one moon each, and how the
        labels get there."""
        # More repeats than registered share streams.
        _, once = np.unique(merged["stream_seed"].to_numpy(), return_index=True)
        of_streams = {
            str(name): (
                merged[name]
                .stack(seeds=("repeat", "stream"))
                .transpose("seeds", ...)
                .to_numpy()[once]
            )
            for name in merged.data_vars
            if "stream" in merged[name].dims
        }
        return [
            self._silent(merged),
            self._two_labels_suffice(merged, of_streams),
            self._none_shared(merged, of_streams),
            self._spreads(merged),
            self._signs(merged, of_streams),
        ]

    def _silent(self, merged: xr.Dataset) -> base.Claim:
        y, labels = (merged[name].isel(readout=0).to_numpy() for name in ("y", "labels"))
        before = [
            np.abs(one[: np.flatnonzero(given)[0]]).max(initial=0)
            for one, given in zip(y, labels, strict=True)
        ]
        return base.Claim(
            "the readout is silent until the first label",
            "the output is zero until labeled points arrive",
            "largest |y| before the first label, which is 0 because w starts at 0 and nothing else "
            "drives the readout",
            f"largest |y| before the first label {max(before):.1e}",
            f"largest |y| {max(before):.1g}, {base.seeds(before)}",
            self.decide(
                merged, evidence.certain(max(before) == 0), repeats=1, n_points=1, n_streams=1
            ),
            constructed=True,
        )

    def _two_labels_suffice(
        self, merged: xr.Dataset, of_streams: dict[str, FloatArray]
    ) -> base.Claim:
        """Mean and worst accuracy over seeds, of both placements, exact and on the circuit."""
        exact, circuit = of_streams["exact_accuracy"], merged["circuit_accuracy"].to_numpy()
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
            f"accuracy on the second half, exact solver, labels late and labels first: the mean is "
            f"above {LEAST_MEAN} (t test) and less than {RARE:.0%} of seeds end below "
            f"{LEAST_WORST} (binomial test); and the circuit itself is within {SAME} of the exact "
            "solver's accuracy on every stream both get",
            f"accuracy, exact solver, {len(exact)} seeds: {listed(exact)}; "
            f"the circuit itself ({engines}, {base.seeds(circuit)}): {listed(circuit)}, at most "
            f"{apart:.1g} from the exact solver, {int(merged['other_signs'].sum())} signs of y "
            f"differ, y by at most {float(merged['largest_difference'].max()):.1g}. In the hundred "
            f"presentations up to {grows} (offline, all points: {others})",
            f"{exact.mean():.4f} accuracy, worst {exact.min():.3f}, {base.seeds(exact)}",
            self.decide(
                merged,
                evidence.all_of(within_bounds(exact), evidence.certain(apart <= SAME)),
            ),
            f"tiles on the first points, radius {CONTROL['tile_radius']}: "
            f"{listed(of_streams['control_accuracy'])}",
        )

    def _none_shared(self, merged: xr.Dataset, of_streams: dict[str, FloatArray]) -> base.Claim:
        pure, control = (of_streams[f"{name}_pure"] == 1 for name in ("exact", "control"))
        found = evidence.share_above(pure, 1 - RARE)
        return base.Claim(
            "no tile is shared by the moons",
            "The first layer learns units that tile each 'moon' with overlaps while no unit is "
            "shared between the two moons",
            f"share of runs in which every tile ends with at least {PURE} of its output on one "
            f"moon: more than {1 - RARE} of seeds (binomial test), exact solver",
            f"every tile pure in {pure.mean():.3f} of {base.seeds(pure)}; tiles that are shared: "
            f"{1 - of_streams['exact_pure'].mean():.2%}",
            f"every tile pure in {pure.mean():.3f} of {base.seeds(pure)}, {found}",
            self.decide(merged, found),
            f"tiles on the first points, radius {CONTROL['tile_radius']}: every tile pure in "
            f"{control.mean():.3f} of seeds, {1 - of_streams['control_pure'].mean():.2%} shared",
        )

    def _spreads(self, merged: xr.Dataset) -> base.Claim:
        correlation = merged["spread_correlation"].to_numpy()
        control = merged["control_correlation"].to_numpy()
        found = evidence.mean_above(correlation, GRADUAL)
        return base.Claim(
            "labels spread gradually along the moons",
            "That signal gradually propagates until all synapses corresponding to 'green moon' get "
            "positive weights",
            "rank correlation, over the tiles of a moon, of the distance along it to the label "
            "with the presentation at which w first differs from 0; mean of both moons and over "
            f"repeats above {GRADUAL} (t test)",
            f"rank correlation {base.spread(correlation)}; the last tile wakes "
            f"{base.spread(merged['spread_presentations'])} presentations after the label",
            f"rank correlation {evidence.with_error(correlation)}, {base.seeds(correlation)}",
            self.decide(merged, found, n_streams=1),
            "first response of each tile after the label, which is when w would wake if the label "
            f"were everywhere at once: {base.spread(control)}",
        )

    def _signs(self, merged: xr.Dataset, of_streams: dict[str, FloatArray]) -> base.Claim:
        signs, control = (of_streams[f"{name}_signs"] for name in ("exact", "control"))
        right, found = signs == 1, evidence.share_above((signs == 1).all(axis=1), 1 - RARE)
        return base.Claim(
            "weights take the sign of their moon",
            "all synapses corresponding to 'green moon' get positive weights and, all 'blue' ones "
            "- negative weights",
            "share of runs in which w of every tile ends with the sign of the moon that it "
            f"responds to most, labels late and labels first: more than {1 - RARE} of seeds "
            "(binomial test), exact solver",
            f"every tile in {right.mean():.3f} of {base.seeds(signs)}, {signs.mean():.4f} of all "
            "tiles",
            f"every tile in {right.mean():.3f} of {base.seeds(signs)}, {found}",
            self.decide(merged, found),
            f"tiles on the first points, radius {CONTROL['tile_radius']}: every tile in "
            f"{(control == 1).mean():.3f} of seeds",
        )


def within_bounds(found: FloatArray) -> evidence.Evidence:
    """That accuracies (seed, placement) have the mean, and nearly all of them the least value,
    that is claimed."""
    parts = [
        part
        for one in found.T
        for part in (
            evidence.mean_above(one, LEAST_MEAN),
            evidence.share_below(one < LEAST_WORST, RARE),
        )
    ]
    return evidence.all_of(*parts)


def _summary(values: FloatArray) -> str:
    failed = f"{(values < LEAST_WORST).mean():.1%} below {LEAST_WORST}"
    return (
        f"{values.mean():.4f} (worst {values.min():.3f}, {failed}, "
        f"{(values < FAILED).mean():.1%} below {FAILED})"
    )


def _first_labels(stream: Stream) -> Classes:
    """The labels of a stream on the first point of each class instead."""
    return first_of_each_class(stream.classes, 0)


@dataclass(frozen=True)
class Solved:
    """What became of a stream in the exact solver."""

    y: FloatArray
    """Answers (T, placement)."""
    accuracy: list[float]
    """By placement; see `accuracies`."""
    pure: float
    """Share of its tiles that respond to one moon only, at the end."""
    signs: list[float]
    """By placement: share of its tiles whose w has the sign of the moon they respond to."""


def solved(stream: Stream, parameters: CircuitParameters) -> Solved:
    """Present a stream to the exact solver: both placements are readouts of one run."""
    both = np.stack([stream.labels, _first_labels(stream)], axis=1)
    p = parameters.replace(n_readouts=len(PLACEMENTS), mu=parameters.mu_per_readout[0])
    solver = ReferenceCircuit(p, stream.lift, settling="exact")
    y: FloatArray = solver.run(stream.points, both)["y"].to_numpy()
    h = solver.respond(stream.points)
    share = purity(h, stream.classes)
    used = ~np.isnan(share)
    right = np.sign(solver.state.w) == tile_classes(h, stream.classes)
    return Solved(
        y,
        accuracies(y, stream),
        float((share[used] >= PURE).mean()),
        right[:, used].mean(axis=1).tolist(),
    )


def accuracies(y: FloatArray, stream: Stream) -> list[float]:
    """Accuracy of answers (T, placement) on the second half of the last pass."""
    half = _half(stream)
    return [accuracy(one[-half:], stream.classes[-half:]) for one in y.T]


def _half(stream: Stream) -> int:
    """Presentations of the second half of the last pass, on which answers count."""
    return stream.settings.n_points - stream.settings.n_points // 2


def waking(run: xr.Dataset, stream: Stream) -> tuple[float, float, float]:
    """How labels reach the tiles of their moon, from a run with a snapshot of every presentation.

    Returns, as means over the two labels: the rank correlation of a tile's distance to the label
    with the presentation at which its w first differs from 0, over the tiles that were there when
    the label came; how many presentations after the label the last of them wakes; and the
    correlation of the distance with the first response of each after the label, which is when
    it would wake if labels were everywhere at once.
    """
    from scipy.stats import rankdata

    place = tile_positions(tile_centers(run), stream.points, stream.position)
    h = run["h"].to_numpy()
    of_moon = tile_classes(h, stream.classes)
    weights, recruited = run["w_snapshots"].to_numpy()[:, 0], run["recruited"].to_numpy()
    awake = weights != 0
    shown = run["snapshot_presentation"].to_numpy()
    # One that never does counts as if it woke when the stream ends.
    wakes = np.where(awake.any(axis=0), shown[awake.argmax(axis=0)], len(stream.points))
    found = []
    for t in np.flatnonzero(stream.labels):
        own = (of_moon == stream.classes[t]) & (recruited >= 0) & (recruited <= t)
        if own.sum() < 3:  # no correlation of fewer
            continue
        distance = rankdata(np.abs(place[own] - stream.position[t]))
        # With one more row in which all do, for those that never do.
        responds = np.vstack([h[t + 1 :, own] > 0, np.ones(own.sum())]).argmax(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread, at_once = (
                np.corrcoef(distance, rankdata(times))[0, 1] for times in (wakes[own], responds)
            )
        found.append((spread, wakes[own].max() - t, at_once))
    if not found:
        return np.nan, np.nan, np.nan
    correlation, last, control = np.mean(found, axis=0)
    return float(correlation), float(last), float(control)


def _over_time(y: FloatArray, stream: Stream, width: int = 100) -> dict[int, float]:
    """Accuracy in every hundred presentations, by their end."""
    ends = range(width, len(y) + 1, width)
    return {end: accuracy(y[end - width : end], stream.classes[end - width : end]) for end in ends}


def _offline(stream: Stream) -> dict[str, float]:
    """Accuracy of offline methods on the unlabelled points of one pass."""
    once = slice(stream.settings.n_points)
    points, classes, labels = stream.points[once], stream.classes[once], stream.labels[once]
    silent = labels == 0
    return {
        method.__name__: accuracy(method(points, labels).scores[silent], classes[silent])
        for method in (label_spreading, label_propagation)
    }
