"""Figures of sweeps: what they draw is what the sweep holds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from PIL import Image

from analysis import kinds, sweeps
from analysis.heatmap import draw_map
from circuits import results
from circuits.errors import InputError
from tests.simulations.test_cli import run as command

VALUES = {
    "mu": [1.0, 10.0, 100.0],
    "tile_radius": [0.2, 0.3, 0.4, 0.5],
    "readout": ["clip", "tanh"],
    "n_tiles": [20, 40],
}


def a_sweep(*names: str, repeats: int = 5, **values) -> xr.Dataset:
    """A sweep whose accuracy is 0, 0.01, 0.02, ... in the order of its values, the same in all
    repeats but for thousandths; and a variable with a dimension of its own."""
    known = VALUES | values
    shape = [len(known[name]) for name in names]
    accuracy = 0.01 * np.arange(np.prod(shape)).reshape(shape)[..., None]
    accuracy = accuracy + 0.001 * np.arange(repeats)
    dims = (*names, "repeat")
    data = {
        "swept": ("swept_parameter", shape),
        "accuracy": (dims, accuracy),
        "late": ((*dims, "placement"), np.stack([accuracy, accuracy + 0.5], axis=-1)),
        "word": (dims, np.full(accuracy.shape, "x")),
    }
    coords = {name: known[name] for name in names}
    coords |= {"swept_parameter": list(names), "placement": ["late", "first"]}
    coords |= {"seed": ("repeat", np.arange(repeats)), "run_seconds": (dims, accuracy)}
    attributes = {"kind": "sweep two-moons", "experiment": "two-moons", "main": "accuracy"}
    return xr.Dataset(data, coords, attributes)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_one_parameter_is_a_line_with_its_spread():
    result = a_sweep("tile_radius", repeats=21)
    assert kinds.offered(result) == ["sweep"]
    figure = kinds.draw(result, "sweep")
    (ax,) = figure.axes
    (line,) = ax.lines
    assert line.get_xdata().tolist() == VALUES["tile_radius"]
    # The middle of 21 repeats, a thousandth apart; their 5th and 95th percentiles are the second
    # and the last but one.
    assert line.get_ydata() == pytest.approx([0.01, 0.02, 0.03, 0.04], rel=1e-12)
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(0.001, rel=1e-9)
    assert corners[:, 1].max() == pytest.approx(0.03 + 0.019, rel=1e-9)
    assert ax.get_xscale() == "linear"
    assert ax.get_xlabel() == "tile radius (units of the data)"
    assert ax.get_ylabel() == "accuracy"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["mean of 21 repeats", "5 to 95 % of repeats"]


def test_a_single_repeat_has_no_spread():
    figure = kinds.draw(a_sweep("tile_radius", repeats=1), "sweep")
    assert not figure.axes[0].collections
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one repeat"]


def test_words_are_categories():
    (ax,) = kinds.draw(a_sweep("readout"), "sweep").axes
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["clip", "tanh"]
    assert ax.lines[0].get_xdata().tolist() == [0, 1]
    assert ax.lines[0].get_ydata() == pytest.approx([0.002, 0.012], rel=1e-12)


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [
        ([1, 10, 100], True),
        ([100, 10, 1], True),
        ([1, 2, 4, 8, 16], True),
        ([0.2, 0.3, 0.4, 0.5], False),
        ([1, 2, 4, 8], False),  # not wide
        ([1, 50, 100], False),
        ([0, 10, 100], False),
        ([1, 1000], False),
        ([-1, 10, 100], False),
    ],
)
def test_values_spaced_by_a_factor_get_a_logarithmic_axis(values, logarithmic):
    assert sweeps.is_logarithmic(np.array(values)) == logarithmic
    (ax,) = kinds.draw(a_sweep("mu", mu=values), "sweep").axes
    assert ax.get_xscale() == ("log" if logarithmic else "linear")


def test_two_parameters_are_a_map_with_the_first_across():
    figure = kinds.draw(a_sweep("mu", "tile_radius"), "sweep")
    ax, bar = figure.axes
    image = ax.images[0]
    assert image.get_array().shape == (4, 3)
    # In the order of values tile_radius changes fastest; the mean of 5 repeats adds 0.002.
    expected = 0.01 * np.arange(12).reshape(3, 4).T + 0.002
    assert np.abs(np.asarray(image.get_array()) - expected).max() <= 1e-15  # rounding
    assert image.get_clim() == pytest.approx((0.002, 0.112), rel=1e-12)
    assert texts(ax)[:4] == ["0.002", "0.042", "0.082", "0.012"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mu", "tile radius (units of the data)")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "10", "100"]
    assert bar.get_ylabel() == "accuracy, mean of repeats"


def test_three_parameters_are_maps_on_one_scale():
    figure = kinds.draw(a_sweep("mu", "tile_radius", "readout"), "sweep")
    maps = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title() for ax in maps] == ["readout clip", "readout tanh"]
    values = [np.asarray(ax.images[0].get_array()) for ax in maps]
    assert np.abs(values[1] - values[0] - 0.01).max() <= 1e-15
    assert {ax.images[0].get_clim() for ax in maps} == {(values[0].min(), values[1].max())}
    assert len(figure.axes) == 3  # one bar of colours


def test_more_parameters_are_refused_until_some_are_held():
    four = a_sweep("mu", "tile_radius", "readout", "n_tiles")
    with pytest.raises(
        InputError, match=r"one to three parameters, and this sweep has 4 \(mu, til"
    ):
        kinds.draw(four, "sweep")
    figure = kinds.draw(sweeps.chosen(four, None, {"n_tiles": 40}), "sweep")
    assert figure.axes[-1].get_ylabel() == "accuracy (n_tiles 40), mean of repeats"
    held = sweeps.chosen(a_sweep("mu"), None, {"mu": 10})
    with pytest.raises(InputError, match="has 0 "):
        kinds.draw(held, "sweep")
    many = a_sweep(
        *("mu", "tile_radius", "noise"),
        mu=np.arange(17),
        tile_radius=np.arange(17),
        noise=np.arange(17),
    )
    with pytest.raises(InputError, match="at most 16 maps, and mu has 17 values: choose one with"):
        kinds.draw(many, "sweep")


def test_a_variable_of_its_own_dimensions_is_taken_at_the_first_and_says_so():
    result = sweeps.chosen(a_sweep("tile_radius"), "late", {})
    (ax,) = kinds.draw(result, "sweep").axes
    assert ax.get_ylabel() == "late (placement late)"
    assert ax.lines[0].get_ydata()[0] == pytest.approx(0.002, rel=1e-12)
    plt.close("all")
    result = sweeps.chosen(a_sweep("tile_radius"), "late", {"placement": "first"})
    (ax,) = kinds.draw(result, "sweep").axes
    assert ax.get_ylabel() == "late (placement first)"
    assert ax.lines[0].get_ydata()[0] == pytest.approx(0.502, rel=1e-12)


REFUSED = [
    ("pace", {}, "the sweep has no variable 'pace': it has accuracy, late$"),
    ("word", {}, "the sweep has no variable 'word': it has accuracy, late$"),
    (None, {"noise": 1}, "the sweep has no dimension 'noise': it has mu, placement$"),
    (None, {"mu": 5}, "the sweep has no mu of 5: it has 1, 10, 100$"),
    (None, {"mu": "clip"}, "the sweep has no mu of 'clip': it has 1, 10, 100$"),
    (None, {"placement": "later"}, "the sweep has no placement of 'later': it has late, first$"),
]


@pytest.mark.parametrize(("variable", "at", "sentence"), REFUSED)
def test_what_a_sweep_does_not_have_is_refused(variable, at, sentence):
    with pytest.raises(InputError, match=sentence):
        sweeps.chosen(a_sweep("mu"), variable, at)


def test_runs_that_are_unknown_are_left_out_of_means():
    result = a_sweep("tile_radius", "mu")
    result["accuracy"][0, 0] = np.nan
    result["accuracy"][1, 1, 0] = np.nan
    ax = kinds.draw(result, "sweep").axes[0]
    shown = np.asarray(ax.images[0].get_array())
    assert np.isnan(shown[0, 0])
    assert texts(ax)[0] == "–"
    assert shown[1, 1] == pytest.approx(0.04 + 0.0025, rel=1e-12)
    (ax,) = kinds.draw(sweeps.chosen(result, None, {"mu": 1}), "sweep").axes
    assert np.isnan(ax.lines[0].get_ydata()).tolist() == [True, False, False, False]


@pytest.mark.parametrize("names", [("mu",), ("readout",), ("mu", "tile_radius")])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300])
def test_absurd_numbers_are_drawn_or_refused(tmp_path, names, number):
    result = a_sweep(*names)
    result["accuracy"][...] = number
    assert len(kinds.save(result, "sweep", tmp_path / "a")) == 2
    result["accuracy"][0] = 0.5
    assert len(kinds.save(result, "sweep", tmp_path / "a")) == 2


def test_a_sweep_that_does_not_fit_together_is_refused_in_a_sentence():
    result = a_sweep("mu", "tile_radius")
    for damaged in (
        result.assign_coords(swept_parameter=["mu", "placement"]),
        result.assign_attrs(main=np.array([1.0, 2.0])),
        result.drop_vars(["accuracy", "late"]),
    ):
        with pytest.raises(InputError) as error:
            kinds.draw(damaged, "sweep")
        assert "\n" not in str(error.value)


def test_large_maps_have_no_numbers_and_fewer_names():
    ax = plt.figure().add_subplot()
    names = [str(i) for i in range(30)]
    draw_map(ax, np.random.default_rng(0).random((2, 30)), names[:2], names, (0, 1))
    assert texts(ax) == []
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names[::3]


def test_the_digits_of_a_map_show_what_differs():
    for low, high, text in ((0, 1, "0.50"), (0.98, 1, "0.9900"), (0, 1000, "500"), (3, 3, "3.000")):
        ax = plt.figure().add_subplot()
        draw_map(ax, np.array([[(low + high) / 2]]), ["a"], ["b"], (low, high))
        assert texts(ax) == [text]


def test_the_command_draws_a_sweep_and_other_results_say_they_are_none(tmp_path):
    path = results.save(a_sweep("mu", "readout"), tmp_path / "sweep-two-moons.nc")
    done = command("plot", path, "--variable", "late", "--at", "placement=first")
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "figures" / "sweep-two-moons-sweep-late.png") as image:
        assert image.text["Title"] == kinds.KINDS["sweep"].title
    refused = command("plot", path, "--kind", "raster")
    assert refused.returncode == 2
    assert "raster needs h, W, points, which the result lacks; it can show sweep" in refused.stderr
    refused = command("plot", path, "--variable", "nothing")
    assert refused.returncode == 2
    assert "has no variable 'nothing': it has accuracy, late" in refused.stderr
    other = results.save(xr.Dataset({"a": ("x", [1.0])}), tmp_path / "other.nc")
    refused = command("plot", other, "--variable", "a")
    assert refused.returncode == 2
    assert "--variable and --at are for results of 'sweep', and this is none" in refused.stderr


def test_the_report_says_what_it_leaves_out(tmp_path):
    results.save(a_sweep("mu"), tmp_path / "sweep-two-moons.nc")
    runs = xr.Dataset({"a": ("run", [1.0])}, attrs={"kind": "runs two-moons"})
    results.save(runs, tmp_path / "sweep-two-moons" / "runs-0123456789ab.nc")
    refused = command("report", tmp_path)
    assert refused.returncode == 2
    sentence = "sweep-two-moons.nc is a sweep: 'manifold-circuit plot' draws it"
    assert f"({sentence})" in refused.stderr
    one = xr.Dataset({"a": ("x", [1.0])}, attrs={"kind": "run two-moons", "seed": 0})
    results.save(one, tmp_path / "two-moons.nc")
    done = command("report", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"the page leaves out {sentence}\n" in done.stderr
