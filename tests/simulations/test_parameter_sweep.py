"""The machinery of sweeps over parameters, on an experiment whose every number is known."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest
import xarray as xr

from circuits import CircuitParameters
from circuits.errors import DivergenceError, InputError, PackageError, ParameterError
from circuits.storage import results
from circuits.storage.files import FileError
from simulations import kept_runs, parameter_sweep
from simulations import sweep as repeats
from simulations.experiments.experiment import Experiment, Settings
from simulations.parameter_sweep import sweep
from tests.refusing import refused
from tests.simulations.small import flip_bit, register_toy, resaved

NAME = "toy"


FAULTS = {
    13: DivergenceError("rates grew without bound"),
    17: InputError("no such stream"),
    19: ParameterError("too few squares"),
    23: PackageError("not installed"),
}
"""What goes wrong at some values of mu."""


class ToySettings(Settings):
    n_points: int = 3
    shift: float = 0.0


class Toy(Experiment[ToySettings]):
    """A repeat is known by hand: its value is 100 mu + seed. Counts what it was asked for."""

    settings_class = ToySettings
    parameters = CircuitParameters()
    main = "value"
    asked: list[tuple[float, int]] = []

    def simulate(self, config, seed, report):
        mu = config.parameters.mu
        self.asked.append((mu, seed))
        if mu in FAULTS:
            raise FAULTS[mu]
        points = np.arange(config.settings.n_points)
        return xr.Dataset(
            {
                "value": ((), 100 * mu + seed, {"units": "1"}),
                "whole": ((), seed),
                "course": ("place", mu * points),
                "grid": ("mu", [mu, 2 * mu]),
                "word": ((), "even" if seed % 2 == 0 else "odd"),
                "large": ("many", np.zeros(kept_runs.MOST_VALUES + 1)),
                "just": ("few", np.full(kept_runs.MOST_VALUES, mu)),
            },
            {"place": points + config.settings.shift, "mu": [0.5, 1.5], "many": np.arange(1001)},
            {"unsettled_share": 0.1, "uncovered_share": 0.2, "lost_labels": 1, "model": "long"},
        )

    def claims(self, merged):
        raise AssertionError("a sweep has no claims")


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    register_toy(monkeypatch, Toy)


def swept(out, over=None, **options):
    options = {"repeats": 2, "engine": "exact"} | options
    return sweep(NAME, over or {"mu": [1, 2, 3]}, out=out, **options)


def kept(out):
    return sorted(path.name for path in (out / f"sweep-{NAME}").iterdir())


# What it holds


def test_a_dimension_for_every_parameter_and_one_for_repeats(tmp_path):
    found = swept(tmp_path, {"mu": [1, 2, 3], "readout": ["clip", "tanh"]}, seed=5)
    assert found["value"].dims == ("mu", "readout", "repeat")
    expected = [[[100 * mu + seed for seed in (5, 6)]] * 2 for mu in (1, 2, 3)]
    assert found["value"].to_numpy().tolist() == expected
    assert found["value"].attrs == {"units": "1"}
    assert found["seed"].to_numpy().tolist() == [5, 6]
    assert found["value"].sel(mu=2, readout="tanh").to_numpy().tolist() == [205, 206]
    assert found["whole"].dtype.kind == "i"
    assert found["word"].sel(mu=1, readout="clip").to_numpy().tolist() == ["odd", "even"]
    assert found["course"].dims == ("mu", "readout", "repeat", "place")
    assert found["course"].sel(mu=3, readout="clip").isel(repeat=1).values.tolist() == [0, 3, 6]
    assert found["swept_parameter"].values.tolist() == ["mu", "readout"]
    assert found["swept"].values.tolist() == [3, 2]
    # Every combination before the next seed.
    assert Toy.asked == [(mu, seed) for seed in (5, 6) for mu in (1, 1, 2, 2, 3, 3)]


def test_the_file_is_what_is_returned_and_says_how_it_was_made(tmp_path):
    found = swept(tmp_path, changes={"n_points": 4, "tile_radius": 0.5})
    saved = results.load(tmp_path / f"sweep-{NAME}.nc")
    xr.testing.assert_equal(saved, found)
    expected = {"experiment": NAME, "title": "A toy", "kind": "sweep toy", "engine": "exact"}
    assert {name: saved.attrs[name] for name in expected} == expected
    assert json.loads(saved.attrs["over"]) == {"mu": [1, 2, 3]}
    config = json.loads(saved.attrs["config"])
    assert config["settings"] == {"n_points": 4, "shift": 0.0}
    assert config["parameters"]["tile_radius"] == 0.5
    assert "mu" not in config["parameters"]
    assert saved.attrs["code"] == results.code_revision()
    assert saved.attrs["main"] == "value"
    assert "python" in json.loads(saved.attrs["versions"])
    assert saved["run_lost_labels"].to_numpy().tolist() == [[1, 1]] * 3
    assert (saved["run_seconds"] > 0).all()
    assert saved.attrs["seconds"] == pytest.approx(saved["run_seconds"].sum().item(), rel=1e-12)
    with pytest.raises(InputError, match="only results of 'run' can be re-run"):
        repeats.rerun(tmp_path / f"sweep-{NAME}.nc", tmp_path / "again")


def test_names_that_a_sweep_needs_are_given_up_by_the_experiment(tmp_path, capsys):
    found = swept(tmp_path)
    assert found["grid"].dims == ("mu", "repeat", "own_mu")
    assert found["own_mu"].to_numpy().tolist() == [0.5, 1.5]
    assert found["grid"].sel(mu=2, own_mu=1.5).to_numpy().tolist() == [4, 4]
    assert "toy: the experiment's own mu is called own_mu\n" in capsys.readouterr().out
    assert "own_mu" not in swept(tmp_path, {"tile_radius": [1]})


def test_large_variables_and_those_that_differ_are_left_out_and_named(tmp_path, capsys):
    found = swept(tmp_path, {"n_points": [2, 3]}, changes={"mu": 2})
    said = capsys.readouterr().out
    assert "toy: left out, because of more than 1000 values a run: large\n" in said
    assert "toy: left out, because of another shape or place in other runs: course\n" in said
    assert {*found.data_vars} == {"swept", "value", "whole", "grid", "word", "just"}
    assert not {"place", "many"} & {*found.dims}
    assert found["value"].to_numpy().tolist() == [[200, 201]] * 2
    # Of the same shape at other places: they do not lie along one dimension either.
    found = swept(tmp_path, {"shift": [0.0, 0.5]})
    assert "course" not in found
    assert json.loads(found.attrs["differing"]) == ["course"]
    assert "course" in swept(tmp_path, {"shift": [0.5]})


def test_runs_that_fail_are_unknown_and_the_others_known(tmp_path, capsys):
    failing = [13, 17, 19]
    over = {"mu": [1, *failing]}
    found = swept(tmp_path, over)
    assert found["value"].sel(mu=1).to_numpy().tolist() == [100, 101]
    for name in ("value", "course", "run_seconds"):
        assert np.isnan(found[name].sel(mu=failing)).all()
    assert found["word"].to_numpy().tolist() == [["even", "odd"]] + [["", ""]] * 3
    assert found.attrs["engine"] == "exact"
    assert found["run_failed"].to_numpy().tolist() == [[False, False]] + [[True, True]] * 3
    assert "toy: 6 of 8 runs failed and are NaN, at mu=13; mu=17; mu=19" in capsys.readouterr().out
    Toy.asked.clear()
    again = swept(tmp_path, over)
    assert Toy.asked == []
    xr.testing.assert_identical(again.drop_attrs(), found.drop_attrs())
    for mu in failing:
        reason = f"at mu={mu}; the first, with seed 0: {FAULTS[mu]}"
        with pytest.raises(InputError, match=f"{reason}$"):
            swept(tmp_path / "all", {"mu": [mu]}, repeats=1)


def test_of_many_combinations_that_fail_the_first_are_named(tmp_path, monkeypatch):
    for mu in range(2, 9):
        monkeypatch.setitem(FAULTS, mu, InputError(f"not with {mu}"))
    found = swept(tmp_path, {"mu": range(1, 9), "readout": ["clip"]}, repeats=1, seed=4)
    assert found["run_failed"].sum() == 7
    named = "; ".join(f"mu={mu}, readout=clip" for mu in range(2, 7))
    assert found.attrs["failed"] == f"at {named} and 2 more; the first, with seed 4: not with 2"
    assert swept(tmp_path, {"mu": [1]}).attrs["failed"] == ""


def test_what_the_machine_lacks_ends_a_sweep_and_names_the_combination(tmp_path):
    with pytest.raises(PackageError, match=r"^with mu=23 and seed 0: not installed$"):
        swept(tmp_path, {"mu": [1, 23]})
    assert not (tmp_path / f"sweep-{NAME}.nc").exists()
    Toy.asked.clear()
    swept(tmp_path, {"mu": [1, 2]}, repeats=1)
    assert Toy.asked == [(2, 0)]  # what was finished is kept


def test_what_runs_need_is_looked_for_before_anything_is_written(tmp_path, monkeypatch):
    asked = []

    def check(self, config, seeds):
        asked.append((config.parameters.mu, list(seeds)))
        if config.parameters.mu == 2 and asked[-1][1]:
            raise PackageError("there is no 2")

    out = tmp_path / "results"
    monkeypatch.setattr(Toy, "check", check)
    with pytest.raises(PackageError, match=r"^with mu=2: there is no 2$"):
        swept(out, {"mu": [1, 2]})
    assert asked == [(1, [0, 1]), (2, [0, 1])]
    assert not out.exists()
    assert Toy.asked == []
    # On a cluster there may be what is not here; and what is there needs nothing any more.
    monkeypatch.setattr(repeats, "_on_cluster", lambda todo, address, work: map(work, todo))
    swept(out, {"mu": [2]}, scheduler="tcp://there")
    assert len(asked) == 2
    swept(out, {"mu": [1, 2]}, repeats=2)
    assert asked[2:] == [(1, [0, 1]), (2, [])]


def test_what_is_drawn_is_found_where_it_is_renamed(tmp_path, monkeypatch):
    monkeypatch.setattr(Toy, "main", "shift")
    real = Toy.simulate
    monkeypatch.setattr(Toy, "simulate", lambda *rest: real(*rest).rename(value="shift"))
    found = swept(tmp_path, {"shift": [1, 2]}, changes={"mu": 3})
    assert found.attrs["main"] == "own_shift"
    assert json.loads(found.attrs["main_at"]) == {}
    monkeypatch.setattr(Toy, "main_at", {"mu": None, "place": 2})
    found = swept(tmp_path, {"mu": [1, 2]})
    assert json.loads(found.attrs["main_at"]) == {"own_mu": None, "place": 2}
    found = swept(tmp_path, {"shift": [1, 2]}, changes={"mu": 3})
    assert found["own_shift"].to_numpy().tolist() == [[300, 301], [300, 301]]


# What is kept


def test_more_repeats_and_more_values_compute_only_those(tmp_path, capsys):
    expected = swept(tmp_path)
    Toy.asked.clear()
    # A complete sweep asks nobody, and removes what a killed one was writing.
    left = tmp_path / f"sweep-{NAME}" / f".{'0' * 16}.manifold-circuit-partial.nc"
    left.write_bytes(b"half")
    found = swept(tmp_path, scheduler="tcp://nowhere")
    assert found["value"].variable.equals(expected["value"].variable)
    assert not left.exists()
    assert Toy.asked == []
    assert "toy: 6 of 6 runs were finished before\n" in capsys.readouterr().out
    found = swept(tmp_path, {"mu": [3, 4]}, repeats=3)
    assert Toy.asked == [(4, 0), (4, 1), (3, 2), (4, 2)]
    assert found["value"].to_numpy().tolist() == [[300, 301, 302], [400, 401, 402]]
    said = capsys.readouterr()
    assert "toy: 2 of 6 runs were finished before\n" in said.out
    places = re.findall(r"(\d+)/6", said.err)
    assert (places[0], places[-1]) == ("2", "6")
    assert "sweep toy: " in said.err
    Toy.asked.clear()
    swept(tmp_path, {"mu": [3]}, changes={"tile_radius": 1.0})
    assert Toy.asked == [(3, 0), (3, 1)]  # of other settings


def test_runs_are_written_together_and_an_interrupt_loses_none(tmp_path, capsys, monkeypatch):
    real = Toy.simulate

    def interrupted(self, config, seed, report):
        if len(self.asked) == 4:
            raise KeyboardInterrupt
        return real(self, config, seed, report)

    with monkeypatch.context() as patch:
        patch.setattr(Toy, "simulate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            swept(tmp_path)
    assert "toy: 4 of 6 runs are kept" in capsys.readouterr().err
    assert len(kept(tmp_path)) == 1
    assert not (tmp_path / f"sweep-{NAME}.nc").exists()
    Toy.asked.clear()
    found = swept(tmp_path)
    assert Toy.asked == [(2, 1), (3, 1)]
    assert found["value"].to_numpy().tolist() == [[100, 101], [200, 201], [300, 301]]
    assert len(kept(tmp_path)) == 2


def test_a_share_of_the_time_may_wait_as_well(tmp_path, monkeypatch):
    """After 500 s 2 % of them are 10 s: then what took 9 s waits, and what took 11 s does not."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    runs = kept_runs.KeptRuns(tmp_path / "runs", NAME)
    runs.prepare()
    config = Toy(NAME).config("exact", {})

    def add(seed, now):
        clock[0] = now
        runs.add(parameter_sweep.run_point(parameter_sweep.Point(config.as_dict(), seed)))
        return len(list((tmp_path / "runs").iterdir()))

    assert [add(0, 4), add(1, 5.5), add(2, 500), add(3, 509), add(4, 511)] == [0, 1, 2, 2, 3]


