"""Random circuits on every engine, beside the reference."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.errors import DivergenceError
from tests.soak.row import Row, difference

ENGINES = ("numpy", "cython", "cpp_standalone")
SHAPES = ((1, 1, 1, 1), (2, 1, 1, 2), (5, 2, 2, 2), (12, 3, 1, 3), (40, 4, 1, 2), (25, 6, 3, 8))
"""Tiles, interneurons, readouts and coordinates: each is compiled once."""

AGREEMENT = 1e-9


def random_parameters(shape: tuple[int, ...], rng: np.random.Generator) -> CircuitParameters:
    """Any circuit of a shape that the parameters allow."""
    tau = {name: 10 ** rng.uniform(low, high) for name, low, high in TAUS}
    return CircuitParameters(
        n_tiles=shape[0],
        n_interneurons=shape[1],
        n_readouts=shape[2],
        tile_radius=float(rng.uniform(0.2, 1.2)),
        mu=float(10 ** rng.uniform(-1, 3)),
        readout=str(rng.choice(["clip", "tanh"])),
        learning_rate=float(10 ** rng.uniform(-3, -0.5)),
        readout_rate="running_mean" if rng.random() < 0.5 else float(rng.uniform(0, 0.5)),
        steps_per_presentation=int(rng.integers(1, 150)),
        reset=bool(rng.random() < 0.7),
        **{name: f"{value!r} ms" for name, value in tau.items()},
    )


TAUS = (("tau_h", 0.6, 1.7), ("tau_u", 1.3, 2.2), ("tau_V", 0.01, 0.7))
"""Ranges of the time constants, as powers of ten of milliseconds."""


def random_circuits(count: int, folder: Path, seed: int = 0) -> Row:
    """So many circuits with random parameters on random streams, each on every engine.

    Rounding grows where a presentation has not settled; such runs say so.
    """
    row = Row(f"random circuits, each on {', '.join(ENGINES)}, against the reference")
    rng = np.random.default_rng(seed)
    explained = diverged = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while row.tried < count:
            shape = SHAPES[row.tried % len(SHAPES)]
            parameters = random_parameters(shape, rng)
            points = rng.uniform(-1, 1, (60, shape[3]))
            labels = rng.choice([-1, 0, 0, 0, 1], (60, shape[2]))
            lift = SphereLift.around(points)
            row.tried += 1
            expected = _run(ReferenceCircuit(parameters, lift), points, labels)
            diverged += expected is None
            for engine in ENGINES:
                found = _run(ManifoldCircuit(parameters, lift, engine), points, labels)
                if (found is None) != (expected is None):
                    row.hush(f"{engine}: only one of both diverged, {parameters}")
                elif found is not None and expected is not None:
                    explained += _compare(found, expected, f"{engine}: {parameters}", row)
    row.note = f"{explained} apart by more than {AGREEMENT:g} that say they did not settle"
    row.note += f", {diverged} diverged on all" if diverged else ""
    return row


def _run(circuit, points, labels):
    try:
        return circuit.run(points, labels)
    except DivergenceError:
        return None


def _compare(found, expected, what: str, row: Row) -> bool:
    """Count how far they are apart; True if too far, and the run says that it did not settle."""
    far = difference(found[[*"huyWbwV"]], expected)
    if far <= AGREEMENT:
        row.disagreement = max(row.disagreement, far)
        return False
    if found.attrs["unsettled_share"] == 0:
        row.hush(f"{what}: {far:.1e} apart though all settled")
        row.disagreement = max(row.disagreement, far)
    return True
