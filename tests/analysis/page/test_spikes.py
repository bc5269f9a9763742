"""Spikes, as a visitor's browser shows them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import xarray as xr

from analysis.page import spikes, write_report
from circuits import results
from tests.analysis.page.test_report import overflow
from tests.analysis.spikes import made, with_spikes

GROUPS = ("excitatory", "inhibitory", "readout")


@pytest.fixture(scope="module")
def spiking_folder(spiking, tmp_path_factory):
    """A folder with the result of spiking cells alone."""
    directory = tmp_path_factory.mktemp("page")
    results.save(spiking, directory / "spiking.nc")
    write_report(directory)
    return directory


@pytest.fixture
def spiking_page(browser, spiking_folder):
    page = browser.open(spiking_folder / "report.html")
    yield page
    page.close()


def ticks(page, group):
    """The drawn spikes of a group: (step, row from the bottom) each, sorted."""
    path = page.evaluate(f"document.querySelector('#spikes-{group} .ticks').getAttribute('d')")
    box = page.evaluate(f"document.querySelector('#spikes-{group}').getAttribute('viewBox')")
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
            label = f"document.querySelector('#spikes-{group}').getAttribute('aria-label')"
            assert page.evaluate(label).startswith(f"{len(own)} {group} spike")
    assert page.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in page.requests)


def test_ticks_stand_in_the_rows_of_their_cells(open_page, tmp_path):
    """Tile 0 is the first along the manifold, then 2, then 1; the fourth is idle."""
    known = {
        "excitatory": [(0, 102, 1), (2, 102, 4), (1, 102, 10), (1, 101, 3)],
        "inhibitory": [(1, 102, 5)],
    }
    results.save(made(first=100, spikes=known), tmp_path / "mine.nc")
    page = open_page(tmp_path)
    page.evaluate("spikes.show(2)")
    assert ticks(page, "excitatory") == [(1.0, 0.0), (4.0, 1.0), (10.0, 2.0)]
    assert ticks(page, "inhibitory") == [(5.0, 1.0)]
    assert ticks(page, "readout") == []
    assert page.text("#spikes-moment-value") == "102 of 103"
    assert "3 excitatory spikes, 1 inhibitory spike, 0 readout spikes." in page.text(
        "#spikes-status"
    )
    text = page.text("#spikes")
    assert "3 tiles, ordered along the manifold" in text
    assert "1 readout of 2 cells" in text
    window = page.evaluate(
        "(() => { const r = document.querySelector('#spikes-readout .window');"
        " return ['x', 'width'].map((name) => Number(r.getAttribute(name))); })()"
    )
    assert window == [4, 6]
    assert page.complaints == []


def test_a_tick_is_seen_where_it_belongs(open_page, tmp_path):
    """In the middle of its step and row, and nowhere else: at the pixels of the screen."""
    results.save(made(spikes={"excitatory": [(2, 0, 4)]}), tmp_path / "mine.nc")
    page = open_page(tmp_path)
    page.evaluate("spikes.show(0)")
    places = page.evaluate(
        "(() => { const e = document.querySelector('#spikes-excitatory');"
        " const [tick, box] = [e.querySelector('.ticks'), e].map((i) => i.getBoundingClientRect());"
        " return [(tick.left + tick.right) / 2 - box.left, (tick.top + tick.bottom) / 2 - box.top,"
        " box.width, box.height]; })()"
    )
    assert places[0] / places[2] == pytest.approx(3.5 / 10, abs=0.01)
    assert places[1] / places[3] == pytest.approx(0.5, abs=0.01)  # the second of three rows


def test_slider_keys_and_buttons_choose_a_presentation(spiking_page):
    page = spiking_page
    assert page.evaluate("spikes.view.moment") == 9
    page.evaluate("document.querySelector('#spikes-moment').focus()")
    for key, code, expected in (("ArrowLeft", 37, 8), ("Home", 36, 0), ("ArrowRight", 39, 1)):
        page.press(key, code)
        assert page.evaluate("spikes.view.moment") == expected
        assert page.text("#spikes-moment-value") == f"{expected} of 9"
    for button, expected in (("next", 2), ("previous", 1), ("previous", 0), ("previous", 0)):
        page.click(f"#spikes-{button}")
        assert page.evaluate("spikes.view.moment") == expected
    said = page.evaluate("document.querySelector('#spikes-moment').getAttribute('aria-valuetext')")
    assert said == "presentation 0"
    reached = []
    page.evaluate("document.querySelector('#spikes-moment').focus()")
    for _ in range(2):
        page.press("Tab", 9)
        reached.append(page.evaluate("document.activeElement.id"))
    assert reached == ["spikes-previous", "spikes-next"]


def test_spikes_fit_small_screens_and_dark_ones(browser, spiking_folder):
    strokes = []
    for dark in (False, True):
        page = browser.open(spiking_folder / "report.html", width=360, height=740, dark=dark)
        assert overflow(page) == [0]
        strokes.append(
            page.evaluate(
                "['.window', ...['excitatory', 'inhibitory', 'readout'].map((g) => `.ticks.${g}`)]"
                ".map((s) => getComputedStyle(document.querySelector(`.raster ${s}`)))"
                ".map((s) => s.stroke + s.fill)"
            )
        )
        size = "document.querySelector('#spikes-excitatory').getBoundingClientRect()"
        assert page.evaluate(f"{size}.height") > 150
        page.close()
    light, dark = strokes
    assert len(set(light)) == len(set(dark)) == 4
    assert not set(light) & set(dark)


def test_spiking_cells_are_not_settled_as_rates(spiking_page, spiking):
    """Snapshots are there, but the explorer's steps are those of rates."""
    page = spiking_page
    assert "W_snapshots" in spiking
    assert "No result of a rate circuit" in page.text("#explorer")
    assert page.evaluate("document.querySelector('#explorer-data')") is None
    assert (
        page.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.hash)")[2] == "#spikes"
    )
    assert "spiking.neuron" in page.text("#provenance")
    assert "excitatory: spiking units" in page.text("#model")


