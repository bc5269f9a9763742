"""A compiled program, taken from the build cache and started once per chunk.

Brian2 is needed to make a program, not to run one.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from circuits.base import CHUNK
from circuits.engines import cache
from circuits.engines.engine import Engine
from circuits.engines.scratch import scratch_folder
from circuits.engines.streams import FINAL, collect
from circuits.errors import EngineError
from circuits.lift import FloatArray
from circuits.state import CircuitState, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from circuits.circuit import ManifoldCircuit


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
        manifest = build.manifest
        values = {f"{group}.{name}": start[group][name] for group in start for name in start[group]}
        if self.has_network:
            # All there is goes on where it stopped, whoever made it.
            self.live.write(start)
            values = {
                name: np.array(variable.get_value())
                for name, variable in self._variables()
                if manifest["variables"].get(name, {"given": False})["given"]
            }
        p = self.circuit.parameters
        with scratch_folder(small=not (self.has_network and self.live.added)) as folder:
            first = state.shown * p.steps_per_presentation + 1
            schedule = [first, len(task.x), p.steps_per_presentation, repr(p.dt_)]
            # Brian2's seed() sets NumPy's generator, and so decides here as well.
            seed = int(np.random.randint(2**31)) if manifest["random"] else 0
            values["input_stream.values"] = _padded(task.x)
            values["label_stream.values"] = _padded(task.z)
            arguments = [*map(str, schedule), str(seed), *_written(values, manifest, folder)]
            if self.has_network:
                for path, spikes in self.live.spikes.items():
                    (folder / f"{path}.spikes").write_text(spikes, encoding="ascii")
            _launch(build, folder, arguments, task)

            def read(name: str) -> FloatArray:
                spec = manifest["variables"][name]
                return np.fromfile(folder / spec["file"], dtype=spec["type"])

            names = [f"{group}.{name}" for name, group in FINAL.items()] + manifest["extra"]
            final = {name: read(name) for name in names}
            recorded = {
                result: {
                    column: _table(folder / file, rows)
                    for column, file in columns.items()
                    for rows in [
                        len(task.x) * (p.steps_per_presentation if "trace" in result else 1)
                    ]
                }
                for result, columns in manifest["results"].items()
            }
            if self.has_network:
                self.live.receive({name: read(name) for name, _ in self._variables()})
                self.live.spikes = {
                    path.stem: path.read_text(encoding="ascii") for path in folder.glob("*.spikes")
                }
        return collect(self.circuit, state, task, final, recorded)

    def _variables(self) -> Iterator[tuple[str, Any]]:
        """The array variables of all objects of the network."""
        return self.live.variables(self.live.network.sorted_objects)

    def _build(self, record: tuple[str, ...], snapshots: bool) -> tuple[cache.Build, bool]:
        """The program for what is recorded, and whether it had to be compiled."""
        variant = (record, snapshots)
        if variant in self._builds and self._builds[variant].program.exists():
            return self._builds[variant], False
        p, circuit = self.circuit.parameters, self.circuit
        n_inputs = circuit.lift.n_inputs
        model = circuit.model.as_dict() | {"delay": circuit.model.delay_steps(p)}
        facts = {
            "code": _code_digest(),
            "brian2": metadata.version("brian2"),
            "numpy": metadata.version("numpy"),
            "sizes": [p.n_tiles, p.n_interneurons, p.n_readouts, n_inputs, CHUNK],
            "model": model | {"readout": circuit.model.answer(p).brian2},
            "record": record,
            "snapshots": snapshots,
        }
        title = (
            f"{p.n_tiles} tiles, {p.n_interneurons} interneurons, {p.n_readouts} readouts, "
            f"{n_inputs} inputs, {p.readout}"
        )
        title += f", records {' '.join(record)}" if record else ""
        title += ", snapshots" if snapshots else ""
        if circuit.model.changes():
            title += f", own {' '.join(circuit.model.changes())}"
        if self.has_network:
            facts["sources"] = self._sources_digest(record, snapshots)
            added = " ".join(item.name for item in self.live.added)
            title += f", with {added}" if added else ""

        def make(directory: Path) -> dict[str, Any]:
            from circuits.engines.codegen import compile_program

            manifest = self._generate(directory, record, snapshots)
            compile_program(directory, cache.require_compiler(), list(cache.FLAGS))
            return manifest

        build, made = cache.get_build(facts, make, title)
        self._builds[variant] = build
        return build, made

    def _generate(
        self, directory: Path, record: tuple[str, ...], snapshots: bool
    ) -> dict[str, Any]:
        """Write the sources of the network's program; returns its manifest."""
        from brian2.core.operations import NetworkOperation

        from circuits.engines.codegen import CircuitDevice, using
        from circuits.engines.live import LiveNetwork
        from circuits.network import follow_readout, monitors

        live = self.live if self.has_network else LiveNetwork(self)
        network = live.network
        for item in network.sorted_objects:
            if isinstance(item, NetworkOperation):
                raise EngineError(
                    f"{item.name!r} is a network_operation, Python code that a compiled circuit "
                    "cannot call: use engine='numpy' or 'cython', or write it as run_regularly"
                )
        device = CircuitDevice()
        with using(device), device.hosting(network):
            follow_readout(network, "y" in record)
            watching = monitors(network, record, snapshots)
            network.add(*watching.values())
            try:
                device.write_program(network, directory)
                manifest = device.manifest(watching)
            finally:
                network.remove(*watching.values())
                follow_readout(network, False)
        return manifest | {"extra": live.extra()}

    def _sources_digest(self, record: tuple[str, ...], snapshots: bool) -> str:
        with tempfile.TemporaryDirectory(prefix="manifold-circuit-") as folder:
            self._generate(Path(folder), record, snapshots)
            digest = hashlib.sha256()
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()


@lru_cache
def _code_digest() -> str:
    """A digest of the sources that shape programs and what is said of them."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    sources = [here.parent / "network.py", here.parent / "rules.py", *sorted(here.glob("*.py"))]
    for path in [*sources, *sorted((here / "templates").iterdir())]:
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _padded(stream: FloatArray) -> FloatArray:
    return np.pad(stream, ((0, CHUNK - len(stream)), (0, 0)))


def _written(values: dict[str, Any], manifest: dict[str, Any], folder: Path) -> list[str]:
    """Initial values as ``group.variable=value`` or ``group.variable=file``."""
    arguments = []
    for name, value in values.items():
        if np.ndim(value) == 0:
            arguments.append(f"{name}={value!r}")
            continue
        dtype = manifest["variables"].get(name, {"type": "float64"})["type"]
        path = folder / f"initial.{name}"
        np.ascontiguousarray(value, dtype=dtype).tofile(path)
        arguments.append(f"{name}={path}")
    return arguments


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
