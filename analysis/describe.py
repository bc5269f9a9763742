"""The model description that Nordlie et al. (2009, PLoS Comput Biol 5:e1000456) ask for.

Sizes, equations, updates and their order are read from the Brian2 objects of a circuit, values from
its parameters and front end: the tables cannot disagree with what is simulated. By hand come only
the remarks in `NOTES`.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from brian2 import (
    EventMonitor,
    Group,
    Network,
    PopulationRateMonitor,
    StateMonitor,
    Synapses,
    TimedArray,
    second,
)
from brian2.equations.equations import DIFFERENTIAL_EQUATION
from brian2.groups.group import CodeRunner
from brian2.synapses.synapses import SummedVariableUpdater, SynapticPathway
from brian2.units.fundamentalunits import DIMENSIONLESS, get_unit_for_display

from circuits.base import RECORDABLE
from circuits.engines.codegen import using
from circuits.engines.streams import initial_values
from circuits.network import monitors
from circuits.parameters import CircuitParameters, format_seconds
from circuits.reference import ReferenceCircuit
from circuits.state import Task

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit

MONITORS = (StateMonitor, EventMonitor, PopulationRateMonitor)


class Code(str):
    """Text that is set as code."""

    __slots__ = ()


@dataclass(frozen=True)
class Table:
    """A table of text; cells that are `Code` are set as code."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"{self.title}: {len(self.header)} columns, but a row {row}")


class Note(NamedTuple):
    """What no object says of itself: what it is for, and where its code belongs if not obvious."""

    text: str
    table: str = ""


NOTES = {
    "inputs": Note("the point that is shown, lifted: x"),
    "excitatory": Note("tiles: rates h and biases b"),
    "inhibitory": Note("interneurons: rates u"),
    "readout": Note("readout: rates y, label channels z"),
    "feedforward": Note("W, slow and Hebbian"),
    "lateral": Note("V, fast and anti-Hebbian; the same weights carry inhibition back"),
    "classifier": Note("w, slow and Hebbian"),
    "step_clock": Note("moves h, u and V"),
    "presentation_clock": Note("fires on the last step of every presentation"),
    "input_stream": Note("lifted points, looked up by row: one microsecond stands for one row"),
    "label_stream": Note("labels -1, +1, or 0 when silent, looked up like the points"),
    "excitatory_remember": Note("keeps h before the last step, to tell if it settled", "G"),
    "inhibitory_remember": Note("keeps u before the last step, to tell if it settled", "G"),
    "readout_answer": Note("the readout's rate, from its net input and its label"),
    "feedforward_learn": Note("Hebbian, once per presentation"),
    "excitatory_learn": Note("homeostatic bias, once per presentation", "E"),
    "classifier_learn": Note("Hebbian, once per presentation"),
    "inputs_load": Note("loads the next point"),
    "readout_load": Note("loads the next label"),
    "excitatory_restart": Note("restarts h, if reset is on"),
    "inhibitory_restart": Note("restarts u, if reset is on"),
    "lateral_restart": Note("restarts V, if reset is on", "D"),
    "feedforward_drive": Note("sums W x, which stays fixed through the presentation"),
    "readout_trace": Note("makes the readout answer at every step"),
    "lift.center": Note("c, the centre of the lift in the units of the data"),
    "lift.radius": Note("R, the radius of the lift in the units of the data"),
}
"""Remarks by the name of what they are about; what has none is described all the same."""


def tables(circuit: ManifoldCircuit) -> list[Table]:
    """The description of a circuit as it stands, objects that the user has added included.

    Nothing is simulated or compiled, and the circuit is left as it is.
    """
    view = _View(circuit)
    return [
        _summary(view),
        _populations(view),
        _connectivity(view),
        _equations(view),
        _code("D2. Neuron and synapse model: updates", view, "D"),
        _code("E. Plasticity", view, "E"),
        _input(view),
        _measurements(view),
        _schedule(view),
        _parameters(view),
    ]


