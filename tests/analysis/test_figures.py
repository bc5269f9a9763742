"""Figures show what the result files hold, and say how those were made."""

from __future__ import annotations

import json
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgba
from PIL import Image

from analysis import figures, kinds, measures
from analysis.figures import arcs, diffusion, square
from analysis.figures import boards as chessboards
from circuits.errors import InputError
from circuits.storage import results
from circuits.storage.files import FileError
from tests.analysis.drawing import hidden_by_legends, laid_out, offsets, text_on_text
from tests.refusing import refused
from tests.simulations.small import TINY


@pytest.fixture(scope="module")
def folder(experiments, tmp_path_factory):
    """A folder with small results of every experiment."""
    out = tmp_path_factory.mktemp("results")
    for name in TINY:
        results.save(experiments[name], out / f"{name}.nc")
    return out


@pytest.fixture
def balance(experiments):
    """The reported repeats of the square."""
    return experiments["square-balance"].isel(repeat=[0, 1])


@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_figure_is_made_from_files_and_says_how_those_were_made(folder, experiments, name):
    kind = figures.FIGURES[name]
    fig = laid_out(figures.make_figure(name, folder))
    assert text_on_text(fig) == hidden_by_legends(fig) == 0
    for ax in fig.axes:
        if ax.axison and not hasattr(ax, "zaxis") and ax.get_label() != "<colorbar>":
            # Axes above others of the same axis have neither a name nor numbers.
            numbered = ax.xaxis.get_tick_params().get("labelbottom", True)
            assert ax.get_xlabel() or not numbered
    text = figures.caption(name, folder)
    assert "\n" not in text
    for experiment in kind.experiments:
        attrs = experiments[experiment].attrs
        assert f"code revision {attrs['code']}" in text
        assert f"n_tiles = {json.loads(attrs['config'])['parameters']['n_tiles']}" in text
    assert "2 repeats (seeds 0, 1) and 1 for choosing (seeds 10000)" in text
    # Spikes have no closed form.
    assert f"engine {'cpp_standalone' if name == 'twin' else 'exact'}" in text
    # Pictures of the twin, of exchanged classes and of lesions show all repeats alike.
    assert ("All reported repeats" if name in ("twin", "swap", "lesions") else "seed 0.") in text
    if name == "fig3":
        assert "mu_grid = (3, 10)" in text
        assert "mu = 1000" not in text, "the grid replaces this value"

    # A single run is drawn, too.
    single = kind.function()(*(experiments.runs[experiment][1] for experiment in kind.experiments))
    assert all(ax.has_data() or not ax.axison for ax in single.axes)


def test_fields_are_the_responses_with_a_colour_per_tile(experiments):
    merged = experiments["tiling-arcs"]
    ax = plt.figure().add_subplot(projection="3d")
    assert arcs.plot_fields(merged, ax) is ax
    plane, *fields = ax.collections
    points, h = merged["points"].values[0], merged["h_final"].values[0]
    np.testing.assert_array_equal(offsets(plane), np.column_stack([points, np.zeros(len(points))]))
    active = np.flatnonzero(h.any(axis=0))
    assert len(fields) == len(active)
    assert len({tuple(field.get_facecolor()[0]) for field in fields}) == len(active)
    places = np.column_stack([points, h])
    expected = [places[h[:, tile] > 0][:, [0, 1, 2 + tile]].tolist() for tile in active]
    assert sorted(offsets(field).tolist() for field in fields) == sorted(expected)


def test_lines_of_fields_are_means_of_neighbours():
    position = np.array([3.0, 1.0, 0.0, 2.0])
    field = np.column_stack([position, 2 * position, position**2])
    smooth = arcs._smooth(field, position, group=2)
    np.testing.assert_allclose(smooth, [[0.5, 1, 0.5], [2.5, 5, 6.5]])
    assert arcs._smooth(field[:0], position[:0]).shape == (0, 3)


def test_two_moons_shows_the_first_repeat(experiments):
    fig = kinds.draw(experiments["two-moons"], "fig2")
    y = experiments["two-moons"]["y"].values[0, :, 0]
    readout = next(ax for ax in fig.axes if ax.get_ylabel() == "readout y")
    shown = np.concatenate([offsets(collection) for collection in readout.collections])
    np.testing.assert_array_equal(shown[np.argsort(shown[:, 0]), 1], y)


