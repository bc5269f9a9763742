"""The circuit as Brian2 groups and synapses.

Time runs on three clocks. Every dt the *step* clock moves h, u and V. On the last step of each
presentation the *presentation* clock fires too: the readout answers and the slow synapses learn.
With it fires the *loading* clock, unless that was the last presentation: the next point is loaded.
So nothing slow costs anything on the other steps, and T presentations are T S steps.

For the presentation clock to fire on the last step rather than on the first, simulated time starts
at dt instead of 0: the state that a monitor in the slot "end" records at time t = n dt is the state
after n steps.

What the groups compute is `circuits.model`'s, and when is `circuits.stages`'; here is how they are
wired.
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
from brian2.equations.equations import DIFFERENTIAL_EQUATION, EquationError, Equations
from brian2.stateupdaters.base import StateUpdateMethod
from brian2.utils.stringtools import word_substitute

from circuits import perturbing, rules
from circuits.errors import EngineError, ParameterError
from circuits.lift import FloatArray
from circuits.stages import EACH_STEP, LOADING, schedule, slots, where

if TYPE_CHECKING:
    from circuits.base import Circuit

INPUTS = """
x : 1                              # the point that is shown, lifted
presentation : integer (shared)    # which row of the stream that is
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
covered : 1 (linked)
recruiting : integer (linked)
answering : 1 (linked)
used : 1 (linked)
first_presentation : integer (linked)
presentation : integer (linked)
"""

INHIBITORY = """
excitation : 1                     # V h, every step
u_before : 1
u_rest : 1
u_start : 1                        # u at rest, at the scale of the next drive
kept : 1                           # ratio, where synapses can look it up
tau_u : second (shared)
scale : 1 (linked)
ratio : 1 (linked)
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

GAIN = "gain : 1 (linked)\n"
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
net = pooled/where(total > 0, total, inf) : 1
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
LOAD_NUMBER = "presentation += 1"
LOAD_INPUT = "x = input_stream(presentation*usecond, i)"
LOAD_LABEL = "z = label_stream(presentation*usecond, {cell})"
SUM_DRIVE = "drive_post += W*x_pre"
LOOK = "a = drive - sqrt_alpha*b"


BRIAN2_REFUSES = (BrianObjectException, EquationError)


class CircuitNetwork(Network):  # type: ignore[misc]
    """A network that only its circuit runs."""

    driven = False
    """Whether the circuit is running it now."""
    _clocks: set[Clock]

    def _nextclocks(self) -> tuple[Clock, set[Clock]]:
        """The clock that fires next and those that fire with it, without those that have ended."""
        clocks = self._clocks
        try:
            self._clocks = {
                c for c in clocks if self._clock_variables[c][0][0] < c._i_end
            } or clocks
            found: tuple[Clock, set[Clock]] = super()._nextclocks()
        finally:
            self._clocks = clocks
        return found

    def run(self, *arguments: Any, **options: Any) -> None:
        """Refused to anybody but the circuit."""
        if not self.driven:
            raise EngineError(
                "a circuit's network is run by circuit.run(points, labels), which shows it the "
                "points; network.run would not"
            )
        super().run(*arguments, **options)


def network_of(groups: list[Any], name: str, slots: list[str]) -> CircuitNetwork:
    """A network of a circuit's own objects, in order: of those that meet in a slot of the circuit's
    schedule, the one that was made first acts first."""
    network = CircuitNetwork(*groups, name=name)
    network.schedule = slots
    for group in groups:
        group._network = network.id  # or Brian2 complains of a circuit that is never run
        group.add_to_magic_network = False  # a user's run() is about the user's objects
    return network


class Stages:
    """Puts objects into slots; of those in one slot the first that was placed acts first."""

    def __init__(self) -> None:
        self.count = 0

    def place(self, stage: str, *objects: Any, clock: Clock | None = None) -> None:
        """Let objects act at a stage, on a clock of their own or another."""
        for item in objects:
            item.when, item.order = stage, self.next()
            item._clock = clock or item.clock

    def code(self, group: Any, stage: str, code: str, label: str, clock: Clock) -> None:
        """Let code run on a group at a stage."""
        name = f"{group.name}_{label}"
        group.run_regularly(code, clock=clock, when=stage, order=self.next(), name=name)

    def next(self) -> int:
        """A place after all others."""
        self.count += 1
        return self.count


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


class LoadingClock(PresentationClock):
    """Fires when a presentation clock does, but not on the last step of a run: nothing is loaded
    when nothing comes."""

    dt, dt_ = Clock.dt, Clock.dt_

    def set_interval(self, start: Any, end: Any) -> None:
        """Fire from ``start`` on, up to one step before ``end``."""
        super().set_interval(start, end - self._step_ * second)


