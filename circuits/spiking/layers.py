"""The equations of the spiking twin, as Brian2 reads them.

    excitatory, "if"      dv/dt = r_h G (current - inh) + sigma xi, v >= 0
    excitatory, "escape"  tau_m dv/dt = G (current - inh) - v
    inhibitory, "if"      dv/dt = r_u exc + sigma xi, v >= 0
    inhibitory, "escape"  tau_u dv/dt = exc - v
    readout               dv/dt = r_y clip(mu net + z, -1, 1)

"if" cells fire at v >= 1, and v -= 1; "escape" cells with probability r [v]_+ dt in every step;
readout cells at |v| >= 1/2, a spike of the side that v is on, and v -= side: the spikes of a pool
whose cells start apart add up to the integral of their drive, however small, of either sign.

Currents (inh, exc, net) and traces (tr) jump with spikes and decay: tau_i, tau_e, tau_y, tau_trace.
One ``Synapses`` from excitatory to inhibitory cells carries both, and decays with tau_V:

    on an excitatory spike   exc += q_e (V + own c_h tr_I);  V += c_h tr_I
    on an inhibitory spike   inh += q_i (V + own c_u tr_E);  V += c_u tr_E

with c = 1/(2 r tau_V), so that V settles at u h^T. A spike is delivered before it potentiates;
``own`` is the share of its own potentiation that it sees, 1/2 for cells that fire regularly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.assembly.lines import lines_of
from circuits.assembly.part import Part
from circuits.readout import Readout
from circuits.reference import rest_direction
from circuits.spiking.cells import Cells
from circuits.spiking.parameters import LOWEST, TIME_CONSTANTS, trace_step
from circuits.tiling import DRIVE, INPUTS, Tiling

if TYPE_CHECKING:
    from circuits.spiking.base import Spiking

FIRING = """
count : 1                          # spikes in the window; those of the OFF side count down
v_rest : 1                         # v at the start of a presentation: cells of a unit start apart
q_window : 1 (shared)              # 1/(r T_window), r being the rate that 1 stands for
steps : integer (shared)           # steps of a presentation
window : integer (shared)          # steps at its end in which spikes count
inside = int((t_in_timesteps - 1) % steps >= steps - window) : 1
"""

TRACE = """
dtr/dt = -tr/tau_trace : 1         # trace of the cell's spikes
tau_trace : second (shared)        # of the trace
q_trace : 1 (shared)               # how far a spike raises the trace
sigma : Hz**0.5 (shared)           # white noise on v
"""

EXCITATORY = {
    "if": "dv/dt = rate_h*slope*(current - inh){noise} : 1",
    "escape": "dv/dt = (slope*(current - inh) - v)/tau_m : 1",
}
INHIBITORY = {
    "if": "dv/dt = rate_u*exc{noise} : 1",
    "escape": "dv/dt = (exc - v)/tau_u : 1",
}
NOISE = " + sigma*xi"

THRESHOLD = {"if": "v >= 1", "escape": "rand() < {rate}*clip(v, 0, inf)*dt"}
RESET = {"if": "v -= 1\n", "escape": ""}
FIRED = "tr += q_trace\ncount += inside"
FIRED_b = "b += eta*sqrt_alpha*q_window*inside"

EXCITATORY_CELLS = """
dinh/dt = -inh/tau_i : 1           # V^T u, as it arrives
current : 1                        # the drive, scaled by gain control
h : 1                              # spikes in the window as a rate, once per presentation
tile : integer                     # which tile the cell belongs to
share : 1 (shared)                 # 1/N, of one cell in its tile
strength : 1 (shared)              # the size that gain control scales every drive to
lowest : 1 (shared)                # least current, that of idle tiles and uncovered points
slope : 1 (shared)                 # G, of the net current
rate_h : Hz (shared)               # r, the firing rate that h = 1 stands for
tau_i : second (shared)            # of inhibition as it arrives
tau_m : second (shared)            # of v (escape cells)
drive : 1                          # W x, once per presentation
a : 1                              # W x - sqrt(alpha) b, once per presentation
b : 1                              # bias
gain : 1 (shared)                  # what multiplies the drive
h_start = h_rest : 1               # h that V starts from
h_rest : 1 (shared)                # h that V starts from
sqrt_alpha : 1 (shared)            # sqrt(alpha)
eta : 1 (shared)                   # learning rate of W and b
"""

INHIBITORY_CELLS = """
dexc/dt = -exc/tau_e : 1           # V h, as it arrives
u : 1                              # spikes in the window as a rate, once per presentation
u_rest : 1                         # u that V starts from
rate_u : Hz (shared)               # r, the firing rate that u = 1 stands for
tau_e : second (shared)            # of excitation as it arrives
tau_u : second (shared)            # of v (escape cells)
"""

READOUT = """
dv/dt = rate_y*output : 1
dnet/dt = -net/tau_y : 1           # w h, as it arrives
{total}
output = {output} : 1
side = 2*int(v >= 0) - 1 : 1       # of the spike that comes next: ON or OFF
y : 1                              # spikes in the window as a rate, once per presentation
z : 1                              # the label, 0 if there is none
mu : 1                             # gain of the net input
unit : integer                     # which readout the cell belongs to
rate_y : Hz (shared)               # r, the firing rate that y = 1 stands for
tau_y : second (shared)            # of what arrives
presentation : integer (linked)    # the row of the stream that is shown
"""
OUTPUT = {"clip": "clip(mu*{net} + z, -1, 1)", "tanh": "tanh(mu*{net} + z)"}
NET = {"paper": "net", "gated": "net/where(total > 0, total, inf)"}
TOTAL = {"paper": "", "gated": "dtotal/dt = -total/tau_y : 1       # sum of h, as it arrives"}
CLAMPED = "z + (1 - abs(z))*{output}"

LATERAL = """
dV/dt = -decays*V/tau_V : 1 (clock-driven)
tau_V : second (shared)            # of the fading of V
decays : 1 (shared)                # 0: V does not decay
potentiates : 1 (shared)           # 0: spikes leave V as it is
q_e : 1 (shared)                   # 1/(N rate_h tau_e)
q_i : 1 (shared)                   # 1/(N rate_u tau_i)
c_h : 1 (shared)                   # 1/(2 rate_h tau_V)
c_u : 1 (shared)                   # 1/(2 rate_u tau_V)
own : 1 (shared)                   # share of its own potentiation that a spike sees
"""
LATERAL_PRE = """
exc_post += q_e*(V + potentiates*own*c_h*tr_post)
V += potentiates*c_h*tr_post
""".strip()
LATERAL_POST = """
inh_pre += q_i*(V + potentiates*own*c_u*tr_pre)
V += potentiates*c_u*tr_pre
""".strip()

FEEDFORWARD_POST = "W += eta_post*q_window_post*inside_post*x_pre"

CLASSIFIER = """
w : 1                              # readout weight
learned : integer (shared)         # presentations learned from, with this one
running : 1 (shared)               # 1, or 0 in a prediction
rate = running/learned : 1 (shared) # of learning
q_net : 1 (shared)                 # 1/(N rate_h tau_y)
"""
CLASSIFIER_PRE = {
    "paper": "net_post += q_net*w",
    "gated": """
