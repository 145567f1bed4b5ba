"""Handlers that the rows of the table say alone: elementwise, one ATen call, no attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nacre.base.elements import GRAPH_TYPES
from nacre.core.ops import OPS
from nacre.core.specs import CLASSES, OpSpec
from nacre.core.torch.elements import element_name
from nacre.core.torch.library import torch
from nacre.core.torch.use import AtenCall, Handler

# What arithmetic on truth values means.
_OF_BOOL: Mapping[str, str] = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And", "Sub": "Xor"}
_OF_NUMBERS = frozenset({"Scalar", "Scalar_Tensor", "Tensor_Scalar"})
_ROUNDING = frozenset({"Ceil", "Floor", "Round", "Trunc"})


def derived() -> dict[str, Handler]:
    """Handlers by overload; where a call takes a tensor, its form for a number is the same."""
    found: dict[str, Handler] = {}
    for spec, op, call in _calls():
        handler = _handler(spec, op)
        name, _, overload = call.partition(".")
        found.setdefault(call, handler)
        others = getattr(torch().ops.aten, name).overloads() if overload == "Tensor" else ()
        for other in _OF_NUMBERS.intersection(others):
            found.setdefault(f"{name}.{other}", handler)
    return found


def _calls() -> Iterator[tuple[OpSpec, str | None, str]]:
    """Rows that one call computes from their operands and `op` alone."""
    for spec in OPS.values():
        is_plain = all(a.name == "op" for a in spec.attributes)
        if "elementwise" not in spec.traits or not is_plain:
            continue
        for op, calls in spec.aten.items():
            if len(calls) == 1:
                yield spec, op or None, calls[0]


def _handler(spec: OpSpec, op: str | None) -> Handler:
    def handler(use: AtenCall) -> int:
        names = use.names[: len(spec.operands)]
        dtype = common_type(use, *names)
        values = [use.value(name, dtype) for name in names]
        return function(use, spec, op, *values)

    return handler


def function(use: AtenCall, spec: OpSpec, op: str | None, *values: int) -> int:
    """An elementwise operation on values of one type."""
    dtype = use.type_of(values[0]).dtype
    if dtype == "bool" and spec.name == "BinOp":
        op = _OF_BOOL.get(op or "", op)
    accepted = spec.accepted(0, op)
    if accepted == "float" and GRAPH_TYPES[dtype].is_integer:
        if op in _ROUNDING:
            return values[0]
        if op in ("IsNan", "IsInf"):  # no integer is; one that is wide may round, but to a number
            values = tuple(use.cast(value, "f64") for value in values)
    elif accepted != "same" and dtype == "bool" and dtype not in CLASSES[accepted]:
        values = tuple(use.cast(value, use.dtype) for value in values)
    given = {} if op is None else {"op": op}
    return use.add(spec.name, *values, **given)


def common_type(use: AtenCall, *names: str) -> str:
    """The type in which PyTorch computes: that of the result, unless it only says yes or no."""
    if use.dtype != "bool":
        return use.dtype
    library = torch()
    metas = [use.metas[name] for name in names]
    if len(metas) == 1:
        return element_name(metas[0].dtype)
    return element_name(library.result_type(*metas))
