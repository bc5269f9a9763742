"""The circuit: parameters, front end, a Brian2 network, and the solvers that check it.

Importing this package imports neither Brian2 nor anything that depends on it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit
    from circuits.learners.classifier import ManifoldClassifier
    from circuits.lift import SphereLift
    from circuits.model import CircuitModel
    from circuits.parameters import CircuitParameters
    from circuits.parts.part import Part
    from circuits.perturbations import Current, Delay, Freeze, Lesion, Noise, UnequalGain
    from circuits.reference import ReferenceCircuit
    from circuits.spiking.circuit import SpikingCircuit
    from circuits.spiking.parameters import SpikingParameters

__all__ = [
    "CircuitModel",
    "CircuitParameters",
    "Current",
    "Delay",
    "Freeze",
    "Lesion",
    "ManifoldCircuit",
    "ManifoldClassifier",
    "Noise",
    "Part",
    "ReferenceCircuit",
    "SphereLift",
    "SpikingCircuit",
    "SpikingParameters",
    "UnequalGain",
]

_HOME = {
    "CircuitModel": "model",
    "CircuitParameters": "parameters",
    "Current": "perturbations",
    "Delay": "perturbations",
    "Freeze": "perturbations",
    "Lesion": "perturbations",
    "ManifoldCircuit": "circuit",
    "ManifoldClassifier": "learners.classifier",
    "Noise": "perturbations",
    "Part": "parts",
    "ReferenceCircuit": "reference",
    "SphereLift": "lift",
    "SpikingCircuit": "spiking.circuit",
    "SpikingParameters": "spiking.parameters",
    "UnequalGain": "perturbations",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"circuits.{_HOME[name]}"), name)
    raise AttributeError(f"module 'circuits' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
