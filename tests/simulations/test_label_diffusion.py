"""Diffusion of labels and the two readouts: what is stored, by hand, and claims on results whose
truth is planted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr

from circuits import ReferenceCircuit
from simulations.datasets import chessboard, swiss_roll, two_moons, unit_square
from simulations.experiments import get_experiment
from simulations.experiments import label_diffusion as module
from simulations.experiments.label_diffusion import DATA, GRAPHS, answered_silently
from tests.simulations.printed import assert_printed
from tests.simulations.small import TINY, assert_range, claim_named, planted, simulate

NAME = "label-diffusion"
SEED = 3
N = TINY[NAME]["n_points"]
GAINS = ["used", *(f"{mu:g}" for mu in TINY[NAME]["mu_grid"])]


@pytest.fixture(scope="module")
def run():
    return simulate(NAME, seed=SEED)


# The equation


def fixed_tiles():
    """The moons' tiles as the first phase leaves them, in an own loop over what follows."""
    experiment = get_experiment(NAME)
    rng = np.random.default_rng(SEED)
    points, classes = two_moons(TINY[NAME]["n_tiling"], 0.05, rng)
    solver = ReferenceCircuit(experiment.parameters, experiment.lift, settling="exact")
    solver.run(points)
    return solver, points, classes, rng


class Readout:
    """One readout, point by point, after one label of each class."""

    def __init__(self, mu, h, classes):
        self.mu, self.w, self.seen = mu, np.zeros(h.shape[1]), len(h)
        self.largest = 0.0  # answer to a point without a label
        pair = [list(classes).index(-1), list(classes).index(1)]
        self.present(h[pair], classes[pair])

    def present(self, rows, labels=None):
        for row, z in zip(rows, np.zeros(len(rows)) if labels is None else labels, strict=True):
            y = np.clip(self.mu * (self.w @ row) + z, -1, 1)
            self.seen += 1
            self.w = self.w + (y * row - self.w) / self.seen
            self.largest = max(self.largest, abs(y)) if z == 0 else self.largest


def test_measured_and_predicted_by_hand():
    moments = (0, 10, 30)
    run = simulate(NAME, seed=SEED, moments=moments, n_points=100)
    solver, points, classes, rng = fixed_tiles()
    h = solver.respond(points)
    assert not solver.state.w.any()
    S = sum(np.outer(row, row) for row in h) / len(h)
    readout, largest = Readout(200, h, classes), 0.0
    for i, silent in enumerate(np.diff([0, *moments])):
        if silent:
            readout.present(solver.respond(two_moons(silent, 0.05, rng)[0]))
        w = readout.w
        np.testing.assert_allclose(run["w"][i], w, atol=1e-15)
        fresh = solver.respond(two_moons(TINY[NAME]["n_probe"], 0.05, rng)[0])
        changes = [np.clip(200 * (w @ row), -1, 1) * row - w for row in fresh]
        largest = max(largest, *(min(1, abs(200 * (w @ row))) for row in fresh))
        # During a probe w moves by 1e-9 of its change per point.
        expected = np.mean(changes, axis=0)
        np.testing.assert_allclose(run["measured"][i], expected, atol=2e-6 * max(abs(expected)))
        expected = [200 * sum(S[i, j] * w[j] for j in range(len(w))) - w[i] for i in range(len(w))]
        np.testing.assert_allclose(run["predicted"][i], expected, atol=1e-14)
    assert float(run["largest_y"]) == pytest.approx(max(largest, readout.largest), rel=1e-6)
    assert run["moment"].to_numpy().tolist() == list(moments)
    assert (run["recruited"].to_numpy() == solver.state.recruited).all()


def regression(predicted, measured):
    """Least squares through the origin, and Pearson's correlation, from their definitions."""
    x, y = np.ravel(predicted), np.ravel(measured)
    dx, dy = x - x.mean(), y - y.mean()
    return (x @ y) / (x @ x), (dx @ dy) / np.sqrt((dx @ dx) * (dy @ dy))


