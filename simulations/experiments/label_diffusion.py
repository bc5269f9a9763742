"""How labels diffuse over tiles while the label channel is silent: the paper's Eq. (exdiff)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import xarray as xr
from pydantic import Field, field_validator

from circuits.measures import accuracy, diffusion_slopes
from circuits.parameters import CircuitParameters
from simulations.datasets import MOONS_LIFT, two_moons
from simulations.experiments import experiment as base
from simulations.experiments.two_moons import Settings as MoonsSettings
from simulations.experiments.two_moons import make_stream


class Settings(base.Settings):
    """The phases of the experiment."""

    n_tiling: int = Field(default=2000, ge=100)
    """Points from which the tiles learn; then they stay."""
    moments: base.Grid[Annotated[int, Field(ge=0, le=base.MOST_POINTS)]] = (0, 50, 100, 200)
    """Silent presentations after the labels at which the mean change of w is measured."""
    n_probe: int = Field(default=2000, ge=100)
    """Points over which it is averaged."""
    noise: float = Field(default=0.05, ge=0)
    mu_classify: float = Field(default=1000.0, ge=0)
    """Gain for the comparison of clip and tanh, on the two-moons stream of Fig. 2."""

    @field_validator("moments")
    @classmethod
    def _check_order(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if list(value) != sorted(value):
            raise ValueError("must grow: the stream does not go back")
        return value


PROBE_RATE = 1e-9
"""So slow that w is the same for all points of a probe (to 1e-6 of its change)."""


class LabelDiffusion(base.Experiment[Settings]):
    """Mean change of w against eta (mu S w - w), S = E(h h^T)."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters(mu=200.0)
    lift: ClassVar = MOONS_LIFT
    size: ClassVar = ("n_tiling", "n_probe")
    quick: ClassVar = {"n_tiling": 1000, "moments": (0, 50), "n_probe": 500}
    quick_repeats: ClassVar = 3

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """Tile, show two labels, fall silent, and at some moments ask what the next point would do
        to w on average. With mu = 200 and labels that count 1/2000 each the readout stays within
        its limits, as the equation assumes. S comes from the tiling phase, not from the points
        whose effect it has to predict."""
        settings = config.settings
        p = config.parameters
        rng = np.random.default_rng(seed)
        points, classes = two_moons(settings.n_tiling, settings.noise, rng)
        tiling = base.make_circuit(config.engine, p, self.lift)
        runs = [tiling.run(points)]
        # They stay: nor may a point recruit another one.
        fixed = p.replace(learning_rate=0.0, tiles="first", recycle=False)
        circuit = base.make_circuit(config.engine, fixed, self.lift)
        circuit.state = tiling.state
        h = circuit.respond(points)
        S = h.T @ h / len(h)
        pair = [int(np.flatnonzero(classes == label)[0]) for label in (-1, 1)]
        runs.append(circuit.run(points[pair], classes[pair]))
        measured, predicted, weights, largest, shown = [], [], [], 0.0, 0
        for moment in settings.moments:
            if moment > shown:
                silent, _ = two_moons(moment - shown, settings.noise, rng)
                runs.append(circuit.run(silent))
                largest = max(largest, float(np.abs(runs[-1]["y"].to_numpy()).max()))
                shown = moment
            probe = base.make_circuit(
                config.engine, fixed.replace(readout_rate=PROBE_RATE), self.lift
            )
            probe.state = circuit.state
            w = probe.state.w[0]
            fresh, _ = two_moons(settings.n_probe, settings.noise, rng)
            run = probe.run(fresh)
            runs.append(run)
            largest = max(largest, float(np.abs(run["y"].to_numpy()).max()))
            # w' - w = PROBE_RATE sum_t (y_t h_t - w): the mean change in units of the rate.
            measured.append((run["w"].to_numpy()[0] - w) / (PROBE_RATE * settings.n_probe))
            predicted.append(p.mu_per_readout[0] * S @ w - w)
            weights.append(w)
            report(f"{moment} silent points")
        return xr.Dataset(
            {
                "measured": (("moment", "tile"), np.array(measured)),
                "predicted": (("moment", "tile"), np.array(predicted)),
                "w": (("moment", "tile"), np.array(weights)),
                "recruited": ("tile", tiling.state.recruited),
                "largest_y": largest,
                **self._readouts(config, settings, seed),
            },
            coords={"moment": list(settings.moments)},
            attrs=base.joined(runs),
        )

    def _readouts(
        self, config: base.Config[Settings], settings: Settings, seed: int
    ) -> dict[str, object]:
        """The two-moons stream with either nonlinearity."""
        stream = make_stream(MoonsSettings(n_points=max(settings.n_tiling, 600)), seed)
        runs = {}
        for kind in ("clip", "tanh"):
            p = config.parameters.replace(mu=settings.mu_classify, readout=kind)
            runs[kind] = (
                base.make_circuit(config.engine, p, self.lift)
                .run(stream.points, stream.labels)["y"]
                .to_numpy()[:, 0]
            )
        half = len(stream.points) // 2
        return {
            "readout_y": (("readout_kind", "presentation"), np.stack(list(runs.values()))),
            "readout_accuracy": (
                "readout_kind",
                [accuracy(y[half:], stream.classes[half:]) for y in runs.values()],
            ),
            "readout_kind": list(runs),
            "same_sign": float((np.sign(runs["clip"]) == np.sign(runs["tanh"])).mean()),
        }

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Regression of the measured mean change on the predicted one, and clip against tanh."""
        slopes = diffusion_slopes(merged)
        correlations = [_correlation(run) for _, run in merged.groupby("repeat")]
        clipped = float(merged["largest_y"].max())
        difference = np.abs(np.diff(merged["readout_y"].to_numpy(), axis=1)).mean(axis=(1, 2))
        accuracies = {
            kind: base.spread(merged["readout_accuracy"].sel(readout_kind=kind))
            for kind in ("clip", "tanh")
        }
        same = merged["same_sign"].to_numpy()
        # At the quick size slopes are 0.98 ± 0.02 and all signs equal: far within the bounds.
        enough = {name: self.quick[name] for name in self.size} | {"repeats": self.quick_repeats}
        return [
            base.Claim(
                "in expectation w diffuses over the graph of tile overlaps",
                "E(Δw_i) = η (μ Σ_j s_ij w_j − w_i)",
                f"measured on predicted mean change: slope {base.spread(slopes)}, correlation "
                f"{base.spread(correlations)}; largest |y| {clipped:.2f} (below 1: nothing is "
                "clipped)",
                f"slope {base.spread(slopes)}, {base.seeds(slopes)}",
                self.decide(
                    merged,
                    abs(np.mean(slopes) - 1) <= 0.1 and min(correlations) >= 0.95 and clipped < 1,
                    **enough,
                ),
            ),
            base.Claim(
                "clip and tanh are almost indistinguishable",
                "The behavior of both algorithms is almost indistinguishable",
                f"accuracy clip {accuracies['clip']}, tanh {accuracies['tanh']}; same sign on "
                f"{base.spread(same)} of points; mean |difference| of y {base.spread(difference)}",
                f"same sign on {base.spread(same)} of points, {base.seeds(same)}",
                self.decide(merged, same.mean() >= 0.98, **enough),
            ),
        ]


def _correlation(run: xr.Dataset) -> float:
    """Of the predicted and the measured change, over the tiles in use: idle ones have neither."""
    used = run.squeeze("repeat", drop=True).isel(tile=run["recruited"].to_numpy().ravel() >= 0)
    predicted, measured = (used[name].to_numpy().ravel() for name in ("predicted", "measured"))
    return float(np.corrcoef(predicted, measured)[0, 1])
