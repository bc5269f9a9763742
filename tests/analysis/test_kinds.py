"""A result offers the pictures it can show, and no others."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from analysis import kinds
from circuits import ReferenceCircuit, SphereLift
from circuits.errors import InputError
from tests.conftest import moons, small_circuit
from tests.refusing import refused

# Small circuits that cover only a part of the data.
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)


def result(**options):
    points, _, labels = moons(30, after=10)
    circuit = ReferenceCircuit(
        small_circuit(n_tiles=10, tile_radius=0.6, steps_per_presentation=60), LIFT
    )
    return circuit.run(points, labels, **options)


ALWAYS = {"answers", "raster", "stability"}


@pytest.mark.filterwarnings("ignore:.*still moving")  # so few steps do not settle
@pytest.mark.parametrize(
    ("record", "snapshot_every", "more"),
    [
        ((), None, set()),
        (("h", "u"), None, {"phase"}),
        ("huVy", 1, {"phase", "settling", "settling-error", "learning", "tiles", "animation"}),
    ],
)
def test_offers_follow_what_was_recorded(record, snapshot_every, more):
    run = result(record=tuple(record), snapshot_every=snapshot_every)
    assert set(kinds.offered(run)) == ALWAYS | more
    # What was offered before is drawn in the other cases.
    for name in more - {"animation"} or ALWAYS - {"stability"}:
        assert kinds.draw(run, name).axes
    assert set(kinds.offered(run.drop_vars(["y", "u"]))) & ALWAYS == {"raster"}


@pytest.mark.filterwarnings("ignore:.*still moving")
def test_refusals_say_what_is_missing(tmp_path):
    run = result()
    for name, words in (
        ("settling", r"settling needs h_trace.*it can show answers, raster, stability"),
        ("pie", "'pie'.* fig1"),
        ("fig3", "fig3 .* chessboard-supervision"),
    ):
        refused(lambda name=name: kinds.draw(run, name), words, InputError, most=600)
    refused(lambda: kinds.animate(run, tmp_path / "tiles"), "W_snapshots", InputError)


def test_what_is_saved_says_what_it_shows(run, tmp_path):
    files = kinds.save(run, "answers", tmp_path / "own")
    assert [file.name for file in files] == ["own.png", "own.pdf"]
    with Image.open(files[0]) as image:
        assert image.text["Title"] == kinds.KINDS["answers"].title
    assert not plt.get_fignums()


SPIKING = {"fig2", "answers", "learning", "tiles", "raster", "animation", "lateral"}
SPIKING |= {"spikes", "spikes-along", "spike-rates", "firing-rates", "spike-intervals"}


def test_a_result_of_spiking_cells_shows_spikes_and_no_settling(spiking):
    assert set(kinds.offered(spiking)) == SPIKING
    for name in SPIKING - {"animation"}:
        assert kinds.draw(spiking, name).axes
    for name in ("settling", "phase", "settling-error", "stability"):
        words = f"^{name} .* spike; it can show .*spikes, spikes-along"
        refused(lambda name=name: kinds.draw(spiking, name), words, InputError, most=500)
    names = [name for name in spiking.data_vars if "_spike_" in str(name)]
    missing = SPIKING - set(kinds.offered(spiking.drop_vars(names)))
    assert missing == {"spikes", "spikes-along", "spike-intervals"}


def test_a_result_of_rates_says_what_to_record(run):
    for name, record in (("spikes", r" with record=\('spikes',\)"), ("firing-rates", "")):
        words = f"^{name} needs .* run a SpikingCircuit{record}; it can show"
        refused(lambda name=name: kinds.draw(run, name), words, InputError, most=500)
