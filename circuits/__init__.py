"""The circuit: parameters, front end, a Brian2 network, and the solvers that check it.

Importing this package imports neither Brian2 nor anything that depends on it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from circuits.assembly.part import Part as Part
    from circuits.circuit import ManifoldCircuit as ManifoldCircuit
    from circuits.circuit import ReferenceCircuit as ReferenceCircuit
    from circuits.learners.classifier import ManifoldClassifier as ManifoldClassifier
    from circuits.lift import SphereLift as SphereLift
    from circuits.model import CircuitModel as CircuitModel
    from circuits.model import Rule as Rule
    from circuits.parameters import CircuitParameters as CircuitParameters
    from circuits.parts.current import Current as Current
    from circuits.parts.delay import Delay as Delay
    from circuits.parts.freeze import Freeze as Freeze
    from circuits.parts.lesion import Lesion as Lesion
    from circuits.parts.noise import Noise as Noise
    from circuits.parts.unequal_gain import UnequalGain as UnequalGain
    from circuits.spiking.circuit import SpikingCircuit as SpikingCircuit
    from circuits.spiking.parameters import SpikingParameters as SpikingParameters

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
    "Part": "assembly.part",
    "ReferenceCircuit": "circuit",
    "Rule": "model",
    "SphereLift": "lift",
    "SpikingCircuit": "spiking.circuit",
    "SpikingParameters": "spiking.parameters",
    "UnequalGain": "parts.unequal_gain",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"circuits.{_HOME[name]}"), name)
    raise AttributeError(f"module 'circuits' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
