"""The spiking twin in NumPy, step by step, to be read next to its equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circuits.lift import FloatArray, SphereLift
from circuits.parameters import CircuitParameters
from circuits.parts.gain_control import start
from circuits.parts.recruiting import answers, next_idle
from circuits.parts.recycling import least_used
from circuits.reference import drive, rest_direction
from circuits.spiking.base import Spiking
from circuits.spiking.cells import Cells
from circuits.spiking.parameters import LOWEST, SpikingParameters
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
        self._set_spiking(parameters, spiking, seed)
        super().__init__(parameters, lift, tile_centers=tile_centers)

    def _advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        rng = np.random.default_rng(self.seed_at(state))
        cells = Cells.of(self)
        out: dict[str, list[Any]] = {}
        for done, (x, z) in enumerate(zip(task.x, task.z, strict=True)):
            if task.learn:
                self._recruit(state, x)
            shown = Presentation(self, state, x, z, task.learn)
            first = state.learned
            for step in range(1, self.n_steps + 1):
                shown.step(step, rng)
                for name in task.record:
                    if name == "spikes":
                        continue
                    out.setdefault(f"{name}_trace", []).append(cells.units(name, shown.trace(name)))
            for name, value in shown.rates().items():
                out.setdefault(name, []).append(value)
            for name, value in (("W", shown.W), ("b", shown.b), ("w", shown.w)):
                cells.take(state, name, value.ravel())
                if task.snapshots:
                    out.setdefault(f"{name}_snapshots", []).append(getattr(state, name))
            state.last_size = shown.begin.last
            scale = 1 / math.sqrt(shown.gain) if shown.gain > 0 else 0.0
            state.V = cells.units("V", shown.V.ravel()) * scale
            for group in shown.fired if "spikes" in task.record else ():
                for step, cell in shown.fired[group]:
                    row = (state.shown * self.n_steps + step, cell, first, step)
                    out.setdefault(f"{group}_spikes", []).append(row)
            state.shown += 1
            state.learned += task.learn
            task.report(done + 1)
        return self._results(state, task, out)

    def _recruit(self, state: CircuitState, x: FloatArray) -> None:
        """Let a point that no cell responds to recruit a tile, whose cells are alike."""
        p, own = self.parameters, Cells.of(self).expanded(state)
        a = drive(own["W"], own["b"], x, self.alpha)
        cells = answers(a, own["b"], self.alpha, p.recruit_below, self.floor)
        if p.tiles == "first" or cells.any():
            return
        tile = next_idle(state.recruited)
        if tile is None and p.recycle:
            tile = least_used(state.b, state.recruited)
        if tile is None:
            return
        new = np.arange(p.n_tiles) == tile
        state.W = np.where(new[:, None], p.kappa * x, state.W)
        state.b = np.where(new, p.kappa * math.sqrt(self.alpha), state.b)
        state.w = np.where(new & p.recycle, 0.0, state.w)
        state.recruited = np.where(new, state.learned, state.recruited)
        Cells.of(self).forget(state, tile)

    def _results(
        self, state: CircuitState, task: Task, out: dict[str, list[Any]]
    ) -> dict[str, FloatArray]:
        """Lists of presentations and steps as the arrays of a result."""
        cells = Cells.of(self)
        arrays = cells.results({name: np.array(out[name]) for name in "huy"}, np.array(out["gain"]))
        scale = arrays.pop("scale")
        state.h, state.u = arrays["h"][-1].copy(), arrays["u"][-1].copy()
        for name in task.record:
            if name == "spikes":
                for group in ("excitatory", "inhibitory", "readout"):
                    arrays |= self._spikes(group, out.get(f"{group}_spikes", []))
                continue
            trace = np.array(out[f"{name}_trace"])
            trace = trace.reshape(len(task.x), self.n_steps, *trace.shape[1:])
            if name in "uV":
                trace = trace * scale.reshape(-1, *[1] * (trace.ndim - 1))
            arrays[f"{name}_trace"] = trace
        if task.snapshots:
            arrays |= {f"{n}_snapshots": np.array(out[f"{n}_snapshots"]) for n in ("W", "b", "w")}
        return arrays

    def _spikes(self, group: str, rows: list[Any]) -> dict[str, Any]:
        """Columns of spikes by their names in a result."""
        table = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        columns = {"time": self.dt_ * table[0], "cell": table[1]}
        columns |= {"presentation": table[2], "step": table[3]}
        return {f"{group}_spike_{column}": values for column, values in columns.items()}


class Presentation:
    """One point shown to the cells."""

    def __init__(
        self, circuit: Spiking, state: CircuitState, x: FloatArray, z: FloatArray, learn: bool
    ) -> None:
        p, s, cells = circuit.parameters, circuit.spiking, Cells.of(circuit)
        self.p, self.s, self.x, self.alpha = p, s, x, circuit.alpha
        own = cells.expanded(state)
        a = drive(own["W"], own["b"], x, circuit.alpha)
        self.begin = start(a / math.sqrt(s.cells), circuit.floor, state.last_size, circuit.gain)
        self.gain = circuit.strength * self.begin.gain
        in_use = cells.repeated("recruited", state.in_use)
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
        self.v_E = cells.phases(s.cells, p.n_tiles)
        self.v_I = cells.phases(s.cells, p.n_interneurons)
        self.v_Y = cells.readout_phases()
        m, k, r = len(self.v_E), len(self.v_I), len(self.v_Y)
        self.inh, self.trace_E, self.count_E = np.zeros(m), np.zeros(m), np.zeros(m)
        self.exc, self.trace_I, self.count_I = np.zeros(k), np.zeros(k), np.zeros(k)
        self.net, self.total, self.count_Y = np.zeros(r), np.zeros(r), np.zeros(r)
        self.fired: dict[str, list[tuple[int, int]]] = {
            "excitatory": [],
            "inhibitory": [],
            "readout": [],
        }

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
        return {
            "h": lambda: self.trace_E,
            "u": lambda: self.trace_I,
            "V": lambda: self.V.ravel(),
            "y": self.output,
        }[name]()

    def step(self, number: int, rng: np.random.Generator) -> None:
        """One step of dt: cells move, those that fire are delivered, then they are reset."""
        e, i, y = self._move(rng)
        inside = float(number > self.s.n_steps - self.s.window_steps)
        self._deliver(e, i)
        self._learn(e, y, inside)
        self._reset(e, i, y, inside)
        for group, spikes in (("excitatory", e), ("inhibitory", i), ("readout", y)):
            self.fired[group] += [(number, int(cell)) for cell in spikes]

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
        self.net, self.total = (now * (1 - dt / s.tau_y_) for now in (self.net, self.total))
        for name in ("trace_E", "trace_I"):
            setattr(self, name, getattr(self, name) * (1 - dt / s.tau_trace_))
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
        # A trace decays before it is seen, and its integral is to be 1/rate.
        gamma = s.dt_ / s.tau_trace_
        self.trace_E[e] += gamma / (1 - gamma) / (s.rate_h_ * s.dt_)
        self.trace_I[i] += gamma / (1 - gamma) / (s.rate_u_ * s.dt_)
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
