"""The circuit beside the reference on one stream: how far they agree, in numbers and plots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit
from circuits.base import RECORDABLE, Circuit
from circuits.errors import InputError
from circuits.lift import FloatArray
from circuits.storage import files, results
from simulations.experiments.two_moons import Stream
from simulations.own_data import OwnStream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRACED = 5
"""Of so many presentations all steps are compared; those of all would fill the memory."""


def run_comparison(
    stream: OwnStream | Stream,
    engine: str,
    points: int,
    studies: bool,
    out: Path,
    source: Path | None = None,
) -> None:
    """Present the first ``points`` of a stream to both; print, save and plot what differs.

    ``source`` is the file the stream is from, if it is from one: it is not written over.
    """
    shown, labels = first_points(stream, points)
    circuit = ManifoldCircuit(stream.parameters, stream.lift, engine)
    files.require_folder(out)
    targets = [out / f"{name}.nc" for name in ("circuit", "reference", "steps")]
    for target in targets:
        results.make_way(target, "compare", source)
    run, step = _present(circuit, shown, labels)
    expected, expected_step = _present(
        ReferenceCircuit(stream.parameters, stream.lift), shown, labels
    )
    saved = [
        results.save(dataset.assign_attrs(kind="compare"), target)
        for target, dataset in zip(targets, (run, expected, step), strict=True)
    ]

    from analysis import agreement
    from analysis.style import save_figure

    print(f"largest difference between engine {circuit.engine} and the NumPy reference")
    found = agreement.largest_differences(run, expected) | {
        name: value
        for name, value in agreement.largest_differences(step, expected_step).items()
        if name.endswith("_trace")
    }
    for name, value in found.items():
        print(f"  {name:<12} {value:.1e}")
    equal = agreement.signs_agree(run, expected)
    print(f"  signs of y   {'all equal' if equal else 'NOT all equal'}")
    print(labels_seen(labels, np.asarray(stream.labels, dtype=float)))
    figures = {
        "agreement": agreement.figure_agreement(run, expected),
        "agreement-steps": agreement.figure_agreement(step, expected_step),
    }
    if studies:
        figures |= _study_figures(run, stream.parameters)
    drawn = [file for name, figure in figures.items() for file in save_figure(figure, out / name)]
    for file in (*saved, *drawn):
        print(f"wrote {file}")
    print(f"'manifold-circuit plot {saved[-1]}' shows the circuit settling")


def first_points(stream: OwnStream | Stream, count: int) -> tuple[FloatArray, FloatArray]:
    """The first points of a stream, with their labels."""
    shown, labels = stream.points[:count], np.asarray(stream.labels, dtype=float)[:count]
    if len(shown) < 2:
        raise InputError(f"a comparison takes two points or more, got {len(shown)}")
    return shown, labels


def _present(
    circuit: Circuit, points: FloatArray, labels: FloatArray
) -> tuple[xr.Dataset, xr.Dataset]:
    """A run of all points but the last few, and one of these with the steps within them."""
    tail = max(1, min(TRACED, len(points) // 2))
    run = circuit.run(points[:-tail], labels[:-tail], snapshot_every=1, progress=True)
    step = circuit.run(points[-tail:], labels[-tail:], record=RECORDABLE, snapshot_every=1)
    return run, step


def labels_seen(shown: FloatArray, all_labels: FloatArray) -> str:
    """How many labels the comparison saw: without any, y = 0 agrees with y = 0."""
    given, whole = (labels.reshape(len(labels), -1).any(axis=1) for labels in (shown, all_labels))
    if given.any():
        return f"{int(given.sum())} of {len(shown)} presentations had a label"
    if whole.any():
        first = int(np.flatnonzero(whole)[0])
        return (
            f"none of the {len(shown)} presentations had a label, so that y stayed silent: the "
            f"first comes at presentation {first}, raise --points beyond it"
        )
    return f"none of the {len(shown)} presentations had a label, so that y stayed silent"


def _study_figures(run: xr.Dataset, p: CircuitParameters) -> dict[str, Figure]:
    """How the run would settle with other time constants, convergence in dt, and stability."""
    from analysis import studies

    settings: dict[str, dict[str, str]] = {"as they are": {}} | {
        f"{name} {word}": {name: f"{factor * value!r} s"}
        for name, value in (("tau_h", p.tau_h_), ("tau_u", p.tau_u_))
        for word, factor in (("halved", 0.5), ("doubled", 2.0))
    }
    return {
        "settling-error": studies.figure_settling_error(studies.settling_study(run, settings)),
        "convergence": studies.figure_convergence(studies.convergence_study()),
        "stability": studies.figure_stability_of(run),
    }
