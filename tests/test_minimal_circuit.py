"""The script that shows the circuit in plain Brian2 gives the numbers of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from circuits import CircuitParameters, ReferenceCircuit, SphereLift

SCRIPT = Path(__file__).parents[1] / "docs" / "minimal_circuit.py"

# Runs the script without compiling anything, then keeps what it computed.
KEEP = """
import runpy, sys, brian2, numpy as np
brian2.prefs.codegen.target = "numpy"
script, points, kept = sys.argv[1:]
sys.argv = [script, points]
found = runpy.run_path(script)
W = np.reshape(found["feedforward"].W, (found["n"], found["m"])).T
w = np.reshape(found["classifier"].w, (1, found["m"]))
h, y, b = found["h"].h[:, 1:].T, found["y"].y[:, 1:].T, found["tiles"].b[:]
np.savez(kept, points=found["points"], labels=found["labels"], h=h, y=y, W=W, b=b, w=w)
"""
TIMES = {"tau_h": "8 ms", "tau_u": "50 ms", "tau_V": "2 ms", "steps_per_presentation": 200}


def test_the_script_computes_what_the_package_does(tmp_path):
    command = [sys.executable, "-c", KEEP, str(SCRIPT), "60", str(tmp_path / "kept.npz")]
    subprocess.run(command, check=True, cwd=tmp_path, env=os.environ | {"MPLBACKEND": "agg"})
    script = np.load(tmp_path / "kept.npz")
    assert np.count_nonzero(script["labels"]) == 2
    parameters = CircuitParameters(tiles="first", tile_radius=0.4, gain="auto", **TIMES)
    circuit = ReferenceCircuit(parameters, SphereLift((0, 0), 3.0))
    run = circuit.run(script["points"], script["labels"])
    for name in ("h", "y", "W", "b", "w"):
        # Rounding of 12,000 steps.
        np.testing.assert_allclose(script[name], run[name], rtol=0, atol=1e-8, err_msg=name)
    assert np.abs(script["y"]).max() == 1
