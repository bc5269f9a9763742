"""What results hold: the variables that pictures need, their form, and how to record them."""

from __future__ import annotations

from collections.abc import Iterable

import xarray as xr

from circuits.dataset import SHAPES
from circuits.errors import InputError

TRACES = ("h_trace", "u_trace", "V_trace", "y_trace")
SUPERVISION = (
    "circuit_error",
    "logistic_error",
    "logistic_origin_error",
    "hebbian_error",
    "spreading_error",
)
STREAM = ("online_error", "offline_error", "offline_origin_error")
SPIKES = tuple(f"excitatory_spike_{name}" for name in ("cell", "presentation", "step"))
"""Of a run that recorded spikes; other cells may have none."""
TWIN = (
    *("error", "direction_error", "bound", "escape_direction_error", "escape_bound", "accuracy"),
    *("rate_accuracy", "plain_accuracy", "board_error", "rate_board_error"),
)
DRIFT = (
    *("accuracy", "course", "map", "time", "eta", "speed", "travel", "tile_radius", "drift_after"),
    *("tile_center", "tile_weight", "tile_used", "shown_point", "shown_class", "moment_time"),
)
SWAP = (
    *(
        f"{rule}_{what}"
        for rule in ("printed", "constant", "gated")
        for what in ("wrong", "strength")
    ),
    *("critical", "part_size", "few_share", "more_share", "share", "part", "mu", "gated_mu"),
)
DIGITS = (
    *("few_accuracy", "stream_course", "tile_image", "tile_class"),
    *("hard_image", "hard_answer", "hard_class", "n_labels", "share", "time"),
)
FIELDS = (
    *("own_field", "likeness", "turned", "center", "moved", "diffusion", "creep", "weight"),
    *("readout_course", "shown_size", "size", "moment", "part"),
)
LESIONS = (
    *("after_coverage", "after_accuracy", "later_coverage", "later_accuracy"),
    *("predicted_coverage", "interneuron_error", "left_error", "cut_error", "growth"),
    *("predicted_growth", "settled", "critical_delay", "settling_delay", "noise_error"),
    *("predicted_noise_error", "noise_accuracy", "later", "dt_ms", "share"),
    *("interneurons", "left", "tau_u", "delay", "size"),
)
SNAPSHOTS = ("W_snapshots", "b_snapshots", "w_snapshots", "snapshot_presentation")

LINEAR_FEATURES = ("raw", "lifted", "random", "placed", "tiles", "permuted")
"""What a linear classifier was given."""

DIMENSIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    **{name: (("presentation", *SHAPES[name]),) for name in "huy"},
    **{f"{name}_trace": (("presentation", "step", *SHAPES[name]),) for name in "huVy"},
    **{f"{name}_snapshots": (("snapshot", *SHAPES[name]),) for name in "Wbw"},
    **dict.fromkeys(SPIKES, (("excitatory_spike",),)),
    **{f"{name}_hz": (("presentation", f"{name}_cell"),) for name in ("excitatory", "inhibitory")},
    "gain": (("presentation",),),
    "W": (SHAPES["W"],),
    "snapshot_presentation": (("snapshot",),),
    "points": (("presentation", "coordinate"), ("point", "coordinate")),
    "labels": (("presentation", "readout"),),
    "classes": (("presentation",), ("presentation", "readout"), ("board", "presentation")),
    "position": (("presentation",),),
    "change": (("presentation",),),
    "covered": (("presentation",),),
    "h_final": (("presentation", "tile"),),
    "unrolled": (("presentation", "side"),),
    "circuit_error": (("board", "n_labels", "mu"),),
    "logistic_error": (("board", "n_labels", "rate"),),
    "logistic_origin_error": (("board", "n_labels", "rate"),),
    "hebbian_error": (("board", "n_labels"),),
    "spreading_error": (("board", "n_labels", "gamma"),),
    "online_error": (("board", "mu", "time"),),
    "offline_error": (("board", "svm", "time"),),
    "offline_origin_error": (("board", "svm", "time"),),
    "time": (("step",), ("time",)),
    "score": (("approach", "point"),),
    "majority": (("approach",),),
    "measured": (("moment", "tile"),),
    "predicted": (("moment", "tile"),),
    "moment": (("moment",),),
    "readout_y": (("readout_kind", "presentation"),),
    "same_sign": (("data", "gain"),),
    "critical_mu": (("data",),),
    "growth": (("manifold", "time"), ("tau_u", "delay")),
    "ratio": (("manifold", "output"),),
    "measure_value": (("manifold", "output", "measure"),),
    "overlap_curve": (("manifold", "output", "similarity"),),
    "similarity": (("similarity",),),
    "pair_similarity": (("manifold", "pair"),),
    "pair_output": (("manifold", "pair"),),
    **{f"{name}_error": (("board", "penalty"),) for name in LINEAR_FEATURES},
    "linear_answer": (("shown", "penalty", "test", "board"),),
    "test_unrolled": (("test", "side"),),
    "overlaps": (("tile", "other_tile"),),
    "tile_place": (("tile", "side"),),
    "printed_error": (("stream", "mu", "time"),),
    "constant_error": (("stream", "mu", "time"),),
    "error": (("regular",),),
    "direction_error": (("regular",),),
    "bound": (("regular",),),
    "escape_direction_error": (("escape",),),
    "escape_bound": (("escape",),),
    "accuracy": ((), ("stream", "follower")),
    "course": (("stream", "follower", "time"),),
    "map": (("tiles", "eta", "speed"),),
    "eta": (("eta",),),
    "speed": (("speed",),),
    "travel": ((),),
    "tile_radius": ((),),
    "drift_after": ((),),
    "tile_center": (("moment", "tile", "coordinate"),),
    "tile_weight": (("moment", "tile"),),
    "tile_used": (("moment", "tile"),),
    "shown_point": (("moment", "shown", "coordinate"),),
    "shown_class": (("moment", "shown"),),
    "moment_time": (("moment",),),
    "rate_accuracy": ((),),
    "plain_accuracy": (("V_rule",),),
    "board_error": (("mu",),),
    "rate_board_error": (("mu",),),
    **{f"{rule}_wrong": (("share", "part", "mu"),) for rule in ("printed", "constant")},
    **{f"{rule}_strength": (("mu",),) for rule in ("printed", "constant")},
    "gated_wrong": (("share", "part", "gated_mu"),),
    "gated_strength": (("gated_mu",),),
    **{name: (((name,)),) for name in ("share", "part", "mu", "gated_mu")},
    **dict.fromkeys(("critical", "part_size", "few_share", "more_share"), ((),)),
    "few_accuracy": (("learner", "n_labels"),),
    "stream_course": (("stream_learner", "share", "time"),),
    "tile_image": (("answer", "shown_tile", "pixel"),),
    "tile_class": (("answer", "shown_tile"),),
    "hard_image": (("hard", "example", "pixel"),),
    "hard_answer": (("hard", "example"),),
    "hard_class": (("hard", "example"),),
    "n_labels": (("n_labels",),),
    "swept": (("swept_parameter",),),
    **dict.fromkeys(("own_field", "center"), (("size", "moment", "tile"),)),
    **dict.fromkeys(("likeness", "turned", "moved"), (("size", "moment"),)),
    **dict.fromkeys(("diffusion", "creep", "weight", "size"), (("size",),)),
    "readout_course": (("rule", "stream", "part"),),
    "shown_size": ((),),
    "change_at": ((),),
    "decided_at": ((),),
    **dict.fromkeys(("after_coverage", "after_accuracy", "predicted_coverage"), (("share",),)),
    **dict.fromkeys(("later_coverage", "later_accuracy"), (("share", "condition"),)),
    "interneuron_error": (("interneurons",),),
    "left_error": (("left",),),
    **dict.fromkeys(("predicted_growth", "settled"), (("tau_u", "delay"),)),
    **dict.fromkeys(("critical_delay", "settling_delay"), (("tau_u",),)),
    **dict.fromkeys(("noise_error", "predicted_noise_error", "noise_accuracy"), (("on", "size"),)),
    **dict.fromkeys(("cut_error", "later", "dt_ms"), ((),)),
    **{name: ((name,),) for name in ("interneurons", "left", "tau_u", "delay", "size")},
}
"""Dimensions that the variables of a result have, besides those of repeats."""


