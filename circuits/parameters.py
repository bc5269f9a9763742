"""The parameters of a circuit: immutable, checked where they are given, and writable as TOML.

Durations are Brian2 quantities to the user (``parameters.tau_h`` is ``2.5 * msecond``) and plain
seconds inside (``parameters.tau_h_``), so that only quantities import Brian2 (it takes a second).
"""

from __future__ import annotations

import json
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
    field_validator,
    model_validator,
)

from circuits.checks import is_number, read_bytes
from circuits.engines.brian import import_brian2
from circuits.errors import ParameterError, shown, shown_path
from circuits.storage import files

if TYPE_CHECKING:
    from brian2 import Quantity

# Units per second: dividing is correctly rounded, so that "0.9765625 ms" is exactly 2**-10 s.
_PER_SECOND = {"s": 1.0, "second": 1.0, "ms": 1e3, "msecond": 1e3, "us": 1e6, "usecond": 1e6}
_PER_HERTZ = {"Hz": 1.0, "hertz": 1.0, "kHz": 1e-3, "khertz": 1e-3}
_QUANTITY = re.compile(
    r"\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*\*?\s*([a-zA-Z]+)\s*"
)


def seconds(value: Any) -> float:
    """Seconds from a Brian2 time or from text such as "8 ms"; a bare number is refused."""
    return _in_unit(value, "s", _PER_SECOND, "time with a unit such as 8*ms or '8 ms'")


def hertz(value: Any) -> float:
    """Hertz from a Brian2 rate or from text such as "90 Hz"; a bare number is refused."""
    return _in_unit(value, "s^-1", _PER_HERTZ, "rate with a unit such as 90*Hz or '90 Hz'")


