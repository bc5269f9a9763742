"""The circuit: parameters, front end, a Brian2 network, and the solvers that check it.

Importing this package imports neither Brian2 nor anything that depends on it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit
    from circuits.estimator import ManifoldClassifier
    from circuits.lift import SphereLift
    from circuits.model import CircuitModel
    from circuits.parameters import CircuitParameters
    from circuits.reference import ReferenceCircuit
    from circuits.spiking.circuit import SpikingCircuit
    from circuits.spiking.parameters import SpikingParameters

__all__ = [
    "CircuitModel",
    "CircuitParameters",
    "ManifoldCircuit",
    "ManifoldClassifier",
    "ReferenceCircuit",
    "SphereLift",
    "SpikingCircuit",
    "SpikingParameters",
]

_HOME = {
    "CircuitModel": "model",
    "CircuitParameters": "parameters",
    "ManifoldCircuit": "circuit",
    "ManifoldClassifier": "estimator",
    "ReferenceCircuit": "reference",
    "SphereLift": "lift",
    "SpikingCircuit": "spiking.circuit",
    "SpikingParameters": "spiking.parameters",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"circuits.{_HOME[name]}"), name)
    raise AttributeError(f"module 'circuits' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
