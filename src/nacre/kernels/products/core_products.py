"""The ops of Core IR that sum products: `Dot`, `MatMul` and `Conv2d`.

Integers are summed exactly and then wrapped; floats up to 32 bits are summed in f32, f64 in f64,
and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Primitive,
    Run,
    TensorType,
    Work,
    integers,
)
from nacre.kernels.interface.forms import binary_fill_run, binary_shape
from nacre.kernels.interface.runs import quiet
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import wrap_to
from nacre.kernels.products.products import (
    Product,
    exact_product,
    float_product,
    ordered_product,
    plan,
    reach_of_type,
    same_nan,
)
from nacre.kernels.reductions.reductions import widening
from nacre.kernels.windows.patches import PatchProduct, Windows

Pads = tuple[tuple[int, int], tuple[int, int]]  # top and bottom, left and right


def low_bits(values: Array, elem: ElementType) -> Array:
    """Integers modulo 2 to the width of a type, as arrays carry it; `u4` stays without a sign."""
    if elem.kind == "unsigned" and elem.bits < 8:
        kept: Array = values.astype(np.int8) & np.int8((1 << elem.bits) - 1)
        return kept
    return wrap_to(values, elem)


def _narrowing_store(type_: TensorType) -> Callable[[Array, Array], None]:
    """How a result that was computed in a wider type gets into an output of this one."""
    elem = type_.elem

    def wrap(values: Array, y: Array) -> None:
        y[...] = low_bits(values, elem)

    def round_once(values: Array, y: Array) -> None:
        y[...] = values

    return wrap if elem.is_integer else round_once


def _product(call: Call, depth: int) -> Product:
    """The matrix product of a call's operands: of what width they are, exact or in order."""
    a_type, b_type = (replace(call.input(i), quant=None) for i in (0, 1))
    if a_type.elem.is_integer:
        exact = plan(depth, reach_of_type(a_type), reach_of_type(b_type))
        dtype = exact.dtype
        # The sums may come as floats that hold integers, which do not wrap when cut.
        return lambda a, b: exact_product(a.astype(dtype), b.astype(dtype), exact).astype(np.int64)
    wide = widening(a_type)
    if not call.ordered:
        return lambda a, b: float_product(wide(a), wide(b))
    multiply = ordered_product if a_type.elem.bits <= 32 else _multiply_ordered
    return lambda a, b: same_nan(multiply(wide(a), wide(b)))


def _multiply_ordered(a: Array, b: Array) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = np.zeros((*batch, a.shape[-2], b.shape[-1]))
    for k in range(a.shape[-1]):
        total += a[..., k, None] * b[..., k, None, :]
    return total


def _matmul(call: Call) -> Run:
    """`Dot` too: a vector is a row on the left and a column on the right."""
    multiply = _product(call, call.input(0).shape[-1])
    store, shape = _narrowing_store(call.output), call.output.shape

    def fill(a: Array, b: Array, y: Array) -> None:
        row = a if a.ndim > 1 else a[None, :]
        column = b if b.ndim > 1 else b[:, None]
        store(multiply(row, column).reshape(shape), y)

    return quiet(binary_fill_run(fill))


def _matmul_shape(a: Dims, b: Dims, attributes: Attributes) -> Dims | None:
    return shapes.matmul(a, b) if min(len(a), len(b)) >= 2 else None


def _dot_shape(a: Dims, b: Dims, attributes: Attributes) -> Dims | None:
    if not (1 <= len(a) <= 2 and 1 <= len(b) <= 2) or a[-1] != b[0]:
        return None
    return a[:-1] + b[1:]


def conv2d_pads(x: Dims, w: Dims, attributes: Attributes) -> Pads | None:
    """How much surrounds a tensor before it is convolved; None where the attributes are odd."""
    padding, strides = attributes.get("padding"), integers(attributes, "strides")
    if strides is None or len(strides) != 2 or min(strides) < 1:
        return None
    if padding == "Valid":
        return (0, 0), (0, 0)
    if padding == "Same":
        return _same_pads(x[1], w[0], strides[0]), _same_pads(x[2], w[1], strides[1])
    if not isinstance(padding, tuple | list) or len(padding) != 2:
        return None
    pairs = [integers({"pair": pair}, "pair") for pair in padding]
    if any(pair is None or len(pair) != 2 or min(pair) < 0 for pair in pairs):
        return None
    (top, bottom), (left, right) = padding
    return (top, bottom), (left, right)


def _same_pads(size: int, window: int, stride: int) -> tuple[int, int]:
    """What makes `ceil(size / stride)` windows fit; an odd one goes to the end."""
    count = -(-size // stride)
    total = max((count - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def _conv2d_shape(x: Dims, w: Dims, attributes: Attributes) -> Dims | None:
    if len(x) != 4 or len(w) != 4 or x[3] != w[2]:
        return None
    pads = conv2d_pads(x, w, attributes)
    if pads is None:
        return None
    (top, bottom), (left, right) = pads
    result = shapes.conv(x, w, (top, left, bottom, right), attributes["strides"], (1, 1))
    return result if min(result) >= 1 else None


def _conv2d(call: Call) -> Run:
    x_shape, w_shape, y_shape = call.input(0).shape, call.input(1).shape, call.output.shape
    pads = conv2d_pads(x_shape, w_shape, call.attributes)
    if pads is None:
        raise ValueError("`strides` and `padding` do not fit together")
    (top, bottom), (left, right) = pads
    _, height, width, _ = x_shape
    padded_shape = shapes.pad(x_shape, (0, top, left, 0, 0, bottom, right, 0))
    inner = np.s_[:, top : top + height, left : left + width]
    windows = Windows(padded_shape, w_shape[:2], y_shape, call.attributes["strides"], (1, 1), 1)
    convolve, part = PatchProduct(windows), tuple(slice(0, size) for size in w_shape[:3])
    multiply, store = _product(call, prod(w_shape[:3])), _narrowing_store(call.output)

    def fill(x: Array, w: Array, y: Array) -> None:
        padded = np.zeros(padded_shape, x.dtype)
        padded[inner] = x
        store(convolve(padded, w, part, multiply), y)

    return quiet(binary_fill_run(fill))


def _macs(call: Call) -> Work:
    if len(call.input(1).shape) == 4 and "padding" in call.attributes:
        return Work(macs=call.output.count * prod(call.input(1).shape[:3]))
    return Work(macs=call.output.count * call.input(0).shape[-1])


CORE_PRODUCTS = (
    Primitive("core.Dot", _matmul, binary_shape(_dot_shape), _macs),
    Primitive("core.MatMul", _matmul, binary_shape(_matmul_shape), _macs),
    Primitive("core.Conv2d", _conv2d, binary_shape(_conv2d_shape), _macs),
)
