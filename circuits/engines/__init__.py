"""The engines that compute a Brian2 circuit: NumPy and Cython at run time, C++ standalone.

Importing this package does not import Brian2.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from circuits.engines import compiler
from circuits.errors import EngineError

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit
    from circuits.engines.engine import Engine

ENGINES = ("auto", "cpp_standalone", "cython", "numpy")
"""Names of the engines; "auto" is the fastest that works here."""


def make_engine(name: str, circuit: ManifoldCircuit) -> Engine:
    """The engine of a name, or an error that lists the names."""
    from circuits.engines.runtime import RuntimeEngine
    from circuits.engines.standalone import StandaloneEngine

    if name == "cpp_standalone":
        compiler.require_compiler()
        return StandaloneEngine(circuit)
    if name == "cython" and not (find_spec("Cython") and compiler.compiler_works()):
        raise EngineError(
            "the engine 'cython' needs Cython and a C compiler, and they do not work here: "
            "use engine='cpp_standalone' or engine='numpy'"
        )
    if name in ("cython", "numpy"):
        return RuntimeEngine(circuit, name)
    raise EngineError(f"there is no engine {name!r}: use {', '.join(ENGINES)}")


def choose_engine() -> str:
    """What "auto" means here: standalone if a compiler works, else NumPy; says which."""
    chosen = "cpp_standalone" if compiler.compiler_works() else "numpy"
    print(f"manifold-circuit: engine {chosen}", file=sys.stderr)
    return chosen
