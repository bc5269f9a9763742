"""Chessboards on a Swiss roll: what both experiments of the paper's Fig. 3 share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import xarray as xr
from pydantic import AfterValidator, Field

from analysis import selection
from circuits import reference
from circuits.base import Circuit
from circuits.lift import FloatArray
from circuits.parameters import CircuitParameters
from simulations.datasets import Classes, chessboard, swiss_roll
from simulations.experiments.experiment import Grid

BOARDS = (0.5, 1 / 3, 0.25)
"""Sides of the squares, in units of the roll's height; 0.5 is the paper's."""

PARAMETERS = CircuitParameters(n_tiles=200, n_interneurons=8, tile_radius=0.15, recruit_below=0.75)
"""A higher threshold than the default puts most tiles to use within the first few hundred points,
where the paper compares online with offline."""


MU_GRID = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 400.0, 1200.0)
"""From a tenth to thirty times the critical gain, from which on the readout sustains itself:
1/lambda_1(E(h h^T)) is 43 to 45 on this roll (tiles after 2000 points, seeds 5000 to 5002). Below
this mu does nothing: errors at 0.001 and at 5 differ by 0.002 at most (seeds 5000 to 5011)."""


def board_names(boards: tuple[float, ...]) -> list[str]:
    """Boards by the side of their squares, short."""
    return [f"{size:.3g}" for size in boards]


def _check_names(boards: tuple[float, ...]) -> tuple[float, ...]:
    if len(set(board_names(boards))) < len(boards):
        raise ValueError("must differ in their first three digits")
    return boards


Boards = Annotated[Grid[Annotated[float, Field(ge=1e-3)]], AfterValidator(_check_names)]
"""Sides of several boards."""


def roll_with_boards(
    n_points: int, boards: tuple[float, ...], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, Classes]:
    """Points (T, 3), unrolled coordinates (T, 2) and the classes of every board (board, T)."""
    points, unrolled = swiss_roll(n_points, rng)
    return points, unrolled, np.stack([chessboard(unrolled, size) for size in boards])


def for_every_value(
    labels: Classes, values: tuple[float, ...]
) -> tuple[Classes, FloatArray, tuple[int, ...]]:
    """Labels (T, ...) once for every value of a grid, as columns (T, r) side by side.

    Returns them, the value of each column, and the shape (..., value) of which r columns are the
    flat form.
    """
    shape = (*labels.shape[1:], len(values))
    many = np.repeat(labels[..., None], len(values), axis=-1).reshape(len(labels), -1)
    return many, np.broadcast_to(np.array(values, dtype=float), shape).ravel(), shape


def chosen_errors(merged: xr.Dataset, grids: Mapping[str, str | None]) -> dict[str, xr.DataArray]:
    """Errors of each method at the value of its grid that was chosen on other repeats."""
    return {
        name: selection.chosen_errors(merged, f"{name}_error", grid) for name, grid in grids.items()
    }


def responses(circuit: Circuit, points: FloatArray) -> FloatArray:
    """What `circuit.respond` gives; from the exact solver's closed form it needs h alone."""
    if circuit.engine != "exact":
        return circuit.respond(points)
    state, x = circuit.state, circuit.lift(points)
    drives = reference.drive(state.W, state.b[:, None], x.T, circuit.alpha).T
    direction = reference.rest_direction(circuit.parameters.n_interneurons)
    return np.array([reference.fixed_point(a, direction, circuit.floor)[0] for a in drives])
