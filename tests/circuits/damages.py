"""A build without a compiler, and ways in which a build cache gets damaged.

A damage is a function of a build's folder. After it a circuit gives the right numbers, and no file
of others is gone. Importing this module takes no time: processes of the tests do it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from circuits.engines import cache

FACTS = {"a tiny program": 1}


def make_script(folder: Path) -> dict[str, Any]:
    """Make a program without a compiler: a script."""
    program = folder / "main"
    program.write_text("#!/bin/sh\necho fine\n")
    program.chmod(0o755)
    (folder / "static_arrays").mkdir()
    (folder / "static_arrays" / "one").write_bytes(bytes(8))
    return {"random": False}


def get_script() -> tuple[cache.Build, bool]:
    """The script from the cache, and whether it was made."""
    build, made = cache.get_build(FACTS, make_script, "a tiny program")
    assert build.interface == {"random": False}
    assert subprocess.check_output([build.program]) == b"fine\n"
    return build, made


Damage = Callable[[Path], Any]


def _array(home: Path) -> Path:
    return min((home / "static_arrays").iterdir())


def _changed(name: str, change: Callable[[bytes], bytes]) -> Damage:
    return lambda home: (home / name).write_bytes(change((home / name).read_bytes()))


def _manifest(content: bytes) -> Damage:
    return _changed("manifest.json", lambda data: content)


DAMAGES: dict[str, Damage] = {
    "program has a wrong bit": _changed("main", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
    "program missing": lambda home: (home / "main").unlink(),
    "program may not be executed": lambda home: (home / "main").chmod(0o644),
    "manifest missing": lambda home: (home / "manifest.json").unlink(),
    "manifest is a list": _manifest(b"[]"),
    "manifest truncated": _manifest(b'{"title": "a tiny program", "dig'),
    "manifest without digests": _manifest(b'{"title": "a tiny program"}'),
    "digests are numbers": _manifest(b'{"title": "a tiny program", "digests": {"main": 1}}'),
    "interface missing": lambda home: (home / "program.json").unlink(),
    "array damaged": lambda home: _array(home).write_bytes(b"\xff" * 8),
    "array missing": lambda home: _array(home).unlink(),
    "one array more": lambda home: (home / "static_arrays" / "more").touch(),
}
"""Each takes the folder of a build in a cache, and leaves it damaged."""

HARMLESS = {"one array more"}
"""After this the build is used as it is; after all others it is made again, once."""
