"""Casts between all element types, and the two ways between reals and quantised integers.

`cast` looks at stored values only, never at `quant`. Float to integer rounds as `rounding` says
and saturates, NaN giving 0; with `saturate=false` it wraps, and infinities give 0 too. Integer to
integer wraps, with `saturate=true` it saturates. What becomes a float is rounded to nearest even;
beyond the greatest finite value it becomes infinite, with `saturate=true` that greatest value
(infinities too; NaN stays).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import (
    PLAIN_SHAPES,
    Array,
    Attributes,
    Call,
    Example,
    Primitive,
    Run,
    Work,
)
from nacre.kernels.interface.runs import all_values, lookup_run, quietly, store_run
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import (
    carrier_dtype,
    real_to_integer,
    real_to_wrapped,
    saturate_to,
    widen_to_f32,
    wrap_to,
)
from nacre.kernels.numbers.quantization import dequantizer, quantizer

Convert = Callable[[Array], Array]

_ROUNDINGS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"nearest_even": np.rint, "toward_zero": np.trunc, "floor": np.floor, "ceil": np.ceil}
)


def _bind_cast(call: Call) -> Run:
    source, result = call.input(0).elem, call.output.elem
    rounding = str(call.attributes.get("rounding", "nearest_even"))
    saturate = call.attributes.get("saturate")
    if _uses_table(source, result):
        return lookup_run(_table(source, result, rounding, saturate))
    return store_run(_conversion(source, result, rounding, saturate))


def _uses_table(source: ElementType, result: ElementType) -> bool:
    """Whether a table beats NumPy: from 16-bit floats, and to them from 8 bits."""
    return (source.kind == "float" and source.bits == 16) or (
        source.bits <= 8 and result.kind == "float" and result.bits == 16
    )


@lru_cache(maxsize=128)
def _table(source: ElementType, result: ElementType, rounding: str, saturate: bool | None) -> Array:
    """The casts of every value there is, worked out once per process."""
    convert = _conversion(source, result, rounding, saturate)
    return quietly(convert, all_values(carrier_dtype(source)))


def _conversion(
    source: ElementType, result: ElementType, rounding: str, saturate: bool | None
) -> Convert:
    if result.is_integer and source.is_integer:
        return _between_integers(source, result, bool(saturate))
    if result.is_integer:
        round_, narrow = (
            _ROUNDINGS[rounding],
            real_to_wrapped if saturate is False else real_to_integer,
        )
        return lambda x: narrow(round_(widen_to_f32(x)), result)
    widen = _integer_to_f32(source, result) if source.is_integer else widen_to_f32
    return _to_float(widen, result, bool(saturate))


def _between_integers(source: ElementType, result: ElementType, saturate: bool) -> Convert:
    fits = result.lowest <= source.lowest and source.highest <= result.highest
    if fits:
        return lambda x: x
    change = saturate_to if saturate else wrap_to
    # In i64, for the ends of the result need not exist in the source.
    return lambda x: change(x.astype(np.int64) if saturate else x, result)


def _to_float(widen: Convert, result: ElementType, saturate: bool) -> Convert:
    dtype = result.dtype
    if not saturate:
        return lambda x: widen(x).astype(dtype, copy=False)
    low, high = np.float32(result.lowest), np.float32(result.highest)
    return lambda x: np.minimum(np.maximum(widen(x), low), high).astype(dtype)


def _integer_to_f32(source: ElementType, result: ElementType) -> Convert:
    """Integers as f32, in which none is rounded that the result would round once more."""
    if source.bits == 32 and result.bits == 16:
        return _round_to_odd_f32
    return lambda x: x.astype(np.float32)


def _round_to_odd_f32(x: Array) -> Array:
    """32-bit integers as f32, inexact ones to the neighbour with the odd last bit.

    That neighbour lies on the same side of every 16-bit float, and of the middle of two, as the
    integer itself: rounding again gives what rounding the integer would give.
    """
    wide = x.astype(np.int64)
    has_rest = (wide & 0xFF) != 0
    odd = ((wide >> 8) | has_rest) << 8  # 24 bits, which f32 holds
    return np.where(np.abs(wide) < 1 << 24, wide, odd).astype(np.float32)


def _bind_quantize(call: Call) -> Run:
    to_stored = quantizer(call.output)
    return store_run(lambda x: to_stored(widen_to_f32(x)))


def _bind_dequantize(call: Call) -> Run:
    x, y = call.input(0), call.output
    to_real = dequantizer(x)
    if _uses_table(x.elem, y.elem) and x.quant is not None and x.quant.axis is None:
        return lookup_run(quietly(lambda: to_real(all_values(x.dtype)).astype(y.dtype)))
    return store_run(to_real)


def _same_shape(shapes: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    first = shapes[0] if len(shapes) == 1 else None
    return None if first is None else [first]


def _work(call: Call) -> Work:
    return Work(elements=call.output.count)


_EXAMPLES = tuple(Example((x,)) for x in PLAIN_SHAPES)
CONVERSION = tuple(
    Primitive(name, bind, _same_shape, _work, examples=_EXAMPLES)
    for name, bind in (
        ("cast", _bind_cast),
        ("quantize", _bind_quantize),
        ("dequantize", _bind_dequantize),
    )
)
