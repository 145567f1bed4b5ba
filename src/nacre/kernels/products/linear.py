"""Products of matrices, `gemm` and `matmul`: [.., M, K] by [.., K, N], batches broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Example,
    Primitive,
    Run,
    TensorType,
    Work,
)
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import Float32
from nacre.kernels.products.contraction import (
    Contraction,
    Taken,
    bind_contraction,
    slices,
    starts_of_groups,
)
from nacre.kernels.products.products import Product


def bind_product(call: Call) -> Run:
    """`gemm`, and `matmul`, which is the same without C."""
    a, b = call.input(0), call.input(1)
    a_varies = a.quant is not None and a.quant.axis == len(a.shape) - 1
    b_varies = b.quant is not None and b.quant.axis == len(b.shape) - 2
    depth = a.shape[-1]
    starts = {0}
    if a.quant is not None and a_varies:
        starts |= starts_of_groups(depth, a.quant.group_size)
    if b.quant is not None and b_varies:
        starts |= starts_of_groups(depth, b.quant.group_size)
    return bind_contraction(
        Contraction(
            call=call,
            pads=None,
            parts=tuple((part,) for part in slices(starts, depth)),
            x_varies=a_varies,
            w_varies=b_varies,
            x_scale=lambda part: _scale_along(a, -1, part),
            w_scale=lambda part: _scale_along(b, -2, part),
            contract=_Matrices(a.shape, b.shape, call.output.shape),
        )
    )


def _scale_along(type_: TensorType, summed_axis: int, part: Taken) -> Float32:
    """The scales of a part: one where it is not given, else to be broadcast against Y."""
    if type_.quant is None:
        return np.ones((), np.float32)
    scale = type_.quant.broadcast_parameters(type_.shape)[0]
    if type_.quant.axis != len(type_.shape) + summed_axis:
        return scale
    return np.take(scale, [part[0].start], axis=summed_axis)


class _Matrices:
    """Multiplies; a stack of A by one B is one matrix of all rows."""

    def __init__(self, a: Dims, b: Dims, y: Dims) -> None:
        self._y = y
        self._is_flat = prod(b[:-2]) == 1
        self._rows = (prod(a[:-1]), a[-1])
        self._b = b[-2:]
        self._depth = a[-1]

    def __call__(self, a: Array, b: Array, part: Taken, product: Product) -> Array:
        if self._is_flat:
            a, b = a.reshape(self._rows), b.reshape(self._b)
        (k,) = part
        if k.stop - k.start < self._depth:
            a, b = a[..., k], b[..., k, :]
        return product(a, b).reshape(self._y)


def product_shape(inputs: Sequence[Dims | None], _: Attributes) -> list[Dims] | None:
    """The shape of A B, where C stretches to it."""
    a, b = inputs[0], inputs[1]
    if a is None or b is None or min(len(a), len(b)) < 2:
        return None
    y = shapes.matmul(a, b)
    c = inputs[2] if len(inputs) > 2 else None
    if y is None or (c is not None and not shapes.broadcasts_to(c, y)):
        return None
    return [y]


def product_work(call: Call) -> Work:
    """K multiplications and additions for each element of Y."""
    return Work(macs=call.output.count * call.input(0).shape[-1])


_EXAMPLES = (
    Example(((4, 6), (6, 5), (5,))),
    Example(((1, 1), (1, 1), (1,))),
    Example(((3, 17), (17, 1), (3, 1))),
    Example(((2, 3, 5), (5, 4), (1, 4))),
    Example(((2, 1, 3, 5), (2, 5, 7), (7,))),
)
LINEAR = tuple(
    Primitive(name, bind_product, product_shape, product_work, examples=_EXAMPLES)
    for name in ("gemm", "matmul")
)
