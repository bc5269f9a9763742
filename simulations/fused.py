"""The practical limit of one core: the whole circuit as one kernel, compiled by numba.

Only the benchmark uses it. Its numbers are the circuit's, its form is nobody's model.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from circuits.base import Circuit
from circuits.lift import FloatArray
from circuits.state import CircuitState, Task


@njit(fastmath=True, cache=True)  # type: ignore[untyped-decorator]
def _settle(
    a: FloatArray,
    h: FloatArray,
    u: FloatArray,
    V: FloatArray,
    inhibition: FloatArray,
    gamma_h: float,
    gamma_u: float,
    gamma_V: float,
    steps: int,
) -> None:
    """S steps in one pass over V each: what is summed and how V moves need the same numbers."""
    k, m = V.shape
    for _ in range(steps):
        for i in range(m):
            inhibition[i] = 0.0
        for j in range(k):
            total, rate = 0.0, u[j]
            row = V[j]
            for i in range(m):
                value = row[i]
                inhibition[i] += value * rate
                total += value * h[i]
                row[i] = max(value + gamma_V * (rate * h[i] - value), 0.0)
            u[j] = max(rate + gamma_u * (total - rate), 0.0)
        for i in range(m):
            h[i] = max(h[i] + gamma_h * (a[i] - inhibition[i]), 0.0)


@njit(fastmath=True, cache=True)  # type: ignore[untyped-decorator]
def _stream(
    x: FloatArray,
    z: FloatArray,
    W: FloatArray,
    b: FloatArray,
    w: FloatArray,
    mu: FloatArray,
    rest_h: FloatArray,
    rest_u: FloatArray,
    root_alpha: float,
    eta: float,
    gammas: tuple[float, float, float],
    controlled: bool,
    floor: float,
    steps: int,
    out_h: FloatArray,
    out_y: FloatArray,
) -> None:
    m, k, r = len(rest_h), len(rest_u), len(mu)
    h, u, V = rest_h.copy(), rest_u.copy(), np.empty((k, m))
    inhibition = np.empty(m)
    for t in range(len(x)):
        a = W @ x[t] - root_alpha * b
        size, scale = 1.0, 1.0
        if controlled:
            power = 0.0
            for i in range(m):
                power += max(a[i], 0.0) ** 2
            size = np.sqrt(power)
            scale = np.sqrt(size) if size > floor else 0.0
        answered = 1.0 if scale > 0.0 else 0.0
        for j in range(k):
            u[j] = scale * rest_u[j]
            for i in range(m):
                V[j, i] = u[j] * rest_h[i]
        for i in range(m):
            h[i] = answered * rest_h[i]
        gamma_h = gammas[0] / size if answered > 0.0 else 0.0
        _settle(a, h, u, V, inhibition, gamma_h, gammas[1], gammas[2], steps)
        out_h[t] = h
        for q in range(r):
            y = min(max(mu[q] * (w[q] @ h) + z[t, q], -1.0), 1.0)
            out_y[t, q] = y
            w[q] += (y * h - w[q]) / (t + 1)
        for i in range(m):
            b[i] += eta * (root_alpha * h[i] - b[i])
            for j in range(x.shape[1]):
                W[i, j] += eta * (h[i] * x[t, j] - W[i, j])


def advance(circuit: Circuit, state: CircuitState, task: Task) -> dict[str, FloatArray]:
    """Present a stream from the start, to tiles that are all in use: the circuit's h and y."""
    from circuits import reference

    p = circuit.parameters
    rest_h, rest_u, _ = reference.rest(p.n_tiles, p.n_interneurons, circuit.gain)
    h, y = np.empty((len(task.x), p.n_tiles)), np.empty(task.z.shape)
    _stream(
        task.x,
        task.z,
        state.W,
        state.b,
        state.w,
        np.array(p.mu_per_readout),
        rest_h,
        rest_u,
        circuit.alpha**0.5,
        p.learning_rate,
        circuit.gamma(1.0),
        circuit.gain is None,
        circuit.floor,
        p.steps_per_presentation,
        h,
        y,
    )
    return {"h": h, "y": y}
