"""What a circuit remembers between presentations, and what an engine is asked to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from circuits.checks import as_count, as_floats, as_number
from circuits.errors import InputError, shown
from circuits.lift import FloatArray

if TYPE_CHECKING:
    from circuits.base import Circuit


GONE = -2
"""What `CircuitState.recruited` says of a tile that a lesion has removed."""


@dataclasses.dataclass
class CircuitState:
    """All that changes while a circuit runs."""

    W: FloatArray
    b: FloatArray
    w: FloatArray
    h: FloatArray
    u: FloatArray
    V: FloatArray
    recruited: NDArray[np.int64]
    """The presentation that started each tile, counted from the circuit's first; -1 while it is
    idle, -2 once a lesion has removed it."""
    last_size: float = 1.0
    """The drive |[a]_+| of the last point that a tile answered. Under gain control, u and V that
    carry over are scaled from it to the next drive. A circuit at rest has |u| = 1."""
    learned: int = 0
    """Presentations learned from: the t of Eq. (wstep)."""
    shown: int = 0
    """Presentations shown, predictions included: the circuit's clock."""
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What a model adds, as "group.variable": delay lines, variables in a user's equations."""

    @property
    def in_use(self) -> NDArray[np.bool_]:
        """Which tiles are in use, neither idle nor removed."""
        return np.asarray(self.recruited) >= 0

    def copy(self) -> CircuitState:
        """A copy that shares no array."""
        names = ("W", "b", "w", "h", "u", "V", "recruited")
        arrays: dict[str, Any] = {name: np.copy(getattr(self, name)) for name in names}
        extra = {name: np.copy(value) for name, value in self.extra.items()}
        return dataclasses.replace(self, **arrays, extra=extra)


def empty_state(circuit: Circuit) -> CircuitState:
    """A state of zeros, in which all tiles are idle."""
    shapes = circuit.parameters.shapes(circuit.lift.n_inputs)
    arrays: dict[str, Any] = {name: np.zeros(shapes[name]) for name in "WbwhuV"}
    return CircuitState(**arrays, recruited=np.full(shapes["h"], -1))


def checked_state(circuit: Circuit, state: Any) -> CircuitState:
    """A copy of a state that fits a circuit, or an error that says what does not."""
    from circuits.parts.perturbations import takes_tiles

    if not isinstance(state, CircuitState):
        raise InputError(f"state must be a CircuitState, got {shown(state)}")
    arrays: dict[str, Any] = {}
    for name, value in vars(empty_state(circuit)).items():
        if not isinstance(value, np.ndarray):
            continue
        found = as_floats(getattr(state, name), f"the state's {name}")
        if found.shape != value.shape:
            raise InputError(
                f"the state's {name} must have the shape {value.shape}, got {found.shape}"
            )
        if not np.isfinite(found).all():
            raise InputError(f"the state's {name} must be finite")
        arrays[name] = found
    for name in ("learned", "shown"):
        arrays[name] = as_count(getattr(state, name), f"the state's {name}")
    arrays["last_size"] = as_number(state.last_size, "the state's last_size", above=0)
    arrays["recruited"] = recruited = _checked_recruited(arrays["recruited"])
    if (recruited == GONE).any() and not takes_tiles(circuit):
        raise InputError(
            f"the state has {(recruited == GONE).sum()} tiles that a lesion has removed, and this "
            "circuit has no such lesion: give it the same perturbations"
        )
    if not isinstance(state.extra, dict):
        raise InputError(f"the state's extra must be a dictionary, got {shown(state.extra)}")
    for name in state.extra:
        home, _, variable = name.partition(".")
        known = circuit.parts.lines.get(home, {})
        if home in circuit.parts.lines and variable not in known and "_past_" not in variable:
            raise InputError(
                f"the state has {name}, which this circuit has not: give it the same parts"
            )
    line = circuit.model.delay_line(circuit.parameters)
    if any("_past_" in name and name not in line for name in state.extra):
        raise InputError(
            "the state has rates on their way through a longer delay than this circuit has: give "
            "it the same delay"
        )
    return dataclasses.replace(state, **arrays).copy()


def _checked_recruited(found: FloatArray) -> NDArray[np.int64]:
    """When tiles were recruited, as whole numbers; idle tiles must come last."""
    if not ((found == np.floor(found)) & (found >= GONE)).all():
        raise InputError(
            f"the state's recruited must hold the tiles' presentations, -1 for an idle tile, or "
            f"{GONE} for one that is gone, got {shown(found)}"
        )
    if (np.diff((found[found > GONE] >= 0).astype(int)) > 0).any():
        raise InputError("the state's recruited must have its idle tiles (-1) last")
    return found.astype(np.int64)


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
    first: int = 0
    """Number of the first of them in the circuit's life: what is perturbed depends on it."""
    more: dict[str, FloatArray] = dataclasses.field(default_factory=dict)
    """Streams of the circuit's parts."""

    @property
    def streams(self) -> dict[str, FloatArray]:
        """All streams as (presentation, column), by the names they have in Brian2's texts."""
        return {"input_stream": self.x, "label_stream": self.z} | self.more


def relative_change(
    h_before: FloatArray, h: FloatArray, u_before: FloatArray, u: FloatArray
) -> FloatArray:
    """By how much a step moved the rates: the larger of |dh|/|h| and |du|/|u| (last axis).

    Where no tile responds h stays 0, and the slow decay of u does not count.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        norms = [np.linalg.norm(value, axis=-1) for value in (h - h_before, h, u - u_before, u)]
        change = np.maximum(norms[0] / norms[1], norms[2] / norms[3])
    return np.where(norms[1] == 0, norms[0], change)
