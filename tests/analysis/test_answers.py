"""Answers are drawn over the data: those given, and those of the weights at the end."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from analysis import answers
from circuits import CircuitParameters, ReferenceCircuit, SphereLift
from circuits.errors import InputError
from tests.analysis.drawing import laid_out, offsets, text_on_text
from tests.conftest import moons

# Small circuits that cover only a part of the data.
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning")


@pytest.fixture(autouse=True)
def _coarse(monkeypatch):
    """A grid that takes little time; what is shown on it is the same."""
    monkeypatch.setattr(answers, "GRID", 30)


def own_data(d, n_readouts=1, n=60, radius=0.8):
    """A user's stream of d coordinates: the class is the sign of the first, one in six labelled."""
    rng = np.random.default_rng(d)
    points = rng.uniform(-1, 1, (n, d))
    classes = np.sign(points[:, 0])
    labels = np.where(np.arange(n) % 6 == 5, classes, 0)
    mu = tuple(float(10**i) for i in range(n_readouts))
    p = CircuitParameters(n_tiles=12, tile_radius=radius, n_readouts=n_readouts, mu=mu)
    lift = SphereLift(center=np.zeros(d), radius=3.0)
    circuit = ReferenceCircuit(p, lift, settling="exact")
    run = circuit.run(points, labels).assign(classes=("presentation", classes))
    return circuit, run


def drawn_points(ax):
    """The scatter plot of the answers: the one that has a point and a value for each."""
    (found,) = (
        c for c in ax.collections if not isinstance(c, QuadMesh) and c.get_array() is not None
    )
    return offsets(found), np.asarray(found.get_array())


def planes(ax):
    return [c for c in ax.collections if isinstance(c, QuadMesh)]


@pytest.mark.parametrize(("d", "shown"), [(2, [0, 1]), (3, [0, 2]), (5, [0, 1])])
def test_points_are_coloured_by_their_answers(d, shown):
    _, run = own_data(d)
    assert text_on_text(laid_out(answers.figure_answers(run))) == 0
    ax = answers.plot_answers(run)
    places, values = drawn_points(ax)
    assert (places == run["points"].values[:, shown]).all()
    assert (values == run["y"].values[:, 0]).all()
    assert len(planes(ax)) == (d == 2)
    signed = [len(offsets(c)) for c in ax.collections if c.get_array() is None]
    labels = run["labels"].values[:, 0]
    counts = [(labels == 1).sum(), (labels == -1).sum()]
    assert signed == [counts[0], counts[0], counts[1], counts[1]]  # disc and sign of each


def test_answers_on_a_line_are_heights():
    circuit, run = own_data(1)
    assert text_on_text(laid_out(answers.figure_answers(run))) == 0
    ax = answers.plot_answers(run)
    places, _ = drawn_points(ax)
    assert (places == np.column_stack([run["points"].values[:, 0], run["y"].values[:, 0]])).all()
    x, y = (np.asarray(part) for part in ax.lines[0].get_data())
    # Answers may be near zero, where mu w.h is a small difference: rounding of sums of size mu.
    assert y == pytest.approx(circuit.predict(x[:, None])[:, 0], abs=1e-9)


def test_the_plane_is_what_the_circuit_predicts_and_silent_where_no_tile_reaches():
    circuit, run = own_data(2, radius=0.25)
    ax = answers.plot_answers(run)
    (plane,) = planes(ax)
    image = np.ma.getdata(plane.get_array()).reshape(answers.GRID, answers.GRID)
    final = answers.FinalAnswers.of(run)
    x, y = final.axes
    for row, column in ((1, 3), (15, 5), (22, 25)):
        expected = circuit.predict([[x[column], y[row]]])[0, 0]
        assert image[row, column] == pytest.approx(expected, abs=1e-9)
    silent = ~circuit.respond(np.column_stack([x, y])).any(axis=1)
    assert silent.any()  # some of the plane is covered by no tile
    assert (np.diag(image)[silent] == 0).all()
    assert final.points == pytest.approx(circuit.predict(run["points"].values), abs=1e-9)


def test_places_outside_the_lift_are_left_white():
    points, _, labels = moons(60, after=20)
    lift = SphereLift.around(points, slack=1.01)
    p = CircuitParameters(n_tiles=10, tile_radius=0.6)
    run = ReferenceCircuit(p, lift, settling="exact").run(points, labels)
    (plane,) = planes(answers.plot_answers(run))
    final = answers.FinalAnswers.of(run)
    away = np.hypot(*np.meshgrid(*(a - c for a, c in zip(final.axes, lift.center, strict=True))))
    assert (np.isnan(final.grid[..., 0]) == (away > lift.radius)).all()
    mask = np.ma.getmaskarray(plane.get_array())
    assert (mask.ravel() == (away > lift.radius).ravel()).all()
    assert mask.any()


def test_a_changed_model_and_missing_weights_have_no_plane():
    _, run = own_data(2)
    changed = run.assign_attrs(model_changes='{"inhibitory": "of my own"}')
    for other in (changed, run.drop_vars("b")):
        ax = answers.plot_answers(other)
        assert not planes(ax)
        assert "at the end" not in ax.get_title()
        assert len(drawn_points(ax)[0]) == 60
    assert planes(answers.plot_answers(run.assign_attrs(model_changes='{"bias": "of my own"}')))


def test_the_title_says_the_accuracy_where_classes_are_known():
    circuit, run = own_data(2)
    y, classes = run["y"].values[:, 0], run["classes"].values
    labels = run["labels"].values[:, 0]
    counted = (labels == 0) & (np.arange(60) > 5)  # the first label is the sixth point's
    shown = (np.sign(y) == classes)[counted].mean()
    end = (np.sign(circuit.predict(run["points"].values)[:, 0]) == classes)[counted].mean()
    text = answers.plot_answers(run).get_title()
    assert f"accuracy {shown:.1%} when shown, {end:.1%} at the end" in text
    assert f"({counted.sum()} unlabelled points since the first label)" in text
    # Classes that are not known, 0 or NaN, do not count.
    kept = counted & (np.arange(60) < 40)
    share = (np.sign(y) == classes)[kept].mean()
    for unknown in (0.0, np.nan):
        some = run["classes"].where(np.arange(60) < 40, unknown)
        text = answers.verdict(run.assign(classes=some))
        assert text.startswith(f"accuracy {share:.1%} when shown\n({kept.sum()} ")
    silent = run.assign(labels=0 * run["labels"])
    for unknown in (silent, run.assign(classes=0 * run["classes"]), run.drop_vars("classes")):
        assert answers.verdict(unknown) == ""
    assert not any(ax.get_title() for ax in answers.figure_answers(silent).axes)


def test_every_readout_has_a_panel_up_to_six():
    _, run = own_data(2, n_readouts=2)
    fig = answers.figure_answers(run)
    panels = [ax for ax in fig.axes if ax.get_title()]
    assert len(panels) == 2
    for readout, ax in enumerate(panels):
        assert (drawn_points(ax)[1] == run["y"].values[:, readout]).all()
    assert text_on_text(laid_out(fig)) == 0
    _, many = own_data(3, n_readouts=7)
    fig = answers.figure_answers(many)
    assert sum(bool(ax.get_title()) for ax in fig.axes) == 6
    assert "the first 6 of 7 readouts" in fig.get_suptitle()
    with pytest.raises(InputError, match="no readout 7: there are 7"):
        answers.plot_answers(many, readout=7)
