"""The benchmark's numbers as a figure."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from analysis.style import figure_style

NAMES = {
    "fused": "fused kernel (limit)",
    "cpp_standalone": "Brian2 standalone",
    "exact": "closed form",
    "reference": "NumPy reference",
    "cython": "Brian2 Cython",
    "numpy": "Brian2 NumPy",
    "annarchy": "ANNarchy",
}
AXES = {"m": "tiles m", "k": "interneurons k", "T": "presentations T"}


def figure(results: dict[str, Any]) -> Figure:
    """Microseconds per step by engine and size; time against m, k and T where measured."""
    scaling = results.get("scaling", {})
    with figure_style():
        fig = plt.figure(figsize=(10, 6.4 if scaling else 3.4))
        names = "".join(scaling) if scaling else ""
        layout: Any = [["bars"] * max(len(names), 1)] + ([list(names)] if names else [])
        axes = fig.subplot_mosaic(layout)
        _bars(results, axes["bars"])
        for name, found in scaling.items():
            _scaling(name, found, axes[name])
    return fig


def _bars(results: dict[str, Any], ax: Any) -> None:
    sizes = results["sizes"]
    engines = [name for name in NAMES if name in next(iter(sizes.values()))["us_per_step"]]
    width = 0.8 / len(engines)
    for place, engine in enumerate(engines):
        x = np.arange(len(sizes)) + (place - (len(engines) - 1) / 2) * width
        cost = [found["us_per_step"].get(engine, np.nan) for found in sizes.values()]
        bars = ax.bar(x, cost, width * 0.92, label=NAMES[engine])
        ax.bar_label(
            bars,
            [_short(value) for value in cost],
            fontsize=6,
            padding=1,
        )
    ax.set_xticks(range(len(sizes)), [f"{size.replace('x', '×')}" for size in sizes])
    ax.set(yscale="log", xlabel="tiles × interneurons", ylabel="µs per step")
    ax.set_title("Cost of a step (median, log scale)")
    ax.margins(y=0.15)
    ax.legend(ncols=3, loc="upper left", bbox_to_anchor=(0, -0.17))


def _short(value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:#.2g}".rstrip(".") if value < 100 else f"{value:.0f}"


def _scaling(name: str, found: dict[str, Any], ax: Any) -> None:
    slopes = found["slope of the last three"]
    for engine, values in found["seconds"].items():
        if values:
            label = f"{NAMES[engine]}: slope {slopes[engine]:.2f}"
            ax.loglog(found["sizes"], values, "o-", ms=4, label=label)
    ax.set(xlabel=AXES[name], ylabel="seconds", title=f"Time against {name} ({found['fixed']})")
    ax.set_xticks(found["sizes"], [f"{size}" for size in found["sizes"]])
    ax.set_xticks([], minor=True)
    ax.legend(loc="lower right")
    ax.margins(y=0.25)
