"""Two moons from two labels: the paper's Fig. 2."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr
from pydantic import Field

from circuits.lift import FloatArray, SphereLift
from circuits.measures import accuracy
from circuits.parameters import CircuitParameters
from circuits.results import code_revision
from simulations.baselines import label_propagation, label_spreading
from simulations.datasets import (
    MOONS_LIFT,
    Classes,
    first_of_each_class,
    position_on_moons,
    two_moons,
)
from simulations.experiments import experiment as base


class Settings(base.Settings):
    """The data and its labels."""

    n_points: int = Field(default=2000, ge=10)
    noise: float = Field(default=0.05, ge=0)
    label_after: int = Field(default=200, ge=0)
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
    settings: Settings


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
        settings=json.dumps(stream.settings.model_dump(mode="json")),
        code=code_revision(),
    )


class TwoMoons(base.Experiment[Settings]):
    """Two labels, one pass."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters()
    lift: ClassVar = MOONS_LIFT
    repeats: ClassVar = 20
    quick_repeats: ClassVar = 3

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """The run itself, with snapshots of the weights after every presentation."""
        stream = make_stream(config.settings, seed, config.parameters)
        circuit = base.make_circuit(config.engine, config.parameters, stream.lift)
        run = circuit.run(stream.points, stream.labels, snapshot_every=1)
        run = annotate(run, stream, seed)
        report("baselines")
        shown = stream.labels != 0
        offline = {
            name: accuracy(
                method(stream.points, stream.labels, max_iter=200).scores[~shown],
                stream.classes[~shown],
            )
            for name, method in (
                ("label_spreading", label_spreading),
                ("label_propagation", label_propagation),
            )
        }
        y, width = run["y"].to_numpy()[:, 0], 100
        windows = [slice(i, i + width) for i in range(0, len(y) - width + 1, width)]
        growth = [accuracy(y[part], stream.classes[part]) for part in windows]
        return run.assign(
            offline_accuracy=("offline_method", list(offline.values())),
            accuracy_over_time=("window", growth),
        ).assign_coords(offline_method=list(offline), window=[part.stop for part in windows])

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Zero before labels, right afterwards, weights of one sign per moon."""
        before, right, signs = [], [], []
        half = merged.sizes["presentation"] // 2
        for _, run in merged.groupby("repeat"):
            one = run.squeeze("repeat", drop=True)
            y, classes = one["y"].to_numpy()[:, 0], one["classes"].to_numpy()
            first = np.flatnonzero(one["labels"].to_numpy()[:, 0])[0]
            before.append(np.abs(y[:first]).max(initial=0))
            right.append(accuracy(y[half:], classes[half:]))
            # A tile belongs to the moon whose points it responds to most.
            mass = classes @ one["h"].to_numpy()
            w, alive = one["w"].to_numpy()[0], mass != 0
            signs.append(np.mean(np.sign(w[alive]) == np.sign(mass[alive])))
        growth = merged["accuracy_over_time"]
        label_after = json.loads(merged.attrs["settings"])["label_after"]
        after = growth.sel(window=growth["window"] > label_after).isel(window=slice(0, 4))
        grows = ", ".join(
            f"{int(end)}: {base.spread(after.sel(window=end))}"
            for end in after["window"].to_numpy()
        )
        offline = merged["offline_accuracy"]
        others = ", ".join(
            f"{name} {base.spread(offline.sel(offline_method=name))}"
            for name in offline["offline_method"].to_numpy()
        )
        return [
            base.Claim(
                "the readout is silent until the first label",
                "the output is zero until labeled points arrive",
                f"largest |y| before the first label {max(before):.1e}",
                f"largest |y| {max(before):.1g}, {base.seeds(before)}",
                # True by construction, whatever the size.
                self.decide(merged, max(before) == 0, repeats=1, n_points=1),
            ),
            base.Claim(
                "two labels suffice",
                "the responses stabilize to correct values: 1 for green, -1 for blue",
                f"accuracy on the second half {base.spread(right)}, worst {min(right):.3f} of "
                f"{len(right)} seeds; in the hundred presentations up to {grows} (offline, all "
                f"points: {others})",
                f"{base.spread(right)} accuracy, {base.seeds(right)}",
                # About one seed in forty ends below: a few repeats would not show it.
                self.decide(merged, min(right) >= 0.99),
            ),
            base.Claim(
                "weights take the sign of their moon",
                "all synapses corresponding to 'green moon' get positive weights and, all 'blue' "
                "ones - negative weights",
                f"share of tiles with the sign of their moon {base.spread(signs)}, "
                f"worst {min(signs):.3f}",
                f"{base.spread(signs)} of tiles, {base.seeds(signs)}",
                # So in all of 40 seeds: a few at full length decide.
                self.decide(merged, min(signs) == 1, repeats=self.quick_repeats),
            ),
        ]
