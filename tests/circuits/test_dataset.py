"""When a run warns: the share of presentations that may move, and what counts as moving."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from circuits import ReferenceCircuit, SphereLift
from circuits.errors import UnsettledWarning
from tests.conftest import moons, small_circuit

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


def changes(moving: int, count: int) -> np.ndarray:
    """Relative changes of which so many are just above one in a million, the others just below."""
    return np.where(np.arange(count) < moving, 1.01e-6, 0.99e-6)


@pytest.mark.parametrize(("moving", "warns"), [(4, False), (5, True)])
def test_runs_and_predictions_warn_at_that_share(monkeypatch, moving, warns):
    points, _, _ = moons(20, after=5)
    circuit = ReferenceCircuit(small_circuit(tile_radius=1.0), LIFT, settling="exact")
    advance = circuit._advance

    def moved(state, task):
        return advance(state, task) | {"change": changes(moving, len(task.x))}

    monkeypatch.setattr(circuit, "_advance", moved)
    for present in (circuit.run, circuit.predict, circuit.respond):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = present(points)
        assert [warning.category for warning in said] == [UnsettledWarning] * warns
        if warns:
            assert "5 of 20 presentations (25%)" in str(said[0].message)
        if present == circuit.run:
            assert found.attrs["unsettled_share"] == moving / 20
