"""The playground in use: nothing moves under the hand, nothing is lost, everything can be read."""

from __future__ import annotations

import math
import re

import numpy as np

from tests.analysis.page.test_playground import (
    advance,
    change_hash,
    follow,
    labels,
    pictures,
    session,
    slide,
)
from tests.analysis.page.test_report import LISTEN

# Messages


def is_seen(page, selector):
    """Whether an element is within the window."""
    _, top, _, height = page.box(selector)
    return height > 0 and top >= 0 and top + height <= page.evaluate("innerHeight")


def test_what_is_said_is_seen_and_moves_nothing(open_playground):
    page = open_playground("data=own", width=360, height=640)
    for width in (360, 760, 1000, 1280):  # a layout each
        page.resize(width, 640)
        follow(page, f"data=own&seed={width}")
        before = page.box("#plane", center=True)
        page.evaluate("document.querySelector('#play').click()")
        assert page.text("#notice")
        assert is_seen(page, "#notice")
        page.evaluate("document.querySelector('#copy').click()")
        page.wait_until("document.querySelector('#link-about').textContent")
        assert is_seen(page, "#link")
        assert not is_seen(page, "#notice")  # one at a time
        # A stroke to the right has no point above or below it, though the message goes.
        page.stroke("#plane", [(x, 0.3) for x in np.linspace(0.3, 0.6, 9)], center=False)
        assert not is_seen(page, "#link")
        heights = {round(at[1], 9) for at in session(page, "points.base")}
        assert len(heights) == 1
        assert page.box("#plane") == before
        page.evaluate("playground.session.label(0, -1)")
        for count in (1, 60):
            page.evaluate(f"for (let t = 1; t < {count}; t++) playground.session.next(); 0")
            page.evaluate("document.querySelector('#step').click()")
            assert page.box("#plane") == before
    assert page.complaints == []


def test_messages_can_be_closed_and_go_when_they_are_old(playground):
    for button in ("#close-link", "#clear"):  # the link holds labels
        playground.click("#copy")
        playground.wait_until("document.querySelector('#link-about').textContent")
        assert is_seen(playground, "#link")
        playground.click(button)
        assert not is_seen(playground, "#link")
    for close, what in ((playground.click, "#close-notice"), (playground.press, "Escape")):
        playground.click("#plane", (3, 3))
        assert playground.text("#notice")
        close(what)
        assert playground.text("#notice") == ""
        assert not is_seen(playground, "#notice")


# Drawing


def test_points_are_drawn_where_the_pen_is_after_the_data_have_turned(open_playground):
    page = open_playground("data=own&noise=0&drift=1&points=gAgAhAhAiAiA")
    advance(page, 700)
    page.click("#tool-draw")
    path = [(0.4, 0.4), (0.5, 0.4), (0.6, 0.5)]
    page.stroke("#plane", path)
    _, _, width, height = page.box("#plane")
    angle = session(page, "angle")
    assert 0.8 < angle < 1
    seen = page.evaluate(
        "playground.session.points.base.slice(3).map((_, i) =>"
        f" playground.place(playground.session.points.at(i + 3, 0, {angle})))"
    )
    assert len(seen) > 10
    corners = [(x * width, y * height) for x, y in path]
    for corner in corners:  # the pen is brought to whole pixels
        assert min(math.dist(corner, at) for at in seen) < 1.5
    assert all(corners[0][1] - 1.5 < y < corners[-1][1] + 1.5 for _, y in seen)


def test_one_finger_draws_and_a_second_draws_nothing(open_playground):
    page = open_playground("data=own", width=360, height=740)
    page.send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    left, top, _, _ = page.box("#plane", center=True)
    kinds = ("Start", "Move", "Start", "Move", "Move", "End", "Move", "End")
    first = ([100], [120], [120], [140], [160], [160], [180], [])
    second = ([], [], [200], [220], [240], [], [], [])
    for kind, one, two in zip(kinds, first, second, strict=True):
        places = [(left + x, top + 100) for x in one] + [(left + x, top + x) for x in two]
        page.touch(kind, places)
    page.wait_until("playground.view.pen === null && playground.session.points.count > 8")
    drawn = session(page, "points.base")
    assert len({round(y, 9) for _, y in drawn}) == 1
    ends = [page.evaluate(f"playground.place({at})")[0] for at in (drawn[0], drawn[-1])]
    assert abs(ends[0] - 100) < 1.5
    assert abs(ends[1] - 180) < 6  # what is less than a spacing is left
    assert page.complaints == []


