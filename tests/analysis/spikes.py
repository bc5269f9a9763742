"""Results with spikes to draw: recorded ones, and such as are known spike by spike."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from circuits import CircuitParameters, SphereLift
from circuits.dataset import SPIKE_COLUMNS
from circuits.spiking.circuit import SpikingCircuit
from circuits.spiking.parameters import SpikingParameters
from circuits.storage import results
from simulations.experiments.two_moons import Settings, annotate, make_stream
from tests.conftest import small_circuit

SHORT = {"presentation": "120 ms", "window": "60 ms", "readout_cells": 3}
"""As short as spikes still count."""


def recorded(path, **changes) -> xr.Dataset:
    """Two moons shown to spiking cells, with all that can be recorded; it has been on disk."""
    parameters = small_circuit(n_tiles=12, n_interneurons=2, tile_radius=0.8)
    stream = make_stream(Settings(n_points=10, label_after=3), 3, parameters)
    spiking = SpikingParameters(**SHORT | changes)
    circuit = SpikingCircuit(stream.parameters, stream.lift, "numpy", spiking=spiking)
    record = ("spikes", "h", "u", "V", "y")
    found = circuit.run(stream.points, stream.labels, record=record, snapshot_every=1)
    return results.load(results.save(annotate(found, stream, 3), path))


def with_spikes(run: xr.Dataset, group: str, spikes) -> xr.Dataset:
    """A result whose spikes of a group are these: (cell, presentation, step) each."""
    names = [f"{group}_spike_{name}" for name in ("cell", "presentation", "step")]
    table = np.array(spikes, dtype=np.int64).reshape(-1, 3)
    old = [f"{group}_spike_{name}" for name in SPIKE_COLUMNS if f"{group}_spike_{name}" in run]
    columns = {name: ((f"{group}_spike",), table[:, at]) for at, name in enumerate(names)}
    return run.drop_vars([*old, f"{group}_spike"], errors="ignore").assign(columns)


def made(cells=1, presentations=4, first=0, spikes=()) -> xr.Dataset:
    """Four tiles on a line, of which the last is idle and the others lie at 0.5, -0.5 and 0; two
    interneurons and a readout of two cells. Steps of 1 ms, 10 of them, 6 in the window."""
    parameters = CircuitParameters(n_tiles=4, n_interneurons=2)
    spiking = SpikingParameters(
        cells=cells, readout_cells=2, dt="1 ms", presentation="10 ms", window="6 ms", rate_h="50 Hz"
    )
    lift = SphereLift(center=(0.0,), radius=2.0)
    places = np.array([[0.5], [-0.5], [0.0]])
    points = np.linspace(-0.5, 0.5, presentations)[::-1, None]
    run = xr.Dataset(
        {
            "W": (("tile", "input"), np.vstack([lift(places), np.zeros((1, 2))])),
            "recruited": (("tile",), [0, 0, 0, -1]),
            "points": (("presentation", "coordinate"), points),
            "position": (("presentation",), -points[:, 0]),
            "labels": (("presentation", "readout"), np.zeros((presentations, 1))),
            "h": (("presentation", "tile"), np.tile([1.0, 0, 0, 0], (presentations, 1))),
            "y": (("presentation", "readout"), np.zeros((presentations, 1))),
            "excitatory_hz": (("presentation", "excitatory_cell"), np.zeros((4, 4 * cells))),
            "inhibitory_hz": (("presentation", "inhibitory_cell"), np.zeros((4, 2 * cells))),
            "readout_hz": (("presentation", "readout_cell"), np.zeros((4, 2))),
        },
        coords={"presentation": first + np.arange(presentations)},
        attrs={
            "parameters": json.dumps(parameters.as_dict()),
            "spiking": json.dumps(spiking.as_dict()),
            "lift": json.dumps(lift.as_dict()),
            "dt": spiking.dt_,
        },
    )
    for group in ("excitatory", "inhibitory", "readout"):
        run = with_spikes(run, group, dict(spikes).get(group, []))
    return run
