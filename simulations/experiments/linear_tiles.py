"""Chessboards on a Swiss roll for linear classifiers that know every label: on the points they
fail, on the tiles they need not; and how sparse the graph of overlapping tiles is."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from analysis import selection
from circuits.lift import FloatArray
from simulations.datasets import ROLL_LIFT, Classes
from simulations.experiments import evidence
from simulations.experiments import experiment as base
from simulations.experiments.roll import (
    BOARDS,
    PARAMETERS,
    Boards,
    board_names,
    chosen_errors,
    roll_with_boards,
)
from simulations.objective import random_features

FEATURES = ("raw", "lifted", "random", "placed", "tiles", "permuted")
"""What the classifier reads: points, lifted points, as many random rectified projections of these
as there are tiles, tiles that were placed and never learned, tiles after learning, and these with
the classes of the points it learns from permuted."""

SHOWN = ("raw", "tiles")
"""Features whose answers are kept for the figure."""

OVERLAP = 1e-3
"""Two tiles overlap if S_ij exceeds this share of the root of S_ii S_jj, S = E(h h^T)."""

FAILS, SOLVES, SPARSE = 0.4, 0.15, 0.25
"""Bounds: errors above the first are failures, below the second successes (guessing errs in 0.5);
a graph with less than the third of all its edges is sparse."""


class Settings(base.Settings):
    """The data, and the penalties to choose from."""

    n_points: int = Field(default=2000, ge=50)
    n_test: int = Field(default=2000, ge=10)
    boards: Boards = BOARDS
    penalty_grid: base.Grid[base.Lambda] = (1e-6, 1e-4, 1e-2, 1.0, 100.0)
    """Of the squared weights, for every kind of feature chosen on other repeats."""


def linear_scores(
    features: FloatArray, targets: Classes, test: FloatArray, penalty: float
) -> FloatArray:
    """Scores (T', r) of test features by least squares on targets (T, r) of +1 and -1.

    Minimises sum_t (w.f_t + b - z_t)^2 + penalty |w|^2; the intercept b is free. In coordinates
    about their means both problems separate.
    """
    center, offset = features.mean(axis=0), targets.mean(axis=0)
    f = features - center
    gram = f.T @ f + penalty * np.eye(f.shape[1])
    w = np.linalg.solve(gram, f.T @ (targets - offset))
    scores: FloatArray = (test - center) @ w + offset
    return scores


Graph = NDArray[np.bool_]


def overlap_graph(h: FloatArray) -> Graph:
    """Which tiles (m, m) overlap, by `OVERLAP`; a tile that is not in use overlaps with none."""
    S = h.T @ h / len(h)
    size = np.sqrt(np.diag(S))
    graph: Graph = OVERLAP * np.outer(size, size) < S
    np.fill_diagonal(graph, val=False)
    return graph


def overlapping_share(h: FloatArray) -> float:
    """Share of the pairs of tiles in use that overlap."""
    used = int(h.any(axis=0).sum())
    return float(overlap_graph(h).sum() / (used * (used - 1))) if used > 1 else np.nan


class LinearTiles(base.Experiment[Settings]):
    """One classifier, several kinds of features, all labels."""

    settings_class = Settings
    parameters: ClassVar = PARAMETERS
    lift: ClassVar = ROLL_LIFT
    main: ClassVar = "tiles_error"
    selection_repeats: ClassVar = 5
    size: ClassVar = ("n_points", "n_test")
    quick: ClassVar = {"n_points": 1000, "n_test": 1000}

    def simulate(self, config: base.Config[Settings], seed: int, report: base.Report) -> xr.Dataset:
        """One pass of learning without labels; then the classifiers, tested on fresh points."""
        settings, p = config.settings, config.parameters
        rng = np.random.default_rng(seed)
        points, _, classes = roll_with_boards(settings.n_points, settings.boards, rng)
        test, unrolled, test_classes = roll_with_boards(settings.n_test, settings.boards, rng)
        every = np.concatenate([points, test])
        circuit = config.circuit(p, self.lift)
        run = circuit.run(points)
        placed = base.make_circuit("exact", p.replace(learning_rate=0.0), self.lift)
        placed.run(points)
        tiles = circuit.respond(every)
        features = {
            "raw": every,
            "lifted": self.lift(every),
            "random": random_features(self.lift(every), p.n_tiles, rng),
            "placed": placed.respond(every),
            "tiles": tiles,
            "permuted": tiles,
        }
        shuffled = classes[:, rng.permutation(len(points))]
        n = len(points)
        errors, answers = {}, []
        for name, f in features.items():
            report(name)
            known = shuffled if name == "permuted" else classes
            found = np.stack(
                [linear_scores(f[:n], known.T, f[n:], one) for one in settings.penalty_grid]
            )
            errors[name] = _errors(found, test_classes)
            if name in SHOWN:
                answers.append(np.sign(found).astype(np.int8))
        places = unrolled[_nearest(tiles[n:])]
        graphs = {name: overlapping_share(features[name][:n]) for name in FEATURES[2:5]}
        return xr.Dataset(
            {
                **{
                    f"{name}_error": (("board", "penalty"), value) for name, value in errors.items()
                },
                "linear_answer": (("shown", "penalty", "test", "board"), np.stack(answers)),
                "test_unrolled": (("test", "side"), unrolled),
                "test_classes": (("board", "test"), test_classes),
                "overlaps": (("tile", "other_tile"), overlap_graph(tiles[:n])),
                "tile_place": (("tile", "side"), places),
                "overlapping": ("graph", list(graphs.values())),
            },
            coords={
                "board": board_names(settings.boards),
                "penalty": list(settings.penalty_grid),
                "shown": list(SHOWN),
                "graph": list(graphs),
            },
            attrs=run.attrs,
        )

    def claims(self, merged: xr.Dataset) -> list[base.Claim]:
        """Errors at the penalties that were chosen on other repeats, and the graph."""
        best = chosen_errors(merged, dict.fromkeys(FEATURES, "penalty"))
        columns = {
            name: best[name].transpose("repeat", "board").to_numpy() for name in ("raw", "tiles")
        }
        boards = ", ".join(map(str, best["raw"]["board"].to_numpy()))
        classifier = (
            "least squares with an intercept and a penalty chosen on other repeats, all labels, "
            f"tested on fresh points, boards of side {boards}"
        )
        fails = evidence.all_of(*(evidence.mean_above(one, FAILS) for one in columns["raw"].T))
        solves = evidence.all_of(*(evidence.mean_below(one, SOLVES) for one in columns["tiles"].T))
        least, most = columns["raw"].mean(axis=0).min(), columns["tiles"].mean(axis=0).max()
        return [
            base.Claim(
                "a linear classifier fails on the points",
                "linear classifiers per se can not solve this problem",
                f"{classifier}: mean error above {FAILS} on every board (t tests, all of them)",
                f"error {_by_board(best['raw'], errors=True)}, {fails}",
                f"least error {least:.3f}, {fails}, {base.seeds(columns['raw'])}",
                self.decide(merged, fails),
                control=f"points lifted as for the circuit {_by_board(best['lifted'])}; as many "
                "random rectified projections of these as there are tiles "
                f"{_by_board(best['random'])}",
            ),
            base.Claim(
                "after the tiling classification is linear",
                "after learning the manifold classification is linear",
                f"the same classifier on the outputs of the tiles ({classifier}): mean error below "
                f"{SOLVES} on every board (t tests, all of them)",
                f"error {_by_board(best['tiles'], errors=True)}, {solves}",
                f"largest error {most:.3f}, {solves}, {base.seeds(columns['tiles'])}",
                self.decide(merged, solves),
                control="tiles with the classes permuted among the points it learns from "
                f"{_by_board(best['permuted'])}; tiles placed and never learned "
                f"{_by_board(best['placed'])}; random projections {_by_board(best['random'])}",
            ),
            self._sparse(merged),
        ]

    def _sparse(self, merged: xr.Dataset) -> base.Claim:
        shares = selection.reported(merged)["overlapping"].transpose("graph", "repeat")
        own, placed, random = (
            shares.sel(graph=g).to_numpy() for g in ("tiles", "placed", "random")
        )
        found = evidence.mean_below(own, SPARSE)
        return base.Claim(
            "the graph of overlapping tiles is sparse",
            "The graph will be fairly sparse due to the nature of tiling",
            f"share of the pairs of tiles in use with S_ij > {OVERLAP:g} √(S_ii S_jj), S = E(hhᵀ): "
            f"its mean must stay below {SPARSE} (t test)",
            f"{evidence.with_error(own)} of pairs, {found}",
            f"{own.mean():.3f} of pairs, {found}, {base.seeds(own)}",
            self.decide(merged, found),
            control=f"random rectified projections {random.mean():.3f}; tiles placed and never "
            f"learned {placed.mean():.3f}",
        )


def _errors(scores: FloatArray, classes: Classes) -> FloatArray:
    """Errors (board, penalty) of scores (penalty, T, board)."""
    errors: FloatArray = base.error_rate(scores.transpose(1, 2, 0), classes.T[:, :, None])
    return errors


def _nearest(h: FloatArray) -> NDArray[np.intp]:
    """For every tile the point that it answers most: there it lies, for a picture."""
    nearest: NDArray[np.intp] = h.argmax(axis=0)
    return nearest


def _by_board(error: xr.DataArray, errors: bool = False) -> str:
    text = evidence.with_error if errors else lambda one: f"{np.mean(one):.3f}"
    return ", ".join(
        f"{b}: {text(error.sel(board=b).to_numpy())}" for b in error["board"].to_numpy()
    )
