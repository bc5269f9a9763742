"""The command line with two small experiments: ``python -m tests.soak.tiny``."""

from __future__ import annotations

from simulations.cli import main
from simulations.experiments import EXPERIMENTS, get_experiment
from tests.simulations.small import TINY

KEPT = ("two-moons", "square-balance")

if __name__ == "__main__":
    for name in set(EXPERIMENTS).difference(KEPT):
        del EXPERIMENTS[name]
    for name in KEPT:
        type(get_experiment(name)).quick = TINY[name] | {"n_points": 150}
    main()
