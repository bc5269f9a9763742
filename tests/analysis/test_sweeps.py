"""Figures of sweeps: what they draw is what the sweep holds."""

from __future__ import annotations

import re
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from PIL import Image

from analysis import kinds, sweeps
from analysis.heatmap import draw_map
from circuits.errors import InputError
from circuits.storage import results
from tests.analysis.drawing import laid_out
from tests.refusing import refused
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
    # A single repeat has neither spread nor mean; words are categories.
    (ax,) = kinds.draw(a_sweep("readout", repeats=1), "sweep").axes
    assert not ax.collections
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["clip", "tanh"]
    assert ax.lines[0].get_xdata().tolist() == [0, 1]
    assert ax.lines[0].get_ydata() == pytest.approx([0, 0.01], rel=1e-12)
    figure = kinds.draw(a_sweep("mu", "tile_radius", repeats=1), "sweep")
    assert figure.axes[-1].get_ylabel() == "accuracy"


def test_values_spaced_by_a_factor_get_a_logarithmic_axis():
    for values in ([100, 10, 1], [1, 2, 4, 8, 16]):
        assert sweeps.is_logarithmic(np.array(values)), values
    # Not wide, uneven, not positive, or too few.
    for values in ([1, 2, 4, 8], [1, 50, 100], [0, 10, 100], [1, 1000]):
        assert not sweeps.is_logarithmic(np.array(values)), values
    (ax,) = kinds.draw(a_sweep("mu"), "sweep").axes
    assert ax.get_xscale() == "log"


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
    refused(lambda: kinds.draw(four, "sweep"), r"has 4 \(mu, til", InputError)
    figure = kinds.draw(sweeps.chosen(four, None, {"n_tiles": 40}), "sweep")
    assert figure.axes[-1].get_ylabel() == "accuracy, mean of repeats"
    assert figure.get_suptitle() == "two-moons, 5 repeats of each\nn tiles 40"
    held = sweeps.chosen(a_sweep("mu"), None, {"mu": 10})
    refused(lambda: kinds.draw(held, "sweep"), "has 0 ", InputError)
    names = ("mu", "tile_radius", "noise")
    many = a_sweep(*names, **dict.fromkeys(names, np.arange(17)))
    refused(lambda: kinds.draw(many, "sweep"), "at most 16 maps, and mu has 17", InputError)


def test_a_variable_of_its_own_dimensions_is_drawn_at_one_place_and_says_so():
    first = sweeps.chosen(a_sweep("tile_radius"), "late", {"placement": "first"})
    figure = kinds.draw(first, "sweep")
    assert figure.get_suptitle().endswith("\nplacement first")
    assert figure.axes[0].lines[0].get_ydata()[0] == pytest.approx(0.502, rel=1e-12)
    bare = a_sweep("tile_radius").drop_vars("placement").assign_attrs(main="late")
    assert kinds.draw(bare, "sweep").get_suptitle().endswith("\nfirst placement")
    assert "placement" not in kinds.draw(bare.isel(placement=[1]), "sweep").get_suptitle()


def test_an_experiment_may_name_where_it_is_drawn():
    for note, place, height in (
        ('{"placement": "first"}', "first", 0.502),
        ('{"placement": null}', "first", 0.502),  # the last
        ('{"placement": "gone"}', "late", 0.002),
        ('{"other": null}', "late", 0.002),
        ("[" * 9999, "late", 0.002),
        ("[1]", "late", 0.002),
    ):
        result = a_sweep("tile_radius").assign_attrs(main="late", main_at=note)
        figure = kinds.draw(result, "sweep")
        assert figure.get_suptitle().endswith(f"\nplacement {place}")
        assert figure.axes[0].lines[0].get_ydata()[0] == pytest.approx(height, rel=1e-12)


def test_what_was_left_out_of_a_sweep_is_not_replaced_by_another_variable():
    for notes, why in (
        ({"differing": '["points", "error"]'}, ".* differ between runs"),
        ({"large": '["error"]'}, ".* too many values"),
        ({"large": '["points"]'}, ":"),
    ):
        result = a_sweep("mu").assign_attrs(main="error", **notes)
        words = f"'error', is not in the sweep{why}.* accuracy, late"
        refused(lambda result=result: kinds.draw(result, "sweep"), words, InputError)
        assert kinds.draw(sweeps.chosen(result, "late", {}), "sweep")


