"""Points, labels and arguments of any form: the right result, or one sentence."""

from __future__ import annotations

import dataclasses
import math
import os
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.checks import as_count, as_number
from circuits.errors import EngineError, InputError, ParameterError, listed, shown, shown_path
from circuits.lift import as_labels, as_points
from tests.conftest import small_circuit
from tests.refusing import refused, table

LIFT = SphereLift(center=(0.0, 0.0), radius=2.0)
POINTS = np.random.default_rng(0).uniform(-1, 1, (40, 2))
UNSETTLED = pytest.mark.filterwarnings(
    "ignore::circuits.errors.UnsettledWarning", "ignore::circuits.errors.LostLabelWarning"
)
HUGE_TEXT = "x" * 10**6


# How messages show values


def test_values_are_shown_in_few_words():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    deep: list = []
    for _ in range(10**5):
        deep = [deep]
    for value in (
        *(-(10**9999), HUGE_TEXT, "\udcff\n", deep, [[[[[[1]]]]]] * 1000, np.ones(10**6)),
        *({i: i for i in range(10**5)}, pd.DataFrame(POINTS), object(), Broken()),
    ):
        text = shown(value)
        assert 0 < len(text) <= 150
        assert text.isprintable()
        text.encode()
    assert "Broken" in shown(Broken())
    assert [shown(value) for value in (2.5, "a b", [1, 2])] == ["2.5", "'a b'", "[1, 2]"]
    assert shown(10**5000) == "a value of type int"
    assert listed(["a", "b c"]) == "a, b c"
    assert listed(range(5), 3) == "0, 1, 2 and 2 more"
    assert len(listed([HUGE_TEXT] * 3)) < 300
    # Names of files need not be text.
    assert shown_path(os.fsdecode(b"caf\xe9\n.csv")) == "caf\\xe9\\n.csv"
    assert shown_path("données/α.csv") == "données/α.csv"
    assert len(shown_path("a" * 5000 + ".csv")) < 200


# Plain arguments


def test_numbers_and_counts():
    for value in (3, 3.0, np.int8(3), np.float32(3), np.array(3), Fraction(3)):
        assert as_count(value, "n") == 3
        assert as_number(value, "n") == 3
    assert as_number(1, "slack", least=1) == 1
    assert as_count(0, "n") == 0
    for value in (None, "3", True, np.timedelta64(3, "s"), math.nan, math.inf, -1, 1j, [3]):
        refused(lambda v=value: as_number(v, "rho", above=0), "rho .*above 0", ParameterError)
        refused(lambda v=value: as_count(v, "n"), "n .*from 0, got", ParameterError)
    for value in (0, 10**400, np.ones(2)):
        refused(lambda v=value: as_number(v, "rho", above=0), "rho .*above 0", ParameterError)
    refused(lambda: as_count(2.5, "n"), "n .*got 2.5", ParameterError)


# Points and labels


EXACT = POINTS.astype(np.float32).astype(float)  # exact in single precision as well
FRAME = pd.DataFrame(EXACT, columns=["x", "y"], index=np.arange(40)[::-1] * 7)


def test_points_of_any_form():
    for points in (
        *(EXACT.tolist(), [np.array(row) for row in EXACT], xr.DataArray(EXACT)),
        *(EXACT.astype(kind) for kind in (np.float32, ">f8", object)),
        np.ma.array(EXACT, mask=np.zeros(EXACT.shape, bool)),
        FRAME.astype({"x": "Float64"}),
        [[Fraction(x), Decimal(y)] for x, y in EXACT],
    ):
        found = as_points(points)
        assert found.dtype == np.dtype("=f8")
        assert (found == EXACT).all()
    lift = SphereLift.around(FRAME)
    assert (lift(FRAME) == lift(EXACT)).all()
    whole = np.array([[0, 1], [1, 0], [1, 1]])
    for kind in (bool, np.uint64, ">i4"):
        assert (as_points(whole.astype(kind)) == whole).all()


MASKED = np.ma.array(POINTS, mask=np.zeros(POINTS.shape))
MASKED[7, 1] = np.ma.masked


