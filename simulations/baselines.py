"""What the circuit is compared with: other ways to learn from few labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import expit

from circuits.checks import as_count, as_floats, as_number
from circuits.errors import InputError, ParameterError, shown
from circuits.lift import FloatArray, as_labels, as_points


class OnlineLogistic:
    """Logistic regression on tile outputs, one gradient step per labelled sample.

    A point h scores s = w.h + bias when it arrives. If its label z is not silent, one step down
    the gradient of the loss log(1 + exp(-z s)) follows,

        w <- w + eta z sigma(-z s) h,      bias <- bias + eta z sigma(-z s),

    with sigma the logistic function and w = 0, bias = 0 at the start; without an intercept the bias
    stays 0.

    Parameters
    ----------
    n_tiles
        m, the number of tile outputs.
    rates
        eta, constant, one per classifier. All r classifiers run side by side, each with its own
        column of labels.
    intercept
        Whether there is a bias.
    """

    def __init__(self, n_tiles: int, rates: ArrayLike, *, intercept: bool = True) -> None:
        n_tiles = as_count(n_tiles, "n_tiles", least=1)
        self.rates: FloatArray = np.array(as_floats(rates, "rates"), ndmin=1)
        allowed = np.isfinite(self.rates) & (self.rates >= 0)
        if self.rates.ndim != 1 or not self.rates.size or not allowed.all():
            raise ParameterError(f"rates must be finite and at least 0, got {shown(rates)}")
        self.w: FloatArray = np.zeros((self.rates.size, n_tiles))
        self.bias: FloatArray = np.zeros(self.rates.size)
        self.intercept = intercept

    def run(self, h: ArrayLike, labels: ArrayLike | None) -> FloatArray:
        """Learn from a stream h (T, m); return each point's scores before its update, (T, r).

        Labels (T, r), or (T,) for all classifiers alike, are -1, +1 or 0 when silent. A second
        call goes on where the first one stopped.
        """
        rows = _as_outputs(h, self.w.shape[1])
        z = as_labels(labels, len(rows), self.rates.size)
        scores = np.empty_like(z)
        start = 0
        # Between labels nothing changes: all points up to the next label are scored at once.
        for t in np.flatnonzero(z.any(axis=1)):
            scores[start : t + 1] = self._score(rows[start : t + 1])
            step = self.rates * z[t] * expit(-z[t] * scores[t])
            self.w += np.outer(step, rows[t])
            if self.intercept:
                self.bias += step
            start = t + 1
        scores[start:] = self._score(rows[start:])
        return scores

    def decision(self, h: ArrayLike) -> FloatArray:
        """Scores (T, r) of tile outputs (T, m) with the present weights; the sign is the class."""
        return self._score(_as_outputs(h, self.w.shape[1]))

    def _score(self, rows: FloatArray) -> FloatArray:
        return rows @ self.w.T + self.bias


def hebbian_mean(h: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Scores (T, r) of a stream h (T, m) by a readout that learns from labelled points alone.

    When point t (from 0) arrives, it is scored by w.h_t with w = sum_{s<t} z_s h_s / t: what the
    circuit's readout is at mu = 0, where y = z and unlabelled points leave no trace.
    """
    rows = _as_outputs(h)
    z = as_labels(labels, len(rows), np.shape(labels)[1] if np.ndim(labels) == 2 else 1)
    when, given = np.arange(len(rows)), np.flatnonzero(z.any(axis=1))
    earlier = when[:, None] > given
    scores: FloatArray = (rows @ rows[given].T * earlier) @ z[given]
    scores /= np.maximum(when, 1)[:, None]
    return scores


def graph_laplacian(h: ArrayLike) -> FloatArray:
    """L = diag(S 1) - S with S = sum_t h_t h_t^T / T, the graph of overlaps between tiles.

    Then sum_ij (w_i - w_j)^2 S_ij = 2 w^T L w, Eq. (grLap).
    """
    rows = _as_outputs(h)
    S = rows.T @ rows / len(rows)
    return np.diag(S.sum(axis=1)) - S


def label_laplacian(h: ArrayLike) -> FloatArray:
    """H^T L H with L = (diag(A 1) - A) / T^2 and A = H H^T, the graph of overlaps between points.

    Then sum_st (f_s - f_t)^2 A_st / T^2 = 2 w^T (H^T L H) w for the labels f = H w (+ b) that w
    gives to all points: the smoothness of labels, in the place of that of weights.
    """
    rows = _as_outputs(h)
    sums = rows @ rows.sum(axis=0)
    overlaps = rows.T @ rows
    penalty: FloatArray = rows.T @ (sums[:, None] * rows) - overlaps @ overlaps
    return penalty / len(rows) ** 2


