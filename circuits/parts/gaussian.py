"""Gaussian numbers that are a function of where they are used.

A generator with a state gives other numbers to every engine, which asks in another order, and to a
stream that is cut into pieces. Here a number follows from a seed and four counters alone,

    key = mix(mix(mix(mix(mix(seed) + variable) + presentation) + step) + cell),    mix: SplitMix64,

and two uniform numbers from the key give a Gaussian one (Box and Muller). The same text in NumPy,
C++ and Cython gives the same numbers, but for the last bits of logarithm and cosine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circuits.lift import FloatArray

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

NAME = "noise_of"
"""What `noise_of` is called in Brian2 text."""


def gaussian(
    seed: ArrayLike,
    variable: ArrayLike,
    presentation: ArrayLike,
    step: ArrayLike,
    cell: ArrayLike,
) -> FloatArray:
    """Independent numbers of mean 0 and variance 1 for whole numbers from 0, broadcast together."""
    key = np.zeros((), np.uint64)
    with np.errstate(over="ignore"):  # modulo 2^64 is meant
        for value in (seed, variable, presentation, step, cell):
            key = _mix(key + np.asarray(value).astype(np.int64).astype(np.uint64))
        first, second = _uniform(key), _uniform(_mix(key))
    found: FloatArray = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)
    return found


def noise_of(size: ArrayLike, *where: ArrayLike) -> Any:
    """``size`` times `gaussian`. Where it is zero nothing is drawn: noise that has not begun, or is
    over, takes no time."""
    return np.asarray(size) * gaussian(*where) if np.any(size) else 0.0


def _mix(key: Any) -> Any:
    key = key + np.uint64(_GOLDEN)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(_FIRST)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(_SECOND)
    return key ^ (key >> np.uint64(31))


def _uniform(key: NDArray[np.uint64]) -> Any:
    """Uniform, strictly between 0 and 1: (upper 53 bits + 1/2) 2^-53."""
    return ((key >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53


_CPP = f"""
static inline uint64_t _gaussian_mix(uint64_t key)
{{
    key += {_GOLDEN:#x}ULL;
    key = (key ^ (key >> 30))*{_FIRST:#x}ULL;
    key = (key ^ (key >> 27))*{_SECOND:#x}ULL;
    return key ^ (key >> 31);
}}
static inline double noise_of(const double size, const int64_t seed, const int64_t variable,
                              const int64_t presentation, const int64_t step, const int64_t cell)
{{
    if (size == 0) return 0;
    uint64_t key = _gaussian_mix((uint64_t)seed);
    key = _gaussian_mix(key + (uint64_t)variable);
    key = _gaussian_mix(key + (uint64_t)presentation);
    key = _gaussian_mix(key + (uint64_t)step);
    key = _gaussian_mix(key + (uint64_t)cell);
    const double first = ((double)(key >> 11) + 0.5)*{2.0**-53!r};
    const double second = ((double)(_gaussian_mix(key) >> 11) + 0.5)*{2.0**-53!r};
    return size*sqrt(-2*log(first))*cos(2*M_PI*second);
}}
"""

_CYTHON = f"""
from libc.stdint cimport int64_t, uint64_t
from libc.math cimport cos as _cos, log as _log, sqrt as _sqrt, M_PI

cdef inline uint64_t _gaussian_mix(uint64_t key) noexcept nogil:
    key = key + <uint64_t>{_GOLDEN:#x}ULL
    key = (key ^ (key >> 30))*<uint64_t>{_FIRST:#x}ULL
    key = (key ^ (key >> 27))*<uint64_t>{_SECOND:#x}ULL
    return key ^ (key >> 31)

cdef double noise_of(double size, int64_t seed, int64_t variable, int64_t presentation,
                     int64_t step, int64_t cell):
    if size == 0:
        return 0
    cdef uint64_t key = _gaussian_mix(<uint64_t>seed)
    key = _gaussian_mix(key + <uint64_t>variable)
    key = _gaussian_mix(key + <uint64_t>presentation)
    key = _gaussian_mix(key + <uint64_t>step)
    key = _gaussian_mix(key + <uint64_t>cell)
    cdef double first = (<double>(key >> 11) + 0.5)*{2.0**-53!r}
    cdef double second = (<double>(_gaussian_mix(key) >> 11) + 0.5)*{2.0**-53!r}
    return size*_sqrt(-2*_log(first))*_cos(2*M_PI*second)
"""


def brian2_function() -> Any:
    """The function for the namespace of Brian2 objects, on every engine."""
    from brian2 import Function

    function = Function(
        noise_of,
        arg_units=[1] * 6,
        return_unit=1,
        arg_types=["float"] + ["integer"] * 5,
        return_type="float",
        stateless=True,
    )
    function.implementations.add_implementation("cpp", _CPP, name=NAME)
    function.implementations.add_implementation("cython", _CYTHON, name=NAME)
    return function
