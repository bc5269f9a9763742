"""Parameters of the spiking twin: how its cells fire, and how long a point is shown."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from circuits.parameters import (
    MOST_STEPS,
    Count,
    Duration,
    Frequency,
    Number,
    Parameters,
    format_hertz,
    format_seconds,
    with_unit,
)

LOWEST = -2.0
"""The least current into an excitatory cell: what no tile answers stays silent, and comes back."""

TIME_CONSTANTS = ("tau_e", "tau_i", "tau_trace", "tau_V", "tau_y", "tau_m", "tau_u")


class SpikingParameters(Parameters):
    """What a spiking circuit has besides `circuits.CircuitParameters`.

    A rate of 1 in the circuit's equations is a firing rate of ``rate_h`` (``rate_u``, ``rate_y``).

    >>> SpikingParameters(cells=4).sigma
    1.0
    """

    neuron: Literal["if", "escape"] = "if"
    """Excitatory and inhibitory cells: "if" integrates its current and fires at a threshold;
    "escape" fires at random, at a rate that follows its filtered current."""
    cells: Count = 1
    """N, cells for every tile and every interneuron, each with synapses of its own."""
    readout_cells: Count = 20
    """N_y, cells for every readout. Each stands for an ON and an OFF cell that share synapses."""
    slope: Number = Field(default=2.0, gt=0, allow_inf_nan=False)
    """G, by which the net current of an excitatory cell is multiplied."""
    strength: Number = Field(default=2.0, gt=0, allow_inf_nan=False)
    """The size |[a]_+| to which gain control scales every drive; above 1/slope."""
    noise: Literal["auto"] | Number = "auto"
    """sigma, of white noise on the potential of "if" cells, per root second; "auto" is none for
    one cell per unit, and 1 where several would else fire together."""
    V_rule: Literal["spikes", "fade", "freeze"] = "spikes"
    """How the fast synapses change: "spikes" as in the circuit; "fade" without potentiation, so
    that inhibition dies out; "freeze" not at all. The last two are controls."""
    dt_: Duration = with_unit(0.5 / 1e3, "dt")
    """The time step."""
    presentation_: Duration = with_unit(0.25, "presentation")
    """How long a point is shown."""
    window_: Duration = with_unit(0.125, "window")
    """The end of a presentation in which spikes are counted, and slow synapses learn."""
    rate_h_: Frequency = with_unit(85.0, "rate_h")
    """Firing rate of excitatory cells that h = 1 stands for."""
    rate_u_: Frequency = with_unit(85.0, "rate_u")
    """Firing rate of inhibitory cells that u = 1 stands for."""
    rate_y_: Frequency = with_unit(85.0, "rate_y")
    """Firing rate of readout cells that y = 1 stands for."""
    tau_e_: Duration = with_unit(3 / 1e3, "tau_e")
    """Time constant of excitation, which inhibitory cells receive."""
    tau_i_: Duration = with_unit(5 / 1e3, "tau_i")
    """Time constant of inhibition, which excitatory cells receive."""
    tau_trace_: Duration = with_unit(10 / 1e3, "tau_trace")
    """Time constant of the traces that spikes leave."""
    tau_V_: Duration = with_unit(50 / 1e3, "tau_V")
    """Time constant with which the fast synapses fade."""
    tau_y_: Duration = with_unit(50 / 1e3, "tau_y")
    """Time constant of the readout's net input."""
    tau_m_: Duration = with_unit(10 / 1e3, "tau_m")
    """Time constant of the potential of excitatory cells ("escape" only)."""
    tau_u_: Duration = with_unit(5 / 1e3, "tau_u")
    """Time constant of the potential of inhibitory cells ("escape" only)."""

    def __init__(self, /, **values: Any) -> None:
        super().__init__(**values)  # or type checkers expect the fields' names, not their aliases

    @field_validator("noise")
    @classmethod
    def _check_noise(cls, value: str | float) -> str | float:
        if not isinstance(value, str) and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"must be 'auto' or a finite number from 0, got {value}")
        return value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        dt = format_seconds(self.dt_)
        if self.slope * self.strength <= 1:
            raise ValueError(
                f"strength must exceed 1/slope={1 / self.slope:g}, got {self.strength:g}: with "
                "less the inhibitory cells stay silent"
            )
        if self.neuron == "escape" and self.noise not in ("auto", 0):
            raise ValueError(
                f"noise is for cells that would else be regular, and neuron='escape' fires at "
                f"random by itself: leave it out, got {self.noise}"
            )
        for name in TIME_CONSTANTS:
            tau = getattr(self, f"{name}_")
            if self.dt_ > tau:
                raise ValueError(f"dt must not exceed {name}={format_seconds(tau)}, got {dt}")
        for name in ("presentation", "window"):
            duration = getattr(self, f"{name}_")
            steps = duration / self.dt_
            if abs(steps - round(steps)) > 1e-6 or not 1 <= round(steps) <= MOST_STEPS:
                raise ValueError(
                    f"{name} must be a whole number of steps of dt={dt}, got "
                    f"{format_seconds(duration)}"
                )
        if self.window_steps > self.n_steps:
            raise ValueError(
                f"window must not exceed presentation={format_seconds(self.presentation_)}, got "
                f"{format_seconds(self.window_)}"
            )
        fastest = {
            "rate_h": self.rate_h_ * self.slope * self.strength,
            "rate_u": 2 * self.rate_u_,
            "rate_y": self.rate_y_,
        }
        for name, rate in fastest.items():
            if rate * self.dt_ > 0.5:
                raise ValueError(
                    f"{name} is too high for dt={dt}: a cell would fire at every other step, got "
                    f"{format_hertz(getattr(self, f'{name}_'))}"
                )
        return self

    @property
    def n_steps(self) -> int:
        """Steps of a presentation."""
        return round(self.presentation_ / self.dt_)

    @property
    def window_steps(self) -> int:
        """Steps of the window, at the end of a presentation, in which spikes are counted."""
        return round(self.window_ / self.dt_)

    @property
    def sigma(self) -> float:
        """The noise on potentials, per root second."""
        if self.noise == "auto":
            return 1.0 if self.cells > 1 and self.neuron == "if" else 0.0
        return float(self.noise)

    @property
    def random(self) -> bool:
        """Whether cells draw random numbers."""
        return self.neuron == "escape" or self.sigma > 0


def trace_step(dt: float, tau: float, rate: float) -> float:
    """By how much a spike raises a trace, q = gamma/((1 - gamma) rate dt) with gamma = dt/tau: a
    trace decays by 1 - gamma before it is first seen, and over all the steps from there on its
    integral over time is 1/rate. The mean of a trace is then the firing rate over ``rate``."""
    gamma = dt / tau
    return gamma / ((1 - gamma) * rate * dt)