def test_slopes_and_correlations_by_hand(run):
    solver, points, _, _ = fixed_tiles()
    used = run["recruited"].to_numpy() >= 0
    assert 0 < used.sum() < len(used), "some tiles are idle and must not count"
    w, measured = run["w"].to_numpy(), run["measured"].to_numpy()[:, used]
    h = solver.respond(points)
    own = np.array([np.sum(h[:, i] ** 2) / len(h) for i in range(h.shape[1])])
    predicted = {"overlaps": run["predicted"].to_numpy(), "diagonal": w * (200 * own - 1)}
    for name, values in predicted.items():
        one = run.sel(graph=name)
        expected = regression(values[:, used], measured)
        assert (float(one["slope"]), float(one["correlation"])) == pytest.approx(expected, rel=1e-9)
    assert run["graph"].to_numpy().tolist() == list(GRAPHS)


def test_a_shuffled_graph_has_the_same_overlaps_of_other_tiles():
    rng = np.random.default_rng(0)
    h = rng.random((30, 8))
    used = np.arange(8) < 6
    h[:, ~used] = 0
    S, diagonal, shuffled = module._graphs(h, used, rng)
    np.testing.assert_allclose(S, np.einsum("ti,tj->ij", h, h) / 30, rtol=1e-12)
    assert (diagonal == S * np.eye(8)).all()
    assert (np.sort(np.diag(shuffled)) == np.sort(np.diag(S))).all()
    assert not (shuffled == S).all()
    assert (np.sort(shuffled.ravel()) == np.sort(S.ravel())).all()
    # Idle tiles stay idle, where they are.
    assert not shuffled[~used].any()


def test_the_largest_answer_may_come_before_a_probe():
    """Below the critical gain labels fade: the first silent points get the largest answers."""
    found = simulate(NAME, seed=SEED, mu=2.0, moments=(400,), n_points=105)
    solver, points, classes, rng = fixed_tiles()
    readout = Readout(2, solver.respond(points), classes)
    readout.present(solver.respond(two_moons(400, 0.05, rng)[0]))
    fresh = solver.respond(two_moons(TINY[NAME]["n_probe"], 0.05, rng)[0])
    assert max(2 * abs(fresh @ readout.w)) < 0.9 * readout.largest
    assert float(found["largest_y"]) == pytest.approx(readout.largest, rel=1e-6)


def test_points_that_no_tile_covers_are_counted_in_probes_too():
    """Five tiles are soon all in use; fresh points miss them more often than the first ones."""
    found = simulate(NAME, seed=SEED, n_tiles=5, moments=(0,), n_points=100)
    experiment, rng = get_experiment(NAME), np.random.default_rng(SEED)
    parameters = experiment.parameters.replace(n_tiles=5)
    solver = ReferenceCircuit(parameters, experiment.lift, settling="exact")
    tiling = solver.run(two_moons(TINY[NAME]["n_tiling"], 0.05, rng)[0])
    fresh = solver.respond(two_moons(TINY[NAME]["n_probe"], 0.05, rng)[0])
    share = np.mean([not row.any() for row in fresh])
    assert share > tiling.attrs["uncovered_share"]
    assert found.attrs["uncovered_share"] == pytest.approx(share)


def test_settings_and_the_points_that_count():
    assert_range(NAME, "moments", [(3, 7)], [(7, 3)])
    labels = np.array([0, 0, 1, 0, -1, 0])
    assert answered_silently(labels).tolist() == [False, False, False, True, False, True]
    assert not answered_silently(np.zeros(3, dtype=int)).any()


# Clip and tanh


def test_the_circuits_own_signs_are_compared_clip_with_tanh(monkeypatch):
    """On the moons they are the same; put something in their place on which they are not."""
    square = replace(DATA["square"], mu=1000.0)
    monkeypatch.setattr(module, "DATA", {"moons": square})
    found = simulate(NAME, seed=SEED, moments=(0,), n_tiling=100, n_probe=100)
    own = float(found["circuit_same_sign"])
    assert own == float(found["same_sign"].sel(data="moons", gain="used"))
    assert 0.5 < own < 1