TYPED = [
    ("recycle", ["true", "false"], False, 1),
    ("recycle", ["true", "false"], "false", 1),
    ("mu", [1.0, 10**0.6, 10**0.7], 3.981, 1),
    ("mu", [1.0, 10**0.6, 10**0.7], 10**0.6, 1),
    ("mu", [1000.125, 1000.25, 1000.5], 1000.25, 1),
    ("mu", [1000.125, 1000.25], 1000.12, 0),
    ("mu", [1.0, 2.0], "2", 1),
    ("gain", ["control", "1", "20"], 20.0, 2),
    ("gain", ["control", "1", "20"], "control", 0),
    ("mu_grid", ["[3]", "[1, 2]"], (1.0, 2.0), 1),
    ("images", ["a, b", "c"], " c ", 1),
]


@pytest.mark.parametrize(("name", "places", "typed", "place"), TYPED)
def test_a_place_is_found_as_it_is_typed_and_as_it_is_shown(name, places, typed, place):
    result = sweeps.chosen(a_sweep(name, **{name: places}), None, {name: typed})
    assert result[name].item() == places[place]


def test_durations_may_have_a_unit():
    result = a_sweep("tau_u", tau_u=[10.0, 20.0])
    result["tau_u"].attrs["units"] = "ms"
    for typed, duration in (("20 ms", 20), ("0.02 s", 20), (20, 20), ("10ms", 10)):
        assert sweeps.chosen(result, None, {"tau_u": typed})["tau_u"] == duration
    held = sweeps.chosen(result.assign_attrs(main="late"), None, {"tau_u": "0.02 s"})
    assert sweeps.measured(held).held[0] == "tau u 20 ms"
    with pytest.raises(InputError, match=r"tau_u of '20 s': it has 10, 20 ms$"):
        sweeps.chosen(result, None, {"tau_u": "20 s"})
    # Close values are offered so that they can be told apart.
    with pytest.raises(InputError, match=r"no mu of 1000: it has 1000\.12, 1000\.25$"):
        sweeps.chosen(a_sweep("mu", mu=[1000.125, 1000.25]), None, {"mu": 1000})


GRIDS = ["[1, 2, 5, 10, 20, 50, 100]", "[3, 10]", f"[{', '.join(['100000'] * 12)}]"]
LONG = "spread_presentations_of_all_kinds_of_streams_there_are_in_the_world"

CROWDED = {
    "a line": ["mu_grid"],
    "many words": ["order"],
    "a map": ["mu_grid", "other_grid"],
    "one value": ["alpha", "readout"],
    "several maps": ["learning_rate", "mu_grid", "n_tiles"],
}


@pytest.mark.parametrize("name", CROWDED)
def test_nothing_is_cut_off_and_names_do_not_overlap(name):
    values = {"mu_grid": GRIDS, "other_grid": GRIDS, "order": [f"word {i}" for i in range(40)]}
    values |= {"learning_rate": [0.001, 0.0031622, 0.01, 0.031622, 0.1], "alpha": [1.0]}
    result = a_sweep(*CROWDED[name], **values).rename(late=LONG).assign_attrs(main=LONG)
    figure = laid_out(kinds.draw(result, "sweep"))
    needed, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert 0 <= needed.x0 < needed.x1 <= width
    assert 0 <= needed.y0 < needed.y1 <= height
    for ax in figure.axes:
        names = [name for name in ax.get_xticklabels() if name.get_text()]
        if names and names[0].get_rotation() == 0:  # the boxes of those that are turned overlap
            boxes = sorted((name.get_window_extent() for name in names), key=lambda box: box.x0)
            assert all(one.x1 < two.x0 for one, two in pairwise(boxes))


def test_equal_values_have_one_scale_in_map_and_bar():
    result = a_sweep("mu", "tile_radius")
    for value in (0.75, 0.0, -3.0):
        # The second differs by rounding only.
        result["accuracy"][...] = value
        result["accuracy"][0] = value * (1 + 1e-15)
        ax, bar = laid_out(kinds.draw(result, "sweep")).axes
        low, high = ax.images[0].get_clim()
        assert low < value < high
        assert bar.get_ylim() == pytest.approx((low, high), rel=1e-9)
        boxes = [text.get_bbox_patch().get_facecolor() for text in ax.texts]
        shade = ax.images[0].cmap(ax.images[0].norm(value))
        assert np.abs(np.array(boxes) - shade).max() < 0.01


