"""Changes to parameters as they are typed: ``--set key=value``."""

from __future__ import annotations

import json
from typing import Any

from circuits.errors import InputError, shown
from circuits.spiking.parameters import SpikingParameters

MOST_DIGITS = 400
"""Digits of a whole number: with more it is beyond any float, and Python may refuse to read it."""


def parse_changes(items: list[str]) -> dict[str, Any]:
    """``key=value`` pairs as given on the command line; values are JSON where they can be."""
    changes: dict[str, Any] = {}
    for item in items:
        key, separator, text = item.partition("=")
        key = key.strip()
        if not separator or not key:
            raise InputError(f"--set takes key=value, got {shown(item)}")
        if key in changes:
            raise InputError(f"--set {shown(key)} is given twice: leave one out")
        try:
            changes[key] = json.loads(text, parse_int=_whole)
        except json.JSONDecodeError:
            changes[key] = text.strip()
        except RecursionError:
            raise InputError(f"--set {shown(key)} is nested too deeply") from None
    return changes


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise InputError(f"--set takes no number of {len(digits)} digits such as {shown(digits)}")
    return int(digits)


def of_cells(changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Changes to a spiking circuit: those to the circuit, and those to how its cells fire. A name
    that both know, such as dt, is the cells'."""
    from analysis.describe.twin import UNUSED

    known = SpikingParameters().as_dict()
    for key in changes:
        if key in UNUSED and key not in known:
            raise InputError(f"--set {key} does nothing with --spiking: leave it out")
    cells = {key: value for key, value in changes.items() if key in known}
    return {key: value for key, value in changes.items() if key not in known}, cells
