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


def axes_of(call: AtenCall) -> tuple[int, ...]:
    """The axes of a reduction; none named means all."""
    rank = len(call.shape_of("self"))
    given = call.integers("dim") if call.has("dim") else ()
    return tuple(sorted({as_axis(a, max(rank, 1)) for a in given})) if given else tuple(range(rank))


def reduce(call: AtenCall, opcode: str, op: str | None, value: int, axes: tuple[int, ...]) -> int:
    """A reduction; with `keepdim` its axes stay with size 1."""
    given = {} if op is None else {"op": op}
    dims = call.type_of(value).shape
    keepdims = bool(call.get("keepdim", False))
    if not dims:  # a scalar counts as one element
        reduced = call.add(opcode, call.reshape(value, (1,)), axes=(0,), keepdims=False, **given)
        return call.reshape(reduced, ())
    return call.add(opcode, value, axes=axes, keepdims=keepdims, **given)


def _working_type(call: AtenCall) -> str:
    found = call.dtype_of("self")
    return wanted_type(call, "i64" if call.name in _WIDENING and is_integer(found) else found)


@handles("sum.dim_IntList", "sum.default", "mean.dim", "mean.default", "amax.default",
         "amin.default", "max.default", "min.default", "prod.dim_int", "prod.default",
         "logsumexp.default")  # fmt: skip
def reduction(call: AtenCall) -> int:
    """A reduction over axes, or over all."""
    opcode, op = _REDUCE[call.name]
    dtype = _working_type(call)
    if call.name == "mean" and is_integer(dtype):
        raise Unsupported(f"a mean of {dtype}")
    return reduce(call, opcode, op, call.value("self", dtype), axes_of(call))


@handles("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def any_or_all(call: AtenCall) -> int:
    """Whether any, or every, element is true."""
    op = "Any" if call.name == "any" else "All"
    made = reduce(call, "Reduce", op, call.value("self", "bool"), axes_of(call))
    return call.cast(made, "u8") if call.dtype_of("self") == "u8" else made


@handles("max.dim", "min.dim")
def extremum_with_index(call: AtenCall) -> list[int]:
    """The largest or smallest element along an axis, and where it lies."""
    is_max = call.name == "max"
    x, axis, keepdims = call.value("self"), call.axis(), bool(call.get("keepdim", False))
    if call.type_of(x).rank == 0:
        raise Unsupported(*SCALAR)
    value = reduce(call, "Reduce", "Max" if is_max else "Min", x, (axis,))
    return [value, call.add("ArgMax" if is_max else "ArgMin", x, axis=axis, keepdims=keepdims)]


@handles("argmax.default", "argmin.default")
def arg_extremum(call: AtenCall) -> int:
    """Where the largest or smallest element lies, along an axis or among all."""
    opcode = "ArgMax" if call.name == "argmax" else "ArgMin"
    x, dims = call.value("self"), call.shape_of("self")
    keepdims = bool(call.get("keepdim", False))
    if call.has("dim") and dims:
        return call.add(opcode, x, axis=call.axis(), keepdims=keepdims)
    position = call.add(opcode, call.reshape(x, (prod(dims),)), axis=0)
    return call.reshape(position, (1,) * len(dims)) if keepdims else position


@handles("cumsum.default", "cumprod.default")
def cumulative(call: AtenCall) -> int:
    """The sum or product of the elements so far."""
    opcode = "CumSum" if call.name == "cumsum" else "CumProd"
    x = call.value("self", _working_type(call))
    return call.add(opcode, x, axis=call.axis()) if call.type_of(x).rank else x


@handles("var.correction", "var_mean.correction", "std.correction", "var.dim", "std.dim",
         "var.default", "std.default")  # fmt: skip
def variance(call: AtenCall) -> int | list[int]:
    """The mean square distance from the mean, over the count less a correction."""
    axes, dims = axes_of(call), call.shape_of("self")
    count = prod(dims[a] for a in axes)
    has_word = "unbiased" in call.names
    correction = float(call.get("unbiased", True)) if has_word else call.number("correction", 1)
    left = count - correction
    if left <= 0:
        reason = f"{count} elements less the correction {correction} leave none"
        raise Unsupported(reason, "use `correction=0`")
    x = call.value("self")
    mean = call.add("Mean", x, axes=axes, keepdims=True)
    away = call.binary("Sub", x, mean)
    total = reduce(call, "Sum", None, call.binary("Mul", away, away), axes)
    variances = call.binary("Div", total, call.scalar(left, call.dtype_of("self")))
    if call.name == "std":
        return call.unary("Sqrt", variances)
    return (
        [variances, call.reshape(mean, call.type_of(variances).shape)]
        if "mean" in call.name
        else variances
    )


@handles("linalg_vector_norm.default")
def norm(call: AtenCall) -> int:
    """The p-norm over axes."""
    order, dtype = float(call.number("ord", 2)), wanted_type(call, call.dtype_of("self"))
    x, axes = call.value("self", dtype), axes_of(call)
    if order in (1.0, 2.0):
        return reduce(call, "Reduce", f"L{order:.0f}", x, axes)
    size = call.unary("Abs", x)
    if abs(order) == inf:
        return reduce(call, "Reduce", "Max" if order > 0 else "Min", size, axes)
    if order == 0.0:
        there = call.add("Compare", x, call.scalar(0, dtype), op="Ne")
        return reduce(call, "Sum", None, call.cast(there, dtype), axes)
    powers = call.binary("Pow", size, call.scalar(order, dtype))
    total = reduce(call, "Sum", None, powers, axes)
    return call.binary("Pow", total, call.scalar(1 / order, dtype))


@handles("topk.default", "sort.default", "sort.stable")
def sort_or_top_k(call: AtenCall) -> list[int]:
    """Elements in order, or the first k of them, and where they lie; the first of equals first."""
    x, dims = call.value("self"), call.shape_of("self")
    if not dims:
        raise Unsupported(*SCALAR)
    axis = call.axis(default=-1)
    is_sort = call.name == "sort"
    count = dims[axis] if is_sort else call.integer("k")
    largest = bool(call.get("descending", False) if is_sort else call.get("largest", True))
    if count == 0:
        raise Unsupported(*EMPTY)
    if not 1 <= count <= dims[axis]:
        raise Unsupported(f"{count} elements of an axis of {dims[axis]}")
    given = {"k": count, "axis": axis, "largest": largest}
    return [call.add(opcode, x, **given) for opcode in ("TopKValues", "TopKIndices")]
