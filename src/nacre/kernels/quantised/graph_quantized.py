"""Between reals and the integers that stand for them, with scales that come as tensors.

`Quantize` is `saturate(rint(x / scale) + zero)` as ONNX has it: the quotient in f32 (in f64 where
the tensor is f64), halves to even, NaN the zero point. To floats of 8 bits it is the quotient,
stopped at the largest finite value; those have no zero point. `Dequantize` is `(x - zero) * scale`,
the difference exact. Scales and zero points are one number, one for each part of an axis, or,
with a `block`, one for each block of that many neighbours along the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

import numpy as np

from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Fault,
    Primitive,
    Run,
    TensorType,
    Work,
)
from nacre.kernels.interface.fitting import (
    Fitting,
    Misfit,
    dims_text,
    expect_least,
    expect_shape,
    fitting_axis,
)
from nacre.kernels.interface.runs import fill_run, present, quiet
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.movement.views import moves_outputs
from nacre.kernels.quantised.graph_fused import GRAPH_FUSED
from nacre.kernels.reductions.reductions import wide_float, widening

_NARROW_FLOATS = ("f8e4m3", "f8e5m2")
_STORED = ("i8", "u8", "i4", "u4", "i16", "u16", "i32", *_NARROW_FLOATS)
Spread = Callable[[Array], Array]  # of scales, to be broadcast against a tensor


def _parameter_broadcaster(call: Call) -> Spread:
    x, scale = call.input(0).shape, call.input(1).shape
    block = call.attributes["block"]
    if scale in ((), (1,)):
        return lambda values: values.reshape(())
    axis = call.attributes["axis"] % len(x)
    if block:
        whole = (slice(None),) * axis + (slice(0, x[axis]),)
        return lambda values: np.repeat(values, block, axis=axis)[whole]
    shape = tuple(-1 if at == axis else 1 for at in range(len(x)))
    return lambda values: values.reshape(shape)


def _quantize(call: Call) -> Run:
    _refuse(quantize_problem(_names(call), call.attributes))
    spread, wide = _parameter_broadcaster(call), widening(call.input(0))
    elem, has_zero = call.output.elem, call.has_input(2)
    store = _saturating_store(call.output) if not elem.is_integer else _rounding_store(call)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x = wide(present(inputs[0]))
        steps = scratch("steps", x.shape, x.dtype)
        np.divide(x, spread(wide(present(inputs[1]))), out=steps)
        store(steps, spread(present(inputs[2])) if has_zero else None, outputs[0])
        return None

    return quiet(run)


def _saturating_store(type_: TensorType) -> Callable[[Array, Array | None, Array], None]:
    low, high = type_.elem.lowest, type_.elem.highest

    def store(steps: Array, zero: Array | None, y: Array) -> None:
        np.maximum(steps, steps.dtype.type(low), out=steps)
        np.minimum(steps, steps.dtype.type(high), out=steps)
        y[...] = steps

    return store


def _rounding_store(call: Call) -> Callable[[Array, Array | None, Array], None]:
    elem = call.output.elem
    # f32 counts the steps of 16 bits exactly, and what is far outside may round; 32 bits need f64.
    wide: np.dtype[Any] = np.dtype(np.float64 if elem.bits > 16 else np.float32)
    if call.input(0).elem.bits > 32:
        wide = np.dtype(np.float64)
    low, high = wide.type(elem.lowest), wide.type(elem.highest)

    def store(steps: Array, zero: Array | None, y: Array) -> None:
        np.rint(steps, out=steps)
        moved = steps.astype(wide, copy=False)
        if zero is not None:
            np.add(moved, zero.astype(wide), out=moved)
        least, most = np.minimum.reduce(moved, axis=None), np.maximum.reduce(moved, axis=None)
        if not (least >= low and most <= high):  # NaN is neither
            unknown = np.isnan(moved)
            moved.clip(low, high, out=moved)
            np.copyto(moved, 0 if zero is None else zero, where=unknown)
        np.copyto(y, moved, casting="unsafe")

    return store


def _dequantize(call: Call) -> Run:
    _refuse(dequantize_problem(_names(call), call.attributes))
    spread, elem, scale = _parameter_broadcaster(call), call.input(0).elem, call.input(1)
    wide, real, has_zero = widening(scale), wide_float(scale), call.has_input(2)
    # f32 holds every difference of 16 bits, f64 every one of 32.
    exact = real if elem.bits <= 16 else np.dtype(np.float64)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        steps = np.asarray(present(inputs[0]).astype(exact))
        if has_zero:
            steps -= spread(present(inputs[2])).astype(exact)
        reals = steps.astype(real, copy=False)
        outputs[0][...] = np.multiply(reals, spread(wide(present(inputs[1]))))
        return None

    return quiet(run)


def _names(call: Call) -> list[str]:
    return [type_.elem.name for type_ in call.inputs if type_ is not None]


def _refuse(problem: str | None) -> None:
    if problem is not None:
        raise ValueError(problem)


def quantize_problem(names: Sequence[str], attributes: Attributes) -> str | None:
    """Why the element types of the operands do not go with `to`; None where they do."""
    if len(names) < 3 or names[2] == attributes["to"]:
        return None
    return f"`zero` has the type `{names[2]}`, expected that of `to`, `{attributes['to']}`"


def dequantize_problem(names: Sequence[str], attributes: Attributes) -> str | None:
    """Why a zero point does not go with the elements; None where it does."""
    if len(names) < 3:
        return None
    if names[0] in _NARROW_FLOATS:
        return f"`zero` is given, expected none: the elements are floats, `{names[0]}`"
    if names[2] == names[0]:
        return None
    return f"`zero` has the type `{names[2]}`, expected that of the elements, `{names[0]}`"


def _fit_quantize(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    to = attributes["to"]
    if to not in _STORED:
        raise Misfit(f"`to` is `{to}`, expected one of `{'`, `'.join(_STORED)}`")
    if to in _NARROW_FLOATS and len(inputs) > 2:
        raise Misfit(f"`zero` is given, expected none: `to` is a float, `{to}`")
    return _fit_dequantize(inputs, attributes)


def _fit_dequantize(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, scale, block = inputs[0], inputs[1], attributes["block"]
    expect_least((block,), 0, "block")
    if block:
        axis = fitting_axis(attributes["axis"], len(x))
        parts = (*x[:axis], -(-x[axis] // block), *x[axis + 1 :])
        expect_shape(scale, parts, "`scale`")
    elif scale not in ((), (1,)):
        axis = fitting_axis(attributes["axis"], len(x))
        if scale != (x[axis],):
            told = f"`scale` has the shape {dims_text(scale)}"
            raise Misfit(f"{told}, expected [] or, along axis {axis}, [{x[axis]}]")
    if len(inputs) > 2:
        expect_shape(inputs[2], scale, "`zero`")
    return x


def range_of(x: Array) -> tuple[Any, Any, Any]:
    """The scale of u8 that holds the range of x and 0, and where that range begins and ends."""
    low = np.minimum.reduce(x, axis=None, initial=0)
    high = np.maximum.reduce(x, axis=None, initial=0)
    scale = (high - low) / x.dtype.type(255)
    return (x.dtype.type(1) if high == low else scale), low, high


def zero_of(scale: Any, low: Any) -> int:  # noqa: ANN401 - scalars of NumPy, f32 or f64
    """The zero point of u8 that goes with a scale, for a range that begins there."""
    zero = float(-low / scale)
    return 0 if isnan(zero) else round(min(max(zero, 0.0), 255.0))


def _dynamic_scale(call: Call) -> Run:
    wide = widening(call.input(0))

    def fill(x: Array, y: Array) -> None:
        y[...] = range_of(wide(x))[0]

    return quiet(fill_run(fill))


def _dynamic_zero(call: Call) -> Run:
    wide = widening(call.input(0))

    def fill(x: Array, y: Array) -> None:
        scale, low, _ = range_of(wide(x))
        y[...] = zero_of(scale, low)

    return quiet(fill_run(fill))


def _fit_dynamic(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    return ()


def _reads_input(call: Call) -> Work:
    return Work(elements=2 * call.input(0).count)  # the least and the greatest


GRAPH_QUANTIZED: tuple[Primitive, ...] = (
    Primitive("core.Quantize", _quantize, Fitting(_fit_quantize), moves_outputs),
    Primitive("core.Dequantize", _dequantize, Fitting(_fit_dequantize), moves_outputs),
    Primitive("core.DynamicQuantizeScale", _dynamic_scale, Fitting(_fit_dynamic), _reads_input),
    Primitive("core.DynamicQuantizeZero", _dynamic_zero, Fitting(_fit_dynamic), _reads_input),
    *GRAPH_FUSED,
)
