"""Classes that exchange in mid-stream: which readouts learn them anew, and what that costs."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, model_validator

from analysis import selection
from circuits import CircuitParameters
from circuits.lift import FloatArray
from simulations.datasets import MOONS_LIFT, Classes, first_of_each_class, two_moons
from simulations.experiments import evidence
from simulations.experiments import experiment as base
from simulations.experiments.label_change import exchanged
from simulations.experiments.roll import for_every_value

RULES: dict[str, str] = {"printed": "mu", "constant": "mu", "gated": "gated_mu"}
"""Readouts, and the grid their gain is from: the paper's with its rate 1/(t + 1) and with a
constant one, and the gated one, where labels set y."""

NAMES = {
    "printed": "the paper's readout",
    "constant": "a constant rate",
    "gated": "the gated readout",
}

THIRD, SECOND = 0.90, 0.98
"""Accuracy to be reached in the third part after the exchange with few labels, and in the second
with more."""

CARRIED = 0.5
"""Mean |y| in the last part, long after two labels: above, they are carried on, below they fade."""

NEAR = 1.2
"""Gains within this factor of the critical one are between the two: what grows or fades there does
so more slowly than the stream lasts."""

Share = Annotated[float, Field(gt=0, le=1)]


class Settings(base.Settings):
    """The stream, its labels, and the gains."""

    n_points: int = Field(default=8000, ge=80)
    label_after: int = Field(default=200, ge=0)
    """Where two labels are all there is, they are those of the first points from here on."""
    noise: float = Field(default=0.05, ge=0, le=1)
    few: Share = 0.01
    more: Share = 0.05
    """Shares of labelled points by which the readouts are judged."""
    other_shares: base.Grid[Share] = (0.002, 0.005, 0.02)
    """More shares for the map."""
    constant_rate: float = Field(default=0.005, gt=0, le=1)
    gated_rate: float = Field(default=0.9, gt=0, le=1)
    mu_grid: base.Grid[base.NotNegative] = (2, 4, 8, 12, 20, 30, 100, 1000)
    gated_grid: base.Grid[base.NotNegative] = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2)

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if len(set(self.shares)) < 2 + len(self.other_shares):
            raise ValueError(
                f"few={self.few:g}, more={self.more:g} and other_shares={list(self.other_shares)} "
                "must all differ"
            )
        if self.label_after + 20 > self.n_points // 2:
            raise ValueError(
                f"label_after={self.label_after} must be 20 points or more before the middle of "
                f"n_points={self.n_points}"
            )
        return self

    @property
    def shares(self) -> list[float]:
        """Shares of labelled points, in their order."""
        return sorted({self.few, self.more, *self.other_shares})

    @property
    def change(self) -> int:
        """The first point with the other class."""
        return self.n_points // 2

    @property
    def part(self) -> int:
        """Points in each of the four parts in which accuracy is counted after the exchange."""
        return (self.n_points - self.change) // 4


class LabelSwap(base.Experiment[Settings]):
    """Two moons; from the middle of the stream on their classes are exchanged."""

    settings_class = Settings
    parameters: ClassVar = CircuitParameters()
    lift: ClassVar = MOONS_LIFT
    main: ClassVar = "constant_wrong"
    main_at: ClassVar = {"part": None}
    repeats: ClassVar = 20
    selection_repeats: ClassVar = 10
    taken: ClassVar = {
        **{"mu": "mu_grid", "n_readouts": "mu_grid", "readout_rule": "gated_grid"},
        **{"readout_rate": "constant_rate", "clamp_labels": "gated_grid"},
    }

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """Every share of labels and every gain is a readout of one simulation, for each rule.

        Where labels are two, classes stay: what is carried on from them is measured at the end.
        """
        settings = config.settings
        rng = np.random.default_rng(seed)
        points, steady = two_moons(settings.n_points, settings.noise, rng)
        classes = exchanged(steady, settings.change)
        chance = rng.random(len(points))
        shares = settings.shares
        labels = [np.where(chance < share, classes, 0) for share in shares]
        labels.append(first_of_each_class(steady, settings.label_after))
        found: dict[str, Any] = {}
        runs: list[xr.Dataset] = []
        for rule, grid in RULES.items():
            report(rule)
            values = settings.gated_grid if rule == "gated" else settings.mu_grid
            many, mu, shape = for_every_value(np.stack(labels, axis=1), values)
            p = config.parameters.replace(
                n_readouts=mu.size, mu=tuple(map(float, mu)), **_rule(rule, settings)
            )
            runs.append(config.circuit(p, self.lift).run(points, many))
            y = runs[-1]["y"].to_numpy().reshape(len(points), *shape)
            silent = chance[:, None] >= np.array(shares)
            errors = by_part(y[:, :-1], classes, silent, settings)
            found[f"{rule}_wrong"] = (("share", "part", grid), errors)
            found[f"{rule}_strength"] = (grid, np.abs(y[-settings.part :, -1]).mean(axis=0))
        return xr.Dataset(
            found,
            coords={
                "share": shares,
                "part": [1, 2, 3, 4],
                "mu": list(settings.mu_grid),
                "gated_mu": list(settings.gated_grid),
            },
            attrs=base.joined(runs),
        ).assign(
            critical=critical(runs[0]["h"].to_numpy()[settings.change :]),
            part_size=settings.part,
            few_share=settings.few,
            more_share=settings.more,
        )

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Which readouts learn exchanged classes, and that the critical gain stands between that
        and carrying labels on."""
        return [
            *(self._relearns(merged, rule) for rule in RULES),
            self._tension(merged),
            self._both(merged),
        ]

    def _relearns(self, merged: xr.Dataset, rule: str) -> base.Claim:
        grid = RULES[rule]
        gain = float(selection.chosen_values(merged, f"{rule}_wrong", grid))
        right = 1 - selection.reported(merged)[f"{rule}_wrong"]
        few, more = shares_of(merged)
        share, larger, part = _said(merged)
        slow = right.sel({"share": few, "part": 3, grid: gain}).to_numpy()
        quick = right.sel({"share": more, "part": 2, grid: gain}).to_numpy()
        found = evidence.all_of(
            evidence.mean_above(slow, THIRD), evidence.mean_above(quick, SECOND)
        )
        largest = float(merged[grid].max())
        return base.Claim(
            f"{NAMES[rule]} learns exchanged classes from few labels",
            "",
            "two moons whose classes are exchanged in mid-stream; accuracy on points without a "
            f"label above {THIRD} in the third {part} points after that with "
            f"{share} labels, and above {SECOND} in the second with {larger} (t tests); gain "
            "with the least error on other repeats",
            f"{base.spread(slow)} with {share}, {base.spread(quick)} with {larger}, at μ = "
            f"{gain:g}; course with {share}: {_course(right, few, grid, gain)}, with "
            f"{larger}: {_course(right, more, grid, gain)}",
            f"{slow.mean():.3f} and {quick.mean():.3f}, {found}",
            self.decide(merged, found),
            control=f"at the largest gain, {largest:g}: {_course(right, few, grid, largest)} and "
            f"{_course(right, more, grid, largest)}",
        )

    def _tension(self, merged: xr.Dataset) -> base.Claim:
        reported = selection.reported(merged)
        few, _ = shares_of(merged)
        share, _, part = _said(merged)
        right = 1 - reported["constant_wrong"].sel(share=few, part=3)
        strength, ratio = reported["constant_strength"], reported["mu"] / reported["critical"]
        above, below = ratio > NEAR, ratio < 1 / NEAR
        lowest, highest = right.where(below).min("mu"), right.where(above).max("mu")
        faded, kept = strength.where(below).max("mu"), strength.where(above).min("mu")
        found = evidence.all_of(
            evidence.mean_above(lowest, 0.5),
            evidence.mean_below(highest, 0.5),
            evidence.mean_below(faded, CARRIED),
            evidence.mean_above(kept, CARRIED),
        )
        steady = reported["printed_strength"].where(below)
        return base.Claim(
            "a critical gain parts what carries labels from what can be overwritten",
            "",
            "paper's readout at a constant rate, every μ of the grid below and above the critical "
            f"one, 1/λ₁(E(h hᵀ)), by a factor of {NEAR:g} at least: below it, accuracy in the "
            f"third {part} points after an exchange with {share} labels is above 0.5 "
            "at every μ, and two labels fade (mean |y| at the end of the stream below "
            f"{CARRIED}); above it, it is the other way round at every μ (four t tests)",
            f"critical μ {base.spread(reported['critical'])}; below it accuracy at least "
            f"{base.spread(lowest)}, |y| at most {base.spread(faded)}; above it accuracy at most "
            f"{base.spread(highest)}, |y| at least {base.spread(kept)}",
            f"{lowest.mean():.2f} against {highest.mean():.2f}, {found}",
            self.decide(merged, found),
            control="with the rate as printed labels fade only as a power of time: |y| below the "
            f"critical gain is up to {base.spread(steady.max('mu'))}",
        )

    def _both(self, merged: xr.Dataset) -> base.Claim:
        reported = selection.reported(merged)
        few, more = shares_of(merged)
        share, larger, part = _said(merged)
        at = reported.sel(share=more, part=3)
        above = reported["gated_mu"] > 1
        worst = (1 - at["gated_wrong"]).where(above).min("gated_mu")
        kept = reported["gated_strength"].where(above).min("gated_mu")
        found = evidence.all_of(
            evidence.mean_above(worst, THIRD), evidence.mean_above(kept, CARRIED)
        )
        fewer = (1 - reported["gated_wrong"]).sel(share=few, part=3).where(above)
        ratio = reported["mu"] / reported["critical"]
        other = (1 - at["constant_wrong"]).where(ratio > NEAR).max("mu")
        return base.Claim(
            "clamped by labels, the gated readout carries and is overwritten",
            "",
            f"at every μ above 1, its critical gain: mean |y| at the end, long after two labels, "
            f"above {CARRIED}, and with {larger} labels accuracy in the third {part} "
            f"points after an exchange above {THIRD} (t tests)",
            f"accuracy at least {base.spread(worst)}, |y| at least {base.spread(kept)}; with "
            f"{share} labels at most {base.spread(fewer.max('gated_mu'))}",
            f"{worst.mean():.3f} and |y| {kept.mean():.2f}, {found}",
            self.decide(merged, found),
            control="the paper's readout at a constant rate, above its critical gain: accuracy at "
            f"most {base.spread(other)}",
        )


