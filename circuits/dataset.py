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

if TYPE_CHECKING:
    import xarray as xr

    from circuits.base import Circuit
    from circuits.state import CircuitState

SETTLED_CHANGE = 1e-6
"""A presentation has settled when its last step moved it by less (see `state.relative_change`)."""

UNSETTLED_SHARE = 0.2
"""A run in which more than this share of presentations did not settle says so with a warning."""

DIMENSIONS = {
    "presentation": "presentation, counted from the circuit's first",
    "step": "step of a presentation, counted from 1",
    "snapshot": "presentations learned from when the weights were stored",
    "tile": "excitatory cell",
    "interneuron": "inhibitory cell",
    "readout": "readout cell",
    "input": "component of the lifted input",
    "coordinate": "component of a point",
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
    "recruited": "presentation that started a tile, -1 while it is idle",
    "points": "points that were presented",
    "labels": "label channel: -1, +1, or 0 when silent",
    "change": "relative change of h and u in the last step of a presentation",
    "covered": "whether any tile responded",
    "snapshot_presentation": "presentation of this run after which the weights were stored",
}


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
    """What happened in a run that ended in ``state``."""
    import xarray as xr

    count = len(stream.points)
    first = state.learned - count
    data: dict[str, Any] = {name: (("presentation", *SHAPES[name]), arrays[name]) for name in "huy"}
    data |= {
        name: (SHAPES[name], getattr(state, name).copy())
        for name in ("W", "b", "w", "V", "recruited")
    }
    data["points"] = (("presentation", "coordinate"), stream.points.copy())
    data["labels"] = (("presentation", "readout"), stream.labels.astype(np.int8))
    data["change"] = (("presentation",), arrays["change"])
    data["covered"] = (("presentation",), arrays["h"].any(axis=1))
    for name in stream.record:
        data[f"{name}_trace"] = (
            ("presentation", "step", *SHAPES[name]),
            arrays[f"{name}_trace"],
        )
    if stream.snapshot_every is not None:
        for name in ("W", "b", "w"):
            data[f"{name}_snapshots"] = (("snapshot", *SHAPES[name]), arrays[f"{name}_snapshots"])
        shown = np.arange(count)
        kept = shown[(first + shown + 1) % stream.snapshot_every == 0]
        data["snapshot_presentation"] = (("snapshot",), kept)
    attributes = {
        "engine": circuit.engine,
        "parameters": json.dumps(circuit.parameters.as_dict()),
        "lift": json.dumps(circuit.lift.as_dict()),
        "model": json.dumps(circuit.model.as_dict()),
        "model_changes": json.dumps(circuit.changes()),
        "alpha": circuit.alpha,
        "gain": "control" if circuit.gain is None else circuit.gain,
        "first_presentation": first,
        "unsettled_share": float((arrays["change"] > SETTLED_CHANGE).mean()),
        "uncovered_share": float((~data["covered"][1]).mean()),
        "lost_labels": _lost(stream.labels, arrays["h"]),
        "versions": json.dumps(versions()),
    }
    described = {
        name: (dims, values, _about(name, circuit)) for name, (dims, values) in data.items()
    }
    return xr.Dataset(described, _coordinates(data, first, circuit.dt_), attributes)


def _about(name: str, circuit: Circuit) -> dict[str, str]:
    """Long name and unit of a variable. Rates and weights are pure numbers."""
    stem, _, kind = name.partition("_") if name not in NAMES else (name, "", "")
    suffix = {"trace": ", after every step", "snapshots": ", along the way"}.get(kind, "")
    units = "units of the data" if name == "points" else "1"
    return {"long_name": NAMES[stem] + suffix, "units": units}


def _coordinates(data: dict[str, Any], first: int, dt: float) -> dict[str, Any]:
    """A coordinate for every dimension of a result, and the time of every step."""
    sizes = {
        dim: size
        for dims, values in data.values()
        for dim, size in zip(dims, values.shape, strict=True)
    }
    found: dict[str, Any] = {dim: np.arange(size) for dim, size in sizes.items()}
    found["presentation"] = first + found["presentation"]
    if "snapshot" in found:
        found["snapshot"] = first + 1 + data["snapshot_presentation"][1]
    times = {}
    if "step" in found:
        found["step"] = 1 + found["step"]
        about = {"units": "s", "long_name": "time since the presentation began"}
        times["time"] = ("step", dt * found["step"], about)
    return times | {
        dim: (dim, values, {"units": "1", "long_name": DIMENSIONS[dim]})
        for dim, values in found.items()
    }


def warn_if_unsettled(change: FloatArray, circuit: Circuit) -> None:
    """Warn, where a caller's caller was called, if much of what was presented had not settled."""
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
    """Warn, where a run was called, if much of it had not settled, or labels were lost."""
    warn_if_unsettled(arrays["change"], circuit)
    p, lost = circuit.parameters, _lost(labels, arrays["h"])
    if lost:
        warnings.warn(
            f"{lost} of {int(labels.any(axis=1).sum())} labels came with points that no tile "
            f"responded to, and taught nothing: raise tile_radius (now {p.tile_radius:g}) or "
            f"n_tiles (now {p.n_tiles}), or give labels later",
            LostLabelWarning,
            stacklevel=4,
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
