"""Plots of the dynamics and of agreement draw what a result holds, and say what it lacks."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.animation import FFMpegWriter
from matplotlib.figure import Figure
from PIL import Image

from analysis import agreement, dynamics, studies, theory
from circuits import ReferenceCircuit, SphereLift
from circuits.errors import InputError
from simulations.experiments.two_moons import Settings, annotate, make_stream
from tests.conftest import small_circuit

N, M = 40, 24
SMALL = small_circuit(n_tiles=M, n_interneurons=3, steps_per_presentation=200, tile_radius=0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A recorded result that has been on disk, as the command line finds it."""
    stream = make_stream(Settings(n_points=N, label_after=20), 3, SMALL)
    circuit = ReferenceCircuit(stream.parameters, stream.lift)
    found = circuit.run(stream.points, stream.labels, record=("h", "u", "V", "y"), snapshot_every=1)
    path = tmp_path_factory.mktemp("dynamics") / "run.nc"
    annotate(found, stream, 3).to_netcdf(path, engine="h5netcdf")
    with xr.open_dataset(path, engine="h5netcdf") as data:
        return data.load()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def times():
    return 1e3 * SMALL.dt_ * np.arange(1, 201)


def lines(ax, dashed=False):
    """The y values of an axes' lines, drawn or dashed."""
    return [
        np.asarray(line.get_ydata())
        for line in ax.lines
        if (line.get_linestyle() == "--") == dashed
    ]


def holds(ax, expected):
    """Whether some line of the axes has exactly these values."""
    return any(len(y) == len(expected) and (y == expected).all() for y in lines(ax))


@pytest.mark.parametrize("name", ["h", "u", "y"])
def test_traces_are_the_results(run, name):
    ax = dynamics.plot_trace(run, 30, name)
    trace = run[f"{name}_trace"].values[30]
    assert len(lines(ax)) == trace.shape[1]
    for cell in range(trace.shape[1]):
        assert holds(ax, trace[:, cell])
    assert (ax.lines[0].get_xdata() == times()).all()
    target = getattr(theory.target_of(run, 30), name)
    goals = [y[0] for y in lines(ax, dashed=True)]
    assert goals
    assert all(np.abs(target - goal).min() == 0 for goal in goals)
    assert "ms" in ax.get_xlabel()


def test_synapses_and_current_are_the_results(run):
    V, u = run["V_trace"].values[30], run["u_trace"].values[30]
    ax = dynamics.plot_trace(run, 30, "V")
    assert len(lines(ax)) == 3 * M
    assert holds(ax, V[:, 1, 4])
    ax = dynamics.plot_trace(run, 30, "current")
    expected = np.einsum("ski,sk->si", V, u)
    # Lines are grey tiles first; in any order they are the columns, up to rounding of 1e-3.
    for drawn in lines(ax):
        assert np.abs(expected - drawn[:, None]).max(axis=0).min() < 1e-17
    assert len(lines(ax)) == M


def test_the_predicted_envelope_bounds_the_deviation_and_has_its_slope(run):
    ax = dynamics.plot_trace(run, 30, "distance")
    target = theory.target_of(run, 30)
    for place, direction in enumerate(("along", "across")):
        seen, bound = (np.asarray(ax.lines[2 * place + i].get_ydata()) for i in (0, 1))
        assert (seen == dynamics.deviations(run, 30, target)[direction]).all()
        factor = theory.growth_factor(dynamics.gamma_of(run), target.size, direction)
        assert np.abs(bound[1:] / bound[:-1] - factor).max() < 1e-12
        late = (np.arange(200) > 60) & (seen > 1e-12)
        assert late.sum() > 10
        assert (seen[late] <= bound[late] * (1 + 1e-9)).all()
        # An envelope, not just a bound: it touches within an oscillation (less than 40 steps),
        # while the deviation itself falls by many orders of magnitude.
        assert (seen[late] / bound[late]).max() > 0.05


