"""Numbers that are read off spikes."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import firing as pictures
from analysis.firing import spikes
from analysis.theory import spiking_of
from circuits.errors import InputError
from tests.analysis.spikes import made, with_spikes


def test_intervals_are_between_successive_spikes():
    assert pictures.interspike_intervals([6.0, 1.0, 4.0]).tolist() == [3.0, 2.0]
    assert pictures.interspike_intervals([]).size == 0


def test_a_regular_train_does_not_vary_and_a_poisson_train_does():
    regular = pictures.interspike_intervals(0.01 * np.arange(50))
    # The estimate of a coefficient of 1 from n exponential intervals has a standard deviation of
    # 1/sqrt(n), here 0.005: four of them.
    poisson = np.random.default_rng(0).exponential(0.02, 40_000)
    found = pictures.coefficients_of_variation([regular, poisson])
    assert found[0] == pytest.approx(0, abs=1e-12)
    assert found[1] == pytest.approx(1, abs=0.02)
    # Of alternating intervals 1 and 3 the mean is 2 and the standard deviation 1.
    assert pictures.coefficients_of_variation([[1, 3, 1, 3]]).tolist() == [0.5]


def test_short_trains_are_left_out():
    assert pictures.coefficients_of_variation([[1.0, 2.0, 1.0], []]).size == 0
    assert pictures.coefficients_of_variation([[], []], least=0).size == 0


def test_the_bound_is_the_error_of_poisson_cells():
    h, cells, rate, window = np.array([0.8, 0.6, 0.0]), 3, 100.0, 0.125
    bound = pictures.poisson_bound(h.sum(), cells, rate, window)
    assert bound == pytest.approx(np.sqrt(1.4 / 37.5))
    rng = np.random.default_rng(2)
    counts = rng.poisson(h[:, None] * rate * window, (20_000, 3, cells))
    squares = (((counts / (rate * window)).mean(axis=2) - h) ** 2).sum(axis=1)
    # The mean of so many squares is known to a per cent, and its root to half of that.
    assert np.sqrt(squares.mean()) == pytest.approx(float(bound), rel=0.02)
    several = pictures.poisson_bound(1.4, np.array([1, 4]), 100.0, 0.125)
    assert several[0] == pytest.approx(2 * several[1])


def test_errors_of_rates_and_of_their_directions():
    errors, directions = pictures.rate_errors([[0.6, 0.8], [2.0, 0.0], [0, 0]], [[1.0, 0.0]] * 3)
    assert errors == pytest.approx([np.sqrt(0.8), 1.0, 1.0])
    assert directions == pytest.approx([np.sqrt(0.8), 0.0, 1.0])


@pytest.mark.parametrize("place", [0, 4, 9])
def test_the_closed_form_is_where_spiking_cells_rest(spiking, place):
    target, slope = pictures.spiking_target(spiking, place), spiking_of(spiking).slope
    gain = float(spiking["gain"][place])
    u, V = np.sqrt(gain) * target.u, np.sqrt(gain) * target.V
    assert np.linalg.norm(target.h) == pytest.approx(1)
    assert target.h == pytest.approx(slope * np.maximum(gain * target.a - V.T @ u, 0), abs=1e-9)
    assert u == pytest.approx(V @ target.h)
    assert pytest.approx(np.outer(u, target.h)) == V


def test_a_drive_that_is_too_small_for_inhibition_passes_with_the_slope(spiking):
    gain = 1e-3 * spiking["gain"]
    target = pictures.spiking_target(spiking.assign(gain=gain), 4)
    assert not target.u.any()
    assert not target.V.any()
    expected = spiking_of(spiking).slope * float(gain[4]) * np.maximum(target.a, 0)
    assert target.h == pytest.approx(expected)
    nothing = pictures.spiking_target(spiking.assign(gain=0 * spiking["gain"]), 4)
    assert np.linalg.norm(nothing.h) == pytest.approx(1)  # the point is covered all the same


def test_spiking_cells_do_what_the_closed_form_says(spiking):
    """In a window of 60 ms a rate of 1 is five spikes: one more or less is 0.2."""
    places, target = pictures.closed_forms(spiking, 100)
    assert places.tolist() == list(range(10))
    errors, directions = pictures.rate_errors(spiking["h"].values, target)
    assert errors.mean() < 0.2
    assert directions.mean() < 0.2
    window = spiking_of(spiking).window_steps
    V = spiking["V_trace"].values[:, -window:].mean(axis=1)
    expected = np.array([pictures.spiking_target(spiking, t).V for t in places])
    sizes = [np.linalg.norm(each.reshape(10, -1), axis=1) for each in (V, expected)]
    assert (sizes[0] / sizes[1]).mean() == pytest.approx(1, abs=0.15)
    few, _ = pictures.closed_forms(spiking, 3)
    assert few.tolist() == [0, 4, 9]


def test_rows_are_tiles_along_the_manifold_and_their_cells_together():
    run = made(cells=2)
    # Positions count from the right: the tiles lie at 0.5, 0 and -0.5.
    assert pictures.row_cells(run, "excitatory").tolist() == [0, 1, 4, 5, 2, 3]
    bare = run.drop_vars("position")
    assert pictures.row_cells(bare, "excitatory").tolist() == [2, 3, 4, 5, 0, 1]
    assert pictures.row_cells(run, "inhibitory").tolist() == [0, 1, 2, 3]
    assert spikes.rows_of(run, "excitatory", np.array([5, 0, 3])).tolist() == [3, 0, 5]
    with pytest.raises(InputError, match="never in use"):
        spikes.rows_of(run, "excitatory", np.array([6]))
    with pytest.raises(InputError, match="says cells=2 and holds 7"):
        pictures.row_cells(run.isel(excitatory_cell=slice(7)), "excitatory")


def test_spikes_are_counted_from_the_results_first_presentation():
    run = made(first=100, spikes={"excitatory": [(0, 100, 1), (2, 103, 10)]})
    found = pictures.Spikes.of(run, "excitatory")
    assert found.presentation.tolist() == [0, 3]
    assert found.cell.tolist() == [0, 2]
    assert found.step.tolist() == [1, 10]
    assert pictures.Spikes.of(run, "readout").cell.size == 0
    # As where repeats are merged.
    padded = run.assign_coords(excitatory_spike=range(2)).reindex(excitatory_spike=range(4))
    assert pictures.Spikes.of(padded, "excitatory").cell.tolist() == [0, 2]


@pytest.mark.parametrize(
    "spike", [(4, 0, 1), (-1, 0, 1), (0, 4, 1), (0, -1, 1), (0, 0, 0), (0, 0, 11)]
)
def test_spikes_of_nobody_are_refused(spike):
    with pytest.raises(InputError, match="not those of its cells"):
        pictures.Spikes.of(made(spikes={"excitatory": [spike]}), "excitatory")


def test_groups_and_results_without_spikes_are_refused(run):
    with pytest.raises(InputError, match="one of excitatory, inhibitory, readout, got 'tiles'"):
        pictures.Spikes.of(made(), "tiles")
    with pytest.raises(InputError, match=r"run a SpikingCircuit with record=\('spikes',\)$"):
        pictures.Spikes.of(run, "excitatory")


def test_intervals_are_of_one_cell_in_one_window():
    spikes = [(0, 0, 4), (0, 0, 5), (0, 0, 8), (0, 0, 10), (1, 0, 9), (0, 1, 6), (0, 1, 7)]
    run = made(spikes={"excitatory": spikes})
    found = pictures.window_intervals(run)
    # The window is the steps 5 to 10: the spike at 4 is before it, and one spike has no interval.
    assert [np.round(1e3 * each, 9).tolist() for each in found] == [[3.0, 2.0], [1.0]]
    assert pictures.window_intervals(run, "inhibitory") == []
    mixed = with_spikes(run, "excitatory", spikes[::-1])
    assert len(pictures.window_intervals(mixed)) == 2


@pytest.mark.parametrize(("group", "rate"), [("excitatory", "h"), ("inhibitory", "u")])
def test_rates_are_the_spikes_in_the_window(spiking, group, rate):
    """Those that a raster shades, counted cell by cell, are the rates of the result."""
    s, found = spiking_of(spiking), pictures.Spikes.of(spiking, group)
    found = found.among(found.step > s.n_steps - s.window_steps)
    counts = np.zeros((spiking.sizes["presentation"], spiking.sizes[f"{group}_cell"]))
    np.add.at(counts, (found.presentation, found.cell), 1)
    assert counts.any()
    assert counts / s.window_ == pytest.approx(spiking[f"{group}_hz"].values)
    scale = 1 if rate == "h" else np.sqrt(spiking["gain"].values)[:, None]
    full = s.rate_h_ if rate == "h" else s.rate_u_
    assert counts / s.window_ == pytest.approx(full * scale * spiking[rate].values)
