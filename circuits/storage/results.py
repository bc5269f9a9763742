"""Results on disk: NetCDF files that are either whole or not there.

A result ends in a line with the digest of all that comes before it. A file without such a line is
read by `circuits.storage.foreign_files`.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path

import xarray as xr

from circuits.errors import shown_path
from circuits.storage import files
from circuits.storage import foreign_files as foreign
from circuits.storage.files import FileError

SEAL = re.compile(rb"\nmanifold-circuit sha256 ([0-9a-f]{64})\n")
SEAL_BYTES = 90

PACKAGES = ("circuits", "simulations", "analysis")


def save(dataset: xr.Dataset, path: Path) -> Path:
    """Write a data set; until it is complete the old file, or none, stays in place."""
    encoding = {
        key: {"zlib": True, "complevel": 1}
        for key in dataset.data_vars
        if dataset[key].size > 64 and dataset[key].dtype.kind in "fiub"
    }
    # Where a Dask client is active, xarray would ask the cluster for a lock on the memory.
    dask = sys.modules.get("dask")
    # In memory: HDF5 that meets a full disk ends in a segmentation fault.
    with dask.config.set(scheduler="threads") if dask else nullcontext():
        content = dataset.to_netcdf(engine="h5netcdf", encoding=encoding)
    digest = hashlib.sha256(content).hexdigest()
    return files.write(path, content, f"\nmanifold-circuit sha256 {digest}\n")


def is_whole(path: Path) -> bool:
    """Whether a file is a result exactly as it was written."""
    try:
        return _matches_digest(path) is True
    except OSError:
        return False


def _matches_digest(path: Path) -> bool | None:
    """Whether a file matches its digest; None if it has no digest."""
    size = path.stat().st_size - SEAL_BYTES
    if not path.is_file():  # a pipe, for example, could keep its reader waiting for ever
        raise FileError("it is not a file")
    if size < 0:
        return None
    with path.open("rb") as file:
        file.seek(size)
        seal = SEAL.fullmatch(file.read())
        if seal is None:
            return None
        file.seek(0)
        digest = hashlib.sha256()
        while part := file.read(min(size - file.tell(), 2**20)):
            digest.update(part)
    return digest.hexdigest().encode() == seal[1]


@contextmanager
def opened(path: Path) -> Iterator[xr.Dataset]:
    """A data set that is read from disk as far as it is used, until the block ends."""
    try:
        whole = _matches_digest(path)
        if whole is False:
            raise FileError("it was damaged or changed after it was written")
        dataset = xr.open_dataset(path, engine="h5netcdf") if whole else foreign.read(path)
    except FileNotFoundError:
        raise FileError(f"there is no result file {shown_path(path)}") from None
    except Exception as error:  # whatever a file of any content makes a reader raise
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0][:300]
        raise FileError(
            f"{shown_path(path)} is not a result of manifold-circuit ({reason})"
        ) from None
    with dataset:
        yield dataset


def load(path: Path) -> xr.Dataset:
    """Read a data set into memory."""
    with opened(path) as dataset:
        return dataset.load()


def is_free(path: Path, kind: str, source: Path | None = None) -> bool:
    """Whether a result of a kind may be written there: no file is, or an older one of its kind.

    ``source`` is what the result is made from, and never written over.
    """
    if not os.path.lexists(path):
        return True
    return kind_of(path) == kind and not _same(path, source)


def kind_of(path: Path) -> str | None:
    """The attribute ``kind`` of a result; None if the file is not a whole result."""
    if not is_whole(path):
        return None
    with opened(path) as dataset:
        return str(dataset.attrs.get("kind", "of no kind"))


def make_way(path: Path, kind: str, source: Path | None = None) -> None:
    """See that a result of a kind can be written without loss, before it is computed.

    A result of another kind and what the new one is made from are refused. What is not a whole
    result is set aside.
    """
    if is_free(path, kind, source):
        return
    if _same(path, source):
        raise FileError(
            f"{shown_path(path)} would be written over by what is made from it: give another --out"
        )
    other = kind_of(path)
    if other is not None:
        raise FileError(
            f"{shown_path(path)} holds another kind of result ({other}, not {kind}): move it, or "
            "give another --out"
        )
    set_aside(path)


def set_aside(path: Path) -> None:
    """Rename a file that is not a whole result, so that it can be made again; says so."""
    number, kept = 1, path.with_name(f"{path.name}.set-aside")
    while os.path.lexists(kept):
        number += 1
        kept = path.with_name(f"{path.name}.set-aside-{number}")
    try:
        path.rename(kept)
    except FileNotFoundError:
        return  # another command was quicker
    except OSError as error:
        raise FileError(
            f"{shown_path(path)} is damaged and cannot be renamed: {error.strerror or error}"
        ) from None
    print(
        f"manifold-circuit: {shown_path(path)} is damaged or of another version: kept as "
        f"{shown_path(kept.name)}",
        file=sys.stderr,
    )


def _same(path: Path, source: Path | None) -> bool:
    return source is not None and path.exists() and source.exists() and path.samefile(source)


@lru_cache
def code_revision() -> str:
    """The commit of this code, with a digest of the code where it was changed or has no commit."""
    root = Path(__file__).parents[2]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        revision = git("rev-parse", "--short=12", "HEAD")
        if not git("status", "--porcelain", "--", *PACKAGES):
            return revision
        start = f"{revision}+"
    except (OSError, subprocess.CalledProcessError):
        start = "unversioned "
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return start + digest.hexdigest()[:12]
