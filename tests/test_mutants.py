"""The tester of tests: it finds what tests notice, and lists what they do not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.faults import faults

ROOT = Path(__file__).parents[1]

TOY = '''
"""A toy."""
from __future__ import annotations

LIMIT = 10


def double(x: int = 1) -> int:
    """Twice x."""
    if x > LIMIT:
        raise ValueError(f"{x} is more than {LIMIT + 0}")
    return 2 * x


def half(x):
    return x / 2


def untested(x):
    return x + 1
'''

TESTS = """
import pytest
import toy

def test_double():
    assert toy.double(3) == 6
    assert toy.double(10) == 20
    assert toy.double() == 2

def test_refused():
    with pytest.raises(ValueError, match="11 is more"):
        toy.double(11)

@pytest.fixture(scope="module")
def halves():
    return [toy.half(4)]

def test_of_how_many_there_are(halves):
    assert len(halves) == 1

def test_of_what_the_fixture_of_another_test_made(halves):
    assert halves == [2]

def test_of_processes_that_compile_cpp_standalone():
    assert False
"""

TRY = """
import sys
from pathlib import Path
from tests.mutants.running import Module, tried

root, folder = map(Path, sys.argv[1:])
module = Module.read(root, "toy.py", ["test_toy.py"])
for fault, survived in tried(module, module.faults, 1, folder):
    print(f"{'survived' if survived else 'found'}: {fault.text}: {fault.change}")
"""


def changes(source: str) -> list[str]:
    return [fault.change for fault in faults(ast.parse(source), source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", ["b < c -> b <= c", "b < c -> not b < c"]),
        ("a = b - 1", ["b - 1 -> b + 1", "1 -> 2", "1 -> 0"]),
        ("a = b and c", ["b and c -> b or c", "b and c -> c", "b and c -> b"]),
        ("a = not b", ["not b -> b"]),
        ("a = -b", ["-b -> b"]),
        ("a = True", ["True -> False"]),
        ("a = 0.5 * b", ["0.5 * b -> 0.5 / b", "0.5 -> 0.55"]),
        ("a = min(b)[1:]", ["1: -> :", "1 -> 2", "1 -> 0", "min -> max"]),
        ("a = b if c else d", ["b if c else d -> b if not c else d"]),
        ("a += b", ["a += b -> a -= b", "a += b -> pass"]),
        ("a.b = c", ["a.b = c -> pass"]),
        ("f(a['k'])", ["f(a['k']) -> pass", "k -> k_"]),
        (
            "a = 1 + 1",
            ["1 + 1 -> 1 - 1", "1 -> 2", "1 -> 0", "1 -> 2 (place 2)", "1 -> 0 (place 2)"],
        ),
        ("A = 'x = y + z*x'", ["x = y + z*x -> x = y - z*x", "x = y + z*x -> x = y + z/x"]),
        ("raise E(f'{1 + 1}')", ["raise E(f'{1 + 1}') -> pass"]),
        ("def f(a: int = 1) -> 'x':\n    'text'\n    return a", ["1 -> 2", "1 -> 0"]),
    ],
)
def test_faults_of_a_line(source, expected):
    found = changes(source)
    if source.startswith("def"):
        expected = [*expected, "return a -> return None"]
    assert sorted(found) == sorted(expected)


def test_what_only_people_or_tools_read_is_left_out():
    source = (
        "if TYPE_CHECKING:\n    a = 1\nimport b\nassert 1 < 2\nx: int\ny = as_count(x, 'name')\n"
    )
    assert changes(source) == []


def test_faults_in_tested_code_are_found_and_others_survive(tmp_path):
    root, folder = tmp_path / "root", tmp_path / "folder"
    root.mkdir()
    folder.mkdir()
    (root / "toy.py").write_text(TOY)
    (root / "test_toy.py").write_text(TESTS)
    (root / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-B", "-c", TRY, str(root), str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("survived")] == [
        "survived: return x + 1: return x + 1 -> return None",
        "survived: return x + 1: x + 1 -> x - 1",
        "survived: return x + 1: 1 -> 2",
        "survived: return x + 1: 1 -> 0",
    ]
    for found in (
        "if x > LIMIT:: x > LIMIT -> x >= LIMIT",
        "return 2 * x: 2 -> 3",
        "return x / 2: 2 -> 3",
        "LIMIT = 10: 10 -> 11",
        "def double(x: int = 1) -> int:: 1 -> 2",
    ):
        assert f"found: {found}" in lines
    assert (root / "toy.py").read_text() == TOY
    (root / "test_toy.py").write_text(
        TESTS + "\n\ndef test_red():\n    assert toy.double(1) == 3\n"
    )
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "without any fault in toy.py, a test fails: test_toy.py::test_red" in result.stderr
    assert result.stdout == ""