class _View:
    """The objects of a circuit's network, sorted into kinds."""

    def __init__(self, circuit: ManifoldCircuit) -> None:
        self.circuit = circuit
        self.network = circuit.network
        self.measured: dict[str, tuple[Any, str]] = {}
        """The monitors that a run adds, by the result they hold, and when it does."""
        # They are made as a run makes them, to be looked at; none is added to the network.
        with using():
            for condition, record, snapshots in (
                ("in every run", (), False),
                ("if record asks for it", RECORDABLE, False),
                ("if snapshot_every is given", (), True),
            ):
                for result, monitor in monitors(self.network, record, snapshots).items():
                    self.measured.setdefault(result, (monitor, condition))
            scratch = Network(name="description*")
        # Brian2 itself puts them into order. Network.add refuses objects that have run.
        scratch.schedule = self.network.schedule
        scratch.objects = set(self.network.objects) | {m for m, _ in self.measured.values()}
        self.scheduled: list[Any] = scratch.sorted_objects

        objects = sorted(self.network.sorted_objects, key=_position)
        self.synapses = [item for item in objects if isinstance(item, Synapses)]
        self.added_monitors = [item for item in objects if isinstance(item, MONITORS)]
        other_groups = (Synapses, SynapticPathway, *MONITORS)
        self.populations = [
            item
            for item in objects
            if isinstance(item, Group) and not isinstance(item, other_groups)
        ]
        self.streams: dict[str, TimedArray] = {
            name: value
            for item in self.populations + self.synapses
            for name, value in (getattr(item, "namespace", None) or {}).items()
            if isinstance(value, TimedArray)
        }
        # Sums stand among the equations, monitors in a table of their own.
        self.updates = [
            item
            for item in self.network.sorted_objects
            if isinstance(item, CodeRunner)
            and not isinstance(item, (SummedVariableUpdater, *MONITORS))
            and item not in self.populations
            and _update_code(item)
        ]
        clocks = {item.clock.name: item.clock for item in self.scheduled}
        self.clocks = sorted(clocks.values(), key=lambda clock: (clock.dt_, clock.name))

    def table_of(self, update: Any) -> str:
        """The table that an update belongs to."""
        code = _update_code(update)
        if note := _note(update).table:
            return note
        if isinstance(update.group, Synapses) and _written(update):
            return "E"
        return "F" if any(re.search(rf"\b{name}\(", code) for name in self.streams) else "D"

    def every(self, clock: Any) -> str:
        """How often a clock fires, in steps of the circuit."""
        # Rounded here: Brian2's own summary cuts off, and makes 48 steps of 49 times 0.1 ms.
        ratio = clock.dt_ / self.network["excitatory"].clock.dt_
        steps = round(ratio)
        if not math.isclose(ratio, steps, rel_tol=1e-9):
            return format_seconds(clock.dt_)  # the clock of something added
        return "step" if steps == 1 else f"{steps} steps"


def _summary(view: _View) -> Table:
    neurons = [
        f"{group.name}: {'spiking' if getattr(group, 'events', None) else 'rate'} units, "
        + (", ".join(f"d{eq.varname}/dt" for eq in _differential(group)) or "no dynamics")
        for group in view.populations
    ]
    plastic = [
        f"{item.group.name}: {', '.join(eq.varname for eq in _written(item) if not _is_shared(eq))}"
        for item in view.updates
        if view.table_of(item) == "E"
    ]
    sums = [
        f"{synapses.name}: {', '.join(map(_sum, synapses.summed_updaters.values()))}"
        for synapses in view.synapses
        if synapses.summed_updaters
    ]
    clocks = [
        f"{item.name}: {format_seconds(item.dt_)} (every {view.every(item)}), {_note(item).text}"
        for item in view.clocks
    ]
    rows = [
        ("Populations", ", ".join(f"{group.name} ({_size(group)})" for group in view.populations)),
        ("Topology", "none: cells differ by their index only"),
        (
            "Connectivity",
            "; ".join(
                f"{item.name}: {item.source.name} to {item.target.name}, {_pattern(item)}"
                for item in view.synapses
            ),
        ),
        ("Neuron model", "; ".join(neurons)),
        ("Channel models", "none"),
        ("Synapse model", "; ".join(sums) or "none"),
        ("Plasticity", "; ".join(plastic) or "none"),
        ("Input", ", ".join([type(view.circuit.lift).__name__, *view.streams])),
        ("Measurements", ", ".join([*view.measured, *(m.name for m in view.added_monitors)])),
        ("Time", "; ".join(text.rstrip(", ") for text in clocks)),
        ("Simulator", f"Brian2 {metadata.version('brian2')}"),
    ]
    return Table("A. Model summary", ("Aspect", "Description"), tuple(rows))


