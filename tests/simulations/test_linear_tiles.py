"""Linear classifiers on points and on tiles: against other solvers, loops and planted errors."""

from __future__ import annotations

import numpy as np
import pytest

from circuits import ReferenceCircuit
from circuits.errors import ParameterError
from circuits.selection import SELECTION_SEED
from simulations import sweep
from simulations.datasets import ROLL_LIFT, chessboard, swiss_roll
from simulations.experiments import get_experiment
from simulations.experiments import linear_tiles as module
from simulations.objective import random_features
from tests.simulations.printed import assert_printed
from tests.simulations.small import TINY, claim_named, planted, simulate

NAME = "linear-tiles"
SIDES = {"0.5": 0.5, "0.333": 1 / 3, "0.25": 0.25}


@pytest.fixture(scope="module")
def run():
    return simulate(NAME)


@pytest.fixture(scope="module")
def registered():
    return planted(NAME, lambda seed, run: {})


def test_the_classifier_is_ridge_regression_with_a_free_intercept():
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    f, test, z = rng.random((30, 4)), rng.random((9, 4)), np.sign(rng.random((30, 2)) - 0.3)
    for penalty in (1e-3, 2.0):
        expected = Ridge(alpha=penalty, solver="cholesky").fit(f, z).predict(test)
        found = module.linear_scores(f, z, test, penalty)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_class_that_is_linear_is_found_and_one_that_is_not_is_missed():
    rng = np.random.default_rng(1)
    f = rng.random((400, 2))
    line = np.where(f[:, 0] > 0.4, 1, -1)
    both = np.where((f[:, 0] > 0.5) == (f[:, 1] > 0.5), 1, -1)
    scores = module.linear_scores(f, np.column_stack([line, both]), f, 1e-6)
    wrong = (np.sign(scores) != np.column_stack([line, both])).mean(axis=0)
    assert wrong[0] < 0.1
    assert wrong[1] > 0.3


def test_overlaps_by_hand():
    """Tiles 0 and 1 answer one point together, 1 and 2 only by less than a thousandth, 3 none."""
    h = np.array([[0.6, 0.8, 0, 0], [1, 0, 0, 0], [0, 1, 5e-4, 0], [0, 0, 1, 0]])
    expected = np.zeros((4, 4), dtype=bool)
    expected[0, 1] = expected[1, 0] = True
    assert (module.overlap_graph(h) == expected).all()
    assert module.overlapping_share(h) == pytest.approx(1 / 3)  # of the pairs of tiles in use
    h[2, 2] = 5e-3
    assert module.overlapping_share(h) == pytest.approx(2 / 3)
    assert np.isnan(module.overlapping_share(h[:, 3:]))


def test_everything_that_is_stored_is_what_a_loop_finds(run):
    from sklearn.linear_model import Ridge

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
    for board, side in SIDES.items():
        classes, expected = chessboard(sheet, side), chessboard(unrolled, side)
        assert run["test_classes"].sel(board=board).values.tolist() == expected.tolist()
        for name, f in features.items():
            known = classes[order] if name == "permuted" else classes
            for penalty in TINY[NAME]["penalty_grid"]:
                score = Ridge(alpha=penalty).fit(f[:200], known).predict(f[200:])
                wrong = sum(np.sign(s) != c for s, c in zip(score, expected, strict=True)) / 100
                found = run[f"{name}_error"].sel(board=board, penalty=penalty)
                assert float(found) == pytest.approx(wrong, abs=1e-12), (name, board, penalty)
                if name in ("raw", "tiles"):
                    shown = run["linear_answer"].sel(shown=name, board=board, penalty=penalty)
                    assert shown.values.tolist() == np.sign(score).tolist()
    np.testing.assert_array_equal(run["test_unrolled"], unrolled)
    assert (run["overlaps"].values == module.overlap_graph(tiles[:200])).all()
    for tile in range(200):
        nearest = max(range(100), key=lambda t: tiles[200 + t, tile])
        assert run["tile_place"].values[tile].tolist() == unrolled[nearest].tolist()
    assert run["graph"].values.tolist() == ["random", "placed", "tiles"]
    shares = [module.overlapping_share(features[name][:200]) for name in run["graph"].values]
    np.testing.assert_allclose(run["overlapping"], shares)


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
    selected = errors()

    def verdicts(**values):
        merged = with_errors(registered, errors(**values), selected)
        return [claim_named(NAME, merged, w).holds for w in ("fails on the", "is linear")]

    assert verdicts(raw=0.45, tiles=0.1) == [True, True]
    assert verdicts(raw=0.35, tiles=0.2) == [False, False]
    assert verdicts(raw=0.4, tiles=0.15) == [None, None]
    # Every board counts, and no other features do.
    for board in range(3):
        raw, tiles = np.full((3, 2), 0.45), np.full((3, 2), 0.1)
        raw[board], tiles[board] = 0.35, 0.2
        assert verdicts(raw=raw, tiles=tiles) == [False, False]
    others = dict.fromkeys(("lifted", "random", "placed", "permuted"), 0.01)
    assert verdicts(raw=0.45, tiles=0.1, **others) == [True, True]


