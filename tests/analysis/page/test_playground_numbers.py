"""The playground's circuit, run in a browser over whole streams, beside the reference solver."""

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
    SQUARE_LIFT,
    drifting_moons,
    first_of_each_class,
    spiral_arcs,
    swiss_roll,
    unit_square,
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
  points.forEach((point, t) => {
    circuit.present(point, labels[t]);
    for (const name of ["h", "u", "y"]) found[name].push([...circuit[name]]);
  });
  for (const name of ["W", "b", "w", "V", "recruited"]) found[name] = [...circuit[name]];
  return found;
})()"""


def in_browser(page, parameters, lift, points, labels):
    """What the page's circuit makes of a stream."""
    given = scripted(parameters, lift)
    stream = [given, points.tolist(), labels.reshape(len(points), -1).tolist()]
    return {k: np.array(v) for k, v in page.evaluate(PRESENT % json.dumps(stream)).items()}


def assert_same(found, expected):
    """h, u, y and all weights to rounding, and every sign of y."""
    for name in ("h", "u", "y"):
        assert found[name].shape == expected[name].shape
    assert np.abs(found["h"] - expected["h"].values).max() <= TOLERANCE
    assert np.abs(found["u"] - expected["u"].values).max() <= TOLERANCE
    assert np.array_equal(np.sign(found["y"]), np.sign(expected["y"].values))
    for name in ("W", "b", "w", "V"):
        assert np.abs(found[name] - expected[name].values.ravel()).max() <= TOLERANCE
    assert np.array_equal(found["recruited"], expected["recruited"].values)


def moons(n_points=2000, **changes):
    settings = two_moons.Settings(n_points=n_points)
    stream = two_moons.make_stream(settings, 0, CircuitParameters(**changes))
    return stream.parameters, stream.lift, stream.points, stream.labels


def turning(n_points, noise, speed, **changes):
    rng = np.random.default_rng(4)
    points, classes = drifting_moons(n_points, noise, rng, "rotate", speed, 500)
    return CircuitParameters(**changes), DRIFT_LIFT, points, first_of_each_class(classes, 200)


def arcs():
    points, classes = spiral_arcs(2000, 0.01, np.random.default_rng(5))
    parameters = get_experiment("tiling-arcs").parameters.replace(mu=50.0, readout="tanh")
    return parameters, ARCS_LIFT, points, first_of_each_class(classes, 0)


def square():
    points, labels = unit_square(2000, 0, np.random.default_rng(6))
    return get_experiment("square-balance").parameters, SQUARE_LIFT, points, labels


def roll():
    """Three coordinates and three readouts with labels of their own."""
    rng = np.random.default_rng(7)
    points, unrolled = swiss_roll(1500, rng)
    labels = np.where(rng.random((1500, 3)) < 0.05, np.sign(unrolled[:, :1] - [0.5, 1, 1.5]), 0)
    parameters = CircuitParameters(
        n_tiles=60, n_readouts=3, mu=(1.0, 30.0, 1000.0), tile_radius=0.2, readout_rate=0.05
    )
    return parameters, ROLL_LIFT, points, labels


