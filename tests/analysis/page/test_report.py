"""The report's page as a whole, and its file."""

from __future__ import annotations

import json
import re

import numpy as np
import xarray as xr
from markupsafe import escape
from PIL import Image

from analysis.page import write_report
from circuits.storage import results
from circuits.storage.files import FileError
from tests.analysis.page.conftest import HOSTILE
from tests.refusing import refused


def test_no_script_error_and_no_request_leaves_the_page(page, folder):
    for control in ("#next", "#settle", "#play", "#check-all"):
        page.click(control)
    page.wait_until("document.querySelector('#check-all-value').textContent !== ''")
    assert page.complaints == []
    document = (folder / "report.html").as_uri()
    assert page.requests[0] == document
    assert all(url == document or url.startswith("data:") for url in page.requests)
    assert sum(url.startswith("data:image/png") for url in page.requests) == 2


def test_complaints_and_requests_would_be_noticed(open_file, tmp_path):
    file = tmp_path / "bad.html"
    file.write_text('<img src="http://127.0.0.1:9/x.png"><script>no_such_function()</script>')
    page = open_file(file)
    assert any("no_such_function" in json.dumps(entry) for entry in page.complaints)
    assert "http://127.0.0.1:9/x.png" in page.requests


LISTEN = """(() => {
  window.said = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { width } = this.measureText(text), { id, clientWidth } = this.canvas;
    const left = x - ({ right: 1, center: .5 }[this.textAlign] ?? 0) * width;
    said.push([id, text, left, left + width - clientWidth, y, clientWidth]);
    write.call(this, text, x, y);
  };
})()"""
"""Take down what is written: left end, how far it sticks out, height, width of the picture."""


def overflow(page):
    return page.evaluate(
        "[document.documentElement.scrollWidth - document.documentElement.clientWidth,"
        " ...[...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll table') &&"
        " e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))]"
    )


def brightness(page):
    """Red, green and blue of the background together."""
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", background)))


def assert_links_stay_inside(text, directory):
    """A page names no other file, and not the folder it was made in."""
    links = re.findall(r'<[^>]*\b(?:src|href)="([^"]*)"', text)
    assert links
    assert all(link.startswith(("data:", "#")) for link in links)
    assert str(directory) not in text


def assert_named(page, roles, wanted):
    """What has one of the roles is read out with a name; there is something of each one wanted."""
    tree = page.send("Accessibility.getFullAXTree")["nodes"]
    nodes = [node for node in tree if not node["ignored"] and node["role"]["value"] in roles]
    assert {node["role"]["value"] for node in nodes} >= wanted
    assert [node for node in nodes if not node["name"]["value"]] == []


def test_small_and_dark_screens(page):
    assert brightness(page) > 600
    page.prefer(dark=True)
    assert brightness(page) < 120
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for width in (360, 600, 768, 1280):
        page.resize(width, 740)
        assert page.evaluate("innerWidth") == width
        assert overflow(page) == [0]
    page.evaluate("document.querySelector('#claims p').textContent = 'x'.repeat(999)")
    assert overflow(page) != [0]  # it would be noticed


def test_hostile_text_is_shown_and_not_run(page):
    assert page.evaluate("window.broken") is None
    cells = page.evaluate(
        "[...document.querySelectorAll('#claims tr:last-child td')].map((c) => c.textContent)"
    )
    assert cells[:5] == ["– not decided", *[HOSTILE] * 4]
    assert HOSTILE in page.text("#figures figcaption")
    assert HOSTILE in page.text("#provenance")
    assert page.evaluate("document.querySelectorAll('img').length") == 2
    # Should something slip through all the same, the page's policy stops it.
    page.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.broken = 3';"
        " document.body.append(s); })()"
    )
    assert page.evaluate("window.broken") is None
    assert "Content Security Policy" in json.dumps(page.complaints)


def test_sections_hold_what_the_folder_holds(page, run):
    claims = page.text("#claims")
    assert "Of 3 claims, 1 holds, 1 does not hold, 1 is not decided." in claims
    assert "0.1235" in claims
    verdicts = (
        "[...document.querySelectorAll('#claims tbody tr')].map((r) => r.textContent.trim()[0])"
    )
    assert sorted(page.evaluate(verdicts)) == sorted("✓✗–")
    images = page.evaluate(
        "[...document.querySelectorAll('#figures img')].map((i) => [i.alt, i.naturalWidth])"
    )
    assert [alt for alt, _ in images] == ["Two moons", "plain"]
    assert all(width > 0 for _, width in images)
    code = page.evaluate("[...document.querySelectorAll('#model code')].map((c) => c.textContent)")
    assert "excitatory" in code
    provenance = page.text("#provenance")
    assert run.attrs["code"] in provenance
    assert "0 to 2, 10" in provenance
    assert f"numpy {np.__version__}" in provenance
    assert "broken.nc" in provenance
    times = page.evaluate(
        "[...document.querySelectorAll('#times tbody tr')].map((r) => [...r.children].map((c) =>"
        " c.textContent))"
    )
    expected = ["two-moons", "cpp_standalone", "4", "1,200", "1.5 s", "6 s", "5 ms"]
    assert expected in times
    assert page.evaluate("document.querySelector('#spikes')") is None  # there are none
    links = page.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.hash)")
    assert links
    assert "#spikes" not in links


