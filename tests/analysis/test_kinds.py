"""A result offers the plots it can show, and no others."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from analysis import kinds
from circuits import CircuitParameters, ReferenceCircuit, SphereLift
from circuits.errors import InputError
from tests.conftest import moons

mpl.use("Agg")
LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


def result(**options):
    points, _, labels = moons(60, after=20)
    circuit = ReferenceCircuit(CircuitParameters(n_tiles=10, tile_radius=0.6), LIFT)
    return circuit.run(points, labels, **options)


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        ({}, {"raster", "stability"}),
        ({"snapshot_every": 1}, {"raster", "stability", "learning", "tiles", "animation"}),
        ({"record": ("h", "u")}, {"raster", "stability", "phase"}),
        (
            {"record": ("h", "u", "V", "y"), "snapshot_every": 1},
            {"raster", "stability", "phase", "settling", "settling-error", "learning", "tiles"}
            | {"animation"},
        ),
    ],
)
def test_offers_follow_what_was_recorded(options, offered):
    run = result(**options)
    assert set(kinds.offered(run)) == offered
    for name in offered - {"stability", "animation"}:
        figure = kinds.draw(run, name)
        assert figure.axes
        plt.close(figure)


def test_refusals_say_what_is_missing(tmp_path):
    run = result()
    with pytest.raises(InputError, match=r"settling needs h_trace.*it can show raster, stability"):
        kinds.draw(run, "settling")
    with pytest.raises(InputError, match="no plot 'pie': use fig1"):
        kinds.draw(run, "pie")
    with pytest.raises(InputError, match="animation needs W_snapshots"):
        kinds.animate(run, tmp_path / "tiles")
