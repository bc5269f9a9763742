"""The explorer, as a visitor's browser shows it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import xarray as xr

from analysis.page import explorer
from circuits import CircuitParameters, ReferenceCircuit, SphereLift
from circuits.state import CircuitState
from circuits.storage import results
from tests.analysis.drawing import CONSTANT
from tests.analysis.page.test_report import LISTEN, assert_named

# Small circuits that cover only a part of the data.
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")

CONTROLS = ("moment", "previous", "play", "next", "step", "settle", "map", "check-all")


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


def test_click_on_a_point_shows_that_presentation(page, run):
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


def test_slider_keys_and_buttons_move_through_time(page):
    start = moment(page)
    page.focus("#moment")
    page.press("ArrowRight")
    assert moment(page) == start + 1
    page.focus("#map")
    expected = start + 1
    for key, change in (("ArrowRight", 1), ("ArrowLeft", -1), ("PageDown", 10), ("PageUp", -10)):
        before = shown(page)
        page.press(key)
        expected += change
        assert moment(page) == expected
        assert shown(page)[0] != before[0]
    for key, end in (("Home", 0), ("ArrowLeft", 0), ("End", 298), ("ArrowRight", 298)):
        page.press(key)
        assert moment(page) == end
    # The far left of the slider, by mouse.
    page.click("#moment", (3, 8))
    assert moment(page) == 0
    assert page.attribute("#moment", "aria-valuetext").endswith(" 1")
    for button in ("next", "next", "previous"):
        page.click(f"#{button}")
    assert moment(page) == 1
    page.click("#play")
    assert page.text("#play") == "Pause"
    page.wait_until("explorer.view.moment > 3")
    page.focus("#map")
    page.press(" ")
    assert page.text("#play") == "Play"
    assert page.attribute("#play", "aria-pressed") == "false"
    stopped = moment(page)
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert moment(page) == stopped


def test_steps_show_how_it_settles(page):
    settled = shown(page)
    page.focus("#step")
    page.press("Home")
    assert page.text("#step-value") == "0 of 80"
    assert "at step 0" in page.text("#status")
    at_rest = shown(page)
    pairs = zip(settled, at_rest, strict=True)
    changed = {a.split("data:")[0] for a, b in pairs if a != b}
    assert {"map", "h-bars", "v-map", "h-trace", "u-trace", "y-trace"} <= changed
    assert "w-bars" not in changed  # w is fixed through a presentation
    # The last steps are enough to see it move: all of them take three seconds.
    page.press("End")
    for _ in range(15):
        page.press("ArrowLeft")
    assert page.evaluate("explorer.view.step") == 65
    assert shown(page) != settled
    page.click("#settle")
    page.wait_until(
        "explorer.view.step === 80 && document.querySelector('#settle').textContent"
        " === 'Watch it settle'"
    )
    assert shown(page) == settled


def check_all(page):
    page.click("#check-all")
    page.wait_until("document.querySelector('#check-all-value').textContent !== ''")
    return page.text("#check-all-value")


def test_page_agrees_with_the_record_or_says_where_it_does_not(page, open_page, run, tmp_path):
    assert page.text("#check").startswith("✓")
    assert difference(page) < 1e-9
    assert "299 presentations" in check_all(page)
    assert "none by more than" in page.text("#check-all-value")
    assert difference(page, "#check-all-value") < 1e-6
    changed = run.copy(deep=True)
    changed["h"][150] += 1e-3
    results.save(changed, tmp_path / "two-moons.nc")
    page = open_page(tmp_path)
    page.evaluate("explorer.show(149)")
    assert page.text("#check").startswith("✗")
    assert difference(page) == pytest.approx(1e-3, rel=0.05)
    assert "(presentation 150); 1 by more than" in check_all(page)


def trajectory(page, number):
    """What the page computes for a moment: arrays h, u, V, y over the steps."""
    states = page.evaluate(
        f"explorer.settle({number}).states.map((s) => ({{h: [...s.h], u: [...s.u], V: [...s.V],"
        " y: [...s.y]}))"
    )
    return {name: np.array([state[name] for state in states]) for name in "huVy"}


def reference(run, t, before):
    """The reference's traces of presentation t from the recorded weights before it.

    It recruits by itself what the presentation recruited.
    """
    parameters = CircuitParameters(**json.loads(run.attrs["parameters"]))
    circuit = ReferenceCircuit(parameters, SphereLift(**json.loads(run.attrs["lift"])))
    weights = {name: run[f"{name}_snapshots"].values[before] for name in "Wbw"}
    h, u = run["h"].values[t - 1], run["u"].values[t - 1]
    recruited = run["recruited"].values
    # A tile that moves was in use before.
    recruited = np.where((recruited >= t) & (weights["b"] == 0), -1, np.minimum(recruited, t))
    circuit.state = CircuitState(
        **weights, h=h, u=u, V=np.outer(u, h), learned=t, shown=t, recruited=recruited,
        last_size=float(u @ u),
    )  # fmt: skip
    points, labels = run["points"].values[[t]], run["labels"].values[[t]]
    return circuit.run(points, labels, record=tuple("huVy"))


def assert_same_trajectory(page, number, expected):
    found = trajectory(page, number)
    for name in "huVy":
        trace = expected[f"{name}_trace"].values[0]
        assert found[name][1:].shape == (len(trace), trace[0].size)
        assert np.abs(found[name][1:] - trace.reshape(len(trace), -1)).max() <= 1e-9


def test_trajectories_are_those_of_the_reference(page, run):
    labelled = int(np.flatnonzero(run["labels"].values[:, 0])[0])
    recruits = int(run["recruited"].values[5])
    assert 1 < recruits < labelled
    for t in (1, recruits, labelled, 180, 299):
        assert_same_trajectory(page, t - 1, reference(run, t, t - 1))


GATED = {"readout_rule": "gated", "readout_rate": 0.3}


@pytest.mark.parametrize(
    "changes",
    [
        CONSTANT | {"reset": False},
        {"recycle": True, "tile_radius": 0.9, "reset": False},
        {"tiles": "first", "clamp_labels": True} | GATED,
    ],
    ids=["constant", "recycle", "first, gated"],
)
def test_any_circuit_can_be_explored(open_page, tmp_path, changes):
    """Three coordinates, several readouts, tanh, few snapshots, state carried over or not."""
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (60, 3))
    labels = np.where(rng.random((60, 3)) < 0.3, np.sign(points), 0)
    parameters = CircuitParameters(
        **{"tile_radius": 1.5} | changes | {"steps_per_presentation": 400}, n_tiles=5,
        n_interneurons=2, n_readouts=3, mu=(0.5, 20.0, 80.0), readout="tanh",
    )  # fmt: skip
    circuit = ReferenceCircuit(parameters, SphereLift.around(points))
    run = circuit.run(points, labels, snapshot_every=7)
    results.save(run, tmp_path / "cube.nc")
    page = open_page(tmp_path)
    assert page.evaluate("explorer.moments") == list(range(7, 60, 7))
    page.evaluate("explorer.show(5)")
    for place in (0, 5):
        assert_same_trajectory(page, place, reference(run, 7 * (place + 1), place))
    y = run["y"].values[42]
    assert answer(page) == pytest.approx(y[0], abs=0.006)
    before = shown(page)
    page.focus("#readout")
    page.press("ArrowDown")
    assert answer(page) == pytest.approx(y[1], abs=0.006)
    assert abs(y[0] - y[1]) > 0.02
    assert shown(page) != before
    # The map shows the first and the third coordinate, upwards being up.
    places = np.array(page.evaluate("explorer.moments.map((_, i) => explorer.place(i))"))
    for axis, coordinate, sign in ((0, 0, 1), (1, 2, -1)):
        rows = run["points"].values[7::7, coordinate]
        assert np.corrcoef(places[:, axis], sign * rows)[0, 1] == pytest.approx(1)
    assert ("carries its state over" in page.text("#explorer")) is ("reset" in changes)
    assert page.complaints == []


def test_long_streams_of_several_seeds_are_thinned_out(open_page, run, tmp_path, monkeypatch):
    merged = xr.concat([run, run], "repeat").assign_coords(seed=("repeat", [3, 4]))
    merged.attrs.pop("seed", None)
    results.save(merged, tmp_path / "two-moons.nc")
    monkeypatch.setattr(explorer, "EXPLORER_BYTES", 100_000)
    page = open_page(tmp_path)
    moments = page.evaluate("explorer.moments")
    (step,) = set(np.diff(moments))
    assert moments[0] == 1 < step
    assert (tmp_path / "report.html").stat().st_size < 300_000
    page.evaluate("explorer.show(5)")
    assert f"Presentation {moments[5]}:" in page.text("#status")
    assert difference(page) < 1e-9
    assert "3, 4" in page.text("#provenance table")
    assert "600 presentations" in page.text("header")


def test_everything_can_be_reached_by_keyboard_and_has_a_name(page):
    reached: list[str] = []
    while "check-all" not in reached and len(reached) < 99:
        page.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
    assert [name for name in reached if name in CONTROLS] == list(CONTROLS)
    roles = {"button", "slider", "image", "link"}
    assert_named(page, roles | {"img", "combobox", "region"}, roles)
    page.resize(1000, 640)
    for name in ("#map", "#check-all"):
        scroll = "scrollIntoView({behavior: 'instant'})"
        page.evaluate(f"document.querySelector('{name}').{scroll}")
        page.focus(name)
        _, top, _, height = page.box(".controls")
        assert top < 1  # the bar sticks, and hides nothing that has the keyboard
        assert page.box(name)[1] >= top + height


def test_scale_of_V_has_its_numbers_and_colours(page):
    """From 0 to the largest V of the presentation, in the colours of the map; nothing cut off."""
    page.evaluate(LISTEN)
    page.evaluate("explorer.show(200)")
    largest = trajectory(page, 200)["V"].max()
    said = [text for canvas, *text in page.evaluate("said") if canvas == "v-map"]
    *_, top, middle, bottom = said
    assert float(top[0]) == pytest.approx(largest, rel=0.05)  # two digits
    assert float(middle[0]) == pytest.approx(largest / 2, rel=0.05)
    assert bottom[0] == "0"
    assert top[3] < middle[3] < bottom[3]
    for _, left, right, _, width in (top, middle, bottom):
        assert width - 78 < left < width + right <= width
    # The colour beside each number, left of it, is the one that a synapse of that V would have.
    colours = page.evaluate(
        f"{[[top[1], top[3]], [bottom[1], bottom[3]]]}.map(([x, y]) => document"
        ".querySelector('#v-map').getContext('2d').getImageData(x - 10, y, 1, 1).data[3])"
    )
    assert colours[0] > 220 > 35 > colours[1]
    assert f" 0 to {top[0]};" in page.attribute("#v-map", "aria-label")


def test_tiles_in_use_are_counted_and_drawn_in_order_along_the_manifold(page, run):
    recruited = run["recruited"].values
    for t in (8, 250):
        page.evaluate(f"explorer.show({t - 1})")
        used = int(((recruited >= 0) & (recruited <= t)).sum())
        assert f" of {used} tiles in use respond" in page.text("#status")
        for canvas in ("map", "h-bars", "w-bars", "v-map"):
            assert f"{used} tiles in use" in page.attribute(f"#{canvas}", "aria-label")
    order = page.evaluate("JSON.parse(document.querySelector('#explorer-data').textContent).order")
    count = int((recruited >= 0).sum())
    assert sorted(order) == list(range(count))  # idle tiles have no place
    assert 10 < count < run.sizes["tile"]
    W = run["W_snapshots"].values[-1][:count]
    lift = SphereLift(**json.loads(run.attrs["lift"]))
    centers = lift.center + lift.radius * W[:, :2] / np.linalg.norm(W, axis=1, keepdims=True)
    distance = np.linalg.norm(run["points"].values[:, None] - centers, axis=2)
    along = run["position"].values[distance.argmin(axis=0)]
    assert (np.diff(along[order]) >= 0).all()


def test_presentations_are_counted_in_the_circuits_life(open_page, tmp_path):
    """A second run goes on where the first stopped, and so do its numbers."""
    points = np.random.default_rng(2).uniform(-1, 1, (40, 2))
    parameters = CircuitParameters(
        n_tiles=4, n_interneurons=2, tile_radius=0.8, steps_per_presentation=400
    )
    circuit = ReferenceCircuit(parameters, SphereLift.around(points))
    circuit.run(points[:25], np.sign(points[:25, 0]))
    second = circuit.run(points[25:], np.sign(points[25:, 0]), snapshot_every=1)
    results.save(second, tmp_path / "second.nc")
    page = open_page(tmp_path)
    assert page.evaluate("explorer.moments") == list(range(26, 40))
    page.evaluate("explorer.show(3)")
    assert page.text("#moment-value") == "29 of 39"
    assert answer(page) == pytest.approx(second["y"].values[4, 0], abs=0.006)  # two digits
    assert difference(page) < 1e-9
