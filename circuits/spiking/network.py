"""The spiking twin as Brian2 groups and synapses.

It runs on the clocks of the rate circuit (`circuits.network`): every dt cells and synapses move,
and on the last step of a presentation spikes are counted, the next point is loaded, recruits a tile
if it must, has its drive measured, and everything fast restarts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import Clock, NeuronGroup, SpikeMonitor, StateMonitor, linked_var, second

from circuits import network as rate
from circuits import rules
from circuits.network import (
    AllToAll,
    CircuitNetwork,
    LoadingClock,
    PresentationClock,
    ProjectedEuler,
    Stages,
    network_of,
    stream_arrays,
)
from circuits.spiking import equations as eq
from circuits.stages import LOADING, schedule, where

if TYPE_CHECKING:
    from circuits.spiking.circuit import SpikingCircuit

CELLS = {"excitatory": "h", "inhibitory": "u", "readout": "y"}
"""Groups of cells, and the rates that their spikes are counted as."""


def build_network(circuit: SpikingCircuit, chunk: int, name: str = "circuit") -> CircuitNetwork:
    """The circuit's groups and synapses, with zero weights and streams of ``chunk`` rows."""
    return _Builder(circuit, chunk).network(name)


class _Builder:
    """Makes the objects of a network, one after the other."""

    def __init__(self, circuit: SpikingCircuit, chunk: int) -> None:
        self.circuit, self.p, self.s = circuit, circuit.parameters, circuit.spiking
        self.step = Clock(dt=self.s.dt_ * second, name="step_clock")
        self.show = PresentationClock(self.step, self.s.n_steps, "presentation_clock")
        self.next = LoadingClock(self.step, self.s.n_steps, "loading_clock")
        self.stages = Stages()
        self.names = {"where": where()}
        self.streams = stream_arrays(
            np.zeros((chunk, circuit.lift.n_inputs)), np.zeros((chunk, self.p.n_readouts)), chunk
        )

    def network(self, name: str) -> CircuitNetwork:
        """All of it."""
        self._make_cells()
        self._make_gain_control()
        self._make_synapses()
        self._schedule()
        groups: list[Any] = [self.inputs, self.excitatory, self.inhibitory, self.gain_control]
        groups += [self.readout, self.lateral, self.feedforward, self.pooling, self.classifier]
        groups += [self.competition] if self.p.recycle else []
        return network_of(groups, name, schedule())

    def _make_cells(self) -> None:
        p, s = self.p, self.s
        self.inputs = NeuronGroup(
            self.circuit.lift.n_inputs,
            rate.INPUTS,
            clock=self.step,  # that of the cells whose spikes its synapses learn from
            name="inputs",
            namespace=self.names | self.streams,
        )
        noise = eq.NOISE if s.sigma > 0 else ""
        fires = {"method": ProjectedEuler(*(["v"] if s.neuron == "if" else [])), "clock": self.step}
        self.excitatory = NeuronGroup(
            p.n_tiles * s.cells,
            eq.EXCITATORY[s.neuron].format(noise=noise)
            + eq.EXCITATORY_CELLS
            + eq.TILES
            + ("rank : 1\n" if p.recycle else "")
            + eq.INSIDE,
            threshold=eq.THRESHOLD[s.neuron].format(rate="rate_h"),
            reset=f"{eq.RESET[s.neuron]}{eq.FIRED}\n{eq.FIRED_b}",
            name="excitatory",
            namespace=dict(self.names),
            **fires,
        )
        self.inhibitory = NeuronGroup(
            p.n_interneurons * s.cells,
            eq.INHIBITORY[s.neuron].format(noise=noise) + eq.INHIBITORY_CELLS + eq.INSIDE,
            threshold=eq.THRESHOLD[s.neuron].format(rate="rate_u"),
            reset=eq.RESET[s.neuron] + eq.FIRED,
            name="inhibitory",
            namespace=dict(self.names),
            **fires,
        )
        output = eq.OUTPUT[p.readout].format(net=f"({eq.NET[p.readout_rule]})")
        output = eq.CLAMPED.format(output=output) if p.clamp_labels else output
        self.readout = NeuronGroup(
            p.n_readouts * s.readout_cells,
            eq.READOUT.format(output=output, total=eq.TOTAL[p.readout_rule]) + eq.INSIDE,
            threshold="abs(v) >= 0.5",
            reset="count += side*inside\nv -= side",
            method=ProjectedEuler(),
            clock=self.step,
            name="readout",
            namespace=self.names | self.streams,
        )

    def _make_gain_control(self) -> None:
        self.gain_control = NeuronGroup(
            1, rate.GAIN_CONTROL, clock=self.show, name="gain_control", namespace=dict(self.names)
        )
        for group in (self.excitatory, self.readout):
            group.presentation = linked_var(self.inputs, "presentation")
        for name in ("gain", "covered", "recruiting", "answering", "used", "first_presentation"):
            setattr(self.excitatory, name, linked_var(self.gain_control, name))

    def _make_synapses(self) -> None:
        p = self.p
        self.lateral = self._connect(
            *("lateral", self.excitatory, self.inhibitory, eq.LATERAL),
            on_pre=eq.LATERAL_PRE,
            on_post=eq.LATERAL_POST,
            method=ProjectedEuler(),
        )
        self.feedforward = self._connect(
            *("feedforward", self.inputs, self.excitatory, eq.FEEDFORWARD),
            on_post=eq.FEEDFORWARD_POST,
        )
        self.classifier = self._connect(
            *("classifier", self.excitatory, self.readout, eq.CLASSIFIER),
            on_pre=eq.CLASSIFIER_PRE[p.readout_rule],
            on_post=eq.CLASSIFIER_POST,
        )
        # In one step excitatory spikes come first; what is delivered then is seen in the next.
        paths = (self.lateral.pre, self.lateral.post, self.classifier.pre, self.classifier.post)
        for order, path in enumerate((*paths, self.feedforward.post)):
            path.order = order
        pooling = eq.POOLING.format(answers=rules.ANSWERS)
        self.pooling = self._connect("pooling", self.excitatory, self.gain_control, pooling)
        if p.recycle:
            competition = rate.COMPETITION.format(rank=rules.RANK)
            self.competition = self._connect(
                "competition", self.excitatory, self.excitatory, competition
            )

    def _connect(
        self, name: str, source: Any, target: Any, equations: str, **options: Any
    ) -> AllToAll:
        """Synapses between all pairs, numbered by (post, pre)."""
        synapses = AllToAll(
            source,
            target,
            equations,
            clock=self.step,
            name=name,
            namespace=dict(self.names),
            **options,
        )
        post, pre = np.nonzero(np.ones((target.N, source.N), bool))
        synapses.connect(i=pre, j=post)
        return synapses

    def _schedule(self) -> None:
        """What happens on the last step of a presentation."""
        p, place, sums = self.p, self.stages.place, self.pooling.summed_updaters

        def last(group: Any, stage: str, code: str, label: str | None = None) -> None:
            clock = self.next if stage in LOADING else self.show
            self.stages.code(group, stage, code, label or stage, clock)

        for group in (self.excitatory, self.inhibitory, self.readout):
            last(group, "answer", eq.TALLY.format(name=CELLS[group.name]), "tally")
        last(self.inputs, "load", f"{rate.LOAD_NUMBER}\n{rate.LOAD_INPUT}")
        last(self.readout, "load", rate.LOAD_LABEL.format(cell="unit"))
        last(self.excitatory, "load", "drive = 0")
        last(self.feedforward, "drive", rate.SUM_DRIVE)
        last(self.excitatory, "drive", rate.LOOK, "look")
        place("recruit", sums["answering_post"], sums["used_post"], clock=self.next)
        if p.recycle:
            place("recruit", *self.competition.summed_updaters.values(), clock=self.next)
        choose = eq.CHOOSE_LEAST if p.recycle else eq.CHOOSE
        last(self.excitatory, "recruit", choose, "choose")
        last(self.excitatory, "recruit", rules.TAKE)
        last(self.feedforward, "recruit", f"{rules.TAKE_W}\n{rules.TAKE_DRIVE}")
        if p.recycle:
            last(self.classifier, "recruit", rules.TAKE_w)
        last(self.excitatory, "recruit", rules.LOOK_AGAIN, "look_again")
        place("measure", sums["power_post"], clock=self.next)
        last(self.gain_control, "measure", rules.MEASURE)
        last(self.excitatory, "restart", eq.RESTART_E)
        last(self.inhibitory, "restart", eq.RESTART_I)
        gated = p.readout_rule == "gated"
        last(self.readout, "restart", eq.RESTART_Y + (eq.RESTART_TOTAL if gated else ""))
        last(self.lateral, "restart", eq.RESTART_V)
        last(self.feedforward, "restart", eq.DECAY_W, "decay")
        last(self.classifier, "restart", eq.DECAY_w[p.readout_rule], "decay")


