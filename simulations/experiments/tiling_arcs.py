"""Tiling two spiral arcs: the paper's Fig. 1, right."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from analysis.measures import purity
from circuits import ReferenceCircuit
from circuits.lift import FloatArray
from circuits.parameters import CircuitParameters
from simulations.datasets import ARCS_LIFT, Classes, position_on_arcs, spiral_arcs
from simulations.experiments import evidence
from simulations.experiments import experiment as base


class Settings(base.Settings):
    """The data."""

    n_points: int = Field(default=2000, ge=100)
    noise: float = Field(default=0.02, ge=0)
    n_streams: int = Field(default=10, ge=1)
    """Streams per repeat for the exact solver."""


COVERED, OVERLAP, PURE, RARE = 0.99, 2.0, 0.999, 0.05
"""Share of points that a tile responds to, tiles that respond to a point, share of a tile's output
on one arc, and the share of seeds that may miss it."""

WIDER = 3.0
"""The control's tiles are so much wider than the circuit's: wider than the arcs are apart."""


class TilingArcs(base.Experiment[Settings]):
    """Receptive fields on two arcs: the circuit on one stream per repeat, the exact solver on
    many."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters(n_tiles=40, n_interneurons=4, tile_radius=0.35)
    lift: ClassVar = ARCS_LIFT
    main: ClassVar = "coverage"
    size: ClassVar = ("n_points", "n_streams")
    quick: ClassVar = {"n_streams": 2}
    quick_repeats: ClassVar = 3

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """One pass of learning; ``h_final`` are the receptive fields it ends with."""
        rng = np.random.default_rng(seed)
        points, classes = spiral_arcs(config.settings.n_points, config.settings.noise, rng)
        circuit = config.circuit(config.parameters, self.lift)
        run = circuit.run(points, snapshot_every=100)
        report("receptive fields")
        h = circuit.respond(points)
        report("exact solver")
        streams = [(points, classes)]
        for _ in range(config.settings.n_streams - 1):
            streams.append(spiral_arcs(config.settings.n_points, config.settings.noise, rng))
        wide = config.parameters.replace(tile_radius=WIDER * config.parameters.tile_radius)
        found = {
            name: np.array([self._fields(parameters, *one) for one in streams])
            for name, parameters in (("exact", config.parameters), ("wide", wide))
        }
        measures = ("coverage", "overlap", "pure")
        return run.assign(
            classes=("presentation", classes),
            position=("presentation", position_on_arcs(points)),
            h_final=(("presentation", "tile"), h),
            purity=("tile", purity(h, classes)),
        ).assign(
            {
                f"{name}_{measure}": ("stream", values[:, i])
                for name, values in found.items()
                for i, measure in enumerate(measures)
            }
            | dict(zip(measures, described(h, classes), strict=True))
        )

    def _fields(
        self, parameters: CircuitParameters, points: FloatArray, classes: Classes
    ) -> tuple[float, float, float]:
        solver = ReferenceCircuit(parameters, self.lift, settling="exact")
        solver.run(points)
        return described(solver.respond(points), classes)

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Coverage with overlap, and purity."""
        # Each stream is a seed of its own.
        coverage, overlap, pure, wide = (
            merged[name].to_numpy().ravel()
            for name in ("exact_coverage", "exact_overlap", "exact_pure", "wide_pure")
        )
        apart = max(
            float(np.abs(merged[name] - merged[f"exact_{name}"].isel(stream=0)).max())
            for name in ("coverage", "overlap", "pure")
        )
        engines = " and ".join(np.unique(merged["run_engine"].to_numpy()))
        circuit = f"the circuit itself ({engines}, {base.seeds(merged['repeat'])}) at most "
        covers = evidence.all_of(
            evidence.mean_above(coverage, COVERED), evidence.mean_above(overlap, OVERLAP)
        )
        separate = evidence.share_above(pure == 1, 1 - RARE)
        return [
            base.Claim(
                "tiles cover the arcs and overlap",
                "Receptive fields tile the arcs with overlaps",
                f"after one pass, exact solver: share of points that a tile responds to above "
                f"{COVERED}, and tiles that respond to a point above {OVERLAP:g}, in the mean over "
                "seeds (t tests)",
                f"{base.spread(coverage)} of points covered, {base.spread(overlap)} tiles respond "
                f"to a point, {base.seeds(coverage)}; {circuit}{apart:.1g} from it",
                f"{evidence.with_error(overlap)} tiles a point, {base.seeds(overlap)}",
                self.decide(merged, covers),
                f"that a point has a tile is recruiting's doing: a point that no tile answers "
                f"above {self.parameters.recruit_below} starts one",
            ),
            base.Claim(
                "no tile is shared by the arcs",
                "there is no overlap between separate arcs",
                f"share of runs in which every tile has at least {PURE} of its output on one arc: "
                f"more than {1 - RARE} of seeds (binomial test), exact solver",
                f"every tile pure in {np.mean(pure == 1):.3f} of {base.seeds(pure)}, "
                f"{np.mean(pure):.2%} of tiles; {circuit}{apart:.1g} from it",
                f"every tile pure in {np.mean(pure == 1):.3f} of {base.seeds(pure)}, {separate}",
                self.decide(merged, separate),
                f"tiles {WIDER:g} times as wide: every tile pure in {np.mean(wide == 1):.3f} of "
                f"seeds, {np.mean(wide):.2%} of tiles",
            ),
        ]


def described(h: FloatArray, classes: Classes) -> tuple[float, float, float]:
    """Of final responses: share of points covered, tiles per point, share of tiles on one arc."""
    share = purity(h, classes)
    return (
        float(h.any(axis=1).mean()),
        float((h > 0).sum(axis=1).mean()),
        float((share[~np.isnan(share)] >= PURE).mean()),
    )
