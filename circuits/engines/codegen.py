"""From the Brian2 network to C++: a standalone device whose programs can be run many times.

Brian2's own standalone device is one object per process and compiles values, duration and time
step into the program. A `CircuitDevice` belongs to one circuit, and its program takes all of that
when it starts. Its templates (in ``templates/``) replace Brian2's where knowing the connectivity
pays.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from brian2 import BrianObject, Network, StateMonitor, prefs, second
from brian2.core.variables import ArrayVariable, DynamicArrayVariable
from brian2.devices.cpp_standalone.codeobject import CPPStandaloneCodeObject
from brian2.devices.cpp_standalone.device import CPPStandaloneDevice, CPPWriter
from brian2.devices.device import Device

from circuits.errors import EngineError

# `brian2.devices.device` as an attribute is the current device, not the module of that name.
brian_devices: Any = import_module("brian2.devices.device")

# main() takes these before the initial values; DURATION is what Network::run is called with.
READ_SCHEDULE = """
if (args.size() < 4)
{
    std::cerr << "run this program through manifold-circuit" << std::endl;
    return 2;
}
const int64_t first_step = std::stoll(args[0]), n_presentations = std::stoll(args[1]);
const int64_t n_steps = std::stoll(args[2]);
const double step = std::stod(args[3]);
args.erase(args.begin(), args.begin() + 4);
"""
APPLY_SCHEDULE = """
_array_step_clock_dt[0] = step;
_array_presentation_clock_dt[0] = n_steps*step;
{network}.t = first_step*step;
"""
DURATION = "(double)(n_presentations*n_steps)*step"
REPORT = "std::cout << completed << std::endl;"
REPORT_PERIOD = 0.2


_TURN = RLock()


class CircuitCodeObject(CPPStandaloneCodeObject):  # type: ignore[misc]
    """A code object made from this package's templates where there is one, else from Brian2's."""

    templater = CPPStandaloneCodeObject.templater.derive("circuits.engines")


class CircuitDevice(CPPStandaloneDevice):  # type: ignore[misc]
    """A standalone device of one circuit's own."""

    def code_object_class(self, codeobj_class: Any = None, fallback_pref: Any = None) -> Any:
        """The class of code objects; preferences for runtime targets do not apply."""
        return codeobj_class or CircuitCodeObject

    def adopt(self, objects: list[BrianObject]) -> None:
        """Take over variables that were made while another device was active, with their values.

        This is what lets a user add a plain ``StateMonitor`` to a standalone circuit.
        """
        self._forget_the_dead()
        for owner in objects:
            for variable in owner.variables.values():
                if not isinstance(variable, ArrayVariable) or variable in self.arrays:
                    continue
                value = np.array(variable.get_value())
                variable.device = self
                self.add_array(variable)
                if not isinstance(variable, DynamicArrayVariable):  # those start empty
                    self.init_with_zeros(variable, variable.dtype)
                    if value.size:
                        self.fill_with_array(variable, value)

    def _forget_the_dead(self) -> None:
        """Drop the variables of objects that a user has removed and let go."""
        for variable in list(self.arrays):
            try:
                variable.owner.name  # noqa: B018 - a dead weak reference raises
            except ReferenceError:
                names = {self.arrays.pop(variable)}
                for arrays in (self.dynamic_arrays, self.dynamic_arrays_2d):
                    names.add(arrays.pop(variable, ""))
                self.array_cache.pop(variable, None)
                for items in (self.zero_arrays, self.arange_arrays):
                    items[:] = [item for item in items if item[0] is not variable]
                self.main_queue[:] = [item for item in self.main_queue if item[1][0] not in names]

    @contextmanager
    def rollback(self) -> Iterator[None]:
        """Forget afterwards what was made inside: the same network can be generated again, with
        other monitors, and owes nothing to those that are gone."""
        names = ["main_queue", "static_arrays", "arrays", "dynamic_arrays", "dynamic_arrays_2d"]
        names += ["zero_arrays", "arange_arrays", "array_cache", "code_objects", "networks"]
        names += ["timed_arrays", "clocks", "synapses"]
        saved = {name: copy(getattr(self, name)) for name in names}
        try:
            yield
        finally:
            for name, value in saved.items():
                setattr(self, name, value)
            self.run_args_applied: bool = False

    def write_program(self, network: Network, directory: Path) -> None:
        """Generate the program of a network: one translation unit, ``main.cc``."""
        for name in ("code_objects", "static_arrays"):
            (directory / name).mkdir()
        self.code_lines["before_start"] = [READ_SCHEDULE]
        self.code_lines["before_network_run"] = [APPLY_SCHEDULE.format(network=network.name)]
        network.run(1 * second, report=REPORT, report_period=REPORT_PERIOD * second, namespace={})
        _, lines = next(args for func, args in reversed(self.main_queue) if func == "run_network")
        call = next(i for i, line in enumerate(lines) if f"{network.name}.run(" in line)
        lines[call] = lines[call].replace("run(1.0,", f"run({DURATION},")
        writer = self.writer = CPPWriter(str(directory))
        self.write_static_arrays(str(directory))
        self.generate_objects_source(
            writer,
            self.arange_arrays,
            self.synapses,
            self.static_array_specs,
            self.networks,
            self.timed_arrays,
        )
        self.generate_main_source(writer)
        self.generate_codeobj_source(writer)
        self.generate_network_source(writer, "unix")
        self.generate_synapses_classes_source(writer)
        self.generate_run_source(writer)
        self.copy_source_files(writer, str(directory))
        (directory / "main.cc").write_text(self._single_unit(directory), encoding="utf-8")

    def _single_unit(self, directory: Path) -> str:
        """All sources as one: headers are read and templates instantiated once.

        Each code object brings its helper functions in an unnamed namespace; in one unit those
        need names of their own.
        """
        for path in sorted((directory / "code_objects").glob("*.cpp")):
            support = f"support_{path.stem}"
            text = path.read_text(encoding="utf-8")
            text = text.replace("namespace {", f"namespace {support} {{", 1)
            opening = re.compile(r"(void _(?:before_|after_)?run_\w+\(\)\s*\{)")
            text, found = opening.subn(rf"\1\n    using namespace {support};", text)
            if not found:
                raise EngineError(f"this version of Brian2 writes {path.stem} in an unknown form")
            path.write_text(text, encoding="utf-8")
        return "".join(f'#include "{name}"\n' for name in sorted(self.writer.source_files))

    def manifest(self, monitors: dict[str, StateMonitor]) -> dict[str, Any]:
        """What a launcher needs to know of the program: types and files of its variables."""
        variables = {
            f"{variable.owner.name}.{variable.name}": {
                "type": np.dtype(variable.dtype).name,
                "file": self.get_array_filename(variable),
            }
            for variable in self.arrays
            if hasattr(variable.owner, "name")
        }
        return {
            "variables": variables,
            "results": {
                name: {
                    column: self.get_array_filename(monitor.variables[column])
                    for column in monitor.record_variables
                }
                for name, monitor in monitors.items()
            },
        }


@contextmanager
def using(device: Device | None = None, target: str | None = None) -> Iterator[None]:
    """Make a device (or a runtime target) Brian2's current one, and put the user's back after.

    Brian2 has one current device per process, so circuits in several threads take turns.
    """
    with _TURN:
        saved, saved_target = brian_devices.active_device, prefs["codegen.target"]
        brian_devices.active_device = device or brian_devices.runtime_device
        try:
            if device is not None and device.defaultclock is None:
                device.activate(build_on_run=False)
            if target is not None:
                prefs["codegen.target"] = target
            yield
        finally:
            brian_devices.active_device = saved
            prefs["codegen.target"] = saved_target


def compile_program(directory: Path, compiler: str, flags: list[str]) -> None:
    """Compile ``main.cc`` in ``directory`` to ``main``."""
    command = [compiler, *flags, "-I.", "main.cc", "-o", "main"]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        errors = [line for line in result.stderr.splitlines() if "error" in line.lower()]
        reason = (errors or result.stderr.splitlines() or ["no message"])[0]
        raise EngineError(f"{compiler} could not compile the circuit: {reason}")
