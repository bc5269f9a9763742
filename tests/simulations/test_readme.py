"""Tables get into the documentation by command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from simulations import readme
from simulations.experiments.claim import Claim, load_claims, save_claims
from simulations.readme import insert, updated
from tests.refusing import refused

ROOT = Path(__file__).parents[2]

PAGE = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n"


def test_what_stands_between_the_marks_is_replaced():
    once = insert(PAGE, "a", "| new |\n")
    assert once == "before\n<!-- a -->\n| new |\n<!-- /a -->\nafter\n"
    assert insert(once, "a", "| new |\n") == once
    refused(lambda: insert(PAGE, "b", "x"), "<!-- b -->")


def test_a_file_or_a_mark_that_is_missing_is_named(tmp_path):
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text(PAGE + PAGE.replace(" a", " b").replace("/a", "/b"))
    two.write_text(PAGE)
    for path, mark in ((two, "c"), (tmp_path / "three.md", "a")):
        refused(lambda: updated([(one, "a", "new"), (path, mark, "new")]), f"{path}.*{mark}")  # noqa: B023
    texts = updated([(one, "a", "1"), (one, "b", "2"), (two, "a", "3")])
    assert one.read_text().count("old") == 2  # nothing is written yet
    assert "old" not in texts[one] + texts[two]
    assert texts[one].index("1") < texts[one].index("2")
    assert readme.differing(texts) == [one, two]
    two.write_text(texts[two])
    assert readme.differing(texts) == [one]


CLAIM = Claim("two labels do", "it will work", "t", "1 ± 0.001", "1.000", True, experiment="moons")


@pytest.fixture
def measured(tmp_path) -> Path:
    """What full runs left, each in its folder, taken over into one."""
    sources = {name: tmp_path / name.partition(".")[0] for name in readme.SOURCES}
    for folder in sources.values():
        folder.mkdir()
    save_claims([CLAIM], sources["claims.json"])
    bench = {
        "sizes": {"4 x 1": {"us_per_step": {"fused": 1.0, "reference": 3.0}, "cold_build_s": 5.0}},
        "readouts": {"ratio": 1.5},
        "second_process": {"total": 0.3},
    }
    (sources["bench.json"] / "bench.json").write_text(json.dumps(bench))
    (sources["soak.md"] / "soak.md").write_text("| kills | 0 |")
    found = {"ManifoldClassifier": [0.9, 1.0], "LabelSpreading": [0.8, 0.8]}
    stream = {"points": 100, "first": 1, "peak": 2, "accuracy": 0.5}
    known = json.dumps({"accuracy": {"iris": found}, "stream": stream})
    (sources["known_data.json"] / "known_data.json").write_text(known)
    beside = {"digits": {"5": {"circuit": [0.9, 0.8], "LabelSpreading": [0.9, 0.9]}}}
    (sources["peers.json"] / "peers.json").write_text(json.dumps(beside))
    power = {"repeats": 7, "seeds": "5000 to 5006", "draws": 50}
    power["claims"] = {"two labels do": {"verdict": "holds", "power": 0.96}}
    (sources["power.json"] / "power.json").write_text(json.dumps({"moons": power}))
    written = readme.take_over(sources, tmp_path / "measured")
    assert sorted(path.name for path in written) == sorted(readme.SOURCES)
    assert readme.take_over({"soak.md": tmp_path / "nowhere"}, tmp_path / "measured") == []
    return tmp_path / "measured"


def test_short_figures_go_to_the_front_page_and_long_ones_behind_it(measured):
    tables = {(path.name, mark): text for path, mark, text in readme.tables(measured)}
    assert set(tables) == {
        ("README.md", "claims"),
        ("claims.md", "verdicts"),
        ("claims.md", "claims"),
        ("speed.md", "bench"),
        ("faults.md", "soak"),
        ("learners.md", "known-data"),
        ("beyond-the-paper.md", "peers"),
    }
    assert "| 5 | 0.850 ± 0.071 | **0.900 ± 0.000** |" in tables["beyond-the-paper.md", "peers"]
    assert "| iris, 10 | 0.950 ± 0.071 | 0.800 ± 0.000 |" in tables["learners.md", "known-data"]
    assert tables["faults.md", "soak"] == "| kills | 0 |"
    front = tables["README.md", "claims"]
    assert "| two labels suffice for two moons | accuracy 1.000 | holds |" in front
    assert "| moons | two labels do | 1.000 | holds |" in tables["claims.md", "verdicts"]
    long = tables["claims.md", "claims"]
    assert "- The paper: “it will work”" in long
    assert (
        "- Power: 0.96: this share of 50 draws of 7 repeats from seeds 5000 to 5006 gives “holds”"
    ) in long
    assert "4 x 1 reference           3.000      3.00          1.0" in tables["speed.md", "bench"]


def test_the_front_page_has_every_claim_of_the_paper_that_does_not_hold():
    claims = load_claims(ROOT / readme.MEASURED / "claims.json")
    paper = {claim.claim: claim.holds for claim in claims if claim.paper}
    shown = [[name for name in paper if part in name] for part in readme.FRONT]
    assert [len(names) for names in shown] == [1] * len(readme.FRONT)
    assert {name for name, holds in paper.items() if not holds} < {name for [name] in shown}


def test_what_is_missing_or_damaged_is_named(measured):
    for name in readme.SOURCES:
        whole = (measured / name).read_text()
        if name.endswith("json"):
            (measured / name).write_text("[1]")
            refused(lambda: readme.tables(measured), name)
        (measured / name).unlink()
        refused(lambda: readme.tables(measured), f"{name}.*FileNotFoundError", most=500)
        (measured / name).write_text(whole)


def test_a_page_that_says_otherwise_is_found(monkeypatch, tmp_path):
    shutil.copytree(ROOT / readme.MEASURED, tmp_path / readme.MEASURED)
    for page in {path for path, _, _ in readme.tables(ROOT / readme.MEASURED)}:
        shutil.copy(ROOT / page, tmp_path / page)
    monkeypatch.chdir(tmp_path)
    readme.main(["--check"])  # the tables in README and docs are those of the kept results
    page = Path("README.md")
    page.write_text(page.read_text(encoding="utf-8").replace("0.9996", "0.9997"))
    refused(lambda: readme.main(["--check"]), "README.md")
    readme.main([])
    readme.main(["--check"])
    refused(lambda: readme.main(["--chek"]), "--chek$")