def _populations(view: _View) -> Table:
    header = ("Name", "Size", "Type", "Differential equations of", "Clock", "What it is")
    rows = [
        (
            Code(group.name),
            _size(group),
            type(group).__name__,
            Code(", ".join(eq.varname for eq in _differential(group))),
            Code(group.clock.name),
            _note(group).text,
        )
        for group in view.populations
    ]
    return Table("B. Populations", header, tuple(rows))


def _connectivity(view: _View) -> Table:
    header = ("Name", "Source", "Target", "Pattern", "Synapses", "Per synapse", "What it is")
    rows = [
        (
            Code(item.name),
            Code(item.source.name),
            Code(item.target.name),
            _pattern(item),
            _size(item),
            Code(", ".join(eq.varname for eq in item.equations.ordered if not _is_shared(eq))),
            _note(item).text,
        )
        for item in view.synapses
    ]
    return Table("C. Connectivity", header, tuple(rows))


def _equations(view: _View) -> Table:
    header = ("Object", "Equation", "Unit", "Kind", "At the start")
    values = _values_at_start(view.circuit)
    rows: list[tuple[str, ...]] = []
    for group in view.populations + view.synapses:
        for eq in _ordered(group):
            left, _, _ = str(eq).rpartition(" : ")
            value = values.get((group.name, eq.varname), "")
            if value is None:
                value = "from the data"
            elif not isinstance(value, str):
                value = _quantities(value, eq.dim)
            rows.append(
                (
                    Code(group.name),
                    Code(left),
                    get_unit_for_display(eq.dim),
                    _kind(group, eq),
                    value,
                )
            )
        for updater in getattr(group, "summed_updaters", {}).values():
            unit = get_unit_for_display(updater.target_var.dim)
            kind = f"summed over the synapses of each cell of {updater.target.name}"
            rows.append((Code(group.name), Code(_sum(updater)), unit, kind, ""))
    return Table("D1. Neuron and synapse model: equations", header, tuple(rows))


def _code(title: str, view: _View, table: str) -> Table:
    header = ("Update", "Part of", "Code", "Every", "What it does")
    return Table(title, header, tuple(_code_rows(view, table)))


def _code_rows(view: _View, table: str) -> list[tuple[str, ...]]:
    return [
        (
            Code(item.name),
            Code(item.group.name),
            Code(_update_code(item)),
            view.every(item.clock),
            _note(item).text or _method(item),
        )
        for item in view.updates
        if view.table_of(item) == table
    ]


def _input(view: _View) -> Table:
    header = ("Part", "Part of", "Definition", "Every", "What it does")
    lift = view.circuit.lift
    rows: list[tuple[str, ...]] = [
        (
            Code(type(lift).__name__),
            "front end",
            Code("\n".join([repr(lift), *_formulas(lift)])),
            "point",
            f"{_doc(lift)} {lift.n_coordinates} coordinates become {lift.n_inputs} inputs.",
        )
    ]
    for name, stream in view.streams.items():
        readers = [item for item in view.updates if f"{name}(" in _update_code(item)]
        length, *width = stream.values.shape
        rows.append(
            (
                Code(name),
                Code(", ".join(item.group.name for item in readers)),
                f"{' x '.join(map(str, width)) or '1'} values a row, up to {length} rows at a time",
                ", ".join(sorted({view.every(item.clock) for item in readers})),
                _note(name).text,
            )
        )
    return Table("F. Input", header, tuple(rows + _code_rows(view, "F")))


def _measurements(view: _View) -> Table:
    header = ("Name", "Of", "Variables", "Cells", "Every", "Result", "When")
    found = [(item, result, when) for result, (item, when) in view.measured.items()]
    found += [(item, item.name, "added to the network") for item in view.added_monitors]
    rows: list[tuple[str, ...]] = [
        (
            Code(item.name),
            Code(item.source.name),
            Code(", ".join(getattr(item, "record_variables", ()))),
            str(getattr(item, "n_indices", "")) or "all",
            view.every(item.clock),
            Code(result),
            f"{when}; {note}" if (note := _note(item).text) else when,
        )
        for item, result, when in found
    ]
    rows += [
        (name, part, code, _size(view.network[part]), every, "", what)
        for name, part, code, every, what in _code_rows(view, "G")
    ]
    return Table("G. Measurements", header, tuple(rows))


