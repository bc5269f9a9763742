"""The map of responses puts neighbours next to each other."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import dynamics
from analysis.measures import tile_centers, tile_order
from circuits.errors import InputError
from tests.analysis.drawing import M, N, used


def image_of(ax):
    return ax.images[0].get_array().filled(0)


def test_raster_orders_tiles_and_presentations(either):
    run = either
    image = image_of(dynamics.plot_raster(run))
    h, position = run["h"].values, run["position"].values
    tiles = used(run)
    tiles = tile_order(tile_centers(run)[:tiles], run["points"].values, position)
    assert (image == h[np.argsort(position)][:, tiles].T).all()
    # Along the manifold the winners rise: neighbours in one order are neighbours in the other.
    covered = h[np.argsort(position)].any(axis=1)
    winners = image.argmax(axis=0)[covered]
    assert np.corrcoef(np.arange(len(winners)), winners)[0, 1] > 0.95


def test_raster_by_time_counts_in_the_circuits_life(run, later):
    bare = later.drop_vars("position")
    ax = dynamics.plot_raster(bare)
    count = used(run)
    assert 10 < count < M  # idle tiles have no row
    left_to_right = np.argsort(tile_centers(run)[:count, 0], kind="stable")
    assert (image_of(ax) == run["h"].values[:, left_to_right].T).all()
    assert ax.images[0].get_extent() == [499.5, 499.5 + N, -0.5, count - 0.5]
    assert "from left to right" in ax.get_ylabel()
    assert f"({count} of {M} tiles in use)" in ax.get_ylabel()
    with pytest.raises(InputError, match="by='time'"):
        dynamics.plot_raster(bare, by="position")
    with pytest.raises(InputError, match="'position' or 'time', got 'size'"):
        dynamics.plot_raster(run, by="size")
