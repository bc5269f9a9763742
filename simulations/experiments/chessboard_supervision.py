"""Semi- against fully supervised online learning on chessboards: the paper's Fig. 3, centre."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
import xarray as xr
from pydantic import Field, model_validator

from simulations.baselines import OnlineLogistic, label_spreading
from simulations.datasets import ROLL_LIFT
from simulations.experiments import experiment as base
from simulations.experiments.roll import (
    BOARDS,
    PARAMETERS,
    Boards,
    board_names,
    chosen_errors,
    for_every_value,
    roll_with_boards,
)

GRIDS = {"circuit": "mu", "logistic": "rate", "spreading": "gamma"}
"""What each method chooses on other repeats."""


class Settings(base.Settings):
    """The data, its labels, and the values each method chooses from."""

    n_points: int = Field(default=2000, ge=300)
    boards: Boards = BOARDS
    label_counts: base.Grid[Annotated[int, Field(ge=1)]] = (50, 100, 200)
    mu_grid: base.Grid[base.NotNegative] = (1, 3, 5, 10, 20, 50, 100, 1000)
    rate_grid: base.Grid[base.Positive] = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
    gamma_grid: base.Grid[base.Positive] = (50, 100, 200, 500)

    @model_validator(mode="after")
    def _check_label_counts(self) -> Self:
        if max(self.label_counts) >= self.n_points:
            raise ValueError(
                f"label_counts must stay below n_points={self.n_points}, got "
                f"{max(self.label_counts)}: errors are counted on unlabelled points"
            )
        return self


class ChessboardSupervision(base.Experiment[Settings]):
    """Both classifiers read the same tiling layer; one also learns from unlabelled points."""

    settings_class = Settings
    parameters: ClassVar = PARAMETERS
    lift: ClassVar = ROLL_LIFT
    selection_repeats: ClassVar = 5
    taken: ClassVar = {"mu": "mu_grid", "n_readouts": "boards, label_counts and mu_grid"}
    quick: ClassVar = {"n_points": 600, "label_counts": (50, 100), "mu_grid": (3, 10, 30)}

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """All boards, numbers of labels and values of mu are readouts of one simulation."""
        settings = config.settings
        rng = np.random.default_rng(seed)
        points, unrolled, classes = roll_with_boards(settings.n_points, settings.boards, rng)
        masks = np.zeros((len(settings.label_counts), len(points)), dtype=int)
        for mask, count in zip(masks, settings.label_counts, strict=True):
            mask[rng.permutation(len(points))[:count]] = 1
        # (point, board, number of labels): what each label channel carries.
        labels = classes.T[:, :, None] * masks.T[:, None, :]
        many, mu, shape = for_every_value(labels, settings.mu_grid)
        parameters = config.parameters.replace(n_readouts=mu.size, mu=mu)
        run = base.make_circuit(config.engine, parameters, self.lift).run(points, many)
        y = run["y"].to_numpy().reshape(len(points), *shape)
        report("baselines")
        found = {
            "circuit": y,
            "logistic": self._logistic(run["h"].to_numpy(), labels, settings.rate_grid),
            "spreading": self._spreading(points, labels, settings.gamma_grid),
        }
        errors = {
            name: self._errors(scores, classes, masks.astype(bool))
            for name, scores in found.items()
        }
        result = xr.Dataset(
            {
                f"{name}_error": (("board", "n_labels", GRIDS[name]), value)
                for name, value in errors.items()
            },
            coords={
                "board": board_names(settings.boards),
                "n_labels": list(settings.label_counts),
                "mu": list(settings.mu_grid),
                "rate": list(settings.rate_grid),
                "gamma": list(settings.gamma_grid),
            },
            attrs=run.attrs,
        )
        return result.assign(
            points=(("presentation", "coordinate"), points),
            unrolled=(("presentation", "side"), unrolled),
            classes=(("board", "presentation"), classes),
        )

    @staticmethod
    def _logistic(h: np.ndarray, labels: np.ndarray, rates: tuple[float, ...]) -> np.ndarray:
        many, per_column, shape = for_every_value(labels, rates)
        return OnlineLogistic(h.shape[1], per_column).run(h, many).reshape(len(h), *shape)

    @staticmethod
    def _spreading(points: np.ndarray, labels: np.ndarray, gammas: tuple[float, ...]) -> np.ndarray:
        scores = np.empty((*labels.shape, len(gammas)))
        for board, count in np.ndindex(labels.shape[1:]):
            for g, gamma in enumerate(gammas):
                found = label_spreading(points, labels[:, board, count], gamma=gamma)
                scores[:, board, count, g] = found.scores
        return scores

    @staticmethod
    def _errors(scores: np.ndarray, classes: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Error on the unlabelled points."""
        errors = np.empty(scores.shape[1:])
        for board, count in np.ndindex(scores.shape[1:3]):
            silent = ~masks[count]
            errors[board, count] = base.error_rate(
                scores[silent, board, count], classes[board][silent][:, None]
            )
        return errors

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Error of the circuit against logistic regression, each at its best, cell by cell."""
        best = chosen_errors(merged, GRIDS)
        gain = best["logistic"] - best["circuit"]
        mean, error = gain.mean("repeat"), base.standard_error(gain)
        better, worse = mean > 2 * error, mean < -2 * error
        cells = ", ".join(
            f"{board}/{int(count)}: "
            + " vs ".join(
                base.spread(best[name].sel(board=board, n_labels=count))
                for name in ("circuit", "logistic")
            )
            for board in gain["board"].to_numpy()
            for count in gain["n_labels"].to_numpy()
        )
        return [
            base.Claim(
                "the semi-supervised circuit beats the supervised classifier",
                "the semi-supervised neural network performs better than the supervised classifier",
                f"better by more than two standard errors in {int(better.sum())} of "
                f"{better.size} cells, worse in {int(worse.sum())} (error, board/labels: {cells})",
                f"better in {int(better.sum())} of {better.size} cells, worse in "
                f"{int(worse.sum())}, {base.seeds(gain['repeat'])}",
                self.decide(merged, better.all()),
            )
        ]
