"""Settling is drawn as it was recorded, with where theory says it leads."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import dynamics, theory
from circuits import ReferenceCircuit, SphereLift, reference
from circuits.errors import InputError
from tests.analysis.drawing import CONSTANT, SMALL, M, holds, lines

ROUNDING = 1e-15
"""Numbers of size one and below, computed twice: sums may be taken in another order."""


def in_use(run, presentation):
    """The tiles in use during a presentation."""
    recruited = run["recruited"].values
    return np.flatnonzero((recruited >= 0) & (recruited <= presentation))


@pytest.mark.parametrize("name", ["h", "u", "y"])
def test_traces_are_the_results(either, name):
    run = either
    ax = dynamics.plot_trace(run, 30, name)
    trace = run[f"{name}_trace"].values[30]
    cells = in_use(run, 30) if name == "h" else range(trace.shape[1])
    assert len(lines(ax)) == len(cells)
    for cell in cells:
        assert holds(ax, trace[:, cell])
    times = 1e3 * SMALL.dt_ * np.arange(1, len(trace) + 1)
    assert ax.lines[0].get_xdata() == pytest.approx(times, rel=1e-14)
    target = getattr(theory.target_of(run, 30), name)
    goals = [y[0] for y in lines(ax, dashed=True)]
    assert goals
    assert all(np.abs(target - goal).min() < ROUNDING for goal in goals)
    assert "ms" in ax.get_xlabel()


def test_synapses_and_current_are_the_results(either):
    run, tiles = either, in_use(either, 30)
    V, u = run["V_trace"].values[30], run["u_trace"].values[30]
    ax = dynamics.plot_trace(run, 30, "V")
    assert len(lines(ax)) == 3 * len(tiles)
    assert holds(ax, V[:, 1, 4])
    ax = dynamics.plot_trace(run, 30, "current")
    expected = np.einsum("ski,sk->si", V, u)
    # Lines are grey tiles first; in any order they are the columns, up to rounding of 1e-3.
    for drawn in lines(ax):
        assert np.abs(expected - drawn[:, None]).max(axis=0).min() < 1e-17
    assert len(lines(ax)) == len(tiles)


def test_the_predicted_envelope_bounds_the_deviation_and_has_its_slope(either):
    run, steps = either, either.sizes["step"]
    ax = dynamics.plot_trace(run, 30, "distance")
    target = theory.target_of(run, 30)
    for place, direction in enumerate(("along", "across")):
        seen, bound = (np.asarray(ax.lines[2 * place + i].get_ydata()) for i in (0, 1))
        # What is less than rounding is drawn as such, and never left out.
        assert np.abs(seen - dynamics.deviations(run, 30, target)[direction]).max() < ROUNDING
        assert (seen > 0).all()
        factor = theory.growth_factor(theory.gamma_of(run, target.size), target.size, direction)
        assert np.abs(bound[1:] / bound[:-1] - factor).max() < 1e-12
        late = (np.arange(steps) > 0.3 * steps) & (seen > 1e-12)
        assert late.sum() > 10
        assert (seen[late] <= bound[late] * (1 + 1e-9)).all()
        # An envelope, not just a bound: it touches within an oscillation (less than 40 steps),
        # while the deviation itself falls by many orders of magnitude.
        assert (seen[late] / bound[late]).max() > 0.05


def test_deviations_of_exactly_nothing_are_drawn_too(run):
    exact = run.copy(deep=True)
    target = theory.target_of(run, 30)
    exact["h_trace"][30, 60:] = target.h
    for rounding in (0.0, 3e-16):  # as another machine may do it
        exact["h_trace"][30, 60:] *= 1 + rounding
        ax = dynamics.plot_trace(exact, 30, "distance")
        drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.lines}
        for y in (drawn["along h*"], drawn["across h*"]):
            assert np.isfinite(y).all()
            assert (ax.get_ylim()[0] < y[60:]).all()
            assert y[60:].max() < 1e-15


def test_one_tile_alone_has_nothing_across_it(run):
    alone = run.copy(deep=True)
    target = theory.target_of(run, 30)
    tile = int(target.h.argmax())
    # h* is what the weights say: leave them with one tile that is driven.
    alone["W_snapshots"][29, np.arange(M) != tile] = 0.0
    alone["b_snapshots"][29, np.arange(M) != tile] = 1.0
    alone["h_trace"][30] = 1e-17  # as rounding may leave it
    alone["h_trace"][30, :, tile] = 1 + 0.9 ** np.arange(80)
    ax = dynamics.plot_trace(alone, 30, "distance")
    assert not any("across" in line.get_label() for line in ax.lines)
    assert ax.lines[0].get_label() == "along h*"


def test_a_figure_without_the_closed_form_says_why(run):
    bare = run.drop_vars(["W_snapshots", "b_snapshots", "w_snapshots"])
    axes = dynamics.plot_settling(bare, 30)
    assert "snapshot_every=1" in axes[5].texts[0].get_text().replace("\n", " ")
    assert not lines(axes[0], dashed=True)
    first = dynamics.plot_settling(run, 0)
    assert "not in the result" in first[4].texts[0].get_text()  # w before the first presentation


def test_an_uncovered_point_is_drawn(run):
    points = np.vstack([run["points"].values[:M], [[2.5, 1.5]]])
    few = SMALL.replace(tiles="first")  # no tile is left for the last point
    circuit = ReferenceCircuit(few, SphereLift(center=(0.5, 0.25), radius=3.0))
    found = circuit.run(points, record=("h", "u", "V", "y"), snapshot_every=1)
    assert not found["covered"].values[-1]
    axes = dynamics.plot_settling(found, -1)
    assert "no tile covers" in axes[5].texts[0].get_text().replace("\n", " ")


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("changes", [{}, CONSTANT], ids=["control", "constant"])
def test_phase_portrait_starts_where_the_circuit_does(run, changes, reset):
    """The first step that was recorded is that from the start that is drawn."""
    parameters = SMALL.replace(**changes, reset=reset)
    circuit = ReferenceCircuit(parameters, SphereLift(center=(0.5, 0.25), radius=3.0))
    found = circuit.run(run["points"].values, record=("h", "u", "V"), snapshot_every=1)
    for t in (1, 25, 39):
        target = theory.target_of(found, t)
        start = theory.start_of(found, t, target)
        first = reference.step(*start, target.a, theory.gamma_of(found, target.size))
        for name, expected in zip("huV", first, strict=True):
            # With carry-over V, and A of the point before, are taken to have settled.
            bound = 1e-14 if reset else 1e-6
            assert np.abs(found[f"{name}_trace"].values[t, 0] - expected).max() < bound
        drawn = dynamics.plot_phase(found, [t]).lines[0].get_xdata()[0]
        assert drawn == pytest.approx(np.linalg.norm(start[0]), rel=1e-14)
    if not reset:  # what carries over to the first presentation is not in the result
        assert theory.start_of(found, 0, theory.target_of(found, 0)) is None
        dynamics.plot_phase(found, [0])


def test_phase_portrait_ends_at_the_fixed_point(either):
    run = either
    ax = dynamics.plot_phase(run, [10, 30])
    path, start, star = ax.lines[3:6]
    norms = [np.sqrt((run[f"{n}_trace"].values[30] ** 2).sum(axis=1)) for n in "hu"]
    assert path.get_xdata()[1:] == pytest.approx(norms[0], rel=1e-14)
    assert path.get_ydata()[1:] == pytest.approx(norms[1], rel=1e-14)
    # |h| = 1 if all tiles are in use.
    share = len(in_use(run, 30)) / M
    assert start.get_xdata()[0] == path.get_xdata()[0] == pytest.approx(np.sqrt(share))
    size = theory.target_of(run, 30).size
    assert star.get_xdata()[0] == pytest.approx(1)
    assert star.get_ydata()[0] == pytest.approx(np.sqrt(size))


def test_presentations_are_named_by_their_number_in_the_circuits_life(later):
    columns = dynamics.figure_settling(later, [10, -1])
    titles = [ax.get_title() for ax in columns.axes if ax.get_title()]
    assert titles == ["presentation 510", "presentation 539"]
    assert dynamics.plot_phase(later, [30]).lines[0].get_label() == "presentation 530"


def test_presentations_and_panels_must_exist(run):
    with pytest.raises(InputError, match=r"no presentation 40.*0 to 39"):
        dynamics.plot_trace(run, 40)
    with pytest.raises(InputError, match="no panel 'x'"):
        dynamics.plot_trace(run, 3, "x")
    with pytest.raises(InputError, match="no presentation was chosen"):
        dynamics.figure_phase(run, [])
