"""What the playground starts from: data and circuits of the experiments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circuits.engines.brian import import_brian2
from circuits.errors import InputError, shown
from circuits.lift import SphereLift
from simulations.changes import parse_changes
from simulations.datasets import ARCS_ANGLES, ARCS_GAP, DRIFT_UNIT
from simulations.experiments import get_experiment
from simulations.experiments.manifold_drift import ManifoldDrift
from simulations.experiments.manifold_drift import Settings as DriftSettings
from simulations.experiments.square_balance import Settings as SquareSettings
from simulations.experiments.two_moons import Settings as MoonsSettings

if TYPE_CHECKING:
    from analysis.page.playground import Scene

CORE = 0.35
"""Radius of the disc in the middle of the ring, whose own radius is 1."""


def make_playground(path: Path, seed: int, changes: list[str]) -> Path:
    """Write the playground's page; ``changes`` are key=value for parameters of the circuit, or for
    ``data``, ``noise`` and ``drift``. Parameters hold for all data, noise for those named."""
    import_brian2()  # which comes with the package of the pages
    from analysis.page.playground import Playground, write_playground

    values = parse_changes(changes)
    start, noise = values.pop("data", "moons"), values.pop("noise", None)
    drift = values.pop("drift", False)
    if not isinstance(drift, bool):
        raise InputError(f"drift must be true or false, got {shown(drift)}")
    if noise is not None and (isinstance(noise, bool) or not isinstance(noise, int | float)):
        raise InputError(f"noise must be a number, got {shown(noise)}")
    if drift:
        values = {"recycle": True} | values
    scenes = _scenes(values)
    if not isinstance(start, str) or start not in scenes:
        raise InputError(f"data must be one of {', '.join(scenes)}, got {shown(start)}")
    if noise is not None:
        scenes[start] = replace(scenes[start], noise=noise)
    settings, own = DriftSettings(), get_experiment("two-moons").parameters.as_dict()
    playground = Playground(
        scenes=scenes,
        start=start,
        rules={
            "paper": {"mu": own["mu"], "readout_rate": own["readout_rate"]},
            "gated": {"mu": settings.gated_mu, "readout_rate": settings.gated_rate},
        },
        drift_speed=settings.fast_speed / DRIFT_UNIT,
        examples=_examples(),
        drift=drift,
        seed=seed,
    )
    return write_playground(playground, path)


def _scenes(changes: dict[str, Any]) -> dict[str, Scene]:
    """The data by name, each with the circuit of the experiment that has them."""
    from analysis.page.playground import Scene

    moons, arcs, square = map(get_experiment, ("two-moons", "tiling-arcs", "square-balance"))
    more_tiles = moons.parameters.replace(n_tiles=60)
    around = SphereLift(center=(0.0, 0.0), radius=3.0)
    spread, inset = MoonsSettings().noise, SquareSettings().inset
    scenes = {
        "moons": Scene(
            "Moons", moons.parameters, moons.lift, (-1.4, -0.9), (2.4, 1.4), spread, 0.2,
            labels=((-1.0, 0.1, -1), (2.0, 0.4, 1)),
            about="Right is the sign of a point’s moon.",
        ),
        "arcs": Scene(
            "Arcs", arcs.parameters, arcs.lift, (-1.1, -0.9), (1.1, 0.9), 0.01, 0.1,
            labels=((0.6, -0.6, -1), (-0.6, 0.6, 1)),
            shape={"angles": ARCS_ANGLES, "gap": ARCS_GAP},
            about="Right is the sign of a point’s arc.",
        ),
        "square": Scene(
            "Square", square.parameters, square.lift, (-0.25, -0.2), (1.25, 1.2), 0.0, 0.1,
            labels=((inset, inset, -1), (1 - inset, 1 - inset, 1)),
            about="Right is the sign of a point’s side of the diagonal.",
        ),
        "ring": Scene(
            "Ring", more_tiles, around, (-1.3, -1.3), (1.3, 1.3), spread, 0.2,
            labels=((0.0, 0.0, -1), (-1.0, 0.0, 1)),
            shape={"core": CORE},
            about="Right is + on the ring, − in its core.",
        ),
        "own": Scene(
            "My own", more_tiles, around, (-1.6, -1.2), (1.6, 1.2), 0.02, 0.2,
            about="Drawn points have no class: what counts is that there is an answer.",
        ),
    }  # fmt: skip
    return {
        name: replace(scene, parameters=scene.parameters.replace(**changes))
        for name, scene in scenes.items()
    }


def _examples() -> dict[str, str]:
    """Fragments of links to try."""
    p, settings = ManifoldDrift.parameters, DriftSettings()
    turning = {
        "data": "moons",
        "n_tiles": p.n_tiles,
        "tile_radius": p.tile_radius,
        "recruit_below": p.recruit_below,
        "readout_rule": "gated",
        "mu": settings.gated_mu,
        "readout_rate": settings.gated_rate,
        "recycle": 1,
        "drift": 1,
        "speed": 500,
    }
    found: dict[str, dict[str, Any]] = {
        "Two labels, two moons": {"data": "moons"},
        "Moons that turn": turning,
        "Who gets the square?": {"data": "square", "speed": 500},
        "A ring around a core": {"data": "ring"},
        "Too few steps to settle": {"data": "moons", "steps_per_presentation": 8, "speed": 20},
        "Draw your own": {"data": "own"},
    }
    return {
        title: "&".join(f"{name}={value}" for name, value in values.items())
        for title, values in found.items()
    }