STREAMS = {
    "two moons": lambda: moons(),
    "five tiles": lambda: moons(n_tiles=5, n_interneurons=3, tile_radius=0.6),
    "many tiles": lambda: moons(n_tiles=120, tile_radius=0.15, n_interneurons=1),
    "gated": lambda: moons(readout_rule="gated", readout_rate=0.9, mu=1.1, n_interneurons=3),
    "gated, clamped, tanh": lambda: moons(
        readout_rule="gated", readout_rate=0.3, mu=3.0, clamp_labels=True, readout="tanh"
    ),
    "recycled": lambda: moons(n_tiles=12, recycle=True, recruit_below=0.7),
    "carried over": lambda: moons(reset=False, recycle=True, n_tiles=20),
    "constant gain": lambda: moons(1000, **CONSTANT_GAIN),
    "few steps": lambda: moons(steps_per_presentation=8),
    "noisy and turning": lambda: turning(
        6000, 0.1, 2.0, n_tiles=80, tile_radius=0.4, recruit_below=0.2, recycle=True,
        readout_rule="gated", readout_rate=0.9, mu=1.1,
    ),
    "turning, few tiles": lambda: turning(
        4000, 0.05, 4.0, n_tiles=18, tile_radius=0.4, recruit_below=0.2, recycle=True,
        readout_rate=0.01, mu=30.0, learning_rate=0.02, n_interneurons=3,
    ),
    "arcs": arcs,
    "square": square,
    "roll": roll,
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_a_whole_stream_is_that_of_the_reference(playground, name):
    parameters, lift, points, labels = STREAMS[name]()
    expected = ReferenceCircuit(parameters, lift).run(points, labels)
    found = in_browser(playground, parameters, lift, points, labels)
    print(
        f"{name}: {len(points)} points, h apart by at most "
        f"{np.abs(found['h'] - expected['h'].values).max():.1e}"
    )
    assert (np.asarray(labels) != 0).sum() >= 2
    assert np.abs(expected["y"].values).max() > 0.1  # there is something whose sign can differ
    assert_same(found, expected)


def test_a_lesioned_tile_is_out_for_ever(playground):
    """The reference without the tile's synapses: masks of V and W, from the same state on."""
    parameters, lift, points, labels = moons(1500)
    lesions, at = [0, 3], 700
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
    stream = [scripted(parameters, lift), points.tolist(), labels[:, None].tolist()]
    found = playground.evaluate(
        f"(() => {{ const [given, points, labels] = {json.dumps(stream)};"
        " const circuit = new playground.Circuit(given), h = [], y = [];"
        " let frozen; const weights = () => [...circuit.W.slice(0, 3), circuit.b[3], circuit.w[3]];"
        f" points.forEach((point, t) => {{ if (t === {at}) {{"
        f" {lesions}.forEach((tile) => circuit.lesion(tile)); frozen = weights(); }}"
        " circuit.present(point, labels[t]); h.push([...circuit.h]); y.push([...circuit.y]); });"
        " return {h, y, frozen, weights: weights()}; })()"
    )
    expected = np.concatenate([before["h"].values, after["h"].values])
    h = np.array(found["h"])
    assert h[:at, lesions].max() > 0.5
    assert (h[at:, lesions] == 0).all()
    assert np.abs(h - expected).max() <= TOLERANCE
    answers = np.concatenate([before["y"].values, after["y"].values])
    assert np.array_equal(np.sign(found["y"]), np.sign(answers))
    assert found["weights"] == found["frozen"]


def test_lesioned_tiles_are_not_recycled(playground):
    parameters, lift, points, labels = moons(600, n_tiles=6, recycle=True)
    stream = [scripted(parameters, lift), points.tolist(), labels[:, None].tolist()]
    moved = playground.evaluate(
        f"(() => {{ const [given, points, labels] = {json.dumps(stream)};"
        " const circuit = new playground.Circuit(given); let before = null;"
        " points.forEach((point, t) => { if (t === 300) { circuit.lesion(2);"
        " before = [...circuit.recruited]; } circuit.present(point, labels[t]); });"
        " return [...circuit.recruited].map((time, tile) => time !== before[tile]); })()"
    )
    assert moved == [True, True, False, True, True, True]


@pytest.mark.parametrize(
    ("fragment", "presentations"),
    [
        ("", 2000),
        ("data=square&seed=3", 2000),
        ("data=arcs&seed=4294967295", 1500),
        ("data=ring&readout_rule=gated&seed=7", 1500),
        ("data=moons&drift=1&recycle=1&noise=0.1&n_tiles=30&readout_rate=0.01&mu=30", 3000),
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
    rng = np.random.default_rng(8)
    places = rng.uniform((-1.4, -0.9), (2.4, 1.4), (300, 2))
    stream = [scripted(parameters, lift), points.tolist(), labels[:, None].tolist()]
    found = playground.evaluate(
        f"(() => {{ const [given, points, labels] = {json.dumps(stream)};"
        " const circuit = new playground.Circuit(given);"
        " points.forEach((point, t) => circuit.present(point, labels[t]));"
        f" return {json.dumps(places.tolist())}.map((place) => circuit.answerTo(place)); }})()"
    )
    expected = solver.predict(places)[:, 0]
    # After 500 points the settled circuit is within 1e-8 of the exact one, times mu = 1000.
    assert np.abs(np.array(found) - expected).max() <= 1e-4
    assert set(np.sign(expected)) == {-1, 0, 1}


def test_speed_is_measured_in_the_page(playground, capsys):
    """No test depends on time: the figure is printed, for 40 tiles and 80 steps."""
    assert playground.evaluate("playground.session.circuit.p.m") == 40
    assert playground.evaluate("playground.session.circuit.p.steps") == 80
    playground.click("#measure")
    playground.wait_until("document.querySelector('#measured').textContent !== ''")
    text = playground.text("#measured")
    assert "at 40 tiles, 4 interneurons and 80 steps each" in text
    assert int(text.split()[0].replace(",", "")) > 0
    with capsys.disabled():
        print(f"\nplayground: {text}")
