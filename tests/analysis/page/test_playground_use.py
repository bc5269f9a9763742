"""The playground in use: nothing moves under the hand, nothing is lost, everything can be read."""

from __future__ import annotations

from tests.analysis.page.test_playground import session

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
