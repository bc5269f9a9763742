"""The one door through which the circuit imports Brian2."""

from __future__ import annotations

import importlib
import signal
import threading
from typing import Any

_DOOR = threading.Lock()


def import_brian2() -> None:
    """Import Brian2, in whatever thread; what needs it afterwards can import it as usual.

    Brian2 installs a handler of SIGINT when it is imported, which Python allows in the main thread
    alone. Imported elsewhere it goes without: Ctrl-C is then what it was before.
    """
    if threading.current_thread() is threading.main_thread():
        importlib.import_module("brian2")
        return
    with _DOOR:
        install, importing = signal.signal, threading.get_ident()

        def spare(number: Any, handler: Any) -> Any:
            """`signal.signal`, except in the thread that imports: there it installs nothing."""
            if threading.get_ident() != importing:
                return install(number, handler)
            return signal.getsignal(number)

        signal.signal = spare  # type: ignore[assignment]
        try:
            importlib.import_module("brian2")
        finally:
            signal.signal = install
