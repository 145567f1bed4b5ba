"""Products that read the channels of another one: where a factor can go from one to the other.

What stands between must do to `x / s` what it does to `x`, over `s`, for every positive `s`:
nothing at all, a ReLU, a LeakyReLU, bounds at 0, a pooling, axes of size 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from nacre.compile.quantise.roles import Graph, bounds_of
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.values import Array, Literal

_POOLS = frozenset({"MaxPool", "AvgPool"})


@dataclass(frozen=True)
class ChannelPair:
    """A product, what its channels are when they are stored, and the products that read them."""

    maker: int
    stored: int
    readers: tuple[int, ...]


def channel_pairs(graph: Graph) -> Iterator[ChannelPair]:
    """Every such pair of a module whose constants have no other use."""
    uses = Counter(operand for op in graph.module.operations for operand in op.operands)
    for op in graph.module.operations:
        if not _is_product(graph, op, uses):
            continue
        value = _last_homogeneous(graph, op)
        readers = graph.users.get(value, [])
        if value not in graph.kept and readers and all(
            _is_product(graph, reader, uses) and value not in reader.operands[1:]
            for reader in readers
        ):  # fmt: skip
            yield ChannelPair(op.value_id, value, tuple(one.value_id for one in readers))


def by_input_channel(op: CoreOperation, weights: Array) -> Array:
    """Weights of a product with the channels of its input as the first axis, as a view.

    The axes behind are whatever else there is.
    """
    if op.opcode == "Linear":
        return weights.T
    groups = groups_of(op)
    *window, channels, columns = weights.shape
    split = weights.reshape(*window, channels, groups, columns // groups)
    moved = np.moveaxis(split, (-2, -3), (0, 1))
    return moved.reshape(groups * channels, -1)


def with_input_factors(op: CoreOperation, weights: Array, factors: Array) -> Array:
    """Weights of a product whose input is divided by a factor for each channel."""
    if op.opcode == "Linear":
        return np.asarray(weights * factors)
    groups = groups_of(op)
    *window, channels, columns = weights.shape
    split = weights.reshape(*window, channels, groups, columns // groups)
    return np.asarray(split * factors.reshape(groups, channels).T[..., None]).reshape(weights.shape)


def groups_of(op: CoreOperation) -> int:
    """The groups of a convolution."""
    return int(OPS["Conv"].with_defaults(op.attributes)["groups"])


def _is_product(graph: Graph, op: CoreOperation, uses: Counter[int]) -> bool:
    """Whether weights, and a bias where there is one, are constants of this product alone."""
    if graph.roles[op.value_id] != "product" or _layout(op) != "NHWC":
        return False
    return all(
        uses[operand] == 1 and isinstance(graph.op(operand).attributes.get("data"), Literal)
        for operand in op.operands[1:]
    )


def _layout(op: CoreOperation) -> str:
    return str(OPS[op.opcode].with_defaults(op.attributes).get("layout", "NHWC"))


def _last_homogeneous(graph: Graph, op: CoreOperation) -> int:
    """What becomes of a product before something sees it that factors are not nothing to."""
    while (user := graph.only_user(op.value_id)) is not None and _is_homogeneous(graph, user):
        op = user
    return op.value_id


def _is_homogeneous(graph: Graph, op: CoreOperation) -> bool:
    if op.opcode in _POOLS:
        return _layout(op) == "NHWC"
    if op.opcode == "Reshape":
        return op.type.shape[-1:] == graph.op(op.operands[0]).type.shape[-1:]
    bounds = bounds_of(op)
    if bounds is not None:
        return set(bounds) <= {-inf, 0.0, inf}
    return op.opcode in ("Relu", "LeakyRelu")
