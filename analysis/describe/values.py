"""Values as text, and the values that a circuit starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import second
from brian2.units.fundamentalunits import get_unit_for_display

from circuits.engines.streams import initial_values
from circuits.parameters import format_seconds
from circuits.state import Task

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit


def values_at_start(circuit: ManifoldCircuit) -> dict[tuple[str, str], Any]:
    """What an engine is given at the start of a first stream, by group and variable.

    The function that feeds the engines is asked about two streams that have nothing in common:
    what differs between its answers comes from the data, not from the model, and is None here.
    """
    p, lift = circuit.parameters, circuit.lift

    def place(along: Any) -> Any:
        points = np.tile(lift.center, (len(along), 1))
        points[:, 0] += lift.radius * np.asarray(along)
        return points

    def ask(first: float, last: float, length: int) -> dict[str, dict[str, Any]]:
        centers = place(np.linspace(first, last, p.n_tiles))
        labels = np.full((length, p.n_readouts), np.sign(first))
        task = Task(lift(place([-first] * length)), labels, True, (), False, lambda _done: None)
        return initial_values(circuit, circuit.seeded(lift(centers)), task, circuit.values_set)

    one, other = ask(0.1, 0.5, 1), ask(-0.2, -0.7, 2)
    return {
        (group, name): value if np.array_equal(value, other[group][name]) else None
        for group, values in one.items()
        for name, value in values.items()
    }


def quantities(values: Any, dim: Any) -> str:
    """Numbers in SI units as text; many different ones by their extremes."""

    def one(value: Any) -> str:
        if dim is second.dim:
            return format_seconds(float(value))
        unit = get_unit_for_display(dim)
        return f"{value:.6g}" if unit == "1" else f"{value:.6g} {unit}"

    flat = np.asarray(values, dtype=float).ravel()
    if flat.size == 0:
        return "none"
    if flat.min() == flat.max():
        return one(flat[0])
    if flat.size > 4:
        return f"{one(flat.min())} to {one(flat.max())}"
    return ", ".join(map(one, flat))


def plain(value: Any) -> str:
    """A parameter as text, to the last digit."""
    if isinstance(value, tuple | list):
        return ", ".join(map(plain, value))
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")
