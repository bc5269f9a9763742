"""Pieces of a circuit: `Part`, and one module for each thing that we add to the paper's circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from circuits.assembly.part import Part

if TYPE_CHECKING:
    from circuits.base import Circuit

__all__ = ["Part", "own_parts"]


def own_parts(c: Circuit) -> list[Part]:
    """The parts of a circuit, in the order in which they act, without the user's."""
    from circuits.parts.delay import DelayLine
    from circuits.parts.gain_control import GainControl, ScaledStart
    from circuits.parts.idle_tiles import Tiles
    from circuits.parts.other_readouts import ClampedLabels, ConstantRate, GatedReadout
    from circuits.parts.perturbations import perturbing_parts
    from circuits.parts.recruiting import DriveOfNewTile, Recruiting
    from circuits.parts.recycling import Recycling
    from circuits.parts.restart import CarryOver, Remembered, Restart
    from circuits.readout import Readout
    from circuits.tiling import Tiling

    p = c.parameters
    recruits = p.tiles == "recruit"
    chosen: list[tuple[bool, Any]] = [
        (True, Remembered),
        (True, Restart if p.reset else CarryOver),
        (True, (lambda: Recruiting(c)) if recruits else Tiles),
        (p.recycle, Recycling),
        (c.gain is None, lambda: GainControl(c)),
        (c.gain is None, lambda: ScaledStart(c)),
        (p.readout_rule == "gated", GatedReadout),
        (p.readout_rate != "running_mean", lambda: ConstantRate(c)),
        (c.model.delay_steps(p) > 0, lambda: DelayLine(c)),
    ]
    before, after = perturbing_parts(c)
    last: list[tuple[bool, Any]] = [
        (p.clamp_labels, ClampedLabels),
    ]
    parts = [Tiling(c), Readout(c), *(make() for wanted, make in chosen if wanted), *before]
    parts += [make() for wanted, make in last if wanted]
    return [*parts, *after, *([DriveOfNewTile()] if recruits else [])]
