"""Two moons from two labels: the paper's Fig. 2."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

import xarray as xr

from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from simulations.datasets import (
    MOONS_LIFT,
    Classes,
    first_of_each_class,
    position_on_moons,
    two_moons,
)
from simulations.results import code_revision


@dataclass(frozen=True)
class Settings:
    """What defines the experiment besides the circuit's parameters."""

    n_points: int = 2000
    noise: float = 0.05
    label_after: int = 200
    """Presentations before the first label: by then the tiles have separated the moons."""


@dataclass(frozen=True)
class Stream:
    """A stream with all it takes to present it."""

    parameters: CircuitParameters
    lift: SphereLift
    points: FloatArray
    classes: Classes
    labels: Classes
    position: FloatArray
    settings: Settings = field(default_factory=Settings)


def make_stream(
    settings: Settings, seed: int, parameters: CircuitParameters | None = None
) -> Stream:
    """Points in random order and one label per class."""
    points, classes = two_moons(settings.n_points, settings.noise, seed)
    return Stream(
        parameters or CircuitParameters(),
        MOONS_LIFT,
        points,
        classes,
        first_of_each_class(classes, settings.label_after),
        position_on_moons(points),
        settings,
    )


def annotate(run: xr.Dataset, stream: Stream, seed: int) -> xr.Dataset:
    """Add to a run what its stream knows: true classes, places along the moons, provenance."""
    return run.assign(
        classes=("presentation", stream.classes), position=("presentation", stream.position)
    ).assign_attrs(
        experiment="two-moons",
        seed=seed,
        settings=json.dumps(asdict(stream.settings)),
        code=code_revision(),
    )