net_post += q_net*w
total_post += q_net
w -= rate*q_window_pre*inside_pre*w
""".strip(),
}
CLASSIFIER_POST = "w += rate*side_post*q_window_post*inside_pre*tr_pre"

# Once per presentation. Slow synapses decay as a presentation begins and grow with its spikes: at
# its end W is (1 - eta) W + eta h x^T, as in the rate circuit.
TALLY = "{name} = q_window*count"
RESTART_E = """
current = where((in_use > 0) and (gain > 0), clip(strength*gain*a, lowest, inf), lowest)
v = v_rest
inh = 0
tr = 0
count = 0
b -= eta*b
"""
RESTART_I = """
v = v_rest
exc = 0
tr = 0
count = 0
"""
RESTART_Y = """
v = v_rest
net = 0
count = 0
"""
RESTART_V = "V = u_rest_post*h_start_pre"
DECAY_W = "W -= eta_post*W"
DECAY_w = {"paper": "learned += 1\nw -= rate*w", "gated": "learned += 1"}


class SpikingTiling(Tiling):
    """Layer one, of cells that fire."""

    fields = {"lateral.V": "V", "feedforward.W": "W", "excitatory.b": "b"}
    summed = {}
    paths = ("lateral.pre", "lateral.post", "classifier.pre", "classifier.post", "feedforward.post")

    def __init__(self, c: Spiking) -> None:
        p, s, cells = c.parameters, c.spiking, Cells(c)
        noise = NOISE if s.sigma > 0 else ""
        excitatory = EXCITATORY[s.neuron].format(noise=noise)
        inhibitory = INHIBITORY[s.neuron].format(noise=noise)
        self.equations = {
            "inputs": INPUTS,
            "excitatory": excitatory + EXCITATORY_CELLS + TRACE + FIRING,
            "inhibitory": inhibitory + INHIBITORY_CELLS + TRACE + FIRING,
            "lateral": LATERAL,
            "feedforward": "W : 1    # feed-forward weight",
        }
        projected = ("v",) if s.neuron == "if" else ()
        self.moves = {
            "inputs": ("groups", ()),
            "excitatory": ("groups", projected),
            "inhibitory": ("groups", projected),
            "lateral": ("groups", ()),
        }
        threshold, reset = THRESHOLD[s.neuron], RESET[s.neuron] + FIRED
        self.options = {
            "excitatory": {
                "threshold": threshold.format(rate="rate_h"),
                "reset": f"{reset}\n{FIRED_b}",
            },
            "inhibitory": {"threshold": threshold.format(rate="rate_u"), "reset": reset},
            "lateral": {"on_pre": LATERAL_PRE, "on_post": LATERAL_POST},
            "feedforward": {"on_post": FEEDFORWARD_POST},
        }
        self.code = (
            ("excitatory", "answer", TALLY.format(name="h"), "tally"),
            ("inhibitory", "answer", TALLY.format(name="u"), "tally"),
            *DRIVE,
            ("excitatory", "restart", RESTART_E),
            ("inhibitory", "restart", RESTART_I),
            ("lateral", "restart", RESTART_V),
            ("feedforward", "restart", DECAY_W, "decay"),
        )
        size = math.sqrt(2 if c.gain else c.strength)
        self.parameters = {
            **_cell_values(c, self.equations["excitatory"], "excitatory", "h"),
            **_cell_values(c, self.equations["inhibitory"], "inhibitory", "u"),
            "excitatory.tile": cells.repeated("h", np.arange(p.n_tiles)),
            "excitatory.share": 1 / s.cells,
            "excitatory.gain": c.gain or 0.0,
            "excitatory.strength": c.strength,
            "excitatory.lowest": LOWEST,
            "excitatory.h_rest": 1 / math.sqrt(p.n_tiles),
            "excitatory.sqrt_alpha": math.sqrt(c.alpha),
            "excitatory.eta": p.learning_rate,
            "inhibitory.u_rest": cells.repeated("u", size * rest_direction(p.n_interneurons)),
            "lateral.tau_V": s.tau_V_,
            "lateral.decays": float(s.V_rule != "freeze"),
            "lateral.potentiates": float(s.V_rule == "spikes"),
            "lateral.q_e": 1 / (s.cells * s.rate_h_ * s.tau_e_),
            "lateral.q_i": 1 / (s.cells * s.rate_u_ * s.tau_i_),
            "lateral.c_h": 0.5 / (s.rate_h_ * s.tau_V_),
            "lateral.c_u": 0.5 / (s.rate_u_ * s.tau_V_),
            "lateral.own": 0.5 if s.neuron == "if" else 0.0,
        }


class SpikingReadout(Readout):
    """Layer two, of cells that fire."""

    summed = {}
    moves = {"readout": ("groups", ())}

    def __init__(self, c: Spiking) -> None:
        p, s, rule, cells = c.parameters, c.spiking, c.parameters.readout_rule, Cells(c)
        output = OUTPUT[p.readout].format(net=f"({NET[rule]})")
        output = CLAMPED.format(output=output) if p.clamp_labels else output
        self.equations = {
            "readout": READOUT.format(output=output, total=TOTAL[rule]) + FIRING,
            "classifier": CLASSIFIER,
        }
        self.options = {
            "readout": {"threshold": "abs(v) >= 0.5", "reset": "count += side*inside\nv -= side"},
            "classifier": {"on_pre": CLASSIFIER_PRE[rule], "on_post": CLASSIFIER_POST},
        }
        self.code = (
            ("readout", "answer", TALLY.format(name="y"), "tally"),
            ("readout", "load", "z = label_stream(presentation*usecond, unit)"),
            ("readout", "restart", RESTART_Y + ("total = 0" if rule == "gated" else "")),
            ("classifier", "restart", DECAY_w[rule], "decay"),
        )
        self.parameters = {
            **_cell_values(c, self.equations["readout"], "readout", "y"),
            "readout.mu": cells.repeated("y", p.mu_per_readout),
            "readout.unit": cells.repeated("y", np.arange(p.n_readouts)),
            "classifier.running": 1.0,
            "classifier.q_net": 1 / (s.cells * s.rate_h_ * s.tau_y_),
        }


class RecruitedTogether(Part):
    """What differs from `Recruiting` in cells: those of a tile are recruited together."""

    equations = {
        "excitatory": "turn = tile : integer",
        "pooling": "used_post = share_pre*in_use_pre : 1 (summed)",
    }


class DriveOfTile(Part):
    """What differs from `GainControl` in cells: the drive is the mean over those of a tile."""

    equations = {"measuring": "power_post = share_pre*a_pre*clip(a_pre, 0, inf) : 1 (summed)"}


def _cell_values(c: Spiking, text: str, home: str, rate: str) -> dict[str, Any]:
    """Constants that the equations of cells declare; their spikes count as this rate."""
    s, hertz = c.spiking, getattr(c.spiking, f"rate_{rate}_")
    values = {tau: getattr(s, f"{tau}_") for tau in TIME_CONSTANTS} | {
        f"rate_{rate}": hertz,
        "slope": s.slope,
        "sigma": s.sigma,
        "steps": s.n_steps,
        "window": s.window_steps,
        "v_rest": Cells(c).phases(rate),
        "q_window": 1 / (hertz * s.window_),
        "q_trace": trace_step(s.dt_, s.tau_trace_, hertz),
    }
    return {f"{home}.{name}": values[name] for name in lines_of(text) if name in values}
