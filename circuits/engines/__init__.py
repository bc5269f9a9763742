"""The engines that compute a Brian2 circuit: NumPy and Cython at run time, C++ standalone."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from abc import ABC, abstractmethod
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.base import CHUNK, Circuit, CircuitState, Task
from circuits.engines import cache
from circuits.engines.streams import collect, initial_values
from circuits.errors import EngineError
from circuits.lift import FloatArray

if TYPE_CHECKING:
    from brian2 import BrianObject, Network

    from circuits.engines.codegen import CircuitDevice

FINAL = {
    "h": "excitatory",
    "u": "inhibitory",
    "V": "lateral",
    "W": "feedforward",
    "b": "excitatory",
    "w": "classifier",
}
"""State variables and the objects of the network they belong to."""

# A program writes some hundred small files, which takes 1 ms in memory and 20 to 100 ms on disk.
# Chunks are bounded (`circuits.base`), so that many programs at once fit into this much room.
MEMORY = Path("/dev/shm")
MEMORY_ROOM = 2**30


class Engine(ABC):
    """Computes presentations on a Brian2 network."""

    def __init__(self, circuit: Circuit) -> None:
        # Weak, because the circuit owns its engine: without a cycle both go when it goes.
        self._circuit = weakref.ref(circuit)
        self._network: Network | None = None
        self._own: set[int] = set()

    @property
    def circuit(self) -> Circuit:
        """The circuit whose engine this is."""
        circuit = self._circuit()
        assert circuit is not None
        return circuit

    @property
    def network(self) -> Network:
        """The Brian2 network; made when it is first asked for."""
        if self._network is None:
            self._network = self._make_network()
            self._own = {id(item) for item in self._network.objects}
        return self._network

    @abstractmethod
    def advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """See `Circuit._advance`."""

    @abstractmethod
    def _make_network(self) -> Network: ...

    def _added(self) -> list[BrianObject]:
        """What the user has added to the network."""
        if self._network is None:
            return []
        return [item for item in self._network.objects if id(item) not in self._own]


class RuntimeEngine(Engine):
    """Brian2's own loop in Python, with code objects in NumPy or Cython."""

    def __init__(self, circuit: Circuit, target: str) -> None:
        super().__init__(circuit)
        self.target = target

    def _make_network(self) -> Network:
        from circuits.engines.codegen import using
        from circuits.network import build_network

        with using(target=self.target):
            return build_network(self.circuit, CHUNK)

    def advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """One ``network.run`` for the chunk."""
        from brian2 import second

        from circuits.engines.codegen import using
        from circuits.network import follow_readout, monitors, stream_arrays

        network, p = self.network, self.circuit.parameters
        with using(target=self.target):
            # The step after those that were shown; a run that was interrupted stopped elsewhere.
            network.t_ = (state.shown * p.steps_per_presentation + 1) * p.dt_
            follow_readout(network, "y" in task.record)
            for group, values in initial_values(self.circuit, state, task).items():
                for name, value in values.items():
                    network[group].variables[name].set_value(value)
            streams = stream_arrays(task.x, task.z, CHUNK)
            for group in ("inputs", "readout"):
                network[group].namespace.update(streams)
            watching = monitors(network, task.record, task.snapshots)
            network.add(*watching.values())
            steps = len(task.x) * p.steps_per_presentation

            def report(_elapsed: Any, completed: float, _start: Any, _duration: Any) -> None:
                task.report(int(completed * len(task.x)))

            try:
                # Diverging rates overflow; the caller finds and names them.
                with np.errstate(over="ignore", invalid="ignore"):
                    network.run(
                        steps * p.dt_ * second,
                        report=report,
                        report_period=0.2 * second,
                        namespace={},
                    )
            finally:
                network.remove(*watching.values())
                follow_readout(network, False)
            recorded = {
                result: {
                    # (time, element), as a view: StateMonitor itself would return it transposed.
                    column: np.array(monitor.variables[column].get_value())
                    for column in monitor.record_variables
                }
                for result, monitor in watching.items()
            }
            final = {
                name: np.array(network[group].variables[name].get_value())
                for name, group in FINAL.items()
            }
        return collect(self.circuit, state, task, final, recorded)


