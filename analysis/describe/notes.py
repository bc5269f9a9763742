"""What no object says of itself: remarks, by the name of what they are about."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """What something is for, and the tables its code belongs to if that is not obvious."""

    text: str
    table: str = ""


NOTES = {
    "inputs": Note("the point that is shown, lifted: x"),
    "excitatory": Note("tiles: rates h and biases b"),
    "inhibitory": Note("interneurons: rates u"),
    "gain_control": Note(
        "one feed-forward cell that measures the drive A = |[a]_+| of a point before it is shown: "
        "gain = 1/A divides the step of h, and u and V start at the scale sqrt(A)"
    ),
    "readout": Note("readout: rates y, label channels z"),
    "feedforward": Note("W, slow and Hebbian"),
    "lateral": Note("V, fast and anti-Hebbian; the same weights carry inhibition back"),
    "recruiter": Note("one cell that knows how many tiles are in use, and how many answer"),
    "measuring": Note("no weights: sums [a]_+^2"),
    "pooling": Note("no weights: counts the tiles in use and those that answer"),
    "classifier": Note("w, slow and Hebbian"),
    "competition": Note("no weights: ranks the tiles by b, to find the least used"),
    "step_clock": Note("moves h, u and V"),
    "presentation_clock": Note("fires on the last step of every presentation"),
    "loading_clock": Note("fires with it, but not after the last presentation"),
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
    "excitatory_load": Note("clears the old drive"),
    "feedforward_drive": Note("sums W x, which stays fixed through the presentation"),
    "excitatory_drive": Note("the drive a = W x - sqrt(alpha) b of the next point"),
    "excitatory_choose": Note(
        "a point that no tile answers, a_i sqrt(alpha)/(b_i (1 - alpha)) > recruit_below, recruits "
        "the next idle tile"
    ),
    "excitatory_recycle": Note("where no tile is idle, the one with the smallest b moves"),
    "excitatory_recruit": Note("starts the tile: b = kappa sqrt(alpha)", "E"),
    "feedforward_recruit": Note("starts the tile: W = kappa x", "E"),
    "classifier_recruit": Note("a tile that moves forgets its w", "E"),
    "feedforward_look": Note("sums W x of the new tile, if there is one"),
    "excitatory_look_again": Note("the drive of the new tile, if there is one"),
    "gain_control_measure": Note(
        "size A = |[a]_+|, gain 1/A, start sqrt(A), carry-over sqrt(A/last); A up to the floor is "
        "nothing"
    ),
    "inhibitory_rescale": Note("the scale of the drive, at which u and V start"),
    "excitatory_restart": Note("restarts h of the tiles in use"),
    "excitatory_silence": Note("holds h at zero where no tile responds"),
    "inhibitory_restart": Note("restarts u at the scale of the drive, or scales what carries over"),
    "lateral_restart": Note(
        "restarts V at the scale of the drive, or scales what carries over", "D"
    ),
    "readout_trace": Note("makes the readout answer at every step"),
    "lift.center": Note("c, the centre of the lift in the units of the data"),
    "lift.radius": Note("R, the radius of the lift in the units of the data"),
}
"""What has no remark is described all the same."""
