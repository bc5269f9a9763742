"""Values as text, and the values that a circuit starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import second
from brian2.units.fundamentalunits import DIMENSIONLESS, Unit, standard_unit_register

from circuits.errors import InputError
from circuits.parameters import format_seconds
from circuits.state import Task, empty_state

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit


def values_at_start(circuit: ManifoldCircuit) -> dict[tuple[str, str], Any]:
    """What an engine is given at the start of a first stream, by group and variable.

    The function that feeds the engines is asked about two streams that have nothing in common:
    what differs between its answers comes from the data, not from the model, and is None here.
    """
    p, lift = circuit.parameters, circuit.lift
    idle = p.tiles == "recruit" and not _has_centers(circuit)

    def place(along: Any) -> Any:
        points = np.tile(lift.center, (len(along), 1))
        points[:, 0] += lift.radius * np.asarray(along)
        return points

    def ask(first: float, last: float, length: int) -> dict[str, dict[str, Any]]:
        centers = lift(place(np.linspace(first, last, p.n_tiles)))
        labels = np.full((length, p.n_readouts), np.sign(first))
        task = Task(lift(place([first] * length)), labels, True, (), False, lambda _done: None)
        state = empty_state(circuit) if idle else circuit.seeded(centers)
        return circuit.wiring.initial_values(circuit, state, task, circuit.values_set)

    one, other = ask(0.1, 0.5, 1), ask(-0.2, -0.7, 2)
    return {
        (group, name): value if _same(value, other[group][name]) else None
        for group, values in one.items()
        for name, value in values.items()
    }


def _same(one: Any, other: Any) -> bool:
    """Whether values are the same, but for rounding."""
    return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-9, atol=0)


def _has_centers(circuit: ManifoldCircuit) -> bool:
    """Whether a circuit that has seen nothing has its tiles already."""
    try:
        return circuit.state.learned == 0
    except InputError:
        return False


def unit(dim: Any) -> str:
    """The unit of a dimension as text, the same whatever units have been made before."""
    if dim is DIMENSIONLESS:
        return "1"
    known = standard_unit_register.units_for_dimensions[dim]
    return str(known[1.0] if 1.0 in known else Unit(1.0, dim=dim))


def quantities(values: Any, dim: Any) -> str:
    """Numbers in SI units as text; many different ones by their extremes."""

    def one(value: Any) -> str:
        if dim is second.dim:
            return format_seconds(float(value))
        return f"{value:.6g}" if dim is DIMENSIONLESS else f"{value:.6g} {unit(dim)}"

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
