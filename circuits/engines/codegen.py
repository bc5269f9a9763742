"""From the Brian2 network to C++: a standalone device whose programs can be run many times.

Brian2's own standalone device is one object per process and compiles values, duration and time
step into the program. A `CircuitDevice` makes one program of runtime objects, which takes all of
that when it starts. Its templates (in ``templates/``) replace Brian2's where knowing the
connectivity pays.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from brian2 import BrianObjectException, Network, PopulationRateMonitor, StateMonitor, prefs, second
from brian2.codegen.codeobject import create_runner_codeobj
from brian2.codegen.runtime.cython_rt.extension_manager import cython_extension_manager
from brian2.codegen.translation import get_identifiers_recursively
from brian2.core.functions import Function
from brian2.core.variables import ArrayVariable, DynamicArrayVariable
from brian2.devices.cpp_standalone.codeobject import CPPStandaloneCodeObject
from brian2.devices.cpp_standalone.device import CPPStandaloneDevice, CPPWriter
from brian2.devices.device import Device
from brian2.monitors.spikemonitor import EventMonitor
from brian2.synapses.synapses import StateUpdater, SummedVariableUpdater, SynapticPathway

from circuits.engines.cache import say_once
from circuits.errors import EngineError

# `brian2.devices.device` as an attribute is the current device, not the module of that name.
brian_devices: Any = import_module("brian2.devices.device")

# main() takes these before the initial values; DURATION is what Network::run is called with.
READ_SCHEDULE = """
if (args.size() < 5)
{
    std::cerr << "run this program through manifold-circuit" << std::endl;
    return 2;
}
const int64_t first_step = std::stoll(args[0]), n_presentations = std::stoll(args[1]);
const int64_t n_steps = std::stoll(args[2]);
const double step = std::stod(args[3]);
const unsigned long random_seed = std::stoul(args[4]);
args.erase(args.begin(), args.begin() + 5);
"""
APPLY_SCHEDULE = """
_array_step_clock_dt[0] = step;
_array_presentation_clock_dt[0] = n_steps*step;
_array_loading_clock_dt[0] = n_steps*step;
loading_clock.epsilon = -1.5*step; // ends so much earlier: see network.cpp
{network}.t = first_step*step;
for (size_t i = 0; i < _random_generators.size(); i++)
    _random_generators[i].seed(random_seed + i);