@table(
    ("points", "words"),
    [
        (MASKED, "masked.*got"),
        ([[0.0, np.ma.masked], [1.0, 2.0]], "masked.*0.0, masked"),
        (POINTS + 0j, "[+]0.j"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "datetime64"),
        (np.array([[3]], dtype="m8[s]"), "timedelta"),
        (np.array([[b"1"]]), "b'1'"),
        (HUGE_TEXT, "'xxx"),
        ([[1.0, 2.0], [3.0]], "real numbers"),
        ([[10**400, 1]], "real numbers"),
        (np.zeros(3, dtype=[("x", float), ("y", float)]), "'x', '<f8'"),
        (pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}), "real numbers|finite"),
        (None, "real numbers"),
        (pd.Series([1.0, 2.0]), r"\(T, d\), got \(2,\)"),
        (np.zeros((5, 0)), r"\(T, d\), got \(5, 0\)"),
        (np.zeros((0, 2)), "no points"),
        ([[0.0, 0.0], [np.inf, 0.0]], r"finite: 1 .*point 1 at \[inf, 0.0\]"),
    ],
)
def test_points_that_cannot_be_used(points, words):
    refused(lambda: as_points(points), words, InputError)
    refused(lambda: SphereLift.around(points), words, InputError)
    refused(lambda: CircuitParameters.for_points(points), words, InputError)
    refused(lambda: ReferenceCircuit(small_circuit(), LIFT).run(points), "points", InputError)


LABELS = np.resize([0, -1, 0, 1], 40)


def test_labels_of_any_form():
    for labels in (
        *(LABELS.tolist(), LABELS[:, None], LABELS.astype(object), -0.0 + LABELS),
        np.ma.array(LABELS),
        pd.Series(LABELS, dtype="Int64", index=np.arange(40)[::-1] * 3),
        xr.DataArray(LABELS),
    ):
        assert (as_labels(labels, 40, 1) == LABELS[:, None]).all()
    # For all readouts, or for each.
    assert as_labels(None, 2, 3).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert as_labels([1, -1], 2, 3).tolist() == [[1, 1, 1], [-1, -1, -1]]
    assert as_labels([[1, 0], [0, -1]], 2, 2).tolist() == [[1, 0], [0, -1]]
    refused(lambda: as_labels([[1, 0], [0, 2]], 2, 2), "got 2 at point 1", InputError)


@table(
    ("labels", "words"),
    [
        (LABELS > 0, "True and False"),
        (np.array([1, True] * 20, dtype=object), "True and False"),
        (np.where(LABELS == 0, np.nan, LABELS), "got nan at point 0"),
        (np.ma.array(LABELS, mask=LABELS == 1), "masked.*got"),
        (pd.Series([1, None] * 20, dtype="Int64"), r"0 \(silent\)"),
        (LABELS * 2, "got -2 at point 1"),
        (LABELS[:-1], r"\(40,\) or \(40, 1\).*got \(39,\)"),
        (np.zeros((40, 2)), r"got \(40, 2\)"),
    ],
)
def test_labels_that_cannot_be_used(labels, words):
    refused(lambda: as_labels(labels, 40, 1), words, InputError)


# Scales, and the lift


def scaled_run(scale: float, settling: str, offset: float = 0.0):
    points = scale * (POINTS + offset)
    lift = SphereLift.around(points)
    sizes = {"n_tiles": 12, "tile_radius": 0.6 * scale, "steps_per_presentation": 60}
    circuit = ReferenceCircuit(small_circuit(**sizes, mu=10.0), lift, settling=settling)
    run = circuit.run(points, LABELS)
    return run, circuit.predict(points)


@UNSETTLED
@table("settling", ["exact", "dynamics"])
def test_the_unit_of_the_data_does_not_matter(settling):
    one, answers = scaled_run(1.0, settling)
    for scale in (2.0**-1000, 1e300):
        run, scaled = scaled_run(scale, settling)
        # Powers of two change no digit. Other scales round points, to 1e-16 of the lift's radius
        # 2.4: products change by that, which is 4e-15 of 1 - alpha = 0.03, and so do the rates.
        exact = math.frexp(scale)[0] == 0.5
        bound = 0.0 if exact else 1e-12
        for name in ("h", "u", "y", "W", "b", "w", "V"):
            assert np.abs(run[name].values - one[name].values).max() <= bound, name
        assert np.abs(scaled - answers).max() <= bound
    # Far from the origin points are rounded to 1e9 x 1e-16, 1e-7 of the lift's radius.
    far, _ = scaled_run(1.0, settling, 1e9)
    assert np.abs(one["h"].values - far["h"].values).max() < 1e-4


def test_lifts_that_make_no_sense():
    wrong = ("ab", [], [[0.0, 0.0]], [np.nan, 0.0], np.ma.array([1.0], mask=True), {}, HUGE_TEXT)
    for center in wrong:
        refused(lambda c=center: SphereLift(c, 1.0), "center .*got", ParameterError)
    for radius in (None, True, 0, -1, np.inf, 10**400):
        refused(lambda r=radius: SphereLift((0, 0), r), "^radius .*above 0", ParameterError)
        refused(lambda r=radius: LIFT.alpha(r), "^tile_radius .*above 0", ParameterError)
    for slack in (None, 0.99, np.nan):
        refused(lambda s=slack: SphereLift.around(POINTS, s), "slack .*got", ParameterError)
    # Points that reach beyond numbers, or are of another dimension.
    refused(lambda: SphereLift.around([[-1.7e308, 0], [1.7e308, 0]]), "radius inf", InputError)
    refused(lambda: LIFT([[1.7e308, -1.7e308]]), "radius 2")
    refused(lambda: LIFT([[0.0, 0.0, 0.0]]), r"\(T, 2\), got \(1, 3\)", InputError)
    # Tiles far smaller than the lift.
    lift = SphereLift((0, 0), 3e6)
    for radius in (3.0, 3e-294):
        refused(lambda r=radius: lift.alpha(r), rf"{radius:g} .*3e\+06", ParameterError)


