"""Calls along axes, and those that order elements."""

from __future__ import annotations

from math import inf, prod

from nacre.core.aten.call import AtenCall, as_axis
from nacre.core.aten.handlers.elementwise import is_integer, wanted_type
from nacre.core.aten.remedies import EMPTY, SCALAR
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

# By the name of the call: the operation and its `op`.
_REDUCE = {
    "sum": ("Sum", None), "mean": ("Mean", None), "amax": ("Reduce", "Max"),
    "amin": ("Reduce", "Min"), "max": ("Reduce", "Max"), "min": ("Reduce", "Min"),
    "prod": ("Reduce", "Prod"), "logsumexp": ("Reduce", "LogSumExp"),
}  # fmt: skip
_WIDENING = frozenset({"sum", "prod", "cumsum", "cumprod"})  # of integers: in i64


def axes_of(use: AtenCall) -> tuple[int, ...]:
    """The axes of a reduction; none named means all."""
    rank = len(use.shape_of("self"))
    given = use.integers("dim") if use.has("dim") else ()
    return tuple(sorted({as_axis(a, max(rank, 1)) for a in given})) if given else tuple(range(rank))


def reduce(use: AtenCall, opcode: str, op: str | None, value: int, axes: tuple[int, ...]) -> int:
    """A reduction; with `keepdim` its axes stay with size 1."""
    given = {} if op is None else {"op": op}
    dims = use.type_of(value).shape
    keepdims = bool(use.get("keepdim", False))
    if not dims:  # a scalar counts as one element
        made = use.add(opcode, use.reshape(value, (1,)), axes=(0,), keepdims=False, **given)
        return use.reshape(made, ())
    return use.add(opcode, value, axes=axes, keepdims=keepdims, **given)


def _working_type(use: AtenCall) -> str:
    found = use.dtype_of("self")
    return wanted_type(use, "i64" if use.name in _WIDENING and is_integer(found) else found)


@handles("sum.dim_IntList", "sum.default", "mean.dim", "mean.default", "amax.default",
         "amin.default", "max.default", "min.default", "prod.dim_int", "prod.default",
         "logsumexp.default")  # fmt: skip
def reduction(use: AtenCall) -> int:
    """A reduction over axes, or over all."""
    opcode, op = _REDUCE[use.name]
    dtype = _working_type(use)
    if use.name == "mean" and is_integer(dtype):
        raise Unsupported(f"a mean of {dtype}")
    return reduce(use, opcode, op, use.value("self", dtype), axes_of(use))


@handles("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def truths(use: AtenCall) -> int:
    """Whether any, or every, element is true."""
    op = "Any" if use.name == "any" else "All"
    made = reduce(use, "Reduce", op, use.value("self", "bool"), axes_of(use))
    return use.cast(made, "u8") if use.dtype_of("self") == "u8" else made


@handles("max.dim", "min.dim")
def extremum_with_place(use: AtenCall) -> list[int]:
    """The largest or smallest element along an axis, and where it lies."""
    is_max = use.name == "max"
    x, axis, keepdims = use.value("self"), use.axis(), bool(use.get("keepdim", False))
    if use.type_of(x).rank == 0:
        raise Unsupported(*SCALAR)
    value = reduce(use, "Reduce", "Max" if is_max else "Min", x, (axis,))
    return [value, use.add("ArgMax" if is_max else "ArgMin", x, axis=axis, keepdims=keepdims)]


@handles("argmax.default", "argmin.default")
def argument(use: AtenCall) -> int:
    """Where the largest or smallest element lies, along an axis or among all."""
    opcode = "ArgMax" if use.name == "argmax" else "ArgMin"
    x, dims = use.value("self"), use.shape_of("self")
    keepdims = bool(use.get("keepdim", False))
    if use.has("dim") and dims:
        return use.add(opcode, x, axis=use.axis(), keepdims=keepdims)
    made = use.add(opcode, use.reshape(x, (prod(dims),)), axis=0)
    return use.reshape(made, (1,) * len(dims)) if keepdims else made


@handles("cumsum.default", "cumprod.default")
def cumulative(use: AtenCall) -> int:
    """The sum or product of the elements so far."""
    opcode = "CumSum" if use.name == "cumsum" else "CumProd"
    x = use.value("self", _working_type(use))
    return use.add(opcode, x, axis=use.axis()) if use.type_of(x).rank else x


@handles("var.correction", "var_mean.correction", "std.correction", "var.dim", "std.dim",
         "var.default", "std.default")  # fmt: skip
def variance(use: AtenCall) -> int | list[int]:
    """The mean square distance from the mean, over the count less a correction."""
    axes, dims = axes_of(use), use.shape_of("self")
    count = prod(dims[a] for a in axes)
    has_word = "unbiased" in use.names
    correction = float(use.get("unbiased", True)) if has_word else use.number("correction", 1)
    left = count - correction
    if left <= 0:
        reason = f"{count} elements less the correction {correction} leave none"
        raise Unsupported(reason, "use `correction=0`")
    x = use.value("self")
    mean = use.add("Mean", x, axes=axes, keepdims=True)
    away = use.binary("Sub", x, mean)
    total = reduce(use, "Sum", None, use.binary("Mul", away, away), axes)
    made = use.binary("Div", total, use.scalar(left, use.dtype_of("self")))
    if use.name == "std":
        return use.unary("Sqrt", made)
    return [made, use.reshape(mean, use.type_of(made).shape)] if "mean" in use.name else made


@handles("linalg_vector_norm.default")
def norm(use: AtenCall) -> int:
    """The p-norm over axes."""
    order, dtype = float(use.number("ord", 2)), wanted_type(use, use.dtype_of("self"))
    x, axes = use.value("self", dtype), axes_of(use)
    if order in (1.0, 2.0):
        return reduce(use, "Reduce", f"L{order:.0f}", x, axes)
    size = use.unary("Abs", x)
    if abs(order) == inf:
        return reduce(use, "Reduce", "Max" if order > 0 else "Min", size, axes)
    if order == 0.0:
        there = use.add("Compare", x, use.scalar(0, dtype), op="Ne")
        return reduce(use, "Sum", None, use.cast(there, dtype), axes)
    powers = use.binary("Pow", size, use.scalar(order, dtype))
    total = reduce(use, "Sum", None, powers, axes)
    return use.binary("Pow", total, use.scalar(1 / order, dtype))


@handles("topk.default", "sort.default", "sort.stable")
def order(use: AtenCall) -> list[int]:
    """Elements in order, or the first k of them, and where they lie; the first of equals first."""
    x, dims = use.value("self"), use.shape_of("self")
    if not dims:
        raise Unsupported(*SCALAR)
    axis = use.axis(default=-1)
    is_sort = use.name == "sort"
    count = dims[axis] if is_sort else use.integer("k")
    largest = bool(use.get("descending", False) if is_sort else use.get("largest", True))
    if count == 0:
        raise Unsupported(*EMPTY)
    if not 1 <= count <= dims[axis]:
        raise Unsupported(f"{count} elements of an axis of {dims[axis]}")
    given = {"k": count, "axis": axis, "largest": largest}
    return [use.add(opcode, x, **given) for opcode in ("TopKValues", "TopKIndices")]
