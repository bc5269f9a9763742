"""A compiled program, taken from the build cache and started once per chunk.

Brian2 is needed to make a program, not to run one.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.base import CHUNK
from circuits.engines import cache
from circuits.engines.brian import import_brian2
from circuits.engines.compiler import compile_program
from circuits.engines.engine import Engine
from circuits.engines.scratch import scratch_folder
from circuits.errors import EngineError
from circuits.lift import FloatArray
from circuits.state import CircuitState, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from circuits.circuit import ManifoldCircuit


class BadBuildError(EngineError):
    """A build that was damaged or removed after it was loaded; it can be made again."""


class StandaloneEngine(Engine):
    """C++ standalone.

    As long as nobody has asked for the network, a program is known by the sizes and the model it
    was made for. Afterwards it is known by its sources, which are generated anew for every run:
    they say all there is to say of what the user has done.
    """

    def __init__(self, circuit: ManifoldCircuit) -> None:
        super().__init__(circuit)
        self._builds: dict[Any, cache.Build] = {}

    def prepare(self, record: tuple[str, ...], snapshots: bool) -> bool:
        """Compile the program for these options, unless it is there."""
        self._look_again()
        return self._build(record, snapshots)[1]

    def attempt(self) -> Any:
        """As for every engine; and what the network looks like is looked at anew."""
        self._look_again()
        return super().attempt()

    def _look_again(self) -> None:
        if self.has_network:
            self._builds.clear()

    def advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """One start of the program for the chunk."""
        start = self.values(state, task)
        build, _ = self._build(task.record, task.snapshots)
        # Brian2's seed() sets NumPy's generator, and so decides here as well.
        seed = self.circuit.seed_of(state)
        if seed is None:
            seed = int(np.random.randint(2**31)) if build.interface["random"] else 0
        try:
            return self._present(build, start, seed, state, task)
        except BadBuildError:
            self._builds.clear()
            build, _ = self._build(task.record, task.snapshots)
            return self._present(build, start, seed, state, task)

    def _present(
        self,
        build: cache.Build,
        start: dict[str, dict[str, Any]],
        seed: int,
        state: CircuitState,
        task: Task,
    ) -> dict[str, FloatArray]:
        """Give a program its values, run it, and take over what it gives back."""
        interface = build.interface
        values = {f"{group}.{name}": start[group][name] for group in start for name in start[group]}
        if self.has_network:
            # All there is goes on where it stopped, whoever made it.
            self.live.write(start)
            values = {
                name: np.array(variable.get_value())
                for name, variable in self._variables()
                if interface["variables"].get(name, {"given": False})["given"]
            }
        circuit, n_steps = self.circuit, self.circuit.n_steps
        with scratch_folder(small=not (self.has_network and self.live.added)) as folder:
            first = state.shown * n_steps + 1
            schedule = [first, len(task.x), n_steps, repr(circuit.dt_)]
            values |= {f"{name}.values": _padded(rows) for name, rows in task.streams.items()}
            spikes = self.live.spikes if self.has_network else {}
            given = _written(values, spikes, interface, folder)
            _launch(build, folder, [*map(str, schedule), str(seed), *given], task)

            def read(name: str) -> FloatArray:
                spec = interface["variables"][name]
                found = np.fromfile(folder / spec["file"], dtype=spec["type"])
                if np.ndim(values.get(name, 0)) and found.size != np.size(values[name]):
                    raise _incomplete(folder, f"{found.size} of {np.size(values[name])} values")
                return found

            final = {name: read(name) for name in [*circuit.parts.fields, *interface["extra"]]}
            recorded = {
                result: {
                    column: _events(folder / file, column)
                    if result.endswith("_spikes")
                    else _table(folder / file, len(task.x) * (n_steps if "trace" in result else 1))
                    for column, file in columns.items()
                }
                for result, columns in interface["results"].items()
            }
            if self.has_network:
                self.live.receive({name: read(name) for name, _ in self._variables()})
                self.live.spikes = {
                    path.stem: path.read_text(encoding="ascii") for path in folder.glob("*.spikes")
                }
        return circuit.wiring.collect(circuit, state, task, final, recorded)

    def _variables(self) -> Iterator[tuple[str, Any]]:
        """The array variables of all objects of the network."""
        return self.live.variables(self.live.network.sorted_objects)

    def _build(self, record: tuple[str, ...], snapshots: bool) -> tuple[cache.Build, bool]:
        """The program for what is recorded, and whether it had to be compiled."""
        variant = (record, snapshots)
        known = self._builds.get(variant)
        if known is not None and known.program.exists():
            return known, False
        circuit = self.circuit
        facts = circuit.wiring.facts(circuit) | {
            "code": _code_digest(circuit.wiring.sources),
            "brian2": _version("brian2"),
            "numpy": _version("numpy"),
            "sizes": [*circuit.sizes().values(), CHUNK],
            "record": record,
            "snapshots": snapshots,
        }
        title = circuit.wiring.title(circuit)
        title += f", records {' '.join(record)}" if record else ""
        title += ", snapshots" if snapshots else ""
        if self.has_network:
            facts["sources"] = self._sources_digest(record, snapshots)
            added = " ".join(item.name for item in self.live.added)
            title += f", with {added}" if added else ""

        def make(directory: Path) -> dict[str, Any]:
            interface = self._generate(directory, record, snapshots)
            compile_program(directory)
            return interface

        build, made = cache.get_build(facts, make, title)
        self._builds[variant] = build
        return build, made

    def _generate(
        self, directory: Path, record: tuple[str, ...], snapshots: bool
    ) -> dict[str, Any]:
        """Write the sources of the network's program; returns what its launcher needs to know."""
        import_brian2()
        from brian2.core.operations import NetworkOperation

        from circuits.engines.codegen import CircuitDevice, using
        from circuits.engines.live import LiveNetwork

        live = self.live if self.has_network else LiveNetwork(self)
        network = live.network
        for item in network.sorted_objects:
            if isinstance(item, NetworkOperation):
                raise EngineError(
                    f"{item.name!r} is a network_operation, Python code that a compiled circuit "
                    "cannot call: use engine='numpy' or 'cython', or write it as run_regularly"
                )
        device, wiring = CircuitDevice(), self.circuit.wiring
        with using(device), device.hosting(network):
            wiring.follow_readout(self.circuit, network, "y" in record)
            watching = wiring.monitors(network, record, snapshots)
            network.add(*watching.values())
            try:
                device.write_program(network, directory)
                interface = device.interface(watching)
            finally:
                network.remove(*watching.values())
                wiring.follow_readout(self.circuit, network, False)
        return interface | {"extra": live.extra()}

    def _sources_digest(self, record: tuple[str, ...], snapshots: bool) -> str:
        with scratch_folder(small=True) as folder:
            self._generate(folder, record, snapshots)
            digest = hashlib.sha256()
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()


