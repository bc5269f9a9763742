"""Tests of tests: against textbook cases, and how often they are wrong by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulations.experiments import evidence
from simulations.experiments.evidence import LEVEL, Evidence


def test_a_verdict_needs_a_small_p_on_its_side():
    assert LEVEL == 0.01
    assert Evidence(0.0099, 0.5).verdict is True
    assert Evidence(0.01, 0.5).verdict is None
    assert Evidence(0.5, 0.0099).verdict is False
    assert Evidence(0.5, 0.01).verdict is None
    # What speaks against it weighs more than what speaks for it.
    assert Evidence(0.001, 0.001).verdict is False
    assert Evidence(math.nan, math.nan).verdict is None
    assert evidence.certain(True) == Evidence(0.0, 1.0)
    assert evidence.certain(False) == Evidence(1.0, 0.0)


def test_verdict_and_p_in_words():
    assert str(Evidence(0.0123, 0.9)) == "p = 0.01"
    assert str(Evidence(0.9, 3e-5)) == "p = 3e-05"
    assert str(Evidence(0.0, 1.0)) == "p < 1e-15"
    assert str(Evidence(1e-15, 1.0)) == "p = 1e-15"
    assert str(Evidence(math.nan, math.nan)) == "p unknown"
    assert Evidence(0.001, 1.0).outcome == "holds (p = 0.001)"
    assert Evidence(1.0, 0.001).outcome == "does not hold (p = 0.001)"
    assert Evidence(0.5, 0.5).outcome == "not decided (p = 0.5)"


def test_several_statements_at_once():
    one, two = Evidence(0.001, 0.9), Evidence(0.02, 0.004)
    assert evidence.all_of(one, two) == Evidence(0.02, 0.008)
    assert evidence.all_of(one, two).verdict is False
    assert evidence.all_of(one, Evidence(0.5, 0.6)).verdict is None
    assert evidence.all_of(one).supports == 0.001
    assert evidence.all_of(*[Evidence(0.5, 0.9)] * 3).refutes == 1.0
    # What is unknown decides nothing for them, wherever it stands; another may decide against.
    unknown, against = Evidence(math.nan, math.nan), Evidence(1.0, 0.001)
    for parts in ((one, unknown), (unknown, one), (unknown,), (unknown, unknown)):
        assert evidence.all_of(*parts).verdict is None
        assert str(evidence.all_of(*parts)) == "p unknown"
    assert evidence.all_of(unknown, against).verdict is False
    assert evidence.all_of(against, unknown).refutes == 0.002


def test_mean_against_a_bound_by_hand():
    # Mean 2, standard deviation 1, n = 4: t = (2 - 1) / (1 / 2) with three degrees of freedom.
    # Student's t with 3 has the distribution function 1/2 + (atan(x/√3) + √3 x/(3 + x²))/π.
    values = 2 + np.array([-1.0, -1.0, 1.0, 1.0]) * math.sqrt(3 / 4)
    t = 2.0
    below = 0.5 + (math.atan(t / math.sqrt(3)) + math.sqrt(3) * t / (3 + t**2)) / math.pi
    found = evidence.mean_above(values, 1.0)
    # scipy's distribution is good to some 1e-15; the sum of the two to rounding.
    assert found.supports == pytest.approx(1 - below, rel=1e-12)
    assert found.refutes == pytest.approx(below, rel=1e-12)
    mirrored = evidence.mean_below(-values, -1.0)
    assert (mirrored.supports, mirrored.refutes) == (found.supports, found.refutes)
    assert evidence.mean_above([0.1, 0.2, 0.3]).supports < 0.05  # the bound is 0 unless given
    assert evidence.mean_below([-0.1, -0.2, -0.3]) == evidence.mean_above([0.1, 0.2, 0.3])
    assert evidence.mean_above([-1.0, 1.0]).supports == pytest.approx(0.5, rel=1e-12)


def test_repeats_that_all_agree_leave_no_doubt_and_one_repeat_says_nothing():
    for value, verdict in ((1.0, True), (0.5, False), (0.25, False)):
        assert evidence.mean_above([value] * 3, 0.5) == evidence.certain(verdict)
    for found in (
        evidence.mean_above([5.0]),
        evidence.mean_below([5.0]),
        evidence.varies_more([1.0], [1.0, 2.0]),
        evidence.varies_more([1.0, 2.0], [1.0]),
        evidence.falls_off([0.5]),
    ):
        assert found.verdict is None


def test_shares_by_hand():
    # 10 of 10 when at most half are expected: 2^-10; 0 of 10 the other way round.
    assert evidence.share_above([True] * 10, 0.5).supports == pytest.approx(2**-10, rel=1e-12)
    assert evidence.share_above([True] * 10, 0.5).refutes == 1.0
    assert evidence.share_above([False] * 10, 0.5).refutes == pytest.approx(2**-10, rel=1e-12)
    # 9 of 10 or more: (10 + 1) / 1024.
    nine = [True] * 9 + [False]
    assert evidence.share_above(nine, 0.5).supports == pytest.approx(11 / 1024, rel=1e-12)
    assert evidence.share_below(nine, 0.5).refutes == pytest.approx(11 / 1024, rel=1e-12)
    # None of 200 rules out one in twenty; none of 20 does not.
    assert evidence.share_below([False] * 200, 0.05).verdict is True
    assert evidence.share_below([False] * 200, 0.05).supports == pytest.approx(0.95**200, rel=1e-9)
    assert evidence.share_below([False] * 20, 0.05).verdict is None
    assert evidence.share_below([True] * 20, 0.05).verdict is False


def test_which_of_two_is_more_often_so_by_hand():
    # Of ten seeds on which they differ the first is it nine times: 11/1024. Others say nothing.
    one = [True] * 9 + [False] + [True] * 5 + [False] * 3
    two = [False] * 9 + [True] + [True] * 5 + [False] * 3
    found = evidence.more_often(one, two)
    assert found.supports == pytest.approx(11 / 1024, rel=1e-12)
    mirrored = evidence.more_often(two, one)
    assert mirrored.refutes == pytest.approx(11 / 1024, rel=1e-12)
    assert evidence.more_often([True] * 8, [False] * 8).supports == pytest.approx(2**-8)
    assert evidence.more_often([True, False], [True, False]).verdict is None


def test_levene_has_a_direction():
    rng = np.random.default_rng(1)
    wide, narrow = rng.normal(0, 2, 100), rng.normal(5, 1, 100)
    assert evidence.varies_more(wide, narrow).verdict is True
    mirrored = evidence.varies_more(narrow, wide)
    assert mirrored.verdict is False
    assert evidence.varies_more(wide, wide + 1).verdict is None
    both = evidence.varies_more(wide, narrow)
    assert both.supports + both.refutes == pytest.approx(1)
    assert (mirrored.supports, mirrored.refutes) == pytest.approx((both.refutes, both.supports))
    # By hand: the F test on distances from the median is here the square of a t test.
    from scipy.stats import ttest_ind

    apart = [np.abs(x - np.median(x)) for x in (wide, narrow)]
    assert both.supports == pytest.approx(ttest_ind(*apart).pvalue / 2, rel=1e-9)
    assert evidence.varies_more([1.0, 1.0], [2.0, 2.0]) == Evidence(1.0, 1.0)  # neither varies
    assert evidence.varies_more([1.0, 3.0], [2.0, 4.0]) == Evidence(1.0, 1.0)  # both alike
    # The same distances in another place: F = 0 and p = 1, half of it to either side.
    assert evidence.varies_more([0.0, 1.0, 5.0], [3.0, 4.0, 8.0]) == Evidence(0.5, 0.5)
    assert evidence.varies_more([1.0, 3.0] * 20, [2.0, 2.0] * 20).verdict is True


def test_frequencies_fall_off_from_a_half_or_do_not():
    rng = np.random.default_rng(2)
    folded = 0.5 + np.abs(rng.normal(0, 0.12, 100)).clip(0, 0.5)
    assert evidence.falls_off(folded).verdict is True
    # Below 0.75 nearly always, but with the mode at 0.7: this does not fall off from 0.5.
    assert evidence.falls_off(rng.normal(0.68, 0.03, 100)).verdict is False
    assert evidence.falls_off(rng.uniform(0.5, 1, 100)).verdict is None
    assert evidence.falls_off(np.linspace(0.9, 1, 100)).verdict is False
    # One in the larger bin of a pair of two is nothing: p = 1/2 for each of four pairs.
    assert evidence.falls_off([0.55, 0.65]).refutes == 1.0
    # 20 in the second bin and none in the first: 2^-20, for any of four pairs.
    found = evidence.falls_off([0.65] * 20)
    assert found.refutes == pytest.approx(4 * 2**-20, rel=1e-9)
    # The bins are 0.5 to 0.6, to 0.7 ... to 1, both ends included; less than half counts as half.
    for low, high in ((0.59, 0.61), (0.69, 0.71), (0.79, 0.81), (0.89, 0.91), (0.4, 0.61)):
        rising = evidence.falls_off([low] + [high] * 9).refutes
        assert rising == pytest.approx(4 * 11 / 1024, rel=1e-9)  # 9 of 10 or more
    for high in (0.59, 0.61):
        assert evidence.falls_off([0.5] * 9 + [high]).refutes == 1.0
    assert evidence.falls_off([0.95] + [1.0] * 9).refutes == pytest.approx(4 * 2**-10, rel=1e-9)
    # What rounding took beyond 1 is in the last bin, too.
    assert evidence.falls_off([0.85] + [1 + 1e-9] * 9).refutes == pytest.approx(4 * 11 / 1024)
    # As many in two bins as in none: pairs of empty bins say nothing.
    assert evidence.falls_off([0.55] * 5 + [0.65] * 5).refutes == 1.0


def test_errors_are_as_rare_as_they_say():
    """With a mean exactly at the bound, either verdict comes by chance in one of a hundred."""
    bound = 0.3
    rng = np.random.default_rng(3)
    found = [evidence.mean_above(rng.normal(bound, 1, 20), bound).verdict for _ in range(4000)]
    for verdict in (True, False):
        # 40 expected, standard deviation 6.3: four of them.
        assert abs(found.count(verdict) - 40) < 26


def test_a_mean_with_its_standard_error():
    assert evidence.standard_error(np.array([1.0, 3.0])) == pytest.approx(1.0)
    assert evidence.with_error([1.0, 3.0]) == "2.000 ± 1.000 (s.e.)"
    assert evidence.with_error([0.1234]) == "0.123"
