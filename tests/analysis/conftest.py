"""A recorded result to draw, and a clean slate for every picture."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pytest

from circuits import ReferenceCircuit, results
from simulations.experiments.two_moons import Settings, annotate, make_stream
from tests.analysis.drawing import SMALL, N


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A recorded result of two moons that has been on disk, as the command line finds it."""
    stream = make_stream(Settings(n_points=N, label_after=20), 3, SMALL)
    circuit = ReferenceCircuit(stream.parameters, stream.lift)
    found = circuit.run(stream.points, stream.labels, record=("h", "u", "V", "y"), snapshot_every=1)
    path = tmp_path_factory.mktemp("analysis") / "run.nc"
    return results.load(results.save(annotate(found, stream, 3), path))


@pytest.fixture(scope="session")
def later(run):
    """The same result as if the circuit had learned from 500 presentations before."""
    return run.assign_coords(
        presentation=run["presentation"] + 500, snapshot=run["snapshot"] + 500
    ).assign_attrs(first_presentation=500)