def test_a_figure_without_the_closed_form_says_why(run):
    bare = run.drop_vars(["W_snapshots", "b_snapshots", "w_snapshots"])
    axes = dynamics.plot_settling(bare, 30)
    assert "snapshot_every=1" in axes[5].texts[0].get_text().replace("\n", " ")
    assert not lines(axes[0], dashed=True)
    first = dynamics.plot_settling(run, 0)
    assert "not in the result" in first[4].texts[0].get_text()  # w before the first presentation


def test_an_uncovered_point_is_drawn(run):
    lift = SphereLift(center=(0.5, 0.25), radius=3.0)
    points = np.vstack([run["points"].values, [[2.5, 1.5]]])
    circuit = ReferenceCircuit(SMALL, lift)
    found = circuit.run(points, record=("h", "u", "V", "y"), snapshot_every=1)
    assert not found["covered"].values[-1]
    fig = dynamics.figure_settling(found, [-1])
    fig.canvas.draw()
    assert "no tile covers" in fig.axes[5].texts[0].get_text().replace("\n", " ")


def test_phase_portrait_starts_at_rest_and_ends_at_the_fixed_point(run):
    ax = dynamics.plot_phase(run, [10, 30])
    path, start, star = ax.lines[3:6]
    norms = [np.linalg.norm(run[f"{n}_trace"].values[30], axis=1) for n in "hu"]
    assert (path.get_xdata()[1:] == norms[0]).all()
    assert (path.get_ydata()[1:] == norms[1]).all()
    assert start.get_xdata()[0] == path.get_xdata()[0] == pytest.approx(1)
    size = theory.target_of(run, 30).size
    assert star.get_xdata()[0] == pytest.approx(1)
    assert star.get_ydata()[0] == pytest.approx(np.sqrt(size))


def test_learning_draws_every_snapshot(run):
    axes = dynamics.plot_learning(run)
    assert [len(ax.lines) for ax in axes[:2]] == [M * 3, M + 1]
    assert holds(axes[0], run["W_snapshots"].values[:, 5, 2])
    assert holds(axes[1], run["b_snapshots"].values[:, 7])
    moved = np.flatnonzero(run["w"].values[0])[0]
    assert holds(axes[2], run["w_snapshots"].values[:, 0, moved])
    assert (axes[1].lines[0].get_xdata() == np.arange(N)).all()


def test_tile_maps_show_centres_and_reach(run):
    axes = dynamics.plot_tiles(run, [0, 20, 39])
    assert [ax.get_title() for ax in axes] == [f"after {n} presentations" for n in (1, 21, 40)]
    centers, reach = dynamics.tiles_at(run, 39)
    dots = next(c for c in axes[2].collections if len(c.get_offsets()) == M)
    assert (np.asarray(dots.get_offsets()) == centers).all()
    # A point just inside the reach drives its tile, one just outside does not.
    lift, alpha = theory.lift_of(run), float(run.attrs["alpha"])
    for tile in range(M):
        unit = run["W"].values[tile] / np.linalg.norm(run["W"].values[tile])
        side = np.cross(unit, [1.0, 0, 0])
        side /= np.linalg.norm(side)
        for scale, sign in ((0.99, 1), (1.01, -1)):
            cosine = 1 - (scale * reach[tile] / lift.radius) ** 2 / 2
            x = cosine * unit + np.sqrt(1 - cosine**2) * side
            drive = run["W"].values[tile] @ x - np.sqrt(alpha) * run["b"].values[tile]
            assert np.sign(drive) == sign


