"""The report's page, as a visitor's browser shows it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from analysis import page as report
from analysis.page import ReportError, write_report
from circuits import CircuitParameters, ManifoldCircuit, ReferenceCircuit, SphereLift, results
from circuits.base import CircuitState
from circuits.errors import CircuitError
from simulations.experiments import two_moons
from tests.analysis.browser import REQUIRE, Browser, find_browser

HOSTILE = '</script><script>window.broken = 1</script><img src="x" onerror="window.broken = 2">'
HOSTILE += "{{script}} <b>&amp; \u2028'\""
CLAIMS = [
    {
        "experiment": "two-moons",
        "claim": "two labels suffice",
        "paper": "stable, correct values",
        "figure": "accuracy 0.999",
        "holds": True,
    },
    {"experiment": "tiling-arcs", "claim": "tiles tile", "holds": False, "measured": 0.123456},
    {"experiment": HOSTILE, "claim": HOSTILE, "paper": HOSTILE, "figure": HOSTILE, "holds": None},
]
KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "PageUp": 33, "PageDown": 34, "Home": 36, "End": 35}
CONTROLS = ("moment", "previous", "play", "next", "step", "settle", "map", "check-all")


def draw_figure(file, **metadata):
    file.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12, 3))
    figure.subplots().plot([0, 1])
    figure.savefig(file, metadata=metadata)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A result of the Brian2 circuit, claims, figures, and a file that is no result."""
    directory = tmp_path_factory.mktemp("results")
    stream = two_moons.make_stream(two_moons.Settings(n_points=300, label_after=60), 0)
    circuit = ManifoldCircuit(stream.parameters, stream.lift, "cpp_standalone")
    run = circuit.run(stream.points, stream.labels, snapshot_every=1)
    run = two_moons.annotate(run, stream, 0).assign_attrs(seconds=1.5)
    results.save(run, directory / "two-moons" / "seed-0.nc")
    bare = run.drop_vars(["W_snapshots", "b_snapshots", "w_snapshots", "snapshot_presentation"])
    for seed in (1, 2, 10):
        results.save(bare.assign_attrs(seed=seed), directory / "two-moons" / f"seed-{seed}.nc")
    odd = xr.Dataset({"value": ("place", [1.0])}, attrs={"experiment": HOSTILE, "engine": HOSTILE})
    results.save(odd, directory / "odd.nc")
    (directory / "broken.nc").write_bytes(b"not a result")
    (directory / "claims.json").write_text(json.dumps(CLAIMS), encoding="utf-8")
    draw_figure(directory / "figures" / "fig2.png", Description=f"Two moons. {HOSTILE}")
    draw_figure(directory / "figures" / "plain.png")
    write_report(directory)
    return directory


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def page(browser, folder):
    page = browser.open(folder / "report.html")
    yield page
    page.close()