def test_what_is_held_is_in_the_name_of_the_file():
    result = a_sweep("mu", "mu_grid", mu=[10**0.6, 10.0], mu_grid=GRIDS)
    assert sweeps.held_name(result) == ""
    for at, name in (
        ({"mu": 10**0.6}, "mu-3.981"),
        ({"mu": 10, "placement": "first"}, "mu-10-placement-first"),
    ):
        assert sweeps.held_name(sweeps.chosen(result, None, at)) == name
    assert sweeps.held_name(sweeps.chosen(result, None, {"mu_grid": [3, 10]})) == "mu_grid-3_10"
    long = [
        sweeps.held_name(sweeps.chosen(result, None, {"mu_grid": GRIDS[2], "mu": mu}))
        for mu in (10, 10**0.6)
    ]
    assert long[0] != long[1]
    assert all(len(name) < 120 for name in long)


def test_what_a_sweep_does_not_have_is_refused():
    for variable, at, words in (
        ("pace", {}, "'pace': it has accuracy, late$"),
        ("word", {}, "'word': it has accuracy, late$"),
        (None, {"noise": 1}, "'noise': it has mu, placement$"),
        (None, {"mu": 5}, "mu of 5: it has 1, 10, 100$"),
        (None, {"mu": "clip"}, "mu of 'clip': it has 1, 10, 100$"),
        (None, {"placement": "later"}, "placement of 'later': it has late, first$"),
    ):
        with pytest.raises(InputError, match=words):
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


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("names", [["mu"], ["mu", "tile_radius"]])
def test_absurd_numbers_are_drawn(number, names):
    for absurd in (slice(None), slice(1, None)):
        result = a_sweep(*names)
        result["accuracy"][absurd] = number
        assert laid_out(kinds.draw(result, "sweep")).axes


def test_a_sweep_that_does_not_fit_together_is_refused_in_a_sentence():
    result = a_sweep("mu", "tile_radius")
    for damaged in (
        result.assign_coords(swept_parameter=["mu", "placement"]),
        result.assign_attrs(main=np.array([1.0, 2.0])),
        result.drop_vars(["accuracy", "late"]),
    ):
        refused(lambda damaged=damaged: kinds.draw(damaged, "sweep"), error=InputError)


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
    first = tmp_path / "figures" / "sweep-two-moons-sweep-late-placement-first.png"
    with Image.open(first) as image:
        assert image.text["Title"] == kinds.KINDS["sweep"].title
    assert command("plot", path, "--variable", "late").returncode == 0
    assert (tmp_path / "figures" / "sweep-two-moons-sweep-late.png").is_file()
    other = results.save(xr.Dataset({"a": ("x", [1.0])}), tmp_path / "other.nc")
    for words, named in (
        ((path, "--kind", "raster"), "raster needs h, W, points, .* it can show sweep"),
        ((path, "--variable", "nothing"), "'nothing': it has accuracy, late"),
        ((other, "--variable", "a"), "--variable and --at are for results of 'sweep'"),
    ):
        found = command("plot", *words)
        assert found.returncode == 2
        assert re.search(named, found.stderr)


def test_the_report_says_what_it_leaves_out(tmp_path):
    results.save(a_sweep("mu"), tmp_path / "sweep-two-moons.nc")
    runs = xr.Dataset({"a": ("run", [1.0])}, attrs={"kind": "runs two-moons"})
    results.save(runs, tmp_path / "sweep-two-moons" / "runs-0123456789ab.nc")
    found = command("report", tmp_path)
    assert found.returncode == 2
    sentence = "sweep-two-moons.nc is a sweep: 'manifold-circuit plot' draws it"
    assert f"({sentence})" in found.stderr
    one = xr.Dataset({"a": ("x", [1.0])}, attrs={"kind": "run two-moons", "seed": 0})
    results.save(one, tmp_path / "two-moons.nc")
    done = command("report", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"the page leaves out {sentence}\n" in done.stderr