"""
DURATION = "(double)(n_presentations*n_steps)*step"
REPORT = "std::cout << completed << std::endl;"
REPORT_PERIOD = 0.2

# What runs once per launch, mostly reading and writing of files, is most of the code; optimising it
# would be two thirds of the time it takes to compile.
COLD_SOURCES = ("main.cpp", "objects.cpp", "run.cpp")
COLD = """#pragma GCC push_options
#pragma GCC optimize ("O0")
#include "{name}"
#pragma GCC pop_options
"""

RANDOM = re.compile(r"\b_(rand|randn|poisson|binomial\w*)\(")
"""Functions in generated code that draw random numbers."""

CARRIED = ("lastspike", "not_refractory", "lastupdate", "_lastindex")
"""What goes on from one launch to the next although users cannot set it."""

MONITORS = (StateMonitor, EventMonitor, PopulationRateMonitor)

_TURN = RLock()


@dataclass(frozen=True)
class Passes:
    """Sums over all-to-all synapses, and the step of the synapses right after them.

    At every step the circuit goes three times over V: two sums, and the step of V itself. To Brian2
    these are three objects with a loop each. Where nothing happens between them, and none of them
    needs another's result, one loop gives the same numbers and reads V once.
    """

    sums: tuple[Any, ...]
    update: Any

    @property
    def replaced(self) -> list[Any]:
        """The code objects of the separate passes, in order."""
        return [item.codeobj for item in (*self.sums, self.update)]

    def fused(self) -> Any:
        """One code object that does it all: what is summed, then the step, synapse by synapse."""
        group = self.update.group
        summed = [
            {
                "name": f"_sum_{item.target_varname}",
                "target": item.target_var,
                "start": item.template_kwds["_target_start"],
                "of_row": item.template_kwds["_index_var"].name == "_synaptic_post",
            }
            for item in self.sums
        ]
        lines = [
            f"{each['name']} = {item.expression}"
            for each, item in zip(summed, self.sums, strict=True)
        ]
        return create_runner_codeobj(
            group=group,
            code="\n".join([*lines, self.update.abstract_code]),
            template_name="synaptic_step",
            run_namespace={},
            name=f"{group.name}_step_codeobject*",
            check_units=False,  # they were, one by one
            needed_variables=[item.target_varname for item in self.sums],
            template_kwds={"sums": summed},
            codeobj_class=self.update.codeobj_class,
        )


def find_passes(network: Network) -> list[Passes]:
    """What can be fused in a network whose code objects have been made."""
    acting, found = acting_objects(network), []
    for place, item in enumerate(acting):
        if not (isinstance(item, StateUpdater) and hasattr(item.group, "all_to_all")):
            continue
        first = place
        while first and _belong_together(acting[first - 1], item):
            first -= 1
        passes = Passes(tuple(acting[first:place]), item)
        if passes.sums and _are_independent(passes):
            found.append(passes)
    return found


def _belong_together(before: Any, update: Any) -> bool:
    return (
        isinstance(before, SummedVariableUpdater)
        and before.group.id == update.group.id
        and before.clock is update.clock
    )


def _are_independent(passes: Passes) -> bool:
    """Whether doing all for one synapse after the other is the same as one pass after the other."""
    variables = passes.update.group.variables
    targets = [item.target_var for item in passes.sums]
    code = [*(str(item.expression) for item in passes.sums), passes.update.abstract_code]
    read = [
        variables[name]
        for name in get_identifiers_recursively(code, variables)
        if name in variables
    ]
    used = [value for item in passes.replaced for value in item.variables.values()]
    return (
        # A sum is complete only after the last synapse.
        len({id(target) for target in targets}) == len(targets)
        and not any(target is value for target in targets for value in read)
        # Random numbers come in the order of the synapses.
        and all(value.stateless for value in used if isinstance(value, Function))
    )


class CircuitCodeObject(CPPStandaloneCodeObject):  # type: ignore[misc]
    """A code object made from this package's templates where there is one, else from Brian2's."""

    templater = CPPStandaloneCodeObject.templater.derive("circuits.engines")


class CircuitDevice(CPPStandaloneDevice):  # type: ignore[misc]
    """A standalone device that makes one program."""

    def code_object_class(self, codeobj_class: Any = None, fallback_pref: Any = None) -> Any:
        """The class of code objects; preferences for runtime targets do not apply."""
        return codeobj_class or CircuitCodeObject

    def code_object(self, owner: Any, name: str, *arguments: Any, **options: Any) -> Any:
        """A code object whose name depends on this program alone: Brian2 would number it among all
        that are alive, and the same network would give other sources every time."""
        if name.endswith("*"):
            stem = name.removesuffix("*")
            numbered = (f"{stem}_{i}" for i in itertools.count(1))
            free = (
                one for one in itertools.chain([stem], numbered) if one not in self.code_objects
            )
            name = next(free)
        return super().code_object(owner, name, *arguments, **options)

    def init_with_arange(self, var: ArrayVariable, start: int, dtype: Any) -> None:
        """Allocate an array once: Brian2 fills it with zeros before, and loses that memory."""
        self.zero_arrays[:] = [
            (other, name) for other, name in self.zero_arrays if other is not var
        ]
        super().init_with_arange(var, start, dtype)

    @contextmanager
    def hosting(self, network: Network) -> Iterator[None]:
        """Take over a network of runtime objects for as long as its program is generated.

        What shapes the network (sizes, who is connected to whom, delays) becomes part of the
        program; all other values are zero in it and given to it when it starts.
        """
        moved: list[tuple[ArrayVariable, bool, Any]] = []
        time, objects = network.t_, network.sorted_objects
        paths = [item for item in objects if isinstance(item, SynapticPathway)]
        # Delays shape the queues, which are made before values are given.
        delays = {id(path._delays) for path in paths}
        owners = [*objects, *{id(item.clock): item.clock for item in objects}.values()]
        try:
            for path in paths:
                path._pushspikes_codeobj = None  # made once, for another device or program
            for owner in owners:
                for variable in getattr(owner, "variables", {}).values():
                    if isinstance(variable, ArrayVariable) and variable not in self.arrays:
                        moved.append((variable, variable.read_only, variable.size))
                        self._host(variable, id(variable) in delays)
            network.t_ = 0.0
            yield
        finally:
            network.t_ = time
            for variable, read_only, size in moved:
                variable.device, variable.read_only = runtime_device(), read_only
                variable.size = size
            for path in paths:
                path._pushspikes_codeobj = None

    def _host(self, variable: ArrayVariable, is_delay: bool) -> None:
        value = np.array(variable.get_value())
        variable.device = self
        self.add_array(variable)
        recorded = isinstance(variable.owner, MONITORS) and variable.name != "_indices"
        if isinstance(variable, DynamicArrayVariable) and recorded:
            # Starts empty, and has nothing in the sources that depends on what it recorded so far.
            variable.size = (0, variable.size[1]) if variable.ndim == 2 else 0
            return
        self.init_with_zeros(variable, variable.dtype)
        given = not variable.read_only or variable.name in CARRIED
        structural = is_delay or not (given or recorded)
        if structural and value.size and variable.name != "_spikespace":
            self.fill_with_array(variable, value)
        else:
            self.array_cache[variable] = value
        if variable.name in CARRIED:
            variable.read_only = False

    def write_program(self, network: Network, directory: Path) -> None:
        """Generate the program of a network: one translation unit, ``main.cc``."""
        for name in ("code_objects", "static_arrays"):
            (directory / name).mkdir()
        self.code_lines["before_start"] = [READ_SCHEDULE]
        self.code_lines["before_network_run"] = [APPLY_SCHEDULE.format(network=network.name)]
        for path in pathways(network):
            queue = f'({path}.queue[0][0], results_dir + "{path}.spikes");'
            self.code_lines["before_network_run"].append(f"load_spikes{queue}")
            self.code_lines["after_network_run"].append(f"save_spikes{queue}")
        with driving(network):
            network.run(
                1 * second, report=REPORT, report_period=REPORT_PERIOD * second, namespace={}
            )
        streamed = self._shape_run(network)
        writer = self.writer = CPPWriter(str(directory))
        self.write_static_arrays(str(directory))
        with self._without(streamed):
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

    def _shape_run(self, network: Network) -> list[ArrayVariable]:
        """Adapt what main() does with the network; returns what is written as it comes."""
        # Where the clocks stand is said when the program starts; here it would come in any order.
        hands = {
            self.arrays[clock.variables[of]] for clock in self.clocks for of in ("timestep", "t")
        }
        self.main_queue[:] = [
            (func, args)
            for func, args in self.main_queue
            if not (func == "set_by_single_value" and args[0] in hands)
        ]
        _, lines = next(args for func, args in reversed(self.main_queue) if func == "run_network")
        call = next(i for i, line in enumerate(lines) if f"{network.name}.run(" in line)
        lines[call] = lines[call].replace("run(1.0,", f"run({DURATION},")
        streamed = recorded_columns(network)
        lines[call:call] = [f"_run_{item.codeobj.name}();" for item in loading_objects(network)]
        lines[call:call] = [
            f'{column}.open(results_dir + "{self.get_array_filename(variable)}");'
            for column, variable in streamed.items()
        ]
        lines += [f"{column}.close();" for column in streamed]
        for passes in find_passes(network):
            self._fuse(passes, lines)
        return list(streamed.values())

    @contextmanager
    def _without(self, streamed: Iterable[ArrayVariable]) -> Iterator[None]:
        """Leave out the arrays that are written as they come, and held nowhere."""
        gone = {id(variable) for variable in streamed}
        names = ("arrays", "dynamic_arrays_2d")
        whole = {name: getattr(self, name) for name in names}
        try:
            for name, arrays in whole.items():
                setattr(self, name, {v: text for v, text in arrays.items() if id(v) not in gone})
            yield
        finally:
            self.arrays, self.dynamic_arrays_2d = whole.values()

    def _fuse(self, passes: Passes, lines: list[str]) -> None:
        """Call one function instead of those of several passes."""
        names = [item.name for item in passes.replaced]
        calls = [next(line for line in lines if f"_run_{name})" in line) for name in names]
        lines[lines.index(calls[-1])] = calls[-1].replace(names[-1], passes.fused().name)
        for call in calls[:-1]:
            lines.remove(call)
        for name in names:
            del self.code_objects[name]

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
        # From Brian2 2.10 on its library has sources besides headers.
        library = [f"brianlib/{path.name}" for path in (directory / "brianlib").glob("*.cpp")]
        return "".join(
            COLD.format(name=name) if name in COLD_SOURCES else f'#include "{name}"\n'
            for name in sorted({*self.writer.source_files, *library})
        )

    def interface(self, monitors: dict[str, StateMonitor]) -> dict[str, Any]:
        """What a launcher needs to know of the program: types and files of its variables, which of
        them it can be given, and whether it draws random numbers."""
        own = {id(monitor) for monitor in monitors.values()}
        variables = {
            f"{variable.owner.name}.{variable.name}": {
                "type": np.dtype(variable.dtype).name,
                "file": self.get_array_filename(variable),
                "given": not variable.read_only,
            }
            for variable in self.arrays
            if hasattr(variable.owner, "name") and id(variable.owner) not in own
        }
        return {
            "variables": variables,
            "random": any(RANDOM.search(str(item.code)) for item in self.code_objects.values()),
            "results": {
                name: {
                    column: self.get_array_filename(monitor.variables[column])
                    for column in monitor.record_variables
                }
                for name, monitor in monitors.items()
            },
        }


def acting_objects(network: Network) -> list[Any]:
    """The objects that have something to do in a run, in order, once their code has been made."""
    return [item for item in network.sorted_objects if item.active and item._code_objects]


def loading_objects(network: Network) -> list[Any]:
    """Those of them that load the next point; a stream starts with them."""
    return [item for item in acting_objects(network) if item.clock.name == "loading_clock"]


def recorded_columns(network: Network) -> dict[str, ArrayVariable]:
    """What state monitors record, by the C++ name of the table it goes to."""
    return {
        f"_column_{name}_of_{item.codeobj.name}": item.variables[name]
        for item in acting_objects(network)
        if isinstance(item, StateMonitor)
        for name in item.record_variables
    }


def pathways(network: Network) -> list[str]:
    """Names of the pathways that spikes take through a user's synapses."""
    items = network.sorted_objects
    return [item.name for item in items if isinstance(item, SynapticPathway)]


