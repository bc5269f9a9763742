"""Spikes, as a visitor's browser shows them."""

from __future__ import annotations

import json
import re

import pytest
import xarray as xr

from analysis.page import spikes, write_report
from circuits.storage import results
from tests.analysis.page.test_report import overflow
from tests.analysis.spikes import made, with_spikes

GROUPS = ("excitatory", "inhibitory", "readout")


@pytest.fixture(scope="module")
def spiking_report(spiking, tmp_path_factory):
    """The report of the result of spiking cells alone."""
    directory = tmp_path_factory.mktemp("page")
    results.save(spiking, directory / "spiking.nc")
    return write_report(directory)


@pytest.fixture
def spiking_page(open_file, spiking_report):
    return open_file(spiking_report)


def ticks(page, group):
    """The drawn spikes of a group: (step, row from the bottom) each, sorted."""
    path = page.attribute(f"#spikes-{group} .ticks", "d")
    box = page.attribute(f"#spikes-{group}", "viewBox")
    rows = int(box.split()[3])
    found = []
    for x, y, tall in re.findall(r"M(\S+) (\S+?)v([\d.]+)", path or ""):
        found.append((float(x) + 0.5, round(rows - float(y) - float(tall) / 2 - 0.5, 6)))
    assert len(found) == (path or "").count("M")
    return sorted(found)


def test_every_spike_of_the_chosen_presentation_is_a_tick(spiking_page, spiking):
    page = spiking_page
    assert page.evaluate("spikes.moments") == list(range(10))
    for t in (9, 0, 5):
        if t != page.evaluate("spikes.view.moment"):
            page.evaluate(f"spikes.show({t})")
        said = page.text("#spikes-status")
        assert said.startswith(f"Presentation {t}: point (")
        for group in GROUPS:
            steps = spiking[f"{group}_spike_step"].values
            own = steps[spiking[f"{group}_spike_presentation"].values == t]
            drawn = ticks(page, group)
            assert [step for step, _ in drawn] == sorted(own.tolist())
            assert f"{len(own)} {group} spike" in said
            label = page.attribute(f"#spikes-{group}", "aria-label")
            assert label.startswith(f"{len(own)} {group} spike")
    assert page.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in page.requests)
    links = page.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.hash)")
    assert links[2] == "#spikes"
    assert "spiking.neuron" in page.text("#provenance")
    assert "excitatory: spiking units" in page.text("#model")
    # Snapshots are there, but the explorer's steps are those of rates.
    assert "W_snapshots" in spiking
    assert page.evaluate("document.querySelector('#explorer-data')") is None


def test_ticks_stand_in_the_rows_of_their_cells(open_page, tmp_path):
    """Tile 0 is the first along the manifold, then 2, then 1; the fourth is idle."""
    known = {
        "excitatory": [(0, 102, 1), (2, 102, 4), (1, 102, 10), (1, 101, 3)],
        "inhibitory": [(1, 102, 5)],
    }
    run = made(first=100, spikes=known)
    run["labels"][2, 0], run["y"][2, 0] = -1, 0.4567
    results.save(run, tmp_path / "mine.nc")
    page = open_page(tmp_path)
    page.evaluate("spikes.show(2)")
    assert ticks(page, "excitatory") == [(1.0, 0.0), (4.0, 1.0), (10.0, 2.0)]
    assert ticks(page, "inhibitory") == [(5.0, 1.0)]
    assert ticks(page, "readout") == []
    assert page.text("#spikes-moment-value") == "102 of 103"
    said = page.text("#spikes-status")
    assert "3 excitatory spikes, 1 inhibitory spike, 0 readout spikes." in said
    assert "(−0.17), labelled −1" in said
    assert "y = +0.46" in said
    text = page.text("#spikes")
    assert "3 tiles, ordered along the manifold" in text
    assert "1 readout of 2 cells" in text
    window = page.evaluate(
        "(() => { const r = document.querySelector('#spikes-readout .window');"
        " return ['x', 'width'].map((name) => Number(r.getAttribute(name))); })()"
    )
    assert window == [4, 6]
    # On the screen a tick is in the middle of its step and row: step 5, the upper of two rows.
    x, y, width, height = page.evaluate(
        "(() => { const e = document.querySelector('#spikes-inhibitory');"
        " const [tick, box] = [e.querySelector('.ticks'), e].map((i) => i.getBoundingClientRect());"
        " return [(tick.left + tick.right) / 2 - box.left, (tick.top + tick.bottom) / 2 - box.top,"
        " box.width, box.height]; })()"
    )
    assert x / width == pytest.approx(4.5 / 10, abs=0.01)
    assert y / height == pytest.approx(1 / 4, abs=0.01)
    assert page.complaints == []


