"""Studies are drawn as they were computed."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from analysis import studies, theory
from analysis.studies import stability


@pytest.fixture
def _few_steps(monkeypatch):
    """Contractions measured over fewer steps, which takes less time."""
    monkeypatch.setattr(stability, "stability_map", partial(studies.stability_map, steps=60))


def test_convergence_is_drawn_with_a_guide_of_slope_one():
    study = studies.convergence_study("reference", (32, 64))
    guide, measured = studies.plot_convergence(study).lines
    assert (measured.get_ydata() == study["error"].values).all()
    slope = np.diff(np.log(guide.get_ydata())) / np.diff(np.log(guide.get_xdata()))
    assert slope == pytest.approx(1)


def test_settling_errors_are_drawn_as_medians_and_counted_in_the_circuits_life(later):
    errors = studies.settling_errors(later)
    assert errors["presentation"].values.tolist() == list(range(500, 540))
    ax = studies.plot_settling_error(errors)
    expected = np.median(errors["error"].values[0], axis=0)
    assert ax.lines[0].get_ydata() == pytest.approx(expected, rel=1e-14)


def test_the_stability_map_is_drawn_with_the_boundary_of_theory(either):
    study = studies.stability_map([0.1, 1.0, 10.0], [0.2, 0.5], steps=40)
    ax = studies.plot_stability_map(study, working_point=studies.working_points(either))
    mesh = ax.collections[0]
    assert (np.asarray(mesh.get_array()).reshape(2, 3) == study["measured"].values).all()
    boundary = ax.lines[0]
    rates = studies.rates_of_ratio(boundary.get_xdata(), 0.5)
    positive = boundary.get_ydata() > 0
    assert positive.any()
    for i in np.flatnonzero(positive)[::200]:
        gamma = boundary.get_ydata()[i], rates[0][i], rates[1][i]
        assert theory.growth_factor(gamma, 1.0) == pytest.approx(1, abs=1e-10)


def test_under_gain_control_the_working_point_is_one(run, constant):
    ratio, *drives = studies.working_points(run)
    assert ratio == pytest.approx(25)
    assert drives == pytest.approx([2**-10 / 2.5e-3] * 3, rel=1e-14)
    for t in (5, 39):  # of every presentation, whatever its drive
        size = theory.target_of(run, t).size
        assert theory.gamma_of(run, size)[0] * size == pytest.approx(drives[0], rel=1e-14)
    few, middle, many = studies.working_points(constant)[1:]
    assert few < 0.9 * middle < middle < many


@pytest.mark.usefixtures("_few_steps")
@pytest.mark.parametrize(("name", "said"), [("run", "every presentation"), ("constant", "median")])
def test_the_map_of_a_result_has_its_time_constants_and_holds_its_point(request, name, said):
    result = request.getfixturevalue(name)
    fast = theory.gamma_of(result, 1.0)[2]
    ax = studies.figure_stability_of(result).axes[0]
    (text,) = [t.get_text() for t in ax.get_legend().get_texts() if "the result" in t.get_text()]
    assert said in text
    rates = studies.rates_of_ratio(ax.lines[0].get_xdata(), fast)
    assert ax.lines[0].get_ydata() == pytest.approx(
        np.maximum(theory.critical_drive(*rates), 0), rel=1e-14
    )
    (marker,) = [line for line in ax.lines if line.get_marker() == "o"]
    x, y = float(marker.get_xdata()[0]), float(marker.get_ydata()[0])
    assert ax.get_xlim()[0] < x < ax.get_xlim()[1]
    assert ax.get_ylim()[0] < y < ax.get_ylim()[1]
    # It lies where the result settles, and the map measured that for its own time constants.
    mesh = ax.collections[0]
    edges = mesh.get_coordinates()
    column = np.searchsorted(edges[0, :, 0], x) - 1
    row = np.searchsorted(edges[:, 0, 1], y) - 1
    values = np.asarray(mesh.get_array()).reshape(edges.shape[0] - 1, -1)
    expected = theory.growth_factor(theory.gamma_of(result, 1.0), 1.0)
    if name == "run":
        assert values[row, column] == pytest.approx(expected, abs=0.03)  # over half a cell
    assert values[row, column] < 1


@pytest.mark.usefixtures("_few_steps")
def test_a_point_beyond_the_usual_map_widens_it(constant):
    parameters = json.dumps(theory.parameters_of(constant).replace(tau_u="1 s").as_dict())
    slow = constant.assign_attrs(parameters=parameters, gain=5 * constant.attrs["gain"])
    at, _, _, many = studies.working_points(slow)
    ax = studies.figure_stability_of(slow).axes[0]
    assert at == pytest.approx(500)
    assert ax.get_xlim()[1] > at
    assert ax.get_ylim()[1] > many > 1.2
