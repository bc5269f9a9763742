"""The playground in use: nothing moves under the hand, nothing is lost, everything can be read."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.analysis.page.test_playground import advance, focus, labels, press, session, slide

DIVERGING = "data=own&gain=100000&n_tiles=5&tile_radius=1&points=gAgAhAhAiAiA"


# The speed


def test_speed_is_measured_whatever_is_learned(open_playground):
    page = open_playground("data=own")
    page.click("#measure")
    assert "no points yet" in page.text("#notice")
    assert page.text("#measured") == ""
    page.evaluate(f"location.hash = '{DIVERGING}'")
    page.wait_until("playground.session.points.count === 3")
    assert page.evaluate("playground.measure(30)") > 100
    assert session(page, "time") == 0
    assert page.complaints == []


# Messages


def box(page, selector):
    """Left, top, width and height of an element on the screen."""
    return page.evaluate(
        f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect();"
        " return [b.left, b.top, b.width, b.height]; })()"
    )


def see_plane(page):
    """Scroll to the plane."""
    page.evaluate(
        "document.querySelector('#plane').scrollIntoView({block: 'center', behavior: 'instant'})"
    )


def mouse(page, kind, x, y):
    page.send(
        "Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button="left", buttons=1,
        clickCount=1,
    )  # fmt: skip


def is_seen(page, selector):
    """Whether an element is within the window."""
    _, top, _, height = box(page, selector)
    return height > 0 and top >= 0 and top + height <= page.evaluate("innerHeight")


def test_what_is_said_is_seen_and_moves_nothing(open_playground):
    page = open_playground("data=own", width=360, height=640)
    for width in (360, 760, 1000, 1280, 1440):
        page.resize(width, 640)
        page.evaluate(f"location.hash = 'data=own&seed={width}'")
        page.wait_until(f"playground.session.settings.seed === {width}")
        see_plane(page)
        before = box(page, "#plane")
        page.evaluate("document.querySelector('#play').click()")
        assert "no points yet" in page.text("#notice")
        assert is_seen(page, "#notice")
        page.evaluate("document.querySelector('#copy').click()")
        page.wait_until("document.querySelector('#link-about').textContent")
        assert is_seen(page, "#link")
        assert not is_seen(page, "#notice")  # one at a time
        # A stroke to the right has no point above or below it, though the message goes.
        x, y = before[0] + before[2] * 0.3, before[1] + before[3] * 0.3
        mouse(page, "Pressed", x, y)
        for step in range(1, 9):
            mouse(page, "Moved", x + 10 * step, y)
        mouse(page, "Released", x + 80, y)
        assert not is_seen(page, "#link")
        heights = {round(at[1], 9) for at in session(page, "points.base")}
        assert len(heights) == 1
        assert box(page, "#plane") == before
        page.evaluate("playground.session.label(0, -1)")
        for count in (1, 20, 60):
            page.evaluate(f"for (let t = 1; t < {count}; t++) playground.session.next(); 0")
            page.evaluate("document.querySelector('#step').click()")
            assert box(page, "#plane") == before
    assert page.complaints == []


def test_messages_can_be_closed_and_go_when_they_are_old(playground):
    for close in ("document.querySelector('#close-link').click()", None):
        playground.click("#copy")
        playground.wait_until("document.querySelector('#link-about').textContent")
        assert is_seen(playground, "#link")
        if close:
            playground.evaluate(close)
        else:
            playground.click("#clear")  # the link holds labels
        assert not is_seen(playground, "#link")
    for way in ("button", "key"):
        playground.click("#plane", (3, 3))
        assert "no point near" in playground.text("#notice")
        if way == "button":
            playground.click("#close-notice")
        else:
            press(playground, "Escape")
        assert playground.text("#notice") == ""
        assert not is_seen(playground, "#notice")


# Drawing


def test_points_are_drawn_where_the_pen_is_after_the_data_have_turned(open_playground):
    page = open_playground("data=own&noise=0&drift=1&points=gAgAhAhAiAiA")
    page.evaluate("for (let t = 0; t < 700; t++) playground.session.next(); 0")
    page.click("#step")
    page.click("#tool-draw")
    see_plane(page)
    left, top, width, height = box(page, "#plane")
    path = [(0.4, 0.4), (0.5, 0.4), (0.6, 0.5)]
    for kind, (x, y) in zip(
        ("Pressed", "Moved", "Moved", "Released"), [*path, path[-1]], strict=True
    ):
        mouse(page, kind, left + x * width, top + y * height)
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
    assert max(y for _, y in seen) < corners[-1][1] + 1.5
    assert min(y for _, y in seen) > corners[0][1] - 1.5


def test_a_second_finger_draws_nothing(open_playground):
    page = open_playground("data=own", width=360, height=740)
    page.send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    see_plane(page)
    left, top, _, _ = box(page, "#plane")
    for kind, places in (
        ("touchStart", [(100, 100)]),
        ("touchMove", [(120, 100)]),
        ("touchStart", [(120, 100), (200, 200)]),
        ("touchMove", [(140, 100), (220, 200)]),
        ("touchMove", [(160, 100), (240, 200)]),
        ("touchEnd", [(160, 100)]),
        ("touchMove", [(180, 100)]),
        ("touchEnd", []),
    ):
        points = [{"x": left + x, "y": top + y, "id": i} for i, (x, y) in enumerate(places)]
        page.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    page.wait_until("playground.view.pen === null && playground.session.points.count > 8")
    drawn = session(page, "points.base")
    assert len({round(y, 9) for _, y in drawn}) == 1
    ends = [page.evaluate(f"playground.place({at})")[0] for at in (drawn[0], drawn[-1])]
    assert abs(ends[0] - 100) < 1.5
    assert abs(ends[1] - 180) < 6  # what is less than a spacing is left


# Nothing is lost


def choose(page, name, value):
    page.evaluate(
        f"(() => {{ const s = document.querySelector('#{name}'); s.value = '{value}';"
        " s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def go_back(page):
    """One step back in the browser's history."""
    page.evaluate(
        "new Promise((done) => { addEventListener('hashchange', () => setTimeout(done),"
        " {once: true}); history.back(); })"
    )


