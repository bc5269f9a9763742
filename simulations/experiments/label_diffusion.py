"""How labels diffuse over tiles while the label channel is silent, the paper's Eq. (exdiff), and
whether it matters if the readout clips, Eq. (ystep), or saturates, Eq. (ytanh)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import xarray as xr
from pydantic import Field, field_validator

from analysis.measures import diffusion_slopes
from circuits.base import Circuit
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from simulations.datasets import (
    MOONS_LIFT,
    ROLL_LIFT,
    SQUARE_LIFT,
    Classes,
    first_of_each_class,
    two_moons,
    unit_square,
)
from simulations.experiments import experiment as base
from simulations.experiments import roll
from simulations.experiments.evidence import (
    Evidence,
    all_of,
    mean_above,
    mean_below,
    with_error,
)
from simulations.experiments.square_balance import SquareBalance
from simulations.experiments.two_moons import TwoMoons

Stream = tuple[FloatArray, Classes, Classes]
"""Points, classes and labels."""


class Settings(base.Settings):
    """The phases of the experiment, and the streams on which readouts are compared."""

    n_tiling: int = Field(default=2000, ge=100)
    """Points from which the tiles learn; then they stay."""
    moments: base.Grid[Annotated[int, Field(ge=0, le=base.MOST_POINTS)]] = (0, 50, 100, 200)
    """Silent presentations after the labels at which the mean change of w is measured."""
    n_probe: int = Field(default=2000, ge=100)
    """Points over which it is averaged."""
    noise: float = Field(default=0.05, ge=0)
    n_points: int = Field(default=2000, ge=100)
    """Points of each stream on which clip and tanh are compared."""
    mu_grid: base.Grid[base.NotNegative] = (1, 3, 10, 30, 100, 300, 1000)
    """Gains at which they are compared besides those used elsewhere."""

    @field_validator("moments")
    @classmethod
    def _check_order(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if list(value) != sorted(value):
            raise ValueError("must grow: the stream does not go back")
        return value


PROBE_RATE = 1e-9
"""So slow that w is the same for all points of a probe (to 1e-6 of its change)."""

GRAPHS = ("overlaps", "diagonal", "shuffled")
"""What is put for S: E(h h^T); this without the overlaps between tiles, so that nothing diffuses;
and this with the tiles in another order, so that labels diffuse to other tiles."""

SLOPE, CORRELATION = (0.9, 1.1), 0.95
"""Mean slope and least mean correlation that are claimed of measured on predicted changes."""

KINDS = ("clip", "tanh")

USED = "used"
"""Stands for the gain that an experiment of this package uses on a data set."""

SAME, SAME_ANYWHERE = 0.98, 0.95
"""Least mean share of equal signs that is claimed of clip and tanh, at the gains used and at any
gain."""


@dataclass(frozen=True)
class Data:
    """A data set on which readouts are compared."""

    parameters: CircuitParameters
    lift: SphereLift
    mu: float
    make: Callable[[int, np.random.Generator], Stream]


def _moons(n_points: int, rng: np.random.Generator) -> Stream:
    """The two moons, one label per class once a tenth of the points has passed."""
    points, classes = two_moons(n_points, 0.05, rng)
    return points, classes, first_of_each_class(classes, n_points // 10)


def _board(n_points: int, rng: np.random.Generator) -> Stream:
    """The coarsest chessboard on the roll, one point in twenty labelled."""
    points, _, (classes,) = roll.roll_with_boards(n_points, roll.BOARDS[:1], rng)
    labels = np.zeros_like(classes)
    known = rng.permutation(n_points)[: n_points // 20]
    labels[known] = classes[known]
    return points, classes, labels


def _square(n_points: int, rng: np.random.Generator) -> Stream:
    """The square with its labels first; a point's class is that of the nearer label."""
    points, labels = unit_square(n_points, 0, rng)
    return points, np.where(points.sum(axis=1) > 1, 1, -1), labels


DATA = {
    "moons": Data(TwoMoons.parameters, MOONS_LIFT, 1000.0, _moons),
    "board": Data(roll.PARAMETERS, ROLL_LIFT, 10.0, _board),
    "square": Data(SquareBalance.parameters, SQUARE_LIFT, 10.0, _square),
}


