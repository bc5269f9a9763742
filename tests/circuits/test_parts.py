"""Parts that users write: the same on every engine and in the reference, saved, described, refused
where they cannot be."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from brian2 import ms

from analysis.describe import tables
from circuits import Delay, Lesion, ManifoldCircuit, Noise, Part, ReferenceCircuit, SphereLift
from circuits.assembly.collection import NAMES
from circuits.circuit import Scene
from circuits.errors import InputError, ParameterError
from tests.conftest import moons, small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
PARAMETERS = small_circuit(n_tiles=8, tile_radius=0.5, mu=3.0)
M, K = PARAMETERS.n_tiles, PARAMETERS.n_interneurons
POINTS, CLASSES, _ = moons(40, after=10)
LABELS = np.where(np.arange(40) % 3 == 0, CLASSES, 0)
CUT = 17
CLOSE = 1e-10  # rounding of 40 presentations

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # 30 steps are few
on_two_engines = pytest.mark.parametrize("engine", ["numpy", "cpp_standalone"])


class Fatigue(Part):
    """Tiles tire: each answer lowers a tile's drive for the next points."""

    equations = {"excitatory": "tired : 1\nfatigue : 1 (shared)"}
    state = {"excitatory.tired": 0.0}
    parameters = {"excitatory.fatigue": 0.02}
    code = [
        ("excitatory", "after_learn", "tired = 0.9*tired + fatigue*h"),
        ("excitatory", "before_recruit", "a -= tired*int(recruited >= 0)"),
    ]

    def after_learn(self, s):
        s.tired = 0.9 * s.tired + s.fatigue * s.h

    def before_recruit(self, s):
        s.a = s.a - s.tired * (s.recruited >= 0)


class Shunt(Part):
    """Interneurons that inhibit themselves at every step, and synapses that remember."""

    equations = {"inhibitory": "shunt : 1 (shared)  # share of u", "feedforward": "use : 1"}
    equations |= {"lateral": "most : 1"}
    namespace = {"half": 0.5}
    parameters = {"inhibitory.shunt": 0.1}
    state = {"feedforward.use": 0.5, "lateral.most": 0.0}
    code = [
        ("inhibitory", "before_rates", "excitation -= shunt*u"),
        ("feedforward", "after_learn", "use = half*use + h_post*x_pre"),
        ("lateral", "after_lateral", "most = clip(V, most, inf)"),
    ]

    def before_rates(self, s):
        s.excitation = s.excitation - s.shunt * s.u

    def after_learn(self, s):
        s.use = 0.5 * s.use + np.outer(s.h, s.x)

    def after_lateral(self, s):
        s.most = np.maximum(s.V, s.most)


class Meter(Part):
    equations = {"meter": "total : 1\nsaved : 1", "metering": "total_post = h_pre : 1 (summed)"}
    groups = {"meter": 1}
    synapses = {"metering": ("excitatory", "meter")}
    summed = {"metering.total_post": "before_learn"}
    state = {"meter.saved": 3.0}
    code = [("meter", "learn", "saved = 0.5*saved + total")]

    def learn(self, s):
        s.saved = 0.5 * s.saved + s.h.sum()


class Habits(Part):
    """Arrays, a quantity, whole numbers, what the last point left, changes in place."""

    equations = {"excitatory": "share : 1\nspent : 1\nturns : integer\nspent_tau : second (shared)"}
    equations |= {"lateral": "first : 1"}
    state = {"excitatory.turns": 1, "lateral.first": np.arange(K * M).reshape(K, M) / 100}
    namespace = {"half": float("0.5")}  # the same number
    parameters = {"excitatory.share": np.linspace(0.5, 1, M), "excitatory.spent_tau": 500 * ms}
    code = (
        ("excitatory", "before_recruit", "a -= spent"),
        ("lateral", "after_lateral", "first = half*first + V"),
        ("excitatory", "before_answer", "h = share*h"),
        ("excitatory", "record", "turns = (turns + 1) % 4"),
        ("excitatory", "after_learn", "spent = 0.1*h*turns*spent_tau/second"),
    )

    def before_recruit(self, s):
        s.a -= s.spent

    def after_lateral(self, s):
        s.first = 0.5 * s.first + s.V

    def before_answer(self, s):
        s.h *= s.share

    def record(self, s):
        s.turns = s.turns + 1 & 3

    def after_learn(self, s):
        s.spent = 0.1 * s.h * s.turns * s.spent_tau
        s.h *= 0  # the results have their own


class Count(Part):
    """Counts the presentations at both of their ends, and the steps."""

    equations = {"readout": "begun : 1\nended : 1\nsteps : 1"}
    state = {"readout.begun": 0.0, "readout.ended": 0.0, "readout.steps": 0.0}
    code = [
        ("readout", "after_restart", "begun += 1"),
        ("readout", "before_load", "ended += 1"),
        ("readout", "sums", "steps += 1"),
    ]


