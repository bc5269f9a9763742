"""Reading NetCDF files that we did not write, or that are no longer what we wrote.

HDF5 trusts what it reads: a damaged file can crash it, or make it loop for ever without hearing a
signal. So a process of its own reads the file and hands over a clean copy. What goes wrong there
can be said in a sentence, and an interrupt ends it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from circuits.files import FileError

SECONDS = 60
"""Time of the processor that reading may take, and as much again for every 100 MB."""

MEMORY = 4 * 2**30
"""Room that reading may take, besides 20 times the file's size."""


SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read(path: Path) -> bytes:
    """A NetCDF file as a clean copy in memory: the same variables and attributes."""
    _require_length(path)
    root = str(Path(__file__).parents[1])
    places = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # One thread: for the others the BLAS would reserve room that counts.
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(places),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-P", "-W", "ignore", "-m", "circuits.foreign", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        try:
            content, complaint = process.communicate()
        except BaseException:
            process.kill()
            raise
    if process.returncode == 0:
        return content
    lines = complaint.decode(errors="replace").strip().splitlines()
    reason = lines[-1] if lines and process.returncode == 2 else "HDF5 fails on it"
    raise FileError(reason)


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


def _main(path: Path) -> None:
    """What the process does: read everything, and write it to stdout as NetCDF."""
    size = path.stat().st_size
    time = SECONDS + SECONDS * size // 10**8
    room = MEMORY + 20 * size
    resource.setrlimit(resource.RLIMIT_CPU, (time, time))
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    import xarray as xr

    try:
        # As it is stored: what missing values and times mean is for the reader of the copy.
        with xr.open_dataset(path, engine="h5netcdf", decode_cf=False) as dataset:
            dataset.load()
        for variable in dataset.variables.values():
            variable.encoding.clear()  # chunks and filters of the other file
        content = dataset.to_netcdf(engine="h5netcdf")
    except Exception as error:  # whatever a file of any content makes a reader raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        print(reason[:300], file=sys.stderr)
        sys.exit(2)
    sys.stdout.buffer.write(content)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
