"""A run as an `xarray.Dataset`: the same variables and attributes from every engine."""

from __future__ import annotations

import json
import platform
import warnings
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.errors import LostLabelWarning, UnsettledWarning
from circuits.lift import FloatArray
from circuits.parts import perturbations as perturbing

if TYPE_CHECKING:
    import xarray as xr

    from circuits.base import Circuit
    from circuits.state import CircuitState

SETTLED_CHANGE = 1e-6
"""A presentation has settled if its `state.relative_change` in the last step is smaller."""

UNSETTLED_SHARE = 0.2
"""Warn if more than this share of presentations did not settle."""

DIMENSIONS = {
    "presentation": "presentation, counted from the circuit's first",
    "step": "step of a presentation, counted from 1",
    "snapshot": "presentations learned from when the weights were stored",
    "tile": "excitatory cell",
    "interneuron": "inhibitory cell",
    "readout": "readout cell",
    "input": "component of the lifted input",
    "coordinate": "component of a point",
    "excitatory_cell": "spiking cell of a tile, tile by tile",
    "inhibitory_cell": "spiking cell of an interneuron, one interneuron after the other",
    "readout_cell": "spiking cell of a readout, one readout after the other",
    "excitatory_spike": "spike of an excitatory cell, in the order of time",
    "inhibitory_spike": "spike of an inhibitory cell, in the order of time",
    "readout_spike": "spike of a readout cell, in the order of time",
}
"""What the dimensions of a result count."""

SHAPES = {
    "h": ("tile",),
    "u": ("interneuron",),
    "y": ("readout",),
    "W": ("tile", "input"),
    "b": ("tile",),
    "w": ("readout", "tile"),
    "V": ("interneuron", "tile"),
    "recruited": ("tile",),
}
"""Dimensions of the circuit's variables."""

NAMES = {
    "h": "excitatory rates",
    "u": "inhibitory rates",
    "y": "readout rates",
    "W": "feed-forward synapses",
    "b": "bias",
    "w": "readout synapses",
    "V": "lateral synapses",
    "recruited": "presentation that started a tile, -1 while it is idle, -2 once it is removed",
    "points": "points that were presented",
    "labels": "label channel: -1, +1, or 0 when silent",
    "change": "relative change of h and u in the last step of a presentation",
    "covered": "whether any tile responded",
    "snapshot_presentation": "presentation of this run after which the weights were stored",
    "gain": "what the drive of the spiking cells was multiplied by",
    "excitatory_hz": "firing rate of excitatory cells in the window",
    "inhibitory_hz": "firing rate of inhibitory cells in the window",
    "readout_hz": "firing rate of readout cells in the window, negative for the OFF side",
}

SPIKE_COLUMNS = {
    "time": "time since the circuit began",
    "cell": "cell that fired",
    "presentation": "presentation, counted from the circuit's first",
    "step": "step of the presentation, counted from 1",
}
"""What is stored of each spike."""

WHEN = {"trace": ", after every step", "snapshots": ", along the way"}
"""Ends of the long names of traces and snapshots."""

UNITS = {"points": "units of the data", "hz": "Hz", "time": "s"}
"""Units of variables by the last word of their names. Rates and weights are pure numbers."""


@dataclass(frozen=True)
class Stream:
    """What was presented, and what was asked for."""

    points: FloatArray
    labels: FloatArray
    record: tuple[str, ...]
    snapshot_every: int | None


def make_dataset(
    circuit: Circuit, stream: Stream, arrays: dict[str, FloatArray], state: CircuitState
) -> xr.Dataset:
    """The result of a run that ended in ``state``."""
    import xarray as xr

    count = len(stream.points)
    first = state.learned - count
    data: dict[str, Any] = {name: (("presentation", *SHAPES[name]), arrays[name]) for name in "huy"}
    for name in ("W", "b", "w", "V", "recruited"):
        data[name] = (SHAPES[name], getattr(state, name).copy())
    data["points"] = (("presentation", "coordinate"), stream.points.copy())
    data["labels"] = (("presentation", "readout"), stream.labels.astype(np.int8))
    data["change"] = (("presentation",), arrays["change"])
    data["covered"] = (("presentation",), arrays["h"].any(axis=1))
    for name in stream.record:
        if name != "spikes":
            trace = f"{name}_trace"
            data[trace] = (("presentation", "step", *SHAPES[name]), arrays[trace])
    if stream.snapshot_every is not None:
        for name in ("W", "b", "w"):
            data[f"{name}_snapshots"] = (("snapshot", *SHAPES[name]), arrays[f"{name}_snapshots"])
        learned = 1 + np.arange(first, first + count)
        kept = np.flatnonzero(learned % stream.snapshot_every == 0)
        data["snapshot_presentation"] = (("snapshot",), kept)
    data |= _spiking(arrays)
    attributes = circuit.attributes() | {
        "engine": circuit.engine,
        "parameters": json.dumps(circuit.parameters.as_dict()),
        "lift": json.dumps(circuit.lift.as_dict()),
        "model": json.dumps(circuit.model.as_dict()),
        "model_changes": json.dumps(circuit.changes()),
        "perturbations": json.dumps(perturbing.described(circuit.perturbations)),
        "alpha": circuit.alpha,
        "gain": "control" if circuit.gain is None else circuit.gain,
        "first_presentation": first,
        "unsettled_share": float((arrays["change"] > SETTLED_CHANGE).mean()),
        "uncovered_share": float((~data["covered"][1]).mean()),
        "lost_labels": _lost(stream.labels, arrays["h"]),
        "versions": json.dumps(versions()),
    }
    described = {name: (dims, values, _about(name)) for name, (dims, values) in data.items()}
    return xr.Dataset(described, _coordinates(data, first, circuit.dt_), attributes)


