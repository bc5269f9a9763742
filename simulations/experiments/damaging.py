"""Damage done to a circuit that has learned two moons, and what is measured of it."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.special import comb

from analysis import theory
from circuits import CircuitParameters, Current, Delay, Freeze, Lesion, Noise, reference
from circuits.base import Circuit
from circuits.dataset import SETTLED_CHANGE
from circuits.errors import DivergenceError, UnsettledWarning
from circuits.lift import FloatArray
from circuits.parameters import format_seconds
from circuits.parts import gain_control
from circuits.parts.perturbations import Perturbation
from circuits.state import CircuitState
from simulations.datasets import MOONS_LIFT, Classes, first_of_each_class, two_moons
from simulations.experiments import experiment as base

CONDITIONS = ("spare, learns", "spare, frozen", "none, learns", "none, frozen")
"""What a lesioned circuit has left: idle tiles or none, and whether it goes on learning."""

COUNTS = tuple(range(1, 9))
"""Interneurons of circuits that are made with so many."""
LEFT = (1, 2, 3, 4)
"""Interneurons that are left of four."""

RATES = ("h", "u", "V")
"""What noise is on."""

DRAWS = 5
"""Lesions of every share, of which what is found right after is the mean."""

SETTLED = SETTLED_CHANGE
"""How far h may be from the closed form: what a step moves rates by that count as settled."""

PUSH, LEAST, MOST = 1e-6, 1e-10, 1e-4
"""The current that pushes a settled circuit, and deviations of which the growth is taken: below
them is rounding, above them they are not small."""

Share = Annotated[float, Field(gt=0, lt=1)]
Steps = Annotated[int, Field(ge=0, le=100)]
Milliseconds = Annotated[float, Field(ge=0.01, le=1e4)]


class Settings(base.Settings):
    """The stream, what is removed, and what disturbs settling."""

    n_points: int = Field(default=2000, ge=20)
    """Presentations before the lesion."""
    later: int = Field(default=1000, ge=1)
    """Presentations after it, without a label."""
    n_test: int = Field(default=300, ge=10)
    """Other points, on which accuracy and coverage are measured."""
    n_noisy: int = Field(default=200, ge=2)
    """Of those, points on which noise is tried."""
    n_tried: int = Field(default=15, ge=1)
    """Points on which interneurons are tried."""
    n_delayed: int = Field(default=2, ge=1)
    """Points on which delays are tried."""
    noise: float = Field(default=0.05, ge=0, le=1)
    label_after: int = Field(default=200, ge=0)
    """The first point of each class from here on has a label, and no other."""
    shares: base.Grid[Share] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Of the tiles in use, those that are removed."""
    delays: base.Grid[Steps] = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 19, 24)
    """In steps."""
    taus: base.Grid[Milliseconds] = (12.5, 25.0, 35.0)
    """Time constants of the interneurons, in ms, with which delays are tried."""
    delay_steps: int = Field(default=400, ge=101, le=10_000)
    """Steps of a presentation with a delay."""
    sizes: base.Grid[base.NotNegative] = (0.01, 0.03, 0.1, 0.3, 1.0)
    """Of the noise."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.label_after + 10 > self.n_points:
            raise ValueError(
                f"label_after={self.label_after} must be 10 points or more before the lesion, at "
                f"n_points={self.n_points}"
            )
        for name in ("n_noisy", "n_tried", "n_delayed"):
            if getattr(self, name) > self.n_test:
                raise ValueError(
                    f"{name}={getattr(self, name)} are of the n_test={self.n_test} points: give "
                    "more of these"
                )
        return self


class Learned(NamedTuple):
    """A circuit that has learned two moons, and points to try it on."""

    parameters: CircuitParameters
    state: CircuitState
    points: FloatArray
    classes: Classes
    more: FloatArray
    """Points to go on with."""
    run: xr.Dataset

    def circuit(self, engine: str, *perturbations: Perturbation, **changes: Any) -> Circuit:
        """The same circuit with perturbations, and parameters that leave its tiles as they are."""
        p = self.parameters.replace(**changes)
        made = base.make_circuit(engine, p, MOONS_LIFT, perturbations=perturbations)
        fast = np.zeros(p.n_interneurons), np.zeros((p.n_interneurons, p.n_tiles))
        state = self.state.copy()
        state.u, state.V = fast  # they start anew with every point
        made.state = state
        return made

    def answers(self, h: FloatArray, state: CircuitState) -> FloatArray:
        """What has the sign of the readout: w.h, unless mu is 0."""
        answers: FloatArray = (self.parameters.mu_per_readout[0] > 0) * (h @ state.w[0])
        return answers


def learn(config: base.Config[Settings], rng: np.random.Generator) -> Learned:
    """Two moons with two labels, by the exact solver."""
    settings = config.settings
    points, classes = two_moons(settings.n_points + settings.later, settings.noise, rng)
    others, known = two_moons(settings.n_test, settings.noise, rng)
    before, after = points[: settings.n_points], points[settings.n_points :]
    labels = first_of_each_class(classes, settings.label_after)[: settings.n_points]
    circuit = base.make_circuit("exact", config.parameters, MOONS_LIFT)
    run = circuit.run(before, labels)
    return Learned(config.parameters, circuit.state, others, known, after, run)


def tiles_gone(settings: Settings, learned: Learned, rng: np.random.Generator) -> dict[str, Any]:
    """Coverage and accuracy before and right after a lesion of every share, and later in all
    `CONDITIONS`."""
    used, idle = np.flatnonzero(learned.state.in_use), np.flatnonzero(~learned.state.in_use)
    orders = [rng.permutation(used) for _ in range(DRAWS)]
    at = settings.n_points
    h = learned.circuit("exact").respond(learned.points)
    before = measured(h, learned, learned.state)
    after, later, predicted = [], [], []
    for share in settings.shares:
        count = lost(share, len(used))
        predicted.append(expected_coverage((h > 0).sum(axis=1), len(used), count))
        after.append(np.mean([right_after(learned, order[:count], at) for order in orders], axis=0))
        gone, rows = orders[0][:count], []
        for condition in CONDITIONS:
            spared = condition.startswith("spare")
            hit = gone if spared else np.concatenate([gone, idle])
            done: list[Perturbation] = (
                [Lesion(tiles=tuple(hit.tolist()), at=at)] if hit.size else []
            )
            if condition.endswith("frozen"):
                done.append(Freeze(at=at))
            circuit = learned.circuit("exact", *done)
            circuit.run(learned.more)
            state = circuit.state
            rows.append(measured(circuit.respond(learned.points), learned, state)[:2])
        later.append(rows)
    found = np.array(later)
    names = ("coverage", "accuracy", "answered")
    return {
        "before_coverage": before[0],
        "before_accuracy": before[1],
        **{f"after_{name}": ("share", np.array(after)[:, i]) for i, name in enumerate(names)},
        **{
            f"later_{name}": (("share", "condition"), found[..., i])
            for i, name in enumerate(names[:2])
        },
        "predicted_coverage": ("share", predicted),
    }


def right_after(learned: Learned, gone: NDArray[np.intp], at: int) -> tuple[float, float, float]:
    """What is `measured` when tiles have just gone; which others are idle does not matter then."""
    done = [Lesion(tiles=tuple(gone.tolist()), at=at)] if gone.size else []
    circuit = learned.circuit("exact", *done)
    return measured(circuit.respond(learned.points), learned, circuit.state)


def lost(share: float, used: int) -> int:
    """How many tiles a share is: one is left at least."""
    return min(round(share * used), used - 1)


def expected_coverage(answering: NDArray[np.intp], used: int, gone: int) -> float:
    """Mean share of points that are still covered when ``gone`` of the ``used`` tiles are removed
    at random, by how many tiles answer each point: 1 - C(K, c)/C(N, c)."""
    left = 1 - comb(gone, answering, exact=False) / comb(used, answering, exact=False)
    return float(left.mean())


def measured(h: FloatArray, learned: Learned, state: CircuitState) -> tuple[float, float, float]:
    """Share of points that some tile answers, accuracy on all (silence is half an error), and on
    those that are answered (NaN where none is)."""
    covered = h.any(axis=1)
    y = learned.answers(h, state)
    answered = np.nan
    if covered.any():
        answered = 1 - float(base.error_rate(y[covered], learned.classes[covered]))
    return float(covered.mean()), 1 - float(base.error_rate(y, learned.classes)), answered


def interneurons(settings: Settings, learned: Learned) -> dict[str, Any]:
    """Largest |h - closed form| and accuracy by the number of interneurons, the first by those
    that are left of four, too, and with half of the synapses V cut."""
    few = slice(settings.n_tried)
    points, classes = learned.points[few], learned.classes[few]
    exact = learned.circuit("exact").respond(points)

    def tried(count: int, *done: Perturbation) -> tuple[float, float]:
        circuit = learned.circuit("reference", *done, n_interneurons=count)
        h = quietly(circuit, points)
        y = learned.answers(h, learned.state)
        apart = float(np.linalg.norm(h - exact, axis=1).max())
        return apart, 1 - float(base.error_rate(y, classes))

    made = np.array([tried(count) for count in COUNTS])
    whole = max(LEFT)
    gone = [tuple(range(count, whole)) for count in LEFT]
    left = [tried(whole, *([Lesion(interneurons=cells)] if cells else []))[0] for cells in gone]
    return {
        "interneuron_error": ("interneurons", made[:, 0]),
        "interneuron_accuracy": ("interneurons", made[:, 1]),
        "left_error": ("left", left),
        "cut_error": tried(whole, Lesion(lateral=0.5))[0],
    }


def quietly(circuit: Circuit, points: FloatArray) -> FloatArray:
    """Responses of a circuit that need not settle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsettledWarning)
        return circuit.respond(points)


