"""Every picture has titles, axes that count in whole numbers, and legends that cover nothing."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from analysis import agreement, answers, dynamics, studies
from circuits.errors import InputError
from tests.analysis.drawing import hidden_by_legends, laid_out, readable
from tests.refusing import refused

FIGURES = {
    "answers": answers.figure_answers,
    "settling": dynamics.figure_settling,
    "settling of several": lambda run: dynamics.figure_settling(run, [0, 20, 30]),
    "phase": dynamics.figure_phase,
    "learning": dynamics.figure_learning,
    "tiles": dynamics.figure_tiles,
    "raster": dynamics.figure_raster,
    "agreement": lambda run: agreement.figure_agreement(run, run),
    "settling error": studies.figure_settling_error_of,
    "convergence": lambda run: studies.figure_convergence(
        studies.convergence_study("reference", (32, 64))
    ),
    "stability": lambda run: studies.figure_stability_map(
        studies.stability_map([0.1, 1.0, 10.0], [0.2, 0.5], steps=20), studies.working_points(run)
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_have_titles_and_nothing_covers_anything(run, name):
    assert isinstance(readable(lambda: FIGURES[name](run)), Figure)


def test_a_legend_on_the_data_would_be_found(run):
    fig = dynamics.figure_learning(run)
    fig.axes[0].legend(loc="center")
    assert hidden_by_legends(laid_out(fig)) > 0


COUNTING = {
    "learning": lambda run: dynamics.plot_learning(run)[2],
    "raster": lambda run: dynamics.plot_raster(run, by="time"),
    "agreement": lambda run: agreement.plot_differences(run, run),
}


@pytest.mark.parametrize("name", COUNTING)
def test_axes_that_count_presentations_have_whole_numbers_of_the_circuits_life(later, name):
    # Five presentations: ticks at halves would be the first choice.
    few = later.isel(presentation=slice(5), snapshot=slice(5))
    ax = COUNTING[name](few)
    laid_out(ax.figure)
    low, high = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert len(ticks) >= 3
    assert all(tick == round(tick) and 500 <= tick <= 505 for tick in ticks)
    assert "presentation" in ax.get_xlabel()


def test_a_missing_variable_is_named_with_what_to_record(run):
    traces = ["h_trace", "u_trace", "V_trace", "y_trace"]
    for missing, call, words in (
        ("h_trace", lambda run: dynamics.plot_settling(run, 3), r"h_trace.*record=\('h',\)$"),
        ("V_trace", lambda run: dynamics.plot_trace(run, 3, "current"), r"record=\('V',\)$"),
        ("u_trace", dynamics.plot_phase, r"u_trace.*record=\('u',\)$"),
        ("b_snapshots", dynamics.plot_learning, r"b_snapshots.*snapshot_every=N$"),
        ("W_snapshots", dynamics.plot_tiles, r"W_snapshots.*snapshot_every=N$"),
        ("y", answers.plot_answers, r"needs y, which this result does not hold$"),
        (traces, lambda run: agreement.plot_step_differences(run, run, 3), "record=.*'u', 'V'"),
    ):
        bare = run.drop_vars(missing)
        refused(lambda call=call, bare=bare: call(bare), words, InputError)
        assert not plt.get_fignums()  # no empty figure is left behind


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
    assert "presentation 7, where" in agreement.figure_agreement(run, other).axes[1].get_title()
    with pytest.raises(InputError, match="one stream"):
        agreement.plot_differences(run, other.isel(presentation=slice(5)))
