"""Run the generated C++ under the address and undefined-behaviour sanitizers.

    python -m tests.sanitize

Every shape of program is compiled with both sanitizers and compared with the reference. A last
program has a fault planted in it: the sanitizers must report that one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from circuits import (
    CircuitParameters,
    Delay,
    Lesion,
    ManifoldCircuit,
    ReferenceCircuit,
    SpikingCircuit,
    SpikingParameters,
)
from circuits.engines import cache, compiler
from circuits.errors import EngineError
from circuits.spiking.reference import SpikingReference
from tests.circuits.test_perturbations import EVERYTHING, LIFT, RECORD, SMALL, stream
from tests.soak.row import difference

FLAGS = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined")
RECYCLING = {"recycle": True, "n_tiles": 13, "tile_radius": 0.3}
GATED = {"readout_rule": "gated", "readout_rate": 0.3, "n_readouts": 3, "readout": "tanh"}
MASKED = [Lesion(lateral=0.3, feedforward=0.3, classifier=0.3, at=20), Delay(time="2 ms")]
QUIET = SpikingParameters(presentation="50 ms", window="25 ms", readout_cells=4, noise=0.0)

SHAPES: dict[str, tuple[CircuitParameters, dict[str, Any], tuple[str, ...]]] = {
    "plain": (SMALL, {}, ()),
    "recording": (SMALL, {}, RECORD),
    "perturbed": (SMALL, {"perturbations": EVERYTHING}, ()),
    "recycling": (SMALL.replace(**RECYCLING), {}, ()),
    "masked, with delay": (SMALL, {"perturbations": MASKED}, ()),
    "three gated readouts, carried over": (SMALL.replace(**GATED, reset=False), {}, RECORD),
    "spiking": (SMALL, {"spiking": QUIET}, ("spikes",)),
}


def disagreement(parameters: CircuitParameters, options: dict[str, Any], record: Any) -> float:
    """The largest difference between the compiled program and the reference."""
    spiking = "spiking" in options
    points, labels = stream(20 if spiking else 60)
    if parameters.n_readouts > 1:
        labels = np.repeat(labels[:, None], parameters.n_readouts, axis=1)
    compiled, reference = (
        (SpikingCircuit, SpikingReference) if spiking else (ManifoldCircuit, ReferenceCircuit)
    )
    run, expected = (
        circuit.run(points, labels, record=record, snapshot_every=7)
        for circuit in (
            compiled(parameters, LIFT, engine="cpp_standalone", **options),
            reference(parameters, LIFT, **options),
        )
    )
    assert set(run.data_vars) == set(expected.data_vars)
    return difference(run, expected)


def planted() -> None:
    """Run a program that reads past the end of an array."""

    def extend(network: Any) -> None:
        from brian2 import Function, NeuronGroup

        peek = Function(lambda i: 0.0 * i, arg_units=[1], return_unit=1)
        code = "static double kept[2]; double peek(int i) { return kept[i]; }"
        peek.implementations.add_implementation("cpp", code)
        tiles = network["excitatory"]
        group = NeuronGroup(
            9, "seen : 1", clock=tiles.clock, name="peeking", namespace={"peek": peek}
        )
        group.run_regularly("seen = peek(i)", clock=tiles.clock)
        network.add(group)

    ManifoldCircuit(SMALL, LIFT, "cpp_standalone", extend=extend).run(*stream(2))


def main() -> None:
    """Print one line per program, and end with an error if anything is wrong."""
    warnings.simplefilter("ignore")  # about circuits that do not settle
    compiler.FLAGS += FLAGS
    failed = []
    with tempfile.TemporaryDirectory(prefix="manifold-circuit-sanitize-") as folder:
        os.environ[cache.DIRECTORY_VARIABLE] = str(Path(folder, "builds"))
        log = Path(folder, "report")
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            os.environ[name] = f"log_path={log}:print_stacktrace=1"

        def reports() -> int:
            found = sorted(log.parent.glob("report*"))
            for path in found:
                print(path.read_text(errors="replace")[:3000], file=sys.stderr)
                path.unlink()
            return len(found)

        total = 0
        for name, shape in SHAPES.items():
            try:
                apart = disagreement(*shape)
            except EngineError as error:
                print(error, file=sys.stderr)
                apart = float("inf")
            count = reports()
            total += count
            print(f"{name}: {count} reports, {apart:.1e} from the reference", flush=True)
            # Rounding, as in test_agreement.py.
            if count or apart > 1e-10:
                failed.append(name)
        with contextlib.suppress(EngineError):
            planted()
        noticed = bool(list(log.parent.glob("report*")))
        print(f"planted fault: {'reported' if noticed else 'NOT reported'}")
    print(f"{len(SHAPES)} programs, {total} reports")
    sys.exit(bool(failed) or not noticed)


if __name__ == "__main__":
    main()
