"""The tables of Nordlie et al. (2009), from a view of a circuit."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from brian2.units.fundamentalunits import DIMENSIONLESS

from analysis.describe import objects, twin
from analysis.describe.table import Code, Table
from analysis.describe.values import plain, quantities, unit, values_at_start
from analysis.describe.view import MONITORS, View
from circuits.parameters import CircuitParameters, format_seconds

if TYPE_CHECKING:
    from circuits.circuit import ManifoldCircuit


CODE_HEADER = ("Update", "Part of", "Code", "Every", "What it does")


def tables(circuit: ManifoldCircuit) -> list[Table]:
    """The description of a circuit as it stands, objects that the user has added included.

    Nothing is simulated or compiled, and the circuit is left as it is.
    """
    view = View(circuit)
    return [
        _summary(view),
        _populations(view),
        _connectivity(view),
        _equations(view),
        _updates(view),
        _plasticity(view),
        _input(view),
        _measurements(view),
        _schedule(view),
        _parameters(view),
    ]


def _summary(view: View) -> Table:
    # What recruits a tile comes after what learns, and sets the same weights.
    plastic: dict[str, str] = {}
    for item in view.updates:
        if "E" in view.tables_of(item) and item.active:
            plastic.setdefault(item.group.name, _own(view.kept(item)))
    clocks = [
        f"{clock.name}: {format_seconds(clock.dt_)} (every {view.every(clock)}), "
        + view.note(clock).text
        for clock in view.clocks
    ]
    rows = [
        ("Populations", ", ".join(f"{g.name} ({objects.size(g)})" for g in view.populations)),
        ("Topology", "none: cells differ by their index only"),
        (
            "Connectivity",
            "; ".join(
                f"{item.name}: {item.source.name} to {item.target.name}, {objects.pattern(item)}"
                for item in view.synapses
            ),
        ),
        ("Neuron model", "; ".join(map(_neuron_in_words, view.populations))),
        ("Channel models", "none"),
        ("Synapse model", "; ".join(filter(None, map(_synapse_in_words, view.synapses))) or "none"),
        ("Plasticity", "; ".join(f"{name}: {own}" for name, own in plastic.items()) or "none"),
        ("Tiles", _tiles_in_words(view.circuit.parameters)),
        ("Gain", _gain_in_words(view.circuit)),
        ("Input", ", ".join([type(view.circuit.lift).__name__, *view.streams])),
        ("Measurements", ", ".join([*view.measured, *(m.name for m in view.added_monitors)])),
        ("Time", "; ".join(text.rstrip(", ") for text in clocks)),
        ("Simulator", f"Brian2 {metadata.version('brian2')}"),
    ]
    if changes := view.circuit.changes():
        text = "; ".join(f"{name}: {value}" for name, value in changes.items())
        whose = "the spiking" if twin.is_spiking(view.circuit) else "the paper's"
        rows.insert(0, (f"Changed from {whose} circuit", text))
    return Table("A. Model summary", ("Aspect", "Description"), tuple(rows))


def _neuron_in_words(group: Any) -> str:
    """What moves in a cell, and when it fires."""
    moves = ", ".join(f"d{eq.varname}/dt" for eq in objects.differential(group)) or "no dynamics"
    noise = "white noise" if objects.is_noisy(group) else ""
    kind = "spiking" if getattr(group, "events", None) else "rate"
    words = [f"{kind} units", moves, noise, objects.spikes_if(group)]
    return f"{group.name}: {', '.join(filter(None, words))}"


def _synapse_in_words(synapses: Any) -> str:
    """What synapses sum at every step, and what they deliver on spikes."""
    words = list(map(objects.summed, synapses.summed_updaters.values()))
    words += [
        f"{statement} on a {objects.event(pathway)}"
        for pathway in objects.pathways(synapses)
        for statement in objects.delivered(pathway)
    ]
    return f"{synapses.name}: {', '.join(words)}" if words else ""


def _tiles_in_words(p: CircuitParameters) -> str:
    """How tiles come into use."""
    if p.tiles == "first":
        return f"all in use, from the first {p.n_tiles} distinct points or given centres"
    least = "; when none is idle, the one with the smallest b moves" if p.recycle else ""
    return (
        "idle until recruited: a point to which no tile's answer r_i = a_i sqrt(alpha)/(b_i (1 - "
        f"alpha)) = 1 - (distance/rho)^2 exceeds {p.recruit_below:g} starts the next idle one with "
        f"W = kappa x, b = kappa sqrt(alpha){least}"
    )


def _gain_in_words(circuit: ManifoldCircuit) -> str:
    """What the net input of h is multiplied by."""
    if circuit.gain is not None:
        return f"constant, {circuit.gain:.6g}"
    if twin.is_spiking(circuit):
        return twin.gain_in_words(circuit)
    return (
        "gain control: 1/A with A = |[a]_+| measured once per presentation, so that gamma_h A = "
        "dt/tau_h at every point; u and V start at the scale sqrt(A), h, u and V at zero where A "
        f"does not exceed {circuit.floor:.3g}"
    )


def _own(equations: list[Any]) -> str:
    """Names of variables of which every cell or synapse has its own."""
    return ", ".join(eq.varname for eq in equations if not objects.is_shared(eq))


def _populations(view: View) -> Table:
    header = ("Name", "Size", "Type", "Differential equations of", "Clock", "What it is")
    rows = [
        (
            Code(group.name),
            objects.size(group),
            type(group).__name__,
            Code(", ".join(eq.varname for eq in objects.differential(group))),
            Code(group.clock.name),
            view.note(group).text,
        )
        for group in view.populations
    ]
    return Table("B. Populations", header, tuple(rows))


def _connectivity(view: View) -> Table:
    header = ("Name", "Source", "Target", "Pattern", "Synapses", "Per synapse", "What it is")
    rows = [
        (
            Code(item.name),
            Code(item.source.name),
            Code(item.target.name),
            objects.pattern(item),
            objects.size(item),
            Code(_own(objects.equations(item))),
            view.note(item).text,
        )
        for item in view.synapses
    ]
    return Table("C. Connectivity", header, tuple(rows))


def _equations(view: View) -> Table:
    header = ("Object", "Equation", "Unit", "Kind", "At the start", "What it is")
    about = view.circuit.parts.about
    values = values_at_start(view.circuit)
    rows: list[tuple[str, ...]] = []
    for group in view.populations + view.synapses:
        for eq in objects.equations(group):
            left, _, _ = str(eq).rpartition(" : ")
            value = values.get((group.name, eq.varname), "")
            if value is None:
                value = "from the data"
            elif not isinstance(value, str):
                value = quantities(value, eq.dim)
            row = (Code(group.name), Code(left), unit(eq.dim), objects.kind(group, eq), value)
            rows.append((*row, about(group.name, eq.varname)))
        for updater in getattr(group, "summed_updaters", {}).values():
            dim = updater.target_var.dim
            kind = f"summed over the synapses of each cell of {updater.target.name}"
            name = updater.target_varname.rpartition("_")[0]
            row = (Code(group.name), Code(objects.summed(updater)), unit(dim), kind, "")
            rows.append((*row, about(updater.target.name, name)))
    return Table("D1. Neuron and synapse model: equations", header, tuple(rows))


def _updates(view: View) -> Table:
    """The code that moves rates, and whatever else acts on the network."""
    rows = _code_rows(view, "D")
    rows += [
        (
            Code(item.name),
            Code(_owner(item)),
            Code(""),
            _every(view, item),
            ": ".join(filter(None, [type(item).__name__, objects.doc(item)])),
        )
        for item in view.others
    ]
    return Table("D2. Neuron and synapse model: updates", CODE_HEADER, tuple(rows))


def _plasticity(view: View) -> Table:
    return Table("E. Plasticity", CODE_HEADER, tuple(_code_rows(view, "E")))


def _code_rows(view: View, table: str) -> list[tuple[str, ...]]:
    return [
        (
            Code(item.name),
            Code(_owner(item)),
            Code(objects.update_code(item)),
            _every(view, item),
            view.note(item).text or objects.method(item),
        )
        for item in view.updates
        if table in view.tables_of(item)
    ]


def _every(view: View, update: Any) -> str:
    if not update.active:
        return "never: inactive"
    return objects.event(update) or view.every(update.clock)


def _owner(item: Any) -> str:
    """The name of the group that something acts on or records from; empty if it has none."""
    owner = item.source if isinstance(item, MONITORS) else getattr(item, "group", None)
    return getattr(owner, "name", "")


def _input(view: View) -> Table:
    header = ("Part", "Part of", "Definition", "Every", "What it does")
    lift = view.circuit.lift
    rows: list[tuple[str, ...]] = [
        (
            Code(type(lift).__name__),
            "front end",
            Code("\n".join([repr(lift), *objects.formulas(lift)])),
            "point",
            f"{objects.doc(lift)} {lift.n_coordinates} coordinates become {lift.n_inputs} inputs.",
        )
    ]
    for name, stream in view.streams.items():
        readers = view.readers(name)
        length, *width = stream.values.shape
        about = view.note(name).text
        # The circuit's own streams are looked up by row, a user's by time.
        rest = f"up to {length} rows at a time" if about else f"{length} rows of {_dt(stream)}"
        rows.append(
            (
                Code(name),
                Code(", ".join(_owner(item) or item.name for item in readers)),
                f"{' x '.join(map(str, width)) or '1'} values a row, {rest}",
                ", ".join(sorted({view.every(item.clock) for item in readers})),
                about,
            )
        )
    return Table("F. Input", header, tuple(rows + _code_rows(view, "F")))


def _dt(stream: Any) -> str:
    return format_seconds(float(stream.dt))


def _measurements(view: View) -> Table:
    header = ("Name", "Of", "Variables", "Cells", "Every", "Result", "When")
    found = [(item, view.results(result), when) for result, (item, when) in view.measured.items()]
    found += [(item, item.name, "added to the network") for item in view.added_monitors]
    rows: list[tuple[str, ...]] = [
        (
            Code(item.name),
            Code(_owner(item)),
            Code(", ".join(getattr(item, "record_variables", ()))),
            str(getattr(item, "n_indices", "")) or objects.size(item.source) or "all",
            str(getattr(item, "event", "")) or view.every(item.clock),
            Code(result),
            f"{when}; {about}" if (about := view.note(item).text) else when,
        )
        for item, result, when in found
    ]
    rows += [
        (
            Code(item.name),
            Code(_owner(item)),
            Code(objects.update_code(item)),
            objects.size(item.group),
            _every(view, item),
            "",
            view.note(item).text,
        )
        for item in view.updates
        if "G" in view.tables_of(item)
    ]
    return Table("G. Measurements", header, tuple(rows))


def _schedule(view: View) -> Table:
    """What runs when. Objects that only contain others do nothing themselves and are left out."""
    header = ("Slot", "Order", "Object", "Part of", "Type", "Clock", "Every")
    described = [*view.populations, *view.synapses]
    rows = []
    for item in view.scheduled:
        if item in described and item.contained_objects:
            continue
        state = "" if item.active else " (inactive)"
        rows.append(
            (
                item.when,
                str(item.order),
                Code(item.name),
                Code(_owner(item)),
                f"{type(item).__name__}{state}",
                Code(item.clock.name),
                view.every(item.clock),
            )
        )
    slots = ", ".join(view.network.schedule)
    title = f"H. Schedule: from top to bottom in every step (slots: {slots})"
    return Table(title, header, tuple(rows))


def _step_sizes(circuit: ManifoldCircuit) -> list[tuple[str, Any, str]]:
    """The gain and the step sizes, which under gain control depend on the drive A = |[a]_+|."""
    constant = (
        [] if circuit.gain is None else [("gain, as used", circuit.gain, "The constant gain.")]
    )
    if twin.is_spiking(circuit):
        return constant + twin.as_used(circuit)
    gamma = circuit.gamma(1.0)
    if circuit.gain is None:
        return [
            (
                "gamma_h A",
                gamma[0],
                "Step of h times its drive A = |[a]_+|: dt/tau_h at every point.",
            ),
            ("gamma_u, gamma_V", gamma[1:], "Step sizes of u and V: dt/tau_u, dt/tau_V."),
        ]
    about = "Step sizes of h, u and V: gain dt/tau_h, dt/tau_u, dt/tau_V."
    return [*constant, ("gamma", gamma, about)]


def _parameters(view: View) -> Table:
    circuit = view.circuit
    parameters, lift = circuit.parameters, circuit.lift
    meaning = objects.meanings(CircuitParameters)
    unused: tuple[str, ...] = ()
    if twin.is_spiking(circuit):
        meaning |= twin.MEANINGS
        unused = twin.UNUSED
    rows: list[tuple[str, ...]] = [
        (Code(name), plain(value), meaning.get(name, ""))
        for name, value in parameters.as_dict().items()
        if name not in unused
    ]
    if twin.is_spiking(circuit):
        rows += twin.parameters(circuit)
    rows += [
        (Code(f"lift.{name}"), plain(value), view.note(f"lift.{name}").text)
        for name, value in lift.as_dict().items()
    ]
    rows += [
        (Code(name), quantities(value, DIMENSIONLESS), text)
        for name, value, text in (
            ("alpha", circuit.alpha, objects.doc(type(lift).alpha)),
            ("kappa, as used", parameters.kappa, meaning["kappa"]),
            ("floor", circuit.floor, "Drives |[a]_+| up to this count as nothing."),
            *_step_sizes(circuit),
        )
    ]
    return Table("I. Parameters", ("Name", "Value", "Meaning"), tuple(rows))
