"""The circuit as Brian2 groups and synapses.

Time runs on two clocks. Every dt the *step* clock moves h, u and V. On the last step of each
presentation the *presentation* clock fires too: the readout answers, the slow synapses learn, and
the next point is loaded. So a presentation is S steps, nothing slow costs anything on the other
S - 1, and a run of T presentations is T S steps after which nothing is left to do.

For the presentation clock to fire on the last step rather than on the first, simulated time starts
at dt instead of 0: the state that a monitor in the slot "end" records at time t = n dt is the state
after n steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import (
    Clock,
    Network,
    NeuronGroup,
    StateMonitor,
    Synapses,
    TimedArray,
    linked_var,
    second,
    us,
)
from brian2.equations.equations import DIFFERENTIAL_EQUATION, Equations
from brian2.stateupdaters.base import StateUpdateMethod

from circuits.lift import FloatArray
from circuits.rules import SPARK

if TYPE_CHECKING:
    from circuits.base import Circuit

INPUTS = """
x : 1                              # the point that is shown, lifted
presentation : integer (shared)    # which row of the stream that is
n_presentations : integer (shared) # rows in this stream
reset : integer (shared)           # 1: h, u and V restart at every presentation
restart : integer (shared)         # 1: they restart now
carry : integer (shared)           # 1: they carry over now
"""

EXCITATORY = """
dh/dt = gain*(drive - sqrt_alpha*b - inhibition)/tau_h : 1
drive : 1                          # W x, once per presentation
inhibition : 1                     # V^T u, every step
b : 1
h_before : 1                       # h before the last step of the presentation
h_rest : 1 (shared)
gain : 1 (shared)
sqrt_alpha : 1 (shared)
eta : 1 (shared)
tau_h : second (shared)
restart : integer (linked)
"""

INHIBITORY = """
du/dt = (excitation - u)/tau_u : 1
excitation : 1                     # V h, every step
u_before : 1
u_rest : 1
tau_u : second (shared)
restart : integer (linked)
carry : integer (linked)
"""

LATERAL = """
dV/dt = (u_post*h_pre - V)/tau_V : 1 (clock-driven)
inhibition_pre = V*u_post : 1 (summed)
excitation_post = V*h_pre : 1 (summed)
tau_V : second (shared)
"""

FEEDFORWARD = "W : 1"

READOUT = """
net : 1                            # w.h
y : 1
z : 1
mu : 1
presentation : integer (linked)
"""

CLASSIFIER = """
net_post = w*h_pre : 1 (summed)
w : 1
learned : integer (shared)         # presentations learned from
running : 1 (shared)               # 1: w is the running mean of y h
rate : 1 (shared)                  # a constant rate on top of that
"""

NONLINEARITY = {"clip": "y = clip(mu*net + z, -1, 1)", "tanh": "y = tanh(mu*net + z)"}

LEARN_FEEDFORWARD = "W += eta_post*(h_post*x_pre - W)"
LEARN_BIAS = "b += eta*(sqrt_alpha*h - b)"
LEARN_CLASSIFIER = """
learned += 1
w += (running/learned + rate)*(y_post*h_pre - w)
"""

# A stream is looked up by its row, not by the time: "time" is the row in microseconds. So what is
# compiled for one dt and S serves them all.
ROW = us
LOAD_INPUT = """
presentation += 1
restart = reset*int(presentation < n_presentations)
carry = (1 - reset)*int(presentation < n_presentations)
x = input_stream(presentation*usecond, i)
"""
LOAD_LABEL = "z = label_stream(presentation*usecond, i)"
RESTART_H = """
h = restart*h_rest + (1 - restart)*h
drive = 0
"""
# What carries over keeps a spark of inhibition (`rules.carry_over`).
RESTART_U = f"u = restart*u_rest + (1 - restart)*clip(u, {SPARK}*carry*u_rest, inf)"
RESTART_V = f"""
V_rest = u_rest_post*h_rest_pre
V = restart_pre*V_rest + (1 - restart_pre)*clip(V, {SPARK}*carry_post*V_rest, inf)
"""
SUM_DRIVE = "drive_post += W*x_pre"

# Places in the schedule. Brian2 sorts by (slot, order, name); these make the name irrelevant.
# Slot "groups", every step: all sums, then V, then h and u, so that each sees the others' old
# values. Then, on the last step, the readout.
SUMS, LATERAL_STEP, RATE_STEP, NET, ANSWER = range(5)
# Slot "end", on the last step: record, learn, take snapshots, load what comes next.
RECORD, LEARN, SNAPSHOT, LOAD_X, LOAD_Z, RESTART, DRIVE = range(7)


class ProjectedEuler(StateUpdateMethod):  # type: ignore[misc]
    """Forward Euler, then projection onto the non-negative numbers: x <- [x + dt f(x)]_+.

    All right-hand sides are evaluated before any variable is written.
    """

    def __call__(
        self, equations: Equations, variables: Any = None, method_options: Any = None
    ) -> str:
        """The abstract code of one step."""
        moved, written = [], []
        for equation in equations.ordered:
            if equation.type == DIFFERENTIAL_EQUATION:
                name = equation.varname
                moved.append(f"_{name} = {name} + dt*({equation.expr})")
                written.append(f"{name} = clip(_{name}, 0, inf)")
        return "\n".join(moved + written)


class AllToAll(Synapses):  # type: ignore[misc]
    """Synapses from every cell of one group to every cell of another, numbered as the matrix
    [post, pre] in row-major order. Knowing that, the C++ templates loop over rows and columns
    instead of looking up both ends of every synapse."""

    all_to_all = True

    def __init__(self, source: NeuronGroup, target: NeuronGroup, model: str, **kwds: Any) -> None:
        super().__init__(source, target, model, **kwds)
        pre, post = np.arange(source.N), np.arange(target.N)
        self.connect(i=np.tile(pre, target.N), j=np.repeat(post, source.N))


class PresentationClock(Clock):  # type: ignore[misc]
    """Fires on the last of every ``steps`` steps of another clock.

    A clock counts in units of its own dt, and takes a start time of one step after a multiple of
    that for the multiple itself once a step is less than 1e-4 of it. Counting steps is exact.
    """

    # Brian2 looks for properties that hide a variable in the class itself, not in its bases.
    dt, dt_ = Clock.dt, Clock.dt_

    def __init__(self, clock: Clock, steps: int, name: str) -> None:
        self._step_, self._steps = clock.dt_, steps
        super().__init__(dt=steps * clock.dt_ * second, name=name)

    def _calc_timestep(self, target_t: float) -> np.int64:
        return np.int64(-(-round(target_t / self._step_) // self._steps))


def build_network(circuit: Circuit, chunk: int, name: str = "circuit") -> Network:
    """The circuit's groups and synapses, with zero weights and streams of ``chunk`` rows."""
    p, lift = circuit.parameters, circuit.lift
    step = Clock(dt=p.dt_ * second, name="step_clock")
    show = PresentationClock(step, p.steps_per_presentation, "presentation_clock")
    streams = stream_arrays(
        np.zeros((chunk, lift.n_inputs)), np.zeros((chunk, p.n_readouts)), chunk
    )

    inputs = NeuronGroup(lift.n_inputs, INPUTS, clock=show, name="inputs", namespace=streams)
    rates = {"method": ProjectedEuler(), "clock": step, "order": RATE_STEP, "namespace": {}}
    excitatory = NeuronGroup(p.n_tiles, EXCITATORY, name="excitatory", **rates)
    inhibitory = NeuronGroup(p.n_interneurons, INHIBITORY, name="inhibitory", **rates)
    readout = NeuronGroup(p.n_readouts, READOUT, clock=show, name="readout", namespace=streams)
    for group in (excitatory, inhibitory):
        group.restart = linked_var(inputs, "restart")
    inhibitory.carry = linked_var(inputs, "carry")
    readout.presentation = linked_var(inputs, "presentation")

    synapses = {"clock": step, "namespace": {}, "order": LATERAL_STEP}
    lateral = AllToAll(
        excitatory, inhibitory, LATERAL, method=ProjectedEuler(), name="lateral", **synapses
    )
    feedforward = AllToAll(inputs, excitatory, FEEDFORWARD, name="feedforward", **synapses)
    classifier = AllToAll(excitatory, readout, CLASSIFIER, name="classifier", **synapses)
    for updater in lateral.summed_updaters.values():
        updater.order = SUMS
    classifier.summed_updaters["net_post"].order = NET

    def on(group: Any, code: str, label: str, slot: str, order: int) -> None:
        group.run_regularly(code, clock=show, when=slot, order=order, name=f"{group.name}_{label}")

    on(excitatory, "h_before = h", "remember", "start", 0)
    on(inhibitory, "u_before = u", "remember", "start", 0)
    on(readout, NONLINEARITY[p.readout], "answer", "groups", ANSWER)
    on(feedforward, LEARN_FEEDFORWARD, "learn", "end", LEARN)
    on(excitatory, LEARN_BIAS, "learn", "end", LEARN)
    on(classifier, LEARN_CLASSIFIER, "learn", "end", LEARN)
    on(inputs, LOAD_INPUT, "load", "end", LOAD_X)
    on(readout, LOAD_LABEL, "load", "end", LOAD_Z)
    on(excitatory, RESTART_H, "restart", "end", RESTART)
    on(inhibitory, RESTART_U, "restart", "end", RESTART)
    on(lateral, RESTART_V, "restart", "end", RESTART)
    on(feedforward, SUM_DRIVE, "drive", "end", DRIVE)
    groups = inputs, excitatory, inhibitory, readout, lateral, feedforward, classifier
    network = Network(*groups, name=name)
    for group in groups:
        group._network = network.id  # or Brian2 complains of a circuit that is never run
        group.add_to_magic_network = False  # a user's run() is about the user's objects
    return network


