"""What an experiment is: a stream for every seed, a simulation, claims checked on the result."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import xarray as xr
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from analysis.selection import SELECTION_SEED, reported
from circuits import CircuitParameters, SphereLift
from circuits.base import Circuit
from circuits.engines.solvers import check_engine
from circuits.engines.solvers import make_circuit as make_circuit
from circuits.errors import InputError, ParameterError, shown
from circuits.lift import FloatArray
from circuits.parts.perturbations import Perturbation, checked_perturbations, described
from simulations.experiments.claim import Claim as Claim
from simulations.experiments.evidence import Evidence

MOST_POINTS = 10**7
"""A repeat is kept in memory, and this many presentations with 40 tiles take 4 GB."""

Report = Callable[[str], None]


class Settings(BaseModel):
    """What defines an experiment besides the circuit's parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _check_numbers(cls, value: Any) -> Any:
        # Python counts with them; whoever writes true does not mean 1.
        given = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(number, bool) for number in given):
            raise ValueError("must be made of numbers, not of true and false")
        return value

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        for name, value in self:
            if isinstance(value, int) and value > MOST_POINTS:
                raise ValueError(f"{name} must not exceed {MOST_POINTS}, got {shown(value)}")
        return self


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse values that results could not tell apart: there they are coordinates."""
    names = [str(value) for value in values]
    if len(set(names)) < len(names):
        raise ValueError("must hold no value twice")
    return values


Value = TypeVar("Value")
Grid = Annotated[tuple[Value, ...], Field(min_length=1), AfterValidator(_distinct)]
"""Several values, each of which is tried."""
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Lambda = Annotated[float, Field(ge=1e-6, le=1e6)]
Mu = Annotated[float, Field(ge=0, le=1e6)]
"""Penalties of the offline method; beyond, its matrix is singular to double precision."""

OwnSettings = TypeVar("OwnSettings", bound=Settings)


@dataclass(frozen=True)
class Config(Generic[OwnSettings]):
    """Everything that, with a seed, determines a result."""

    experiment: str
    engine: str
    parameters: CircuitParameters
    settings: OwnSettings
    perturbations: tuple[Perturbation, ...] = ()

    def circuit(self, parameters: CircuitParameters, lift: SphereLift) -> Circuit:
        """A circuit on the configured engine, with what is done to it."""
        return make_circuit(self.engine, parameters, lift, perturbations=self.perturbations)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as stored in results."""
        perturbations = described(self.perturbations)
        return {
            "experiment": self.experiment,
            "engine": self.engine,
            "parameters": self.parameters.as_dict(),
            "settings": self.settings.model_dump(mode="json"),
            **({"perturbations": perturbations} if perturbations else {}),
        }

    def fingerprint(self) -> str:
        """A digest of it all: two results with the same one and the same seed are the same."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Experiment(ABC, Generic[OwnSettings]):
    """One of the paper's numerical experiments."""

    settings_class: type[OwnSettings]
    parameters: ClassVar[CircuitParameters]
    lift: ClassVar[SphereLift]
    repeats: ClassVar[int] = 10
    selection_repeats: ClassVar[int] = 0
    """Repeats on other seeds, on which hyperparameters are chosen."""
    taken: ClassVar[dict[str, str]] = {}
    """Parameters of the circuit that the experiment sets itself, and the settings it does so by."""
    size: ClassVar[tuple[str, ...]] = ("n_points",)
    """Settings that say how large a repeat is; see `decide`."""
    main: ClassVar[str] = ""
    """The variable that says most of how well a repeat went: what is drawn of a sweep."""
    main_at: ClassVar[dict[str, Any]] = {}
    """Where a sweep is drawn along dimensions whose first place says little, such as a control or
    an early time: a value, or None for the last."""
    quick: ClassVar[dict[str, Any]] = {}
    quick_repeats: ClassVar[int] = 2
    perturbable: ClassVar[bool] = True
    """Whether perturbations can be given: they are done to the circuits of the configured engine,
    not to solvers beside them. Not so where circuits are there to be held against such solvers, or
    are perturbed already."""

    def __init__(self, name: str) -> None:
        self.name = name

    def config(
        self,
        engine: str,
        changes: dict[str, Any],
        quick: bool = False,
        perturbations: Iterable[Perturbation] = (),
    ) -> Config[OwnSettings]:
        """The experiment's configuration with some values changed, by name, and what is done to
        its circuits."""
        check_engine(engine)
        done = checked_perturbations(perturbations)
        if done and not self.perturbable:
            raise ParameterError(
                f"{self.name} takes no perturbations such as {shown(done[0])}: it has its own, or "
                "solvers beside it that know of none"
            )
        changes = ({**self.quick} if quick else {}) | changes
        self.require_names(changes)
        own = {key: changes.pop(key) for key in list(changes) if key in self._setting_names()}
        settings = self.settings(own)
        config = Config(self.name, engine, self.parameters.replace(**changes), settings, done)
        if done:  # what does not fit is refused before anything runs
            # On a lift of any kind: an experiment's own may depend on its data.
            lift = SphereLift(center=(0.0,) * 100, radius=10 * config.parameters.tile_radius)
            config.circuit(config.parameters, lift)
        return config

    def require_names(self, names: Iterable[str]) -> None:
        """Refuse names that are neither of settings nor of parameters that may be set."""
        own, parameters = self._setting_names(), self.parameters.as_dict()
        others = [name for name in names if name not in own]
        for name in others:
            if name in self.taken:
                raise ParameterError(
                    f"{self.name} sets {name} itself: set {self.taken[name]} instead"
                )
        unknown = [name for name in others if name not in parameters]
        if unknown:
            raise ParameterError(
                f"{self.name} has no parameter {shown(unknown[0])}: it has "
                f"{', '.join(sorted([*own, *parameters]))}"
            )

    def settings(self, values: dict[str, Any]) -> OwnSettings:
        """The experiment's settings with some values changed, checked."""
        try:
            return self.settings_class.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            message = first["msg"].removeprefix("Value error, ")
            given = f"{place}: {message}, got {shown(first['input'])}"
            raise ParameterError(given if place else message) from None

    def _setting_names(self) -> list[str]:
        return list(self.settings_class.model_fields)

    def seeds(self, repeats: int, first: int = 0) -> list[int]:
        """Seeds of the repeats that are reported and of those on which values are chosen."""
        if not 0 <= first <= SELECTION_SEED - repeats:
            raise InputError(
                f"{repeats} repeats from seed {first} on leave the range of seeds: they must stay "
                f"from 0 to {SELECTION_SEED - 1}, the others are for choosing values"
            )
        chosen = min(self.selection_repeats, repeats)
        return [first + i for i in range(repeats)] + [
            SELECTION_SEED + first + i for i in range(chosen)
        ]

    def decide(self, merged: xr.Dataset, evidence: Evidence, **suffices: int) -> bool | None:
        """The verdict on a claim, or None where there is too little for one.

        Claims are decided at the registered size, in repeats (which have the power that
        docs/claims.md names) and in the settings named by ``size``; ``suffices`` says otherwise
        for a claim that needs less.
        """
        registered = {name: self.settings_class.model_fields[name].default for name in self.size}
        needed = {"repeats": self.repeats} | registered | suffices
        settings = json.loads(merged.attrs["config"])["settings"]
        found = settings | {"repeats": reported(merged).sizes["repeat"]}
        large = all(found[name] >= least for name, least in needed.items())
        return evidence.verdict if large else None

    def check(self, config: Config[OwnSettings], seeds: Iterable[int]) -> None:
        """Refuse, before anything is written, repeats that lack what they need: data, packages."""
        return

    @abstractmethod
    def simulate(self, config: Config[OwnSettings], seed: int, report: Report) -> xr.Dataset:
        """One repeat. ``report`` takes a word on what is being done."""

    def measure(self, config: Config[OwnSettings], seed: int, report: Report) -> xr.Dataset:
        """What a sweep wants of one repeat: all of it, unless an experiment says otherwise, because
        much of its time goes into controls and comparisons that claims are decided on."""
        return self.simulate(config, seed, report)

    @abstractmethod
    def claims(self, merged: xr.Dataset) -> list[Claim]:
        """The paper's claims, checked on the merged repeats."""