class LabelDiffusion(base.Experiment[Settings]):
    """Mean change of w against eta (mu S w - w), S = E(h h^T); clip against tanh."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters(mu=200.0)
    lift: ClassVar = MOONS_LIFT
    main: ClassVar = "circuit_same_sign"
    repeats: ClassVar = 40
    size: ClassVar = ("n_tiling", "n_probe", "n_points")
    quick: ClassVar = {"n_tiling": 1000, "moments": (0, 50), "n_probe": 500, "n_points": 600}
    quick_repeats: ClassVar = 5

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """Tile, show two labels, fall silent, and at some moments ask what the next point would do
        to w on average. With mu = 200 and labels that count 1/2000 each the readout stays within
        its limits, as the equation assumes. S comes from the tiling phase, not from the points
        whose effect it has to predict."""
        settings, p = config.settings, config.parameters
        rng = np.random.default_rng(seed)
        points, classes = two_moons(settings.n_tiling, settings.noise, rng)
        tiling = config.circuit(p, self.lift)
        runs = [tiling.run(points)]
        # They stay: nor may a point recruit another one.
        fixed = p.replace(learning_rate=0.0, tiles="first", recycle=False)
        circuit = config.circuit(fixed, self.lift)
        circuit.state = tiling.state
        h = circuit.respond(points)
        pair = [int(np.flatnonzero(classes == label)[0]) for label in (-1, 1)]
        runs.append(circuit.run(points[pair], classes[pair]))
        measured, weights, largest, shown = [], [], 0.0, 0
        for moment in settings.moments:
            if moment > shown:
                silent, _ = two_moons(moment - shown, settings.noise, rng)
                runs.append(circuit.run(silent))
                largest = max(largest, float(np.abs(runs[-1]["y"].to_numpy()).max()))
                shown = moment
            probe = config.circuit(fixed.replace(readout_rate=PROBE_RATE), self.lift)
            probe.state = circuit.state
            w = probe.state.w[0]
            fresh, _ = two_moons(settings.n_probe, settings.noise, rng)
            run = probe.run(fresh)
            runs.append(run)
            largest = max(largest, float(np.abs(run["y"].to_numpy()).max()))
            # w' - w = PROBE_RATE sum_t (y_t h_t - w): the mean change in units of the rate.
            measured.append((run["w"].to_numpy()[0] - w) / (PROBE_RATE * settings.n_probe))
            weights.append(w)
            report(f"{moment} silent points")
        used = tiling.state.recruited >= 0
        w, changes = np.array(weights), np.array(measured)
        mu = p.mu_per_readout[0]
        predicted = {
            name: mu * w @ S - w for name, S in zip(GRAPHS, _graphs(h, used, rng), strict=True)
        }
        found = [_regression(one[:, used], changes[:, used]) for one in predicted.values()]
        return xr.Dataset(
            {
                "measured": (("moment", "tile"), changes),
                "predicted": (("moment", "tile"), predicted["overlaps"]),
                "w": (("moment", "tile"), w),
                "recruited": ("tile", tiling.state.recruited),
                "largest_y": largest,
                "slope": ("graph", [slope for slope, _ in found]),
                "correlation": ("graph", [correlation for _, correlation in found]),
                **self._readouts(config, seed, report),
            },
            coords={"moment": list(settings.moments), "graph": list(GRAPHS)},
            attrs=base.joined(runs),
        )

    def _readouts(
        self, config: base.Config[Settings], seed: int, report: base.Report
    ) -> dict[str, Any]:
        """Streams with either nonlinearity: the exact solver on all of them at all gains, as
        readouts of one simulation, and the circuit itself on the two moons."""
        settings = config.settings
        rng = np.random.default_rng(seed)
        rows = []
        for name, data in DATA.items():
            report(f"clip and tanh on the {name}")
            stream = data.make(settings.n_points, rng)
            rows.append(_compared(data, stream, settings.mu_grid))
            if name == "moons":
                counted = answered_silently(stream[2])
                runs = [_answered(config.circuit, data, stream, kind) for kind in KINDS]
                own = np.stack([run["y"].to_numpy() for run in runs])
        along = {"same_sign": (), "same_gain": (), "difference": (), "error": ("readout_kind",)}
        return {
            "readout_y": (("readout_kind", "presentation"), own[..., 0]),
            "circuit_same_sign": float(_same(own[0], own[1], counted)[0]),
            **{
                variable: (("data", *dims, "gain"), np.stack([row[variable] for row in rows]))
                for variable, dims in along.items()
            },
            "critical_mu": ("data", [row["critical_mu"] for row in rows]),
            "data": list(DATA),
            "gain": [USED, *(f"{mu:g}" for mu in settings.mu_grid)],
            "readout_kind": list(KINDS),
        }

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """The measured mean change against the predicted one, and clip against tanh."""
        return [self._diffuses(merged), *self._indistinguishable(merged)]

    def _diffuses(self, merged: xr.Dataset) -> base.Claim:
        values = {
            name: [merged[of].sel(graph=name).to_numpy() for of in ("slope", "correlation")]
            for name in GRAPHS
        }
        evidence = {
            name: all_of(
                mean_above(slopes, SLOPE[0]),
                mean_below(slopes, SLOPE[1]),
                mean_above(correlations, CORRELATION),
            )
            for name, (slopes, correlations) in values.items()
        }
        said = {
            name: f"slope {with_error(slopes)}, correlation {with_error(correlations)}"
            for name, (slopes, correlations) in values.items()
        }
        largest = float(merged["largest_y"].max())
        # Where y reaches its limits the equation says nothing, and nothing is said of it.
        silent = Evidence(1.0, 1.0)
        enough = {name: self.quick[name] for name in self.size} | {"repeats": self.quick_repeats}
        return base.Claim(
            "in expectation w diffuses over the graph of tile overlaps",
            "E(Δw_i) = η (μ Σ_j s_ij w_j − w_i)",
            "Regression through the origin of the measured mean change of w on the predicted one, "
            f"over tiles and moments: mean slope between {SLOPE[0]} and {SLOPE[1]} (two t tests), "
            f"mean correlation above {CORRELATION} (t test), where y is not clipped.",
            f"{said['overlaps']}, {evidence['overlaps']}; largest |y| {largest:.2f} (below 1: "
            "nothing is clipped)",
            f"slope {with_error(values['overlaps'][0])}, {base.seeds(merged['repeat'])}",
            self.decide(merged, evidence["overlaps"] if largest < 1 else silent, **enough),
            "; ".join(
                f"{words}: {said[name]}, {evidence[name].outcome}"
                for name, words in (
                    ("diagonal", "S without the overlaps between tiles"),
                    ("shuffled", "S of shuffled tiles"),
                )
            ),
        )

    def _indistinguishable(self, merged: xr.Dataset) -> list[base.Claim]:
        same, swap = merged["same_sign"], merged["same_gain"]
        table = same.transpose("data", "gain", "repeat").to_numpy()
        cells = {
            (data, gain): values
            for data, row in zip(same["data"].to_numpy(), table, strict=True)
            for gain, values in zip(same["gain"].to_numpy(), row, strict=True)
        }
        used = all_of(*(mean_above(cells[data, USED], SAME) for data in DATA))
        anywhere = all_of(*(mean_above(values, SAME_ANYWHERE) for values in cells.values()))
        worst = min(cells, key=lambda cell: cells[cell].mean())
        count = base.seeds(merged["repeat"])
        paper = "The behavior of both algorithms is almost indistinguishable"
        others = swap.mean("repeat").min("gain")
        return [
            base.Claim(
                "clip and tanh are almost indistinguishable at the μ used",
                paper,
                "Share of unlabelled points, from the first label on, that both answer with the "
                f"same sign, in the mean over seeds above {SAME} on each of two moons (μ "
                f"{DATA['moons'].mu:g}), the coarse chessboard (μ {DATA['board'].mu:g}) and the "
                f"square (μ {DATA['square'].mu:g}): t tests.",
                "; ".join(_cell(merged, data, USED) for data in DATA)
                + f", {used} (the circuit itself on the moons: "
                f"{with_error(merged['circuit_same_sign'])})",
                f"{min(cells[data, USED].mean() for data in DATA):.3f} or more of signs, {used}, "
                f"{count}",
                self.decide(merged, used),
                "clip at another μ of the grid, least share of signs equal to those at the μ used: "
                + ", ".join(f"{data} {others.sel(data=data).item():.3f}" for data in DATA)
                + " (on the moons nothing changes a sign, so that they tell nothing apart)",
            ),
            base.Claim(
                "clip and tanh are almost indistinguishable at every μ",
                paper,
                f"The same share, on each of these at each μ above {SAME_ANYWHERE}: t tests.",
                "; ".join(_row(merged, data) for data in DATA) + f"; {anywhere}",
                f"{cells[worst].mean():.3f} at worst ({worst[0]}, μ {worst[1]}), {anywhere}, "
                f"{count}",
                self.decide(merged, anywhere),
                "a single seed may have less: "
                + ", ".join(
                    f"{data} {same.sel(data=data).min().item():.3f} at worst" for data in DATA
                ),
            ),
        ]


def answered_silently(labels: Classes) -> Any:
    """Unlabelled points after the first label: before it every readout is silent."""
    return (labels == 0) & (np.cumsum(labels != 0) > 0)


def _graphs(h: FloatArray, used: Any, rng: np.random.Generator) -> tuple[FloatArray, ...]:
    """S as named by `GRAPHS`, from responses (T, m); tiles that are idle stay where they are."""
    S = h.T @ h / len(h)
    order = np.arange(len(S))
    order[used] = rng.permutation(order[used])
    return S, np.diag(np.diag(S)), S[np.ix_(order, order)]


def _regression(predicted: FloatArray, measured: FloatArray) -> tuple[float, float]:
    """Slope through the origin and correlation of changes (moment, tile)."""
    both = {"predicted": predicted, "measured": measured}
    (slope,) = diffusion_slopes(xr.Dataset({k: (("moment", "tile"), v) for k, v in both.items()}))
    return float(slope), float(np.corrcoef(predicted.ravel(), measured.ravel())[0, 1])


def _answered(
    make: Callable[[CircuitParameters, SphereLift], Circuit],
    data: Data,
    stream: Stream,
    kind: str,
    mu: tuple[float, ...] = (),
) -> xr.Dataset:
    """A stream presented to a circuit with a readout for each gain, the one used first."""
    gains = (data.mu, *mu)
    points, _, labels = stream
    p = data.parameters.replace(readout=kind, n_readouts=len(gains), mu=gains)
    circuit = make(p, data.lift)
    return circuit.run(points, np.repeat(labels[:, None], len(gains), axis=1))


def _same(a: FloatArray, b: FloatArray, counted: Any) -> FloatArray:
    """Share of the points that are counted to which answers (T, r) have the same sign."""
    same: FloatArray = (np.sign(a) == np.sign(b))[counted].mean(axis=0)
    return same


def _compared(data: Data, stream: Stream, grid: tuple[float, ...]) -> dict[str, Any]:
    """What the exact solver's answers with clip and tanh have in common at every gain."""
    _, classes, labels = stream
    counted = answered_silently(labels)
    exact = partial(base.make_circuit, "exact")
    runs = [_answered(exact, data, stream, kind, grid) for kind in KINDS]
    clip, tanh = (run["y"].to_numpy() for run in runs)
    errors = [base.error_rate(y[counted], classes[counted][:, None]) for y in (clip, tanh)]
    h = runs[0]["h"].to_numpy()
    return {
        "same_sign": _same(clip, tanh, counted),
        "same_gain": _same(clip, clip[:, :1], counted),
        "difference": np.abs(clip - tanh)[counted].mean(axis=0),
        "error": np.stack(errors),
        "critical_mu": 1 / np.linalg.eigvalsh(h.T @ h / len(h))[-1],
    }