@UNSETTLED
def test_the_smallest_tiles_that_are_allowed_work():
    """Just above the bound the circuit still tells a tile's own point from one half a radius off,
    and settles where the closed form says."""
    message = refused(lambda: LIFT.alpha(1e-9), "at least")
    least = float(message.split("at least ")[1].split()[0]) * 1.1
    assert LIFT.alpha(least) < 1
    centers = least * np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    parameters = small_circuit(n_tiles=3, tile_radius=least, steps_per_presentation=200)
    h = {}
    for settling in ("exact", "dynamics"):
        circuit = ReferenceCircuit(parameters, LIFT, settling=settling, tile_centers=centers)
        h[settling] = circuit.respond(np.concatenate([centers, centers + np.array([least / 2, 0])]))
    assert (h["exact"] > 0).tolist() == np.tile(np.eye(3, dtype=bool), (2, 1)).tolist()
    # Both are given the same drive, so that its rounding does not matter here.
    assert np.abs(h["exact"] - h["dynamics"]).max() < 1e-4


# Circuits


def circuits():
    parameters = small_circuit(n_tiles=3, steps_per_presentation=10, tile_radius=1.0)
    yield ReferenceCircuit(parameters, LIFT)
    yield ManifoldCircuit(parameters, LIFT, "numpy")


@UNSETTLED
def test_circuits_refuse_and_stay_as_they_were():
    for circuit in circuits():
        refused(lambda c=circuit: c.state, "no state yet", InputError)
        circuit.run(POINTS, LABELS)
        before = circuit.state
        for call, words in (
            (lambda c, v: c.run(v), "points|outside"),
            (lambda c, v: c.run(POINTS, v), "labels"),
            (lambda c, v: c.predict(v), "points|outside"),
            (lambda c, v: c.respond(v), "points|outside"),
            (lambda c, v: c.run(POINTS, record=(v,)), "record"),
            (lambda c, v: c.prepare(record=v), "record"),
            (lambda c, v: c.run(POINTS, snapshot_every=v), "snapshot_every"),
            (lambda c, v: c.prepare(snapshot_every=v), "snapshot_every"),
            (lambda c, v: c.run(POINTS, progress=v), "progress"),
            (lambda c, v: setattr(c, "state", v), "state must be a Circuit"),
            (lambda c, v: list(c.run_stream(v)), "chunk|points"),
        ):
            for value in ("W", 7.5, POINTS * np.nan, [[]]):
                refused(lambda c=circuit, v=value, f=call: f(c, v), words)
        for change, words in (
            ({"W": before.W * np.nan}, "W .*finite"),
            ({"W": before.W + 0j}, "[+]0.j"),
            ({"h": np.ma.array(before.h, mask=True)}, "masked"),
            ({"w": [[1, 2], [3]]}, "w .*real numbers"),
            ({"V": before.V.T}, "V .*shape"),
            ({"learned": -1}, "learned .*-1"),
            ({"shown": None}, "shown .*None"),
            ({"extra": None}, "extra "),
        ):
            other = dataclasses.replace(before, **change)
            refused(lambda v=other, c=circuit: setattr(c, "state", v), words)
        after = circuit.state
        for part in ("W", "b", "w", "h", "u", "V", "learned", "shown"):
            assert np.array_equal(getattr(after, part), getattr(before, part)), part


def test_circuits_that_make_no_sense():
    parameters = small_circuit()
    for options, words in (
        ({"tile_centers": "x"}, "points"),
        ({"tile_centers": MASKED[5:11]}, "masked"),
        ({"tile_centers": np.ones((6, 2))}, "distinct"),
        ({"settling": ["exact"]}, "settling .*exact"),
        ({"settling": "fast"}, "settling .*'fast'"),
    ):
        refused(lambda given=options: ReferenceCircuit(parameters, LIFT, **given), words)
    large = small_circuit(tile_radius=3.0)
    refused(lambda: ReferenceCircuit(large, LIFT), "tile_radius.*2.82843.*got 3", ParameterError)
    refused(lambda: ManifoldCircuit(parameters, LIFT, "numpy", extend=3), "extend .*3")
    refused(lambda: ManifoldCircuit(parameters, LIFT, "gpu"), "'gpu'.*cpp_standalone", EngineError)
