"""Pictures of the objective, of linear classifiers, of changing labels, of the spiking twin and of
digits show their results."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from PIL import Image

from analysis import kinds
from analysis.figures import (
    change,
    damaged,
    drift,
    fields,
    handwriting,
    linear,
    similarity,
    swap,
    twin,
)
from analysis.holdings import LINEAR_FEATURES, damage, lacking
from analysis.kinds import KINDS
from analysis.style import LOWER, UPPER
from simulations.experiments.linear_tiles import FEATURES
from tests.analysis.drawing import holds, laid_out, offsets
from tests.simulations.small import simulate


def both(experiments, name):
    """A result, and its reported repeats."""
    result = experiments[name]
    return result, result.isel(repeat=slice(2))


def means(ax):
    """The heights of all error bars' middles."""
    return [container.lines[0].get_ydata() for container in ax.containers]


def assert_mean_and_spread(container, values):
    """Error bars are those of (repeat, ...) values."""
    line, _, (bars,) = container.lines
    np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
    lengths = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
    # The ends of a bar are near 1, and good to 2e-16: so is what lies between them.
    np.testing.assert_allclose(lengths, 2 * values.std(axis=0, ddof=1), atol=1e-15)


@pytest.mark.slow
def test_the_real_twin_has_the_form_of_the_one_made_up(experiments):
    """The other tests draw random numbers in its place."""
    real = simulate("spiking-twin")
    for name, values in experiments["spiking-twin"].data_vars.items():
        assert (*real[name].dims,) == values.dims[1:]
        assert real[name].dtype == values.dtype
    assert not lacking(real, KINDS["twin"].needs[0])
    assert not damage(real, KINDS["twin"].needs[0])
    assert laid_out(KINDS["twin"].function()(real)).axes


def test_pairs_are_of_the_first_repeat_and_curves_of_all_reported(experiments):
    result = experiments["tiling-objective"]
    ax = similarity.plot_pairs(result, manifold=1)
    one = result.isel(repeat=0, manifold=1)
    expected = np.column_stack([one["pair_similarity"], one["pair_output"]])
    np.testing.assert_array_equal(offsets(ax.collections[0]), expected)
    curves = result["overlap_curve"].isel(repeat=slice(2), manifold=1).mean("repeat")
    for line, name in zip(ax.lines, ("online", "optimum", "random"), strict=False):
        np.testing.assert_allclose(line.get_ydata(), curves.sel(output=name))
        np.testing.assert_allclose(line.get_xdata(), result["similarity"])
    # What Eq. (1) strives for: nothing up to the threshold, then a straight line to one.
    assert list(ax.lines[3].get_xdata())[1:] == [0, 1]
    assert list(ax.lines[3].get_ydata()) == [0, 0, 1]


def test_growth_is_the_mean_with_its_spread_beside_tiles_that_never_learned(experiments):
    result, reported = both(experiments, "tiling-objective")
    ax = similarity.plot_growth(result)
    for i, container in enumerate(ax.containers):
        values = reported["growth"].isel(manifold=i).transpose("repeat", "time").values
        assert_mean_and_spread(container, values)
        placed = float(reported["ratio"].isel(manifold=i).sel(output="placed").mean())
        dotted = [one for one in ax.lines if one.get_linestyle() == ":"]
        assert dotted[i].get_ydata()[0] == pytest.approx(placed)
    assert len(ax.containers) == 4
    ax = similarity.plot_orthogonal(result)
    online = reported["measure_value"].sel(output="online")
    for marks, measure in zip(ax.collections, ("orthogonal", "orthogonal_near"), strict=True):
        found = offsets(marks)[:, 1].reshape(2, 4)
        np.testing.assert_allclose(found, online.sel(measure=measure).values)


def chosen_penalty(result, name, board):
    """The better one on the repeat for choosing."""
    return int(result[f"{name}_error"].isel(repeat=2, board=board).values.argmin())


def test_answers_lie_where_their_points_are(experiments):
    result = experiments["linear-tiles"]
    for features in ("raw", "tiles"):
        ax = linear.plot_answers(result, features=features, board=2)
        one = result.isel(repeat=0, board=2, penalty=chosen_penalty(result, features, 2))
        answers = one["linear_answer"].sel(shown=features).values
        for marks, label, color in zip(ax.collections, (-1, 1), (UPPER, LOWER), strict=True):
            expected = one["test_unrolled"].values[answers == label]
            np.testing.assert_array_equal(offsets(marks), expected)
            assert tuple(marks.get_facecolor()[0]) == to_rgba(color)


