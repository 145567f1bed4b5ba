"""The second moments of what products on integers are given: what an error of weights costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.values import Array

_MOST_ROWS = 2  # for each input of a sum: more tell little more
_LEAST_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of products of inputs, [groups, depth, depth], and of how many rows."""

    sums: Array
    rows: int


def weight_rows(op: CoreOperation, weights: Array) -> Array:
    """Weights of a product as [groups, columns, depth]."""
    if op.opcode == "QLinear":
        return weights[None]
    groups, columns = _groups(op), weights.shape[-1]
    split = weights.reshape(-1, groups, columns // groups)
    return np.asarray(np.moveaxis(split, 0, 2))


def from_weight_rows(op: CoreOperation, rows: Array, shape: tuple[int, ...]) -> Array:
    """The reverse of `weight_rows`."""
    if op.opcode == "QLinear":
        return np.asarray(rows[0])
    return np.ascontiguousarray(np.moveaxis(rows, 2, 0)).reshape(shape)


def input_moments(
    op: CoreOperation, window: Sequence[int], inputs: Sequence[Array], *, is_centred: bool
) -> Moments:  # fmt: skip
    """The moments of some of the inputs of a product, which are evenly spread over its results.

    `window` are the sizes of a convolution's; the zero point is taken off, so padding is 0.
    `is_centred`: about the means, for where a bias takes back what weights do to those.
    """
    zero = int(op.attributes["x_zero"])
    rows = np.concatenate([_some_rows(op, window, x, zero, len(inputs)) for x in inputs], axis=1)
    if is_centred:
        rows -= rows.mean(axis=1, keepdims=True)
    return Moments(np.matmul(rows.transpose(0, 2, 1), rows), rows.shape[1])


def _some_rows(
    op: CoreOperation, window: Sequence[int], x: Array, zero: int, shares: int
) -> Array:  # fmt: skip
    """Inputs of single results, [groups, rows, depth], in f32."""
    if op.opcode == "QLinear":
        flat = x.reshape(-1, x.shape[-1])
        some = flat[_evenly_spaced(len(flat), flat.shape[1], shares)]
        return (some.astype(np.float32) - zero)[None]
    given = OPS["QConv"].with_defaults(op.attributes)
    strides, dilations = (_pair(given[name]) for name in ("strides", "dilations"))
    (top, left, bottom, right), groups = given["pads"] or (0,) * 4, _groups(op)
    padded = np.pad(
        x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=np.int8(zero)
    )
    images, height, width = op.type.shape[:3]
    depth = int(np.prod(window)) * x.shape[-1] // groups
    count = images * height * width
    places = np.arange(count)[_evenly_spaced(count, depth, shares)]
    image, down, along = np.unravel_index(places, (images, height, width))
    taps = [
        padded[image, down * strides[0] + y * dilations[0], along * strides[1] + z * dilations[1]]
        for y in range(window[0])
        for z in range(window[1])
    ]
    rows = np.stack(taps, axis=1).astype(np.float32) - zero
    split = rows.reshape(len(places), len(taps), groups, -1)
    return np.ascontiguousarray(split.transpose(2, 0, 1, 3)).reshape(groups, len(places), -1)


def _evenly_spaced(count: int, depth: int, shares: int) -> slice:
    """Evenly spaced indices, no more than a share of what is enough."""
    enough = max(_LEAST_ROWS, _MOST_ROWS * depth) // shares + 1
    return slice(None, None, -(-count // enough))


def _pair(given: Sequence[int]) -> tuple[int, int]:
    """Sizes along rows and columns; 1 where none are given."""
    first, second = given or (1, 1)
    return first, second


def _groups(op: CoreOperation) -> int:
    return int(OPS["QConv"].with_defaults(op.attributes)["groups"])
