"""Combinations of parameters: what a sweep runs, from ``--over name=values`` or from Python."""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from circuits.errors import InputError, ParameterError, shown
from circuits.parameters import seconds
from circuits.parts.perturbations import Perturbation, checked_perturbations
from simulations.changes import parse_value, split_pairs
from simulations.experiments.experiment import Config, Experiment

MOST_RUNS = 100_000
"""Runs of a sweep: hours of the smallest experiment."""

OPTION = "--over"
FORMS = "name=a,b,c, name=low:high:count or name=low:high:count:log"

_RANGE = re.compile(r"([^:]*):([^:]*):([^:]*)(?::([^:]*))?")
_BOUND = re.compile(r"\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*([a-zA-Z]*)\s*")
_PIECE = re.compile(r"""(?:\[[^\]]*\]|"[^"]*"|[^,\["])*""")
"""What stands between commas: a list or a quoted word may hold commas of its own."""


@dataclass(frozen=True)
class Combinations:
    """Every combination of the values of some parameters."""

    experiment: Experiment[Any]
    over: dict[str, list[Any]]
    """The values of each, as configurations hold them."""
    configs: list[Config[Any]]
    """A configuration for every combination; the last parameter changes fastest."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values there are of each."""
        return tuple(map(len, self.over.values()))

    @cached_property
    def marks(self) -> list[str]:
        """The fingerprints of the configurations."""
        return [config.fingerprint() for config in self.configs]

    def coordinate(self, name: str) -> tuple[NDArray[Any], dict[str, str]]:
        """The values of a parameter as a coordinate, and its attributes: durations in ms, numbers
        as they are, anything else as words."""
        values = self.over[name]
        if all(_is_number(value) for value in values):
            return np.array(values), {}
        try:
            return np.array([round(1e3 * seconds(value), 12) for value in values]), {"units": "ms"}
        except ValueError:
            return np.array([in_words(value) for value in values]), {}

    def words(self, index: int) -> str:
        """A combination as one would type it."""
        return named(dict(zip(self.over, self._values(index), strict=True)))

    def _values(self, index: int) -> list[Any]:
        places = np.unravel_index(index, self.shape)
        return [values[i] for values, i in zip(self.over.values(), places, strict=True)]


def named(values: Mapping[str, Any]) -> str:
    """Names and values as one would type them, as they begin a sentence."""
    return ", ".join(f"{name}={in_words(value)}" for name, value in values.items())


def in_words(value: Any) -> str:
    """A value as one would type it: 20 rather than 20.0."""
    if isinstance(value, list | tuple):
        within = (json.dumps(one) if isinstance(one, str) else in_words(one) for one in value)
        return f"[{', '.join(within)}]"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return value if isinstance(value, str) else json.dumps(value, default=shown)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_over(items: Sequence[str]) -> dict[str, list[Any]]:
    """What ``--over`` says: lists of values, and ranges as they are typed."""
    over: dict[str, list[Any]] = {}
    for name, text in split_pairs(items, OPTION, FORMS).items():
        is_range = ":" in text and not text.lstrip().startswith(("[", '"'))
        over[name] = _range(name, text) if is_range else _listed(name, text)
    return over


def _listed(name: str, text: str) -> list[Any]:
    pieces = _split(text)
    if any(not piece.strip() for piece in pieces):
        raise InputError(
            f"{OPTION} {shown(name)} takes values between commas, got {shown(text)}: one is missing"
        )
    return [parse_value(name, piece, OPTION) for piece in pieces]


def _split(text: str) -> list[str]:
    """A text at its commas, but for those in brackets and quotes."""
    pieces, place = [], 0
    while True:
        match = _PIECE.match(text, place)
        end = match.end() if match else place
        if end < len(text) and text[end] != ",":
            end = len(text)  # a bracket or quote that does not close: the value will be refused
        pieces.append(text[place:end])
        if end >= len(text):
            return pieces
        place = end + 1


