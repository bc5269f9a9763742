"""The spiking twin beside the rate circuit and the closed form on one stream."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from circuits import (
    ManifoldCircuit,
    ReferenceCircuit,
    SpikingCircuit,
    SpikingParameters,
)
from circuits.dataset import versions
from circuits.lift import FloatArray
from circuits.storage import files, results
from simulations.comparison import first_points, labels_seen
from simulations.experiments.two_moons import Stream
from simulations.own_data import OwnStream

if TYPE_CHECKING:
    from analysis.likeness import Row

NAMES = ("spiking", "rate", "closed-form", "frozen")
"""Results that are saved: of learning from scratch, and with frozen weights."""

COLUMNS = ("spiking twin", "rate circuit", "closed form")


def compare_spiking(
    stream: OwnStream | Stream,
    engine: str,
    points: int,
    out: Path,
    spiking: SpikingParameters,
    seed: int = 0,
    source: Path | None = None,
) -> None:
    """Present the first ``points`` of a stream to all three; print, save and plot how they compare.

    ``seed`` is of the twin's cells; ``source`` is the file the stream is from, if it is from one.
    """
    shown, labels = first_points(stream, points)
    p, lift = stream.parameters, stream.lift
    twin = SpikingCircuit(p, lift, engine, spiking=spiking, seed=seed)
    rate, exact = ManifoldCircuit(p, lift, twin.engine), ReferenceCircuit(p, lift, settling="exact")
    files.require_folder(out)
    targets = [out / f"{name}.nc" for name in NAMES]
    for target in targets:
        results.make_way(target, "compare", source)
    runs = [one.run(shown, labels, progress=True) for one in (twin, rate, exact)]
    frozen = frozen_weights(twin, rate, exact, shown)
    for target, dataset in zip(targets, (*runs, frozen), strict=True):
        results.save(dataset.assign_attrs(kind="compare"), target)

    from analysis import likeness
    from analysis.style import save_figure

    print(
        f"{spiking.neuron} cells, {spiking.cells} per tile and interneuron"
        f"{', with noise' * (spiking.neuron == 'if' and spiking.sigma > 0)}, "
        f"{spiking.presentation_ * 1e3:g} ms per point, engine {twin.engine}"
    )
    covered = int(frozen["covered"].sum())
    title = f"all with the weights of the closed form, frozen: {covered} of {len(shown)} covered"
    print(table(title, likeness.frozen_rows(frozen)))
    title = f"each learning from scratch: {len(shown)} presentations"
    print(table(title, likeness.learning_rows(*runs)))
    print(labels_seen(labels, np.asarray(stream.labels, dtype=float)))
    drawn = save_figure(likeness.figure_twin(frozen, runs[0], runs[1]), out / "spiking")
    for file in (*targets, *drawn):
        print(f"wrote {file}")


def frozen_weights(
    twin: SpikingCircuit, rate: ManifoldCircuit, exact: ReferenceCircuit, points: FloatArray
) -> xr.Dataset:
    """Let all three answer to points with the weights that the closed form has learned.

    ``u_power`` is the sum of u^2/N over the twin's inhibitory cells, in their units; where rates
    are at the fixed point it is ``u_power_expected``, |[a]_+| times the gain less 1/G.
    """
    twin.state = rate.state = exact.state
    own, other, wanted = (one._respond(points, True) for one in (twin, rate, exact))
    s = twin.spiking
    covered = wanted["h"].any(axis=1)
    size = (wanted["u"] ** 2).sum(axis=1)  # in the closed form |u|^2 = |[a]_+|
    power = ((own["inhibitory_hz"] / s.rate_u_) ** 2).sum(axis=1) / s.cells
    expected = np.where(covered, size * own["gain"] - 1 / s.slope, math.nan)
    data: dict[str, Any] = {
        "points": (("presentation", "coordinate"), points),
        **{
            name: (("presentation", "tile"), found["h"])
            for name, found in (("h", wanted), ("h_rate", other), ("h_spiking", own))
        },
        **{
            f"{group}_hz": (("presentation", f"{group}_cell"), own[f"{group}_hz"])
            for group in ("excitatory", "inhibitory")
        },
        "covered": (("presentation",), covered),
        "gain": (("presentation",), own["gain"]),
        "u_power": (("presentation",), power),
        "u_power_expected": (("presentation",), expected),
    }
    about = twin.attributes() | {
        "engine": twin.engine,
        "parameters": json.dumps(twin.parameters.as_dict()),
        "lift": json.dumps(twin.lift.as_dict()),
        "versions": json.dumps(versions()),
        "code": results.code_revision(),
    }
    return xr.Dataset(data, attrs=about)


def table(title: str, rows: list[Row]) -> str:
    """Rows under a title and the names of their columns."""
    header = " " * 28 + "".join(f"{name:>14}" for name in COLUMNS)
    return "\n".join([title, header, *map(str, rows)])
