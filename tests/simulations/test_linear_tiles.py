"""Linear classifiers on points and on tiles: against other solvers, loops and planted errors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from analysis.selection import SELECTION_SEED
from circuits import ReferenceCircuit
from simulations import sweep
from simulations.datasets import ROLL_LIFT, chessboard, swiss_roll
from simulations.experiments import get_experiment
from simulations.experiments import linear_tiles as module
from simulations.objective import random_features
from tests.simulations.printed import assert_printed
from tests.simulations.small import TINY, assert_range, claim_named, planted, simulate

NAME = "linear-tiles"
SIDES = (0.5, 1 / 3, 0.25)


def test_overlaps_by_hand():
    """Tiles 0 and 1 answer one point together, 1 and 2 only by less than a thousandth, 3 none."""
    h = np.array([[0.6, 0.8, 0, 0], [1, 0, 0, 0], [0, 1, 5e-4, 0], [0, 0, 1, 0]])
    assert np.argwhere(module.overlap_graph(h)).tolist() == [[0, 1], [1, 0]]
    assert module.overlapping_share(h) == pytest.approx(1 / 3)  # of the pairs of tiles in use
    h[2, 2] = 5e-3
    assert module.overlapping_share(h) == pytest.approx(2 / 3)
    # Of no pair there is no share; two tiles are one pair, which overlaps or does not.
    for alone in (h[:, 3:], h[:, :1], h[:, :0]):
        assert np.isnan(module.overlapping_share(alone))
    assert module.overlapping_share(h[:, :2]) == 1


def test_everything_that_is_stored_is_what_a_loop_finds(run):
    p, rng = get_experiment(NAME).parameters, np.random.default_rng(0)
    points, sheet = swiss_roll(200, rng)
    test, unrolled = swiss_roll(100, rng)
    every = np.concatenate([points, test])
    circuits = [
        ReferenceCircuit(p.replace(learning_rate=rate), ROLL_LIFT, settling="exact")
        for rate in (p.learning_rate, 0.0)
    ]
    for circuit in circuits:
        circuit.run(points)
    tiles, placed = (circuit.respond(every) for circuit in circuits)
    features = {"raw": every, "lifted": ROLL_LIFT(every)}
    features["random"] = random_features(ROLL_LIFT(every), 200, rng)
    features |= {"placed": placed, "tiles": tiles, "permuted": tiles}
    order = rng.permutation(200)
    classes, expected = (
        np.column_stack([chessboard(where, side) for side in SIDES]) for where in (sheet, unrolled)
    )
    assert (run["test_classes"].transpose(..., "board").values == expected).all()
    for name, f in features.items():
        known = classes[order] if name == "permuted" else classes
        for penalty in TINY[NAME]["penalty_grid"]:
            score = Ridge(alpha=penalty).fit(f[:200], known).predict(f[200:])
            wrong = (np.sign(score) != expected).sum(axis=0) / 100
            found = run[f"{name}_error"].sel(penalty=penalty)
            np.testing.assert_allclose(found, wrong, atol=1e-12, err_msg=f"{name}, {penalty}")
            if name in ("raw", "tiles"):
                shown = run["linear_answer"].sel(shown=name, penalty=penalty)
                assert (shown.transpose(..., "board").values == np.sign(score)).all()
    np.testing.assert_array_equal(run["test_unrolled"], unrolled)
    assert (run["overlaps"].values == module.overlap_graph(tiles[:200])).all()
    for tile in range(200):
        nearest = max(range(100), key=lambda t: tiles[200 + t, tile])
        assert run["tile_place"].values[tile].tolist() == unrolled[nearest].tolist()
    assert run["graph"].values.tolist() == ["random", "placed", "tiles"]
    shares = [module.overlapping_share(features[name][:200]) for name in run["graph"].values]
    np.testing.assert_allclose(run["overlapping"], shares)
    assert run["shown"].values.tolist() == ["raw", "tiles"]
    assert run["board"].values.tolist() == ["0.5", "0.333", "0.25"]


def with_errors(registered, reported, selected):
    """Errors (board, penalty) of the reported repeats and of those for choosing."""
    merged = registered
    choosing = merged["seed"].values >= SELECTION_SEED
    noise = 0.004 * np.random.default_rng(0).standard_normal(len(choosing))
    for name in module.FEATURES:
        room = merged[f"{name}_error"].transpose("repeat", "board", "penalty")
        array = np.empty(room.shape)
        array[:] = np.where(choosing[:, None, None], selected[name], reported[name])
        merged = merged.assign({f"{name}_error": room.copy(data=array + noise[:, None, None])})
    return merged


def errors(**values):
    """The same on every board, at both penalties, unless said otherwise."""
    all_alike = {name: np.full((3, 2), 0.3) for name in module.FEATURES}
    return all_alike | {name: np.broadcast_to(value, (3, 2)) for name, value in values.items()}


def test_claims_on_errors_hold_where_they_do_and_only_there(registered):
    def verdicts(**values):
        merged = with_errors(registered, errors(**values), errors())
        return [claim_named(NAME, merged, w).holds for w in ("fails on the", "is linear")]

    # No other features count.
    others = dict.fromkeys(("lifted", "random", "placed", "permuted"), 0.01)
    assert verdicts(raw=0.45, tiles=0.1, **others) == [True, True]
    assert verdicts(raw=0.4, tiles=0.15) == [None, None]
    # Every board counts.
    for board in range(3):
        raw, tiles = np.full((3, 2), 0.45), np.full((3, 2), 0.1)
        raw[board], tiles[board] = 0.35, 0.2
        assert verdicts(raw=raw, tiles=tiles) == [False, False]


def test_penalties_are_chosen_on_other_repeats(registered):
    """There the second penalty is better; on the reported ones it is the first."""
    selected = errors(raw=[0.5, 0.2], tiles=[0.5, 0.2])
    merged = with_errors(registered, errors(raw=[0.3, 0.45], tiles=[0.3, 0.1]), selected)
    raw, tiles, _ = get_experiment(NAME).claims(merged)
    assert (raw.holds, tiles.holds) == (True, True)
    assert "0.5: 0.45" in raw.figure


def test_the_graph_is_sparse_or_not(registered):
    def verdict(tiles, others):
        room = registered["overlapping"].transpose("repeat", "graph")
        noise = 0.01 * np.random.default_rng(0).standard_normal(room.sizes["repeat"])
        array = np.full(room.shape, others)
        array[:, 2] = tiles + noise
        array[registered["seed"].values >= SELECTION_SEED, 2] = others  # not reported
        merged = registered.assign(overlapping=room.copy(data=array))
        return claim_named(NAME, merged, "sparse").holds

    assert verdict(0.2, 0.9) is True
    assert verdict(0.3, 0.0) is False
    assert verdict(0.25, 0.9) is None


def test_numbers_are_printed(run):
    merged = sweep.merge([run, simulate(NAME, seed=1)])
    claims = get_experiment(NAME).claims(merged)
    assert [claim.holds for claim in claims] == [None] * 3  # far below the registered size

    def least(name):
        return merged[f"{name}_error"].mean("repeat").min("penalty").values

    controls = (("random", "lifted"), ("permuted", "placed", "random"))
    for claim, names in zip(claims, controls, strict=False):
        for name in names:
            assert f"0.5: {least(name)[0]:.3f}" in claim.control
    assert f"{min(least('raw')):.3f}, " in claims[0].short
    assert f"{max(least('tiles')):.3f}, " in claims[1].short
    shares = merged["overlapping"].mean("repeat")
    assert f"{float(shares.sel(graph='tiles')):.3f} of pairs" in claims[2].short
    for graph in ("random", "placed"):
        assert f" {float(shares.sel(graph=graph)):.3f}" in claims[2].control
    assert_printed(NAME, merged)


def test_registered_size_is_in_repeats_points_and_test_points(registered):
    sizes = ({"n_points": 1999}, {"n_test": 1999})
    smaller = [planted(NAME, lambda seed, run: {}, **changes) for changes in sizes]
    for few in (*smaller, registered.isel(repeat=slice(1, None))):
        merged = with_errors(few, errors(raw=0.45), errors())
        assert claim_named(NAME, merged, "fails on the").holds is None


def test_settings():
    experiment = get_experiment(NAME)
    assert experiment.seeds(10) == [*range(10), *range(SELECTION_SEED, SELECTION_SEED + 5)]
    full, quick = (experiment.config("exact", {}, q).settings for q in (False, True))
    assert (2 * quick.n_points, 2 * quick.n_test) == (full.n_points, full.n_test)
    # Beyond these penalties the matrix is not regular.
    assert_range(NAME, "penalty_grid", [(1e-6, 1e6)], [(0.9e-6,), (1.1e6,)])
