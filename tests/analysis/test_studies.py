"""Studies are drawn as they were computed."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import studies, theory


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


def test_the_stability_map_is_drawn_with_the_boundary_of_theory(run):
    study = studies.stability_map([0.1, 1.0, 10.0], [0.2, 0.5], steps=40)
    ax = studies.plot_stability_map(study, working_point=studies.working_points(run))
    mesh = ax.collections[0]
    assert (np.asarray(mesh.get_array()).reshape(2, 3) == study["measured"].values).all()
    boundary = ax.lines[0]
    rates = studies.rates_of_ratio(boundary.get_xdata(), 0.5)
    positive = boundary.get_ydata() > 0
    assert positive.any()
    for i in np.flatnonzero(positive)[::200]:
        gamma = boundary.get_ydata()[i], rates[0][i], rates[1][i]
        assert theory.growth_factor(gamma, 1.0) == pytest.approx(1, abs=1e-10)