class LaplacianSVM:
    """Offline linear support vector machine with Laplacian penalty, Eq. (svmLap).

    Minimises over w and b

        sum_t [1 - z_t (w.h_t + b)]_+ + lam |w|^2 + mu w^T L w,

    the sum over labelled samples, L (``graph_laplacian``) from all samples. With the Cholesky
    factor R of lam I + mu L = R^T R, v = R w and g_t = R^-T h_t this is a standard machine,
    |v|^2 + sum_t [1 - z_t (v.g_t + b)]_+, which scikit-learn solves as 1/2 |v|^2 + C sum [...]_+
    with C = 1/2 and a free intercept.

    With labels of one class only, w = 0 and b = that class is a minimum, and with no labels w = 0
    and b = 0 is: the prediction is constant. Where an interval of b is optimal (no support vector
    on the margin) b is its middle.

    Without an intercept b = 0. Its solver is the same: every labelled point is given once more, as
    -g_t with the label -z_t, and each at half the C. That leaves the sum as it is where b = 0, and
    b = 0 is optimal, because (v, -b) is worth as much as (v, b).

    Parameters
    ----------
    lam
        Weight of |w|^2, above 0: L alone leaves w free along (1, ..., 1).
    mu
        Weight of the Laplacian penalty.
    intercept
        Whether there is a b.
    """

    w: FloatArray
    b: float

    def __init__(self, lam: float, mu: float, *, intercept: bool = True) -> None:
        self.lam = as_number(lam, "lam", above=0)
        self.mu = as_number(mu, "mu", least=0)
        self.intercept = intercept

    def fit(self, h: ArrayLike, labels: ArrayLike, laplacian: FloatArray | None = None) -> Self:
        """Learn from all outputs h (T, m) seen so far and labels (T,) of -1, +1, or 0 if silent.

        ``laplacian`` is ``graph_laplacian(h)``, for those who fit many machines to one h; then the
        labelled points alone will do for h. Another penalty on w may be given instead.
        """
        rows = _as_outputs(h)
        if rows.min() < 0:
            # The penalty is a sum of squares, and the problem convex, only for overlaps >= 0.
            raise InputError(f"tile outputs must not be negative, got {rows.min():g}")
        z = as_labels(labels, len(rows), 1)[:, 0]
        labelled = z != 0
        self.w = np.zeros(rows.shape[1])
        self.b = 0.0
        if not labelled.any():
            return self
        if self.intercept and np.unique(z[labelled]).size < 2:
            self.b = float(z[labelled][0])
            return self
        L = graph_laplacian(rows) if laplacian is None else as_floats(laplacian, "laplacian")
        m = rows.shape[1]
        if L.shape != (m, m) or not np.isfinite(L).all():
            raise InputError(f"laplacian must be finite and of shape ({m}, {m}), got {L.shape}")
        try:
            R = cholesky(self.lam * np.eye(m) + self.mu * L)
        except (LinAlgError, ValueError):
            raise ParameterError(
                f"lam={self.lam:g} and mu={self.mu:g} make no penalty that can be inverted: "
                "give a larger lam or a smaller mu"
            ) from None
        g = solve_triangular(R, rows[labelled].T, trans="T").T
        if self.intercept:
            machine = _solve(g, z[labelled], 0.5)
            self.b = float(machine.intercept_[0])
        else:
            mirrored = np.concatenate([z[labelled], -z[labelled]])
            machine = _solve(np.concatenate([g, -g]), mirrored, 0.25)
        self.w = solve_triangular(R, machine.coef_[0])
        return self

    def decision(self, h: ArrayLike) -> FloatArray:
        """w.h + b of tile outputs (T, m); the sign is the class."""
        if not hasattr(self, "w"):
            raise InputError("the machine has learned nothing yet: fit it first")
        return _as_outputs(h, self.w.size) @ self.w + self.b


@dataclass(frozen=True)
class Transduction:
    """Labels spread over all points of a data set."""

    scores: FloatArray
    """p(+1) - p(-1) of every point, in [-1, 1]; 0 where no label has arrived."""
    converged: bool
    """Whether the iteration stopped by itself, within ``n_iterations``."""
    n_iterations: int


