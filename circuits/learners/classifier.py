"""The circuit as an estimator of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from circuits.base import Circuit
from circuits.checks import as_count
from circuits.engines.solvers import make_circuit
from circuits.errors import InputError, LostLabelWarning, shown
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.tuning import estimated_radius, estimated_threshold

UNLABELLED = -1
"""A missing label, as in scikit-learn's own semi-supervised estimators."""

RIM = 0.999
"""Where points outside the lift are moved to, as a share of its radius."""

AT_A_TIME = 2048
"""Points that are presented or answered at once; bounds the memory."""


class ManifoldClassifier(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn comes without types
    TransformerMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A semi-supervised classifier for any number of classes, in scikit-learn's conventions.

    Tiles come to lie on the data, labelled or not; one readout per class learns from the labels and
    carries them on from tile to tile, with w_c <- w_c + rate h (y_c - w_c) where a tile answers
    (``readout_rule="gated"``). The class of a point is the one with the largest w_c.h / sum(h).

    -1 stands for a missing label (for labels that are texts, also "-1"). Where there is only one
    other value, or where ``classes`` of ``partial_fit`` names it, -1 is a class.

    Parameters
    ----------
    n_tiles
        The most tiles there can be, which bounds the memory.
    tile_radius
        Reach of a tile in the units of the data; ``None`` lets the first points decide (see
        `circuits.tuning.estimated_radius`).
    recruit_below
        theta: a point that no tile answers with more than this becomes a tile; ``None`` is as much
        as the number of tiles allows (see `circuits.tuning.estimated_threshold`).
    learning_rate
        eta, of the tiles.
    readout_rate
        Of the readouts, for a tile that answers alone.
    mu
        Gain of the readouts; 1 carries labels on as they are.
    recycle
        Whether, when no tile is idle, the tile that answers least moves to a point that no tile
        answers: for streams that drift.
    n_passes
        How often ``fit`` shows the points with their labels, after showing them once without.
    engine
        "exact" (the closed form), "reference", or a Brian2 engine by name.
    random_state
        Decides the order in which ``fit`` shows the points.

    Attributes
    ----------
    classes_
        The labels that occur.
    undecided_
        Which of the points last learned have no answer (see `undecided`).
    circuit_
        The circuit itself.
    """

    def __init__(
        self,
        n_tiles: int = 400,
        tile_radius: float | None = None,
        *,
        recruit_below: float | None = None,
        learning_rate: float = 0.001,
        readout_rate: float = 0.1,
        mu: float = 1.0,
        recycle: bool = False,
        n_passes: int = 3,
        engine: str = "exact",
        random_state: Any = None,
    ) -> None:
        self.n_tiles = n_tiles
        self.tile_radius = tile_radius
        self.recruit_below = recruit_below
        self.learning_rate = learning_rate
        self.readout_rate = readout_rate
        self.mu = mu
        self.recycle = recycle
        self.n_passes = n_passes
        self.engine = engine
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from points (n, d) and labels (n,) alone, forgetting what was learned before."""
        n_passes = as_count(self.n_passes, "n_passes", least=1)
        points, targets = self._prepared(X, y, first=True)
        order = check_random_state(self.random_state).permutation(len(points))
        for given in (None, *[targets[order]] * n_passes):
            self._present(points[order], given)
        self.undecided_ = self.undecided(points)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with a stream: learn from points (n, d) and labels (n,) in their order.

        The first call takes all ``classes`` there will be. Its points decide place and reach of
        the tiles: give it a few hundred.
        """
        first = not hasattr(self, "circuit_")
        if not (first or classes is None or np.array_equal(np.unique(classes), self.classes_)):
            raise InputError(
                f"classes must stay those of the first call, {shown(self.classes_.tolist())}, "
                f"got {shown(np.asarray(classes).tolist())}"
            )
        points, targets = self._prepared(X, y, first, classes)
        self._present(points, targets)
        self.undecided_ = self.undecided(points)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of every point; the first one where all are as likely (see `undecided`)."""
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities (n, class): 1 + w_c.h / sum(h), divided by their sum; all the same where no
        tile answers."""
        likely = np.maximum(1 + self._scores(X), 0.0)
        likely[~likely.any(axis=1)] = 1.0  # all classes are ruled out
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def transform(self, X: ArrayLike) -> FloatArray:
        """Rates of the tiles (n, n_tiles), of norm one, or zero where no tile answers."""
        return np.concatenate(list(self._responses(X)))

    def undecided(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Which points have no answer: no tile answers, or no label has reached those that do."""
        return np.asarray(~self._scores(X).any(axis=1))

    def _prepared(
        self, X: ArrayLike, y: ArrayLike, first: bool, classes: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Points, and labels (n, class): +1 for the class of a point, -1 for the others, 0 where it
        is missing. The ``first`` ones decide about classes and circuit."""
        points, labels = validate_data(self, X, _sortable(y), reset=first, dtype=np.float64)
        check_classification_targets(labels)
        if first:
            self.classes_ = _classes_of(labels) if classes is None else np.unique(classes)
        own = labels[:, None] == self.classes_[None, :]
        known = own.any(axis=1)
        if strange := labels[~known & ~_missing(labels)].tolist():
            raise InputError(
                f"labels must be among the classes {shown(self.classes_.tolist())} or "
                f"{UNLABELLED}, got {shown(strange[0])}"
            )
        if first:
            self.circuit_ = self._made_for(points)
        return points, np.where(known[:, None], np.where(own, 1.0, -1.0), 0.0)

    def _made_for(self, points: FloatArray) -> Circuit:
        """A circuit with the parameters that were given, and those that its first points decide."""
        if len(self.classes_) == 0:
            raise InputError("there are no labels: give some points a class, or name the classes")
        radius, threshold = self.tile_radius, self.recruit_below
        parameters = CircuitParameters(
            tile_radius=estimated_radius(points) if radius is None else radius,
            n_tiles=self.n_tiles,
            recycle=self.recycle,
            n_readouts=len(self.classes_),
            learning_rate=self.learning_rate,
            readout_rule="gated",
            readout_rate=self.readout_rate,
            mu=self.mu,
        )
        radius = parameters.tile_radius
        if threshold is None:
            threshold = estimated_threshold(points, radius, parameters.n_tiles)
        parameters = parameters.replace(recruit_below=threshold)
        # Points to come may lie beyond the first ones; two tiles beyond at least.
        return make_circuit(self.engine, parameters, SphereLift.around(points, least=2 * radius))

    @property
    def _n_features_out(self) -> int:
        return self.circuit_.parameters.n_tiles

    def _present(self, points: FloatArray, targets: FloatArray | None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LostLabelWarning)  # `undecided_` tells of these points
            for part in gen_batches(len(points), AT_A_TIME):
                labels = None if targets is None else targets[part]
                self.circuit_.run(self._within(points[part]), labels)

    def _within(self, points: FloatArray) -> FloatArray:
        """Points, moved to the rim of the lift if they lie outside."""
        lift = self.circuit_.lift
        offset = points - lift.center
        length = np.hypot.reduce(offset, axis=1, keepdims=True)  # no square of it overflows
        rim = lift.center + RIM * lift.radius * (offset / np.maximum(length, lift.radius))
        return np.where(length > lift.radius, rim, points)

    def _responses(self, X: ArrayLike) -> Iterator[FloatArray]:
        check_is_fitted(self, "circuit_")
        points = validate_data(self, X, reset=False, dtype=np.float64)
        for part in gen_batches(len(points), AT_A_TIME):
            yield self.circuit_.respond(self._within(points[part]))

    def _scores(self, X: ArrayLike) -> FloatArray:
        """w_c.h / sum(h) for every point and class; 0 where no tile answers."""
        least = np.finfo(float).tiny
        scores = [
            h @ self.circuit_.state.w.T / np.maximum(h.sum(axis=1, keepdims=True), least)
            for h in self._responses(X)
        ]
        return np.concatenate(scores)


def _sortable(labels: Any) -> Any:
    """Labels; if some are texts, a missing one (-1) becomes "-1", so that they can be sorted."""
    array = np.asarray(labels)
    if array.dtype.kind != "O" or not any(isinstance(label, str) for label in array.flat):
        return labels
    for label in array.flat:
        if not isinstance(label, str) and label != UNLABELLED:
            raise InputError(
                f"labels must all be texts, or {UNLABELLED} where missing, got {shown(label)}"
            )
    return array.astype(str).astype(object)


def _classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """The classes among labels; -1 is a class if there is only one other."""
    every = np.unique(labels)
    known = every[~_missing(every)]
    return every if len(known) == 1 else known


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are missing."""
    return np.asarray((labels == UNLABELLED) | (labels == str(UNLABELLED)))
