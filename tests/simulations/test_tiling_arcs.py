"""Tiles on two arcs: the stored measures by hand, and claims on results whose truth is planted."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ReferenceCircuit
from simulations.datasets import spiral_arcs
from simulations.experiments import get_experiment
from simulations.experiments.tiling_arcs import described
from tests.simulations.printed import assert_printed
from tests.simulations.small import planted, simulate

NAME = "tiling-arcs"


def test_fields_by_hand():
    # Three tiles and one that is idle; no tile responds to the last point.
    h = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0.6, 0.8, 0, 0], [0, 0.001, 1, 0], [0, 0, 0, 0]])
    classes = np.array([1, 1, 1, -1, -1])
    coverage, overlap, pure = described(h, classes)
    assert coverage == 4 / 5
    assert overlap == (1 + 1 + 2 + 2 + 0) / 5
    assert pure == 2 / 3  # the middle one has 0.001 of 0.801 on the other arc
    h[3, 1] = 0.0007  # of 0.8007: less than a thousandth
    assert described(h, classes)[2] == 1
    # A share of exactly 0.999 is pure.
    classes = np.array([1, -1])
    assert described(np.array([[999.0], [1.0]]), classes)[2] == 1
    assert described(np.array([[998.0], [2.0]]), classes)[2] == 0


def test_what_is_stored_by_hand():
    run = simulate(NAME, seed=3)
    experiment = get_experiment(NAME)
    rng = np.random.default_rng(3)
    streams = [spiral_arcs(300, 0.02, rng) for _ in range(10)]
    points, classes = streams[0]
    assert (run["points"].to_numpy() == points).all()
    assert (run["classes"].to_numpy() == classes).all()
    for i in (0, 9):
        for name, radius in (("exact", 0.35), ("wide", 3 * 0.35)):
            p = experiment.parameters.replace(tile_radius=radius)
            solver = ReferenceCircuit(p, experiment.lift, settling="exact")
            solver.run(streams[i][0])
            expected = described(solver.respond(streams[i][0]), streams[i][1])
            found = [float(run[f"{name}_{m}"][i]) for m in ("coverage", "overlap", "pure")]
            assert found == pytest.approx(expected, abs=1e-12)
    # The engine is the exact solver here: its own stream is the first.
    for measure in ("coverage", "overlap", "pure"):
        assert float(run[measure]) == float(run[f"exact_{measure}"][0])
    assert run["snapshot"].to_numpy().tolist() == [100, 200, 300]
    assert float(run["wide_pure"].max()) < 0.5 < 0.99 < float(run["exact_pure"].min())
    h = run["h_final"].to_numpy()
    mass = np.array([h[classes == label].sum(axis=0) for label in (-1, 1)])
    total = np.where(mass.sum(axis=0) > 0, mass.sum(axis=0), np.nan)
    np.testing.assert_allclose(run["purity"], mass.max(axis=0) / total, rtol=1e-12)


def as_claimed(seed, run):
    jitter = 0.01 * (seed % 3)
    return {
        "exact_coverage": np.full(10, 0.999),
        "exact_overlap": np.full(10, 2.5 + jitter),
        "exact_pure": np.ones(10),
        "wide_pure": np.full(10, 0.25),
        "coverage": 0.999,
        "overlap": 2.5 + jitter,
        "pure": 1.0,
    }


def claims(values=as_claimed):
    """The claims on coverage and on purity."""
    return get_experiment(NAME).claims(planted(NAME, values))


@pytest.mark.parametrize(
    ("variable", "value", "verdicts"),
    [
        ("exact_coverage", 0.999, (True, True)),
        ("exact_coverage", 0.98, (False, True)),
        ("exact_coverage", [0.98, 1] * 5, (None, True)),
        ("exact_overlap", 1.9, (False, True)),
        ("exact_pure", 0.99, (True, False)),
    ],
)
def test_claims_follow_what_was_found(variable, value, verdicts):
    changed = {variable: np.broadcast_to(value, 10)}
    covers, shared = claims(lambda seed, run: as_claimed(seed, run) | changed)
    assert (covers.holds, shared.holds) == verdicts


def test_some_shared_tiles_leave_it_open():
    def values(seed, run):
        found = as_claimed(seed, run)
        found["exact_pure"][0] = 0.99 if seed < 3 else 1.0
        return found

    _, shared = claims(values)
    assert shared.holds is None  # three of a hundred do not rule out one in twenty
    assert "0.970 of 100 seeds" in shared.figure
    assert "25.00%" in shared.control
    assert_printed(NAME, planted(NAME, as_claimed, 2), figures=False)


def test_the_circuit_is_compared_on_its_own_stream():
    def values(seed, run):
        own = as_claimed(seed, run)
        own["exact_coverage"][1:] = 0.5  # of other streams
        return own

    merged = planted(NAME, values)
    engines = ["exact"] * 4 + ["cpp_standalone"] * 6
    both = merged.assign_coords(run_engine=("repeat", engines))
    covers, _ = get_experiment(NAME).claims(both)
    # 0.999 once and 0.5 nine times; 2.5, 2.51 and 2.52 on 4, 3 and 3 of ten seeds.
    assert "0.550 ± 0.150 of points covered, 2.509 ± 0.008 tiles" in covers.figure
    assert "(cpp_standalone and exact, 10 seeds) at most 0 from it" in covers.figure

    def apart(seed, run):
        return as_claimed(seed, run) | {
            "coverage": 0.999 - 0.25 * (seed == 4),
            "pure": 1.0 - 0.125 * (seed == 2),
        }

    for claim in claims(apart):
        assert "at most 0.2 from it" in claim.figure  # 0.25, to one digit
