"""Labels that change in the middle of a stream: with the printed rate of the readout, and with a
constant one."""

from __future__ import annotations

import json
from typing import ClassVar, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, model_validator

from analysis import selection
from circuits.lift import FloatArray
from simulations.datasets import ROLL_LIFT, Classes, chessboard, swiss_roll
from simulations.experiments import evidence
from simulations.experiments import experiment as base
from simulations.experiments.roll import PARAMETERS, for_every_value

RULES = ("printed", "constant")
"""Rates of the readout: 1/(t + 1), as the paper has it, and a constant one."""

STREAMS = ("steady", "changed")
"""Labels that stay, as a control, and labels of the opposite class after the change."""

ADAPTED = 0.5
"""Bound on what is left of the change: half the way from the error of guessing to that of the
steady stream."""


class Settings(base.Settings):
    """The stream, its labels, and the gains to choose from."""

    n_points: int = Field(default=5000, ge=200)
    window: int = Field(default=250, ge=10)
    """Errors are counted in windows of so many points."""
    lag: int = Field(default=1250, ge=10)
    """Points after the change, in the middle of the stream, by which it is to have adapted: the
    window that ends there decides."""
    board: float = Field(default=0.5, ge=1e-3)
    labelled: float = Field(default=0.05, gt=0, le=1)
    """Share of labelled points."""
    constant_rate: float = Field(default=0.002, gt=0, le=1)
    mu_grid: base.Grid[base.NotNegative] = (1, 3, 10, 30, 100)

    @model_validator(mode="after")
    def _check_windows(self) -> Self:
        for name in ("lag", "change"):
            value = getattr(self, name)
            if value % self.window:
                raise ValueError(
                    f"{name} must be a multiple of window={self.window}, got {value}"
                    + " (half of n_points)" * (name == "change")
                )
        if self.lag > self.n_points - self.change:
            raise ValueError(
                f"lag={self.lag} must not exceed half of n_points={self.n_points}, what is left "
                "of the stream after the change"
            )
        return self

    @property
    def change(self) -> int:
        """The first point with the other class."""
        return self.n_points // 2


