"""Reading NetCDF files that we did not write, or that are no longer what we wrote.

HDF5 trusts what it reads: a damaged file can crash it, or make it loop for ever without hearing a
signal. So a process of its own reads the file and hands over what it found. What goes wrong there
can be said in a sentence, and an interrupt ends it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from circuits.storage.files import FileError

if TYPE_CHECKING:
    import xarray as xr

SECONDS = 60
"""Time of the processor that reading may take, and as much again for every 100 MB."""

MEMORY = 4 * 2**30
"""Room that reading may take, besides 20 times the file's size."""


SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read(path: Path) -> xr.Dataset:
    """The variables and attributes of a NetCDF file, in memory."""
    _require_length(path)
    root = str(Path(__file__).parents[2])
    places = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # One thread: for the others the BLAS would reserve room that counts.
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(places),
        "OPENBLAS_NUM_THREADS": "1",
    }
    size = path.stat().st_size
    limits = [str(SECONDS * (1 + size // 10**8)), str(MEMORY + 20 * size)]
    module = "circuits.storage.foreign_files"
    command = [sys.executable, "-P", "-W", "ignore", "-m", module, str(path), *limits]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        try:
            content, complaint = process.communicate()
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.returncode == 0:
        return _unpacked(content)
    lines = complaint.decode(errors="replace").strip().splitlines()
    raise FileError(lines[-1] if lines and process.returncode == 2 else "HDF5 fails on it")


def _require_length(path: Path) -> None:
    """Refuse what is no HDF5 file, or not as long as it says: a part is missing or overwritten."""
    with path.open("rb") as file:
        start, size = 0, path.stat().st_size
        while start < size:  # the signature is at 0, at 512, or twice as far and so on
            file.seek(start)
            block = file.read(64)
            if block.startswith(SIGNATURE):
                break
            start = 2 * start or 512
        else:
            raise FileError("it is not a NetCDF-4 file")
    # Where the end is written, and how wide, depends on the version of this first block.
    width, place = (block[13:14], 40) if block[8] < 2 else (block[9:10], 28)
    if width == b"\x08" and len(block) == 64:
        end = int.from_bytes(block[place : place + 8], "little")
        base = int.from_bytes(block[place - 16 : place - 8], "little")
        if size not in (end, base + end):
            raise FileError(f"it is {size} bytes long and should be {end}: it was damaged")


def _main(path: Path, seconds: int, memory: int) -> None:
    """What the process does: read everything, and write it to stdout."""
    # The kernel keeps these, whatever HDF5 does, and also if nobody waits any more.
    for what, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
        _, hard = resource.getrlimit(what)
        if hard == resource.RLIM_INFINITY or most < hard:  # the user's own may be narrower
            resource.setrlimit(what, (most, most))
    try:
        content = _packed(path)
    except Exception as error:  # whatever a file of any content makes a reader raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        print(reason[:300], file=sys.stderr)
        sys.exit(2)
    sys.stdout.buffer.write(content)


def _packed(path: Path) -> bytes:
    """All variables and attributes as arrays in an NPZ archive, which cannot hold anything else."""
    import h5netcdf

    arrays: dict[str, NDArray[Any]] = {}
    about = []

    def keep(value: Any) -> str:
        array = np.asarray(value)
        if array.dtype.kind in "OS":
            texts = [
                item.decode(errors="replace") if isinstance(item, bytes) else str(item)
                for item in array.ravel()
            ]
            array = np.array(texts, dtype=np.str_).reshape(array.shape)
        arrays[str(len(arrays))] = array
        return str(len(arrays) - 1)

    def kept(attributes: Any) -> dict[str, str]:
        return {str(name): keep(value) for name, value in attributes.items()}

    with h5netcdf.File(path, "r", phony_dims="access") as file:
        for name, variable in file.variables.items():
            value = keep(variable[...])
            about.append([name, list(variable.dimensions), value, kept(variable.attrs)])
        whole = kept(file.attrs)
    keep(json.dumps({"variables": about, "attributes": whole}))
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _unpacked(content: bytes) -> xr.Dataset:
    import xarray as xr

    with np.load(BytesIO(content), allow_pickle=False) as archive:
        arrays = dict(archive)
    about = json.loads(str(arrays[str(len(arrays) - 1)]))

    def attributes(kept: dict[str, str]) -> dict[str, Any]:
        found = {name: arrays[key] for name, key in kept.items()}
        return {name: value[()] if value.ndim == 0 else value for name, value in found.items()}

    variables = {
        name: xr.Variable(dimensions, arrays[key], attributes(kept))
        for name, dimensions, key, kept in about["variables"]
    }
    plain = {
        name: str(value) if isinstance(value, np.str_) else value
        for name, value in attributes(about["attributes"]).items()
    }
    return xr.decode_cf(xr.Dataset(variables, attrs=plain))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
