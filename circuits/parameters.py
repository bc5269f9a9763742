"""The parameters of a circuit: immutable, checked where they are given, and writable as TOML.

Durations are Brian2 quantities to the user (``parameters.tau_h`` is ``2.5 * msecond``) and plain
seconds inside (``parameters.tau_h_``, Brian2's own convention for the unitless value), so that
nothing here needs Brian2 until somebody asks for a quantity.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from circuits.checks import is_number, read_bytes
from circuits.engines.brian import import_brian2
from circuits.errors import ParameterError, shown, shown_path
from circuits.storage import files

if TYPE_CHECKING:
    from brian2 import Quantity

# Each unit as the number of them in a second: dividing by it is correctly rounded, so that
# "0.9765625 ms" is 2**-10 s to the last bit.
_PER_SECOND = {"s": 1.0, "second": 1.0, "ms": 1e3, "msecond": 1e3, "us": 1e6, "usecond": 1e6}
_PER_HERTZ = {"Hz": 1.0, "hertz": 1.0, "kHz": 1e-3, "khertz": 1e-3}
_QUANTITY = re.compile(
    r"\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*\*?\s*([a-zA-Z]+)\s*"
)


def seconds(value: Any) -> float:
    """Seconds from a Brian2 time or from text such as "8 ms"; a bare number is refused."""
    return _in_unit(value, "s", _PER_SECOND, "time", "8 ms")


def hertz(value: Any) -> float:
    """Hertz from a Brian2 rate or from text such as "90 Hz"; a bare number is refused."""
    return _in_unit(value, "s^-1", _PER_HERTZ, "rate", "90 Hz")


def _in_unit(value: Any, unit: str, per_unit: dict[str, float], what: str, such: str) -> float:
    """A quantity, or text with a unit, in SI units."""
    dimensions = getattr(value, "dim", None)
    if dimensions is not None:
        if str(dimensions) != unit or getattr(value, "shape", ()) != ():
            raise ValueError(
                f"must be one {what} such as {such.replace(' ', '*')}, got {shown(value)}"
            )
        return float(value)
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        if match and match[2] in per_unit:
            return float(match[1]) / per_unit[match[2]]
    example = such.replace(" ", "*")
    raise ValueError(
        f"must be a {what} with a unit such as {example} or '{such}', got {shown(value)}"
    )


def format_seconds(value: float) -> str:
    """The shortest text with a unit that reads back as exactly ``value`` seconds.

    >>> format_seconds(2**-10), format_seconds(0.05)
    ('0.9765625 ms', '50 ms')
    """
    for unit in ("ms", "us", "s"):
        text = f"{value * _PER_SECOND[unit]:.15g} {unit}"
        if not text.startswith("inf") and seconds(text) == value:
            return text
    return f"{value!r} s"


def format_hertz(value: float) -> str:
    """The shortest text with a unit that reads back as exactly ``value`` hertz.

    >>> format_hertz(90.0)
    '90 Hz'
    """
    text = f"{value:.15g} Hz"
    return text if float(text.split()[0]) == value else f"{value!r} Hz"


def with_unit(si: float, name: str) -> Any:
    """A field for a duration or a rate that users know as ``name``, above 0; by default ``si`` in
    SI units."""
    return Field(default=si, alias=name, gt=0, allow_inf_nan=False, validate_default=False)


def _plain(value: Any) -> Any:
    """Numbers as they are; True, or text that could be read as one, is a mistake somewhere else."""
    if is_number(value):
        return value
    raise ValueError(f"must be a number, got {shown(value)}")


Duration = Annotated[float, BeforeValidator(seconds), PlainSerializer(format_seconds)]
Frequency = Annotated[float, BeforeValidator(hertz), PlainSerializer(format_hertz)]
Number = Annotated[float, BeforeValidator(_plain)]
Count = Annotated[int, BeforeValidator(_plain), Field(ge=1)]

MOST_STEPS = 2**31 - 1
"""Steps of a presentation: engines count them in 32 bits."""

MOST_SYNAPSES = 2**25
"""Synapses of V and w together: 256 MiB of weights, for which Brian2 needs 2 GiB."""


class Parameters(BaseModel):
    """Values that are checked when they are given, cannot be changed, and read and write TOML."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_by_name=False, validate_by_alias=True
    )

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ParameterError(_sentences(error)) from None

    def replace(self, /, **changes: Any) -> Self:
        """A copy with some values changed, checked like a new one."""
        return type(self)(**(self.as_dict() | changes))

    def as_dict(self) -> dict[str, Any]:
        """The parameters as plain numbers and text: what TOML and result files hold."""
        return self.model_dump(by_alias=True, mode="json")

    def to_toml(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters to a TOML file; until it is whole, an older one stays in place."""
        lines = [f"{name} = {json.dumps(value)}" for name, value in self.as_dict().items()]
        try:
            target = Path(path)
        except TypeError:
            raise ParameterError(f"{shown(path)} is not the name of a file") from None
        files.write(target, "\n".join(lines) + "\n")

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """Read parameters from a TOML file; what it leaves out keeps its default."""
        content = read_bytes(path, ParameterError)
        name = shown_path(path)
        try:
            values = tomllib.loads(content.decode("utf-8"))
        except UnicodeDecodeError:
            raise ParameterError(f"{name} is not UTF-8 text, as TOML must be") from None
        except RecursionError:
            raise ParameterError(f"{name} is not valid TOML: it is nested too deeply") from None
        except ValueError as error:  # besides what is no TOML: numbers of thousands of digits
            reason = str(error).partition(";")[0].partition("\n")[0]
            raise ParameterError(f"{name} is not valid TOML: {reason[:150]}") from None
        return cls(**values)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.as_dict().items())
        return f"{type(self).__name__}({values})"

    __str__ = __repr__


class CircuitParameters(Parameters):
    """Everything that defines a circuit except its front end and its data.

    >>> CircuitParameters(n_tiles=40, tile_radius=0.4).n_tiles
    40
    """

    n_tiles: Count = 40
    """m, the number of excitatory cells."""
    n_interneurons: Count = 4
    """k, the number of inhibitory cells."""
    n_readouts: Count = 1
    """r, the number of readout cells, each with its own label channel."""
    tile_radius: Number = Field(default=0.28, gt=0, allow_inf_nan=False)
    """rho, in the units of the data: how far a point may lie from a tile it still drives."""
    tiles: Literal["recruit", "first"] = "recruit"
    """Where tiles start: "recruit" keeps them idle until a point comes that none answers;
    "first" puts them on the first n_tiles distinct points of the first stream."""
    recruit_below: Number = Field(default=0.5, ge=0, lt=1)
    """theta: a point to which no tile's answer 1 - (distance/rho)^2 exceeds it recruits one."""
    recycle: bool = False
    """Whether, when no tile is idle, the least used one (the smallest b) is recruited."""
    mu: Number | tuple[Number, ...] = 1000.0
    """Gain of w.h at the readout: one number, or one per readout."""
    readout: Literal["clip", "tanh"] = "clip"
    """The readout's nonlinearity, Eq. (ystep) or Eq. (ytanh)."""
    readout_rule: Literal["paper", "gated"] = "paper"
    """How w.h is weighed and w learns: "paper" is w.h and w <- w + rate (y h - w); "gated" is
    w.h/sum(h) and w <- w + rate h (y - w), which forgets only where a tile responds."""
    clamp_labels: bool = False
    """Whether a label sets y, y = z, instead of being added to the readout's input."""
    learning_rate: Number = Field(default=0.005, ge=0, le=1)
    """eta, of W and b."""
    readout_rate: Literal["running_mean"] | Number = "running_mean"
    """Rate of w: 1/(t+1), or a constant in [0, 1]; the gated rule needs a constant."""
    steps_per_presentation: Count = Field(default=80, le=MOST_STEPS)
    """S, how many steps of dt one point is shown for."""
    reset: bool = True
    """Whether h, u and V restart at every presentation or carry over."""
    gain: Literal["control", "auto"] | Number = "control"
    """Slope of tau_h dh/dt with respect to the net input: "control" is 1/|[a]_+|, measured at every
    presentation; "auto" is the constant m/(1 - alpha); 1 is the paper's."""
    initial_weight: Literal["auto"] | Number = "auto"
    """kappa, the norm of the feed-forward weights of a tile at the start; "auto" is 2/m."""
    dt_: Duration = with_unit(2.0**-10, "dt")
    tau_h_: Duration = with_unit(2.5 / 1e3, "tau_h")
    tau_u_: Duration = with_unit(25 / 1e3, "tau_u")
    tau_V_: Duration = with_unit(1 / 1e3, "tau_V")

    def __init__(self, /, **values: Any) -> None:
        super().__init__(**values)  # or type checkers expect the fields' names, not their aliases

    @field_validator("mu", mode="before")
    @classmethod
    def _plain_mu(cls, value: Any) -> Any:
        if isinstance(value, set | frozenset) or np.ma.is_masked(value):
            raise ValueError(f"must be one number or one per readout, got {shown(value)}")
        # An array of gains is what a sweep naturally has at hand.
        return tuple(np.asarray(value).tolist()) if getattr(value, "ndim", 0) == 1 else value

    @field_validator("mu")
    @classmethod
    def _check_mu(cls, value: float | tuple[float, ...]) -> float | tuple[float, ...]:
        for gain in value if isinstance(value, tuple) else (value,):
            if not (math.isfinite(gain) and gain >= 0):
                raise ValueError(f"must be finite and at least 0, got {gain}")
        return value

    @field_validator("readout_rate")
    @classmethod
    def _check_readout_rate(cls, value: str | float) -> str | float:
        if not isinstance(value, str) and not 0 <= value <= 1:
            raise ValueError(f"must be 'running_mean' or a number from 0 to 1, got {value}")
        return value

    @field_validator("gain", "initial_weight")
    @classmethod
    def _check_positive_or_named(cls, value: str | float, info: ValidationInfo) -> str | float:
        if not isinstance(value, str) and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{_WANTED[str(info.field_name)]}, got {value}")
        return value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        synapses = self.n_tiles * (self.n_interneurons + self.n_readouts)
        if synapses > MOST_SYNAPSES:
            raise ValueError(
                f"n_tiles={shown(self.n_tiles)} with n_interneurons={shown(self.n_interneurons)} "
                f"and n_readouts={shown(self.n_readouts)} is more than the {MOST_SYNAPSES} "
                f"synapses that can be held: their weights alone take {_gigabytes(8 * synapses)}"
            )
        if isinstance(self.mu, tuple) and len(self.mu) != self.n_readouts:
            raise ValueError(
                f"mu must be one number or one per readout: got {len(self.mu)} values for "
                f"n_readouts={self.n_readouts}"
            )
        if self.readout_rule == "gated" and self.readout_rate == "running_mean":
            raise ValueError(
                "readout_rule='gated' needs a constant readout_rate, such as 0.9, got "
                "'running_mean'"
            )
        if self.recycle and self.tiles == "first":
            raise ValueError(
                "recycle=True moves tiles to points that none answers, which needs "
                "tiles='recruit', got tiles='first'"
            )
        if self.tau_u_ == self.tau_V_:
            raise ValueError(
                f"tau_u and tau_V must differ, got {format_seconds(self.tau_u_)} for both: with "
                "equal rates the circuit oscillates for ever instead of settling"
            )
        for name, tau in (("tau_u", self.tau_u_), ("tau_V", self.tau_V_)):
            if self.dt_ > tau:
                raise ValueError(
                    f"dt must not exceed {name}={format_seconds(tau)}, "
                    f"got {format_seconds(self.dt_)}"
                )
        return self

    # Durations as Brian2 quantities. Importing Brian2 takes a second; whoever wants units has it.

    @property
    def dt(self) -> Quantity:
        """The time step, with its unit."""
        return _quantity(self.dt_)

    @property
    def tau_h(self) -> Quantity:
        """Time constant of the excitatory rates, with its unit."""
        return _quantity(self.tau_h_)

    @property
    def tau_u(self) -> Quantity:
        """Time constant of the inhibitory rates, with its unit."""
        return _quantity(self.tau_u_)

    @property
    def tau_V(self) -> Quantity:
        """Time constant of the lateral synapses, with its unit."""
        return _quantity(self.tau_V_)

    @property
    def kappa(self) -> float:
        """Norm of a tile's feed-forward weights at the start."""
        return 2.0 / self.n_tiles if self.initial_weight == "auto" else float(self.initial_weight)

    @property
    def mu_per_readout(self) -> tuple[float, ...]:
        """mu as one value per readout."""
        return self.mu if isinstance(self.mu, tuple) else (self.mu,) * self.n_readouts

    @classmethod
    def for_points(cls, points: ArrayLike, /, **changes: Any) -> CircuitParameters:
        """Parameters that suit points (T, d), and say on stderr what was chosen.

        Chosen, unless they are among ``changes``: ``tile_radius``, within which a point has a tenth
        of all points (more, where ``n_tiles`` tiles would not cover them); ``n_tiles``, half as
        many again as cover the points; ``mu``, 30 times the critical 1/lambda_1(E h h^T) above
        which labels spread, or 1 under the gated rule, which then also gets ``readout_rate=0.9``.
        Looks at no more than 1000 of the points.
        """
        from circuits.tuning import parameters_for

        return parameters_for(points, changes)


def _quantity(seconds: float) -> Quantity:
    import_brian2()
    from brian2 import second

    return seconds * second


def _gigabytes(count: int) -> str:
    """A number of bytes in words."""
    return f"{count / 2**30:.3g} GiB" if count < 2**80 else "more memory than there is"


_WANTED = {
    "mu": "must be one number or one per readout",
    "readout_rate": "must be 'running_mean' or a number from 0 to 1",
    "gain": "must be 'control', 'auto' or a finite number above 0",
    "initial_weight": "must be 'auto' or a finite number above 0",
}
"""What pydantic would say in one sentence per form that is allowed."""


def _sentences(error: ValidationError) -> str:
    """Complaints as one sentence that names values and allowed ranges, of three parts at most."""
    found: dict[str, str] = {}
    for complaint in error.errors(include_url=False):
        place = str(complaint["loc"][0]) if complaint["loc"] else ""
        found.setdefault(place, _sentence(place, complaint))
    rest = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(list(found.values())[:3]) + rest


def _sentence(place: str, complaint: Any) -> str:
    """One pydantic complaint as one sentence that names the value and the allowed range."""
    given = f"got {shown(complaint['input'])}"
    if complaint["type"] == "extra_forbidden":
        return f"there is no parameter {shown(place)}"
    if place in _WANTED and len(complaint["loc"]) > 1:
        return f"{place} {_WANTED[place]}, {given}"
    message = complaint["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if complaint["type"] == "value_error":
        return f"{place} {message}" if place else message
    return f"{place} {message}, {given}"
