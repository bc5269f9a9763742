"""Perturbations on the command line and in experiments."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from circuits import Freeze, Lesion, Noise, ReferenceCircuit, SphereLift
from circuits.errors import ParameterError
from simulations import sweep
from simulations.datasets import two_moons
from simulations.experiments import EXPERIMENTS, get_experiment
from simulations.experiments.two_moons import make_stream
from tests.refusing import refused as call_refused
from tests.simulations.small import TINY
from tests.simulations.test_cli import done, refused, run

DONE = ("--perturb", "lesion:tiles=0.5,at=100", "--perturb", "noise:on=W,size=0.001")
MOONS = [part for k, v in TINY["two-moons"].items() for part in ("--set", f"{k}={v}")]


@pytest.fixture(scope="module")
def lesioned(tmp_path_factory):
    out = tmp_path_factory.mktemp("lesioned")
    done("run", "two-moons", "--engine", "exact", "--repeats", 1, *MOONS, *DONE, "--out", out)
    return out


def test_a_run_has_what_was_done_to_it(lesioned):
    with xr.open_dataset(lesioned / "two-moons" / "seed-00000.nc") as result:
        config = json.loads(result.attrs["config"])
        tiles = result["recruited"].values
    assert config["perturbations"] == [
        {"kind": "lesion", "at": 100, "tiles": 0.5},
        {"kind": "noise", "on": "W", "size": 0.001},
    ]
    chosen = get_experiment("two-moons").config("exact", TINY["two-moons"])
    stream = make_stream(chosen.settings, 0, chosen.parameters)
    own = [Lesion(tiles=0.5, at=100), Noise(on="W", size=0.001)]
    circuit = ReferenceCircuit(chosen.parameters, stream.lift, settling="exact", perturbations=own)
    expected = circuit.run(stream.points, stream.labels)
    assert np.array_equal(tiles, expected["recruited"].values)
    assert (tiles == -2).sum() == chosen.parameters.n_tiles // 2


def test_it_is_run_again_from_itself_and_found_again(lesioned, tmp_path):
    again = run("run", "--from", lesioned / "two-moons" / "seed-00000.nc", "--out", tmp_path)
    assert "gives the same numbers" in again.stdout
    command = ("run", "two-moons", "--engine", "exact", "--repeats", 1, *MOONS)
    found = run(*command, *DONE, "--out", lesioned)
    assert "1 of 1 runs were finished before" in found.stdout
    # Without what was done it is another run, and not mistaken for this one.
    config = get_experiment("two-moons").config("exact", TINY["two-moons"])
    assert sweep.finished(lesioned, config, [0]) == []


def test_what_cannot_be_done_is_one_sentence(tmp_path):
    for arguments, words in (
        (("two-moons", "--perturb", "lesin:tiles=0.5"), "did you mean lesion"),
        (("two-moons", "--perturb", "lesion:tiles=400"), "there are 40"),
        (("spiking-twin", *DONE), "takes no perturbations"),
        (("--from", "x.nc", *DONE), "--perturb does nothing with --from"),
        (("two-moons", "--engine", "exact", "--perturb", "delay:time=2ms"), "closed form"),
    ):
        assert words in refused("run", *arguments, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_own_points_may_be_perturbed(tmp_path):
    points, _ = two_moons(60, 0.05, 0)
    np.save(tmp_path / "points.npy", points)
    command = ("run", "--data", tmp_path / "points.npy", "--engine", "exact", "--out", tmp_path)
    done(*command, "--perturb", "lesion:tiles=0+1,at=30")
    with xr.open_dataset(tmp_path / "points.nc") as result:
        assert not result["h"].values[30:, :2].any()
        assert result["h"].values[:30, :2].any()
    words = refused(*command[:3], "--spiking", "--perturb", "freeze", "--out", tmp_path, notes=1)
    assert "a spiking circuit takes no perturbations" in words


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_takes_them_or_says_no(name):
    experiment = get_experiment(name)
    if experiment.perturbable:
        config = experiment.config("exact", {}, perturbations=[Freeze(at=3)])
        assert config.perturbations == (Freeze(at=3),)
        assert sweep.config_from(json.loads(json.dumps(config.as_dict()))) == config
        assert config.fingerprint() != experiment.config("exact", {}).fingerprint()
        circuit = config.circuit(config.parameters, SphereLift(center=(0.0,), radius=5.0))
        assert circuit.perturbations == (Freeze(at=3),)
    else:
        call_refused(
            lambda: experiment.config("exact", {}, perturbations=[Freeze(at=3)]),
            name,
            ParameterError,
        )


def test_a_sweep_may_be_perturbed(tmp_path):
    command = ("sweep", "two-moons", "--engine", "exact", "--repeats", 1, *MOONS)
    command = (*command, "--over", "mu=10,1000", "--out", tmp_path)
    done(*command, *DONE)
    with xr.open_dataset(tmp_path / "sweep-two-moons.nc") as result:
        config, found = (
            json.loads(result.attrs["config"]),
            result["circuit_strength"].isel(placement=0).values.ravel(),
        )
    assert [one["kind"] for one in config["perturbations"]] == ["lesion", "noise"]
    for mu, strength in zip((10, 1000), found, strict=True):
        chosen = get_experiment("two-moons").config(
            "exact",
            {**TINY["two-moons"], "mu": mu},
            perturbations=[Lesion(tiles=0.5, at=100), Noise(on="W", size=0.001)],
        )
        stream = make_stream(chosen.settings, 0, chosen.parameters)
        y = chosen.circuit(chosen.parameters, stream.lift).run(stream.points, stream.labels)["y"]
        assert strength == pytest.approx(float(np.abs(y[len(y) // 2 :]).mean()), abs=1e-12)
