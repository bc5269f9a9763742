"""What perturbations do to a circuit, in Brian2 and in NumPy, side by side.

A perturbation that comes and goes has a strength for every presentation, zero where it does not
hold. The strengths are a stream like the points and labels, with a column for each perturbation;
``perturbed_0``, ``perturbed_1``, ... are those of the presentation that is shown. Lesions change
the state itself, between two presentations: a stream is cut there.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from circuits.errors import ParameterError, shown
from circuits.lift import FloatArray
from circuits.model import SYNAPSES, CircuitModel
from circuits.parameters import format_seconds
from circuits.parts.gaussian import NAME, brian2_function, noise_of
from circuits.perturbations import (
    KINDS,
    NOISY,
    Current,
    Delay,
    Freeze,
    Lesion,
    Noise,
    Perturbation,
    UnequalGain,
)
from circuits.state import GONE

if TYPE_CHECKING:
    from circuits.base import Circuit
    from circuits.state import CircuitState, Task

HOMES = {"h": "excitatory", "u": "inhibitory", "y": "readout", "b": "excitatory"} | {
    weights: synapses for synapses, weights in SYNAPSES.items()
}
"""Which object of the network a variable belongs to."""

CELLS = ("inputs", "excitatory", "inhibitory", "readout")
"""Groups of cells that perturbations act on, or come from."""

EACH_STEP = ("before_sums", "after_lateral", "before_rates", "after_rates")
EACH_PRESENTATION = ("before_learn", "after_learn", "before_restart", "after_restart")
"""Stages at which perturbations act, besides "recruit", where tiles that were chosen may be freed
again before they are taken."""

# Where the strength and the seed of a perturbation are found: on a cell itself, or from a synapse
# on the cell it belongs to as far as tiles go.
_SIDE = {"lateral": "_pre", "feedforward": "_post", "classifier": "_pre"}


# Which cells there are, and in what units: tau_h dh/dt = gain (a - V^T u) gets what is injected
# as it is, and u and V are of the size of sqrt(|[a]_+|), which under gain control is their scale.
H_THERE = "in_use/where(gain > 0, gain, inf)"
U_THERE = "where(u_rest > 0, scale, 0)"


@dataclass(frozen=True)
class Code:
    """Brian2 text that acts on an object at a stage."""

    home: str
    stage: str
    text: str


class Perturbed:
    """The perturbations of one circuit."""

    def __init__(self, circuit: Circuit, perturbations: tuple[Perturbation, ...]) -> None:
        self.all = perturbations
        p, lift = circuit.parameters, circuit.lift
        self.sizes = {"h": p.n_tiles, "u": p.n_interneurons, "y": p.n_readouts}
        self.shapes = {
            "lateral": (p.n_interneurons, p.n_tiles),
            "feedforward": (p.n_tiles, lift.n_inputs),
            "classifier": (p.n_readouts, p.n_tiles),
        }
        # White noise moves a rate by size sqrt(dt/tau) n in a step, whatever the step.
        taus = {"h": p.tau_h_, "u": p.tau_u_, "V": p.tau_V_}
        self._scale = {name: float(np.sqrt(p.dt_ / tau)) for name, tau in taus.items()}
        self.bounds_answer = circuit.model.readout is None
        """Whether y is in [-1, 1], as that of the paper's readouts is."""
        self._known: dict[tuple[str, int], NDArray[np.bool_]] = {}
        """What was hit by the first so many lesions."""
        self._check(p.steps_per_presentation)

    def _check(self, n_steps: int) -> None:
        """Refuse what does not fit the circuit."""
        for current in self._of(Current):
            size = self.sizes[current.into]
            if current.cells is not None and max(current.cells) >= size:
                raise ParameterError(
                    f"a current into cell {shown(max(current.cells))} of {current.into}: there are "
                    f"{size}, counted from 0"
                )
            if current.steps is not None and len(current.steps) != n_steps:
                raise ParameterError(
                    f"a current with {len(current.steps)} steps: a presentation has "
                    f"steps_per_presentation={n_steps}"
                )
        for lesion in self._lesions:
            lesion.require_hits(
                {"tiles": self.sizes["h"], "interneurons": self.sizes["u"]}
                | {name: int(np.prod(shape)) for name, shape in self.shapes.items()}
            )
        last = max((lesion.at for lesion in self._lesions), default=0)
        for name, cells in (("tiles", self.sizes["h"]), ("interneurons", self.sizes["u"])):
            if self.gone(name, last).sum() == cells:
                raise ParameterError(
                    f"the lesions leave none of the {cells} {name}: a circuit needs one at least"
                )
        for kind in (Delay, UnequalGain):
            if len(self._of(kind)) > 1:
                raise ParameterError(f"{kind.__name__} is given twice: leave one out")

    # The reference asks at every step, so what never changes is found once.

    @cached_property
    def _kinds(self) -> dict[type[Any], list[Any]]:
        return {kind: [one for one in self.all if type(one) is kind] for kind in KINDS.values()}

    @cached_property
    def _places(self) -> dict[type[Any], list[tuple[int, Any]]]:
        return {
            kind: [(i, one) for i, one in enumerate(self.timed) if type(one) is kind]
            for kind in KINDS.values()
        }

    @cached_property
    def _lesions(self) -> list[Lesion]:
        """As they come, one after the other."""
        return sorted(self._of(Lesion), key=lambda lesion: lesion.at)

    def _of(self, kind: type[Any]) -> list[Any]:
        return self._kinds[kind]

    def _numbered(self, kind: type[Any]) -> list[tuple[int, Any]]:
        return self._places[kind]

    @cached_property
    def timed(self) -> list[Any]:
        """Those that have a strength, in the order of the columns of the stream."""
        return self._of(Noise) + self._of(Current) + self._of(Freeze)

    @property
    def names(self) -> list[str]:
        """Names of their strengths on the network."""
        return [f"perturbed_{i}" for i in range(len(self.timed))]

    @property
    def counts_steps(self) -> bool:
        """Whether the step of a presentation has to be known."""
        return self.moves_rates or any(one.steps is not None for one in self._of(Current))

    @property
    def moves_rates(self) -> bool:
        """Whether rates are kept from settling."""
        return any(noise.on in self._scale for noise in self._of(Noise))

    @cached_property
    def noisy(self) -> frozenset[str]:
        """Variables on which there is, at some time, noise."""
        return frozenset(noise.on for noise in self._of(Noise))

    @cached_property
    def cut_synapses(self) -> list[str]:
        """Names of synapses of which some are, or will be, cut."""
        lesions = self._of(Lesion)
        return [s for s in SYNAPSES if any(getattr(one, s) is not None for one in lesions)]

    @property
    def takes_tiles(self) -> bool:
        """Whether tiles are, or will be, gone."""
        return any(lesion.tiles is not None for lesion in self._of(Lesion))

    @property
    def has_unequal_gain(self) -> bool:
        """Whether the gain is not the same for all tiles."""
        return bool(self._of(UnequalGain))

    def as_list(self) -> list[dict[str, Any]]:
        """Plain values, as stored in results."""
        return [one.described() for one in self.all]

    def shape(self) -> list[Any]:
        """What shapes the program of a circuit: kinds and places, without amounts and times."""
        noise = [["noise", one.on] for one in self._of(Noise)]
        currents = [["current", one.into, one.steps] for one in self._of(Current)]
        freezes = [["freeze", one.what] for one in self._of(Freeze)]
        lesions = [self.cut_synapses, self.takes_tiles]
        return [*noise, *currents, *freezes, *lesions, self.has_unequal_gain] if self.all else []

    def require_closed_form(self) -> None:
        """Refuse what changes where rates settle, or that they do."""
        refused = [one for one in self._of(Noise) if one.on in self._scale]
        refused += [one for one in self._of(Current) if one.into == "u" or one.steps is not None]
        refused += [one for one in self._of(Freeze) if "V" in one.what]
        refused += [one for one in self._of(Lesion) if one.lateral is not None]
        refused += self._of(UnequalGain)
        if refused:
            raise ParameterError(
                "the closed form holds for rates that settle undisturbed, not with "
                f"{shown(refused[0])}: use settling='dynamics', or another engine"
            )

    # Values

    def events(self) -> list[int]:
        """Presentations before which a lesion changes the state."""
        return sorted({lesion.at for lesion in self._lesions})

    def strengths(self, presentations: NDArray[np.int64], learn: bool) -> FloatArray:
        """(presentation, perturbation): how strong each is. Weights that do not learn, in a
        prediction, get no noise."""
        found = np.zeros((len(presentations), len(self.timed)))
        for i, one in enumerate(self.timed):
            if isinstance(one, Current):
                found[:, i] = one.strength(presentations)
            elif isinstance(one, Freeze):
                found[:, i] = one.active(presentations)
            elif learn or one.on not in ("W", "b", "w"):
                found[:, i] = one.size * self._scale.get(one.on, 1.0) * one.active(presentations)
        return found

    def gone(self, name: str, presentation: int) -> NDArray[np.bool_]:
        """Which "tiles" or "interneurons" are gone at a presentation."""
        return self._hit(
            name, (self.sizes[{"tiles": "h", "interneurons": "u"}[name]],), presentation
        )

    def intact(self, synapses: str, presentation: int) -> NDArray[np.bool_]:
        """Which synapses of a name are not cut at a presentation, as (post, pre)."""
        return ~self._hit(synapses, self.shapes[synapses], presentation)

    def _hit(self, name: str, shape: tuple[int, ...], presentation: int) -> NDArray[np.bool_]:
        lesions = [lesion for lesion in self._lesions if lesion.at <= presentation]
        key = name, len(lesions)  # lesions only become more
        if key not in self._known:
            found = np.zeros(int(np.prod(shape)), bool)
            for lesion in lesions:
                found |= lesion.chosen(name, ~found)
            self._known[key] = found.reshape(shape)
        return self._known[key]

    def kept(self, synapses: str, weights: FloatArray, presentation: int) -> FloatArray:
        """Weights with those of cut synapses at zero."""
        if synapses not in self.cut_synapses:
            return weights
        return np.where(self.intact(synapses, presentation), weights, 0.0)

    def lesion(self, state: CircuitState, presentation: int) -> None:
        """Take from a state what is gone at a presentation; what was taken before stays so."""
        if not self._lesions:
            return
        tiles, cells = self.gone("tiles", presentation), self.gone("interneurons", presentation)
        # New arrays, because those in the state may have been handed out.
        state.recruited = np.where(tiles, GONE, state.recruited)
        for name in ("h", "b", "w"):
            setattr(state, name, np.where(tiles, 0.0, getattr(state, name)))
        state.W = self.kept("feedforward", np.where(tiles[:, None], 0.0, state.W), presentation)
        state.w = self.kept("classifier", state.w, presentation)
        state.u = np.where(cells, 0.0, state.u)
        state.V = self.kept("lateral", np.where(tiles | cells[:, None], 0.0, state.V), presentation)
        for name, value in state.extra.items():  # rates on their way
            if name.startswith("excitatory.h_past_"):
                state.extra[name] = np.where(tiles, 0.0, value)
            elif name.startswith("inhibitory.u_past_"):
                state.extra[name] = np.where(cells, 0.0, value)

    def started_lateral(
        self, V: FloatArray, before: FloatArray, presentation: int, strengths: FloatArray
    ) -> FloatArray:
        """V as a presentation starts, ``before`` being what the last one left: that is what stays
        where V is frozen, unless this is the first of the circuit's life."""
        frozen = self.freezes("V", strengths) and presentation > 0
        return self.kept("lateral", before if frozen else V, presentation)

    def gain_factors(self) -> FloatArray:
        """What the net input of every tile is multiplied by."""
        found = np.ones(self.sizes["h"])
        for one in self._of(UnequalGain):
            found *= one.factors(len(found))
        return found

    def pattern(self, current: Current) -> FloatArray:
        """1 for the cells that get a current, 0 for others."""
        found = np.zeros(self.sizes[current.into])
        found[slice(None) if current.cells is None else list(current.cells)] = 1.0
        return found

    def values(self, state: CircuitState, task: Task) -> dict[str, dict[str, Any]]:
        """Values of the perturbations' variables before the first point of a stream, by group and
        name."""
        if not self.all:
            return {}
        found: dict[str, dict[str, Any]] = {"inputs": {"perturbed_number": task.first - 1}}
        found["inputs"] |= {f"perturbed_seed_{i}": noise.seed for i, noise in self._numbered(Noise)}
        for i, current in self._numbered(Current):
            found.setdefault(HOMES[current.into], {})[f"perturbed_pattern_{i}"] = self.pattern(
                current
            )
        for synapses in self.cut_synapses:
            intact = self.intact(synapses, state.learned).astype(float)
            found.setdefault(synapses, {})["perturbed_intact"] = intact
        own = found.setdefault("excitatory", {})
        if self.takes_tiles:
            there = state.recruited != GONE
            own["perturbed_turn"] = np.where(there, np.cumsum(there) - 1, -1)
            own["perturbed_there"] = int(there.sum())
        if self.has_unequal_gain:
            own["perturbed_gain"] = self.gain_factors()
        return found

    # Brian2

    def declarations(self, home: str) -> str:
        """Equations that an object of the network needs besides its own."""
        lines = []
        if home in CELLS and self.all:
            shared = "shared" if home == "inputs" else "linked"
            lines += [
                f"{name} : {'1' if name in self.names else 'integer'} ({shared})"
                for name in self.looked_up
            ]
        lines += [
            f"perturbed_pattern_{i} : 1"
            for i, one in self._numbered(Current)
            if HOMES[one.into] == home
        ]
        lines += [
            f"perturbed_kept_{name}_{i} : 1"
            for i, one in self._numbered(Freeze)
            for name in one.what
            if HOMES.get(name) == home
        ]
        lines += ["perturbed_intact : 1"] if home in self.cut_synapses else []
        if home == "excitatory" and self.takes_tiles:
            lines += ["perturbed_turn : integer", "perturbed_there : integer (shared)"]
        return "\n".join(lines) + "\n"

    @property
    def looked_up(self) -> list[str]:
        """Variables of the inputs that the other groups of cells look up: strengths, seeds, the
        number of the presentation in the circuit's life, and the step, counted from 1."""
        if not self.all:
            return []
        seeds = [f"perturbed_seed_{i}" for i, _ in self._numbered(Noise)]
        return [*self.names, *seeds, "perturbed_number", "perturbed_step"]

    def load(self) -> list[str]:
        """What the inputs do when the next point is loaded."""
        lines = [
            f"{name} = strength_stream(presentation*usecond, {i})"
            for i, name in enumerate(self.names)
        ]
        return [*lines, "perturbed_number += 1", "perturbed_step = 0"] if self.all else []

    def cut(self, synapses: str) -> list[str]:
        """What leaves synapses that are cut without a weight."""
        weights = SYNAPSES[synapses]
        cut = f"{weights} = where(perturbed_intact > 0, {weights}, 0)"
        return [cut] if synapses in self.cut_synapses else []

    def codes(self) -> list[Code]:
        """Everything that happens to the network, in order."""
        found: list[Code] = []
        for i, freeze in self._numbered(Freeze):
            found += _freezing(i, freeze)
        for name in dict.fromkeys(noise.on for noise in self._of(Noise)):
            found += _noise(name, [i for i, one in self._numbered(Noise) if one.on == name])
        for i, current in self._numbered(Current):
            found += _injecting(i, current)
        for synapses in self.cut_synapses:
            stages = {"lateral": ("after_lateral", "after_restart")}.get(synapses, ("after_learn",))
            for stage in stages:
                found += [Code(synapses, stage, line) for line in self.cut(synapses)]
        return found

    def answer(self, text: str, clamp: str) -> str:
        """The readout's code, with what is injected into y, then labels that clamp it, then noise;
        they go together because y may be asked for at every step."""
        from brian2.utils.stringtools import word_substitute

        injected = [
            f"perturbed_{i}*perturbed_pattern_{i}"
            for i, one in self._numbered(Current)
            if one.into == "y"
        ]
        if injected:
            text = word_substitute(text, {"z": f"(z + {' + '.join(injected)})"})
        noisy = [i for i, one in self._numbered(Noise) if one.on == "y"]
        drawn = _drawn("y", noisy, "", "0", "i")
        noise = ("y = clip(y + {}, -1, 1)" if self.bounds_answer else "y += {}").format(drawn)
        noise = noise if noisy else ""
        return "\n".join(filter(None, [text, clamp, noise]))

    def namespace(self) -> dict[str, Any]:
        """What names in the texts mean: the Gaussian numbers, and what currents are multiplied by
        from step to step."""
        from brian2 import TimedArray, us

        functions = {NAME: brian2_function()} if self._of(Noise) else {}
        return functions | {
            f"envelope_{i}": TimedArray(np.array(one.steps), dt=us, name=f"envelope_{i}")
            for i, one in self._numbered(Current)
            if one.steps is not None
        }

    # The same in NumPy

    def injected(self, into: str, strengths: FloatArray, step: int) -> FloatArray | float:
        """Current into cells at a step, counted from 0."""
        found: FloatArray | float = 0.0
        for i, one in self._numbered(Current):
            if one.into == into:
                share = 1.0 if one.steps is None else one.steps[step]
                found = found + strengths[i] * share * self.pattern(one)
        return found

    def noise(self, on: str, strengths: FloatArray, presentation: int, step: int) -> Any:
        """What is added to a variable by noise, before it is cut at zero."""
        shape = {SYNAPSES[name]: shape for name, shape in self.shapes.items()}.get(
            on, (self.sizes.get(on, self.sizes["h"]),)
        )
        found: Any = 0.0
        for i, one in self._numbered(Noise):
            if one.on == on:
                cells = np.arange(np.prod(shape)).reshape(shape)
                found = found + noise_of(
                    strengths[i], one.seed, NOISY.index(on), presentation, step, cells
                )
        return found

    def freezes(self, what: str, strengths: FloatArray) -> bool:
        """Whether the plasticity of something stands still."""
        return any(strengths[i] > 0 and what in one.what for i, one in self._numbered(Freeze))


