"""The circuit as Brian2 groups and synapses.

Time runs on two clocks. Every dt the *step* clock moves h, u and V. On the last step of each
presentation the *presentation* clock fires too: the readout answers, the slow synapses learn, and
the next point is loaded. So a presentation is S steps, nothing slow costs anything on the other
S - 1, and a run of T presentations is T S steps after which nothing is left to do.

For the presentation clock to fire on the last step rather than on the first, simulated time starts
at dt instead of 0: the state that a monitor in the slot "end" records at time t = n dt is the state
after n steps.

What the groups compute is `circuits.model`'s; here is how they are wired, and when each acts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import (
    BrianObjectException,
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
from brian2.utils.stringtools import word_substitute

from circuits import perturbing, rules
from circuits.errors import EngineError, ParameterError
from circuits.lift import FloatArray

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
drive : 1                          # W x, once per presentation
a : 1                              # W x - sqrt(alpha) b, once per presentation
inhibition : 1                     # V^T u, every step
b : 1
recruited : integer                # the presentation that started the tile, -1: it is idle
in_use = int(recruited >= 0) : 1
joins : integer                    # 1: the next point recruits the tile
h_before : 1                       # h before the last step of the presentation
h_rest : 1 (shared)
kappa : 1 (shared)
sqrt_alpha : 1 (shared)
eta : 1 (shared)
tau_h : second (shared)
gain : 1 (linked)
covered : 1 (linked)
recruiting : integer (linked)
answering : 1 (linked)
used : 1 (linked)
first_presentation : integer (linked)
presentation : integer (linked)
restart : integer (linked)
carry : integer (linked)
"""

INHIBITORY = """
excitation : 1                     # V h, every step
u_before : 1
u_rest : 1
u_start : 1                        # u at rest, at the scale of the next drive
kept : 1                           # what u and V that carry over are multiplied by
tau_u : second (shared)
scale : 1 (linked)
ratio : 1 (linked)
restart : integer (linked)
carry : integer (linked)
"""

GAIN_CONTROL = """
answering : 1                      # tiles that answer the next point
used : 1                           # tiles in use
power : 1                          # |[a]_+|^2
size : 1                           # |[a]_+|, or 0 where nothing answers
gain : 1                           # what the net input of h is multiplied by
scale : 1                          # what u and V at rest are multiplied by
ratio : 1                          # what u and V that carry over are multiplied by
covered : 1                        # 0: h is held at zero
last : 1                           # |[a]_+| of the last point that was answered
smallest : 1 (shared)              # |[a]_+| up to this is nothing
controlled : 1 (shared)            # 1: the gain is 1/|[a]_+|
constant_gain : 1 (shared)         # what it is else
recruiting : integer (shared)      # 1: points that no tile answers recruit one
least : 1 (shared)                 # recruit_below*(1 - alpha)
first_presentation : integer (shared)  # number of the stream's first point
restart : integer (linked)
carry : integer (linked)
more = restart + carry : 1         # 1: there is a next point
"""

POOLING = """
answering_post = {answers} : 1 (summed)
used_post = in_use_pre : 1 (summed)
power_post = a_pre*clip(a_pre, 0, inf) : 1 (summed)
"""

COMPETITION = "rank_post = {rank} : 1 (summed)"

LATERAL = """
inhibition_pre = V*{u}_post : 1 (summed)
excitation_post = V*{h}_pre : 1 (summed)
tau_V : second (shared)
"""

FEEDFORWARD = "W : 1"

READOUT = """
y : 1
z : 1
mu : 1
presentation : integer (linked)
"""

UNEQUAL_GAIN = """
common_gain : 1 (linked)
perturbed_gain : 1
gain = common_gain*perturbed_gain : 1
"""

NET = {
    "paper": """
net : 1                            # w.h
""",
    "gated": """
pooled : 1                         # w.h
total : 1                          # sum of h
net = pooled*int(total > 0)/(total + int(total <= 0)) : 1
""",
}

SUMS = {
    "paper": "net_post = w*h_pre : 1 (summed)",
    "gated": """
pooled_post = w*h_pre : 1 (summed)
total_post = h_pre : 1 (summed)
""",
}
CLASSIFIER = """
w : 1
learned : integer (shared)         # presentations learned from
running : 1 (shared)               # 1: w is the running mean of y h
constant_rate : 1 (shared)         # a constant rate on top of that
rate : 1 (shared)                  # the rate of this presentation
"""