@lru_cache
def _version(package: str) -> str:
    """Of a package that is installed; reading it takes as long as a hundred presentations."""
    return metadata.version(package)


@lru_cache
def _code_digest(sources: tuple[str, ...]) -> str:
    """A digest of the sources that shape programs and what is said of them."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for place in [*(here.parent / name for name in sources), here]:
        for path in sorted(place.rglob("*.*")) if place.is_dir() else [place]:
            if path.suffix in (".py", ".cpp"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _padded(stream: FloatArray) -> FloatArray:
    return np.pad(stream, ((0, CHUNK - len(stream)), (0, 0)))


def _written(
    values: dict[str, Any], spikes: dict[str, str], interface: dict[str, Any], folder: Path
) -> list[str]:
    """Initial values as ``group.variable=value`` or ``group.variable=file``; spikes as files."""
    arguments = []
    try:
        for name, value in values.items():
            if np.ndim(value) == 0:
                arguments.append(f"{name}={value!r}")
                continue
            dtype = interface["variables"].get(name, {"type": "float64"})["type"]
            path = folder / f"initial.{name}"
            np.ascontiguousarray(value, dtype=dtype).tofile(path)
            arguments.append(f"{name}={path}")
        for pathway, on_their_way in spikes.items():
            (folder / f"{pathway}.spikes").write_text(on_their_way, encoding="ascii")
    except OSError as error:
        raise EngineError(
            f"the circuit's values cannot be written ({error.strerror or error}): is the disk of "
            f"{folder} full?"
        ) from error
    return arguments


def _incomplete(folder: Path, what: str) -> EngineError:
    return EngineError(
        f"the simulation wrote incomplete results ({what}): is the disk of {folder} full?"
    )


def _launch(build: cache.Build, results: Path, arguments: list[str], task: Task) -> None:
    """Run a program to its end, passing on its progress; interrupted, it is stopped and gone."""
    errors = results / "errors.txt"
    owner = os.getpid()
    with errors.open("w") as stderr, _started(build, results, arguments, stderr) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                fraction = _fraction(line)
                if fraction is None:
                    raise _failure(
                        build,
                        f"the compiled circuit said {line.strip()[:200]!r} instead of how far it "
                        "is: code that is added to it must not write to the standard output",
                    )
                task.report(int(fraction * len(task.x)))
            process.wait()
        except BaseException:
            if os.getpid() == owner:  # a process forked meanwhile leaves its parent's program alone
                process.kill()
                process.wait()
            raise
    complaint = errors.read_text(encoding="utf-8", errors="replace").strip()
    if process.returncode == 0 and not complaint:
        return
    if process.returncode == -signal.SIGILL:
        raise _failure(
            build,
            f"the compiled circuit in {build.directory} came to an instruction that this processor "
            "does not have: use engine='numpy', or a compiler for this processor (CXX)",
        )
    raise _failure(
        build,
        f"the compiled circuit failed with exit code {process.returncode}: "
        f"{complaint or 'no message'}",
    )


def _failure(build: cache.Build, sentence: str) -> EngineError:
    """What a program that failed is reported as; the fault may be its build's."""
    return EngineError(sentence) if cache.is_intact(build) else BadBuildError(sentence)


def _started(
    build: cache.Build, results: Path, arguments: list[str], stderr: Any
) -> subprocess.Popen[str]:
    """A program that was started, or an error that says why it was not."""
    try:
        return subprocess.Popen(
            [str(build.program), "--results_dir", f"{results}/", *arguments],
            cwd=build.directory,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise _failure(
            build,
            f"the compiled circuit in {build.directory} cannot be started "
            f"({error.strerror or error}): point {cache.DIRECTORY_VARIABLE} at another folder, or "
            "use engine='numpy'",
        ) from None


def _fraction(line: str) -> float | None:
    """How much of a run is done by what a program says, or None if it says something else."""
    try:
        fraction = float(line)
    except ValueError:
        return None
    return fraction if 0 <= fraction <= 1.001 else None  # the sum of steps may round up


def _events(path: Path, column: str) -> FloatArray:
    """What a spike monitor recorded: indices of cells, or times."""
    return np.fromfile(path, dtype=np.int32 if column == "i" else np.float64)


def _table(path: Path, rows: int) -> FloatArray:
    """A monitor's values as (time, element)."""
    values = np.fromfile(path)
    if rows == 0 or values.size == 0 or values.size % rows:
        raise _incomplete(path.parent, f"{values.size} values for {rows} rows")
    return values.reshape(rows, -1)