def test_a_sweep_measures_takes_no_seeds_for_choosing_and_names_engines(tmp_path, monkeypatch):
    def measure(self, config, *rest):
        engine = f"engine {config.parameters.mu:g}"
        return self.simulate(config, *rest)[["value", "whole"]].assign_attrs(engine=engine)

    monkeypatch.setattr(Toy, "selection_repeats", 2)
    monkeypatch.setattr(Toy, "measure", measure)
    found = swept(tmp_path, {"mu": [2, 1]})
    assert {*found.data_vars} == {"swept", "value", "whole"}
    assert found["seed"].to_numpy().tolist() == [0, 1]
    assert found.attrs["engine"] == "engine 1 and engine 2"


SPOILED = {
    "damaged": flip_bit,
    "of another kind": resaved(lambda table: table.assign_attrs(kind="runs other")),
    "without seeds": resaved(lambda table: table.drop_vars("run_seed")),
}


def test_damaged_files_are_set_aside_and_their_runs_computed_again(tmp_path, capsys):
    expected = swept(tmp_path, {"mu": [1]})
    for how, spoil in SPOILED.items():
        (name,) = (one for one in kept(tmp_path) if "set-aside" not in one)
        spoil(tmp_path / f"sweep-{NAME}" / name)
        Toy.asked.clear()
        found = swept(tmp_path, {"mu": [1]})
        assert Toy.asked == [(1, 0), (1, 1)], how
        assert name in capsys.readouterr().err
        assert f"{name}.set-aside" in kept(tmp_path), how
        assert found["value"].variable.equals(expected["value"].variable)
    assert len(kept(tmp_path)) == 1 + len(SPOILED)


