"""Captions: what a figure shows, and how the results it is made from were made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from analysis import selection
from analysis.kinds import FIGURES


def caption_of(name: str, results: Sequence[xr.Dataset]) -> str:
    """What a figure shows, with parameters, seeds, repeats, engine and code revision."""
    kind = FIGURES[name]
    seeds = selection.seeds_of(results[0])
    of_one = f"{kind.of_first}: seed {seeds[0] if seeds else 'unknown'}."
    shown = of_one if kind.of_first else "All reported repeats are shown."
    parts = [f"{kind.title}. {kind.panels} {shown}"]
    parts += [_provenance(result) for result in results]
    if name == "fig3":
        parts.append(_choices(*results))
    return " ".join(parts)


def _provenance(result: xr.Dataset) -> str:
    """How a result was made."""
    attrs = result.attrs
    config = json.loads(attrs.get("config", "{}"))
    parameters = config.get("parameters") or json.loads(attrs.get("parameters", "{}"))
    settings = config.get("settings") or json.loads(attrs.get("settings", "{}"))
    # A grid of values replaces the parameter of that name.
    values = {key: value for key, value in parameters.items() if f"{key}_grid" not in settings}
    seeds = selection.seeds_of(result)
    chosen = [seed for seed in seeds if seed >= selection.SELECTION_SEED]
    reported = [seed for seed in seeds if seed not in chosen] or chosen
    number = len(reported) or 1
    plural = "s" * (number != 1)
    repeats = f"{number} repeat{plural} (seed{plural} {selection.in_words(reported)})"
    if chosen and reported != chosen:
        repeats += f" and {len(chosen)} for choosing (seeds {selection.in_words(chosen)})"
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


def _choices(*results: xr.Dataset) -> str:
    """The hyperparameters that were chosen, board by board, and on what."""
    from analysis.figures import boards  # it draws; captions alone need not

    words = []
    for result, methods in zip(results, (boards.SUPERVISION, boards.STREAM), strict=True):
        merged = selection.with_repeats(result)
        kept = (merged["seed"] >= selection.SELECTION_SEED).to_numpy()
        own = "" if kept.any() and not kept.all() else " (none were kept: on those reported)"
        for name, (grid, *_) in methods.items():
            if grid is None:
                continue
            values = selection.chosen_values(merged, f"{name}_error", grid)
            by_board = [
                "/".join(_value(value) for value in np.atleast_1d(row.to_numpy()).tolist())
                for row in values.transpose("board", ...)
            ]
            words.append(f"{name} {grid}{own} {', '.join(by_board)}")
    return (
        "Each method is shown at the value with the least mean error on the repeats for choosing, "
        f"by board (and number of labels): {'; '.join(words)}."
    )
