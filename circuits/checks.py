"""What arguments must be: plain numbers, whole numbers, arrays of numbers, regular files."""

from __future__ import annotations

import math
import numbers
import os
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
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.timedelta64)


def as_number(
    value: Any, name: str, *, above: float = -math.inf, least: float = -math.inf
) -> float:
    """A finite number, ``above`` a bound or from ``least`` on."""
    try:
        number = float(value) if is_number(value) else math.nan
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > above and number >= least):
        bound = f" and above {above:g}" if above > -math.inf else ""
        bound += f" and at least {least:g}" if least > -math.inf else ""
        raise ParameterError(f"{name} must be finite{bound}, got {shown(value)}")
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

    Refuses what NumPy would silently turn into other numbers: masked entries, imaginary parts,
    dates, text that looks like numbers.
    """
    if _has_masked(values):
        raise InputError(f"{what} must not have masked values, got {shown(values)}")
    try:
        found = np.asarray(values)
        if found.dtype.kind == "O" and all(map(_is_plain, found.ravel())):
            found = found.astype(float)
        if found.dtype.kind in "biuf":
            with np.errstate(over="ignore"):  # what becomes infinite is refused as such
                return np.asarray(found, dtype=float)
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    raise InputError(f"{what} must be real numbers in an array, got {shown(values)}")


def _is_plain(value: Any) -> bool:
    return is_number(value) or isinstance(value, bool | np.bool_ | Decimal)


def _has_masked(values: Any, depth: int = 3) -> bool:
    if isinstance(values, list | tuple) and depth:
        return any(_has_masked(value, depth - 1) for value in values)
    return bool(np.ma.is_masked(values))


def require_file(path: Any, error: type[CircuitError] = InputError) -> Path:
    """The path of a regular file: a pipe or a device could keep us waiting for ever."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise error(f"{shown(path)} is not the name of a file")
    file = Path(path)
    if not os.access(file, os.R_OK):
        raise error(f"there is no file {shown_path(path)} that can be read")
    if not file.is_file():
        kind = "a folder" if file.is_dir() else "not a regular file"
        raise error(f"{shown_path(path)} is {kind}: give the name of a file")
    return file


def read_bytes(path: Any, error: type[CircuitError] = InputError) -> bytes:
    """The content of a regular file."""
    return require_file(path, error).read_bytes()
