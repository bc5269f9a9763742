"""The build cache: compile once, survive damage, share between processes, stay small."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from circuits import ManifoldCircuit, ReferenceCircuit, SphereLift
from circuits.engines import cache, compiler, standalone
from circuits.errors import EngineError
from tests.circuits.damages import DAMAGES, FACTS, HARMLESS, get_script, make_script
from tests.conftest import moons, small_circuit
from tests.refusing import refused

LIFT = SphereLift(center=(0.5, 0.25), radius=3.0)
pytestmark = pytest.mark.filterwarnings("ignore::circuits.errors.UnsettledWarning")


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Path:
    """An empty cache; what goes into it need not be fast, and is compiled in half the time."""
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(tmp_path / "builds"))
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-O0"))
    return tmp_path / "builds"


@pytest.fixture(scope="module")
def one_build(tmp_path_factory) -> Path:
    """A cache with the build of `run_once`."""
    folder = tmp_path_factory.mktemp("one") / "builds"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.DIRECTORY_VARIABLE, str(folder))
        patch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-O0"))
        assert run_once()
    return folder


@pytest.fixture
def filled_cache(own_cache, one_build, monkeypatch) -> Path:
    """A cache of the test's own with the build of `run_once`.

    Building it again copies the program instead of compiling the same sources.
    """
    shutil.copytree(one_build, own_cache)
    program = folder_of_the_build(one_build) / "main"
    compiled = standalone.compile_program

    def compile_or_copy(folder: Path) -> None:
        if folder.name.startswith(program.parent.name):  # the same key
            shutil.copy(program, folder / "main")
        else:
            compiled(folder)

    monkeypatch.setattr(standalone, "compile_program", compile_or_copy)
    return own_cache


def run_once(**changes):
    parameters = small_circuit(tile_radius=1.0, **changes)
    points, _, labels = moons(20, after=5)
    circuit = ManifoldCircuit(parameters, LIFT, "cpp_standalone")
    made = circuit.prepare()
    run = circuit.run(points, labels)
    expected = ReferenceCircuit(parameters, LIFT).run(points, labels)
    assert np.abs(run["h"].values - expected["h"].values).max() <= 1e-10
    return made


def test_threads_at_once_make_one_build(own_cache):
    def make(folder: Path) -> dict[str, Any]:
        time.sleep(0.1)  # all the others are waiting by then
        return make_script(folder)

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(cache.get_build, FACTS, make, "a tiny program") for _ in range(4)]
    builds, made = zip(*(job.result() for job in jobs), strict=True)
    assert sorted(made) == [False] * 3 + [True]
    assert len({build.directory for build in builds}) == 1


def test_one_build_serves_what_users_sweep(filled_cache):
    for changes in (
        {"mu": 3.0, "learning_rate": 0.1, "initial_weight": 0.2},
        {"tau_h": "30 ms", "tau_u": "40 ms", "tau_V": "3 ms", "dt": "0.5 ms"},
        {"steps_per_presentation": 77, "recruit_below": 0.3},
    ):
        assert not run_once(**changes), changes
    (only,) = cache.entries()
    assert "6 tiles" in only.title


@pytest.mark.parametrize("changes", [{"gain": (50.0, 60.0)}, {"readout_rate": (0.5, 0.6)}])
def test_values_of_an_addition_share_a_build(changes):
    """Whether there is one shapes the program; its value does not."""
    ((name, values),) = changes.items()
    given = [{name: value} for value in values] + [{}]
    circuits = [ManifoldCircuit(small_circuit(**one), LIFT, "numpy") for one in given]
    one, other, without = (circuit.wiring.facts(circuit) for circuit in circuits)
    assert one == other != without


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_build_is_made_again(own_cache, damage, capsys):
    home = get_script()[0].directory
    DAMAGES[damage](home)
    capsys.readouterr()
    build, made = get_script()
    assert made == (damage not in HARMLESS)
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "compiling" in line] == said[:made]
    assert build.directory == home
    assert get_script() == (build, False)
    assert not list(own_cache.glob("*.new-*"))
    assert cache.clear() == 1
    assert not home.exists()


def folder_of_the_build(root: Path) -> Path:
    (home,) = (path for path in root.iterdir() if path.is_dir())
    return home


@pytest.mark.parametrize("fate", ["gone", "illegal instruction", "arrays"])
def test_a_build_that_stops_working_is_made_again(filled_cache, monkeypatch, fate):
    """Between looking for a build and starting it; its folder is given as a relative path."""
    monkeypatch.chdir(filled_cache.parent)
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, filled_cache.name)
    home = folder_of_the_build(filled_cache)
    load, broken = cache._load, []
    fates = {
        "gone": lambda: shutil.rmtree(home),
        "arrays": lambda: shutil.rmtree(home / "static_arrays"),
        "illegal instruction": lambda: (home / "main").write_text("#!/bin/sh\nkill -ILL $$\n"),
    }

    def load_and_break(folder: Path) -> cache.Build | None:
        build = load(folder)
        if build is not None and not broken:
            broken.append(build)
            fates[fate]()
        return build

    monkeypatch.setattr(cache, "_load", load_and_break)
    assert not run_once()  # found, and made again when it does not run
    assert broken
    DAMAGES["array damaged"](home)
    assert [run_once(), run_once()] == [True, False]


def test_a_program_that_does_not_work_is_reported(own_cache, monkeypatch):
    for content, words in (
        (b"\0", "Exec format error"),
        (b"#!/bin/sh\necho -1\nexec sleep 1000\n", "said '-1'"),
        (b"#!/bin/sh\nprintf 'nan\\377\\n'\nexec sleep 1000\n", "said 'nan"),
    ):

        def compile_program(folder: Path, content: bytes = content) -> None:
            (folder / "main").write_bytes(content)
            (folder / "main").chmod(0o755)

        monkeypatch.setattr(standalone, "compile_program", compile_program)
        refused(run_once, words, EngineError, most=400)
        cache.clear()


def test_only_builds_are_listed_cleared_and_evicted(own_cache, monkeypatch):
    home = get_script()[0].directory
    users = [
        own_cache / "results" / "manifest.json",
        own_cache / "0123456789abcdef01234567" / "mine.txt",  # a name like a key's
        own_cache / "notes.txt",
    ]
    for path in users:
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"title": "mine", "digests": {}}')
    (entry,) = cache.entries()
    assert (entry.key, entry.title) == (home.name, "a tiny program")

    def make(number: int) -> Path:
        return cache.get_build({"another": number}, make_script, "a tiny program")[0].directory

    def age(*builds: Path) -> None:
        for hours, build in enumerate(builds, 1):
            os.utime(build / "manifest.json", (time.time() - 3600 * hours,) * 2)

    # Two builds have room: the third evicts the one that was used longest ago.
    monkeypatch.setenv(cache.LIMIT_VARIABLE, str(int(2.5 * entry.size)))
    first = make(0)
    age(first, home)
    second = make(1)
    assert [entry.key for entry in cache.entries()] == [second.name, first.name]
    # None has room, but those of the last minute stay.
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "1")
    age(first, second)
    assert make(0) == first
    third = make(2)
    assert {entry.key for entry in cache.entries()} == {first.name, third.name}
    (third / "manifest.json").write_text("{")
    assert {entry.title for entry in cache.entries()} == {"damaged", "a tiny program"}
    assert [cache.clear(), cache.clear()] == [2, 0]
    assert cache.entries() == []
    assert all(path.exists() for path in users)


def test_what_killed_builders_left_is_removed(own_cache):
    home = get_script()[0].directory
    for left in ("build", "clear"):
        begun = own_cache / f"{home.name}.new-abc"
        begun.mkdir()
        (begun / "main.cc").write_text("int main(")
        if left == "build":
            (home / "main").unlink()
            assert get_script()[1]
        else:
            assert cache.clear() == 1
        assert not begun.exists()


def test_clearing_waits_for_a_build_in_the_making(filled_cache):
    from filelock import FileLock

    (entry,) = cache.entries()
    workshop = filled_cache / f"{entry.key}.new-abc"
    workshop.mkdir()
    cleared = []
    with FileLock(filled_cache / f"{entry.key}.lock"):
        thread = threading.Thread(target=lambda: cleared.append(cache.clear()))
        thread.start()
        thread.join(timeout=0.3)
        assert thread.is_alive()
        assert workshop.exists()
    thread.join()
    assert cleared == [1]
    assert cache.entries() == []


def test_a_cache_that_is_a_file_and_a_limit_that_is_no_number(own_cache, monkeypatch):
    own_cache.write_text("")
    refused(get_script, f"{own_cache} .*MANIFOLD_CIRCUIT", EngineError, most=400)
    assert cache.entries() == []
    assert cache.clear() == 0
    assert own_cache.read_text() == ""
    own_cache.unlink()
    for text in ("-1", "\u0663", "9" * 5000):
        monkeypatch.setenv(cache.LIMIT_VARIABLE, text)
        refused(get_script, "_LIMIT .*got '", EngineError, most=200)


def test_where_the_cache_is(monkeypatch, tmp_path):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for chosen, meant in {
        "builds": tmp_path / "here" / "builds",
        "~/builds": tmp_path / "builds",
        "": tmp_path / ".cache" / "manifold-circuit" / "builds",
    }.items():
        monkeypatch.setenv(cache.DIRECTORY_VARIABLE, chosen)
        assert cache.cache_directory() == meant
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, "~nobody-of-that-name/builds")
    refused(cache.cache_directory, "~nobody-of-that-name", EngineError)


def test_folders_of_others_are_refused(own_cache, monkeypatch):
    get_script()
    assert own_cache.stat().st_mode & 0o777 == 0o700
    for mode in (0o777, 0o720, 0o702):
        own_cache.chmod(mode)
        for use in (get_script, cache.entries, cache.clear):
            refused(use, f"chmod go-w {own_cache}", EngineError, most=400)
    own_cache.chmod(0o755)
    assert not get_script()[1]
    someone = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: someone)
    for use in (get_script, cache.entries, cache.clear):
        refused(use, f"{own_cache} belongs to another user", EngineError, most=400)


def fake_compiler(path: Path, content: str) -> str:
    path.write_bytes(content.encode("latin-1"))
    path.chmod(0o755)
    return str(path)


def compile_in_the_cache():
    return cache.get_build(FACTS, compiler.compile_program, "a program")


def test_compilers_that_fail(own_cache, tmp_path, monkeypatch):
    failing = tmp_path / "compiler"
    for content, message in (
        ("#!/bin/sh\necho 'fatal error: out of ideas' >&2; exit 1", "fatal error: out of ideas$"),
        ("#!/bin/sh\necho 'error: \xff\xfe' >&2; exit 1", ": error: \ufffd\ufffd$"),
        ("#!/bin/sh\nexit 1", "no message$"),
        ("\0", "compiler' cannot be started"),
    ):
        monkeypatch.setenv("CXX", fake_compiler(failing, content))
        compiler._works.cache_clear()
        refused(compile_in_the_cache, message, EngineError, most=400)
        assert not [path for path in own_cache.iterdir() if path.is_dir()]
        assert not compiler.compiler_works()
    monkeypatch.setenv("CXX", fake_compiler(tmp_path / "other", "#!/bin/sh\necho '\xff\xfe 1.0'"))
    assert compiler.toolchain()["version"] == "\ufffd\ufffd 1.0"


def test_the_compiler_is_a_command(own_cache, tmp_path, monkeypatch):
    real = shutil.which("g++") or shutil.which("c++")
    assert real is not None
    monkeypatch.setenv("CXX", f"{real} -m64 '-DTEXT=two words'")
    assert compiler.compiler() == (real, "-m64", "-DTEXT=two words")
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "main.cc").write_text("#define QUOTED(x) #x\nint main() { return !QUOTED(TEXT)[8]; }")
    compiler.compile_program(folder)
    assert subprocess.run([folder / "main"]).returncode == 0  # the text has nine letters
    assert [get_script()[1], get_script()[1]] == [True, False]
    monkeypatch.setenv("CXX", real)
    assert get_script()[1]  # other options, another build
    (tmp_path / "my tools").mkdir()
    blank = fake_compiler(tmp_path / "my tools" / "cc", f'#!/bin/sh\nexec {real} "$@"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "'./my tools/cc' -O0")
    assert compiler.compiler() == (blank, "-O0")
    monkeypatch.setenv("CXX", "g++ 'unclosed")
    for ask in (compiler.compiler, compiler.compiler_works, run_once):
        refused(ask, "CXX .*unclosed", EngineError)
    monkeypatch.setenv("CXX", "  ")
    assert compiler.compiler() is not None
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    refused(run_once, "'no-such-compiler -m64'", EngineError)


MOUNTED = """
mount -t tmpfs -o mode=700 none "$1" || exit 77
{before}
mount -o remount,{options} "$1" || exit 77
$PYTHON -c "$2"
"""
"""Runs a program with a file system of its own, in a namespace that ends with it."""
FILL = '$PYTHON -c "from tests.circuits.damages import get_script; get_script()"'


@pytest.mark.parametrize(
    ("options", "before", "made", "reason"),
    [
        ("noexec", "", True, "it does not allow programs"),
        ("ro", "", True, "Read-only file system"),
        pytest.param("ro", FILL, False, "", marks=pytest.mark.slow),
    ],
)
def test_a_cache_that_takes_no_programs(tmp_path, options, before, made, reason):
    root, temporary = tmp_path / "builds", tmp_path / "tmp"
    for folder in (root, temporary):
        folder.mkdir()
    code = """