RATE = """
learned += 1
rate = running/learned + constant_rate
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
SUM_DRIVE = "drive_post += W*x_pre"
LOOK = "a = drive - sqrt_alpha*b"

# Places in the schedule. Brian2 sorts by (slot, order, name); these make the name irrelevant.
# Slot "groups", every step: the model's `each_step`, from order 0 on, with a delay line moving just
# before the rates do. Then, on the last step, the readout.
# A perturbation acts between two of these, or after the last.
POOL, ANSWER = 10, 11
# Slot "end", on the last step: record, learn, take snapshots, load what comes next, sum its drive,
# see who answers, let it recruit a tile, measure the drive there is then, and restart.
# Perturbations act at odd places.
RECORD, LEARN, SNAPSHOT, LOAD_X, LOAD_Z, DRIVE, FIRST_LOOK, COUNT = range(0, 16, 2)
CHOOSE, TAKE, TAKE_SYNAPSES, LOOK_AGAIN, SUM_POWER, MEASURE, RESTART, RESTART_V = range(16, 32, 2)


class CircuitNetwork(Network):  # type: ignore[misc]
    """A network that only its circuit runs."""

    driven = False
    """Whether the circuit is running it now."""

    def run(self, *arguments: Any, **options: Any) -> None:
        """Refused to anybody but the circuit."""
        if not self.driven:
            raise EngineError(
                "a circuit's network is run by circuit.run(points, labels), which shows it the "
                "points; network.run would not"
            )
        super().run(*arguments, **options)


def network_of(groups: list[Any], name: str) -> CircuitNetwork:
    """A network of a circuit's own objects."""
    network = CircuitNetwork(*groups, name=name)
    for group in groups:
        group._network = network.id  # or Brian2 complains of a circuit that is never run
        group.add_to_magic_network = False  # a user's run() is about the user's objects
    return network


class ProjectedEuler(StateUpdateMethod):  # type: ignore[misc]
    """Forward Euler, then projection of some variables onto the non-negative numbers:
    x <- [x + dt f(x)]_+, with noise x <- [x + dt f(x) + sqrt(dt) g(x) n]_+ (Euler-Maruyama).

    All right-hand sides are evaluated before any variable is written.
    """

    def __init__(self, *projected: str) -> None:
        self.projected = projected

    def __call__(
        self, equations: Equations, variables: Any = None, method_options: Any = None
    ) -> str:
        """The abstract code of one step."""
        moved, written = [], []
        noise = {name: f"_sample_{name}" for name in sorted(equations.stochastic_variables)}
        # dt f + sqrt(dt) g n = dt (f + g xi) with xi = n / sqrt(dt)
        samples = [f"{sample} = randn()/sqrt(dt)" for sample in noise.values()]
        for equation in equations.ordered:
            if equation.type == DIFFERENTIAL_EQUATION:
                name = equation.varname
                slope = word_substitute(str(equation.expr), noise)
                moved.append(f"_{name} = {name} + dt*({slope})")
                projected = f"clip(_{name}, 0, inf)" if name in self.projected else f"_{name}"
                written.append(f"{name} = {projected}")
        return "\n".join(samples + moved + written)


class AllToAll(Synapses):  # type: ignore[misc]
    """Synapses from every cell of one group to every cell of another, numbered as the matrix
    [post, pre] in row-major order. Knowing that, the C++ templates loop over rows and columns
    instead of looking up both ends of every synapse."""

    all_to_all = True


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


def build_network(circuit: Circuit, chunk: int, name: str = "circuit") -> CircuitNetwork:
    """The circuit's groups and synapses, with zero weights and streams of ``chunk`` rows."""
    try:
        return _Builder(circuit, chunk).network(name)
    except (BrianObjectException, SyntaxError, TypeError, ValueError, KeyError) as error:
        if not circuit.model.changes():
            raise
        raise ParameterError(f"Brian2 refuses this model: {error}") from error