def test_slider_keys_and_buttons_choose_a_presentation(spiking_page):
    page = spiking_page
    assert page.evaluate("spikes.view.moment") == 9
    page.focus("#spikes-moment")
    for key, expected in (("ArrowLeft", 8), ("Home", 0), ("ArrowRight", 1)):
        page.press(key)
        assert page.evaluate("spikes.view.moment") == expected
        assert page.text("#spikes-moment-value") == f"{expected} of 9"
    for button, expected in (("next", 2), ("previous", 1), ("previous", 0), ("previous", 0)):
        page.click(f"#spikes-{button}")
        assert page.evaluate("spikes.view.moment") == expected
    assert page.attribute("#spikes-moment", "aria-valuetext") == "presentation 0"
    reached = []
    page.focus("#spikes-moment")
    for _ in range(2):
        page.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
    assert reached == ["spikes-previous", "spikes-next"]


def test_spikes_fit_small_screens_and_dark_ones(spiking_page):
    page, strokes = spiking_page, []
    page.resize(360, 740)
    assert overflow(page) == [0]
    assert page.box("#spikes-excitatory")[3] > 150
    for dark in (False, True):
        page.prefer(dark)
        strokes += page.evaluate(
            "['.window', ...['excitatory', 'inhibitory', 'readout'].map((g) => `.ticks.${g}`)]"
            ".map((s) => getComputedStyle(document.querySelector(`.raster ${s}`)))"
            ".map((s) => s.stroke + s.fill)"
        )
    assert len(set(strokes)) == 8  # all can be told apart, and dark ones are others


def test_some_presentations_of_the_first_of_several_seeds_are_shown(
    open_page, tmp_path, monkeypatch
):
    """As many as there is room for."""
    one = made(spikes={"excitatory": [(0, t, step) for t in range(4) for step in range(1, 11)]})
    other = with_spikes(one, "excitatory", [(1, 2, 1), (1, 2, 2), (1, 2, 3)])
    both = [run.assign_coords(excitatory_spike=range(n)) for run, n in ((one, 40), (other, 3))]
    merged = xr.concat(both, "repeat", data_vars="all", join="outer")
    results.save(merged.assign_coords(seed=("repeat", [0, 1])), tmp_path / "mine.nc")
    monkeypatch.setattr(spikes, "MOST_SPIKES", 20)
    page = open_page(tmp_path)
    assert page.evaluate("spikes.moments") == [0, 2]
    assert "2 presentations of 4" in page.text("#spikes")
    assert [step for step, _ in ticks(page, "excitatory")] == list(range(1, 11))


MISFITS = [
    (lambda run: with_spikes(run, "excitatory", [(3, 0, 1)]), "never in use"),
    (lambda run: with_spikes(run, "inhibitory", [(9, 0, 1)]), "not those of its cells"),
    (lambda run: run.drop_vars("readout_spike_step"), "readout_spike_step"),
    (lambda run: run.assign_attrs(spiking="{"), "spiking"),
    (lambda run: run.assign_attrs(spiking=json.dumps({"cells": 10**9})), "cells=1000000000"),
    (lambda run: run.drop_vars("labels"), "labels"),
    (lambda run: run.assign(points=run["points"].astype(str)), "real numbers"),
]


def test_spikes_that_do_not_fit_are_left_out_and_said(tmp_path, capsys):
    run = made(spikes={"excitatory": [(0, 0, 1)]})
    for number, (change, _) in enumerate(MISFITS):
        results.save(change(run), tmp_path / f"misfit-{number}.nc")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert 'id="spikes-data"' not in page
    said = capsys.readouterr().err
    for number, (_, reason) in enumerate(MISFITS):
        _, found, reasons = said.partition(f"misfit-{number}.nc has spikes that cannot be shown")
        assert found
        assert reason in reasons.partition("misfit-")[0]
