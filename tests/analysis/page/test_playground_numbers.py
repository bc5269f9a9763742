"""The playground's circuit in a browser, against the reference solver."""

from __future__ import annotations

import json

import numpy as np
import pytest

from analysis.page.layout import scripted
from circuits import CircuitModel, CircuitParameters, ReferenceCircuit, SphereLift
from simulations.datasets import (
    ARCS_LIFT,
    DRIFT_LIFT,
    ROLL_LIFT,
    drifting_moons,
    first_of_each_class,
    spiral_arcs,
    swiss_roll,
)
from simulations.experiments import get_experiment, two_moons
from tests.conftest import CONSTANT_GAIN

# Some circuits here have too few tiles, or steps, for their data.
pytestmark = [
    pytest.mark.filterwarnings("ignore::circuits.errors.LostLabelWarning"),
    pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning"),
]

TOLERANCE = 1e-9
"""Of h, over the whole stream. The page adds in another order than NumPy; that rounding, which
learning carries on from point to point, comes to some 1e-12, and to 5e-10 where tiles are so small
beside the lift (0.1 of 3) that a drive is the little that is left of products near one. A constant
gain at which h hardly settles at all ("auto" with the default time constants) makes 1e-8 of it."""

PRESENT = """(() => {
  const [given, points, labels] = %s;
  const circuit = new playground.Circuit(given), found = { h: [], u: [], y: [] };
  const places = %s, lesions = %s, at = %d;
  const weights = () => lesions.map((i) => [...circuit.W.slice(3 * i, 3 * i + 3), circuit.b[i],
    circuit.w[i], circuit.recruited[i]]);
  points.forEach((point, t) => {
    if (t === at) { lesions.forEach((tile) => circuit.lesion(tile)); found.frozen = weights(); }
    circuit.present(point, labels[t]);
    for (const name of ["h", "u", "y"]) found[name].push([...circuit[name]]);
  });
  for (const name of ["W", "b", "w", "V", "recruited"]) found[name] = [...circuit[name]];
  return { ...found, answers: places.map((place) => circuit.answerTo(place)), weights: weights() };
})()"""
"""Show a stream to the page's circuit, with lesions at a time; then ask for answers at places."""


def in_browser(page, stream, places=(), lesions=(), at=-1):
    """What the page's circuit makes of a stream."""
    parameters, lift, points, labels = stream
    labels = labels.reshape(len(points), -1)
    given = [scripted(parameters, lift), points.tolist(), labels.tolist()]
    values = (json.dumps(value) for value in (given, list(places), list(lesions)))
    return {name: np.array(v) for name, v in page.evaluate(PRESENT % (*values, at)).items()}