def test_runs_of_other_code_are_replaced(tmp_path, capsys, monkeypatch):
    swept(tmp_path)
    before = kept(tmp_path)
    Toy.asked.clear()
    monkeypatch.setattr(results, "code_revision", lambda: "another")
    found = swept(tmp_path)
    assert "toy: 6 runs of other code are replaced\n" in capsys.readouterr().out
    assert len(Toy.asked) == 6
    assert len(kept(tmp_path)) == 1
    assert kept(tmp_path) != before
    assert found.attrs["code"] == "another"


REFUSED = [
    ({"repeats": 0}, "repeats .* got 0"),
    ({"jobs": 0}, "jobs .* got 0"),
    ({"repeats": 20_000}, "20000 repeats from seed 0"),
    ({"engine": "steam"}, "'steam'"),
    ({"changes": [1]}, r"changes .* got \[1\]"),
    ({"seed": "a"}, "seed .* got 'a'"),
]


def test_what_is_refused_leaves_nothing(tmp_path):
    for options, words in REFUSED:
        refused(lambda options=options: swept(tmp_path / "new", **options), words)
    refused(lambda: swept(None), "out .* got None")
    (tmp_path / f"sweep-{NAME}").write_text("in the way")
    refused(lambda: swept(tmp_path), str(tmp_path), FileError)
    mine = xr.Dataset({"a": ("x", [1.0])}, attrs={"kind": "merged toy"})
    results.save(mine, tmp_path / "other" / f"sweep-{NAME}.nc")
    refused(lambda: swept(tmp_path / "other"), "merged toy", FileError)
    refused(lambda: sweep([NAME], {"mu": [1]}, out=tmp_path / "new"), r"\['toy'\]", most=500)
    assert not (tmp_path / "new").exists()
    assert Toy.asked == []
