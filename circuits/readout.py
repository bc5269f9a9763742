"""Layer two of the paper: readouts that learn from few labels, as Brian2 groups and synapses.

    y (r)      readout rates in [-1, 1]       w (r, m)   synapses from the tiles h (m)
    z (r)      labels: -1, +1, or 0 if there is none     mu (r)     gain of a readout

Once h has settled, each readout answers, and learns from its own answer:

    y = clip(mu w.h + z, -1, 1)            Eq. (ystep), or y = tanh(mu w.h + z), Eq. (ytanh)
    w <- w + (y h - w)/(t + 1)             Eq. (wstep): w is the mean of y h over t = 0, 1, ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.assembly.part import Part

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task

ANSWER = {"clip": "y = clip(mu*net + z, -1, 1)", "tanh": "y = tanh(mu*net + z)"}
CLASSIFIER = "w += rate*(y_post*h_pre - w)"
LABEL = "z = label_stream(presentation*usecond, i)"

READOUTS = """
y : 1                              # the answer
z : 1                              # the label, 0 if there is none
mu : 1                             # gain of w.h
wh : 1                             # w.h
net = wh : 1                       # what mu multiplies
presentation : integer (linked)    # the row of the stream that is shown
"""

SYNAPSES = """
w : 1                              # readout weight
wh_post = w*h_pre : 1 (summed)
learned : integer (shared)         # presentations learned from: t + 1
running : 1 (shared)               # 1, or 0 in a prediction
rate = running/learned : 1 (shared) # of learning
"""


class Readout(Part):
    """Layer two."""

    links = {"readout.presentation": "inputs.presentation"}
    summed = {"classifier.wh_post": "answer"}
    fields = {"classifier.w": "w"}
    learning = ("classifier.running",)

    def __init__(self, c: Circuit) -> None:
        p, model = c.parameters, c.model
        learn = (("classifier", "learn", f"learned += 1\n{model.classify(p).brian2}"),)
        self.equations = {"readout": READOUTS, "classifier": SYNAPSES}
        self.code = (
            ("readout", "answer", model.answer(p).brian2),
            *(learn if model.learns else ()),
            ("readout", "load", LABEL),
        )
        self.parameters = {
            "readout.mu": np.array(p.mu_per_readout),
            "classifier.running": 1.0,
        }

    def start(self, state: CircuitState, task: Task) -> dict[str, Any]:
        """Values of what counts presentations, before the first one of a stream."""
        return {"classifier.learned": state.learned}