def streams():
    """Points, classes and labels of the three data sets, drawn one after the other."""
    rng = np.random.default_rng(SEED)
    points, classes = two_moons(N, 0.05, rng)
    labels = np.zeros(N, dtype=int)
    for label in (-1, 1):
        labels[next(t for t in range(N // 10, N) if classes[t] == label)] = label
    yield "moons", 1000, points, classes, labels
    points, unrolled = swiss_roll(N, rng)
    classes, labels = chessboard(unrolled, 0.5), np.zeros(N, dtype=int)
    for t in rng.permutation(N)[: N // 20]:
        labels[t] = classes[t]
    yield "board", 10, points, classes, labels
    points, labels = unit_square(N, 0, rng, 0.1)
    yield "square", 10, points, [1 if x + y > 1 else -1 for x, y in points], labels


def test_comparisons_by_hand(run):
    assert run["gain"].to_numpy().tolist() == GAINS
    apart = []
    for name, mu_used, points, classes, labels in streams():
        lift = DATA[name].lift
        solver = ReferenceCircuit(DATA[name].parameters, lift, settling="exact")
        h = solver.run(points)["h"].to_numpy()
        S = sum(np.outer(row, row) for row in h) / len(h)
        critical = 1 / max(np.linalg.eigvalsh(S))
        assert float(run["critical_mu"].sel(data=name)) == pytest.approx(critical, rel=1e-9)
        first = int(np.flatnonzero(labels)[0])
        counted = [t for t in range(len(labels)) if t > first and labels[t] == 0]
        y = {}
        for gain in GAINS:
            mu = mu_used if gain == "used" else float(gain)
            for kind, squash in (("clip", lambda v: np.clip(v, -1, 1)), ("tanh", np.tanh)):
                w, answers = np.zeros(h.shape[1]), []
                for t, (row, z) in enumerate(zip(h, labels, strict=True)):
                    answers.append(squash(mu * (w @ row) + z))
                    w = w + (answers[-1] * row - w) / (t + 1)
                y[kind, gain] = np.array(answers)
            clip, tanh = y["clip", gain], y["tanh", gain]
            one = run.sel(data=name, gain=gain)
            same = np.mean([np.sign(clip[t]) == np.sign(tanh[t]) for t in counted])
            assert float(one["same_sign"]) == pytest.approx(same, abs=1e-12)
            apart.append(1 - same)
            difference = np.mean([abs(clip[t] - tanh[t]) for t in counted])
            assert float(one["difference"]) == pytest.approx(difference, abs=1e-9)
            base = np.mean([np.sign(clip[t]) == np.sign(y["clip", "used"][t]) for t in counted])
            assert float(one["same_gain"]) == pytest.approx(base, abs=1e-12)
            for kind in ("clip", "tanh"):
                right = [np.sign(y[kind, gain][t]) * classes[t] for t in counted]
                # Right is 1, wrong -1, silence 0: as errors 0, 1 and a half.
                found = float(one["error"].sel(readout_kind=kind))
                assert found == pytest.approx((1 - np.mean(right)) / 2, abs=1e-12)
        if name == "moons":
            for kind in ("clip", "tanh"):
                found = run["readout_y"].sel(readout_kind=kind).to_numpy()
                np.testing.assert_allclose(found, y[kind, "used"], atol=1e-9)
    # Signs differ somewhere, or nothing above could tell a fault.
    assert max(apart) > 0


# Claims


DIFFUSES, USED, EVERY = "diffuses", "at the μ used", "at every μ"


@cache
def registered(repeats: int | None = None, **changes: Any) -> xr.Dataset:
    """Repeats of the registered size: slopes near 1 with the right graph only, and signs that
    agree."""

    def alike(seed: int, run: Any) -> dict[str, Any]:
        step = 0.01 * (-1) ** seed
        return {
            "slope": [0.99 + step, 1.9 + step, 0.95 + step],
            "correlation": [0.99 + step / 10, 0.9 + step, 0.6 + step],
            "largest_y": 0.3,
            "same_sign": np.full(run["same_sign"].shape, 0.99 + step / 10),
        }

    return planted(NAME, alike, repeats, **changes)


def moved(name: str, by: float, *at: int) -> xr.Dataset:
    """Repeats in which a variable has another value in one place, the same in every repeat."""
    values = registered()[name].transpose("repeat", ...)
    array = values.to_numpy().copy()
    array[(slice(None), *at)] += by
    return registered().assign({name: values.copy(data=array)})


def holds(words: str, merged: xr.Dataset) -> bool | None:
    return claim_named(NAME, merged, words).holds


def test_diffusion_is_a_slope_of_one():
    for name, by, at, expected in (
        ("slope", -0.1, 0, False),  # 0.89
        ("slope", -0.089, 0, None),  # 0.901 ± 0.002: not sure to be above 0.9
        ("slope", 0.1, 0, True),  # 1.09
        ("slope", 0.12, 0, False),  # 1.11
        ("correlation", -0.05, 0, False),  # 0.94
        # The controls decide nothing.
        ("slope", -0.9, 1, True),
        ("correlation", -0.5, 2, True),
    ):
        assert holds(DIFFUSES, moved(name, by, at)) is expected
    # Where y reaches its limits in a single repeat the equation says nothing.
    largest = registered()["largest_y"]
    for one, expected in ((1.0, None), (0.999, True)):
        merged = registered().assign(largest_y=largest.where(largest["repeat"] != 5, one))
        assert holds(DIFFUSES, merged) is expected


def test_readouts_are_alike_on_every_data_set():
    for by, at, used, every in (
        (-0.02, (1, 0), False, True),  # 0.97 at the gain used
        (-0.05, (2, 1), True, False),  # 0.94
        (-0.05, (1, 0), False, False),
        (-0.01, (2, 0), None, True),  # on the bound
        (-0.04, (2, 2), True, None),
    ):
        merged = moved("same_sign", by, *at)
        assert (holds(USED, merged), holds(EVERY, merged)) == (used, every), (by, at)


def test_how_many_repeats_decide():
    some, none = [True, None, None], [None] * 3
    for repeats, expected in ((40, [True] * 3), (39, some), (5, some), (4, none)):
        first = registered().isel(repeat=slice(repeats))
        assert [holds(words, first) for words in (DIFFUSES, USED, EVERY)] == expected
    for probe, expected in ((500, True), (499, None)):
        small = registered(5, n_tiling=1000, n_probe=probe, n_points=600)
        assert holds(DIFFUSES, small) is expected


def test_numbers_are_printed():
    merged = moved("same_sign", -0.011, 2, 1)
    same = merged["same_sign"].transpose("repeat", ...).to_numpy().copy()
    gain = np.full(same.shape, 1.0)
    same[7, 1, 2], gain[:, 1, 2], gain[:, 2, 1] = 0.5, 0.7, 0.8
    dims = ("repeat", "data", "gain")
    merged = merged.assign(same_sign=(dims, same), same_gain=(dims, gain))
    diffuses, used, every = (claim_named(NAME, merged, words) for words in (DIFFUSES, USED, EVERY))
    for text, number in (
        (diffuses.figure, "slope 0.990 ± 0.002 (s.e.), correlation 0.990 ± 0.000"),
        (diffuses.control, "1.900 ± 0.002 (s.e.), correlation 0.900 ± 0.002"),
        (used.control, "moons 1.000, board 0.700, square 0.800"),
        # The means: 0.979 on the square at the first gain, 0.9777 on the board at the second.
        (every.short, "0.978"),
        (every.short, f"(board, μ {GAINS[2]})"),
        (every.control, "board 0.500"),
    ):
        assert number in text
    assert_printed(NAME, registered())
