"""What results can show: one table of the pictures, with what each needs and what draws it.

Importing this imports nothing that draws; `Kind.function` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

from analysis.holdings import (
    DIGITS,
    DRIFT,
    FIELDS,
    LESIONS,
    LINEAR_FEATURES,
    SNAPSHOTS,
    SPIKES,
    STREAM,
    SUPERVISION,
    SWAP,
    TRACES,
    TWIN,
    damage,
    is_spiking,
    lacking,
    remedy,
)
from analysis.selection import first_repeat
from circuits.errors import CircuitError, InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Kind:
    """A picture."""

    title: str
    """What it shows."""
    draw: str
    """The function that draws it from its results, as module:name within this package."""
    needs: tuple[tuple[str, ...], ...]
    """For each result it is made from, the variables that this must hold."""
    merged: bool = False
    """Whether it shows all repeats; others show the first."""
    slow: bool = False
    """Whether it computes something first, and so is drawn only when asked for."""
    of_rates: bool = False
    """Whether it shows rates that settle step by step, which those of spiking cells do not."""
    experiments: tuple[str, ...] = ()
    """Of the paper's figures: the experiments whose results it is made from."""
    panels: str = ""
    """Of the paper's figures: what each panel shows."""
    of_first: str = ""
    """Of the paper's figures: the panels that show a single repeat, the first."""

    def function(self) -> Callable[..., Figure]:
        """What draws it."""
        module, _, name = self.draw.partition(":")
        found: Callable[..., Figure] = getattr(import_module(f"analysis.{module}"), name)
        return found


