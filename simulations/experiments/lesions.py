"""What the circuit bears: tiles and interneurons that are gone, delays, and noise."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from analysis.selection import first_repeat, reported
from circuits import CircuitParameters
from circuits.lift import FloatArray
from simulations.datasets import MOONS_LIFT
from simulations.experiments import damaging, evidence
from simulations.experiments import experiment as base
from simulations.experiments.damaging import (
    CONDITIONS,
    COUNTS,
    DRAWS,
    LEFT,
    RATES,
    SETTLED,
    Settings,
)

HEALED, LARGE = 0.99, 0.7
"""Coverage and accuracy of a lesion that is healed, and the largest share removed that is judged:
of the few tiles that a larger one leaves, all may be on the same moon."""

CHANCE = 0.05
"""How far coverage may be from what is predicted, either way."""

GROWTH = 0.003
"""How far from the predicted factor per step a measured one may be."""

WEAK = 0.1
"""Sizes of noise up to which the linear response has to hold, and labels to be told."""
NEAR = 0.15
"""How far, in parts of one, the error of h may be from the linear response."""


class Lesions(base.Experiment[Settings]):
    """Two moons from two labels; then tiles, interneurons, delays and noise, one at a time."""

    settings_class = Settings
    # The tiles that two moons use and as many again to spare, each as strong as one of forty.
    parameters: ClassVar = CircuitParameters(n_tiles=100, initial_weight=2 / 40)
    lift: ClassVar = MOONS_LIFT
    main: ClassVar = "later_coverage"
    repeats: ClassVar = 14
    perturbable: ClassVar = False
    size: ClassVar = ("n_points", "later", "n_test", "n_noisy", "n_tried", "delay_steps")
    taken: ClassVar = {"n_readouts": "shares", "reset": "delays"}
    quick: ClassVar = {"delays": (0, 1, 2, 4, 6, 8, 12), "sizes": (0.03, 0.1, 1.0)}

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """One circuit learns, by the exact solver; all others begin with its weights.

        The closed form holds where tiles are gone. Interneurons and delays, which shape a compiled
        program, are left to the reference solver; noise is on the engine that was asked for.
        """
        settings = config.settings
        rng = np.random.default_rng(seed)
        learned = damaging.learn(config, rng)
        report("tiles")
        found = damaging.tiles_gone(settings, learned, rng)
        report("interneurons")
        found |= damaging.interneurons(settings, learned)
        report("delays")
        found |= damaging.delays(settings, learned, rng)
        report("noise")
        engine = "reference" if config.engine == "exact" else config.engine
        found |= damaging.noises(settings, learned, engine, seed)
        return xr.Dataset(
            found,
            coords={
                "share": list(settings.shares),
                "condition": list(CONDITIONS),
                "interneurons": list(COUNTS),
                "left": list(LEFT),
                "tau_u": list(settings.taus),
                "delay": list(settings.delays),
                "on": list(RATES),
                "size": list(settings.sizes),
            },
            attrs=base.joined([learned.run]),
        ).assign(later=settings.later, dt_ms=1e3 * config.parameters.dt_)

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """What heals and what does not, and whether theory knows the limits."""
        merged = reported(merged)
        return [
            self._overlaps(merged),
            self._heals(merged),
            self._without_spare(merged),
            self._rest_answers(merged),
            self._one_interneuron(merged),
            self._growth(merged),
            self._settling(merged),
            self._response(merged),
            self._told_apart(merged),
        ]

    def _overlaps(self, merged: xr.Dataset) -> base.Claim:
        apart = merged["after_coverage"] - merged["predicted_coverage"]
        found = _every(
            part
            for share in _shares(merged)
            for part in (
                evidence.mean_above(apart.sel(share=share), -CHANCE),
                evidence.mean_below(apart.sel(share=share), CHANCE),
            )
        )
        alone = 1 - merged["share"]
        return base.Claim(
            "right after a lesion, points are covered as overlaps predict",
            "",
            f"of N tiles in use K are removed at random, {DRAWS} times; a point that c tiles "
            "answered is left without one with the probability C(K, c)/C(N, c). Coverage of test "
            f"points less its expectation within ±{CHANCE} in the mean at every share (t tests)",
            f"coverage {_by_share(merged, 'after_coverage')}; expected "
            f"{_by_share(merged, 'predicted_coverage')}",
            f"at most {float(np.abs(apart.mean('repeat')).max()):.3f} off, {found}",
            self.decide(merged, found),
            control="if a single tile answered every point: "
            + ", ".join(f"{float(value):.1f}" for value in alone.to_numpy()),
            constructed=True,
        )

    def _heals(self, merged: xr.Dataset) -> base.Claim:
        found = _every(
            evidence.mean_above(_later(merged, what, share, CONDITIONS[0]), HEALED)
            for share in _shares(merged, LARGE)
            for what in ("coverage", "accuracy")
        )
        worst = _lowest(merged, "accuracy", CONDITIONS[0], LARGE)
        frozen = _lowest(merged, "coverage", CONDITIONS[1], LARGE)
        count = _setting(merged, "later")
        return base.Claim(
            f"with idle tiles a loss of up to {LARGE:.0%} of tiles heals by itself",
            "",
            f"coverage of, and accuracy on test points {count} presentations after the lesion, no "
            f"label among them, above {HEALED} in the mean at every share up to {LARGE} (t tests)",
            f"accuracy {_by_share(merged, 'later_accuracy', CONDITIONS[0])}, coverage "
            f"{_by_share(merged, 'later_coverage', CONDITIONS[0])}",
            f"accuracy at least {worst:.3f}, {found}",
            self.decide(merged, found),
            control=f"learning and recruiting frozen: coverage at least {frozen:.3f}, accuracy "
            f"{_by_share(merged, 'later_accuracy', CONDITIONS[1])}",
        )

    def _without_spare(self, merged: xr.Dataset) -> base.Claim:
        share = max(_shares(merged, LARGE))
        none, frozen = (_later(merged, "coverage", share, CONDITIONS[k]) for k in (2, 3))
        spare = _later(merged, "coverage", share, CONDITIONS[0])
        found = evidence.all_of(
            evidence.mean_below(none, HEALED), evidence.mean_above(none - frozen)
        )
        return base.Claim(
            "without idle tiles, learning closes a part of the gaps",
            "",
            f"{share:.0%} of tiles removed and no idle ones: coverage later below {HEALED} in the "
            "mean, and above that of a frozen circuit (t tests, the second paired)",
            f"{base.spread(none)}, frozen {base.spread(frozen)}; over shares "
            f"{_by_share(merged, 'later_coverage', CONDITIONS[2])}",
            f"{none.mean():.3f}, frozen {frozen.mean():.3f}, {found}",
            self.decide(merged, found),
            control=f"with idle tiles {base.spread(spare)}",
        )

    def _rest_answers(self, merged: xr.Dataset) -> base.Claim:
        right = merged["after_answered"]
        found = _every(
            evidence.mean_above(right.sel(share=share), HEALED) for share in _shares(merged)
        )
        return base.Claim(
            "what tiles are left answer right: only silence costs accuracy",
            "",
            "right after the lesion, accuracy on the points that some tile answers above "
            f"{HEALED} in the mean at every share (t tests)",
            f"{_by_share(merged, 'after_answered')}; on all points, silence counted half, "
            f"{_by_share(merged, 'after_accuracy')}",
            f"at least {float(right.mean('repeat').min()):.3f}, {found}",
            self.decide(merged, found),
            control=f"before the lesion, on all points: {base.spread(merged['before_accuracy'])}",
        )

    def _one_interneuron(self, merged: xr.Dataset) -> base.Claim:
        made, left = merged["interneuron_error"], merged["left_error"]
        accuracy = merged["interneuron_accuracy"]
        largest = float(max(made.max(skipna=False), left.max(skipna=False)))
        same = bool((accuracy == accuracy.isel(interneurons=0)).all())
        found = evidence.certain(largest < SETTLED and same)
        cut = merged["cut_error"]
        return base.Claim(
            "one interneuron is enough",
            "",
            "u and V stay of rank one, u = s d and V = d vᵀ, so that more interneurons only share "
            "what one does. With 1 to 8 of them, and with 1 to 4 left of 4: |h − closed form| "
            f"below {SETTLED:g} on every point of every repeat, where settled rates still move "
            "that much, and accuracy the same",
            f"at most {float(made.max()):.1g} (1 to 8), {float(left.max()):.1g} (left of 4); "
            f"accuracy {base.spread(accuracy.isel(interneurons=0))} with one",
            f"at most {largest:.1g} from the closed form",
            self.decide(merged, found),
            control="with half of the synapses V cut, which no interneuron makes up for: "
            f"{base.spread(cut)}",
        )

    def _growth(self, merged: xr.Dataset) -> base.Claim:
        measured, predicted = merged["growth"], merged["predicted_growth"]
        # What could not be measured (NaN) is not near.
        apart = float(np.abs((measured - predicted).to_numpy()).max())
        critical = _times(merged, "critical_delay")
        found = evidence.certain(apart < GROWTH)
        ignoring = (
            float(np.abs(measured - predicted.sel(delay=0)).max()) if _has_zero(merged) else 0
        )
        return base.Claim(
            "linear stability tells how a delay slows settling and ends it",
            "",
            "a settled circuit is pushed a little; what a step multiplies the deviation by, and "
            f"the spectral radius of the linearised step with the delay, within {GROWTH:g} of one "
            "another at every delay and τ_u. Above 1 it does not settle",
            f"at most {apart:.1g} apart; the critical delay is {critical}",
            f"factors at most {apart:.1g} apart, from {float(measured.min()):.2f} to "
            f"{float(measured.max()):.2f}",
            self.decide(merged, found),
            control=f"a theory without the delay would be off by up to {ignoring:.2f}",
        )

    def _settling(self, merged: xr.Dataset) -> base.Claim:
        limits = settling_limits(merged)
        predicted = first_repeat(merged)["settling_delay"].to_numpy()
        apart = limits - predicted
        parts = [
            part
            for one in apart.T
            for part in (evidence.mean_above(one, -1.0), evidence.mean_below(one, 1.0))
        ]
        found = evidence.all_of(*parts)
        crossed = float(np.abs(limits.mean(axis=0)[:, None] - predicted).max())
        steps = _setting(merged, "delay_steps")
        named = [f"{tau:g} ms" for tau in merged["tau_u"].to_numpy()]
        means = limits.mean(axis=0)
        return base.Claim(
            "presentations settle up to the delay that is predicted",
            "",
            f"the largest delay, in steps, up to which more than half of presentations settle "
            f"within {steps} steps (a last step of less than {SETTLED:g}), less the delay at which "
            "the linearised step shrinks deviations by just as much in as many steps, within ±1 in "
            "the mean for every τ_u (t tests)",
            ", ".join(
                f"{mean:.1f} steps, predicted {value:.1f} (τ_u = {name})"
                for mean, value, name in zip(means, predicted, named, strict=True)
            ),
            f"at most {float(np.abs(apart.mean(axis=0)).max()):.2f} steps off, {found}",
            self.decide(merged, found),
            control=f"predictions for another τ_u are off by up to {crossed:.1f} steps",
        )

    def _response(self, merged: xr.Dataset) -> base.Claim:
        ratio = merged["noise_error"] / merged["predicted_noise_error"]
        weak = [float(size) for size in merged["size"].to_numpy() if 0 < size <= WEAK]
        found = _every(
            part
            for size in weak
            for on in RATES
            for part in (
                evidence.mean_above(ratio.sel(on=on, size=size), 1 - NEAR),
                evidence.mean_below(ratio.sel(on=on, size=size), 1 + NEAR),
            )
        )
        strongest = float(merged["size"].max())
        means = ratio.sel(size=weak).mean("repeat")
        beyond = {on: ratio.sel(on=on, size=strongest).to_numpy() for on in RATES}
        return base.Claim(
            "noise moves h by what the linear response predicts",
            "",
            "root mean square of |h − closed form| with white noise on h, u or V, over that from "
            "the covariance of the linearised step, and half the variance for silent tiles: "
            f"within 1 ± {NEAR} in the mean at every size up to {WEAK} (t tests)",
            "; ".join(
                f"on {on} "
                + ", ".join(f"{float(means.sel(on=on, size=s)):.3f} at {s:g}" for s in weak)
                for on in RATES
            ),
            f"ratio {float(means.min()):.2f} to {float(means.max()):.2f}, {found}",
            self.decide(merged, found),
            control=f"at {strongest:g}, where nothing is linear: "
            + ", ".join(f"{base.spread(one)} ({on})" for on, one in beyond.items()),
        )

    def _told_apart(self, merged: xr.Dataset) -> base.Claim:
        accuracy = merged["noise_accuracy"]
        weak = [float(size) for size in merged["size"].to_numpy() if size <= WEAK]
        found = _every(
            evidence.mean_above(accuracy.sel(on=on, size=size), HEALED)
            for size in weak
            for on in RATES
        )
        strongest = float(merged["size"].max())
        beyond = {on: accuracy.sel(on=on, size=strongest).to_numpy() for on in RATES}
        lowest = float(accuracy.sel(size=weak).mean("repeat").min())
        return base.Claim(
            "moons are told apart in noise of a tenth of the rates",
            "",
            f"accuracy with white noise on h, u or V of sizes up to {WEAK}, in units of settled "
            f"rates, above {HEALED} in the mean (t tests)",
            ", ".join(f"{base.spread(accuracy.sel(on=on, size=max(weak)))} ({on})" for on in RATES),
            f"at least {lowest:.3f}, {found}",
            self.decide(merged, found),
            control=f"at {strongest:g}: "
            + ", ".join(f"{base.spread(one)} ({on})" for on, one in beyond.items()),
        )


def settling_limits(merged: xr.Dataset) -> FloatArray:
    """(repeat, tau_u): the largest delay up to which more than half of the presentations settle at
    every delay that was tried; -1 where they do at none."""
    settled = merged["settled"].sortby("delay").transpose("repeat", "tau_u", "delay")
    steps = np.array([-1.0, *settled["delay"].to_numpy()])
    count = np.cumprod(settled.to_numpy() > 0.5, axis=-1).sum(axis=-1)
    limits: FloatArray = steps[count]
    return limits


def _every(parts: Any) -> evidence.Evidence:
    return evidence.all_of(*(list(parts) or [evidence.Evidence(np.nan, np.nan)]))


def _setting(merged: xr.Dataset, name: str) -> int:
    return int(json.loads(merged.attrs["config"])["settings"][name])


def _shares(merged: xr.Dataset, most: float = 1.0) -> list[float]:
    every = [float(share) for share in merged["share"].to_numpy()]
    return [share for share in every if share <= most] or [min(every)]


def _later(merged: xr.Dataset, what: str, share: float, condition: str) -> FloatArray:
    values: FloatArray = merged[f"later_{what}"].sel(share=share, condition=condition).to_numpy()
    return values


def _lowest(merged: xr.Dataset, what: str, condition: str, most: float) -> float:
    return min(float(_later(merged, what, s, condition).mean()) for s in _shares(merged, most))


def _by_share(merged: xr.Dataset, name: str, condition: str | None = None) -> str:
    values = merged[name] if condition is None else merged[name].sel(condition=condition)
    means = values.mean("repeat")
    return ", ".join(
        f"{float(means.sel(share=share)):.3f} at {share:g}" for share in _shares(merged)
    )


def _times(merged: xr.Dataset, name: str) -> str:
    first = first_repeat(merged)
    steps, step = first[name].to_numpy(), float(first["dt_ms"])
    return ", ".join(
        f"{value:.1f} steps, {value * step:.1f} ms (τ_u = {tau:g} ms)"
        for value, tau in zip(steps, first["tau_u"].to_numpy(), strict=True)
    )


def _has_zero(merged: xr.Dataset) -> bool:
    return bool((merged["delay"] == 0).any())