class StandaloneEngine(Engine):
    """A compiled program, taken from the build cache and started once per chunk.

    Brian2 is needed to make a program, not to run one.
    """

    def __init__(self, circuit: Circuit) -> None:
        super().__init__(circuit)
        self._device: CircuitDevice | None = None
        self._builds: dict[Any, cache.Build] = {}
        self._last: _Folder | None = None
        self._history: dict[tuple[int, str], Any] = {}
        self.built = False
        """Whether the last run had to compile."""

    def _make_network(self) -> Network:
        from circuits.engines.codegen import CircuitDevice, using
        from circuits.network import build_network

        self._device = CircuitDevice()
        with using(self._device):
            network = build_network(self.circuit, CHUNK)
        self._show_results()
        return network

    def advance(self, state: CircuitState, task: Task) -> dict[str, FloatArray]:
        """One start of the program for the chunk."""
        build = self._build(task)
        p = self.circuit.parameters
        folder = _Folder(small=not self._added())
        try:
            results = folder.path
            first = state.shown * p.steps_per_presentation + 1
            schedule = [first, len(task.x), p.steps_per_presentation, repr(p.dt_)]
            values = self._initial_arguments(build, state, task, results)
            _launch(build, results, [*map(str, schedule), *values], task)
            types = build.manifest["variables"]

            def read(name: str) -> FloatArray:
                spec = types[name]
                return np.fromfile(results / spec["file"], dtype=spec["type"])

            final = {name: read(f"{group}.{name}") for name, group in FINAL.items()}
            recorded = {
                result: {
                    column: _table(results / file, rows)
                    for column, file in columns.items()
                    for rows in [
                        len(task.x) * (p.steps_per_presentation if "trace" in result else 1)
                    ]
                }
                for result, columns in build.manifest["results"].items()
            }
        except BaseException:
            folder.remove()
            raise
        if self._last is not None:
            self._last.remove()
        self._last = folder
        self._show_results()
        return collect(self.circuit, state, task, final, recorded)

    def _build(self, task: Task) -> cache.Build:
        """The program for a task: shape, recorded variables and whatever the user has added."""
        p, n_inputs = self.circuit.parameters, self.circuit.lift.n_inputs
        added = self._added()
        variant = (task.record, task.snapshots, tuple(id(item) for item in added))
        if variant in self._builds and self._builds[variant].program.exists():
            self.built = False
            return self._builds[variant]
        facts = {
            "code": _code_digest(),
            "brian2": metadata.version("brian2"),
            "numpy": metadata.version("numpy"),
            "sizes": [p.n_tiles, p.n_interneurons, p.n_readouts, n_inputs, CHUNK],
            "readout": p.readout,
            "record": task.record,
            "snapshots": task.snapshots,
        }
        title = (
            f"{p.n_tiles} tiles, {p.n_interneurons} interneurons, {p.n_readouts} readouts, "
            f"{n_inputs} inputs, {p.readout}"
        )
        title += f", records {' '.join(task.record)}" if task.record else ""
        title += ", snapshots" if task.snapshots else ""
        if added:
            facts["added"] = self._added_digest(task, added)
            title += f", with {' '.join(item.name for item in added)}"
        build, self.built = cache.get_build(facts, lambda to: self._write(to, task), title)
        self._builds[variant] = build
        return build

    def _write(self, directory: Path, task: Task, compile_it: bool = True) -> dict[str, Any]:
        """Generate (and compile) the program for a task; returns its manifest."""
        from circuits.engines.codegen import CircuitDevice, compile_program, using
        from circuits.network import build_network, follow_readout, monitors

        if self._added():
            network, device = self.network, self._device
        else:
            device = CircuitDevice()
            with using(device):
                network = build_network(self.circuit, CHUNK)
        assert device is not None
        with using(device):
            device.adopt(self._added())
        with using(device), device.rollback():
            follow_readout(network, "y" in task.record)
            watching = monitors(network, task.record, task.snapshots)
            network.add(*watching.values())
            try:
                device.write_program(network, directory)
                manifest = device.manifest(watching)
            finally:
                network.remove(*watching.values())
        if compile_it:
            compile_program(directory, cache.require_compiler(), list(cache.FLAGS))
        return manifest

    def _added_digest(self, task: Task, added: list[BrianObject]) -> str:
        """A digest of the generated sources, which say all there is to say of added objects."""
        with tempfile.TemporaryDirectory(prefix="manifold-circuit-") as folder:
            self._write(Path(folder), task, compile_it=False)
            digest = hashlib.sha256()
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()

    def _initial_arguments(
        self, build: cache.Build, state: CircuitState, task: Task, folder: Path
    ) -> list[str]:
        """Initial values as ``group.variable=value`` or ``group.variable=file``."""
        arguments = []
        types = build.manifest["variables"]

        def give(name: str, value: Any, dtype: Any) -> None:
            if np.ndim(value) == 0:
                arguments.append(f"{name}={value!r}")
                return
            path = folder / f"initial.{name}"
            np.ascontiguousarray(value, dtype=dtype).tofile(path)
            arguments.append(f"{name}={path}")

        for group, values in initial_values(self.circuit, state, task).items():
            for name, value in values.items():
                give(f"{group}.{name}", value, types[f"{group}.{name}"]["type"])
        for name, stream in (("input_stream", task.x), ("label_stream", task.z)):
            give(f"{name}.values", np.pad(stream, ((0, CHUNK - len(stream)), (0, 0))), float)
        if self._last is not None:
            # What the user has added goes on where it stopped, too.
            for item in self._added():
                for name, variable in item.variables.items():
                    full = f"{item.name}.{name}"
                    if not variable.array or variable.read_only or variable.dynamic:
                        continue
                    path = self._last.path / types.get(full, {"file": ""})["file"]
                    if path.is_file():  # not if it was added after the last run
                        give(full, np.fromfile(path, types[full]["type"]), types[full]["type"])
        return arguments

    def _show_results(self) -> None:
        """Let the Brian2 objects show the values of the last run."""
        if self._device is None or self._last is None:
            return
        device, folder = self._device, self._last.path
        device.results_dir = f"{folder}/"
        device.has_been_run = True
        for variable in device.arrays:
            if (folder / device.get_array_filename(variable)).exists():
                device.array_cache[variable] = None
        for item in self._added():
            self._append_history(item, folder)

    def _append_history(self, item: BrianObject, folder: Path) -> None:
        """Join what a user's monitor recorded in this launch to what it recorded before."""
        from brian2.core.variables import ArrayVariable, DynamicArrayVariable

        assert self._device is not None
        length = 0
        for name, variable in item.variables.items():
            if not isinstance(variable, ArrayVariable) or variable.owner.name != item.name:
                continue
            file = folder / self._device.get_array_filename(variable)
            key = (id(item), name)
            if isinstance(variable, DynamicArrayVariable):
                new = np.fromfile(file, variable.dtype)
                if variable.ndim == 2:
                    new = new.reshape(-1, variable.size[1])
                new = np.concatenate([self._history[key], new]) if key in self._history else new
                variable.size = new.shape if variable.ndim == 2 else len(new)
                length = len(new)
            elif name == "count":  # spikes per cell
                new = np.fromfile(file, variable.dtype) + self._history.get(key, 0)
            else:
                continue
            self._history[key] = self._device.array_cache[variable] = new
        if length and "N" in item.variables:
            self._device.array_cache[item.variables["N"]] = np.array([length])