def by_hand(merged, name, grid, board):
    """Mean and spread of the reported repeats at the value that is best on the others."""
    error = merged[f"{name}_error"].isel(board=board)
    error = error.expand_dims("only") if grid is None else error
    error = error.transpose("repeat", grid or "only", ...).values
    choosing = merged["seed"].values >= 10_000
    chosen = error[choosing].mean(axis=0)
    if name in chessboards.STREAM:
        chosen = chosen.mean(axis=1, keepdims=True)
    best = np.broadcast_to(chosen.argmin(axis=0), error.shape[2:])
    shown = np.stack([error[~choosing][:, value, i] for i, value in enumerate(best)], axis=1)
    return shown.mean(axis=0), shown.std(axis=0, ddof=1)


@pytest.mark.parametrize(
    ("experiment", "draw", "methods"),
    [
        ("chessboard-supervision", chessboards.plot_supervision, chessboards.SUPERVISION),
        ("chessboard-offline", chessboards.plot_stream, chessboards.STREAM),
    ],
)
def test_error_bars_are_means_and_deviations_at_the_chosen_values(
    experiments, experiment, draw, methods
):
    merged = experiments[experiment]
    for board in range(3):
        ax = draw(merged, board=board)
        assert len(ax.containers) == len(methods)
        for container, (name, (grid, *_)) in zip(ax.containers, methods.items(), strict=True):
            mean, sd = by_hand(merged, name, grid, board)
            line, _, (bars,) = container
            np.testing.assert_allclose(line.get_ydata(), mean)
            ends = np.array([segment[:, 1] for segment in bars.get_segments()])
            np.testing.assert_allclose(ends, np.column_stack([mean - sd, mean + sd]))


def test_boards_are_drawn_by_class(experiments):
    merged = experiments["chessboard-supervision"]
    sheet, classes = merged["unrolled"].values[0], merged["classes"].values[0]
    for board in range(3):
        ax = chessboards.plot_board(merged, board=board)
        for collection, label in zip(ax.collections, (-1, 1), strict=True):
            np.testing.assert_array_equal(offsets(collection), sheet[classes[board] == label])
    (roll,) = chessboards.plot_roll(merged).collections
    np.testing.assert_array_equal(offsets(roll), merged["points"].values[0])
    laid_out(roll.axes.figure)
    colors = {to_rgba(color) for color, _ in chessboards.CLASSES.values()}
    assert {tuple(color) for color in roll.get_facecolors()} == colors


def test_the_square_shows_each_approach_once_by_prediction_with_its_controls(balance):
    ax = plt.figure().add_subplot()
    assert square.plot_solution(balance, ax) is square.plot_imbalance(balance, ax) is ax
    axes = square.figure(balance).axes
    for ax, approach in zip(axes[:3], ("laplacian", "circuit", "minimum cut"), strict=True):
        score = balance["score"].sel(approach=approach).values[0]
        shown = {c.get_label(): len(c.get_offsets()) for c in ax.collections}
        assert shown.get("predicted −1", 0) == (score < 0).sum()
        assert shown.get("predicted +1", 0) == (score > 0).sum()
        assert shown.get("undecided", 0) == (score == 0).sum()
        assert sorted(tuple(text.xy) for text in ax.texts) == [(0.1, 0.1), (0.9, 0.9)]
    assert [len(ax.containers) for ax in axes[3:]] == [2, 2, 1]


def test_the_histogram_counts_every_repeat(balance):
    for panel, approaches in (
        ("labels first", ["laplacian", "circuit"]),
        ("labels late", ["laplacian, late", "circuit, late"]),
        ("minimum cut", ["minimum cut"]),
    ):
        ax = square.plot_imbalance(balance, panel=panel)
        for container, approach in zip(ax.containers, approaches, strict=True):
            heights = np.array([bar.get_height() for bar in container])
            assert heights.sum() == 2
            edges = 1 - square.BIN * np.arange(len(heights) + 1)[::-1]
            values = balance["majority"].sel(approach=approach).values
            np.testing.assert_array_equal(heights, np.histogram(values, edges)[0])
            for i, bar in enumerate(container):
                assert edges[i] < bar.get_x() < bar.get_x() + bar.get_width() < edges[i + 1]
        means = [float(balance["majority"].sel(approach=name).mean()) for name in approaches]
        assert [line.get_xdata()[0] for line in ax.lines] == pytest.approx(means)
        assert "2" in ax.get_ylabel()
    # Undecided points make the larger class smaller than half: it has a bar all the same.
    majority = xr.Dataset(
        {"majority": (("repeat", "approach"), [[0.31, 1.0], [0.5, 0.55]])},
        coords={"approach": ["circuit", "laplacian"]},
    )
    ax = square.plot_imbalance(majority)
    assert [sum(bar.get_height() for bar in bars) for bars in ax.containers] == [2, 2]
    assert ax.get_xlim()[0] <= 0.31


