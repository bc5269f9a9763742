"""Perturbations as values: lesions, currents, noise, frozen plasticity, delays, unequal gains.

    from circuits import Lesion, ManifoldCircuit, Noise

    lesioned = [Lesion(tiles=0.5, at=1000), Noise(on="W", size=1e-3)]
    circuit = ManifoldCircuit(parameters, lift, perturbations=lesioned)

Times count presentations of the circuit's life: a perturbation acts from ``at`` until ``until``,
not included. A prediction finds the circuit as the next presentation would.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from circuits.assembly.part import Part
from circuits.errors import ParameterError, shown
from circuits.parts.current import Current, Injected
from circuits.parts.cut import CutSynapses
from circuits.parts.delay import Delay
from circuits.parts.freeze import Freeze, Frozen
from circuits.parts.lesion import Lesion, Lesioned
from circuits.parts.noise import NOISY, Noise, NoiseOn
from circuits.parts.timing import Perturbation, Timed, Timing
from circuits.parts.unequal_gain import GainFactors, UnequalGain

if TYPE_CHECKING:
    from circuits.base import Circuit

__all__ = ["KINDS", "NOISY", "Perturbation", "Timed", "parse_perturbation", "perturbation_from"]

KINDS: dict[str, type[Perturbation]] = {
    "lesion": Lesion,
    "current": Current,
    "noise": Noise,
    "freeze": Freeze,
    "delay": Delay,
    "gain": UnequalGain,
}
"""Perturbations by the names they have on the command line and in files."""


def described(perturbations: Iterable[Perturbation]) -> list[dict[str, Any]]:
    """Their kinds and values, as results hold them."""
    names = {kind: name for name, kind in KINDS.items()}
    return [{"kind": names[type(one)], **one.as_dict()} for one in perturbations]


def _of(c: Circuit, *kinds: type[Any]) -> list[Any]:
    return [one for kind in kinds for one in c.perturbations if type(one) is kind]


def perturbing_parts(c: Circuit) -> tuple[list[Part], list[Part]]:
    """The parts that a circuit's perturbations are: before labels clamp the answer, and after."""
    for kind in (Delay, UnequalGain):
        if len(_of(c, kind)) > 1:
            raise ParameterError(f"{kind.__name__} is given twice: leave one out")
    timed, lesions = _of(c, Noise, Current, Freeze), _of(c, Lesion)
    recruits = c.parameters.tiles == "recruit"
    before: list[Part] = [Timing(c, timed)] if timed else []
    before += [GainFactors(c, one) for one in _of(c, UnequalGain)]
    before += [Frozen(i, one, recruits) for i, one in enumerate(timed) if isinstance(one, Freeze)]
    noises = [(i, one) for i, one in enumerate(timed) if isinstance(one, Noise)]
    noise = {
        on: NoiseOn(c, on, [(i, one) for i, one in noises if one.on == on])
        for on in dict.fromkeys(one.on for _, one in noises)
    }
    before += [part for on, part in noise.items() if on != "y"]
    before += [Injected(c, i, one) for i, one in enumerate(timed) if isinstance(one, Current)]
    after: list[Part] = [noise["y"]] if "y" in noise else []
    if lesions:
        hits = Lesioned(c, lesions)
        after += [hits, CutSynapses(c, lesions, hits)]
    return before, after


def moves_rates(c: Circuit) -> bool:
    """Whether noise keeps rates from settling."""
    return any(noise.on in ("h", "u", "V") for noise in _of(c, Noise))


def takes_tiles(c: Circuit) -> bool:
    """Whether tiles are, or will be, gone."""
    return any(lesion.tiles is not None for lesion in _of(c, Lesion))


def checked_perturbations(given: Any) -> tuple[Perturbation, ...]:
    """Return them as a tuple; raise ParameterError naming the first that is none."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ParameterError(f"perturbations must be a list of them, got {shown(given)}")
    found = tuple(given)
    for one in found:
        if not isinstance(one, Perturbation) or type(one) not in KINDS.values():
            names = ", ".join(kind.__name__ for kind in KINDS.values())
            raise ParameterError(f"a perturbation is one of {names}, got {shown(one)}")
    return found


def perturbation_from(values: Any) -> Perturbation:
    """A perturbation from what `described` made of it."""
    if not isinstance(values, dict):
        raise ParameterError(f"a perturbation must have a kind and values, got {shown(values)}")
    kind = values.get("kind")
    return _class_of(kind)(**{name: value for name, value in values.items() if name != "kind"})


def parse_perturbation(text: str) -> Perturbation:
    """A perturbation as it is typed, KIND:KEY=VALUE,KEY=VALUE; several values have a + between.

    >>> parse_perturbation("lesion:tiles=0.5,at=1000")
    Lesion(at=1000, tiles=0.5)
    """
    kind, _, rest = text.partition(":")
    values: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, separator, value = (part.strip() for part in item.partition("="))
        if not separator or not key or not value:
            raise ParameterError(
                f"a perturbation is kind:key=value,key=value such as lesion:tiles=0.5,at=1000, got "
                f"{shown(text)}"
            )
        if key in values:
            raise ParameterError(f"{shown(key)} is given twice in {shown(text)}")
        values[key] = _value(value)
    return _class_of(kind.strip())(**values)


def _class_of(kind: Any) -> type[Perturbation]:
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    near = difflib.get_close_matches(kind, KINDS, 1) if isinstance(kind, str) else []
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(KINDS)}"
    raise ParameterError(f"there is no perturbation {shown(kind)}: {hint}")


def _value(text: str) -> Any:
    """A number, a word, or several with a + between them; 1e+3 is one number."""
    for read in (json.loads, float):  # the first tells whole numbers, the second reads .5
        try:
            return read(text)
        except (ValueError, RecursionError):
            continue
    parts = text.split("+")
    return [_value(part.strip()) for part in parts] if len(parts) > 1 else text
