"""Results on disk: NetCDF files that are either whole or not there."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import xarray as xr

from circuits.errors import CircuitError


class ResultError(CircuitError, OSError):
    """A result that cannot be written or read."""


UNREADABLE = (OSError, ValueError, KeyError)
"""What reading a file that is damaged or of another kind raises."""


def save(dataset: xr.Dataset, path: Path) -> Path:
    """Write a data set; until it is complete the old file, or none, stays in place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        try:
            encoding = {
                key: {"zlib": True, "complevel": 1}
                for key in dataset.data_vars
                if dataset[key].size > 64
            }
            dataset.to_netcdf(name, engine="h5netcdf", encoding=encoding)
            Path(name).chmod(0o644)  # mkstemp makes files that only the owner can read
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise ResultError(f"cannot write {path}: {error.strerror or error}") from error
    return path


@contextmanager
def opened(path: Path) -> Iterator[xr.Dataset]:
    """A data set that is read from disk as far as it is used, until the block ends."""
    try:
        dataset = xr.open_dataset(path, engine="h5netcdf")
    except FileNotFoundError:
        raise ResultError(f"there is no result file {path}") from None
    except UNREADABLE as error:
        raise _not_a_result(path, error) from None
    with dataset:
        yield dataset


def load(path: Path) -> xr.Dataset:
    """Read a data set into memory."""
    with opened(path) as dataset:
        try:
            return dataset.load()
        except UNREADABLE as error:  # a file may be damaged beyond its header
            raise _not_a_result(path, error) from None


def _not_a_result(path: Path, error: Exception) -> ResultError:
    reason = str(error).partition("\n")[0]
    return ResultError(f"{path} is not a result of manifold-circuit ({reason})")


def code_revision() -> str:
    """The commit this code is at, with "+" if it was changed, or "unknown" outside a checkout."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        packages = [f":/{name}" for name in ("circuits", "simulations", "analysis")]
        changed = git("status", "--porcelain", "--untracked-files=no", "--", *packages)
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
