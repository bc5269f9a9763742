"""Shared streams and circuits."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from circuits import CircuitParameters
from circuits.engines import compiler
from simulations.datasets import first_of_each_class, two_moons

# A simulation takes as long as it takes, and the machine is shared: no test depends on the time.
COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same examples", derandomize=True, **COMMON)
settings.register_profile("fresh examples", print_blob=True, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same examples"))

ENGINES = ("numpy", "cython", "cpp_standalone")


@pytest.fixture(autouse=True)
def quick_collection() -> None:
    """Take what is there before a test out of the garbage collector's sight.

    Brian2 collects at every run; looking at all the modules loaded so far takes up to 0.7 s.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def quick_cython():
    """Brian2's Cython modules without optimising them: half the time to compile some twenty.

    `test_agreement.py` has them as users do.
    """
    from brian2 import prefs

    with pytest.MonkeyPatch.context() as patch:
        flags = prefs["codegen.cpp.extra_compile_args_gcc"]
        quick = [flag for flag in flags if not flag.startswith("-O")] + ["-O0"]
        patch.setitem(prefs, "codegen.cpp.extra_compile_args_gcc", quick)
        yield


@pytest.fixture
def quick_compiler(monkeypatch):
    """Compile C++ in half the time; most tests have programs as users do."""
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-O1"))


def moons(n_points: int, seed: int = 0, after: int = 50):
    """Points, classes and labels of two moons."""
    points, classes = two_moons(n_points, 0.05, seed)
    return points, classes, first_of_each_class(classes, after)


def small_circuit(**changes) -> CircuitParameters:
    """A circuit of a few cells that takes few steps."""
    return CircuitParameters(
        **({"n_tiles": 6, "n_interneurons": 2, "steps_per_presentation": 30} | changes)
    )


CONSTANT_GAIN = {"gain": "auto", "tau_h": "8 ms", "tau_u": "50 ms", "tau_V": "2 ms"}
CONSTANT_GAIN |= {"steps_per_presentation": 200}
"""Time constants with which most presentations settle under a constant gain."""

FIRST_TILES = {"tiles": "first", "tile_radius": 0.4}
"""Tiles on the first points, of a radius at which they cover the moons."""


def differences(run, reference, names) -> dict[str, float]:
    return {name: float(np.abs(run[name].values - reference[name].values).max()) for name in names}