KINDS = {
    "fig1": Kind(
        "Network and receptive fields",
        "figures.arcs:figure",
        (("points", "h_final", "position", "W"),),
        experiments=("tiling-arcs",),
        panels=(
            "Left: the circuit. Inputs x drive excitatory tiles h through W against a bias b; "
            "inhibitory neurons u are driven through V and inhibit through the same weights; the "
            "readout y sums the tiles through w and obeys the label channel z when it speaks. "
            "Right: points on two arcs (black) and above each point the responses of the tiles "
            "after learning, one colour per tile; lines are means of 12 neighbours along the arc."
        ),
        of_first="Receptive fields",
    ),
    "fig2": Kind(
        "Two moons from two labels",
        "figures.moons:figure",
        (("points", "classes", "labels", "position", "h", "y", "W", *SNAPSHOTS),),
        experiments=("two-moons",),
        panels=(
            "Top: the data by class and the labelled points (discs with the sign of the label). "
            "Bottom left: the readout y at the end of every presentation, by true class; arrows "
            "mark the labels. Bottom right: readout weights of the tiles, ordered along the moons, "
            "after every 100th presentation; arrows mark the tiles on which the labels fall."
        ),
        of_first="Shown",
    ),
    "fig3": Kind(
        "Chessboards on a Swiss roll",
        "figures.boards:figure",
        (
            (*SUPERVISION, "points", "unrolled", "classes"),
            (*STREAM, "time"),
        ),
        merged=True,
        experiments=("chessboard-supervision", "chessboard-offline"),
        panels=(
            "Top: the Swiss roll, coloured by the classes of the first board, and the boards on "
            "the unrolled sheet; sides in units of the roll's height. Centre: error on the "
            "unlabelled points of the stream, circuit and online logistic regression on the same "
            "tiles; beside them, as controls, logistic regression without an intercept and the "
            "mean of labelled h, which is the circuit at μ = 0; for reference label spreading "
            "(offline, on the points themselves). Bottom: error on test points of the circuit and "
            "of a linear SVM with Laplacian penalty trained on all points so far, with and, as a "
            "control, without an intercept. Mean and standard deviation over the reported "
            "repeats."
        ),
        of_first="Roll and sheets",
    ),
    "fig4": Kind(
        "Two labels share a square",
        "figures.square:figure",
        (("score", "points", "majority"),),
        merged=True,
        experiments=("square-balance",),
        panels=(
            "Top: points coloured by predicted label with Laplacian regularisation, by the circuit "
            "and by the minimum of the circuit's own objective over all points, labelled points "
            "with arrows, and the cut that treats both alike (dashed). Bottom: share of points in "
            "the larger predicted class over repeats, with means (dotted): with the labels first, "
            "with the labels after some of the points, and at the minimum of the objective."
        ),
        of_first="Squares",
    ),
    "diffusion": Kind(
        "Diffusion of labels over tiles",
        "figures.diffusion:figure",
        (("measured", "predicted", "moment", "readout_y", "same_sign", "critical_mu"),),
        merged=True,
        experiments=("label-diffusion",),
        panels=(
            "Left: mean change of every readout weight, measured with the label channel silent, "
            "against the prediction μ S w − w, with S = E(h hᵀ), at several moments after two "
            "labels; all repeats. Centre: the readout over time on the two-moons stream with clip "
            "and with tanh. Right: share of unlabelled points that both answer with the same sign, "
            "on two moons, the coarse chessboard and the square, against the gain; mean and "
            "standard error over repeats, critical gains dotted."
        ),
        of_first="Readouts over time",
    ),
    "objective": Kind(
        "What outputs keep of the similarity of inputs",
        "figures.similarity:figure",
        (
            (
                *("growth", "ratio", "measure_value", "overlap_curve", "similarity", "time"),
                *("pair_similarity", "pair_output"),
            ),
        ),
        merged=True,
        experiments=("tiling-objective",),
        panels=(
            "Top: scalar products of the outputs of two points against those of the inputs, in "
            "units in which a point with itself is 1 and the threshold α is 0; grey dots are pairs "
            "of points after learning, lines are means over all pairs and repeats of the circuit, "
            "of the best outputs found offline and of random rectified projections, and the thin "
            "line is what Eq. (1) strives for up to a factor. Bottom left: objective of Eq. (1) "
            "relative to the best found offline, as the stream grows (mean and standard deviation "
            "over repeats); dotted, tiles that were placed and never learned. Bottom right: share "
            "of pairs below the threshold whose outputs are orthogonal, of all and of those one to "
            "1.4 tile radii apart."
        ),
        of_first="Pairs",
    ),
    "linear": Kind(
        "After the tiling, classes are linear",
        "figures.linear:figure",
        (
            (
                *(f"{name}_error" for name in LINEAR_FEATURES),
                *("linear_answer", "test_unrolled", "overlaps", "tile_place"),
            ),
        ),
        merged=True,
        experiments=("linear-tiles",),
        panels=(
            "Top: answers of a linear classifier that learned from all labels, on test points of "
            "the unrolled sheet, from the points themselves and from the outputs of the tiles. "
            "Bottom left: its error on test points by what it reads (mean and standard deviation "
            "over the reported repeats; dotted line: guessing). Bottom right: tiles where they "
            "lie on the sheet, joined where their outputs overlap."
        ),
        of_first="Answers and tiles",
    ),
    "change": Kind(
        "Labels that change in the middle of the stream",
        "figures.change:figure",
        (("printed_error", "constant_error", "time", "change_at", "decided_at"),),
        merged=True,
        experiments=("label-change",),
        panels=(
            "Left: error on the unlabelled points of a window of the stream, with the rate of the "
            "readout as printed and with a constant one, at the gain chosen on other repeats; from "
            "the dashed line on all classes are exchanged, at the dotted line it is decided "
            "whether the readout has adapted. Mean and standard deviation over the reported "
            "repeats; thin lines are one repeat. Right: the error at the dotted line by gain, with "
            "and without the change. Horizontal dotted line: guessing."
        ),
        of_first="Thin lines",
    ),
    "twin": Kind(
        "The spiking twin beside the rate circuit",
        "figures.twin:figure",
        (TWIN,),
        merged=True,
        experiments=("spiking-twin",),
        panels=(
            "Top, frozen weights: how far rates counted from spikes lie from the closed form. "
            "Left: error of their direction by the number of escape cells per unit, with the bound "
            "for counts of independent spikes, and of integrate-and-fire cells (mean and standard "
            "deviation over the reported repeats). Right: error of integrate-and-fire cells in "
            "every repeat, its mean, and the bound. Bottom left: accuracy on two moons, learned "
            "from scratch by spikes, by the rate circuit and, right of the line, by spikes in a "
            "circuit with a fixed gain, where only inhibition can normalise rates, with V learned, "
            "frozen where it starts, and fading. Bottom right: error on the unlabelled points of a "
            "chessboard by gain (mean and standard deviation)."
        ),
    ),
    "drift": Kind(
        "Tiles and labels follow moving moons",
        "figures.drift:figure",
        (DRIFT,),
        merged=True,
        experiments=("manifold-drift",),
        panels=(
            "Top: tiles on moons that turn by half a turn, coloured by their synapse to the "
            "readout, on the last points, coloured by class; two labels were given before the "
            "first picture. Middle left: accuracy in windows of the noisy stream, from the dashed "
            "line on the moons turn (mean over the reported repeats, standard deviation of the "
            "circuits). Bottom left: accuracy over the end of every stream (mean and standard "
            "deviation). Chains and propagation were given all classes up to the dashed line. "
            "Right: mean accuracy in the second half of half a turn over speed and learning rate, "
            "with tiles to spare and with none; on the dashed line tiles lag by their radius. "
            "Dotted: guessing."
        ),
        of_first="Tiles and points",
    ),
    "swap": Kind(
        "Exchanged classes: carried or overwritten",
        "figures.swap:figure",
        (SWAP,),
        merged=True,
        experiments=("label-swap",),
        panels=(
            "Left: accuracy on unlabelled points after the classes of two moons were exchanged, "
            "for three readouts at the gain chosen on other repeats, with few labels (open) and "
            "with more (mean and standard deviation over the reported repeats; dotted: guessing). "
            "Right, for two readouts: above, mean |y| at the end of a stream with two labels and "
            "no exchange; below, mean accuracy in the third part after the exchange over gain and "
            "share of labels. Dashed: the critical gain, from which on a readout sustains itself."
        ),
    ),
    "digits": Kind(
        "Handwritten digits from a few labels",
        "figures.handwriting:figure",
        (DIGITS,),
        merged=True,
        experiments=("digits",),
        panels=(
            "Left: share of the images without a label that get their class at the end, by labels "
            "per class, and share of right answers when an image arrives in a stream of which some "
            "have a label, in parts of the stream (mean and standard deviation over the reported "
            "repeats). Nearest label and logistic regression learn from labelled images alone. "
            "Centre: where tiles lie, as images, a row for every class that their readouts answer, "
            "evenly from the most used to the least; framed, with a number, those that respond "
            "most to images of another class. Right: images without a label that no tile answers "
            "or no label has reached (?), or else with the smallest margin between the best "
            "class and the next; and wrong answers with the largest margin. In brackets the class."
        ),
        of_first="Tiles and images",
    ),
    "sweep": Kind("An experiment over its parameters", "sweeps:figure", (("swept",),), merged=True),
    "fields": Kind(
        "Fields that drift in noise on W",
        "figures.fields:figure",
        (FIELDS,),
        merged=True,
        experiments=("representational-drift",),
        panels=(
            "Top left and centre: middles of the fields of a ring of tiles while the stream goes "
            "on, without noise and with noise on W; five tiles are followed, and a line is broken "
            "where a tile jumps. Top right: correlation with what was before the noise, of single "
            "fields (mean over tiles) and of the scalar products of the outputs of any two points, "
            "with noise (drawn) and without (dotted); dashed, the same after every field was "
            "turned by an angle of its own. Bottom left: mean squared displacement of tiles by "
            "size of the noise. Bottom centre: diffusion constant by size, of all steps between "
            "moments and of those within a tile radius; dashed, that of noise along the ring "
            "alone; dotted, that without noise. Bottom right: accuracy on two moons with two "
            "labels before the noise and none after, with readouts that learn on and with frozen "
            "ones; grey, guessing. Bands and bars: standard deviation over the reported repeats."
        ),
        of_first="Middles of fields",
    ),
    "lesions": Kind(
        "Lesions, delays and noise: what the circuit bears",
        "figures.damaged:figure",
        (LESIONS,),
        merged=True,
        experiments=("lesions",),
        panels=(
            "Top left and centre: coverage of, and accuracy on test points (silence is half an "
            "error) right after a share of the tiles was removed and later, with idle tiles in "
            "reserve and without, learning and frozen (mean and standard deviation over the "
            "reported repeats); grey, the coverage that is expected of how many tiles answer a "
            "point. Top right: distance of h from the closed form by interneurons, largest of all "
            "points and repeats. Bottom left: what a step multiplies a small deviation by, "
            "measured and by linear stability (lines), over the delay between excitatory and "
            "inhibitory cells, and the share of presentations that settle within their steps; "
            "vertical, where theory puts the end of stability (left dashed, right dotted) and of "
            "settling in time (right dashed). Bottom right: error of h over the size of white "
            "noise, with the linear response (lines), and accuracy. Dotted: guessing."
        ),
    ),
    "supervision": Kind(
        "Semi- against fully supervised on chessboards",
        "figures.boards:figure_supervision",
        (SUPERVISION,),
        merged=True,
    ),
    "stream": Kind(
        "Online against offline on chessboards",
        "figures.boards:figure_stream",
        (STREAM,),
        merged=True,
    ),
    "boards": Kind(
        "The roll and its boards",
        "figures.boards:figure_boards",
        (("unrolled", "classes", "points"),),
    ),
    "answers": Kind(
        "What the circuit answers, over the data",
        "answers:figure_answers",
        (("points", "labels", "y"),),
    ),
    "settling": Kind(
        "h, u, V, inhibition and y settling, with the closed form",
        "dynamics:figure_settling",
        (TRACES,),
        of_rates=True,
    ),
    "phase": Kind(
        "|h| against |u|", "dynamics:figure_phase", (("h_trace", "u_trace"),), of_rates=True
    ),
    "settling-error": Kind(
        "Distance from the closed form against the number of steps",
        "studies:figure_settling_error_of",
        (("h_trace", *SNAPSHOTS),),
        of_rates=True,
    ),
    "learning": Kind("W, b and w over the stream", "dynamics:figure_learning", (SNAPSHOTS,)),
    "tiles": Kind(
        "Tiles forming on the manifold",
        "dynamics:figure_tiles",
        (("points", "labels", *SNAPSHOTS),),
    ),
    "raster": Kind(
        "Map of h over presentations", "dynamics:figure_raster", (("h", "W", "points"),)
    ),
    "stability": Kind(
        "Where in the stability map the run works",
        "studies:figure_stability_of",
        (("u", "covered", "change"),),
        slow=True,
        of_rates=True,
    ),
    "spikes": Kind(
        "Spikes of one presentation",
        "firing:figure_spikes",
        ((*SPIKES, "W", "points"),),
    ),
    "spikes-along": Kind(
        "Spikes of the tiles along the manifold",
        "firing:figure_spikes_along",
        ((*SPIKES, "W", "points"),),
    ),
    "spike-rates": Kind(
        "Rates counted from spikes, and the closed form",
        "firing:figure_counted_rates",
        (("h", "gain", *SNAPSHOTS),),
    ),
    "firing-rates": Kind(
        "Firing rates of excitatory and inhibitory cells",
        "firing:figure_firing_rates",
        (("h", "excitatory_hz", "inhibitory_hz"),),
    ),
    "spike-intervals": Kind(
        "Intervals between spikes, and how much they vary",
        "firing:figure_intervals",
        (SPIKES,),
    ),
    "lateral": Kind(
        "V of spiking cells over a presentation, with the closed form",
        "firing:figure_lateral",
        (("V_trace", "h", "gain"),),
    ),
}
"""Every picture by name: the paper's figures in its order, then those of any run."""

