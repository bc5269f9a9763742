"""The circuit as an estimator of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal, Self

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
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from circuits.base import Circuit
from circuits.choosing import estimated_radius, estimated_threshold
from circuits.engines import ENGINES
from circuits.errors import InputError, LostLabelWarning, ParameterError, shown
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters

UNLABELLED = -1
"""What stands for a missing label, as in scikit-learn's own semi-supervised estimators."""

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
        `circuits.choosing.estimated_radius`).
    recruit_below
        theta: a point that no tile answers with more than this becomes a tile; ``None`` is as much
        as the number of tiles allows (see `circuits.choosing.estimated_threshold`).
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
        self._begin(points)
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
            self._begin(points)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(
                f"classes must stay those of the first call, {shown(self.classes_.tolist())}, "
                f"got {shown(np.asarray(classes).tolist())}"
            )
        self._present(points, self._targets(labels))
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
        return np.asarray(np.ptp(self._scores(X), axis=1) == 0)

    def _validated(
        self, X: ArrayLike, y: ArrayLike, reset: bool
    ) -> tuple[FloatArray, NDArray[Any]]:
        points, labels = validate_data(
            self,
            X,
            _sortable(y),
            reset=reset,
            dtype=np.float64,
            ensure_min_samples=1,
            y_numeric=False,
        )
        check_classification_targets(labels)
        return points, column_or_1d(labels, warn=True)

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

    def _begin(self, points: FloatArray) -> None:
        if len(self.classes_) == 0:
            raise InputError("there are no labels: give some points a class, or name the classes")
        given = {"n_tiles": self.n_tiles, "tile_radius": self.tile_radius}
        given |= {"recruit_below": self.recruit_below, "recycle": self.recycle}
        parameters = CircuitParameters(
            **{name: value for name, value in given.items() if value is not None},
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
        self.circuit_ = _circuit(self.engine, parameters, _lift(points, radius))
        self._n_features_out = self.n_tiles

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
        offset = points - lift.center
        distance = np.linalg.norm(offset, axis=1, keepdims=True)
        reach = np.where(distance > lift.radius, lift.radius / np.maximum(distance, 1e-300), 1.0)
        moved: FloatArray = lift.center + offset * reach
        return moved

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


def _sortable(labels: ArrayLike) -> ArrayLike:
    """Labels that are texts but for -1 with a text for that, too: they must be in an order."""
    array = np.asarray(labels) if labels is not None else None
    if array is None or array.dtype.kind != "O" or not any(isinstance(v, str) for v in array.flat):
        return labels
    texts = array.copy()
    texts[[not isinstance(v, str) and v == UNLABELLED for v in array.flat]] = str(UNLABELLED)
    return texts


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


def _lift(points: FloatArray, radius: float) -> SphereLift:
    """A lift around points that reaches a few tiles further."""
    center = points.min(axis=0) / 2 + points.max(axis=0) / 2
    reach = float(np.linalg.norm(points - center, axis=1).max())
    return SphereLift(center, 1.75 * max(reach, 2 * radius))


def _circuit(engine: str, parameters: CircuitParameters, lift: SphereLift) -> Circuit:
    from circuits.circuit import ManifoldCircuit
    from circuits.reference import ReferenceCircuit

    if engine in ENGINES:
        return ManifoldCircuit(parameters, lift, engine)
    settlings: dict[str, Literal["dynamics", "exact"]] = {"exact": "exact", "reference": "dynamics"}
    if engine not in settlings:
        raise ParameterError(
            f"there is no engine {shown(engine)}: use {', '.join((*settlings, *ENGINES))}"
        )
    return ReferenceCircuit(parameters, lift, settling=settlings[engine])
