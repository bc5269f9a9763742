"""The paper's figures by name, made from result files only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis.figures import arcs, diffusion, square
from analysis.figures import boards as chessboards
from analysis.figures import moons as two_moons
from analysis.style import figure_style
from circuits import selection
from circuits.errors import CircuitError, InputError


class MissingResultError(CircuitError, FileNotFoundError):
    """A figure's result file that is not there."""


def _moons(result: xr.Dataset) -> Figure:
    return two_moons.figure(result.isel(repeat=0, missing_dims="ignore"))


FIGURES: dict[str, tuple[tuple[str, ...], Callable[..., Figure]]] = {
    "fig1": (("tiling-arcs",), arcs.figure),
    "fig2": (("two-moons",), _moons),
    "fig3": (("chessboard-supervision", "chessboard-offline"), chessboards.figure),
    "fig4": (("square-balance",), square.figure),
    "diffusion": (("label-diffusion",), diffusion.figure),
}
"""Which experiments' results each figure needs, and what draws it from them."""

TITLES = {
    "fig1": "Network and receptive fields",
    "fig2": "Two moons from two labels",
    "fig3": "Chessboards on a Swiss roll",
    "fig4": "Two labels share a square",
    "diffusion": "Diffusion of labels over tiles",
}

PANELS = {
    "fig1": (
        "Left: the circuit. Inputs x drive excitatory tiles h through W against a bias b; "
        "inhibitory neurons u are driven through V and inhibit through the same weights; the "
        "readout y sums the tiles through w and obeys the label channel z when it speaks. Right: "
        "points on two arcs (black) and above each point the responses of the tiles after "
        "learning, one colour per tile; lines are means of 12 neighbours along the arc."
    ),
    "fig2": (
        "Top: the data by class and the labelled points (stars). Bottom left: the readout y at the "
        "end of every presentation, by true class; arrows mark the labels. Bottom right: readout "
        "weights of the tiles, ordered along the moons, at every 100th presentation; arrows mark "
        "the tiles on which the labels fall."
    ),
    "fig3": (
        "Top: the Swiss roll, coloured by the classes of the first board, and the boards on the "
        "unrolled sheet; sides in units of the roll's height. Centre: error on the unlabelled "
        "points of the stream, circuit and online logistic regression on the same tiles, with "
        "label spreading (offline, on the points themselves) for reference. Bottom: error on test "
        "points of the circuit and of a linear SVM with Laplacian penalty trained on all points so "
        "far. Mean and standard deviation over the reported repeats."
    ),
    "fig4": (
        "Left and centre: points coloured by predicted label with Laplacian regularisation and by "
        "the circuit, labelled points with arrows, and the cut that treats both alike (dashed). "
        "Right: share of points in the larger predicted class over repeats, with means (dotted)."
    ),
    "diffusion": (
        "Left: mean change of every readout weight, measured with the label channel silent, "
        "against the prediction μ S w − w, with S = E(h hᵀ), at several moments after two labels; "
        "all repeats. Right: the readout over time on the two-moons stream with clip and with "
        "tanh."
    ),
}

VARIABLES = {
    "tiling-arcs": ("points", "h_final", "position"),
    "two-moons": ("points", "classes", "labels", "position", "h", "y", "w_snapshots"),
    "chessboard-supervision": ("circuit_error", "points", "unrolled", "classes"),
    "chessboard-offline": ("online_error", "offline_error", "time"),
    "square-balance": ("score", "points", "majority"),
    "label-diffusion": ("measured", "predicted", "moment", "readout_y"),
}
"""What a result must hold to be drawn."""

FIRST_REPEAT = {
    "fig1": "Receptive fields: seed {seed}.",
    "fig2": "Shown: seed {seed}.",
    "fig3": "Roll and sheets: seed {seed}.",
    "fig4": "Squares: seed {seed}.",
    "diffusion": "Readouts: seed {seed}.",
}
"""Which panels show a single repeat, the first."""


def available(directory: Path) -> list[str]:
    """The figures whose results are all in a folder."""
    return [
        name
        for name, (needed, _) in FIGURES.items()
        if all((directory / f"{experiment}.nc").is_file() for experiment in needed)
    ]


@contextmanager
def open_results(name: str, directory: Path) -> Iterator[list[xr.Dataset]]:
    """The results a figure needs, read from disk as far as they are used."""
    if name not in FIGURES:
        raise InputError(f"there is no figure {name!r}: use {', '.join(FIGURES)}")
    with ExitStack() as stack:
        yield [
            stack.enter_context(_open(directory / f"{experiment}.nc", experiment))
            for experiment in FIGURES[name][0]
        ]


def _open(path: Path, experiment: str) -> xr.Dataset:
    again = f"'manifold-circuit run {experiment}' makes it"
    if not path.is_file():
        raise MissingResultError(f"there is no result file {path}: {again}")
    try:
        result = xr.open_dataset(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} cannot be read ({reason}): {again} anew") from None
    absent = [key for key in VARIABLES[experiment] if key not in result.variables]
    if absent:
        result.close()
        raise InputError(
            f"{path} holds no {absent[0]!r} and is of another version or experiment: {again} anew"
        )
    return result


