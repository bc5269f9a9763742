"""All experiments in one go: results, figures, and one table of claims.

``python -m simulations.reproduction FOLDER`` checks the claims on the results that are in a folder
already, as after a change of their words or bounds, and writes the table anew. Where only some
experiments were run again, the table keeps the claims of those whose results are not there.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from circuits.errors import CircuitError
from circuits.storage import files, results
from simulations import sweep
from simulations.experiments import EXPERIMENTS, get_experiment
from simulations.experiments.claim import Claim, load_claims, save_claims, tally


def run_all(
    engine: str, seed: int, jobs: int, scheduler: str | None, out: Path, quick: bool
) -> None:
    """Run every experiment at its registered size, or at its quick one."""
    files.require_folder(out / "figures")
    claims: list[Claim] = []
    times: dict[str, float] = {}
    for name in EXPERIMENTS:
        chosen = get_experiment(name)
        config = chosen.config(engine, {}, quick)
        count = chosen.quick_repeats if quick else chosen.repeats
        started = time.perf_counter()
        _, found = sweep.run_experiment(config, chosen.seeds(count, seed), out, jobs, scheduler)
        times[name] = time.perf_counter() - started
        claims += found
        print("\n".join(claim.line() for claim in found))
    few = ": few repeats decide little, without --quick there are more" if quick else ""
    print(f"{tally(claims)}{few}")
    # Drawing imports matplotlib; the results are safe by now.
    from analysis.figures import save_all

    started = time.perf_counter()
    written = [*save_claims(claims, out), *save_all(out)]
    times["figures"] = time.perf_counter() - started
    print("\n".join(f"wrote {path}" for path in written))
    print(f"'manifold-circuit report {out}' makes a page of it")
    for name, seconds in (times | {"all": sum(times.values())}).items():
        print(f"{name:<24} {seconds:7.1f} s")


def claims_again(out: Path) -> list[Claim]:
    """The claims of every experiment on the merged results in a folder; of one that has none there
    those in the folder's table."""
    table = out / "claims.json"
    known = load_claims(table) if table.exists() else []
    found: list[Claim] = []
    for name in EXPERIMENTS:
        kept = [claim for claim in known if claim.experiment == name]
        if kept and not (out / f"{name}.nc").exists():
            found += kept
            continue
        with results.opened(out / f"{name}.nc") as merged:
            found += sweep.claims_of(name, merged.load())
    return found


def main(out: Path) -> None:
    """Check the claims again, print and write them."""
    claims = claims_again(out)
    print("\n".join(claim.line() for claim in claims))
    print(tally(claims))
    print("\n".join(f"wrote {path}" for path in save_claims(claims, out)))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/reproduce"))
    except CircuitError as error:
        sys.exit(f"{error}")
