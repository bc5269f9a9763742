"""A circuit on disk: all it takes to go on where it stopped, or to predict.

The file is NetCDF: the weights and rates as variables with named dimensions, everything else as
attributes in JSON. ``format_version`` says how to read it; files of earlier versions stay readable.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits import results
from circuits.dataset import NAMES, SHAPES, versions
from circuits.errors import CircuitError, EngineError, shown_path
from circuits.files import FileError
from circuits.lift import SphereLift
from circuits.model import RULES, CircuitModel
from circuits.parameters import CircuitParameters
from circuits.rules import Rule
from circuits.state import CircuitState

if TYPE_CHECKING:
    import xarray as xr

    from circuits.base import Circuit

KIND = "circuit"
FORMAT_VERSION = 1
ARRAYS = ("W", "b", "w", "h", "u", "V")
EXTRA, SET = "extra.", "set."
"""Prefixes of variables that a model adds, and of values that a user has set on the network."""


def save(circuit: Circuit, path: Path, **attributes: str) -> Path:
    """Write a circuit, with attributes besides those it needs; only over an earlier one."""
    import xarray as xr

    results.make_way(path, KIND)
    state, values_set = circuit.state, getattr(circuit, "values_set", {})
    data: dict[str, Any] = {
        name: (SHAPES[name], getattr(state, name), {"long_name": NAMES[name], "units": "1"})
        for name in ARRAYS
    }
    for prefix, values in ((EXTRA, state.extra), (SET, values_set)):
        for name, value in values.items():
            array = np.asarray(value)
            data[prefix + name] = ([f"{prefix}{name}.{i}" for i in range(array.ndim)], array)
    needed = {
        "kind": KIND,
        "format_version": FORMAT_VERSION,
        "engine": circuit.engine,
        "parameters": json.dumps(circuit.parameters.as_dict()),
        "lift": json.dumps(circuit.lift.as_dict()),
        "model": json.dumps(_model_as_dict(circuit.model)),
        "learned": state.learned,
        "shown": state.shown,
        "versions": json.dumps(versions()),
        "code": results.code_revision(),
    }
    return results.save(xr.Dataset(data, attrs=attributes | needed), path)


class Kept:
    """What a file says of a circuit."""

    def __init__(self, path: Path) -> None:
        found = results.load(path)
        where = shown_path(path)
        if found.attrs.get("kind") != KIND:
            raise FileError(f"{where} does not hold a circuit: 'circuit.save' makes such a file")
        version = found.attrs.get("format_version")
        if version != FORMAT_VERSION:
            raise FileError(
                f"{where} is of format {version}, and this is manifold-circuit "
                f"{versions()['manifold-circuit']}, which reads {FORMAT_VERSION}: use a later one"
            )
        try:
            self.parameters = CircuitParameters(**json.loads(found.attrs["parameters"]))
            self.lift = SphereLift(**json.loads(found.attrs["lift"]))
            self.model = _model_from(json.loads(found.attrs["model"]))
            self.engine = str(found.attrs["engine"])
            self.state = CircuitState(
                **{name: found[name].to_numpy() for name in ARRAYS},
                learned=int(found.attrs["learned"]),
                shown=int(found.attrs["shown"]),
                extra=_with_prefix(found, EXTRA),
            )
            self.values_set = _with_prefix(found, SET)
            self.attributes = dict(found.attrs)
        except (CircuitError, KeyError, TypeError, ValueError) as error:
            raise FileError(f"{where} does not hold a whole circuit: {error}") from None


def _with_prefix(found: xr.Dataset, prefix: str) -> dict[str, Any]:
    return {
        str(name).removeprefix(prefix): values.to_numpy()
        for name, values in found.data_vars.items()
        if str(name).startswith(prefix)
    }


def _model_as_dict(model: CircuitModel) -> dict[str, Any]:
    """The model as JSON from which it can be made again; its NumPy functions are not in it."""
    described = model.as_dict()
    described["namespace"] = {
        name: _plain(name, value) for name, value in sorted(model.namespace.items())
    }
    return described


def _plain(name: str, value: Any) -> Any:
    if isinstance(getattr(value, "values", None), np.ndarray):
        raise EngineError(
            f"the TimedArray {name!r} in the model's namespace cannot be saved with the circuit"
        )
    dimensions = getattr(value, "dim", None)
    if dimensions is None:
        return float(value)
    return {"value": float(value), "exponents": [float(power) for power in dimensions._dims]}


def _model_from(described: dict[str, Any]) -> CircuitModel:
    """A model from its description: a rule that is the paper's has its NumPy function."""
    default = CircuitModel()
    values: dict[str, Any] = dict(described)
    for name in RULES:
        known = getattr(default, name)
        text = described[name]
        same = text is None or (known is not None and known.brian2 == text)
        values[name] = known if same else Rule(text)
    values["connections"] = {
        name: np.array([[mark == "1" for mark in row] for row in rows])
        for name, rows in described["connections"].items()
    }
    values["namespace"] = {name: _quantity(value) for name, value in described["namespace"].items()}
    return CircuitModel(**values)


def _quantity(value: Any) -> Any:
    if not isinstance(value, dict):
        return float(value)
    from circuits.brian import import_brian2

    import_brian2()
    from brian2 import Quantity, get_or_create_dimension

    return Quantity(value["value"], dim=get_or_create_dimension(value["exponents"]))
