"""The C++ compiler: which it is, what it makes, and whether it works."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

from circuits.engines.scratch import scratch_folder
from circuits.errors import EngineError

FLAGS = ("-w", "-O3", "-ffast-math", "-fno-finite-math-only", "-march=native", "-std=c++11")
"""Compiler flags; rates that became NaN must still be seen as such."""

PROGRAM = "main"
"""Name of what is compiled from ``main.cc``."""

Command = tuple[str, ...]
"""A program and its first arguments."""


def compiler() -> Command | None:
    """The command of the C++ compiler: $CXX, or the first of g++, c++ and clang++ on the path."""
    chosen = os.environ.get("CXX", "")
    try:
        words = shlex.split(chosen)
    except ValueError as error:
        raise EngineError(
            f"CXX is {chosen!r}, which is no command ({str(error).lower()}): check its quotes"
        ) from None
    for name, *options in [words] if words else [["g++"], ["c++"], ["clang++"]]:
        if found := shutil.which(name):
            return (str(Path(found).absolute()), *options)  # it is run from another folder
    return None


def require_compiler() -> Command:
    """The command of the C++ compiler, or an error that says what to do without one."""
    found = compiler()
    if found is None:
        wanted = os.environ.get("CXX", "").strip() or "g++"
        raise EngineError(
            f"the engine 'cpp_standalone' needs a C++ compiler and {wanted!r} is not on the path: "
            "install one, set CXX, or use engine='numpy'"
        )
    return found


def toolchain() -> dict[str, Any]:
    """What shapes a program besides its sources: compiler, flags and processor."""
    command = require_compiler()
    return {"compiler": command, "version": _version(command), "flags": FLAGS, "cpu": _cpu()}


def compile_program(directory: Path) -> None:
    """Compile ``main.cc`` in ``directory`` to ``main``."""
    command = require_compiler()
    result = _said([*command, *FLAGS, "-I.", "main.cc", "-o", PROGRAM], directory)
    if result.returncode != 0:
        lines = result.stderr.splitlines()
        errors = [line for line in lines if "error" in line.lower()]
        reason = (errors or lines or ["no message"])[0]
        raise EngineError(f"{shlex.join(command)} could not compile the circuit: {reason[:500]}")


def compiler_works() -> bool:
    """Whether a program can be compiled and run here (tried once per compiler)."""
    command = compiler()
    return command is not None and _works(command)


@lru_cache
def _works(command: Command) -> bool:
    with scratch_folder() as folder:
        source = "#include <vector>\nint main() { return std::vector<int>().size(); }\n"
        (folder / "try.cc").write_text(source)
        try:
            for words in ([*command, "-std=c++11", "try.cc", "-o", "try"], [f"{folder}/try"]):
                subprocess.run(words, cwd=folder, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


@lru_cache
def _version(command: Command) -> str:
    return (_said([*command, "--version"]).stdout.splitlines() or ["unknown"])[0]


def _said(command: list[str], directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a compiler's command; what it says need not be UTF-8."""
    try:
        return subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise EngineError(
            f"the compiler {command[0]!r} cannot be started ({error.strerror}): set CXX to another"
        ) from None


@lru_cache
def _cpu() -> str:
    """The processor that -march=native means."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return hashlib.sha256("\n".join(sorted(set(wanted))).encode()).hexdigest()
