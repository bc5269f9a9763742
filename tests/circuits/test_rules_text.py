"""Every rule's Brian2 text, evaluated with NumPy, against the function that stands beside it; and
the functions against cases solved by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from circuits import (
    ManifoldCircuit,
    ReferenceCircuit,
    SphereLift,
    UnequalGain,
    readout,
    reference,
)
from circuits.assembly.lines import lines_of
from circuits.parts import gain_control, recruiting, recycling, restart
from circuits.parts.other_readouts import ClampedLabels, GatedReadout, clamped, pooled
from tests.conftest import small_circuit

LIFT = SphereLift(center=(0.0, 0.0), radius=3.0)
NAMES = {"sqrt": np.sqrt, "clip": np.clip, "tanh": np.tanh, "abs": np.abs, "inf": np.inf}
NAMES["int"] = lambda value: np.asarray(value).astype(int)
NAMES["where"] = np.where

# The same operations in another order: a few roundings of numbers of order one.
ROUNDING = 1e-14


def run_text(text: str, **values):
    """The variables after Brian2 statements; Brian2 writes them as Python does, but for arrays."""
    found = {name: np.array(value, dtype=float) for name, value in values.items()}
    with np.errstate(divide="raise"):
        exec(text.replace(" and ", " & ").replace(" or ", " | "), NAMES.copy(), found)
    return found


def expression(line: str) -> str:
    """The right-hand side of a line of equations."""
    return line.partition("=")[2].rpartition(" : ")[0]


def statements(lines: str) -> str:
    """Subexpressions as assignments, in their order."""
    return "\n".join(line.rpartition(" : ")[0] for line in lines.strip().splitlines())


def test_readout_texts_are_the_functions():
    net, z, mu = np.array([-3.0, 0.2, 0.1, 4.0]), np.array([0.0, 1.0, 0.0, 0.0]), np.full(4, 0.5)
    for name, expected in (
        ("clip", [-1.0, 1.0, 0.05, 1.0]),
        ("tanh", [math.tanh(-1.5), math.tanh(1.1), math.tanh(0.05), math.tanh(2.0)]),
    ):
        assert reference.ANSWER[name](net, z, mu) == pytest.approx(expected, abs=ROUNDING)
        found = run_text(readout.ANSWER[name], net=net, z=z, mu=mu)["y"]
        assert found == pytest.approx(expected, abs=ROUNDING)
    y, z = np.array([0.5, 0.5, 0.5]), np.array([0.0, 1.0, -1.0])
    assert clamped(y, z).tolist() == [0.5, 1.0, -1.0]
    ((_, _, clamp, _),) = ClampedLabels.code
    assert run_text(clamp, y=y, z=z)["y"].tolist() == [0.5, 1.0, -1.0]
    mean = expression(lines_of(GatedReadout.equations["readout"])["net"].text)
    for net, h, expected in (
        ([1.0, 3.0], [0.5, 1.5], [0.5, 1.5]),
        ([1.0], [0.25], [4.0]),
        ([1.0, 3.0], [0.0, 0.0], [0.0, 0.0]),  # without tiles it is silent
    ):
        assert pooled(np.array(net), np.array(h)).tolist() == expected
        assert run_text(f"found = {mean}", wh=net, total=sum(h))["found"].tolist() == expected


def test_where_the_steps_lead_by_hand():
    direction = np.array([0.6, 0.8])
    h, u, V = reference.fixed_point(np.array([3.0, -1.0, 4.0]), direction)
    assert h.tolist() == [0.6, 0.0, 0.8]
    assert u == pytest.approx(math.sqrt(5) * direction, rel=1e-15)
    assert pytest.approx(np.outer(u, h), rel=1e-15) == V
    for floor in (0.0, 5.0):  # of the size of the drive: nothing counts
        a = np.array([3.0, 0.0, 4.0]) if floor else -np.ones(3)
        assert not any(part.any() for part in reference.fixed_point(a, direction, floor))


def test_rest_by_hand():
    assert reference.rest_direction(2) == pytest.approx(
        np.array([1, 1.5]) / math.sqrt(3.25), rel=1e-15
    )
    h, u, V = reference.rest(4, 2, None)
    assert h.tolist() == [0.5] * 4
    assert (u == reference.rest_direction(2)).all()
    assert (np.outer(u, h) == V).all()
    assert reference.rest(4, 2, 8.0)[1] == pytest.approx(0.5 * u, rel=1e-15)


def test_what_carries_over_by_hand():
    """Twice what it was, but at least half of what it is at rest."""
    u, u_start, h_start = np.array([1.0, 0.1]), np.array([1.0, 0.8]), np.array([0.5, 0.25, 0.0])
    V = np.array([[0.05, 0.5, 0.1], [0.2, 0.01, 0.0]])
    expected_u = np.array([2.0, 0.4])
    expected_V = np.array([[0.25, 1.0, 0.2], [0.4, 0.1, 0.0]])
    rest = u_start[:, None] * h_start
    for found, expected in zip(
        restart.carry_over(2 * u, 2 * V, u_start, rest), (expected_u, expected_V), strict=True
    ):
        assert found == pytest.approx(expected, abs=1e-15)
    (_, _, of_u), (_, _, of_V) = restart.CarryOver.code
    assert run_text(of_u, u=u, u_start=u_start, kept=2)["u"] == pytest.approx(expected_u, abs=1e-15)
    pairs = {"kept_post": 2, "V": V, "u_start_post": u_start[:, None], "h_start_pre": h_start}
    assert run_text(of_V, **pairs)["V"] == pytest.approx(expected_V, abs=1e-15)


def test_unequal_gains_by_hand():
    """A tile of factor f moves f times as far in a step: from h = 0, f gain gamma a."""
    unequal = UnequalGain(spread=0.5, seed=3)
    factors = np.exp(0.5 * np.random.default_rng(3).standard_normal(6) - 0.125)
    constant = {"gain": 7.0, "tau_h": "50 ms", "dt": "1 ms", "steps_per_presentation": 1}
    parameters = small_circuit(tile_radius=1.0, tiles="first", reset=False, **constant)
    for circuit in (
        ReferenceCircuit(parameters, LIFT, perturbations=[unequal]),
        ManifoldCircuit(parameters, LIFT, "numpy", perturbations=[unequal]),
    ):
        points = np.random.default_rng(0).normal(size=(6, 2)) * 0.1
        state = circuit.seeded(LIFT(points))
        state.h, state.u, state.V = np.zeros(6), 0 * state.u, 0 * state.V
        circuit.state = state
        a = reference.drive(state.W, state.b, LIFT(points)[0], circuit.alpha)
        # Inhibition starts from the spark alone, half of u and V at rest.
        u, V = (0.5 * value for value in (reference.rest(6, 2, 7.0)[1:]))
        expected = np.maximum(factors * 7.0 * 0.02 * (a - u @ V), 0)
        assert circuit.respond(points[:1])[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("size", [2.0, 0.3, 0.05])
@pytest.mark.parametrize("last", [0.5, 8])
def test_how_a_presentation_starts(size, last):
    """By hand, and as Brian2 computes it; a drive of 0.05 is at the floor, and counts as none."""
    found = gain_control.start(np.array([size, -3.0]), 0.05, last)
    covered = size > 0.05
    size = size if covered else 0.0
    expected = (0.0, 0.0, 1.0, 0.0, last)
    if covered:
        expected = (1 / size, math.sqrt(size), math.sqrt(size / last), 1.0, size)
    names = ("gain", "scale", "ratio", "covered", "last")
    assert [getattr(found, name) for name in names] == pytest.approx(expected, rel=1e-15)
    power = max(size, 0.0 if covered else 0.05) ** 2
    values = {"power": power, "smallest": 0.05, "last": last}
    text = run_text(gain_control.MEASURE, **values)
    assert [text[name] for name in names] == pytest.approx(expected, rel=1e-14)


def test_tiles_answer_by_hand():
    """r = a sqrt(alpha)/(b (1 - alpha)) must exceed the threshold by a billionth."""
    alpha, below, floor = 0.64, 0.5, 0.01
    r = np.array([0.5, 0.5 + 0.95e-9, 0.5 + 1.05e-9, 0.9, 0.9, -1.0])
    b = np.array([1.0, 1.0, 1.0, 1.0, 0.02, 1.0])
    a = r * b * (1 - alpha) / 0.8
    expected = [False, False, True, True, False, False]  # the fifth has faded below the floor
    assert recruiting.answers(a, b, alpha, below, floor).tolist() == expected
    assert recruiting.answers(np.array([0.01]), np.zeros(1), alpha, below, floor).tolist() == [
        False
    ]
    assert recruiting.answers(np.zeros(1), np.zeros(1), alpha, below, -1.0).tolist() == [False]
    least = (below + recruiting.TIE) * (1 - alpha)
    bound = {"sqrt_alpha_pre": 0.8, "least_post": least, "smallest_post": floor}
    # Two more are at the bound, and not above it.
    tiles = {"a_pre": np.append(a, [floor, 0.5]), "b_pre": np.append(b, [0.0, 0.4 / least])}
    counted = run_text(statements(recruiting.COUNTS), **tiles, **bound, in_use_pre=1)
    assert counted["answering_post"].tolist() == [
        *expected,
        False,
        False,
    ]


@pytest.mark.parametrize("recycle", [False, True])
@pytest.mark.parametrize("used", [0, 2, 4])
@pytest.mark.parametrize("answering", [0, 1])
def test_who_is_recruited(recycle, used, answering):
    """The next idle tile; the first of those with the least b where none is idle."""
    b, in_use = np.array([3.0, 1.0, 1.0, 2.0]), np.arange(4) < used
    expected = None if answering or (used == 4 and not recycle) else used if used < 4 else 1
    recruited = np.where(in_use, 0, -1)
    assert recruiting.next_idle(recruited) == (used if used < 4 else None)
    assert recycling.least_used(b, recruited) == 1
    assert recycling.least_used(b, np.array([0, -2, 0, 0])) == 2  # one is gone
    assert recruiting.next_idle(np.array([0, -2, -1, -1])) == 2
    i = np.arange(4)
    pairs = {"b_pre": b, "b_post": b[:, None], "i_pre": i, "i_post": i[:, None]}
    pairs["turn_pre"] = i
    rank = run_text(statements(recycling.RANK), **pairs)["rank_post"].sum(axis=1)
    assert rank.tolist() == [3, 0, 1, 2]
    texts = [recruiting.NEXT, *([recycling.Recycling.code[0][2]] if recycle else [])]
    values = {"turn": i, "used": used, "answering": answering, "available": 4, "rank": rank}
    joins = run_text("\n".join(texts), **values, recruiting=1)["joins"]
    assert joins.tolist() == [float(tile == expected) for tile in range(4)]
    assert not run_text("\n".join(texts), **values, recruiting=0)["joins"].any()
