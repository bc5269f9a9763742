"""A circuit on disk: all it takes to go on where it stopped, or to predict.

The file is NetCDF: arrays of the state as variables with named dimensions, its counters as
attributes, and parameters, lift and model as attributes in JSON, with every default written out.
``format_version`` says how to read it; files of earlier versions stay readable.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.assembly.collection import checked_parts, part_from
from circuits.assembly.part import Part
from circuits.dataset import NAMES, SHAPES, versions
from circuits.errors import CircuitError, EngineError, InputError, ParameterError, shown, shown_path
from circuits.lift import SphereLift
from circuits.model import RULES, CircuitModel, Rule
from circuits.parameters import CircuitParameters
from circuits.parts import perturbations as perturbing
from circuits.spiking.parameters import SpikingParameters
from circuits.state import CircuitState
from circuits.storage import results
from circuits.storage.files import FileError

if TYPE_CHECKING:
    import xarray as xr

    from circuits.base import Circuit
    from circuits.circuit import ManifoldCircuit

KIND, ANSWERS = "circuit", "answers"
"""Kinds of files: a circuit, and what one has answered."""

FORMAT_VERSION = 3
"""Version of circuits with parts; circuits that are only perturbed have 2, all others 1."""

EXTRA, SET = "extra.", "set."
"""Prefixes of variables that a model adds, and of values that a user has set on the network."""


def save(circuit: Circuit, path: Any, attributes: Mapping[str, str]) -> Path:
    """Write a circuit, with attributes besides those it needs; only over an earlier one."""
    import xarray as xr

    target = _as_path(path)
    require_free(target)
    with circuit._turn:
        state, values_set = circuit.state, dict(getattr(circuit, "values_set", {}))
    fields = dict(vars(state))
    extra = {EXTRA + name: np.asarray(value) for name, value in fields.pop("extra").items()}
    extra |= {SET + name: np.asarray(value) for name, value in values_set.items()}
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    data: dict[str, Any] = {
        name: (SHAPES[name], value, {"long_name": NAMES[name], "units": "1"})
        for name, value in arrays.items()
    }
    data |= {
        name: (tuple(f"{name}.{axis}" for axis in range(value.ndim)), value)
        for name, value in extra.items()
    }
    needed = {
        "kind": KIND,
        "format_version": 3 if circuit.parts.users else 2 if circuit.perturbations else 1,
        "engine": circuit.engine,
        "parameters": json.dumps(circuit.parameters.as_dict()),
        "lift": json.dumps(circuit.lift.as_dict()),
        "model": json.dumps(_model_as_dict(circuit.given_model)),
        "versions": json.dumps(versions()),
        "code": results.code_revision(),
    }
    if circuit.perturbations:
        needed["perturbations"] = json.dumps(perturbing.described(circuit.perturbations))
    if circuit.parts.users:
        needed["parts"] = json.dumps(circuit.parts.described())
    needed |= circuit.attributes()
    needed |= {name: value for name, value in fields.items() if name not in arrays}
    for name, text in attributes.items():
        if name in needed or not isinstance(text, str):
            raise InputError(
                f"{name}={shown(text)} cannot be kept with a circuit: attributes are text, under "
                f"other names than {', '.join(needed)}"
            )
    return results.save(xr.Dataset(data, attrs={**attributes, **needed}), target)


def require_free(path: Path) -> None:
    """Refuse to write a circuit over anything but an earlier one."""
    if not results.is_free(path, KIND):
        raise FileError(
            f"{shown_path(path)} is there already and does not hold a circuit: give another name"
        )


def load_circuit(path: Any, engine: str = "auto") -> ManifoldCircuit:
    """The circuit that ``save`` wrote, on any engine of Brian2: a spiking one if it was spiking."""
    from circuits.circuit import ManifoldCircuit
    from circuits.spiking.circuit import SpikingCircuit

    spiking = Kept(path).is_spiking
    return SpikingCircuit.load(path, engine) if spiking else ManifoldCircuit.load(path, engine)


class Kept:
    """What a file says of a circuit."""

    def __init__(self, path: Any) -> None:
        self.path = _as_path(path)
        found = results.load(self.path)
        self._require_circuit(found)
        with self._whole():
            self.parameters = CircuitParameters(**json.loads(found.attrs["parameters"]))
            self.lift = SphereLift(**json.loads(found.attrs["lift"]))
            self.model = _model_from(json.loads(found.attrs["model"]))
            self.perturbations = tuple(
                perturbing.perturbation_from(values)
                for values in json.loads(found.attrs.get("perturbations", "[]"))
            )
            self._parts = json.loads(found.attrs.get("parts", "[]"))
            self.model.check(self.parameters, self.lift.n_inputs)
            self.state = _state_from(found)
            self.values_set = _with_prefix(found, SET)
            self.attributes = dict(found.attrs)
            self.is_spiking = "spiking" in found.attrs
            self.spiking = SpikingParameters(**json.loads(found.attrs.get("spiking", "{}")))
            self.seed = int(found.attrs.get("spiking_seed", 0))

    def _require_circuit(self, found: xr.Dataset) -> None:
        where = shown_path(self.path)
        if found.attrs.get("kind") != KIND:
            is_run = "W" in found and "parameters" in found.attrs
            what = "the result of a run, not a circuit" if is_run else "no circuit"
            raise FileError(
                f"{where} holds {what}: 'circuit.save' writes a circuit, and 'run --data' and "
                "'demo' write theirs beside their result, as NAME-circuit.nc"
            )
        version = found.attrs.get("format_version")
        if not isinstance(version, int | np.integer) or version < 1:
            raise FileError(f"{where} does not hold a whole circuit: its format is {version!r}")
        if version > FORMAT_VERSION:
            raise FileError(
                f"{where} is of format {version}, and this manifold-circuit "
                f"({versions()['manifold-circuit']}) reads up to {FORMAT_VERSION}: use a later one"
            )

    def parts_or(self, given: Iterable[Part] | None) -> tuple[Part, ...]:
        """The parts that were saved, or the same ones as they were given."""
        if given is None:
            with self._whole():
                return tuple(part_from(values) for values in self._parts)
        parts = checked_parts(given)
        if [part.described() for part in parts] != self._parts:
            names = ", ".join(values["name"] for values in self._parts) or "none"
            raise ParameterError(
                f"{shown_path(self.path)} was saved with other parts ({names}): give those, or "
                "leave parts= out"
            )
        return parts

    def make(
        self,
        kind: Any,
        *engine: str,
        model: CircuitModel | None = None,
        parts: Iterable[Part] | None = None,
        **options: Any,
    ) -> Any:
        """The circuit that was kept, of a kind that can have a model, perturbations and parts."""
        model = self.model if model is None else model
        options |= {"perturbations": self.perturbations, "parts": self.parts_or(parts)}
        return self.restored(kind(self.parameters, self.lift, *engine, model=model, **options))

    def restored(self, circuit: Any) -> Any:
        """The circuit, in the state that was kept and with the values that were set."""
        if self.values_set:
            circuit._engine.values_set = self.values_set
        with self._whole():
            circuit.state = self.state
        return circuit

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Around reading: any error becomes one sentence that names the file."""
        try:
            yield
        except Exception as error:  # whatever a file of any content leads to
            reason = str(error).partition("\n")[0][:300]
            if isinstance(error, KeyError):
                reason = f"there is no {reason}"
            elif not isinstance(error, CircuitError):
                reason = f"{type(error).__name__}: {reason}"
            raise FileError(
                f"{shown_path(self.path)} does not hold a whole circuit ({reason})"
            ) from None