def test_errors_are_those_at_the_penalty_chosen_on_other_repeats(experiments):
    assert tuple(linear.FEATURES) == LINEAR_FEATURES == FEATURES
    result = experiments["linear-tiles"]
    ax = linear.plot_errors(result)
    assert [text.get_text() for text in ax.get_yticklabels()] == list(linear.FEATURES.values())
    for board, container in enumerate(ax.containers):
        for i, name in enumerate(linear.FEATURES):
            best = chosen_penalty(result, name, board)
            values = result[f"{name}_error"].isel(repeat=slice(2), board=board, penalty=best)
            assert container.lines[0].get_xdata()[i] == pytest.approx(float(values.mean()))
            ends = container.lines[2][0].get_segments()[i][:, 0]
            assert ends[1] - ends[0] == pytest.approx(2 * values.values.std(ddof=1))


def test_the_graph_joins_tiles_that_overlap(experiments):
    result = experiments["linear-tiles"]
    ax = linear.plot_graph(result)
    one = result.isel(repeat=0)
    places, overlaps = one["tile_place"].values, one["overlaps"].values.astype(bool)
    expected = [(places[i], places[j]) for i in range(200) for j in range(i) if overlaps[i, j]]
    found = {tuple(sorted(map(tuple, segment))) for segment in ax.collections[0].get_segments()}
    assert found == {tuple(sorted(map(tuple, pair))) for pair in expected}
    assert len(offsets(ax.collections[1])) == overlaps.any(axis=0).sum()


def chosen_gain(result, rule):
    error = result[f"{rule}_error"].isel(repeat=2).sel(stream="changed").transpose("mu", "time")
    return int(error.values.mean(axis=1).argmin())


def test_the_course_is_that_of_the_chosen_gain_with_and_without_a_change(experiments):
    result, reported = both(experiments, "label-change")
    ax = change.plot_course(result)
    for rule in ("printed", "constant"):
        own = reported[f"{rule}_error"].isel(mu=chosen_gain(result, rule))
        for stream in ("changed", "steady"):
            values = own.sel(stream=stream).transpose("repeat", "time").values
            assert any(
                len(y := line.get_ydata()) == 8 and np.allclose(y, values.mean(axis=0))
                for line in ax.lines
            )
        assert holds(ax, own.sel(stream="changed").isel(repeat=0).values)  # the thin line
    upright = [line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1]
    assert upright == [200, 300]
    # Gains are compared in the window that decides.
    expected = [
        reported[f"{rule}_error"].sel(time=300, stream=stream).mean("repeat")
        for rule in ("printed", "constant")
        for stream in ("changed", "steady")
    ]
    np.testing.assert_allclose(means(change.plot_gains(result)), expected)


