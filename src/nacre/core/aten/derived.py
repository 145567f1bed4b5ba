"""Handlers that the rows of Core IR say alone: elementwise, one call, no attribute but `op`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall, Handler
from nacre.core.aten.schemas import schemas
from nacre.core.ops import OPS, OpSpec
from nacre.core.specs import CLASSES

# What arithmetic on truth values means.
_OF_BOOL: Mapping[str, str] = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And", "Sub": "Xor"}
_ROUNDING = frozenset({"Ceil", "Floor", "Round", "Trunc"})
_OF_REALS = frozenset({"Exp", "Log"})
_TESTS = frozenset({"IsNan", "IsInf"})


def derived() -> dict[str, Handler]:
    """Handlers by call; where a call takes a tensor, its form for a number is the same."""
    found: dict[str, Handler] = {}
    known = schemas()
    for spec, op, call in _calls():
        handler = _handler(spec, op)
        name, _, overload = call.partition(".")
        for other in (call, f"{name}.Scalar", f"{name}.Tensor_Scalar"):
            if other in known and (other == call or overload == "Tensor"):
                found.setdefault(other, handler)
    return found


def _calls() -> Iterator[tuple[OpSpec, str | None, str]]:
    for spec in OPS.values():
        is_plain = all(a.name == "op" for a in spec.attributes)
        if "elementwise" in spec.traits and is_plain:
            for op, calls in spec.aten.items():
                if len(calls) == 1:
                    yield spec, op or None, calls[0]


def _handler(spec: OpSpec, op: str | None) -> Handler:
    def handler(use: AtenCall) -> int:
        names = use.names[: len(spec.operands)]
        dtype = use.common(*names)
        return function(use, spec, op, *(use.value(name, dtype) for name in names))

    return handler


def function(use: AtenCall, spec: OpSpec, op: str | None, *values: int) -> int:
    """An elementwise operation on values of one type."""
    dtype = use.type_of(values[0]).dtype
    is_float = GRAPH_TYPES[dtype].kind == "float"
    if dtype == "bool" and spec.name == "BinOp":
        op = _OF_BOOL.get(op or "", op)
    accepted = spec.accepted(0, op)
    if spec.name == "BinOp" and op == "Div" and not is_float:  # a true quotient
        values = tuple(use.cast(value, "f32") for value in values)
    elif (accepted == "float" or spec.name in _OF_REALS) and not is_float:
        if op in _ROUNDING:
            return values[0]
        values = tuple(use.cast(value, "f64" if op in _TESTS else "f32") for value in values)
    elif accepted != "same" and dtype == "bool" and dtype not in CLASSES[accepted]:
        values = tuple(use.cast(value, "i64") for value in values)
    given = {} if op is None else {"op": op}
    return use.add(spec.name, *values, **given)
