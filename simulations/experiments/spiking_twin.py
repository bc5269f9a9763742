"""The spiking twin beside the rate circuit and its closed form: what firing costs, and what not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from analysis import selection
from analysis.firing.spikes import poisson_bound, rate_errors
from analysis.likeness import likeness, nearest, tile_distance
from analysis.measures import tile_centers
from circuits import (
    CircuitParameters,
    ReferenceCircuit,
    SphereLift,
    SpikingCircuit,
    SpikingParameters,
)
from circuits.base import Circuit
from circuits.lift import FloatArray
from circuits.spiking.reference import SpikingReference
from simulations.datasets import MOONS_LIFT, ROLL_LIFT, chessboard, swiss_roll, two_moons
from simulations.experiments import evidence
from simulations.experiments import experiment as base
from simulations.experiments import two_moons as moons
from simulations.experiments.roll import PARAMETERS as ROLL
from simulations.experiments.roll import for_every_value

REGULAR: dict[str, dict[str, Any]] = {
    "one cell": {},
    "four cells": {"cells": 4},
    "twice as long": {"presentation": "500 ms", "window": "250 ms"},
    "four times as long": {"presentation": "1 s", "window": "500 ms"},
}
"""Integrate-and-fire cells on frozen weights, by name; one and 250 ms where nothing is said."""

ERROR, CORRELATION, ERROR_FOUR, ERROR_LONG = 0.10, 0.99, 0.07, 0.06
"""What |h of spikes - h|, with |h| = 1, has to stay below, and the correlation above."""

SLOPES = (-0.57, -0.42)
"""Bounds on the power of N with which the direction of escape cells' rates becomes exact."""

SIZE = 0.05
"""How far |u|^2 may be from |[a]_+| - 1/G, as a share of it."""

LEAST_MEAN, LEAST_WORST, SEVERAL = 0.998, 0.99, 0.25
"""Accuracies: of the mean; of nearly all seeds, that is all but a share."""

PLAIN: dict[str, Any] = {
    **{"gain": "auto", "tiles": "first", "recycle": False},
    **{"n_tiles": 80, "tile_radius": 0.4, "learning_rate": 0.03},
}
"""A circuit in which nothing but inhibition normalises rates. Where they are not, W and h make each
other grow until cells fire at every step; at this rate of learning that is soon enough to tell."""

FAILED = 0.7
"""Mean accuracy of such a circuit: with inhibition that learns it is above, without below."""

V_RULES = ("spikes", "freeze", "fade")

APART = 0.03
"""How far, in units of the data, tiles may end from the nearest tile of the rate circuit."""

MEAN_HZ, MOST_HZ, INHIBITORY_HZ = 50.0, 130.0, 160.0
"""Firing rates: of responding excitatory cells in the mean and at most, and what 99 % of inhibitory
cells stay below."""

BOARD_LOSS = 0.02
"""What error on the chessboard firing may add to that of the rate circuit."""


class Settings(base.Settings):
    """The streams, and how many cells there are."""

    n_points: int = Field(default=2000, ge=10)
    noise: float = Field(default=0.05, ge=0)
    label_after: int = Field(default=200, ge=0)
    frozen_points: int = Field(default=250, ge=10)
    """Points of each repeat that are shown with frozen weights."""
    cells: base.Grid[Annotated[int, Field(ge=1, le=64)]] = (1, 2, 4, 8, 16)
    """Numbers of escape cells per unit."""
    board_points: int = Field(default=2000, ge=100)
    board: float = Field(default=0.5, ge=1e-3)
    labelled: float = Field(default=0.05, gt=0, le=1)
    """Share of labelled points of the chessboard."""
    board_cells: int = Field(default=100, ge=1)
    """Readout cells on the chessboard."""
    mu_grid: base.Grid[base.Positive] = (5, 10, 20, 40)


