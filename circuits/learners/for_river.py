"""The circuit in river's conventions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from circuits.checks import as_floats
from circuits.errors import InputError, PackageError, listed
from circuits.learners.classifier import ManifoldClassifier
from circuits.learners.stream import StreamLearner
from circuits.lift import FloatArray, as_points

try:
    from river.base import MiniBatchClassifier
except ImportError:
    raise PackageError("circuits.learners.for_river needs river: pip install river") from None

if TYPE_CHECKING:
    import pandas as pd


class RiverManifoldClassifier(MiniBatchClassifier):  # type: ignore[misc]  # taken as without types
    """`ManifoldClassifier` for river: ``learn_one(x, y)``, and ``learn_one(x, None)`` for a point
    without a label.

    A point has the features of the first one, whatever their order; others are refused, since a
    point without one of its coordinates has no place. Until the first points have been learned, all
    classes that are known are as likely, and the answer is empty while there is none.

    Parameters
    ----------
    model
        A `ManifoldClassifier` with the parameters to use; ``None`` is one with its defaults.
    first
        How many points are kept before they are learned: they decide about place and reach of the
        tiles.
    classes
        All there will be; ``None`` are those that the first points have. Where labels are rare,
        name them.
    """

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

    @property
    def _multiclass(self) -> bool:
        return True

    def _unit_test_skips(self) -> set[str]:
        """Those of river's checks in which features come and go."""
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
        return dict(zip(self._learner.classes, self._answer(x)[0].tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probabilities (point, class)."""
        import pandas as pd

        return pd.DataFrame(self._answer(X), X.index, list(self._learner.classes))

    def _learnable(self, x: Any) -> FloatArray:
        points = self._points(x)
        self._names = self._names or tuple(x.keys())
        return points

    def _answer(self, x: Any) -> FloatArray:
        return self._learner.answer(self._points(x))

    def _points(self, x: Any) -> FloatArray:
        """Points (n, d) from one in a dictionary or several in a table."""
        names = self._names or tuple(x.keys())
        if set(x.keys()) != set(names):
            raise InputError(
                f"a point must have the features of the first, {listed(names)}; got "
                f"{listed(x.keys()) or 'none'}"
            )
        columns = as_floats([x[name] for name in names], "features")
        return as_points(columns.T if columns.ndim == 2 else columns[None])
