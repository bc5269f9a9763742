"""Every public function with everything one can give it: the right result, or one sentence."""

from __future__ import annotations

import dataclasses
import math
import os
import tracemalloc
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.checks import as_count, as_number
from circuits.errors import InputError, ParameterError, listed, shown, shown_path
from circuits.lift import as_labels, as_points, tile_radius_for
from circuits.measures import (
    accuracy,
    diffusion_slopes,
    tile_centers,
    tile_centers_of,
    tile_order,
    tile_positions,
)
from tests.conftest import small_circuit
from tests.refusing import refused, table

LIFT = SphereLift(center=(0.0, 0.0), radius=2.0)
POINTS = np.random.default_rng(0).uniform(-1, 1, (40, 2))
UNSETTLED = pytest.mark.filterwarnings(
    "ignore::circuits.errors.UnsettledWarning", "ignore::circuits.errors.LostLabelWarning"
)
HUGE_TEXT = "x" * 10**7


# How messages show values


@table(
    "value",
    [10**5000, -(10**9999), HUGE_TEXT, b"x" * 10**6, [[[[[[1]]]]]] * 1000, "\udcff\n", None, float,
     {i: i for i in range(10**5)}, pd.DataFrame(POINTS), math.nan, object(), np.ones(10**6)],
)  # fmt: skip
def test_values_are_shown_in_few_words(value):
    text = shown(value)
    assert 0 < len(text) <= 150
    assert text.isprintable()
    text.encode()


def test_values_are_shown_as_they_are_where_they_are_short():
    assert shown(2.5) == "2.5"
    assert shown("a b") == "'a b'"
    assert shown([1, 2]) == "[1, 2]"
    assert shown(10**5000) == "a whole number of about 5001 digits"
    assert listed(["a", "b c"]) == "a, b c"
    assert listed(range(5), 3) == "0, 1, 2 and 2 more"
    assert len(listed([HUGE_TEXT] * 3)) < 300


def test_what_cannot_be_shown_is_named_by_its_type():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    deep: list = []
    for _ in range(10**5):
        deep = [deep]
    assert "Broken" in shown(Broken())
    assert len(shown(deep)) < 100


def test_names_of_files_need_not_be_text():
    name = os.fsdecode(b"caf\xe9\n.csv")
    assert shown_path(name) == "caf\\xe9\\n.csv"
    assert shown_path("données/α.csv") == "données/α.csv"
    assert len(shown_path("a" * 5000 + ".csv")) < 200


# Plain arguments


@table(
    "value", [None, "3", b"3", True, math.nan, math.inf, -1, 10**400, 1j, [3], np.ones(2), object()]
)
def test_numbers(value):
    refused(lambda: as_number(value, "rho", above=0), "rho must be finite and above 0")


@table("value", [None, "3", True, math.nan, math.inf, 2.5, -1, 1j, [3], np.inf])
def test_counts(value):
    refused(lambda: as_count(value, "n"), "n must be a whole number from 0, got")


@table("value", [3, 3.0, np.int8(3), np.float32(3), np.array(3), Fraction(3)])
def test_numbers_of_any_type(value):
    assert as_count(value, "n") == 3
    assert as_number(value, "n") == 3


# Points and labels


EXACT = POINTS.astype(np.float32).astype(float)  # exact in single precision as well
FRAME = pd.DataFrame(EXACT, columns=["x", "y"], index=np.arange(40)[::-1] * 7)