def make_figure(name: str, directory: Path) -> Figure:
    """One of ``FIGURES``, from the results in a folder."""
    with open_results(name, directory) as results:
        return FIGURES[name][1](*results)


def caption(name: str, directory: Path) -> str:
    """What a figure shows, with parameters, seeds, repeats, engine and code revision."""
    with open_results(name, directory) as results:
        seeds = _seeds(results[0])
        shown = FIRST_REPEAT[name].format(seed=seeds[0] if seeds else "unknown")
        parts = [f"{TITLES[name]}. {PANELS[name]} {shown}"]
        parts += [_provenance(result) for result in results]
        if name == "fig3":
            parts.append(_choices(*results))
    return " ".join(parts)


def _seeds(result: xr.Dataset) -> list[int]:
    """Seeds of the repeats; a result that does not know its seed has none."""
    if "seed" in result.coords:
        return [int(seed) for seed in np.atleast_1d(result["seed"].to_numpy())]
    return [int(result.attrs["seed"])] if "seed" in result.attrs else []


def _provenance(result: xr.Dataset) -> str:
    """How a result was made."""
    attrs = result.attrs
    config = json.loads(attrs.get("config", "{}"))
    parameters = config.get("parameters") or json.loads(attrs.get("parameters", "{}"))
    settings = config.get("settings") or json.loads(attrs.get("settings", "{}"))
    # A grid of values replaces the parameter of that name.
    values = {key: value for key, value in parameters.items() if f"{key}_grid" not in settings}
    seeds = _seeds(result)
    chosen = [seed for seed in seeds if seed >= selection.SELECTION_SEED]
    reported = [seed for seed in seeds if seed not in chosen] or chosen
    number = len(reported) or 1
    plural = "s" * (number != 1)
    repeats = f"{number} repeat{plural} (seed{plural} {_ranges(reported)})"
    if chosen and reported != chosen:
        repeats += f" and {len(chosen)} for choosing (seeds {_ranges(chosen)})"
    # Repeats that differ in an attribute have none of that name once they are merged.
    engine, code = (attrs.get(key, "differs between repeats") for key in ("engine", "code"))
    return (
        f"{attrs.get('experiment', 'Run')}: {_listed(values | settings)}; {repeats}; "
        f"engine {engine}; code revision {code}."
    )


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {_value(value)}" for key, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(_value, value))})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _ranges(numbers: list[int]) -> str:
    """Numbers in words: 0 to 3, 7."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = (", ".join(map(str, run)) if len(run) < 3 else f"{run[0]} to {run[-1]}" for run in runs)
    return ", ".join(words) or "unknown"


def _choices(*results: xr.Dataset) -> str:
    """The hyperparameters that were chosen, board by board, and on what."""
    words = []
    for result, methods in zip(results, (chessboards.SUPERVISION, chessboards.STREAM), strict=True):
        merged = selection.with_repeats(result)
        kept = (merged["seed"] >= selection.SELECTION_SEED).to_numpy()
        own = "" if kept.any() and not kept.all() else " (none were kept: on those reported)"
        for name, (grid, *_) in methods.items():
            values = selection.chosen_values(merged, f"{name}_error", grid)
            boards = [
                "/".join(_value(value) for value in np.atleast_1d(row.to_numpy()).tolist())
                for row in values.transpose("board", ...)
            ]
            words.append(f"{name} {grid}{own} {', '.join(boards)}")
    return (
        "Each method is shown at the value with the least mean error on the repeats for choosing, "
        f"by board (and number of labels): {'; '.join(words)}."
    )


def save(name: str, directory: Path, out: Path) -> list[Path]:
    """One figure as PNG and PDF, with its caption inside either."""
    text = caption(name, directory)
    figure = make_figure(name, directory)
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{name}.png", out / f"{name}.pdf"]
    # Without a date the same results give the same files.
    metadata = (
        {"Title": TITLES[name], "Description": text},
        {"Title": TITLES[name], "Subject": text, "CreationDate": None},
    )
    try:
        with figure_style():
            for file, entries in zip(files, metadata, strict=True):
                figure.savefig(file, metadata=entries)
    finally:
        plt.close(figure)
    return files


def save_all(directory: Path, out: Path | None = None) -> list[Path]:
    """Every figure whose results are in a folder, and ``captions.md``; none are there, none made.

    They go to ``out``, by default the folder ``figures`` within it.
    """
    out = out or directory / "figures"
    files: list[Path] = []
    captions = []
    for name in available(directory):
        files += save(name, directory, out)
        captions.append(
            f"## {name}\n\n![{TITLES[name]}]({name}.png)\n\n{caption(name, directory)}\n"
        )
    if files:
        files.append(out / "captions.md")
        files[-1].write_text("# Figures\n\n" + "\n".join(captions), encoding="utf-8")
    return files
