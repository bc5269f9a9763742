"""The spiking twin in numbers, where the answers are known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import xarray as xr

from analysis import likeness as module
from circuits.errors import InputError


def test_likeness_is_of_covered_presentations_alone():
    other = np.array([[0.6, 0.8], [0.0, 2.0], [0.0, 0.0]])  # the second is made of norm 1
    h = np.array([[0.3, 0.4], [1.0, 1.0], [5.0, 5.0]])
    found = module.likeness(h, other)
    assert found.difference == pytest.approx((0.5 + 1.0) / 2)
    assert found.norm == pytest.approx((0.5 + math.sqrt(2)) / 2)
    # The first has the direction; the second is 45 degrees off: a chord of 2 sin(22.5 degrees).
    assert found.direction == pytest.approx(math.sin(math.pi / 8))
    assert found.correlation == pytest.approx(np.corrcoef([0.3, 0.4, 1, 1], [0.6, 0.8, 0, 1])[0, 1])


def test_likeness_to_itself_and_of_silence():
    h = np.array([[0.6, 0.8], [1.0, 0.0]])
    same = module.likeness(h, h)
    assert (same.difference, same.direction) == pytest.approx((0, 0), abs=1e-15)
    assert (same.correlation, same.norm) == pytest.approx((1, 1))
    silent = module.likeness(0 * h, h)
    assert (silent.difference, silent.direction, silent.norm) == pytest.approx((1, 1, 0))
    assert math.isnan(silent.correlation)
    assert math.isnan(module.likeness(h, 0 * h).difference)
    with pytest.raises(InputError, match=r"shapes \(2, 2\) and \(1, 2\)"):
        module.likeness(h, h[:1])


def answers(*y):
    return xr.Dataset({"y": (("presentation", "readout"), np.array(y, dtype=float)[:, None])})


def test_signs_count_where_the_other_answers():
    assert module.same_signs(answers(0.1, -0.1, 0.0, 0.7), answers(1, 1, 1, 0)) == 1 / 3
    assert math.isnan(module.same_signs(answers(1, 1), answers(0, 0)))


def tiles(*places, idle=0):
    """A result whose tiles lie at places on a line, and whose idle tiles lie nowhere."""
    lift = {"center": (0.0,), "radius": 1.0}
    W = [[x, math.sqrt(1 - x**2)] for x in places] + [[0.0, 0.0]] * idle
    recruited = [0] * len(places) + [-1] * idle
    data = {"W": (("tile", "input"), np.reshape(W, (-1, 2))), "recruited": ("tile", recruited)}
    return xr.Dataset(data, attrs={"lift": json.dumps(lift)})


def test_the_distance_is_to_the_nearest_tile_in_use():
    found = module.tile_distance(tiles(0.1, 0.5, idle=2), tiles(0.4, 0.6, idle=1))
    assert found == pytest.approx((0.3 + 0.1) / 2)  # the idle one at 0 would be nearer
    assert math.isnan(module.tile_distance(tiles(idle=2), tiles(0.4)))
    assert math.isnan(module.tile_distance(tiles(0.4), tiles(idle=2)))


def firing_of(excitatory, inhibitory):
    return xr.Dataset(
        {
            "excitatory_hz": (("presentation", "excitatory_cell"), np.array(excitatory)),
            "inhibitory_hz": (("presentation", "inhibitory_cell"), np.array(inhibitory)),
        }
    )


def test_firing_rates_are_of_cells_that_respond():
    found = module.firing_rates(firing_of([[0.0, 8.0], [40.0, 0.0]], [np.arange(101.0)] * 2))
    assert (found.excitatory_mean, found.excitatory_most) == (24, 40)
    assert found.inhibitory_most == pytest.approx(99)
    assert math.isnan(module.firing_rates(firing_of([[0.0]], [[0.0]])).excitatory_most)
    with pytest.raises(InputError, match="no excitatory_hz: it is not of a spiking circuit"):
        module.firing_rates(answers(1))