def _spiking(arrays: dict[str, FloatArray]) -> dict[str, Any]:
    """What a spiking circuit has besides, with its dimensions."""
    dimensions: dict[str, tuple[str, ...]] = {"gain": ("presentation",)}
    for group in ("excitatory", "inhibitory", "readout"):
        dimensions[f"{group}_hz"] = ("presentation", f"{group}_cell")
        dimensions |= {f"{group}_spike_{column}": (f"{group}_spike",) for column in SPIKE_COLUMNS}
    return {name: (dims, arrays[name]) for name, dims in dimensions.items() if name in arrays}


def _about(name: str) -> dict[str, str]:
    """Long name and unit of a variable."""
    group, _, column = name.partition("_spike_")
    stem, _, last = name.rpartition("_")
    if column:
        long_name = f"{group} spikes: {SPIKE_COLUMNS[column]}"
    else:
        long_name = NAMES[name] if name in NAMES else NAMES[stem] + WHEN[last]
    return {"long_name": long_name, "units": UNITS.get(last, "1")}


def _coordinates(data: dict[str, Any], first: int, dt: float) -> dict[str, Any]:
    """A coordinate for every dimension of a result, and the time of every step."""
    found = {
        dim: np.arange(size)
        for dims, values in data.values()
        for dim, size in zip(dims, values.shape, strict=True)
    }
    found["presentation"] += first
    if "snapshot" in found:
        found["snapshot"] = first + 1 + data["snapshot_presentation"][1]
    times = {}
    if "step" in found:
        found["step"] += 1
        about = {"units": "s", "long_name": "time since the presentation began"}
        times["time"] = ("step", dt * found["step"], about)
    return times | {
        dim: (dim, values, {"units": "1", "long_name": DIMENSIONS[dim]})
        for dim, values in found.items()
    }


def warn_if_unsettled(change: FloatArray, circuit: Circuit) -> None:
    """Warn, where a caller's caller was called, if many presentations had not settled."""
    if perturbing.moves_rates(circuit):  # rates do not settle under noise
        return
    unsettled = int((change > SETTLED_CHANGE).sum())
    if unsettled > UNSETTLED_SHARE * len(change):
        warnings.warn(
            f"{unsettled} of {len(change)} presentations ({unsettled / len(change):.0%}) were "
            f"still moving at their last step (relative change above {SETTLED_CHANGE:g}): raise "
            f"steps_per_presentation (now {circuit.parameters.steps_per_presentation}) or change "
            "tau_h, tau_u, tau_V",
            UnsettledWarning,
            stacklevel=4,
        )


def _lost(labels: FloatArray, h: FloatArray) -> int:
    """How many labels came with points that no tile responded to."""
    return int((labels.any(axis=1) & ~h.any(axis=1)).sum())


def warn_of_run(labels: FloatArray, arrays: dict[str, FloatArray], circuit: Circuit) -> None:
    """Warn, where a run was called, if it had not settled or labels were lost."""
    warn_if_unsettled(arrays["change"], circuit)
    p, lost = circuit.parameters, _lost(labels, arrays["h"])
    if lost:
        warnings.warn(
            f"{lost} of {int(labels.any(axis=1).sum())} labels came with points that no tile "
            f"responded to, and taught nothing: raise tile_radius (now {p.tile_radius:g}) or "
            f"n_tiles (now {p.n_tiles}), or give labels later",
            LostLabelWarning,
            stacklevel=3,
        )


@lru_cache
def versions() -> dict[str, str]:
    """Versions of what a result depends on, by name."""
    found = {"python": platform.python_version()}
    for name in ("manifold-circuit", "brian2", "numpy", "scipy", "xarray"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
