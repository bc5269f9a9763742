"""The experiments by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from circuits.errors import InputError, shown

if TYPE_CHECKING:
    from simulations.experiments.experiment import Experiment


class Entry(NamedTuple):
    """Where an experiment lives and what it is about; listing them must not import them."""

    place: str
    """Its module and class."""
    figure: str
    """The paper's figure (or equation) it reproduces."""
    title: str


EXPERIMENTS = {
    "tiling-arcs": Entry(
        "tiling_arcs.TilingArcs", "Fig. 1 right", "Tiles cover two spiral arcs and never both"
    ),
    "two-moons": Entry("two_moons.TwoMoons", "Fig. 2", "Two moons are told apart from two labels"),
    "chessboard-supervision": Entry(
        "chessboard_supervision.ChessboardSupervision",
        "Fig. 3 centre",
        "Unlabelled points help: semi- against fully supervised, online",
    ),
    "chessboard-offline": Entry(
        "chessboard_offline.ChessboardOffline",
        "Fig. 3 right",
        "Online against offline, as the stream grows",
    ),
    "square-balance": Entry("square_balance.SquareBalance", "Fig. 4", "Two labels share a square"),
    "label-diffusion": Entry(
        "label_diffusion.LabelDiffusion", "Eq. for E(Δw)", "Labels diffuse over overlapping tiles"
    ),
    "tiling-objective": Entry(
        "tiling_objective.TilingObjective",
        "Eq. (1)",
        "Outputs keep what inputs share, near the optimum of the objective",
    ),
    "linear-tiles": Entry(
        "linear_tiles.LinearTiles", "Section 4", "After the tiling, classes are linear"
    ),
    "label-change": Entry(
        "label_change.LabelChange", "Sections 1, 4", "Labels change in the middle of the stream"
    ),
    "spiking-twin": Entry(
        "spiking_twin.SpikingTwin", "beyond the paper", "The same circuit, with cells that fire"
    ),
    "manifold-drift": Entry(
        "manifold_drift.ManifoldDrift", "beyond the paper", "Tiles and labels follow moving moons"
    ),
    "label-swap": Entry(
        "label_swap.LabelSwap", "beyond the paper", "Classes exchange: carried or overwritten"
    ),
    "digits": Entry(
        "digits.Digits", "beyond the paper", "Handwritten digits from a few labels, in one pass"
    ),
    "representational-drift": Entry(
        "representational_drift.RepresentationalDrift",
        "beyond the paper",
        "Fields drift in noise: what the population keeps, and the readout",
    ),
    "lesions": Entry(
        "lesions.Lesions", "beyond the paper", "What is lost, late or noisy, and what it costs"
    ),
}


def get_experiment(name: str) -> Experiment[Any]:
    """The experiment of a name."""
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {shown(name)}: use {', '.join(EXPERIMENTS)}")
    module, cls = EXPERIMENTS[name].place.split(".")
    made: Experiment[Any] = getattr(import_module(f"simulations.experiments.{module}"), cls)(name)
    return made
