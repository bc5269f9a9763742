"""The circuit: parameters, front end, a Brian2 network, and the solvers that check it.

Importing this package imports neither Brian2 nor anything that depends on it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from circuits.assembly.part import Part
    from circuits.circuit import ManifoldCircuit, ReferenceCircuit
    from circuits.learners.classifier import ManifoldClassifier
    from circuits.lift import SphereLift
    from circuits.model import CircuitModel, Rule
    from circuits.parameters import CircuitParameters
    from circuits.parts.current import Current
    from circuits.parts.delay import Delay
    from circuits.parts.freeze import Freeze
    from circuits.parts.lesion import Lesion
    from circuits.parts.noise import Noise
    from circuits.parts.unequal_gain import UnequalGain
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
    "Rule",
    "SphereLift",
    "SpikingCircuit",
    "SpikingParameters",
    "UnequalGain",
]

_HOME = {
    "CircuitModel": "model",
    "CircuitParameters": "parameters",
    "Current": "parts.current",
    "Delay": "parts.delay",
    "Freeze": "parts.freeze",
    "Lesion": "parts.lesion",
    "ManifoldCircuit": "circuit",
    "ManifoldClassifier": "learners.classifier",
    "Noise": "parts.noise",
    "Part": "parts",
    "ReferenceCircuit": "circuit",
    "Rule": "model",
    "SphereLift": "lift",
    "SpikingCircuit": "spiking.circuit",
    "SpikingParameters": "spiking.parameters",
    "UnequalGain": "parts.unequal_gain",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"circuits.{_HOME[name]}"), name)
    raise AttributeError(f"module 'circuits' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
