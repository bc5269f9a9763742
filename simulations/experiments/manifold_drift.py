"""Two moons that move while the stream runs: tiles follow, and carry two labels with them."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import xarray as xr
from pydantic import Field, model_validator

from analysis.measures import tile_centers_of
from analysis.selection import first_repeat
from circuits import CircuitParameters
from circuits.lift import FloatArray
from simulations.baselines import nearest_chain, window_propagation
from simulations.datasets import (
    DRIFT_LIFT,
    DRIFT_UNIT,
    Classes,
    drifting_moons,
    first_of_each_class,
)
from simulations.experiments import evidence
from simulations.experiments import experiment as base

RULES = ("paper", "gated")
"""Readouts. The paper's has a constant rate: with 1/(t + 1) it could not change any more."""

_NAMES = {"paper": "the paper's readout", "gated": "the gated readout"}

STREAMS = ("rotate", "noisy", "translate", "deform", "fast")
"""Streams by name; those that are noisy and fast rotate, too."""

CIRCUITS = (*RULES, "paper, tiles kept", "gated, tiles kept", "frozen")
"""What follows: with tiles that move to where none answers and with tiles that are only shifted by
learning; and a circuit (gated) that learns no more once the moons move."""

FOLLOWS, WORST = 0.99, 0.98
"""Accuracy: mean over repeats, and of every repeat on the rotating moons."""

LOST = 0.75
"""Accuracy between having followed and guessing: it tells where the limit of speed is."""

FACTOR = 2.0
"""How far from v/eta = rho the limit may be found, either way."""

TILES = ("recruited", "shifted")
"""Of the circuits on the map: with tiles to spare, which come where none answers, and without, so
that learning alone moves them."""

MOMENTS = 41
"""Of the rotating stream, at which tiles are kept for pictures."""

SHOWN = 120
"""Points that are kept with them."""

Speed = Annotated[float, Field(ge=0.01, le=1000)]
Rate = Annotated[float, Field(gt=0, le=1)]


