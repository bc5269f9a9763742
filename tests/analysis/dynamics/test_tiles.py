"""Maps and films of the tiles show where they are, how far they reach, and how they came there."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from PIL import Image

from analysis import dynamics, theory
from analysis.dynamics.tiles import PRESENTED, moments_of_change
from analysis.measures import tile_centers
from analysis.style import LOWER, UPPER
from circuits.circuit import ReferenceCircuit
from circuits.errors import InputError
from tests.analysis.drawing import SMALL, M, offsets, used


def scatter(ax, color):
    """The points of the scatter plot of one colour that is filled."""
    plain = [c for c in ax.collections if c.get_array() is None and len(c.get_facecolor()) == 1]
    return offsets(next(c for c in plain if tuple(c.get_facecolor()[0]) == to_rgba(color)))


def test_tile_maps_show_centres_and_reach(either):
    run, count = either, used(either)
    axes = dynamics.plot_tiles(run, [0, 20, 39])
    titles = ["after 1 presentation", "after 21 presentations", "after 40 presentations"]
    assert [ax.get_title().partition("\n")[0] for ax in axes] == titles
    centers, reach = (values[:count] for values in dynamics.tiles_at(run, 39))
    assert centers == pytest.approx(tile_centers(run)[:count], rel=1e-14)
    dots = [
        c for c in axes[2].collections if len(offsets(c)) == count and c.get_array() is not None
    ]
    assert len(dots) == 2  # discs and centres
    for collection in dots:
        assert offsets(collection) == pytest.approx(centers, rel=1e-14)
        assert (collection.get_array() == run["w"].values[0, :count]).all()
    # A point just inside the reach drives its tile, one just outside does not.
    lift, alpha = theory.lift_of(run), float(run.attrs["alpha"])
    for tile in range(count):
        unit = run["W"].values[tile] / np.linalg.norm(run["W"].values[tile])
        side = np.cross(unit, [1.0, 0, 0])
        side /= np.linalg.norm(side)
        for scale, sign in ((0.99, 1), (1.01, -1)):
            cosine = 1 - (scale * reach[tile] / lift.radius) ** 2 / 2
            x = cosine * unit + np.sqrt(1 - cosine**2) * side
            drive = run["W"].values[tile] @ x - np.sqrt(alpha) * run["b"].values[tile]
            assert np.sign(drive) == sign


def trails(ax):
    (found,) = (c for c in ax.collections if isinstance(c, LineCollection))
    return np.array(found.get_segments())


@pytest.mark.parametrize("name", ["run", "later", "constant"])
def test_trails_lead_from_the_first_snapshot_with_the_tile(request, name):
    run = request.getfixturevalue(name)
    ax = dynamics.plot_tile_map(run, 30)
    began = run["recruited"].values - int(run["presentation"][0])
    tiles = np.flatnonzero((run["recruited"].values >= 0) & (began <= 30))
    segments = trails(ax)
    assert len(segments) == len(tiles)
    for tile, (start, end) in zip(tiles, segments, strict=True):
        first = dynamics.tiles_at(run, max(int(began[tile]), 0))[0][tile]
        assert start == pytest.approx(first, rel=1e-14)
        assert end == pytest.approx(dynamics.tiles_at(run, 30)[0][tile], rel=1e-14)
    assert np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1).max() > 0.01
    told = f"\n{len(tiles)} of {M} tiles in use" if name != "constant" else ""
    assert ax.get_title().partition(" presentations")[2] == told


def test_tiles_that_move_leave_no_trail_from_where_they_were(run):
    """Ten tiles for a stream that needs more: the least used ones move."""
    parameters = SMALL.replace(n_tiles=10, recycle=True)
    circuit = ReferenceCircuit(parameters, theory.lift_of(run))
    found = circuit.run(run["points"].values, snapshot_every=1)
    assert (found["recruited"].values >= 10).any()
    last = trails(dynamics.plot_tile_map(found, -1))
    assert np.linalg.norm(last[:, 1] - last[:, 0], axis=1).max() < SMALL.tile_radius
    # Before it moved, a tile was in use as well.
    moved = int(found["recruited"].values.max())
    assert len(trails(dynamics.plot_tile_map(found, moved - 1))) == 10


def test_points_and_signed_labels_that_were_presented_are_marked(run, later):
    labels = run["labels"].values[:, 0]
    told = {sign: int(np.flatnonzero(labels == sign)[0]) for sign in (-1, 1)}
    between = min(told.values())  # one of the two labels has been given
    for result in (run, later):
        ax = dynamics.plot_tile_map(result, between)
        points = run["points"].values
        assert (scatter(ax, PRESENTED) == points[: between + 1]).all()
        for sign, color in ((-1, UPPER), (1, LOWER)):
            expected = points[[told[sign]]] if told[sign] <= between else points[:0]
            assert np.array_equal(scatter(ax, color), expected)
    assert f"after {501 + between} presentations" in ax.get_title()


def test_snapshots_are_chosen_where_things_change(constant):
    run = constant
    first, _, _, last = moments_of_change(run, 4)
    assert (first, last) == (0, 39)
    # Nothing happens until half of the stream: no panel is spent on that.
    still = run.copy(deep=True)
    for name in ("W_snapshots", "w_snapshots"):
        still[name][:20] = still[name][20]
    assert all(place == 0 or place > 20 for place in moments_of_change(still, 4))
    assert moments_of_change(run, 100) == list(range(40))
    # A circuit that never changes is shown as it begins and ends.
    for name in ("W_snapshots", "w_snapshots"):
        still[name][:] = still[name][20]
    assert moments_of_change(still, 4) == [0, 39]


def test_recruiting_counts_as_change(run):
    """Of a stream in which nothing but recruiting happens, each panel has as many new tiles."""
    still = run.copy(deep=True)
    count, recruited = used(run), run["recruited"].values
    for tile in range(count):
        still["W_snapshots"][recruited[tile] :, tile] = still["W"][tile]
    still["w_snapshots"][:] = 0
    chosen = moments_of_change(still, 4)
    shares = [(recruited[:count] <= place).sum() for place in chosen]
    assert np.abs(shares - np.linspace(1, count, 4)).max() <= 1


def test_data_of_three_coordinates_are_seen_from_the_side(run):
    wide = run.drop_vars(["points", "coordinate", "W_snapshots", "W", "input"]).assign(
        points=(("presentation", "coordinate"), run["points"].values[:, [0, 0, 1]]),
        W_snapshots=(("snapshot", "tile", "input"), run["W_snapshots"].values[:, :, [0, 0, 1, 2]]),
    )
    wide.attrs["lift"] = '{"center": [0.5, 0.5, 0.25], "radius": 3.0}'
    ax = dynamics.plot_tile_map(wide, 5)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("first coordinate", "third coordinate")
    assert (scatter(ax, PRESENTED) == run["points"].values[:6]).all()
    with pytest.raises(InputError, match="two of 0 to 2"):
        dynamics.plot_tile_map(wide, 5, coordinates=(0, 3))


def test_animation_has_a_frame_per_snapshot(run, tmp_path):
    few = run.isel(snapshot=slice(0, None, 20))
    files = dynamics.animate_tiles(few, tmp_path / "film")
    assert files[0] == tmp_path / "film.gif"
    assert len(files) == 1 + FFMpegWriter.isAvailable()
    with Image.open(files[0]) as film:
        assert film.n_frames == 2
    (thinned,) = dynamics.animate_tiles(run, tmp_path / "short.gif", max_frames=3)
    with Image.open(thinned) as film:
        assert film.n_frames == 3
    if not FFMpegWriter.isAvailable():
        with pytest.raises(InputError, match=r"ffmpeg.*\.gif"):
            dynamics.animate_tiles(few, tmp_path / "film.mp4")
    assert not plt.get_fignums()


def test_snapshots_must_exist(run):
    with pytest.raises(InputError, match="no snapshot 40"):
        dynamics.plot_tile_map(run, 40)
    with pytest.raises(InputError, match="2 snapshots need as many axes, got 1"):
        dynamics.plot_tiles(run, [0, 1], [plt.figure().add_subplot()])