def test_only_a_stroke_leaves_the_data_for_ones_own(playground):
    advance(playground, 30)
    focus(playground, "#tool-plus")
    for _ in range(3):
        press(playground, "ArrowRight")
    assert playground.evaluate("document.activeElement.id") == "tool-draw"
    press(playground, "l")
    press(playground, "p")
    assert playground.evaluate("document.querySelector('#tool-draw').checked")
    assert "first stroke" in playground.text("#notice")
    assert (session(playground, "settings.data"), session(playground, "time")) == ("moons", 30)
    see_plane(playground)
    left, top, width, height = box(playground, "#plane")
    for kind in ("Pressed", "Released"):
        mouse(playground, kind, left + 0.25 * width, top + 0.25 * height)
    assert session(playground, "settings.data") == "own"
    [point] = session(playground, "points.base")
    seen = playground.evaluate(f"playground.place({point})")
    assert math.dist(seen, (0.25 * width, 0.25 * height)) < 1.5
    # By keyboard, too: where the cursor is seen, which is elsewhere among other data.
    choose(playground, "data", "moons")
    assert not playground.evaluate("document.querySelector('#tool-draw').checked")
    press(playground, "p")
    focus(playground, "#plane")
    for _ in range(8):
        press(playground, "ArrowLeft")
    at = playground.evaluate("playground.place(playground.view.cursor)")
    assert session(playground, "settings.data") == "moons"
    press(playground, "Enter")
    assert session(playground, "settings.data") == "own"
    points = session(playground, "points.base")
    assert points[0] == point
    assert math.dist(playground.evaluate(f"playground.place({points[1]})"), at) < 1e-6
    assert playground.complaints == []


def test_a_drawing_is_there_again(open_playground):
    page = open_playground("data=own&points=gAgAhAhAiAiA&labels=1m")
    drawn = session(page, "points.base")
    for name in ("moons", "ring", "own"):
        choose(page, "data", name)
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
        choose(page, "data", name)
    assert session(page, "points.count") == 0
    assert page.complaints == []


def test_examples_begin_whenever_they_are_followed_and_places_do_not(playground):
    for _ in range(2):
        playground.click("nav a:nth-child(4)")
        playground.wait_until("playground.session.settings.data === 'ring'")
        assert session(playground, "time") == 0
        advance(playground, 5)
        choose(playground, "data", "moons")
        advance(playground, 5)
    playground.evaluate("document.querySelector('.skip').click()")
    playground.wait_until("location.hash === '#plane'")
    go_back(playground)
    assert session(playground, "time") == 5
    assert session(playground, "settings.data") == "moons"
    playground.evaluate("document.querySelector('.skip').click()")
    playground.wait_until("location.hash === '#plane'")
    playground.click("nav a:nth-child(3)")
    playground.wait_until("playground.session.settings.data === 'square'")
    go_back(playground)
    assert session(playground, "settings.data") == "moons"
    assert playground.complaints == []