TRACED = {
    "h": ("excitatory", "tr"),
    "u": ("inhibitory", "tr"),
    "V": ("lateral", "V"),
    "y": ("readout", "output"),
}
"""What is recorded at every step: traces of spikes, the synapses, and the readout's drive."""

SNAPSHOTS = {"W": "feedforward", "b": "excitatory", "w": "classifier"}


def monitors(network: Any, record: tuple[str, ...], snapshots: bool) -> dict[str, Any]:
    """Monitors of what a run returns, by the result they hold."""
    step, show = network["excitatory"].clock, network["gain_control"].clock

    def monitor(
        group: str, variable: str, label: str, clock: Clock, stage: str = "record"
    ) -> StateMonitor:
        name = f"{group}_{label}"
        return StateMonitor(
            network[group], [variable], record=True, clock=clock, when=stage, name=name
        )

    found: dict[str, Any] = {
        name: monitor(group, name, "settled", show) for group, name in CELLS.items()
    }
    found["gain"] = monitor("gain_control", "gain", "settled", show)
    for name, (group, variable) in TRACED.items():
        if name in record:
            found[f"{name}_trace"] = monitor(group, variable, "trace", step)
    if "spikes" in record:
        for group in CELLS:
            found[f"{group}_spikes"] = SpikeMonitor(network[group], name=f"{group}_spikes")
    if snapshots:
        for name, group in SNAPSHOTS.items():
            found[f"{name}_snapshots"] = monitor(group, name, "snapshots", show, "before_load")
    return found
