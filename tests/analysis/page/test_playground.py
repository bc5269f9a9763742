"""The playground, as a visitor's browser shows it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from simulations.datasets import ARCS_LIFT, _on_arc
from simulations.experiments import get_experiment
from tests.analysis.page.test_report import overflow

SHOWN = ("plane", "accuracy", "h-trace", "u-trace", "v-trace", "h-bars", "v-map", "w-bars")
SLIDERS = {
    "n_tiles": 40,
    "tile_radius": 0.28,
    "mu": 1000,
    "learning_rate": 0.005,
    "recruit_below": 0.5,
    "gain": "control",
    "steps_per_presentation": 80,
    "noise": 0.05,
    "readout_rate": "running_mean",
}
KEYS = {" ": 32, "ArrowRight": 39, "ArrowLeft": 37, "ArrowUp": 38, "Enter": 13, "Tab": 9}
KEYS |= {"Escape": 27}


def pictures(page):
    found = page.evaluate(
        "[...document.querySelectorAll('canvas')].map((c) => [c.id, c.toDataURL()])"
    )
    return dict(found)


def session(page, expression):
    return page.evaluate(f"playground.session.{expression}")


def advance(page, count):
    """Let some points pass, and what is due be drawn."""
    page.evaluate(f"(() => {{ for (let t = 1; t < {count}; t++) playground.session.next(); }})()")
    page.click("#step")


def press(page, key):
    page.press(key, KEYS.get(key) or ord(key.upper()))


def focus(page, selector):
    page.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")


def labels(page):
    return dict(page.evaluate("[...playground.session.labels]"))


def place_of(page, point):
    """Where a data point is on the plane, in pixels."""
    at = f"playground.session.points.at({point}, playground.session.settings.noise, 0)"
    return tuple(page.evaluate(f"playground.place({at})"))


def slide(page, name, value):
    page.evaluate(
        f"(() => {{ const s = document.querySelector('#{name}'); s.value = {value};"
        " s.dispatchEvent(new Event('input', {bubbles: true})); })()"
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
    for name in ("data", "rule"):
        options = playground.evaluate(f"[...document.querySelector('#{name}')].map((o) => o.value)")
        for value in options:
            playground.evaluate(
                f"(() => {{ const s = document.querySelector('#{name}'); s.value = '{value}';"
                " s.dispatchEvent(new Event('change', {bubbles: true})); })()"
            )
            if value != "own":
                playground.click("#step")
    for name in (*SLIDERS, "speed"):
        for end in ("min", "max"):
            slide(playground, name, f"Number(s.{end})")
    playground.click("#play")
    page_address = playground_file.as_uri()
    assert playground.complaints == []
    assert {url.partition("#")[0] for url in playground.requests} <= {page_address, "data:,"}


def test_file_names_nothing_outside_itself(playground_file):
    text = playground_file.read_text(encoding="utf-8")
    assert "http" not in text.replace("http-equiv", "")
    links = re.findall(r'<[^>]*\b(?:src|href)="([^"]*)"', text)
    assert links
    assert all(link.startswith(("data:", "#")) for link in links)
    assert str(playground_file.parent) not in text


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
    first = playground.evaluate("[...playground.session.circuit.W]")
    playground.click("#reset")
    assert playground.text("#count") == "0"
    advance(playground, count)
    assert playground.evaluate("[...playground.session.circuit.W]") == first  # the same stream


def test_speed_holds_and_the_fastest_is_faster(playground):
    assert playground.text("#speed-value") == "100 per second"
    slide(playground, "speed", 99)
    assert playground.text("#speed-value") == "as fast as possible"
    playground.click("#play")
    playground.wait_until("/^[1-9]/.test(document.querySelector('#per-second').textContent)")
    playground.click("#play")
    for key, text in (("-", "1000 per second"), ("-", "500 per second"), ("+", "1000 per second")):
        press(playground, key)
        assert playground.text("#speed-value") == text


def test_it_learns_the_moons_and_shows_it(playground):
    advance(playground, 1500)
    assert float(playground.text("#share")) > 0.98
    share = session(playground, "history.share")
    assert share[0] < 0.5
    assert share[-1] > 0.98
    assert "right" in playground.text("#share-name")
    for name in SHOWN:
        label = playground.evaluate(f"document.querySelector('#{name}').getAttribute('aria-label')")
        assert label
    w, classes = np.array(playground.evaluate("[...playground.session.circuit.w]")), []
    for tile in range(40):
        center = session(playground, f"circuit.centerOf({tile}, [0, 0])")
        near = session(playground, f"points.nearest({center}, 0, 0)[0]")
        classes.append(session(playground, f"points.classes[{near}]"))
    assert (np.sign(w) == classes).all()


# What can be changed


def test_rates_change_live_and_shapes_begin_anew(playground):
    advance(playground, 50)
    values = {"mu": 50, "learning_rate": 80, "recruit_below": 0.7, "gain": 60, "noise": 0.1}
    for name, position in (values | {"steps_per_presentation": 120, "readout_rate": 30}).items():
        slide(playground, name, position)
        assert session(playground, "time") == 50
    p = session(playground, "circuit.p")
    assert (p["steps"], p["least"]) == (120, pytest.approx(0.7 * (1 - p["alpha"])))
    assert p["mu"] == [session(playground, "settings.mu")] != [1000]
    assert p["gain"] == session(playground, "settings.gain") > 1
    assert p["rate"] == session(playground, "settings.readout_rate") < 1
    assert p["eta"] == session(playground, "settings.learning_rate") != 0.005
    playground.click("#step")
    assert session(playground, "time") == 51
    for name, value in (("n_tiles", 25), ("tile_radius", 0.5)):
        advance(playground, 5)
        slide(playground, name, value)
        assert session(playground, "time") == 0
        assert playground.text(f"#{name}-value") == str(value)
        assert "↺" in playground.text(f"label[for={name}]")
    assert session(playground, "circuit.p.m") == 25
    assert "↺" not in playground.text("label[for=mu]")
    advance(playground, 5)
    playground.evaluate(
        "(() => { const s = document.querySelector('#rule'); s.value = 'gated';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert session(playground, "time") == 0
    assert session(playground, "circuit.p.gated") is True
    assert session(playground, "circuit.p.rate") == 0.9


def test_rates_that_diverge_are_said_and_nothing_is_learned(open_playground):
    page = open_playground("n_tiles=5&tile_radius=1")
    advance(page, 100)
    before = page.evaluate("[...playground.session.circuit.W]")
    slide(page, "gain", 101)
    page.click("#play")
    page.wait_until("document.querySelector('#play').textContent === 'Play'")
    assert "The rates diverged at presentation 100" in page.text("#notice")
    assert page.evaluate("[...playground.session.circuit.W]") == before
    slide(page, "gain", 0)
    page.click("#step")
    assert page.text("#notice") == ""
    assert page.text("#count") == "101"
    assert page.complaints == []


def test_seed_and_data_give_other_points(playground):
    points = session(playground, "points.base")
    playground.evaluate(
        "(() => { const s = document.querySelector('#seed'); s.value = '5';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    other = session(playground, "points.base")
    assert points != other
    playground.evaluate(
        "(() => { const s = document.querySelector('#seed'); s.value = '-1';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert "whole number from 0 to 4294967295" in playground.text("#notice")
    assert session(playground, "points.base") == other


@pytest.mark.parametrize("name", ["moons", "arcs", "square", "ring"])
def test_points_are_where_their_data_set_has_them(open_playground, name):
    page = open_playground(f"data={name}&noise=0&seed=11")
    points = np.array(session(page, "points.base"))
    classes = np.array(session(page, "points.classes"))
    assert len(points) == 400
    if name == "moons":
        centers = np.where(classes[:, None] > 0, (1.0, 0.5), (0.0, 0.0))
        assert np.linalg.norm(points - centers, axis=1) == pytest.approx(1, abs=1e-12)
        assert (classes * (points - centers)[:, 1] <= 0).all()
    elif name == "arcs":
        dense = np.linspace(0, 1, 20_001)
        for label in (-1, 1):
            arc = _on_arc(dense, np.full(dense.shape, label))
            own = points[classes == label]
            away = np.linalg.norm(own[:, None] - arc[None], axis=2)
            assert away.min(axis=1).max() < 2.30 / 20_000  # between two points of the dense arc
            along = np.sort(dense[away.argmin(axis=1)])
            # Uniform in length: Kolmogorov's distance, whose 99.9 % for 200 points is 0.14.
            assert np.abs(along - (np.arange(200) + 0.5) / 200).max() < 0.14
        assert session(page, "scene.radius") == ARCS_LIFT.radius
    elif name == "square":
        assert points.min() >= 0
        assert points.max() <= 1
        assert np.array_equal(classes, np.where(points.sum(axis=1) > 1, 1, -1))
        assert np.abs(points.mean(axis=0) - 0.5).max() < 0.06  # four standard errors
    else:
        radius = np.linalg.norm(points, axis=1)
        assert radius[classes > 0] == pytest.approx(1, abs=1e-12)
        assert radius[classes < 0].max() <= 0.35
    assert {-1, 1} == set(classes)
    page.evaluate("playground.session.settings.noise = 0.1")
    noisy = np.array(page.evaluate("playground.session.points.base.map((_, i) =>"
                                   " playground.session.points.at(i, 0.1, 0))"))  # fmt: skip
    # The standard deviation of 800 numbers is known to 2.5 %; four times that.
    assert (noisy - points).std() == pytest.approx(0.1, rel=0.1)


def test_random_numbers_are_uniform_and_of_their_seed(playground):
    def numbers(seed, stream=0):
        return np.array(
            playground.evaluate(
                f"(() => {{ const r = playground.generator({seed}, {stream});"
                " return Array.from({length: 20000}, () => r.uniform()); })()"
            )
        )

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
    focus(playground, "body")
    press(playground, "l")
    playground.click("#plane", place_of(playground, point))
    assert labels(playground) == {point: -1}
    playground.click("#plane", place_of(playground, point))
    assert labels(playground) == {}
    playground.click("#plane", (3, 3))
    assert labels(playground) == {}
    assert "no point near" in playground.text("#notice")


def test_a_click_lesions_a_tile_for_ever(playground):
    advance(playground, 400)
    playground.click("#tool-lesion")
    at = tuple(
        playground.evaluate("playground.place(playground.session.circuit.centerOf(4, [0, 0]))")
    )
    before = pictures(playground)["plane"]
    playground.click("#plane", at)
    lesioned = playground.evaluate("[...playground.session.circuit.lesioned]")
    assert [tile for tile, out in enumerate(lesioned) if out] == [4]
    assert pictures(playground)["plane"] != before
    used = session(playground, "circuit.inUse")
    assert playground.text("#tiles-used") == f"{used - 1} of 40"
    advance(playground, 300)
    assert session(playground, "circuit.h[4]") == 0


def test_points_of_ones_own_are_drawn_and_cleared(open_playground):
    playground = open_playground("data=own")
    assert playground.evaluate("document.querySelector('#tool-draw').checked")
    assert session(playground, "points.count") == 0
    playground.click("#play")
    assert "no points yet" in playground.text("#notice")
    box = playground.evaluate(
        "(() => { const b = document.querySelector('#plane').getBoundingClientRect();"
        " return [b.left, b.top, b.width, b.height]; })()"
    )
    path = [(0.3, 0.4), (0.4, 0.6), (0.6, 0.6), (0.7, 0.4)]
    for kind, (x, y) in zip(
        ("mousePressed", "mouseMoved", "mouseMoved", "mouseMoved", "mouseReleased"),
        [*path, path[-1]],
        strict=True,
    ):
        playground.send(
            "Input.dispatchMouseEvent", type=kind, x=box[0] + x * box[2], y=box[1] + y * box[3],
            button="left", buttons=1, clickCount=1,
        )  # fmt: skip
    drawn = np.array(session(playground, "points.base"))
    assert len(drawn) > 20
    assert np.linalg.norm(np.diff(drawn, axis=0), axis=1).max() < 0.1  # no gaps
    focus(playground, "body")
    press(playground, "l")
    playground.click("#plane", place_of(playground, 5))
    assert list(labels(playground).values()) == [1]
    advance(playground, 600)
    assert playground.text("#share-name") == "decided"
    assert float(playground.text("#share")) > 0.95
    assert playground.text("#clear") == "Clear points"
    playground.click("#clear")
    assert session(playground, "points.count") == 0
    assert playground.complaints == []


def test_a_finger_draws(open_playground):
    page = open_playground(width=360, height=740)
    page.send("Emulation.setTouchEmulationEnabled", enabled=True)
    page.click("#tool-draw")
    left, top = page.evaluate(
        "(() => { const e = document.querySelector('#plane');"
        " e.scrollIntoView({block: 'center', behavior: 'instant'});"
        " const b = e.getBoundingClientRect(); return [b.left, b.top]; })()"
    )
    for kind, place in (
        ("touchStart", [(100, 100)]),
        ("touchMove", [(150, 200)]),
        ("touchMove", [(200, 120)]),
        ("touchEnd", []),
    ):
        points = [{"x": left + x, "y": top + y} for x, y in place]
        page.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    page.wait_until("playground.session.points.count > 20")
    assert page.complaints == []


def test_drift_turns_the_data_and_recycles_tiles(playground):
    before = session(playground, "points.at(7, 0, 0)")
    playground.click("#drift")
    assert session(playground, "settings.recycle") is True
    advance(playground, 500)
    angle = session(playground, "angle")
    assert angle == pytest.approx(500 * 2 * np.pi * 2.0 / 10_000)
    turned = np.array(session(playground, f"points.at(7, 0, {angle})")) - (0.5, 0.25)
    old = np.array(before) - (0.5, 0.25)
    assert turned[0] + 1j * turned[1] == pytest.approx(
        (old[0] + 1j * old[1]) * np.exp(1j * angle), abs=1e-12
    )
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
    # To 1/4095 of the box.
    corners = session(page, "points.base[0]")
    assert corners == [-1.6, -1.2]
    assert page.complaints == again.complaints == []


def test_a_place_in_the_page_is_no_link(open_playground):
    page = open_playground("plane")
    assert page.text("#notice") == ""
    assert page.text("#n_tiles-value") == "40"
    advance(page, 3)
    page.evaluate("location.hash = ''")
    page.evaluate("location.hash = 'plane'")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert page.complaints == []


def test_a_link_in_the_same_page_is_followed(playground):
    playground.click("nav a:nth-child(2)")
    playground.wait_until("playground.session.settings.drift")
    assert session(playground, "settings.readout_rule") == "gated"
    assert session(playground, "settings.n_tiles") == 80
    assert playground.text("#notice") == ""
    for place in range(1, 7):
        playground.click(f"nav a:nth-child({place})")
        assert playground.text("#notice") == ""


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("data=torus", "data must be moons, arcs, square, ring or own, got “torus”"),
        ("n_tiles=4", "n_tiles must be a whole number from 5 to 200, got “4”"),
        ("n_tiles=12.5", "whole number"),
        ("mu=", "mu must be a number from 0.1 to 10000, got “”"),
        ("mu=1e9", "mu must be a number"),
        ("noise=0.3", "noise must be a number from 0 to 0.2"),
        ("gain=high", "gain must be a number"),
        ("mu=1&mu=2", "mu is given twice"),
        ("nothing", "“nothing” is no setting"),
        ("volume=11", "there is no setting “volume”"),
        ("labels=1p.9999m", "there is no label “9999m”"),
        ("labels=<b>", "there is no label “<b>”"),
        ("data=own&points=AAA", "its points cannot be read"),
        ("data=own&points=%21%21%21%21", "its points cannot be read"),
        ("seed=%E0%A4%A", "cannot be read"),
        ("seed=-1", "seed must be a whole number"),
        ("drift=yes", "drift must be 0 or 1"),
        ("speed=7", "speed must be 1, 2, 5"),
        ("readout_rule=gated&readout_rate=running_mean", "needs a readout_rate that is a number"),
    ],
)
def test_a_damaged_link_is_said_and_the_defaults_are_there(open_playground, fragment, words):
    page = open_playground(fragment)
    notice = page.text("#notice")
    assert notice.startswith("This link is damaged: ")
    assert words in notice
    assert notice.endswith("The page starts with its defaults.")
    assert session(page, "settings.n_tiles") == 40
    assert len(labels(page)) == 2
    page.click("#step")
    assert page.text("#count") == "1"
    assert page.complaints == []


# Keyboard, screens, colours


def test_keys_do_what_buttons_do(playground):
    focus(playground, "body")
    press(playground, "ArrowRight")
    press(playground, "ArrowRight")
    assert playground.text("#count") == "2"
    press(playground, " ")
    assert playground.text("#play") == "Pause"
    press(playground, " ")
    assert playground.text("#play") == "Play"
    press(playground, "r")
    assert playground.text("#count") == "0"
    tool = "document.querySelector('input[name=tool]:checked').value"
    for key, name in (("l", "minus"), ("l", "plus"), ("x", "lesion"), ("p", "draw")):
        press(playground, key)
        assert playground.evaluate(tool) == name
    for wanted in (True, False):
        press(playground, "d")
        assert session(playground, "settings.drift") is wanted
    press(playground, "c")
    assert "data=moons" in playground.evaluate("document.querySelector('#link').value")
    listed = playground.text(".keys")
    assert all(word in listed for word in ("Space", "→", "play", "label", "lesion", "drift"))


def test_keys_that_a_control_needs_are_left_to_it(playground):
    focus(playground, "#n_tiles")
    press(playground, "ArrowRight")
    assert session(playground, "settings.n_tiles") == 41
    assert playground.text("#count") == "0"
    focus(playground, "#reset")
    press(playground, " ")
    assert playground.text("#play") == "Play"
    focus(playground, "#data")
    press(playground, "r")  # the data that begin with r
    assert session(playground, "settings.data") == "ring"


def test_a_label_can_be_given_by_keyboard(playground):
    playground.click("#clear")
    focus(playground, "#plane")
    press(playground, "ArrowUp")
    for _ in range(20):
        if len(labels(playground)):
            break
        press(playground, "ArrowLeft")
        press(playground, "Enter")
    assert list(labels(playground).values()) == [1]
    assert playground.text("#count") == "0"


def test_everything_can_be_reached_by_keyboard_and_has_a_name(playground):
    wanted = ["play", "step", "reset", "speed", "drift", "recycle", "copy"]
    wanted += ["show-answer", "show-tiles", "show-points", "tool-plus", "clear", "plane"]
    wanted += ["data", "seed", "rule", *SLIDERS, "measure"]
    reached: list[str] = []
    while "measure" not in reached and len(reached) < 99:
        press(playground, "Tab")
        reached.append(playground.evaluate("document.activeElement.id"))
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        if not reached[-1].startswith("tool-"):  # its label has the outline
            assert playground.evaluate(outline) == "solid", reached[-1]
    assert [name for name in reached if name in wanted] == wanted
    tree = playground.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "slider", "image", "combobox", "radio", "checkbox", "spinbutton", "link"}
    nodes = [n for n in tree if not n["ignored"] and n["role"]["value"] in roles]
    assert {n["role"]["value"] for n in nodes} >= roles
    assert [n for n in nodes if not n["name"]["value"]] == []


@pytest.mark.parametrize("dark", [False, True])
def test_small_screens_and_dark_ones(open_playground, dark):
    page = open_playground(width=360, height=740, dark=dark)
    page.click("#copy")
    advance(page, 30)
    page.click("#copy")
    for width in (360, 600, 900, 1280):
        page.resize(width, 740)
        assert page.evaluate("innerWidth") == width
        assert [entry for entry in overflow(page) if entry != 0] == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", background)))
    assert light < 120 if dark else light > 600
    ink = page.evaluate(
        "(() => { const c = document.querySelector('#plane'); const [x, y] = playground.place("
        "playground.session.points.at([...playground.session.labels.keys()][0],"
        " playground.session.settings.noise, 0)); const s = c.width / c.clientWidth;"
        " return [...c.getContext('2d').getImageData((x - 5) * s, (y - 2) * s, 1, 1).data]; })()"
    )
    assert (sum(ink[:3]) > 400) is dark  # the label's diamond has the colour of ink
    assert page.complaints == []


def test_what_is_drawn_is_the_circuit(playground):
    """The plane's colours at points of either moon are those of their signs."""
    advance(playground, 1500)
    for name in ("tiles", "points"):
        playground.click(f"#show-{name}")
    colours = playground.evaluate(
        "[[0, 1], [1, -0.5], [-1.3, 1.3]].map((point) => {"
        " const c = document.querySelector('#plane'); const s = c.width / c.clientWidth;"
        " const [x, y] = playground.place(point);"
        " return [...c.getContext('2d').getImageData(x * s, y * s, 1, 1).data]; })"
    )
    (red, _, blue, _), (other_red, _, other_blue, _), (*_, none) = colours
    assert blue > red
    assert other_red > other_blue
    assert none == 0
