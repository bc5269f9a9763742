"""The faults that can be put into a module, as changes of its syntax tree."""

from __future__ import annotations

import ast
import copy
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In},
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult},
    **{ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {"argmin": "argmax", "argmax": "argmin", "any": "all", "all": "any"}
NAMES |= {"idxmin": "idxmax", "mean": "sum"}
BRIAN2 = {" + ": " - ", " - ": " + ", "*": "/", "/": "*", " < ": " <= ", " > ": " >= "}
BRIAN2 |= {" <= ": " < ", " >= ": " > ", " == ": " != "}

CHECKS = ("as_count", "as_number", "as_floats")
"""Functions that are told the name of a value, for what they say if it is wrong."""

COMPOUND = ast.If | ast.For | ast.While | ast.With | ast.Try | ast.FunctionDef | ast.ClassDef
REMOVED = ast.Expr | ast.Raise | ast.Break | ast.Continue


@dataclass(frozen=True)
class Fault:
    """One change: which node becomes what, and what that is in the source."""

    line: int
    text: str
    """The first line of the statement it is in."""
    change: str
    statement: range | None
    """The lines whose running makes a test one that can notice; None for what an import runs."""
    apply: Callable[[], None]
    """Makes the change in the tree, for good."""


def faults(tree: ast.Module, source: str) -> list[Fault]:
    """All faults of a module, in the order of its lines. Where a line can be changed in the same
    words at several places, they are numbered."""
    lines = source.splitlines()
    found: list[Fault] = []
    places: dict[tuple[int, str], int] = defaultdict(int)
    for node, place, statement, running in _places(tree):
        for new in _changes(node):
            span = _span(statement) if running else None
            line, change = node.lineno, _in_words(node, new)
            places[line, change] += 1
            if places[line, change] > 1:
                change += f" (place {places[line, change]})"
            text = lines[line - 1].strip()
            found.append(Fault(line, text, change, span, _applying(place, new)))
    return sorted(found, key=lambda fault: fault.line)


def _in_words(old: ast.AST, new: ast.AST) -> str:
    """The first line that differs, before and after."""
    before, after = (
        str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
        for node in (old, new)
    )
    pairs = zip_longest(before.splitlines(), after.splitlines(), fillvalue="")
    return next(f"{one} -> {other}" for one, other in pairs if one != other)


Place = tuple[ast.AST, str, int | None]
"""The parent of a node, its field, and the index in it."""


def _applying(place: Place, new: ast.AST) -> Callable[[], None]:
    def apply() -> None:
        parent, field, index = place
        if index is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[index] = new

    return apply


def _span(statement: ast.stmt) -> range:
    """The lines of a statement, of a compound one without its body."""
    if isinstance(statement, COMPOUND):
        return range(statement.lineno, max(statement.body[0].lineno, statement.lineno + 1))
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _places(tree: ast.Module) -> Iterator[tuple[Any, Place, ast.stmt, bool]]:
    """Nodes that may be changed, each with its place, its statement, and whether it is part of a
    function's body. What only people read or tools check is left out."""

    def walk(
        parent: ast.AST, statement: ast.stmt | None, running: bool
    ) -> Iterator[tuple[ast.AST, Place, ast.stmt, bool]]:
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns", "decorator_list", "type_comment", "exc", "cause"):
                continue
            inside = running or (isinstance(parent, ast.FunctionDef) and field == "body")
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(node, ast.AST) or _left_out(node, parent):
                    continue
                own = node if isinstance(node, ast.stmt) else statement
                if own is not None and hasattr(node, "lineno"):
                    place = (parent, field, index if isinstance(value, list) else None)
                    yield node, place, own, inside
                yield from walk(node, own, inside)

    yield from walk(tree, None, False)


def _left_out(node: ast.AST, parent: ast.AST) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "print"):
        return True  # what is said; that it is said is a statement of its own
    if isinstance(node, ast.Expr) and ast.unparse(node.value).startswith("report("):
        return True  # a word for the progress bar
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return True  # a guard against faults of ours, as an assertion is
    if isinstance(parent, ast.Call) and ast.unparse(parent.func) in CHECKS:
        return isinstance(node, ast.Constant) and isinstance(node.value, str)
    if isinstance(node, ast.JoinedStr):
        return not any(_is_brian2(part.value) for part in node.values if hasattr(part, "value"))
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Assert)


def _is_brian2(value: object) -> bool:
    """Whether a constant is text of the model."""
    return isinstance(value, str) and " = " in value and "*" in value


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node, with its line numbers."""
    for new in _bare_changes(node):
        yield ast.fix_missing_locations(ast.copy_location(new, node))


def _bare_changes(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for i, operator in enumerate(node.ops):
                ops: list[ast.cmpop] = [*node.ops]
                ops[i] = COMPARISONS[type(operator)]()
                yield ast.Compare(node.left, ops, node.comparators)
            if len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                yield ast.UnaryOp(ast.Not(), copy.copy(node))
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC:
            yield ast.BinOp(node.left, ARITHMETIC[type(operator)](), node.right)
        case ast.AugAssign(op=operator) if type(operator) in ARITHMETIC:
            yield ast.AugAssign(node.target, ARITHMETIC[type(operator)](), node.value)
            yield ast.Pass()
        case ast.BoolOp(op=operator):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield ast.BoolOp(other, node.values)
            for i in range(len(node.values)):
                yield ast.BoolOp(operator, [v for j, v in enumerate(node.values) if j != i])
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.IfExp():
            yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Constant(value=value):
            yield from (ast.Constant(other) for other in _other_values(value))
        case ast.Attribute(attr=name) if name in NAMES:
            yield ast.Attribute(node.value, NAMES[name], node.ctx)
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            yield ast.Name(NAMES[name], node.ctx)
        case ast.If(test=test) | ast.While(test=test):
            if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
                new = copy.copy(node)
                new.test = ast.UnaryOp(ast.Not(), test)
                yield new
        case ast.Return(value=value) if value is not None:
            if not (isinstance(value, ast.Constant) and value.value is None):
                yield ast.Return(ast.Constant(None))
        case ast.Slice(lower=lower, upper=upper, step=step):
            if upper is not None:
                yield ast.Slice(lower, None, step)
            if lower is not None:
                yield ast.Slice(None, upper, step)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case _ if isinstance(node, REMOVED):
            yield ast.Pass()


def _other_values(value: object) -> Iterator[object]:
    """Constants that may stand in the place of one."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        if value == 1:
            yield 0
    elif isinstance(value, float):
        yield 1.1 * value if value else 1.0
    elif _is_brian2(value):
        for old, new in BRIAN2.items():
            for match in re.finditer(re.escape(old), str(value)):
                yield match.string[: match.start()] + new + match.string[match.end() :]
    elif isinstance(value, str):
        yield value + "_"