def in_pieces(circuit):
    """Two runs with a prediction between, and what the parts remember at the end."""
    runs = [circuit.run(POINTS[:CUT], LABELS[:CUT])]
    answers = circuit.predict(POINTS[:5])
    runs.append(circuit.run(POINTS[CUT:], LABELS[CUT:], record=("h", "V", "y")))
    return runs, answers, {k: np.ravel(v) for k, v in circuit.state.extra.items()}


def assert_same(found, expected) -> None:
    for one, other in zip(found[0], expected[0], strict=True):
        for name in other.data_vars:
            if np.issubdtype(other[name].dtype, np.floating):
                assert np.abs(one[name].values - other[name].values).max() <= CLOSE, name
    assert np.abs(found[1] - expected[1]).max() <= CLOSE
    assert found[2].keys() == expected[2].keys()
    for name, value in expected[2].items():
        assert np.abs(found[2][name] - value).max() <= CLOSE, name


@on_two_engines
def test_a_part_does_the_same_on_brian2_and_in_numpy(engine):
    parts = [Fatigue(), Shunt(), Meter(), Habits()]
    expected = in_pieces(ReferenceCircuit(PARAMETERS, LIFT, parts=parts))
    found = in_pieces(ManifoldCircuit(PARAMETERS, LIFT, engine, parts=parts))
    assert_same(found, expected)
    names = {"excitatory.tired", "feedforward.use", "lateral.most", "meter.saved"}
    names |= {"excitatory.turns", "excitatory.spent", "lateral.first"}
    assert set(expected[2]) == names
    assert all(value.any() for value in expected[2].values())
    given = ReferenceCircuit(PARAMETERS, LIFT, parts=parts).parts.state["lateral.first"]
    assert (given == np.arange(K * M) / 100).all()  # row by row
    plain = in_pieces(ReferenceCircuit(PARAMETERS, LIFT))
    assert np.abs(plain[0][1]["h"].values - expected[0][1]["h"].values).max() > 0.01
    described = json.loads(found[0][0].attrs["model_changes"])["parts"]
    assert described[0]["parameters"] == {"excitatory.fatigue": 0.02}


def test_fatigue_by_hand():
    """One tile and one point, whose drive is rho^2/R^2 = 0.0278 less tired: h is 1, 1, 0, 0."""
    one = small_circuit(n_tiles=1, tile_radius=0.5, steps_per_presentation=200, learning_rate=0)
    for circuit in (
        ReferenceCircuit(one, LIFT, parts=[Fatigue()]),
        ManifoldCircuit(one, LIFT, "numpy", parts=[Fatigue()]),
    ):
        circuit.run(np.repeat(POINTS[:1], 4, axis=0))
        assert circuit.state.extra["excitatory.tired"] == pytest.approx(0.81 * 0.038, abs=1e-8)


@on_two_engines
def test_code_runs_once_for_every_presentation(engine):
    """Also where a stream is cut, and predictions leave no trace."""
    circuit = ManifoldCircuit(PARAMETERS, LIFT, engine, parts=[Count()])
    for part in (slice(CUT), slice(CUT, 40)):
        circuit.run(POINTS[part], LABELS[part])
        circuit.predict(POINTS)
    found = circuit.state.extra
    steps = 40 * PARAMETERS.steps_per_presentation
    assert [found[f"readout.{name}"][0] for name in ("begun", "ended", "steps")] == [40, 40, steps]


def test_the_closed_form_takes_parts_that_leave_settling_alone():
    settled = PARAMETERS.replace(steps_per_presentation=300)
    exact = ReferenceCircuit(settled, LIFT, settling="exact", parts=[Fatigue()])
    stepped = ReferenceCircuit(settled, LIFT, parts=[Fatigue()])
    one, other = exact.run(POINTS, LABELS), stepped.run(POINTS, LABELS)
    assert np.abs(one["h"].values - other["h"].values).max() <= 1e-8  # what 300 steps leave
    slow = {"equations": {"readout": "dq/dt = -q/second : 1"}, "state": {"readout.q": 0}}
    for part, settling, named in (
        (Shunt(), "exact", "Shunt"),
        (Count(), "dynamics", "after_res"),
        (odd_part(**slow), "dynamics", "q"),
        (odd_part(**slow, after_learn=lambda self, s: None), "exact", "Odd"),
    ):
        options = {"settling": settling, "parts": [part]}
        refused(lambda options=options: ReferenceCircuit(PARAMETERS, LIFT, **options), named)


def test_parts_are_saved_copied_and_pickled(tmp_path):
    circuit = ManifoldCircuit(PARAMETERS, LIFT, "numpy", parts=[Fatigue(), Shunt()])
    circuit.run(POINTS[:CUT], LABELS[:CUT])
    path = circuit.save(tmp_path / "tired.nc")
    others = [copy.deepcopy(circuit), pickle.loads(pickle.dumps(circuit))]
    others += [ManifoldCircuit.load(path, "numpy")]  # the text in the file is all that it takes
    others += [ReferenceCircuit.load(path, parts=[Fatigue(), Shunt()])]
    expected = circuit.run(POINTS[CUT:], LABELS[CUT:])
    for other in others:
        found = other.run(POINTS[CUT:], LABELS[CUT:])
        assert np.abs(found["h"].values - expected["h"].values).max() <= CLOSE
        assert found.attrs["model_changes"] == expected.attrs["model_changes"]
    refused(lambda: ReferenceCircuit.load(path), "Fatigue", ParameterError)
    refused(lambda: ManifoldCircuit.load(path, parts=[Count()]), "Shunt", ParameterError)


