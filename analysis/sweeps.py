"""A sweep over parameters: lines with their spread, a map, or several maps."""

from __future__ import annotations

import hashlib
import json
import math
import re
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from analysis.heatmap import draw_map
from analysis.holdings import damage, lacking
from analysis.style import figure_style, palette, whole_numbers
from circuits.checks import is_number
from circuits.errors import InputError, listed, shown
from circuits.lift import FloatArray
from circuits.parameters import seconds

SPREAD = (5, 95)
"""Percentiles of the repeats between which a band is drawn."""

MOST_MAPS, MAPS_IN_ROW = 16, 4

WIDE = 10
"""Values that are spaced by a factor span at least this one to be drawn on a logarithmic axis."""

LETTER, TITLE_LETTER = 0.062, 0.095
"""Inches that a letter takes, of a tick's name and of the title."""

BESIDE = 0.1
"""Inches between the names of neighbouring ticks."""

WORD_LETTERS, FEWEST_LETTERS, LINE_LETTERS = 24, 12, 34
"""Letters in a line of a tick's name, at most and at least, and of a label."""

MOST_LETTERS = 100
"""Of what is held, in the name of a file."""

LEAST_ROOM, WIDEST = 0.2, 0.75
"""Inches between names of ticks that are turned, and of the columns of a map: names that need more
are turned."""

UNITS = {"tile_radius": "units of the data", "noise": "units of the data"}
"""Of parameters that have some, besides those with units of time."""


def is_sweep(result: xr.Dataset) -> bool:
    """Whether a result is of a sweep over parameters."""
    return not lacking(result, ("swept", "swept_parameter")) and not damage(result, ("swept",))


def swept(result: xr.Dataset) -> list[str]:
    """The parameters that a sweep is over, and that are not held."""
    return [str(name) for name in result["swept_parameter"].to_numpy() if name in result.dims]


def measures(result: xr.Dataset) -> list[str]:
    """The variables of a sweep that can be drawn."""
    return [
        str(name)
        for name, values in result.data_vars.items()
        if values.dtype.kind in "biuf" and "repeat" in values.dims
    ]


def chosen(result: xr.Dataset, variable: str | None, at: Mapping[str, Any]) -> xr.Dataset:
    """A sweep of which a variable is to be drawn, where some dimensions stay at one value."""
    if not is_sweep(result):
        raise InputError("--variable and --at are for results of 'sweep', and this is none")
    held = {}
    for name, value in at.items():
        place = _place(result, name, value)
        held[name] = _words(result[name].to_numpy())[place]
        result = result.isel({name: place})
    result = result.assign_attrs(held=json.dumps(held))
    if variable is None:
        return result
    if variable not in measures(result):
        raise InputError(
            f"the sweep has no variable {shown(variable)}: it has {', '.join(measures(result))}"
        )
    return result.assign_attrs(main=variable)


def held_name(result: xr.Dataset) -> str:
    """What a chosen sweep is held at, as a part of the names of its figures."""
    held = sorted(_noted(result, "held").items())
    plain = [re.sub(r"[^\w.+-]+", "_", str(part)).strip("_") for pair in held for part in pair]
    name = "-".join(plain)
    if len(name) > MOST_LETTERS:
        name = f"{name[:MOST_LETTERS]}-{hashlib.sha256(str(held).encode()).hexdigest()[:8]}"
    return name


def _noted(result: xr.Dataset, attribute: str) -> dict[str, Any]:
    """What a sweep notes by name, as JSON; a file may hold anything in its place."""
    try:
        found = json.loads(result.attrs.get(attribute, "{}"))
    except (TypeError, ValueError, RecursionError):
        return {}
    if isinstance(found, list):
        return dict.fromkeys(map(str, found))
    return found if isinstance(found, dict) else {}


def _place(result: xr.Dataset, name: str, value: Any) -> int:
    """Where along a dimension a value lies: as it was typed for the sweep, or as it is shown."""
    dims = [str(dim) for dim in result.dims if dim in result.coords and dim != "swept_parameter"]
    if name not in dims:
        raise InputError(f"the sweep has no dimension {shown(name)}: it has {', '.join(dims)}")
    known, unit = result[name].to_numpy(), result[name].attrs.get("units")
    words, wanted = _words(known), _plain(value, unit)
    for places in (known, words):
        for i, place in enumerate(places):
            if _same(_plain(place), wanted):
                return i
    raise InputError(
        f"the sweep has no {name} of {shown(value)}: it has {', '.join(words)}"
        + (f" {unit}" if unit else "")
    )