from tests.circuits.damages import get_script
build, made = get_script()
print(made, build.directory.parent)
print(get_script()[1])
"""
    variables = {"PYTHON": sys.executable, "TMPDIR": str(temporary)}
    variables[cache.DIRECTORY_VARIABLE] = str(root)
    text = MOUNTED.format(before=before, options=options)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", text, "sh", str(root), code],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    if done.returncode in (77, 1) and "Traceback" not in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    place = temporary if made else root
    assert first.startswith(f"{made} {place}")
    assert second == "False"
    said = [line for line in done.stderr.splitlines() if f"{root} cannot be used ({reason}" in line]
    assert len(said) == made  # once, though asked twice
    assert list(temporary.iterdir()) == []


def test_a_folder_that_refuses_builds_and_a_full_disk(own_cache, monkeypatch, capsys):
    def refuse(*arguments: Any, **options: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    def fill_the_disk(folder: Path) -> dict[str, Any]:
        (folder / "main.cc").write_text("int main(")
        raise OSError(errno.ENOSPC, "No space left")

    words = f"{own_cache} .*No space left"
    refused(lambda: cache.get_build(FACTS, fill_the_disk, ""), words, EngineError, most=400)
    assert not [path for path in own_cache.iterdir() if path.is_dir()]
    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(cache, "process_folder", lambda: own_cache.parent)
    refused(get_script, f"{own_cache.parent} .*Permission denied", EngineError, most=400)
    assert f"{own_cache} cannot be used (Permission denied)" in capsys.readouterr().err


LONG = """
import numpy as np
from circuits import CircuitParameters, ManifoldCircuit, SphereLift
parameters = CircuitParameters(n_tiles=6, n_interneurons=2, steps_per_presentation=200_000)
circuit = ManifoldCircuit(parameters, SphereLift((0, 0), 3), "cpp_standalone")
points = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
try:
    circuit.run(points, progress=lambda done, total: print(done, flush=True))
except KeyboardInterrupt:
    print("interrupted", circuit._state is None, flush=True)
"""


def test_an_interrupt_stops_the_program_and_leaves_nothing_behind():
    process = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert int(process.stdout.readline()) >= 0  # it is running, and says how far it is
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    folder = Path(f"/proc/{children[0]}/cmdline").read_text().split("\0")[2]
    assert Path(folder).exists()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert output.splitlines()[-1] == "interrupted True"
    assert not Path(f"/proc/{children[0]}").exists()
    assert not Path(folder).exists()


def test_memory_does_not_grow_with_the_stream():
    circuit = ManifoldCircuit(small_circuit(tile_radius=1.0), LIFT, "cpp_standalone")
    rng = np.random.default_rng(0)
    chunks = (rng.uniform(0, 0.5, (400, 2)) for _ in range(20))
    peaks = []
    tracemalloc.start()
    for run in circuit.run_stream(chunks):
        assert len(run["y"]) == 400
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
    tracemalloc.stop()
    # A chunk's results take 400 (6 + 2 + 1 + ...) numbers, about 60 kB; ten would take 600 kB.
    assert max(peaks[10:]) - max(peaks[2:10]) < 30_000