def _noise(name: str, which: list[int]) -> list[Code]:
    """The noise on a variable, from all perturbations that make some."""
    home = HOMES[name]
    at = _SIDE.get(home, "")
    step = f"perturbed_step{at}" if name in "huV" else "0"
    drawn = _drawn(name, which, at, step, "i_post*N_pre + i_pre" if at else "i")
    if name == "y":
        return []  # with the answer, which may be asked for at every step
    if name == "h":
        return [Code(home, "after_rates", f"h = clip(h + covered*in_use*({drawn}), 0, inf)")]
    if name == "u":
        return [Code(home, "after_rates", f"u = clip(u + {U_THERE}*({drawn}), 0, inf)")]
    if name == "V":
        # A synapse cannot look up what its cells have from elsewhere: u_start is scale*u_rest.
        there = "in_use_pre*u_start_post/where(u_rest_post > 0, u_rest_post, inf)"
        return [Code(home, "after_lateral", f"V = clip(V + {there}*({drawn}), 0, inf)")]
    return [Code(home, "after_learn", f"{name} += in_use{at}*({drawn})")]


def _drawn(name: str, which: list[int], at: str, step: str, cell: str) -> str:
    """The sum of what perturbations draw for a variable, as it is looked up from an object."""
    where = f"{NOISY.index(name)}, perturbed_number{at}, {step}, {cell}"
    return " + ".join(f"{NAME}(perturbed_{i}{at}, perturbed_seed_{i}{at}, {where})" for i in which)


