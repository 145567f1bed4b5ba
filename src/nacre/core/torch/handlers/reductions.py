"""Operations of ATen along axes."""

from __future__ import annotations

from math import inf, prod

from nacre.core.torch.handlers.elementwise import truth
from nacre.core.torch.handlers.table import handles
from nacre.core.torch.use import AtenCall
from nacre.core.unsupported import Unsupported

# By the name of the call: the operation and its `op`.
_REDUCE = {
    "sum": ("Sum", None), "mean": ("Mean", None), "amax": ("Reduce", "Max"),
    "amin": ("Reduce", "Min"), "max": ("Reduce", "Max"), "min": ("Reduce", "Min"),
    "prod": ("Reduce", "Prod"), "logsumexp": ("Reduce", "LogSumExp"),
}  # fmt: skip


def axes_of(use: AtenCall, name: str = "dim") -> tuple[int, ...]:
    """The axes of a reduction; none named means all."""
    rank = len(use.shape_of("self"))
    given = use.get(name)
    found = [given] if isinstance(given, int) else given or range(rank)
    return tuple(sorted(int(a) % max(rank, 1) for a in found)) if rank else ()


def reduced(use: AtenCall, opcode: str, op: str | None, value: int, axes: tuple[int, ...]) -> int:
    """A reduction whose result has the shape that PyTorch says."""
    given = {} if op is None else {"op": op}
    if use.type_of(value).rank == 0:
        value, axes = use.reshaped(value, (1,)), (0,)
    made = use.add(opcode, value, axes=axes, keepdims=False, **given)
    return use.reshaped(made, use.shape)


@handles("sum.dim_IntList", "sum.default", "mean.dim", "mean.default", "amax.default",
         "amin.default", "max.default", "min.default", "prod.dim_int", "prod.default",
         "logsumexp.default")  # fmt: skip
def reduction(use: AtenCall) -> int:
    """A reduction over axes, or over all."""
    opcode, op = _REDUCE[use.name.split(".")[0]]
    return reduced(use, opcode, op, use.value("self", use.dtype), axes_of(use))


@handles("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def truths(use: AtenCall) -> int:
    """Whether any, or every, element is true."""
    op = "Any" if use.name.startswith("any") else "All"
    return use.cast(reduced(use, "Reduce", op, truth(use, "self"), axes_of(use)), use.dtype)


@handles("max.dim", "min.dim")
def extremum_with_place(use: AtenCall) -> list[int]:
    """The largest or smallest element along an axis, and where it lies."""
    is_max = use.name.startswith("max")
    x, axis = use.value("self"), use.axis()
    if use.type_of(x).rank == 0:
        raise Unsupported("it is of a scalar", "leave it out")
    value = reduced(use, "Reduce", "Max" if is_max else "Min", x, (axis,))
    place = use.add("ArgMax" if is_max else "ArgMin", x, axis=axis)
    return [value, use.reshaped(place, use.shape)]


@handles("argmax.default", "argmin.default")
def argument(use: AtenCall) -> int:
    """Where the largest or smallest element lies, along an axis or among all."""
    opcode = "ArgMax" if use.name.startswith("argmax") else "ArgMin"
    x, axis = use.value("self"), use.axis()
    if not use.has("dim") or use.type_of(x).rank == 0:
        x, axis = use.reshaped(x, (prod(use.shape_of("self")),)), 0
    return use.reshaped(use.add(opcode, x, axis=axis), use.shape)


@handles("cumsum.default", "cumprod.default")
def cumulative(use: AtenCall) -> int:
    """The sum or product of the elements so far."""
    opcode = "CumSum" if use.name.startswith("cumsum") else "CumProd"
    x = use.value("self", use.dtype)
    if use.type_of(x).rank == 0:
        return x
    return use.add(opcode, x, axis=use.axis())


@handles("var.correction", "var_mean.correction", "std.correction")
def variance(use: AtenCall) -> int | list[int]:
    """The mean square distance from the mean, over the count less a correction."""
    axes, dims = axes_of(use), use.shape_of("self")
    count = prod(dims[a] for a in axes)
    correction = use.get("correction", 1)
    left = count - correction
    if left <= 0:
        raise Unsupported(
            f"{count} elements less the correction {correction} leave none", "use `correction=0`"
        )
    x, dtype = use.value("self"), use.dtype
    mean = use.add("Mean", x, axes=axes, keepdims=True)
    mean = use.reshaped(mean, [1 if a in axes else d for a, d in enumerate(dims)])
    away = use.binary("Sub", x, mean)
    total = reduced(use, "Sum", None, use.binary("Mul", away, away), axes)
    made = use.binary("Div", total, use.scalar(left, dtype))
    if use.name.startswith("std"):
        return use.add("Unary", made, op="Sqrt")
    return [made, use.reshaped(mean, use.shape)] if "mean" in use.name else made


@handles("linalg_vector_norm.default")
def norm(use: AtenCall) -> int:
    """The p-norm over axes."""
    order = float(use.get("ord", 2))
    x, axes = use.value("self", use.dtype), axes_of(use)
    if order in (1.0, 2.0):
        return reduced(use, "Reduce", f"L{order:.0f}", x, axes)
    size = use.add("Unary", x, op="Abs")
    if abs(order) == inf:
        return reduced(use, "Reduce", "Max" if order > 0 else "Min", size, axes)
    if order == 0.0:
        there = use.add("Compare", x, use.scalar(0, use.dtype), op="Ne")
        return reduced(use, "Sum", None, use.cast(there, use.dtype), axes)
    powers = use.binary("Pow", size, use.scalar(order, use.dtype))
    total = reduced(use, "Sum", None, powers, axes)
    return use.binary("Pow", total, use.scalar(1 / order, use.dtype))
