"""What a result can show: plots by name, and what each needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from circuits.errors import InputError

TRACES = ("h_trace", "u_trace", "V_trace", "y_trace")
SNAPSHOTS = ("W_snapshots", "b_snapshots", "w_snapshots", "snapshot_presentation")


@dataclass(frozen=True)
class Kind:
    """A plot: what it shows, the variables it needs, and how to draw it."""

    title: str
    needs: tuple[str, ...]
    draw: Callable[[xr.Dataset], Figure]
    merged: bool = False
    """Whether it shows all repeats; others show the first."""
    slow: bool = False
    """Whether it computes something first, and so is drawn only when asked for."""


def _module(name: str) -> Any:
    from importlib import import_module

    return import_module(f"analysis.{name}")


def _stability(run: xr.Dataset) -> Figure:
    studies = _module("studies")
    figure: Figure = _module("agreement").figure_stability_map(
        studies.stability_map(), studies.working_points(run)
    )
    return figure


def _by_board(result: xr.Dataset, function: str) -> Figure:
    import matplotlib.pyplot as plt

    chessboards, style = _module("figures.boards"), _module("style")
    boards = result["board"].to_numpy()
    with style.figure_style():
        figure, axes = plt.subplots(1, len(boards), figsize=(3.6 * len(boards), 3), squeeze=False)
        for board, ax in enumerate(axes[0]):
            getattr(chessboards, function)(result, ax, board=board)
            ax.set_title(f"squares of side {boards[board]}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return figure


KINDS = {
    "fig1": Kind(
        "the network, and receptive fields of the tiles",
        ("h_final", "points"),
        lambda run: _module("figures.arcs").figure(run),
    ),
    "fig2": Kind(
        "two moons: data, answers, weights",
        ("classes", "position", "y", *SNAPSHOTS),
        lambda run: _module("figures.moons").figure(run),
    ),
    "supervision": Kind(
        "semi- against fully supervised on chessboards",
        ("circuit_error", "logistic_error", "spreading_error"),
        lambda result: _by_board(result, "plot_supervision"),
        merged=True,
    ),
    "stream": Kind(
        "online against offline on chessboards",
        ("online_error", "offline_error"),
        lambda result: _by_board(result, "plot_stream"),
        merged=True,
    ),
    "boards": Kind(
        "the roll and its boards",
        ("unrolled", "classes", "points"),
        lambda run: _by_board(run, "plot_board"),
    ),
    "fig4": Kind(
        "the square: both solutions, and the histogram of imbalance",
        ("score", "majority"),
        lambda run: _module("figures.square").figure(run),
        merged=True,
    ),
    "diffusion": Kind(
        "measured against predicted change of w, clip against tanh",
        ("measured", "predicted", "readout_y"),
        lambda run: _module("figures.diffusion").figure(run),
        merged=True,
    ),
    "settling": Kind(
        "h, u, V, inhibition and y settling, with the closed form",
        TRACES,
        lambda run: _module("dynamics").figure_settling(run),
    ),
    "phase": Kind(
        "|h| against |u|", ("h_trace", "u_trace"), lambda run: _module("dynamics").figure_phase(run)
    ),
    "settling-error": Kind(
        "distance from the closed form against the number of steps",
        ("h_trace", *SNAPSHOTS),
        lambda run: _module("agreement").figure_settling_error(
            _module("studies").settling_errors(run)
        ),
    ),
    "learning": Kind(
        "W, b and w over the stream",
        SNAPSHOTS,
        lambda run: _module("dynamics").figure_learning(run),
    ),
    "tiles": Kind(
        "tiles forming on the manifold",
        ("points", *SNAPSHOTS),
        lambda run: _module("dynamics").figure_tiles(run),
    ),
    "raster": Kind(
        "map of h over presentations",
        ("h", "change"),
        lambda run: _module("dynamics").figure_raster(run),
    ),
    "stability": Kind(
        "where in the stability map the run works",
        ("u", "covered", "change"),
        _stability,
        slow=True,
    ),
}

ANIMATION = "animation"


def offered(result: xr.Dataset) -> list[str]:
    """Names of the plots a result can show."""
    names = [name for name, kind in KINDS.items() if all(need in result for need in kind.needs)]
    if all(need in result for need in KINDS["tiles"].needs):
        names.append(ANIMATION)
    return names


def draw(result: xr.Dataset, name: str) -> Figure:
    """Draw a result; a plot it cannot show is refused with what is missing."""
    if name not in KINDS:
        raise InputError(f"there is no plot {name!r}: use {', '.join([*KINDS, ANIMATION])}")
    kind = KINDS[name]
    missing = [need for need in kind.needs if need not in result]
    if missing:
        can = ", ".join(offered(result)) or "nothing"
        raise InputError(
            f"{name} needs {', '.join(missing)}, which the result lacks; it can show {can}"
        )
    return kind.draw(result if kind.merged else first_repeat(result))


def first_repeat(result: xr.Dataset) -> xr.Dataset:
    """The first repeat of a merged result; a single run is its own."""
    return result.isel(repeat=0) if "repeat" in result.dims else result


def animate(result: xr.Dataset, path: Path) -> list[Path]:
    """The tiles forming, as a GIF (and an MP4 where ffmpeg is there)."""
    if ANIMATION not in offered(result):
        raise InputError(f"an animation needs {', '.join(SNAPSHOTS)}: run with snapshots")
    files: list[Path] = _module("dynamics").animate_tiles(first_repeat(result), path)
    return files
