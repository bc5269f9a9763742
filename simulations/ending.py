"""How a command ends when it is asked to: at once, and after tidying up."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN_SECONDS = 0.01
"""When an end that was swallowed is asked for again."""


@contextmanager
def ending_politely() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does: programs are ended, half-written files go.

    Both arrive as an exception wherever Python happens to be. Where that is a destructor or a
    callback, Python reports the exception and goes on as if nothing had been asked: then it is
    raised again a moment later. Where it passes through code given as text (so `namedtuple` and
    `dataclass` make their methods), CPython notes an unhandled Ctrl-C and dies of the signal in
    the end, whatever exit code was chosen since: running any other text makes it forget that.
    """
    asked: list[BaseException] = []
    report = sys.unraisablehook

    def terminate(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    def again(number: int, frame: Any) -> None:
        if asked:
            raise asked.pop()

    def swallowed(event: Any) -> None:
        if not isinstance(event.exc_value, KeyboardInterrupt | SystemExit):
            report(event)
            return
        asked[:] = [event.exc_value]
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)

    before = signal.signal(signal.SIGTERM, terminate), signal.signal(signal.SIGALRM, again)
    sys.unraisablehook = swallowed
    try:
        yield
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGALRM, before[1])
        exec("")