def _rule(rule: str, settings: Settings) -> dict[str, Any]:
    """Parameters of a readout."""
    if rule == "gated":
        return {
            **{"readout_rule": "gated", "readout_rate": settings.gated_rate},
            "clamp_labels": True,
        }
    return {"readout_rate": "running_mean" if rule == "printed" else settings.constant_rate}


def by_part(
    y: FloatArray, classes: Classes, silent: NDArray[np.bool_], settings: Settings
) -> FloatArray:
    """Errors (share, part, gain) of answers (T, share, gain) in the four parts after the exchange,
    on points without a label (``silent``, (T, share)); NaN where all have one."""
    errors = np.full((y.shape[1], 4, y.shape[2]), np.nan)
    for k in range(4):
        start = settings.change + k * settings.part
        own = slice(start, start + settings.part)
        for i in range(y.shape[1]):
            free = silent[own, i]
            if free.any():
                errors[i, k] = base.error_rate(y[own, i][free], classes[own][free][:, None])
    return errors


def critical(h: FloatArray) -> float:
    """The gain from which on the paper's readout sustains itself: mu lambda_1(E(h h^T)) = 1."""
    return float(1 / np.linalg.eigvalsh(h.T @ h / len(h))[-1])


def shares_of(merged: xr.Dataset) -> tuple[float, float]:
    """The two shares of labels by which readouts are judged."""
    first = selection.first_repeat(merged)
    return float(first["few_share"]), float(first["more_share"])


def _said(merged: xr.Dataset) -> tuple[str, str, int]:
    """The two shares in words, and the points of a part."""
    settings = Settings.model_validate(json.loads(merged.attrs["config"])["settings"])
    return f"{settings.few:.0%}", f"{settings.more:.0%}", settings.part


def _course(right: xr.DataArray, share: float, grid: str, gain: float) -> str:
    means = right.sel({"share": share, grid: gain}).mean("repeat").to_numpy()
    return " ".join(f"{value:.2f}" for value in means)