def _as_path(path: Any) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"{shown(path)} is not the name of a file") from None


def _state_from(found: xr.Dataset) -> CircuitState:
    values: dict[str, Any] = {"extra": _with_prefix(found, EXTRA)}
    for field in dataclasses.fields(CircuitState):
        if field.name in found.data_vars:
            values[field.name] = found[field.name].to_numpy()
        elif field.name in found.attrs:
            values[field.name] = np.asarray(found.attrs[field.name]).item()
        elif field.name not in values:
            raise InputError(f"there is no {field.name}")
    return CircuitState(**values)


def _with_prefix(found: xr.Dataset, prefix: str) -> dict[str, Any]:
    return {
        str(name).removeprefix(prefix): values.to_numpy()
        for name, values in found.data_vars.items()
        if str(name).startswith(prefix)
    }


def _model_as_dict(model: CircuitModel) -> dict[str, Any]:
    """The model without its NumPy functions, for JSON.

    ``changed`` names what is not the paper's. Only that is read: the text of the other rules may
    change one day.
    """
    described, default = model.as_dict(), CircuitModel()
    described["namespace"] = {
        name: _plain(name, value) for name, value in sorted(model.namespace.items())
    }
    described["changed"] = [
        name for name in described if getattr(model, name) != getattr(default, name)
    ]
    return described


def _plain(name: str, value: Any) -> Any:
    """A number as it is; a quantity in SI units, with its powers of m, kg, s, A, K, mol and cd."""
    if isinstance(getattr(value, "values", None), np.ndarray):
        raise EngineError(
            f"the TimedArray {name!r} in the model's namespace cannot be saved with the circuit"
        )
    dimensions = getattr(value, "dim", None)
    if dimensions is None:
        return value.item() if isinstance(value, np.generic) else value
    return {"value": float(value), "exponents": [float(power) for power in dimensions._dims]}


def _model_from(described: dict[str, Any]) -> CircuitModel:
    """A model from its description."""
    values: dict[str, Any] = {
        name: Rule(described[name]) if name in RULES else described[name]
        for name in described["changed"]
    }
    if "connections" in values:
        values["connections"] = {
            name: np.array([[mark == "1" for mark in row] for row in rows])
            for name, rows in values["connections"].items()
        }
    if "namespace" in values:
        values["namespace"] = {name: _quantity(v) for name, v in values["namespace"].items()}
    return CircuitModel(**values)


def _quantity(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    from circuits.engines.brian import import_brian2

    import_brian2()
    from brian2 import Quantity, get_or_create_dimension

    return Quantity(value["value"], dim=get_or_create_dimension(value["exponents"]))