@table(
    "points",
    [
        EXACT.tolist(),
        [tuple(row) for row in EXACT],
        [np.array(row) for row in EXACT],
        EXACT.astype(np.float32),
        EXACT.astype(">f8"),
        EXACT.astype(np.longdouble),
        EXACT.astype(object),
        np.asfortranarray(EXACT),
        np.repeat(EXACT, 2, axis=0)[::2],
        EXACT[::-1][::-1],
        np.ma.array(EXACT),
        np.ma.array(EXACT, mask=np.zeros(EXACT.shape, bool)),
        np.matrix(EXACT),
        FRAME,
        FRAME.astype("Float64"),
        FRAME.astype({"x": "Float64"}),
        FRAME.astype(object),
        xr.DataArray(EXACT),
        [[Fraction(x), Decimal(y)] for x, y in EXACT],
    ],
)
def test_points_of_any_form(points):
    found = as_points(points)
    assert found.dtype == np.dtype("=f8")
    assert (found == EXACT).all()
    assert tile_radius_for(points, 5) == tile_radius_for(EXACT, 5)
    lift = SphereLift.around(points)
    assert (lift(points) == lift(EXACT)).all()


@table("kind", [bool, np.int8, np.uint64, np.int32, ">i4"])
def test_whole_numbers_are_points(kind):
    points = np.array([[0, 1], [1, 0], [1, 1]])
    assert (as_points(points.astype(kind)) == points).all()


def test_points_that_nobody_may_write_to_are_not_written_to():
    points = POINTS.copy()
    points.flags.writeable = False
    circuit = ReferenceCircuit(small_circuit(), LIFT, settling="exact")
    before = circuit.run(points)
    writable = points.copy()
    after = ReferenceCircuit(small_circuit(), LIFT, settling="exact").run(writable)
    assert (before["h"].values == after["h"].values).all()
    writable[:] = 0  # what a caller does later does not change a result
    assert (after["points"].values == points).all()


MASKED = np.ma.array(POINTS, mask=np.zeros(POINTS.shape))
MASKED[7, 1] = np.ma.masked


@table(
    ("points", "words"),
    [
        (MASKED, "points must not be masked: 1 values are, the first at point 7"),
        (list(MASKED), "masked value at point 7"),
        ([[0.0, np.ma.masked], [1.0, 2.0]], "masked value at point 0"),
        (POINTS + 0j, "got complex numbers"),
        (POINTS + 1e-300j, "got complex numbers"),
        ([[1, 2j]], "complex"),
        (np.array([[1, 2j]], dtype=object), "real numbers"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "got dates"),
        (np.array([[3]], dtype="m8[s]"), "got time differences"),
        ([[datetime(2020, 1, 1)]], "real numbers"),
        (np.array([[b"1"]]), "got bytes"),
        ([["1", "2"]], "got text"),
        (np.array([["1", 2]], dtype=object), "real numbers"),
        ([[None, 1.0]], "real numbers"),
        ([[1.0, 2.0], [3.0]], "real numbers"),
        ([[10**400, 1]], "real numbers"),
        ([[{}, []]], "real numbers"),
        (np.zeros(3, dtype=[("x", float), ("y", float)]), "records with fields"),
        (pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}), "real numbers|finite"),
        (pd.DataFrame({"x": [1.0], "t": pd.to_datetime(["2020-01-01"])}), "real numbers"),
        (pd.Series([1.0, 2.0]), r"shape \(T, d\), got \(2,\)"),
        (None, "real numbers"),
        ("points", "got text"),
        (3.0, r"shape \(T, d\), got \(\)"),
        (np.zeros((2, 2, 2)), r"got \(2, 2, 2\)"),
        (np.zeros((5, 0)), r"shape \(T, d\), got \(5, 0\)"),
        (np.zeros((0, 2)), "no points"),
        ([[np.inf, 0.0]], "finite: 1 are not, the first is point 0"),
        (np.full((3, 784), np.nan), "finite: 3 are not"),
        (np.array([["1e4000"]], dtype=np.longdouble), "finite: 1 are not"),
        (HUGE_TEXT, "points"),
    ],
)
def test_points_that_are_none(points, words):
    refused(lambda: as_points(points), words, InputError)
    refused(lambda: SphereLift.around(points), words, InputError)
    refused(lambda: tile_radius_for(points, 5), words, InputError)
    refused(lambda: ReferenceCircuit(small_circuit(), LIFT).run(points), "points", InputError)