# Nothing is lost


def go_back(page):
    """One step back in the browser's history."""
    change_hash(page, "history.back()")


def click(page, link):
    """Follow a link of the page."""
    change_hash(page, f"document.querySelector('{link}').click()")


def test_only_a_stroke_leaves_the_data_for_ones_own(playground):
    advance(playground, 30)
    playground.focus("#tool-plus")
    for _ in range(3):
        playground.press("ArrowRight")
    assert playground.evaluate("document.activeElement.id") == "tool-draw"
    playground.press("l")
    playground.press("p")
    assert playground.evaluate("document.querySelector('#tool-draw').checked")
    assert playground.text("#notice")
    assert (session(playground, "settings.data"), session(playground, "time")) == ("moons", 30)
    playground.stroke("#plane", [(0.25, 0.25)])
    assert session(playground, "settings.data") == "own"
    [point] = session(playground, "points.base")
    seen = playground.evaluate(f"playground.place({point})")
    _, _, width, height = playground.box("#plane")
    assert math.dist(seen, (0.25 * width, 0.25 * height)) < 1.5
    # By keyboard, too: where the cursor is seen, which is elsewhere among other data.
    playground.enter("#data", "moons")
    assert not playground.evaluate("document.querySelector('#tool-draw').checked")
    playground.press("p")
    playground.focus("#plane")
    playground.press("ArrowLeft", times=8)
    at = playground.evaluate("playground.place(playground.view.cursor)")
    assert session(playground, "settings.data") == "moons"
    playground.press("Enter")
    assert session(playground, "settings.data") == "own"
    points = session(playground, "points.base")
    assert points[0] == point
    assert math.dist(playground.evaluate(f"playground.place({points[1]})"), at) < 1e-6
    assert playground.complaints == []


def test_a_drawing_is_there_again(open_playground):
    page = open_playground("data=own&points=gAgAhAhAiAiA&labels=1m")
    drawn = session(page, "points.base")
    for name in ("moons", "ring", "own"):
        page.enter("#data", name)
    assert session(page, "points.base") == drawn
    assert labels(page) == {1: -1}
    page.evaluate("playground.session.draw(-1.6, 1.2)")  # a corner, which the link holds exactly
    page.click("nav a:nth-child(6)")
    page.wait_until("!playground.session.points.count")
    go_back(page)
    assert session(page, "points.base") == [*drawn, [-1.6, 1.2]]
    assert labels(page) == {1: -1}
    page.click("#clear")
    for name in ("moons", "own"):
        page.enter("#data", name)
    assert session(page, "points.count") == 0
    assert page.complaints == []


def test_examples_begin_whenever_they_are_followed_and_places_do_not(open_playground):
    page = open_playground("plane")  # a place in the page is no link
    assert page.text("#notice") == ""
    assert page.text("#n_tiles-value") == "40"
    advance(page, 3)
    for place in ("", "plane"):
        follow(page, place)
        assert session(page, "time") == 3
    for example in range(1, 7):
        click(page, f"nav a:nth-child({example})")
        assert page.text("#notice") == ""
        assert session(page, "settings.drift") is (example == 2)
    for _ in range(2):
        click(page, "nav a:nth-child(4)")
        assert (session(page, "settings.data"), session(page, "time")) == ("ring", 0)
        page.enter("#data", "moons")
        advance(page, 5)
    click(page, ".skip")
    go_back(page)
    assert (session(page, "settings.data"), session(page, "time")) == ("moons", 5)
    click(page, ".skip")
    click(page, "nav a:nth-child(3)")
    assert session(page, "settings.data") == "square"
    go_back(page)
    assert session(page, "settings.data") == "moons"
    assert page.complaints == []


# Planes without room, tiles that are out


def test_a_page_without_room_draws_nothing_and_fails_nowhere(playground):
    playground.resize(320, 600)
    for style in ("display: none", "height: 0", "width: 0", "width: 55px", "width: 70px"):
        playground.evaluate(f"document.querySelector('main').style = '{style}; overflow: hidden'")
        follow(playground, "data=torus")
        assert playground.text("#notice")
        playground.evaluate("document.querySelector('#step').click()")
        playground.focus("#plane")
        for key in ("ArrowUp", "Enter"):
            playground.press(key)
        follow(playground, "data=moons")
        assert playground.text("#notice") == ""
    playground.evaluate("document.querySelector('main').style = ''")
    playground.wait_until("document.querySelector('#plane').width > 200")
    assert playground.complaints == []


