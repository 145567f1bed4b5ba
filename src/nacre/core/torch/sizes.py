"""Sizes that a program leaves open: what was given for them, and what would fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from nacre.base.diagnostics import InputError
from nacre.base.hints import setting
from nacre.base.suggest import did_you_mean
from nacre.core.importing.findings import finding
from nacre.core.rules.torch import TCH06
from nacre.core.torch.library import torch

Shapes = Mapping[str, Sequence[int]]
_EVERY = "give a size for every dimension, and no other where the program has one"
# What `torch.export` assumes of an open size: it lets smaller ones pass all the same.
_ASSUMED = 2


@dataclass(eq=False)
class Sizes:
    """The open sizes of a program, as symbols, and the numbers that were found for them."""

    ranges: Mapping[Any, Any]  # by expression
    found: dict[Any, int] = field(default_factory=dict)  # by symbol
    first: dict[Any, str] = field(default_factory=dict)  # where a symbol was found

    def at(self, dim: Any) -> Any:  # noqa: ANN401 - a number or an expression
        """What a size comes to by the numbers that were found."""
        return dim if isinstance(dim, int) else _substitute(dim.node.expr, self.found)

    def objection(self, dim: Any, size: int, place: str) -> str | None:  # noqa: ANN401
        """Why an open size cannot be this number; else what follows from it is remembered."""
        lowest, highest = self._range(dim)
        if (size < lowest and lowest > _ASSUMED) or (highest is not None and size > highest):
            most = "more" if highest is None else str(highest)
            return f"the program says {lowest} {'or' if highest is None else 'to'} {most}"
        rest = self.at(dim)
        if rest.is_number:
            origins = sorted({self.first[s] for s in dim.node.expr.free_symbols})
            return None if rest == size else f"{dim} is {rest} by {', '.join(origins)}"
        if len(rest.free_symbols) > 1:
            return None  # PyTorch says whether they go together
        (symbol,) = rest.free_symbols
        start, term = rest.as_independent(symbol, as_Add=True)
        factor, alone = term.as_independent(symbol, as_Add=False)
        if alone != symbol or not (start.is_Integer and factor.is_Integer):
            return None
        number, left = divmod(size - int(start), int(factor))
        if left:
            return f"the program says {dim}"
        if number < 1:
            return None
        self.found[symbol], self.first[symbol] = number, place
        return None

    def example(self, meta: Any) -> tuple[int, ...]:  # noqa: ANN401 - a fake tensor
        """A shape that fits: as it follows from what was given, else the smallest."""
        return tuple(self._suggestion(dim) for dim in getattr(meta, "shape", ()))

    def _suggestion(self, dim: Any) -> int:  # noqa: ANN401 - a number or a symbol
        rest = self.at(dim)
        if isinstance(rest, int):
            return rest
        size = _substitute(rest, {symbol: self._least(symbol) for symbol in rest.free_symbols})
        return max(int(size), 1) if size.is_Integer else 1

    def _least(self, symbol: Any) -> int:  # noqa: ANN401 - a symbol
        known = self.ranges.get(symbol)
        return max(int(known.lower), 1) if known is not None and known.lower.is_Integer else 1

    def _range(self, dim: Any) -> tuple[int, int | None]:  # noqa: ANN401 - a symbol
        known = self.ranges.get(dim.node.expr)
        if known is None:
            return 1, None
        lowest = int(known.lower) if known.lower.is_Integer else 1
        return max(lowest, 1), int(known.upper) if known.upper.is_Integer else None


def _substitute(expression: Any, numbers: Mapping[Any, int]) -> Any:  # noqa: ANN401 - of sympy
    try:
        return expression.subs(numbers)
    except ZeroDivisionError:  # it has no size for these
        return expression


def examples_of(program: Any, shapes: Shapes, name: str) -> tuple[Any, Any] | None:  # noqa: ANN401
    """Arguments of the given shapes to export a program with; None where that is not needed.

    InputError where the shapes do not fit. An input that is still open is reported with the rest
    of the interface.
    """
    metas = _input_metas(program)
    objections = list(_objections(program, metas, shapes))
    if objections:
        raise InputError([finding(TCH06, name, message, help_) for message, help_ in objections])
    opened = [user for user, meta in metas.items() if _is_open(meta)]
    if not opened or any(user not in shapes for user in opened):
        return None
    leaves = [_example(meta, shapes.get(user)) for user, meta in metas.items()]
    args, kwargs = torch().utils._pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return args, kwargs


def shape_option(name: str, shape: Sequence[int]) -> str:
    """How a shape is given to an input."""
    sizes = "x".join(map(str, shape))
    return setting(f"`--shape {name}={sizes}`", f'shapes={{"{name}": {tuple(shape)}}}')


def suggestions(program: Any, shapes: Shapes) -> dict[str, tuple[str, tuple[int, ...]]]:  # noqa: ANN401
    """Open inputs that no shape was given for: what the program says, and what would fit."""
    metas = _input_metas(program)
    opened = {u: m for u, m in metas.items() if _is_open(m) and u not in shapes}
    if not opened:
        return {}
    sizes = Sizes(program.range_constraints)
    list(_contradictions(sizes, metas, shapes))  # for what follows from the others
    return {user: (_shape_text(meta), sizes.example(meta)) for user, meta in opened.items()}


def _input_metas(program: Any) -> dict[str, Any]:  # noqa: ANN401 - ExportedProgram
    nodes = {n.name: n for n in program.graph_module.graph.nodes if n.op == "placeholder"}
    users = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    return {user: nodes[user].meta.get("val") for user in users}


def _objections(
    program: Any,  # noqa: ANN401 - ExportedProgram
    metas: Mapping[str, Any],
    shapes: Shapes,
) -> Iterator[tuple[str, str]]:
    sizes, fitting = Sizes(program.range_constraints), {}
    for given, wanted in shapes.items():
        if given not in metas:
            hint = did_you_mean(given, metas) or f"the inputs are {', '.join(metas)}"
            yield f"the program has no input `{given}`", hint
        elif not _are_sizes(wanted):
            message = f"input `{given}` was given the shape {wanted!r}, expected integers from 1"
            yield message, shape_option(given, sizes.example(metas[given]))
        elif not _fits(metas[given], wanted):
            message = f"input `{given}` was given the shape {list(wanted)}, the program says"
            yield f"{message} [{_shape_text(metas[given])}]", _EVERY
        else:
            fitting[given] = wanted
    yield from _contradictions(sizes, metas, fitting)


def _contradictions(
    sizes: Sizes, metas: Mapping[str, Any], shapes: Shapes
) -> Iterator[tuple[str, str]]:
    """Open sizes outside of their ranges, or that contradict each other."""
    places = [
        (user, axis, dim, int(size))
        for user, wanted in shapes.items()
        for axis, (dim, size) in enumerate(zip(metas[user].shape, wanted, strict=True))
        if not isinstance(dim, int)
    ]
    # What is a symbol alone says what the others are made of.
    for user, axis, dim, size in sorted(places, key=lambda place: not place[2].node.expr.is_symbol):
        reason = sizes.objection(dim, size, f"axis {axis} of `{user}`")
        if reason is not None:
            message = f"input `{user}` was given {size} for axis {axis}, {reason}"
            yield message, "give sizes that the program was exported for, or export it for others"


def _are_sizes(wanted: object) -> bool:
    return (
        isinstance(wanted, Sequence)
        and all(isinstance(size, Integral) and not isinstance(size, bool) for size in wanted)
        and all(size >= 1 for size in wanted)
    )


def _is_open(meta: Any) -> bool:  # noqa: ANN401 - a fake tensor
    return any(not isinstance(dim, int) for dim in getattr(meta, "shape", ()))


def _shape_text(meta: Any) -> str:  # noqa: ANN401 - a fake tensor
    return ", ".join(str(dim) for dim in getattr(meta, "shape", ()))


def _fits(meta: Any, wanted: Sequence[int]) -> bool:  # noqa: ANN401 - a fake tensor
    dims = getattr(meta, "shape", None)
    if dims is None or len(dims) != len(wanted):
        return False
    return all(not isinstance(d, int) or d == w for d, w in zip(dims, wanted, strict=True))


def _example(meta: Any, shape: Sequence[int] | None) -> Any:  # noqa: ANN401 - a fake tensor
    if not hasattr(meta, "dtype"):
        return meta
    sizes = tuple(int(dim) for dim in shape or meta.shape)
    return torch().zeros(sizes, dtype=meta.dtype)
