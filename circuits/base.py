"""What every circuit does alike, whoever computes its steps: check the input, seed the tiles,
and carry the state from one call to the next."""

from __future__ import annotations

import itertools
import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from circuits import reference
from circuits.assembly.collection import Parts, checked_parts
from circuits.dataset import Stream, make_dataset, warn_if_unsettled, warn_of_run
from circuits.engines.progress import Progress, reporting
from circuits.errors import CircuitError, DivergenceError, InputError, ParameterError, shown
from circuits.lift import FloatArray, SphereLift, as_labels, as_points, distinct_rows
from circuits.model import CircuitModel
from circuits.parameters import CircuitParameters, format_seconds
from circuits.parts import Part, own_parts
from circuits.parts import perturbations as perturbing
from circuits.parts.delay import delayed
from circuits.parts.gain_control import FLOOR
from circuits.parts.perturbations import Perturbation, checked_perturbations
from circuits.state import CircuitState, Task, checked_state, empty_state

if TYPE_CHECKING:
    import xarray as xr

RECORDABLE = ("h", "u", "V", "y")
"""State variables that ``record`` can store at every step."""

CELLS = "cells."
"""Prefix of what a spiking circuit's state keeps of single cells."""

HUGE_RATE = 1e3
"""Settled rates have norm one at most; rates above this will not come back."""

CHUNK = 2048
"""Presentations that go through an engine at a time; bounds the memory a run needs."""

TRACE_BYTES = 64 * 2**20
"""Bound on what the traces of one chunk may take: recorded runs go in smaller chunks."""