LABELS = np.resize([0, -1, 0, 1], 40)


@table(
    "labels",
    [
        LABELS.tolist(),
        LABELS[:, None],
        LABELS.astype(np.int8),
        LABELS.astype(np.float32),
        LABELS.astype(">i2"),
        LABELS.astype(object),
        -0.0 + LABELS,
        np.ma.array(LABELS),
        pd.Series(LABELS, index=np.arange(40)[::-1] * 3),
        pd.Series(LABELS, dtype="Int64"),
        pd.DataFrame({"z": LABELS}),
        xr.DataArray(LABELS),
    ],
)
def test_labels_of_any_form(labels):
    assert (as_labels(labels, 40, 1) == LABELS[:, None]).all()


@table(
    ("labels", "words"),
    [
        (LABELS > 0, "True and False: say which is which"),
        ([True] * 40, "True and False"),
        (np.array([1, True] * 20, dtype=object), "True and False"),
        (np.where(LABELS == 0, np.nan, LABELS), r"0 \(silent\) or \+1, got nan at point 0"),
        (np.ma.array(LABELS, mask=LABELS == 1), r"0 \(silent\).*masked.*first at point 3"),
        (pd.Series([1, None] * 20, dtype="Int64"), r"0 \(silent\)"),
        (LABELS * 2, "got -2 at point 1"),
        (LABELS + 1e-9, "got 1e-09 at point 0"),
        (LABELS + 0j, "complex"),
        (["a"] * 40, "text"),
        ([None] * 40, "real numbers"),
        (LABELS[:-1], r"shape \(40,\) or \(40, 1\).*got \(39,\)"),
        (LABELS[None], r"got \(1, 40\)"),
        (np.zeros((40, 2)), r"got \(40, 2\)"),
        (1, r"got \(\)"),
        ([[1], [1, 2]], "real numbers"),
        ([], r"got \(0,\)"),
        (HUGE_TEXT, "text"),
    ],
)
def test_labels_that_are_none(labels, words):
    refused(lambda: as_labels(labels, 40, 1), words, InputError)


# Scales, and the lift


SCALES = [2.0**-1000, 1e-300, 1e-12, 2.0**-40, 1e-3, 2.0**10, 1e6, 1e12, 2.0**40, 1e300, 2.0**1000]


def scaled_run(scale: float, settling: str, offset: float = 0.0):
    points = scale * (POINTS + offset)
    lift = SphereLift.around(points)
    parameters = small_circuit(
        n_tiles=12, tile_radius=0.6 * scale, steps_per_presentation=60, mu=10.0
    )
    circuit = ReferenceCircuit(parameters, lift, settling=settling)
    run = circuit.run(points, LABELS)
    return run, circuit.predict(points), tile_radius_for(points, 12)


@UNSETTLED
@table("settling", ["exact", "dynamics"])
@table("scale", SCALES)
def test_the_unit_of_the_data_does_not_matter(settling, scale):
    (one, answers, radius), (run, scaled, scaled_radius) = (
        scaled_run(s, settling) for s in (1.0, scale)
    )
    # Powers of two change no digit. Other scales round points, to 1e-16 of the lift's radius 2.4:
    # products change by that, which is 4e-15 of 1 - alpha = 0.03, and so do the rates.
    exact = math.frexp(scale)[0] == 0.5
    bound = 0.0 if exact else 1e-12
    for name in ("h", "u", "y", "W", "b", "w", "V"):
        assert np.abs(run[name].values - one[name].values).max() <= bound, name
    assert np.abs(scaled - answers).max() <= bound
    assert scaled_radius / scale == pytest.approx(radius, rel=1e-14)
    assert np.abs(np.linalg.norm(run["W"].values, axis=1)).max() < 1


