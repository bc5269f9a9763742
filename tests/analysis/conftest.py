"""A recorded result to draw, and a clean slate for every picture."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pytest

from circuits import ReferenceCircuit, results
from simulations.experiments.two_moons import Settings, annotate, make_stream
from tests.analysis import spikes
from tests.analysis.drawing import CONSTANT, SMALL, N


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def recorded(parameters, path):
    stream = make_stream(Settings(n_points=N, label_after=20), 3, parameters)
    circuit = ReferenceCircuit(stream.parameters, stream.lift)
    found = circuit.run(stream.points, stream.labels, record=("h", "u", "V", "y"), snapshot_every=1)
    return results.load(results.save(annotate(found, stream, 3), path))


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A recorded result of two moons that has been on disk, as the command line finds it."""
    return recorded(SMALL, tmp_path_factory.mktemp("analysis") / "run.nc")


@pytest.fixture(scope="session")
def constant(tmp_path_factory):
    """The same with a constant gain, and with tiles on the first points."""
    return recorded(SMALL.replace(**CONSTANT), tmp_path_factory.mktemp("analysis") / "run.nc")


@pytest.fixture(params=["run", "constant"])
def either(request):
    """A recorded result under gain control with recruited tiles, then one without both."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def later(run):
    """The same result as if the circuit had learned from 500 presentations before."""
    return (
        run.assign_coords(presentation=run["presentation"] + 500, snapshot=run["snapshot"] + 500)
        .assign(recruited=run["recruited"].where(run["recruited"] < 0, run["recruited"] + 500))
        .assign_attrs(first_presentation=500)
    )


@pytest.fixture(scope="session")
def spiking(tmp_path_factory):
    """A recorded result of spiking cells, one for every unit."""
    return spikes.recorded(tmp_path_factory.mktemp("spiking") / "run.nc")
