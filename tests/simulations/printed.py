"""What claims say, held against what the documentation prints of full runs."""

from __future__ import annotations

import re
from pathlib import Path

import xarray as xr

from simulations.experiments import get_experiment
from simulations.experiments.claim import Claim, load_claims
from simulations.readme import MEASURED

NUMBER = re.compile(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b|\bnan\b")


def kept(name: str) -> list[Claim]:
    """The claims of an experiment as docs/claims.md prints them."""
    claims = load_claims(Path(__file__).parents[2] / MEASURED / "claims.json")
    return [claim for claim in claims if claim.experiment == name]


def words(text: str) -> str:
    """A text without its numbers and verdicts; what it lists of several values stands once."""
    text = re.sub(r"does not hold|not decided|holds", "?", text)
    text = NUMBER.sub("#", re.sub(r"p ([<=] \S*\d|unknown)", "p", text))
    text = re.sub(r"(#[^,;/]*)((, |; |/)\1)+", r"\1", text)
    return re.sub(r"(#[^;)]*\))(, \1)+", r"\1", text)  # and several with what they belong to


def assert_printed(
    name: str, merged: xr.Dataset, grids: bool = False, figures: bool = True
) -> None:
    """That claims on a result (of at least two repeats) are worded as they are printed.

    How they are decided has no other numbers either, unless it names ``grids``, which are smaller
    in tests. ``figures`` leaves out what was found, where it is worded by the engine.
    """
    for claim, own in zip(get_experiment(name).claims(merged), kept(name), strict=True):
        assert (claim.claim, claim.paper) == (own.claim, own.paper)
        decided = (claim.statistic, own.statistic)
        assert len({words(text) if grids else text for text in decided}) == 1, decided
        if figures:
            assert words(claim.figure) == words(own.figure)
            assert words(claim.control) == words(own.control)