def test_animation_has_a_frame_per_snapshot(run, tmp_path):
    few = run.isel(snapshot=slice(0, None, 10))
    files = dynamics.animate_tiles(few, tmp_path / "film")
    assert files[0] == tmp_path / "film.gif"
    assert len(files) == 1 + FFMpegWriter.isAvailable()
    with Image.open(files[0]) as film:
        assert film.n_frames == 4
    (thinned,) = dynamics.animate_tiles(run, tmp_path / "short.gif", max_frames=3)
    with Image.open(thinned) as film:
        assert film.n_frames == 3
    if not FFMpegWriter.isAvailable():
        with pytest.raises(InputError, match=r"ffmpeg.*\.gif"):
            dynamics.animate_tiles(few, tmp_path / "film.mp4")
    assert not plt.get_fignums()


def test_raster_orders_tiles_and_presentations(run):
    image = dynamics.plot_raster(run).images[0].get_array().filled(0)
    h = run["h"].values
    by_position = np.argsort(run["position"].values)
    tiles = dynamics.tile_order(run)
    assert sorted(tiles) == list(range(M))
    assert (image == h[by_position][:, tiles].T).all()
    # Along the manifold the winners rise: neighbours in one order are neighbours in the other.
    covered = h[by_position].any(axis=1)
    winners = image.argmax(axis=0)[covered]
    assert np.corrcoef(np.arange(len(winners)), winners)[0, 1] > 0.95
    timed = dynamics.plot_raster(run.drop_vars("position")).images[0].get_array().filled(0)
    assert timed.shape == image.shape
    assert (timed.argmax(axis=0)[h.any(axis=1)] != winners).any()
    with pytest.raises(InputError, match="by='time'"):
        dynamics.plot_raster(run.drop_vars("position"), by="position")


def test_differences_are_drawn_with_zeros_on_the_floor(run):
    other = run.copy(deep=True)
    other["h"][7, 3] += 1e-9
    other["V_trace"][7, 5, 1, 2] += 1e-7
    ax = agreement.plot_differences(run, other)
    drawn = ax.lines[0].get_ydata()
    assert drawn[7] == pytest.approx(1e-9, rel=1e-6)  # rounding of 1 + 1e-9
    assert (np.delete(drawn, 7) == agreement.FLOOR).all()
    assert ax.get_yscale() == "log"
    assert any((line.get_ydata()[0] == np.finfo(float).eps) for line in ax.lines)
    assert ax.get_ylim()[0] < agreement.FLOOR < 1e-9 < ax.get_ylim()[1]
    steps = agreement.plot_step_differences(run, other, 7)
    V = steps.lines[2].get_ydata()
    assert V[5] == pytest.approx(1e-7, rel=1e-6)
    assert (np.delete(V, 5) == agreement.FLOOR).all()
    with pytest.raises(InputError, match="one stream"):
        agreement.plot_differences(run, other.isel(presentation=slice(5)))


def test_studies_are_drawn(run):
    study = studies.convergence_study("reference", (32, 64))
    ax = agreement.plot_convergence(study)
    guide, measured = ax.lines
    assert (measured.get_ydata() == study["error"].values).all()
    slope = np.diff(np.log(guide.get_ydata())) / np.diff(np.log(guide.get_xdata()))
    assert slope == pytest.approx(1)
    errors = studies.settling_errors(run)
    ax = agreement.plot_settling_error(errors)
    assert (ax.lines[0].get_ydata() == np.median(errors["error"].values[0], axis=0)).all()
    stability = studies.stability_map([0.1, 1.0, 10.0], [0.2, 0.5], steps=40)
    ax = agreement.plot_stability_map(stability, working_point=studies.working_points(run))
    mesh = ax.collections[0]
    assert (np.asarray(mesh.get_array()).reshape(2, 3) == stability["measured"].values).all()
    boundary = ax.lines[0]
    rates = studies.rates_of_ratio(boundary.get_xdata(), 0.5)
    positive = boundary.get_ydata() > 0
    assert positive.any()
    for i in np.flatnonzero(positive)[::200]:
        gamma = boundary.get_ydata()[i], rates[0][i], rates[1][i]
        assert theory.growth_factor(gamma, 1.0) == pytest.approx(1, abs=1e-10)


