"""The engines that compute a Brian2 circuit: NumPy and Cython at run time, C++ standalone.

Importing this package does not import Brian2.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from circuits.engines import compiler
from circuits.engines.compiler import require_compiler
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
        require_compiler()
        return StandaloneEngine(circuit)
    if name == "numpy":
        return RuntimeEngine(circuit, "numpy")
    if name == "cython":
        if not cython_works():
            raise EngineError(
                "the engine 'cython' needs Cython and a C compiler, and they do not work here: "
                "use engine='cpp_standalone' or engine='numpy'"
            )
        return RuntimeEngine(circuit, "cython")
    raise EngineError(f"there is no engine {name!r}: use {', '.join(ENGINES)}")


def cython_works() -> bool:
    """Whether Cython is there and can compile."""
    try:
        import Cython  # noqa: F401
    except ImportError:
        return False
    return compiler.compiler_works()


def choose_engine() -> str:
    """What "auto" means here: standalone if a compiler works, else NumPy; says which."""
    chosen = "cpp_standalone" if compiler.compiler_works() else "numpy"
    print(f"manifold-circuit: engine {chosen}", file=sys.stderr)
    return chosen
