"""Changes to parameters as they are typed: ``--set key=value``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from circuits.errors import InputError, shown
from circuits.spiking.parameters import SpikingParameters

MOST_DIGITS = 400
"""Digits of a whole number: with more it is beyond any float, and Python may refuse to read it."""


def parse_changes(items: list[str], option: str = "--set") -> dict[str, Any]:
    """``key=value`` pairs as given on the command line; values are JSON where they can be."""
    pairs = split_pairs(items, option, "key=value")
    return {key: parse_value(key, text, option) for key, text in pairs.items()}


def split_pairs(items: Iterable[str], option: str, form: str) -> dict[str, str]:
    """What an option says of each name, NAME=TEXT, none of them twice."""
    pairs: dict[str, str] = {}
    for item in items:
        name, separator, text = item.partition("=")
        name = name.strip()
        if not separator or not name:
            raise InputError(f"{option} takes {form}, got {shown(item)}")
        if name in pairs:
            raise InputError(f"{option} {shown(name)} is given twice: leave one out")
        pairs[name] = text
    return pairs


def parse_value(key: str, text: str, option: str) -> Any:
    """A value as it is typed: JSON where it can be, else a word."""
    try:
        return json.loads(text, parse_int=partial(_whole, option))
    except json.JSONDecodeError:
        return text.strip()
    except RecursionError:
        raise InputError(f"{option} {shown(key)} is nested too deeply") from None


def spiking_parameters(
    neuron: str | None, cells: int | None, items: list[str]
) -> SpikingParameters:
    """What ``--neuron``, ``--cells`` and ``--set-spiking key=value`` say of a spiking circuit."""
    given = {k: v for k, v in (("neuron", neuron), ("cells", cells)) if v is not None}
    changes = parse_changes(items, "--set-spiking")
    for name in given:
        if name in changes:
            raise InputError(f"--{name} is what --set-spiking {name} sets: leave one out")
    return SpikingParameters(**given, **changes)


def _whole(option: str, digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise InputError(
            f"{option} takes no number of {len(digits)} digits such as {shown(digits)}"
        )
    return int(digits)
