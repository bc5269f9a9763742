"""How labels diffuse over tiles while the label channel is silent: the paper's Eq. (exdiff)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from analysis.measures import accuracy
from circuits.parameters import CircuitParameters
from simulations import experiment as base
from simulations.datasets import MOONS_LIFT, two_moons
from simulations.experiment import Claim, Config, Experiment, Report, make_circuit, spread
from simulations.two_moons import Settings as MoonsSettings
from simulations.two_moons import make_stream


class Settings(base.Settings):
    """The phases of the experiment."""

    n_tiling: int = Field(default=2000, ge=100)
    """Points from which the tiles learn; then they stay."""
    n_silent: int = Field(default=400, ge=20)
    window: int = Field(default=20, ge=1)
    """Presentations over which changes of w are averaged."""
    noise: float = Field(default=0.05, ge=0)
    mu_classify: float = Field(default=1000.0, ge=0)
    """Gain for the comparison of clip and tanh, on the two-moons stream of Fig. 2."""


class LabelDiffusion(Experiment):
    """Mean change of w against eta (mu S w - w), S = E(h h^T)."""

    name: ClassVar = "label-diffusion"
    title: ClassVar = "Labels diffuse over overlapping tiles"
    figure: ClassVar = "Eq. for E(Δw)"
    settings_class: ClassVar = Settings
    parameters: ClassVar = CircuitParameters(mu=200.0)
    lift: ClassVar = MOONS_LIFT
    quick: ClassVar = {"n_tiling": 1000, "n_silent": 100}
    quick_repeats: ClassVar = 3

    def simulate(self, config: Config, seed: int, report: Report) -> xr.Dataset:
        """Tile, show two labels, fall silent. With mu = 200 and labels that count 1/2000 each the
        readout stays within its limits, as the equation assumes. S comes from the tiling phase,
        not from the points whose effect it has to predict."""
        settings = config.settings
        assert isinstance(settings, Settings)
        p = config.parameters
        rng = np.random.default_rng(seed)
        n = settings.n_tiling + 2 + settings.n_silent
        points, classes = two_moons(n, settings.noise, rng)
        tiling = make_circuit(config.engine, p, self.lift)
        tiling.run(points[: settings.n_tiling])
        frozen = make_circuit(config.engine, p.replace(learning_rate=0.0), self.lift)
        frozen.state = tiling.state
        h = frozen.respond(points[: settings.n_tiling])
        S = h.T @ h / len(h)
        pair = [int(np.flatnonzero(classes == label)[0]) for label in (-1, 1)]
        frozen.run(points[pair], classes[pair])
        silent = points[settings.n_tiling + 2 :]
        w = [frozen.state.w[0]]
        run = frozen.run(silent, snapshot_every=1)
        w.extend(run["w_snapshots"].to_numpy()[:, 0])
        path = np.array(w)
        t = settings.n_tiling + 2 + np.arange(settings.n_silent)
        change = np.diff(path, axis=0)
        predicted = (p.mu_per_readout[0] * path[:-1] @ S - path[:-1]) / (t + 1)[:, None]
        windows = settings.n_silent // settings.window
        shape = (windows, settings.window, p.n_tiles)
        used = windows * settings.window
        report("clip and tanh")
        return xr.Dataset(
            {
                "measured": (
                    ("window", "tile"),
                    change[:used].reshape(shape).mean(axis=1),
                ),
                "predicted": (
                    ("window", "tile"),
                    predicted[:used].reshape(shape).mean(axis=1),
                ),
                "largest_y": float(np.abs(run["y"].to_numpy()).max()),
                **self._readouts(config, settings, seed),
            },
            attrs=run.attrs,
        )

    def _readouts(self, config: Config, settings: Settings, seed: int) -> dict[str, object]:
        """The two-moons stream with either nonlinearity."""
        stream = make_stream(MoonsSettings(n_points=max(settings.n_tiling, 600)), seed)
        runs = {}
        for kind in ("clip", "tanh"):
            p = config.parameters.replace(mu=settings.mu_classify, readout=kind)
            runs[kind] = (
                make_circuit(config.engine, p, self.lift)
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

    def claims(self, merged: xr.Dataset) -> list[Claim]:
        """Regression of the measured mean change on the predicted one, and clip against tanh."""
        measured = merged["measured"].mean("repeat").to_numpy().ravel()
        predicted = merged["predicted"].mean("repeat").to_numpy().ravel()
        slope = float(predicted @ measured / (predicted @ predicted))
        r = float(np.corrcoef(predicted, measured)[0, 1])
        single = [
            float(
                np.corrcoef(
                    run["predicted"].to_numpy().ravel(), run["measured"].to_numpy().ravel()
                )[0, 1]
            )
            for _, run in merged.groupby("repeat")
        ]
        clipped = float(merged["largest_y"].max())
        difference = np.abs(np.diff(merged["readout_y"].to_numpy(), axis=1)).mean(axis=(1, 2))
        accuracies = {
            kind: spread(merged["readout_accuracy"].sel(readout_kind=kind))
            for kind in ("clip", "tanh")
        }
        same = merged["same_sign"].to_numpy()
        return [
            Claim(
                "in expectation w diffuses over the graph of tile overlaps",
                "E(Δw_i) = η (μ Σ_j s_ij w_j − w_i)",
                f"measured on predicted mean change: slope {slope:.3f}, correlation {r:.3f} over "
                f"{merged.sizes['repeat']} repeats ({spread(single)} in a single one); largest |y| "
                f"{clipped:.2f}, so that nothing was clipped",
                abs(slope - 1) <= 0.1 and r >= 0.95 and clipped < 1,
            ),
            Claim(
                "clip and tanh are almost indistinguishable",
                "The behavior of both algorithms is almost indistinguishable",
                f"accuracy clip {accuracies['clip']}, tanh {accuracies['tanh']}; same sign on "
                f"{spread(same)} of points; mean |difference| of y {spread(difference)}",
                bool(same.mean() >= 0.98),
            ),
        ]