def moons(n_points, **changes):
    settings = two_moons.Settings(n_points=n_points, label_after=n_points // 10)
    stream = two_moons.make_stream(settings, 0, CircuitParameters(**changes))
    return stream.parameters, stream.lift, stream.points, stream.labels


def turning(n_points, noise, speed, **changes):
    rng = np.random.default_rng(4)
    points, classes = drifting_moons(n_points, noise, rng, "rotate", speed, n_points // 10)
    labels = first_of_each_class(classes, n_points // 20)
    changes |= {"tile_radius": 0.4, "recruit_below": 0.2, "recycle": True}
    return CircuitParameters(**changes), DRIFT_LIFT, points, labels


def arcs(n_points):
    points, classes = spiral_arcs(n_points, 0.01, np.random.default_rng(5))
    parameters = get_experiment("tiling-arcs").parameters.replace(mu=50.0, readout="tanh")
    return parameters, ARCS_LIFT, points, first_of_each_class(classes, 0)


def roll(n_points):
    """Three coordinates and three readouts with labels of their own."""
    rng = np.random.default_rng(7)
    points, unrolled = swiss_roll(n_points, rng)
    labelled = rng.random((n_points, 3)) < 0.05
    labels = np.where(labelled, np.sign(unrolled[:, :1] - [0.5, 1, 1.5]), 0)
    parameters = CircuitParameters(
        n_tiles=60, n_readouts=3, mu=(1.0, 30.0, 1000.0), tile_radius=0.2, readout_rate=0.05
    )
    return parameters, ROLL_LIFT, points, labels


GATED = {"readout_rule": "gated", "readout_rate": 0.9, "mu": 1.1}
FEW = {"n_tiles": 18, "readout_rate": 0.01, "mu": 30.0, "learning_rate": 0.02, "n_interneurons": 3}
STREAMS = {
    "two moons": (moons, {}),
    "many tiles": (moons, {"n_tiles": 120, "tile_radius": 0.15, "n_interneurons": 1}),
    "clamped, tanh": (
        moons,
        GATED | {"readout_rate": 0.3, "mu": 3.0, "clamp_labels": True, "readout": "tanh"},
    ),
    "carried over": (moons, {"reset": False, "recycle": True, "n_tiles": 20}),
    "constant gain": (moons, CONSTANT_GAIN),
    "few steps": (moons, {"steps_per_presentation": 8}),
    "noisy and turning": (turning, {"noise": 0.1, "speed": 2.0, "n_tiles": 80} | GATED),
    "turning, few tiles": (turning, {"noise": 0.05, "speed": 4.0} | FEW),
    "arcs": (arcs, {}),
    "roll": (roll, {}),
}
QUICK = ("two moons", "clamped, tanh", "carried over", "constant gain", "few steps", "roll")
QUICK += ("noisy and turning", "turning, few tiles")
"""Of any other stream, all that the circuit does is done in one of these."""
LONG = {"noisy and turning": 6000, "turning, few tiles": 4000, "constant gain": 1000, "roll": 1500}


def assert_is_that_of_the_reference(page, name, n_points):
    """h, u and all weights to rounding, and every sign of y."""
    make, changes = STREAMS[name]
    parameters, lift, points, labels = make(n_points, **changes)
    expected = ReferenceCircuit(parameters, lift).run(points, labels)
    found = in_browser(page, (parameters, lift, points, labels))
    assert (np.asarray(labels) != 0).sum() >= 2
    assert np.abs(expected["y"].values).max() > 0.1  # there is something whose sign can differ
    assert found["h"].shape == expected["h"].shape
    for each in ("h", "u", "W", "b", "w", "V"):
        far = np.abs(found[each] - expected[each].values.reshape(found[each].shape)).max()
        assert far <= TOLERANCE, (name, each)
    assert np.array_equal(np.sign(found["y"]), np.sign(expected["y"].values)), name
    assert np.array_equal(found["recruited"], expected["recruited"].values), name


def test_short_streams_are_those_of_the_reference(playground):
    for name in QUICK:
        assert_is_that_of_the_reference(playground, name, 120)


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_a_whole_stream_is_that_of_the_reference(playground, name):
    assert_is_that_of_the_reference(playground, name, LONG.get(name, 2000))


def test_a_lesioned_tile_is_out_for_ever(playground):
    """The reference without the tile's synapses: masks of V and W, from the same state on."""
    parameters, lift, points, labels = moons(240)
    lesions, at = [0, 3], 140
    circuit = ReferenceCircuit(parameters, lift)
    before = circuit.run(points[:at], labels[:at])
    alive = ~np.isin(np.arange(parameters.n_tiles), lesions)
    masks = {
        "lateral": np.tile(alive, (parameters.n_interneurons, 1)),
        "feedforward": np.tile(alive[:, None], (1, lift.n_inputs)),
        "classifier": alive[None],
    }
    lesioned = ReferenceCircuit(parameters, lift, model=CircuitModel(connections=masks))
    state = circuit.state
    state.W, state.w = state.W * alive[:, None], state.w * alive
    lesioned.state = state
    after = lesioned.run(points[at:], labels[at:])
    found = in_browser(playground, (parameters, lift, points, labels), (), lesions, at)
    expected = np.concatenate([before["h"].values, after["h"].values])
    assert found["h"][:at, lesions].max() > 0.5
    assert (found["h"][at:, lesions] == 0).all()
    assert np.abs(found["h"] - expected).max() <= TOLERANCE
    answers = np.concatenate([before["y"].values, after["y"].values])
    assert np.array_equal(np.sign(found["y"]), np.sign(answers))
    assert np.array_equal(found["weights"], found["frozen"])


def test_lesioned_tiles_are_not_recycled(playground):
    found = in_browser(playground, moons(600, n_tiles=6, recycle=True), (), [2], 300)
    assert np.array_equal(found["weights"], found["frozen"])
    assert (found["recruited"] >= 300).tolist() == [True, True, False, True, True, True]


TURNING = "data=moons&drift=1&recycle=1&noise=0.1&n_tiles=30&readout_rate=0.01&mu=30"


@pytest.mark.parametrize(
    ("fragment", "presentations"),
    [
        (TURNING, 200),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                ("", 2000),
                ("data=arcs&seed=4294967295", 1500),
                ("data=ring&readout_rule=gated&seed=7", 1500),
                (TURNING, 3000),
            ]
        ),
    ],
)
def test_what_the_page_plays_is_what_the_reference_computes(
    open_playground, fragment, presentations
):
    """The page's own stream, through its own loop: points, labels and answers are taken down."""
    page = open_playground(fragment)
    found = page.evaluate(
        "(() => { const { session } = playground, out = { x: [], z: [], h: [], y: [] };"
        f" for (let t = 0; t < {presentations}; t++) {{ session.next();"
        " out.x.push([...session.point]);"
        " out.z.push(session.z[0]); out.h.push([...session.circuit.h]);"
        " out.y.push(session.circuit.y[0]); } return { ...out, given: session.given }; })()"
    )
    given = found.pop("given")
    lift = SphereLift(given["center"], given["radius"])
    names = CircuitParameters().as_dict().keys() - {"dt", "tau_h", "tau_u", "tau_V"}
    values = {name: given[name] for name in names} | {"mu": given["mu"][0]}
    circuit = ReferenceCircuit(CircuitParameters(**values), lift)
    expected = circuit.run(np.array(found["x"]), np.array(found["z"]))
    assert np.abs(np.array(found["h"]) - expected["h"].values).max() <= TOLERANCE
    assert np.array_equal(np.sign(found["y"]), np.sign(expected["y"].values[:, 0]))
    assert {-1.0, 0.0, 1.0} == set(found["z"])


def test_answer_over_the_plane_is_the_closed_form(playground):
    parameters, lift, points, labels = moons(500)
    solver = ReferenceCircuit(parameters, lift, settling="exact")
    solver.run(points, labels)
    places = np.random.default_rng(8).uniform((-1.4, -0.9), (2.4, 1.4), (300, 2))
    found = in_browser(playground, (parameters, lift, points, labels), places.tolist())
    expected = solver.predict(places)[:, 0]
    # After 500 points the settled circuit is within 1e-8 of the exact one, times mu = 1000.
    assert np.abs(found["answers"] - expected).max() <= 1e-4
    assert set(np.sign(expected)) == {-1, 0, 1}
