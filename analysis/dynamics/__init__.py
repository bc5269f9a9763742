"""The circuit at work: settling, learning, tiles forming. Everything is drawn from a result.

A presentation is asked for by its place in the result, from 0, or from -1 backwards, as in
``isel``; pictures name it by its number in the circuit's life, the result's own coordinate. Tiles
and interneurons are counted from 0.
"""

from analysis.dynamics.animation import animate_tiles
from analysis.dynamics.learning import figure_learning, plot_learning
from analysis.dynamics.phase import figure_phase, plot_phase
from analysis.dynamics.raster import figure_raster, plot_raster
from analysis.dynamics.settling import (
    deviations,
    envelope,
    figure_settling,
    plot_settling,
    plot_trace,
)
from analysis.dynamics.tiles import figure_tiles, plot_tile_map, plot_tiles, tiles_at

__all__ = [
    "animate_tiles",
    "deviations",
    "envelope",
    "figure_learning",
    "figure_phase",
    "figure_raster",
    "figure_settling",
    "figure_tiles",
    "plot_learning",
    "plot_phase",
    "plot_raster",
    "plot_settling",
    "plot_tile_map",
    "plot_tiles",
    "plot_trace",
    "tiles_at",
]