def test_penalties_are_chosen_on_other_repeats(registered):
    """There the second penalty is better; on the reported ones it is the first."""
    selected = errors(raw=[0.5, 0.2], tiles=[0.5, 0.2])
    merged = with_errors(registered, errors(raw=[0.3, 0.45], tiles=[0.3, 0.1]), selected)
    assert claim_named(NAME, merged, "fails on the").holds is True
    assert claim_named(NAME, merged, "is linear").holds is True
    assert "0.5: 0.45" in claim_named(NAME, merged, "fails on the").figure


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


def test_claims_name_figures_of_circuit_and_controls(run):
    merged = sweep.merge([run, simulate(NAME, seed=1)])
    claims = get_experiment(NAME).claims(merged)
    assert [claim.holds for claim in claims] == [None] * 3  # far below the registered size
    assert all(len(claim.short) <= 60 for claim in claims)
    for name, claim in (("random", claims[0]), ("lifted", claims[0]), ("permuted", claims[1]),
                        ("placed", claims[1]), ("random", claims[1])):  # fmt: skip
        error = merged[f"{name}_error"].mean("repeat")
        assert f"0.5: {error.isel(board=0).values.min():.3f}" in claim.control
    least, most = (
        [merged[f"{name}_error"].mean("repeat").isel(board=b).values.min() for b in range(3)]
        for name in ("raw", "tiles")
    )
    assert claims[0].short.startswith(f"least error {min(least):.3f}, ")
    assert claims[1].short.startswith(f"largest error {max(most):.3f}, ")
    shares = merged["overlapping"].mean("repeat")
    assert f"{float(shares.sel(graph='tiles')):.3f} of pairs" in claims[2].short
    assert f"projections {float(shares.sel(graph='random')):.3f}" in claims[2].control
    assert f"never learned {float(shares.sel(graph='placed')):.3f}" in claims[2].control


def test_registered_size_is_in_repeats_points_and_test_points(registered):
    for changes in ({"n_points": 1999}, {"n_test": 1999}):
        merged = with_errors(planted(NAME, lambda s, r: {}, **changes), errors(raw=0.45), errors())
        assert claim_named(NAME, merged, "fails on the").holds is None
    few = registered.isel(repeat=slice(1, None))
    assert claim_named(NAME, with_errors(few, errors(raw=0.45), errors()), "fails").holds is None


def test_tiles_that_answer_alone_or_in_pairs():
    """Of no pair there is no share; two tiles are one pair, which overlaps or does not."""
    alone, pair = np.array([[0.5], [1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    assert np.isnan(module.overlapping_share(alone))
    assert np.isnan(module.overlapping_share(np.zeros((2, 0))))
    assert module.overlapping_share(pair) == 1
    assert module.overlapping_share(np.eye(2)) == 0


def test_variables_of_test_points_share_their_dimensions():
    run = simulate(NAME)
    dims = {
        "test_classes": ("board", "test"),
        "test_unrolled": ("test", "side"),
        "overlapping": ("graph",),
        "overlaps": ("tile", "other_tile"),
        "tile_place": ("tile", "side"),
    }
    assert {name: run[name].dims for name in dims} == dims
    assert run["shown"].values.tolist() == ["raw", "tiles"]


def test_penalties_are_chosen_on_half_as_many_other_repeats():
    seeds = get_experiment(NAME).seeds(10)
    assert seeds == [*range(10), *range(SELECTION_SEED, SELECTION_SEED + 5)]


def test_a_quick_run_has_half_of_the_points():
    full, quick = (get_experiment(NAME).config("exact", {}, q).settings for q in (False, True))
    for setting in ("n_points", "n_test"):
        assert 2 * getattr(quick, setting) == getattr(full, setting)
    assert quick.penalty_grid == full.penalty_grid


def test_penalties_stay_where_the_matrix_is_regular():
    experiment = get_experiment(NAME)
    assert experiment.config("exact", {"penalty_grid": (1e-6, 1e6)}).settings.penalty_grid[1] == 1e6
    for value in (0.9e-6, 1.1e6):
        with pytest.raises(ParameterError, match="penalty_grid"):
            experiment.config("exact", {"penalty_grid": (value,)})


def test_claims_are_worded_as_they_are_printed(registered):
    assert_printed(NAME, registered)
