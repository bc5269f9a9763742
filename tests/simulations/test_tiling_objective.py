"""Pairs and objectives of the tiling layer: against loops, and claims on planted numbers."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ReferenceCircuit
from simulations import sweep
from simulations.datasets import spiral_arcs, two_moons
from simulations.experiments import get_experiment
from simulations.experiments import tiling_objective as module
from simulations.objective import best_ascent, random_features, tiles_at
from tests.simulations.printed import assert_printed, kept
from tests.simulations.small import TINY, assert_range, claim_named, planted, simulate

NAME = "tiling-objective"


def pearson(a, b):
    a, b = np.array(a) - np.mean(a), np.array(b) - np.mean(b)
    return float((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))


def by_loops(x, alpha, H):
    """All measures of outputs, pair by pair."""
    pairs = [
        ((float(x[t] @ x[s]) - alpha) / (1 - alpha), float(H[t] @ H[s]))
        for t in range(len(x))
        for s in range(t)
    ]
    similar = [(a, b) for a, b in pairs if a > 0]
    below = [b for a, b in pairs if a <= 0]
    near = [b for a, b in pairs if -1 < a <= 0]
    factor = sum(a * b for a, b in similar) / sum(a * a for a, _ in similar)
    rest = sum((b - factor * a) ** 2 for a, b in similar) / sum(b * b for _, b in similar)
    found = {
        "similar": pearson(*zip(*similar, strict=True)),
        "all_pairs": pearson([max(a, 0) for a, _ in pairs], [b for _, b in pairs]),
        "factor": factor,
        "residual": np.sqrt(rest),
        "orthogonal": sum(b < 0.01 for b in below) / len(below),
        "orthogonal_near": sum(b < 0.01 for b in near) / len(near),
    }
    curve = []
    for low in np.arange(-4, 1, 0.2):
        inside = [b for a, b in pairs if low - 1e-9 <= a < low + 0.2 - 1e-9]
        curve.append(np.mean(inside) if inside else np.nan)
    return found, curve


def value(x, alpha, H):
    return float(((x @ x.T - alpha) * (H @ H.T)).sum())


def test_everything_that_is_stored_is_what_a_loop_finds(run):
    """The whole repeat again, manifold by manifold, with the same random numbers."""
    tiny = TINY[NAME]
    p, rng = get_experiment(NAME).parameters, np.random.default_rng(0)
    draws = {
        "ring": lambda: module.ring(tiny["n_points"], rng),
        "moons": lambda: two_moons(tiny["n_points"], 0.05, rng)[0],
        "arcs": lambda: spiral_arcs(tiny["n_points"], 0.02, rng)[0],
        "square": lambda: rng.random((tiny["n_points"], 2)),
    }
    assert run["time"].values.tolist() == [2, 6, 20, 60, 200]
    assert list(run["manifold"].values) == list(draws)
    for name, draw in draws.items():
        lift, points = module.MANIFOLDS[name].lift, draw()
        x, alpha = lift(points), lift.alpha(0.3)
        stream = points[rng.integers(len(points), size=200)]
        circuit, online = ReferenceCircuit(p, lift, settling="exact"), []
        for start, end in ((0, 2), (2, 6), (6, 20), (20, 60), (60, 200)):
            circuit.run(stream[start:end])
            online.append(circuit.respond(points))
        placed = ReferenceCircuit(p.replace(learning_rate=0), lift, settling="exact")
        placed.run(points[rng.permutation(len(points))])
        starts = [
            tiles_at(x, alpha, x[rng.choice(len(x), 40, replace=False)])
            for _ in range(tiny["n_starts"])
        ]
        outputs = {
            "online": online[-1],
            "optimum": best_ascent(x, alpha, [*starts, online[-1]]),
            "placed": placed.respond(points),
            "random": random_features(x, 40, rng),
        }
        best, own = value(x, alpha, outputs["optimum"]), run.sel(manifold=name)
        growth = [value(x, alpha, H) / best for H in online]
        np.testing.assert_allclose(own["growth"], growth, rtol=1e-9)
        for output, H in outputs.items():
            one = own.sel(output=output)
            assert float(one["ratio"]) == pytest.approx(value(x, alpha, H) / best, rel=1e-9)
            found, curve = by_loops(x, alpha, H)
            if name == "ring":  # its similar pairs are all alike: rounding decides on a correlation
                del found["similar"]
            for measure, expected in found.items():
                stored = float(one["measure_value"].sel(measure=measure))
                assert stored == pytest.approx(expected, rel=1e-9), (name, output, measure)
            np.testing.assert_allclose(one["overlap_curve"], curve, rtol=1e-9)
        above = np.triu_indices(len(x), 1)
        kept = rng.integers(len(above[0]), size=30)
        shown = [(above[0][k], above[1][k]) for k in kept]
        expected = [(x[t] @ x[s] - alpha) / (1 - alpha) for t, s in shown]
        np.testing.assert_allclose(own["pair_similarity"], expected, rtol=1e-9)
        np.testing.assert_allclose(
            own["pair_output"], [online[-1][t] @ online[-1][s] for t, s in shown], atol=1e-12
        )
    np.testing.assert_allclose(run["similarity"], np.arange(-3.9, 1, 0.2), atol=1e-12)
    assert float(run["engine_difference"]) == 0
    # No outputs are better than the optimum.
    assert (run["ratio"].sel(output="optimum") == 1).all()
    assert (run["ratio"] <= 1).all()
    assert (run["growth"] <= 1).all()


def test_the_ring_is_even_and_of_radius_one():
    points = module.ring(12, np.random.default_rng(3))
    angle = 2 * np.pi * (np.random.default_rng(3).random() + np.arange(12)) / 12
    np.testing.assert_allclose(points, np.column_stack([np.cos(angle), np.sin(angle)]), atol=1e-12)


def measured(similarities, outputs):
    pairs = module.Pairs(np.array(similarities), np.array(outputs))
    return dict(zip(module.MEASURES, module.measures(pairs), strict=True))


def test_measures_where_few_pairs_are_left_and_at_their_bounds():
    """Most values are held against loops above."""
    found = measured([0.2, 0.4], [1.0, 1.0])
    assert found["similar"] == 0
    assert found["factor"] == pytest.approx(0.6 / 0.2)
    assert found["residual"] == pytest.approx(np.sqrt((0.4**2 + 0.2**2) / 2))
    assert np.isnan([found["orthogonal"], found["orthogonal_near"]]).all()
    found = measured([-2.0, -3.0], [0.0, 0.0])
    assert found["similar"] == found["all_pairs"] == 0
    assert np.isnan([found["factor"], found["residual"]]).all()
    # At the threshold a pair is not similar, but near; 1 - alpha below it, it is not near.
    found = measured([0.5, 1.0, 0.0, -1.0], [0.5, 1.0, 0.9, 0.005])
    assert (found["orthogonal"], found["orthogonal_near"]) == (0.5, 0)
    # A hundredth is not below a hundredth.
    found = measured([0.5, -0.5, -0.5], [0.5, 0.01, 0.0])
    assert found["orthogonal"] == found["orthogonal_near"] == 0.5
    constant, varying = np.array([2.0, 2.0, 2.0]), np.array([0.0, 1.0, 0.5])
    assert module.correlation(constant, varying) == module.correlation(varying, constant) == 0
    assert module.correlation(np.array([1.0]), np.array([2.0])) == 0


FEW = {"n_stream": 100, "n_points": 20, "n_starts": 1}


def test_the_engine_runs_on_the_ring():
    """The dynamics in NumPy stand for any engine: near the closed form, and not it. There may be
    more tiles than points."""
    found = simulate(NAME, "reference", n_tiles=30, **FEW)
    assert 0 < float(found["engine_difference"]) < 1e-5
    assert simulate(NAME, n_tiles=30, **FEW)["growth"].equals(found["growth"])
    assert np.isfinite(found["growth"]).all()


def test_what_went_wrong_on_any_manifold_is_said(monkeypatch):
    """Four tiles that stay where they are cover a ring as small as they are, and no square."""
    ring, square = module.MANIFOLDS["ring"], module.MANIFOLDS["square"]
    small = {"ring": ring._replace(draw=lambda n, rng: 0.01 * ring.draw(n, rng))}
    uncovered = []
    for manifolds in (small, small | {"square": square}):
        monkeypatch.setattr(module, "MANIFOLDS", manifolds)
        found = simulate(NAME, recycle=False, n_tiles=4, **FEW)
        uncovered.append(found.attrs["uncovered_share"])
    assert uncovered[0] == 0
    assert uncovered[1] > 0.1


MEASURED = {
    "outputs follow": ("similar", 0.9),
    "near pairs stay": ("all_pairs", 0.7),
    "dissimilar inputs are orthogonal": ("orthogonal", 0.75),
    "right below": ("orthogonal_near", 0.75),
}


def noisy(merged, name, scale):
    """Room for a variable of all repeats, filled with noise that differs between repeats."""
    noise = scale * np.random.default_rng(0).standard_normal(merged.sizes["repeat"])
    room = merged[name].transpose("repeat", ...)
    return room.copy(data=np.broadcast_to(noise.reshape(-1, *[1] * (room.ndim - 1)), room.shape))


def test_claims_on_pairs_follow_the_circuit_on_every_manifold(registered):
    def verdicts(online, others, worst=None):
        """Of the circuit's measures, so far from their bounds on every manifold but one; all other
        values are ``others`` from the least bound."""
        values = noisy(registered, "measure_value", 0.01)
        array = values.data + 0.7 + others
        for measure, bound in MEASURED.values():
            place = module.MEASURES.index(measure)
            array[:, :, 0, place] = values.data[:, :, 0, place] + bound + online
            if worst is not None:
                array[:, worst, 0, place] = values.data[:, worst, 0, place] + bound - 0.2
        merged = registered.assign(measure_value=values.copy(data=array))
        found = {claim.claim: claim.holds for claim in get_experiment(NAME).claims(merged)}
        return {holds for name, holds in found.items() if any(w in name for w in MEASURED)}

    assert verdicts(0.03, -0.2) == {True}
    assert verdicts(-0.03, 0.3) == {False}
    assert verdicts(0, 0.3) == {None}
    assert [verdicts(0.03, 0.3, worst) for worst in range(4)] == [{False}] * 4


def test_the_objective_is_judged_at_the_end_of_the_stream_on_every_manifold(registered):
    def verdict(end, before, worst=None):
        values = noisy(registered, "growth", 0.003)
        array = values.data + before
        array[:, :, -1] += end - before
        if worst is not None:
            array[:, worst, -1] -= 0.1
        merged = registered.assign(growth=values.copy(data=array))
        return claim_named(NAME, merged, "online objective").holds

    assert verdict(0.98, 0.5) is True
    assert verdict(0.96, 0.99) is False
    assert verdict(0.97, 0.99) is None
    assert [verdict(0.98, 0.99, worst) for worst in range(4)] == [False] * 4


def test_below_the_registered_size_nothing_is_decided():
    sizes = ({"n_points": 299}, {"n_stream": 9999}, {"n_starts": 4}, {"repeats": 9})
    for changes in ({}, *sizes):
        merged = planted(NAME, lambda seed, run: {}, **changes)
        growth = noisy(merged, "growth", 1e-4) + 0.99
        holds = claim_named(NAME, merged.assign(growth=growth), "online objective").holds
        assert holds is (None if changes else True), changes


def test_numbers_are_printed(run):
    merged = sweep.merge([run, simulate(NAME, seed=1)])
    claim, near = (claim_named(NAME, merged, name) for name in ("outputs follow", "online obj"))
    mean = merged["measure_value"].mean("repeat")
    similar, ring = mean.sel(measure="similar"), merged.sel(manifold="ring").mean("repeat")
    assert f"{float(similar.sel(output='online').min()):.2f}" in claim.short
    for output in ("optimum", "placed", "random"):
        assert f"ring {float(similar.sel(output=output, manifold='ring')):.3g}" in claim.control
    factor = mean.sel(measure="factor", output="online", manifold="moons")
    assert f"moons {float(factor):.3g}" in claim.figure
    for time in (2, 200):
        assert f"{time}: ring {float(ring['growth'].sel(time=time)):.3g}" in near.figure
    assert f"ring {float(ring['ratio'][2]):.3g}" in near.control
    assert_printed(NAME, merged)


def test_settings():
    assert_range(NAME, "n_starts", (1000,), (1001,))
    full, quick = (get_experiment(NAME).config("exact", {}, q).settings for q in (False, True))
    assert (3 * quick.n_points, 5 * quick.n_stream) == (full.n_points, full.n_stream)
    # The documentation prints the objective at these times.
    times = [round(share * full.n_stream) for share in module.GROWTH]
    figure = kept(NAME)[-1].figure
    assert [f"{time}: ring" in figure for time in times] == [True] * 5