# Planes without room, tiles that are out


def test_a_page_without_room_draws_nothing_and_fails_nowhere(playground):
    playground.resize(320, 600)
    widths = [f"width: {width}px" for width in (0, 30, 55, 60, 70)]
    for style in ("display: none", "height: 0", *widths):
        playground.evaluate(f"document.querySelector('main').style = '{style}; overflow: hidden'")
        playground.evaluate("location.hash = 'data=torus'")
        playground.wait_until("document.querySelector('#notice').textContent")
        assert "This link is damaged" in playground.text("#notice")
        playground.evaluate("document.querySelector('#step').click()")
        focus(playground, "#plane")
        for key in ("ArrowUp", "Enter"):
            press(playground, key)
        playground.evaluate("location.hash = 'data=moons'")
        playground.wait_until("!document.querySelector('#notice').textContent")
    playground.evaluate("document.querySelector('main').style = ''")
    playground.wait_until("document.querySelector('#plane').width > 200")
    assert playground.complaints == []


def test_a_lesion_finds_a_tile_that_is_not_out_and_says_if_there_is_none(open_playground):
    page = open_playground("tile_radius=0.05&n_tiles=5", width=320, height=600)
    page.click("#tool-lesion")
    page.click("#plane", (20, 20))
    assert "no tile yet" in page.text("#notice")
    advance(page, 50)
    page.click("#plane", (3, 3))
    assert "no tile near" in page.text("#notice")
    x, y = page.evaluate("playground.place(playground.session.circuit.centerOf(2, [0, 0]))")
    page.click("#plane", (x, y + 12))  # more than a radius away, and near for a finger
    assert session(page, "circuit.lesioned[2]") == 1
    assert page.text("#notice") == ""
    names = page.evaluate(
        "['plane', 'h-bars', 'v-map', 'w-bars'].map((id) =>"
        " document.querySelector(`#${id}`).getAttribute('aria-label'))"
    )
    assert all("4 tiles in use" in name for name in names)
    for tile in (0, 1, 3, 4):
        page.evaluate(f"playground.session.circuit.lesion({tile})")
    page.click("#plane", (x, y))
    assert "All tiles in use have been taken out" in page.text("#notice")
    page.click("#reset")
    advance(page, 50)
    page.evaluate("playground.session.settings.tile_radius = 3")  # to a click, all are near
    for count in (1, 2):
        page.click("#plane", (x, y))
        assert page.evaluate("playground.session.circuit.lesioned.reduce((a, b) => a + b)") == count


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


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_pressed_can_be_read_and_told_apart(open_playground, dark):
    page = open_playground(dark=dark)
    for button in ("#drift", "#play"):
        page.click(button)
    pressed = ["#play", "#drift", "#recycle", "#tool-plus + span"]
    for selector in pressed:
        light, deep = sorted(map(luminance, fill(page, selector)), reverse=True)
        assert (light + 0.05) / (deep + 0.05) > 4.5, selector
    page.send("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
    for selector in pressed:
        background, text = fill(page, selector)
        assert background not in (text, fill(page, "#step")[0], fill(page, "#tool-draw + span")[0])


LISTEN = """(() => {
  window.said = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { width } = this.measureText(text), { id, clientWidth } = this.canvas;
    const left = x - ({ right: 1, center: .5 }[this.textAlign] ?? 0) * width;
    said.push([id, text, left, left + width - clientWidth]);
    write.call(this, text, x, y);
  };
})()"""


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
        for canvas, text, left, right in written(page):
            assert left >= 0, (canvas, text)
            assert right <= 0, (canvas, text)
            assert "NaN" not in text
    status, before = page.text("#status"), session(page, "answers")
    assert "The rates diverged" in status
    assert "respond" not in status
    page.click("#step")
    assert session(page, "answers") == before
    assert "NaN" not in page.evaluate(
        "[...document.querySelectorAll('canvas')].map((c) => c.getAttribute('aria-label')).join()"
    )
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


@pytest.mark.parametrize("fragment", ["", "n_tiles=200&tile_radius=1&recruit_below=0.95"])
def test_discs_have_the_colour_of_the_sum_of_w(open_playground, fragment):
    page = open_playground(fragment)
    page.click("#show-answer")
    advance(page, 300)
    sums, red, _, blue, alpha = np.array(page.evaluate(SUMS)).T
    assert len(sums) > 200
    # One step of alpha is 1/255: where there is more than that, the colour is that of the sign.
    seen = alpha > 8
    assert seen.mean() > 0.1
    assert set(np.sign(sums[seen])) == {-1, 1}
    assert np.array_equal(np.sign(sums[seen]), np.sign((red - blue)[seen]))
    used = session(page, "circuit.inUse")
    most = np.abs(page.evaluate("[...playground.session.circuit.w]")).max()
    expected = 255 * (1 - np.exp(-0.35 * min(1, 30 / used) * np.abs(sums) / most))
    assert np.abs(alpha - expected).max() <= 1


# Keys


def hold(page, key, code, times):
    """Press a key and keep it down."""
    for repeat in range(times):
        page.send(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code,
            autoRepeat=repeat > 0, **({"text": key} if len(key) == 1 else {}),
        )  # fmt: skip
    page.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)