class Circuit(ABC):
    """A two-layer circuit: subclasses say how a chunk of presentations is computed."""

    engine: str
    recordable: tuple[str, ...] = RECORDABLE
    """What ``record`` takes."""

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        *,
        model: CircuitModel | None = None,
        tile_centers: ArrayLike | None = None,
        perturbations: Iterable[Perturbation] = (),
        parts: Iterable[Part] = (),
    ) -> None:
        if not isinstance(parameters, CircuitParameters):
            raise ParameterError(f"parameters must be CircuitParameters, got {shown(parameters)}")
        if not isinstance(lift, SphereLift):
            raise ParameterError(f"lift must be a SphereLift, got {shown(lift)}")
        if model is not None and not isinstance(model, CircuitModel):
            raise ParameterError(f"model must be a CircuitModel, got {shown(model)}")
        self.parameters = parameters
        self.lift = lift
        self.perturbations = checked_perturbations(perturbations)
        """What is done to it: lesions, currents, noise, and so on."""
        self.given_model = CircuitModel() if model is None else model
        """The equations and rules as they were given."""
        self.model = delayed(self.given_model, self.perturbations)
        """The same with the delay that is among the perturbations."""
        self.model.check(parameters, lift.n_inputs)
        self.alpha = lift.alpha(parameters.tile_radius)
        """Similarity threshold, from the tile radius and the lift."""
        self.gain: float | None = None
        """Slope of tau_h dh/dt with respect to its net input, if it is constant; None under gain
        control, where it is 1/|[a]_+|."""
        if parameters.gain == "auto":
            self.gain = parameters.n_tiles / (1 - self.alpha)
        elif parameters.gain != "control":
            self.gain = float(parameters.gain)
        controlled = self.gain is None
        self.floor = FLOOR * parameters.kappa * (1 - self.alpha) if controlled else 0.0
        """Drives |[a]_+| up to this count as nothing."""
        self.parts = self._assembled(checked_parts(parts))
        """The paper's two layers, and what the circuit has besides."""
        self.parts.fit(self)
        self._state: CircuitState | None = None
        self._turn = threading.RLock()
        """Held while points are presented or the state is read."""
        if tile_centers is not None:
            centers = as_points(tile_centers, lift.n_coordinates)
            if len(centers) != parameters.n_tiles:
                raise InputError(
                    f"tile_centers must hold n_tiles={parameters.n_tiles} points, "
                    f"got {len(centers)}"
                )
            self._state = self.seeded(lift(centers))

    def _assembled(self, users: tuple[Part, ...]) -> Parts:
        """The circuit's parts."""
        return Parts(own_parts(self), users)

    def sizes(self) -> dict[str, int]:
        """Groups of cells, and how many there are."""
        p = self.parameters
        return {
            **{"inputs": self.lift.n_inputs, "excitatory": p.n_tiles},
            **{"inhibitory": p.n_interneurons, "readout": p.n_readouts},
        }

    def nothing(self) -> Task:
        """A task that shows one empty point."""
        p, streams = self.parameters, self.parts.streams(np.zeros(1, np.int64), False)
        x, z = np.zeros((1, self.lift.n_inputs)), np.zeros((1, p.n_readouts))
        return Task(x, z, True, (), False, lambda done: None, more=streams)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self._turn = threading.RLock()

    def __repr__(self) -> str:
        p, seen = self.parameters, self._state.learned if self._state is not None else 0
        sizes = [(p.n_tiles, "tile"), (p.n_interneurons, "interneuron"), (p.n_readouts, "readout")]
        sizes.append((self.lift.n_coordinates, "coordinate"))
        counts = ", ".join(f"{n} {noun}{'s' * (n != 1)}" for n, noun in sizes)
        changed = ""
        with suppress(CircuitError):  # what cannot run can still be printed
            changed = ", ".join(self.changes())
        changed = f", changed: {changed}" if changed else ""
        return (
            f"<{type(self).__name__}: {counts}, engine {self.engine}, "
            f"{seen} presentations learned{changed}>"
        )

    @property
    def n_steps(self) -> int:
        """Steps of a presentation."""
        return self.parameters.steps_per_presentation

    @property
    def dt_(self) -> float:
        """The time step in seconds."""
        return self.parameters.dt_

    def gamma(self, size: float) -> tuple[float, float, float]:
        """Step sizes of h, u and V on a drive |[a]_+| of this size: gain dt/tau_h (under gain
        control dt/(tau_h |[a]_+|)), dt/tau_u, dt/tau_V."""
        p = self.parameters
        gain = 1 / size if self.gain is None else self.gain
        return gain * p.dt_ / p.tau_h_, p.dt_ / p.tau_u_, p.dt_ / p.tau_V_

    def changes(self) -> dict[str, Any]:
        """What differs from the paper's circuit, besides parameters: empty if nothing does."""
        found = {
            "perturbations": perturbing.described(self.perturbations),
            "parts": self.parts.described(),
        }
        return self.model.changes() | {name: value for name, value in found.items() if value}

    @property
    def state(self) -> CircuitState:
        """A copy of the circuit's state: weights, rates, and how much it has seen."""
        with self._turn:
            if self._state is None:
                raise InputError("the circuit has no state yet: run it, or give it tile_centers")
            state = self._state.copy()
            self._take_changes(state)
            return state

    @state.setter
    def state(self, state: CircuitState) -> None:
        checked = self._fitting(checked_state(self, state))
        with self._turn:
            self._keep(checked)

    def _fitting(self, state: CircuitState) -> CircuitState:
        """A state without what only a spiking circuit knows: how its cells differ."""
        state.extra = {k: v for k, v in state.extra.items() if not k.startswith(CELLS)}
        return state

    def attributes(self) -> dict[str, Any]:
        """What results and files say of the circuit besides parameters, lift and model."""
        return {}

    def prepare(self, *, record: Iterable[str] = (), snapshot_every: int | None = None) -> bool:
        """Make ready what a run with these options needs; returns whether it had to compile.

        A run does this by itself; doing it before tells compiling from running.
        """
        self._checked(record, snapshot_every)
        return False

    def _checked(self, record: Iterable[str], snapshot_every: int | None) -> tuple[str, ...]:
        return checked_options(record, snapshot_every, self.recordable)

    def save(self, path: str | os.PathLike[str], **attributes: str) -> Path:
        """Write the circuit to a NetCDF file, with all it takes to go on or to predict.

        ``load`` of its class, or of the other one, makes it again. Only an earlier circuit is
        written over. ``attributes`` are texts to be kept with it, such as a comment.
        """
        from circuits.storage import saved_circuit as keeping

        return keeping.save(self, path, attributes)

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
            (T, d), in the units of the data. Unless the circuit was given ``tile_centers``, tiles
            start on those points that no tile answers (``tiles="recruit"``), or on the first
            n_tiles distinct points of the first stream (``tiles="first"``).
        labels
            (T,) or (T, r) of -1, +1, or 0 when the label channel is silent; ``None`` is silence.
        record
            Which of "h", "u", "V", "y" to store after every step, as ``h_trace`` and so on (in a
            spiking circuit also "spikes").
        snapshot_every
            Store W, b and w after every so many presentations of the circuit's life;
            ``snapshot_presentation`` says after which of this call.
        progress
            True for a progress bar on stderr, or a function of (done, total).
        """
        record = self._checked(record, snapshot_every)
        points = as_points(points, self.lift.n_coordinates)
        z = as_labels(labels, len(points), self.parameters.n_readouts)
        x = self.lift(points)
        with self._turn:
            with self._attempt(), reporting(progress, len(x), self.engine) as report:
                state = self._start(x)
                arrays = self._present(state, x, z, True, record, snapshot_every, report)
                # A caller may have made an error of the warning: then nothing has happened.
                warn_of_run(z, arrays, self)
            self._keep(state)
            return make_dataset(self, Stream(points, z, record, snapshot_every), arrays, state)

    def run_stream(
        self, chunks: Iterable[Any], *, progress: bool | Progress = False
    ) -> Iterator[xr.Dataset]:
        """Run a stream that need not fit into memory: one result per chunk, state carried over.

        ``chunks`` yields points (T, d), or pairs of points and labels.
        """
        if not isinstance(chunks, Iterable):
            raise InputError(f"chunks must be a sequence of points, got {shown(chunks)}")
        for chunk in chunks:
            if isinstance(chunk, tuple) and len(chunk) != 2:
                raise InputError(f"a chunk is points, or points and labels, got {shown(chunk)}")
            points, labels = chunk if isinstance(chunk, tuple) else (chunk, None)
            yield self.run(points, labels, progress=progress)

    def predict(self, points: ArrayLike, *, progress: bool | Progress = False) -> FloatArray:
        """Readout rates (T, r) for points, with frozen weights and silent labels.

        The circuit settles on every point as in a run, and is left as it was. An
        `UnsettledWarning` says how many points did not settle, if they are many.
        """
        return self._respond(points, progress)["y"]

    def respond(self, points: ArrayLike, *, progress: bool | Progress = False) -> FloatArray:
        """Settled tile rates h (T, m) for points, with frozen weights; see `predict`."""
        return self._respond(points, progress)["h"]

    def _respond(self, points: ArrayLike, progress: bool | Progress) -> dict[str, FloatArray]:
        points = as_points(points, self.lift.n_coordinates)
        z = np.zeros((len(points), self.parameters.n_readouts))
        with self._turn:
            before = self.state
            with self._attempt(), reporting(progress, len(points), self.engine) as report:
                state = before.copy()
                arrays = self._present(state, self.lift(points), z, False, (), None, report)
                warn_if_unsettled(arrays["change"], self)
            before.shown = state.shown
            self._keep(before)
        return arrays

    @abstractmethod
    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """Present one chunk: change ``state`` in place and return, per presentation, h, u, y and
        ``change``; traces of what is recorded; W, b and w after each presentation if snapshots
        are wanted (``W_snapshots`` and so on)."""

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Around presentations: if they fail, undo what they did besides `_state`."""
        yield

    def _start(self, x: FloatArray) -> CircuitState:
        """The state to start a stream of inputs in: the last one, or that of a new circuit."""
        if self._state is not None:
            return self.state
        state = self._idle() if self.parameters.tiles == "recruit" else self.seeded(x)
        self._take_changes(state)
        return state

    def _take_changes(self, state: CircuitState) -> None:
        """Let what the user has changed by other ways take effect on a copy of the state."""
        return

    def _keep(self, state: CircuitState) -> None:
        """Take over a state."""
        self._state = state

    def seeded(self, x: FloatArray) -> CircuitState:
        """The state of a circuit whose tiles start on inputs x: W_i = kappa x_s(i),
        b_i = kappa sqrt(alpha), w = 0."""
        p = self.parameters
        rows = distinct_rows(x, p.n_tiles)
        if len(rows) < p.n_tiles:
            raise InputError(
                f"{p.n_tiles} tiles need as many distinct points to start on, but there are only "
                f"{len(rows)} in the first {len(x)}: give more points or fewer tiles, or give "
                "tile_centers to the circuit"
            )
        h, u, V = reference.rest(p.n_tiles, p.n_interneurons, self.gain)
        return CircuitState(
            W=self.model.masked("feedforward", p.kappa * x[rows]),
            b=np.full(p.n_tiles, p.kappa * math.sqrt(self.alpha)),
            w=np.zeros((p.n_readouts, p.n_tiles)),
            h=h,
            u=u,
            V=self.model.masked("lateral", V),
            recruited=np.zeros(p.n_tiles, dtype=np.int64),
        )

    def _idle(self) -> CircuitState:
        """The state of a circuit whose tiles are all idle: they have no weights, rest at zero,
        and stay there."""
        p = self.parameters
        idle = empty_state(self)
        idle.u = reference.rest(p.n_tiles, p.n_interneurons, self.gain)[1]
        return idle

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
        for part in self._parts(first, len(x), size, learn):
            start = part.start
            # A prediction finds everything as the next presentation would.
            numbers = first + (
                np.arange(part.start, part.stop) if learn else np.zeros(len(x[part]))
            )
            for one in self.parts.all:
                one.change(state, int(numbers[0]))
            task = Task(
                x[part],
                z[part],
                learn,
                record,
                snapshot_every is not None,
                lambda done, start=start: report(start + done),  # type: ignore[misc]
                first + start,
                self.parts.streams(numbers.astype(np.int64), learn),
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

    def _parts(self, first: int, count: int, size: int, learn: bool) -> Iterator[slice]:
        """A stream in pieces of up to ``size``, cut where a part changes the state."""
        events = sorted({at - first for part in self.parts.all for at in part.events})
        cuts = [at for at in events if learn and 0 < at < count]
        for begin, end in itertools.pairwise([0, *cuts, count]):
            for start in range(begin, end, size):
                yield slice(start, min(start + size, end))

    def _chunk_size(self, record: tuple[str, ...], snapshots: bool) -> int:
        _, m, k, r = self.sizes().values()
        width = {"h": m, "u": k, "y": r, "V": m * k, "spikes": 0}
        values = self.n_steps * sum(width[name] for name in record)
        if snapshots:
            values += m * (self.lift.n_inputs + 1 + r)
        return min(CHUNK, max(1, TRACE_BYTES // (8 * values))) if values else CHUNK

    def _check_finite(self, arrays: dict[str, FloatArray], state: CircuitState, start: int) -> None:
        rates = np.concatenate([arrays["h"], arrays["u"]], axis=1)
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero(~(np.abs(rates) < HUGE_RATE).all(axis=1))
        if bad.size or not all(np.isfinite(a).all() for a in (state.W, state.b, state.w, state.V)):
            p = self.parameters
            where = start + int(bad[0]) if bad.size else start
            name = "gamma_h |[a]_+| = dt/tau_h" if self.gain is None else "gamma_h = gain dt/tau_h"
            raise DivergenceError(
                f"the rates diverged at presentation {where}: {name} = "
                f"{self.gamma(1.0)[0]:.3g} is too large for tau_u={format_seconds(p.tau_u_)} and "
                f"tau_V={format_seconds(p.tau_V_)}; raise tau_h (now {format_seconds(p.tau_h_)}) "
                f"or lower dt (now {format_seconds(p.dt_)})"
            )


def checked_options(
    record: Iterable[str],
    snapshot_every: int | None,
    recordable: tuple[str, ...] = RECORDABLE,
) -> tuple[str, ...]:
    """What ``run`` is asked to store, in the order of ``recordable``."""
    whole = isinstance(snapshot_every, int | np.integer) and not isinstance(snapshot_every, bool)
    if snapshot_every is not None and not (whole and snapshot_every >= 1):
        raise InputError(
            f"snapshot_every must be a whole number from 1, got {shown(snapshot_every)}"
        )
    several = isinstance(record, Iterable) and not isinstance(record, str)
    names: tuple[Any, ...] = tuple(record) if several else (record,)
    for name in names:
        if not isinstance(name, str) or name not in recordable:
            raise InputError(f"record takes {', '.join(recordable)}, got {shown(name)}")
    return tuple(name for name in recordable if name in names)
