"""The spiking twin in NumPy, step by step, to be read next to its equations."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.parts.gain_control import start
from circuits.parts.recruiting import answers, next_idle
from circuits.parts.recycling import least_used
from circuits.reference import drive, rest_direction
from circuits.spiking.base import Spiking
from circuits.spiking.cells import Cells
from circuits.spiking.parameters import LOWEST, SpikingParameters, trace_step
from circuits.state import CircuitState, Task


class SpikingReference(Spiking):
    """The spiking circuit without Brian2; see `circuits.SpikingCircuit`.

    Without noise it fires, spike by spike, as the Brian2 circuit does. Escape and noise are drawn
    from a generator of its own.
    """

    engine = "spiking reference"

    def __init__(
        self,
        parameters: CircuitParameters,
        lift: SphereLift,
        *,
        spiking: SpikingParameters | None = None,
        seed: int = 0,
        tile_centers: ArrayLike | None = None,
    ) -> None:
        self._set_spiking(spiking, seed)
        super().__init__(parameters, lift, tile_centers=tile_centers)

    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        rng = np.random.default_rng(self.seed_of(state))
        cells = Cells(self)
        own = {name: cells.of(state, name) for name in ("W", "b", "w", "recruited")}
        found: dict[str, list[Any]] = defaultdict(list)
        for done, (x, z) in enumerate(zip(task.x, task.z, strict=True)):
            if task.learn and self.parameters.tiles == "recruit":
                self._recruit(own, x, state.learned)
            shown = Presentation(self, state, own, x, z, task.learn)
            for step in range(1, self.n_steps + 1):
                fired = shown.step(step, rng)
                for name in task.record:
                    if name != "spikes":
                        found[f"{name}_trace"].append(shown.trace(name))
                for group, spiking in fired.items() if "spikes" in task.record else ():
                    now = np.full(len(spiking), state.shown * self.n_steps + step)
                    found[f"{group}_spikes"].append(np.array([now, spiking]))
            for name, value in shown.rates().items():
                found[name].append(value)
            own |= {"W": shown.W, "b": shown.b, "w": shown.w}
            for name in ("W", "b", "w") if task.snapshots else ():
                found[f"{name}_snapshots"].append(own[name])
            state.last_size = shown.begin.last
            state.shown += 1
            state.learned += task.learn
            task.report(done + 1)
        for name, values in own.items():
            cells.take(state, name, values)
        recorded = {
            name: np.concatenate(rows, axis=1) if name.endswith("_spikes") else np.array(rows)
            for name, rows in found.items()
        }
        return cells.results(state, recorded, shown.V.ravel())

    def _recruit(self, own: dict[str, Any], x: FloatArray, number: int) -> None:
        """Let a point that no cell responds to recruit a tile, whose cells are alike."""
        p, n = self.parameters, self.spiking.cells
        a = drive(own["W"], own["b"], x, self.alpha)
        if answers(a, own["b"], self.alpha, p.recruit_below, self.floor).any():
            return
        recruited = own["recruited"][::n]
        tile = next_idle(recruited)
        if tile is None and p.recycle:
            tile = least_used(own["b"][::n], recruited)
        if tile is None:
            return
        new = np.repeat(np.arange(p.n_tiles) == tile, n)
        own["W"] = np.where(new[:, None], p.kappa * x, own["W"])
        own["b"] = np.where(new, p.kappa * math.sqrt(self.alpha), own["b"])
        own["w"] = np.where(new & p.recycle, 0.0, own["w"])
        own["recruited"] = np.where(new, number, own["recruited"])


class Presentation:
    """One point shown to the cells, whose weights are ``own``."""

    def __init__(
        self,
        circuit: Spiking,
        state: CircuitState,
        own: dict[str, Any],
        x: FloatArray,
        z: FloatArray,
        learn: bool,
    ) -> None:
        p, s, cells = circuit.parameters, circuit.spiking, Cells(circuit)
        self.p, self.s, self.x, self.alpha = p, s, x, circuit.alpha
        a = drive(own["W"], own["b"], x, circuit.alpha)
        self.begin = start(a / math.sqrt(s.cells), circuit.floor, state.last_size, circuit.gain)
        self.gain = circuit.strength * self.begin.gain
        in_use = own["recruited"] >= 0
        answers = in_use & (self.begin.covered > 0)
        self.current = np.where(answers, np.maximum(self.gain * a, LOWEST), LOWEST)
        # Slow synapses decay now and grow with the spikes in the window.
        self.eta = p.learning_rate if learn else 0.0
        running = p.readout_rate == "running_mean"
        self.rate = 1 / (state.learned + 1) if running else float(p.readout_rate)
        self.rate = self.rate if learn else 0.0
        self.W, self.b = (1 - self.eta) * own["W"], (1 - self.eta) * own["b"]
        self.w = own["w"] * (1 - self.rate if p.readout_rule == "paper" else 1.0)
        size = math.sqrt(2.0 if circuit.gain else s.strength)
        rest_u = np.repeat(size * rest_direction(p.n_interneurons), s.cells)
        self.V = np.outer(rest_u, in_use / math.sqrt(p.n_tiles))
        self.z = np.repeat(z, s.readout_cells)
        self.mu = np.repeat(np.array(p.mu_per_readout), s.readout_cells)
        self.v_E, self.v_I, self.v_Y = (cells.phases(name) for name in "huy")
        m, k, r = len(self.v_E), len(self.v_I), len(self.v_Y)
        self.inh, self.trace_E, self.count_E = np.zeros((3, m))
        self.exc, self.trace_I, self.count_I = np.zeros((3, k))
        self.net, self.total, self.count_Y = np.zeros((3, r))

    def output(self) -> FloatArray:
        """What drives the readout cells: clip(mu net + z, -1, 1), or tanh."""
        p, net = self.p, self.net
        if p.readout_rule == "gated":
            net = np.divide(net, self.total, out=np.zeros_like(net), where=self.total > 0)
        drive = self.mu * net + self.z
        y = np.clip(drive, -1, 1) if p.readout == "clip" else np.tanh(drive)
        return self.z + (1 - np.abs(self.z)) * y if p.clamp_labels else y

    def trace(self, name: str) -> FloatArray:
        """What is recorded of h, u, V or y after a step."""
        traces = {"h": self.trace_E, "u": self.trace_I, "V": self.V.ravel(), "y": self.output()}
        return traces[name]

    def step(self, number: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """One step of dt: cells move, those that fire are delivered, then they are reset. Returns
        the cells that fire."""
        e, i, y = self._move(rng)
        inside = float(number > self.s.n_steps - self.s.window_steps)
        self._deliver(e, i)
        self._learn(e, y, inside)
        self._reset(e, i, y, inside)
        return {"excitatory": e, "inhibitory": i, "readout": y}

    def _move(self, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """Forward Euler from the old values; returns the cells that fire."""
        s, dt = self.s, self.s.dt_
        if s.V_rule != "freeze":
            self.V = self.V * (1 - dt / s.tau_V_)
        output = self.output()
        if s.neuron == "if":
            step_E = dt * s.rate_h_ * s.slope * (self.current - self.inh)
            step_I = dt * s.rate_u_ * self.exc
            if s.sigma:
                step_E += s.sigma * math.sqrt(dt) * rng.standard_normal(len(step_E))
                step_I += s.sigma * math.sqrt(dt) * rng.standard_normal(len(step_I))
            self.v_E = np.maximum(self.v_E + step_E, 0)
            self.v_I = np.maximum(self.v_I + step_I, 0)
            fires_E, fires_I = self.v_E >= 1, self.v_I >= 1
        else:
            net = s.slope * (self.current - self.inh)
            self.v_E = self.v_E + dt / s.tau_m_ * (net - self.v_E)
            self.v_I = self.v_I + dt / s.tau_u_ * (self.exc - self.v_I)
            fires_E = rng.random(len(self.v_E)) < s.rate_h_ * dt * np.maximum(self.v_E, 0)
            fires_I = rng.random(len(self.v_I)) < s.rate_u_ * dt * np.maximum(self.v_I, 0)
        self.v_Y = self.v_Y + dt * s.rate_y_ * output
        self.inh = self.inh * (1 - dt / s.tau_i_)
        self.exc = self.exc * (1 - dt / s.tau_e_)
        self.net = self.net * (1 - dt / s.tau_y_)
        self.total = self.total * (1 - dt / s.tau_y_)
        self.trace_E = self.trace_E * (1 - dt / s.tau_trace_)
        self.trace_I = self.trace_I * (1 - dt / s.tau_trace_)
        fires_Y = np.abs(self.v_Y) >= 0.5
        return np.flatnonzero(fires_E), np.flatnonzero(fires_I), np.flatnonzero(fires_Y)

    def _deliver(self, e: Any, i: Any) -> None:
        """Spikes between excitatory and inhibitory cells, which change V: E before I."""
        s = self.s
        own, plastic = 0.5 if s.neuron == "if" else 0.0, float(s.V_rule == "spikes")
        potentiation = plastic * self.trace_I[:, None] / (2 * s.rate_h_ * s.tau_V_)
        arriving = self.V[:, e] + own * potentiation
        self.exc = self.exc + arriving.sum(axis=1) / (s.cells * s.rate_h_ * s.tau_e_)
        self.V[:, e] += potentiation
        back = plastic * self.trace_E / (2 * s.rate_u_ * s.tau_V_)
        arriving = self.V[i] + own * back
        self.inh = self.inh + arriving.sum(axis=0) / (s.cells * s.rate_u_ * s.tau_i_)
        self.V[i] += back

    def _learn(self, e: Any, y: Any, inside: float) -> None:
        """Excitatory spikes reach the readout; in the window W, b and w learn."""
        p, s = self.p, self.s
        per_spike = 1 / (s.rate_h_ * s.window_)
        self.net = self.net + self.w[:, e].sum(axis=1) / (s.cells * s.rate_h_ * s.tau_y_)
        self.total = self.total + len(e) / (s.cells * s.rate_h_ * s.tau_y_)
        if p.readout_rule == "gated":
            self.w[:, e] *= 1 - self.rate * per_spike * inside
        side = np.where(self.v_Y[y] >= 0, 1.0, -1.0)
        change = self.rate * inside / (s.rate_y_ * s.window_)
        self.w[y] += change * side[:, None] * self.trace_E
        self.count_Y[y] += side * inside
        self.W[e] += self.eta * per_spike * inside * self.x
        self.b[e] += self.eta * per_spike * inside * math.sqrt(self.alpha)

    def _reset(self, e: Any, i: Any, y: Any, inside: float) -> None:
        s = self.s
        if s.neuron == "if":
            self.v_E[e] -= 1
            self.v_I[i] -= 1
        self.v_Y[y] -= np.where(self.v_Y[y] >= 0, 1.0, -1.0)
        self.trace_E[e] += trace_step(s.dt_, s.tau_trace_, s.rate_h_)
        self.trace_I[i] += trace_step(s.dt_, s.tau_trace_, s.rate_u_)
        self.count_E[e] += inside
        self.count_I[i] += inside

    def rates(self) -> dict[str, Any]:
        """Spikes in the window as rates of cells, and the gain."""
        s = self.s
        return {
            "h": self.count_E / (s.rate_h_ * s.window_),
            "u": self.count_I / (s.rate_u_ * s.window_),
            "y": self.count_Y / (s.rate_y_ * s.window_),
            "gain": self.gain,
        }
