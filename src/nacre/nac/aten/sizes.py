"""Calls on sizes and on several results: numbers of the program, not tensors."""

from __future__ import annotations

from math import prod

from nacre.nac.aten.elementwise import wanted_type
from nacre.nac.aten.handlers import handles
from nacre.nac.aten.use import AtenCall, Number, Unfit, Value


@handles("sym_size.int")
def sym_size(use: AtenCall) -> Number:
    """A dimension."""
    dims = use.shape_of("self")
    if not dims:
        raise Unfit("it is of a scalar")
    return Number(dims[use.axis()])


@handles("numel.default")
def numel(use: AtenCall) -> Number:
    """The number of elements."""
    return Number(prod(use.shape_of("self")))


@handles("mul", "floordiv")
def arithmetic(use: AtenCall) -> Number:
    """Sizes that are computed."""
    a, b = use.number("self"), use.number("other")
    if use.call == "floordiv" and b == 0:
        raise Unfit("a size is divided by 0")
    return Number(a * b if use.call == "mul" else a // b)


@handles("getitem")
def getitem(use: AtenCall) -> int | Number:
    """One of several results."""
    found, index = use.get("self"), use.integer("index")
    items = found if isinstance(found, tuple) else (found,)
    if not -len(items) <= index < len(items):
        raise Unfit(f"result {index} of {len(items)}")
    item = items[index]
    return item.id if isinstance(item, Value) else Number(item)


@handles("_assert_tensor_metadata.default")
def assert_metadata(use: AtenCall) -> Number:
    """Nothing, where a tensor is as it is said to be."""
    dtype, dims = use.dtype_of("a"), use.shape_of("a")
    if wanted_type(use, dtype) != dtype or (use.has("size") and use.integers("size") != dims):
        raise Unfit(f"a tensor is {dtype}{list(dims)}, which it must not be")
    return Number(None)