def _in_unit(value: Any, dimension: str, per_unit: dict[str, float], wanted: str) -> float:
    if str(getattr(value, "dim", None)) == dimension and getattr(value, "shape", ()) == ():
        return float(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match and match[2] in per_unit:
        return float(match[1]) / per_unit[match[2]]
    raise ValueError(f"must be a {wanted}, got {shown(value)}")


def format_seconds(value: float) -> str:
    """The shortest text with a unit that reads back as exactly ``value`` seconds."""
    for unit in ("ms", "us", "s"):
        number = f"{value * _PER_SECOND[unit]:.15g}"
        if float(number) / _PER_SECOND[unit] == value:
            return f"{number} {unit}"
    return f"{value!r} s"


def format_hertz(value: float) -> str:
    """The shortest text with a unit that reads back as exactly ``value`` hertz."""
    number = f"{value:.15g}"
    return f"{number if float(number) == value else repr(value)} Hz"


def with_unit(si: float, name: str) -> Any:
    """A field for a positive duration or rate: its default in SI units and the name users know."""
    return Field(default=si, alias=name, gt=0, allow_inf_nan=False, validate_default=False)


def _plain(value: Any) -> Any:
    if is_number(value):  # pydantic would also take True and "1"
        return value
    raise ValueError(f"must be a number, got {shown(value)}")


MOST_STEPS = 2**31 - 1
"""The largest count: engines count in 32 bits."""

MOST_SYNAPSES = 2**25
"""Synapses of V and w together: 256 MiB of weights, for which Brian2 needs 2 GiB."""

Duration = Annotated[float, BeforeValidator(seconds), PlainSerializer(format_seconds)]
Frequency = Annotated[float, BeforeValidator(hertz), PlainSerializer(format_hertz)]
Number = Annotated[float, BeforeValidator(_plain)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_plain)]
Gain = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_plain)]
Count = Annotated[int, BeforeValidator(_plain), Field(ge=1, le=MOST_STEPS)]


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
        try:
            values = tomllib.loads(content.decode())
        except (ValueError, RecursionError) as error:
            reason = str(error)[:150]
            raise ParameterError(f"{shown_path(path)} is not valid TOML: {reason}") from None
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
    tile_radius: Positive = 0.28
    """rho, in the units of the data: a tile responds to points nearer than this."""
    tiles: Literal["recruit", "first"] = "recruit"
    """Where tiles start: "recruit" keeps a tile idle until a point comes that no tile responds to;
    "first" puts them on the first n_tiles distinct points of the first stream."""
    recruit_below: Number = Field(default=0.5, ge=0, lt=1)
    """theta: a point recruits a tile unless a tile's answer 1 - (distance/rho)^2 exceeds theta."""
    recycle: bool = False
    """Whether to recruit the least used tile (the smallest b) when no tile is idle."""
    mu: Gain | Annotated[tuple[Gain, ...], Field(strict=True)] = 1000.0
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
    readout_rate: Literal["running_mean"] | Annotated[Number, Field(ge=0, le=1)] = "running_mean"
    """Rate of w: 1/(t+1), or a constant in [0, 1]; the gated rule needs a constant."""
    steps_per_presentation: Count = 80
    """S, how many steps of dt one point is shown for."""
    reset: bool = True
    """Whether h, u and V restart at every presentation or carry over."""
    gain: Literal["control", "auto"] | Positive = "control"
    """Slope of tau_h dh/dt with respect to the net input: "control" is 1/|[a]_+|, measured at every
    presentation; "auto" is the constant m/(1 - alpha); 1 is the paper's."""
    initial_weight: Literal["auto"] | Positive = "auto"
    """kappa, the norm of the feed-forward weights of a tile at the start; "auto" is 2/m."""
    dt_: Duration = with_unit(2.0**-10, "dt")
    tau_h_: Duration = with_unit(2.5 / 1e3, "tau_h")
    tau_u_: Duration = with_unit(25 / 1e3, "tau_u")
    tau_V_: Duration = with_unit(1 / 1e3, "tau_V")

    def __init__(self, /, **values: Any) -> None:
        super().__init__(**values)  # or type checkers expect the fields' names, not their aliases

    @field_validator("mu", mode="before")
    @classmethod
    def _mu_as_tuple(cls, value: Any) -> Any:
        if getattr(value, "ndim", 0) == 1:
            value = np.asanyarray(value).tolist()  # None where it is masked
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        synapses = self.n_tiles * (self.n_interneurons + self.n_readouts)
        if synapses > MOST_SYNAPSES:
            raise ValueError(
                f"n_tiles={self.n_tiles} with n_interneurons={self.n_interneurons} and "
                f"n_readouts={self.n_readouts} is more than the {MOST_SYNAPSES} synapses that can "
                f"be held: their weights alone take {8 * synapses / 2**30:.3g} GiB"
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
                "recycle=True moves tiles to points that no tile responds to, which needs "
                "tiles='recruit', got tiles='first'"
            )
        if self.tau_u_ == self.tau_V_:
            raise ValueError(
                f"tau_u and tau_V must differ, got {format_seconds(self.tau_u_)} for both: with "
                "equal rates the circuit oscillates for ever instead of settling"
            )
        if self.dt_ > min(self.tau_u_, self.tau_V_):
            dt, tau_u, tau_V = map(format_seconds, (self.dt_, self.tau_u_, self.tau_V_))
            raise ValueError(f"dt must not exceed tau_u={tau_u} or tau_V={tau_V}, got {dt}")
        return self

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

    def shapes(self, n_inputs: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the circuit's variables."""
        m, k, r = self.n_tiles, self.n_interneurons, self.n_readouts
        cells = {"h": (m,), "u": (k,), "y": (r,), "b": (m,)}
        return {**cells, "V": (k, m), "W": (m, n_inputs), "w": (r, m)}

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


_WANTED = {
    "mu": "must be one number or one per readout, finite and at least 0",
    "readout_rate": "must be 'running_mean' or a number from 0 to 1",
    "gain": "must be 'control', 'auto' or a finite number above 0",
    "initial_weight": "must be 'auto' or a finite number above 0",
}
"""For parameters of several forms, where pydantic has a sentence for every form."""


def _sentences(error: ValidationError) -> str:
    """At most three complaints as one sentence."""
    found: dict[str, str] = {}
    for complaint in error.errors(include_url=False):
        place = str(complaint["loc"][0]) if complaint["loc"] else ""
        found.setdefault(place, _sentence(place, complaint))
    rest = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(list(found.values())[:3]) + rest


def _sentence(place: str, complaint: Any) -> str:
    """A complaint with the parameter, its value and the allowed range."""
    if complaint["type"] == "extra_forbidden":
        return f"there is no parameter {shown(place)}"
    message = complaint["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if place in _WANTED and len(complaint["loc"]) > 1:
        message = _WANTED[place]
    elif complaint["type"] == "value_error":
        return f"{place} {message}".lstrip()
    return f"{place} {message}, got {shown(complaint['input'])}"
