"""Claims are checked once more on results that are there."""

from __future__ import annotations

from circuits.storage.files import FileError
from simulations import reproduction, sweep
from simulations.experiments import EXPERIMENTS, get_experiment
from simulations.experiments.claim import Claim, load_claims, save_claims
from tests.refusing import refused
from tests.simulations.small import TINY

NAME = "label-change"


def test_claims_again_are_those_of_the_run_and_others_stay(tmp_path, monkeypatch, capsys):
    """Two experiments in the table, one of them run again: its claims are new, the others stay."""
    names = (NAME, "linear-tiles")
    monkeypatch.setattr(reproduction, "EXPERIMENTS", {name: EXPERIMENTS[name] for name in names})
    refused(lambda: reproduction.main(tmp_path), f"{NAME}.nc", FileError)
    known = [
        Claim(f"old {name}", "", "s", "f", "f", True, experiment=name)
        for name in (*names, "another")
    ]
    save_claims(known, tmp_path)
    config = get_experiment(NAME).config("exact", TINY[NAME])
    _, claims = sweep.run_experiment(config, [0, 1], tmp_path)
    assert {claim.experiment for claim in claims} == {NAME}
    assert reproduction.claims_again(tmp_path) == [*claims, known[1]]
    capsys.readouterr()
    reproduction.main(tmp_path)
    assert load_claims(tmp_path / "claims.json") == [*claims, known[1]]
    assert str(tmp_path / "claims.md") in capsys.readouterr().out