def overlaps(fig):
    """Pairs of texts of a figure (titles, axis labels, legends) that lie on one another."""
    fig.canvas.draw()
    boxes = []
    for ax in fig.axes:
        texts = [t for t in (ax.title, ax.xaxis.label, ax.yaxis.label) if t.get_text()]
        boxes += [t.get_window_extent() for t in (*texts, ax.get_legend()) if t is not None]
    boxes += [text.get_window_extent() for text in fig.texts]  # the figure's title among them
    return sum(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


FIGURES = {
    "settling": lambda run: dynamics.figure_settling(run),
    "settling of several": lambda run: dynamics.figure_settling(run, [0, 20, 30]),
    "phase": lambda run: dynamics.figure_phase(run),
    "learning": lambda run: dynamics.figure_learning(run),
    "tiles": lambda run: dynamics.figure_tiles(run),
    "raster": lambda run: dynamics.figure_raster(run),
    "agreement": lambda run: agreement.figure_agreement(run, run),
    "settling error": lambda run: agreement.figure_settling_error(studies.settling_errors(run)),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_have_titles_and_no_text_on_text(run, name):
    before = dict(mpl.rcParams)
    fig = FIGURES[name](run)
    assert isinstance(fig, Figure)
    assert fig.get_suptitle()
    assert overlaps(fig) == 0
    assert dict(mpl.rcParams) == before  # the user's own style is left alone


AXES_FUNCTIONS = {
    "plot_trace": lambda run, ax: dynamics.plot_trace(run, 5, "h", ax),
    "plot_phase": lambda run, ax: dynamics.plot_phase(run, [5], ax),
    "plot_tile_map": lambda run, ax: dynamics.plot_tile_map(run, 5, ax),
    "plot_raster": lambda run, ax: dynamics.plot_raster(run, ax),
    "plot_differences": lambda run, ax: agreement.plot_differences(run, run, ax),
    "plot_step_differences": lambda run, ax: agreement.plot_step_differences(run, run, 5, ax),
}


@pytest.mark.parametrize("name", AXES_FUNCTIONS)
def test_given_axes_are_used_and_returned(run, name):
    ax = plt.figure().add_subplot()
    assert AXES_FUNCTIONS[name](run, ax) is ax
    assert len(plt.get_fignums()) == 1
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize(
    ("missing", "call", "message"),
    [
        ("h_trace", lambda run: dynamics.plot_settling(run, 3), r"h_trace.*record=\('h',\)$"),
        ("V_trace", lambda run: dynamics.plot_trace(run, 3, "current"), r"record=\('V',\)$"),
        ("u_trace", lambda run: dynamics.plot_phase(run), r"u_trace.*record=\('u',\)$"),
        ("b_snapshots", dynamics.plot_learning, r"b_snapshots.*snapshot_every=N$"),
        ("W_snapshots", dynamics.plot_tiles, r"W_snapshots.*snapshot_every=N$"),
        (
            ["h_trace", "u_trace", "V_trace", "y_trace"],
            lambda run: agreement.plot_step_differences(run, run, 3),
            r"record=\('h', 'u', 'V', 'y'\)$",
        ),
    ],
)
def test_a_missing_variable_is_named_with_what_to_record(run, missing, call, message):
    with pytest.raises(InputError, match=message) as error:
        call(run.drop_vars(missing))
    assert str(error.value).count(". ") == 0  # one sentence
    assert not plt.get_fignums()  # and no empty figure left behind


def test_presentations_and_snapshots_must_exist(run):
    with pytest.raises(InputError, match=r"no presentation 40.*0 to 39"):
        dynamics.plot_trace(run, 40)
    with pytest.raises(InputError, match="no snapshot 40"):
        dynamics.plot_tile_map(run, 40)
    with pytest.raises(InputError, match="no panel 'x'"):
        dynamics.plot_trace(run, 3, "x")
