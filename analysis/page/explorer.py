"""What the page needs to settle on any recorded presentation again, by the circuit's own steps."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import xarray as xr

from analysis.page.layout import scripted
from analysis.page.reading import EXPLORED, Result
from analysis.selection import first_repeat
from analysis.theory import last_size_of, lift_of, parameters_of, weights_before
from analysis.tiles_in_use import in_use_at, tiles_in_order
from circuits.errors import InputError
from circuits.lift import SphereLift
from circuits.parameters import CircuitParameters
from circuits.storage import results

EXPLORER_BYTES = 6 * 2**20
"""What the explorer's arrays may take before base64; a longer stream is thinned out evenly."""


def explorer_data(result: Result) -> dict[str, Any]:
    """The explorer's data: names and numbers, and arrays as text.

    Presentation t starts from the weights that the snapshot after t - 1 holds, and the tile that it
    recruited if it did, so the first one cannot be shown. All arrays are float64: float32 would
    cost the check five digits.
    """
    with results.opened(result.path) as stored:
        parameters, lift = parameters_of(first_repeat(stored)), lift_of(stored)
        if stored.sizes["input"] != lift.n_inputs:
            raise InputError(f"its lift makes {lift.n_inputs} inputs, not {stored.sizes['input']}")
    axes = [0, 2] if lift.n_coordinates == 3 else [0, min(1, lift.n_coordinates - 1)]
    with results.opened(result.path) as stored:
        dataset = first_repeat(stored)
        snapshots = _chosen_snapshots(dataset, parameters, lift)
        rows = dataset["snapshot_presentation"].values.astype(int)[snapshots] + 1
        arrays = _recorded(dataset, snapshots, rows, parameters.reset)
        arrays["x"] = lift(arrays.pop("points"))
        numbers = dataset["presentation"].values
        position = _along_stream(dataset, "position")
        last = dataset.assign(W=dataset["W_snapshots"].isel(snapshot=-1, drop=True))
        order = tiles_in_order(last, position, axes[0])
    every = result.complete and len(rows) == len(numbers) - 1
    return {
        "about": _about(result, len(rows), len(numbers), every, parameters.reset),
        "engine": result.text("engine"),
        "lastPresentation": int(numbers[-1]),
        "moments": numbers[rows].tolist(),
        "circuit": scripted(parameters, lift),
        "axes": axes,
        "order": order.tolist(),
        "alongManifold": position is not None,
        "arrays": {name: _encoded(value) for name, value in arrays.items()},
    }


def _chosen_snapshots(dataset: xr.Dataset, parameters: CircuitParameters, lift: SphereLift) -> Any:
    """Snapshots that a presentation follows; as many, evenly, as the page has room for."""
    after = dataset["snapshot_presentation"].values.astype(int)
    rows = np.flatnonzero(after + 1 < dataset.sizes["presentation"])
    weights = sum(dataset[name].size // dataset.sizes["snapshot"] for name in EXPLORED[-3:])
    rates = 3 * parameters.n_tiles + 2 * parameters.n_interneurons + lift.n_inputs + 4
    stride = max(1, math.ceil(rows.size * 8 * (weights + rates) / EXPLORER_BYTES))
    return rows[::stride]


def _recorded(dataset: xr.Dataset, snapshots: Any, rows: Any, reset: bool) -> dict[str, Any]:
    """Weights before, and points, labels and rates of, the presentations in these rows."""
    needed = ["points", "snapshot_presentation", "W_snapshots", "b_snapshots", "w_snapshots"]
    needed += [name for name in ("recruited",) if name in dataset]
    needed += [] if reset else ["h", "u"]
    run = dataset[needed].isel(snapshot=snapshots).load()
    weights = [weights_before(run, int(t)) for t in rows]
    arrays = {name: np.array([each[name] for each in weights]) for name in ("W", "b", "w")}
    numbers = dataset["presentation"].values[rows]
    arrays["inUse"] = np.array(
        [in_use_at(run, int(n), b) for n, b in zip(numbers, arrays["b"], strict=True)]
    )
    arrays |= {
        name: dataset[name].isel(presentation=rows).values
        for name in ("points", "labels", "h", "u", "y")
    }
    if not reset:
        # V is only recorded at the end of a run; where a presentation settled it is u h^T.
        arrays["hBefore"] = dataset["h"].isel(presentation=rows - 1).values
        arrays["uBefore"] = dataset["u"].isel(presentation=rows - 1).values
        arrays["lastSize"] = np.array([last_size_of(run, int(t)) for t in rows])
    classes = _along_stream(dataset, "classes")
    if classes is not None:
        arrays["classes"] = classes[rows]
    return arrays


def _along_stream(dataset: xr.Dataset, name: str) -> Any:
    """A number for every presentation, if the result holds such a thing."""
    if name not in dataset or dataset[name].dims != ("presentation",):
        return None
    values = dataset[name].values
    return values if values.dtype.kind in "biuf" else None


def _about(result: Result, shown: int, count: int, every: bool, reset: bool) -> str:
    which = "every presentation" if every else f"{shown} presentations"
    text = (
        f"{result.name} ({result.experiment}, {result.text('engine')} engine): {which} of {count} "
        "after the first, each settled again in this page from the recorded weights, by the "
        "circuit's own steps in double precision."
    )
    if not reset:
        text += (
            " This circuit carries its state over from one presentation to the next; V, which is "
            "not recorded, is taken to have settled."
        )
    return text


def _encoded(array: Any) -> str:
    """Little-endian float64 in base64: what a Float64Array reads."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()
