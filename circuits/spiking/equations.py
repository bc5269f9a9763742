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

INSIDE = """
steps : integer (shared)           # steps of a presentation
window : integer (shared)          # steps at its end in which spikes count
inside = int((t_in_timesteps - 1) % steps >= steps - window) : 1
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
FIRED = """
tr += q_trace
count += inside
""".strip()
FIRED_b = "b += eta*sqrt_alpha*q_window*inside"

EXCITATORY_CELLS = """
dinh/dt = -inh/tau_i : 1           # V^T u, as it arrives
dtr/dt = -tr/tau_trace : 1         # trace of the cell's spikes
current : 1                        # the drive, scaled by gain control
count : 1                          # spikes in the window
h : 1                              # the same as a rate, once per presentation
tile : integer                     # which tile the cell belongs to
share : 1 (shared)                 # 1/N, of one cell in its tile
v_rest : 1
strength : 1 (shared)
lowest : 1 (shared)
slope : 1 (shared)
rate_h : Hz (shared)
tau_i : second (shared)
tau_trace : second (shared)
tau_m : second (shared)
sigma : Hz**0.5 (shared)
q_trace : 1 (shared)
q_window : 1 (shared)              # 1/(rate_h T_window)
"""

INHIBITORY_CELLS = """
dexc/dt = -exc/tau_e : 1           # V h, as it arrives
dtr/dt = -tr/tau_trace : 1
count : 1
u : 1                              # spikes in the window as a rate, once per presentation
u_rest : 1
v_rest : 1
rate_u : Hz (shared)
tau_e : second (shared)
tau_trace : second (shared)
tau_u : second (shared)
sigma : Hz**0.5 (shared)
q_trace : 1 (shared)
q_window : 1 (shared)
"""

TILES = """
drive : 1                          # W x, once per presentation
a : 1                              # W x - sqrt(alpha) b, once per presentation
b : 1
recruited : integer                # the presentation that started the tile, -1: it is idle
in_use = int(recruited >= 0) : 1
joins : integer                    # 1: the next point recruits the tile
h_rest : 1 (shared)
kappa : 1 (shared)
sqrt_alpha : 1 (shared)
eta : 1 (shared)
gain : 1 (linked)
covered : 1 (linked)
recruiting : integer (linked)
answering : 1 (linked)
used : 1 (linked)
first_presentation : integer (linked)
presentation : integer (linked)
"""

READOUT = """
dv/dt = rate_y*output : 1
dnet/dt = -net/tau_y : 1           # w h, as it arrives
{total}
output = {output} : 1
side = 2*int(v >= 0) - 1 : 1       # of the spike that comes next: ON or OFF
count : 1                          # spikes in the window, those of the OFF side counted down
y : 1
z : 1
mu : 1
unit : integer                     # which readout the cell belongs to
v_rest : 1
rate_y : Hz (shared)
tau_y : second (shared)
q_window : 1 (shared)              # 1/(rate_y T_window)
presentation : integer (linked)
"""
OUTPUT = {"clip": "clip(mu*{net} + z, -1, 1)", "tanh": "tanh(mu*{net} + z)"}
NET = {"paper": "net", "gated": "net/where(total > 0, total, inf)"}
TOTAL = {"paper": "", "gated": "dtotal/dt = -total/tau_y : 1       # sum of h, as it arrives"}
CLAMPED = "z + (1 - abs(z))*{output}"

LATERAL = """
dV/dt = -decays*V/tau_V : 1 (clock-driven)
tau_V : second (shared)
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

FEEDFORWARD = "W : 1"
FEEDFORWARD_POST = "W += eta_post*q_window_post*inside_post*x_pre"

CLASSIFIER = """
w : 1
learned : integer (shared)         # presentations learned from, with this one
running : 1 (shared)               # 1: w is the running mean of y h
constant_rate : 1 (shared)         # a constant rate on top of that
rate : 1 (shared)                  # the rate of this presentation
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

POOLING = """
answering_post = {answers} : 1 (summed)
used_post = share_pre*in_use_pre : 1 (summed)
power_post = share_pre*a_pre*clip(a_pre, 0, inf) : 1 (summed)
"""

# Once per presentation. Slow synapses decay as a presentation begins and grow with its spikes: at
# its end W is (1 - eta) W + eta h x^T, as in the rate circuit.
TALLY = "{name} = q_window*count"
NEXT = "(tile == int(used + 0.5))"
RECRUITS = "(recruiting > 0) and (answering == 0)"
CHOOSE = f"joins = int({RECRUITS} and {NEXT})"
CHOOSE_LEAST = f"joins = int({RECRUITS} and ({NEXT} or ((used >= N) and (rank == 0))))"
RESTART_E = """
current = where((in_use > 0) and (covered > 0), clip(strength*gain*a, lowest, inf), lowest)
v = v_rest
inh = 0
tr = 0
count = 0
b -= eta*b
""".strip()
RESTART_I = """
v = v_rest
exc = 0
tr = 0
count = 0
""".strip()
RESTART_Y = """
v = v_rest
net = 0
count = 0
""".strip()
RESTART_TOTAL = "\ntotal = 0"
RESTART_V = "V = u_rest_post*h_rest_pre*in_use_pre"
DECAY_W = "W -= eta_post*W"
DECAY_w = {
    "paper": """
learned += 1
rate = running/learned + constant_rate
w -= rate*w
""".strip(),
    "gated": """
learned += 1
rate = constant_rate
""".strip(),
}
