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
    """Import Brian2 in any thread, without the warnings of its dependencies.

    Brian2 installs a handler of SIGINT, which Python allows in the main thread alone. Imported
    elsewhere it goes without: Ctrl-C is then what it was before.
    """
    with _DOOR:
        if "brian2" in sys.modules:
            return
        install, arguments = signal.signal, sys.argv

        def install_if_allowed(number: Any, handler: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                return install(number, handler)
            return signal.getsignal(number)

        signal.signal = install_if_allowed  # type: ignore[assignment]
        # Brian2 logs the arguments as UTF-8, which file names need not be.
        sys.argv = [os.fsencode(word).decode(errors="backslashreplace") for word in arguments]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module("brian2")
        finally:
            signal.signal, sys.argv = install, arguments
