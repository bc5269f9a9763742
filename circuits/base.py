"""What every circuit does alike, whoever computes its steps: check the input, seed the tiles,
carry the state from one call to the next, diagnose the run, and return it as a data set."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from circuits import rules
from circuits.errors import DivergenceError, InputError, ParameterError, UnsettledWarning
from circuits.lift import FloatArray, SphereLift, as_labels, as_points, distinct_rows
from circuits.parameters import CircuitParameters, format_seconds

if TYPE_CHECKING:
    import xarray as xr

RECORDABLE = ("h", "u", "V", "y")
"""State variables that ``record`` can store at every step."""

SETTLED_CHANGE = 1e-6
"""A presentation has settled when its last step moved it by less (see `relative_change`)."""

UNSETTLED_SHARE = 0.2
"""A run in which more than this share of presentations did not settle says so with a warning."""

HUGE_RATE = 1e3
"""Settled rates have norm one at most; rates above this will not come back."""

CHUNK = 2048
"""Presentations that go through an engine at a time; bounds the memory a run needs."""

TRACE_BYTES = 64 * 2**20
"""Bound on what the traces of one chunk may take: recorded runs go in smaller chunks."""

Progress = Callable[[int, int], None]
"""Called with the presentations done and the presentations in all."""


@dataclasses.dataclass
class CircuitState:
    """All that changes while a circuit runs."""

    W: FloatArray
    b: FloatArray
    w: FloatArray
    h: FloatArray
    u: FloatArray
    V: FloatArray
    learned: int = 0
    """Presentations learned from: the t of Eq. (wstep)."""
    shown: int = 0
    """Presentations shown, predictions included: the circuit's clock."""

    def copy(self) -> CircuitState:
        """A copy that shares no array."""
        arrays: dict[str, Any] = {
            name: np.copy(getattr(self, name)) for name in ("W", "b", "w", "h", "u", "V")
        }
        return dataclasses.replace(self, **arrays)


@dataclasses.dataclass(frozen=True)
class Task:
    """One chunk of a stream for an engine: inputs, labels, and what to do with them."""

    x: FloatArray
    z: FloatArray
    learn: bool
    record: tuple[str, ...]
    snapshots: bool
    report: Callable[[int], None]
    """Called with the presentations of this chunk that are done."""