@UNSETTLED
def test_far_from_the_origin_the_lift_is_the_same():
    # The points are rounded to 1e9 x 1e-16 there, 1e-7 of the lift's radius.
    near, far = (scaled_run(1.0, "exact", offset)[0] for offset in (0.0, 1e9))
    assert np.abs(near["h"].values - far["h"].values).max() < 1e-4


def test_the_farthest_point_lies_within_its_lift():
    for seed in range(200):
        points = np.random.default_rng(seed).normal(size=(20, 1 + seed % 9))
        x = SphereLift.around(points, slack=1)(points)
        # The height near the rim is the root of a rounding error: x has norm one to 1e-15 still.
        assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-14


def test_points_that_reach_beyond_numbers():
    refused(lambda: SphereLift.around([[-1.7e308, 0], [1.7e308, 0]]), "use another unit")
    refused(lambda: LIFT([[1.7e308, -1.7e308]]), "outside the lift's radius 2")
    refused(lambda: SphereLift([1.0] * 784, 2.0)(np.full((1, 784), 9.0)), "outside")


@table(
    "center",
    [None, "ab", [], [[0.0, 0.0]], [np.nan, 0.0], [np.inf], [1j], np.ma.array([1.0], mask=True),
     [[1], [2, 3]], object(), {}, np.array(["2020"], "M8[D]"), HUGE_TEXT],
)  # fmt: skip
def test_centres_that_are_none(center):
    refused(lambda: SphereLift(center, 1.0), "center must be a finite point, got", ParameterError)


@table("radius", [None, "3", True, 0, -1, np.nan, np.inf, [3], 1j, 10**400])
def test_radii_that_are_none(radius):
    refused(lambda: SphereLift((0, 0), radius), "radius must be finite and above 0", ParameterError)
    refused(lambda: LIFT.alpha(radius), "tile_radius must be finite and above 0", ParameterError)


@table("slack", [None, "3", True, 0.99, np.nan, np.inf])
def test_slack(slack):
    refused(lambda: SphereLift.around(POINTS, slack), "slack must be finite", ParameterError)


@table("ratio", [1e-6, 1e-8, 1e-12, 1e-100, 1e-300])
def test_tiles_far_smaller_than_the_lift_are_refused_in_a_sentence(ratio):
    lift = SphereLift((0, 0), 3e6)
    words = rf"tile_radius={3e6 * ratio:g} is too small for a lift of radius 3e\+06"
    refused(lambda: lift.alpha(3e6 * ratio), words.replace("e-", "e-"), ParameterError)
    refused(lambda: ReferenceCircuit(small_circuit(tile_radius=3e6 * ratio), lift), words)


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


# The tile radius


def naive_radius(points, n_tiles, overlap=5.0):
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.median(np.quantile(distance, min(overlap / n_tiles, 1.0), axis=1))


@table(("n", "d"), [(2, 1), (50, 3), (300, 20), (40, 784)])
def test_the_tile_radius_is_that_of_all_distances(n, d):
    points = np.random.default_rng(n).normal(size=(n, d))
    # The same squares, summed in another order.
    assert tile_radius_for(points, 7) == pytest.approx(naive_radius(points, 7), rel=1e-12)


@table("n", [999, 1000, 1001, 1500, 1999, 2000, 2001, 5000])
def test_the_tile_radius_looks_at_a_thousand_points_at_most(n):
    points = np.random.default_rng(n).normal(size=(n, 1))
    every = math.ceil(n / 1000)
    assert len(points[::every]) <= 1000
    # Points between those that are looked at do not matter.
    other = points.copy()
    other[np.arange(n) % every != 0] = 1e6
    assert tile_radius_for(points, 7) == tile_radius_for(other, 7)
    assert tile_radius_for(points, 7) == pytest.approx(naive_radius(points[::every], 7), rel=1e-12)


@table(("n", "d"), [(1999, 100), (5000, 784), (200_000, 2)])
def test_the_memory_of_the_tile_radius_is_bounded(n, d):
    points = np.random.default_rng(0).normal(size=(n, d))
    tile_radius_for(points[:10], 3)  # imports
    tracemalloc.start()
    try:
        tile_radius_for(points, 40)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20