def build_network(circuit: Circuit, chunk: int, name: str = "circuit") -> CircuitNetwork:
    """The circuit's groups and synapses, with zero weights and streams of ``chunk`` rows."""
    try:
        return _Builder(circuit, chunk).network(name)
    except (*BRIAN2_REFUSES, SyntaxError, TypeError, ValueError, KeyError) as error:
        if not circuit.model.changes() and not circuit.parts.all:
            raise
        what = "these parts" if circuit.parts.all else "this model"
        raise ParameterError(f"Brian2 refuses {what}: {error}") from error


class _Builder:
    """Makes the objects of a network, one after the other."""

    def __init__(self, circuit: Circuit, chunk: int) -> None:
        self.circuit, self.model, self.p = circuit, circuit.model, circuit.parameters
        self.step = Clock(dt=self.p.dt_ * second, name="step_clock")
        self.show = PresentationClock(
            self.step, self.p.steps_per_presentation, "presentation_clock"
        )
        self.next = LoadingClock(self.step, self.p.steps_per_presentation, "loading_clock")
        self.perturbed = circuit.perturbed
        self.streams = stream_arrays(
            np.zeros((1, circuit.lift.n_inputs)),
            np.zeros((1, self.p.n_readouts)),
            chunk,
            np.zeros((1, len(self.perturbed.timed))),
        )
        self.lines = [name.split(".") for name in self.model.delay_line(self.p)]
        self.stages = Stages()
        self.parts = circuit.parts
        self.names = {"where": where(), **self.model.namespace, **self.perturbed.namespace()}
        self.names |= self.parts.namespace()

    def network(self, name: str) -> CircuitNetwork:
        """All of it."""
        self._make_groups()
        self._make_synapses()
        self._schedule()
        self._perturb(*perturbing.EACH_STEP, *perturbing.EACH_PRESENTATION)
        for part, home, stage, text in self.parts.codes():
            self._at(getattr(self, home), stage, text, f"{part}_{stage}")
        if self.perturbed.counts_steps:
            self.stages.code(self.inputs, "start", "perturbed_step += 1", "count", self.step)
        groups: list[Any] = [self.inputs, self.excitatory, self.inhibitory, self.gain_control]
        groups += [self.readout, self.lateral, self.feedforward, self.pooling, self.classifier]
        groups += [self.competition] if self.p.recycle else []
        return network_of(groups, name, schedule(self.model.each_step))

    def _make_groups(self) -> None:
        p, names = self.p, self.names
        own = self._own
        rates = {"method": ProjectedEuler("h", "u"), "clock": self.step}
        self.inputs = NeuronGroup(
            self.circuit.lift.n_inputs,
            INPUTS + own("inputs"),
            clock=self.show,
            name="inputs",
            namespace=names | self.streams,
        )
        wiring = EXCITATORY + (UNEQUAL_GAIN if self.perturbed.has_unequal_gain else GAIN)
        wiring += ("rank : 1\n" if p.recycle else "") + self._past("excitatory")
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
        self.gain_control = NeuronGroup(
            1, GAIN_CONTROL, clock=self.show, name="gain_control", namespace=dict(names)
        )
        self.readout = NeuronGroup(
            p.n_readouts,
            READOUT + NET[p.readout_rule] + own("readout"),
            clock=self.show,
            name="readout",
            namespace=names | self.streams,
        )
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

    def _own(self, home: str) -> str:
        """Equations that an object has besides the circuit's."""
        return self.perturbed.declarations(home) + self.parts.equations(home)

    def _past(self, group: str) -> str:
        """Declarations of the rates on their way."""
        return "".join(f"{name} : 1\n" for owner, name in self.lines if owner == group)

    def _make_synapses(self) -> None:
        h, u = (line[1] for line in self.lines[-2:]) if self.lines else ("h", "u")
        own = self._own
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
        if self.p.recycle:
            rank = rules.RANK_THERE if self.perturbed.takes_tiles else rules.RANK
            competition = COMPETITION.format(rank=rank)
            self.competition = self._connect(
                "competition", self.excitatory, self.excitatory, competition
            )

    def _connect(
        self, name: str, source: Any, target: Any, equations: Any, method: Any = None
    ) -> Synapses:
        """Synapses between all pairs, or those of the model's mask, numbered by (post, pre)."""
        mask = self.model.mask(name)
        options = {"clock": self.step, "namespace": dict(self.names), "name": name}
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
        model, place = self.model, self.stages.place
        place("sums", *self.lateral.summed_updaters.values())
        place("lateral", self.lateral.state_updater)
        place("rates", self.excitatory.state_updater, self.inhibitory.state_updater)
        self._last(self.excitatory, "start", "h_before = h", "remember")
        self._last(self.inhibitory, "start", "u_before = u", "remember")
        place("answer", *self.classifier.summed_updaters.values())
        clamp = rules.CLAMP if self.p.clamp_labels else ""
        self._last(
            self.readout, "answer", self.perturbed.answer(model.answer(self.p).brian2, clamp)
        )
        if model.learns:
            self._last(self.feedforward, "learn", model.feedforward.brian2)
            self._last(self.excitatory, "learn", model.bias.brian2)
            self._last(self.classifier, "learn", RATE + model.classify(self.p).brian2)
        load = [LOAD_NUMBER, *self.perturbed.load(), LOAD_INPUT]
        self._last(self.inputs, "load", "\n".join(load))
        self._last(self.readout, "load", LOAD_LABEL.format(cell="i"))
        self._last(self.excitatory, "load", "drive = 0")
        self._last(self.feedforward, "drive", SUM_DRIVE)
        self._last(self.excitatory, "drive", LOOK, "look")
        self._recruit()
        place("measure", self.pooling.summed_updaters["power_post"], clock=self.next)
        self._last(self.gain_control, "measure", rules.MEASURE)
        restart = dict(rules.RESTART if self.p.reset else rules.CARRY_OVER)
        for group, rate in ((self.excitatory, "h"), (self.inhibitory, "u")):
            line = [name for owner, name in self.lines if owner == group.name]
            if line:
                moves = zip(reversed(line), [*reversed(line[:-1]), rate], strict=True)
                move = "\n".join(f"{to} = {source}" for to, source in moves)
                self.stages.code(group, "before_rates", move, "transmit", self.step)
            carried = {"h": "where(covered > 0, {}, 0)", "u": "kept*{}"}[rate]
            for name in line:
                on_its_way = rate if self.p.reset else carried.format(name)
                restart[rate] += f"\n{name} = {on_its_way}"
            self._last(group, "restart", restart[rate])
        self._last(self.lateral, "restart", restart["V"])

    def _last(self, group: Any, stage: str, code: str, label: str | None = None) -> None:
        """Run code on the last step of every presentation."""
        clock = self.next if stage in LOADING else self.show
        self.stages.code(group, stage, code, label or stage, clock)

    def _recruit(self) -> None:
        """How a point that no tile answers finds one."""
        sums = self.pooling.summed_updaters
        counts = [sums["answering_post"], sums["used_post"]]
        counts += self.competition.summed_updaters.values() if self.p.recycle else []
        self.stages.place("recruit", *counts, clock=self.next)
        self._last(self.excitatory, "recruit", self._choose(), "choose")
        self._perturb("recruit")
        self._last(self.excitatory, "recruit", rules.TAKE)
        take = [rules.TAKE_W, *self.perturbed.cut("feedforward"), rules.TAKE_DRIVE]
        self._last(self.feedforward, "recruit", "\n".join(take))
        if self.p.recycle:
            self._last(self.classifier, "recruit", rules.TAKE_w)
        self._last(self.excitatory, "recruit", rules.LOOK_AGAIN, "look_again")

    def _choose(self) -> str:
        """How a point that no tile answers finds one."""
        if self.perturbed.takes_tiles:
            return rules.CHOOSE_LEAST_THERE if self.p.recycle else rules.CHOOSE_THERE
        return rules.CHOOSE_LEAST if self.p.recycle else rules.CHOOSE

    def _perturb(self, *stages: str) -> None:
        """What perturbations do at these stages: one code for each object and stage."""
        texts: dict[tuple[str, str], list[str]] = {}
        for code in self.perturbed.codes():
            if code.stage in stages:
                texts.setdefault((code.home, code.stage), []).append(code.text)
        for (home, stage), lines in texts.items():
            self._at(getattr(self, home), stage, "\n".join(lines), f"perturbed_{stage}")

    def _at(self, group: Any, stage: str, code: str, label: str) -> None:
        """Run code at any stage, on the clock of that stage."""
        if stage in slots(*EACH_STEP):
            self.stages.code(group, stage, code, label, self.step)
        else:
            self._last(group, stage, code, label)


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

    def monitor(
        group: str, variables: Any, label: str, clock: Clock, stage: str = "record"
    ) -> StateMonitor:
        name = f"{group}_{label}"
        return StateMonitor(
            network[group], variables, record=True, clock=clock, when=stage, name=name
        )

    found = {
        "h": monitor("excitatory", ["h", "h_before"], "settled", show),
        "u": monitor("inhibitory", ["u", "u_before"], "settled", show),
        "y": monitor("readout", ["y"], "settled", show),
    }
    home = {"h": "excitatory", "u": "inhibitory", "V": "lateral", "y": "readout"}
    for name in record:
        found[f"{name}_trace"] = monitor(home[name], [name], "trace", step)
    if snapshots:
        home = {"W": "feedforward", "b": "excitatory", "w": "classifier"}
        for name, group in home.items():
            found[f"{name}_snapshots"] = monitor(group, [name], "snapshots", show, "before_load")
    return found