class Circuit(ABC):
    """A two-layer circuit: subclasses say how a chunk of presentations is computed."""

    engine: str

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        *,
        tile_centers: ArrayLike | None = None,
    ) -> None:
        if not isinstance(parameters, CircuitParameters):
            raise ParameterError(f"parameters must be CircuitParameters, got {parameters!r}")
        if not isinstance(lift, SphereLift):
            raise ParameterError(f"lift must be a SphereLift, got {lift!r}")
        self.parameters = parameters
        self.lift = lift
        self.alpha = lift.alpha(parameters.tile_radius)
        """Similarity threshold, from the tile radius and the lift."""
        self.gain = (
            parameters.n_tiles / (1 - self.alpha)
            if parameters.gain == "auto"
            else float(parameters.gain)
        )
        """Slope of dh/dt with respect to its net input."""
        self._state: CircuitState | None = None
        if tile_centers is not None:
            centers = as_points(tile_centers, lift.n_coordinates)
            if len(centers) != parameters.n_tiles:
                raise InputError(
                    f"tile_centers must hold n_tiles={parameters.n_tiles} points, "
                    f"got {len(centers)}"
                )
            self._state = self._seed(lift(centers))

    @property
    def gamma(self) -> tuple[float, float, float]:
        """Step sizes of h, u and V: gain dt/tau_h, dt/tau_u, dt/tau_V."""
        p = self.parameters
        return self.gain * p.dt_ / p.tau_h_, p.dt_ / p.tau_u_, p.dt_ / p.tau_V_

    @property
    def state(self) -> CircuitState:
        """A copy of the circuit's state: weights, rates, and how much it has seen."""
        if self._state is None:
            raise InputError("the circuit has no state yet: run it, or give it tile_centers")
        return self._state.copy()

    @state.setter
    def state(self, state: CircuitState) -> None:
        p, n = self.parameters, self.lift.n_inputs
        m, k, r = p.n_tiles, p.n_interneurons, p.n_readouts
        shapes = {"W": (m, n), "b": (m,), "w": (r, m), "h": (m,), "u": (k,), "V": (k, m)}
        for name, shape in shapes.items():
            if np.shape(getattr(state, name)) != shape:
                found = np.shape(getattr(state, name))
                raise InputError(f"the state's {name} must have the shape {shape}, got {found}")
        self._state = state.copy()

    def run(
        self,
        points: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        record: Iterable[str] = (),
        snapshot_every: int | None = None,
        progress: bool | Progress = False,
    ) -> xr.Dataset:
        """Present points one after the other, learn from each, and return what happened.

        The circuit goes on where the last call stopped: two halves of a stream give what the
        whole gives. If the call fails or is interrupted, the circuit is as it was before.

        Parameters
        ----------
        points
            (T, d), in the units of the data. Unless the circuit was given ``tile_centers``, the
            first n_tiles distinct points of its first stream are where the tiles start.
        labels
            (T,) or (T, r) of -1, +1, or 0 when the label channel is silent; ``None`` is silence.
        record
            Which of "h", "u", "V", "y" to store after every step, as ``h_trace`` and so on.
        snapshot_every
            Store W, b and w after every so many presentations of the circuit's life;
            ``snapshot_presentation`` says after which of this call.
        progress
            True for a progress bar on stderr, or a function of (done, total).
        """
        record = _checked_record(record)
        if snapshot_every is not None and not (
            isinstance(snapshot_every, int | np.integer) and snapshot_every >= 1
        ):
            raise InputError(f"snapshot_every must be a whole number from 1, got {snapshot_every}")
        points = as_points(points, self.lift.n_coordinates)
        z = as_labels(labels, len(points), self.parameters.n_readouts)
        x = self.lift(points)
        state = self._seed(x) if self._state is None else self._state.copy()
        with _reporting(progress, len(x), self.engine) as report:
            arrays = self._present(state, x, z, True, record, snapshot_every, report)
        self._state = state
        return self._dataset(points, z, arrays, state, record, snapshot_every)

    def prepare(self, *, record: Iterable[str] = (), snapshot_every: int | None = None) -> bool:
        """Compile what a run with these options needs; whether anything had to be compiled."""
        return False

    def run_stream(
        self, chunks: Iterable[Any], *, progress: bool | Progress = False
    ) -> Iterator[xr.Dataset]:
        """Run a stream that need not fit into memory: one result per chunk, state carried over.

        ``chunks`` yields points (T, d), or pairs of points and labels.
        """
        for chunk in chunks:
            points, labels = chunk if isinstance(chunk, tuple) else (chunk, None)
            yield self.run(points, labels, progress=progress)

    def predict(self, points: ArrayLike, *, progress: bool | Progress = False) -> FloatArray:
        """Readout rates (T, r) for points, with frozen weights and silent labels.

        The circuit settles on every point as in a run, and is left as it was.
        """
        return self._respond(points, progress)["y"]

    def respond(self, points: ArrayLike, *, progress: bool | Progress = False) -> FloatArray:
        """Settled tile rates h (T, m) for points, with frozen weights; see `predict`."""
        return self._respond(points, progress)["h"]

    def _respond(self, points: ArrayLike, progress: bool | Progress) -> dict[str, FloatArray]:
        points = as_points(points, self.lift.n_coordinates)
        state = self.state
        z = np.zeros((len(points), self.parameters.n_readouts))
        with _reporting(progress, len(points), self.engine) as report:
            arrays = self._present(state, self.lift(points), z, False, (), None, report)
        if self._state is not None:
            self._state.shown = state.shown
        return arrays

    @abstractmethod
    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """Present one chunk: change ``state`` in place and return, per presentation, h, u, y and
        ``change``; traces of what is recorded; W, b and w after each presentation if snapshots
        are wanted (``W_snapshots`` and so on)."""

    def _seed(self, x: FloatArray) -> CircuitState:
        """Tiles start on data: W_i = kappa x_s(i), b_i = kappa sqrt(alpha); w starts at zero."""
        p = self.parameters
        rows = distinct_rows(x, p.n_tiles)
        if len(rows) < p.n_tiles:
            raise InputError(
                f"{p.n_tiles} tiles need as many distinct points to start on, but there are only "
                f"{len(rows)} in the first {len(x)}: give more points or fewer tiles, or give "
                "tile_centers to the circuit"
            )
        h, u, V = rules.rest(p.n_tiles, p.n_interneurons, self.gain)
        return CircuitState(
            W=p.kappa * x[rows],
            b=np.full(p.n_tiles, p.kappa * math.sqrt(self.alpha)),
            w=np.zeros((p.n_readouts, p.n_tiles)),
            h=h,
            u=u,
            V=V,
        )

    def _present(
        self,
        state: CircuitState,
        x: FloatArray,
        z: FloatArray,
        learn: bool,
        record: tuple[str, ...],
        snapshot_every: int | None,
        report: Callable[[int], None],
    ) -> dict[str, FloatArray]:
        """Run a stream through the engine in chunks and put the pieces together."""
        pieces: list[dict[str, FloatArray]] = []
        first = state.learned
        size = self._chunk_size(record, snapshot_every is not None)
        for start in range(0, len(x), size):
            part = slice(start, min(start + size, len(x)))
            task = Task(
                x[part],
                z[part],
                learn,
                record,
                snapshot_every is not None,
                lambda done, start=start: report(start + done),  # type: ignore[misc]
            )
            arrays = self._advance(state, task)
            self._check_finite(arrays, state, start)
            if snapshot_every is not None:
                # Counted from the circuit's first presentation, so that pieces fit together.
                keep = (first + np.arange(part.start, part.stop) + 1) % snapshot_every == 0
                for name in ("W_snapshots", "b_snapshots", "w_snapshots"):
                    arrays[name] = arrays[name][keep]
            pieces.append(arrays)
            report(part.stop)
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def _chunk_size(self, record: tuple[str, ...], snapshots: bool) -> int:
        p = self.parameters
        width = {"h": p.n_tiles, "u": p.n_interneurons, "y": p.n_readouts}
        width["V"] = p.n_tiles * p.n_interneurons
        values = p.steps_per_presentation * sum(width[name] for name in record)
        if snapshots:
            values += p.n_tiles * (self.lift.n_inputs + 1 + p.n_readouts)
        return min(CHUNK, max(1, TRACE_BYTES // (8 * values))) if values else CHUNK

    def _check_finite(self, arrays: dict[str, FloatArray], state: CircuitState, start: int) -> None:
        rates = np.concatenate([arrays["h"], arrays["u"]], axis=1)
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero(~(np.abs(rates) < HUGE_RATE).all(axis=1))
        if bad.size or not all(np.isfinite(a).all() for a in (state.W, state.b, state.w, state.V)):
            p = self.parameters
            where = start + int(bad[0]) if bad.size else start
            raise DivergenceError(
                f"the rates diverged at presentation {where}: gamma_h = gain dt/tau_h = "
                f"{self.gamma[0]:.3g} is too large for tau_u={format_seconds(p.tau_u_)} and "
                f"tau_V={format_seconds(p.tau_V_)}; raise tau_h (now {format_seconds(p.tau_h_)}) "
                f"or lower dt (now {format_seconds(p.dt_)})"
            )

    def _dataset(
        self,
        points: FloatArray,
        z: FloatArray,
        arrays: dict[str, FloatArray],
        state: CircuitState,
        record: tuple[str, ...],
        snapshot_every: int | None,
    ) -> xr.Dataset:
        import xarray as xr

        dims = {
            "h": ("tile",),
            "u": ("interneuron",),
            "y": ("readout",),
            "W": ("tile", "input"),
            "b": ("tile",),
            "w": ("readout", "tile"),
            "V": ("interneuron", "tile"),
        }
        first = state.learned - len(points)
        data: dict[str, Any] = {
            name: (("presentation", *dims[name]), arrays[name]) for name in "huy"
        }
        data |= {name: (dims[name], getattr(state, name).copy()) for name in ("W", "b", "w", "V")}
        data["points"] = (("presentation", "coordinate"), points.copy())
        data["labels"] = (("presentation", "readout"), z.astype(np.int8))
        data["change"] = (("presentation",), arrays["change"])
        data["covered"] = (("presentation",), arrays["h"].any(axis=1))
        for name in record:
            data[f"{name}_trace"] = (
                ("presentation", "step", *dims[name]),
                arrays[f"{name}_trace"],
            )
        if snapshot_every is not None:
            for name in ("W", "b", "w"):
                data[f"{name}_snapshots"] = (("snapshot", *dims[name]), arrays[f"{name}_snapshots"])
            shown = np.arange(len(points))
            data["snapshot_presentation"] = (
                ("snapshot",),
                shown[(first + shown + 1) % snapshot_every == 0],
            )
        unsettled = float((arrays["change"] > SETTLED_CHANGE).mean())
        if unsettled > UNSETTLED_SHARE:
            warnings.warn(
                f"{unsettled:.0%} of {len(points)} presentations were still moving at their last "
                f"step (relative change above {SETTLED_CHANGE:g}): raise steps_per_presentation "
                f"(now {self.parameters.steps_per_presentation}) or change tau_h, tau_u, tau_V",
                UnsettledWarning,
                stacklevel=3,
            )
        attributes = {
            "engine": self.engine,
            "parameters": json.dumps(self.parameters.as_dict()),
            "lift": json.dumps(self.lift.as_dict()),
            "alpha": self.alpha,
            "gain": self.gain,
            "first_presentation": first,
            "unsettled_share": unsettled,
            "uncovered_share": float((~data["covered"][1]).mean()),
            "versions": json.dumps(versions()),
        }
        return xr.Dataset(data, _coordinates(data, first, self.parameters), attributes)


DESCRIPTIONS = {
    "presentation": "presentation, counted from the circuit's first",
    "step": "step of a presentation, counted from 1",
    "snapshot": "presentations learned from when the weights were stored",
    "tile": "excitatory cell",
    "interneuron": "inhibitory cell",
    "readout": "readout cell",
    "input": "component of the lifted input",
    "coordinate": "component of a point, in the units of the data",
}
"""What the dimensions of a result count."""


def _coordinates(data: dict[str, Any], first: int, p: CircuitParameters) -> dict[str, Any]:
    """A coordinate for every dimension of a result, and the time of every step."""
    sizes = {
        dim: size
        for dims, values in data.values()
        for dim, size in zip(dims, values.shape, strict=True)
    }
    found: dict[str, Any] = {dim: np.arange(size) for dim, size in sizes.items()}
    found["presentation"] = first + found["presentation"]
    if "step" in found:
        found["step"] = 1 + found["step"]
        about = {"units": "s", "long_name": "time since the presentation began"}
        found["time"] = ("step", p.dt_ * found["step"], about)
    if "snapshot" in found:
        found["snapshot"] = first + 1 + data["snapshot_presentation"][1]
    for dim, about in DESCRIPTIONS.items():
        if dim in found:
            found[dim] = (dim, found[dim], {"units": "1", "long_name": about})
    return found


def relative_change(
    h_before: FloatArray, h: FloatArray, u_before: FloatArray, u: FloatArray
) -> FloatArray:
    """By how much a step moved the rates: the larger of |dh|/|h| and |du|/|u| (last axis).

    Where no tile responds h = 0 is where it will stay, and the slow fading of u does not count.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        norms = [np.linalg.norm(value, axis=-1) for value in (h - h_before, h, u - u_before, u)]
        change = np.maximum(norms[0] / norms[1], norms[2] / norms[3])
    return np.where(norms[1] == 0, norms[0], change)


@lru_cache
def versions() -> dict[str, str]:
    """Versions of what a result depends on, by name."""
    found = {"python": platform.python_version()}
    for name in ("manifold-circuit", "brian2", "numpy", "scipy", "xarray"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _checked_record(record: Iterable[str]) -> tuple[str, ...]:
    names = (record,) if isinstance(record, str) else tuple(record)
    for name in names:
        if name not in RECORDABLE:
            raise InputError(f"record takes {', '.join(RECORDABLE)}, got {name!r}")
    return tuple(name for name in RECORDABLE if name in names)


@contextmanager
def _reporting(
    progress: bool | Progress, total: int, title: str
) -> Iterator[Callable[[int], None]]:
    """A function of the presentations done that shows them the way the caller wants."""
    if callable(progress):
        show = progress
        yield lambda done: show(done, total)
    elif progress:
        from tqdm import tqdm

        with tqdm(total=total, desc=title, unit="pt", mininterval=0.2) as bar:

            def update(done: int) -> None:
                bar.update(done - bar.n)

            yield update
    else:
        yield lambda done: None
