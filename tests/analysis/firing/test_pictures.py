"""Pictures of spikes show the spikes that there are."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection

from analysis import firing as pictures
from circuits.errors import InputError
from tests.analysis.drawing import lines, readable
from tests.analysis.spikes import made, with_spikes

FIGURES = {
    "spikes": pictures.figure_spikes,
    "spikes-along": pictures.figure_spikes_along,
    "spike-rates": pictures.figure_counted_rates,
    "firing-rates": pictures.figure_firing_rates,
    "spike-intervals": pictures.figure_intervals,
    "lateral": pictures.figure_lateral,
    "errors": lambda run: pictures.figure_errors(
        [1, 4], {"if": [[0.1, 0.05]], "escape": [[0.3, 0.15]]}, [0.25, 0.5], [[0.1, 0.07]],
        cells_bound=[0.3, 0.15], duration_bound=[0.3, 0.2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_figures_have_titles_and_nothing_covers_anything(spiking, name):
    fig = readable(lambda: FIGURES[name](spiking))
    assert all(ax.get_ylabel() for ax in fig.axes)


def ticks(ax):
    """Spikes as they are drawn: (time, row) each, sorted."""
    (drawn,) = [item for item in ax.collections if isinstance(item, LineCollection)]
    found = [(float(tick[0, 0]), float(tick[:, 1].mean())) for tick in drawn.get_segments()]
    return sorted((round(x, 6), round(y, 6)) for x, y in found)


SPIKES = {
    "excitatory": [(0, 2, 1), (2, 2, 4), (1, 2, 10), (1, 1, 3)],
    "inhibitory": [(1, 2, 5)],
    "readout": [(0, 2, 6), (1, 2, 6), (1, 0, 1)],
}


@pytest.mark.parametrize("first", [0, 100])
def test_a_raster_has_a_tick_for_every_spike(first):
    spikes = {group: [(c, first + t, s) for c, t, s in found] for group, found in SPIKES.items()}
    run = made(first=first, spikes=spikes)
    readout, inhibitory, excitatory = pictures.plot_spikes(run, 2)
    # Along the manifold tile 0 is the first, then 2, then 1; a step takes a millisecond.
    assert ticks(excitatory) == [(1.0, 0.0), (4.0, 1.0), (10.0, 2.0)]
    assert ticks(inhibitory) == [(5.0, 1.0)]
    assert ticks(readout) == [(6.0, 0.0), (6.0, 1.0)]
    assert "3 of 4 tiles in use" in excitatory.get_ylabel()
    assert excitatory.get_ylim() == (-0.75, 2.75)  # a row for each of them
    for ax in (readout, inhibitory, excitatory):
        window = ax.patches[0].get_bbox()
        assert (window.x0, window.x1) == (4.5, 10.5)
    _, _, nothing = pictures.plot_spikes(run, 3)
    assert ticks(nothing) == []
    title = pictures.figure_spikes(run, -2).get_suptitle()
    assert title == f"Spikes of presentation {first + 2}"


def test_rasters_refuse_what_they_cannot_show():
    run = made(spikes=SPIKES)
    with pytest.raises(InputError, match="there is no presentation 4"):
        pictures.plot_spikes(run, 4)
    with pytest.raises(InputError, match="needs 3 axes, got 1"):
        pictures.plot_spikes(run, 2, [plt.figure().add_subplot()])
    with pytest.raises(InputError, match="never in use"):
        pictures.plot_spikes(with_spikes(run, "excitatory", [(3, 2, 1)]), 2)


def test_presentations_stand_along_the_manifold(monkeypatch):
    """The first point is the rightmost, and positions count from the right."""
    spikes = {"excitatory": [(0, 0, 1), (1, 3, 10), (2, 1, 5)]}
    run = made(spikes=spikes)
    ax = pictures.plot_spikes_along(run)
    # The middle of the first step of ten, from the left edge of the column.
    assert ticks(ax) == [(-0.45, 0.0), (0.95, 1.0), (3.45, 2.0)]
    assert ax.get_xlim() == (-0.5, 3.5)
    turned = run.assign(position=-run["position"])
    ax = pictures.plot_spikes_along(turned, [0, 3])
    assert ticks(ax) == [(0.45, 0.0), (0.55, 2.0)]
    in_time = pictures.plot_spikes_along(run.drop_vars("position"), [3, 0])
    assert [x for x, _ in ticks(in_time)] == [0.45, 0.55]
    assert "in time" in in_time.get_xlabel()
    # Of many presentations some are shown: here the later half.
    monkeypatch.setattr("analysis.firing.rasters.SHOWN_ALONG", 2)
    assert len(ticks(pictures.plot_spikes_along(run))) == 1


def heights(ax):
    """Bars by the middle of their place."""
    return {round(bar.get_x() + bar.get_width() / 2, 3): bar.get_height() for bar in ax.patches}


def test_firing_rates_are_whole_counts():
    run = made()
    hz = np.zeros((4, 4))
    hz[:, 0] = np.array([0, 1, 3, 3]) / 0.006
    ax = pictures.plot_firing_rates(
        run.assign(excitatory_hz=(("presentation", "excitatory_cell"), hz))
    )
    found = heights(ax)
    assert len(found) == 4
    assert found[round(1 / 0.006, 3)] == pytest.approx(100 / 3)  # of those that fire
    assert found[round(3 / 0.006, 3)] == pytest.approx(200 / 3)
    assert sum(found.values()) == pytest.approx(100)
    mean = (7 / 3) / 0.006
    assert any(line.get_xdata()[0] == pytest.approx(mean) for line in ax.lines)
    # Of inhibitory cells those that are silent count as well; of points nobody answered none does.
    answered = run["h"].values * [[1], [1], [0], [1]]
    rates = np.full((4, 2), 1 / 0.006) * [[1, 0]]
    other = run.assign(
        h=(("presentation", "tile"), answered),
        inhibitory_hz=(("presentation", "inhibitory_cell"), rates),
    )
    found = heights(pictures.plot_firing_rates(other, "inhibitory"))
    assert list(found.values()) == pytest.approx([50, 50])
    # Many counts share bars.
    hz[:, 0] = np.array([1, 50, 99, 100]) / 0.006
    run = run.assign(excitatory_hz=(("presentation", "excitatory_cell"), hz))
    found = heights(pictures.plot_firing_rates(run))
    assert 20 < len(found) <= 41
    assert sum(found.values()) == pytest.approx(100)


def test_firing_rates_of_nobody_are_refused():
    with pytest.raises(InputError, match="no excitatory cell of this result fires"):
        pictures.plot_firing_rates(made())
    run = made().assign(excitatory_hz=made()["excitatory_hz"] * np.nan)
    with pytest.raises(InputError, match="not all finite"):
        pictures.plot_firing_rates(run)


def test_counted_rates_stand_over_the_closed_form(spiking):
    _, target = pictures.closed_forms(spiking, 100)
    h = spiking["h"].values
    shown = (h > 0) | (target > 0)
    dots = pictures.plot_counted_rates(spiking).lines[1]
    assert (dots.get_xdata() == target[shown]).all()
    assert (dots.get_ydata() == h[shown]).all()
    ax = pictures.plot_counted_rates(spiking, exact=h)
    assert (ax.lines[1].get_xdata() == ax.lines[1].get_ydata()).all()
    assert "mean |h − h*| = 0.000" in ax.get_title()
    with pytest.raises(InputError, match=r"shape \(10, 12\)"):
        pictures.plot_counted_rates(spiking, exact=h[:3])
    with pytest.raises(InputError, match="snapshot_every=N"):
        pictures.plot_counted_rates(spiking.drop_vars("W_snapshots"))


def test_intervals_and_their_variation_are_drawn():
    regular = [(0, t, step) for t in range(2) for step in range(5, 11)]
    ax = pictures.plot_intervals(made(spikes={"excitatory": regular}))
    texts = ax.get_legend_handles_labels()[1]
    assert texts == ["excitatory: median 1.0 ms", "inhibitory: too few spikes"]
    ax = pictures.plot_variation(made(spikes={"excitatory": regular}))
    assert "excitatory: mean 0.00" in ax.get_legend_handles_labels()[1]


def test_lateral_synapses_are_drawn_with_the_closed_form(spiking):
    place = 6
    ax = pictures.plot_lateral(spiking, place, 1)
    V, target = spiking["V_trace"].values[place, :, 1], pictures.spiking_target(spiking, place)
    loud = np.flatnonzero(spiking["h"].values[place] > 0.01)
    for tile in loud:
        assert any(len(y) == len(V) and (y == V[:, tile]).all() for y in lines(ax))
        assert any(y[0] == target.V[1, tile] for y in lines(ax, dashed=True))
    assert len(lines(ax, dashed=True)) == len(loud)
    bare = spiking.drop_vars(["W_snapshots", "b_snapshots", "w_snapshots"])
    assert not lines(pictures.plot_lateral(bare, place), dashed=True)
    with pytest.raises(InputError, match=r"V_trace.*record=\('V',\)$"):
        pictures.plot_lateral(spiking.drop_vars("V_trace"))
    with pytest.raises(InputError, match="no interneuron 2: there are 2"):
        pictures.plot_lateral(spiking, 0, 2)


def test_errors_are_means_with_their_spread_over_repeats():
    errors = {"if": [[0.1, 0.04], [0.3, 0.06]], "escape": [[0.4, 0.2], [0.4, 0.2]]}
    ax = pictures.plot_error_by_cells([1, 16], errors, bound=[0.4, 0.1])
    means = [np.asarray(line.get_ydata()) for line in ax.lines if len(line.get_ydata()) == 2]
    for expected in ([0.2, 0.05], [0.4, 0.2], [0.4, 0.1]):
        assert any(y == pytest.approx(expected) for y in means)
    bars = [bar[:, 1] for bar in ax.containers[0].lines[2][0].get_segments()]
    np.testing.assert_allclose(bars, [[0.1, 0.3], [0.04, 0.06]])
    ax = pictures.plot_error_by_duration([0.25, 0.5], [[0.1, 0.05]], bound=0.3)
    assert ax.lines[0].get_xdata().tolist() == [250.0, 500.0]
    with pytest.raises(InputError, match=r"errors of if must have the shape \(repeat, 2\)"):
        pictures.plot_error_by_cells([1, 2], {"if": [0.1]})