FIGURES = {name: kind for name, kind in KINDS.items() if kind.experiments}
"""The paper's figures."""

ANIMATION = "animation"


def offered(result: xr.Dataset) -> list[str]:
    """Names of the pictures that a result can show by itself."""
    names = [
        name
        for name, kind in KINDS.items()
        if len(kind.needs) == 1
        and not (kind.of_rates and is_spiking(result))
        and not lacking(result, kind.needs[0])
        and not damage(result, kind.needs[0])
    ]
    return [*names, ANIMATION] if {"tiles", "drift"} & {*names} else names


def draw(result: xr.Dataset, name: str) -> Figure:
    """Draw a result; a picture it cannot show is refused with what is missing."""
    if name not in KINDS:
        raise InputError(f"there is no plot {name!r}: use {', '.join([*KINDS, ANIMATION])}")
    kind = KINDS[name]
    if len(kind.needs) > 1:
        raise InputError(
            f"{name} is made from the results of {' and '.join(kind.experiments)}, not from one: "
            "'manifold-circuit reproduce' draws it"
        )
    can = f"it can show {', '.join(offered(result)) or 'nothing'}"
    if kind.of_rates and is_spiking(result):
        raise InputError(
            f"{name} shows rates that settle step by step, and the cells of this result "
            f"spike; {can}"
        )
    if missing := lacking(result, kind.needs[0]):
        raise InputError(
            f"{name} needs {', '.join(missing)}, which the result lacks{remedy(missing)}; {can}"
        )
    if wrong := damage(result, kind.needs[0]):
        raise InputError(f"{name} cannot be drawn from this result: {wrong}")
    return drawn(name, [result])