class LabelChange(base.Experiment[Settings]):
    """The coarse chessboard; from the middle of the stream on all classes are exchanged."""

    settings_class = Settings
    parameters: ClassVar = PARAMETERS
    lift: ClassVar = ROLL_LIFT
    main: ClassVar = "constant_error"
    main_at: ClassVar = {"stream": "changed", "time": None}
    selection_repeats: ClassVar = 5
    taken: ClassVar = {
        "mu": "mu_grid",
        "n_readouts": "mu_grid",
        "readout_rate": "constant_rate",
    }
    size: ClassVar = ("n_points", "lag")

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """Both kinds of labels and all gains are readouts of one simulation, for either rate.

        Every answer counts when its point arrives, if this has no label."""
        settings = config.settings
        rng = np.random.default_rng(seed)
        points, unrolled = swiss_roll(settings.n_points, rng)
        steady = chessboard(unrolled, settings.board)
        classes = np.stack([steady, exchanged(steady, settings.change)], axis=1)
        mask = rng.random(len(points)) < settings.labelled
        labels = np.where(mask[:, None], classes, 0)
        many, mu, shape = for_every_value(labels, settings.mu_grid)
        errors, runs = {}, []
        for rule, rate in zip(RULES, ("running_mean", settings.constant_rate), strict=True):
            report(rule)
            p = config.parameters.replace(n_readouts=mu.size, mu=mu, readout_rate=rate)
            runs.append(config.circuit(p, self.lift).run(points, many))
            y = runs[-1]["y"].to_numpy().reshape(len(points), *shape)
            errors[rule] = windowed(y, classes, mask, settings.window)
        return xr.Dataset(
            {f"{rule}_error": (("stream", "mu", "time"), errors[rule]) for rule in RULES},
            coords={
                "stream": list(STREAMS),
                "mu": list(settings.mu_grid),
                "time": settings.window * np.arange(1, settings.n_points // settings.window + 1),
            },
            attrs=base.joined(runs),
        ).assign(change_at=settings.change, decided_at=settings.change + settings.lag)

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """What is left of the change, for either rate."""
        constant = json.loads(merged.attrs["config"])["settings"]["constant_rate"]
        rates = {"printed": "1/(t+1), as printed", "constant": f"a constant {constant:g}"}
        best = {rule: chosen(merged, rule) for rule in RULES}
        return [
            self._adapts(merged, rule, rates[rule], best[rule], best[other])
            for rule, other in zip(RULES, reversed(RULES), strict=True)
        ]

    def _adapts(
        self, merged: xr.Dataset, rule: str, rate: str, error: xr.DataArray, other: xr.DataArray
    ) -> base.Claim:
        change, decided = (
            int(selection.first_repeat(merged)[name]) for name in ("change_at", "decided_at")
        )
        left = left_over(error.sel(time=decided))
        found = evidence.mean_below(left, ADAPTED)
        lag, times = decided - change, error["time"].to_numpy()
        path = ", ".join(
            f"{time - change}: {_mean(error, 'changed', time)} ({_mean(error, 'steady', time)})"
            for time in range(change, times[-1] + 1, lag)
        )
        gains = ", ".join(f"{one:g}" for one in merged["mu"].to_numpy())
        return base.Claim(
            f"with {'the printed' if rule == 'printed' else 'a constant'} rate the readout adapts "
            "quickly to other labels",
            "This is an important advantage allowing our network to adapt quickly when [...] the "
            "labels are changing with time",
            "all classes of the chessboard are exchanged in the middle of the stream; what is left "
            f"of that in the window that ends {lag} points later, (error − error of the stream "
            "without change) / (0.5 − that), is 0 for a readout that has adapted, 1 for guessing, "
            f"above 1 while old answers prevail; its mean must be below {ADAPTED} (t test). Rate "
            f"{rate}; μ chosen on other repeats from {gains}",
            f"left over {evidence.with_error(left)}, {found}, at μ = "
            f"{float(chosen_mu(merged, rule)):g}; error so many points after the change (without "
            f"change): {path}",
            f"{left.mean():.2f} of the change left, {found}, {base.seeds(left)}",
            self.decide(merged, found),
            control="the same stream without a change, in brackets; there the error over the last "
            f"window is {_mean(error, 'steady', times[-1])}, and at the other rate "
            f"{_mean(other, 'steady', times[-1])}",
        )


def exchanged(classes: Classes, change: int) -> Classes:
    """Classes that are the opposite from a point on."""
    return np.where(np.arange(len(classes)) < change, classes, -classes)


def windowed(y: FloatArray, classes: Classes, mask: NDArray[np.bool_], window: int) -> FloatArray:
    """Errors (stream, mu, window) of answers (T, stream, mu) on the points without a label.

    A window in which every point has a label has no error (NaN)."""
    parts = range(0, len(y) - window + 1, window)
    errors = np.full((*y.shape[1:], len(parts)), np.nan)
    for i, start in enumerate(parts):
        own = slice(start, start + window)
        silent = ~mask[own]
        if silent.any():
            errors[..., i] = base.error_rate(y[own][silent], classes[own][silent][:, :, None])
    return errors


def chosen_mu(merged: xr.Dataset, rule: str) -> xr.DataArray:
    """The gain with the least mean error on the changed stream of the repeats for choosing."""
    return selection.chosen_values(merged.sel(stream="changed", drop=True), f"{rule}_error", "mu")


def chosen(merged: xr.Dataset, rule: str) -> xr.DataArray:
    """Errors of the reported repeats at the gain chosen on others."""
    mu = chosen_mu(merged, rule)
    # Where no point was left without a label there is no error, and nothing to choose by.
    return selection.reported(merged)[f"{rule}_error"].sel(mu=mu.fillna(merged["mu"][0]))


def left_over(error: xr.DataArray) -> FloatArray:
    """What is left of a change in every repeat: 0 is as without it, 1 is guessing."""
    steady, changed = (error.sel(stream=name).to_numpy() for name in STREAMS)
    room = 0.5 - steady
    # Where nothing was learned, nothing can be adapted.
    left: FloatArray = np.divide(changed - steady, room, out=np.ones_like(room), where=room > 0)
    return left


def _mean(error: xr.DataArray, stream: str, time: int) -> str:
    return f"{float(error.sel(stream=stream, time=time).mean()):.2f}"
