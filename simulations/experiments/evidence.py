"""How sure repeats make us of a statement: tests with two sides, so that neither is presumed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from circuits.lift import FloatArray

LEVEL = 0.01
"""A verdict has to be this unlikely to be a matter of chance."""

BINS = 5
"""Bins from 0.5 to 1 in `falls_off`: wide enough that a hundred runs tell their heights apart."""


@dataclass(frozen=True)
class Evidence:
    """What repeats say of a statement."""

    supports: float
    """Probability of what speaks this clearly for it, were it false."""
    refutes: float
    """Probability of what speaks this clearly against it, were it true."""

    @property
    def verdict(self) -> bool | None:
        """Whether it holds; None where chance may have had either outcome."""
        if self.refutes < LEVEL:
            return False
        return True if self.supports < LEVEL else None

    @property
    def outcome(self) -> str:
        """The verdict in words, as said of controls."""
        word = {True: "holds", False: "does not hold", None: "not decided"}[self.verdict]
        return f"{word} ({self})"

    def __str__(self) -> str:
        p = min(self.supports, self.refutes)
        if np.isnan(p):
            return "p unknown"
        return f"p = {p:.1g}" if p >= 1e-15 else "p < 1e-15"


def certain(holds: Any) -> Evidence:
    """Of what no chance takes part in."""
    return Evidence(0.0, 1.0) if holds else Evidence(1.0, 0.0)


def all_of(*parts: Evidence) -> Evidence:
    """Several statements at once: the weakest decides for them, any against them.

    For them all the largest p counts (an intersection of hypotheses needs no correction), against
    them the smallest times their number (Bonferroni). Of what is unknown (NaN) nothing follows for
    them all; any other may still speak against them.
    """
    supports = np.array([part.supports for part in parts])
    refutes = np.array([part.refutes for part in parts])
    against = np.min(refutes, where=~np.isnan(refutes), initial=1.0) * len(parts)
    unknown = bool(np.isnan(refutes).all())
    return Evidence(float(supports.max()), np.nan if unknown else float(min(against, 1.0)))


def mean_above(values: Any, bound: float = 0.0) -> Evidence:
    """That the mean over repeats exceeds a bound: Student's t test, to either side."""
    array = np.asarray(values, dtype=float)
    if array.size < 2:
        return Evidence(np.nan, np.nan)
    error = standard_error(array)
    if error == 0:
        return Evidence(float(array[0] <= bound), float(array[0] > bound))
    t = (array.mean() - bound) / error
    return Evidence(float(stats.t.sf(t, array.size - 1)), float(stats.t.cdf(t, array.size - 1)))


def mean_below(values: Any, bound: float = 0.0) -> Evidence:
    """That the mean over repeats stays under a bound."""
    return mean_above(-np.asarray(values, dtype=float), -bound)


def share_above(hits: Any, bound: float) -> Evidence:
    """That more than a share of all seeds is such: the exact binomial test, to either side."""
    array = np.asarray(hits, dtype=bool).ravel()
    n, k = array.size, int(array.sum())
    return Evidence(float(stats.binom.sf(k - 1, n, bound)), float(stats.binom.cdf(k, n, bound)))


def share_below(hits: Any, bound: float) -> Evidence:
    """That less than a share of all seeds is such."""
    return share_above(~np.asarray(hits, dtype=bool), 1 - bound)


def more_often(hits: Any, than: Any) -> Evidence:
    """That one thing happens on more seeds than another, on the same seeds: McNemar's exact test,
    a binomial test on those where only one of them does."""
    a, b = np.asarray(hits, dtype=bool), np.asarray(than, dtype=bool)
    return share_above(a[a != b], 0.5)


def varies_more(values: Any, than: Any) -> Evidence:
    """That one set of repeats is spread wider than another: Levene's test about the medians."""
    a, b = np.asarray(values, dtype=float), np.asarray(than, dtype=float)
    if min(a.size, b.size) < 2:
        return Evidence(np.nan, np.nan)
    apart = [np.abs(x - np.median(x)) for x in (a, b)]
    if np.ptp(np.concatenate(apart)) == 0:  # all are as far from the middle as any other
        return Evidence(1.0, 1.0)
    with np.errstate(divide="ignore"):  # both are spread evenly, each by its own distance
        two_sided = float(stats.levene(a, b, center="median").pvalue)
    wider = two_sided / 2 if apart[0].mean() >= apart[1].mean() else 1 - two_sided / 2
    return Evidence(wider, 1 - wider)


def falls_off(values: Any) -> Evidence:
    """That frequencies of shares from 0.5 to 1 fall as the share grows.

    For it: their mean is below that of a flat histogram, 0.75, by a t test. Against it: some bin
    of `BINS` holds more than the one before it, by a binomial test (Bonferroni over the pairs).
    """
    array = np.asarray(values, dtype=float)
    counts, _ = np.histogram(np.clip(array, 0.5, 1), BINS, (0.5, 1.0))
    rises = [
        float(stats.binom.sf(after - 1, before + after, 0.5))
        for before, after in pairwise(counts)
        if before + after
    ]
    against = min([1.0, *(p * (BINS - 1) for p in rises)])
    return Evidence(mean_below(array, 0.75).supports, against)


def standard_error(values: FloatArray) -> float:
    """Standard error of a mean over independent repeats."""
    return float(values.std(ddof=1) / np.sqrt(values.size))


def with_error(values: Any) -> str:
    """Mean over repeats and its standard error as text."""
    array = np.asarray(values, dtype=float)
    if array.size < 2:
        return f"{array.mean():.3f}"
    return f"{array.mean():.3f} ± {standard_error(array):.3f} (s.e.)"
