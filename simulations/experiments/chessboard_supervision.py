"""Semi- against fully supervised online learning on chessboards: the paper's Fig. 3, centre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

import numpy as np
import numpy.typing as npt
import xarray as xr
from pydantic import Field, model_validator

from analysis import selection
from circuits.lift import FloatArray
from simulations.baselines import OnlineLogistic, hebbian_mean, label_spreading
from simulations.datasets import ROLL_LIFT, Classes
from simulations.experiments import evidence
from simulations.experiments import experiment as base
from simulations.experiments.roll import (
    BOARDS,
    MU_GRID,
    PARAMETERS,
    Boards,
    board_names,
    chosen_errors,
    for_every_value,
    roll_with_boards,
)

GRIDS = {
    "circuit": "mu",
    "logistic": "rate",
    "logistic_origin": "rate",
    "hebbian": None,
    "spreading": "gamma",
}
"""What each method chooses on other repeats; `logistic_origin` has no intercept."""

CONTROLS = {
    "hebbian": "the Hebbian mean",
    "logistic_origin": "logistic regression without intercept",
}
"""Online learners without an intercept, as the circuit is, that ignore unlabelled points."""

Errors = Mapping[str, xr.DataArray]
Masks = npt.NDArray[np.bool_]


class Settings(base.Settings):
    """The data, its labels, and the values each method chooses from."""

    n_points: int = Field(default=2000, ge=300)
    boards: Boards = BOARDS
    label_counts: base.Grid[Annotated[int, Field(ge=1)]] = (50, 100, 200)
    mu_grid: base.Grid[base.NotNegative] = MU_GRID
    rate_grid: base.Grid[base.Positive] = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
    gamma_grid: base.Grid[base.Positive] = (200, 500, 1000)

    @model_validator(mode="after")
    def _check_label_counts(self) -> Self:
        if max(self.label_counts) >= self.n_points:
            raise ValueError(
                f"label_counts must stay below n_points={self.n_points}, got "
                f"{max(self.label_counts)}: errors are counted on unlabelled points"
            )
        return self


class ChessboardSupervision(base.Experiment[Settings]):
    """All online methods read the same tiling layer; one also learns from unlabelled points."""

    settings_class = Settings
    parameters: ClassVar = PARAMETERS
    lift: ClassVar = ROLL_LIFT
    main: ClassVar = "circuit_error"
    repeats: ClassVar = 15
    """Enough for every claim in all of 200 resamples of seeds 5000 to 5039; ten are enough for the
    board in the middle in 0.86 of them."""
    selection_repeats: ClassVar = 5
    taken: ClassVar = {"mu": "mu_grid", "n_readouts": "boards, label_counts and mu_grid"}
    quick: ClassVar = {"n_points": 600, "label_counts": (50, 100), "mu_grid": (20, 80, 400)}

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """All boards, numbers of labels and values of mu are readouts of one simulation."""
        settings = config.settings
        rng = np.random.default_rng(seed)
        points, unrolled, classes = roll_with_boards(settings.n_points, settings.boards, rng)
        masks = np.zeros((len(settings.label_counts), len(points)), dtype=bool)
        for mask, count in zip(masks, settings.label_counts, strict=True):
            mask[rng.permutation(len(points))[:count]] = True
        # (point, board, number of labels): what each label channel carries.
        labels = classes.T[:, :, None] * masks.T[:, None, :]
        many, mu, shape = for_every_value(labels, settings.mu_grid)
        parameters = config.parameters.replace(n_readouts=mu.size, mu=mu)
        run = config.circuit(parameters, self.lift).run(points, many)
        y = run["y"].to_numpy().reshape(len(points), *shape)
        report("baselines")
        h = run["h"].to_numpy()
        found = {"circuit": y} | _baselines(h, points, labels, settings)
        reached = _reached(h, masks)
        errors = {name: _errors(scores, classes, masks) for name, scores in found.items()}
        result = xr.Dataset(
            {
                f"{name}_error": (("board", "n_labels", *filter(None, [GRIDS[name]])), value)
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
            unreached=(
                "n_labels",
                [(~one[~mask]).mean() for one, mask in zip(reached, masks, strict=True)],
            ),
            circuit_unreached_error=(
                ("board", "n_labels", "mu"),
                _errors(y, classes, masks, ~reached),
            ),
        )

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """The circuit against logistic regression as printed, and board by board against learners
        that differ from it in little else than that they ignore unlabelled points."""
        best = chosen_errors(merged, GRIDS)
        leads = {name: best[name] - best["circuit"] for name in ("logistic", *CONTROLS)}
        return [
            self._as_printed(merged, best, leads),
            *(self._unlabelled(merged, leads, str(one)) for one in merged["board"].to_numpy()),
        ]

    def _as_printed(self, merged: xr.Dataset, best: Errors, leads: Errors) -> base.Claim:
        """One number per repeat: the lead over logistic regression, mean over all cells."""
        over = {name: lead.mean(("board", "n_labels")) for name, lead in leads.items()}
        gain = leads["logistic"]
        mean, error = gain.mean("repeat"), base.standard_error(gain)
        cells = ", ".join(
            f"{board}/{int(count)}: "
            + " vs ".join(
                base.spread(best[name].sel(board=board, n_labels=count))
                for name in ("circuit", "logistic")
            )
            for board in gain["board"].to_numpy()
            for count in gain["n_labels"].to_numpy()
        )
        certainty = evidence.mean_above(over["logistic"])
        without = evidence.mean_above(over["logistic_origin"])
        return base.Claim(
            "the semi-supervised circuit beats the supervised classifier",
            "the semi-supervised neural network performs better than the supervised classifier",
            "error on unlabelled points of logistic regression (with intercept, as is usual) less "
            "that of the circuit, mean over boards and numbers of labels, one value per repeat; "
            f"its mean is above 0 (t test, {evidence.LEVEL:g})",
            f"error lower by {evidence.with_error(over['logistic'])}, {certainty}; by more than "
            f"two standard errors in {int((mean > 2 * error).sum())} of {mean.size} cells, higher "
            f"in {int((mean < -2 * error).sum())} (error, circuit vs logistic regression, "
            f"board/labels: {cells})",
            f"error lower by {evidence.with_error(over['logistic'])}, {base.seeds(gain['repeat'])}",
            self.decide(merged, certainty),
            control="logistic regression without an intercept: error of the circuit lower by "
            f"{evidence.with_error(over['logistic_origin'])} ({without}). What is no lead over "
            "this one is due to the intercept, which the circuit does not have",
        )

    def _unlabelled(self, merged: xr.Dataset, leads: Errors, board: str) -> base.Claim:
        """One board: the lead over each control, mean over numbers of labels."""
        over = {name: leads[name].sel(board=board).mean("n_labels") for name in CONTROLS}
        each = {name: evidence.mean_above(values) for name, values in over.items()}
        mu = selection.chosen_values(merged, "circuit_error", "mu")
        kept = selection.reported(merged)
        there = (0.5 * kept["unreached"] - kept["circuit_unreached_error"].sel(mu=mu)).sel(
            board=board
        )
        elsewhere = leads["hebbian"].sel(board=board) - there
        cells = "; ".join(
            f"{int(count)} labels "
            + ", ".join(
                f"{base.spread(leads[name].sel(board=board, n_labels=count))} over {words}"
                for name, words in CONTROLS.items()
            )
            for count in merged["n_labels"].to_numpy()
        )
        figures = ", ".join(
            f"{evidence.with_error(over[name])} over {words} ({each[name]})"
            for name, words in CONTROLS.items()
        )
        hebbian = evidence.with_error(over["hebbian"])
        return base.Claim(
            f"unlabelled points help with squares of side {board}",
            "demonstrating its ability to take advantage of unlabeled data",
            "error on unlabelled points of two learners that ignore them, less that of the "
            "circuit, mean over numbers of labels, one value per repeat; both means are above 0 "
            f"(t tests, {evidence.LEVEL:g} each)",
            f"lead {figures}; {cells}",
            f"{hebbian} below the Hebbian mean, {base.seeds(kept['repeat'])}",
            self.decide(merged, evidence.all_of(*each.values())),
            control="the Hebbian mean of labelled h is the circuit at mu = 0. Of the lead over it "
            f"{evidence.with_error(there.mean('n_labels'))} is on the "
            f"{float(kept['unreached'].mean()):.0%} of points that share no tile with any labelled "
            "point before, where it has to guess and the circuit carries the nearest label on; "
            f"{evidence.with_error(elsewhere.mean('n_labels'))} is on all others",
        )


def _reached(h: FloatArray, masks: Masks) -> Masks:
    """Which points share a tile with a labelled one before them, (number of labels, point)."""
    return hebbian_mean(h, masks.T.astype(int)).T > 0


def _errors(
    scores: FloatArray, classes: Classes, masks: Masks, counted: Masks | None = None
) -> FloatArray:
    """Errors of scores (point, board, number of labels, ...), as a share of the unlabelled points;
    ``counted`` says which points' errors count, if not all do."""
    errors = np.empty(scores.shape[1:])
    for board, count in np.ndindex(scores.shape[1:3]):
        silent = ~masks[count]
        counts = silent if counted is None else silent & counted[count]
        answers = scores[counts, board, count]
        wanted = classes[board][counts].reshape(-1, *[1] * (answers.ndim - 1))
        share = counts.sum() / silent.sum()
        errors[board, count] = share * base.error_rate(answers, wanted) if share else 0.0
    return errors


def _baselines(
    h: FloatArray, points: FloatArray, labels: Classes, settings: Settings
) -> dict[str, FloatArray]:
    """Scores (point, board, number of labels, value) of all methods but the circuit."""
    many, rates, shape = for_every_value(labels, settings.rate_grid)
    found = {
        name: OnlineLogistic(h.shape[1], rates, intercept=intercept)
        .run(h, many)
        .reshape(len(h), *shape)
        for name, intercept in (("logistic", True), ("logistic_origin", False))
    }
    found["hebbian"] = hebbian_mean(h, labels.reshape(len(h), -1)).reshape(labels.shape)
    found["spreading"] = np.empty((*labels.shape, len(settings.gamma_grid)))
    for board, count in np.ndindex(labels.shape[1:]):
        for g, gamma in enumerate(settings.gamma_grid):
            spread = label_spreading(points, labels[:, board, count], gamma=gamma)
            found["spreading"][:, board, count, g] = spread.scores
    return found
