"""Noise on W while the stream goes on: single fields drift, and what stays of the population.

Hebbian/anti-Hebbian networks with noisy synapses drift through representations that are equally
good (Qin et al. 2023, Nature Neuroscience 26, 339-349): fields of single cells change, the
similarity of the outputs of any two inputs does not.
"""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import xarray as xr
from pydantic import Field, model_validator

from analysis.selection import first_repeat
from analysis.theory import diffusion_by_noise
from circuits import CircuitParameters, Freeze, Noise
from circuits.base import Circuit
from circuits.lift import FloatArray, SphereLift
from circuits.state import CircuitState
from simulations.datasets import (
    MOONS_LIFT,
    RING_LIFT,
    Classes,
    first_of_each_class,
    on_ring,
    ring,
    two_moons,
)
from simulations.experiments import evidence
from simulations.experiments import experiment as base

RULES = ("paper", "gated")
"""Readouts. The paper's has a constant rate: with 1/(t + 1) it could not change any more."""

_NAMES = {"paper": "the paper's readout", "gated": "the gated readout"}

STREAMS = ("still", "noise", "frozen")
"""What happens to a circuit on the moons: nothing; noise on W; the same, with w as it was when the
noise began."""

MOMENTS = 20
"""Parts of the stream with noise, after each of which fields are measured."""

GRID = 120
"""Points at which fields are measured: so many around the ring, and along the moons."""

FORGOTTEN, KEPT = 0.2, 0.8
"""Mean correlation of fields with their former selves, at the end, with noise and without."""

ALIKE = 0.85
"""Correlation of the similarity of any two outputs with what it was."""

JUMPS = 0.5
"""Share of the squared displacement of tiles that is in steps of more than a tile radius."""

EXPONENT = (1.5, 2.5)
"""Where the exponent of the diffusion constant over the noise is 2, as far as it matters."""

TOGETHER = 0.2
"""Mean product of the steps of neighbours over their mean square: above, they move together."""

KEEPS_UP = 0.95
"""Accuracy on the moons in the last quarter of the stream."""

DISTANCES = (0.2, 0.4, 0.8, 1.6, math.pi)
"""Upper ends of bins of distances between tiles, in radians."""

_DIMS = {"own_field": ("moment", "tile"), "center": ("moment", "tile"), "together": ("near",)}
_DIMS |= dict.fromkeys(("likeness", "turned", "shuffled", "answering", "moved"), ("moment",))

Size = Annotated[float, Field(gt=0, le=1)]
Rate = Annotated[float, Field(gt=0, le=1)]


