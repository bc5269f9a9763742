"""What tests read off a picture."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.transforms import Bbox

from tests.conftest import small_circuit

N, M = 40, 24
"""Presentations and tiles of the recorded result."""
SMALL = small_circuit(n_tiles=M, n_interneurons=3, steps_per_presentation=80, tile_radius=0.5)
CONSTANT: dict[str, Any] = {
    "gain": "auto",
    "tiles": "first",
    "steps_per_presentation": 200,
    "tau_h": "8 ms",
    "tau_u": "50 ms",
    "tau_V": "2 ms",
}
"""What makes a circuit one of constant gain, with time constants that it needs, and of tiles on the
first points."""


def used(run):
    """How many tiles are in use when a result ends."""
    return int((run["recruited"].values >= 0).sum())


def lines(ax, dashed=False):
    """The y values of an axes' lines, drawn or dashed."""
    return [
        np.asarray(line.get_ydata())
        for line in ax.lines
        if (line.get_linestyle() == "--") == dashed
    ]


def holds(ax, expected):
    """Whether some line of the axes has exactly these values, which the result holds."""
    return any(len(y) == len(expected) and (y == expected).all() for y in lines(ax))


def offsets(collection):
    """The points of a scatter plot, in two or three dimensions."""
    if hasattr(collection, "_offsets3d"):
        return np.column_stack([np.asarray(values) for values in collection._offsets3d])
    return np.asarray(collection.get_offsets())


def laid_out(fig):
    """The figure with everything in its place, which is all that drawing does to it."""
    fig.draw_without_rendering()
    return fig


def legends(fig):
    return [*fig.legends, *(ax.get_legend() for ax in fig.axes if ax.get_legend())]


def text_on_text(fig):
    """Pairs of titles, axis labels and legends of a figure, laid out, that lie on one another."""
    texts = [*fig.texts, *fig.legends]  # the figure's title among them
    for ax in fig.axes:
        if ax.axison:
            texts += [t for t in (ax.title, ax.xaxis.label, ax.yaxis.label) if t.get_text()]
        texts += [ax.get_legend()] if ax.get_legend() else []
    boxes = [text.get_window_extent() for text in texts]
    return sum(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def hidden_by_legends(fig):
    """How many lines, points, bars and words lie under the legends of a figure, laid out."""
    count = 0
    for legend in legends(fig):
        for ax in fig.axes:
            box = Bbox.intersection(legend.get_window_extent(), ax.bbox)
            if box is None or hasattr(ax, "zaxis"):
                continue
            for line in ax.lines:
                path = line.get_transform().transform_path(line.get_path())
                path = path.cleaned(remove_nans=True)
                count += path.intersects_bbox(box, filled=False)
            for collection in ax.collections:
                places = collection.get_offset_transform().transform(offsets(collection))
                count += sum(box.contains(x, y) for x, y in places)
            count += sum(box.overlaps(text.get_window_extent()) for text in ax.texts)
            count += sum(box.overlaps(patch.get_window_extent()) for patch in ax.patches)
    return count


def readable(draw):
    """The figure that a call draws, which has a title and no empty axes, covers nothing, and leaves
    the user's style alone."""
    before = dict(mpl.rcParams)
    fig = laid_out(draw())
    assert fig.get_suptitle()
    assert all(ax.has_data() or ax.texts or not ax.axison for ax in fig.axes)
    assert text_on_text(fig) == 0
    assert hidden_by_legends(fig) == 0
    assert dict(mpl.rcParams) == before
    return fig
