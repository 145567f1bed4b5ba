"""Which keys a query may look at: masks known at import, given, or both."""

from __future__ import annotations

from math import prod

import numpy as np
from msgspec import Struct

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.tensors import broadcast, cast_tensor, combine, shape_of, with_shape
from nacre.core.values import Array


class AttentionSizes(Struct, frozen=True):
    """How many queries and keys there are; the first query stands behind `offset` keys."""

    batch: int
    queries: int
    keys: int
    offset: int = 0


def window_mask(
    node: OnnxNode, sizes: AttentionSizes, left: int, right: int, lengths: Tensor | None
) -> Tensor | None:
    """Where keys lie from `left` before a query to `right` behind it, and inside the lengths.

    A side below 0 is open. With lengths, of which there is one for each of the batch, the last
    query stands at the last key that counts.
    """
    keys: Array = np.arange(sizes.keys, dtype=np.int64)
    if lengths is not None:
        count = with_shape(node, cast_tensor(node, lengths, "i64"), (sizes.batch, 1, 1, 1))
        inside = compare(node, "Lt", keys, count)
        own: Array = np.arange(sizes.queries, dtype=np.int64)[:, None] - sizes.queries
        stands = combine(node, "Add", own, count)
        return join_masks(node, inside, _within_window(node, keys, stands, left, right))
    if left < 0 and right < 0:
        return None
    stands = np.arange(sizes.queries, dtype=np.int64)[:, None] + sizes.offset
    return _within_window(node, keys, stands, left, right)


def _within_window(
    node: OnnxNode, keys: Array, stands: Tensor, left: int, right: int
) -> Tensor | None:
    sides = []
    if left >= 0:
        start = combine(node, "Sub", stands, np.array(left, np.int64))
        sides.append(compare(node, "Ge", keys, start))
    if right >= 0:
        end = combine(node, "Add", stands, np.array(right, np.int64))
        sides.append(compare(node, "Le", keys, end))
    return join_masks(node, *sides) if sides else None


_MOST_KNOWN = 1 << 22  # elements of a mask; larger ones are left to the run
_RELATIONS = {"Lt": np.less, "Le": np.less_equal, "Ge": np.greater_equal, "Eq": np.equal}


def compare(node: OnnxNode, op: str, a: Tensor, b: Tensor) -> Tensor:
    """Whether a relation holds."""
    count = prod(broadcast(node, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and count <= _MOST_KNOWN:
        return np.asarray(_RELATIONS[op](a, b))
    return node.add("Compare", node.materialise(a), node.materialise(b), op=op)


def join_masks(node: OnnxNode, *masks: Tensor | None) -> Tensor | None:
    """What every mask lets take part; one of them may hold floats that are added to scores."""
    given = [mask for mask in masks if mask is not None]
    bools = [mask for mask in given if node.type_of(mask).dtype == "bool"]
    floats = [mask for mask in given if node.type_of(mask).dtype != "bool"]
    allowed: Tensor | None = None
    for mask in bools:
        allowed = mask if allowed is None else combine(node, "And", allowed, mask)
    if len(floats) > 1:
        raise Unsound("two masks are added to the scores")
    if not floats or allowed is None:
        return floats[0] if floats else allowed
    return _mask_bias(node, allowed, floats[0])


def _mask_bias(node: OnnxNode, allowed: Tensor, bias: Tensor) -> Tensor:
    """The bias where something may take part, minus infinity elsewhere."""
    never = node.scalar(float("-inf"), node.type_of(bias).dtype)
    return node.add("Where", node.materialise(allowed), node.materialise(bias), never)


def additive_mask(node: OnnxNode, mask: Tensor, dtype: str) -> Tensor:
    """A mask as numbers to be added."""
    if node.type_of(mask).dtype != "bool":
        return mask
    if isinstance(mask, np.ndarray):
        return cast_tensor(node, np.where(mask, np.float32(0), np.float32(-np.inf)), dtype)
    return _mask_bias(node, mask, cast_tensor(node, np.zeros((), np.float32), dtype))


def fully_masked_queries(node: OnnxNode, mask: Tensor) -> Tensor | None:
    """The queries that may look at no key, where there can be any."""
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        is_masked: Array = np.logical_not(np.any(mask, axis=-1, keepdims=True))
        return is_masked if is_masked.any() else None
    value, last = node.materialise(mask), len(shape_of(node, mask)) - 1
    if last < 0:
        raise Unsound("the mask is one number")
    if node.type_of(mask).dtype == "bool":
        seen = node.add("Reduce", value, op="Any", axes=(last,), keepdims=True)
        return node.add("Unary", seen, op="Not")
    top = node.add("Reduce", value, op="Max", axes=(last,), keepdims=True)
    return node.add("Compare", top, node.scalar(float("-inf"), node.type_of(mask).dtype), op="Eq")
