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
_OF_NUMBERS = ("Scalar", "Scalar_Tensor", "Tensor_Scalar")
_ROUNDING = frozenset({"Ceil", "Floor", "Round", "Trunc"})
_OF_REALS = frozenset({"Exp", "Log"})
_TESTS = frozenset({"IsNan", "IsInf"})


def derive_handlers() -> dict[str, Handler]:
    """Handlers by call; where a call takes a tensor, its form for a number is the same."""
    handlers: dict[str, Handler] = {}
    known = schemas()
    for spec, op, call in _calls():
        handler = _handler(spec, op)
        name, _, overload = call.partition(".")
        forms = _OF_NUMBERS if overload == "Tensor" else ()
        for other in (call, *(f"{name}.{form}" for form in forms)):
            if other in known:
                handlers.setdefault(other, handler)
    return handlers


def _calls() -> Iterator[tuple[OpSpec, str | None, str]]:
    for spec in OPS.values():
        is_plain = all(a.name == "op" for a in spec.attributes)
        if "elementwise" in spec.traits and is_plain:
            for op, calls in spec.aten.items():
                if len(calls) == 1:
                    yield spec, op or None, calls[0]


def _handler(spec: OpSpec, op: str | None) -> Handler:
    def handler(call: AtenCall) -> int:
        names = call.names[: len(spec.operands)]
        dtype = _working_type(spec, op, call.common_type_of(*names))
        return add_elementwise(call, spec, op, *(call.value(name, dtype) for name in names))

    return handler


def add_elementwise(call: AtenCall, spec: OpSpec, op: str | None, *values: int) -> int:
    """An elementwise operation on values of one type."""
    dtype = call.type_of(values[0]).dtype
    if op in _ROUNDING and GRAPH_TYPES[dtype].kind != "float":
        return values[0]
    working = _working_type(spec, op, dtype)
    given = {} if op is None else {"op": _op_for_type(spec, op, dtype)}
    return call.add(spec.name, *(call.cast(value, working) for value in values), **given)


def _op_for_type(spec: OpSpec, op: str, dtype: str) -> str:
    return _OF_BOOL.get(op, op) if dtype == "bool" and spec.name == "BinOp" else op


def _working_type(spec: OpSpec, op: str | None, dtype: str) -> str:
    """The type in which an operation is computed on operands of one type."""
    word = None if op is None else _op_for_type(spec, op, dtype)
    accepted = spec.accepted_types(0, word)
    if GRAPH_TYPES[dtype].kind == "float" or word in _ROUNDING:
        return dtype
    is_quotient = spec.name == "BinOp" and word == "Div"  # a true one
    if is_quotient or accepted == "float" or spec.name in _OF_REALS:
        return "f64" if word in _TESTS else "f32"
    is_refused = accepted != "same" and dtype == "bool" and dtype not in CLASSES[accepted]
    return "i64" if is_refused else dtype
