"""Calls on sizes and on several results: numbers of the program, not tensors."""

from __future__ import annotations

from math import prod

from nacre.core.aten.call import AtenCall, Number
from nacre.core.aten.handlers.elementwise import wanted_type
from nacre.core.aten.remedies import SCALAR
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


@handles("sym_size.int")
def sym_size(call: AtenCall) -> Number:
    """A dimension."""
    dims = call.shape_of("self")
    if not dims:
        raise Unsupported(*SCALAR)
    return Number(dims[call.axis()])


@handles("numel.default")
def numel(call: AtenCall) -> Number:
    """The number of elements."""
    return Number(prod(call.shape_of("self")))


@handles("_assert_tensor_metadata.default")
def assert_metadata(call: AtenCall) -> Number:
    """Nothing, where a tensor is as it is said to be."""
    dtype, dims = call.dtype_of("a"), call.shape_of("a")
    if wanted_type(call, dtype) != dtype or (call.has("size") and call.integers("size") != dims):
        raise Unsupported(f"a tensor is {dtype}{list(dims)}, which it must not be")
    return Number(None)