def follow_readout(network: Network, every_step: bool) -> None:
    """Let the readout follow h at every step, to be recorded, or answer once per presentation."""
    clock = network["excitatory" if every_step else "inputs"].clock
    network["classifier"].summed_updaters["net_post"]._clock = clock
    network["readout_answer"]._clock = clock


def stream_arrays(x: FloatArray, z: FloatArray, rows: int) -> dict[str, Any]:
    """The streams of inputs and labels under the names the groups look them up by.

    They are padded to ``rows`` rows, because their length is part of the generated code.
    """
    return {
        "input_stream": TimedArray(_padded(x, rows), dt=ROW, name="input_stream"),
        "label_stream": TimedArray(_padded(z, rows), dt=ROW, name="label_stream"),
    }


def _padded(values: FloatArray, rows: int) -> FloatArray:
    return np.concatenate([values, np.zeros((rows - len(values), values.shape[1]))])


def monitors(network: Network, record: Iterable[str], snapshots: bool) -> dict[str, StateMonitor]:
    """Monitors of what a run returns, by the result they hold: the settled rates once per
    presentation, traces at every step, weights after learning."""
    step, show = network["excitatory"].clock, network["inputs"].clock

    def monitor(group: str, variables: Any, label: str, clock: Clock, order: int) -> StateMonitor:
        return StateMonitor(
            network[group],
            variables,
            record=True,
            clock=clock,
            when="end",
            order=order,
            name=f"{group}_{label}",
        )

    found = {
        "h": monitor("excitatory", ["h", "h_before"], "settled", show, RECORD),
        "u": monitor("inhibitory", ["u", "u_before"], "settled", show, RECORD),
        "y": monitor("readout", ["y"], "settled", show, RECORD),
    }
    home = {"h": "excitatory", "u": "inhibitory", "V": "lateral", "y": "readout"}
    for name in record:
        found[f"{name}_trace"] = monitor(home[name], [name], "trace", step, RECORD)
    if snapshots:
        home = {"W": "feedforward", "b": "excitatory", "w": "classifier"}
        for name, group in home.items():
            found[f"{name}_snapshots"] = monitor(group, [name], "snapshots", show, SNAPSHOT)
    return found
