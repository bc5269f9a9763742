"""The reference solver: the paper's algorithm in NumPy, to be read next to its equations."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circuits import rules
from circuits.base import Circuit
from circuits.errors import ParameterError, shown, shown_path
from circuits.lift import FloatArray, SphereLift
from circuits.model import CircuitModel
from circuits.parameters import CircuitParameters
from circuits.parts import Part
from circuits.parts.part import Scene
from circuits.perturbations import Perturbation
from circuits.perturbing import Perturbed
from circuits.rules import Rule
from circuits.state import CircuitState, Task, relative_change, started

NOTHING = rules.Start(0.0, 0.0, 0.0, 1.0, 0.0, 1.0)
"""How a presentation starts that drives no tile."""


class ReferenceCircuit(Circuit):
    """The circuit without Brian2.

    Parameters
    ----------
    settling
        "dynamics" takes the S steps of every presentation one by one, as the Brian2 circuit does;
        "exact" jumps to where they lead (`rules.fixed_point`).
    model
        Equations and rules; each must have a NumPy function.
    """

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        *,
        settling: Literal["dynamics", "exact"] = "dynamics",
        model: CircuitModel | None = None,
        tile_centers: ArrayLike | None = None,
        perturbations: Iterable[Perturbation] = (),
        parts: Iterable[Part] = (),
    ) -> None:
        if settling not in ("dynamics", "exact"):
            raise ParameterError(f"settling must be 'dynamics' or 'exact', got {shown(settling)}")
        super().__init__(
            parameters,
            lift,
            model=model,
            tile_centers=tile_centers,
            perturbations=perturbations,
            parts=parts,
        )
        self.model.require_numpy(parameters)
        self.parts.require_numpy()
        if settling == "exact":
            self.model.require_closed_form()
            self.perturbed.require_closed_form()
            self.parts.require_closed_form()
        self.settling = settling
        self.engine = "reference" if settling == "dynamics" else "exact"

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        settling: Literal["dynamics", "exact"] = "dynamics",
        model: CircuitModel | None = None,
        parts: Iterable[Part] | None = None,
    ) -> Self:
        """The circuit that ``save`` wrote, of this class or on Brian2.

        ``model`` and ``parts`` are used instead of those in the file, which have no NumPy functions
        of their own.
        """
        from circuits.storage.saved_circuit import Kept

        kept = Kept(path)
        if model is None:
            model = kept.model
        circuit = cls(
            kept.parameters,
            kept.lift,
            settling=settling,
            model=model,
            perturbations=kept.perturbations,
            parts=kept.parts_or(parts),
        )
        if kept.values_set:
            raise ParameterError(
                f"{shown_path(path)} has values that were set on a network "
                f"({', '.join(kept.values_set)}), which NumPy does not have: use ManifoldCircuit"
            )
        kept.restore(circuit)
        return circuit

    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        out: dict[str, list[FloatArray]] = {}

        def store(name: str, value: FloatArray) -> None:
            out.setdefault(name, []).append(value)

        # Diverging rates overflow; the caller finds and names them.
        with np.errstate(over="ignore", invalid="ignore"):
            for done, (x, z) in enumerate(zip(task.x, task.z, strict=True)):
                now = Moment(self.perturbed, task.strengths[done], task.first + done, state.learned)
                s = Scene(
                    self.parts, state, x=x, z=z, a=None, y=None, inhibition=0.0, excitation=0.0
                )
                self._load(s, task.learn and not now.freezes("tiles"))
                change, traces = self._settle(state, s, task.record, now)
                self.parts.at("before_answer", s)
                s.y = self._answer(state, state.h, z, now)
                self.parts.at("answer", s)
                self.parts.at("after_answer", s)
                h, y = state.h, s.y
                for name, value in (("h", h), ("u", state.u), ("y", y)):
                    store(name, value)
                store("change", np.array(change))
                if "y" in task.record:
                    # With w fixed through the presentation y follows from the trace of h.
                    traces["y"] = np.array(
                        [self._answer(state, row, z, now) for row in traces["h"]]
                    )
                for name in task.record:
                    store(f"{name}_trace", traces[name])
                self.parts.at("before_learn", s)
                if task.learn:
                    self._learn(state, x, y, now)
                self.parts.at("learn", s)
                self.parts.at("after_learn", s)
                if task.snapshots:
                    for name in ("W", "b", "w"):
                        store(f"{name}_snapshots", getattr(state, name))
                self.parts.at("before_load", s)
                state.shown += 1
                task.report(done + 1)
        return {name: np.array(values) for name, values in out.items()}

    _drive: FloatArray | None = None
    """The drive of the point that may recruit a tile, as the parts have left it."""

    def _answering(self, state: CircuitState, x: FloatArray) -> NDArray[np.bool_]:
        if self._drive is None:
            return super()._answering(state, x)
        below = self.parameters.recruit_below
        return rules.answers(self._drive, state.b, self.alpha, below, self.floor)

    def _load(self, s: Scene, recruits: bool) -> None:
        """Take the next point: its drive, and a tile for it if none responds."""
        parts, state = self.parts, s.state
        parts.at("load", s)
        parts.at("after_load", s)
        parts.at("before_drive", s)
        s.a = rules.drive(state.W, state.b, s.x, self.alpha)
        parts.at("drive", s)
        parts.at("after_drive", s)
        parts.at("before_recruit", s)
        if recruits:
            self._drive = s.a
            self.recruit(state, s.x)
            self._drive = None
            drive = rules.drive(state.W, state.b, s.x, self.alpha)
            s.a = np.where(state.recruited == state.learned, drive, s.a)
        parts.at("recruit", s)
        parts.at("after_recruit", s)

    def _answer(self, state: CircuitState, h: FloatArray, z: FloatArray, now: Moment) -> FloatArray:
        p = self.parameters
        net = state.w @ h
        if p.readout_rule == "gated":
            net = rules.pooled(net, h)
        driven = z + now.injected("y") if self.perturbations else z
        y = _run(self.model.answer(p), net, driven, np.array(p.mu_per_readout))
        y = rules.clamped(y, z) if p.clamp_labels else y
        if "y" in self.perturbed.noisy:
            y = y + now.noise("y")
            y = np.clip(y, -1.0, 1.0) if self.perturbed.bounds_answer else y
        return y

    def _learn(self, state: CircuitState, x: FloatArray, y: FloatArray, now: Moment) -> None:
        """One presentation's learning, from the settled h: w, W and b together."""
        p, model = self.parameters, self.model
        state.learned += 1
        if model.learns:
            rate = 1 / state.learned if p.readout_rate == "running_mean" else float(p.readout_rate)
            h, eta = state.h, p.learning_rate
            if not now.freezes("w"):
                state.w = _run(model.classify(p), state.w, y, h, rate)
            if not now.freezes("W"):
                state.W = _run(model.feedforward, state.W, h, x, eta)
            if not now.freezes("b"):
                state.b = _run(model.bias, state.b, h, self.alpha, eta)
        for name in ("w", "W", "b") if self.perturbations else ():
            if name in self.perturbed.noisy:
                # What is drawn for the synapses of idle tiles is not used.
                there = state.in_use[:, None] if name == "W" else state.in_use
                setattr(state, name, getattr(state, name) + there * now.noise(name))
        state.w = now.kept("classifier", model.masked("classifier", state.w))
        state.W = now.kept("feedforward", model.masked("feedforward", state.W))

    def _settle(
        self, state: CircuitState, s: Scene, record: tuple[str, ...], now: Moment
    ) -> tuple[float, dict[str, FloatArray]]:
        """Settle h, u and V on the drive; return the last step's change and the traces."""
        p = self.parameters
        steps = p.steps_per_presentation
        self.parts.at("before_measure", s)
        a = s.a
        if self.settling == "exact":
            direction = self._direction(state)
            begin = rules.start(a, self.floor, state.last_size, self.gain)
            if self.perturbations and begin.gain:
                a = a + state.in_use * now.injected("h") / begin.gain
            state.h, state.u, state.V = rules.fixed_point(a, direction, self.floor)
            state.last_size = begin.last
            for stage in ("measure", "after_measure", "before_restart", "restart", "after_restart"):
                self.parts.at(stage, s)
            # The closed form has no path: a trace of it is its end at every step.
            return 0.0, {
                name: np.repeat(getattr(state, name)[None], steps, axis=0)
                for name in ("h", "u", "V")
                if record
            }
        line = self.model.delay_line(p)
        begin = rules.start(a, self.floor, state.last_size, self.gain)
        state.last_size = begin.last
        for stage in ("measure", "after_measure", "before_restart"):
            self.parts.at(stage, s)
        h, u, _ = rules.rest(p.n_tiles, p.n_interneurons, self.gain)
        if self.perturbations:
            u = np.where(self.perturbed.gone("interneurons", state.learned), 0.0, u)
        before_V = state.V
        state.h, state.u, V, on_their_way = started(self, state, begin, h, u)
        V = self.perturbed.started_lateral(V, before_V, state.learned, now.strengths)
        state.V = self.model.masked("lateral", V)
        state.extra |= on_their_way
        self.parts.at("restart", s)
        self.parts.at("after_restart", s)
        path = []
        before = state.h, state.u
        gamma_h: Any = begin.gain * p.dt_ / p.tau_h_
        if self.perturbed.has_unequal_gain:
            gamma_h = gamma_h * self.perturbed.gain_factors()
        gamma = gamma_h, p.dt_ / p.tau_u_, p.dt_ / p.tau_V_
        gain = gamma_h * p.tau_h_ / p.dt_
        now = replace(now, begin=begin, gain=gain, alive=u > 0)
        perturbed = bool(self.perturbations)
        for step in range(steps):
            before = state.h, state.u
            self._step(state, s, gamma, line, replace(now, step=step) if perturbed else now)
            if record:
                path.append((state.h, state.u, state.V))
        traces = {
            name: np.array(rows)
            for name, rows in zip(
                ("h", "u", "V") if path else (), zip(*path, strict=True), strict=True
            )
        }
        return float(relative_change(before[0], state.h, before[1], state.u)), traces

    def _direction(self, state: CircuitState) -> FloatArray:
        """Unit vector along which u settles: that of rest, without interneurons that are gone."""
        rest = rules.rest_direction(self.parameters.n_interneurons)
        if not self.perturbations:
            return rest
        there = np.where(self.perturbed.gone("interneurons", state.learned), 0.0, rest)
        direction: FloatArray = there / np.linalg.norm(there)
        return direction

    def _step(
        self,
        state: CircuitState,
        s: Scene,
        gamma: tuple[Any, float, float],
        line: list[str],
        now: Moment,
    ) -> None:
        """One step of the model, in the model's order (`CircuitModel.each_step`)."""
        model, at = self.model, self.parts.at
        gamma_h, gamma_u, gamma_V = gamma
        h_seen = state.extra[line[-2]] if line else state.h
        u_seen = state.extra[line[-1]] if line else state.u
        for what in model.each_step:
            at(f"before_{what}", s)
            if what == "sums":
                s.inhibition, s.excitation = u_seen @ state.V, state.V @ h_seen
            elif what == "lateral":
                if not now.freezes("V"):
                    state.V = _run(model.lateral, state.V, state.u, state.h, gamma_V)
                if "V" in self.perturbed.noisy:
                    there = now.alive[:, None] & state.in_use
                    noise = there * now.begin.scale * now.noise("V")
                    state.V = np.maximum(state.V + noise, 0.0)
                state.V = now.kept("lateral", model.masked("lateral", state.V))
            elif what == "rates":
                if line:
                    moved = [state.h, state.u, *(state.extra[name] for name in line[:-2])]
                    state.extra |= dict(zip(line, moved, strict=True))
                if self.perturbations and now.begin.gain > 0:
                    s.inhibition = s.inhibition - state.in_use * now.injected("h") / now.gain
                if self.perturbations:
                    s.excitation = s.excitation + now.alive * now.begin.scale * now.injected("u")
                h, u = state.h, state.u
                state.h = _run(model.excitatory, h, s.a, s.inhibition, gamma_h)
                state.u = _run(model.inhibitory, u, s.excitation, gamma_u)
                if "h" in self.perturbed.noisy:
                    noise = now.begin.covered * state.in_use * now.noise("h")
                    state.h = np.maximum(state.h + noise, 0.0)
                if "u" in self.perturbed.noisy:
                    noise = now.alive * now.begin.scale * now.noise("u")
                    state.u = np.maximum(state.u + noise, 0.0)
            at(what, s)
            at(f"after_{what}", s)


