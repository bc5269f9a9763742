"""What single objects of Brian2, and classes, say of themselves."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import numpy as np
from brian2.equations.equations import DIFFERENTIAL_EQUATION
from brian2.groups.neurongroup import Resetter, Thresholder
from brian2.synapses.synapses import SynapticPathway

from circuits.engines.brian_objects import ProjectedEuler
from circuits.parameters import format_seconds

UNKNOWN = "known when it runs"


def equations(group: Any) -> list[Any]:
    """A group's equations; groups such as Brian2's Poisson neurons have none."""
    found = getattr(group, "equations", None)
    return list(found.ordered) if found is not None else []


def differential(group: Any) -> list[Any]:
    """A group's differential equations."""
    return [equation for equation in equations(group) if equation.type == DIFFERENTIAL_EQUATION]


def is_noisy(group: Any) -> bool:
    """Whether white noise is in a group's equations."""
    found = getattr(group, "equations", None)
    return found is not None and bool(found.stochastic_variables)


def is_shared(equation: Any) -> bool:
    """Whether all cells or synapses of a group have one value in common."""
    return "shared" in equation.flags


def kind(group: Any, equation: Any) -> str:
    """What an equation is, with its flags in words."""
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


def summed(updater: Any) -> str:
    """A sum over synapses as an equation."""
    return f"{updater.target_varname} = {updater.expression}"


def size(group: Any) -> str:
    """How many cells or synapses; empty for what has neither."""
    try:
        return str(len(group))
    except NotImplementedError:  # standalone, and connected by a rule
        return UNKNOWN
    except TypeError:
        return ""


def pattern(synapses: Any) -> str:
    """Who is connected to whom, from the indices of the synapses."""
    try:
        count, possible = len(synapses), len(synapses.source) * len(synapses.target)
        pairs = len(set(zip(synapses.i[:], synapses.j[:], strict=True))) if count else 0
    except NotImplementedError:
        return UNKNOWN
    if pairs == possible == count:
        return "all-to-all"
    return f"{pairs} of {possible} pairs"


def update_code(update: Any) -> str:
    """The code that an update runs, in Brian2's own notation; empty if there is none."""
    # Thresholds and resets are written when they run, from what their group keeps.
    if isinstance(update, Thresholder):
        return str(update.group.events[update.event])
    if isinstance(update, Resetter):
        return inspect.cleandoc(update.group.event_codes.get(update.event, ""))
    if not hasattr(update, "method_choice"):
        # What synapses do on a spike is kept as the user wrote it until it runs.
        code = getattr(update, "code", None) or getattr(update, "abstract_code", None)
        return inspect.cleandoc(code or "")
    group, method = update.group, update.method_choice
    found = differential(group)
    if found and callable(method):
        return str(method(group.equations, group.variables, update.method_options))
    # Brian2 writes the steps of its own methods when it runs.
    return "\n".join(map(str, found))


def written(update: Any) -> list[Any]:
    """The variables of its own group that an update changes."""
    names = re.findall(r"^(\w+)\s*[-+*/]?=(?!=)", update_code(update), re.MULTILINE)
    return [equation for equation in equations(update.group) if equation.varname in names]


def pathways(synapses: Any) -> list[Any]:
    """What synapses do on spikes."""
    return [item for item in synapses.contained_objects if isinstance(item, SynapticPathway)]


def delivered(pathway: Any) -> list[str]:
    """The statements of synapses on a spike that change the cells at either end."""
    return re.findall(r"^\w+_(?:pre|post)\s*[-+*/]?=(?!=).*$", update_code(pathway), re.MULTILINE)


def spikes_if(group: Any) -> str:
    """When the cells of a group fire, in words; empty if they do not, or by no condition."""
    condition = (getattr(group, "events", None) or {}).get("spike")
    return f"a spike if {condition}" if isinstance(condition, str) else ""


def event(update: Any) -> str:
    """The event on which an update acts; empty for what acts on a clock alone."""
    if isinstance(update, Resetter):
        return str(update.event)
    if not isinstance(update, SynapticPathway):
        return ""
    return f"{update.event} of {update.source.name}{_later(update)}"


def _later(pathway: Any) -> str:
    """How long synapses wait after a spike; empty if they do not."""
    try:
        delays = np.unique(pathway.variables["delay"].get_value())
    except NotImplementedError:  # standalone, and set by a rule
        return f", with a delay {UNKNOWN}"
    if not delays.any():
        return ""
    return f", {' to '.join(map(format_seconds, sorted({delays[0], delays[-1]})))} later"


def method(update: Any) -> str:
    """How an update integrates, if it does, or which part of a cell or synapse it is."""
    if isinstance(update, Thresholder):
        refractory = getattr(update.group, "_refractory", False)
        rest = "" if refractory is False else f", refractory for {refractory}"
        return f"threshold: {update.event} where this holds{rest}"
    if isinstance(update, Resetter):
        return "reset of a cell that fired"
    if isinstance(update, SynapticPathway):
        return f"on_{update.prepost}"
    chosen = getattr(update, "method_choice", None)
    if chosen is None:
        return ""
    if isinstance(chosen, ProjectedEuler) and not chosen.projected:
        return "forward Euler"
    if callable(chosen):
        return f"{type(chosen).__name__}: {doc(chosen)}"
    return chosen if isinstance(chosen, str) else f"the first that applies: {', '.join(chosen)}"


def doc(thing: Any) -> str:
    """The first sentence (or line) of what a thing says of itself."""
    return (inspect.getdoc(thing) or "").split("\n", 1)[0].replace("``", "")


def formulas(thing: Any) -> list[str]:
    """The indented lines in a class's docstring, before its parameters."""
    text = (inspect.getdoc(type(thing)) or "").split("\nParameters\n")[0]
    return [re.sub(r"\s+", " ", line).strip(" ,") for line in re.findall(r"^ {4}(.+)$", text, re.M)]


def field_docs(model: type) -> dict[str, str]:
    """The docstrings under a class's fields, which only its source holds."""
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[name] = " ".join(words.split())
    return found


def meanings(model: type) -> dict[str, str]:
    """What the fields and properties of parameters say of themselves, by the users' names."""
    found = {name.removesuffix("_"): text for name, text in field_docs(model).items()}
    # Durations may be fields in seconds, and explained at the property with the unit.
    return found | {
        name: doc(member)
        for name, member in inspect.getmembers(model)
        if isinstance(member, property)
    }
