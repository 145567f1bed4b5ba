"""Elementwise functions on plain integers: exact, then wrapped or saturated to the type.

Division truncates toward zero. `0 ^ 0` is 1. `clamp` gives `min(max(x, ceil(min_val)),
floor(max_val))`: the nearest integer between the limits, and the upper one where there is none.
`leaky_relu` of a negative x is `alpha * x` in f64, rounded to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, isnan
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Run
from nacre.kernels.interface.runs import (
    all_values,
    elementwise_run,
    lookup_run,
    present,
    quietly,
    store_run,
)
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import real_to_integer, real_to_wrapped, saturate_to, wrap_to


def bind_integer(name: str, call: Call) -> Run:
    """An elementwise opcode on plain integers; a ValueError for one without a meaning there."""
    if name not in _BINDERS:
        raise ValueError(f"`{name}` has no meaning in plain integers")
    return _BINDERS[name](call)


def bind_by_table(compute: Callable[[Array], Array], call: Call) -> Run:
    """A function of one integer tensor; of 8 bits or less, all its values are worked out now."""
    x, y = call.input(0), call.output
    if x.elem.bits > 8:
        return store_run(compute)
    return lookup_run(quietly(compute, all_values(x.dtype)).astype(y.dtype))


def _saturates(call: Call) -> bool:
    return bool(call.attributes.get("saturate", False))


def _to_output_type(call: Call) -> Callable[[Array], Array]:
    """From wide integers to those of the output."""
    element = call.output.elem
    change = saturate_to if _saturates(call) else wrap_to
    return lambda wide: change(wide, element)


def _exact_arithmetic(ufunc: np.ufunc) -> Callable[[Call], Run]:
    """A function that may leave the type; in NumPy's own arithmetic it then wraps."""

    def bind(call: Call) -> Run:
        if call.output.elem.bits >= 8 and not _saturates(call):
            return elementwise_run(ufunc, len(call.inputs))
        wide, narrow = _wide_dtype(call.output.elem, ufunc), _to_output_type(call)
        return store_run(lambda *operands: narrow(ufunc(*operands, dtype=wide)))

    return bind


def _wide_dtype(element: ElementType, ufunc: np.ufunc) -> np.dtype[Any]:
    """A type that holds every sum, difference and product of two values."""
    if element.bits < 16:
        return np.dtype(np.int32)
    is_beyond = element.bits == 32 and element.kind == "unsigned" and ufunc is np.multiply
    return np.dtype(np.uint64 if is_beyond else np.int64)


def _bind_in_type(function: Callable[..., Array]) -> Callable[[Call], Run]:
    """A function that never leaves the type."""
    return lambda call: elementwise_run(function, len(call.inputs))


def _relu(x: Array, out: Array) -> Array:
    larger: Array = np.maximum(x, x.dtype.type(0), out=out)
    return larger


def _bind_leaky_relu(call: Call) -> Run:
    alpha = np.float64(call.attributes["alpha"])
    element = call.output.elem
    narrow = real_to_integer if _saturates(call) else real_to_wrapped

    def compute(x: Array) -> Array:
        return np.where(x > 0, x, narrow(np.rint(x * alpha), element))

    return bind_by_table(compute, call)


def _bind_clamp(call: Call) -> Run:
    low, high = _limits(call.attributes)
    element, dtype = call.output.elem, call.output.dtype.type
    bottom, top = int(element.lowest), int(element.highest)
    if low > top or high < bottom:
        # One value is left, and it is none of the type's.
        value = _to_output_type(call)(np.array([min(max(low, bottom), high)], np.int64))
        return store_run(lambda x: value)
    least, greatest = dtype(max(low, bottom)), dtype(min(high, top))

    def function(x: Array, out: Array) -> Array:
        limited: Array = np.minimum(np.maximum(x, least), greatest, out=out)
        return limited

    return elementwise_run(function, 1)


def _limits(attributes: Attributes) -> tuple[int, int]:
    """The limits as integers; those beyond all types, infinities too, come back smaller."""
    low, high = float(attributes["min_val"]), float(attributes["max_val"])
    if isnan(low) or isnan(high):
        raise ValueError("a limit of `clamp` is not a number")
    far = 2.0**62
    return ceil(min(max(low, -far), far)), floor(min(max(high, -far), far))


def _bind_div(call: Call) -> Run:
    narrow = _to_output_type(call)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        a, b, y = present(inputs[0]), present(inputs[1]), outputs[0]
        if np.count_nonzero(b) != b.size:
            return Fault("division", "integer division by zero", _first_position(b == 0, y.shape))
        # f64 tells the quotient of 32-bit integers from its neighbours; the cast truncates.
        y[...] = narrow(np.true_divide(a, b).astype(np.int64))
        return None

    return run


def _bind_pow(call: Call) -> Run:
    element = call.output.elem
    power = _saturated_power if _saturates(call) else _wrapped_power

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        a, b, y = present(inputs[0]), present(inputs[1]), outputs[0]
        if element.kind == "signed" and b.min() < 0:
            message = "negative exponent of an integer power"
            return Fault("exponent", message, _first_position(b < 0, y.shape))
        y[...] = power(a, b, element)
        return None

    return run


def _first_position(mask: Array, shape: Dims) -> Dims:
    """The place of the first element for which something holds."""
    flat = int(np.broadcast_to(mask, shape).argmax())
    return tuple(int(index) for index in np.unravel_index(flat, shape))


def _wrapped_power(a: Array, b: Array, element: ElementType) -> Array:
    """By squaring, modulo 2^32, of which the width of every type is a part."""
    square, left = a.astype(np.uint32), b.astype(np.uint32)
    result = np.ones(np.broadcast_shapes(a.shape, b.shape), np.uint32)
    for bit in range(int(left.max()).bit_length()):
        result *= np.where((left >> np.uint32(bit)) & np.uint32(1), square, np.uint32(1))
        square *= square
    return wrap_to(result, element)


def _saturated_power(a: Array, b: Array, element: ElementType) -> Array:
    """By squaring magnitudes that stop at 2^32 - 1, which no type exceeds."""
    limit = np.uint64(0xFFFFFFFF)  # its square still fits
    square, left = np.abs(a.astype(np.int64)).astype(np.uint64), np.minimum(b, 32)
    result = np.ones(np.broadcast_shapes(a.shape, b.shape), np.uint64)
    for bit in range(6):  # from 2 on, the 32nd power is beyond every type
        result *= np.where((left >> bit) & 1, square, np.uint64(1))
        np.minimum(result, limit, out=result)
        square = np.minimum(square * square, limit)
    signed = result.astype(np.int64)
    return saturate_to(np.where((a < 0) & (b & 1 == 1), -signed, signed), element)


_BINDERS: Mapping[str, Callable[[Call], Run]] = MappingProxyType(
    {
        "relu": _bind_in_type(_relu),
        "leaky_relu": _bind_leaky_relu,
        "abs": _exact_arithmetic(np.absolute),
        "neg": _exact_arithmetic(np.negative),
        "add": _exact_arithmetic(np.add),
        "sub": _exact_arithmetic(np.subtract),
        "mul": _exact_arithmetic(np.multiply),
        "div": _bind_div,
        "min": _bind_in_type(np.minimum),
        "max": _bind_in_type(np.maximum),
        "pow": _bind_pow,
        "clamp": _bind_clamp,
    }
)