def _injecting(i: int, current: Current) -> list[Code]:
    amount = f"perturbed_{i}*perturbed_pattern_{i}"
    if current.steps is not None:
        amount += f"*envelope_{i}((perturbed_step - 1)*usecond)"
    return {
        "h": [Code("excitatory", "before_rates", f"inhibition -= {H_THERE}*{amount}")],
        "u": [Code("inhibitory", "before_rates", f"excitation += {U_THERE}*{amount}")],
        "y": [],  # with the answer
    }[current.into]


def _freezing(i: int, freeze: Freeze) -> list[Code]:
    found = []
    for name in freeze.what:
        if name == "tiles":
            stays = f"joins = int(where(perturbed_{i} > 0, 0, joins))"
            found.append(Code("excitatory", "recruit", stays))
            continue
        home = HOMES[name]
        held = f"(perturbed_{i}{_SIDE.get(home, '')} > 0)"
        places = {"V": (("before_sums", "after_lateral"), ("before_restart", "after_restart"))}
        for before, after in places.get(name, (("before_learn", "after_learn"),)):
            if after == "after_restart":  # but not before the circuit's first presentation
                held += " and (perturbed_number_pre > 0)"
            hold = f"{name} = where({held}, perturbed_kept_{name}_{i}, {name})"
            found.append(Code(home, before, f"perturbed_kept_{name}_{i} = {name}"))
            found.append(Code(home, after, hold))
    return found


def is_perturbed(variable: str) -> bool:
    """Whether a variable of the network is there for perturbations."""
    return variable.startswith("perturbed_")


def delayed(model: CircuitModel, perturbations: tuple[Perturbation, ...]) -> CircuitModel:
    """The model with the delay that is among the perturbations, if there is one."""
    delays = [one for one in perturbations if isinstance(one, Delay)]
    if not delays:
        return model
    if model.delay != CircuitModel().delay:
        raise ParameterError(
            f"the model has a delay of {model.delay}, and {shown(delays[0])} is another: leave one "
            "out"
        )
    return dataclasses.replace(model, delay=format_seconds(delays[0].time_))
