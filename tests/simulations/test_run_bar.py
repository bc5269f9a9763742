"""The time that is left is told from runs that follow each other, not from how they begin."""

from __future__ import annotations

import re
import sys
import time

import pytest

from simulations import run_bar


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_first_of_every_process_is_counted_and_not_timed(clock, capsys):
    """Two processes begin for 60 s; from then on a run takes 2 s, and 7 are left: 14 s."""
    with run_bar.counting("toy", "sweep ", 5, 15, 2, None) as bar:
        assert "starting workers" in capsys.readouterr().err
        for now, pace, left in ((55, "?", "?"), (60, "?", "?"), (62, "2.00s/", "00:14")):
            clock[0] = now
            bar.set_postfix_str("", refresh=False)
            bar.add()
            shown = str(bar)
            assert re.search(rf"sweep toy: .*<{re.escape(left)}, +{re.escape(pace)}", shown), shown
            assert "starting" not in shown
        assert "8/15" in shown


def test_one_process_after_its_first_run(clock):
    with run_bar.counting("toy", "", 0, 4, 1, None) as bar:
        for clock[0] in (30, 31):
            bar.add()
        assert "<00:02," in str(bar)


@pytest.mark.parametrize(("finished", "waits"), [(0, True), (1, False)])
def test_a_cluster_is_waited_for(capsys, finished, waits):
    with run_bar.counting("toy", "", finished, 1, 1, "tcp://there"):
        pass
    assert ("waiting for the cluster" in capsys.readouterr().err) == waits


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
@pytest.mark.parametrize("shown", [True, False])
def test_an_interrupt_says_what_is_kept(capsys, monkeypatch, end, shown):
    if not shown:
        monkeypatch.setattr(sys, "stderr", None)

    def ended():
        with run_bar.counting("toy", "sweep ", 2, 9, 1, None) as bar:
            bar.add()
            raise end

    with pytest.raises(end):
        ended()
    said = "".join(capsys.readouterr())
    assert ("toy: 3 of 9 runs are kept" in said) == (end is not ZeroDivisionError)