def _schedule(view: _View) -> Table:
    """What runs when. Objects that only contain others do nothing themselves and are left out."""
    header = ("Slot", "Order", "Object", "Part of", "Type", "Clock", "Every")
    described = [*view.populations, *view.synapses]
    rows = []
    for item in view.scheduled:
        if item in described and item.contained_objects:
            continue
        owner = item.source if isinstance(item, MONITORS) else getattr(item, "group", None)
        state = "" if item.active else " (inactive)"
        rows.append(
            (
                item.when,
                str(item.order),
                Code(item.name),
                Code(getattr(owner, "name", "")),
                f"{type(item).__name__}{state}",
                Code(item.clock.name),
                view.every(item.clock),
            )
        )
    slots = ", ".join(view.network.schedule)
    title = f"H. Schedule: from top to bottom in every step (slots: {slots})"
    return Table(title, header, tuple(rows))


def _parameters(view: _View) -> Table:
    circuit = view.circuit
    parameters, lift = circuit.parameters, circuit.lift
    meaning = _field_docs(CircuitParameters)
    # Durations are fields in seconds; what they mean stands at the property with the unit.
    meaning |= {
        name: _doc(member)
        for name, member in inspect.getmembers(CircuitParameters)
        if isinstance(member, property)
    }
    rows = [
        (Code(name), _plain(value), meaning.get(name, ""))
        for name, value in parameters.as_dict().items()
    ]
    rows += [
        (Code(f"lift.{name}"), _plain(value), _note(f"lift.{name}").text)
        for name, value in lift.as_dict().items()
    ]
    rows += [
        (Code(name), _quantities(value, DIMENSIONLESS), text)
        for name, value, text in (
            ("alpha", circuit.alpha, _doc(type(lift).alpha)),
            ("gain, as used", circuit.gain, meaning.get("gain", "")),
            ("kappa, as used", parameters.kappa, meaning["kappa"]),
            ("gamma", circuit.gamma, _doc(type(circuit).gamma)),
        )
    ]
    return Table("I. Parameters", ("Name", "Value", "Meaning"), tuple(rows))


def _values_at_start(circuit: ManifoldCircuit) -> dict[tuple[str, str], Any]:
    """What an engine is given at the start of a first stream, by group and variable.

    The function that feeds the engines is asked about two streams that have nothing in common:
    what differs between its answers comes from the data, not from the model, and is None here.
    """
    p, lift = circuit.parameters, circuit.lift

    def place(along: Any) -> Any:
        points = np.tile(lift.center, (len(along), 1))
        points[:, 0] += lift.radius * np.asarray(along)
        return points

    def ask(first: float, last: float, length: int) -> dict[str, dict[str, Any]]:
        centers = place(np.linspace(first, last, p.n_tiles))
        labels = np.full((length, p.n_readouts), np.sign(first))
        task = Task(lift(place([-first] * length)), labels, True, (), False, lambda _done: None)
        return initial_values(circuit, ReferenceCircuit(p, lift, tile_centers=centers).state, task)

    one, other = ask(0.1, 0.5, 1), ask(-0.2, -0.7, 2)
    return {
        (group, name): value if np.array_equal(value, other[group][name]) else None
        for group, values in one.items()
        for name, value in values.items()
    }


def _quantities(values: Any, dim: Any) -> str:
    """Numbers in SI units as text; many different ones by their extremes."""

    def one(value: Any) -> str:
        if dim is second.dim:
            return format_seconds(float(value))
        unit = get_unit_for_display(dim)
        return f"{value:.6g}" if unit == "1" else f"{value:.6g} {unit}"

    flat = np.asarray(values, dtype=float).ravel()
    if flat.min() == flat.max():
        return one(flat[0])
    if flat.size > 4:
        return f"{one(flat.min())} to {one(flat.max())}"
    return ", ".join(map(one, flat))


