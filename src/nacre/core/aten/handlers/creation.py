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
def filled(use: AtenCall) -> int:
    """Zeros or ones; a tensor that nothing fills has zeros."""
    number = 1 if use.name == "ones" else 0
    return use.fill(number, use.integers("size"), wanted_type(use, "f32"))


@handles("zeros_like.default", "ones_like.default", "empty_like.default", "new_zeros.default",
         "new_ones.default", "new_empty.default")  # fmt: skip
def filled_like(use: AtenCall) -> int:
    """The same in the type of another tensor."""
    number = 1 if "ones" in use.name else 0
    shape = use.integers("size") if use.name.startswith("new") else use.shape_of("self")
    return use.fill(number, shape, wanted_type(use, use.dtype_of("self")))


@handles("full.default", "full_like.default", "new_full.default")
def full(use: AtenCall) -> int:
    """One number everywhere."""
    number = use.get("fill_value")
    is_alone = use.name == "full"
    default = use.dtype_of("fill_value" if is_alone else "self")
    dtype = wanted_type(use, default)
    shape = use.shape_of("self") if use.name == "full_like" else use.integers("size")
    require_elements(shape)
    value = use.cast(use.as_value(number, None, "fill_value"), dtype)
    return use.broadcast_to(value, shape)


@handles("scalar_tensor.default")
def scalar_tensor(use: AtenCall) -> int:
    """A number as a tensor."""
    return use.scalar(use.number("s"), wanted_type(use, "f32"))


@handles("arange.default", "arange.start", "arange.start_step")
def arange(use: AtenCall) -> int:
    """Numbers from a start up to an end."""
    numbers = [use.number(name) for name in ("start", "end", "step") if use.has(name)]
    return count_up(use, use.number("start", 0), use.number("end"), use.number("step", 1), numbers)


def count_up(use: AtenCall, start: float, end: float, step: float, given: list[float]) -> int:
    """Numbers from a start up to an end; the type follows from those that were given."""
    is_whole = all(isinstance(n, int) for n in given)
    dtype = wanted_type(use, "i64" if is_whole else "f32")
    if step == 0:
        raise Unsupported("a step of 0")
    count = max(ceil((end - start) / step), 0)
    use.affordable((count,))
    if dtype == "i64" and is_whole:
        return use.constant(np.arange(count) * step + start, "i64")
    # As ATen: the start plus so many steps, in double, then rounded once.
    made = np.arange(count, dtype=np.float64) * step + start
    return use.constant(made.astype(GRAPH_TYPES[dtype].dtype), dtype)


@handles("linspace.default")
def linspace(use: AtenCall) -> int:
    """So many numbers between two ends, which are among them."""
    steps = use.integer("steps")
    use.affordable((steps,))
    start, end = use.number("start"), use.number("end")
    dtype = wanted_type(use, "f32")
    element = GRAPH_TYPES[dtype].dtype
    step = element.type((end - start) / max(steps - 1, 1))
    order = np.arange(steps)
    first = element.type(start) + step * order.astype(element)
    last = element.type(end) - step * (steps - 1 - order).astype(element)
    return use.constant(np.where(order < steps / 2, first, last).astype(element), dtype)


@handles("eye.default", "eye.m")
def eye(use: AtenCall) -> int:
    """Ones where row and column are the same."""
    shape = (use.integer("n"), use.integer("m", use.integer("n")))
    use.affordable(shape)
    dtype = wanted_type(use, "f32")
    return use.constant(np.eye(*shape).astype(GRAPH_TYPES[dtype].dtype), dtype)
