"""Brian2's classes with what a circuit needs of its own: clocks, an integrator, a network."""

from __future__ import annotations

from typing import Any

import numpy as np
from brian2 import Clock, Network, Synapses, second
from brian2.equations.equations import DIFFERENTIAL_EQUATION, Equations
from brian2.stateupdaters.base import StateUpdateMethod
from brian2.utils.stringtools import word_substitute

from circuits.errors import EngineError


class CircuitNetwork(Network):  # type: ignore[misc]
    """A network that only its circuit runs."""

    driven = False
    """Whether the circuit is running it now."""
    _clocks: Any

    def _nextclocks(self) -> Any:
        """The clock that fires next and those that fire with it, without those that have ended."""
        clocks = self._clocks
        self._clocks = {c for c in clocks if self._clock_variables[c][0][0] < c._i_end} or clocks
        found = super()._nextclocks()
        self._clocks = clocks
        return found

    def run(self, *arguments: Any, **options: Any) -> None:
        """Refused to anybody but the circuit."""
        if not self.driven:
            raise EngineError(
                "a circuit's network is run by circuit.run(points, labels), which shows it the "
                "points; network.run would not"
            )
        super().run(*arguments, **options)


def network_of(groups: list[Any], name: str, slots: list[str]) -> CircuitNetwork:
    """A network of a circuit's own objects, in order: of those that meet in a slot of the circuit's
    schedule, the one that was made first acts first."""
    network = CircuitNetwork(*groups, name=name)
    network.schedule = slots
    for group in groups:
        group._network = network.id  # or Brian2 complains of a circuit that is never run
        group.add_to_magic_network = False  # a user's run() is about the user's objects
    return network


class ProjectedEuler(StateUpdateMethod):  # type: ignore[misc]
    """Forward Euler, then projection of some variables onto the non-negative numbers:
    x <- [x + dt f(x)]_+, with noise x <- [x + dt f(x) + sqrt(dt) g(x) n]_+ (Euler-Maruyama).

    All right-hand sides are evaluated before any variable is written.
    """

    def __init__(self, *projected: str) -> None:
        self.projected = projected

    def __call__(
        self, equations: Equations, variables: Any = None, method_options: Any = None
    ) -> str:
        """The abstract code of one step."""
        noise = {name: f"_sample_{name}" for name in sorted(equations.stochastic_variables)}
        # dt f + sqrt(dt) g n = dt (f + g xi) with xi = n / sqrt(dt)
        lines, written = [f"{sample} = randn()/sqrt(dt)" for sample in noise.values()], []
        for equation in equations.ordered:
            if equation.type == DIFFERENTIAL_EQUATION:
                name = equation.varname
                slope = word_substitute(str(equation.expr), noise)
                lines.append(f"_{name} = {name} + dt*({slope})")
                moved = f"clip(_{name}, 0, inf)" if name in self.projected else f"_{name}"
                written.append(f"{name} = {moved}")
        return "\n".join(lines + written)


class AllToAll(Synapses):  # type: ignore[misc]
    """Synapses from every cell of one group to every cell of another, numbered as the matrix
    [post, pre] in row-major order. Knowing that, the C++ templates loop over rows and columns
    instead of looking up both ends of every synapse."""

    all_to_all = True


class PresentationClock(Clock):  # type: ignore[misc]
    """Fires on the last of every ``steps`` steps of another clock.

    A clock counts in units of its own dt, and takes a start time of one step after a multiple of
    that for the multiple itself once a step is less than 1e-4 of it. Counting steps is exact.
    """

    # Brian2 looks for properties that hide a variable in the class itself, not in its bases.
    dt, dt_ = Clock.dt, Clock.dt_

    def __init__(self, clock: Clock, steps: int, name: str) -> None:
        self._step_, self._steps = clock.dt_, steps
        super().__init__(dt=steps * clock.dt_ * second, name=name)

    def _calc_timestep(self, target_t: float) -> np.int64:
        return np.int64(-(-round(target_t / self._step_) // self._steps))


class LoadingClock(PresentationClock):
    """Fires when a presentation clock does, but not on the last step of a run: nothing is loaded
    when nothing comes."""

    dt, dt_ = Clock.dt, Clock.dt_

    def set_interval(self, start: Any, end: Any) -> None:
        """Fire from ``start`` on, up to one step before ``end``."""
        super().set_interval(start, end - self._step_ * second)