def _plain(given: Any, unit: Any = None) -> Any:
    """What was typed, or stands at a place, as a value that can be compared; of durations, where
    places are in ms, their number."""
    if unit == "ms":
        with suppress(ValueError):
            return round(1e3 * seconds(given), 12)
    if isinstance(given, str):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given.strip()
    if isinstance(given, np.generic | np.ndarray):
        return given.tolist()
    return list(given) if isinstance(given, tuple) else given


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same but for rounding; 1 is 1.0, and true is not 1."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if is_number(one) and is_number(other):
        try:
            return math.isclose(one, other, rel_tol=1e-9)
        except OverflowError:  # a whole number beyond any float
            return bool(one == other)
    return type(one) is type(other) and bool(one == other)


def _words(values: Iterable[Any]) -> list[str]:
    """Values as they are shown: with four digits, or as many as tell them apart."""
    every = list(values)
    for digits in (4, 6, 9, 12, 17):
        words = [_word(value, digits) for value in every]
        if len({*words}) == len(words):
            break
    return words


def _word(value: Any, digits: int) -> str:
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    return f"{value:.{digits}g}" if is_number(value) else str(value)


@dataclass(frozen=True)
class Measured:
    """What is drawn of a sweep."""

    values: xr.DataArray
    """Over its parameters and repeats."""
    name: str
    held: list[str]
    """Where it stays along other dimensions, in words."""

    @property
    def label(self) -> str:
        """The name, and that means are drawn if they are."""
        return self.name + (", mean of repeats" if self.values.sizes["repeat"] > 1 else "")


def measured(result: xr.Dataset) -> Measured:
    """What is drawn of a sweep.

    Of dimensions that the variable has besides, one value is taken: the one that the experiment
    names, else the first.
    """
    values = result[_main(result)]
    known = _noted(result, "held")
    held = [_held(result[name], word) for name, word in known.items() if name in values.coords]
    names, preferred = swept(result), _noted(result, "main_at")
    for dim in [str(dim) for dim in values.dims if dim not in (*names, "repeat")]:
        if dim in values.coords:
            place = _preferred(result, dim, preferred)
            held.append(_held(values[dim], _words(values[dim].to_numpy())[place]))
            values = values.isel({dim: place})
        else:
            held += [f"first {dim.replace('_', ' ')}"] if values.sizes[dim] > 1 else []
            values = values.isel({dim: 0})
    return Measured(
        values.transpose(*names, "repeat").astype(float),
        str(values.name).replace("_", " "),
        held,
    )


def _main(result: xr.Dataset) -> str:
    """The variable that is drawn; an error if it is not there, rather than another one."""
    known, main = measures(result), result.attrs.get("main")
    if not known:
        raise InputError("the sweep holds no variable of numbers")
    if isinstance(main, str) and (main in known or not main):
        return main or known[0]
    if main is None:
        return known[0]
    reasons = {
        "large": "because it has too many values",
        "differing": "because its shape or places differ between runs",
    }
    why = [reason for name, reason in reasons.items() if str(main) in _noted(result, name)]
    raise InputError(
        f"what says most of the experiment, {shown(main)}, is not in the sweep"
        f"{', ' + why[0] if why else ''}: choose with --variable from {listed(known)}"
    )


def _held(place: xr.DataArray, word: Any) -> str:
    unit = place.attrs.get("units")
    return f"{str(place.name).replace('_', ' ')} {word}" + (f" {unit}" if unit else "")


def _preferred(result: xr.Dataset, dim: str, preferred: Mapping[str, Any]) -> int:
    """Where along a dimension the experiment wants to be drawn, if there is such a place."""
    if dim not in preferred:
        return 0
    if preferred[dim] is None:
        return result.sizes[dim] - 1
    try:
        return _place(result, dim, preferred[dim])
    except InputError:
        return 0


