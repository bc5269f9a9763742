"""Two labels in opposite corners of a square: the paper's Fig. 4."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from circuits.parameters import CircuitParameters
from simulations.baselines import LaplacianSVM
from simulations.datasets import SQUARE_LIFT, unit_square
from simulations.experiments import experiment as base


class Settings(base.Settings):
    """The data and the offline method."""

    n_points: int = Field(default=2000, ge=100)
    label_after: int = Field(default=200, ge=0)
    inset: float = Field(default=0.1, ge=0, lt=0.5)
    svm_lambda: base.Lambda = 1e-3
    svm_mu: base.Mu = 1.0
    """With two labels met at the margin only mu/lambda matters."""


class SquareBalance(base.Experiment[Settings]):
    """How evenly do two labels share a square?"""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters(
        n_tiles=80, n_interneurons=4, tile_radius=0.25, mu=10.0
    )
    lift: ClassVar = SQUARE_LIFT
    repeats: ClassVar = 100
    quick: ClassVar = {"n_points": 600}
    quick_repeats: ClassVar = 10

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """One pass; then all points are classified with the weights it ends with."""
        settings = config.settings
        rng = np.random.default_rng(seed)
        points, labels = unit_square(settings.n_points, settings.label_after, rng, settings.inset)
        circuit = base.make_circuit(config.engine, config.parameters, self.lift)
        run = circuit.run(points, labels)
        h = circuit.respond(points)
        silent = labels == 0
        learner = LaplacianSVM(settings.svm_lambda, settings.svm_mu).fit(h, labels)
        scores = np.stack([(h @ circuit.state.w[0]), learner.decision(h)])[:, silent]
        positive, negative = (scores > 0).mean(axis=1), (scores < 0).mean(axis=1)
        return xr.Dataset(
            {
                "score": (("approach", "point"), scores),
                "points": (("point", "coordinate"), points[silent]),
                "majority": ("approach", np.maximum(positive, negative)),
                "undecided": ("approach", (scores == 0).mean(axis=1)),
                "label_covered": bool(run["covered"].to_numpy()[~silent].all()),
            },
            coords={"approach": ["circuit", "laplacian"]},
            attrs=run.attrs | {"inset": settings.inset},
        )

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Extreme imbalance is rare, the circuit fluctuates more, frequencies fall off."""
        majority = {
            name: merged["majority"].sel(approach=name).to_numpy()
            for name in ("circuit", "laplacian")
        }
        extreme = {name: float((values > 0.9).mean()) for name, values in majority.items()}
        sd = {name: float(values.std()) for name, values in majority.items()}
        halves = {
            name: (float((values < 0.75).mean()), float((values >= 0.75).mean()))
            for name, values in majority.items()
        }
        covered = float(merged["label_covered"].mean())
        return [
            base.Claim(
                "extreme imbalance is rare in both methods",
                "the extreme imbalances are rare in both approaches",
                f"runs with more than 0.9 in one class: circuit {extreme['circuit']:.2f}, "
                f"Laplacian {extreme['laplacian']:.2f} of {len(majority['circuit'])} "
                f"(both labels covered by a tile in {covered:.2f})",
                f"over 0.9 in {extreme['circuit']:.2f} and {extreme['laplacian']:.2f} of "
                f"{base.seeds(majority['circuit'])}",
                self.decide(merged, max(extreme.values()) <= 0.1),
            ),
            base.Claim(
                "the circuit fluctuates more",
                "the results for our network fluctuate more, compared to those of the Laplacian "
                "regularization approach",
                f"majority fraction: circuit {base.spread(majority['circuit'])}, Laplacian "
                f"{base.spread(majority['laplacian'])}",
                f"standard deviation {sd['circuit']:.3f} against {sd['laplacian']:.3f}, "
                f"{base.seeds(majority['circuit'])}",
                self.decide(merged, sd["circuit"] > sd["laplacian"]),
            ),
            base.Claim(
                "frequencies fall off from 0.5",
                "the frequencies fall off in both methods as the fraction moves up from 0.5",
                "share of runs below and above 0.75: "
                + ", ".join(f"{name} {low:.2f}/{high:.2f}" for name, (low, high) in halves.items()),
                f"below 0.75 in {halves['circuit'][0]:.2f} and {halves['laplacian'][0]:.2f} of "
                f"{base.seeds(majority['circuit'])}",
                self.decide(merged, all(low > high for low, high in halves.values())),
            ),
        ]
