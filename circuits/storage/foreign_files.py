"""Reading NetCDF files that we did not write, or that are no longer as we wrote them.

HDF5 trusts what it reads: a damaged file can crash it, or make it loop for ever without hearing a
signal. So another process, which is this file as a script, reads the file and sends what it found.
"""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

SECONDS = 60
"""Time that reading may take, and as much again for every 100 MB."""

MEMORY = 4 * 2**30

SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read(path: Path) -> xr.Dataset:
    """The variables and attributes of a NetCDF file, in memory."""
    size = path.stat().st_size
    _require_length(path, size)
    command = [sys.executable, "-P", "-W", "ignore", __file__, str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, check=True, timeout=SECONDS * (1 + size // 10**8)
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"HDF5 was not done with it after {error.timeout:g} s") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        raise OSError(lines[-1] if lines and error.returncode > 0 else "HDF5 fails on it") from None
    dataset: xr.Dataset = pickle.loads(done.stdout)
    return dataset


def _require_length(path: Path, size: int) -> None:
    """Refuse a file that is no HDF5, or not as long as it says: its end may be overwritten."""
    with path.open("rb") as file:
        head = file.read(4096)
    if SIGNATURE not in head:
        raise OSError("it is not a NetCDF-4 file")
    end = int.from_bytes(head[40:48], "little")
    if head.startswith(SIGNATURE + b"\0") and size != end:  # the version in which we write
        raise OSError(f"it is {size} bytes long and should be {end}: it was damaged")


def _main(path: str) -> None:
    """Write the contents of a file to stdout, or say in one line why that fails."""
    import xarray as xr

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY + 20 * Path(path).stat().st_size
    if soft == resource.RLIM_INFINITY:  # a few bytes may declare more than there is
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        content = pickle.dumps(xr.load_dataset(path, engine="h5netcdf", phony_dims="access"))
    except Exception as error:  # whatever a file of any content makes a reader raise
        sys.exit(str(error).strip().partition("\n")[0] or type(error).__name__)
    sys.stdout.buffer.write(content)


if __name__ == "__main__":
    _main(sys.argv[1])
