"""The paper's figures by name, made from result files only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

from analysis.figures.captions import caption_of
from analysis.holdings import damage, lacking
from analysis.kinds import FIGURES, Kind, content_at_fault, drawn
from circuits.errors import InputError
from circuits.storage import files, results
from circuits.storage.files import FileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def available(directory: Path) -> list[str]:
    """The figures whose results are all in a folder."""
    return [
        name
        for name, kind in FIGURES.items()
        if all((directory / f"{experiment}.nc").is_file() for experiment in kind.experiments)
    ]


def _kind(name: str) -> Kind:
    if name not in FIGURES:
        raise InputError(f"there is no figure {name!r}: use {', '.join(FIGURES)}")
    return FIGURES[name]


@contextmanager
def open_results(name: str, directory: Path) -> Iterator[list[xr.Dataset]]:
    """The results a figure needs, read from disk as far as they are used."""
    kind = _kind(name)
    with ExitStack() as stack:
        yield [
            stack.enter_context(_opened(directory / f"{experiment}.nc", experiment, needs))
            for experiment, needs in zip(kind.experiments, kind.needs, strict=True)
        ]


@contextmanager
def _opened(path: Path, experiment: str, needs: tuple[str, ...]) -> Iterator[xr.Dataset]:
    """A result that holds what is needed; an error that says how to make it where not."""
    again = f"'manifold-circuit run {experiment}' makes it"
    with ExitStack() as stack:
        try:
            result = stack.enter_context(results.opened(path))
        except FileError as error:
            raise FileError(f"{error}: {again}") from None
        if absent := lacking(result, needs):
            raise InputError(
                f"{path} holds no {absent[0]!r} and is of another version or experiment: {again} "
                "anew"
            )
        if wrong := damage(result, needs):
            raise InputError(f"{path} is damaged, {wrong}: {again} anew")
        yield result


def make_figure(name: str, directory: Path) -> Figure:
    """One of ``FIGURES``, from the results in a folder."""
    with open_results(name, directory) as found:
        return drawn(name, found)


def caption(name: str, directory: Path) -> str:
    """What a figure shows, with parameters, seeds, repeats, engine and code revision."""
    with open_results(name, directory) as found, content_at_fault(name):
        return caption_of(name, found)


def save(name: str, directory: Path, out: Path) -> list[Path]:
    """One figure as PNG and PDF, with its caption inside either."""
    import matplotlib.pyplot as plt

    from analysis.style import save_figure

    text, figure = caption(name, directory), make_figure(name, directory)
    try:
        with content_at_fault(name):
            return save_figure(figure, out / name, title=FIGURES[name].title, text=text)
    finally:
        plt.close(figure)


def save_all(directory: Path, out: Path | None = None) -> list[Path]:
    """Every figure whose results are in a folder, and ``captions.md``; none are there, none made.

    They go to ``out``, by default the folder ``figures`` within it.
    """
    out = out or directory / "figures"
    written: list[Path] = []
    captions = []
    for name in available(directory):
        written += save(name, directory, out)
        image = f"![{FIGURES[name].title}]({name}.png)"
        captions.append(f"## {name}\n\n{image}\n\n{caption(name, directory)}\n")
    if written:
        text = "# Figures\n\n" + "\n".join(captions)
        written.append(files.write(out / "captions.md", text))
    return written