def _run(rule: Rule, *values: Any) -> FloatArray:
    """What a rule's NumPy function gives; `CircuitModel.require_numpy` saw that it has one."""
    assert rule.numpy is not None
    return np.asarray(rule.numpy(*values), dtype=float)


@dataclass(frozen=True)
class Moment:
    """What perturbations do at a step of a presentation."""

    perturbed: Perturbed
    strengths: FloatArray
    number: int
    """Of the presentation, for what is drawn at random."""
    learned: int
    """Presentations learned from, which says what is gone."""
    step: int = 0
    begin: rules.Start = NOTHING
    gain: Any = 0.0
    """What the net input of every tile is multiplied by."""
    alive: Any = True
    """Which interneurons there are."""

    def injected(self, into: str) -> Any:
        """Current into h, u or y."""
        return self.perturbed.injected(into, self.strengths, self.step)

    def noise(self, on: str) -> Any:
        """What noise adds; rates and V have it at every step, counted from 1, as on Brian2."""
        step = self.step + 1 if on in ("h", "u", "V") else 0
        return self.perturbed.noise(on, self.strengths, self.number, step)

    def freezes(self, what: str) -> bool:
        """Whether the plasticity of something stands still."""
        return self.perturbed.freezes(what, self.strengths)

    def kept(self, synapses: str, weights: FloatArray) -> FloatArray:
        """Weights with those of cut synapses at zero."""
        return self.perturbed.kept(synapses, weights, self.learned)