def _plain(value: Any) -> str:
    """A parameter as text, to the last digit."""
    if isinstance(value, tuple | list):
        return ", ".join(map(_plain, value))
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")


def _kind(group: Any, equation: Any) -> str:
    words = [equation.type]
    if equation.var_type != "float":
        words.append(equation.var_type)
    for flag in equation.flags:
        if flag == "linked" and equation.varname in group.variables:
            variable = group.variables[equation.varname]
            words.append(f"linked to {variable.owner.name}.{variable.name}")
        else:
            words.append(flag)
    return ", ".join(words)


def _is_shared(equation: Any) -> bool:
    return "shared" in equation.flags


def _ordered(group: Any) -> list[Any]:
    """A group's equations; groups such as Brian2's Poisson neurons have none."""
    equations = getattr(group, "equations", None)
    return list(equations.ordered) if equations is not None else []


def _differential(group: Any) -> list[Any]:
    return [equation for equation in _ordered(group) if equation.type == DIFFERENTIAL_EQUATION]


def _sum(updater: Any) -> str:
    return f"{updater.target_varname} = {updater.expression}"


def _size(group: Any) -> str:
    try:
        return str(len(group))
    except NotImplementedError:  # standalone, and connected by a rule
        return "known when it runs"


def _pattern(synapses: Any) -> str:
    """Who is connected to whom, from the indices of the synapses."""
    try:
        pairs = len(set(zip(synapses.i[:], synapses.j[:], strict=True)))
        count, possible = len(synapses), len(synapses.source) * len(synapses.target)
    except NotImplementedError:
        return "known when it runs"
    if pairs == possible == count:
        return "all-to-all"
    return f"{pairs} of {possible} pairs"


def _update_code(update: Any) -> str:
    """The code that an update runs, in Brian2's own notation."""
    if not hasattr(update, "method_choice"):
        # What synapses do on a spike is kept as the user wrote it until it runs.
        return inspect.cleandoc(getattr(update, "code", None) or update.abstract_code or "")
    group, method = update.group, update.method_choice
    equations = _differential(group)
    if equations and callable(method):
        return str(method(group.equations, group.variables, update.method_options))
    # Brian2 writes the steps of its own methods when it runs.
    return "\n".join(map(str, equations))


def _written(update: Any) -> list[Any]:
    """The variables of its own group that an update changes."""
    names = re.findall(r"^(\w+)\s*[-+*/]?=(?!=)", _update_code(update), re.MULTILINE)
    return [equation for equation in _ordered(update.group) if equation.varname in names]


def _method(update: Any) -> str:
    """How an update integrates, if it does."""
    method = getattr(update, "method_choice", None)
    if method is None:
        return ""
    if callable(method):
        return f"{type(method).__name__}: {_doc(method)}"
    return method if isinstance(method, str) else f"the first that applies: {', '.join(method)}"


def _note(item: Any) -> Note:
    return NOTES.get(item if isinstance(item, str) else item.name, Note(""))


def _position(item: Any) -> tuple[int, str]:
    """Known objects in the order of `NOTES`, then the others by name."""
    names = list(NOTES)
    return names.index(item.name) if item.name in NOTES else len(names), item.name


def _doc(thing: Any) -> str:
    """The first sentence (or line) of what a thing says of itself."""
    return (inspect.getdoc(thing) or "").split("\n", 1)[0].replace("``", "")


def _formulas(thing: Any) -> list[str]:
    """The indented lines in a class's docstring, before its parameters."""
    text = (inspect.getdoc(type(thing)) or "").split("\nParameters\n")[0]
    return [re.sub(r"\s+", " ", line).strip(" ,") for line in re.findall(r"^ {4}(.+)$", text, re.M)]


def _field_docs(model: type) -> dict[str, str]:
    """The docstrings under a class's fields, which only its source holds."""
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                found[name] = doc
    return found


# Markdown

MARKDOWN_SPECIAL = re.compile(r"[\\`*|]|\b_|_\b|<(?=[A-Za-z/!?])|\](?=[(\[])")
"""What would not stand for itself in a table's cell; an underscore within a word does."""


