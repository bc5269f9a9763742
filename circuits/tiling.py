"""Layer one of the paper: tiles that cover the data, as Brian2 groups and synapses.

    h (m)      excitatory rates, one per tile         u (k)      inhibitory rates
    V (k, m)   synapses between them, both ways       W (m, n)   synapses from the input x (n)
    b (m)      biases                                 alpha      the similarity of x at a tile's rim

Each presentation of a point shows one x. The drive a = W x - sqrt(alpha) b stays fixed while h, u
and V settle. Every step of dt moves all three from their old values, and cuts them at zero:

    h <- [h + gamma_h (a - V^T u)]_+       the iteration after
    u <- [u + gamma_u (V h - u)]_+         Eq. (Online1)
    V <- [V + gamma_V (u h^T - V)]_+

with gamma_h = gain dt/tau_h, gamma_u = dt/tau_u, gamma_V = dt/tau_V. At the end W and b learn:

    W <- W + eta (h x^T - W)               the updates after it
    b <- b + eta (sqrt(alpha) h - b)       (without a label)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from circuits import reference
from circuits.assembly.lines import lines_of
from circuits.assembly.part import Part

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task

# The rules, which a `CircuitModel` may replace one by one
EXCITATORY = "dh/dt = gain*(a - inhibition)/tau_h : 1"
INHIBITORY = "du/dt = (excitation - u)/tau_u : 1"
LATERAL = "dV/dt = (u_post*h_pre - V)/tau_V : 1 (clock-driven)"
FEEDFORWARD = "W += eta_post*(h_post*x_pre - W)"
BIAS = "b += eta*(sqrt_alpha*h - b)"

INPUTS = """
x : 1                              # the point that is shown
presentation : integer (shared)    # its row in the stream
"""

TILES = """
a : 1                              # W x - sqrt(alpha) b
drive : 1                          # W x
inhibition : 1                     # V^T u
b : 1                              # bias
gain : 1 (shared)                  # slope of dh/dt
h_seen = h : 1                     # what interneurons see of h
h_start = h_rest : 1               # where a presentation starts
h_rest : 1 (shared)                # h at rest
sqrt_alpha : 1 (shared)            # sqrt(alpha)
eta : 1 (shared)                   # learning rate of W and b
tau_h : second (shared)            # time constant of h
"""

INTERNEURONS = """
excitation : 1                     # V h
u_seen = u : 1                     # what tiles see of u
u_start = u_rest : 1               # where a presentation starts
u_rest : 1                         # u at rest
tau_u : second (shared)            # time constant of u
"""

FAST_SYNAPSES = """
inhibition_pre = V*u_seen_post : 1 (summed)
excitation_post = V*h_seen_pre : 1 (summed)
tau_V : second (shared)            # time constant of V
"""

LOAD = """
presentation += 1
x = input_stream(presentation*usecond, i)
"""
DRIVE = (
    ("inputs", "load", LOAD),
    ("excitatory", "load", "drive = 0"),
    ("feedforward", "drive", "drive_post += W*x_pre"),
    ("excitatory", "drive", "a = drive - sqrt_alpha*b"),
)


class Tiling(Part):
    """Layer one."""

    moves = {
        **{"lateral": ("lateral", ("V",)), "excitatory": ("rates", ("h",))},
        "inhibitory": ("rates", ("u",)),
    }
    summed = {"lateral.inhibition_pre": "sums", "lateral.excitation_post": "sums"}
    fields = {
        **{"excitatory.h": "h", "inhibitory.u": "u", "lateral.V": "V"},
        **{"feedforward.W": "W", "excitatory.b": "b"},
    }
    learning = ("excitatory.eta",)
    fixed = {"excitatory.sqrt_alpha": "tile_radius", "excitatory.gain": "gain"}

    def __init__(self, c: Circuit) -> None:
        p, model = c.parameters, c.model
        self.equations = {
            "inputs": INPUTS,
            "excitatory": f"{model.excitatory.brian2}\n{TILES}",
            "inhibitory": f"{model.inhibitory.brian2}\n{INTERNEURONS}",
            "lateral": f"{model.lateral.brian2}\n{FAST_SYNAPSES}",
            "feedforward": "W : 1    # feed-forward weight",
        }
        rules = {
            "excitatory": model.excitatory,
            "inhibitory": model.inhibitory,
            "lateral": model.lateral,
        }
        self.added = [f"{home}.{n}" for home, rule in rules.items() for n in lines_of(rule.brian2)]
        learn = (
            ("feedforward", "learn", model.feedforward.brian2),
            ("excitatory", "learn", model.bias.brian2),
        )
        self.code = (*(learn if model.learns else ()), *DRIVE)
        h, u, _ = reference.rest(p.n_tiles, p.n_interneurons, c.gain)
        self.parameters = {
            **{"excitatory.gain": c.gain or 0.0, "excitatory.h_rest": float(h[0])},
            **{"excitatory.sqrt_alpha": math.sqrt(c.alpha), "excitatory.eta": p.learning_rate},
            **{"excitatory.tau_h": p.tau_h_, "inhibitory.tau_u": p.tau_u_},
            **{"lateral.tau_V": p.tau_V_, "inhibitory.u_rest": u},
        }

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """Values of what counts presentations, before the first one of a stream."""
        return {"inputs.presentation": -1}