class _Folder:
    """A temporary folder that goes with the object, without a complaint that nobody closed it:
    it holds the values that the Brian2 objects show between runs."""

    def __init__(self, small: bool) -> None:
        parent = MEMORY if small and _has_room(MEMORY) else Path(tempfile.gettempdir())
        _sweep(parent)
        prefix = f"manifold-circuit-{os.getpid()}-"
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@lru_cache
def _sweep(parent: Path) -> None:
    """Remove, once per process, what processes that were killed have left behind."""
    for folder in parent.glob("manifold-circuit-*-*"):
        process = folder.name.split("-")[2]
        if process.isdigit() and not Path(f"/proc/{process}").exists() and Path("/proc").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _has_room(folder: Path) -> bool:
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > MEMORY_ROOM
    except OSError:
        return False


@lru_cache
def _code_digest() -> str:
    """A digest of the sources that shape generated code."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in [
        here.parent / "network.py",
        here / "codegen.py",
        *sorted((here / "templates").iterdir()),
    ]:
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _launch(build: cache.Build, results: Path, arguments: list[str], task: Task) -> None:
    """Run a program to its end, passing on its progress; interrupted, it is stopped and gone."""
    errors = results / "errors.txt"
    command = [str(build.program), "--results_dir", f"{results}/", *arguments]
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            command, cwd=build.directory, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                task.report(int(float(line) * len(task.x)))
            process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
    complaint = errors.read_text().strip()
    if process.returncode != 0 or complaint:
        raise EngineError(
            f"the compiled circuit failed with exit code {process.returncode}: "
            f"{complaint or 'no message'}"
        )


def _table(path: Path, rows: int) -> FloatArray:
    """A monitor's values as (time, element)."""
    values = np.fromfile(path)
    if rows == 0 or values.size == 0 or values.size % rows:
        raise EngineError(
            f"the simulation wrote incomplete results ({values.size} values for {rows} rows): is "
            f"the disk of {path.parent} full?"
        )
    return values.reshape(rows, -1)


def make_engine(name: str, circuit: Circuit) -> Engine:
    """The engine of a name, or an error that lists the names."""
    if name == "cpp_standalone":
        cache.require_compiler()
        return StandaloneEngine(circuit)
    if name == "numpy":
        return RuntimeEngine(circuit, "numpy")
    if name == "cython":
        if not cython_works():
            raise EngineError(
                "the engine 'cython' needs Cython and a C compiler, and they do not work here: "
                "use engine='cpp_standalone' or engine='numpy'"
            )
        return RuntimeEngine(circuit, "cython")
    raise EngineError(f"there is no engine {name!r}: use {', '.join(ENGINES)}")


ENGINES = ("auto", "cpp_standalone", "cython", "numpy")


def cython_works() -> bool:
    """Whether Cython is there and can compile."""
    try:
        import Cython  # noqa: F401
    except ImportError:
        return False
    return cache.compiler_works()


def choose_engine() -> str:
    """What "auto" means here: standalone if a compiler works, else NumPy; says which."""
    chosen = "cpp_standalone" if cache.compiler_works() else "numpy"
    print(f"manifold-circuit: engine {chosen}", file=sys.stderr)
    return chosen