@pytest.fixture
def open_page(browser):
    """Opens reports of folders of the test's own, and closes them."""
    pages = []

    def open_page(directory, **options):
        pages.append(browser.open(write_report(directory), **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def load(folder):
    return results.load(folder / "two-moons" / "seed-0.nc")


def shown(page):
    """What the visitor sees: the text, and every picture."""
    return page.evaluate(
        "[document.querySelector('#status').textContent,"
        "...[...document.querySelectorAll('canvas')].map((c) => c.id + c.toDataURL())]"
    )


def moment(page):
    return page.evaluate("explorer.view.moment")


def answer(page):
    """y, as the text says it."""
    number = re.search(r"answers y = (\S+?\.\d\d)", page.text("#status"))[1]
    return float(number.replace("−", "-"))


def difference(page, selector="#check"):
    """The number on display."""
    (number,) = re.findall(r"h differs by at most (\S+?)[,\s]", page.text(selector))
    return float(number.replace("−", "-"))


# The page in a browser


def test_no_script_error_and_no_request_leaves_the_page(page, folder):
    for control in ("#next", "#settle", "#play", "#check-all"):
        page.click(control)
    page.wait_until("document.querySelector('#check-all-value').textContent !== ''")
    assert page.complaints == []
    document = (folder / "report.html").as_uri()
    assert page.requests[0] == document
    assert all(url == document or url.startswith("data:") for url in page.requests)
    assert sum(url.startswith("data:image/png") for url in page.requests) == 2


def test_complaints_and_requests_would_be_noticed(browser, tmp_path):
    file = tmp_path / "bad.html"
    file.write_text('<img src="http://127.0.0.1:9/x.png"><script>no_such_function()</script>')
    page = browser.open(file)
    assert any("no_such_function" in json.dumps(entry) for entry in page.complaints)
    assert "http://127.0.0.1:9/x.png" in page.requests
    page.close()


def test_click_on_a_point_shows_that_presentation(page, folder):
    run = load(folder)
    before = shown(page)
    for target in (3, 250):
        page.click("#map", tuple(page.evaluate(f"explorer.place({target})")))
        assert moment(page) == target
        t = target + 1  # the first presentation has no weights before it
        assert f"Presentation {t}:" in page.text("#status")
        assert page.text("#moment-value").startswith(f"{t} of")
        point = re.search(r"\((.+), (.+)\)", page.text("#status")).groups()
        point = [float(value.replace("−", "-")) for value in point]
        assert point == pytest.approx(run["points"].values[t], abs=0.006)  # two digits are shown
        assert answer(page) == pytest.approx(run["y"].values[t, 0], abs=0.006)
    after = shown(page)
    unchanged = [a[:6] for a, b in zip(before, after, strict=True) if a == b]
    assert unchanged == []


def test_slider_and_arrow_keys_move_through_time(page):
    start = moment(page)
    page.evaluate("document.querySelector('#moment').focus()")
    page.press("ArrowRight", KEYS["ArrowRight"])
    assert moment(page) == start + 1
    page.evaluate("document.querySelector('#map').focus()")
    expected = start + 1
    for key, change in (("ArrowRight", 1), ("ArrowLeft", -1), ("PageDown", 10), ("PageUp", -10)):
        before = shown(page)
        page.press(key, KEYS[key])
        expected += change
        assert moment(page) == expected
        assert shown(page)[0] != before[0]
    for key, end in (("Home", 0), ("ArrowLeft", 0), ("End", 298), ("ArrowRight", 298)):
        page.press(key, KEYS[key])
        assert moment(page) == end
    # The far left of the slider, by mouse.
    page.click("#moment", (3, 8))
    assert moment(page) == 0
    assert page.evaluate("document.querySelector('#moment').getAttribute('aria-valuetext')") == (
        "presentation 1"
    )


def test_buttons_and_space_play_and_pause(page):
    start = moment(page)
    page.click("#next")
    page.click("#next")
    page.click("#previous")
    assert moment(page) == start + 1
    page.click("#play")
    assert page.text("#play") == "Pause"
    page.wait_until(f"explorer.view.moment > {start + 3}")
    page.evaluate("document.querySelector('#map').focus()")
    page.press(" ", 32)
    assert page.text("#play") == "Play"
    assert page.evaluate("document.querySelector('#play').getAttribute('aria-pressed')") == "false"
    stopped = moment(page)
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert moment(page) == stopped


def test_steps_show_how_it_settles(page):
    settled = shown(page)
    page.evaluate("document.querySelector('#step').focus()")
    page.press("Home", KEYS["Home"])
    assert page.text("#step-value") == "0 of 200"
    assert "at step 0" in page.text("#status")
    at_rest = shown(page)
    names = [picture.split("data:")[0] for picture in settled]
    changed = {n for n, a, b in zip(names, settled, at_rest, strict=True) if a != b}
    assert {"map", "h-bars", "v-map", "h-trace", "u-trace", "y-trace"} <= changed
    assert "w-bars" not in changed  # w is fixed through a presentation
    page.click("#settle")
    page.wait_until(
        "explorer.view.step === 200 && document.querySelector('#settle').textContent"
        " === 'Watch it settle'"
    )
    assert shown(page) == settled


def test_page_agrees_with_the_record(page):
    for target in (0, 100, 298):
        page.evaluate(f"explorer.show({target})")
        assert page.text("#check").startswith("✓ agrees")
        assert difference(page) < 1e-9
    page.click("#check-all")
    page.wait_until("document.querySelector('#check-all-value').textContent !== ''")
    assert page.text("#check-all-value").startswith("Over 299 presentations")
    assert "none by more than" in page.text("#check-all-value")
    assert difference(page, "#check-all-value") < 1e-6


def test_page_says_when_it_does_not_agree(open_page, folder, tmp_path):
    run = load(folder)
    run["h"][150] += 1e-3
    results.save(run, tmp_path / "two-moons.nc")
    page = open_page(tmp_path)
    page.evaluate("explorer.show(149)")
    assert page.text("#check").startswith("✗ differs")
    assert difference(page) == pytest.approx(1e-3, rel=0.05)
    page.click("#check-all")
    page.wait_until("document.querySelector('#check-all-value').textContent !== ''")
    assert "(presentation 150); 1 by more than" in page.text("#check-all-value")


def trajectory(page, number):
    """What the page computes for a moment: arrays h, u, V, y over the steps."""
    states = page.evaluate(
        f"explorer.settle({number}).states.map((s) => ({{h: [...s.h], u: [...s.u], V: [...s.V],"
        " y: [...s.y]}))"
    )
    return {name: np.array([state[name] for state in states]) for name in "huVy"}


def reference(run, t, before):
    """The reference's traces of presentation t from the recorded weights before it."""
    parameters = CircuitParameters(**json.loads(run.attrs["parameters"]))
    circuit = ReferenceCircuit(parameters, SphereLift(**json.loads(run.attrs["lift"])))
    weights = {name: run[f"{name}_snapshots"].values[before] for name in "Wbw"}
    h, u = run["h"].values[t - 1], run["u"].values[t - 1]
    circuit.state = CircuitState(**weights, h=h, u=u, V=np.outer(u, h), learned=t, shown=t)
    points, labels = run["points"].values[[t]], run["labels"].values[[t]]
    return circuit.run(points, labels, record=tuple("huVy"))


def assert_same_trajectory(page, number, expected):
    found = trajectory(page, number)
    for name in "huVy":
        trace = expected[f"{name}_trace"].values[0]
        assert found[name][1:].shape == (len(trace), trace[0].size)
        assert np.abs(found[name][1:] - trace.reshape(len(trace), -1)).max() <= 1e-9


def test_trajectories_are_those_of_the_reference(page, folder):
    run = load(folder)
    labelled = int(np.flatnonzero(run["labels"].values[:, 0])[0])
    for t in (1, labelled, 180, 299):
        assert_same_trajectory(page, t - 1, reference(run, t, t - 1))


@pytest.mark.parametrize("reset", [True, False])
def test_any_circuit_can_be_explored(open_page, tmp_path, reset):
    """Three coordinates, several readouts, tanh, few snapshots, state carried over or not."""
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (60, 3))
    labels = np.where(rng.random((60, 3)) < 0.3, np.sign(points), 0)
    parameters = CircuitParameters(
        n_tiles=5, n_interneurons=2, n_readouts=3, tile_radius=1.5, mu=(0.5, 2.0, 8.0),
        readout="tanh", steps_per_presentation=400, reset=reset,
    )  # fmt: skip
    run = ReferenceCircuit(parameters, SphereLift.around(points)).run(
        points, labels, snapshot_every=7
    )
    results.save(run, tmp_path / "cube.nc")
    page = open_page(tmp_path)
    assert page.evaluate("explorer.moments") == list(range(7, 60, 7))
    page.evaluate("explorer.show(5)")
    assert_same_trajectory(page, 5, reference(run, 42, 5))
    y = run["y"].values[42]
    assert answer(page) == pytest.approx(y[0], abs=0.006)
    before = shown(page)
    page.evaluate("document.querySelector('#readout').focus()")
    page.press("ArrowDown", 40)
    assert answer(page) == pytest.approx(y[1], abs=0.006)
    assert abs(y[0] - y[1]) > 0.02
    assert shown(page) != before
    assert page.text("#tile-order") == "from left to right"
    # The map shows the first and the third coordinate, upwards being up.
    places = np.array(page.evaluate("explorer.moments.map((_, i) => explorer.place(i))"))
    for axis, coordinate, sign in ((0, 0, 1), (1, 2, -1)):
        rows = run["points"].values[7::7, coordinate]
        assert np.corrcoef(places[:, axis], sign * rows)[0, 1] == pytest.approx(1)
    assert ("carries its state over" in page.text("#explorer")) is not reset
    assert page.complaints == []


def test_long_streams_are_thinned_out(open_page, folder, tmp_path, monkeypatch):
    results.save(load(folder), tmp_path / "two-moons.nc")
    monkeypatch.setattr(report, "EXPLORER_BYTES", 100_000)
    page = open_page(tmp_path)
    moments = page.evaluate("explorer.moments")
    steps = set(np.diff(moments))
    assert moments[0] == 1
    assert len(steps) == 1
    assert steps != {1}
    assert (tmp_path / "report.html").stat().st_size < 300_000
    page.evaluate("explorer.show(5)")
    assert f"Presentation {moments[5]}:" in page.text("#status")
    assert difference(page) < 1e-9


def test_explorer_reads_several_seeds_in_one_file(open_page, folder, tmp_path):
    run = load(folder)
    merged = xr.concat([run, run], "repeat").assign(seed=("repeat", [3, 4]))
    merged.attrs.pop("seed", None)
    results.save(merged, tmp_path / "two-moons.nc")
    page = open_page(tmp_path)
    assert difference(page) < 1e-9
    assert "3-4" in page.text("#provenance table")
    assert "600 presentations" in page.text("header")


def overflow(page):
    return page.evaluate(
        "[document.documentElement.scrollWidth - document.documentElement.clientWidth,"
        " ...[...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll table') &&"
        " e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))]"
    )


@pytest.mark.parametrize("width", [360, 600, 768, 1280])
def test_nothing_overflows_sideways(browser, folder, width):
    page = browser.open(folder / "report.html", width=width, height=740)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate("innerWidth") == width
    assert overflow(page) == [0]
    page.evaluate("document.querySelector('#claims p').textContent = 'x'.repeat(999)")
    assert overflow(page) != [0]  # it would be noticed
    page.close()


def test_everything_can_be_reached_by_keyboard_and_has_a_name(page):
    reached: list[str] = []
    while "check-all" not in reached and len(reached) < 99:
        page.press("Tab", 9)
        reached.append(page.evaluate("document.activeElement.id"))
    assert [name for name in reached if name in CONTROLS] == list(CONTROLS)
    tree = page.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "slider", "image", "img", "combobox", "link", "table", "region"}
    nodes = [n for n in tree if not n["ignored"] and n["role"]["value"] in roles]
    assert {n["role"]["value"] for n in nodes} >= {"button", "slider", "image", "table", "link"}
    assert [n for n in nodes if n["role"]["value"] != "table" and not n["name"]["value"]] == []