def test_what_users_set_of_a_part():
    circuit = ManifoldCircuit(PARAMETERS, LIFT, "numpy", parts=[Fatigue(), Computed()])
    tiles = circuit.network["excitatory"]
    tiles.fatigue, tiles.tired = 0.05, 0.1
    circuit.run(POINTS, LABELS)
    twice = type("Fatigue", (Fatigue,), {"parameters": {"excitatory.fatigue": 0.05}})
    twice.state = {"excitatory.tired": 0.1}
    expected = ReferenceCircuit(PARAMETERS, LIFT, parts=[twice()])
    expected.run(POINTS, LABELS)
    refused(lambda: setattr(ReferenceCircuit(PARAMETERS, LIFT), "state", expected.state), "tired")
    tired = expected.state.extra["excitatory.tired"]
    assert np.abs(circuit.state.extra["excitatory.tired"] - tired).max() <= CLOSE
    tiles.doubled = 3
    refused(lambda: circuit.run(POINTS), "excitatory.doubled", InputError)


class Computed(Part):
    equations = {"excitatory": "doubled : 1"}
    code = [("excitatory", "after_drive", "doubled = 2*a")]


def test_parts_are_in_the_builds_key_and_in_the_description():
    circuit = ManifoldCircuit(PARAMETERS, LIFT, "numpy", parts=[Fatigue()])
    slower = type("Fatigue", (Fatigue,), {"code": [*Fatigue.code[:1]]})
    other = ManifoldCircuit(PARAMETERS, LIFT, "numpy", parts=[slower()])
    assert circuit.wiring.facts(circuit) != other.wiring.facts(other)
    text = "\n".join(str(cell) for table in tables(circuit) for row in table.rows for cell in row)
    for words in ("tired", "tired = 0.9*tired + fatigue*h", "0.02", "Fatigue"):
        assert words in text


def test_names_in_numpy_mean_one_thing():
    """A part's variable may not be called as one that the reference has already."""
    circuit = ReferenceCircuit(
        PARAMETERS.replace(recycle=True, reset=False, readout_rule="gated", readout_rate=0.5),
        LIFT,
        perturbations=[Noise(on="h", size=0.1), Delay(time="1 ms"), Lesion(tiles=(0,))],
    )
    circuit.run(POINTS[:2])
    shown = Scene(circuit, circuit.state, replace(circuit.nothing(), x=LIFT(POINTS[:1])))
    shown.present(0)
    delayed = {name.partition(".")[2] for name in circuit.parts.shown}
    found = {name for name in vars(shown) if not name.startswith("_")} - delayed
    assert found <= set(NAMES)
    kept = [odd_part(equations={"inhibitory": "kept : 1"})]
    tired = [odd_part(equations={"readout": "tired : 1"}), Fatigue()]
    for parts, name in ((kept, "kept"), (tired, "tired")):
        refused(lambda p=parts: ReferenceCircuit(PARAMETERS, LIFT, parts=p), name, ParameterError)


def odd_part(**values):
    return type("Odd", (Part,), values)()


BAD = [
    (odd_part(equations={"neurons": "v : 1"}), "neurons"),
    (odd_part(code=[("excitatory", "after_lunch", "h = 0")]), "after_lunch"),
    (odd_part(state={"excitatory.tired": 0.0}), "excitatory.tired"),
    (odd_part(equations={"inhibitory": "dv/dt = -v/second : 1"}), "inhibitory.v"),
    (odd_part(equations={"readout": "a : 1"}, code=[("readout", "learn", "a += y")]), "readout.a"),
    (odd_part(equations={"excitatory": "h : 1"}), "h"),
    (odd_part(equations={"excitatory": 1}), "excitatory"),
    (odd_part(code=("excitatory", "after_learn", "h = 0")), "'excitatory'"),
    (odd_part(state=["excitatory.tired"]), "excitatory.tired"),
    (odd_part(groups={"readout": 3}), "readout"),
    (odd_part(after_lunch=lambda self, s: None), "after_lunch"),
    ([odd_part(namespace={"k": 1.0}), type("Even", (Part,), {"namespace": {"k": 2.0}})()], "k"),
    *(
        (odd_part(equations={"lateral": "q : 1"}, parameters={"lateral.q": value}), "lateral.q")
        for value in (np.nan, "50 ms", np.ones((2, 3)))
    ),
    ("Fatigue", "Fatigue"),
    ([Fatigue(), Fatigue()], "Fatigue"),
]


@pytest.mark.parametrize(("odd", "named"), BAD)
def test_parts_that_are_refused(odd, named):
    def run():
        parts = [odd] if isinstance(odd, Part) else odd
        ManifoldCircuit(PARAMETERS, LIFT, "numpy", parts=parts).run(POINTS[:3])

    refused(run, named)