def delays(settings: Settings, learned: Learned, rng: np.random.Generator) -> dict[str, Any]:
    """For every tau_u and delay: growth of a push, measured and predicted, and share of
    presentations that settle; for every tau_u the critical delay, and that for settling in time."""
    p = learned.parameters
    driven = learned.circuit("exact").respond(learned.points).any(axis=1)
    points = learned.points[driven][: settings.n_delayed]
    push = rng.uniform(0.5, 1, 2) * PUSH
    in_time = SETTLED ** (1 / settings.delay_steps)
    growth, predicted, settled = [], [], []
    limits = []
    for tau in settings.taus:
        own = {"tau_u": f"{tau!r} ms", "steps_per_presentation": settings.delay_steps}
        changed = p.replace(**own)
        gamma = theory.step_sizes(changed, None, 1.0)
        most = max(settings.delays)
        limits.append([theory.critical_delay(gamma, 1.0, f, 2 * most) for f in (1.0, in_time)])
        predicted.append([theory.delayed_factor(gamma, 1.0, delay) for delay in settings.delays])
        growth.append([pushed(changed, delay, push) for delay in settings.delays])
        settled.append([share_settled(learned, points, delay, own) for delay in settings.delays])
    along = ("tau_u", "delay")
    return {
        "growth": (along, growth),
        "predicted_growth": (along, predicted),
        "settled": (along, settled),
        "critical_delay": ("tau_u", np.array(limits)[:, 0]),
        "settling_delay": ("tau_u", np.array(limits)[:, 1]),
    }