def joined(runs: Iterable[xr.Dataset]) -> dict[str, Any]:
    """Attributes of a simulation of several runs: those of the last, but the shares of
    presentations that went wrong are those of the worst, and lost labels are of all."""
    every = [run.attrs for run in runs]
    shares = ("unsettled_share", "uncovered_share")
    worst = {name: max(attrs[name] for attrs in every) for name in shares}
    return every[-1] | worst | {"lost_labels": sum(attrs["lost_labels"] for attrs in every)}


def error_rate(y: FloatArray, classes: Any) -> FloatArray:
    """Share of wrong signs along the first axis; silence (exactly zero) is half an error, as a
    coin flip would be."""
    signs = np.sign(y)
    wrong = (signs != np.asarray(classes)) * 1.0
    result: FloatArray = np.where(signs == 0, 0.5, wrong).mean(axis=0)
    return result


def standard_error(values: xr.DataArray) -> xr.DataArray:
    """Standard error of the mean over repeats; unknown (NaN) for a single one."""
    n = values.sizes["repeat"]
    if n < 2:
        return xr.full_like(values.mean("repeat"), np.nan)
    error: xr.DataArray = values.std("repeat", ddof=1) / np.sqrt(n)
    return error


def spread(values: Any) -> str:
    """Mean and standard deviation of repeats as text."""
    array = np.asarray(values, dtype=float)
    if array.size < 2:
        return f"{array.mean():.3f}"
    return f"{array.mean():.3f} ± {array.std(ddof=1):.3f}"


def seeds(values: Any) -> str:
    """How many repeats there are, as text."""
    return f"{len(values)} seed{'s' if len(values) > 1 else ''}"
