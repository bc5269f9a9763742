"""Every rule's Brian2 text, evaluated with NumPy, against the function that stands beside it; and
the functions against cases solved by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from circuits import ReferenceCircuit, SphereLift, rules
from circuits.state import started
from tests.conftest import small_circuit

NAMES = {"sqrt": np.sqrt, "clip": np.clip, "tanh": np.tanh, "abs": np.abs, "inf": np.inf}
NAMES["int"] = lambda value: np.asarray(value).astype(int)

# The same operations in another order: a few roundings of numbers of order one.
ROUNDING = 1e-14


def run_text(text: str, **values):
    """The variables after Brian2 statements; Brian2 writes them as Python does."""
    found = {name: np.array(value, dtype=float) for name, value in values.items()}
    exec(text, NAMES.copy(), found)
    return found


def slope(text: str, **values):
    """The right-hand side of a differential equation."""
    return eval(text.partition("=")[2].partition(":")[0], NAMES.copy(), values)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_equations_are_the_steps(rng):
    h, a, inhibition, u, excitation = rng.random((5, 4))
    dt, tau, gain = 0.1, 0.7, 3.0
    rate = slope(rules.EXCITATORY.brian2, gain=gain, a=a, inhibition=inhibition, tau_h=tau)
    stepped = rules.step_excitatory(h, a, inhibition, gain * dt / tau)
    assert np.maximum(h + dt * rate, 0) == pytest.approx(stepped, abs=ROUNDING)
    rate = slope(rules.INHIBITORY.brian2, excitation=excitation, u=u, tau_u=tau)
    stepped = rules.step_inhibitory(u, excitation, dt / tau)
    assert u + dt * rate == pytest.approx(stepped, abs=ROUNDING)
    V = rng.random((4, 4))
    rate = slope(rules.LATERAL.brian2, u_post=u[:, None], h_pre=h, V=V, tau_V=tau)
    assert V + dt * rate == pytest.approx(rules.step_lateral(V, u, h, dt / tau), abs=ROUNDING)
    # Rates and V stay positive.
    one = np.ones(1)
    assert rules.step_excitatory(one, one, 4 * one, 0.5).tolist() == [0.0]
    assert rules.step_excitatory(one, 2 * one, 4 * one, 0.25).tolist() == [0.5]
    assert rules.step_inhibitory(one, -5 * one, 0.5).tolist() == [0.0]
    assert rules.step_lateral(-np.ones((1, 1)), one, one, 0.25).tolist() == [[0.0]]


def test_learning_texts_are_the_functions(rng):
    assert rules.Rule("\n a = b\nc = d  \n").brian2 == "a = b\nc = d"
    assert rules.Rule("a").numpy is None
    W, h, x, b = rng.random((4, 3)), rng.random(4), rng.random(3), rng.random(4)
    w, y, eta, alpha = rng.random((2, 4)), rng.uniform(-1, 1, 2), 0.3, 0.8
    found = run_text(rules.FEEDFORWARD.brian2, W=W, h_post=h[:, None], x_pre=x, eta_post=eta)["W"]
    assert found == pytest.approx(rules.learn_feedforward(W, h, x, eta), abs=ROUNDING)
    found = run_text(rules.BIAS.brian2, b=b, h=h, sqrt_alpha=math.sqrt(alpha), eta=eta)["b"]
    assert found == pytest.approx(rules.learn_bias(b, h, alpha, eta), abs=ROUNDING)
    for rule, learn in (
        (rules.CLASSIFIER, rules.learn_classifier),
        (rules.GATED, rules.learn_gated),
    ):
        found = run_text(rule.brian2, w=w, y_post=y[:, None], h_pre=h, rate=eta)["w"]
        assert found == pytest.approx(learn(w, y, h, eta), abs=ROUNDING)
        assert rule.numpy is learn


def test_readout_texts_are_the_functions():
    net, z, mu = np.array([-3.0, 0.2, 0.1, 4.0]), np.array([0.0, 1.0, 0.0, 0.0]), np.full(4, 0.5)
    for name, expected in (
        ("clip", [-1.0, 1.0, 0.05, 1.0]),
        ("tanh", [math.tanh(-1.5), math.tanh(1.1), math.tanh(0.05), math.tanh(2.0)]),
    ):
        rule = rules.READOUT[name]
        assert rule.numpy(net, z, mu) == pytest.approx(expected, abs=ROUNDING)
        found = run_text(rule.brian2, net=net, z=z, mu=mu)["y"]
        assert found == pytest.approx(expected, abs=ROUNDING)
    y, z = np.array([0.5, 0.5, 0.5]), np.array([0.0, 1.0, -1.0])
    assert rules.clamped(y, z).tolist() == [0.5, 1.0, -1.0]
    assert run_text(rules.CLAMP, y=y, z=z)["y"].tolist() == [0.5, 1.0, -1.0]
    # Without labels or tiles it is silent.
    silence = np.ones((1, 3)), np.zeros(3), np.zeros(1), np.ones(1)
    for rule, name in itertools.product(("paper", "gated"), rules.READOUT):
        assert rules.readout(*silence, name, rule).tolist() == [0.0]
    assert rules.pooled(np.array([1.0, 3.0]), np.array([0.5, 1.5])).tolist() == [0.5, 1.5]
    assert rules.pooled(np.array([1.0]), np.array([0.25])).tolist() == [4.0]
    assert rules.pooled(np.array([1.0, 3.0]), np.zeros(2)).tolist() == [0.0, 0.0]


def test_where_the_steps_lead_by_hand():
    direction = np.array([0.6, 0.8])
    h, u, V = rules.fixed_point(np.array([3.0, -1.0, 4.0]), direction)
    assert h.tolist() == [0.6, 0.0, 0.8]
    assert u == pytest.approx(math.sqrt(5) * direction, rel=1e-15)
    assert pytest.approx(np.outer(u, h), rel=1e-15) == V
    for floor in (0.0, 5.0):  # of the size of the drive: nothing counts
        a = np.array([3.0, 0.0, 4.0]) if floor else -np.ones(3)
        assert not any(part.any() for part in rules.fixed_point(a, direction, floor))


def test_rest_by_hand():
    assert rules.rest_direction(2) == pytest.approx(np.array([1, 1.5]) / math.sqrt(3.25), rel=1e-15)
    h, u, V = rules.rest(4, 2, None)
    assert h.tolist() == [0.5] * 4
    assert (u == rules.rest_direction(2)).all()
    assert (np.outer(u, h) == V).all()
    assert rules.rest(4, 2, 8.0)[1] == pytest.approx(0.5 * u, rel=1e-15)


@pytest.mark.parametrize("size", [2.0, 0.3, 0.05])
@pytest.mark.parametrize(("gain", "last"), [(None, 0.5), (None, 8), (4.0, 8)])
@pytest.mark.parametrize("more", [0, 1])
def test_how_a_presentation_starts(size, gain, last, more):
    """By hand, and as Brian2 computes it; a drive of 0.05 is at the floor, and counts as none."""
    found = rules.start(np.array([size, -3.0]), 0.05, last, gain)
    covered = size > 0.05
    size = size if covered else 0.0
    if gain is not None:
        expected = (size, gain, 1.0, 1.0, 1.0, last)
    elif covered:
        expected = (size, 1 / size, math.sqrt(size), math.sqrt(size / last), 1.0, size)
    else:
        expected = (0.0, 0.0, 0.0, 1.0, 0.0, last)
    names = ("size", "gain", "scale", "ratio", "covered", "last")
    assert [getattr(found, name) for name in names] == pytest.approx(expected, rel=1e-15)
    power = max(size, 0.0 if covered else 0.05) ** 2
    values = {"power": power, "smallest": 0.05, "last": last, "more": more}
    values |= {"controlled": gain is None, "constant_gain": gain or 0.0}
    text = run_text(rules.MEASURE, **values)
    kept = expected if more else (*expected[:-1], last)
    assert [text[name] for name in names] == pytest.approx(kept, rel=1e-14)


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("drive", [0.7, 0.0])
def test_restart_texts_are_how_the_reference_starts(rng, reset, drive):
    lift = SphereLift(center=(0.0,), radius=100.0)
    circuit = ReferenceCircuit(small_circuit(tile_radius=1.0, reset=reset), lift)
    state = circuit._idle()
    state.recruited = np.array([0, 1, 2, 3, -1, -1])
    state.h = rng.random(6) * state.in_use
    state.u, state.V = rng.random(2), rng.random((2, 6)) * state.in_use
    state.u[0] = 0.001  # below the spark
    state.V[1, 2] = 0.0
    begin = rules.start(np.array([drive]), circuit.floor, 0.4, None)
    rest_h, rest_u, _ = rules.rest(6, 2, None)
    h, u, V, _ = started(circuit, state, begin, rest_h, rest_u)
    in_use = state.in_use.astype(float)
    for restart, carry in ((reset, not reset), (False, False)):
        if not restart and not carry:  # in the middle of a presentation nothing changes
            h, u, V = state.h, state.u, state.V
        values = {"restart": restart, "carry": carry, "covered": begin.covered}
        text = run_text(rules.RESTART_H, h=state.h, h_rest=rest_h[0], in_use=in_use, **values)
        assert text["h"] == pytest.approx(h, abs=ROUNDING)
        values |= {"scale": begin.scale, "ratio": begin.ratio, "u_rest": rest_u}
        text = run_text(rules.RESTART_U, u=state.u, **values)
        assert text["u"] == pytest.approx(u, abs=ROUNDING)
        post = {f"{name}_post": text[name][..., None] for name in ("u_start", "kept")}
        post |= {"restart_pre": restart, "carry_post": carry}
        text = run_text(rules.RESTART_V, V=state.V, h_rest_pre=rest_h, in_use_pre=in_use, **post)
        assert text["V"] == pytest.approx(V, abs=ROUNDING)


def test_tiles_answer_by_hand():
    """r = a sqrt(alpha)/(b (1 - alpha)) must exceed the threshold by a billionth."""
    alpha, below, floor = 0.64, 0.5, 0.01
    r = np.array([0.5, 0.5 + 0.95e-9, 0.5 + 1.05e-9, 0.9, 0.9, -1.0])
    b = np.array([1.0, 1.0, 1.0, 1.0, 0.02, 1.0])
    a = r * b * (1 - alpha) / 0.8
    expected = [False, False, True, True, False, False]  # the fifth has faded below the floor
    assert rules.answers(a, b, alpha, below, floor).tolist() == expected
    assert rules.answers(np.array([0.01]), np.zeros(1), alpha, below, floor).tolist() == [False]
    assert rules.answers(np.zeros(1), np.zeros(1), alpha, below, -1.0).tolist() == [False]
    least = (below + rules.TIE) * (1 - alpha)
    bound = {"sqrt_alpha_pre": 0.8, "least_post": least, "smallest_post": floor}
    # Two more are at the bound, and not above it.
    tiles = {"a_pre": np.append(a, [floor, 0.5]), "b_pre": np.append(b, [0.0, 0.4 / least])}
    found = eval(rules.ANSWERS, NAMES.copy(), tiles | bound)
    assert found.tolist() == [*expected, False, False]


@pytest.mark.parametrize("recycle", [False, True])
@pytest.mark.parametrize("used", [0, 2, 4])
@pytest.mark.parametrize("answering", [0, 1])
def test_who_is_recruited(recycle, used, answering):
    """The next idle tile; the first of those with the least b where none is idle."""
    b, in_use = np.array([3.0, 1.0, 1.0, 2.0]), np.arange(4) < used
    expected = None if answering or (used == 4 and not recycle) else used if used < 4 else 1
    answers = np.arange(4) < answering
    assert rules.recruits(answers, in_use, b, recycle) == expected
    i = np.arange(4)
    pairs = {"b_pre": b, "b_post": b[:, None], "i_pre": i, "i_post": i[:, None]}
    rank = eval(rules.RANK, NAMES.copy(), pairs).sum(axis=1)
    assert rank.tolist() == [3, 0, 1, 2]
    text = rules.CHOOSE_LEAST if recycle else rules.CHOOSE
    values = {"i": i, "used": used, "answering": answering, "N": 4, "rank": rank}
    for restart, carry in ((1, 0), (0, 1), (0, 0)):
        now = {"recruiting": 1, "restart": restart, "carry": carry}
        joins = run_text(text, **values, **now)["joins"]
        wanted = [float(tile == expected and restart + carry > 0) for tile in range(4)]
        assert joins.tolist() == wanted
        assert not run_text(text, **values, **(now | {"recruiting": 0}))["joins"].any()


def test_what_a_recruited_tile_takes(rng):
    """The second of three: W = kappa x, b = kappa sqrt(alpha), its drive anew, its w forgotten."""
    joins, kappa, x = np.array([0.0, 1.0, 0.0]), 0.5, rng.random(2)
    W, b, w, drive = rng.random((3, 2)), rng.random(3), rng.random((1, 3)), rng.random(3)
    text = run_text(
        rules.TAKE,
        **{"recruited": [4, -1, -1], "presentation": 7, "first_presentation": 100, "joins": joins},
        **{"b": b, "kappa": kappa, "sqrt_alpha": 0.9, "drive": drive},
    )
    assert text["recruited"].tolist() == [4, 107, -1]
    assert text["b"] == pytest.approx([b[0], 0.45, b[2]], abs=ROUNDING)
    assert text["drive"].tolist() == [drive[0], 0.0, drive[2]]
    # A synapse at a time, as the sum into drive_post is.
    after, sums = W.copy(), text["drive"].copy()
    for post in range(3):
        for pre in range(2):
            one = {"W": W[post, pre], "x_pre": x[pre], "drive_post": sums[post]}
            found = run_text(rules.TAKE_W, joins_post=joins[post], kappa_post=kappa, **one)
            after[post, pre], sums[post] = found["W"], found["drive_post"]
    assert after == pytest.approx(np.array([W[0], kappa * x, W[2]]), abs=ROUNDING)
    assert sums == pytest.approx([drive[0], kappa * x @ x, drive[2]], abs=ROUNDING)
    assert run_text(rules.TAKE_w, joins_pre=joins, w=w)["w"].tolist() == [[w[0, 0], 0.0, w[0, 2]]]