@table(
    ("n_tiles", "overlap"),
    [(0, 5), (-1, 5), (2.5, 5), (None, 5), ("4", 5), (True, 5), (4, 0), (4, np.nan), (4, -1),
     (4, None), (4, np.inf), ([4], 5)],
)  # fmt: skip
def test_tile_radii_that_make_no_sense(n_tiles, overlap):
    refused(lambda: tile_radius_for(POINTS, n_tiles, overlap), "n_tiles|overlap", ParameterError)


def test_points_without_extent_have_no_tile_radius():
    refused(lambda: tile_radius_for([[1.0, 2.0]], 3), "coincide")
    refused(lambda: tile_radius_for(np.ones((50, 2)), 3), "coincide")
    assert tile_radius_for([[0.0], [1.0]], 1) == 1.0


# Parameters


@table(
    ("values", "words"),
    [
        ({"self": 1}, "there is no parameter 'self'"),
        ({"cls": 1}, "there is no parameter 'cls'"),
        ({"": 1}, "there is no parameter ''"),
        ({"ñ\n": 1}, "there is no parameter"),
        ({"x" * 10**6: 1}, "there is no parameter 'xxx"),
        ({"dt_": 1e-3}, "there is no parameter 'dt_'"),
        ({"n_tiles": True}, "n_tiles must be a number, got True"),
        ({"n_tiles": "40"}, "n_tiles must be a number, got '40'"),
        ({"n_tiles": None}, "n_tiles must be a number, got None"),
        ({"n_tiles": 10**9}, "n_tiles=1000000000 with.*their weights alone take 37.3 GiB"),
        ({"n_tiles": 10**5000}, "whole number of about 5001 digits"),
        ({"n_interneurons": 10**9}, "n_interneurons=1000000000.*298 GiB"),
        ({"n_readouts": 10**9}, "n_readouts=1000000000.*298 GiB"),
        ({"n_tiles": 10**5, "n_interneurons": 10**5}, "74.5 GiB"),
        ({"steps_per_presentation": 10**30}, "steps_per_presentation must be less than"),
        ({"n_tiles": np.inf}, "n_tiles must be a finite number, got inf"),
        ({"n_tiles": [40]}, r"n_tiles must be a number, got \[40\]"),
        ({"tile_radius": "0.4"}, "tile_radius must be a number, got '0.4'"),
        ({"tile_radius": 10**400}, "tile_radius must be a valid number, got a whole number"),
        ({"tile_radius": 1j}, "tile_radius must be a number"),
        ({"learning_rate": np.nan}, "learning_rate must be .*, got nan"),
        ({"mu": True}, "mu must be one number or one per readout, got True"),
        ({"mu": [1, "2"], "n_readouts": 2}, "mu must be one number or one per readout"),
        ({"mu": {1.0, 2.0}, "n_readouts": 2}, "mu must be one number or one per readout"),
        ({"mu": np.ma.array([1.0], mask=True)}, "mu must be one number or one per readout"),
        ({"mu": np.ones((2, 2))}, "mu must be one number or one per readout"),
        ({"mu": [np.nan] * 10**5, "n_readouts": 10**5}, "mu must be finite|can be held"),
        ({"mu": ()}, "got 0 values for n_readouts=1"),
        ({"mu": HUGE_TEXT}, "mu must be one number"),
        ({"gain": None}, "gain must be 'control', 'auto' or a finite number above 0, got None"),
        ({"initial_weight": "some"}, "initial_weight must be 'auto'"),
        ({"readout_rate": True}, "readout_rate must be 'running_mean' or a number"),
        ({"readout": 3}, "readout must be 'clip' or 'tanh', got 3"),
        ({"reset": "perhaps"}, "reset must be a valid boolean"),
        ({"tau_h": "8" * 5000 + " ms"}, "tau_h must be a finite number, got inf"),
        ({"tau_h": "1..2 ms"}, "tau_h must be a time with a unit"),
        ({"tau_h": "nan ms"}, "tau_h must be a time with a unit"),
        ({"tau_h": datetime(2020, 1, 1)}, "tau_h must be a time with a unit"),
        ({"tau_h": HUGE_TEXT}, "tau_h must be a time with a unit"),
        ({"dt": "1e-400 s"}, "dt must be greater than 0"),
        (dict.fromkeys("abcdefgh", 1), "'a'; .*'b'; .*'c'; and 5 more"),
    ],
)
def test_parameters_that_cannot_work(values, words):
    refused(lambda: CircuitParameters(**values), words, ParameterError)
    refused(lambda: CircuitParameters().replace(**values), words, ParameterError)


