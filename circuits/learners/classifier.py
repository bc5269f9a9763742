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
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from circuits.base import Circuit
from circuits.engines.solvers import make_circuit
from circuits.errors import InputError, LostLabelWarning, ParameterError, shown
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.tuning import estimated_radius, estimated_threshold

UNLABELLED = -1
"""What stands for a missing label, as in scikit-learn's own semi-supervised estimators."""

RIM = 0.999
"""Where points outside the lift are moved to, as a share of its radius: inside, however rounded."""

AT_A_TIME = 2048
"""Points that are presented, or answered, at once: more would only take memory."""


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
    other value, -1 is taken as a class, since one class alone leaves nothing to tell apart;
    ``partial_fit`` takes it as a class if ``classes`` names it.

    Parameters
    ----------
    n_tiles
        The most tiles there can be, and so the memory that is needed, whatever is seen.
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
        Whether the tile that answers least moves to a point that none answers, when no idle one is
        left: for streams that drift.
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
        Which of the points that ``fit`` or ``partial_fit`` was last given have no answer: no tile
        answers them, or no label has reached those that do.
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
        points, labels = self._validated(X, y, reset=True)
        if isinstance(self.n_passes, bool) or not isinstance(self.n_passes, int | np.integer):
            raise ParameterError(f"n_passes must be a whole number, got {shown(self.n_passes)}")
        if self.n_passes < 1:
            raise ParameterError(f"n_passes must be at least 1, got {self.n_passes}")
        self.classes_ = _classes_of(labels)
        targets = self._targets(labels)
        self.circuit_ = self._made_for(points)
        order = check_random_state(self.random_state).permutation(len(points))
        for silent in (True, *[False] * self.n_passes):
            self._present(points[order], None if silent else targets[order])
        self.undecided_ = self.undecided(points)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with a stream: learn from points (n, d) and labels (n,) in their order.

        The first call takes all ``classes`` there will be, and decides, with its points, about the
        place and reach of tiles: give it a few hundred points.
        """
        first = not hasattr(self, "circuit_")
        points, labels = self._validated(X, y, reset=first)
        if first:
            self.classes_ = _classes_of(labels) if classes is None else np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(
                f"classes must stay those of the first call, {shown(self.classes_.tolist())}, "
                f"got {shown(np.asarray(classes).tolist())}"
            )
        targets = self._targets(labels)
        if first:
            self.circuit_ = self._made_for(points)
        self._present(points, targets)
        self.undecided_ = self.undecided(points)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of every point; the first one where all are as likely (see `undecided`)."""
        scores = self._scores(X)
        found: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return found

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities (n, class): 1 + w_c.h / sum(h), divided by their sum; all the same where no
        tile answers."""
        likely = np.maximum(1 + self._scores(X), 0.0)
        total = likely.sum(axis=1, keepdims=True)
        even = np.full_like(likely, 1 / len(self.classes_))
        shares: FloatArray = np.divide(likely, total, out=even, where=total > 0)
        return shares

    def transform(self, X: ArrayLike) -> FloatArray:
        """Rates of the tiles (n, n_tiles), of norm one, or zero where no tile answers."""
        return np.concatenate(list(self._responses(X)))

    def undecided(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Which points have no answer: no tile answers, or no label has reached those that do."""
        return np.asarray(~self._scores(X).any(axis=1))

    def _validated(
        self, X: ArrayLike, y: ArrayLike, reset: bool
    ) -> tuple[FloatArray, NDArray[Any]]:
        points, labels = validate_data(self, X, _sortable(y), reset=reset, dtype=np.float64)
        check_classification_targets(labels)
        return points, labels

    def _targets(self, labels: NDArray[Any]) -> FloatArray:
        """Labels (n, class): +1 for the class of a point, -1 for the others, 0 where it is
        missing."""
        own = labels[:, None] == self.classes_[None, :]
        known = own.any(axis=1)
        if strange := labels[~known & ~_missing(labels)].tolist():
            raise InputError(
                f"labels must be among the classes {shown(self.classes_.tolist())} or "
                f"{UNLABELLED}, got {shown(strange[0])}"
            )
        return np.where(known[:, None], np.where(own, 1.0, -1.0), 0.0)

    def _made_for(self, points: FloatArray) -> Circuit:
        """A circuit with the parameters that were given, and those that its first points decide."""
        if len(self.classes_) == 0:
            raise InputError("there are no labels: give some points a class, or name the classes")
        own = {"tile_radius": self.tile_radius, "recruit_below": self.recruit_below}
        parameters = CircuitParameters(
            **{name: value for name, value in own.items() if value is not None},
            n_tiles=self.n_tiles,
            recycle=self.recycle,
            n_readouts=len(self.classes_),
            learning_rate=self.learning_rate,
            readout_rule="gated",
            readout_rate=self.readout_rate,
            mu=self.mu,
        )
        if self.tile_radius is None:
            parameters = parameters.replace(tile_radius=estimated_radius(points))
        radius = parameters.tile_radius
        if self.recruit_below is None:
            threshold = estimated_threshold(points, radius, parameters.n_tiles)
            parameters = parameters.replace(recruit_below=threshold)
        # Points to come may lie beyond the first ones; two tiles beyond at least.
        return make_circuit(self.engine, parameters, SphereLift.around(points, least=2 * radius))

    @property
    def _n_features_out(self) -> int:
        return self.circuit_.parameters.n_tiles

    def _present(self, points: FloatArray, targets: FloatArray | None) -> None:
        with warnings.catch_warnings():
            # Labels of points that no tile answers: `undecided_` tells which points those are.
            warnings.simplefilter("ignore", LostLabelWarning)
            for start in range(0, len(points), AT_A_TIME):
                part = slice(start, start + AT_A_TIME)
                labels = None if targets is None else targets[part]
                self.circuit_.run(self._within(points[part]), labels)

    def _within(self, points: FloatArray) -> FloatArray:
        """Points, those outside the lift moved to its rim: what comes later may reach further than
        the points that decided about it."""
        lift = self.circuit_.lift
        # Halves, and directions of length one, because of numbers near the largest there is.
        offset = points / 2 - lift.center / 2
        largest = np.maximum(np.abs(offset).max(axis=1, keepdims=True), np.finfo(float).tiny)
        direction = offset / largest
        length = np.linalg.norm(direction, axis=1, keepdims=True)
        outside = largest > lift.radius / 2 / np.maximum(length, 1)
        rim = lift.center + RIM * lift.radius * direction / np.maximum(length, 1)
        return np.where(outside, rim, points)

    def _responses(self, X: ArrayLike) -> Iterator[FloatArray]:
        check_is_fitted(self, "circuit_")
        points = validate_data(self, X, reset=False, dtype=np.float64)
        for start in range(0, len(points), AT_A_TIME):
            yield self.circuit_.respond(self._within(points[start : start + AT_A_TIME]))

    def _scores(self, X: ArrayLike) -> FloatArray:
        """w_c.h / sum(h) for every point and class; 0 where no tile answers."""
        found = []
        for h in self._responses(X):
            total = h.sum(axis=1, keepdims=True)
            net = h @ self.circuit_.state.w.T
            found.append(np.divide(net, total, out=np.zeros_like(net), where=total > 0))
        return np.concatenate(found)


def _sortable(labels: Any) -> Any:
    """Labels that are texts but for -1 with a text for that, too: they must be in an order."""
    array = np.asarray(labels)
    if array.dtype.kind != "O" or not any(isinstance(label, str) for label in array.flat):
        return labels
    others = [label for label in array.flat if not isinstance(label, str)]
    if strange := [label for label in others if label != UNLABELLED]:
        raise InputError(
            f"labels must all be texts, or {UNLABELLED} where one is missing, got "
            f"{shown(strange[0])}"
        )
    return array.astype(str).astype(object)


def _classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """The classes among labels; -1 is one where there is but one other."""
    every = np.unique(labels)
    known = every[~_missing(every)]
    return every if len(known) == 1 else known


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels stand for none."""
    if labels.dtype.kind in "US":
        return np.asarray(labels == str(UNLABELLED))
    if labels.dtype.kind == "O":
        return np.array([str(label) == str(UNLABELLED) for label in labels], dtype=bool)
    return np.asarray(labels == UNLABELLED)
