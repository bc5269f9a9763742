"""Tiling two spiral arcs: the paper's Fig. 1, right."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from circuits.parameters import CircuitParameters
from simulations.datasets import ARCS_LIFT, position_on_arcs, spiral_arcs
from simulations.experiments import experiment as base


class Settings(base.Settings):
    """The data."""

    n_points: int = Field(default=2000, ge=100)
    noise: float = Field(default=0.02, ge=0)


class TilingArcs(base.Experiment[Settings]):
    """Receptive fields on two arcs."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters(n_tiles=40, n_interneurons=4, tile_radius=0.35)
    lift: ClassVar = ARCS_LIFT
    quick_repeats: ClassVar = 3

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """One pass of learning; ``h_final`` are the receptive fields it ends with."""
        rng = np.random.default_rng(seed)
        points, classes = spiral_arcs(config.settings.n_points, config.settings.noise, rng)
        circuit = base.make_circuit(config.engine, config.parameters, self.lift)
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

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Coverage with overlap, and purity."""
        coverage, overlap = merged["coverage"].to_numpy(), merged["overlap"].to_numpy()
        purity = np.nanmin(merged["purity"].to_numpy(), axis=1)
        # Idle tiles, which have no purity, are not shared, nor do they count.
        shared = (merged["purity"] < 0.999).where(merged["purity"].notnull()).to_numpy()
        # Both hold in each of 40 seeds, by far more than these differ: a few decide.
        enough = self.quick_repeats
        return [
            base.Claim(
                "tiles cover the arcs and overlap",
                "Receptive fields tile the arcs with overlaps",
                f"{base.spread(coverage)} of points covered, {base.spread(overlap)} tiles respond "
                "to a point",
                f"{base.spread(coverage)} of points covered, {base.seeds(coverage)}",
                self.decide(merged, coverage.min() >= 0.99 and overlap.min() >= 2, repeats=enough),
            ),
            base.Claim(
                "no tile is shared by the arcs",
                "there is no overlap between separate arcs",
                f"smallest share of a tile's mass on one arc {base.spread(purity)}; tiles with "
                f"less than 0.999 there: {np.nanmean(shared):.2%}",
                f"{base.spread(purity)} of a tile's mass on one arc, {base.seeds(purity)}",
                self.decide(merged, purity.min() >= 0.999, repeats=enough),
            ),
        ]
