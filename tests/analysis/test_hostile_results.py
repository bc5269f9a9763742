"""Pictures and pages of results whose content makes no sense."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot as plt

from analysis import answers, kinds
from analysis.figures import make_figure
from analysis.figures import save as save_figure_of
from analysis.holdings import DIMENSIONS
from analysis.page import pieces, reading, write_report
from circuits import ReferenceCircuit
from circuits.errors import InputError, shown_path
from circuits.storage import results
from circuits.storage.files import FileError
from simulations.experiments.two_moons import Settings, annotate, make_stream
from tests.analysis.test_sweeps import a_sweep
from tests.conftest import small_circuit
from tests.refusing import refused
from tests.simulations.test_cli import run as command

pytestmark = [
    # Absurd numbers overflow, and axes that they stretch complain.
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def moons() -> xr.Dataset:
    """A short run of two moons with all that can be recorded."""
    parameters = small_circuit(n_tiles=6, steps_per_presentation=20, tile_radius=0.8)
    stream = make_stream(Settings(n_points=14, label_after=4), 3, parameters)
    circuit = ReferenceCircuit(stream.parameters, stream.lift)
    found = circuit.run(stream.points, stream.labels, record=("h", "u", "V", "y"), snapshot_every=1)
    return annotate(found.assign(h_final=found["h"]), stream, 3)


SINGLE = [name for name, kind in kinds.KINDS.items() if len(kind.needs) == 1 and not kind.slow]
SAMPLE = ("fig1", "fig4", "tiles", "raster", "lesions", "drift", "spike-rates")
SAMPLED = [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.slow) for name in SINGLE]
CHESSBOARD = {"supervision", "boards"}
OF_SPIKES = ("spikes", "spikes-along", "spike-rates", "firing-rates", "spike-intervals", "lateral")


@pytest.fixture
def whole(request, name, moons):
    """A result that the picture of this name can be drawn from."""
    if name in OF_SPIKES:
        return request.getfixturevalue("spiking")
    if name == "sweep":
        return a_sweep("mu", "tile_radius")
    experiment = "".join(kinds.KINDS[name].experiments)
    experiment = "chessboard-supervision" if name in CHESSBOARD else experiment
    experiment = "chessboard-offline" if name == "stream" else experiment
    if experiment in ("", "tiling-arcs", "two-moons"):
        return moons
    return request.getfixturevalue("experiments")[experiment]


def shown_or_refused(result, name) -> bool:
    """Whether a picture was drawn; if not, the one thing that may happen did."""
    complaint = ""
    try:
        kinds.draw(result, name)
    except InputError as error:
        complaint = str(error)
    finally:
        plt.close("all")
    assert "\n" not in complaint
    assert len(complaint) < 500
    return not complaint


@pytest.fixture(autouse=True)
def _few_places(monkeypatch):
    """The plane behind the answers in coarse squares, which are drawn sooner."""
    monkeypatch.setattr(answers, "GRID", 4)


def replaced(result, name, change):
    """A result with another variable in the place of one."""
    old = result[name]
    dims, values = change(old.dims, old.to_numpy())
    return result.drop_vars(name).assign({name: (dims, values)})


WRONG_DIMENSIONS = {
    "one number": lambda dims, values: ((), 1.0),
    "other dimensions": lambda dims, values: (tuple(f"{d}_" for d in dims), values),
    "more dimensions": lambda dims, values: ((*dims, "more"), values[..., None]),
}
WRONG_TYPES = {
    "text": lambda dims, values: (dims, np.full(values.shape, "x")),
    "objects": lambda dims, values: (dims, np.full(values.shape, "x", dtype=object)),
    "complex": lambda dims, values: (dims, values * 1j),
    "times": lambda dims, values: (dims, np.zeros(values.shape, "datetime64[ns]")),
}
"""Replacements of a variable that make every picture of it impossible."""


@pytest.mark.parametrize("name", SAMPLED)
def test_pictures_are_refused_where_a_variable_has_another_form(name, whole):
    assert shown_or_refused(whole, name)
    variables = [one for one in kinds.KINDS[name].needs[0] if one not in whole.dims]
    for variable in variables:
        # The type is checked in the same way for all of them.
        forms = WRONG_DIMENSIONS | (WRONG_TYPES if variable == variables[0] else {})
        for form, change in forms.items():
            if form == "one number" and () in DIMENSIONS[variable]:
                continue
            result = replaced(whole, variable, change)
            with pytest.raises(InputError, match=f"{name} .* its {variable} "):
                kinds.draw(result, name)
        assert name not in kinds.offered(result)
        with pytest.raises(InputError, match=f"{name} needs {variable}"):
            kinds.draw(whole.drop_vars(variable), name)
    for dim in {dim for variable in kinds.KINDS[name].needs[0] for dim in whole[variable].dims}:
        assert not shown_or_refused(whole.isel({dim: slice(0)}), name), dim
    repeated = whole if "repeat" in whole.dims else whole.expand_dims(repeat=2)
    assert not shown_or_refused(repeated.isel(repeat=slice(0)), name)


@pytest.mark.parametrize("name", SAMPLED)
def test_pictures_of_absurd_numbers_are_drawn_or_refused(name, whole):
    for number in (np.nan, np.inf, 1e300):
        result = whole
        for variable in kinds.KINDS[name].needs[0]:
            if variable not in result.dims and variable != "snapshot_presentation":
                change = lambda dims, v, to=number: (dims, np.full(v.shape, to))  # noqa: E731
                result = replaced(result, variable, change)
        shown_or_refused(result, name)


def test_snapshots_outside_the_stream_are_damage(moons):
    for value in (-1, 14, 0.5, np.nan, np.inf, 2**62):
        result = moons.assign(snapshot_presentation=("snapshot", np.full(14, value)))
        with pytest.raises(InputError, match="snapshot_presentation"):
            kinds.draw(result, "learning")


@pytest.mark.slow
def test_pictures_of_one_of_a_kind_are_drawn_or_refused(moons):
    names = ("fig1", "fig2", "answers", "settling", "phase", "learning", "tiles", "raster")
    for dim in ("presentation", "snapshot", "tile", "step", "interneuron", "coordinate"):
        for name in names:
            shown_or_refused(moons.isel({dim: [0]}), name)


def test_many_readouts_are_refused_where_the_parameters_say_one(moons):
    many = moons.isel(readout=[0] * 30).assign_coords(readout=range(30))
    with pytest.raises(InputError, match="n_readouts=1 and holds 30"):
        kinds.draw(many, "answers")


ABSURD = {
    "a number": 3.5,
    "numbers": np.arange(4),
    "texts": ["a", "b"],
    "empty": "",
    "no JSON": "{",
    "a list": "[]",
    "an object": "{}",
    "deep": "[" * 100_000,
    "deep enough": "[" * 900 + "]" * 900,
    "a deep object": '{"a":' * 900 + "1" + "}" * 900,
    "1 MB": "x" * 2**20,
    "control characters": "a\x07\x1b[31m\nb\u2028<b>",
    "hostile": "<script>alert(1)</script>",
    "nested": json.dumps({"a": {"b": [1, {"<script>alert(2)</script>": None}]}}),
    "claims": json.dumps([{"claim": {"<script>alert(3)</script>": []}, "holds": "?", "x": 1e999}]),
    "huge": json.dumps({"n_tiles": 10**9, "center": [1e300], "radius": 1e300}),
    "NaN": '{"center": [NaN, 1], "radius": NaN}',
    "5000 digits": "9" * 5000,
    "NaN itself": float("nan"),
    "negative": -1.0,
}
SHOWN = ["title", "experiment", "seconds", "claims", "parameters", "lift", "versions"]
SHOWN += ["model_changes", "settings", "engine", "code"]
"""The attributes that a page shows, besides the seed."""


COUNT = {"model_changes": "settling-error", "gain": "phase"}
"""The attributes that count, with a picture; for the others it is the tiles."""


@pytest.mark.parametrize("attribute", ["parameters", "lift", "alpha", *COUNT])
def test_pictures_of_results_that_say_absurd_things_are_drawn_or_refused(attribute, moons):
    name = COUNT.get(attribute, "tiles")
    outcomes = [
        shown_or_refused(moons.assign_attrs({attribute: value}), name) for value in ABSURD.values()
    ]
    assert not all(outcomes)
    attrs = {key: value for key, value in moons.attrs.items() if key != attribute}
    shown_or_refused(moons.drop_attrs(deep=False).assign_attrs(attrs), name)


def test_plot_draws_what_it_can_and_names_what_it_cannot(moons, tmp_path):
    """A result that is damaged in one place, and one that hides it until it is laid out."""
    odd = replaced(moons, "points", WRONG_TYPES["text"]).assign_attrs(gain="x")
    path = results.save(odd.drop_vars(["u_trace", "V_trace", "y"]), tmp_path / "a.nc")
    found = command("plot", path, "--out", tmp_path / "figures")
    assert found.returncode == 2
    [sentence] = found.stderr.strip().splitlines()
    assert sentence.startswith(f"manifold-circuit: {path}: ")
    assert "does not say its gain as a finite number" in sentence
    assert "a-learning.png" in found.stdout
    found = command("plot", path, "--kind", "tiles", "--out", tmp_path / "figures")
    assert (found.returncode, "its points does not hold real numbers" in found.stderr) == (2, True)
    found = command("plot", path, "--kind", "nothing", "--out", tmp_path / "figures")
    assert (found.returncode, "there is no plot 'nothing'" in found.stderr) == (2, True)


def test_what_goes_wrong_inside_a_picture_keeps_its_cause(moons, monkeypatch):
    """The last line of defence must not hide a fault of ours."""
    monkeypatch.setattr(kinds.Kind, "function", lambda self: lambda run: run["nothing"])
    with pytest.raises(InputError, match="raster cannot be drawn from this result") as caught:
        kinds.draw(moons, "raster")
    assert isinstance(caught.value.__cause__, KeyError)


def test_damaged_results_give_no_figure_of_the_paper_but_a_sentence(experiments, tmp_path):
    square = experiments["square-balance"]
    for result in (square.isel(approach=slice(0)), replaced(square, "score", WRONG_TYPES["text"])):
        results.save(result, tmp_path / "square-balance.nc")
        with pytest.raises(InputError, match=r"is damaged.* run square-balance"):
            make_figure("fig4", tmp_path)
    results.save(square.assign_attrs(config="[" * 2000), tmp_path / "square-balance.nc")
    with pytest.raises(InputError, match="fig4 cannot be drawn"):
        save_figure_of("fig4", tmp_path, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


# --- pages -------------------------------------------------------------------------------------


@pytest.fixture
def _no_model(monkeypatch):
    """Without the tables of the model, which take a third of a second and have tests elsewhere."""
    monkeypatch.setattr(pieces, "model_tables", lambda candidates: None)


def bare(moons):
    """A result without arrays that could be explored."""
    return moons[["y", "labels"]]


def explorable(moons):
    """A result with nothing but what can be explored: it is saved sooner."""
    return moons.drop_vars([f"{name}_trace" for name in "huVy"])


@pytest.mark.usefixtures("_no_model")
@pytest.mark.parametrize("attributes", [["seed"], SHOWN])
def test_a_page_of_results_that_say_absurd_things(attributes, moons, tmp_path, capsys):
    """A folder in which every attribute has every form once, and a result that is whole."""
    values = list(ABSURD.values())
    for place, form in enumerate(ABSURD):
        absurd = {name: values[(place + i) % len(values)] for i, name in enumerate(attributes)}
        results.save(bare(moons).assign_attrs(absurd), tmp_path / f"{form}.nc")
    results.save(bare(moons).assign_attrs(experiment="whole"), tmp_path / "whole.nc")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "whole" in page
    assert "\x1b" not in page
    assert "nan s<" not in page
    assert len(page) < 3 * 2**20
    said = capsys.readouterr().err
    assert said.count("\n") == (1 if said else 0)
    for form in ABSURD:
        left_out = f"<li>{form}.nc" in page
        assert left_out == (f"{form}.nc cannot" in said)
        assert not left_out or attributes == ["seed"]


@pytest.mark.usefixtures("_no_model")
def test_a_page_leaves_out_what_is_damaged_and_says_so(moons, tmp_path, capsys):
    moons = explorable(moons)
    damaged = {
        **{name: replaced(moons, name, WRONG_TYPES["text"]) for name in ("h", "W_snapshots")},
        **{
            name: replaced(moons, name, WRONG_TYPES["complex"])
            for name in ("labels", "snapshot_presentation")
        },
        "one-number": replaced(moons, "h", WRONG_DIMENSIONS["one number"]),
        "no-tiles": moons.isel(tile=slice(0)),
        "no-repeats": moons.expand_dims(repeat=1).isel(repeat=slice(0)),
        "seeds": moons.expand_dims(repeat=2).assign_coords(seed=("repeat", ["a", "b"])),
    }
    for name, result in damaged.items():
        results.save(result, tmp_path / f"{name}.nc")
    whole = results.save(moons, tmp_path / "whole.nc").read_bytes()
    (tmp_path / "half.nc").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "folder.nc").mkdir()
    os.mkfifo(tmp_path / "pipe.nc")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n.nc")).write_bytes(b"x")
    paths = set(tmp_path.glob("*.nc")) - {tmp_path / "whole.nc"}
    page = write_report(tmp_path).read_text(encoding="utf-8")
    [sentence] = capsys.readouterr().err.splitlines()
    assert len(paths) == len(damaged) + 4
    for path in paths:
        name = reading.in_short(shown_path(path.name))
        assert f"<li>{name} " in page
        assert f"{name} " in sentence
    assert "whole.nc (two-moons, reference engine): every presentation of 14" in page


@pytest.mark.usefixtures("_no_model")
def test_the_explorer_leaves_out_what_does_not_fit_together(moons, tmp_path, capsys):
    moons = explorable(moons)
    misfits = {
        "says n_tiles=6 and holds 1": moons.isel(tile=[0]),
        "points must be finite": moons.assign(points=moons["points"] * np.nan),
        "outside the lift": moons.assign(points=moons["points"] * 1e300),
        "points must have the shape": moons.isel(coordinate=[0]),
        "its lift makes 3 inputs, not 2": moons.isel(input=[0, 1]),
        "cannot be explored": moons.assign_coords(presentation=[f"p{i}" for i in range(14)]),
    }
    for place, result in enumerate(misfits.values()):
        results.save(result, tmp_path / f"{place}.nc")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "explorer-data" not in page.split("<script>")[0]
    said = capsys.readouterr().err
    for place, reason in enumerate(misfits):
        assert reason in said
        assert f"{place}.nc" in said
        (tmp_path / f"{place}.nc").unlink()
    results.save(moons, tmp_path / "whole.nc")
    assert "whole.nc (two-moons" in write_report(tmp_path).read_text(encoding="utf-8")


def test_a_model_of_absurd_size_is_not_built(moons, tmp_path):
    # The second: a lift and a radius that are right each, and do not go together.
    for changes in ({"n_tiles": 10**9}, {"tile_radius": 100.0}):
        values = json.loads(moons.attrs["parameters"]) | changes
        results.save(bare(moons).assign_attrs(parameters=json.dumps(values)), tmp_path / "a.nc")
        assert "No result in this folder says" in write_report(tmp_path).read_text(encoding="utf-8")


def png(width, height, *more, data=b"") -> bytes:
    """A PNG that says it has a size, with chunks that follow."""

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    chunks = b"".join(chunk(kind, content) for kind, content in more)
    pixels = chunk(b"IDAT", zlib.compress(data or bytes(height * (1 + 3 * width)) * (height < 9)))
    return b"\x89PNG\r\n\x1a\n" + header + chunks + pixels + chunk(b"IEND", b"")


@pytest.mark.usefixtures("_no_model")
def test_pictures_that_are_none_are_left_out_and_said(moons, tmp_path, capsys):
    results.save(bare(moons), tmp_path / "a.nc")
    figures = tmp_path / "figures"
    figures.mkdir()
    good = png(2, 2, (b"tEXt", b"Description\x00<script>alert(1)</script> & more"))
    broken = {
        "truncated": good[: len(good) // 2],
        "short": png(8, 8, data=b"\x00"),
        "bomb": png(60_000, 60_000),
        "large": png(12_000, 12_000),
        "none": b"",
        "text": b"<svg onload=alert(1)>",
        "gif": b"GIF89a\x01\x00\x01\x00\x00\x00\x00;",
        "flipped": good[:30] + b"\xff" + good[31:],
        "zip": png(2, 2, (b"zTXt", b"Description\x00\x00" + zlib.compress(bytes(10**8)))),
        "no-size": png(0, 0),
    }
    for name, content in broken.items():
        (figures / f"{name}.png").write_bytes(content)
    (figures / "good.png").write_bytes(good)
    (figures / "folder.png").mkdir()
    os.mkfifo(figures / "pipe.png")
    (figures / "loop.png").symlink_to("loop.png")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    said = capsys.readouterr().err
    for name in (*broken, "folder", "pipe", "loop"):
        assert f"{name}.png is not a readable image" in said
        assert f"{name}.png is not a readable image" in page
    assert page.count("<img ") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize("limit", ["MOST_PIXELS", "MOST_BYTES"])
def test_pictures_that_are_too_large_are_not_opened(limit, tmp_path, monkeypatch):
    (tmp_path / "a.png").write_bytes(png(2, 2))
    assert reading.read_pictures(tmp_path)[0].source
    monkeypatch.setattr(reading, limit, 3)
    assert not reading.read_pictures(tmp_path)[0].source


@pytest.mark.usefixtures("_no_model")
def test_claims_of_absurd_forms_are_named(moons, tmp_path):
    results.save(bare(moons), tmp_path / "a.nc")
    claims = tmp_path / "claims.json"
    for content in (b"[" * 100_000, b"9" * 5000, b"\0", b"3", b'["a"]', b"[[]]", b"\xff\xfe"):
        claims.write_bytes(content)
        refused(lambda: write_report(tmp_path), "claims.json", FileError)
    claims.unlink()
    os.mkfifo(claims)
    refused(lambda: write_report(tmp_path), "claims.json", FileError)
    assert not (tmp_path / "report.html").exists()
