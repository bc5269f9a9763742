"""Tiles forming on the data, as a film."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from analysis.dynamics.tiles import NEEDED, TileMap, add_legend, add_scale
from analysis.holdings import require
from analysis.style import figure_style
from circuits.errors import InputError
from circuits.storage import files


@figure_style()
def animate_tiles(
    run: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    fps: int = 10,
    max_frames: int = 60,
    readout: int = 0,
    coordinates: tuple[int, int] | None = None,
) -> list[Path]:
    """Write tiles forming over time as a film: one frame per snapshot, at most ``max_frames``.

    A path that ends in .gif or .mp4 writes that; any other gets .gif, and .mp4 too where ffmpeg is
    installed. Returns the files.
    """
    require(run, NEEDED, "an animation of the tiles")
    targets = targets_of(Path(path))
    count = run.sizes["snapshot"]
    frames = np.unique(np.linspace(0, count - 1, min(count, max_frames)).round().astype(int))
    fig = plt.figure(figsize=(6.6, 4.4), dpi=100)
    try:
        ax = fig.add_subplot()
        tile_map = TileMap(run, ax, readout, coordinates)
        add_scale(fig, [ax], run, readout)
        tile_map.show(int(frames[-1]))
        add_legend(fig, tile_map.labels, columns=3)
        fig.canvas.draw()
        fig.set_layout_engine("none")  # nothing may move from frame to frame but the tiles

        write_film(fig, tile_map.show, frames.tolist(), targets, fps)
    finally:
        plt.close(fig)
    return targets


def write_film(
    fig: Figure, show: Callable[[int], object], frames: list[int], targets: list[Path], fps: int
) -> None:
    """Write a figure as a film: ``show`` makes it that of a frame."""

    def draw(frame: int) -> list[Artist]:
        show(frame)
        return []

    film = FuncAnimation(fig, draw, frames=frames, init_func=lambda: [])
    for target in targets:
        writer = FFMpegWriter(fps=fps) if target.suffix == ".mp4" else PillowWriter(fps=fps)
        with files.writing(target) as partial:
            film.save(partial, writer=writer, dpi=100)


def targets_of(path: Path) -> list[Path]:
    """What to write: the file asked for, or one of each kind that can be written."""
    if path.suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise InputError("writing .mp4 needs ffmpeg, which is not installed: choose a .gif file")
    if path.suffix in (".gif", ".mp4"):
        return [path]
    suffixes = [".gif", *([".mp4"] if FFMpegWriter.isAvailable() else [])]
    return [path.with_name(path.name + suffix) for suffix in suffixes]