class SpikingTwin(base.Experiment[Settings]):
    """Frozen weights, two moons from scratch, and a chessboard; all beside the rate circuit."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters()
    lift: ClassVar = MOONS_LIFT
    main: ClassVar = "accuracy"
    repeats: ClassVar = 20
    perturbable: ClassVar = False
    selection_repeats: ClassVar = 5
    size: ClassVar = ("n_points", "frozen_points", "board_points")
    quick: ClassVar = {"frozen_points": 20, "board_points": 400, "cells": (1, 4)}

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """The rate circuit is the closed form, from which it differs by rounding; the engine is
        that of the twin (see `twin`)."""
        settings, p = config.settings, config.parameters
        plan = moons.Settings(
            n_points=settings.n_points, noise=settings.noise, label_after=settings.label_after
        )
        stream = moons.make_stream(plan, seed, p)
        report("rate circuit")
        rate = ReferenceCircuit(p, stream.lift, settling="exact")
        rates = rate.run(stream.points, stream.labels)
        report("learning")
        run_on, learned = learn(config.engine, p, stream, rates, seed)
        fresh, _ = two_moons(settings.frozen_points, settings.noise, seed + 2**16)
        frozen: dict[str, list[Frozen]] = {"regular": [], "escape": []}
        for kind, plans in (("regular", regular()), ("escape", escape(settings.cells))):
            for name, spiking in plans.items():
                report(f"frozen, {kind}, {name}")
                frozen[kind].append(respond(config.engine, rate, spiking, fresh, seed))
        report("chessboard")
        found = xr.Dataset(
            {
                **learned,
                **_table(frozen["regular"], "regular"),
                **_table(frozen["escape"], "escape"),
                **board(config.engine, settings, seed),
            },
            coords={
                "regular": list(REGULAR),
                "escape": list(settings.cells),
                "V_rule": list(V_RULES),
                "mu": list(settings.mu_grid),
            },
        )
        return found.assign_attrs(rates.attrs | {"engine": run_on})

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """What firing changes."""
        shown = selection.reported(merged)
        return [
            self._follows(merged, shown),
            self._better(merged, shown, "four cells", ERROR_FOUR),
            self._better(merged, shown, "twice as long", ERROR_LONG),
            self._falls(merged, shown),
            self._inhibits(merged, shown),
            self._classifies(merged, shown),
            self._normalises(merged, shown),
            self._silent(merged, shown),
            self._tiles(merged, shown),
            self._firing(merged, shown),
            self._board(merged, shown),
        ]

    def _claim(
        self,
        merged: xr.Dataset,
        words: tuple[str, str],
        figures: tuple[str, str],
        found: evidence.Evidence,
        control: str = "",
        constructed: bool = False,
    ) -> base.Claim:
        claim, statistic = words
        figure, short = figures
        holds = self.decide(merged, found)
        return base.Claim(claim, "", statistic, figure, short, holds, control, constructed)

    def _follows(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        one = shown.sel(regular="one cell")
        error, correlation = one["error"].to_numpy(), one["correlation"].to_numpy()
        found = evidence.all_of(
            evidence.mean_below(error, ERROR), evidence.mean_above(correlation, CORRELATION)
        )
        start = one["error_at_rest"].to_numpy()
        return self._claim(
            merged,
            (
                "one integrate-and-fire cell per unit follows the closed form",
                "weights that the rate circuit has learned, other points, 250 ms each: mean of "
                f"|h of spikes − h| with |h| = 1 below {ERROR} and correlation of all rates above "
                f"{CORRELATION} (t tests)",
            ),
            (
                f"error {base.spread(error)} ({base.spread(one['direction_error'])} in direction "
                f"alone), correlation {base.spread(correlation)}, |h| {base.spread(one['norm'])}",
                f"error {evidence.with_error(error)}, {base.seeds(error)}",
            ),
            found,
            "the same with V frozen where it starts, so that inhibition cannot settle: error "
            f"{base.spread(start)}",
        )

    def _better(self, merged: xr.Dataset, shown: xr.Dataset, name: str, bound: float) -> base.Claim:
        error = shown["error"].sel(regular=name).to_numpy()
        one = shown["error"].sel(regular="one cell").to_numpy()
        found = evidence.all_of(
            evidence.mean_below(error, bound), evidence.mean_above(one - error, 0)
        )
        more = {"four cells": "four cells per unit", "twice as long": "points shown for 500 ms"}
        return self._claim(
            merged,
            (
                f"rates become more exact with {more[name]}",
                f"mean of |h of spikes − h| below {bound}, and below that of one cell and 250 ms "
                "on the same points (t tests)",
            ),
            (
                f"error {base.spread(error)}",
                f"error {evidence.with_error(error)}, {base.seeds(error)}",
            ),
            found,
            f"one cell and 250 ms: {base.spread(one)}",
        )

    def _falls(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        cells = shown["escape"].to_numpy()
        errors = shown["escape_direction_error"].transpose("repeat", "escape").to_numpy()
        slope = slopes(cells, errors)
        low, high = SLOPES
        found = evidence.all_of(evidence.mean_above(slope, low), evidence.mean_below(slope, high))
        path = ", ".join(
            f"{n}: {error:.3f} ({bound:.3f})"
            for n, error, bound in zip(
                cells, errors.mean(axis=0), shown["escape_bound"].mean("repeat"), strict=True
            )
        )
        regular = shown["direction_error"].sel(regular=["one cell", "four cells"])
        other = slopes(np.array([1, 4]), regular.transpose("repeat", "regular").to_numpy())
        return self._claim(
            merged,
            (
                "with escape cells the error of the direction falls as the root of their number",
                "slope of the logarithm of the mean error of h/|h| on the logarithm of the number "
                f"of cells per unit, in the mean between {low} and {high} (t tests)",
            ),
            (
                f"slope {base.spread(slope)}; error by cells (and the bound √(Σh/(N r T)) of "
                f"Poisson spikes, length included): {path}",
                f"slope {evidence.with_error(slope)}, {base.seeds(slope)}",
            ),
            found,
            "integrate-and-fire cells, whose spikes are not independent, from one to four: slope "
            f"{base.spread(other)}",
        )

    def _inhibits(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        ratio = shown["inhibition"].sel(regular="four cells").to_numpy()
        found = evidence.all_of(
            evidence.mean_above(ratio, 1 - SIZE), evidence.mean_below(ratio, 1 + SIZE)
        )
        without = shown["inhibition_without"].sel(regular="four cells").to_numpy()
        return self._claim(
            merged,
            (
                "inhibition has the size that a finite slope leaves it",
                "four cells per unit: |u|² over |[a]₊| − 1/G, both in units of the cells and in "
                f"the mean over points, within {SIZE:.0%} of 1 (t tests)",
            ),
            (f"ratio {base.spread(ratio)}", f"{evidence.with_error(ratio)}, {base.seeds(ratio)}"),
            found,
            f"against |[a]₊| alone, the rate circuit's: {base.spread(without)}",
        )

    def _classifies(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        own, rate = (shown[name].to_numpy() for name in ("accuracy", "rate_accuracy"))
        frozen = shown["frozen_V_accuracy"].to_numpy()
        found = evidence.all_of(
            evidence.mean_above(own, LEAST_MEAN), evidence.share_below(own < LEAST_WORST, SEVERAL)
        )
        return self._claim(
            merged,
            (
                "two moons are told apart from two labels by spikes alone",
                "V, W, b and w all learned from spikes, one pass; accuracy on the second half of "
                f"the stream: mean above {LEAST_MEAN} (t test), and below {LEAST_WORST} on fewer "
                f"than {SEVERAL:.0%} of seeds (binomial test)",
            ),
            (
                f"{own.mean():.4f}, worst {own.min():.3f}; the rate circuit on the same streams "
                f"{rate.mean():.4f}, worst {rate.min():.3f}",
                f"{own.mean():.4f}, worst {own.min():.3f}, {base.seeds(own)}",
            ),
            found,
            f"with V frozen where it starts {base.spread(frozen)}: gain control normalises the "
            "drive before it reaches the cells, which is enough for this; without it see the next "
            "claim",
        )

    def _normalises(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        plain = shown["plain_accuracy"]
        learned, frozen, fading = (plain.sel(V_rule=rule).to_numpy() for rule in V_RULES)
        found = evidence.all_of(
            evidence.mean_above(learned, FAILED), evidence.mean_below(frozen, FAILED)
        )
        settings = "{n_tiles}, radius {tile_radius}, η = {learning_rate}".format(**PLAIN)
        return self._claim(
            merged,
            (
                "where nothing but inhibition normalises rates, it has to learn",
                f"constant gain, tiles on the first points ({settings}): mean accuracy below "
                f"{FAILED} with V frozen where it starts, above it as V learns from spikes (t "
                "tests; a point without an answer is not right)",
            ),
            (
                f"V learned {base.spread(learned)}, frozen {base.spread(frozen)}",
                f"frozen {evidence.with_error(frozen)}, {base.seeds(frozen)}",
            ),
            found,
            f"V that is not potentiated and fades: {base.spread(fading)}",
        )

    def _silent(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        spikes = shown["spikes_before_labels"].to_numpy()
        found = evidence.mean_below(spikes, 0.5)
        return self._claim(
            merged,
            (
                "the readout is silent before the first label",
                "spikes of the readout before it: none",
            ),
            (f"{int(spikes.sum())} spikes", f"{int(spikes.sum())} spikes, {base.seeds(spikes)}"),
            found,
            constructed=True,
        )

    def _tiles(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        apart, start = shown["tile_distance"].to_numpy(), shown["start_distance"].to_numpy()
        found = evidence.mean_below(apart, APART)
        return self._claim(
            merged,
            (
                "tiles end where those of the rate circuit do",
                "distance of every tile to the nearest tile of the rate circuit, mean over tiles, "
                f"below {APART} in units of the data (t test)",
            ),
            (
                f"{base.spread(apart)} at a tile radius of {self.parameters.tile_radius}",
                f"{evidence.with_error(apart)}, {base.seeds(apart)}",
            ),
            found,
            f"where the tiles started: {base.spread(start)}",
        )

    def _firing(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        mean, most, inhibitory = (
            shown[name].to_numpy() for name in ("mean_hz", "most_hz", "inhibitory_hz")
        )
        found = evidence.all_of(
            evidence.mean_below(mean, MEAN_HZ),
            evidence.mean_below(most, MOST_HZ),
            evidence.mean_below(inhibitory, INHIBITORY_HZ),
        )
        return self._claim(
            merged,
            (
                "cells fire at rates that cells have",
                f"two moons: responding excitatory cells below {MEAN_HZ:g} Hz in the mean and "
                f"{MOST_HZ:g} Hz at most, 99 % of inhibitory cells below {INHIBITORY_HZ:g} Hz, in "
                "the window of a presentation (t tests over seeds)",
            ),
            (
                f"excitatory {mean.mean():.1f} Hz, at most {most.max():.0f} Hz; inhibitory "
                f"{inhibitory.max():.0f} Hz",
                f"{mean.mean():.1f} Hz in the mean, {most.max():.0f} Hz at most",
            ),
            found,
            f"with V frozen where it starts, excitatory {base.spread(shown['frozen_V_hz'])} Hz",
        )

    def _board(self, merged: xr.Dataset, shown: xr.Dataset) -> base.Claim:
        own, rate = (
            selection.chosen_errors(merged, name, "mu")
            for name in ("board_error", "rate_board_error")
        )
        lost = (own - rate).to_numpy()
        found = evidence.mean_below(lost, BOARD_LOSS)
        mu, rate_mu = (
            float(selection.chosen_values(merged, name, "mu"))
            for name in ("board_error", "rate_board_error")
        )
        return self._claim(
            merged,
            (
                "a chessboard is learned as by the rate circuit",
                "Swiss roll, error on the unlabelled points of the second half of the stream: in "
                f"the mean less than {BOARD_LOSS} above that of the rate circuit on the same "
                "streams (t test); μ of each chosen on other seeds",
            ),
            (
                f"error {base.spread(own)} (μ = {mu:g}), rate circuit {base.spread(rate)} (μ = "
                f"{rate_mu:g})",
                f"{evidence.with_error(lost)} above, {base.seeds(lost)}",
            ),
            found,
            "without an answer the error is 0.5",
        )


def twin(
    engine: str, p: CircuitParameters, lift: SphereLift, spiking: SpikingParameters, seed: int
) -> SpikingCircuit | SpikingReference:
    """A spiking circuit on Brian2 or, as the engine "reference", in NumPy. Spikes have no closed
    form: where the rate circuit is "exact", the twin takes the fastest engine there is."""
    if engine == "reference":
        return SpikingReference(p, lift, spiking=spiking, seed=seed)
    chosen = "auto" if engine == "exact" else engine
    return SpikingCircuit(p, lift, chosen, spiking=spiking, seed=seed)


def regular() -> dict[str, SpikingParameters]:
    """Parameters of `REGULAR`."""
    return {name: SpikingParameters(**changes) for name, changes in REGULAR.items()}


def escape(cells: tuple[int, ...]) -> dict[str, SpikingParameters]:
    """Escape cells on frozen weights, by their number."""
    return {f"{n} cells": SpikingParameters(neuron="escape", cells=n) for n in cells}


def learn(
    engine: str, p: CircuitParameters, stream: moons.Stream, rates: xr.Dataset, seed: int
) -> tuple[str, dict[str, Any]]:
    """Two moons from scratch, and controls of V; with the engine that it was."""
    spiking = SpikingParameters()
    run = twin(engine, p, stream.lift, spiking, seed).run(stream.points, stream.labels)
    control = twin(engine, p, stream.lift, spiking.replace(V_rule="freeze"), seed)
    frozen = control.run(stream.points, stream.labels)
    tiles = min(PLAIN["n_tiles"], stream.settings.n_points)
    simple = p.replace(**PLAIN | {"n_tiles": tiles})
    plain = []
    for rule in V_RULES:
        circuit = twin(engine, simple, stream.lift, spiking.replace(V_rule=rule), seed)
        answers = circuit.run(stream.points, stream.labels)["y"].to_numpy()
        plain.append(moons.accuracies(answers, stream)[0])
    before = int(np.flatnonzero(stream.labels)[0]) if stream.labels.any() else len(stream.points)
    excitatory, inhibitory = run["excitatory_hz"].to_numpy(), run["inhibitory_hz"].to_numpy()
    frozen_hz = frozen["excitatory_hz"].to_numpy()
    started = run["recruited"].to_numpy()
    centers = tile_centers(rates)[rates["recruited"].to_numpy() >= 0]
    spikes = np.abs(run["readout_hz"].to_numpy()[:before]).sum() * spiking.window_
    return run.attrs["engine"], {
        "accuracy": moons.accuracies(run["y"].to_numpy(), stream)[0],
        "rate_accuracy": moons.accuracies(rates["y"].to_numpy(), stream)[0],
        "frozen_V_accuracy": moons.accuracies(frozen["y"].to_numpy(), stream)[0],
        "plain_accuracy": ("V_rule", plain),
        "spikes_before_labels": spikes,
        "tile_distance": tile_distance(run, rates),
        "start_distance": nearest(stream.points[started[started >= 0]], centers),
        "mean_hz": excitatory[excitatory > 0].mean(),
        "most_hz": excitatory.max(),
        "frozen_V_hz": frozen_hz[frozen_hz > 0].mean(),
        "inhibitory_hz": np.quantile(inhibitory, 0.99),
    }


@dataclass(frozen=True)
class Frozen:
    """How the rates of spikes compare with the closed form on frozen weights."""

    error: float
    """Mean of |h of spikes - h|, |h| = 1."""
    direction_error: float
    """The same of h of spikes over its norm."""
    correlation: float
    norm: float
    inhibition: float
    """Mean of |u|^2 over mean of |[a]_+| - 1/G, in units of the cells."""
    inhibition_without: float
    """The same without 1/G."""
    bound: float
    """Error that independent Poisson spikes of the right rates would have, sqrt(sum h/(N r T))."""
    error_at_rest: float
    """`error` with V frozen where it starts."""


def respond(
    engine: str, rate: Circuit, spiking: SpikingParameters, points: FloatArray, seed: int
) -> Frozen:
    """Show points to a twin with the weights of a rate circuit."""
    p = rate.parameters.replace(learning_rate=0.0, readout_rate=0.0, tiles="first", recycle=False)
    h = rate.respond(points)
    covered = h.any(axis=1)
    runs = []
    for one in (spiking, spiking.replace(V_rule="freeze")):
        circuit = twin(engine, p, rate.lift, one, seed)
        circuit.state = rate.state
        runs.append(circuit.run(points).isel(presentation=np.flatnonzero(covered)))
    run, control = runs
    return compared(run, h[covered], control["h"].to_numpy(), spiking)


def compared(
    run: xr.Dataset, h: FloatArray, at_rest: FloatArray, spiking: SpikingParameters
) -> Frozen:
    """Rates of spikes beside those of the closed form, for the points that tiles respond to."""
    own = likeness(run["h"], h)
    u = run["inhibitory_hz"].to_numpy() / spiking.rate_u_
    power = (u**2).sum(axis=1).mean() / spiking.cells
    strength = spiking.strength  # what gain control makes of every drive
    bound = poisson_bound(h.sum(axis=1), spiking.cells, spiking.rate_h_, spiking.window_)
    return Frozen(
        error=own.difference,
        direction_error=own.direction,
        correlation=own.correlation,
        norm=own.norm,
        inhibition=float(power / (strength - 1 / spiking.slope)),
        inhibition_without=float(power / strength),
        bound=float(bound.mean()),
        error_at_rest=float(rate_errors(at_rest, h)[0].mean()),
    )


def slopes(cells: FloatArray, errors: FloatArray) -> FloatArray:
    """Slope of log error on log cells in every repeat, by least squares; errors (repeat, cells)."""
    if len(cells) < 2:
        return np.full(len(errors), np.nan)
    x = np.log(cells) - np.log(cells).mean()
    found: FloatArray = (np.log(errors) @ x) / (x @ x)
    return found


def board(engine: str, settings: Settings, seed: int) -> dict[str, Any]:
    """Errors on a chessboard, of the twin and of the rate circuit, for every gain."""
    rng = np.random.default_rng(seed)
    points, unrolled = swiss_roll(settings.board_points, rng)
    classes = chessboard(unrolled, settings.board)
    labels = np.where(rng.random(len(points)) < settings.labelled, classes, 0)
    many, mu, _ = for_every_value(labels, settings.mu_grid)
    p = ROLL.replace(n_readouts=len(mu), mu=mu)
    half = np.arange(len(points)) >= len(points) // 2
    silent = half & (labels == 0)
    spiking = SpikingParameters(readout_cells=settings.board_cells)
    runs = {
        "board_error": twin(engine, p, ROLL_LIFT, spiking, seed).run(points, many),
        "rate_board_error": ReferenceCircuit(p, ROLL_LIFT, settling="exact").run(points, many),
    }
    return {
        name: ("mu", base.error_rate(run["y"].to_numpy()[silent], classes[silent][:, None]))
        for name, run in runs.items()
    }


def _table(rows: list[Frozen], dimension: str) -> dict[str, Any]:
    """What was found with frozen weights, by variable."""
    prefix = "" if dimension == "regular" else f"{dimension}_"
    names = list(Frozen.__dataclass_fields__)
    return {f"{prefix}{name}": (dimension, [getattr(row, name) for row in rows]) for name in names}
