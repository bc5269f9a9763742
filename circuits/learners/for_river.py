"""The circuit in river's conventions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from circuits.checks import as_floats
from circuits.errors import InputError, PackageError, listed
from circuits.learners.classifier import ManifoldClassifier
from circuits.learners.stream import StreamLearner
from circuits.lift import FloatArray, as_points

try:
    from river.base import MiniBatchClassifier
except ImportError:
    raise PackageError("circuits.learners.for_river needs river: pip install river") from None


class RiverManifoldClassifier(MiniBatchClassifier):  # type: ignore[misc]  # taken as without types
    """`ManifoldClassifier` for river: ``learn_one(x, y)``, with ``None`` for a missing label.

    Every point must have the features of the first, in any order. Until the first points have been
    learned, all known classes are as likely; the answer is empty while there is none.

    Parameters
    ----------
    model
        A `ManifoldClassifier` with the parameters to use; ``None`` is one with its defaults.
    first
        How many points are kept before they are learned: they decide place and reach of the tiles.
    classes
        All there will be; ``None`` are those of the first points. Where labels are rare, name them.
    """

    _multiclass = True

    def __init__(
        self,
        model: ManifoldClassifier | None = None,
        first: int = 200,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        self.model = model
        self.first = first
        self.classes = classes
        self._learner = StreamLearner(model, first, classes)
        self._names: tuple[Hashable, ...] = ()

    def _unit_test_skips(self) -> set[str]:
        """River's checks in which features come and go."""
        changing = {f"check_{how}_features" for how in ("emerging", "disappearing")}
        return changing | {
            "check_radically_disappearing_features",
            "check_learn_many_matches_learn_one",
        }

    def learn_one(self, x: dict[Hashable, Any], y: Hashable) -> None:
        """Learn from one point and its class, or ``None`` where that is missing."""
        self._learner.learn(self._learnable(x), [y])

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn from points in their order, much faster than one by one; a class may be missing."""
        labels = [None if gone else label for label, gone in zip(y, y.isna(), strict=True)]
        self._learner.learn(self._learnable(X), labels)

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Hashable, float]:
        """The probability of every class."""
        answer = self._learner.answer(self._points(x))[0].tolist()
        return dict(zip(self._learner.classes, answer, strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probabilities (point, class)."""
        answers = self._learner.answer(self._points(X))
        return pd.DataFrame(answers, X.index, list(self._learner.classes))

    def _learnable(self, x: Any) -> FloatArray:
        points = self._points(x)
        self._names = self._names or tuple(x.keys())
        return points

    def _points(self, x: Any) -> FloatArray:
        """Points (n, d) from one in a dictionary or several in a table."""
        names = self._names or tuple(x.keys())
        if set(x.keys()) != set(names):
            raise InputError(
                f"a point must have the features of the first, {listed(names)}; got "
                f"{listed(x.keys()) or 'none'}"
            )
        columns = as_floats([x[name] for name in names], "features")
        return as_points(np.atleast_2d(columns.T))
