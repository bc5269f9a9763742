"""How a command ends when it is asked to: at once, and after tidying up."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN_SECONDS = 0.01
"""When an end that a destructor swallowed is asked for again."""

LOST_SECONDS = 0.5
"""How often an end that was asked for is looked after."""


@contextmanager
def ending_politely() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does: programs are ended, half-written files go.

    Both arrive as an exception wherever Python happens to be. Where that is a destructor or a
    callback, Python reports the exception and goes on as if nothing had been asked; where it is a
    bare ``except``, as some modules have that are being imported, nothing is left of it: then it is
    raised again a moment later, but not while it is on its way and things are tidied up.

    Where it passes through code given as text (so `namedtuple` and `dataclass` make their methods),
    CPython notes an unhandled Ctrl-C and dies of the signal in the end, whatever exit code was
    chosen since: running any other text makes it forget that.
    """
    asked: list[BaseException] = []
    inside = True
    report = sys.unraisablehook

    def ask(end: BaseException) -> None:
        if inside:  # Brian2's own handler of Ctrl-C goes on calling the one that it found
            asked[:] = [end]
            signal.setitimer(signal.ITIMER_REAL, LOST_SECONDS)
        raise end

    def interrupt(number: int, frame: Any) -> None:
        ask(KeyboardInterrupt())

    def terminate(number: int, frame: Any) -> None:
        ask(SystemExit(128 + number))

    def again(number: int, frame: Any) -> None:
        if asked and _is_handled(asked[0]):
            signal.setitimer(signal.ITIMER_REAL, LOST_SECONDS)
        elif asked:
            ask(asked[0])

    def swallowed(event: Any) -> None:
        if not isinstance(event.exc_value, KeyboardInterrupt | SystemExit):
            report(event)
            return
        asked[:] = [event.exc_value]
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)

    wanted = {signal.SIGTERM: terminate, signal.SIGALRM: again, signal.SIGINT: interrupt}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    sys.unraisablehook = swallowed
    try:
        yield
    finally:
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = report
        for number, handler in before.items():
            if signal.getsignal(number) is wanted[number]:
                signal.signal(number, handler)
        exec("")


def _is_handled(end: BaseException) -> bool:
    """Whether an exception is on its way: what runs now is an ``except`` or a ``finally`` of it."""
    current = sys.exc_info()[1]
    while current is not None and current is not end:
        current = current.__context__
    return current is end
