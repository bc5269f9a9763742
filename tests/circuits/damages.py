"""A build without a compiler, and ways in which a build cache gets damaged.

A damage is a function of a build's folder. After it a circuit gives the right numbers, and no file
of others is gone. Importing this module takes no time: processes of the tests do it.
"""

from __future__ import annotations

import json
import os
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


def _changed(name: str, change: Callable[[bytes], bytes]) -> Damage:
    return lambda home: (home / name).write_bytes(change((home / name).read_bytes()))


def _manifest(content: bytes) -> Damage:
    return _changed("manifest.json", lambda data: content)


def _said(change: Callable[[dict[str, Any]], Any]) -> Damage:
    """A manifest that says something else."""

    def changed(data: bytes) -> bytes:
        manifest = json.loads(data)
        change(manifest)
        return json.dumps(manifest).encode()

    return _changed("manifest.json", changed)


def _arrays(change: Callable[[Path], Any]) -> Damage:
    return lambda home: change(next(iter(sorted((home / "static_arrays").iterdir()))))


def _pipe(home: Path) -> None:
    (home / "main").unlink()
    os.mkfifo(home / "main")


def _link(path: Path) -> None:
    """Something moved elsewhere, and a link to it."""
    elsewhere = path.parent / "moved"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _lock_is_a_folder(home: Path) -> None:
    (home.parent / f"{home.name}.lock").unlink(missing_ok=True)
    (home.parent / f"{home.name}.lock").mkdir()


def _read_only(home: Path) -> None:
    for path in home.rglob("*"):
        path.chmod(0o500 if path.is_dir() or path.name == "main" else 0o400)
    home.chmod(0o500)


def _read_only_and_damaged(home: Path) -> None:
    (home / "program.json").unlink()
    _read_only(home)


DAMAGES: dict[str, Damage] = {
    "program has a wrong bit": _changed("main", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
    "program missing": lambda home: (home / "main").unlink(),
    "program may not be executed": lambda home: (home / "main").chmod(0o644),
    "program is a link": lambda home: _link(home / "main"),
    "program is a pipe": _pipe,
    "manifest missing": lambda home: (home / "manifest.json").unlink(),
    "manifest is a list": _manifest(b"[]"),
    "manifest truncated": _manifest(b'{"made_by": "manifold-circuit", "tit'),
    "manifest is deep": _manifest(b'{"digests":' * 100_000 + b"1" + b"}" * 100_000),
    "manifest is huge": _manifest(b" " * (2**24) + b"{}"),
    "manifest of somebody else": _manifest(b'{"name": "app", "version": 3}'),
    "title is a number": _said(lambda said: said.update(title=3)),
    "digests are numbers": _said(
        lambda said: said.update(digests=dict.fromkeys(said["digests"], 1))
    ),
    "digest of the program missing": _said(lambda said: said["digests"].pop("main")),
    "digest outside the folder": _said(lambda said: said["digests"].update({"../x": "0"})),
    "digest of an absolute path": _said(lambda said: said["digests"].update({"/dev/zero": "0"})),
    "interface missing": lambda home: (home / "program.json").unlink(),
    "array damaged": _arrays(lambda path: path.write_bytes(b"\xff" * 8)),
    "array missing": _arrays(Path.unlink),
    "one array more": lambda home: (home / "static_arrays" / "more").touch(),
    "folder is a link": _link,
    "folder that others can write": lambda home: home.chmod(0o777),
    "folder is read-only": _read_only,
    "folder is read-only and damaged": _read_only_and_damaged,
    "lock is a folder": _lock_is_a_folder,
}
"""Each takes the folder of a build in a cache, and leaves it damaged."""

HARMLESS = {"one array more", "folder is read-only", "lock is a folder"}
"""After these the build is used as it is; after all others it is made again, once."""