def _range(name: str, text: str) -> list[Any]:
    """``low:high:count`` and, evenly on a logarithmic scale, ``low:high:count:log``."""
    match = _RANGE.fullmatch(text)
    bounds = [_BOUND.fullmatch(match[i]) for i in (1, 2)] if match else []
    if not (match and all(bounds) and match[3].strip().isdecimal()):
        raise InputError(f"{OPTION} takes {FORMS}, got {shown(f'{name}={text}')}")
    (low, unit), (high, other) = ((float(bound[1]), bound[2]) for bound in bounds if bound)
    if unit != other:
        raise InputError(f"{OPTION} {shown(name)} takes both ends in one unit, got {shown(text)}")
    count, scale = int(match[3].strip()[:20]), match[4]
    if count < 2 or low == high:
        raise InputError(
            f"{OPTION} {shown(name)} takes two different ends and a count of at least 2, got "
            f"{shown(text)}"
        )
    if scale not in (None, "log"):
        raise InputError(f"{OPTION} takes {FORMS}, got {shown(f'{name}={text}')}")
    if scale and min(low, high) <= 0:
        raise InputError(
            f"{OPTION} {shown(name)} takes ends above 0 on a logarithmic scale, got {shown(text)}"
        )
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{OPTION} {shown(name)} takes finite ends, got {shown(text)}")
    require_few({name: count}, 1)
    values = (np.geomspace if scale else np.linspace)(low, high, count)
    # As one would type them: the same number comes from a range and from a list.
    rounded = [float(f"{value:.12g}") for value in values]
    plain = [int(value) if value.is_integer() else value for value in rounded]
    return [f"{value} {unit}" for value in plain] if unit else plain


def require_few(counts: Mapping[str, int], repeats: int) -> None:
    """Refuse more runs than anybody waits for."""
    runs = math.prod(counts.values()) * repeats
    if runs > MOST_RUNS:
        factors = " x ".join(
            [*(f"{count} of {name}" for name, count in counts.items())]
            + ([f"{repeats} repeats"] if repeats > 1 else [])
        )
        raise InputError(
            f"a sweep of {factors} is {runs} runs, more than the {MOST_RUNS} that are allowed: "
            "choose fewer values"
        )


def combine(
    experiment: Experiment[Any],
    engine: str,
    over: Mapping[str, Sequence[Any]],
    changes: Mapping[str, Any],
    repeats: int,
    quick: bool = False,
    perturbations: Iterable[Perturbation] = (),
) -> Combinations:
    """All combinations of values, each checked as a configuration of the experiment."""
    done = checked_perturbations(perturbations)
    for what, given, such in (("over", over, {"mu": [1, 10]}), ("changes", changes, {"mu": 10})):
        if not isinstance(given, Mapping):
            raise InputError(f"{what} must be values by name such as {such}, got {shown(given)}")
    if not over:
        raise InputError(f"a sweep needs parameters to sweep over: {OPTION} {FORMS}")
    values = {name: _as_list(name, given) for name, given in over.items()}
    for name in values:
        if name in changes:
            raise InputError(f"{shown(name)} is swept over and set: leave one out")
    experiment.require_names([*values, *changes])
    require_few({name: len(given) for name, given in values.items()}, repeats)
    configs, total = [], math.prod(map(len, values.values()))
    every = itertools.product(*values.values())
    # Tens of thousands take a while to check.
    for combination in tqdm(
        every, "combinations", total, leave=False, delay=2, disable=sys.stderr is None
    ):
        chosen = dict(zip(values, combination, strict=True))
        try:
            configs.append(experiment.config(engine, {**changes, **chosen}, quick, done))
        except ParameterError as error:
            raise ParameterError(f"with {named(chosen)}: {error}") from None
    held = _held(values, configs)
    for name, kept in held.items():
        _require_distinct(name, kept)
    return Combinations(experiment, held, configs)


def _as_list(name: str, given: Any) -> list[Any]:
    several = hasattr(given, "__len__") and not isinstance(given, str | bytes | Mapping)
    if not several or getattr(given, "shape", None) == ():  # an array of one number has a length
        raise InputError(f"{shown(name)} takes several values to sweep over, got {shown(given)}")
    found = [one.item() if isinstance(one, np.generic) else one for one in given]
    if not found:
        raise InputError(f"{shown(name)} has no values to sweep over: give at least one")
    return found


def _values_of(config: Config[Any]) -> dict[str, Any]:
    """Parameters and settings by name, as plain values."""
    return {**config.parameters.as_dict(), **config.settings.model_dump(mode="json")}


def _held(
    values: Mapping[str, Sequence[Any]], configs: Sequence[Config[Any]]
) -> dict[str, list[Any]]:
    """The values that were given as configurations hold them; they may be typed otherwise."""
    held, every = {}, len(configs)
    for name, given in values.items():
        every //= len(given)  # so many combinations lie between one value and the next
        held[name] = [_values_of(configs[i * every])[name] for i in range(len(given))]
    return held


def _require_distinct(name: str, values: Sequence[Any]) -> None:
    seen: set[str] = set()
    for value in map(in_words, values):
        if value in seen:
            raise InputError(f"{shown(name)} is to be swept over {value} twice: leave one out")
        seen.add(value)
