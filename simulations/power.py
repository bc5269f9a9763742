"""How often the registered repeats would give a claim its verdict: ``python -m simulations.power``.

Made from a full `reproduce` on other seeds than those that are reported (the pilot). Its repeats
are drawn anew with replacement, as many as are registered, and the claims checked on what was
drawn: the power is the share of draws that give the verdict which the whole pilot gives. Where the
pilot of only some experiments was run again, that of the others is kept.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from analysis.selection import SELECTION_SEED, in_words
from circuits.errors import CircuitError, InputError
from circuits.storage import files, results
from simulations.experiments import EXPERIMENTS, get_experiment
from simulations.experiments.claim import Power

PILOT_SEED = 5000
"""The first seed of the pilot; what is reported begins at 0."""

DRAWS = 200


def resampled(merged: xr.Dataset, repeats: int, rng: np.random.Generator) -> xr.Dataset:
    """Reported repeats drawn with replacement; those for choosing values stay."""
    chosen = merged["seed"].to_numpy() >= SELECTION_SEED
    drawn = rng.choice(np.flatnonzero(~chosen), repeats)
    return merged.isel(repeat=np.concatenate([drawn, np.flatnonzero(chosen)]))


def power_of(name: str, merged: xr.Dataset, draws: int = DRAWS) -> dict[str, Any]:
    """Verdict and power of every claim of an experiment, from the pilot's merged repeats."""
    experiment = get_experiment(name)
    seeds = [int(seed) for seed in merged["seed"].to_numpy() if seed < SELECTION_SEED]
    if min(seeds) < PILOT_SEED:
        raise InputError(
            f"the pilot of {name} has the seed {min(seeds)}, which is among those reported: use "
            f"'manifold-circuit reproduce --seed {PILOT_SEED} --out results/pilot'"
        )
    whole = {claim.claim: claim.verdict for claim in experiment.claims(merged)}
    rng = np.random.default_rng(0)
    counts: dict[str, Counter[str]] = {claim: Counter() for claim in whole}
    for _ in tqdm(range(draws), desc=name, unit="draw", disable=sys.stderr is None):
        for claim in experiment.claims(resampled(merged, experiment.repeats, rng)):
            counts[claim.claim][claim.verdict] += 1
    config = json.loads(merged.attrs["config"])
    return {
        "settings": config["settings"],
        "parameters": config["parameters"],
        "repeats": experiment.repeats,
        "seeds": in_words(seeds),
        "draws": draws,
        "claims": {
            claim: {"verdict": verdict, "power": counts[claim][verdict] / draws}
            for claim, verdict in whole.items()
        },
    }


def in_sentences(found: dict[str, Any]) -> Power:
    """Power by experiment and claim, for `long_form`."""
    return {
        name: {
            claim: (
                f"{values['power']:.2f}: this share of {pilot['draws']} draws of "
                f"{pilot['repeats']} repeats from seeds {pilot['seeds']} gives "
                f"“{values['verdict']}”, as all of these do"
            )
            for claim, values in pilot["claims"].items()
        }
        for name, pilot in found.items()
    }


def main(pilot: Path) -> None:
    """Write ``power.json`` beside the pilot's results."""
    path = pilot / "power.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = {}
    for name in EXPERIMENTS:
        if name in known and not (pilot / f"{name}.nc").exists():
            found[name] = known[name]
            continue
        with results.opened(pilot / f"{name}.nc") as merged:
            found[name] = power_of(name, merged.load())
        for claim, values in found[name]["claims"].items():
            print(f"{values['power']:.3f} {values['verdict']}: {name}: {claim}")
    text = json.dumps(found, indent=1, ensure_ascii=False)
    print(f"wrote {files.write(path, text)}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/pilot"))
    except CircuitError as error:
        sys.exit(f"{error}")