def _cell(merged: xr.Dataset, data: str, gain: str) -> str:
    """How alike clip and tanh are on a data set at a gain, as text."""
    one = merged[["same_sign", "difference", "error"]].sel(data=data, gain=gain)
    same = with_error(one["same_sign"])
    clip, tanh = (one["error"].sel(readout_kind=kind).mean().item() for kind in KINDS)
    return (
        f"{data}, μ {gain}: same sign {same}, error {clip:.3f} and {tanh:.3f}, mean difference "
        f"of y {one['difference'].mean().item():.3f}"
    )


def _row(merged: xr.Dataset, data: str) -> str:
    """How alike clip and tanh are on a data set at every gain of the grid, as text."""
    means = merged[["same_sign", "difference", "error"]].sel(data=data).mean("repeat")
    gains = [gain for gain in means["gain"].to_numpy() if gain != USED]

    def listed(values: xr.DataArray) -> str:
        return "/".join(f"{value:.3f}" for value in values.sel(gain=gains).to_numpy())

    return (
        f"{data} (critical μ {base.spread(merged['critical_mu'].sel(data=data))}), μ "
        f"{'/'.join(gains)}: same sign {listed(means['same_sign'])}, mean difference of y "
        f"{listed(means['difference'])}, error with clip "
        f"{listed(means['error'].sel(readout_kind='clip'))} and with tanh "
        f"{listed(means['error'].sel(readout_kind='tanh'))}"
    )