def delay_of(p: CircuitParameters, steps: int) -> Delay:
    """A delay of so many steps."""
    return Delay(time=format_seconds(steps * p.dt_))


def pushed(p: CircuitParameters, delay: int, push: FloatArray) -> float:
    """What a step multiplies the deviation of a circuit by that rests and is pushed in its first
    step.

    A circuit of one tile and one interneuron rests where it settles, and has the modes along h*,
    which are the ones that a delay changes.
    """
    p = p.replace(n_tiles=1, n_interneurons=1, gain="control")
    first = (1.0, *[0.0] * (p.steps_per_presentation - 1))
    kicks = [
        Current(into=on, amount=float(a), steps=first) for on, a in zip("hu", push, strict=True)
    ]
    center = np.array([MOONS_LIFT.center])
    circuit = base.make_circuit(
        "reference", p, MOONS_LIFT, center, perturbations=[delay_of(p, delay), *kicks]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsettledWarning)
        run = circuit.run(center, record=("h", "u"))
    size = p.kappa * (1 - circuit.alpha)
    h, u = (run[f"{name}_trace"].to_numpy()[0, :, 0] for name in "hu")
    return growth_of(np.column_stack([h - 1, u / np.sqrt(size) - 1]))


def growth_of(deviations: FloatArray) -> float:
    """The factor per step of the slowest mode, or pair of modes, of deviations (step, variable).

    The last half of those that are neither rounding nor large is fitted by d'' = c d' + e d, which
    two modes z of z^2 = c z + e obey; every step counts alike, however large it is.
    """
    sizes = np.linalg.norm(deviations, axis=1)
    large = np.flatnonzero(sizes > MOST)
    end = large[0] if large.size else len(sizes)
    tiny = np.flatnonzero(sizes[:end] < LEAST)
    end = tiny[0] if tiny.size else end
    kept = deviations[end // 2 : end]
    if len(kept) < 4:
        return np.nan
    scale = np.linalg.norm(kept[:-2], axis=1)[:, None]
    past = [(part / scale).ravel() for part in (kept[1:-1], kept[:-2])]
    c, e = np.linalg.lstsq(np.column_stack(past), (kept[2:] / scale).ravel(), rcond=None)[0]
    return float(np.abs(np.roots([1, -c, -e])).max())


def share_settled(
    learned: Learned, points: FloatArray, delay: int, changes: dict[str, Any]
) -> float:
    """Share of points, which drive some tile, on which rates settle with a delay; none where they
    diverge."""
    circuit = learned.circuit("reference", delay_of(learned.parameters, delay), Freeze(), **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsettledWarning)
        try:
            run = circuit.run(points)
        except DivergenceError:
            return 0.0
    # Rates that swing down to zero do not change there.
    still = (run["change"] <= SETTLED) & run["h"].any("tile")
    return float(still.mean())


def noises(settings: Settings, learned: Learned, engine: str, seed: int) -> dict[str, Any]:
    """Root mean square of |h - closed form|, what the linear response says of it, and accuracy,
    with noise on h, u or V."""
    few = slice(settings.n_noisy)
    points, classes = learned.points[few], learned.classes[few]
    p = learned.parameters
    exact = learned.circuit("exact").respond(points)
    active, used = (exact > 0).sum(axis=1), int(learned.state.in_use.sum())
    shape = len(RATES), len(settings.sizes)
    errors, predicted, accuracy = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    taus = {"h": p.tau_h_, "u": p.tau_u_, "V": p.tau_V_}
    response = noise_variance(learned, points, active, used)
    for i, on in enumerate(RATES):
        for j, size in enumerate(settings.sizes):
            # All three at once, two of them of no size: it is the same program.
            done = [Noise(on=one, size=size * (one == on), seed=seed) for one in RATES]
            h = quietly(learned.circuit(engine, *done), points)
            errors[i, j] = np.sqrt(((h - exact) ** 2).sum(axis=1).mean())
            predicted[i, j] = size * np.sqrt(p.dt_ / taus[on] * response[on])
            y = learned.answers(h, learned.state)
            accuracy[i, j] = 1 - float(base.error_rate(y, classes))
    along = ("on", "size")
    return {
        "noise_error": (along, errors),
        "predicted_noise_error": (along, predicted),
        "noise_accuracy": (along, accuracy),
    }


def noise_variance(
    learned: Learned, points: FloatArray, active: NDArray[np.intp], used: int
) -> dict[str, float]:
    """Mean |h - closed form|^2 by the linear response, for noise of variance 1 in every step."""
    circuit, state = learned.circuit("exact"), learned.state
    found: dict[str, list[float]] = {on: [] for on in RATES}
    for x, count in zip(circuit.lift(points), active, strict=True):
        a = reference.drive(state.W, state.b, x, circuit.alpha)
        drive = gain_control.measured(a, circuit.floor)
        for on in RATES:
            if not count:  # h is held at zero
                found[on].append(0.0)
                continue
            along, across = theory.noise_response(circuit.gamma(drive), drive, on)
            silent = (used - count) / 2 if on == "h" else 0.0
            found[on].append(along + (count - 1) * across + silent)
    return {on: float(np.mean(values)) for on, values in found.items()}
