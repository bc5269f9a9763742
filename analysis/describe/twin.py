"""What the objects of a spiking circuit do not say of themselves: remarks, words and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from analysis.describe import objects
from analysis.describe.notes import Note
from analysis.describe.table import Code
from analysis.describe.values import plain
from circuits.spiking.circuit import SpikingCircuit
from circuits.spiking.parameters import LOWEST, SpikingParameters

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit

NOTES = {
    "excitatory": Note("cells of the tiles: they integrate their drive less inhibition, and fire"),
    "inhibitory": Note("cells of the interneurons: they integrate what tiles send, and fire"),
    "gain_control": Note(
        "one feed-forward cell that measures the drive A = |[a]_+| of a point before it is shown: "
        "current = strength gain a with gain = 1/A; scale and ratio are the rate circuit's, and "
        "have no effect"
    ),
    "readout": Note(
        "cells of the readouts, each for an ON and an OFF cell: a spike has the side that v is on"
    ),
    "feedforward": Note("W, slow and Hebbian; inputs are currents, fixed through a presentation"),
    "lateral": Note(
        "V, Hebbian by pairs of spikes and fading; the same weights carry inhibition back"
    ),
    "measuring": Note("no weights: sums [a]_+^2, each cell weighing 1/N"),
    "pooling": Note(
        "no weights: counts the cells that answer, and the tiles in use, each cell weighing 1/N"
    ),
    "classifier": Note("w, slow and Hebbian by spikes of the readout; ON and OFF side share it"),
    "competition": Note("no weights: ranks the cells by b, to find the least used"),
    "step_clock": Note("moves potentials, currents, traces and V; spikes are sent and delivered"),
    "excitatory_spike_resetter": Note(
        "takes the threshold off v, where there is one; raises the trace; in the window, counts, "
        "and b grows by eta sqrt(alpha) h in all",
        "DE",
    ),
    "inhibitory_spike_resetter": Note(
        "takes the threshold off v, where there is one; raises the trace; counts in the window"
    ),
    "readout_spike_resetter": Note(
        "counts in the window, up or down; takes the spike, of its side, off v"
    ),
    "lateral_pre": Note("delivers to the inhibitory cells, then grows by their trace"),
    "lateral_post": Note("delivers to the excitatory cells, then grows by their trace"),
    "classifier_pre": Note(
        "delivers to the readout (gated: and w fades with spikes in the window)"
    ),
    "classifier_post": Note("in the window, w grows by side times trace: by rate y h in all"),
    "feedforward_post": Note("in the window, W grows by eta q_window x: by eta h x^T in all"),
    "excitatory_tally": Note("h: spikes in the window as a rate, in units of rate_h", "G"),
    "inhibitory_tally": Note("u: spikes in the window as a rate, in units of rate_u", "G"),
    "readout_tally": Note("y: ON less OFF spikes in the window, in units of rate_y", "G"),
    "excitatory_drive": Note("the drive a = W x - sqrt(alpha) b of every cell for the next point"),
    "gain_control_measure": Note(
        "size A = |[a]_+|, gain 1/A; A up to the floor is nothing, and no cell is driven"
    ),
    "excitatory_restart": Note(
        "the current of the next point; potential, inhibition, trace and count restart; b fades by "
        "eta, and grows again with the spikes of the window",
        "DE",
    ),
    "inhibitory_restart": Note("potential, excitation, trace and count restart"),
    "readout_restart": Note("potential, net input and count restart"),
    "lateral_restart": Note("V restarts at u_rest h_rest for the tiles in use", "D"),
    "feedforward_decay": Note("W fades by eta, and grows again with the spikes of the window"),
    "classifier_decay": Note(
        "the rate of the next presentation; w fades by it as that begins (gated: with spikes)"
    ),
    "excitatory_settled": Note("h is the mean over the cells of a tile, excitatory_hz each cell's"),
    "inhibitory_settled": Note(
        "u is the mean over the cells of an interneuron, over sqrt(strength gain); inhibitory_hz "
        "each cell's"
    ),
    "readout_settled": Note("y is the mean over the cells of a readout, readout_hz each cell's"),
    "excitatory_gain": Note("times strength in the result"),
    "excitatory_trace": Note("h_trace is the mean of the spikes' traces over a tile's cells"),
    "inhibitory_trace": Note("u_trace is the mean of the spikes' traces, scaled like u"),
    "lateral_trace": Note("V_trace is the mean over pairs of cells, scaled like u"),
    "readout_trace": Note("y_trace is what drives the readout's cells, their mean"),
    "excitatory_spikes": Note("when, and which cell"),
    "inhibitory_spikes": Note("when, and which cell"),
    "readout_spikes": Note("when, and which cell; of either side"),
    "feedforward_snapshots": Note("mean over the cells of a tile"),
    "excitatory_snapshots": Note("mean over the cells of a tile"),
    "classifier_snapshots": Note("mean over pairs of cells"),
}
"""Remarks on objects, where those on the rate circuit's would be wrong or are missing."""

MEANINGS = {
    "n_tiles": "m, the number of tiles, each of N = cells excitatory cells.",
    "n_interneurons": "k, the number of interneurons, each of N = cells inhibitory cells.",
    "n_readouts": "r, the number of readouts, each of readout_cells cells with one label channel.",
    "reset": "A spiking circuit restarts all that is fast at every presentation.",
    "gain": 'What the drive is multiplied by: "control" is strength/|[a]_+|, measured at every '
    'presentation; "auto" is the constant m/(1 - alpha); else this number.',
}
"""Parameters that mean something else to spiking cells."""

UNUSED = ("steps_per_presentation", "dt", "tau_h", "tau_u", "tau_V")
"""Parameters of the rate circuit's time, in place of which a spiking circuit has its own."""


def is_spiking(circuit: ManifoldCircuit) -> TypeGuard[SpikingCircuit]:
    """Whether a circuit has cells that fire."""
    return isinstance(circuit, SpikingCircuit)


def gain_in_words(circuit: SpikingCircuit) -> str:
    """What gain control multiplies the drive by."""
    return (
        "gain control: strength/A with A = |[a]_+| measured once per presentation, so that every "
        f"drive has the size {circuit.strength:g}; where A does not exceed {circuit.floor:.3g}, "
        f"every current is {LOWEST:g}"
    )


def parameters(circuit: SpikingCircuit) -> list[tuple[str, ...]]:
    """Names, values and meanings of how the cells fire."""
    meaning = objects.meanings(SpikingParameters)
    rows: list[tuple[str, ...]] = [
        (Code(f"spiking.{name}"), plain(value), meaning.get(name, ""))
        for name, value in circuit.spiking.as_dict().items()
    ]
    return [*rows, (Code("seed"), str(circuit.seed), "Of escape and noise.")]


def as_used(circuit: SpikingCircuit) -> list[tuple[str, Any, str]]:
    """Values that follow from the parameters."""
    return [
        ("strength, as used", circuit.strength, "Factor of the drive, besides the gain."),
        ("sigma, as used", circuit.spiking.sigma, objects.doc(SpikingParameters.sigma)),
    ]
