"""The circuit in CapyMOA's conventions."""

from __future__ import annotations

from typing import Any

from circuits.errors import PackageError
from circuits.learners.classifier import ManifoldClassifier
from circuits.learners.stream import StreamLearner
from circuits.lift import FloatArray, as_points

try:
    from capymoa.base import ClassifierSSL
except ImportError:
    raise PackageError(
        "circuits.learners.for_capymoa needs CapyMOA: pip install 'manifold-circuit[capymoa]'"
    ) from None


class CapyMOAManifoldClassifier(ClassifierSSL):  # type: ignore[misc]  # taken as without types
    """`ManifoldClassifier` for CapyMOA: ``train`` with a label, ``train_on_unlabeled`` without.

    There is no answer (``None``) until the first points have been learned. Attributes that are
    names count as their numbers.

    Parameters
    ----------
    schema
        Of the stream: it names all classes.
    random_seed
        What CapyMOA gives every learner; nothing here is random.
    model
        A `ManifoldClassifier` with the parameters to use; ``None`` is one with its defaults.
    first
        How many points are kept before they are learned: they decide place and reach of the tiles.
    """

    def __init__(
        self,
        schema: Any,
        random_seed: int = 1,
        *,
        model: ManifoldClassifier | None = None,
        first: int = 200,
    ) -> None:
        super().__init__(schema, random_seed)
        self._learner = StreamLearner(model, first, schema.get_label_indexes())

    def train(self, instance: Any) -> None:
        """Learn from a point and its class, which CapyMOA has as -1 where it is missing."""
        label = instance.y_index if instance.y_index >= 0 else None
        self._learner.learn(self._point(instance), [label])

    def train_on_unlabeled(self, instance: Any) -> None:
        """Learn from a point alone, whatever class it may carry."""
        self._learner.learn(self._point(instance), [None])

    def predict_proba(self, instance: Any) -> FloatArray | None:
        """The probability of every class; the base class predicts the most likely one."""
        point = self._point(instance)
        return self._learner.answer(point)[0] if self._learner.started else None

    def _point(self, instance: Any) -> FloatArray:
        return as_points([instance.x], self.schema.get_num_attributes())
