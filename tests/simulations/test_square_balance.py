"""Two labels on a square: what is stored, by hand, and claims on results whose truth is planted."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sklearn.svm import SVC

from circuits import ReferenceCircuit
from simulations.datasets import unit_square
from simulations.experiments import get_experiment
from simulations.experiments.square_balance import (
    APPROACHES,
    CUTS,
    _majority,
    _shares,
    fixed_point,
    minimum_cut,
)
from tests.simulations.printed import assert_printed
from tests.simulations.small import TINY, assert_range, planted, simulate

NAME = "square-balance"
SEED = 3
AFTER = TINY[NAME]["label_after"]


@pytest.fixture(scope="module")
def run():
    return simulate(NAME, seed=SEED)


def solved(after: int):
    """Points, labels, responses and weights of the exact solver for one placement of labels."""
    experiment = get_experiment(NAME)
    rng = np.random.default_rng(SEED)
    points, labels = unit_square(TINY[NAME]["n_points"], after, rng, 0.1)
    solver = ReferenceCircuit(experiment.parameters, experiment.lift, settling="exact")
    solver.run(points, labels)
    return points, labels, solver.respond(points), solver.state.w[0]


def laplacian_scores(h, labels, lam: float, mu: float):
    """The machine with Laplacian penalty as a kernel machine, written another way."""
    S = sum(np.outer(row, row) for row in h) / len(h)
    L = np.diag(S.sum(axis=1)) - S
    inverse = np.linalg.inv(lam * np.eye(len(L)) + mu * L)
    known = labels != 0
    machine = SVC(C=0.5, kernel="precomputed", tol=1e-9)
    machine.fit(h[known] @ inverse @ h[known].T, labels[known])
    return machine.decision_function(h @ inverse @ h[known].T)


def described(scores, points):
    """Share in the larger class, on neither side, and on the side of their label: counted."""
    nearer = [np.hypot(x - 0.9, y - 0.9) < np.hypot(x - 0.1, y - 0.1) for x, y in points]
    signs = list(zip(scores, nearer, strict=True))
    plus, minus = (sum(sign * score > 0 for score in scores) for sign in (1, -1))
    own = sum(score > 0 if right else score < 0 for score, right in signs)
    n = len(points)
    return max(plus, minus) / n, 1 - (plus + minus) / n, own / n


def assert_described(run, approach: str, scores, points):
    one = run.sel(approach=approach)
    measures = [float(one[name]) for name in ("majority", "undecided", "own_side")]
    assert measures == pytest.approx(described(scores, points), abs=1e-12)


@pytest.mark.parametrize(("when", "after"), [("", 0), (", late", AFTER)])
def test_circuit_and_laplacian_by_hand(run, when, after):
    points, labels, h, w = solved(after)
    silent = labels == 0
    assert np.flatnonzero(~silent).tolist() == [after, after + 1]
    # The silent points are the same, whenever the labels come.
    assert (run["points"].to_numpy() == points[silent]).all()
    names = (f"circuit{when}", f"laplacian{when}")
    circuit, laplacian = (run["score"].sel(approach=name).to_numpy() for name in names)
    assert (circuit == (h @ w)[silent]).all()
    assert_described(run, names[0], circuit, points[silent])
    expected = laplacian_scores(h, labels, 3e-4, 1.0)[silent]
    # The machine's solver stops at 1e-6.
    np.testing.assert_allclose(laplacian, expected, atol=1e-5)
    assert_described(run, names[1], expected, points[silent])
    assert run["placement"].to_numpy().tolist() == ["first", "late"]


def test_settings_reach_the_methods(run):
    _, labels, h, _ = solved(0)
    changed = simulate(NAME, seed=SEED, svm_lambda=1e-2, svm_mu=3.0, mu=50.0, cut_grid=(7,))
    expected = laplacian_scores(h, labels, 1e-2, 3.0)[labels == 0]
    np.testing.assert_allclose(changed["score"].sel(approach="laplacian"), expected, atol=1e-5)
    # The circuit's own gain is the first cut.
    assert changed["cut_mu"].to_numpy().tolist() == [50, 7]
    for mu, found in zip((50, 7), changed["cut_objective"].to_numpy(), strict=True):
        assert found == pytest.approx([cut.objective for cut in minimum_cut(h, labels, mu)])
    other = simulate(NAME, seed=SEED, inset=0.2)
    assert other.attrs["inset"] == 0.2
    assert not other["score"].equals(run["score"])
    assert_range(NAME, "inset", (0.49,), (0.5,))


def objective(h, labels, mu, w, y):
    """Eq. (zneuronONline2), term by term."""
    points = zip(h, labels, y, strict=True)
    terms = [(yt - zt) ** 2 / 2 - mu * yt * (w @ ht) for ht, zt, yt in points]
    return sum(terms) / len(h) + mu / 2 * (w @ w)


def iterated(h, labels, mu, w):
    """Weights after many alternations, and what they are worth."""
    for _ in range(3000):
        w = (np.clip(mu * (h @ w) + labels, -1, 1)[:, None] * h).mean(axis=0)
    return objective(h, labels, mu, w, np.clip(mu * (h @ w) + labels, -1, 1)), w


def test_minimum_cut_by_hand(run):
    points, labels, h, _ = solved(0)
    silent = labels == 0
    assert run["cut_mu"].to_numpy().tolist() == [10, 30, 100, 1000]
    assert run["cut"].to_numpy().tolist() == list(CUTS)
    assert run["cut_converged"].to_numpy().all()
    for mu in (10, 1000):
        found = [iterated(h, labels, mu, start * h.mean(axis=0)) for start in (0, -1, 1)]
        lowest = min(found, key=lambda pair: pair[0])
        cuts = minimum_cut(h, labels, mu)
        for name, cut, (value, w) in zip(CUTS, cuts, (found[0], lowest), strict=True):
            one = run.sel(cut_mu=mu, cut=name)
            assert int(one["cut_iterations"]) == cut.n_iterations
            # Near its minimum the objective is flat: weights within 1e-9 give it to 1e-12.
            assert float(one["cut_objective"]) == pytest.approx(value, rel=1e-9)
            share = described((h @ w)[silent], points[silent])[0]
            assert float(one["cut_majority"]) == pytest.approx(share, abs=1e-12)
            if (mu, name) == (10, "lowest"):
                scores = run["score"].sel(approach="minimum cut").to_numpy()
                np.testing.assert_allclose(scores, (h @ w)[silent], rtol=1e-6)
                assert_described(run, "minimum cut", scores, points[silent])


def test_alternation_stops_at_its_fixed_point():
    # No label, mu s = 2: one tile doubles its weight until it is clipped, and then w = mean h; the
    # other one answers nothing.
    h, silence = np.array([[0.5, 0.0]] * 5), np.zeros(5, dtype=int)
    found = fixed_point(h, silence, 8.0, np.array([0.01, 0.0]))
    assert found.w.tolist() == [0.5, 0.0]
    # 0.01, 0.02, ... 0.32: then 8 w h = 1.28 is clipped; one more iteration changes nothing.
    assert (found.n_iterations, found.converged) == (7, True)
    assert found.objective == pytest.approx(1 / 2 - 8 * 0.25 + 8 / 2 * 0.25)
    still = fixed_point(h, silence, 8.0, np.zeros(2))
    assert (still.w.tolist(), still.n_iterations, still.converged) == ([0.0, 0.0], 1, True)
    # Cuts start from w = 0 and from y = 1 everywhere, which gives w = mean h, and stays.
    silent, lowest = minimum_cut(h, silence, 8.0)
    assert (silent.w.tolist(), silent.n_iterations) == ([0.0, 0.0], 1)
    assert (np.abs(lowest.w).tolist(), lowest.n_iterations) == ([0.5, 0.0], 1)


def test_alternation_ends_when_no_weight_moves_by_more_than_its_share_of_the_largest():
    # The first tile has its label and stays at 1/2; the second forgets half of itself every time.
    h, labels = np.eye(2), np.array([1, 0])
    found = fixed_point(h, labels, 1.0, np.array([0.5, 1e-3]), tolerance=1e-4)
    # It moves by 5e-4, 2.5e-4, 1.25e-4, 6.25e-5, 3.125e-5, which is less than 5e-5.
    assert (found.n_iterations, found.converged) == (5, True)
    # One tile, no label: every iteration makes w mu times as large.
    h, silence, start = np.ones((4, 1)), np.zeros(4, dtype=int), np.array([0.01])
    for change, converged in ((0.95e-9, True), (1.05e-9, False)):
        assert fixed_point(h, silence, 1 / (1 + change), start, most=1).converged is converged
    # A decay by half is a change of the size of w itself.
    assert fixed_point(h, silence, 0.5, start, 1.0, most=5).n_iterations == 1
    endless = fixed_point(h, silence, 0.99, start)
    assert (endless.n_iterations, endless.converged) == (20_000, False)


@pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")
def test_labels_that_come_when_all_tiles_are_taken_may_be_seen_by_none():
    # Four tiles cover one of these two labels: the other is enough to say so.
    few = {"n_points": 100, "label_after": 20, "tiles": "first", "n_tiles": 4, "tile_radius": 0.1}
    points, labels = unit_square(100, 20, np.random.default_rng(0), 0.1)
    apart = np.linalg.norm(points[labels != 0][:, None] - points[:4], axis=2)
    assert (apart.min(axis=1) < 0.1).sum() == 1
    run = simulate(NAME, seed=0, **few)
    assert run["label_covered"].to_numpy().tolist() == [True, False]


def test_points_that_score_zero_are_in_neither_class():
    scores = np.array([[0.5, 0.0, 0.0, -0.5, 2.0], [-1.0, -1.0, -1.0, 0.0, 1.0]])
    assert _majority(scores).tolist() == [0.4, 0.6]
    # The first three points are on the side of the label -1, the others on that of +1.
    points = np.array([[0.1, 0.2], [0.5, 0.4], [0.0, 0.9], [0.6, 0.5], [0.9, 0.9]])
    found = {name: values.tolist() for name, (_, values) in _shares(scores, points).items()}
    assert found["undecided"] == [0.4, 0.2]
    assert found["own_side"] == [0.2, 0.8]
    assert found["majority"] == [0.4, 0.6]


# Claims


SEEDS = np.arange(200)
TURNS = (-1.0) ** SEEDS
RARE, MORE, FALLS, DIAGONAL, CUT = range(5)


def halves(width: float) -> np.ndarray:
    """Shares that fall off from 0.5, in any hundred repeats."""
    return 0.5 + width * (1 - np.sqrt(1 - (SEEDS % 100 + 0.5) / 100))


@cache
def registered(**changes: Any):
    """Repeats of the registered size, merged once: there are many."""
    return planted(NAME, lambda seed, run: {}, **changes)


def made(merged: xr.Dataset | None = None, **changes: Any) -> xr.Dataset:
    """Majorities and sides as the paper has them, by approach, with some majorities changed."""
    shares = {
        "circuit": halves(0.4),
        "laplacian": halves(0.2)[7 * SEEDS % 100],
        "circuit, late": halves(0.1),
        "laplacian, late": halves(0.2),
        "minimum cut": np.full(200, 0.99),
    } | changes
    side = {"laplacian": 0.9 + 0.02 * TURNS}
    merged = registered() if merged is None else merged
    values = {
        "majority": [shares[name] + 0 * SEEDS for name in APPROACHES],
        "own_side": [side.get(name, 0.5 + 0.001 * SEEDS) for name in APPROACHES],
    }
    return merged.assign(
        {name: (("repeat", "approach"), np.transpose(value)) for name, value in values.items()}
    )


def claims(merged):
    return get_experiment(NAME).claims(merged)


def verdicts(merged) -> list[bool | None]:
    return [claim.holds for claim in claims(merged)]


def test_claims_hold_on_data_made_so_and_are_not_decided_on_fewer_repeats():
    assert get_experiment(NAME).repeats == 200
    merged = made()
    assert verdicts(merged) == [True] * 5
    # Every run's cut is one class: a tenth of the repeats decides that, no fewer.
    for repeats, cut in ((199, True), (20, True), (19, None)):
        assert verdicts(merged.isel(repeat=slice(repeats))) == [None, None, None, None, cut]
    assert verdicts(made(registered(n_points=1999))) == [None] * 5
    assert_printed(NAME, merged.isel(repeat=slice(2)))


@pytest.mark.parametrize(
    ("changes", "claim", "verdict"),
    [
        # In a fifth and a tenth of the runs one class has nearly all, by either method.
        ({"circuit": np.where(SEEDS % 5, 0.55, 0.95)}, RARE, False),
        ({"laplacian": np.where(SEEDS % 5, 0.55, 0.95)}, RARE, False),
        ({"circuit": np.where(SEEDS % 10, 0.55, 0.95)}, RARE, None),
        # 0.9 itself is not over 0.9.
        ({"circuit": np.where(SEEDS % 5, 0.55, 0.9)}, RARE, True),
        # The late labels are a control and decide nothing.
        ({"circuit, late": 0.95}, RARE, True),
        # The Laplacian fluctuates more; both alike.
        ({"circuit": halves(0.1)}, MORE, False),
        ({"circuit": halves(0.2)}, MORE, None),
        # A mode at 0.7, of either method; a flat histogram.
        ({"circuit": 0.7 + 0.1 * (halves(1) - 0.5) * TURNS}, FALLS, False),
        ({"laplacian": 0.7 + 0.1 * (halves(1) - 0.5) * TURNS}, FALLS, False),
        ({"circuit": 0.5 + (SEEDS % 100 + 0.5) / 200}, FALLS, None),
        # The circuit is as asymmetric as the minimum cut, or more.
        ({"minimum cut": 0.9}, CUT, None),
        ({"minimum cut": 0.6, "circuit": 0.95}, CUT, False),
    ],
)
def test_claims_on_data_made_to_break_them(changes, claim, verdict):
    assert verdicts(made(**changes))[claim] is verdict


def test_the_diagonal_needs_most_points_on_their_side():
    for level, verdict in ((0.9, True), (0.875, None), (0.85, False)):
        # All other approaches are where the Laplacian is not: they decide nothing.
        sides = np.tile(1.4 - level + 0.01 * TURNS, (5, 1))
        sides[1] = level + 0.02 * TURNS
        claim = claims(made().assign(own_side=(("repeat", "approach"), sides.T)))[DIAGONAL]
        assert claim.holds is verdict
        assert claim.figure.startswith(f"{level:.3f} ± 0.001")


def test_what_claims_say():
    merged = made()
    rare, more, falls, diagonal, cut = claims(merged)
    assert "0.000 (circuit) and 0.000 (Laplacian)" in rare.figure
    for i, name in enumerate(("circuit", "Laplacian")):
        values = merged["majority"].to_numpy()[:, i]
        assert f"{name} {np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}" in more.figure
        assert f"{np.std(values):.3f}" in more.short
        bins = [sum(low <= v < low + 0.1 for v in values) for low in (0.5, 0.6, 0.7, 0.8, 0.9)]
        assert f"{name} {'/'.join(map(str, bins))}" in falls.figure
    # Planted so that late labels turn it round.
    assert all("does not hold" in claim.control for claim in (rare, more, falls))
    assert "0.900 ± 0.001" in diagonal.short
    assert "minimum cut 0.600 ± 0.004" in diagonal.control
    assert "1.000 (lowest objective) and 0.000 (circuit)" in cut.figure
    # These are what the small run found on its own, in every planted repeat.
    for name, text in zip(CUTS, (cut.control, cut.figure), strict=True):
        for mu in (10, 30, 100, 1000):
            share = float(merged["cut_majority"][0].sel(cut_mu=mu, cut=name)) > 0.9
            assert f"μ {mu}: {share:.3f}" in text


def test_a_share_of_nine_tenths_is_not_extreme_in_any_table():
    merged = made(circuit=0.9)
    covered = xr.full_like(merged["label_covered"], True)
    covered[{"repeat": 0, "placement": 1}] = False
    cuts = xr.full_like(merged["cut_majority"], 0.9)
    rare, *_, cut = claims(merged.assign(cut_majority=cuts, label_covered=covered))
    assert cut.holds is True
    assert cut.figure.count(": 0.000") == cut.control.count(": 0.000") == 4
    assert "0.998" in rare.figure  # one of 400 placements of labels
