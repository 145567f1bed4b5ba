"""What a `.pt2` says about the values of its graph, without what nobody asks for.

PyTorch reads some thousand JSON objects a second, and hands every open size to sympy, the same one
again each time it stands somewhere. But the sizes of values that are computed follow from those of
the inputs, and PyTorch derives them anew when the program is made of functions. So a size that was
open is given as the number that it was in the example, except where it says what an input may be,
and values or ranges that nothing names are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Json = Any
LONGEST_NAME = 1000
MOST_OPEN_AXES = 8  # of one value: PyTorch compares each with each, again and again
_TABLES = ("tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values",
           "custom_obj_values")  # fmt: skip
_SIZES = ("sizes", "strides")
_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_MOST_HINT = 1 << 62


_IDENTIFIERS = re.compile(r"[\w.]*")
_WEIGHT_NAMES = re.compile(r"[^\"'\\\x00-\x1f\x7f-\x9f\u2028\u2029]*")


def objects_of(json_value: Json) -> Iterator[dict[str, Any]]:
    """Every object of a JSON value, the outer ones first."""
    waiting = [json_value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def unfit_name(model: Json) -> str | None:
    """A name that is no part of a program: PyTorch writes names into code, which it runs."""
    for entry in objects_of(model):
        for key, value in entry.items():
            if not isinstance(value, str):
                continue
            form = _IDENTIFIERS if key in ("name", "as_name") else _WEIGHT_NAMES
            if key.endswith("name") and not form.fullmatch(value):
                return value
    return None


def repeated_output(model: Json) -> str | None:
    """A value that two nodes of a graph give, of which PyTorch makes ever longer names."""
    for graph in objects_of(model):
        nodes = graph.get("nodes")
        seen: set[str] = set()
        for node in nodes if isinstance(nodes, list) else ():
            for name in _output_names(node):
                if name in seen:
                    return name
                seen.add(name)
    return None


def _output_names(node: Json) -> Iterator[str]:
    outputs = node.get("outputs") if isinstance(node, dict) else None
    for found in objects_of(outputs):
        for key in ("name", "as_name"):
            if isinstance(found.get(key), str):
                yield found[key]


def prune_values(model: Json) -> None:
    """Leave out what says nothing about the graph, and give sizes as numbers where they follow."""
    graphs = [found for found in objects_of(model) if isinstance(found.get("tensor_values"), dict)]
    names = _names_in_use(model, graphs)
    for graph in graphs:
        for table in _TABLES:
            if isinstance(graph.get(table), dict):
                graph[table] = {n: v for n, v in graph[table].items() if n in names}
        inputs = set(_texts(graph.get("inputs")))
        for name, value in graph["tensor_values"].items():
            if name not in inputs and isinstance(value, dict):
                _fix_sizes(value)
    _prune_ranges(model)


def long_name(model: Json) -> str | None:
    """A name that is longer than any that PyTorch gives; None where there is none."""
    for entry in objects_of(model):
        for table in (entry, *(t for t in map(entry.get, _TABLES) if isinstance(t, dict))):
            for name in table:
                if len(name) > LONGEST_NAME:
                    return str(name)
        for key in ("name", "as_name"):
            name = entry.get(key)
            if isinstance(name, str) and len(name) > LONGEST_NAME:
                return name
    return None


def most_open_axes(model: Json) -> int:
    """How many sizes of a value are open, of that which has most."""
    values = (v for found in objects_of(model) for v in _entries(found.get("tensor_values")))
    return max((sum(map(_is_open, size)) for size in map(_sizes, values)), default=0)


def _entries(table: Json) -> list[Any]:
    return list(table.values()) if isinstance(table, dict) else []


def _sizes(value: Json) -> list[Any]:
    found = value.get("sizes") if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _is_open(size: Json) -> bool:
    return isinstance(size, dict) and "as_expr" in size


def _names_in_use(model: Json, graphs: list[dict[str, Any]]) -> set[str]:
    """Every text outside of the tables of values."""
    tables = {id(graph.get(table)) for graph in graphs for table in _TABLES}
    return set(_texts(model, tables))


def _texts(json_value: Json, passed_over: frozenset[int] | set[int] = frozenset()) -> Iterator[str]:
    waiting = [json_value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif id(value) in passed_over:
            continue
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _fix_sizes(value: dict[str, Any]) -> None:
    for key in _SIZES:
        if isinstance(value.get(key), list):
            value[key] = [_number(size) for size in value[key]]
    if "storage_offset" in value:
        value["storage_offset"] = _number(value["storage_offset"])


def _number(size: Json) -> Json:
    """A size as it was in the example; as it is where the file does not say."""
    expression = size.get("as_expr") if isinstance(size, dict) else None
    hint = expression.get("hint") if isinstance(expression, dict) else None
    number = hint.get("as_int") if isinstance(hint, dict) else None
    return {"as_int": number} if type(number) is int and 0 <= number < _MOST_HINT else size


def _prune_ranges(model: Json) -> None:
    """Leave out ranges of symbols that no size has."""
    ranges = model.get("range_constraints") if isinstance(model, dict) else None
    if not isinstance(ranges, dict):
        return
    sizes = (found.get("expr_str") for found in objects_of(model))
    symbols = {word for text in sizes if isinstance(text, str) for word in _SYMBOL.findall(text)}
    model["range_constraints"] = {
        name: limits for name, limits in ranges.items() if symbols.issuperset(_SYMBOL.findall(name))
    }
