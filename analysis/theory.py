"""What theory says of the fast dynamics: where a presentation settles, and how fast.

Near the fixed point h* = [a]_+/A, u* = sqrt(A) d, V* = u* h*^T, with A = |[a]_+| and a unit vector
d, one step multiplies a small deviation by 1 + lambda. Deviations fall into modes that do not mix:

    along h*    h.h*, u.d and d.V h*:
                lambda^3 + (gu + gV) lambda^2 + G (gu + gV) lambda + 4 G gu gV = 0
    across h*   h and d.V orthogonal to h*, for each active tile but one:
                lambda^2 + gV lambda + G gV = 0
    across d    u and V h* orthogonal to d, for each interneuron but one: lambda = 0 and -(gu + gV)
    the rest    of V: lambda = -gV

with gu = gamma_u, gV = gamma_V and G = gamma_h A. The zero is the direction of u, which the
equations leave open and which a start with V = u h^T never leaves.

A delay between the two kinds of cells (`CircuitModel.delay`) touches only the modes along h*: they
become those of `delayed_step`. The others stay, because what is late there is u* or h* itself, or
of second order.

Under gain control gamma_h = dt/(tau_h A), so G = dt/tau_h whatever the drive: every presentation
has the same modes. With a constant gain G is proportional to the drive.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from analysis.tiles_in_use import in_use_at, recruited_of
from circuits import reference
from circuits.errors import InputError
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.parts import gain_control, other_readouts, recruiting, restart
from circuits.parts.recycling import least_used
from circuits.spiking.parameters import SpikingParameters

Made = TypeVar("Made")
ComplexArray = NDArray[np.complex128]
Gamma = tuple[float, float, float]
"""gamma_h, gamma_u, gamma_V."""
State = tuple[FloatArray, FloatArray, FloatArray]
"""h, u, V."""
Modes = Literal["along", "across", "both"]

EPSILON = float(np.finfo(float).eps)
"""Machine precision: the distance from 1 to the next number, 2.2e-16."""


def cubic(gamma: Gamma, size: float) -> FloatArray:
    """Coefficients, highest power first, of the cubic along h*, with ``size`` A = |[a]_+|:

    lambda^3 + (gu + gV) lambda^2 + gh A (gu + gV) lambda + 4 gh A gu gV.
    """
    gamma_h, gamma_u, gamma_V = gamma
    total = gamma_u + gamma_V
    drive = gamma_h * size
    return np.array([1.0, total, drive * total, 4 * drive * gamma_u * gamma_V])


def quadratic(gamma: Gamma, size: float) -> FloatArray:
    """Coefficients of the pair across h*: lambda^2 + gV lambda + gh A gV."""
    gamma_h, _, gamma_V = gamma
    return np.array([1.0, gamma_V, gamma_h * size * gamma_V])


def roots(gamma: Gamma, size: float, modes: Modes = "both") -> ComplexArray:
    """The lambda of the modes that a start with V = u h^T can excite: three along, two across."""
    found = []
    if modes in ("along", "both"):
        found.append(np.roots(cubic(gamma, size)))
    if modes in ("across", "both"):
        found.append(np.roots(quadratic(gamma, size)))
    return np.asarray(np.concatenate(found), dtype=complex)


def spectrum(
    gamma: Gamma, size: float, n_tiles: int, n_interneurons: int, n_active: int
) -> ComplexArray:
    """All eigenvalues of one step at the fixed point, 1 + lambda each as often as it occurs.

    ``n_active`` tiles have a_i > 0. The others are held at h_i = 0 (eigenvalue 0).
    """
    _, gamma_u, gamma_V = gamma
    silent = n_tiles - n_active
    others = n_interneurons - 1
    lambdas = [
        roots(gamma, size, "along"),
        np.tile(roots(gamma, size, "across"), n_active - 1),
        np.tile([0.0, -(gamma_u + gamma_V)], others),
        np.full(others * (n_active - 1) + n_interneurons * silent, -gamma_V),
        np.full(silent, -1.0),
    ]
    return np.asarray(1 + np.concatenate(lambdas), dtype=complex)


def growth_factor(gamma: Gamma, size: float, modes: Modes = "both") -> float:
    """max |1 + lambda|: what a step multiplies the slowest mode by; below 1 it settles."""
    return float(np.abs(1 + roots(gamma, size, modes)).max())


def critical_drive(gamma_u: ArrayLike, gamma_V: ArrayLike) -> FloatArray:
    """The gamma_h A at which settling stops: stable iff 0 < gamma_h A < this (rates up to 1).

        G_c = ((gu - gV)^2 - 4 gu gV (gu + gV)) / (gu + gV - 4 gu gV)^2

    It is the Hurwitz condition of the cubic after 1 + lambda = (1 + s)/(1 - s), which maps the
    unit circle onto the imaginary axis. Modes across h* need only G < 1, and G_c < 1. Not positive
    means that no drive is stable. As the steps get small G_c tends to ((gu - gV)/(gu + gV))^2
    while G tends to 0: then only equal rates fail to settle.
    """
    u, v = np.asarray(gamma_u, dtype=float), np.asarray(gamma_V, dtype=float)
    # Where the denominator is 0 the numerator is -(gu + gV): no drive is stable, minus infinity.
    with np.errstate(divide="ignore"):
        return np.asarray(((u - v) ** 2 - 4 * u * v * (u + v)) / (u + v - 4 * u * v) ** 2)


def is_stable(gamma: Gamma, size: float) -> bool:
    """Whether the fixed point attracts: 0 < gamma_h A < `critical_drive`."""
    return bool(0 < gamma[0] * size < critical_drive(gamma[1], gamma[2]))


def delayed_step(gamma: Gamma, size: float, delay: int = 0) -> FloatArray:
    """One step of small deviations along h* with a delay of D = ``delay`` steps, as a matrix.

    With p, s, v the deviations of h.h*, u.d and d.V h* in units of 1, sqrt(A) and sqrt(A), and the
    order of the model, in which V learns from the rates as they are:

        p <- p - G (v + s_D),  s <- s + gu (v + p_D - s),  v <- v + gV (p + s - v)

    where p_D and s_D are those of D steps ago. The vector is (p, s, v, p_1 ... p_D, s_1 ... s_D).
    """
    gamma_h, gamma_u, gamma_V = gamma
    drive = gamma_h * size
    p, s, v = range(3)
    late_p, late_s = (2 + delay, 2 + 2 * delay) if delay else (p, s)
    step = np.zeros((3 + 2 * delay, 3 + 2 * delay))
    step[p, p] = 1.0
    step[p, v] -= drive
    step[p, late_s] -= drive
    step[s, s] = 1 - gamma_u
    step[s, v] += gamma_u
    step[s, late_p] += gamma_u
    step[v, [p, s, v]] = gamma_V, gamma_V, 1 - gamma_V
    for rate, first in ((p, 3), (s, 3 + delay)):
        for place in range(first, first + delay):  # what was there a step ago moves on
            step[place, rate if place == first else place - 1] = 1.0
    return step


def delayed_factor(gamma: Gamma, size: float, delay: int = 0) -> float:
    """What a step multiplies the slowest mode by with a delay of so many steps; see
    `growth_factor`, which it is without one."""
    along = np.abs(np.linalg.eigvals(delayed_step(gamma, size, delay))).max()
    return max(float(along), growth_factor(gamma, size, "across"))


def critical_delay(gamma: Gamma, size: float, factor: float = 1.0, most: int = 100) -> float:
    """The delay in steps, between whole ones by a straight line, from which on the slowest mode is
    multiplied by ``factor`` or more at every step: with 1 the circuit settles no more.

    0 where it is so without a delay, and infinite where it is not so up to ``most`` steps.
    """
    before = math.nan
    for delay in range(most + 1):
        found = delayed_factor(gamma, size, delay)
        if found >= factor:
            return delay - (found - factor) / (found - before) if delay else 0.0
        before = found
    return math.inf


def noise_response(gamma: Gamma, size: float, on: str) -> tuple[float, float]:
    """Variance of h along h* and in every direction across it (of active tiles), when weak noise of
    variance 1 (h), or A (u and V), is added to every h, u or V at every step: the covariance C of
    the modes, C = J C J^T + Q, of which Q is the noise.

    To first order noise on u moves h along h* only. Silent tiles are not in it: h of one is cut at
    zero after every step, and so has half the variance of what is added.
    """
    from scipy.linalg import solve_discrete_lyapunov

    gamma_h, _, gamma_V = gamma
    along = delayed_step(gamma, size)
    across = np.array([[1.0, -gamma_h * size], [gamma_V, 1 - gamma_V]])
    parts = []
    for step, place in ((along, "huV".index(on)), (across, {"h": 0, "V": 1}.get(on))):
        noise = np.zeros_like(step)
        if place is not None:
            noise[place, place] = 1.0
        parts.append(float(solve_discrete_lyapunov(step, noise)[0, 0]))
    return parts[0], parts[1]


def parameters_of(run: xr.Dataset) -> CircuitParameters:
    """The parameters a result was made with, which its arrays must agree with."""
    parameters = _made(CircuitParameters, run, "parameters")
    for dim in ("tile", "interneuron", "readout"):
        said = getattr(parameters, f"n_{dim}s")
        if run.sizes.get(dim, said) != said:
            raise InputError(
                f"this result says n_{dim}s={said} and holds {run.sizes[dim]}: it was changed"
            )
    return parameters


def spiking_of(run: xr.Dataset) -> SpikingParameters:
    """How the cells of a result fire."""
    return _made(SpikingParameters, run, "spiking")


def values_of(run: xr.Dataset, attribute: str) -> dict[str, Any]:
    """The values by name that an attribute of a result holds as JSON."""
    try:
        values = json.loads(run.attrs[attribute])
    except (KeyError, TypeError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError(f"this result does not say its {attribute}, or not as a JSON object")
    return values


def _made(kind: Callable[..., Made], run: xr.Dataset, attribute: str) -> Made:
    """What the values in an attribute of a result make."""
    try:
        return kind(**values_of(run, attribute))
    except (TypeError, ValueError) as error:  # as the circuit's own errors are, too
        reason = str(error).partition("\n")[0][:200]
        raise InputError(f"this result's {attribute} make no sense: {reason}") from None


def finite_of(run: xr.Dataset, attribute: str) -> float:
    """The finite number that an attribute of a result holds."""
    try:
        value = float(run.attrs[attribute])
    except (KeyError, TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"this result does not say its {attribute} as a finite number")
    return value


def gain_of(run: xr.Dataset) -> float | None:
    """The constant gain of a result; None under gain control."""
    return None if run.attrs.get("gain") == "control" else finite_of(run, "gain")


def gamma_of(run: xr.Dataset, size: float) -> Gamma:
    """Step sizes of a result on a drive |[a]_+| = ``size``: gain dt/tau_h, dt/tau_u, dt/tau_V.

    Under gain control the gain is 1/``size``, and 0 where there is no drive.
    """
    return step_sizes(parameters_of(run), gain_of(run), size)


def step_sizes(p: CircuitParameters, gain: float | None, size: float) -> Gamma:
    """gain dt/tau_h, dt/tau_u, dt/tau_V; without a constant ``gain`` it is 1/``size``."""
    if gain is None:
        gain = 1 / size if size > 0 else 0.0
    return gain * p.dt_ / p.tau_h_, p.dt_ / p.tau_u_, p.dt_ / p.tau_V_


def floor_of(run: xr.Dataset) -> float:
    """Drives |[a]_+| of a result up to this count as nothing."""
    if gain_of(run) is not None:
        return 0.0
    return float(gain_control.FLOOR * parameters_of(run).kappa * (1 - finite_of(run, "alpha")))


def has_closed_form(run: xr.Dataset) -> bool:
    """Whether a result's rates settle as the paper's do: other ways of learning do not matter."""
    changes = values_of(run, "model_changes") if "model_changes" in run.attrs else {}
    return set(changes) <= {"feedforward", "bias", "classifier", "each_presentation"}


@dataclass(frozen=True)
class Target:
    """Where a presentation leads."""

    a: FloatArray
    """The drive."""
    b: FloatArray
    """The biases before the presentation."""
    h: FloatArray
    u: FloatArray
    V: FloatArray
    y: FloatArray | None
    """None where w before the presentation cannot be known."""
    size: float
    """A = |[a]_+|."""


def weights_before(run: xr.Dataset, presentation: int) -> dict[str, FloatArray]:
    """W, b and (where it can be known) w as they were when a presentation began.

    They are the snapshot of the presentation before, and the tile that the presentation recruited,
    if it did. Where there is no such snapshot, the learning of this presentation is undone in the
    snapshot after it: W = (W' - eta h x^T)/(1 - eta), and so on.
    """
    if "W_snapshots" not in run:
        raise InputError(
            "the closed form needs W and b before the presentation, which this result does not "
            "hold: run with snapshot_every=1"
        )
    before = _snapshot(run, presentation - 1)
    if before is not None:
        return _with_recruited(run, presentation, before)
    after = _snapshot(run, presentation)
    if after is None:
        raise InputError(
            f"the closed form needs W and b before presentation {presentation}, but there is no "
            f"snapshot at {presentation - 1} or {presentation}: run with snapshot_every=1"
        )
    return _unlearned(run, presentation, after)


def _snapshot(run: xr.Dataset, presentation: int) -> dict[str, FloatArray] | None:
    """W, b and w as they were stored after a presentation, if they were."""
    if "W_snapshots" not in run:
        return None
    at = np.flatnonzero(run["snapshot_presentation"].to_numpy() == presentation)
    if not at.size:
        return None
    return {name: run[f"{name}_snapshots"][int(at[0])].to_numpy() for name in ("W", "b", "w")}


def _number(run: xr.Dataset, presentation: int) -> int:
    """The number of a presentation in the circuit's life."""
    return int(finite_of(run, "first_presentation")) + presentation


def _input(run: xr.Dataset, presentation: int) -> FloatArray:
    """The lifted point of a presentation."""
    x: FloatArray = lift_of(run)(run["points"][[presentation]].to_numpy())[0]
    return x


def _with_recruited(
    run: xr.Dataset, presentation: int, weights: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """The weights with the tile in place that a presentation recruited before it began."""
    p, number = parameters_of(run), _number(run, presentation)
    if p.tiles == "first" or "recruited" not in run:
        return weights
    new = recruited_of(run) == number
    if not new.any() and not p.recycle:
        return weights
    x, alpha = _input(run, presentation), finite_of(run, "alpha")
    if p.recycle:  # the result says when a tile moved last; whether one did now the rule says
        W, b = weights["W"], weights["b"]
        a = reference.drive(W, b, x, alpha)
        answering = recruiting.answers(a, b, alpha, p.recruit_below, floor_of(run))
        recruited = np.where(in_use_at(run, number - 1, b), 0, -1)
        idle = recruiting.next_idle(recruited)
        tile = least_used(b, recruited) if idle is None else idle
        new = (np.arange(p.n_tiles) == tile) & ~answering.any()
    return {
        "W": np.where(new[:, None], p.kappa * x, weights["W"]),
        "b": np.where(new, p.kappa * math.sqrt(alpha), weights["b"]),
        "w": np.where(new, 0.0, weights["w"]),
    }


def _changes_weights(perturbation: dict[str, Any]) -> bool:
    """Whether W, b or w change otherwise than by learning."""
    kind, on = perturbation["kind"], perturbation.get("on")
    return kind in ("freeze", "lesion") or (kind == "noise" and on in ("W", "b", "w"))


def _unlearned(
    run: xr.Dataset, presentation: int, late: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """The weights before a presentation, from those after it."""
    changes = values_of(run, "model_changes") if "model_changes" in run.attrs else {}
    if "learn" not in changes.get("each_presentation", ("learn",)):
        return late
    own = set(changes) & {"feedforward", "bias", "classifier"}
    own |= {one["kind"] for one in changes.get("perturbations", ()) if _changes_weights(one)}
    if own:
        raise InputError(
            f"W and b before presentation {presentation} cannot be known: there is no snapshot "
            f"before it, and its learning ({sorted(own)[0]}) is not the paper's"
        )
    p = parameters_of(run)
    eta = p.learning_rate
    if eta == 1:
        raise InputError(
            f"W and b before presentation {presentation} cannot be known: there is no snapshot "
            "before it, and learning_rate=1 overwrites them"
        )
    h, y = (run[name][presentation].to_numpy() for name in "hy")
    x, alpha = _input(run, presentation), finite_of(run, "alpha")
    found = {
        "W": (late["W"] - eta * np.outer(h, x)) / (1 - eta),
        "b": (late["b"] - eta * math.sqrt(alpha) * h) / (1 - eta),
    }
    learned = _number(run, presentation)
    rate = 1 / (learned + 1) if p.readout_rate == "running_mean" else float(p.readout_rate)
    # What of the old w is left: at rate 1, the first of a running mean, nothing.
    left = 1 - rate * (h if p.readout_rule == "gated" else np.ones_like(h))
    if (left > 0).all():
        found["w"] = (late["w"] - rate * np.outer(y, h)) / left
    return found


def lift_of(run: xr.Dataset) -> SphereLift:
    """The front end a result was made with."""
    return _made(SphereLift, run, "lift")


def target_of(run: xr.Dataset, presentation: int) -> Target:
    """The closed form that a presentation of a result should settle on."""
    if not has_closed_form(run):
        raise InputError("the closed form is that of the paper's circuit, and this one was changed")
    p = parameters_of(run)
    weights = weights_before(run, presentation)
    x, alpha, floor = _input(run, presentation), finite_of(run, "alpha"), floor_of(run)
    a = reference.drive(weights["W"], weights["b"], x, alpha)
    h, u, V = reference.fixed_point(a, reference.rest_direction(p.n_interneurons), floor)
    y = None
    if "w" in weights:
        z, mu = run["labels"][presentation].to_numpy().astype(float), np.array(p.mu_per_readout)
        net = weights["w"] @ h
        net = other_readouts.pooled(net, h) if p.readout_rule == "gated" else net
        y = reference.ANSWER[p.readout](net, z, mu)
        y = other_readouts.clamped(y, z) if p.clamp_labels else y
    return Target(a, weights["b"], h, u, V, y, gain_control.measured(a, floor))


def rest_on(run: xr.Dataset, presentation: int, target: Target) -> State:
    """h, u and V at rest, at the scale of the drive of a presentation; idle tiles rest at zero."""
    p, gain = parameters_of(run), gain_of(run)
    begin = gain_control.start(target.a, floor_of(run), 1.0, gain)
    h, u, _ = reference.rest(p.n_tiles, p.n_interneurons, gain)
    h, u = h * in_use_at(run, _number(run, presentation), target.b), begin.scale * u
    return begin.covered * h, u, np.asarray(np.outer(u, h), dtype=float)


def start_of(run: xr.Dataset, presentation: int, target: Target) -> State | None:
    """h, u and V as a presentation began: at rest, or carried over from the one before it.

    V, of which a result holds no more than the end, is taken to have settled when it carries over.
    None where what carries over to a result's first presentation is not in it.
    """
    rest = rest_on(run, presentation, target)
    if parameters_of(run).reset:
        return rest
    if presentation == 0:
        return None
    last = last_size_of(run, presentation)
    begin = gain_control.start(target.a, floor_of(run), last, gain_of(run))
    h, u = (run[name][presentation - 1].to_numpy() for name in "hu")
    kept = begin.ratio * u, begin.ratio * np.outer(u, h)
    return begin.covered * h, *restart.carry_over(*kept, *rest[1:])


def last_size_of(run: xr.Dataset, presentation: int) -> float:
    """A = |[a]_+| of the last point before a presentation that some tile answered.

    The settled interneurons tell it: A = |u|^2. Before the first one a circuit rests at |u| = 1.
    """
    answered = np.flatnonzero(run["h"][:presentation].to_numpy().any(axis=1))
    if not answered.size:
        return 1.0
    u = run["u"][int(answered[-1])].to_numpy()
    return float(u @ u)


def diffusion_by_noise(size: Any, weight: Any) -> Any:
    """D_0 = size^2/(2 |W|^2) in rad^2 per presentation: diffusion of the direction of a tile's
    weights in a plane, ``weight`` long there, if independent noise of that size along the tangent
    is all that moves it.

    A step turns it by size/|W| at random, and the mean squared angle grows by 2 D_0 each. Learning
    pulls W to E(h x), which turns with it: of a tile without neighbours it changes the length, not
    the direction.
    """
    return size**2 / (2 * weight**2)
