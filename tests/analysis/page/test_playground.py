"""The playground, as a visitor's browser shows it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from simulations.datasets import ARCS_LIFT, _on_arc
from simulations.experiments import get_experiment
from tests.analysis.page.test_report import (
    assert_links_stay_inside,
    assert_named,
    brightness,
    overflow,
)

SHOWN = ("plane", "accuracy", "h-trace", "u-trace", "v-trace", "h-bars", "v-map", "w-bars")
SLIDERS = {"n_tiles": 40, "tile_radius": 0.28, "mu": 1000, "learning_rate": 0.005}
SLIDERS |= {"recruit_below": 0.5, "gain": "control", "steps_per_presentation": 80, "noise": 0.05}
SLIDERS["readout_rate"] = "running_mean"


def pictures(page):
    found = "[...document.querySelectorAll('canvas')].map((c) => [c.id, c.toDataURL()])"
    return dict(page.evaluate(found))


def session(page, expression):
    return page.evaluate(f"playground.session.{expression}")


def advance(page, count):
    """Let some points pass, and what is due be drawn."""
    page.evaluate(f"(() => {{ for (let t = 1; t < {count}; t++) playground.session.next(); }})()")
    page.click("#step")


def labels(page):
    return dict(page.evaluate("[...playground.session.labels]"))


def place_of(page, point):
    """Where a data point is on the plane, in pixels."""
    at = f"playground.session.points.at({point}, playground.session.settings.noise, 0)"
    return tuple(page.evaluate(f"playground.place({at})"))


def slide(page, name, value):
    page.enter(f"#{name}", value, "input")


def follow(page, fragment):
    """Go to another link in the same page."""
    change_hash(page, f"location.hash = {json.dumps(fragment)}")


def change_hash(page, action):
    """Do what changes the fragment, and wait until the page has reacted."""
    page.evaluate(
        "new Promise((done) => { addEventListener('hashchange', () => setTimeout(done),"
        f" {{once: true}}); {action}; }})"
    )


def colour_at(page, point):
    """Red, green, blue and alpha of the plane, at a point of the data."""
    return page.evaluate(
        "(() => { const c = document.querySelector('#plane'), s = c.width / c.clientWidth;"
        f" const [x, y] = playground.place({json.dumps(point)});"
        " return [...c.getContext('2d').getImageData(x * s, y * s, 1, 1).data]; })()"
    )


# Starting values


def test_it_starts_with_the_values_of_the_experiment(playground):
    registered = get_experiment("two-moons").parameters
    for name, value in SLIDERS.items():
        assert session(playground, f"settings.{name}") == value
        if name != "noise":
            assert getattr(registered, name) == value
        assert playground.text(f"#{name}-value")
    assert session(playground, "given.tau_h") == registered.tau_h_
    assert session(playground, "settings.data") == "moons"
    assert sorted(labels(playground).values()) == [-1, 1]
    for point, label in labels(playground).items():
        assert session(playground, f"points.classes[{point}]") == label


def test_no_script_error_and_no_request_leaves_the_page(playground, playground_file):
    for control in ("step", "play", "reset", "drift", "recycle", "copy", "clear", "measure"):
        playground.click(f"#{control}")
    # No test depends on time: any speed will do, with the size it is for.
    playground.wait_until("document.querySelector('#measured').textContent !== ''")
    speed, *sizes = re.findall(r"\d[\d,]*", playground.text("#measured"))
    assert int(speed.replace(",", "")) > 0
    assert sizes == ["40", "4", "80"]  # tiles, interneurons, steps
    for name in ("data", "rule"):
        options = playground.evaluate(f"[...document.querySelector('#{name}')].map((o) => o.value)")
        for value in options:
            playground.enter(f"#{name}", value)
            if value != "own":
                playground.click("#step")
    for name in (*SLIDERS, "speed"):
        for end in ("min", "max"):
            slide(playground, name, playground.attribute(f"#{name}", end))
    playground.click("#play")
    assert playground.complaints == []
    addresses = {playground_file.as_uri(), "data:,"}
    assert {url.partition("#")[0] for url in playground.requests} <= addresses
    text = playground_file.read_text(encoding="utf-8")
    assert "http" not in text.replace("http-equiv", "")
    assert_links_stay_inside(text, playground_file.parent)


# Time


def test_play_pause_step_reset(playground):
    before = pictures(playground)
    assert set(before) == set(SHOWN)
    playground.click("#step")
    assert playground.text("#count") == "1"
    assert "labelled" in playground.text("#status")  # labels come first
    playground.click("#play")
    assert playground.text("#play") == "Pause"
    playground.wait_until("playground.session.time > 20")
    playground.click("#play")
    assert playground.text("#play") == "Play"
    count = session(playground, "time")
    assert playground.text("#count") == str(count)
    playground.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert session(playground, "time") == count
    after = pictures(playground)
    assert [name for name in SHOWN if before[name] == after[name]] == []
    W = "[...playground.session.circuit.W]"
    first = playground.evaluate(W)
    playground.click("#reset")
    assert playground.text("#count") == "0"
    advance(playground, count)
    assert playground.evaluate(W) == first  # the same stream
    slide(playground, "speed", 99)
    assert playground.text("#speed-value") == "as fast as possible"
    playground.click("#play")
    playground.wait_until("/^[1-9]/.test(document.querySelector('#per-second').textContent)")


def test_it_learns_the_moons_and_shows_it(playground):
    advance(playground, 1500)
    assert float(playground.text("#share")) > 0.98
    share = session(playground, "history.share")
    assert share[0] < 0.5
    assert share[-1] > 0.98
    assert "right" in playground.text("#share-name")
    assert all(playground.attribute(f"#{name}", "aria-label") for name in SHOWN)
    w, classes = np.array(playground.evaluate("[...playground.session.circuit.w]")), []
    for tile in range(40):
        center = session(playground, f"circuit.centerOf({tile}, [0, 0])")
        near = session(playground, f"points.nearest({center}, 0, 0)[0]")
        classes.append(session(playground, f"points.classes[{near}]"))
    assert (np.sign(w) == classes).all()
    # The plane's colours on either moon are those of their signs, and there are none elsewhere.
    for name in ("tiles", "points"):
        playground.click(f"#show-{name}")
    for place, sign in (([0, 1], -1), ([1, -0.5], 1)):
        red, _, blue, _ = colour_at(playground, place)
        assert sign * (red - blue) > 0
    assert colour_at(playground, [-1.3, 1.3])[3] == 0


# What can be changed


def test_rates_change_live_and_shapes_begin_anew(playground):
    advance(playground, 50)
    values = {"mu": 50, "learning_rate": 80, "recruit_below": 0.7, "gain": 60, "noise": 0.1}
    for name, position in (values | {"steps_per_presentation": 120, "readout_rate": 30}).items():
        slide(playground, name, position)
        assert session(playground, "time") == 50
    p = session(playground, "circuit.p")
    assert (p["steps"], p["least"]) == (120, pytest.approx(0.7 * (1 - p["alpha"])))
    settings = session(playground, "settings")
    assert p["mu"] == [settings["mu"]] != [1000]
    assert p["gain"] == settings["gain"] > 1
    assert p["rate"] == settings["readout_rate"] < 1
    assert p["eta"] == settings["learning_rate"] != 0.005
    playground.click("#step")
    assert session(playground, "time") == 51
    for name, value in (("n_tiles", 25), ("tile_radius", 0.5)):
        advance(playground, 5)
        slide(playground, name, value)
        assert session(playground, "time") == 0
        assert playground.text(f"#{name}-value") == str(value)
    assert session(playground, "circuit.p.m") == 25
    advance(playground, 5)
    playground.enter("#rule", "gated")
    assert session(playground, "time") == 0
    assert session(playground, "circuit.p.gated") is True
    assert session(playground, "circuit.p.rate") == 0.9


def assert_on_moons(points, classes):
    centers = np.where(classes[:, None] > 0, (1.0, 0.5), (0.0, 0.0))
    assert np.linalg.norm(points - centers, axis=1) == pytest.approx(1, abs=1e-12)
    assert (classes * (points - centers)[:, 1] <= 0).all()


def assert_on_arcs(points, classes):
    dense = np.linspace(0, 1, 20_001)
    for label in (-1, 1):
        own = points[classes == label]
        away = np.linalg.norm(_on_arc(dense, np.full(dense.shape, label)), axis=1)
        along = np.sort(np.interp(np.linalg.norm(own, axis=1), away, dense))
        own = own[np.linalg.norm(own, axis=1).argsort()]
        # Interpolating is wrong by the square of a step of the dense arc, and no more.
        assert np.abs(own - _on_arc(along, np.full(along.shape, label))).max() < 1e-8
        # Uniform in length: Kolmogorov's distance, whose 99.9 % for 200 points is 0.14.
        assert np.abs(along - (np.arange(200) + 0.5) / 200).max() < 0.14


def assert_in_square(points, classes):
    assert points.min() >= 0
    assert points.max() <= 1
    assert np.array_equal(classes, np.where(points.sum(axis=1) > 1, 1, -1))
    assert np.abs(points.mean(axis=0) - 0.5).max() < 0.06  # four standard errors


def assert_on_ring(points, classes):
    radius = np.linalg.norm(points, axis=1)
    assert radius[classes > 0] == pytest.approx(1, abs=1e-12)
    assert radius[classes < 0].max() <= 0.35


def test_points_are_where_their_data_set_has_them(playground):
    checks = {"moons": assert_on_moons, "arcs": assert_on_arcs}
    checks |= {"square": assert_in_square, "ring": assert_on_ring}
    for name, check in checks.items():
        follow(playground, f"data={name}&noise=0&seed=11")
        points = np.array(session(playground, "points.base"))
        classes = np.array(session(playground, "points.classes"))
        assert len(points) == 400
        assert {-1, 1} == set(classes)
        check(points, classes)
        if name == "arcs":
            assert session(playground, "scene.radius") == ARCS_LIFT.radius
        at = "playground.session.points.at(i, 0.1, 0)"
        noisy = session(playground, f"points.base.map((_, i) => {at})")
        # The standard deviation of 800 numbers is known to 2.5 %; four times that.
        assert (np.array(noisy) - points).std() == pytest.approx(0.1, rel=0.1)
    playground.enter("#seed", "5")
    other = session(playground, "points.base")
    assert other != points.tolist()
    playground.enter("#seed", "-1")
    assert "4294967295" in playground.text("#notice")
    assert session(playground, "points.base") == other


def test_random_numbers_are_uniform_and_of_their_seed(playground):
    def numbers(seed, stream=0):
        many = "Array.from({length: 20000}, () => r.uniform())"
        made = f"((r) => {many})(playground.generator({seed}, {stream}))"
        return np.array(playground.evaluate(made))

    first = numbers(0)
    for other in (numbers(1), numbers(0, 1), numbers(2**32 - 1)):
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.03  # four standard errors
    assert np.array_equal(first, numbers(0))
    counts = np.histogram(first, 100, (0, 1))[0]
    # Chi squared with 99 degrees of freedom: 149 has p = 0.001.
    assert ((counts - 200) ** 2 / 200).sum() < 149
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03


# The plane


def test_a_click_gives_changes_and_takes_a_label(playground):
    playground.click("#clear")
    assert labels(playground) == {}
    playground.click("#plane", place_of(playground, 30))
    [point] = labels(playground)
    assert labels(playground) == {point: 1}
    playground.click("#step")
    assert session(playground, "shown") == point  # shown next
    assert "labelled +1" in playground.text("#status")
    playground.focus("body")
    playground.press("l")
    playground.click("#plane", place_of(playground, point))
    assert labels(playground) == {point: -1}
    playground.click("#plane", place_of(playground, point))
    assert labels(playground) == {}
    playground.click("#plane", (3, 3))
    assert labels(playground) == {}
    assert playground.text("#notice")


def test_points_of_ones_own_are_drawn_and_cleared(open_playground):
    playground = open_playground("data=own")
    assert playground.evaluate("document.querySelector('#tool-draw').checked")
    assert session(playground, "points.count") == 0
    playground.click("#play")
    assert playground.text("#notice")
    playground.stroke("#plane", [(0.3, 0.4), (0.4, 0.6), (0.6, 0.6), (0.7, 0.4)])
    drawn = np.array(session(playground, "points.base"))
    assert len(drawn) > 20
    assert np.linalg.norm(np.diff(drawn, axis=0), axis=1).max() < 0.1  # no gaps
    playground.focus("body")
    playground.press("l")
    playground.click("#plane", place_of(playground, 5))
    assert list(labels(playground).values()) == [1]
    advance(playground, 600)
    assert playground.text("#share-name") == "decided"
    assert float(playground.text("#share")) > 0.95
    assert playground.text("#clear") == "Clear points"
    playground.click("#clear")
    assert session(playground, "points.count") == 0
    assert playground.complaints == []


def test_drift_turns_the_data_and_recycles_tiles(playground):
    before = session(playground, "points.at(7, 0, 0)")
    playground.click("#drift")
    assert session(playground, "settings.recycle") is True
    advance(playground, 500)
    angle = session(playground, "angle")
    assert angle == pytest.approx(500 * 2 * np.pi * 2.0 / 10_000)
    after = session(playground, f"points.at(7, 0, {angle})")
    old, turned = (complex(*at) - (0.5 + 0.25j) for at in (before, after))
    assert turned == pytest.approx(old * np.exp(1j * angle), abs=1e-12)
    playground.click("#drift")
    advance(playground, 10)
    assert session(playground, "angle") == angle


# The link


def test_a_link_holds_everything(open_playground):
    page = open_playground("data=own&points=" + "AAAA" "f_f_" "gAgA")  # fmt: skip
    slide(page, "n_tiles", 33)
    slide(page, "gain", 40)
    page.click("#drift")
    page.evaluate("playground.session.label(2, -1)")
    page.click("#copy")
    assert page.evaluate("!document.querySelector('#link-row').hidden")
    link = page.evaluate("document.querySelector('#link').value")
    again = open_playground(link.partition("#")[2])
    for name in ("settings", "points.base"):
        assert session(again, name) == session(page, name)
    assert labels(again) == labels(page) == {2: -1}
    assert session(again, "settings.n_tiles") == 33
    assert again.text("#notice") == ""
    assert session(page, "points.base[0]") == [-1.6, -1.2]  # the corner of the box
    assert page.complaints == again.complaints == []


DAMAGED = "n_tiles=4 200, n_tiles=12.5 12.5, mu= 10000, noise=0.3 0.2, gain=high high, mu=1&mu=2 mu"
DAMAGED += ", nothing nothing, volume=11 volume, labels=1p.9999m 9999m, labels=<b> <b>"
DAMAGED += ", data=own&points=AAA points, data=own&points=%21%21%21%21 points, speed=7 speed"
DAMAGED += ", seed=%E0%A4%A %E0%A4%A, seed=-1 seed, data=torus torus, drift=yes drift"
DAMAGED += ", readout_rule=gated&readout_rate=running_mean readout_rate"
"""Fragments of links, and what is said of each: what is wrong, or the most that would be right."""


def test_a_damaged_link_is_said_and_the_defaults_are_there(open_playground):
    page = open_playground("mu=1e9")
    assert "10000" in page.text("#notice")
    for fragment, value in map(str.split, DAMAGED.split(", ")):
        # Each link has something to put right.
        page.evaluate("playground.session.settings.n_tiles = 33; playground.session.labels.clear()")
        follow(page, fragment)
        assert value in page.text("#notice"), fragment
        assert session(page, "settings.n_tiles") == 40
        assert len(labels(page)) == 2
    page.click("#reset")
    page.click("#step")
    assert page.text("#count") == "1"
    assert page.complaints == []


# Keyboard, screens, colours


def test_keys_do_what_buttons_do_and_held_ones_switch_once(playground):
    playground.focus("body")
    slide(playground, "speed", 0)  # one per second
    playground.press("ArrowRight", times=4)  # held down, it steps on
    assert playground.text("#count") == "4"
    for times, shown in ((1, "Pause"), (1, "Play"), (4, "Pause"), (2, "Play")):
        playground.press(" ", times)
        assert playground.text("#play") == shown
    assert playground.evaluate("scrollY") == 0
    playground.press("r")
    assert playground.text("#count") == "0"
    tool = "document.querySelector('input[name=tool]:checked').value"
    for key, name in (("l", "minus"), ("l", "plus"), ("x", "lesion"), ("p", "draw")):
        playground.press(key)
        assert playground.evaluate(tool) == name
    for times, wanted in ((1, True), (1, False), (4, True)):
        playground.press("d", times)
        assert session(playground, "settings.drift") is wanted
    for key, times, shown in (("+", 4, "20 per second"), ("-", 1, "10 per second")):
        playground.press(key, times)
        assert playground.text("#speed-value") == shown
    playground.press("c")
    assert "data=moons" in playground.evaluate("document.querySelector('#link').value")


def test_keys_that_a_control_needs_are_left_to_it(playground):
    playground.focus("#n_tiles")
    playground.press("ArrowRight")
    assert session(playground, "settings.n_tiles") == 41
    assert playground.text("#count") == "0"
    playground.focus("#reset")
    playground.press(" ")
    assert playground.text("#play") == "Play"
    playground.focus("#data")
    playground.press("r")  # the data that begin with r
    assert session(playground, "settings.data") == "ring"
    advance(playground, 3)
    for control in ("#mu", "#speed", "#seed", "#show-tiles", "#tool-plus"):
        playground.focus(control)
        playground.press("r")
        assert session(playground, "time") == 3, control
    playground.focus("#plane")
    playground.press("r")
    assert session(playground, "time") == 0


def test_a_label_can_be_given_by_keyboard(playground):
    playground.click("#clear")
    playground.focus("#plane")
    playground.press("ArrowUp")
    for _ in range(20):
        if labels(playground):
            break
        playground.press("ArrowLeft")
        playground.press("Enter")
    assert list(labels(playground).values()) == [1]
    assert playground.text("#count") == "0"
    point = "(({ points, settings, angle }) => points.at(9, settings.noise, angle))"
    playground.evaluate(f"playground.view.cursor = {point}(playground.session)")
    playground.press("Enter", times=4)  # held down, it does not take the label away again
    assert len(labels(playground)) == 2


def test_everything_can_be_reached_by_keyboard_and_has_a_name(playground):
    wanted = ["play", "step", "reset", "speed", "drift", "recycle", "copy"]
    wanted += ["show-answer", "show-tiles", "show-points", "tool-plus", "clear", "plane"]
    wanted += ["data", "seed", "rule", *SLIDERS, "measure"]
    reached: list[str] = []
    while "measure" not in reached and len(reached) < 99:
        playground.press("Tab")
        focused = "[document.activeElement.id, getComputedStyle(document.activeElement)"
        name, outline = playground.evaluate(f"{focused}.outlineStyle]")
        reached.append(name)
        assert outline == "solid" or name.startswith("tool-"), name  # its label has the outline
    assert [name for name in reached if name in wanted] == wanted
    roles = {"button", "slider", "image", "combobox", "radio", "checkbox", "spinbutton", "link"}
    assert_named(playground, roles, roles)


def test_small_screens_and_dark_ones(open_playground):
    page = open_playground(width=360, height=740)
    advance(page, 30)
    page.click("#copy")
    for width in (360, 600, 900, 1280, 1600):
        page.resize(width, 740)
        assert page.evaluate("innerWidth") == width
        assert overflow(page) == [0]
        # The panel, which the keyboard reaches later, is below the plane or at its right.
        left, top, wide, high = page.box(".stage-plane")
        other_left, other_top, _, _ = page.box(".panel")
        assert other_top >= top + high or (other_left >= left + wide and other_top == top)
    x, y = place_of(page, next(iter(labels(page))))
    label = page.evaluate(f"playground.view.place.back({x - 5}, {y - 2})")
    for dark in (False, True):
        page.prefer(dark)
        page.wait_for_frames()
        assert brightness(page) < 120 if dark else brightness(page) > 600
        assert page.complaints == []  # before the browser complains about the next line
        assert (sum(colour_at(page, label)[:3]) > 400) is dark  # its diamond has the colour of ink
