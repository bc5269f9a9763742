"""The stages of a presentation, as slots of Brian2's schedule.

Brian2 runs the objects of a network slot by slot. A circuit has slots of its own, with names that
say what happens there; each has a ``before_`` and an ``after_``, as all slots do. Within a slot
objects act in the order in which the circuit made them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

EACH_STEP = ("sums", "lateral", "rates")
"""Every dt: the sums V h and V^T u, then V, then h and u: each sees the others' old values."""

EACH_PRESENTATION = ("answer", "learn", "load", "drive", "recruit", "measure", "restart")
"""On the last step of a presentation: the readout answers, the slow synapses learn, the next point
is loaded, its drive W x is summed, a tile is recruited if none answers, gain control measures the
drive, and h, u and V restart."""


def slots(*stages: str) -> tuple[str, ...]:
    """Stages, each with what is right before and right after it."""
    return tuple(slot for stage in stages for slot in (f"before_{stage}", stage, f"after_{stage}"))


ALL = (*EACH_STEP, "answer", "record", *EACH_PRESENTATION[1:])
STAGES = slots(*ALL)
"""All places at which a part can act; at ``record`` a run stores its results first."""

LOADING = slots(*EACH_PRESENTATION[EACH_PRESENTATION.index("load") :])[1:]
"""Slots in which the next point is loaded: at the start of a stream, and after every presentation
but the last. So the first point goes through the same code as all others."""


def schedule(each_step: tuple[str, ...] = EACH_STEP) -> list[str]:
    """The slots of a circuit's network: Brian2's own for what users add, and the stages.

    What is in ``end`` sees the result of a step, as anywhere in Brian2: on the last step of a
    presentation the answer is there, and the next point is not.
    """
    answer, *others = EACH_PRESENTATION
    brian2 = ["start", "groups", *each_step, "thresholds", "synapses", "resets"]
    return [*brian2, answer, "record", "end", *others]


PAIRS = {
    "lateral": ("excitatory", "inhibitory"),
    "feedforward": ("inputs", "excitatory"),
    "classifier": ("excitatory", "readout"),
}
"""The circuit's synapses, and what they connect."""


@cache
def where() -> Any:
    """The function where(condition, a, b) for Brian2 text, on every engine."""
    from brian2 import Function

    function = Function(
        np.where,
        arg_names=["condition", "a", "b"],
        arg_units=[None, None, "a"],
        return_unit=lambda condition, a, b: a,
        arg_types=["boolean", "any", "any"],
        return_type="float",
    )
    for target, code in (("cpp", WHERE_CPP), ("cython", WHERE_CYTHON)):
        function.implementations.add_implementation(target, code, name="where")
    return function


WHERE_CPP = """
static inline double where(const bool condition, const double a, const double b)
{
    return condition ? a : b;
}
"""
WHERE_CYTHON = """
cdef inline double where(bint condition, double a, double b):
    return a if condition else b
"""