def test_parameters_of_any_number_type():
    found = CircuitParameters(
        n_tiles=np.int64(7), tile_radius=np.float32(0.5), mu=pd.Series([1.0, 2.0]), n_readouts=2.0
    )
    assert found == CircuitParameters(n_tiles=7, tile_radius=0.5, mu=(1.0, 2.0), n_readouts=2)


@table("text", ["1e306 s", "1e-320 s", "5e-324 s", f"{1 / 3!r} s", "1.7e308 s"])
def test_any_duration_reads_back(text):
    parameters = CircuitParameters(tau_h=text)
    assert CircuitParameters(**parameters.as_dict()) == parameters


@table(
    ("content", "words"),
    [
        (b"n_tiles = \xff", "not UTF-8"),
        ("n_tiles = 3".encode("utf-16"), "not UTF-8"),
        (b"n_tiles = 3\nn_tiles = 4", "not valid TOML: Cannot overwrite a value"),
        (b"[n_tiles]\na = 1", "n_tiles must be a number, got {'a': 1}"),
        (b"[circuit]\nn_tiles = 1", "no parameter 'circuit'"),
        (b"n_tiles = 2020-01-01", "n_tiles must be a number"),
        (b"tau_h = 10:20:30", "tau_h must be a time with a unit"),
        (b"n_tiles = " + b"1" * 5000, "not valid TOML: Exceeds the limit"),
        (b"n_tiles = " + b"1" * 400, "n_tiles=a whole number"),
        (b"mu = " + b"[" * 5000, "nested too deeply"),
        (b"mu = nan", "mu must be finite and at least 0, got nan"),
        (b"mu = inf", "mu must be finite"),
        (b"mu = true", "mu must be one number"),
        (b"n_tiles = \0", "not valid TOML"),
        (b"x" * 10**6, "not valid TOML"),
    ],
)
def test_toml_that_is_none(tmp_path, content, words):
    path = tmp_path / "circuit.toml"
    path.write_bytes(content)
    refused(lambda: CircuitParameters.from_toml(path), words, ParameterError)


def test_toml_files_that_are_none(tmp_path):
    for path, words in (
        (tmp_path / "none.toml", "there is no file"),
        (tmp_path, "is a folder"),
        (tmp_path / ("n" * 300), "cannot be read: File name too long"),
        ("a\0b", "not the name of a file"),
        (None, "not the name of a file"),
        (3.5, "not the name of a file"),
        ("/dev/zero", "not a regular file"),
    ):
        refused(lambda path=path: CircuitParameters.from_toml(path), words, ParameterError)
    os.mkfifo(tmp_path / "pipe.toml")
    refused(lambda: CircuitParameters.from_toml(tmp_path / "pipe.toml"), "not a regular file")


