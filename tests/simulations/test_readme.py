"""Tables get into the documentation by command."""

from __future__ import annotations

import json

import pytest

from circuits.errors import InputError
from simulations import readme
from simulations.experiments.claim import Claim, save_claims
from simulations.readme import insert, update

PAGE = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n"


def test_what_stands_between_the_marks_is_replaced():
    once = insert(PAGE, "a", "| new |\n")
    assert once == "before\n<!-- a -->\n| new |\n<!-- /a -->\nafter\n"
    assert insert(once, "a", "| new |\n") == once
    with pytest.raises(InputError, match="no marks <!-- b -->"):
        insert(PAGE, "b", "x")


def test_all_files_are_changed_or_none(tmp_path):
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text(PAGE + PAGE.replace(" a", " b").replace("/a", "/b"))
    two.write_text(PAGE)
    with pytest.raises(InputError, match=r"two.md: the text has no marks <!-- c -->"):
        update([(one, "a", "new"), (two, "c", "new")])
    with pytest.raises(InputError, match=r"no file .*three.md"):
        update([(one, "a", "new"), (tmp_path / "three.md", "a", "new")])
    assert one.read_text().count("old") == 2
    update([(one, "a", "1"), (one, "b", "2"), (two, "a", "3")])
    assert "old" not in one.read_text() + two.read_text()
    assert one.read_text().index("1") < one.read_text().index("2")


def test_short_figures_go_to_the_front_page_and_long_ones_behind_it(tmp_path):
    claim = Claim("it works", "it will work", "1.000 ± 0.001, worst 0.9", "1.000", True, "moons")
    save_claims([claim], tmp_path)
    bench = {
        "sizes": {"4 x 1": {"us_per_step": {"fused": 1.0, "reference": 3.0}, "cold_build_s": 5.0}},
        "readouts": {"ratio": 1.5},
        "second_process": {"total": 0.3},
    }
    (tmp_path / "bench.json").write_text(json.dumps(bench))
    (tmp_path / "soak.md").write_text("| kills | 0 |")
    found = readme.measured(tmp_path, tmp_path, tmp_path)
    tables = {(path.name, mark): text for path, mark, text in found}
    assert set(tables) == {
        ("README.md", "claims"),
        ("results.md", "claims"),
        ("speed.md", "bench"),
        ("README.md", "soak"),
        ("faults.md", "soak"),
    }
    assert tables["README.md", "soak"] == tables["faults.md", "soak"] == "| kills | 0 |"
    assert tables["README.md", "claims"].splitlines()[-1] == "| moons | it works | 1.000 | yes |"
    assert "“it will work” | 1.000 ± 0.001, worst 0.9 | yes" in tables["results.md", "claims"]
    assert "4 x 1 reference           3.000      3.00          1.0" in tables["speed.md", "bench"]


def test_only_what_is_there_is_inserted(tmp_path):
    (tmp_path / "soak.md").write_text("| kills | 0 |")
    nowhere = tmp_path / "nowhere"
    found = readme.measured(nowhere, nowhere, tmp_path)
    assert {mark for _, mark, _ in found} == {"soak"}
    with pytest.raises(InputError, match="there are no results"):
        readme.measured(nowhere, nowhere, nowhere)
