"""Attributes of tasks against the registry: their kind, length and range."""

from __future__ import annotations

import math

from msgspec import Struct

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.excerpt import backquote
from nacre.nem.model.program import Region, Task
from nacre.nem.model.symbols import Symbol
from nacre.nem.plan.columns import as_term
from nacre.nem.spec.opcodes import AttributeSpec
from nacre.nem.syntax import ast

_EXPECTED = {
    "int": "an integer",
    "float": "a number",
    "bool": "`true` or `false`",
    "elem_type": "an element type",
    "int_list": "a list of integers",
    "string": "a string",
    "id": "a word",
}


class Problem(Struct, frozen=True):
    """What is wrong with a value, and where; `text` goes on after the attribute's name."""

    node: ast.Node
    text: str


def attribute_node(task: Task, name: str) -> ast.Attribute | None:
    """Where an attribute is given."""
    if isinstance(task.node, ast.Copy):
        return None
    return next((a for a in task.node.attributes if a.name.name == name), None)


def attribute_value(task: Task, spec: AttributeSpec) -> object:
    """An attribute's value, or its default; None where it is missing or nothing can be made of it.

    Integers may depend on loop variables; whether they are in range is not asked here.
    """
    node = attribute_node(task, spec.name)
    if node is None:
        return spec.default
    value = task.attributes.get(spec.name)
    if value is None or kind_problem(spec, value, node.value) is not None:
        return None
    return None if isinstance(value, tuple) and None in value else value


def kind_problem(spec: AttributeSpec, value: object, node: ast.Value) -> Problem | None:
    """Why a value is not of the attribute's kind; None for one that has been reported."""
    if value is None:
        return None
    if spec.type == "int_list":
        return _list_problem(spec, value, node)
    if not _is_kind(spec, value, node):
        return Problem(node, f"is {value_text(value, node)}, expected {_EXPECTED[spec.type]}")
    if spec.allowed and value not in spec.allowed:
        return Problem(node, f"is {backquote(str(value))}, expected {alternatives(spec.allowed)}")
    return None


def _is_kind(spec: AttributeSpec, value: object, node: ast.Value) -> bool:
    if spec.type == "bool":
        return isinstance(value, bool)
    if spec.type == "int":
        return as_term(value) is not None
    if spec.type == "float":
        return as_term(value) is not None or (isinstance(value, float) and math.isfinite(value))
    if spec.type == "string":
        return isinstance(value, str)
    is_word = isinstance(value, str) and not isinstance(node, ast.StringLit)
    return is_word and (spec.type == "id" or value in ELEMENT_TYPES)


def _list_problem(spec: AttributeSpec, value: object, node: ast.Value) -> Problem | None:
    if not isinstance(value, tuple):
        return Problem(node, f"is {value_text(value, node)}, expected {_EXPECTED[spec.type]}")
    for index, item in enumerate(value):
        if item is not None and as_term(item) is None:
            item_at = item_node(node, index)
            return Problem(item_at, f"holds {value_text(item, item_at)}, expected integers")
    if spec.length is not None and len(value) != spec.length:
        count = f"{len(value)} value{'s' if len(value) != 1 else ''}"
        return Problem(node, f"has {count}, expected {spec.length}: {spec.summary}")
    return None


def item_node(node: ast.Value, index: int) -> ast.Value:
    """Where an item of a list stands: in the list, or where the name of the list stands."""
    return node.items[index] if isinstance(node, ast.ListLit) else node


def alternatives(words: tuple[str, ...]) -> str:
    """`` `a`, `b` or `c` ``."""
    quoted_words = [f"`{word}`" for word in words]
    return " or ".join((", ".join(quoted_words[:-1]), quoted_words[-1]))


def value_text(value: object, node: ast.Node) -> str:
    """A value as messages put it."""
    if isinstance(value, bool):
        return f"the boolean `{str(value).lower()}`"
    if isinstance(value, int):
        return f"the integer {value}"
    if isinstance(value, float):
        return f"the float {value}"
    if isinstance(value, str):
        return f"the {'string' if isinstance(node, ast.StringLit) else 'word'} {backquote(value)}"
    if isinstance(value, tuple):
        return "a list"
    if isinstance(value, Symbol):
        return value.description
    return "a region" if isinstance(value, Region) else "an integer that varies with the loop"