def test_toml_that_cannot_be_written(tmp_path):
    write = CircuitParameters().to_toml
    for path in (tmp_path, "a\0b", None, tmp_path / ("n" * 300)):
        refused(lambda path=path: write(path), "cannot write|the name of a file")
    path = tmp_path / "circuit.toml"
    CircuitParameters(n_tiles=3).to_toml(path)
    CircuitParameters(n_tiles=4).to_toml(path)
    assert CircuitParameters.from_toml(path).n_tiles == 4
    assert [file.name for file in tmp_path.iterdir()] == ["circuit.toml"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_toml_without_permission(tmp_path):
    path = tmp_path / "circuit.toml"
    CircuitParameters().to_toml(path)
    path.chmod(0)
    refused(lambda: CircuitParameters.from_toml(path), "Permission denied")


KEYS = st.sampled_from([*CircuitParameters().as_dict(), "self", "x", "n_tiles.a", '""'])
PLAIN = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(["true", "[]", "[1.0, 2]", "{}", '"8 ms"', "'auto'", "1979-05-27", "0x1F"]),
    st.text(max_size=8),
)
TOML = st.lists(st.tuples(KEYS, PLAIN), max_size=4).map(
    lambda pairs: "\n".join(f"{key} = {value}" for key, value in pairs).encode("utf-8", "replace")
)


@settings(max_examples=300, database=None)
@given(content=st.one_of(TOML, st.binary(max_size=60)))
def test_any_toml_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(content)
    try:
        parameters = CircuitParameters.from_toml(path)
    except ParameterError:
        refused(lambda: CircuitParameters.from_toml(path))
        return
    parameters.to_toml(path)
    assert CircuitParameters.from_toml(path) == parameters


# Measures


RUN = xr.Dataset({"W": (("tile", "input"), np.ones((3, 3)))}, attrs={"lift": "{}"})


@table(
    ("call", "words"),
    [
        (lambda: accuracy(np.ones((4, 1)), np.ones(4)), r"same shape.*\(4, 1\) and \(4,\)"),
        (lambda: accuracy([], []), "at least one point"),
        (lambda: accuracy(["a"], [1]), "y must be real numbers"),
        (lambda: accuracy([1], None), "classes must be real numbers"),
        (lambda: accuracy(np.ma.array([1.0], mask=True), [1]), "masked"),
        (lambda: tile_centers_of(np.ones((3, 2)), LIFT), r"shape \(T, 3\)"),
        (lambda: tile_centers_of(np.full((3, 3), np.nan), LIFT), "finite"),
        (lambda: tile_centers(xr.Dataset()), "holds no W, only nothing"),
        (lambda: tile_centers(RUN), "does not say how its points were lifted"),
        (lambda: tile_centers(RUN.assign_attrs(lift="[" * 9999)), "does not say how"),
        (lambda: tile_centers(RUN.assign_attrs(lift=3)), "does not say how"),
        (lambda: tile_positions(POINTS[:3], POINTS, [1.0]), r"shape \(40,\).*got \(1,\)"),
        (lambda: tile_positions(POINTS[:3], POINTS[:, :1], np.ones(40)), r"shape \(T, 1\)"),
        (lambda: tile_positions([], POINTS, np.ones(40)), "shape"),
        (lambda: tile_order(POINTS, POINTS, axis=2), "axis must be a coordinate from 0 to 1"),
        (lambda: tile_order(POINTS, POINTS, axis="x"), "axis must be a coordinate"),
        (lambda: tile_order(None, POINTS), "real numbers"),
        (lambda: diffusion_slopes(RUN), "holds no predicted, only W"),
    ],
)
def test_measures_of_nothing(call, words):
    refused(call, words)


# Circuits


def circuits():
    parameters = small_circuit(n_tiles=3, steps_per_presentation=10, tile_radius=1.0)
    yield ReferenceCircuit(parameters, LIFT)
    yield ReferenceCircuit(parameters, LIFT, settling="exact")
    yield ManifoldCircuit(parameters, LIFT, "numpy")


