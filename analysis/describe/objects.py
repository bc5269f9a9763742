"""What single objects of Brian2, and classes, say of themselves."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from brian2.equations.equations import DIFFERENTIAL_EQUATION

UNKNOWN = "known when it runs"


def equations(group: Any) -> list[Any]:
    """A group's equations; groups such as Brian2's Poisson neurons have none."""
    found = getattr(group, "equations", None)
    return list(found.ordered) if found is not None else []


def differential(group: Any) -> list[Any]:
    """A group's differential equations."""
    return [equation for equation in equations(group) if equation.type == DIFFERENTIAL_EQUATION]


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


def method(update: Any) -> str:
    """How an update integrates, if it does."""
    chosen = getattr(update, "method_choice", None)
    if chosen is None:
        return ""
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