def figure(result: xr.Dataset) -> Figure:
    """One parameter as a line, two as a map, three as several maps."""
    names = swept(result)
    if not 1 <= len(names) <= 3:
        raise InputError(
            f"a figure shows one to three parameters, and this sweep has {len(names)} "
            f"({', '.join(names) or 'all are held'}): choose with --at name=value"
        )
    drawn = measured(result)
    with figure_style():
        if len(names) == 1:
            fig, ax = plt.subplots(figsize=(5.4, 3.6))
            plot_line(drawn.values, drawn.name, ax)
            fig.legend(loc="outside lower center", ncols=2)
        else:
            fig = _maps(_mean(drawn.values), drawn.label)
        count = drawn.values.sizes["repeat"]
        lines = [
            f"{result.attrs.get('experiment', 'sweep')}, {count} repeat{'s' * (count > 1)} of each"
        ]
        lines += [", ".join(drawn.held)] if drawn.held else []
        room = int(fig.get_figwidth() / TITLE_LETTER)
        title = "\n".join(textwrap.fill(line, room) for line in lines)
        fig.suptitle(title, fontsize=10, fontweight="bold")
    return fig


def plot_line(values: xr.DataArray, label: str, ax: Axes) -> Axes:
    """Mean over repeats, and between which percentiles they lie, over one parameter."""
    (name, _), places = values.dims, values[values.dims[0]].to_numpy()
    mean, color, count = _mean(values).to_numpy(), palette()[0], values.sizes["repeat"]
    low, high = _percentiles(values.to_numpy())
    said = f"mean of {count} repeats" if count > 1 else "one repeat"
    spread = f"{SPREAD[0]} to {SPREAD[1]} % of repeats"
    if places.dtype.kind in "iuf":
        ax.plot(places, mean, "o-", ms=4, color=color, label=said)
        if count > 1:
            ax.fill_between(places, low, high, color=color, alpha=0.25, lw=0, label=spread)
        if is_logarithmic(places):
            ax.set_xscale("log")
            if len(places) <= 8:
                ax.set_xticks(places, _words(places))
                ax.xaxis.set_minor_locator(NullLocator())
        elif places.dtype.kind in "iu":
            whole_numbers(ax.xaxis)
    else:
        x, width = np.arange(len(places)), _width(ax)
        ax.plot(x, mean, "o", ms=5, color=color, label=said)
        if count > 1:
            ax.vlines(x, low, high, color=color, alpha=0.5, lw=3, label=spread)
        every = math.ceil(len(places) * LEAST_ROOM / width)
        room = every * width / len(places)
        words = _broken(_words(places), int((room - BESIDE) / LETTER))
        ax.set_xticks(x[::every], words[::every])
        ax.set_xlim(-0.5, len(places) - 0.5)
        _slant(ax, words, room)
    ax.set(xlabel=_axis_name(values, str(name)), ylabel=textwrap.fill(label, LINE_LETTERS))
    return ax


def _width(ax: Axes) -> float:
    """Of axes, in inches; before they are laid out, about."""
    return float(ax.get_position().width) * ax.figure.get_figwidth()  # type: ignore[union-attr]


def _broken(words: Iterable[str], letters: int = WORD_LETTERS) -> list[str]:
    """Words on several lines of so many letters, if that is not too few, and cut after a few."""
    wide = min(letters, WORD_LETTERS) if letters >= FEWEST_LETTERS else WORD_LETTERS
    cut = {"max_lines": 3, "placeholder": " …"}
    return ["\n".join(textwrap.wrap(word, wide, **cut) or [word]) for word in words]  # type: ignore[arg-type]


def _longest(words: Iterable[str]) -> float:
    """How much room the longest line takes beside its neighbours, in inches."""
    return LETTER * max(len(line) for word in words for line in word.split("\n")) + BESIDE


def _slant(ax: Axes, words: Iterable[str], room: float) -> None:
    """Turn the names below an axis if each has less room, in inches, than the longest takes."""
    if _longest(words) > room:
        for label in ax.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")


def is_logarithmic(values: FloatArray) -> bool:
    """Whether values are spaced by a factor rather than by a difference."""
    ordered = np.sort(values.astype(float))
    if len(ordered) < 3 or ordered[0] <= 0 or ordered[-1] < WIDE * ordered[0]:
        return False

    def unevenness(of: FloatArray) -> float:
        gaps = np.diff(of)
        return float(gaps.std() / gaps.mean())

    return unevenness(np.log(ordered)) < unevenness(ordered)


