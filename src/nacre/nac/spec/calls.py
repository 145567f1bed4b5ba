"""The calls that instructions can make: those of ATen, and the format's own; their signatures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from nacre.core.aten import schemas as aten
from nacre.core.aten.schemas import Parameter, Schema, parse

# Calls that are none of ATen's: the operations of the format with conventions of their own, and
# functions of Python on sizes and on several results.
_OURS: Mapping[str, str] = {
    "self:T rest:a*": "nac.pass",
    "numbers:n* dtype:d? | layout:k? device:k? pin_memory:b?": "nac.arange",
    "self:T dim0:i? dim1:i?": "nac.transpose",
    "self:a index:i": "getitem",
    "self:n other:n": "mul floordiv",
}


@cache
def schemas() -> Mapping[str, Schema]:
    """Every schema by its call, `name.overload`."""
    own = {call: parse(call, text) for text, calls in _OURS.items() for call in calls.split()}
    return MappingProxyType({**aten.schemas(), **own})


# Codes of signatures that tensors have by the name of their argument.
_TENSOR_CODES: Mapping[str, str] = MappingProxyType(
    {
        "weight": "W", "bias": "B", "attn_mask": "M", "mask": "M", "attn_bias": "M", "query": "Q",
        "key": "K", "running_mean": "P", "running_var": "P",
    }
)  # fmt: skip
_AXES = frozenset({"dim", "dim0", "dim1", "dims", "axis", "start_dim", "end_dim"})
_CODES: Mapping[type, str] = MappingProxyType(
    {bool: "b", int: "i", float: "f", str: "s", tuple: "S"}
)


def tensor_code(schema: Schema, parameter: Parameter) -> str:
    """The code of a tensor among the arguments of a call."""
    if parameter.name == "value" and any(p.name == "query" for p in schema.parameters):
        return "V"
    return _TENSOR_CODES.get(parameter.name, "T")


def constant_code(parameter: Parameter, value: object) -> str:
    """The code of a constant among the arguments of a call."""
    if value is None or parameter.kind in "dk":
        return "c"
    if parameter.name in _AXES and isinstance(value, int) and not isinstance(value, bool):
        return "A"
    return _CODES[type(value)]