class Settings(base.Settings):
    """The streams and the noise."""

    n_points: int = Field(default=25_000, ge=MOMENTS)
    """Presentations with noise, on the ring and on the moons."""
    n_tiling: int = Field(default=5000, ge=50)
    """Presentations before that."""
    label_after: int = Field(default=200, ge=0)
    """On the moons, the first point of each class from here on has a label, and no other."""
    noise: float = Field(default=0.05, ge=0, le=1)
    """Of the moons' points."""
    size: Size = 2e-5
    """Noise on every synapse W of the ring at every presentation; in its plane W is 0.023 long.
    Chosen on seeds 7000 and 7001 so that fields forget within the stream, as are the others."""
    other_sizes: base.Grid[Size] = (5e-6, 1e-5, 4e-5, 8e-5)
    """More of them for the diffusion constant."""
    moons_size: Size = 1e-5
    """The same on the moons, where tiles answer over a smaller part of the sphere."""
    paper_mu: float = Field(default=30.0, ge=0)
    paper_rate: Rate = 0.01
    gated_mu: float = Field(default=1.1, ge=0)
    gated_rate: Rate = 0.9

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.size in self.other_sizes:
            raise ValueError(f"size={self.size:g} must not be among other_sizes, too")
        if self.label_after + 20 > self.n_tiling:
            raise ValueError(
                f"label_after={self.label_after} must be 20 points or more before the noise, "
                f"which begins after n_tiling={self.n_tiling}"
            )
        return self

    @property
    def sizes(self) -> list[float]:
        """Noise from none on, in its order."""
        return sorted({0.0, self.size, *self.other_sizes})

    @property
    def moments(self) -> list[int]:
        """Presentations with noise at which fields are measured, from none on."""
        return [k * self.n_points // MOMENTS for k in range(MOMENTS + 1)]


class RepresentationalDrift(base.Experiment[Settings]):
    """A ring, and moons with two labels, tiled and then shown on and on with noise on W."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters(n_tiles=40, tile_radius=0.4, tiles="first")
    lift: ClassVar = RING_LIFT
    main: ClassVar = "readout_course"
    main_at: ClassVar = {"stream": "noise", "part": None}
    repeats: ClassVar = 8
    perturbable: ClassVar = False
    quick: ClassVar = {"n_points": 5000, "n_tiling": 2000, "other_sizes": (1e-5, 8e-5)}
    taken: ClassVar = {
        **{"readout_rule": "paper_mu or gated_mu", "mu": "paper_mu or gated_mu"},
        "readout_rate": "paper_rate or gated_rate",
    }

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """The ring at every size of the noise, and the moons with either readout."""
        settings = config.settings
        runs: list[xr.Dataset] = []
        found: dict[str, list[Any]] = {}
        rng = np.random.default_rng([seed, len(STREAMS)])
        report("ring")
        begun = tiled(config, seed, "paper", RING_LIFT, ring_points(settings, seed), None, runs)
        for size in settings.sizes:
            report(f"ring, noise {size:g}")
            drift = drifted(config, seed, {"W": size}, begun, runs)
            for name, value in _measured(config, drift, rng).items():
                found.setdefault(name, []).append(value)
        report("ring, noise on b")
        bias = drifted(config, seed, {"b": settings.size}, begun, runs)
        moons = [_answered(config, seed, rule, report, runs) for rule in RULES]
        return xr.Dataset(
            {name: (("size", *_DIMS.get(name, ())), value) for name, value in found.items()}
            | {
                "bias_field": (("moment", "tile"), own_correlations(bias.fields)),
                "bias_diffusion": diffusion(settings.moments, bias.steps),
                "readout_course": (
                    ("rule", "stream", "part"),
                    [[course for course, _ in row] for row in moons],
                ),
                "moons_field": (("rule", "stream"), [[field for _, field in row] for row in moons]),
            },
            coords={
                "size": settings.sizes,
                "moment": settings.moments,
                "part": settings.moments[1:],
                "near": list(DISTANCES),
                "rule": list(RULES),
                "stream": list(STREAMS),
            },
            attrs=base.joined(runs),
        ).assign(shown_size=settings.size)

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """What single fields forget and the population keeps, how tiles move, and whether the
        readout keeps up."""
        return [
            self._fields(merged),
            self._population(merged),
            self._jumps(merged),
            self._square(merged),
            self._neighbours(merged),
            *(self._keeps_up(merged, rule) for rule in RULES),
        ]

    def _fields(self, merged: xr.Dataset) -> base.Claim:
        means = merged["own_field"].mean("tile")
        noisy, still = at(merged, means), at(merged, means, noise=False)
        end, without = noisy[:, -1], still[:, -1]
        together = evidence.all_of(
            evidence.mean_below(end, FORGOTTEN), evidence.mean_above(without, KEPT)
        )
        sd = at(merged, merged["own_field"].std("tile"))[:, -1]
        return base.Claim(
            "in noise on W fields forget what they were",
            "",
            "a ring of tiles goes on learning with noise on W; correlation of the field of every "
            f"tile with what it was before, mean over tiles (0 for a silent one): after all "
            f"presentations below {FORGOTTEN} with noise and above {KEPT} without (t tests)",
            f"{base.spread(end)} with noise of {_size(merged):g}, {base.spread(without)} without; "
            f"course with noise {_course(merged, noisy)}; standard deviation over tiles "
            f"{base.spread(sd)} at the end",
            f"{end.mean():.2f}, without noise {without.mean():.2f}, {together}",
            self.decide(merged, together),
            control=f"course without noise {_course(merged, still)}; with noise on b alone "
            f"{_course(merged, merged['bias_field'].mean('tile').to_numpy())}",
        )

    def _population(self, merged: xr.Dataset) -> base.Claim:
        noisy, still = at(merged, merged["likeness"]), at(merged, merged["likeness"], noise=False)
        other = at(merged, merged["turned"])
        late, null = second_half(noisy), second_half(other)
        together = evidence.all_of(
            evidence.mean_above(late, ALIKE), evidence.mean_above(late - null)
        )
        shuffled = second_half(at(merged, merged["shuffled"]))
        return base.Claim(
            "the population keeps which points are alike",
            "",
            f"the same ring, at {GRID} points: correlation of the scalar products of the outputs "
            "of any two points with what they were, mean over the second half of the moments, "
            f"above {ALIKE} (t test), and above that of the same fields after each was turned "
            "round the ring by an angle of its own (paired t test)",
            f"{base.spread(late)}, course {_course(merged, noisy)}; lead over fields turned each "
            f"by itself {evidence.with_error(late - null)}",
            f"{late.mean():.2f}, turned {null.mean():.2f}, {together}",
            self.decide(merged, together),
            control=f"fields turned each by itself {base.spread(null)}; tiles shuffled at every "
            f"point {base.spread(shuffled)}; without noise {base.spread(second_half(still))}",
        )

    def _jumps(self, merged: xr.Dataset) -> base.Claim:
        found = at(merged, merged["jumps"])
        still = at(merged, merged["jumps"], noise=False)
        together = evidence.mean_above(found, JUMPS)
        silent = 1 - at(merged, merged["answering"])[:, 1:].mean(axis=1)
        return base.Claim(
            "tiles jump: they fall silent and rise elsewhere",
            "",
            f"share of the sum of squared steps of tiles along the ring, between {MOMENTS + 1} "
            "moments, that is in steps of more than a tile radius: its mean over repeats above "
            f"{JUMPS} (t test)",
            f"{base.spread(found)}; share of tiles that answer nowhere {base.spread(silent)}",
            f"{found.mean():.2f} of squared steps, {together}",
            self.decide(merged, together),
            control=f"without noise {base.spread(still)}; noise on b alone, which pushes no tile "
            f"along the ring, gives D = {_power(merged['bias_diffusion'])} rad² per presentation, "
            f"noise on W {_power(at(merged, merged['diffusion']))}",
        )

    def _square(self, merged: xr.Dataset) -> base.Claim:
        sizes, found = merged["size"].to_numpy(), exponents(merged)
        low, high = EXPONENT
        together = evidence.all_of(
            evidence.mean_above(found, low), evidence.mean_below(found, high)
        )
        positive = merged.sel(size=sizes[sizes > 0]).sortby("size")
        alone = diffusion_by_noise(positive["size"], positive["weight"])
        ratio = positive["diffusion"] / alone
        creep = (positive["creep"] / alone).mean("repeat").to_numpy()
        still = at(merged, merged["diffusion"], noise=False)
        return base.Claim(
            "the diffusion constant grows as the square of the noise",
            "",
            "mean squared displacement of tiles along the ring, fitted by 2 D t; the exponent of D "
            f"over the size of the noise is between {low:g} and {high:g} (t tests), as it is where "
            "only noise along the ring moves tiles: D₀ = size²/(2 |W|²) with W in the plane of the "
            "ring",
            f"exponent {evidence.with_error(found)}; D/D₀ "
            f"{', '.join(f'{value:.0f}' for value in ratio.mean('repeat').to_numpy())} at sizes "
            f"{', '.join(f'{size:g}' for size in positive['size'].to_numpy())}; of steps within a "
            f"tile radius alone {', '.join(f'{value:.2g}' for value in creep)}",
            f"exponent {found.mean():.2f}, {together}",
            self.decide(merged, together),
            control=f"D = {_power(at(merged, merged['diffusion']))} rad² per presentation at "
            f"{_size(merged):g}, without noise {_power(still)}",
        )

    def _neighbours(self, merged: xr.Dataset) -> base.Claim:
        noisy = at(merged, merged["together"])
        still = at(merged, merged["together"], noise=False)
        found = evidence.all_of(
            evidence.mean_above(still[:, 0], TOGETHER), evidence.mean_below(noisy[:, 0], TOGETHER)
        )
        near = merged["near"].to_numpy()[0]
        return base.Claim(
            "noise moves each tile by itself",
            "",
            "steps of tiles within a tile radius, mean product of those of two tiles over the mean "
            f"square, of tiles within {near:g} rad of each other: above {TOGETHER} without noise, "
            f"where only the points that tiles share move them, and below {TOGETHER} with it (t "
            "tests)",
            f"{base.spread(noisy[:, 0])} with noise, {base.spread(still[:, 0])} without",
            f"{noisy[:, 0].mean():.2f}, without noise {still[:, 0].mean():.2f}, {found}",
            self.decide(merged, found),
            control="the same of pairs from near to far, with noise "
            f"{_means(noisy)}, without {_means(still)}",
        )

    def _keeps_up(self, merged: xr.Dataset, rule: str) -> base.Claim:
        late = {
            name: last_quarter(merged["readout_course"].sel(rule=rule, stream=name))
            for name in STREAMS
        }
        found, frozen = late["noise"], late["frozen"]
        together = evidence.all_of(
            evidence.mean_above(found, KEEPS_UP), evidence.mean_above(found - frozen)
        )
        fields = merged["moons_field"].sel(rule=rule)
        return base.Claim(
            f"{_NAMES[rule]} keeps up with fields that drift",
            "",
            "two moons with noise on W, two labels long before it and none after: accuracy over "
            f"the last quarter of the stream above {KEEPS_UP} in the mean (t test), and above that "
            "of a readout that learns no more once the noise begins (paired t test)",
            f"{base.spread(found)}, worst {found.min():.3f}; correlation of fields with what they "
            f"were {base.spread(fields.sel(stream='noise'))} at the end",
            f"{found.mean():.3f}, frozen {frozen.mean():.3f}, {together}",
            self.decide(merged, together),
            control=f"w frozen when the noise begins {base.spread(frozen)}; without noise "
            f"{base.spread(late['still'])}, fields {base.spread(fields.sel(stream='still'))}",
        )


class Drift(NamedTuple):
    """What became of the tiles of a ring."""

    fields: FloatArray
    """(moment, point, tile): responses at the same points."""
    centers: FloatArray
    """(moment, tile): angles of the middles of fields; NaN of tiles that answer nowhere."""
    weight: float
    """Mean length of W in the plane of the ring when the noise begins."""

    @property
    def steps(self) -> FloatArray:
        """(step, tile): angles from one moment to the next, the shorter way round. A tile that is
        silent stays where it was last seen; where it rises again, it makes one step."""
        last, found = self.centers[0], []
        for now in self.centers[1:]:
            step = np.angle(np.exp(1j * (now - last)))
            found.append(np.where(np.isnan(step), 0.0, step))
            last = np.where(np.isnan(now), last, now)
        return np.array(found)


def circuit_for(
    config: base.Config[Settings],
    seed: int,
    rule: str,
    lift: SphereLift,
    sizes: dict[str, float],
    frozen: bool = False,
) -> Circuit:
    """A circuit with noise of these sizes on W and b once it has tiled, from when on w may be
    frozen. All have the same perturbations, if of size zero or too late, and so one program."""
    settings = config.settings
    start, end = settings.n_tiling, settings.n_tiling + settings.n_points
    own = {
        "paper": {"readout_rate": settings.paper_rate, "mu": settings.paper_mu},
        "gated": {"readout_rate": settings.gated_rate, "mu": settings.gated_mu},
    }[rule]
    noise = [Noise(on=on, size=sizes.get(on, 0.0), seed=seed, at=start) for on in ("W", "b")]
    return base.make_circuit(
        config.engine,
        config.parameters.replace(readout_rule=rule, **own),
        lift,
        perturbations=[*noise, Freeze(what="w", at=start if frozen else end)],
    )


def tiled(
    config: base.Config[Settings],
    seed: int,
    rule: str,
    lift: SphereLift,
    points: FloatArray,
    labels: Classes | None,
    runs: list[xr.Dataset],
) -> CircuitState:
    """A circuit as it is when the noise begins, which is the same for every noise; ``runs`` gets
    what was run."""
    cut = config.settings.n_tiling
    circuit = circuit_for(config, seed, rule, lift, {})
    runs.append(circuit.run(points[:cut], None if labels is None else labels[:cut]))
    return circuit.state


def drifted(
    config: base.Config[Settings],
    seed: int,
    sizes: dict[str, float],
    begun: CircuitState,
    runs: list[xr.Dataset],
) -> Drift:
    """A ring of tiles that drifts; ``runs`` gets what was run. Every noise has the same points."""
    settings = config.settings
    points = ring_points(settings, seed)[settings.n_tiling :]
    circuit = circuit_for(config, seed, "paper", RING_LIFT, sizes)
    circuit.state = begun
    angles = ring_angles()
    fields = [circuit.respond(on_ring(angles))]
    for start, end in itertools.pairwise(settings.moments):
        runs.append(circuit.run(points[start:end]))
        fields.append(circuit.respond(on_ring(angles)))
    weight = float(np.linalg.norm(begun.W[:, :2], axis=1).mean())
    return Drift(np.array(fields), centers_of(np.array(fields)), weight)


def ring_points(settings: Settings, seed: int) -> FloatArray:
    """The stream on the ring."""
    rng = np.random.default_rng([seed, 0])
    return ring(settings.n_tiling + settings.n_points, rng)[0]


def ring_angles() -> FloatArray:
    """Where fields on the ring are measured."""
    return np.arange(GRID) * 2 * math.pi / GRID


def centers_of(fields: FloatArray) -> FloatArray:
    """Angles (moment, tile) of the middles of fields (moment, point, tile): those of the sum of
    h e^(i phi) over the points; NaN where it is zero."""
    total = np.einsum("mpt,p->mt", fields, np.exp(1j * ring_angles()))
    return np.where(np.abs(total) > 1e-9, np.angle(total), np.nan)


def own_correlations(fields: FloatArray) -> FloatArray:
    """Correlation (moment, tile) of every field with that of the first moment, over the points;
    0 where one of the two is flat, as that of a silent tile is."""
    apart = fields - fields.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(apart, axis=1)
    product = np.einsum("mpt,pt->mt", apart, apart[0])
    size = norm * norm[0]
    found: FloatArray = np.divide(product, size, out=np.zeros_like(product), where=size > 1e-12)
    return found


def likeness(before: FloatArray, after: FloatArray) -> float:
    """Correlation of the scalar products of the outputs (point, tile) of any two points before and
    after; NaN where either are all the same."""
    pairs = np.triu_indices(len(before), 1)
    a, b = ((h @ h.T)[pairs] for h in (before, after))
    if min(a.std(), b.std()) < 1e-12:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def turned(h: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Outputs (point, tile) in which every field was turned round the ring by an angle of its own,
    brought back to length one: drift in which no tile heeds another."""
    turns = [int(rng.integers(len(h))) for _ in h.T]
    moved = np.stack([np.roll(h[:, i], k) for i, k in enumerate(turns)], axis=1)
    norm = np.linalg.norm(moved, axis=1, keepdims=True)
    found: FloatArray = np.divide(moved, norm, out=np.zeros_like(moved), where=norm > 0)
    return found


def diffusion(moments: list[int], steps: FloatArray) -> float:
    """D in rad^2 per presentation: the mean squared displacement over tiles is fitted by 2 D t."""
    t = np.array(moments[1:], dtype=float)
    moved = (np.cumsum(steps, axis=0) ** 2).mean(axis=1)
    return float((t * moved).sum() / (2 * (t**2).sum()))


def together(drift: Drift, radius: float) -> FloatArray:
    """Mean product of the steps of two tiles over their mean square, by `DISTANCES` between them
    before the step; of steps within a tile radius, NaN where there are none."""
    steps, total = drift.steps, np.zeros((2, len(DISTANCES)))
    for k, step in enumerate(steps):
        seen = ~np.isnan(drift.centers[k : k + 2]).any(axis=0) & (np.abs(step) < radius)
        place, way = drift.centers[k, seen], step[seen]
        i, j = np.triu_indices(len(way), 1)
        apart = np.abs(np.angle(np.exp(1j * (place[i] - place[j]))))
        bins = np.minimum(np.searchsorted(DISTANCES, apart), len(DISTANCES) - 1)
        square = (way**2).mean() if len(way) else 0.0
        np.add.at(total[0], bins, way[i] * way[j])
        np.add.at(total[1], bins, square)
    unknown = np.full(len(DISTANCES), np.nan)
    found: FloatArray = np.divide(total[0], total[1], out=unknown, where=total[1] > 0)
    return found


def jump_share(steps: FloatArray, radius: float) -> float:
    """Share of the sum of squared steps that is in steps of more than a tile radius; NaN where
    nothing moves. On a ring of radius 1 a length is an angle."""
    square = steps**2
    total = square.sum()
    return float(square[np.abs(steps) > radius].sum() / total) if total else math.nan


def _measured(
    config: base.Config[Settings], drift: Drift, rng: np.random.Generator
) -> dict[str, Any]:
    """Everything that is kept of a ring, by name."""
    radius, moments = config.parameters.tile_radius, config.settings.moments
    h, steps = drift.fields, drift.steps
    way = np.concatenate([np.zeros((1, h.shape[2])), np.cumsum(steps, axis=0)])
    return {
        "own_field": own_correlations(h),
        "likeness": [likeness(h[0], one) for one in h],
        "turned": [likeness(h[0], turned(one, rng)) for one in h],
        "shuffled": [likeness(h[0], rng.permuted(one, axis=1)) for one in h],
        "center": drift.centers,
        "answering": (~np.isnan(drift.centers)).mean(axis=1),
        "moved": (way**2).mean(axis=1),
        "jumps": jump_share(steps, radius),
        "diffusion": diffusion(moments, steps),
        "creep": diffusion(moments, np.where(np.abs(steps) > radius, 0.0, steps)),
        "together": together(drift, radius),
        "weight": drift.weight,
    }


def _answered(
    config: base.Config[Settings],
    seed: int,
    rule: str,
    report: base.Report,
    runs: list[xr.Dataset],
) -> list[tuple[FloatArray, float]]:
    """For each of `STREAMS`, accuracy on the moons in every part of the stream with noise, and the
    mean correlation of fields at its end with those at its beginning."""
    settings = config.settings
    points, classes, labels = moons(settings, seed)
    report(f"moons, {rule}")
    begun = tiled(config, seed, rule, MOONS_LIFT, points, labels, runs)
    test, _ = two_moons(GRID, 0.0, 0)
    cut, found = settings.n_tiling, []
    for stream in STREAMS:
        report(f"moons, {rule}, {stream}")
        sizes = {} if stream == "still" else {"W": settings.moons_size}
        circuit = circuit_for(config, seed, rule, MOONS_LIFT, sizes, stream == "frozen")
        circuit.state = begun
        before = circuit.respond(test)
        runs.append(circuit.run(points[cut:], labels[cut:]))
        fields = own_correlations(np.stack([before, circuit.respond(test)]))
        y = runs[-1]["y"].to_numpy()[:, 0]
        course = [
            1 - base.error_rate(y[start:end], classes[cut:][start:end])
            for start, end in itertools.pairwise(settings.moments)
        ]
        found.append((np.array(course), float(fields[1].mean())))
    return found


def moons(settings: Settings, seed: int) -> tuple[FloatArray, Classes, Classes]:
    """Points, classes and labels of the moons."""
    count = settings.n_tiling + settings.n_points
    points, classes = two_moons(count, settings.noise, np.random.default_rng([seed, 1]))
    return points, classes, first_of_each_class(classes, settings.label_after)


def at(merged: xr.Dataset, values: xr.DataArray, noise: bool = True) -> FloatArray:
    """Values of all repeats at the size of the noise that is shown, or without noise."""
    size = _size(merged) if noise else 0.0
    found: FloatArray = values.sel(size=size).transpose("repeat", ...).to_numpy()
    return found


def exponents(merged: xr.Dataset) -> FloatArray:
    """Slope of log D over log size in every repeat; NaN where a tile nowhere moved."""
    positive = merged.sel(size=merged["size"] > 0)
    x = np.log(positive["size"].to_numpy())
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(positive["diffusion"].transpose("repeat", "size").to_numpy())
        apart = x - x.mean()
        found: FloatArray = (y * apart).sum(axis=1) / (apart**2).sum()
    return found


def second_half(values: FloatArray) -> FloatArray:
    """Means (repeat,) over the second half of the moments (repeat, moment)."""
    half: FloatArray = values[:, -(MOMENTS // 2) :].mean(axis=1)
    return half


def last_quarter(course: xr.DataArray) -> FloatArray:
    """Means (repeat,) over the last quarter of the parts of the stream."""
    means: FloatArray = course.isel(part=slice(-(MOMENTS // 4), None)).mean("part").to_numpy()
    return means


def _size(merged: xr.Dataset) -> float:
    return float(first_repeat(merged)["shown_size"])


def _course(merged: xr.Dataset, values: FloatArray) -> str:
    """Means over repeats after a tenth, a fifth, two fifths and all of the stream."""
    moments = merged["moment"].to_numpy()
    return ", ".join(
        f"{values[:, k].mean():.2f} ({moments[k]})"
        for k in (MOMENTS // 10, MOMENTS // 5, 2 * MOMENTS // 5, MOMENTS)
    )


def _means(values: FloatArray) -> str:
    return ", ".join(f"{value:.2f}" for value in values.mean(axis=0))


def _power(values: Any) -> str:
    """Mean and standard deviation of small numbers."""
    array = np.asarray(values, dtype=float)
    return f"{array.mean():.2g}" + (f" ± {array.std(ddof=1):.1g}" if array.size > 1 else "")