class Settings(base.Settings):
    """The streams, and the map of speeds."""

    n_points: int = Field(default=12_000, ge=100)
    drift_after: int = Field(default=2000, ge=50)
    label_after: int = Field(default=1000, ge=0)
    """The first point of each class from here on has a label, and no other. Of 200 and 1000 the one
    at which, at noise 0.1, no label was carried to the wrong moon by the gated readout on any of
    400 seeds from 35,000 on: a label among the first tiles is, now and then."""
    measured: int = Field(default=5000, ge=10)
    """Accuracy is that on the last so many points."""
    noise: float = Field(default=0.05, ge=0, le=1)
    more_noise: float = Field(default=0.1, ge=0, le=1)
    speed: Speed = 0.5
    """Cycles per 10,000 points, of rotating and translating moons: in 10,000 points the two moons
    swap places."""
    deform_speed: Speed = 2.0
    fast_speed: Speed = 2.0
    """Of rotating moons that come round and round: each turn needs new tiles, or old ones again."""
    paper_mu: float = Field(default=30.0, ge=0)
    """Of 30, 100 and 1000 the one at which no class took over all tiles on any of 24 seeds."""
    paper_rate: Rate = 0.01
    gated_mu: float = Field(default=1.1, ge=0)
    gated_rate: Rate = 0.9
    windows: base.Grid[Annotated[int, Field(ge=1, le=10_000)]] = (60, 100, 300)
    """Lengths of the chain of nearest neighbours."""
    map_after: int = Field(default=2000, ge=50)
    """Points before the moons of the map begin to turn."""
    map_speeds: base.Grid[Speed] = (1.0, 2.0, 4.0, 8.0, 16.0)
    map_rates: base.Grid[Rate] = (0.0025, 0.005, 0.01, 0.02, 0.04)
    """Values of eta on the map."""
    map_tiles: int = Field(default=18, ge=2, le=1000)
    """Tiles of a circuit that has none to spare once the moons begin to turn."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        for name in ("drift_after", "map_after"):
            if self.label_after + 20 > getattr(self, name):
                raise ValueError(
                    f"label_after={self.label_after} must be 20 points or more before "
                    f"{name}={getattr(self, name)}: both labels come before anything moves"
                )
        if self.drift_after + self.measured > self.n_points:
            raise ValueError(
                f"drift_after={self.drift_after} and measured={self.measured} do not fit into "
                f"n_points={self.n_points}"
            )
        return self

    def stream(self, name: str, seed: int) -> Stream:
        """One of `STREAMS`."""
        drift = name if name in ("translate", "deform") else "rotate"
        noise = self.more_noise if name == "noisy" else self.noise
        speed = {"deform": self.deform_speed, "fast": self.fast_speed}.get(name, self.speed)
        rng = np.random.default_rng([seed, STREAMS.index(name)])
        points, classes = drifting_moons(self.n_points, noise, rng, drift, speed, self.drift_after)
        return Stream(points, classes, first_of_each_class(classes, self.label_after))

    def turned(self, speed: float, seed: int) -> Stream:
        """Moons that make half a turn at a speed, for the map. Up to where they begin to turn, all
        streams of the map are the same."""
        longest, length = (
            self.map_after + math.ceil(DRIFT_UNIT / (2 * one))
            for one in (min(speed, *self.map_speeds), speed)
        )
        rng = np.random.default_rng([seed, len(STREAMS)])
        points, classes = drifting_moons(longest, self.noise, rng, "rotate", speed, self.map_after)
        labels = first_of_each_class(classes, self.label_after)
        return Stream(points[:length], classes[:length], labels[:length])


class Stream(NamedTuple):
    """Points with their classes, and the labels that are given."""

    points: FloatArray
    classes: Classes
    labels: Classes


class ManifoldDrift(base.Experiment[Settings]):
    """Moons that rotate, translate or deform, with two labels before they start."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters(
        n_tiles=80, tile_radius=0.4, recruit_below=0.2, learning_rate=0.005, recycle=True
    )
    """The best of four settings of tiles on 40 seeds from 28,000 on; gains and rates of readouts
    are of 24 seeds from 27,000 on."""
    lift: ClassVar = DRIFT_LIFT
    main: ClassVar = "accuracy"
    repeats: ClassVar = 30
    size: ClassVar = ("n_points", "measured")
    quick: ClassVar = {"map_speeds": (1.0, 4.0, 16.0), "map_rates": (0.005, 0.02)}
    taken: ClassVar = {
        **{"readout_rule": "paper_mu or gated_mu", "mu": "paper_mu or gated_mu"},
        **{"readout_rate": "paper_rate or gated_rate", "recycle": "n_tiles"},
    }

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """Every circuit and every baseline on every stream, and the map."""
        settings = config.settings
        names = [*CIRCUITS, "propagation", *(f"chain {window}" for window in settings.windows)]
        right = np.zeros((len(STREAMS), len(names), settings.n_points))
        runs: list[xr.Dataset] = []
        for i, name in enumerate(STREAMS):
            stream = settings.stream(name, seed)
            answers = followed(config, stream, report, runs) | others(settings, stream)
            right[i] = [correct(answers[one], stream.classes) for one in names]
        report("map of speeds")
        return xr.Dataset(
            {
                "accuracy": (
                    ("stream", "follower"),
                    right[..., -settings.measured :].mean(axis=-1),
                ),
                "course": (("stream", "follower", "time"), windowed(right, window_of(settings))),
                "map": (("tiles", "eta", "speed"), speed_map(config, seed, runs)),
                **pictures(config, settings.stream("rotate", seed)),
            },
            coords={
                "stream": list(STREAMS),
                "follower": names,
                "time": window_of(settings)
                * np.arange(1, settings.n_points // window_of(settings) + 1),
                "tiles": list(TILES),
                "eta": list(settings.map_rates),
                "speed": list(settings.map_speeds),
            },
            attrs=base.joined(runs),
        ).assign(
            drift_after=settings.drift_after,
            tile_radius=config.parameters.tile_radius,
            travel=travel(),
        )

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """That it follows with either readout, what it needs for that, and how fast is too fast."""
        return [
            *(self._follows(merged, rule) for rule in RULES),
            *(self._noise(merged, rule) for rule in RULES),
            *(self._other_ways(merged, rule) for rule in RULES),
            self._recycling(merged),
            self._limit(merged),
        ]

    def _follows(self, merged: xr.Dataset, rule: str) -> base.Claim:
        found = of(merged, "rotate", rule)
        together = evidence.all_of(
            evidence.mean_above(found, FOLLOWS), evidence.certain(found.min() >= WORST)
        )
        return base.Claim(
            f"{_NAMES[rule]} follows moons until they have swapped places",
            "",
            "two moons turn by half a turn; two labels before that, none after. Accuracy over the "
            f"last {_measured(merged)} points must be above {FOLLOWS} in the mean (t test) and at "
            f"least {WORST} in every repeat",
            f"{base.spread(found)}, worst {found.min():.3f}",
            f"{found.mean():.4f}, worst {found.min():.3f}, {base.seeds(found)}",
            self.decide(merged, together),
            control="a circuit that stops learning when they start: "
            f"{base.spread(of(merged, 'rotate', 'frozen'))}. Baselines, which are given all "
            f"classes up to there: {_baselines(merged, 'rotate')}",
        )

    def _noise(self, merged: xr.Dataset, rule: str) -> base.Claim:
        chains = [name for name in _followers(merged) if name.startswith("chain")]
        best = max(chains, key=lambda name: of(merged, "noisy", name).mean())
        found, chain = of(merged, "noisy", rule), of(merged, "noisy", best)
        together = evidence.all_of(
            evidence.mean_above(found, FOLLOWS), evidence.mean_above(found - chain)
        )
        return base.Claim(
            f"in noise {_NAMES[rule]} beats a chain of neighbours",
            "",
            f"the same with more noise: accuracy above {FOLLOWS} in the mean, and above that of "
            "the best of the chains, in which every point takes the answer of the nearest point "
            "in a window before it (paired t test)",
            f"{base.spread(found)}, worst {found.min():.3f}; lead over {best} "
            f"{evidence.with_error(found - chain)}",
            f"{found.mean():.3f}, {best} {chain.mean():.3f}, {together}",
            self.decide(merged, together),
            control=f"{_baselines(merged, 'noisy')}; they are given all classes up to the start of "
            "the drift, and propagation looks at a hundred points together; frozen "
            f"{base.spread(of(merged, 'noisy', 'frozen'))}",
        )

    def _other_ways(self, merged: xr.Dataset, rule: str) -> base.Claim:
        ways = ("translate", "deform")
        found = {way: of(merged, way, rule) for way in ways}
        together = evidence.all_of(*(evidence.mean_above(one, FOLLOWS) for one in found.values()))
        frozen = {way: of(merged, way, "frozen") for way in ways}
        return base.Claim(
            f"{_NAMES[rule]} follows moons that translate or deform",
            "",
            f"accuracy over the last {_measured(merged)} points above {FOLLOWS} in the mean, for "
            "either way (t tests)",
            _values(found),
            f"{_short(found)}, {together}",
            self.decide(merged, together),
            control=f"frozen: {_values(frozen)}; "
            + "; ".join(f"{way}: {_baselines(merged, way)}" for way in ways),
        )

    def _recycling(self, merged: xr.Dataset) -> base.Claim:
        gains = {
            rule: of(merged, "fast", rule) - of(merged, "fast", f"{rule}, tiles kept")
            for rule in RULES
        }
        together = evidence.all_of(*(evidence.mean_above(one) for one in gains.values()))
        kept = {
            f"{stream}, {rule}": of(merged, stream, f"{rule}, tiles kept")
            for stream in STREAMS
            for rule in RULES
        }
        moved = {rule: of(merged, "fast", rule) for rule in RULES}
        return base.Claim(
            "turn after turn is followed only if used tiles move on",
            "",
            "moons that turn round and round: accuracy with tiles that move to where none answers "
            "(recycling), less accuracy without, above 0 in the mean with either readout (paired "
            "t tests)",
            ", ".join(f"{evidence.with_error(one)} ({rule})" for rule, one in gains.items())
            + f"; with recycling {_values(moved)}",
            ", ".join(f"{one.mean():+.3f} ({rule})" for rule, one in gains.items())
            + f", {together}",
            self.decide(merged, together),
            control=f"without recycling, on all streams: {_values(kept)}",
        )

    def _limit(self, merged: xr.Dataset) -> base.Claim:
        found = limits(merged)
        inside = [
            evidence.all_of(
                evidence.mean_above(np.log(one), -math.log(FACTOR)),
                evidence.mean_below(np.log(one), math.log(FACTOR)),
            )
            for one in found["recruited"].values()
        ]
        together = evidence.all_of(*inside)

        def said(kind: str) -> str:
            return ", ".join(
                f"{np.exp(np.log(one).mean()):.2f} (η = {eta:g})"
                for eta, one in found[kind].items()
            )

        return base.Claim(
            "the limit of speed is where tiles lag by their radius",
            "",
            "a tile that learns at the rate η is v/η behind points that move by v per "
            "presentation. On the map of speeds, the speed at which accuracy in the last half of "
            f"half a turn falls through {LOST}, times 1/(η ρ), is 1 if that is the limit. Its "
            f"geometric mean must be within a factor of {FACTOR:g} of 1 at every η (t tests on "
            "logarithms); gated readout",
            f"limit of v/(η ρ): {said('recruited')}",
            f"v/(ηρ) at the limit {_range(found['recruited'])}, {together}",
            self.decide(merged, together),
            control=f"with no tiles to spare, so that learning alone moves them: {said('shifted')}",
        )


def circuit_for(config: base.Config[Settings], rule: str, **changes: Any) -> Any:
    """A circuit with one of the readouts."""
    settings = config.settings
    own = {
        "paper": {"readout_rate": settings.paper_rate, "mu": settings.paper_mu},
        "gated": {"readout_rate": settings.gated_rate, "mu": settings.gated_mu},
    }[rule]
    p = config.parameters.replace(readout_rule=rule, **own, **{"recycle": True, **changes})
    return config.circuit(p, DRIFT_LIFT)


def followed(
    config: base.Config[Settings], stream: Stream, report: base.Report, runs: list[xr.Dataset]
) -> dict[str, FloatArray]:
    """Answers of all `CIRCUITS`, each when its point arrives; ``runs`` gets what they ran."""
    after, found = config.settings.drift_after, {}
    for rule in RULES:
        for name, recycle in ((rule, True), (f"{rule}, tiles kept", False)):
            report(name)
            runs.append(
                circuit_for(config, rule, recycle=recycle).run(stream.points, stream.labels)
            )
            found[name] = runs[-1]["y"].to_numpy()[:, 0]
    report("frozen")
    circuit = circuit_for(config, "gated")
    begun = circuit.run(stream.points[:after], stream.labels[:after])["y"].to_numpy()
    found["frozen"] = np.concatenate([begun, circuit.predict(stream.points[after:])])[:, 0]
    return found


def others(settings: Settings, stream: Stream) -> dict[str, FloatArray]:
    """Answers of the baselines. They are given all classes up to the start of the drift, because
    two labels do not set them going."""
    given = np.where(np.arange(len(stream.classes)) < settings.drift_after, stream.classes, 0)
    chains = {
        f"chain {window}": nearest_chain(stream.points, given, window)
        for window in settings.windows
    }
    return chains | {"propagation": window_propagation(stream.points, given, 200, 100)}


def correct(y: FloatArray, classes: Classes) -> FloatArray:
    """1 where an answer has the sign of the class, 0 where it has the other, half for silence."""
    return np.where(y == 0, 0.5, np.sign(y) == classes)


def windowed(right: FloatArray, window: int) -> FloatArray:
    """Means over windows along the last axis; what is left at the end is not counted."""
    count = right.shape[-1] // window
    parts = right[..., : count * window].reshape(*right.shape[:-1], count, window)
    means: FloatArray = parts.mean(axis=-1)
    return means


def window_of(settings: Settings) -> int:
    """Points per window of the course of accuracy: some fifty windows."""
    return settings.n_points // 48


def speed_map(config: base.Config[Settings], seed: int, runs: list[xr.Dataset]) -> FloatArray:
    """Accuracy (tiles, eta, speed) in the second half of half a turn, of the gated readout, for
    either kind of `TILES`."""
    settings = config.settings
    kinds: dict[str, dict[str, Any]] = {
        "recruited": {},
        "shifted": {"n_tiles": settings.map_tiles, "recycle": False},
    }
    found = np.zeros((len(TILES), len(settings.map_rates), len(settings.map_speeds)))
    streams = [settings.turned(speed, seed) for speed in settings.map_speeds]
    for i, kind in enumerate(TILES):
        for j, eta in enumerate(settings.map_rates):
            circuit = circuit_for(config, "gated", **kinds[kind], learning_rate=eta)
            runs.append(circuit.run(*_part(streams[0], slice(settings.map_after))))
            begun = circuit.state
            for k, stream in enumerate(streams):
                circuit.state = begun
                runs.append(circuit.run(*_part(stream, slice(settings.map_after, None))))
                last = -(-(len(stream.points) - settings.map_after) // 2)
                y = runs[-1]["y"].to_numpy()[-last:, 0]
                found[i, j, k] = correct(y, stream.classes[-last:]).mean()
    return found


def _part(stream: Stream, which: slice) -> tuple[FloatArray, Classes]:
    """Points and labels of a part of a stream."""
    return stream.points[which], stream.labels[which]


def travel() -> float:
    """Root mean square distance of the moons' points from what they turn about: 2 pi times it is
    the way of a point in a cycle."""
    # Over half a circle of radius 1 about (0, 0), with c what it turns about: 1 + |c|^2 less
    # twice the mean of c.p, which is c_y 2/pi. The other moon is this one turned by pi.
    x, y = DRIFT_LIFT.center
    return math.sqrt(1 + x**2 + y**2 - 4 * y / math.pi)


def pictures(config: base.Config[Settings], stream: Stream) -> dict[str, Any]:
    """Tiles of the gated circuit and the points around them, at moments of the stream from the
    start of the drift to its end."""
    circuit = circuit_for(config, "gated")
    moments = np.linspace(config.settings.drift_after, len(stream.points), MOMENTS).astype(int)
    shown = min(SHOWN, int(moments[0]))
    centers, weights, used, start = [], [], [], 0
    for moment in moments:
        circuit.run(stream.points[start:moment], stream.labels[start:moment])
        centers.append(tile_centers_of(circuit.state.W, DRIFT_LIFT))
        weights.append(circuit.state.w[0])
        used.append(circuit.state.in_use)
        start = moment
    recent = [slice(moment - shown, moment) for moment in moments]
    return {
        "tile_center": (("moment", "tile", "coordinate"), np.array(centers)),
        "tile_weight": (("moment", "tile"), np.array(weights)),
        "tile_used": (("moment", "tile"), np.array(used).astype(int)),
        "shown_point": (("moment", "shown", "coordinate"), [stream.points[r] for r in recent]),
        "shown_class": (("moment", "shown"), [stream.classes[r] for r in recent]),
        "moment_time": ("moment", moments),
    }


def limits(merged: xr.Dataset) -> dict[str, dict[float, FloatArray]]:
    """Where accuracy falls through `LOST`, as v/(eta rho), by `TILES` and eta, one for every
    repeat; see `crossing`."""
    merged = merged.sortby("speed")
    first, speeds = first_repeat(merged), merged["speed"].to_numpy()
    way = 2 * math.pi * float(first["travel"]) / DRIFT_UNIT / float(first["tile_radius"])
    return {
        kind: {
            float(eta): np.array(
                [
                    crossing(speeds, row) * way / float(eta)
                    for row in merged["map"].sel(tiles=kind, eta=eta).to_numpy()
                ]
            )
            for eta in merged["eta"].to_numpy()
        }
        for kind in TILES
    }


def crossing(speeds: FloatArray, accuracy: FloatArray) -> float:
    """The first speed at which accuracy falls through `LOST`, between speeds by a straight line
    over their logarithms; where it does not on the map, the end of the map that is nearest."""
    below = np.flatnonzero(accuracy < LOST)
    if below.size == 0:
        return float(speeds[-1])
    k = below[0]
    if k == 0:
        return float(speeds[0])
    share = (accuracy[k - 1] - LOST) / (accuracy[k - 1] - accuracy[k])
    return float(speeds[k - 1] * (speeds[k] / speeds[k - 1]) ** share)


def of(merged: xr.Dataset, stream: str, follower: str) -> FloatArray:
    """Accuracies of all repeats."""
    values: FloatArray = merged["accuracy"].sel(stream=stream, follower=follower).to_numpy()
    return values


def _followers(merged: xr.Dataset) -> list[str]:
    return [str(name) for name in merged["follower"].to_numpy()]


def _measured(merged: xr.Dataset) -> int:
    return int(json.loads(merged.attrs["config"])["settings"]["measured"])


def _values(found: dict[str, FloatArray]) -> str:
    return ", ".join(f"{base.spread(one)} ({name})" for name, one in found.items())


def _short(found: dict[str, FloatArray]) -> str:
    return ", ".join(f"{one.mean():.3f} ({name})" for name, one in found.items())


def _baselines(merged: xr.Dataset, stream: str) -> str:
    names = [name for name in _followers(merged) if name not in CIRCUITS]
    return ", ".join(f"{name} {base.spread(of(merged, stream, name))}" for name in names)


def _range(found: dict[float, FloatArray]) -> str:
    means = [float(np.exp(np.log(one).mean())) for one in found.values()]
    return f"{min(means):.2f} to {max(means):.2f}"
