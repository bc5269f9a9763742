"""What all interfaces for streams share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from sklearn.base import clone

from circuits.checks import as_count
from circuits.errors import InputError, ParameterError, shown
from circuits.learners.classifier import UNLABELLED, ManifoldClassifier
from circuits.lift import FloatArray


class StreamLearner:
    """A `ManifoldClassifier` that is given a stream in parts of any size, even point by point.

    The ``first`` points are kept and learned at once, since they decide place and reach of the
    tiles; every later point is learned as it comes. If the first cannot decide (all are the same
    point, or no class is known), that is an error, and the next point is kept as well.

    ``model`` is copied. ``classes`` are all there will be, in the order of the answers; ``None``
    are those of the first points.
    """

    def __init__(
        self, model: ManifoldClassifier | None, first: int, classes: Sequence[Hashable] | None
    ) -> None:
        if not isinstance(model, ManifoldClassifier | None):
            raise ParameterError(f"model must be a ManifoldClassifier, got {shown(model)}")
        self.model: ManifoldClassifier = clone(model or ManifoldClassifier())
        self.first = as_count(first, "first", least=1)
        self._complete = classes is not None
        named = dict.fromkeys(() if classes is None else classes)
        self.classes = {name: number for number, name in enumerate(named)}
        self._points: list[FloatArray] = []
        self._labels: list[int] = []

    @property
    def started(self) -> bool:
        """Whether the first points have been learned."""
        return hasattr(self.model, "circuit_")

    def learn(self, points: FloatArray, labels: Sequence[Hashable]) -> None:
        """Learn from points (n, d) and their classes (n,), ``None`` where one is missing."""
        if len(labels) != len(points):
            raise InputError(
                f"there must be a label per point, got {len(labels)} for {len(points)}"
            )
        if not self.started:
            # One more than wanted if these could not decide.
            room = max(self.first - len(self._labels), 1)
            self._labels += [self._number(label) for label in labels[:room]]
            self._points += list(points[:room].copy())
            if len(self._labels) < self.first:
                return
            self.model.partial_fit(self._points, self._labels, range(len(self.classes)))
            self._complete, self._points, self._labels = True, [], []
            points, labels = points[room:], labels[room:]
        if len(points):
            self.model.partial_fit(points, [self._number(label) for label in labels])

    def answer(self, points: FloatArray) -> FloatArray:
        """Probabilities (n, class); all the same until the first points have been learned."""
        if self.started:
            return self.model.predict_proba(points)
        return np.full((len(points), len(self.classes)), 1 / max(len(self.classes), 1))

    def _number(self, label: Hashable) -> int:
        """The number of a class to the model, which is never that of a missing label."""
        if label is None:
            return UNLABELLED
        if self._complete and label not in self.classes:
            raise InputError(
                f"the class {shown(label)} is not among {shown(list(self.classes))}: name all "
                "there will be as classes"
            )
        return self.classes.setdefault(label, len(self.classes))
