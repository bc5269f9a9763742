"""Results on disk: whole files are read, damaged ones are noticed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
import xarray as xr

from circuits.storage import foreign_files as foreign
from circuits.storage import results
from circuits.storage.files import FileError
from tests.refusing import refused
from tests.soak import processes


@pytest.fixture
def dataset():
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {
            "rates": (("time", "cell"), rng.normal(size=(50, 4))),
            "whole": ("time", np.arange(50)),
            "known": ("time", np.arange(50) % 2 == 0),
            "names": ("cell", np.array(["a", "é", "", "long name"])),
            "gaps": ("time", np.where(np.arange(50) % 7, 1.5, np.nan)),
        },
        coords={"cell": [2, 3, 5, 7]},
        attrs={"kind": "test", "text": "words\nin lines", "number": 3, "list": [1.5, 2.5]},
    )


def test_a_result_is_read_as_it_was_written_by_us_and_by_others(tmp_path, dataset):
    path = results.save(dataset, tmp_path / "a.nc")
    assert results.is_whole(path)
    assert results.load(path).identical(dataset)
    with results.opened(path) as found:
        assert found.identical(dataset)
    nowhere = tmp_path / "b.nc"
    refused(lambda: results.load(nowhere), "b.nc", FileError)
    nowhere.write_bytes(b"not a result")
    for read in (results.load, lambda path: results.opened(path).__enter__()):
        refused(lambda read=read: read(nowhere), "b.nc is not a result", FileError)
    for engine in (None, "h5netcdf"):
        with xr.open_dataset(path, engine=engine) as found:
            assert found.identical(dataset)


def test_every_flipped_bit_and_every_missing_end_is_noticed(tmp_path, dataset):
    path = results.save(dataset, tmp_path / "a.nc")
    content = path.read_bytes()
    body = len(content) - results.SEAL_BYTES
    rng = np.random.default_rng(1)
    for place in [0, body - 1, *rng.integers(body, size=60)]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        assert not results.is_whole(path)
        refused(lambda: results.load(path), "damaged", FileError)
    for length in [0, 1, 89, 90, 500, body - 1, body + 1, len(content) - 1]:
        path.write_bytes(content[:length])
        refused(lambda: results.load(path), "should be|not a NetCDF-4 file", FileError)
    # With the blocks at its end overwritten it has no digest, and is longer than it says.
    path.write_bytes(content[: body - 200] + bytes(290))
    refused(lambda: results.load(path), "should be", FileError)
    path.write_bytes(content[:body])  # exactly the digest is missing: the data are whole
    assert results.load(path).identical(dataset)


def test_files_of_others_are_read_as_they_are(tmp_path):
    path = tmp_path / "foreign.nc"
    times = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]")
    known = xr.Dataset({"t": ("t", times), "k": ("t", [1.0, np.nan], {"units": "K"})})
    known["k"].encoding = {"_FillValue": -9.0, "dtype": "float32"}
    known.to_netcdf(path, engine="h5netcdf")
    found = results.load(path)
    assert (found["t"].values == times).all()
    assert found["k"].values[0] == 1
    assert np.isnan(found["k"].values[1])
    # Versions of the file format, and a block for users before what is HDF5's.
    for version, block in (("earliest", 512), ("latest", 2048)):
        with h5py.File(path, "w", libver=version, userblock_size=block) as file:
            file["points"] = np.arange(6.0).reshape(3, 2)
        assert (results.load(path)["points"].values == np.arange(6.0).reshape(3, 2)).all()
    (tmp_path / "folder.nc").mkdir()
    os.mkfifo(tmp_path / "pipe.nc")
    for name in ("folder.nc", "pipe.nc"):
        refused(lambda n=name: results.load(tmp_path / n), "not a file", FileError)


def endless(path):
    """A file on which HDF5 loops for ever: the size of an object in a heap of texts is wrong."""
    text = b"text" * 5
    dataset = xr.Dataset(
        {f"v{i}": (("t", "x"), np.ones((20, 4))) for i in range(6)},
        attrs={f"a{i}": text.decode() for i in range(9)},
    )
    content = bytearray(dataset.to_netcdf(engine="h5netcdf"))
    size = content.rindex(text) - 8
    assert content[size] == len(text)
    content[size] = 255
    path.write_bytes(content)


def test_a_file_that_never_ends_is_given_up(tmp_path, monkeypatch):
    endless(tmp_path / "a.nc")
    monkeypatch.setattr(foreign, "SECONDS", 1)
    refused(lambda: results.load(tmp_path / "a.nc"), "HDF5", FileError)


INTERRUPTED = """
import sys
from pathlib import Path
from circuits.storage import results
try:
    results.load(Path(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_reading(tmp_path):
    endless(tmp_path / "a.nc")
    command, mark = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "a.nc")], str(tmp_path)
    marked = processes.environment(**{processes.MARK: mark})
    with subprocess.Popen(command, env=marked, stdout=subprocess.PIPE, text=True) as process:
        while len(processes.running(mark)) < 2:  # until the second one reads
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)  # until the first one knows that it has started it
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    assert not processes.left_after(mark, 10)


def test_places_are_given_to_results_of_one_kind_only(tmp_path, dataset, capsys):
    path = results.save(dataset, tmp_path / "a.nc")
    assert results.is_free(tmp_path / "other.nc", "test")
    assert results.is_free(path, "test")
    assert not results.is_free(path, "test", source=path)
    refused(lambda: results.make_way(path, "test", source=path), "a.nc", FileError)
    refused(lambda: results.make_way(path, "merged"), "test, not merged", FileError)
    results.make_way(path, "test")
    assert path.exists()
    for number in range(3):
        path.write_bytes(b"damaged")
        results.make_way(path, "test")
        assert not path.exists()
        kept = path.with_name("a.nc.set-aside" + (f"-{number + 1}" if number else ""))
        assert kept.read_bytes() == b"damaged"
        assert f"kept as {kept.name}" in capsys.readouterr().err


def test_code_that_was_changed_is_another(tmp_path, monkeypatch):
    """In a checkout with changes, and without any version control."""
    for package in results.PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "module.py").write_text("pass")
    (tmp_path / "circuits" / "storage").mkdir()
    monkeypatch.setattr(results, "__file__", str(tmp_path / "circuits" / "storage" / "results.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    def revision(change: str = "") -> str:
        with (tmp_path / "analysis" / "module.py").open("a") as file:
            file.write(change)
        return results.code_revision.__wrapped__()

    first = revision()
    assert first.startswith("unversioned ")
    (tmp_path / "circuits" / "__pycache__").mkdir()
    (tmp_path / "circuits" / "__pycache__" / "module.pyc").touch()
    assert revision() == first
    assert revision("# changed") != first
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], check=True)
    committed = revision()
    assert re.fullmatch("[0-9a-f]{12}", committed)
    one, other = revision("# once more"), revision("# and more")
    assert len({committed, one, other}) == 3
    assert one.startswith(f"{committed}+")
