"""Tensors whose elements follow from a shape alone."""

from __future__ import annotations

from math import ceil

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall, require_elements
from nacre.core.aten.handlers.elementwise import wanted_type
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


@handles("zeros.default", "ones.default", "empty.memory_format")
def zeros_or_ones(call: AtenCall) -> int:
    """Zeros or ones; a tensor that nothing fills has zeros."""
    number = 1 if call.name == "ones" else 0
    return call.fill(number, call.integers("size"), wanted_type(call, "f32"))


@handles("zeros_like.default", "ones_like.default", "empty_like.default", "new_zeros.default",
         "new_ones.default", "new_empty.default")  # fmt: skip
def zeros_or_ones_like(call: AtenCall) -> int:
    """The same in the type of another tensor."""
    number = 1 if "ones" in call.name else 0
    shape = call.integers("size") if call.name.startswith("new") else call.shape_of("self")
    return call.fill(number, shape, wanted_type(call, call.dtype_of("self")))


@handles("full.default", "full_like.default", "new_full.default")
def full(call: AtenCall) -> int:
    """One number everywhere."""
    number = call.get("fill_value")
    is_alone = call.name == "full"
    default = call.dtype_of("fill_value" if is_alone else "self")
    dtype = wanted_type(call, default)
    shape = call.shape_of("self") if call.name == "full_like" else call.integers("size")
    require_elements(shape)
    value = call.cast(call.as_value(number, None, "fill_value"), dtype)
    return call.broadcast_to(value, shape)


@handles("scalar_tensor.default")
def scalar_tensor(call: AtenCall) -> int:
    """A number as a tensor."""
    return call.scalar(call.number("s"), wanted_type(call, "f32"))


@handles("arange.default", "arange.start", "arange.start_step")
def arange(call: AtenCall) -> int:
    """Numbers from a start up to an end."""
    numbers = [call.number(name) for name in ("start", "end", "step") if call.has(name)]
    return count_up(
        call, call.number("start", 0), call.number("end"), call.number("step", 1), numbers
    )


def count_up(call: AtenCall, start: float, end: float, step: float, numbers: list[float]) -> int:
    """Numbers from a start up to an end; the type follows from those that were given."""
    is_whole = all(isinstance(n, int) for n in numbers)
    dtype = wanted_type(call, "i64" if is_whole else "f32")
    if step == 0:
        raise Unsupported("a step of 0")
    count = max(ceil((end - start) / step), 0)
    call.require_affordable((count,))
    if dtype == "i64" and is_whole:
        return call.constant(np.arange(count) * step + start, "i64")
    # As ATen: the start plus so many steps, in double, then rounded once.
    sequence = np.arange(count, dtype=np.float64) * step + start
    return call.constant(sequence.astype(GRAPH_TYPES[dtype].dtype), dtype)


@handles("linspace.default")
def linspace(call: AtenCall) -> int:
    """So many numbers between two ends, which are among them."""
    steps = call.integer("steps")
    call.require_affordable((steps,))
    start, end = call.number("start"), call.number("end")
    dtype = wanted_type(call, "f32")
    element = GRAPH_TYPES[dtype].dtype
    step = element.type((end - start) / max(steps - 1, 1))
    order = np.arange(steps)
    first = element.type(start) + step * order.astype(element)
    last = element.type(end) - step * (steps - 1 - order).astype(element)
    return call.constant(np.where(order < steps / 2, first, last).astype(element), dtype)


@handles("eye.default", "eye.m")
def eye(call: AtenCall) -> int:
    """Ones where row and column are the same."""
    shape = (call.integer("n"), call.integer("m", call.integer("n")))
    call.require_affordable(shape)
    dtype = wanted_type(call, "f32")
    return call.constant(np.eye(*shape).astype(GRAPH_TYPES[dtype].dtype), dtype)