def test_a_lesion_finds_a_tile_that_is_not_out_and_says_if_there_is_none(open_playground):
    page = open_playground("tile_radius=0.05&n_tiles=5", width=320, height=600)
    page.click("#tool-lesion")
    page.click("#plane", (20, 20))
    said = [page.text("#notice")]  # no tile yet
    advance(page, 50)
    page.click("#plane", (3, 3))
    said.append(page.text("#notice"))  # no tile near
    x, y = page.evaluate("playground.place(playground.session.circuit.centerOf(2, [0, 0]))")
    before = pictures(page)["plane"]
    page.click("#plane", (x, y + 12))  # more than a radius away, and near for a finger
    lesioned = "[...playground.session.circuit.lesioned]"
    assert page.evaluate(lesioned) == [0, 0, 1, 0, 0]
    assert page.text("#notice") == ""
    assert pictures(page)["plane"] != before
    assert page.text("#tiles-used") == "4 of 5"
    for name in ("plane", "h-bars", "v-map", "w-bars"):
        assert "4 tiles in use" in page.attribute(f"#{name}", "aria-label")
    for tile in (0, 1, 3, 4):
        page.evaluate(f"playground.session.circuit.lesion({tile})")
    page.click("#plane", (x, y))
    said.append(page.text("#notice"))  # all have been taken out
    assert len({*said, ""}) == 4
    page.click("#reset")
    advance(page, 50)
    page.evaluate("playground.session.settings.tile_radius = 3")  # to a click, all are near
    page.click("#plane", (x, y))
    assert page.evaluate(lesioned) == [0, 0, 1, 0, 0]  # the nearest
    page.click("#plane", (x, y))
    assert sum(page.evaluate(lesioned)) == 2


# Everything can be read


def luminance(colour):
    """Relative luminance as WCAG 2 has it, of a colour such as rgb(0, 114, 178)."""
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def fill(page, selector):
    """Background and text colour of an element."""
    return page.evaluate(
        f"(() => {{ const s = getComputedStyle(document.querySelector('{selector}'));"
        " return [s.backgroundColor, s.color]; })()"
    )


def test_what_is_pressed_can_be_read_and_told_apart(playground):
    for button in ("#drift", "#play"):
        playground.click(button)
    pressed = ["#play", "#drift", "#recycle", "#tool-plus + span"]
    for dark in (False, True):
        playground.prefer(dark)
        for selector in pressed:
            light, deep = sorted(map(luminance, fill(playground, selector)), reverse=True)
            assert (light + 0.05) / (deep + 0.05) > 4.5, selector
    playground.prefer(dark=False, forced_colors=True)
    others = [fill(playground, selector)[0] for selector in ("#step", "#tool-draw + span")]
    for selector in pressed:
        background, text = fill(playground, selector)
        assert background not in (text, *others)


def written(page):
    """What is written into the pictures by one drawing of all, each with how far it sticks out."""
    page.evaluate("said.length = 0")
    page.evaluate("document.querySelector('#show-tiles').dispatchEvent(new Event('change'))")
    return page.evaluate("said")


def test_axes_have_numbers_that_can_be_read(open_playground):
    page = open_playground("n_tiles=5&tile_radius=1")
    page.evaluate(LISTEN)
    for name in ("h-trace", "u-trace", "v-trace"):
        ticks = [text for canvas, text, *_ in written(page) if canvas == name]
        assert ticks == ["0", "0.5", "1", "0", "step 80"]
    assert not any(re.search(r"\de", text) for _, text, *_ in written(page))
    advance(page, 20)
    for position in (60, 80, 101):  # ever larger constant gains
        slide(page, "gain", position)
        page.click("#step")
        for canvas, text, left, right, *_ in written(page):
            assert left >= 0, (canvas, text)
            assert right <= 0, (canvas, text)
            assert "NaN" not in text
    assert "NaN" not in page.evaluate(
        "[...document.querySelectorAll('canvas')].map((c) => c.getAttribute('aria-label')).join()"
    )
    assert page.complaints == []


