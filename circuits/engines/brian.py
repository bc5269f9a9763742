"""The one door through which the circuit imports Brian2."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import warnings
from typing import Any

_DOOR = threading.Lock()


def import_brian2() -> None:
    """Import Brian2, in whatever thread; what needs it afterwards can import it as usual.

    Brian2 installs a handler of SIGINT when it is imported, which Python allows in the main thread
    alone. Imported elsewhere it goes without: Ctrl-C is then what it was before.
    """
    if threading.current_thread() is threading.main_thread():
        _load()
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
            _load()
        finally:
            signal.signal = install


def _load() -> None:
    """Import it so that neither warnings of its dependencies nor odd arguments stop it."""
    if "brian2" in sys.modules:
        return
    arguments = sys.argv
    # It logs them to a file, as UTF-8, which file names need not be.
    sys.argv = [os.fsencode(word).decode(errors="backslashreplace") for word in arguments]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("brian2")
    finally:
        sys.argv = arguments
