"""What arguments must be: plain numbers, whole numbers, arrays of numbers, files that are files."""

from __future__ import annotations

import math
import numbers
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circuits.errors import CircuitError, InputError, ParameterError, shown, shown_path

FloatArray = NDArray[np.float64]


def is_number(value: Any) -> bool:
    """Whether a value is one real number: no truth value, no text, no array of several."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf" and not np.ma.is_masked(value)
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def as_number(
    value: Any, name: str, *, above: float | None = None, least: float | None = None
) -> float:
    """A finite number, ``above`` or at ``least`` a bound."""
    bound = f" and above {above:g}" if above is not None else ""
    bound = f" and at least {least:g}" if least is not None else bound
    number = math.nan
    if is_number(value):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            number = math.inf
    low = (above is not None and not number > above) or (least is not None and not number >= least)
    if not math.isfinite(number) or low:
        kind = "" if is_number(value) else ", a number"
        raise ParameterError(f"{name} must be finite{bound}{kind}, got {shown(value)}")
    return number


def as_count(value: Any, name: str, least: int = 0) -> int:
    """A whole number from ``least``."""
    number = value.item() if isinstance(value, np.ndarray | np.generic) else value
    if not (is_number(value) and number == number // 1 and number >= least):
        raise ParameterError(f"{name} must be a whole number from {least}, got {shown(value)}")
    return int(number)


def as_generator(rng: Any) -> np.random.Generator:
    """A NumPy generator, or an error that says how to make one."""
    if not isinstance(rng, np.random.Generator):
        raise ParameterError(f"rng must be numpy.random.default_rng(seed), got {shown(rng)}")
    return rng


def as_floats(values: Any, what: str) -> FloatArray:
    """Real numbers as a float array, which may share memory with what was given.

    Refused is what NumPy would turn into other numbers without a word: masked entries, imaginary
    parts, dates, text that looks like numbers.
    """
    if _has_masked(values):
        raise InputError(f"{what} must not be masked: {_first_masked(values)}")
    try:
        found = np.asarray(values)
        if found.dtype.kind == "O":
            found = _plain_objects(found)
        if found.dtype.kind in "biuf":
            with np.errstate(over="ignore"):  # what becomes infinite is refused as such
                return np.asarray(found, dtype=float)
        kind = _KINDS.get(found.dtype.kind, str(found.dtype))
    except (TypeError, ValueError, OverflowError, RecursionError):
        kind = shown(values)
    raise InputError(f"{what} must be real numbers in an array, got {kind}")


_KINDS = {
    "c": "complex numbers",
    "m": "time differences",
    "M": "dates",
    "S": "bytes",
    "U": "text",
    "V": "records with fields",
}


def _plain_objects(found: NDArray[Any]) -> NDArray[Any]:
    """An array of Python objects as floats, if all of them are numbers."""
    for value in found.ravel():
        if not (is_number(value) or isinstance(value, bool | np.bool_ | Decimal)):
            raise TypeError(f"{shown(value)} is no number")
    return found.astype(float)


def _has_masked(values: Any, depth: int = 3) -> bool:
    if isinstance(values, list | tuple) and depth:
        return any(_has_masked(value, depth - 1) for value in values)
    return isinstance(values, np.ma.MaskedArray) and bool(np.any(values.mask))


def _first_masked(values: Any) -> str:
    """Where the first masked entry is."""
    if not isinstance(values, np.ma.MaskedArray):
        place = next(i for i, value in enumerate(values) if _has_masked(value))
        return f"there is a masked value at point {place}"
    masked = np.atleast_1d(np.broadcast_to(values.mask, values.shape))
    return f"{masked.sum()} values are, the first at point {np.argwhere(masked)[0][0]}"


def require_file(path: Any, error: type[CircuitError] = InputError) -> Path:
    """A path that leads to a regular file: a pipe or a device could keep us waiting for ever."""
    with _named(path, error):
        file = Path(path)
        mode = file.stat().st_mode
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise error(f"{shown_path(path)} is {what}: give the name of a file")
    return file


def read_bytes(path: Any, error: type[CircuitError] = InputError) -> bytes:
    """All that is in a regular file."""
    file = require_file(path, error)
    with _named(path, error):
        return file.read_bytes()


@contextmanager
def _named(path: Any, error: type[CircuitError]) -> Iterator[None]:
    """Around work on a file: what goes wrong with it is an error that names it."""
    try:
        yield
    except FileNotFoundError:
        raise error(f"there is no file {shown_path(path)}") from None
    except OSError as reason:
        words = reason.strerror or type(reason).__name__
        raise error(f"{shown_path(path)} cannot be read: {words}") from None
    except (TypeError, ValueError):
        raise error(f"{shown(path)} is not the name of a file") from None
