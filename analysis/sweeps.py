"""A sweep over parameters: lines with their spread, a map, or several maps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis.heatmap import draw_map
from analysis.holdings import damage, lacking
from analysis.style import figure_style, palette
from circuits.errors import InputError, shown
from circuits.lift import FloatArray

SPREAD = (5, 95)
"""Percentiles of the repeats between which a band is drawn."""

MOST_MAPS, MAPS_IN_ROW = 16, 4

WIDE = 10
"""Values that are spaced by a factor span at least this one to be drawn on a logarithmic axis."""

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
    for name, value in at.items():
        result = result.isel({name: _place(result, name, value)})
    if variable is None:
        return result
    if variable not in measures(result):
        raise InputError(
            f"the sweep has no variable {shown(variable)}: it has {', '.join(measures(result))}"
        )
    return result.assign_attrs(main=variable)


def _place(result: xr.Dataset, name: str, value: Any) -> int:
    """Where along a dimension a value lies."""
    dims = [str(dim) for dim in result.dims if dim in result.coords and dim != "swept_parameter"]
    if name not in dims:
        raise InputError(f"the sweep has no dimension {shown(name)}: it has {', '.join(dims)}")
    known = result[name].to_numpy()
    if known.dtype.kind in "iuf" and isinstance(value, int | float):
        found = np.isclose(known.astype(float), float(value), rtol=1e-9, atol=0)
    else:
        found = np.array([word == str(value) for word in _words(known)])
    if not found.any():
        raise InputError(
            f"the sweep has no {name} of {shown(value)}: it has {', '.join(_words(known))}"
        )
    return int(found.argmax())


def _words(values: Iterable[Any]) -> list[str]:
    return [value if isinstance(value, str) else f"{value:.4g}" for value in values]


def measured(result: xr.Dataset) -> tuple[xr.DataArray, str]:
    """What is drawn of a sweep, over its parameters and repeats, and what to call it.

    Of dimensions that the variable has besides, the first value is taken.
    """
    known = measures(result)
    if not known:
        raise InputError("the sweep holds no variable of numbers")
    main = result.attrs.get("main")
    values = result[main if main in known else known[0]]
    name = str(values.name)
    own = [dim for dim in values.dims if dim not in (*swept(result), "repeat")]
    values = values.isel(dict.fromkeys(own, 0))
    at = [
        f"{dim} {_words([place.item()])[0]}"
        for dim, place in values.coords.items()
        if not place.dims
    ]
    label = name.replace("_", " ") + (f" ({', '.join(at)})" if at else "")
    return values.transpose(*swept(result), "repeat").astype(float), label


def figure(result: xr.Dataset) -> Figure:
    """One parameter as a line, two as a map, three as several maps."""
    names = swept(result)
    if not 1 <= len(names) <= 3:
        raise InputError(
            f"a figure shows one to three parameters, and this sweep has {len(names)} "
            f"({', '.join(names) or 'all are held'}): choose with --at name=value"
        )
    values, label = measured(result)
    with figure_style():
        if len(names) == 1:
            fig, ax = plt.subplots(figsize=(5.4, 3.6))
            plot_line(values, label, ax)
            fig.legend(loc="outside lower center", ncols=2)
        else:
            fig = _maps(_mean(values), label)
        count = values.sizes["repeat"]
        title = (
            f"{result.attrs.get('experiment', 'sweep')}, {count} repeat{'s' * (count > 1)} of each"
        )
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
    else:
        x = np.arange(len(places))
        ax.plot(x, mean, "o", ms=5, color=color, label=said)
        if count > 1:
            ax.vlines(x, low, high, color=color, alpha=0.5, lw=3, label=spread)
        ax.set_xticks(x, _words(places))
        ax.set_xlim(-0.5, len(places) - 0.5)
    ax.set(xlabel=_axis_name(values, str(name)), ylabel=label)
    return ax


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
    columns = min(len(panels), MAPS_IN_ROW)
    rows = math.ceil(len(panels) / columns)
    width = 1.6 + 0.5 * min(mean.sizes[across], 12)
    height = 1.3 + 0.32 * min(mean.sizes[up], 12)
    fig, axes = plt.subplots(
        rows,
        columns,
        figsize=(max(columns * width + 1, 4.2), rows * height + 0.6),
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    known = mean.to_numpy()[np.isfinite(mean.to_numpy())]
    scale = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    for i, ax in enumerate(axes.flat):
        if i >= len(panels):
            ax.set_visible(False)
            continue
        one = mean if apart is None else mean.isel({apart: i})
        draw_map(
            ax,
            one.transpose(up, across).to_numpy(),
            _words(mean[up].to_numpy()),
            _words(mean[across].to_numpy()),
            scale,
        )
        if apart is not None:
            ax.set_title(f"{_axis_name(mean, apart)} {panels[i]}", fontsize=9)
        if i % columns == 0:
            ax.set_ylabel(_axis_name(mean, up))
        if i >= len(panels) - columns:
            ax.set_xlabel(_axis_name(mean, across))
            ax.tick_params(labelbottom=True)
    shades = ScalarMappable(Normalize(*scale), plt.get_cmap("viridis"))
    fig.colorbar(shades, ax=axes, label=f"{label}, mean of repeats")
    return fig


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