@UNSETTLED
def test_circuits_refuse_in_a_sentence_and_stay_as_they_were():
    for circuit in circuits():
        refused(lambda c=circuit: c.state, "no state yet", InputError)
        circuit.run(POINTS, LABELS)
        before = circuit.state
        for call, words in (
            (lambda c, v: c.run(v), "points|no points|outside"),
            (lambda c, v: c.run(POINTS, v), "labels"),
            (lambda c, v: c.predict(v), "points|no points|outside"),
            (lambda c, v: c.respond(v), "points|no points|outside"),
            (lambda c, v: c.run(POINTS, record=(v,)), "record takes"),
            (lambda c, v: c.prepare(record=v), "record takes|snapshot"),
            (lambda c, v: c.run(POINTS, snapshot_every=v), "snapshot_every must"),
            (lambda c, v: c.prepare(snapshot_every=v), "snapshot_every must"),
        ):
            for value in ("W", 7.5, [[9.0, 9.0]], MASKED, POINTS * np.nan, object(), [[]], True):
                refused(lambda c=circuit, v=value, f=call: f(c, v), words)
        after = circuit.state
        for part in ("W", "b", "w", "h", "u", "V", "learned", "shown"):
            assert np.array_equal(getattr(after, part), getattr(before, part)), part


@UNSETTLED
def test_states_streams_and_progress_that_are_none():
    for circuit in circuits():
        circuit.run(POINTS, LABELS)
        state = circuit.state
        for value in (None, 1, "abc", object(), [], {}, POINTS):
            refused(lambda v=value, c=circuit: setattr(c, "state", v), "state must be a Circuit")
        for change, words in (
            ({"W": state.W * np.nan}, "W must be finite"),
            ({"W": state.W + 0j}, "complex"),
            ({"h": np.ma.array(state.h, mask=True)}, "masked"),
            ({"w": [[1, 2], [3]]}, "state's w must be real numbers"),
            ({"V": state.V.T}, "state's V must have the shape"),
            ({"learned": -1}, "learned must be a whole number"),
            ({"shown": None}, "shown must be a whole number"),
            ({"extra": None}, "extra must be a dictionary"),
        ):
            other = dataclasses.replace(state, **change)
            refused(lambda v=other, c=circuit: setattr(c, "state", v), words)
        for chunks in (None, 3, [(POINTS, LABELS, 1)], [None], POINTS):
            refused(lambda v=chunks, c=circuit: list(c.run_stream(v)), "chunk|points")
        for progress in ("yes", 1, None, object(), []):
            refused(lambda v=progress, c=circuit: c.run(POINTS, progress=v), "progress must be")
        circuit.state = state
        assert (circuit.state.W == state.W).all()


@UNSETTLED
def test_one_class_no_labels_and_duplicates_are_right():
    for circuit in circuits():
        run = circuit.run(np.repeat(POINTS[:10], 3, axis=0), None)
        assert not run["y"].values.any()
        run = circuit.run(POINTS, np.ones(40))
        assert (run["y"].values[run["covered"].values] > 0).all()


@table(
    ("make", "words"),
    [
        (lambda: ReferenceCircuit(None, LIFT), "parameters must be"),
        (lambda: ReferenceCircuit(small_circuit(), HUGE_TEXT[:3]), "lift must be"),
        (lambda: ReferenceCircuit(small_circuit(), LIFT, tile_centers=POINTS), "n_tiles=6 points"),
        (lambda: ReferenceCircuit(small_circuit(), LIFT, tile_centers="x"), "points must be"),
        (lambda: ReferenceCircuit(small_circuit(), LIFT, tile_centers=MASKED[5:11]), "masked"),
        (lambda: ReferenceCircuit(small_circuit(), LIFT, tile_centers=np.ones((6, 2))), "distinct"),
        (lambda: ReferenceCircuit(small_circuit(), LIFT, settling=["exact"]), "settling must be"),
        (lambda: ManifoldCircuit(small_circuit(), LIFT, "numpy", extend=3), "extend must be"),
        (lambda: ManifoldCircuit(small_circuit(), LIFT, "gpu"), "no engine 'gpu'"),
    ],
)
def test_circuits_that_make_no_sense(make, words):
    refused(make, words)
