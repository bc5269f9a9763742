"""Result files that are damaged in every way a disk can think of."""

from __future__ import annotations

import io
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from analysis.page import write_report
from circuits.storage import results
from simulations import sweep
from simulations.experiments import get_experiment
from tests.soak.row import Row

NAME = "square-balance"
SETTINGS = {"n_points": 200, "label_after": 50}
SEEDS = [0, 1, 2]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Content with a random fault: bits, blocks, the end, or all of it."""
    data = bytearray(content)
    kind = rng.randrange(8)
    if kind == 0:
        for _ in range(rng.choice([1, 2, 100])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind in (1, 2):
        start, length = rng.randrange(len(data)), rng.choice([1, 512, 4096])
        block = bytes(length) if kind == 1 else rng.randbytes(length)
        data[start : start + length] = block[: len(data) - start]
    elif kind == 3:
        del data[rng.randrange(len(data)) :]
    elif kind == 4:
        start = rng.randrange(len(data))
        del data[start : start + rng.choice([1, 512, 4096])]
    elif kind == 5:
        data[rng.randrange(len(data)) :] = bytes(len(data) // 2)
    elif kind == 6:
        data += rng.randbytes(rng.choice([1, 90, 4096]))
    else:
        data = bytearray(rng.choice([b"", b"text", rng.randbytes(5000), data[::-1]]))
    return bytes(data)


def damaged_results(count: int, folder: Path, seed: int = 0) -> Row:
    """Damage one of three finished runs, look at it, go on, report: ``count`` times."""
    row = Row("damaged result files: read, resumed, reported")
    rng = random.Random(seed)
    config = get_experiment(NAME).config("exact", SETTINGS)
    words = io.StringIO()
    with redirect_stderr(words), redirect_stdout(words):
        expected, _ = sweep.run_experiment(config, SEEDS, folder)
        while row.tried < count:
            path = sweep.job_path(folder, NAME, rng.choice(SEEDS))
            if rng.random() < 0.1:
                path = folder / f"{NAME}.nc"
            content = path.read_bytes()
            fault = damaged(content, rng)
            if fault == content:
                continue
            original = results.load(path)
            path.write_bytes(fault)
            row.tried += 1
            _read(path, original, row)
            if row.tried % 10 == 0:
                page = write_report(folder)
                if path.relative_to(folder).as_posix() not in page.read_text(encoding="utf-8"):
                    row.hush(f"report does not name {path.name}")
            words.seek(0)
            words.truncate()
            merged, _ = sweep.run_experiment(config, SEEDS, folder)
            row.compare(merged, expected, path.name)
            kept = path.with_name(f"{path.name}.set-aside")
            if not kept.exists() or kept.read_bytes() != fault:
                row.lose(f"{path.name} was not kept")
            elif f"{path} is damaged or of another version" not in words.getvalue():
                row.hush(f"{path.name} was set aside in silence")
            kept.unlink(missing_ok=True)
            if not all(map(results.is_whole, [path, folder / f"{NAME}.nc"])):
                row.lose(f"{path.name} was not made again")
    return row


def _read(path: Path, original: object, row: Row) -> None:
    """A damaged file is refused, unless only its digest is damaged and all else is as it was."""
    try:
        found = results.load(path)
    except results.FileError:
        return
    if not found.identical(original):
        row.hush(f"{path.name} was read with other contents")
