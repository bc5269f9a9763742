"""What the circuit refuses and what it warns of, as types a caller can catch, and how messages
show values."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable
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


class PackageError(CircuitError, ImportError):
    """A package that is needed and not installed."""


class UnsettledWarning(UserWarning):
    """Many presentations were still moving when they ended."""


class LostLabelWarning(UserWarning):
    """Labels came with points that no tile responded to, and taught nothing."""


SHOWN = 60
"""Characters of a value that a message shows at most."""

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 4
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = SHOWN


def shown(value: Any) -> str:
    """Any value as a message shows it: short, printable, on one line."""
    try:
        if getattr(value, "shape", None) == ():  # one number of NumPy's
            value = value.item()
        text = " ".join(_SHORT.repr(value).split())
    except Exception:  # a repr that fails must not hide the error that names the value
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]}...{text[-SHOWN // 2 :]}"


def shown_path(path: Any) -> str:
    """The name of a file as a message shows it: file names need be neither UTF-8 nor printable."""
    text = os.fsencode(str(path)).decode("utf-8", "backslashreplace")
    text = "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)
    return text if len(text) <= 3 * SHOWN else f"{text[:SHOWN]}...{text[-SHOWN:]}"


def listed(names: Iterable[Any], most: int = 10) -> str:
    """The first few of many names, separated by commas."""
    found = [str(name) for name in names]
    some = [name if name.isprintable() and len(name) <= SHOWN else shown(name) for name in found]
    rest = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(some[:most]) + rest
