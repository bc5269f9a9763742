"""The two experiments on chessboards: all they store is computed again in another way, and their
claims are shown data made to have what they claim, to lack it, and to leave it open."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize

from analysis.selection import SELECTION_SEED
from circuits import ReferenceCircuit
from circuits.errors import ParameterError, UnsettledWarning
from simulations.baselines import (
    LaplacianSVM,
    OnlineLogistic,
    graph_laplacian,
    hebbian_mean,
    label_laplacian,
    label_spreading,
)
from simulations.datasets import ROLL_LIFT, chessboard, swiss_roll
from simulations.experiments import chessboard_offline, get_experiment, roll
from simulations.experiments.roll import PARAMETERS
from tests.refusing import refused
from tests.simulations.printed import assert_printed
from tests.simulations.small import TINY, assert_range, planted, simulate

SUPERVISION, OFFLINE = "chessboard-supervision", "chessboard-offline"
BOARDS = (0.5, 1 / 3, 0.25)
ROUNDING = 1e-12
"""Sums of a few hundred numbers of order one in another order."""


def outputs(rng, n_points, n_tiles):
    """Outputs like those of a tiling: few tiles answer a point, and some points meet none."""
    h = np.maximum(rng.random((n_points, n_tiles)) - 0.6, 0)
    h[::7] = 0
    return h / np.maximum(np.linalg.norm(h, axis=1, keepdims=True), 1e-9)


def solver(points, labels, mu=(1.0,)):
    """An exact circuit that has seen a stream, and its run; r readouts."""
    parameters = PARAMETERS.replace(n_readouts=len(mu), mu=mu)
    circuit = ReferenceCircuit(parameters, ROLL_LIFT, settling="exact")
    return circuit, circuit.run(points, labels)


# Learners without an intercept


def test_logistic_without_intercept_equals_a_loop():
    rng = np.random.default_rng(1)
    h, labels = outputs(rng, 60, 5), rng.choice([-1, 0, 1], 60)
    model = OnlineLogistic(5, 2.0, intercept=False)
    scores = model.run(h, labels)[:, 0]
    w = np.zeros(5)
    for t in range(60):
        assert scores[t] == pytest.approx(w @ h[t], abs=ROUNDING)
        w = w + 2.0 * labels[t] / (1 + np.exp(labels[t] * (w @ h[t]))) * h[t]
    assert model.bias.tolist() == [0.0]


def test_the_hebbian_mean_is_the_mean_of_labelled_outputs_so_far():
    rng = np.random.default_rng(2)
    h, labels = outputs(rng, 30, 4), rng.choice([-1, 0, 1], (30, 2))
    scores = hebbian_mean(h, labels)
    assert scores.shape == (30, 2)
    for readout in range(2):
        total = np.zeros(4)
        for t in range(30):
            expected = total @ h[t] / max(t, 1)
            assert scores[t, readout] == pytest.approx(expected, abs=ROUNDING)
            total = total + labels[t, readout] * h[t]
    np.testing.assert_array_equal(hebbian_mean(h, labels[:, 0]), hebbian_mean(h, labels[:, :1]))


def test_a_machine_without_intercept_equals_a_general_solver():
    rng, lam, mu = np.random.default_rng(4), 0.1, 1.0
    h, z = outputs(rng, 30, 4), rng.choice([-1, 0, 1], 30)
    machine = LaplacianSVM(lam, mu, intercept=False).fit(h, z)
    assert machine.b == 0
    n = int((z != 0).sum())
    A = np.hstack([z[z != 0, None] * h[z != 0], np.eye(n)])
    P = lam * np.eye(4) + mu * graph_laplacian(h)
    found = minimize(
        lambda p: p[4:].sum() + p[:4] @ P @ p[:4],
        np.concatenate([np.zeros(4), np.ones(n)]),
        jac=lambda p: np.concatenate([2 * P @ p[:4], np.ones(n)]),
        bounds=[(None, None)] * 4 + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda p: A @ p - 1, "jac": lambda p: A},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found.success, found.message
    # The machine's own tolerance is 1e-6 in its gradient; the other one's 1e-13 in the objective.
    np.testing.assert_allclose(machine.w, found.x[:4], atol=2e-5 * np.abs(found.x[:4]).max())


def test_labels_of_one_class_do_not_make_a_machine_without_intercept_constant():
    h = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    machine = LaplacianSVM(0.01, 0.0, intercept=False).fit(h, [1, 0, 0])
    # The margin is reached at the labelled point, w = (1, 0), and nothing is known of the other.
    np.testing.assert_allclose(machine.decision(h), [1, 0, 0.6], atol=1e-5)
    assert not LaplacianSVM(0.01, 0.0, intercept=False).fit(h, [0, 0, 0]).decision(h).any()
    assert LaplacianSVM(0.01, 0.0).fit(h, [1, 0, 0]).decision(h).tolist() == [1, 1, 1]


def test_the_penalty_on_labels_is_over_pairs_of_points():
    rng = np.random.default_rng(6)
    h, w = outputs(rng, 12, 4), rng.standard_normal(4)
    total = sum((h[s] @ w - h[t] @ w) ** 2 * (h[s] @ h[t]) for s in range(12) for t in range(12))
    assert 2 * w @ label_laplacian(h) @ w == pytest.approx(total / 12**2, rel=ROUNDING)
    assert total > 0.1


# What both experiments share


def test_responses_are_those_of_the_circuit():
    rng = np.random.default_rng(7)
    points, _ = swiss_roll(120, rng)
    circuit, _ = solver(points, None)
    far = np.concatenate([points[:50], [np.add(ROLL_LIFT.center, (0.0, 1.4, 0.0))]])
    found = roll.responses(circuit, far)
    np.testing.assert_allclose(found, circuit.respond(far), atol=ROUNDING)
    assert not found[-1].any()
    np.testing.assert_allclose(np.linalg.norm(found[:-1], axis=1), 1, atol=ROUNDING)
    # One that takes steps is asked itself, and has not quite settled after so few.
    stepping = ReferenceCircuit(PARAMETERS.replace(steps_per_presentation=20), ROLL_LIFT)
    stepping.state = circuit.state
    with pytest.warns(UnsettledWarning):
        settling = roll.responses(stepping, points[:5])
    with pytest.warns(UnsettledWarning):
        np.testing.assert_array_equal(settling, stepping.respond(points[:5]))
    assert np.abs(settling - found[:5]).max() > 1e-6


# Supervision


def signs_wrong(scores, wanted):
    """Share of wrong signs, one by one; silence is half."""
    pairs = zip(scores, wanted, strict=True)
    return np.mean([0.5 if s == 0 else float((s > 0) != (c > 0)) for s, c in pairs])


@pytest.fixture(scope="module")
def supervision():
    """A repeat, and the stream it was made from, drawn here."""
    n_points, counts = TINY[SUPERVISION]["n_points"], TINY[SUPERVISION]["label_counts"]
    rng = np.random.default_rng(3)
    points, unrolled = swiss_roll(n_points, rng)
    labelled = [np.sort(rng.permutation(n_points)[:count]) for count in counts]
    classes = np.stack([chessboard(unrolled, size) for size in BOARDS])
    return simulate(SUPERVISION, seed=3), points, unrolled, classes, labelled


@pytest.mark.parametrize(("board", "count"), [(0, 0), (2, 1)])
def test_errors_of_online_methods_are_those_of_runs_of_their_own(supervision, board, count):
    result, points, unrolled, classes, labelled = supervision
    np.testing.assert_array_equal(result["points"], points)
    np.testing.assert_array_equal(result["unrolled"], unrolled)
    np.testing.assert_array_equal(result["classes"], classes)
    own = labelled[count]
    z = np.zeros(len(points), dtype=int)
    z[own] = classes[board][own]
    silent = np.setdiff1d(np.arange(len(points)), own)
    wanted = classes[board][silent]
    cell = result.isel(board=board, n_labels=count)
    for mu in TINY[SUPERVISION]["mu_grid"]:
        _, run = solver(points, z, (float(mu),))
        y, h = run["y"].to_numpy()[silent, 0], run["h"].to_numpy()
        found = cell.sel(mu=mu)
        assert float(found["circuit_error"]) == pytest.approx(signs_wrong(y, wanted), abs=ROUNDING)
        # Points that share no tile with any labelled one before.
        apart = [not (h[own[own < t]] @ h[t]).any() for t in silent]
        assert float(cell["unreached"]) == pytest.approx(np.mean(apart), abs=ROUNDING)
        assert 0.05 < np.mean(apart) < 0.95
        part = np.mean(apart) * signs_wrong(y[apart], wanted[apart])
        assert float(found["circuit_unreached_error"]) == pytest.approx(part, abs=ROUNDING)
    for name, intercept in (("logistic", True), ("logistic_origin", False)):
        for rate in TINY[SUPERVISION]["rate_grid"]:
            scores = OnlineLogistic(h.shape[1], rate, intercept=intercept).run(h, z)[silent, 0]
            expected = signs_wrong(scores, wanted)
            assert float(cell[f"{name}_error"].sel(rate=rate)) == pytest.approx(expected)
    expected = signs_wrong(hebbian_mean(h, z)[silent, 0], wanted)
    assert float(cell["hebbian_error"]) == pytest.approx(expected, abs=ROUNDING)
    expected = signs_wrong(label_spreading(points, z, gamma=100).scores[silent], wanted)
    assert float(cell["spreading_error"].sel(gamma=100)) == pytest.approx(expected, abs=ROUNDING)


def noise(seed):
    """Something that differs between seeds, of mean about zero."""
    return 0.01 * ((seed * 7) % 5 - 2)


LEARNERS = ("logistic", "logistic_origin", "hebbian")


@cache
def registered(name, **changes):
    """Repeats of the registered size, merged once; each test plants its own numbers."""
    return planted(name, lambda seed, run: {}, **changes)


def with_values(merged, values):
    """Replace variables by what ``values(seed, run)`` gives for every repeat."""
    found = [values(int(one), merged.isel(repeat=0)) for one in merged["seed"]]
    return merged.assign(
        {
            name: merged[name].transpose("repeat", ...).copy(data=[one[name] for one in found])
            for name in found[0]
        }
    )


def supervised(leads, **changes):
    """Results in which the circuit leads over the learners by so much, on each of three boards."""

    def values(seed, run):
        found = {"circuit_error": np.full(run["circuit_error"].shape, 0.3)}
        for name, lead in zip(LEARNERS, leads, strict=True):
            shape = run[f"{name}_error"].shape
            by_board = np.reshape(np.broadcast_to(lead, 3), (3, *[1] * (len(shape) - 1)))
            found[f"{name}_error"] = np.full(shape, 0.3 + noise(seed)) + by_board
        # What is chosen on other repeats counts, not what would be best on these.
        found["circuit_error"][..., 1] += 0.1 if seed >= SELECTION_SEED else -0.1
        found["unreached"] = [0.2, 0.2]
        found["circuit_unreached_error"] = np.full(run["circuit_error"].shape, 0.04)
        found["circuit_unreached_error"][..., 1] = 0
        return found

    return with_values(registered(SUPERVISION, **changes), values)


def verdicts(name, merged):
    return [claim.holds for claim in get_experiment(name).claims(merged)]


@pytest.mark.parametrize(
    ("leads", "expected"),
    [
        ((0.05, 0.05, 0.05), [True, True, True, True]),
        ((-0.05, -0.05, -0.05), [False, False, False, False]),
        # As printed it leads; over one control it does not, and that decides.
        ((0.05, -0.05, 0.05), [True, False, False, False]),
        ((0.05, 0.05, -0.05), [True, False, False, False]),
        # Board by board.
        ((0.05, [0.05, 0, -0.05], [0.05, 0, -0.05]), [True, True, None, False]),
        # Over one of the classifiers the mean over all boards counts.
        (([0.1, -0.01, -0.01], 0.05, 0.05), [True, True, True, True]),
    ],
)
def test_verdicts_on_supervision_follow_the_lead(leads, expected):
    assert verdicts(SUPERVISION, supervised(leads)) == expected


@pytest.mark.parametrize("changes", [{"repeats": 14}, {"n_points": 1999}])
def test_supervision_is_decided_at_its_size_alone(changes):
    merged = supervised((0.05, 0.05, 0.05), **changes)
    assert verdicts(SUPERVISION, merged) == [None] * 4
    assert_printed(SUPERVISION, merged, figures=False)


# Online and offline


def test_errors_online_and_offline_are_those_of_learners_of_their_own():
    tiny = TINY[OFFLINE]
    result = simulate(OFFLINE, seed=4, labelled=0.1)
    rng = np.random.default_rng(4)
    points, unrolled = swiss_roll(tiny["n_points"], rng)
    test, test_unrolled = swiss_roll(tiny["n_test"], rng)
    labelled = rng.random(tiny["n_points"]) < 0.1
    assert result["time"].to_numpy().tolist() == [250, 500]
    assert result["n_labelled"].to_numpy().tolist() == [labelled[:250].sum(), labelled.sum()]
    for board, time in ((0, 250), (2, 500)):
        wanted = chessboard(test_unrolled, BOARDS[board])
        z = np.where(labelled, chessboard(unrolled, BOARDS[board]), 0)[:time]
        cell = result.isel(board=board).sel(time=time, early=time)
        for mu in tiny["mu_grid"]:
            circuit, _ = solver(points[:time], z, (float(mu),))
            error = signs_wrong(circuit.predict(test)[:, 0], wanted)
            assert float(cell["online_error"].sel(mu=mu)) == pytest.approx(error, abs=ROUNDING)
        h, h_test = circuit.respond(points[:time]), circuit.respond(test)

        plain = [(lam, 0.0) for lam in tiny["plain_grid"]]
        for name, grid, pairs, penalty in (
            ("offline", "svm", tiny["svm_grid"], graph_laplacian(h)),
            ("offline_origin", "svm", tiny["svm_grid"], graph_laplacian(h)),
            ("labels", "labels_svm", tiny["labels_grid"], label_laplacian(h)),
            ("none", "plain_svm", plain, graph_laplacian(h)),
        ):
            for i, (lam, mu) in enumerate(pairs):
                machine = LaplacianSVM(lam, mu, intercept=name != "offline_origin")
                error = signs_wrong(machine.fit(h, z, penalty).decision(h_test), wanted)
                found = cell[f"{name}_error"].isel({grid: i})
                assert str(found[grid].values) == f"lambda={lam:g} mu={mu:g}"
                # h by another sum: at most one point so close to the border changes sides.
                assert float(found) == pytest.approx(error, abs=1.01 / len(wanted)), name


def test_times_are_closer_at_the_beginning_and_end_with_the_stream():
    def times(**changes):
        return get_experiment(OFFLINE).config("exact", changes).settings.times()

    early = [250, 500, 750, 1000, 1250, 1500]
    assert times() == [*early, 2000, 2500, 3000, 3500, 4000, 4500, 5000]
    assert times(n_points=1000, every=100) == early[:4]
    # Points that the stream does not reach are no times, by one point.
    assert times(n_points=999) == early[:3]
    assert times(n_points=1999) == early
    # The 1500th is the last of those that come more often.
    assert times(n_points=1501, every=1501, early_every=500) == [500, 1000, 1500, 1501]


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        (OFFLINE, {"mu": 3}, "mu .* mu_grid"),
        (OFFLINE, {"n_readouts": 3}, "n_readouts .* boards and mu_grid"),
        (OFFLINE, {"n_points": 500, "every": 600}, "every=600 .* n_points=500"),
        (SUPERVISION, {"mu": 3}, "mu .* mu_grid"),
        (SUPERVISION, {"n_readouts": 3}, "n_readouts .* boards, label_counts and mu_grid"),
        (SUPERVISION, {"boards": [0.5, 0.00099]}, r"boards\.1.*0\.001"),
    ],
)
def test_settings_that_do_not_fit_are_refused(name, changes, words):
    refused(lambda: get_experiment(name).config("exact", changes), words, ParameterError)


def test_settings_are_taken_within_their_range():
    assert_range(OFFLINE, "labelled", (1e-4, 1.0), (0.0, 1.01))
    assert_range(OFFLINE, "early_every", (1, 500), (0, 501))
    assert_range(SUPERVISION, "boards", [(0.001, 0.5), (0.333, 0.334)], [(0.3333, 0.3334)])
    # All but one point may have labels.
    assert_range(SUPERVISION, "label_counts", [(5, 1999)], [(5, 2000)])
    assert roll.board_names((0.5, 1 / 3, 0.25, 0.001)) == ["0.5", "0.333", "0.25", "0.001"]


def test_machines_without_any_label_guess():
    h = np.array([[0.6, 0.8]])
    seen = chessboard_offline.Seen(h, np.array([[0]]), h, np.array([[1]]))
    assert seen.machines(((0.1, 1.0),), graph_laplacian(h)).tolist() == [[0.5]]


def per_board(*values):
    return np.array(values)[:, None]


def at_times(*values):
    """Errors at 250, 500, ..., 1500 on the first board; 0.3 on the others."""
    return np.stack([np.array(values), np.full(6, 0.3), np.full(6, 0.3)])


@pytest.fixture(scope="module")
def long_run():
    """A repeat with times on both sides of a thousand points; its errors are replaced."""
    return simulate(OFFLINE, n_points=1500, every=500, n_test=10, n_tiles=10)


@pytest.fixture(scope="module")
def streamed(long_run):
    """Results with errors (board, time) per method, the same for every value of a grid."""
    merged = planted(OFFLINE, lambda seed, run: {}, run=long_run)

    def made(**given):
        def values(seed, run):
            found = {}
            for name, grid in chessboard_offline.GRIDS.items():
                old = run[f"{name}_error"]
                time = old.dims[-1]
                value = np.zeros((3, old.sizes[time])) + np.asarray(given.get(name, 0.3))
                # What all others are compared with varies, less on finer boards, and so all
                # differences do, and all slopes.
                if name in ("online", "weights"):
                    value = value + noise(seed) * per_board(1, 0.5, 0)
                value = np.repeat(value[:, None], old.sizes[grid], axis=1)
                value[:, 1] += 0.1 if seed >= SELECTION_SEED else -0.1
                found[f"{name}_error"] = value
            return found

        return with_values(merged, values)

    return made


@pytest.mark.parametrize(
    ("given", "closer", "ahead", "twist"),
    [
        # The gap grows, or shrinks.
        ({"online": per_board(0.3, 0.35, 0.4)}, True, None, None),
        ({"online": per_board(0.4, 0.35, 0.3)}, False, False, None),
        # The offline error grows as much as the online one.
        (dict.fromkeys(("online", "offline"), per_board(0.3, 0.35, 0.4)), None, None, None),
        # Ahead by the mean of four times, whatever comes after.
        ({"online": at_times(0.3, 0.3, 0.3, 0.3, 0.2, 0.3)}, None, None, None),
        ({"online": at_times(0.1, 0.32, 0.32, 0.32, 0.3, 0.3)}, None, True, None),
        ({"online": at_times(0.4, 0.4, 0.4, 0.3, 0.1, 0.3)}, None, False, None),
        # The control is not the claim.
        ({"offline_origin": 0.1}, None, None, None),
        # The penalty on weights against that on labels, over all boards; none is a control.
        ({"labels": 0.4, "none": 0.2}, None, None, True),
        ({"labels": per_board(0.4, 0.2, 0.3), "none": 0.4}, None, None, None),
        ({"labels": per_board(0.4, 0.1, 0.3)}, None, None, False),
        ({"weights": 0.2}, None, None, True),
    ],
)
def test_verdicts_on_online_and_offline(streamed, given, closer, ahead, twist):
    assert verdicts(OFFLINE, streamed(**given)) == [closer, ahead, twist]


def test_online_and_offline_are_decided_at_their_size_alone(streamed):
    merged = streamed(online=per_board(0.1, 0.2, 0.3), labels=0.4, none=0.4)
    assert verdicts(OFFLINE, merged) == [True] * 3
    assert verdicts(OFFLINE, merged.isel(repeat=slice(1, None))) == [None] * 3
    assert_printed(OFFLINE, registered(OFFLINE, repeats=2))


def test_claims_on_online_and_offline_show_their_figures(streamed, long_run):
    assert long_run["early"].to_numpy().tolist() == [250, 500, 750, 1000]
    assert long_run["time"].to_numpy().tolist() == [250, 500, 750, 1000, 1250, 1500]
    early = long_run["offline_error"].sel(time=long_run["early"].to_numpy()).to_numpy()
    np.testing.assert_array_equal(long_run["weights_error"], early)
    merged = streamed(
        online=at_times(0.2, 0.22, 0.24, 0.26, 0.3, 0.32),
        offline=per_board(0.3, 0.25, 0.2),
        offline_origin=per_board(0.2, 0.25, 0.3),
        labels=per_board(0.35, 0.36, 0.37),
        none=per_board(0.38, 0.29, 0.31),
    )
    closer, ahead, twist = get_experiment(OFFLINE).claims(merged)
    for text, numbers in (
        # Gaps 0.02, 0.05, 0.1 in order: 0.04 per board; 0.12, 0.05, 0 without intercept.
        (closer.short, ["0.040 ± 0.001"]),
        (closer.figure, ["0.5: 0.320 ± 0.014 vs 0.300 ± 0.000, higher by 0.020 ± 0.002"]),
        # As a share 0.02/0.3, 0.05/0.25, 0.1/0.2: half of 0.5 - 0.0667.
        (closer.control, ["-0.060 ± 0.001", "0.217 ±"]),
        # The mean of 0.1, 0.08, 0.06 and 0.04.
        (ahead.short, ["0.070 ± 0.002"]),
        (ahead.figure, ["250: 0.100 ± 0.002", "1500: -0.020 ± 0.002"]),
        (ahead.control, ["by -0.030 ± 0.002", "500: -0.020 ± 0.002"]),
        # The mean of 0.05, 0.06 and 0.07; against none that of 0.08, -0.01 and 0.01.
        (twist.short, ["0.060 ± 0.00"]),
        (twist.figure, ["0.5 0.050 ± 0.002", "0.333 0.060 ± 0.001", "0.290 ± 0.000, 0.310"]),
        (twist.figure, ["on weights 0.300 ± 0.014"]),
        (twist.control, ["0.027 ±", "0.5 0.080 ± 0.002", "0.333 -0.010 ± 0.001"]),
    ):
        for number in numbers:
            assert number in text