def test_changes_are_drawn_against_predictions_and_readouts_over_time(experiments):
    merged = experiments["label-diffusion"]
    ax = diffusion.plot_change(merged)
    for collection in ax.collections:
        one = merged.sel(moment=int(collection.get_label()))
        expected = [one[name].values.ravel() for name in ("predicted", "measured")]
        np.testing.assert_array_equal(offsets(collection), np.column_stack(expected))
    assert len(ax.collections) == merged.sizes["moment"]
    one = merged.isel(repeat=1)
    slope = np.polyfit(one["predicted"].values.ravel(), one["measured"].values.ravel(), 1)[0]
    # The slope is through the origin, the fit is not.
    assert measures.diffusion_slopes(merged)[1] == pytest.approx(slope, rel=0.05)
    assert measures.diffusion_slopes(one) == pytest.approx(measures.diffusion_slopes(merged)[1:2])
    for collection in diffusion.plot_readouts(one).collections:
        if collection.get_label() in diffusion.READOUTS:
            y = one["readout_y"].sel(readout_kind=collection.get_label()).values
            expected = np.column_stack([np.arange(len(y)), y])
            np.testing.assert_array_equal(offsets(collection), expected)


def test_agreement_of_readouts_is_their_mean_over_repeats(experiments):
    merged = experiments["label-diffusion"]
    ax = diffusion.plot_agreement(merged)
    shown = {one.get_label(): one for one in ax.containers}
    assert list(shown) == ["moons", "board", "square"]
    for name, (line, _, (bars,)) in shown.items():
        one = merged["same_sign"].sel(data=name, gain=["30", "100"]).values
        np.testing.assert_allclose(line.get_ydata(), one.mean(axis=0))
        # They stand side by side, within a twentieth of their gain.
        np.testing.assert_allclose(line.get_xdata(), [30, 100], rtol=0.07)
        error = one.std(axis=0, ddof=1) / np.sqrt(3)  # three repeats
        for segment, mean, half in zip(bars.get_segments(), one.mean(axis=0), error, strict=True):
            np.testing.assert_allclose(segment[:, 1], [mean - half, mean + half], atol=1e-12)
    critical = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    np.testing.assert_allclose(critical, merged["critical_mu"].mean("repeat"))


def test_captions_of_a_single_run_and_of_mixed_repeats(experiments, balance, tmp_path):
    path = tmp_path / "square-balance.nc"
    results.save(experiments.runs["square-balance"][1], path)
    assert "1 repeat (seed 1)" in figures.caption("fig4", tmp_path)
    results.save(balance.drop_attrs(deep=False).assign_attrs(config=balance.attrs["config"]), path)
    assert "code revision differs between repeats" in figures.caption("fig4", tmp_path)


def test_wrong_names_and_files_are_refused_with_the_command_to_run(balance, tmp_path):
    refused(lambda: figures.make_figure("fig9", tmp_path), "'fig9'.* fig1", InputError)
    path = tmp_path / "label-diffusion.nc"
    again = "manifold-circuit run label-diffusion"
    for make in (figures.make_figure, figures.caption):
        refused(lambda make=make: make("diffusion", tmp_path), f"{path}.*{again}", FileError)
    results.save(balance, path)
    refused(lambda: figures.make_figure("diffusion", tmp_path), f"'measured'.*{again}", InputError)
    path.write_bytes(b"not a result")
    refused(lambda: figures.make_figure("diffusion", tmp_path), again, FileError)


def test_all_that_can_be_made_is_saved_with_captions_inside(experiments, tmp_path):
    assert figures.save_all(tmp_path) == []
    assert not any(tmp_path.iterdir())
    # Half of what fig3 needs is not enough for it.
    for name in ("label-change", "chessboard-offline"):
        results.save(experiments[name], tmp_path / f"{name}.nc")
    files = figures.save_all(tmp_path)
    names = ["change.png", "change.pdf", "captions.md"]
    assert files == [tmp_path / "figures" / name for name in names]
    text = figures.caption("change", tmp_path)
    assert text in files[2].read_text(encoding="utf-8")
    with Image.open(files[0]) as image:
        assert image.text["Description"] == text
    # PDF escapes brackets.
    subject = files[1].read_bytes().partition(b"/Subject")[2]
    assert text.partition("(")[0].encode("ascii") in subject
    again = figures.save("change", tmp_path, tmp_path / "again")
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in files[:2]]
    assert not plt.get_fignums()


@pytest.mark.slow
def test_making_figures_never_simulates(folder):
    code = (
        "import sys; from pathlib import Path; from analysis import figures\n"
        f"figures.make_figure('fig4', Path({str(folder)!r}))\n"
        "for kind in figures.FIGURES.values(): kind.function()\n"
        "wrong = {'brian2', 'simulations', 'sklearn'} & set(sys.modules)\n"
        "assert not wrong, wrong"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
