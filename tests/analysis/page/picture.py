"""The copy of the playground in docs/ and its picture: ``python -m tests.analysis.page.picture``.

Prints how fast the page is in the browser that takes the picture.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image

from simulations.playing import make_playground
from tests.analysis.page.browser import Browser

DOCS = Path(__file__).parents[3] / "docs"
PRESENTATIONS = 900
"""By then both labels have travelled along their moons."""


def take() -> None:
    """Write the page, play it for a while, and take its picture."""
    page_file = make_playground(DOCS / "playground.html", 0, [])
    picture = DOCS / "playground.png"
    browser = Browser()
    try:
        page = browser.open(page_file, width=1440, height=914)
        print(f"{page.evaluate('Math.round(playground.measure(3000))'):,} presentations per second")
        page.evaluate(
            f"(() => {{ for (let t = 1; t < {PRESENTATIONS}; t++) playground.session.next(); }})()"
        )
        page.press("ArrowRight")
        page.screenshot(picture)
    finally:
        browser.close()
    shot = Image.open(BytesIO(picture.read_bytes())).convert("RGB")
    shot.save(picture, "png", optimize=True)
    print(f"wrote {page_file.name} and {picture.name} in {DOCS.name}/")


if __name__ == "__main__":
    take()
