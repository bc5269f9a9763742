"""What the page needs to draw the spikes of any presentation of a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from analysis.firing.common import UNITS, cells_per_unit
from analysis.firing.spikes import Spikes, row_cells, rows_of
from analysis.page.reading import Result
from analysis.selection import first_repeat
from analysis.theory import spiking_of
from circuits.spiking.trains import GROUPS
from circuits.storage import results

MOST_SPIKES = 250_000
"""Spikes that the page has room for, some 2 MB; of a longer stream presentations are left out,
evenly."""


def has_spikes(result: Result) -> bool:
    """Whether a result says that it holds spikes."""
    return "excitatory_spike" in result.sizes


def spikes_data(result: Result) -> dict[str, Any]:
    """Steps and rows of the spikes of every presentation shown, group by group from the top.

    Rows are those of the plots (`analysis.firing.row_cells`), counted from the bottom.
    """
    with results.opened(result.path) as stored:
        run = first_repeat(stored).drop_vars(_not_needed(stored)).load()
    s, spikes = spiking_of(run), {group: Spikes.of(run, group) for group in GROUPS}
    count = run.sizes["presentation"]
    total = sum(len(each.cell) for each in spikes.values())
    shown = np.arange(0, count, max(1, -(-total // MOST_SPIKES)))
    groups = [_group(run, group, spikes[group], shown) for group in reversed(GROUPS)]
    which = "every presentation" if len(shown) == count else f"{len(shown)} presentations"
    return {
        "about": f"{result.name} ({result.experiment}, {result.text('engine')} engine): {which} "
        f"of {count}.",
        "moments": run["presentation"].to_numpy()[shown].tolist(),
        "lastPresentation": int(run["presentation"][-1]),
        "texts": [_text(run, int(place)) for place in shown],
        "steps": s.n_steps,
        "window": s.window_steps,
        "milliseconds": f"{1e3 * s.presentation_:g}",
        "groups": groups,
    }


def _not_needed(stored: xr.Dataset) -> list[str]:
    """Variables that are large and not drawn."""
    endings = ("_trace", "_snapshots", "_spike_time")
    return [str(name) for name in stored.data_vars if str(name).endswith(endings)]


def _group(run: xr.Dataset, group: str, spikes: Spikes, shown: Any) -> dict[str, Any]:
    row, rows = rows_of(run, group, spikes.cell), len(row_cells(run, group))
    order = np.lexsort((spikes.step, spikes.presentation))
    bounds = np.searchsorted(spikes.presentation[order], [shown, shown + 1])
    parts = [order[begin:end] for begin, end in bounds.T]
    return {
        "name": group,
        "title": _title(run, group, rows),
        "rows": rows,
        "step": [spikes.step[part].tolist() for part in parts],
        "row": [row[part].tolist() for part in parts],
    }


def _title(run: xr.Dataset, group: str, rows: int) -> str:
    """How many units a group's rows are, and in which order."""
    per_unit = cells_per_unit(run, group)
    units = rows // per_unit
    text = f"{units} {UNITS[group]}{'s' * (units != 1)}"
    text += f" of {per_unit} cells{' each' * (units != 1)}" if per_unit > 1 else ""
    if group != "excitatory":
        return text
    order = "ordered along the manifold" if "position" in run else "from left to right"
    return f"{text}, {order} from the bottom up"


def _text(run: xr.Dataset, place: int) -> str:
    """The point of a presentation, its labels and what was answered."""
    point = ", ".join(_signed(value, 2) for value in run["points"][place].to_numpy())
    labels = [_signed(label, 0) for label in run["labels"][place].to_numpy()]
    told = f"labelled {', '.join(labels)}" if any(label != "0" for label in labels) else "no label"
    answers = ", ".join(_signed(value, 2) for value in run["y"][place].to_numpy())
    return f"point ({point}), {told}; the readout answers y = {answers}"


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}" if round(float(value), digits) else "0"
    return text.replace("-", "−")