class _Builder:
    """Makes the objects of a network, one after the other."""

    def __init__(self, circuit: Circuit, chunk: int) -> None:
        self.circuit, self.model, self.p = circuit, circuit.model, circuit.parameters
        self.step = Clock(dt=self.p.dt_ * second, name="step_clock")
        self.show = PresentationClock(
            self.step, self.p.steps_per_presentation, "presentation_clock"
        )
        self.perturbed = circuit.perturbed
        self.streams = stream_arrays(
            np.zeros((1, circuit.lift.n_inputs)),
            np.zeros((1, self.p.n_readouts)),
            chunk,
            np.zeros((1, len(self.perturbed.timed))),
        )
        self.lines = [name.split(".") for name in self.model.delay_line(self.p)]

    def network(self, name: str) -> CircuitNetwork:
        """All of it."""
        self._make_groups()
        self._make_synapses()
        self._schedule()
        self._perturb()
        groups: list[Any] = [self.inputs, self.excitatory, self.inhibitory, self.gain_control]
        groups += [self.readout, self.lateral, self.feedforward, self.pooling, self.classifier]
        groups += [self.competition] if self.p.recycle else []
        return network_of(groups, name)

    def _make_groups(self) -> None:
        p, names = self.p, {**self.model.namespace, **self.perturbed.namespace()}
        own = self.perturbed.declarations
        order = self.model.each_step.index("rates") * 2
        rates = {"method": ProjectedEuler("h", "u"), "clock": self.step, "order": order}
        self.inputs = NeuronGroup(
            self.circuit.lift.n_inputs,
            INPUTS + own("inputs"),
            clock=self.show,
            name="inputs",
            namespace=names | self.streams,
        )
        wiring = EXCITATORY + ("rank : 1\n" if p.recycle else "") + self._past("excitatory")
        if self.perturbed.has_unequal_gain:
            wiring = wiring.replace("gain : 1 (linked)", UNEQUAL_GAIN)
        wiring += own("excitatory")
        self.excitatory = NeuronGroup(
            p.n_tiles,
            _equations(self.model.excitatory.brian2, "h", wiring),
            name="excitatory",
            namespace=dict(names),
            **rates,
        )
        self.inhibitory = NeuronGroup(
            p.n_interneurons,
            _equations(
                self.model.inhibitory.brian2,
                "u",
                INHIBITORY + self._past("inhibitory") + own("inhibitory"),
            ),
            name="inhibitory",
            namespace=dict(names),
            **rates,
        )
        self.gain_control = NeuronGroup(1, GAIN_CONTROL, clock=self.show, name="gain_control")
        self.readout = NeuronGroup(
            p.n_readouts,
            READOUT + NET[p.readout_rule] + own("readout"),
            clock=self.show,
            name="readout",
            namespace=names | self.streams,
        )
        for group in (self.excitatory, self.inhibitory, self.gain_control):
            group.restart = linked_var(self.inputs, "restart")
            group.carry = linked_var(self.inputs, "carry")
        for group in (self.excitatory, self.readout):
            group.presentation = linked_var(self.inputs, "presentation")
        gain = "common_gain" if self.perturbed.has_unequal_gain else "gain"
        setattr(self.excitatory, gain, linked_var(self.gain_control, "gain"))
        for name in ("covered", "recruiting", "answering", "used", "first_presentation"):
            setattr(self.excitatory, name, linked_var(self.gain_control, name))
        for name in ("scale", "ratio"):
            setattr(self.inhibitory, name, linked_var(self.gain_control, name))
        for name in self.perturbed.looked_up:
            for group in (self.excitatory, self.inhibitory, self.readout):
                setattr(group, name, linked_var(self.inputs, name))

    def _past(self, group: str) -> str:
        """Declarations of the rates on their way."""
        return "".join(f"{name} : 1\n" for owner, name in self.lines if owner == group)

    def _make_synapses(self) -> None:
        h, u = (line[1] for line in self.lines[-2:]) if self.lines else ("h", "u")
        own = self.perturbed.declarations
        lateral = LATERAL.format(h=h, u=u) + own("lateral")
        lateral = _equations(self.model.lateral.brian2, "V", lateral)
        self.lateral = self._connect(
            "lateral", self.excitatory, self.inhibitory, lateral, ProjectedEuler("V")
        )
        self.feedforward = self._connect(
            "feedforward", self.inputs, self.excitatory, FEEDFORWARD + "\n" + own("feedforward")
        )
        sums = SUMS[self.p.readout_rule] + CLASSIFIER + own("classifier")
        self.classifier = self._connect("classifier", self.excitatory, self.readout, sums)
        pooling = POOLING.format(answers=rules.ANSWERS)
        self.pooling = self._connect("pooling", self.excitatory, self.gain_control, pooling)
        for updater in self.lateral.summed_updaters.values():
            updater.order = self.model.each_step.index("sums") * 2
        for updater in self.classifier.summed_updaters.values():
            updater.order = POOL
        counting = [*self.pooling.summed_updaters.values()]
        if self.p.recycle:
            rank = rules.RANK_THERE if self.perturbed.takes_tiles else rules.RANK
            competition = COMPETITION.format(rank=rank)
            self.competition = self._connect(
                "competition", self.excitatory, self.excitatory, competition
            )
            counting += self.competition.summed_updaters.values()
        for updater in counting:
            updater.when, updater._clock = "end", self.show
            updater.order = SUM_POWER if updater.target_varname == "power_post" else COUNT

    def _connect(
        self, name: str, source: Any, target: Any, equations: Any, method: Any = None
    ) -> Synapses:
        """Synapses between all pairs, or those of the model's mask, numbered by (post, pre)."""
        mask = self.model.mask(name)
        options = {"clock": self.step, "order": self.model.each_step.index("lateral") * 2}
        names = {**self.model.namespace, **self.perturbed.namespace()}
        options |= {"namespace": names, "name": name}
        if method is not None:
            options["method"] = method
        kind = AllToAll if mask is None else Synapses
        synapses = kind(source, target, equations, **options)
        pairs = np.ones((target.N, source.N), bool) if mask is None else mask
        post, pre = np.nonzero(pairs)
        synapses.connect(i=pre, j=post)
        return synapses

    def _schedule(self) -> None:
        """Which code runs when, besides the equations."""
        model = self.model

        def on(group: Any, code: str, label: str, slot: str, order: int, clock: Clock) -> None:
            name = f"{group.name}_{label}"
            group.run_regularly(code, clock=clock, when=slot, order=order, name=name)

        def last(group: Any, code: str, label: str, slot: str, order: int) -> None:
            on(group, code, label, slot, order, self.show)

        last(self.excitatory, "h_before = h", "remember", "start", 0)
        last(self.inhibitory, "u_before = u", "remember", "start", 0)
        restart = {"h": rules.RESTART_H, "u": rules.RESTART_U}
        for group, rate in ((self.excitatory, "h"), (self.inhibitory, "u")):
            line = [name for owner, name in self.lines if owner == group.name]
            if line:
                moves = zip(reversed(line), [*reversed(line[:-1]), rate], strict=True)
                move = "\n".join(f"{to} = {source}" for to, source in moves)
                on(
                    group,
                    move,
                    "transmit",
                    "groups",
                    model.each_step.index("rates") * 2 - 1,
                    self.step,
                )
            kept = {"h": "(1 - carry*(1 - covered))", "u": "kept"}[rate]
            restart[rate] += "".join(
                f"\n{name} = restart*{rate} + (1 - restart)*{kept}*{name}" for name in line
            )
        clamp = rules.CLAMP if self.p.clamp_labels else ""
        answer = self.perturbed.answer(model.answer(self.p).brian2, clamp)
        last(self.readout, answer, "answer", "groups", ANSWER)
        if model.learns:
            last(self.feedforward, model.feedforward.brian2, "learn", "end", LEARN)
            last(self.excitatory, model.bias.brian2, "learn", "end", LEARN)
            classify = model.classify(self.p).brian2
            last(self.classifier, RATE + classify, "learn", "end", LEARN)
        last(self.inputs, self._load(), "load", "end", LOAD_X)
        last(self.readout, LOAD_LABEL, "load", "end", LOAD_Z)
        last(self.excitatory, "drive = 0", "load", "end", LOAD_X)
        last(self.feedforward, SUM_DRIVE, "drive", "end", DRIVE)
        last(self.excitatory, LOOK, "look", "end", FIRST_LOOK)
        last(self.excitatory, self._choose(), "choose", "end", CHOOSE)
        last(self.excitatory, rules.TAKE, "recruit", "end", TAKE)
        take = rules.TAKE_W
        if "feedforward" in self.perturbed.cut_synapses:
            take = take.replace("kappa_post", "perturbed_intact*kappa_post")
        last(self.feedforward, take, "recruit", "end", TAKE_SYNAPSES)
        if self.p.recycle:
            last(self.classifier, rules.TAKE_w, "recruit", "end", TAKE_SYNAPSES)
        last(self.excitatory, LOOK, "look_again", "end", LOOK_AGAIN)
        last(self.gain_control, rules.MEASURE, "measure", "end", MEASURE)
        last(self.excitatory, restart["h"], "restart", "end", RESTART)
        last(self.inhibitory, restart["u"], "restart", "end", RESTART)
        last(self.lateral, rules.RESTART_V, "restart", "end", RESTART_V)

    def _load(self) -> str:
        """How the next point is loaded, with what is the same for all its coordinates first."""
        return LOAD_INPUT.replace("x = ", f"{self.perturbed.load()}x = ")

    def _choose(self) -> str:
        """How a point that no tile answers finds one."""
        if self.perturbed.takes_tiles:
            return rules.CHOOSE_LEAST_THERE if self.p.recycle else rules.CHOOSE_THERE
        return rules.CHOOSE_LEAST if self.p.recycle else rules.CHOOSE

    def _perturb(self) -> None:
        """What perturbations do, each at its place: one code for each object and place."""
        each_step = self.model.each_step.index
        places = {
            perturbing.BEFORE_STEP: ("groups", -1, self.step),
            perturbing.BEFORE_RATES: ("groups", each_step("rates") * 2 - 1, self.step),
            perturbing.AFTER_RATES: ("groups", each_step("rates") * 2 + 1, self.step),
            perturbing.AFTER_LATERAL: ("groups", each_step("lateral") * 2 + 1, self.step),
            perturbing.BEFORE_LEARNING: ("end", LEARN - 1, self.show),
            perturbing.AFTER_LEARNING: ("end", LEARN + 1, self.show),
            perturbing.AFTER_CHOICE: ("end", CHOOSE + 1, self.show),
            perturbing.BEFORE_RESTART: ("end", RESTART_V - 1, self.show),
            perturbing.AFTER_RESTART: ("end", RESTART_V + 1, self.show),
        }
        texts: dict[tuple[str, str], list[str]] = {}
        for code in self.perturbed.codes():
            texts.setdefault((code.home, code.place), []).append(code.text)
        for (home, place), lines in texts.items():
            slot, order, clock = places[place]
            getattr(self, home).run_regularly(
                "\n".join(lines),
                **{"clock": clock, "when": slot, "order": order},
                name=f"{home}_perturbed_{place}",
            )
        if self.perturbed.counts_steps:
            self.inputs.run_regularly(
                "perturbed_step += 1", clock=self.step, when="start", order=0, name="inputs_count"
            )


def _equations(text: str, variable: str, wiring: str) -> Equations:
    """A group's equations: the model's, and what connects the group to the others."""
    own = Equations(text)
    if variable not in own.diff_eq_names:
        raise ParameterError(f"the equations of {variable} must have d{variable}/dt, got: {text}")
    return own + Equations(wiring)


def follow_readout(network: Network, every_step: bool) -> None:
    """Let the readout follow h at every step, to be recorded, or answer once per presentation."""
    clock = network["excitatory" if every_step else "inputs"].clock
    for updater in network["classifier"].summed_updaters.values():
        updater._clock = clock
    network["readout_answer"]._clock = clock


def stream_arrays(
    x: FloatArray, z: FloatArray, rows: int, strengths: FloatArray | None = None
) -> dict[str, Any]:
    """The streams of inputs, labels and strengths of perturbations, if there are any, under the
    names the groups look them up by.

    They are padded to ``rows`` rows, because their length is part of the generated code.
    """
    streams = {"input_stream": x, "label_stream": z}
    if strengths is not None and strengths.size:
        streams["strength_stream"] = strengths
    return {
        name: TimedArray(_padded(values, rows), dt=ROW, name=name)
        for name, values in streams.items()
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
