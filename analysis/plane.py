"""Data of any dimension on paper: which coordinates are shown, and marks on labelled points."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from analysis.style import LOWER, UPPER
from circuits.errors import InputError
from circuits.lift import FloatArray

SIGNS = {1: ("+", LOWER, "label +1"), -1: ("_", UPPER, "label −1")}
"""How labels are marked: the sign, in a disc of the class's colour."""


def shown_coordinates(n_coordinates: int) -> tuple[int, int]:
    """The two coordinates that data are drawn over: the first two, of three the first and last.

    A roll lies along its second coordinate.
    """
    return (0, 2) if n_coordinates == 3 else (0, min(1, n_coordinates - 1))


def flatten(points: FloatArray, coordinates: tuple[int, int] | None = None) -> FloatArray:
    """Points (T, d) in the plane of two coordinates; those on a line lie at height zero."""
    d = points.shape[1]
    if d == 1:
        return np.column_stack([points[:, 0], np.zeros(len(points))])
    chosen = shown_coordinates(d) if coordinates is None else coordinates
    if not all(0 <= c < d for c in chosen):
        raise InputError(f"coordinates must be two of 0 to {d - 1}, got {chosen}")
    return points[:, list(chosen)]


def name_axes(ax: Axes, n_coordinates: int, coordinates: tuple[int, int] | None = None) -> None:
    """Say which coordinates the axes show; data on a line have no second one."""
    names = ["first coordinate", "second coordinate", "third coordinate"]
    names += [f"coordinate {i}" for i in range(3, n_coordinates)]
    if n_coordinates == 1:
        ax.set(xlabel="coordinate", ylabel="", yticks=[])
        return
    chosen = shown_coordinates(n_coordinates) if coordinates is None else coordinates
    ax.set(xlabel=names[chosen[0]], ylabel=names[chosen[1]])


class LabelMarks:
    """Labelled points: discs in the colour of their class that carry its sign."""

    def __init__(self, ax: Axes, size: float = 80) -> None:
        self.marks: dict[int, tuple[PathCollection, PathCollection]] = {}
        for sign, (marker, color, _) in SIGNS.items():
            disc = ax.scatter([], [], s=size, c=color, ec="white", lw=0.8, zorder=8)
            cross = ax.scatter([], [], s=0.4 * size, marker=marker, c="white", lw=1.4, zorder=9)
            self.marks[sign] = disc, cross

    def show(self, points: FloatArray, labels: ArrayLike) -> None:
        """Mark these points; labels of 0 are none."""
        for sign, marks in self.marks.items():
            for mark in marks:
                mark.set_offsets(points[np.asarray(labels) == sign])


def label_entries(labels: ArrayLike) -> tuple[list[tuple[Line2D, Line2D]], list[str]]:
    """Handles and texts for a legend of the marks that these labels get."""
    there = [sign for sign in SIGNS if (np.asarray(labels) == sign).any()]
    handles = [
        (
            Line2D([], [], ls="", marker="o", color=SIGNS[sign][1], mec="white", ms=9),
            Line2D([], [], ls="", marker=SIGNS[sign][0], color="white", ms=6, mew=1.4),
        )
        for sign in there
    ]
    return handles, [SIGNS[sign][2] for sign in there]