def drawn(name: str, found: Sequence[xr.Dataset]) -> Figure:
    """A picture from results that hold what it needs."""
    kind = KINDS[name]
    with content_at_fault(name):
        return kind.function()(*(found if kind.merged else map(first_repeat, found)))


@contextmanager
def content_at_fault(name: str) -> Iterator[None]:
    """Say in a sentence that a result is to blame for what goes wrong with a picture of it.

    A file may hold anything: not every combination of numbers can be foreseen.
    """
    try:
        yield
    except (CircuitError, OSError, MemoryError):
        raise
    except Exception as error:  # whatever a file of any content makes a picture raise
        reason = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        raise InputError(
            f"{name} cannot be drawn from this result, which is damaged or of another version "
            f"({reason})"
        ) from error


def save(result: xr.Dataset, name: str, path: Path) -> list[Path]:
    """Draw a result and save it under ``path``: PNG and PDF, or a film; returns the files."""
    if name == ANIMATION:
        return animate(result, path)
    import matplotlib.pyplot as plt

    from analysis.style import save_figure

    figure = draw(result, name)
    try:
        title = KINDS[name].title
        with content_at_fault(name):  # texts and ticks are only laid out now
            return save_figure(figure, path, title=title, text=f"{title}.")
    finally:
        plt.close(figure)


def animate(result: xr.Dataset, path: Path) -> list[Path]:
    """The tiles forming, or following moons, as a GIF (and an MP4 where ffmpeg is there)."""
    names = offered(result)
    if ANIMATION not in names:
        raise InputError(f"an animation needs {', '.join(SNAPSHOTS)}: run with snapshots")
    from analysis.dynamics import animate_tiles
    from analysis.figures.drift import animate_drift

    with content_at_fault(ANIMATION):
        film = animate_drift if "drift" in names else animate_tiles
        return film(first_repeat(result), path)
