"""Claims are checked once more on results that are there."""

from __future__ import annotations

import json

import pytest

from circuits.files import FileError
from simulations import reproduction, sweep
from simulations.experiments import EXPERIMENTS, get_experiment
from simulations.experiments.claim import Claim, save_claims
from tests.simulations.small import TINY

NAME = "label-change"


def test_claims_again_are_those_of_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reproduction, "EXPERIMENTS", {NAME: EXPERIMENTS[NAME]})
    with pytest.raises(FileError, match=f"{NAME}.nc"):
        reproduction.main(tmp_path)
    config = get_experiment(NAME).config("exact", TINY[NAME])
    _, claims = sweep.run_experiment(config, [0, 1], tmp_path)
    assert reproduction.claims_again(tmp_path) == claims
    assert {claim.experiment for claim in claims} == {NAME}
    capsys.readouterr()
    reproduction.main(tmp_path)
    kept = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    assert [one["claim"] for one in kept] == [claim.claim for claim in claims]
    assert f"wrote {tmp_path / 'claims.md'}" in capsys.readouterr().out


def test_claims_without_results_are_kept(tmp_path, monkeypatch):
    """Two experiments in the table, one of them run again: its claims are new, the others stay."""
    names = (NAME, "linear-tiles")
    monkeypatch.setattr(reproduction, "EXPERIMENTS", {name: EXPERIMENTS[name] for name in names})
    known = [
        Claim(f"old {name}", "", "s", "f", "f", True, experiment=name)
        for name in (*names, "another")
    ]
    save_claims(known, tmp_path)
    config = get_experiment(NAME).config("exact", TINY[NAME])
    _, claims = sweep.run_experiment(config, [0, 1], tmp_path)
    assert reproduction.claims_again(tmp_path) == [*claims, known[1]]
