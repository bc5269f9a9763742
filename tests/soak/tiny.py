"""The command line with experiments of the least size: ``python -m tests.soak.tiny``."""

from __future__ import annotations

from simulations.cli import main
from simulations.experiments import EXPERIMENTS, get_experiment
from tests.simulations.test_experiments import TINY

if __name__ == "__main__":
    for name in EXPERIMENTS:
        type(get_experiment(name)).quick = TINY[name]
    main()