def test_keys_that_are_held_switch_once_and_step_on(playground):
    focus(playground, "body")
    slide(playground, "speed", 0)  # one per second
    hold(playground, " ", 32, 4)
    assert playground.text("#play") == "Pause"
    assert playground.evaluate("scrollY") == 0
    hold(playground, " ", 32, 2)
    assert playground.text("#play") == "Play"
    hold(playground, "d", 68, 4)
    assert session(playground, "settings.drift") is True
    before = session(playground, "time")
    hold(playground, "ArrowRight", 39, 4)
    assert session(playground, "time") == before + 4
    hold(playground, "+", 187, 4)
    assert playground.text("#speed-value") == "20 per second"
    count = len(labels(playground))
    focus(playground, "#plane")
    playground.evaluate(
        "(() => { const { points, settings, angle } = playground.session;"
        " playground.view.cursor = points.at(9, settings.noise, angle); })()"
    )
    hold(playground, "Enter", 13, 4)
    assert len(labels(playground)) == count + 1


def test_no_key_resets_from_a_control_that_sets_a_value(playground):
    advance(playground, 3)
    for control in ("#mu", "#speed", "#seed", "#show-tiles", "#tool-plus"):
        focus(playground, control)
        press(playground, "r")
        assert session(playground, "time") == 3, control
    focus(playground, "#plane")
    press(playground, "r")
    assert session(playground, "time") == 0


HIDDEN = """(() => {
  const bar = document.querySelector(".controls"), low = bar.getBoundingClientRect().bottom;
  const stuck = getComputedStyle(bar).position === "sticky", here = document.activeElement;
  if (here.matches("body, header *, .messages *, .controls *, .skip")) return false;
  const { top, height } = (here.closest("label") ?? here).getBoundingClientRect();
  return stuck && (height > innerHeight / 3 ? top + 50 < low : top < low);
})()"""


def tab_through(page, modifiers=0, times=60):
    """The names of what has the keyboard, one after the other, that bars hide."""
    hidden = []
    for _ in range(times):
        for kind in ("rawKeyDown", "keyUp"):
            page.send(
                "Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9,
                modifiers=modifiers,
            )  # fmt: skip
        if page.evaluate(HIDDEN):
            hidden.append(page.evaluate("document.activeElement.id"))
    return hidden


def stand_still(page):
    """Let nothing scroll smoothly."""
    still = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    page.send("Emulation.setEmulatedMedia", features=still)


@pytest.mark.parametrize("width", [600, 1000])
def test_no_bar_hides_what_has_the_keyboard(open_playground, width):
    page = open_playground(width=width, height=600)
    stand_still(page)
    assert tab_through(page, times=34) == []
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    focus(page, "#measure")
    assert tab_through(page, modifiers=8, times=24) == []  # Shift


def test_the_order_of_the_keyboard_is_the_order_on_the_screen(playground):
    """The panel comes after the plane, which is above it or at its left."""
    names = playground.evaluate(
        "[...document.querySelectorAll('#plane, .panel select')].map((e) => e.id)"
    )
    assert names == ["plane", "data", "rule"]
    for width in (320, 700, 1000, 1300, 1600):
        playground.resize(width, 700)
        left, top, wide, high = box(playground, ".stage-plane")
        other_left, other_top, _, _ = box(playground, ".panel")
        assert other_top >= top + high or (other_left >= left + wide and other_top == top)
