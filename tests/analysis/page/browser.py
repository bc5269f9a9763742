"""A headless Chromium, spoken to over a pipe in its DevTools protocol: no driver, no package."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
REQUIRE = "MANIFOLD_CIRCUIT_REQUIRE_BROWSER"
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic"
FLAGS += " --no-first-run --no-default-browser-check --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
# Chromium reads commands from file descriptor 3 and writes to 4, whatever is there in this process.
LAUNCH = "import os, sys; a = sys.argv; os.dup2(int(a[1]), 3); os.dup2(int(a[2]), 4); "
LAUNCH += "os.execv(a[3], a[3:])"
TIMEOUT = 60.0
CODES = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35}
CODES |= {"Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
CODES |= {"+": 187, "-": 189}
"""Windows key codes; those of letters are their capitals."""


def find_browser() -> str:
    """A Chromium or Chrome on the PATH; without one the test is skipped, or fails if required."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    message = f"no browser found: none of {', '.join(NAMES)} is on the PATH"
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{message}, and {REQUIRE}=1")
    pytest.skip(message)


def found(selector: str) -> str:
    """An element, in JavaScript."""
    return f"document.querySelector({json.dumps(selector)})"


class Browser:
    """A browser of its own, with a profile that is thrown away."""

    def __init__(self) -> None:
        executable = find_browser()
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ends = [*os.pipe(), *os.pipe()]
        # Out of the way of 3 and 4, onto which the launcher copies its two.
        moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
        for end in ends:
            os.close(end)
        theirs_in, self._out, self._in, theirs_out = moved
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-S", "-c", LAUNCH, str(theirs_in), str(theirs_out)),
                *(
                    executable,
                    *FLAGS.split(),
                    f"--user-data-dir={self._profile.name}",
                    "about:blank",
                ),
            ],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events: list[dict] = []
        self.idle: list[str] = []
        """Sessions of tabs that are free: to open another takes longer."""
        self.empty = Path(self._profile.name, "empty.html")
        self.empty.write_text("<!DOCTYPE html>")

    def send(self, method: str, session: str | None = None, **parameters):
        """Call a method and wait for its result; events that arrive meanwhile are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = self._receive(deadline, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Wait for an event."""
        deadline = time.monotonic() + TIMEOUT
        while not any(
            event["method"] == method and event.get("sessionId") == session for event in self.events
        ):
            self.events.append(self._receive(deadline, method))

    def _receive(self, deadline: float, waiting_for: str) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the browser did not answer {waiting_for} in {TIMEOUT:g} s")
            received = os.read(self._in, 1 << 20)
            if not received:
                raise ConnectionError(f"the browser ended while {waiting_for} was awaited")
            self._buffer += received
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, file: Path, fragment: str = "", **screen) -> Page:
        """A page in a free tab, by a link with a fragment if one is given."""
        return Page(self, file.resolve().as_uri() + (f"#{fragment}" if fragment else ""), **screen)

    def close(self) -> None:
        """End the browser and all its processes, and remove its profile."""
        with contextlib.suppress(OSError, RuntimeError, ConnectionError, TimeoutError):
            self.send("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with contextlib.suppress(ProcessLookupError):  # the group of the session started above
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()


class Page:
    """A tab, everything it asked for, and everything it complained about."""

    def __init__(self, browser: Browser, url: str, width: int = 1280, height: int = 900) -> None:
        self._browser = browser
        if browser.idle:
            self._session = browser.idle.pop()
        else:
            target = browser.send("Target.createTarget", url="about:blank")["targetId"]
            attached = browser.send("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.send(f"{domain}.enable")
        self.send("Page.bringToFront")  # a hidden tab draws nothing
        self.send("Emulation.setTouchEmulationEnabled", enabled=False)
        self._set_size(width, height)
        self.prefer(dark=False)
        self._go_to(url)

    def _go_to(self, url: str) -> None:
        """Load a page, and forget the events of the one before it."""
        events = self._browser.events
        events[:] = [event for event in events if event.get("sessionId") != self._session]
        self.send("Page.navigate", url=url)
        self._browser.wait_for("Page.loadEventFired", self._session)

    def prefer(self, dark: bool, forced_colors: bool = False) -> None:
        """Choose the colours of the visitor's system. Nothing scrolls smoothly."""
        features = {"prefers-color-scheme": "dark" if dark else "light"}
        features["forced-colors"] = "active" if forced_colors else "none"
        features["prefers-reduced-motion"] = "reduce"  # or places change for a while
        listed = [{"name": name, "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", features=listed)

    def send(self, method: str, **parameters):
        """Call a method of this tab."""
        return self._browser.send(method, self._session, **parameters)

    def evaluate(self, expression: str):
        """The value of a JavaScript expression; promises are awaited."""
        how = {"returnByValue": True, "awaitPromise": True}
        result = self.send("Runtime.evaluate", expression=expression, **how)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def text(self, selector: str) -> str:
        """What an element says."""
        return self.evaluate(f"{found(selector)}.textContent")

    def wait_until(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + TIMEOUT
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{expression} did not come true in {TIMEOUT:g} s")
            time.sleep(0.05)

    def attribute(self, selector: str, name: str) -> str:
        """An attribute of an element."""
        return self.evaluate(f"{found(selector)}.getAttribute({json.dumps(name)})")

    def focus(self, selector: str) -> None:
        """Give the keyboard to an element."""
        self.evaluate(f"{found(selector)}.focus()")

    def enter(self, selector: str, value: object, event: str = "change") -> None:
        """Set the value of a control as a visitor does."""
        self.evaluate(f"{found(selector)}.value = {json.dumps(value)}")
        self.evaluate(
            f"{found(selector)}.dispatchEvent(new Event('{event}', {{bubbles: true}})), 0"
        )

    def wait_for_frames(self) -> None:
        """Wait until a change of the layout is on the screen, and the page has reacted to it."""
        frame = "await new Promise((done) => requestAnimationFrame(done));"
        self.evaluate(f"(async () => {{ {frame} {frame} }})()")

    def box(self, selector: str, center: bool = False) -> list[float]:
        """Left, top, width and height of an element, scrolled to the center if so wanted."""
        element = found(selector)
        if center:
            self.evaluate(f"{element}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
            self.wait_for_frames()  # before, a click may meet what was there
        sides = "(({ left, top, width, height }) => [left, top, width, height])"
        return self.evaluate(f"{sides}({element}.getBoundingClientRect())")

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Press, release or move the left button of the mouse somewhere on the screen."""
        event = {"type": f"mouse{kind}", "button": "left", "buttons": 1, "clickCount": 1}
        self.send("Input.dispatchMouseEvent", **event, x=x, y=y)

    def stroke(self, selector: str, path: Iterable, center: bool = True) -> None:
        """Drag the mouse along places in an element, given as shares of its width and height."""
        left, top, width, height = self.box(selector, center)
        places = [(left + x * width, top + y * height) for x, y in path]
        self.mouse("Pressed", *places[0])
        for place in places[1:]:
            self.mouse("Moved", *place)
        self.mouse("Released", *places[-1])

    def touch(self, kind: str, places: Iterable[tuple[float, float]]) -> None:
        """Fingers at places on the screen, as they come, move or go."""
        points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
        self.send("Input.dispatchTouchEvent", type=f"touch{kind}", touchPoints=points)

    def click(self, selector: str, at: tuple[float, float] | None = None) -> None:
        """Click into the middle of an element, or at a place within it."""
        left, top, width, height = self.box(selector, center=True)
        x, y = at or (width / 2, height / 2)
        for kind in ("Pressed", "Released"):
            self.mouse(kind, left + x, top + y)

    def press(self, key: str, times: int = 1, modifiers: int = 0) -> None:
        """Press a key, and hold it down until it has been typed so many times."""
        typed = "\r" if key == "Enter" else key
        event = {"key": key, "code": {" ": "Space"}.get(key, key), "modifiers": modifiers}
        event["windowsVirtualKeyCode"] = CODES.get(key) or ord(key.upper())
        down = {"type": "keyDown"} | ({"text": typed} if len(typed) == 1 else {})
        for turn in range(times):
            self.send("Input.dispatchKeyEvent", **event, **down, autoRepeat=turn > 0)
        self.send("Input.dispatchKeyEvent", **event, type="keyUp")

    def resize(self, width: int, height: int) -> None:
        """Make the screen so many CSS pixels large, and wait until the page fits it."""
        self._set_size(width, height)
        self.wait_for_frames()

    def _set_size(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def screenshot(self, file: Path) -> None:
        """Save what is seen."""
        image = self.send("Page.captureScreenshot")
        file.write_bytes(base64.b64decode(image["data"]))

    def _events(self, method: str):
        return [
            event["params"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] == method
        ]

    @property
    def complaints(self) -> list[dict]:
        """Exceptions, console errors and warnings, violations of the page's own policy."""
        self.evaluate("0")  # what has happened by now has been reported before this answer
        logged = self._events("Runtime.consoleAPICalled")
        return [
            *self._events("Runtime.exceptionThrown"),
            *(entry for entry in logged if entry["type"] in ("error", "warning", "assert")),
            *(entry["entry"] for entry in self._events("Log.entryAdded")),
        ]

    @property
    def requests(self) -> list[str]:
        """Addresses the page asked for."""
        self.evaluate("0")
        return [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    def close(self) -> None:
        """Leave the page, and the tab to the next one."""
        self._go_to(self._browser.empty.as_uri())
        self._browser.idle.append(self._session)
