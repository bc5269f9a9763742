"""What takes more computing than reading a result: convergence in dt, settling, stability.

Each study is an `xarray.Dataset` that can be saved like any result, and has a plot.
"""

from analysis.studies.convergence import convergence_study, figure_convergence, plot_convergence
from analysis.studies.settling_error import (
    figure_settling_error,
    figure_settling_error_of,
    plot_settling_error,
    settling_errors,
    settling_study,
)
from analysis.studies.stability import (
    figure_stability_map,
    figure_stability_of,
    measured_factor,
    plot_stability_map,
    rates_of_ratio,
    stability_map,
    working_points,
)

__all__ = [
    "convergence_study",
    "figure_convergence",
    "figure_settling_error",
    "figure_settling_error_of",
    "figure_stability_map",
    "figure_stability_of",
    "measured_factor",
    "plot_convergence",
    "plot_settling_error",
    "plot_stability_map",
    "rates_of_ratio",
    "settling_errors",
    "settling_study",
    "stability_map",
    "working_points",
]
