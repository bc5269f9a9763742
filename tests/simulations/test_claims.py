"""Claims as lines, as tables, as the long form, and as files."""

from __future__ import annotations

import json
from dataclasses import replace

from simulations.experiments.claim import (
    Claim,
    load_claims,
    long_form,
    save_claims,
    short_table,
    tally,
)

HOLDS = Claim(
    "it works", "it will work", "mean above 0", "1 ± 0", "1, p = 0.1", True, "0 | 1", False, "moons"
)
FAILS = Claim("it flies", "it will fly", "height", "0 m", "0", False, experiment="moons")
OPEN = Claim("it sings", "a song", "pitch", "maybe", "?", None, experiment="arcs")
MADE = Claim("it is", "is", "being", "so", "so", True, constructed=True, experiment="arcs")


def test_verdicts_on_lines_and_counted():
    assert HOLDS.line() == "holds: it works: 1 ± 0; control: 0 | 1"
    assert FAILS.line() == "does not hold: it flies: 0 m"
    assert OPEN.line() == "not decided: it sings: maybe"
    assert MADE.line() == "holds (by construction): it is: so"
    # What is made to hold may yet fail.
    assert replace(MADE, holds=False).verdict == "does not hold"
    counts = "of 5 claims 3 hold, 1 do not hold, 1 are not decided"
    assert tally([HOLDS, FAILS, OPEN, MADE, HOLDS]) == counts


def test_the_short_table_has_one_line_each():
    assert short_table([HOLDS, FAILS, OPEN, MADE]).splitlines() == [
        "| experiment | claim | our figure | verdict |",
        "| --- | --- | --- | --- |",
        "| moons | it works | 1, p = 0.1 | holds |",
        "| moons | it flies | 0 | **does not hold** |",
        "| arcs | it sings | ? | **not decided** |",
        "| arcs | it is | so | holds (by construction) |",
    ]
    assert "a \\| b" in short_table([Claim("a | b", "", "", "", "", None)])


def test_the_long_form_says_everything():
    power = {"moons": {"it works": "0.97 with 20 repeats"}}
    lines = long_form([HOLDS, FAILS, OPEN], power).splitlines()
    assert lines[:10] == [
        *("## moons", "", "### it works", ""),
        *("- The paper: “it will work”", "- Decided by: mean above 0"),
        *("- Power: 0.97 with 20 repeats", "- Found: 1 ± 0", "- Control: 0 | 1"),
        "- Verdict: **holds**",
    ]
    assert lines[10:17] == [
        *("", "### it flies", "", "- The paper: “it will fly”", "- Decided by: height"),
        *("- Found: 0 m", "- Verdict: **does not hold**"),
    ]
    assert lines[17:21] == ["", "## arcs", "", "### it sings"]
    assert long_form([Claim("c", "p", "s", "f", "s", True)]).splitlines()[0] == "### c"


def test_claims_survive_as_files(tmp_path):
    claims = [HOLDS, FAILS, OPEN, MADE]
    json_path, markdown = save_claims(claims, tmp_path)
    assert (json_path, markdown) == (tmp_path / "claims.json", tmp_path / "claims.md")
    # One value a line, and letters as they are: what a change changes is seen.
    assert '\n  "figure": "1 ± 0",\n' in json_path.read_text(encoding="utf-8")
    plain = json.loads(json_path.read_text())
    assert [claim["holds"] for claim in plain] == [True, False, None, True]
    assert load_claims(json_path) == claims
    assert markdown.read_text(encoding="utf-8") == long_form(claims)