def _maps(mean: xr.DataArray, label: str) -> Figure:
    """A map over two parameters, or one for every value of the third, on one colour scale."""
    by_size = sorted(map(str, mean.dims), key=lambda dim: mean.sizes[dim])
    apart = by_size[0] if mean.ndim == 3 else None
    across, up = (str(dim) for dim in mean.dims if dim != apart)
    panels = [""] if apart is None else _words(mean[apart].to_numpy())
    if len(panels) > MOST_MAPS:
        raise InputError(
            f"a figure shows at most {MOST_MAPS} maps, and {apart} has {len(panels)} values: "
            f"choose one with --at {apart}=value"
        )
    names = {dim: _broken(_words(mean[dim].to_numpy())) for dim in (across, up)}
    fig, axes, size = _grid(len(panels), names[across], names[up])
    columns, scale = axes.shape[1], _scale(mean.to_numpy())
    for i, ax in enumerate(axes.flat):
        if i >= len(panels):
            ax.set_visible(False)
            continue
        one = mean if apart is None else mean.isel({apart: i})
        draw_map(ax, one.transpose(up, across).to_numpy(), names[up], names[across], scale)
        _slant(ax, names[across], WIDEST)
        if apart is not None:
            title = f"{_axis_name(mean, apart)} {panels[i]}"
            ax.set_title(_fitted(title, size[0], TITLE_LETTER), fontsize=9)
        if i % columns == 0:
            ax.set_ylabel(_fitted(_axis_name(mean, up), size[1]))
        if i >= len(panels) - columns:
            ax.set_xlabel(_fitted(_axis_name(mean, across), size[0]))
            ax.tick_params(labelbottom=True)
    shades = ScalarMappable(Normalize(*scale), plt.get_cmap("viridis"))
    fig.colorbar(shades, ax=axes, label=_fitted(label, axes.shape[0] * size[1]))
    return fig


def _grid(
    count: int, across: Sequence[str], up: Sequence[str]
) -> tuple[Figure, NDArray[Any], tuple[float, float]]:
    """Axes for maps with names below and beside them, and how wide and high each is, about."""
    columns = min(count, MAPS_IN_ROW)
    rows = math.ceil(count / columns)
    # Columns have room for their names; longer ones are turned, and need room below.
    width = min(max(_longest(across), 0.5), WIDEST) * min(len(across), 12) + 0.9
    below = 0.7 * _longest(across) if _longest(across) > WIDEST else 0.0
    height = max(0.32 * min(len(up), 12) + 0.6, 1.5 if rows == 1 else 0.0)
    fig, axes = plt.subplots(
        rows,
        columns,
        figsize=(
            max(columns * width + 1.5 + _longest(up), 4.2),
            rows * (height + 0.7) + 0.6 + below,
        ),
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    return fig, axes, (width, height + 0.3)


def _fitted(text: str, room: float, letter: float = 1.1 * LETTER) -> str:
    """A text on as many lines as it takes where each has some room, in inches."""
    return textwrap.fill(text, max(int(room / letter), 8))


def _scale(values: FloatArray) -> tuple[float, float]:
    """The range of what is known; a little around a value that is the same everywhere, because
    there a map and a bar of colours would each choose a range of its own."""
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    largest = max(abs(low), abs(high))
    if high - low > 1e-9 * largest:  # more than rounding
        return low, high
    aside = 0.05 * largest or 0.5
    return low - aside, high + aside


def _axis_name(values: xr.DataArray, name: str) -> str:
    unit = values[name].attrs.get("units") or UNITS.get(name)
    return name.replace("_", " ") + (f" ({unit})" if unit else "")


def _mean(values: xr.DataArray) -> xr.DataArray:
    """Over repeats; unknown only where all of them are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of repeats that are all unknown
        mean: xr.DataArray = values.mean("repeat", skipna=True)
    return mean


def _percentiles(values: FloatArray) -> FloatArray:
    """Of repeats along the last axis."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found: FloatArray = np.nanpercentile(values, SPREAD, axis=-1)
    return found