def test_rates_that_diverge_are_said_and_nothing_is_learned(open_playground):
    page = open_playground("n_tiles=5&tile_radius=1")
    advance(page, 100)
    learned = "[[...playground.session.circuit.W], playground.session.answers]"
    before = page.evaluate(learned)
    slide(page, "gain", 101)
    page.click("#play")
    page.wait_until("document.querySelector('#play').textContent === 'Play'")
    assert "presentation 100" in page.text("#notice")
    assert "diverged" in page.text("#status")
    assert "respond" not in page.text("#status")
    page.click("#step")
    assert page.evaluate(learned) == before
    assert page.evaluate("playground.measure(30)") > 100  # the speed, all the same
    slide(page, "gain", 0)
    page.click("#step")
    assert page.text("#notice") == ""
    assert page.text("#count") == "101"
    page.enter("#data", "own")
    page.click("#measure")  # of no points at all
    assert page.text("#notice")
    assert page.text("#measured") == ""
    assert page.complaints == []


SUMS = """(() => {
  const { circuit, settings } = playground.session, { discs, place } = playground.view, found = [];
  const tiles = Array.from({ length: circuit.inUse }, (_, tile) => tile);
  const near = 4 / place.scale; // to an edge, which is soft
  const image = discs.getContext("2d").getImageData(0, 0, discs.width, discs.height);
  for (let row = 0; row < discs.height; row++)
    for (let column = 0; column < discs.width; column++) {
      const [x, y] = place.back(4 * column + 2, 4 * row + 2), at = 4 * (row * discs.width + column);
      const inside = tiles.map((tile) => {
        const center = circuit.centerOf(tile, [0, 0]);
        return settings.tile_radius - Math.hypot(center[0] - x, center[1] - y);
      });
      if (inside.some((value) => Math.abs(value) < near)) continue;
      const sum = tiles.reduce((all, i) => all + (inside[i] > 0 ? circuit.w[i] : 0), 0);
      found.push([sum, ...image.data.subarray(at, at + 4)]);
    }
  return found;
})()"""


def test_discs_have_the_colour_of_the_sum_of_w(playground):
    playground.click("#show-answer")
    counts = []
    for fragment in ("n_tiles=20", "n_tiles=80&tile_radius=1&recruit_below=0.95"):
        follow(playground, fragment)
        advance(playground, 300)
        sums, red, _, blue, alpha = np.array(playground.evaluate(SUMS)).T
        assert len(sums) > 200
        # One step of alpha is 1/255: where there is more than that, the colour is that of the sign.
        seen = alpha > 8
        assert seen.mean() > 0.1
        assert set(np.sign(sums[seen])) == {-1, 1}
        assert np.array_equal(np.sign(sums[seen]), np.sign((red - blue)[seen]))
        counts.append(session(playground, "circuit.inUse"))
        most = np.abs(playground.evaluate("[...playground.session.circuit.w]")).max()
        strength = 0.35 * min(1, 30 / counts[-1])
        expected = 255 * (1 - np.exp(-strength * np.abs(sums) / most))
        assert np.abs(alpha - expected).max() <= 1
    assert counts[0] < 30 < counts[1]


# Keys


HIDDEN = """(() => {
  const bar = document.querySelector(".controls"), low = bar.getBoundingClientRect().bottom;
  const stuck = getComputedStyle(bar).position === "sticky", here = document.activeElement;
  if (here.matches("body, header *, .messages *, .controls *, .skip")) return false;
  const { top, height } = (here.closest("label") ?? here).getBoundingClientRect();
  return stuck && (height > innerHeight / 3 ? top + 50 < low : top < low);
})()"""


def hidden_on_the_way(page, times, modifiers=0):
    """The names of what has the keyboard, one after the other, that bars hide."""
    hidden = []
    for _ in range(times):
        page.press("Tab", modifiers=modifiers)
        if page.evaluate(HIDDEN):
            hidden.append(page.evaluate("document.activeElement.id"))
    return hidden


def test_no_bar_hides_what_has_the_keyboard(open_playground):
    for width in (600, 1000):
        page = open_playground(width=width, height=600)
        assert hidden_on_the_way(page, 34) == []
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.focus("#measure")
        assert hidden_on_the_way(page, 24, modifiers=8) == []  # Shift
