"""Calls on sizes and on several results: numbers of the program, not tensors."""

from __future__ import annotations

from math import prod

from nacre.core.aten.call import AtenCall, Number
from nacre.core.aten.handlers.elementwise import wanted_type
from nacre.core.aten.remedies import SCALAR
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


@handles("sym_size.int")
def sym_size(use: AtenCall) -> Number:
    """A dimension."""
    dims = use.shape_of("self")
    if not dims:
        raise Unsupported(*SCALAR)
    return Number(dims[use.axis()])


@handles("numel.default")
def numel(use: AtenCall) -> Number:
    """The number of elements."""
    return Number(prod(use.shape_of("self")))


@handles("_assert_tensor_metadata.default")
def assert_metadata(use: AtenCall) -> Number:
    """Nothing, where a tensor is as it is said to be."""
    dtype, dims = use.dtype_of("a"), use.shape_of("a")
    if wanted_type(use, dtype) != dtype or (use.has("size") and use.integers("size") != dims):
        raise Unsupported(f"a tensor is {dtype}{list(dims)}, which it must not be")
    return Number(None)