def lacking(result: xr.Dataset, names: Iterable[str]) -> list[str]:
    """Those of the variables that a result does not hold."""
    return [name for name in names if name not in result.variables]


def require(run: xr.Dataset, names: Iterable[str], what: str) -> None:
    """Refuse a result that lacks variables, and say in one sentence what to record."""
    if missing := lacking(run, names):
        which = ", ".join(missing)
        raise InputError(f"{what} needs {which}, which this result does not hold{remedy(missing)}")


def remedy(missing: Iterable[str]) -> str:
    """How to run a circuit for a result to hold variables, as the end of a sentence; nothing for
    those that every run of a circuit has."""
    names, circuit = list(missing), "the circuit"
    traces = [name.removesuffix("_trace") for name in names if name.endswith("_trace")]
    if any("_spike_" in name for name in names):
        traces.append("spikes")
    if any("_spike_" in name or name == "gain" or name.endswith("_hz") for name in names):
        circuit = "a SpikingCircuit"
    recorded = []
    if traces:
        recorded.append(f"record=({', '.join(map(repr, traces))}{',' if len(traces) == 1 else ''})")
    if any(name in SNAPSHOTS for name in names):
        recorded.append("snapshot_every=N")
    if recorded:
        return f": run {circuit} with {' and '.join(recorded)}"
    return "" if circuit == "the circuit" else f": run {circuit}"


def is_spiking(result: xr.Dataset) -> bool:
    """Whether a result is of spiking cells."""
    return "spiking" in result.attrs


def damage(result: xr.Dataset, names: Iterable[str]) -> str:
    """What is wrong with the form of variables that a result holds; nothing if all is well."""
    if result.sizes.get("repeat") == 0:
        return "it holds no repeats"
    for name in names:
        variable = result[name]
        dims = tuple(map(str, variable.dims))
        if tuple(dim for dim in dims if dim != "repeat") not in DIMENSIONS[name]:
            wanted = " or ".join(f"({', '.join(known)})" for known in DIMENSIONS[name])
            return f"its {name} has the dimensions ({', '.join(dims)}) instead of {wanted}"
        if variable.dtype.kind not in "biuf":
            return f"its {name} does not hold real numbers"
        if not variable.size:
            return f"its {name} is empty"
        if name == "snapshot_presentation" and not _are_places(variable, result):
            return f"its {name} does not hold places in its stream"
    return ""


def _are_places(variable: xr.DataArray, result: xr.Dataset) -> bool:
    """Whether a variable holds whole numbers that count presentations, from 0."""
    values = variable.to_numpy()
    count = result.sizes.get("presentation", 0)
    return bool(((values >= 0) & (values < count) & (values % 1 == 0)).all())
