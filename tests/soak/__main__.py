"""All trials at full size: prints the table and writes it to results/soak."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from circuits.storage import files
from tests.soak.row import Row, table
from tests.soak.trials import TRIALS


def main() -> None:
    """Make every trial, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"trials to make: {', '.join(TRIALS)}")
    parser.add_argument("--share", type=float, default=1.0, help="of the full counts")
    parser.add_argument("--out", type=Path, default=Path("results/soak"))
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(TRIALS):
        parser.error(f"there is no trial {', '.join(sorted(unknown))}: use {', '.join(TRIALS)}")
    path, rows = arguments.out / "soak.json", {}
    if arguments.names and path.exists():  # keep the rows of other trials
        earlier = json.loads(path.read_text(encoding="utf-8"))
        rows = {name: Row(**row) for name, row in earlier.items()}
    for name in arguments.names or TRIALS:
        trial = TRIALS[name]
        count = max(1, round(arguments.share * trial.count))
        print(f"{name} ({count}) ...", end=" ", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="manifold-circuit-soak-") as folder:
            started = time.monotonic()
            row = trial.make(count, Path(folder))
            row.seconds = time.monotonic() - started
        print(f"{row.seconds:.0f} s, lost {row.lost}, silent {row.silent}", file=sys.stderr)
        print("\n".join(row.details), end="\n" if row.details else "", file=sys.stderr)
        rows[name] = row
        files.write(path, json.dumps({key: asdict(row) for key, row in rows.items()}, indent=1))
    ordered = [rows[name] for name in TRIALS if name in rows]
    print(table(ordered))
    files.write(arguments.out / "soak.md", table(ordered))
    sys.exit(any(row.lost or row.silent for row in ordered))


if __name__ == "__main__":
    main()