def label_spreading(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    kernel: Literal["rbf", "knn"] = "rbf",
    gamma: float = 20.0,
    n_neighbors: int = 7,
    alpha: float = 0.2,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Transduction:
    """scikit-learn's LabelSpreading on raw points; labels are -1, +1, or 0 if silent.

    ``gamma`` (of exp(-gamma d^2)) belongs to the kernel "rbf", ``n_neighbors`` to "knn". A given
    label keeps the share 1 - ``alpha`` and may be overruled.
    """
    from sklearn.semi_supervised import LabelSpreading

    model = LabelSpreading(
        kernel, gamma=gamma, n_neighbors=n_neighbors, alpha=alpha, max_iter=max_iter, tol=tol
    )
    return _transduce(model, points, labels)


def label_propagation(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    kernel: Literal["rbf", "knn"] = "rbf",
    gamma: float = 20.0,
    n_neighbors: int = 7,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Transduction:
    """scikit-learn's LabelPropagation on raw points; labels are -1, +1, or 0 if silent.

    As ``label_spreading``, but given labels stay as they are.
    """
    from sklearn.semi_supervised import LabelPropagation

    model = LabelPropagation(
        kernel, gamma=gamma, n_neighbors=n_neighbors, max_iter=max_iter, tol=tol
    )
    return _transduce(model, points, labels)


def nearest_chain(points: ArrayLike, labels: ArrayLike, window: int) -> FloatArray:
    """Answers (T,) of a stream by the chain of nearest neighbours: every point takes the answer of
    the nearest of the ``window`` points before it.

    A label, -1 or +1 where it is not 0, is its point's answer from then on; the answer to a point
    is what it had before its label came. Points without an answer (0) are no neighbours.
    """
    array, z, window = *_as_stream(points, labels), as_count(window, "window", least=1)
    nearest = _nearest_before(array, window)
    given, found = np.zeros(len(array)), np.zeros(len(array))
    for t in range(len(array)):
        found[t] = given[nearest[t]]
        if not found[t]:  # the nearest has no answer: look for one that has
            recent = slice(max(t - window, 0), t)
            known = given[recent]
            if known.any():
                apart = ((array[recent] - array[t]) ** 2).sum(axis=1)
                found[t] = known[np.where(known != 0, apart, np.inf).argmin()]
        given[t] = z[t] or found[t]
    return found


def _nearest_before(points: FloatArray, window: int) -> NDArray[np.intp]:
    """The number of the nearest of the ``window`` points before each, the oldest of several; the
    first, which has none before it, is given itself."""
    when = np.arange(len(points))
    nearest, least = when.copy(), np.full(len(points), np.inf)
    for lag in range(1, min(window + 1, len(points))):
        apart = ((points[:-lag] - points[lag:]) ** 2).sum(axis=1)
        closer = apart <= least[lag:]
        least[lag:][closer] = apart[closer]
        nearest[lag:][closer] = when[:-lag][closer]
    return nearest


def window_propagation(
    points: ArrayLike, labels: ArrayLike, window: int, every: int, gamma: float = 20.0
) -> FloatArray:
    """Answers (T,) of a stream by label propagation on a window that slides: ``every`` points at
    once get theirs from the answers of the ``window`` points before them and from each other.

    Labels count from their point on, as in `nearest_chain`, but the points that come together may
    look ahead: each gets its answer when all of them are there.
    """
    array, z = _as_stream(points, labels)
    window, every = as_count(window, "window", least=1), as_count(every, "every", least=1)
    given, found = np.zeros(len(array)), np.zeros(len(array))
    for start in range(0, len(array), every):
        first, end = max(start - window, 0), start + every
        if given[first:start].any():
            spread = label_propagation(array[first:end], given[first:end], gamma=gamma).scores
            found[start:end] = np.sign(spread[start - first :])
        given[start:end] = np.where(z[start:end] != 0, z[start:end], found[start:end])
    return found


def _as_stream(points: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, FloatArray]:
    array = as_points(points)
    return array, as_labels(labels, len(array), 1)[:, 0]


def _transduce(model: Any, points: ArrayLike, labels: ArrayLike) -> Transduction:
    from sklearn.exceptions import ConvergenceWarning

    array = as_points(points)
    z = as_labels(labels, len(array), 1)[:, 0]
    if not z.any():
        return Transduction(np.zeros(len(array)), converged=True, n_iterations=0)
    # There -1 stands for silence, so the classes -1 and +1 become 0 and 1.
    target = np.where(z == 0, -1, (z > 0).astype(int))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # The result itself says whether it converged.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(array, target)
        except ValueError as error:  # arguments, which scikit-learn names in a sentence
            raise ParameterError(str(error).partition("\n")[0][:250]) from None
    # From the shares and not from ``transduction_``, which gives class -1 to unreached points.
    scores: FloatArray = model.label_distributions_ @ (2.0 * model.classes_ - 1)
    if not np.isfinite(scores).all():
        raise InputError("labels do not spread over points so far apart: use another unit")
    return Transduction(scores, model.n_iter_ < model.max_iter, model.n_iter_)


def _solve(g: FloatArray, z: FloatArray, C: float) -> Any:
    """Fit a standard machine, as exactly as its solver can.

    scikit-learn's default tolerance of 1e-3 is visible in w, and 1e-6 costs little. But now and
    then (labelled points that no tile covers are all at g = 0) rounding keeps the solver from ever
    reaching it, and it would go round for ever; a wider tolerance is then the best there is.
    """
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    for tolerance in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
        machine = SVC(C=C, kernel="linear", tol=tolerance, max_iter=100_000)
        # What is given here is known to be in order, and looking takes as long as solving.
        unchecked = config_context(assume_finite=True, skip_parameter_validation=True)
        with unchecked, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(g, z)
        if machine.fit_status_ == 0:
            return machine
    raise InputError("the support vector machine did not converge on these outputs and labels")


def _as_outputs(h: ArrayLike, n_tiles: int | None = None) -> FloatArray:
    """Tile outputs as a finite array (T, m)."""
    array = as_floats(h, "tile outputs")
    if array.ndim != 2 or array.size == 0 or n_tiles not in (None, array.shape[1]):
        wanted = "(T, m)" if n_tiles is None else f"(T, {n_tiles})"
        raise InputError(f"tile outputs must have the shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        raise InputError("tile outputs must be finite")
    return array
