"""Handlers that the rows of Core IR say alone: elementwise, one call, no attribute but `op`.

Beside them, every operation of Core IR is a call of its own, `core.NAME`, with its operands and
then its attributes as arguments: what has no exact form in ATen loses nothing in a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from nacre.base.elements import GRAPH_TYPES
from nacre.core.ops import OPS, AttributeSpec, OpSpec
from nacre.core.specs import CLASSES
from nacre.core.values import Custom
from nacre.nac.aten.use import AtenCall, Handler, Unfit
from nacre.nac.spec.aten import Parameter, Schema, schemas

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


# Operations of Core IR under their own names

_PREFIX = "core."
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "int": "i", "float": "f", "bool": "b", "string": "s", "word": "s", "dtype": "s",
        "padding": "s", "ints": "I", "floats": "s",
    }
)  # fmt: skip


@cache
def core_schema(call: str) -> Schema | None:
    """The schema of an operation of Core IR; None where a call is none."""
    spec = OPS.get(call.removeprefix(_PREFIX)) if call.startswith(_PREFIX) else None
    if spec is None or spec.primitive is None:
        return None
    last = len(spec.operands) - 1
    operands = [
        Parameter(
            name,
            "T",
            is_list=spec.most is None and index == last,
            is_optional=index >= spec.least,
            has_default=index >= spec.least,
        )
        for index, name in enumerate(spec.operands)
    ]
    return Schema(call, (*operands, *map(_parameter, spec.attributes)))


def _parameter(attribute: AttributeSpec) -> Parameter:
    has_default = not attribute.is_required
    default = attribute.default
    return Parameter(
        attribute.name, _KINDS[attribute.kind], has_default=has_default, default=default
    )


def core_handler(use: AtenCall) -> int:
    """An operation of Core IR as it is."""
    spec = OPS[use.call.removeprefix(_PREFIX)]
    values: list[int] = []
    for name in spec.operands:
        found = use.get(name)
        parts = found if isinstance(found, tuple) else () if found is None else (found,)
        values += [use.taken(part, None, name) for part in parts]
    given = {a.name: _attribute(a, use.get(a.name, a.default)) for a in spec.attributes}
    return use.add(spec.name, *values, **{k: v for k, v in given.items() if v is not None})


def attribute_constant(attribute: AttributeSpec, value: Any) -> Any:  # noqa: ANN401
    """An attribute as a constant. Lists of floats are a text: those of the format have 32 bits."""
    if attribute.kind == "floats":
        return ",".join(map(repr, value))
    if isinstance(value, Custom):
        return ",".join(f"{before}:{behind}" for before, behind in value)
    return value


def _attribute(attribute: AttributeSpec, found: Any) -> Any:  # noqa: ANN401 - see above
    """The attribute that a constant stands for."""
    if attribute.kind == "floats" and isinstance(found, str):
        return tuple(float(part) for part in found.split(",") if part)
    if attribute.kind == "padding" and ":" in str(found):
        pairs = [part.split(":") for part in str(found).split(",")]
        return Custom((int(before), int(behind)) for before, behind in pairs)
    if attribute.kind == "ints" and not isinstance(found, tuple):
        raise Unfit(f"`{attribute.name}` is no list")
    return found
