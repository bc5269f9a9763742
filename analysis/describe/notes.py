"""What no object says of itself: remarks, by the name of what they are about."""

from __future__ import annotations

from typing import Any, NamedTuple


class Note(NamedTuple):
    """What something is for, and the table its code belongs to if that is not obvious."""

    text: str
    table: str = ""


NOTES = {
    "inputs": Note("the point that is shown, lifted: x"),
    "excitatory": Note("tiles: rates h and biases b"),
    "inhibitory": Note("interneurons: rates u"),
    "readout": Note("readout: rates y, label channels z"),
    "feedforward": Note("W, slow and Hebbian"),
    "lateral": Note("V, fast and anti-Hebbian; the same weights carry inhibition back"),
    "classifier": Note("w, slow and Hebbian"),
    "step_clock": Note("moves h, u and V"),
    "presentation_clock": Note("fires on the last step of every presentation"),
    "input_stream": Note("lifted points, looked up by row: one microsecond stands for one row"),
    "label_stream": Note("labels -1, +1, or 0 when silent, looked up like the points"),
    "excitatory_remember": Note("keeps h before the last step, to tell if it settled", "G"),
    "inhibitory_remember": Note("keeps u before the last step, to tell if it settled", "G"),
    "readout_answer": Note("the readout's rate, from its net input and its label"),
    "feedforward_learn": Note("Hebbian, once per presentation"),
    "excitatory_learn": Note("homeostatic bias, once per presentation", "E"),
    "classifier_learn": Note("Hebbian, once per presentation"),
    "inputs_load": Note("loads the next point"),
    "readout_load": Note("loads the next label"),
    "excitatory_restart": Note("restarts h, if reset is on"),
    "inhibitory_restart": Note("restarts u, if reset is on"),
    "lateral_restart": Note("restarts V, if reset is on", "D"),
    "feedforward_drive": Note("sums W x, which stays fixed through the presentation"),
    "readout_trace": Note("makes the readout answer at every step"),
    "lift.center": Note("c, the centre of the lift in the units of the data"),
    "lift.radius": Note("R, the radius of the lift in the units of the data"),
}
"""What has no remark is described all the same."""


def note(item: Any) -> Note:
    """The remark on an object, or on a name."""
    return NOTES.get(item if isinstance(item, str) else item.name, Note(""))


def position(item: Any) -> tuple[int, str]:
    """Sorts objects: known ones in the order of `NOTES`, then the others by name."""
    names = list(NOTES)
    return names.index(item.name) if item.name in NOTES else len(names), item.name
