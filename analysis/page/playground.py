"""A page in which the circuit learns live: its values, and the file."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.page.layout import require_page, scripted, write_page
from circuits.errors import InputError, ParameterError, shown
from circuits.lift import SphereLift
from circuits.parameters import CircuitParameters

SCRIPTS = ("circuit.js", "drawing.js", "scenes.js", "session.js", "playground.js")
STYLES = ("page.css", "playground.css")

SPEEDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 0)
"""Presentations per second; 0 is as fast as possible."""
SPEED = 100

MOST_SEED = 2**32 - 1


@dataclasses.dataclass(frozen=True)
class Slider:
    """A value that the page lets its visitor change."""

    name: str
    """Of the parameter, as `CircuitParameters` has it, or "noise"."""
    symbol: str
    title: str
    low: float
    high: float
    step: float | None = None
    """Between two values; ``None`` is a hundred steps of equal ratio."""
    first: str | None = None
    """What stands before the lowest number instead of one, such as gain control."""
    restarts: bool = False
    """Whether a change starts the circuit anew; others take effect with the next point."""
    about: str = ""

    @property
    def whole(self) -> bool:
        """Whether values are counts."""
        return self.step == 1


SLIDERS = (
    Slider("n_tiles", "m", "tiles", 5, 200, 1, restarts=True),
    Slider("tile_radius", "ρ", "radius of a tile", 0.05, 1, 0.01, restarts=True),
    Slider("mu", "μ", "gain of the readout", 0.1, 10_000, about="y = clip(μ w·h + z)"),
    Slider("learning_rate", "η", "learning rate", 0.0001, 0.1),
    Slider("recruit_below", "θ", "recruiting threshold", 0, 0.95, 0.01),
    Slider("gain", "g", "gain of h", 1, 100_000, first="control"),
    Slider("steps_per_presentation", "S", "steps a point is shown", 5, 400, 1),
    Slider("noise", "σ", "noise of the points", 0, 1, 0.005),
    Slider("readout_rate", "r", "rate of w", 0.001, 1, first="running_mean"),
)


@dataclasses.dataclass(frozen=True)
class Scene:
    """Data to choose, with the circuit that suits them."""

    title: str
    parameters: CircuitParameters
    lift: SphereLift
    low: tuple[float, float]
    """Lower left corner of what is shown."""
    high: tuple[float, float]
    noise: float
    most_noise: float
    labels: tuple[tuple[float, float, int], ...] = ()
    """Places near which points have a label from the start."""
    points: int = 400
    shape: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Numbers that the points follow from; see scenes.js."""
    about: str = ""
    """What an answer is held against."""

    def as_dict(self) -> dict[str, Any]:
        """For the page's scripts."""
        names = [slider.name for slider in SLIDERS if slider.name != "noise"]
        values = self.parameters.as_dict()
        return {
            **{n: getattr(self, n) for n in ("title", "low", "high", "most_noise", "points")},
            **{n: getattr(self, n) for n in ("labels", "about")},
            **self.lift.as_dict(),
            **self.shape,
            "circuit": scripted(self.parameters, self.lift),
            "settings": {n: values[n] for n in (*names, "readout_rule", "recycle")}
            | {"noise": self.noise},
        }


@dataclasses.dataclass(frozen=True)
class Playground:
    """All that a page starts from."""

    scenes: Mapping[str, Scene]
    start: str
    """The scene that is shown first."""
    rules: Mapping[str, Mapping[str, Any]]
    """For each readout rule the values that it wants instead of the scene's."""
    drift_speed: float
    """Turns of the data per presentation."""
    examples: Mapping[str, str]
    """Links to try: title and fragment."""
    drift: bool = False
    seed: int = 0


def write_playground(playground: Playground, out: Path) -> Path:
    """Write the page; returns its file, ``playground.html`` where ``out`` is a folder."""
    out = Path(out)
    out = out / "playground.html" if os.path.isdir(out) else out  # noqa: PTH112 (never raises)
    if not 0 <= playground.seed <= MOST_SEED:
        raise InputError(f"seed must lie from 0 to {MOST_SEED}, got {shown(playground.seed)}")
    for scene in playground.scenes.values():
        _check(scene)
    require_page(out)
    data = {
        "scenes": {name: scene.as_dict() for name, scene in playground.scenes.items()},
        "sliders": [dataclasses.asdict(slider) | {"whole": slider.whole} for slider in SLIDERS],
        "rules": playground.rules,
        "speeds": SPEEDS,
        "start": {
            "data": playground.start,
            "seed": playground.seed,
            "drift": playground.drift,
            "speed": SPEED,
        },
        "driftSpeed": playground.drift_speed,
    }
    return write_page(
        out,
        "playground.html",
        SCRIPTS,
        STYLES,
        data=data,
        examples=playground.examples,
        sliders=SLIDERS,
        most_seed=MOST_SEED,
    )


def _check(scene: Scene) -> None:
    """Refuse values that the page's circuit or its sliders do not have."""
    p = scene.parameters
    if p.n_readouts != 1:
        raise ParameterError(f"the playground has one readout, got n_readouts={p.n_readouts}")
    if isinstance(p.mu, tuple):
        raise ParameterError(f"mu must be one number in the playground, got {shown(p.mu)}")
    if p.tiles != "recruit":
        raise ParameterError(f"tiles of the playground are recruited, got tiles={p.tiles!r}")
    for slider in SLIDERS:
        value = scene.noise if slider.name == "noise" else getattr(p, slider.name)
        high = scene.most_noise if slider.name == "noise" else slider.high
        if value == slider.first:
            continue
        if isinstance(value, str) or not math.isfinite(value) or not slider.low <= value <= high:
            other = f"{slider.first!r} or " if slider.first else ""
            raise ParameterError(
                f"{slider.name} must be {other}from {slider.low:g} to {high:g} in the playground, "
                f"got {shown(value)}"
            )
