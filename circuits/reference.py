"""The reference solver: the paper's algorithm in NumPy, to be read next to its equations."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from circuits import rules
from circuits.base import Circuit
from circuits.errors import ParameterError, shown, shown_path
from circuits.lift import FloatArray, SphereLift
from circuits.model import CircuitModel
from circuits.parameters import CircuitParameters
from circuits.rules import Rule
from circuits.state import CircuitState, Task, relative_change, started


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
    ) -> None:
        if settling not in ("dynamics", "exact"):
            raise ParameterError(f"settling must be 'dynamics' or 'exact', got {shown(settling)}")
        super().__init__(parameters, lift, model=model, tile_centers=tile_centers)
        self.model.require_numpy(parameters)
        if settling == "exact":
            self.model.require_closed_form()
        self.settling = settling
        self.engine = "reference" if settling == "dynamics" else "exact"

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        settling: Literal["dynamics", "exact"] = "dynamics",
        model: CircuitModel | None = None,
    ) -> Self:
        """The circuit that ``save`` wrote, of this class or on Brian2.

        ``model`` is used instead of the one in the file, which has no NumPy functions of its own.
        """
        from circuits.keeping import Kept

        kept = Kept(path)
        if model is None:
            model = kept.model
        circuit = cls(kept.parameters, kept.lift, settling=settling, model=model)
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
                if task.learn:
                    self.recruit(state, x)
                a = rules.drive(state.W, state.b, x, self.alpha)
                change, traces = self._settle(state, a, task.record)
                h, y = state.h, self._answer(state, state.h, z)
                for name, value in (("h", h), ("u", state.u), ("y", y)):
                    store(name, value)
                store("change", np.array(change))
                if "y" in task.record:
                    # With w fixed through the presentation y follows from the trace of h.
                    traces["y"] = np.array([self._answer(state, row, z) for row in traces["h"]])
                for name in task.record:
                    store(f"{name}_trace", traces[name])
                if task.learn:
                    self._learn(state, x, y)
                if task.snapshots:
                    for name in ("W", "b", "w"):
                        store(f"{name}_snapshots", getattr(state, name))
                state.shown += 1
                task.report(done + 1)
        return {name: np.array(values) for name, values in out.items()}

    def _answer(self, state: CircuitState, h: FloatArray, z: FloatArray) -> FloatArray:
        p = self.parameters
        net = state.w @ h
        if p.readout_rule == "gated":
            net = rules.pooled(net, h)
        y = _run(self.model.answer(p), net, z, np.array(p.mu_per_readout))
        return rules.clamped(y, z) if p.clamp_labels else y

    def _learn(self, state: CircuitState, x: FloatArray, y: FloatArray) -> None:
        """One presentation's learning, from the settled h: w, W and b together."""
        p, model = self.parameters, self.model
        state.learned += 1
        if not model.learns:
            return
        rate = 1 / state.learned if p.readout_rate == "running_mean" else float(p.readout_rate)
        h, eta = state.h, p.learning_rate
        state.w = model.masked("classifier", _run(model.classify(p), state.w, y, h, rate))
        state.W = model.masked("feedforward", _run(model.feedforward, state.W, h, x, eta))
        state.b = _run(model.bias, state.b, h, self.alpha, eta)

    def _settle(
        self, state: CircuitState, a: FloatArray, record: tuple[str, ...]
    ) -> tuple[float, dict[str, FloatArray]]:
        """Settle h, u and V on the drive a; return the last step's change and the traces."""
        p = self.parameters
        steps = p.steps_per_presentation
        if self.settling == "exact":
            direction = rules.rest_direction(p.n_interneurons)
            state.h, state.u, state.V = rules.fixed_point(a, direction, self.floor)
            state.last_size = rules.start(a, self.floor, state.last_size, self.gain).last
            # The closed form has no path: a trace of it is its end at every step.
            return 0.0, {
                name: np.repeat(getattr(state, name)[None], steps, axis=0)
                for name in ("h", "u", "V")
                if record
            }
        line = self.model.delay_line(p)
        begin = rules.start(a, self.floor, state.last_size, self.gain)
        state.last_size = begin.last
        h, u, _ = rules.rest(p.n_tiles, p.n_interneurons, self.gain)
        state.h, state.u, V, on_their_way = started(self, state, begin, h, u)
        state.V = self.model.masked("lateral", V)
        state.extra |= on_their_way
        path = []
        before = state.h, state.u
        gamma = begin.gain * p.dt_ / p.tau_h_, p.dt_ / p.tau_u_, p.dt_ / p.tau_V_
        for _ in range(steps):
            before = state.h, state.u
            self._step(state, a, gamma, line)
            if record:
                path.append((state.h, state.u, state.V))
        traces = {
            name: np.array(rows)
            for name, rows in zip(
                ("h", "u", "V") if path else (), zip(*path, strict=True), strict=True
            )
        }
        return float(relative_change(before[0], state.h, before[1], state.u)), traces

    def _step(
        self,
        state: CircuitState,
        a: FloatArray,
        gamma: tuple[float, float, float],
        line: list[str],
    ) -> None:
        """One step of the model, in the model's order (`CircuitModel.each_step`)."""
        model = self.model
        gamma_h, gamma_u, gamma_V = gamma
        h_seen = state.extra[line[-2]] if line else state.h
        u_seen = state.extra[line[-1]] if line else state.u
        inhibition, excitation = u_seen @ state.V, state.V @ h_seen
        for what in model.each_step:
            if what == "lateral":
                V = _run(model.lateral, state.V, state.u, state.h, gamma_V)
                state.V = model.masked("lateral", V)
            elif what == "rates":
                if line:
                    moved = [state.h, state.u, *(state.extra[name] for name in line[:-2])]
                    state.extra |= dict(zip(line, moved, strict=True))
                state.h = _run(model.excitatory, state.h, a, inhibition, gamma_h)
                state.u = _run(model.inhibitory, state.u, excitation, gamma_u)


def _run(rule: Rule, *values: Any) -> FloatArray:
    """What a rule's NumPy function gives; `CircuitModel.require_numpy` saw that it has one."""
    assert rule.numpy is not None
    return np.asarray(rule.numpy(*values), dtype=float)
