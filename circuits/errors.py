"""What the circuit refuses and what it warns of, as types a caller can catch."""

from __future__ import annotations

import reprlib
from typing import Any


class CircuitError(Exception):
    """Base of every error this package raises on purpose."""


class ParameterError(CircuitError, ValueError):
    """A parameter that cannot work."""


class InputError(CircuitError, ValueError):
    """Points, labels or file contents that cannot be presented."""


class DivergenceError(CircuitError, FloatingPointError):
    """The rates became non-finite or huge."""


class EngineError(CircuitError, RuntimeError):
    """An engine that is not available here, or whose build or run failed."""


class UnsettledWarning(UserWarning):
    """Many presentations were still moving when they ended."""


class LostLabelWarning(UserWarning):
    """Labels came with points that no tile responded to, and taught nothing."""


def shown(value: Any) -> str:
    """A value as part of a sentence: short, and on one line, whatever it is."""
    text = reprlib.repr(value).replace("\n", " ")
    return text if len(text) <= 80 else f"{text[:77]}..."