def runtime_device() -> Device:
    """Brian2's device of objects that run in Python."""
    return brian_devices.runtime_device


@contextmanager
def driving(network: Network) -> Iterator[None]:
    """Let a circuit's network run; errors that Brian2 has with it become one sentence."""
    network.driven = True
    try:
        yield
    except (BrianObjectException, NotImplementedError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise EngineError(
            f"Brian2 cannot run the circuit's network: {error} {cause} (names that an object's "
            "code uses go into its namespace=)"
        ) from error
    finally:
        network.driven = False


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Let Brian2 draw random numbers from a seed, and leave NumPy's generator as it was."""
    if seed is None:
        yield
        return
    kept = np.random.get_state()
    runtime_device().seed(seed)
    try:
        yield
    finally:
        np.random.set_state(kept)


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
                # Objects without a clock of their own run on the user's default clock.
                device.defaultclock = brian_devices.runtime_device.defaultclock
                device.activate(build_on_run=False)
            if target is not None:
                prefs["codegen.target"] = target
            with announced_cython():
                yield
        finally:
            brian_devices.active_device = saved
            prefs["codegen.target"] = saved_target


@contextmanager
def announced_cython() -> Iterator[None]:
    """Say so, once per process, before Cython compiles a module."""
    load = cython_extension_manager._load_module

    def load_announced(path: str, *arguments: Any, **options: Any) -> Any:
        if not Path(path).is_file():
            say_once(
                "compiling modules with Cython, 2 to 5 s each and about 20 per circuit; later runs "
                "use them again"
            )
        return load(path, *arguments, **options)

    cython_extension_manager._load_module = load_announced
    try:
        yield
    finally:
        cython_extension_manager._load_module = load
