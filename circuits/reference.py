"""The reference solver: the paper's algorithm in NumPy, to be read next to its equations."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from circuits import rules
from circuits.base import Circuit, CircuitState, Task, relative_change
from circuits.errors import ParameterError
from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters


class ReferenceCircuit(Circuit):
    """The circuit without Brian2.

    Parameters
    ----------
    settling
        "dynamics" takes the S steps of every presentation one by one, as the Brian2 circuit does;
        "exact" jumps to where they lead (`rules.fixed_point`).
    """

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        *,
        settling: Literal["dynamics", "exact"] = "dynamics",
        tile_centers: ArrayLike | None = None,
    ) -> None:
        if settling not in ("dynamics", "exact"):
            raise ParameterError(f"settling must be 'dynamics' or 'exact', got {settling!r}")
        super().__init__(parameters, lift, tile_centers=tile_centers)
        self.settling = settling
        self.engine = "reference" if settling == "dynamics" else "exact"

    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        p = self.parameters
        mu = np.array(p.mu_per_readout)
        out: dict[str, list[FloatArray]] = {}

        def store(name: str, value: FloatArray) -> None:
            out.setdefault(name, []).append(value)

        # Diverging rates overflow; the caller finds and names them.
        with np.errstate(over="ignore", invalid="ignore"):
            for done, (x, z) in enumerate(zip(task.x, task.z, strict=True)):
                a = rules.drive(state.W, state.b, x, self.alpha)
                change, traces = self._settle(state, a, task.record)
                h = state.h
                y = rules.readout(state.w, h, z, mu, p.readout)
                for name, value in (("h", h), ("u", state.u), ("y", y)):
                    store(name, value)
                store("change", np.array(change))
                if task.record:
                    # With w fixed through the presentation y follows from the trace of h.
                    if "y" in task.record:
                        traces["y"] = np.array(
                            [rules.readout(state.w, row, z, mu, p.readout) for row in traces["h"]]
                        )
                    for name in task.record:
                        store(f"{name}_trace", traces[name])
                if task.learn:
                    rate = 1 / (state.learned + 1)
                    if p.readout_rate != "running_mean":
                        rate = float(p.readout_rate)
                    state.w = rules.learn_classifier(state.w, y, h, rate)
                    state.W = rules.learn_feedforward(state.W, h, x, p.learning_rate)
                    state.b = rules.learn_bias(state.b, h, self.alpha, p.learning_rate)
                    state.learned += 1
                if task.snapshots:
                    for name in ("W", "b", "w"):
                        store(f"{name}_snapshots", getattr(state, name))
                state.shown += 1
                task.report(done + 1)
        return {name: np.array(values) for name, values in out.items()}

    def _settle(
        self, state: CircuitState, a: FloatArray, record: tuple[str, ...]
    ) -> tuple[float, dict[str, FloatArray]]:
        """Settle h, u and V on the drive a; return the last step's change and the traces."""
        p = self.parameters
        steps = p.steps_per_presentation
        if self.settling == "exact":
            direction = rules.rest_direction(p.n_interneurons)
            state.h, state.u, state.V = rules.fixed_point(a, direction)
            # The closed form has no path: a trace of it is its end at every step.
            return 0.0, {
                name: np.repeat(getattr(state, name)[None], steps, axis=0)
                for name in ("h", "u", "V")
                if record
            }
        if p.reset:
            state.h, state.u, state.V = rules.rest(p.n_tiles, p.n_interneurons, self.gain)
        else:
            state.u, state.V = rules.carry_over(state.u, state.V, self.gain)
        path = []
        h, u, V = state.h, state.u, state.V
        before = h, u
        gamma = self.gamma
        for _ in range(steps):
            before = h, u
            h, u, V = rules.step(h, u, V, a, gamma)
            if record:
                path.append((h, u, V))
        state.h, state.u, state.V = h, u, V
        traces = {
            name: np.array(rows)
            for name, rows in zip(
                ("h", "u", "V") if path else (), zip(*path, strict=True), strict=True
            )
        }
        return float(relative_change(before[0], h, before[1], u)), traces
