"""The demonstration: two moons from two labels, beside the reference."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import xarray as xr

from analysis.measures import accuracy
from circuits import (
    ManifoldCircuit,
    ReferenceCircuit,
    SpikingCircuit,
    SpikingParameters,
)
from circuits.storage import files, results
from circuits.storage.saved_circuit import require_free
from simulations.experiments import two_moons
from simulations.own_data import circuit_beside


def run_demo(engine: str, seed: int, out: Path, spiking: SpikingParameters | None = None) -> None:
    """Run the circuit, or its spiking twin, and the reference; save result and figure, print how
    well it went."""
    files.require_folder(out)
    stream = two_moons.make_stream(two_moons.Settings(), seed)
    p, lift = stream.parameters, stream.lift
    circuit = (
        ManifoldCircuit(p, lift, engine)
        if spiking is None
        else SpikingCircuit(p, lift, engine, spiking=spiking, seed=seed)
    )
    target = out / "two-moons.nc"
    results.make_way(target, "demo")
    kept = circuit_beside(target)
    require_free(kept)
    print(f"preparing engine {circuit.engine}", file=sys.stderr)
    started = time.perf_counter()
    compiled = circuit.prepare(snapshot_every=1)
    prepared = time.perf_counter()
    run = circuit.run(stream.points, stream.labels, snapshot_every=1, progress=True)
    seconds = time.perf_counter() - prepared
    run = two_moons.annotate(run, stream, seed).assign_attrs(kind="demo")
    path = results.save(run, target)
    circuit.save(kept)

    reference = ReferenceCircuit(p, lift)
    expected = reference.run(stream.points, stream.labels, snapshot_every=1, progress=True)

    # Drawing imports matplotlib; the result is safe by now.
    from analysis.figures.moons import figure
    from analysis.style import save_figure

    drawn = save_figure(figure(run), out / "two-moons")
    n_points = len(stream.points)
    share = accuracy(run["y"].to_numpy()[n_points // 2 :, 0], stream.classes[n_points // 2 :])
    if compiled:
        print(f"compiled             in {prepared - started:.2f} s, kept for the next time")
    print(f"engine               {circuit.engine}")
    print(f"accuracy             {share:.4f} on the second half of {n_points} points")
    print(f"time                 {seconds:.2f} s for {n_points} presentations")
    print(_agreement(run, expected) if spiking is None else _firing(run, expected))
    for file in (path, kept, *drawn):
        print(f"wrote                {file}")
    print(f"to use the circuit   manifold-circuit predict {kept} --data {path}")


def _agreement(run: xr.Dataset, expected: xr.Dataset) -> str:
    """How a circuit of rates went, beside the reference."""
    from analysis.agreement import largest_differences, signs_agree

    differences = largest_differences(run, expected)
    worst = max(differences, key=lambda name: differences[name])
    return (
        f"settled              {1 - run.attrs['unsettled_share']:.2%} of presentations, "
        f"{_covered(run)}\n"
        f"largest difference   {differences[worst]:.1e} ({worst}) from the NumPy reference\n"
        f"predicted signs      {'all equal' if signs_agree(run, expected) else 'NOT all equal'}"
    )


def _firing(run: xr.Dataset, expected: xr.Dataset) -> str:
    """How a spiking circuit went, beside the rates of the reference."""
    from analysis.likeness import firing_rates, same_signs

    return (
        f"presentations        {_covered(run)}\n"
        f"firing               {firing_rates(run)}\n"
        f"predicted signs      {same_signs(run, expected):.2%} as the NumPy reference of rates"
    )


def _covered(run: xr.Dataset) -> str:
    return (
        f"{1 - run.attrs['uncovered_share']:.2%} covered by a tile, "
        f"{run.attrs['lost_labels']} labels lost"
    )