def test_the_twins_errors_and_accuracies_are_those_of_the_reported_repeats(experiments):
    result, own = both(experiments, "spiking-twin")
    escape = twin.plot_escape(result)
    regular = own["direction_error"].sel(regular=["one cell", "four cells"]).mean("repeat")
    expected = [own["escape_direction_error"].mean("repeat"), regular]
    np.testing.assert_allclose(means(escape), expected)
    assert list(escape.containers[1].lines[0].get_xdata()) == [1, 4]
    strips = twin.plot_moons(result)
    heights = [line.get_ydata() for line in strips.lines if line.get_marker() == "o"]
    expected = [own["accuracy"], own["rate_accuracy"]]
    expected += [own["plain_accuracy"].sel(V_rule=rule) for rule in ("spikes", "freeze", "fade")]
    np.testing.assert_array_equal(heights, expected)
    errors = twin.plot_regular(result)
    heights = [line.get_ydata() for line in errors.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(heights, own["error"].transpose("regular", "repeat"))
    expected = [own[name].mean("repeat") for name in ("board_error", "rate_board_error")]
    np.testing.assert_allclose(means(twin.plot_board(result)), expected)


def cells(ax):
    """The numbers that stand in the cells of a map, from its lowest row on."""
    array = ax.images[0].get_array()
    found = np.full(array.shape, np.nan)
    for text in ax.texts:
        k, j = text.get_position()
        found[int(j), int(k)] = float(text.get_text())
    np.testing.assert_allclose(found, array, atol=0.00501)
    return array


def test_tiles_are_drawn_where_they_lie_at_their_moment(experiments):
    result = experiments["manifold-drift"]
    for moment in (0, 40):
        one = result.isel(repeat=0, moment=moment)
        ax = drift.plot_tiles(result, moment)
        assert (offsets(ax.collections[0]) == one["shown_point"].values).all()
        used = one["tile_used"].values > 0
        assert (offsets(ax.collections[1]) == one["tile_center"].values[used]).all()
        weight = one["tile_weight"].values[used]
        weight /= np.abs(weight).max() or 1
        np.testing.assert_allclose(ax.collections[1].get_array(), weight)
        assert ax.get_title() == f"{int(one['moment_time'])} points"


def test_a_film_has_a_frame_for_every_moment(experiments, tmp_path):
    result = experiments["manifold-drift"].isel(moment=[0, 20, 40])
    assert "animation" in kinds.offered(result)
    files = kinds.save(result, "animation", tmp_path / "film")
    assert files[0] == tmp_path / "film.gif"
    with Image.open(files[0]) as image:
        assert image.n_frames == 3
        first = np.array(image.convert("RGB"))
        image.seek(2)
        last = np.array(image.convert("RGB"))
    # Moons, tiles and the title move; the scale on the right stays, up to the few colours of a GIF.
    changed = (np.abs(first.astype(int) - last) > 60).any(axis=(0, 2))
    assert changed[: first.shape[1] // 2].any()
    assert not changed[int(0.85 * first.shape[1]) :].any()
    assert not plt.get_fignums()


def test_the_course_and_the_ends_are_means_of_the_reported_repeats(experiments):
    result, own = both(experiments, "manifold-drift")
    course = drift.plot_course(result, stream="translate")
    names = [name for name in result["follower"].values if "kept" not in name]
    assert len(names) == 7
    for name, heights in zip(names, means(drift.plot_streams(result)), strict=True):
        values = own["course"].sel(stream="translate", follower=name).mean("repeat")
        assert holds(course, values.values)
        np.testing.assert_allclose(heights, own["accuracy"].sel(follower=name).mean("repeat"))
    assert 200 in [line.get_xdata()[0] for line in course.lines]


def test_the_map_of_speeds_and_the_line_of_the_lag(experiments):
    result = experiments["manifold-drift"]
    for tiles in ("recruited", "shifted"):
        ax = drift.plot_map(result, tiles=tiles)
        expected = result["map"].isel(repeat=slice(2)).sel(tiles=tiles).mean("repeat")
        np.testing.assert_allclose(cells(ax), expected.transpose("eta", "speed"))
        x, y = ax.lines[-1].get_data()
        # Rows and columns are a factor of four apart: 25 and 100 turns, eta 0.01 and 0.04.
        speed, eta = 25 * 4 ** np.array(x), 0.01 * 4 ** np.array(y)
        inside = ~np.isnan(eta)
        way = 2 * np.pi * float(result["travel"][0]) / 1e4
        np.testing.assert_allclose(speed[inside] * way / eta[inside], 0.4)


def test_the_course_after_an_exchange_is_that_of_the_chosen_gain(experiments):
    result, own = both(experiments, "label-swap")
    ax = swap.plot_course(result)
    expected = []
    for rule, grid in (("printed", "mu"), ("constant", "mu"), ("gated", "gated_mu")):
        choosing = result[f"{rule}_wrong"].isel(repeat=2).transpose(grid, ...).values
        gain = int(choosing.mean(axis=(1, 2)).argmin())
        right = 1 - own[f"{rule}_wrong"].isel({grid: gain}).mean("repeat")
        expected += [right.sel(share=0.1), right.sel(share=0.05)]
    np.testing.assert_allclose(means(ax), expected)
    assert ax.containers[0].lines[0].get_xdata().tolist() == [100, 200, 300, 400]


@pytest.mark.parametrize(("rule", "grid"), [("constant", "mu"), ("gated", "gated_mu")])
def test_what_is_carried_and_what_is_overwritten(experiments, rule, grid):
    result, own = both(experiments, "label-swap")
    values = own[f"{rule}_strength"].mean("repeat")
    np.testing.assert_allclose(means(swap.plot_strength(result, rule))[0], values)
    ax = swap.plot_map(result, rule)
    right = 1 - own[f"{rule}_wrong"].sel(part=3).mean("repeat")
    np.testing.assert_allclose(cells(ax), right.transpose("share", grid))
    # Between the columns of the two gains beside it, in the place of the critical one.
    critical = 1.0 if rule == "gated" else float(own["critical"].mean())
    gains = sorted(result[grid].values)
    column = next(k for k in range(len(gains) - 1) if gains[k] <= critical <= gains[k + 1])
    share = (critical - gains[column]) / (gains[column + 1] - gains[column])
    assert ax.lines[-1].get_xdata()[0] == pytest.approx(column + share)


def test_right_answers_on_digits_are_those_of_the_reported_repeats(experiments):
    result, own = both(experiments, "digits")
    few = handwriting.plot_labels(result)
    for container, name in zip(few.containers, handwriting.LEARNERS, strict=True):
        values = own["few_accuracy"].sel(learner=name).transpose("repeat", "n_labels").values
        assert_mean_and_spread(container, values)
    streams = handwriting.plot_streams(result)
    expected = [
        own["stream_course"].sel(stream_learner=name, share=share).mean("repeat")
        for name in ("gated", "nearest")
        for share in (0.02, 0.05)
    ]
    np.testing.assert_allclose([line.get_ydata() for line in streams.lines], expected)


def test_tiles_that_answer_otherwise_than_their_images_are_framed(experiments):
    one = experiments["digits"].isel(repeat=0)
    answers, tiles = one["tile_class"].shape
    classes = np.repeat(np.arange(answers)[:, None], tiles, axis=1)
    classes[3, 1], classes[5, -1] = 8, -1  # the last is not there
    ax = handwriting.plot_tiles(one.assign(tile_class=one["tile_class"].copy(data=classes)))
    (frame,) = ax.patches
    assert (round(frame.get_x() + 0.47), round(frame.get_y() + 0.47)) == (1, 3)
    assert [text.get_text() for text in ax.texts] == ["8"]


def test_hard_images_have_their_answer_and_class_below(experiments):
    one = experiments["digits"].isel(repeat=0).copy(deep=True)
    one["hard_answer"].values[0, :3], one["hard_class"].values[0, :3] = (-1, 4, 5), (7, 4, 6)
    one["hard_class"].values[0, 3:] = -1  # there are no more
    ax = handwriting.plot_hard(one, kind="undecided")
    assert [text.get_text() for text in ax.texts] == ["? (7)", "4 (4)", "5 (6)"]
    wrong = [to_rgba(text.get_color()) == to_rgba(LOWER) for text in ax.texts]
    assert wrong == [False, False, True]
    assert [text.get_position()[0] for text in ax.texts] == [0, 1, 2]


def test_pictures_stand_upright_in_their_places():
    images = np.full((2, 3, 4), np.nan)
    images[1, 2] = [0.1, 0.2, 0.3, 0.4]  # two by two
    ax = plt.figure().add_subplot()
    handwriting.mosaic(ax, images)
    (drawn,) = ax.images
    array = np.ma.filled(drawn.get_array().astype(float), np.nan)
    assert array.shape == (6, 9)  # sides of two, and one between
    assert array[3:5, 6:8].tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert np.isnan(array).sum() == 6 * 9 - 4
    assert drawn.get_clim() == (0, 0.4)


def test_middles_of_fields_are_of_the_first_repeat(experiments):
    result = experiments["representational-drift"]
    for size in (0.0, 1e-4):
        ax = fields.plot_centers(result, size)
        center = result["center"].isel(repeat=0).sel(size=size)
        grey, marked = ax.lines[: center.sizes["tile"]], ax.lines[center.sizes["tile"] :]
        drawn = [line.get_ydata() for line in grey]
        np.testing.assert_array_equal(drawn, center.transpose("tile", "moment"))
        # Each marked tile has a line, through the middle between its moments, and dots.
        assert len(marked) == 2 * fields.MARKED
        for line, dots in zip(marked[::2], marked[1::2], strict=True):
            np.testing.assert_array_equal(line.get_ydata()[::2], dots.get_ydata())
            assert any(np.array_equal(dots.get_ydata(), tile, equal_nan=True) for tile in drawn)


def test_a_line_is_broken_where_a_tile_jumps_or_is_silent(experiments):
    result = experiments["representational-drift"].isel(repeat=[0]).copy(deep=True)
    center = np.full(result["center"].shape, 0.5)
    center[0, 0, 3:] = 2.4  # by more than a quarter round
    center[0, 0, 6] = np.nan
    result["center"].values[:] = center
    line = fields.plot_centers(result, 0.0).lines[-2].get_ydata()
    assert np.flatnonzero(np.isnan(line)).tolist() == [5, 11, 12, 13]
    assert line[3] == 0.5
    assert line[7] == 2.4


def test_what_is_kept_and_how_far_tiles_move_are_means_over_reported_repeats(experiments):
    result, own = both(experiments, "representational-drift")
    kept = fields.plot_kept(result)
    assert holds(kept, own["own_field"].mean("tile").sel(size=1e-4).mean("repeat").values)
    assert holds(kept, own["likeness"].sel(size=0).mean("repeat").values)
    assert len(kept.lines) == 6
    moved = fields.plot_moved(result)
    for line, size in zip(moved.lines, (0.0, 1e-4, 1e-3), strict=True):
        expected = own["moved"].sel(size=size).mean("repeat").values[1:]
        np.testing.assert_allclose(line.get_ydata(), expected)
    lines = iter(fields.plot_readout(result).lines)
    for rule in ("paper", "gated"):
        for stream in ("still", "noise", "frozen"):
            course = own["readout_course"].sel(rule=rule, stream=stream)
            np.testing.assert_allclose(next(lines).get_ydata(), course.mean("repeat"))


def test_diffusion_stands_beside_what_noise_along_the_ring_gives(experiments):
    result, own = both(experiments, "representational-drift")
    ax = fields.plot_diffusion(result)
    found = {line.get_label(): line for line in ax.lines}
    weight = own["weight"].sel(size=[1e-4, 1e-3]).values.mean()
    expected = np.array([1e-8, 1e-6]) / (2 * weight**2)
    np.testing.assert_allclose(found["size²/(2|W|²)"].get_ydata(), expected)
    still = float(own["diffusion"].sel(size=0).mean())
    np.testing.assert_allclose(found["no noise"].get_ydata(), still)
    noisy = own.sel(size=[1e-4, 1e-3]).mean("repeat")
    np.testing.assert_allclose(means(ax), [noisy["diffusion"], noisy["creep"]])


def test_lesions_are_drawn_right_after_and_later(experiments):
    result = experiments["lesions"].isel(repeat=[0, 1])
    ax = damaged.plot_lesions(result, "coverage")
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    expected = result["predicted_coverage"].mean("repeat")
    np.testing.assert_allclose(drawn["expected right after"], expected)
    bars = {bar.get_label(): bar[0].get_ydata() for bar in ax.containers}
    np.testing.assert_allclose(bars["right after"], result["after_coverage"].mean("repeat"))
    later = result["later_coverage"].sel(condition="none, learns").mean("repeat")
    np.testing.assert_allclose(bars["100 later, no idle tiles, learns"], later)
    assert len(bars) == 5


def test_predicted_delays_stand_where_they_are_in_time(experiments):
    result = experiments["lesions"].isel(repeat=[0, 1])
    step = 1000 / 1024  # ms
    for ax, name in (
        (damaged.plot_growth(result), "critical_delay"),
        (damaged.plot_settled(result), "settling_delay"),
    ):
        dashed = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
        places = [line.get_xdata()[0] for line in dashed if len(line.get_xdata())]
        values = result[name].isel(repeat=0).to_numpy()
        np.testing.assert_allclose(places, [step * v for v in values if v <= 4])
        np.testing.assert_allclose(ax.containers[0][0].get_xdata(), step * np.array([0, 2, 4]))


def test_errors_in_noise_stand_on_the_linear_response(experiments):
    result = experiments["lesions"].isel(repeat=[0, 1])
    ax = damaged.plot_noise(result)
    measured = result["noise_error"].sel(on=list("huV")).mean("repeat").transpose("on", ...)
    np.testing.assert_allclose(means(ax), measured)
    unnamed = [line for line in ax.get_lines() if line.get_label().startswith("_child")]
    drawn = [line.get_ydata() for line in unnamed if line.get_linestyle() == "-"]
    predicted = result["predicted_noise_error"].mean("repeat").to_numpy()
    np.testing.assert_allclose(drawn, predicted)