def test_dark_screens_get_a_dark_page(browser, folder):
    colours = []
    for dark in (False, True):
        page = browser.open(folder / "report.html", dark=dark)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.close()
    light, dark = (sum(map(int, re.findall(r"\d+", colour))) for colour in colours)
    assert light > 600
    assert dark < 120


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


def test_sections_hold_what_the_folder_holds(page, folder):
    claims = page.text("#claims")
    assert "Of 3 claims, 1 hold, 1 do not hold, 1 are not decided." in claims
    assert "✓ holds" in claims
    assert "✗ does not hold" in claims
    assert "0.1235" in claims
    images = page.evaluate(
        "[...document.querySelectorAll('#figures img')].map((i) => [i.alt, i.naturalWidth])"
    )
    assert [alt for alt, _ in images] == ["Two moons", "plain"]
    assert all(width > 0 for _, width in images)
    assert "Plasticity" in page.text("#model")
    code = page.evaluate("[...document.querySelectorAll('#model code')].map((c) => c.textContent)")
    assert "excitatory" in code
    provenance = page.text("#provenance")
    run = load(folder)
    assert run.attrs["code"] in provenance
    assert "0-2, 10" in provenance
    assert f"numpy {np.__version__}" in provenance
    assert "tau_h" in provenance
    assert "Not readable as results: broken.nc." in provenance
    times = page.evaluate(
        "[...document.querySelectorAll('#times tbody tr')].map((r) => [...r.children].map((c) =>"
        " c.textContent))"
    )
    expected = ["two-moons", "cpp_standalone", "4", "1,200", "1.5 s", "6 s", "5 ms"]
    assert expected in times