def test_a_page_without_spikes_has_no_place_for_them(page):
    assert page.evaluate("document.querySelector('#spikes')") is None
    assert "#spikes" not in page.evaluate(
        "[...document.querySelectorAll('nav a')].map((a) => a.hash)"
    )


def test_of_many_spikes_some_presentations_are_shown(open_page, tmp_path, monkeypatch):
    known = [(0, t, step) for t in range(4) for step in range(1, 11)]
    results.save(made(spikes={"excitatory": known}), tmp_path / "mine.nc")
    monkeypatch.setattr(spikes, "MOST_SPIKES", 20)
    page = open_page(tmp_path)
    assert page.evaluate("spikes.moments") == [0, 2]
    assert "2 presentations of 4" in page.text("#spikes")
    assert len(ticks(page, "excitatory")) == 10


def test_the_first_of_several_seeds_is_shown(open_page, tmp_path):
    one = made(spikes={"excitatory": [(0, 3, 2), (0, 3, 4)]})
    other = with_spikes(one, "excitatory", [(1, 3, 1), (1, 3, 2), (1, 3, 3)])
    both = [run.assign_coords(excitatory_spike=range(n)) for run, n in ((one, 2), (other, 3))]
    merged = xr.concat(both, "repeat", data_vars="all", join="outer")
    merged = merged.assign_coords(seed=("repeat", [0, 1]))
    results.save(merged, tmp_path / "mine.nc")
    page = open_page(tmp_path)
    assert [step for step, _ in ticks(page, "excitatory")] == [2.0, 4.0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda run: with_spikes(run, "excitatory", [(3, 0, 1)]), "never in use"),
        (lambda run: with_spikes(run, "inhibitory", [(9, 0, 1)]), "not those of its cells"),
        (lambda run: run.drop_vars("readout_spike_step"), "needs readout_spike_step"),
        (lambda run: run.assign_attrs(spiking="{"), "does not say its spiking"),
        (lambda run: run.assign_attrs(spiking=json.dumps({"cells": 10**9})), "cells=1000000000"),
        (lambda run: run.drop_vars("labels"), "labels"),
        (lambda run: run.assign(points=run["points"].astype(str)), "must be real numbers"),
    ],
)
def test_spikes_that_do_not_fit_are_left_out_and_said(change, reason, tmp_path, capsys):
    run = made(spikes={"excitatory": [(0, 0, 1)]})
    results.save(change(run), tmp_path / "mine.nc")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert 'id="spikes-data"' not in page
    said = capsys.readouterr().err
    assert "mine.nc has spikes that cannot be shown" in said
    assert reason in said


def test_texts_say_what_was_shown():
    run = made()
    run["labels"][1, 0], run["y"][1, 0] = -1, 0.4567
    assert spikes._text(run, 0) == "point (+0.50), no label; the readout answers y = 0"
    expected = "point (+0.17), labelled −1; the readout answers y = +0.46"
    assert spikes._text(run, 1) == expected
    assert np.isfinite(run["y"]).all()
