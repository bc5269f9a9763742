"""Chessboards on a Swiss roll: what both experiments of the paper's Fig. 3 share."""

from __future__ import annotations

import numpy as np

from circuits.lift import FloatArray
from circuits.parameters import CircuitParameters
from simulations.datasets import Classes, chessboard, swiss_roll

BOARDS = (0.5, 1 / 3, 0.25)
"""Sides of the squares, in units of the roll's height; 0.5 is the paper's."""

PARAMETERS = CircuitParameters(n_tiles=200, n_interneurons=8, tile_radius=0.15)


def board_names(boards: tuple[float, ...]) -> list[str]:
    """Boards by the side of their squares, short."""
    return [f"{size:.3g}" for size in boards]


def roll_with_boards(
    n_points: int, boards: tuple[float, ...], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, Classes]:
    """Points (T, 3), unrolled coordinates (T, 2) and the classes of every board (board, T)."""
    points, unrolled = swiss_roll(n_points, rng)
    return points, unrolled, np.stack([chessboard(unrolled, size) for size in boards])