def test_page_of_a_bare_result(open_page, folder, tmp_path):
    """No claims, no figures, no snapshots, nothing about the circuit."""
    run = load(folder)[["y"]]
    run.attrs = {}
    results.save(run, tmp_path / "mine.nc")
    page = open_page(tmp_path)
    assert page.complaints == []
    assert "snapshot_every=1" in page.text("#explorer")
    assert "no claims" in page.text("#claims")
    assert "no figures" in page.text("#figures")
    assert "says which circuit" in page.text("#model")
    assert "mine" in page.text("#times")


# The file


def test_file_is_whole_or_not_there(folder, tmp_path, monkeypatch):
    out = tmp_path / "deep" / "page.html"
    assert write_report(folder, out) == out
    content = out.read_bytes()
    assert content == (folder / "report.html").read_bytes()
    assert len(content) < 8e6
    out.write_text("old")

    def fail(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(ReportError, match=r"cannot write .*page\.html: No space left on device"):
        write_report(folder, out)
    assert out.read_text() == "old"
    assert list(out.parent.iterdir()) == [out]


def test_file_names_nothing_outside_itself(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "{{about}}" not in text
    for block in re.findall(r"<script[^>]*>.*?</script>|<style>.*?</style>", text, re.DOTALL):
        assert "http" not in block
        text = text.replace(block, "")
    links = re.findall(r'<[^>]*\b(?:src|href)="([^"]*)"', text)
    assert links
    assert all(link.startswith(("data:", "#")) for link in links)
    assert str(folder.parent) not in text


@pytest.mark.parametrize(
    ("claims", "reason"),
    [("{", "cannot be read as JSON"), ("{}", "must hold a list"), ("[1]", "must hold a list")],
)
def test_claims_that_are_none_are_named(folder, tmp_path, claims, reason):
    results.save(load(folder)[["y"]], tmp_path / "mine.nc")
    (tmp_path / "claims.json").write_text(claims)
    with pytest.raises(ReportError, match=reason):
        write_report(tmp_path)


def test_folder_without_results_is_refused(tmp_path):
    with pytest.raises(CircuitError, match="there is no folder"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(CircuitError, match="there is no result"):
        write_report(tmp_path)
    (tmp_path / "broken.nc").write_bytes(b"")
    with pytest.raises(CircuitError, match=r"there is no result .*broken\.nc could not be read"):
        write_report(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["broken.nc"]


def test_missing_browser_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(REQUIRE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no browser found"):
        find_browser()
    monkeypatch.setenv(REQUIRE, "1")
    with pytest.raises(pytest.fail.Exception, match="no browser found"):
        find_browser()