def to_markdown(tables: Iterable[Table]) -> str:
    """The tables as GitHub Markdown, a heading over each."""
    parts = ["# Model description"]
    for table in tables:
        lines = [_markdown_row(table.header), _markdown_row(["---"] * len(table.header))]
        lines += [_markdown_row([_markdown_cell(cell) for cell in row]) for row in table.rows]
        parts += [f"## {_markdown_cell(table.title)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(text: str) -> str:
    if not isinstance(text, Code):
        return " ".join(MARKDOWN_SPECIAL.sub(r"\\\g<0>", text).split())
    # A code span ends at as many backticks as it began with; a cell ends at any bare pipe.
    spans = []
    for line in text.replace("|", "\\|").splitlines():
        fence, pad = ("``", " ") if "`" in line else ("`", "")
        spans.append(f"{fence}{pad}{line.strip()}{pad}{fence}" if line.strip() else "")
    return "<br>".join(span for span in spans if span)


# LaTeX

LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\symbol{36}",  # \$ takes a font that small installations lack
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}

BREAK = r"\allowbreak{}"

LATEX_START = r"""\documentclass[a4paper]{article}
\usepackage{booktabs}
\usepackage{longtable}
\addtolength{\textwidth}{5cm}
\addtolength{\oddsidemargin}{-2.5cm}
\addtolength{\textheight}{4cm}
\addtolength{\topmargin}{-2cm}
\begin{document}
\section*{Model description}
"""
LATEX_END = "\\end{document}\n"

LINE = 115
"""Characters of code that fit side by side into the width of the page."""


def to_latex(tables: Iterable[Table], *, document: bool = True) -> str:
    r"""The tables as a LaTeX document, or as tables to ``\input`` into one of your own.

    That one needs ``booktabs`` and ``longtable``.
    """
    body = "\n".join(map(_latex_table, tables))
    return f"{LATEX_START}{body}{LATEX_END}" if document else body


def _latex_table(table: Table) -> str:
    columns = "".join(
        rf"p{{\dimexpr {share:.3f}\linewidth-2\tabcolsep\relax}}" for share in _shares(table)
    )
    header = " & ".join(rf"\raggedright\textbf{{{_escape(name)}}}" for name in table.header)
    lines = [
        rf"\subsection*{{{_escape(table.title)}}}",
        r"{\footnotesize",
        rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        rf"{header} \tabularnewline",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        # \raggedright takes \\ for itself; \tabularnewline ends a row all the same.
        *(
            " & ".join(rf"\raggedright {_latex_cell(cell)}" for cell in row) + r" \tabularnewline"
            for row in table.rows
        ),
        r"\end{longtable}}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(text: str) -> str:
    if not isinstance(text, Code):
        return _escape(" ".join(text.split()))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return r"\newline ".join(rf"\texttt{{{_escape(line, BREAK)}}}" for line in lines)


def _escape(text: str, after_joints: str = "") -> str:
    """Text for LaTeX; in code, lines may break after the characters that join words."""
    return "".join(_latex_character(c) + (after_joints if c in "_*/(,=" else "") for c in text)


def _latex_character(character: str) -> str:
    if character in LATEX_ESCAPES:
        return LATEX_ESCAPES[character]
    if character.isascii():
        return character
    # A plain article has no glyph for most others: better their name than nothing.
    name = unicodedata.name(character, f"U+{ord(character):04X}")
    return name.rpartition(" ")[2].lower() if name.startswith("GREEK") else f"({name.lower()})"


def _shares(table: Table) -> list[float]:
    """Each column's share of the width: short text whole, of other text the longest word, and of
    the rest what the text wants."""
    columns: list[Sequence[str]] = list(zip(table.header, *table.rows, strict=True))
    words = [max(len(w) for c in column for w in re.split(r"[\s_*/(,=]", c)) for column in columns]
    wanted = [max(len(line) for c in column for line in c.split("\n")) for column in columns]
    least = [(w if w <= 10 else word) + 4 for word, w in zip(words, wanted, strict=True)]
    rest = max(LINE - sum(least), 0)
    extra = [max(min(want, 60) + 4 - low, 0) for want, low in zip(wanted, least, strict=True)]
    scale = rest / max(sum(extra), 1)
    widths = [low + scale * more for low, more in zip(least, extra, strict=True)]
    return [width / sum(widths) for width in widths]
