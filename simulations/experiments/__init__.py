"""The experiments by name."""

from __future__ import annotations

from importlib import import_module

from circuits.errors import InputError
from simulations.experiments.experiment import Experiment

# Where each lives; listing them must not import them.
EXPERIMENTS = {
    "tiling-arcs": ("tiling_arcs", "TilingArcs", "Fig. 1 right: tiles on two spiral arcs"),
    "two-moons": ("two_moons", "TwoMoons", "Fig. 2: two moons from two labels"),
    "chessboard-supervision": (
        "chessboard_supervision",
        "ChessboardSupervision",
        "Fig. 3 centre: semi- against fully supervised, online",
    ),
    "chessboard-offline": (
        "chessboard_offline",
        "ChessboardOffline",
        "Fig. 3 right: online against offline",
    ),
    "square-balance": ("square_balance", "SquareBalance", "Fig. 4: two labels share a square"),
    "label-diffusion": (
        "label_diffusion",
        "LabelDiffusion",
        "Eq. for E(dw): how labels diffuse over tiles",
    ),
}


def get_experiment(name: str) -> Experiment:
    """The experiment of a name."""
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}: use {', '.join(EXPERIMENTS)}")
    module, cls, _ = EXPERIMENTS[name]
    made: Experiment = getattr(import_module(f"simulations.experiments.{module}"), cls)()
    return made
