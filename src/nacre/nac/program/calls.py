"""Calls that are the format's own, beside those of ATen.

Every operation of Core IR is a call, `core.NAME`, with its operands and then its attributes as
arguments: what has no exact form in ATen loses nothing in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from nacre.core.aten.call import AtenCall, Handler, Number, Value, as_axis
from nacre.core.aten.handlers.creation import count_up
from nacre.core.aten.handlers.elementwise import identity
from nacre.core.aten.handlers.shapes import swap_axes
from nacre.core.aten.schemas import Parameter, Schema
from nacre.core.ops import OPS, AttributeSpec
from nacre.core.unsupported import Unsupported
from nacre.core.values import Custom


def standard_transpose(call: AtenCall) -> int:
    """Two axes change places; without any named, all run backwards."""
    rank = len(call.shape_of("self"))
    if not call.has("dim0"):
        return call.transpose(call.value("self"), list(range(rank))[::-1])
    return swap_axes(
        call, *(as_axis(call.integer(name), max(rank, 1)) for name in ("dim0", "dim1"))
    )


def standard_arange(call: AtenCall) -> int:
    """The same of one to three numbers: an end; a start and an end; and a step."""
    numbers = list(call.get("numbers", ()))
    if not 1 <= len(numbers) <= 3 or not all(isinstance(n, int | float) for n in numbers):
        raise Unsupported(f"{len(numbers)} numbers, expected one to three")
    start, end = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    return count_up(call, start, end, numbers[2] if len(numbers) == 3 else 1, numbers)


def size_arithmetic(call: AtenCall) -> Number:
    """Sizes that are computed."""
    a, b = call.number("self"), call.number("other")
    if call.call == "floordiv" and b == 0:
        raise Unsupported("a size is divided by 0")
    return Number(a * b if call.call == "mul" else a // b)


def getitem(call: AtenCall) -> int | Number:
    """One of several results."""
    found, index = call.get("self"), call.integer("index")
    items = found if isinstance(found, tuple) else (found,)
    if not -len(items) <= index < len(items):
        raise Unsupported(f"result {index} of {len(items)}")
    item = items[index]
    return item.id if isinstance(item, Value) else Number(item)


_OWN: Mapping[str, Handler] = MappingProxyType(
    {
        "nac.pass": identity, "nac.arange": standard_arange, "nac.transpose": standard_transpose,
        "getitem": getitem, "mul": size_arithmetic, "floordiv": size_arithmetic,
    }
)  # fmt: skip


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its call, those of ATen and the format's own."""
    from nacre.core.aten.catalogue import handlers as aten_handlers

    return MappingProxyType({**aten_handlers(), **_OWN})


def handler_of(call: str) -> Handler:
    """The handler of a call that has a schema."""
    return handlers().get(call, core_handler)


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


def core_handler(call: AtenCall) -> int:
    """An operation of Core IR as it is."""
    spec = OPS[call.call.removeprefix(_PREFIX)]
    values: list[int] = []
    for name in spec.operands:
        argument = call.get(name)
        parts = argument if isinstance(argument, tuple) else () if argument is None else (argument,)
        values += [call.as_value(part, None, name) for part in parts]
    given = {a.name: _attribute_value(a, call.get(a.name, a.default)) for a in spec.attributes}
    return call.add(spec.name, *values, **{k: v for k, v in given.items() if v is not None})


def attribute_constant(attribute: AttributeSpec, value: Any) -> Any:  # noqa: ANN401
    """An attribute as a constant. Lists of floats are a text: those of the format have 32 bits."""
    if attribute.kind == "floats":
        return ",".join(map(repr, value))
    if isinstance(value, Custom):
        return ",".join(f"{before}:{behind}" for before, behind in value)
    return value


def _attribute_value(attribute: AttributeSpec, constant: Any) -> Any:  # noqa: ANN401 - see above
    """The attribute that a constant stands for."""
    if attribute.kind == "floats" and isinstance(constant, str):
        return tuple(float(part) for part in constant.split(",") if part)
    if attribute.kind == "padding" and ":" in str(constant):
        pairs = [part.split(":") for part in str(constant).split(",")]
        return Custom((int(before), int(behind)) for before, behind in pairs)
    if attribute.kind == "ints" and not isinstance(constant, tuple):
        raise Unsupported(f"`{attribute.name}` is no list")
    return constant
