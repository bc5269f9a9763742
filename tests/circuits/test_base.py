"""What every circuit does alike, shown on one that computes nothing and notes its tasks."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from circuits import CircuitModel, ReferenceCircuit, SphereLift, base
from circuits.base import Circuit, checked_options
from circuits.circuit import Scene
from circuits.errors import DivergenceError, InputError, ParameterError
from tests.conftest import small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.0,), radius=100.0)


class Noting(Circuit):
    """Answers presentation t of its life with h = u = y = t + 1 (``scale`` times), at once."""

    engine = "noting"
    scale = 0.0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.tasks = []

    def _advance(self, state, task):
        self.tasks.append(task)
        p, count = self.parameters, len(task.x)
        numbers = state.shown + np.arange(count) + 1.0
        task.report(1)
        state.shown += count
        if task.learn:
            state.learned += count

        def filled(*shape):
            values = np.broadcast_to(numbers.reshape(-1, *[1] * len(shape)), (count, *shape))
            return values.copy()

        sizes = {"h": p.n_tiles, "u": p.n_interneurons, "y": p.n_readouts}
        out = {name: self.scale * filled(size) for name, size in sizes.items()}
        out["h"][:, 0] = 1
        out["change"] = np.zeros(count)
        for name in task.record:
            out[f"{name}_trace"] = filled(p.steps_per_presentation, 1)
        if task.snapshots:
            n = self.lift.n_inputs
            out |= {"W_snapshots": filled(p.n_tiles, n), "b_snapshots": filled(p.n_tiles)}
            out["w_snapshots"] = filled(p.n_readouts, p.n_tiles)
        return out


def noting(**changes) -> Noting:
    return Noting(small_circuit(tile_radius=1.0, **changes), LIFT)


def line(count: int) -> np.ndarray:
    return np.arange(float(count))[:, None]


def test_what_a_circuit_is_made_of_is_checked():
    parameters = small_circuit(tile_radius=1.0)
    model = CircuitModel(connections={"lateral": np.ones((1, 1))})
    refused(lambda: Noting({}, LIFT), "^parameters .*got {}", ParameterError)
    for options, words, error in (
        ({"lift": 3.0}, "^lift .*got 3.0", ParameterError),
        ({"model": "none"}, "^model .*got 'none'", ParameterError),
        ({"model": model}, "'lateral'", InputError),
        ({"tile_centers": line(5)}, "n_tiles=6 .*got 5", InputError),
    ):
        refused(lambda o=options: Noting(parameters, **{"lift": LIFT} | o), words, error)


def test_gain_floor_and_step_sizes_by_hand():
    control = noting(initial_weight=0.5)
    assert control.alpha == 1 - 1 / (2 * 100**2)
    assert control.gain is None
    assert control.floor == pytest.approx(1e-9 * 0.5 / (2 * 100**2), rel=1e-11, abs=0)
    auto = noting(gain="auto")
    assert auto.gain == pytest.approx(6 * 2 * 100**2, rel=1e-11)  # 1 - alpha has lost 1e-12 of it
    assert auto.floor == 0
    assert noting(gain=7.5).gain == 7.5
    times = {"dt": "0.1 ms", "tau_h": "2 ms", "tau_u": "4 ms", "tau_V": "5 ms"}
    for circuit, gain in ((noting(**times), 1 / 0.5), (noting(gain=3, **times), 3)):
        assert circuit.gamma(0.5) == pytest.approx((gain * 0.05, 0.025, 0.02), rel=1e-15)
        assert (circuit.n_steps, circuit.dt_) == (30, 0.0001)


def test_tiles_on_given_centres_on_first_points_and_idle():
    parameters = small_circuit(tile_radius=1.0, initial_weight=0.5)
    circuit = Noting(parameters, LIFT, tile_centers=line(6))
    state = circuit.state
    assert (0.5 * LIFT(line(6)) == state.W).all()
    assert state.b.tolist() == [0.5 * math.sqrt(circuit.alpha)] * 6
    assert state.recruited.tolist() == [0] * 6
    assert not state.w.any()
    assert np.linalg.norm(state.h) == pytest.approx(1, rel=1e-15)
    assert np.linalg.norm(state.u) == pytest.approx(1, rel=1e-15)
    assert (np.outer(state.u, state.h) == state.V).all()
    first = noting(tiles="first")
    refused(lambda: first.run(line(9) % 2), "6 tiles .*2 in the first 9", InputError)
    first.run(line(8))
    assert first.state.recruited.tolist() == [0] * 6
    # Others are idle until a point recruits them.
    idle = noting()
    idle.run(line(1))
    state = idle.state
    assert state.recruited.tolist() == [-1] * 6
    assert not any(getattr(state, name).any() for name in "WbwhV")
    assert np.linalg.norm(state.u) == pytest.approx(1, rel=1e-15)


def test_a_circuit_in_few_words(monkeypatch):
    first, *others = CircuitModel().each_step
    tiles = "dh/dt = (2*a - inhibition)/tau_h : 1"
    changed = CircuitModel(excitatory=tiles, each_step=(first, *reversed(others)))
    circuit = Noting(small_circuit(tile_radius=1.0), LIFT, model=changed)
    circuit.run(line(2))
    assert set(circuit.changes()) == {"excitatory", "each_step"}
    for words in ("6 tiles", "1 readout,", "2 presentations", "excitatory, each_step"):
        assert words in repr(circuit)

    def refuse(self):
        raise InputError("no")

    monkeypatch.setattr(Noting, "changes", refuse)
    assert "0 presentations" in repr(noting())


def test_a_state_is_a_copy_both_ways():
    circuit = noting()
    refused(lambda: circuit.state, "no state yet", InputError)
    circuit.run(line(2))
    state = circuit.state
    state.W += 1
    assert not circuit.state.W.any()
    circuit.state = state
    state.W += 1
    assert (circuit.state.W == 1).all()
    # What only the cells of a twin know is not taken.
    state.extra = {"cells.threshold": np.ones(3), "mine": np.ones(2)}
    circuit.state = state
    assert list(circuit.state.extra) == ["mine"]
    # A pickled copy has a lock and a life of its own.
    circuit.tasks.clear()
    copy = pickle.loads(pickle.dumps(circuit))
    assert copy._turn is not circuit._turn
    with copy._turn:
        assert copy.state.learned == 2
    copy.run(line(2))
    assert (circuit.state.learned, copy.state.learned) == (2, 4)


def test_options_are_checked():
    for every in (None, 1, np.int64(3), 10**9):
        assert checked_options(["y", "h", "V", "h"], every) == ("h", "V", "y")
    assert checked_options("u", None) == ("u",)
    assert checked_options((), None) == ()
    for every in (0, -1, 1.0, True, "1"):
        refused(lambda e=every: checked_options((), e), "snapshot_every .*from 1", InputError)
    for record in ("hu", 5, None, [None], [b"h"], ["h", "w"]):
        refused(lambda r=record: checked_options(r, None), "h, u, V, y, got", InputError)
    assert noting().prepare(record=["h"], snapshot_every=2) is False
    refused(lambda: noting().prepare(record=["x"]), "got 'x'", InputError)


def test_a_stream_goes_through_in_chunks(monkeypatch):
    monkeypatch.setattr(base, "CHUNK", 4)
    circuit, seen = noting(n_readouts=2), []
    labels = np.where(np.arange(10) % 3 == 0, 1, 0)
    run = circuit.run(line(10), labels, progress=lambda *done: seen.append(done))
    assert [len(task.x) for task in circuit.tasks] == [4, 4, 2]
    assert (np.concatenate([task.x for task in circuit.tasks]) == LIFT(line(10))).all()
    shown = np.concatenate([task.z for task in circuit.tasks])
    assert (shown == labels[:, None] * [[1, 1]]).all()
    for task in circuit.tasks:
        assert (task.learn, task.record, task.snapshots) == (True, (), False)
    assert seen == [(done, 10) for done in (1, 4, 5, 8, 9, 10)]
    assert run["presentation"].values.tolist() == list(range(10))
    assert circuit.run(line(3))["presentation"].values.tolist() == [10, 11, 12]


def test_snapshots_are_counted_from_the_first_presentation(monkeypatch):
    monkeypatch.setattr(base, "CHUNK", 4)
    circuit = noting()
    kept = [circuit.run(line(n), snapshot_every=3)["b_snapshots"].values[:, 0] for n in (10, 1, 4)]
    assert [values.tolist() for values in kept] == [[3, 6, 9], [], [12, 15]]
    run = circuit.run(line(3), snapshot_every=3)
    for name in ("W", "b", "w"):
        assert (run[f"{name}_snapshots"].values == 18).all()
        assert len(run[f"{name}_snapshots"]) == 1


def test_how_much_goes_through_at_a_time(monkeypatch):
    """30 steps of 6 h, 2 u, 3 y and 12 V; W, b and w of 6 tiles are 6 (2 + 1 + 3) numbers."""
    circuit = noting(n_readouts=3)
    assert circuit._chunk_size(("u",), False) == 2048
    assert base.TRACE_BYTES == 2**26  # the tests of memory in soak count on 64 MiB
    monkeypatch.setattr(base, "TRACE_BYTES", 8 * 30 * 100)
    for record, snapshots, size in (
        ((), False, 2048),
        (("h", "u", "y"), False, 100 // 11),
        (("V",), False, 100 // 12),
        ((), True, 3000 // 36),
        (("u",), True, 3000 // (60 + 36)),
    ):
        assert circuit._chunk_size(record, snapshots) == size
    # Snapshots need room only where they are taken.
    for every, size in ((None, 100), (50, 3000 // 36)):
        circuit.tasks.clear()
        circuit.run(line(100), snapshot_every=every)
        assert len(circuit.tasks[0].x) == size
    monkeypatch.setattr(base, "TRACE_BYTES", 8)
    assert circuit._chunk_size(("V",), False) == 1


def arrays(h, u=(0.0,)):
    return {"h": np.array(h), "u": np.tile(u, (len(h), 1))}


def test_rates_that_will_not_come_back_are_named(monkeypatch):
    circuit = noting(tau_u="3 ms", tau_V="4 ms", tau_h="2 ms", dt="0.5 ms")
    circuit.run(line(1))
    state = circuit.state
    circuit._check_finite(arrays([[999.9, 0.0]], u=[-999.9]), state, 0)
    constant, found = noting(gain=3), r"presentation 41: .*dt/tau_h = 0.25 .*3 ms.*4 ms.*2 ms.*0.5"
    for own, given, first, words in (
        (circuit, arrays([[0.0, 0.0], [1000.0, 0.0]]), 40, found),
        (circuit, arrays([[0.0, 0.0], [0.0, -1e4], [math.nan, 0.0]]), 40, found),
        (circuit, arrays([[0.0, 0.0], [math.nan, 0.0]]), 40, found),
        (circuit, arrays([[0.0], [0.0]], u=[math.inf]), 40, "presentation 40:"),
        (constant, arrays([[1e3]]), 0, "gain dt/tau_h = "),
    ):
        with pytest.raises(DivergenceError, match=words):
            own._check_finite(given, state, first)
    for name in ("W", "b", "w", "V"):
        broken = circuit.state
        getattr(broken, name).flat[-1] = math.nan
        with pytest.raises(DivergenceError, match="at presentation 7:"):
            circuit._check_finite(arrays([[0.0]]), broken, 7)
    # In a run it is found in its chunk: h = 1000 at the seventh presentation, number 6.
    monkeypatch.setattr(base, "CHUNK", 4)
    run = noting()
    run.scale = 1000 / 7
    with pytest.raises(DivergenceError, match="at presentation 6:"):
        run.run(line(10))
    assert run._state is None


def test_chunks_are_points_or_pairs():
    circuit = noting()
    seen = []
    chunks = iter([line(2), (line(2), [1, 0]), [[5.0]]])
    runs = list(circuit.run_stream(chunks, progress=lambda *done: seen.append(done)))
    assert [run["labels"].values[:, 0].tolist() for run in runs] == [[0, 0], [1, 0], [0]]
    assert [run.attrs["first_presentation"] for run in runs] == [0, 2, 4]
    assert seen == [(1, 2), (2, 2), (1, 2), (2, 2), (1, 1), (1, 1)]
    refused(lambda: next(circuit.run_stream(5)), "chunks .*got 5", InputError)
    for chunk in ((line(1),), (line(1), [1], 3)):
        refused(lambda c=chunk: next(circuit.run_stream([c])), "chunk .*got", InputError)


def test_predictions_move_the_clock_and_nothing_else():
    circuit, seen = noting(n_readouts=2), []
    circuit.scale = 1.0
    circuit.run(line(3))
    y = circuit.predict(line(2), progress=lambda *done: seen.append(done))
    assert y.tolist() == [[4, 4], [5, 5]]
    assert circuit.respond(line(1)).tolist() == [[1, 6, 6, 6, 6, 6]]
    assert (circuit.state.learned, circuit.state.shown) == (3, 6)
    asked = circuit.tasks[1]
    assert (asked.learn, asked.record, asked.snapshots) == (False, (), False)
    assert asked.z.tolist() == [[0, 0], [0, 0]]
    assert seen == [(1, 2), (2, 2)]
    refused(lambda: noting().predict(line(1)), "no state yet", InputError)


def recruit(circuit, state, x):
    """Load a point, up to where a tile is recruited."""
    shown = Scene(circuit, state, circuit.nothing())
    shown.x = x
    for stage in ("drive", "recruit"):
        shown.at(stage)
    for name in ("W", "b", "w", "recruited"):
        setattr(state, name, getattr(shown, name))


def test_a_point_recruits_by_hand():
    """Points on a line 5 apart: each recruits, until none is idle; then nothing, or the least b."""
    for recycle in (False, True):
        changes = {"n_tiles": 2, "tile_radius": 1.0, "initial_weight": 0.5, "recycle": recycle}
        circuit = ReferenceCircuit(small_circuit(**changes), LIFT)
        state = circuit._idle()
        x, weight = LIFT(np.array([[0.0], [5.0], [10.0]])), 0.5
        recruit(circuit, state, x[0])
        state.learned = 4
        kept = state.W
        recruit(circuit, state, x[1])
        assert state.recruited.tolist() == [0, 4]
        assert (weight * x[:2] == state.W).all()
        assert not kept[1].any()  # what was handed out stays as it was
        assert state.b.tolist() == [weight * math.sqrt(circuit.alpha)] * 2
        recruit(circuit, state, x[1])  # a tile answers
        assert (weight * x[:2] == state.W).all()
        state.learned, state.w = 9, np.array([[0.3, 0.4]])
        state.b = state.b * [1.0, 0.9999]  # not so little that the tile answers a point 5 away
        recruit(circuit, state, x[2])
        assert state.recruited.tolist() == ([0, 9] if recycle else [0, 4])
        assert (weight * x[[0, 2 if recycle else 1]] == state.W).all()
        assert state.w.tolist() == ([[0.3, 0.0]] if recycle else [[0.3, 0.4]])
    first = ReferenceCircuit(small_circuit(tiles="first", tile_radius=1.0), LIFT)
    state = first.seeded(LIFT(line(6)))
    before = state.W
    recruit(first, state, LIFT([[50.0]])[0])
    assert state.W is before


def test_connections_that_are_missing_have_no_weights():
    def masked(synapses, mask):
        model = CircuitModel(connections={synapses: mask})
        parameters = small_circuit(n_tiles=len(mask.T), tile_radius=1.0)
        return ReferenceCircuit(parameters, LIFT, model=model)

    mask = np.array([[False, True]] * 2)
    circuit = masked("feedforward", mask)
    state = circuit._idle()
    recruit(circuit, state, LIFT([[7.0]])[0])
    assert state.W[0, 0] == 0 < state.W[0, 1]
    assert ((circuit.seeded(LIFT([[1.0], [7.0]])).W != 0) == mask).all()
    mask = np.array([[True, False, True], [True, True, False]])
    assert ((masked("lateral", mask).seeded(LIFT(line(3))).V != 0) == mask).all()


def test_a_failed_run_keeps_nothing(monkeypatch):
    circuit = noting()
    circuit.run(line(2))

    def fail(state, task):
        state.W += 1
        raise KeyboardInterrupt

    monkeypatch.setattr(circuit, "_advance", fail)
    for present in (circuit.run, circuit.predict):
        with pytest.raises(KeyboardInterrupt):
            present(line(1))
    assert circuit.state.learned == 2
    assert not circuit.state.W.any()


def test_a_run_says_nothing_unless_it_is_asked(capsys):
    circuit = noting()
    for ask in (circuit.run, circuit.predict, circuit.respond):
        ask(line(2))
    list(circuit.run_stream([line(2)]))
    assert capsys.readouterr() == ("", "")
    circuit.run(line(2), progress=True)
    assert "2/2" in capsys.readouterr().err


def test_what_was_changed_by_other_ways_takes_effect_on_every_copy():
    class Changed(Noting):
        def _take_changes(self, state):
            state.b = np.full(6, 3.0)

    circuit = Changed(small_circuit(tile_radius=1.0), LIFT)
    circuit.run(line(1))
    assert circuit._state.b.tolist() == [3.0] * 6  # of the state that it started in
    circuit._state.b = np.zeros(6)
    assert circuit.state.b.tolist() == [3.0] * 6
    assert circuit._state.b.tolist() == [0.0] * 6
