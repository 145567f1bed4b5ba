"""Products of f32 on a unit that has f16: each number as two halves, a rounded one and the rest.

X is divided by its largest element, row by row where rows are apart, and weights by theirs, so that
nothing is too large; the rest of each is multiplied until it has all digits that f16 can give it.
What comes out has 22 binary digits of its largest summands, and 11 of itself. Where that is too few
for what follows, the second product takes off what the first one came to: 22 of itself, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2, prod
from typing import Any

import numpy as np

from nacre.compile.legalise.forms.mixed_precision.halves import (
    LARGEST,
    REST,
    F32Writer,
    scale_to_one,
    split_in_halves,
)
from nacre.compile.legalise.forms.mixed_precision.matmul_halves import matmul_in_halves
from nacre.core.rewrite.site import RewriteSite
from nacre.core.values import Array

FEW_COLUMNS = 4  # of a product that is as soon done in f32
_OFTEN, _TOP = 4.0, 2.0**15  # how much larger than it was seen x may be; the largest result


def product_in_halves(writer: F32Writer) -> int | None:
    """A product of a value in f32 by known weights; None where it has no such form."""
    site = writer.site
    if site.op.opcode == "MatMul":
        return matmul_in_halves(writer)
    x, weights, *bias = site.operands
    array = site.constant(weights)
    if array is None or not array.size:
        return None
    product = _linear if site.op.opcode == "Linear" else _convolution
    result = product(writer, x, array.astype(np.float64))
    if result is None or not bias:
        return result
    return writer.add("BinOp", result, bias[0], op="Add")


def _linear(writer: F32Writer, x: int, array: Array) -> int | None:
    site = writer.site
    if array.shape[0] <= FEW_COLUMNS:
        return None
    shape = site.op.type.shape
    rows = writer.reshape(x, (prod(shape[:-1]), array.shape[1]))
    array, factor, most = scale_to_one(array, (1,))
    divisor = writer.divisor(writer.largest(rows, (1,)), most)
    product, small = _products(writer, writer.add("BinOp", rows, divisor, op="Div"), array)
    back = writer.times(divisor, 1 / factor)
    result = writer.add("BinOp", writer.join(product, small), back, op="Mul")
    return writer.reshape(result, shape)


def _products(writer: F32Writer, rows: int, array: Array) -> tuple[int, int]:
    """Rows by weights in f16, and what that leaves."""
    site = writer.site
    high, rest = writer.split(rows)
    first, second = split_in_halves(array)
    product = site.add("Linear", high, site.literal(first, "f16"))
    operands, weights = [rest, high], [first, second]
    if writer.needs_more_digits:
        operands += [high, product]
        weights += [first * REST, -REST * np.eye(len(array))]
    joined = site.add("Concat", *operands, axis=1)
    both = site.literal(np.concatenate(weights, axis=1), "f16")
    return product, site.add("Linear", joined, both)


def _convolution(writer: F32Writer, x: int, array: Array) -> int | None:
    """Windows overlap, so a whole tensor is divided by its largest element."""
    site, given = writer.site, writer.site.op.attributes
    if site.attributes["groups"] != 1 or site.attributes["layout"] != "NHWC":
        return None
    if writer.needs_more_digits and _is_along_row(site, x):
        return _frame_windows(writer, x, array)
    array, factor, most = scale_to_one(array, (0, 1, 2))
    divisor, scaled = writer.scale_to_largest(x, most)
    high, rest = writer.split(scaled)
    first, second = split_in_halves(array)
    both = site.literal(np.concatenate([first, second], axis=2), "f16")
    product = site.add("Conv", high, site.literal(first, "f16"), **given)
    small = site.add("Conv", site.add("Concat", rest, high, axis=3), both, **given)
    return writer.add(
        "BinOp", writer.join(product, small), writer.times(divisor, 1 / factor), op="Mul"
    )


def _is_along_row(site: RewriteSite, x: int) -> bool:
    """Whether windows go along one row without borders and gaps, as the frames of sound do."""
    given: Mapping[str, Any] = site.attributes
    is_row = site.type(x).shape[:2] == (1, 1) and not any(given["pads"] or ())
    return is_row and set(given["dilations"] or (1,)) == {1}


def _frame_windows(writer: F32Writer, x: int, array: Array) -> int:
    """Windows along a row, each as a row of its own: `_linear` gives more digits."""
    site, shape = writer.site, writer.site.op.type.shape
    given: Mapping[str, Any] = site.attributes
    _, width, channels, columns = array.shape
    step = (given["strides"] or (1, 1))[1]
    places = np.arange(shape[2])[:, None] * step + np.arange(width)
    row = writer.reshape(x, (site.type(x).shape[2], channels))
    divisor, scaled = writer.scale_to_largest(row, LARGEST)
    indices = site.literal(places.ravel(), "i32")
    halves = [site.add("GatherAxis", half, indices, axis=0) for half in writer.split(scaled)]
    frames = writer.reshape(writer.join(*halves), (shape[2], width * channels))
    weights, factor, most = scale_to_one(array.reshape(-1, columns).T, (1,))
    frames = writer.times(frames, most / LARGEST)
    product, small = _products(writer, frames, weights)
    back = writer.times(divisor, LARGEST / most / factor)
    result = writer.add("BinOp", writer.join(product, small), back, op="Mul")
    return writer.reshape(result, shape)


def scale_down_product(writer: F32Writer, largest: float) -> int | None:
    """A product of f16 whose result is beyond it: weights are others, the result is multiplied.

    `largest` is about the largest element of x. The factor is a power of two, so nothing is lost.
    """
    site = writer.site
    x, weights, *bias = site.operands
    array = site.constant(weights)
    if array is None or not array.size:
        return None
    axes = (1,) if site.op.opcode == "Linear" else tuple(range(array.ndim - 1))
    sums = float(np.max(np.sum(np.abs(array.astype(np.float64)), axis=axes)))
    reach = max(1.0, min(_OFTEN * largest, _TOP))
    factor = 2.0 ** ceil(log2(max(sums * reach, 1e-300) / _TOP))
    x, smaller = site.add("Cast", x, to="f16"), site.literal(array / factor, "f16")
    result = site.add(site.op.opcode, x, smaller, **site.op.attributes)
    result = writer.times(site.add("Cast", result, to="f32"), factor)
    return writer.add("BinOp", result, bias[0], op="Add") if bias else result
