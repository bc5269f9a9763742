"""A recorded result to draw, and a clean slate for every picture."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from circuits import ReferenceCircuit
from circuits.storage import results
from simulations import sweep
from simulations.experiments import get_experiment
from simulations.experiments.two_moons import Settings, annotate, make_stream
from tests.analysis import spikes
from tests.analysis.drawing import CONSTANT, SMALL, N
from tests.simulations.small import TINY, simulate


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


class Experiments(dict):
    """Small results of experiments by name, simulated when first asked for: two reported repeats
    of each, and one for choosing. Only the first is simulated."""

    def __init__(self):
        self.runs: dict[str, list[xr.Dataset]] = {}

    def __missing__(self, name):
        run = a_twin() if name == "spiking-twin" else simulate(name)
        self.runs[name] = [run, varied(run, 1), varied(run, 10_000)]
        self[name] = sweep.merge(self.runs[name])
        return self[name]


def varied(run, seed):
    """A run whose fractions differ by some per cent, as another repeat's may."""
    rng = np.random.default_rng(seed)
    own = {
        name: values * rng.uniform(0.95, 1, values.shape)
        for name, values in run.data_vars.items()
        if values.dtype.kind == "f"
        and (values % 1 != 0).any()
        and (values.ndim or "accuracy" in name)  # other single numbers are settings
    }
    return run.assign(own).assign_attrs(seed=seed)


def a_twin():
    """A run of the spiking twin made up of random numbers: a real one compiles six programs.

    Errors fall with the number of cells and with time, so that the legends have room.
    """
    config = get_experiment("spiking-twin").config("exact", TINY["spiking-twin"])
    rng = np.random.default_rng(0)
    coords = {
        "regular": ["one cell", "four cells", "twice as long", "four times as long"],
        "escape": [1, 2],
        "V_rule": ["spikes", "freeze", "fade"],
        "mu": [5.0, 20.0],
    }
    dims = dict.fromkeys(("error", "direction_error", "bound"), ("regular",))
    dims |= dict.fromkeys(("escape_direction_error", "escape_bound"), ("escape",))
    dims |= dict.fromkeys(("accuracy", "rate_accuracy"), ())
    dims |= {"plain_accuracy": ("V_rule",), "board_error": ("mu",), "rate_board_error": ("mu",)}
    data = {
        name: (
            along,
            rng.uniform(0.4, 0.5) / (1 + np.arange(len(coords[along[0]])) if along else 1),
        )
        for name, along in dims.items()
    }
    attrs = {"experiment": "spiking-twin", "engine": "cpp_standalone", "seed": 0}
    attrs |= {"config": json.dumps(config.as_dict()), "code": "abc", "seconds": 1.0}
    return xr.Dataset(data, coords, attrs)


@pytest.fixture(scope="session")
def experiments():
    """Small merged results of experiments by name."""
    return Experiments()
