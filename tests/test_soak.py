"""A few of every trial that ``make soak`` makes many of."""

from __future__ import annotations

import pytest

from tests.soak.row import Row, table
from tests.soak.trials import TRIALS

AGREEMENT = {"stream": 1e-9, "circuits": 1e-9, "cache": 1e-9, "crowd": 1e-9, "workers": 1e-10}
"""Rounding, where two ways of computing are compared; all other trials repeat the same one."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, trial in TRIALS.items() if trial.few])
@pytest.mark.usefixtures("quick_cython")
@pytest.mark.filterwarnings("ignore")  # of circuits that do not settle, of clusters that end
def test_nothing_is_lost_and_nothing_silent(name, tmp_path):
    if name == "workers":
        pytest.importorskip("distributed")
    row = TRIALS[name].make(TRIALS[name].few, tmp_path)
    assert row.details == []
    assert row.lost == row.silent == 0
    assert row.tried >= TRIALS[name].few
    assert row.disagreement <= AGREEMENT.get(name, 0.0)


def test_the_table():
    rows = [Row("kills", 40), Row("streams", 200_000, disagreement=3.2e-13, note="peak 1 MiB")]
    rows[0].lose("all of it")
    lines = table(rows).splitlines()
    assert lines[2] == "| kills | 40 | 1 | 0 | 0 |"
    assert lines[3] == "| streams; peak 1 MiB | 200,000 | 0 | 0 | 3.2e-13 |"
