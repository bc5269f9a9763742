"""Learning is drawn as it was stored, over the circuit's life."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import dynamics
from circuits.errors import InputError
from tests.analysis.drawing import M, N, holds, lines, used


@pytest.mark.parametrize(("name", "first"), [("run", 1), ("later", 501)])
def test_learning_draws_every_snapshot(request, name, first):
    run = request.getfixturevalue(name)
    axes = dynamics.plot_learning(run)
    # Idle tiles have no line; under the biases a mark for every tile that was recruited.
    assert [len(ax.lines) for ax in axes[:2]] == [used(run) * 3, used(run) + 2]
    assert 10 < used(run) < M
    recruited = run["recruited"].values
    assert (axes[1].lines[-1].get_xdata() == recruited[recruited >= 0] + 1).all()
    # The line of a tile begins with the first snapshot that holds it.
    began = np.arange(N) >= recruited[7] - (first - 1)
    assert 0 < began.sum() < N
    for ax, values in (
        (axes[0], run["W_snapshots"].values[:, 7, 2]),
        (axes[1], run["b_snapshots"].values[:, 7]),
    ):
        assert (values[began] != 0).all()
        drawn = [y for y in lines(ax) if np.array_equal(np.isfinite(y), began)]
        assert any((y[began] == values[began]).all() for y in drawn)
    medians = [np.median(row[row > 0]) for row in run["b_snapshots"].values]
    assert holds(axes[1], np.array(medians))
    moved = np.flatnonzero(run["w"].values[0])[0]
    begun = run["snapshot"].values > recruited[moved]
    drawn = [y[begun] for y in lines(axes[2]) if len(y) == N]
    assert any((y == run["w_snapshots"].values[begun, 0, moved]).all() for y in drawn)
    assert (axes[1].lines[0].get_xdata() == first + np.arange(N)).all()
    # A label is marked where the weights first hold what it taught.
    labels = run["labels"].values[:, 0]
    marks = {line.get_label(): line.get_xdata() for line in axes[2].lines}
    for sign, text in ((1, "label +1"), (-1, "label −1")):
        assert (marks[text] == first + np.flatnonzero(labels == sign)).all()


def test_tiles_that_were_there_from_the_start_have_whole_lines(constant):
    axes = dynamics.plot_learning(constant)
    assert [len(ax.lines) for ax in axes[:2]] == [M * 3, M + 1]
    assert holds(axes[0], constant["W_snapshots"].values[:, 5, 2])
    assert holds(axes[1], constant["b_snapshots"].values[:, 7])


def test_many_inputs_are_drawn_as_norms(constant):
    wide = constant["W_snapshots"].values[:, :, [0, 1, 2, 0, 1]]
    ax = dynamics.plot_learning(constant.isel(input=[0, 1, 2, 0, 1]))[0]
    expected = np.sqrt((wide**2).sum(axis=2))
    drawn = np.array([line.get_ydata() for line in ax.lines]).T
    assert drawn == pytest.approx(expected, rel=1e-14)


def test_axes_and_readouts_must_exist(run):
    with pytest.raises(InputError, match="no readout 1: there are 1"):
        dynamics.plot_learning(run, readout=1)
    with pytest.raises(InputError, match="3 axes, got 0"):
        dynamics.plot_learning(run, axes=[])
