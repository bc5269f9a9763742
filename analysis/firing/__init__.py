"""Spikes of the circuit's spiking twin: rasters, firing rates, intervals, and how far the rates
that spikes are counted as lie from the closed form. Everything is drawn from a result.

Presentations are asked for by their place in the result, as in `analysis.dynamics`.
"""

from analysis.firing.deviations import (
    figure_errors,
    plot_error_by_cells,
    plot_error_by_duration,
)
from analysis.firing.intervals import figure_intervals, plot_intervals, plot_variation
from analysis.firing.lateral import figure_lateral, plot_lateral
from analysis.firing.rasters import (
    figure_spikes,
    figure_spikes_along,
    plot_spikes,
    plot_spikes_along,
)
from analysis.firing.rates import (
    figure_counted_rates,
    figure_firing_rates,
    plot_counted_rates,
    plot_firing_rates,
)
from analysis.firing.spikes import (
    Spikes,
    closed_forms,
    coefficients_of_variation,
    interspike_intervals,
    poisson_bound,
    rate_errors,
    row_cells,
    spiking_target,
    window_intervals,
)

__all__ = [
    "Spikes",
    "closed_forms",
    "coefficients_of_variation",
    "figure_counted_rates",
    "figure_errors",
    "figure_firing_rates",
    "figure_intervals",
    "figure_lateral",
    "figure_spikes",
    "figure_spikes_along",
    "interspike_intervals",
    "plot_counted_rates",
    "plot_error_by_cells",
    "plot_error_by_duration",
    "plot_firing_rates",
    "plot_intervals",
    "plot_lateral",
    "plot_spikes",
    "plot_spikes_along",
    "plot_variation",
    "poisson_bound",
    "rate_errors",
    "row_cells",
    "spiking_target",
    "window_intervals",
]
