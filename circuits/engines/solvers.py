"""Circuits by the name of what computes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from circuits.base import Circuit
from circuits.circuit import ManifoldCircuit, ReferenceCircuit
from circuits.engines import ENGINES
from circuits.errors import InputError, shown
from circuits.lift import SphereLift
from circuits.parameters import CircuitParameters
from circuits.parts.perturbations import Perturbation, checked_perturbations
from circuits.spiking.circuit import SpikingCircuit
from circuits.spiking.parameters import SpikingParameters

SOLVERS: dict[str, Literal["dynamics", "exact"]] = {"reference": "dynamics", "exact": "exact"}
"""The two NumPy solvers by name, and how they settle."""


def check_engine(engine: str) -> str:
    """The name of an engine or a solver, or an error that names them all."""
    names = (*ENGINES, *SOLVERS)
    if engine not in names:
        raise InputError(f"there is no engine {shown(engine)}: use {', '.join(names)}")
    return engine


def make_circuit(
    engine: str,
    parameters: CircuitParameters,
    lift: SphereLift,
    tile_centers: Any = None,
    *,
    spiking: SpikingParameters | None = None,
    seed: int = 0,
    perturbations: Iterable[Perturbation] = (),
) -> Circuit:
    """A circuit on Brian2, or one of the two NumPy solvers, by name.

    With ``spiking`` it is the spiking twin, for which there is no solver; ``seed`` is of its cells.
    """
    check_engine(engine)
    if spiking is not None:
        if engine in SOLVERS:
            raise InputError(
                f"engine {engine} has no cells that fire: a spiking circuit takes "
                f"{', '.join(ENGINES)}"
            )
        if given := checked_perturbations(perturbations):
            raise InputError(
                f"a spiking circuit takes no perturbations such as {shown(given[0])}: they act on "
                "rates"
            )
        return SpikingCircuit(
            parameters, lift, engine, spiking=spiking, seed=seed, tile_centers=tile_centers
        )
    options = {"tile_centers": tile_centers, "perturbations": perturbations}
    if engine in SOLVERS:
        return ReferenceCircuit(parameters, lift, settling=SOLVERS[engine], **options)
    return ManifoldCircuit(parameters, lift, engine, **options)
