"""Tiling two spiral arcs: the paper's Fig. 1, right."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from circuits.parameters import CircuitParameters
from simulations.datasets import ARCS_LIFT, position_on_arcs, spiral_arcs
from simulations.experiments import experiment as base
from simulations.experiments.experiment import (
    Claim,
    Config,
    Experiment,
    Report,
    make_circuit,
    spread,
)


class Settings(base.Settings):
    """The data."""

    n_points: int = Field(default=2000, ge=100)
    noise: float = Field(default=0.02, ge=0)


class TilingArcs(Experiment):
    """Receptive fields on two arcs."""

    name: ClassVar = "tiling-arcs"
    title: ClassVar = "Tiles cover two spiral arcs and never both"
    figure: ClassVar = "Fig. 1 right"
    settings_class: ClassVar = Settings
    parameters: ClassVar = CircuitParameters(n_tiles=40, n_interneurons=4, tile_radius=0.35)
    lift: ClassVar = ARCS_LIFT
    quick_repeats: ClassVar = 3

    def simulate(self, config: Config, seed: int, report: Report) -> xr.Dataset:
        """One pass of learning; ``h_final`` are the receptive fields it ends with."""
        assert isinstance(config.settings, Settings)
        rng = np.random.default_rng(seed)
        points, classes = spiral_arcs(config.settings.n_points, config.settings.noise, rng)
        circuit = make_circuit(config.engine, config.parameters, self.lift)
        run = circuit.run(points, snapshot_every=100)
        report("receptive fields")
        h = circuit.respond(points)
        mass = np.stack([h[classes == label].sum(axis=0) for label in (-1, 1)])
        total = mass.sum(axis=0)
        purity = np.where(total > 0, mass.max(axis=0) / np.where(total > 0, total, 1), np.nan)
        return run.assign(
            classes=("presentation", classes),
            position=("presentation", position_on_arcs(points)),
            h_final=(("presentation", "tile"), h),
            purity=("tile", purity),
            coverage=h.any(axis=1).mean(),
            overlap=(h > 0).sum(axis=1).mean(),
        )

    def claims(self, merged: xr.Dataset) -> list[Claim]:
        """Coverage with overlap, and purity."""
        coverage, overlap = merged["coverage"].to_numpy(), merged["overlap"].to_numpy()
        purity = np.nanmin(merged["purity"].to_numpy(), axis=1)
        shared = np.nanmean(merged["purity"].to_numpy() < 0.999, axis=1)
        return [
            Claim(
                "tiles cover the arcs and overlap",
                "Receptive fields tile the arcs with overlaps",
                f"{spread(coverage)} of points covered, {spread(overlap)} tiles respond to a point",
                bool(coverage.min() >= 0.99 and overlap.min() >= 2),
            ),
            Claim(
                "no tile is shared by the arcs",
                "there is no overlap between separate arcs",
                f"smallest share of a tile's mass on one arc {spread(purity)}; tiles with less "
                f"than 0.999 there: {shared.mean():.2%}",
                bool(purity.min() >= 0.999),
            ),
        ]