def test_page_of_a_bare_result(open_page, run, tmp_path):
    """No claims, no snapshots, nothing about the circuit; figures in the paper's order."""
    results.save(run[["y"]].drop_attrs(), tmp_path / "mine.nc")
    page = open_page(tmp_path)
    assert "no figures" in page.text("#figures")
    (tmp_path / "figures").mkdir()
    for name in ("zoo", "diffusion", "fig4", "a10", "fig1", "a9", "fig3", "fig2"):
        Image.new("RGB", (4, 3)).save(tmp_path / "figures" / f"{name}.png")
    (tmp_path / "figures" / "b.png").write_bytes(b"no image")
    page = open_page(tmp_path)
    shown = page.evaluate(
        "[...document.querySelectorAll('#figures > figure strong, #figures > p')]"
        ".map((e) => e.textContent.split(' ')[0])"
    )
    expected = ["fig1", "fig2", "fig3", "fig4", "diffusion", "a9", "a10", "b.png", "zoo"]
    assert shown == expected
    assert page.complaints == []
    assert "snapshot_every=1" in page.text("#explorer")
    assert "no claims" in page.text("#claims")
    assert "mine" in page.text("#times")
    assert page.text("h1") == "Mine"


FOCUS = (
    "(document.activeElement.id ||"
    " document.activeElement.closest('figure')?.querySelector('strong').textContent)"
)


def expect(page, is_open, focus):
    """Wait until a figure is enlarged, or none, and the keyboard is where it should be."""
    state = f"[document.querySelector('#enlarged').open, {FOCUS}]"
    page.wait_until(
        f"JSON.stringify({state}) === '{json.dumps([is_open, focus], separators=(',', ':'))}'"
    )


def test_figures_enlarge_by_mouse_and_keyboard(page):
    image = "document.querySelector('#enlarged img')"
    page.click("#figures .enlarge img")
    expect(page, True, "enlarged-room")
    assert page.text("#enlarged-title") == "fig2"
    # At full size, whatever the width of the page: one pixel of the file is one of the screen.
    assert page.evaluate(f"{image}.clientWidth === {image}.naturalWidth")
    assert page.evaluate(f"{image}.alt") == "Two moons"
    page.press("Escape")
    expect(page, False, "fig2")
    for key in ("Enter", " "):
        page.press(key)
        expect(page, True, "enlarged-room")
        page.click("#enlarged img")
        expect(page, False, "fig2")
    page.press("Enter")
    expect(page, True, "enlarged-room")
    reached = set()
    for _ in range(4):
        page.press("Tab")
        reached.add(page.evaluate(FOCUS))
    assert "shrink" in reached
    assert reached <= {"shrink", "enlarged-room", None}  # nothing behind the dialog
    page.click("#shrink")
    expect(page, False, "fig2")
    page.wait_until("document.querySelectorAll('img').length === 2")
    assert page.complaints == []


# The file


def test_file_is_whole_or_not_there(folder, tmp_path, monkeypatch):
    out = tmp_path / "deep" / "page.html"
    assert write_report(folder, out) == out
    content = out.read_bytes()
    assert content == (folder / "report.html").read_bytes()
    assert len(content) < 8e6
    assert content.startswith(b"<!DOCTYPE html>")
    out.write_text("<!doctype html>old")
    bare = tmp_path / "bare"
    results.save(xr.Dataset({"value": ("place", [1.0])}), bare / "one.nc")

    def fail(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    refused(lambda: write_report(bare, out), r"page\.html.* No space left", FileError)
    assert out.read_text() == "<!doctype html>old"
    assert list(out.parent.iterdir()) == [out]


def test_file_names_nothing_outside_itself(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"\{\{ \w+(\.\w+)? \}\}", text.replace(str(escape(HOSTILE)), ""))
    for block in re.findall(r"<script[^>]*>.*?</script>|<style>.*?</style>", text, re.DOTALL):
        assert "http" not in block
        text = text.replace(block, "")
    assert_links_stay_inside(text, folder.parent)


def test_folders_that_cannot_be_reported_are_refused(run, tmp_path):
    refused(lambda: write_report(tmp_path / "nowhere"), "nowhere")
    refused(lambda: write_report(tmp_path), re.escape(str(tmp_path)))
    (tmp_path / "broken.nc").write_bytes(b"")
    refused(lambda: write_report(tmp_path), r"broken\.nc", FileError)
    assert [file.name for file in tmp_path.iterdir()] == ["broken.nc"]
    results.save(run[["y"]], tmp_path / "mine.nc")
    for claims in ("{", "{}", "[1]"):
        (tmp_path / "claims.json").write_text(claims)
        refused(lambda: write_report(tmp_path), r"claims\.json", FileError)
