"""Which keys a query may look at: masks known at import, given, or both."""

from __future__ import annotations

from math import prod

import numpy as np
from msgspec import Struct

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.tensors import broadcast, combine, in_type, shape_of, with_shape
from nacre.core.onnx.use import OnnxNode, Tensor
from nacre.core.values import Array


class Places(Struct, frozen=True):
    """How many queries and keys there are; the first query stands behind `offset` keys."""

    batch: int
    queries: int
    keys: int
    offset: int = 0


def places_of(
    use: OnnxNode, places: Places, left: int, right: int, lengths: Tensor | None
) -> Tensor | None:
    """Where keys lie from `left` before a query to `right` behind it, and inside the lengths.

    A side below 0 is open. With lengths, of which there is one for each of the batch, the last
    query stands at the last key that counts.
    """
    keys: Array = np.arange(places.keys, dtype=np.int64)
    if lengths is not None:
        count = with_shape(use, in_type(use, lengths, "i64"), (places.batch, 1, 1, 1))
        inside = compare(use, "Lt", keys, count)
        own: Array = np.arange(places.queries, dtype=np.int64)[:, None] - places.queries
        stands = combine(use, "Add", own, count)
        return join_masks(use, inside, _window(use, keys, stands, left, right))
    if left < 0 and right < 0:
        return None
    stands = np.arange(places.queries, dtype=np.int64)[:, None] + places.offset
    return _window(use, keys, stands, left, right)


def _window(use: OnnxNode, keys: Array, stands: Tensor, left: int, right: int) -> Tensor | None:
    sides = []
    if left >= 0:
        start = combine(use, "Sub", stands, np.array(left, np.int64))
        sides.append(compare(use, "Ge", keys, start))
    if right >= 0:
        end = combine(use, "Add", stands, np.array(right, np.int64))
        sides.append(compare(use, "Le", keys, end))
    return join_masks(use, *sides) if sides else None


_MOST_KNOWN = 1 << 22  # elements of a mask; larger ones are left to the run
_RELATIONS = {"Lt": np.less, "Le": np.less_equal, "Ge": np.greater_equal, "Eq": np.equal}


def compare(use: OnnxNode, op: str, a: Tensor, b: Tensor) -> Tensor:
    """Whether a relation holds."""
    count = prod(broadcast(use, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and count <= _MOST_KNOWN:
        return np.asarray(_RELATIONS[op](a, b))
    return use.add("Compare", use.materialise(a), use.materialise(b), op=op)


def join_masks(use: OnnxNode, *masks: Tensor | None) -> Tensor | None:
    """What every mask lets take part; one of them may hold floats that are added to scores."""
    given = [mask for mask in masks if mask is not None]
    bools = [mask for mask in given if use.type_of(mask).dtype == "bool"]
    floats = [mask for mask in given if use.type_of(mask).dtype != "bool"]
    allowed: Tensor | None = None
    for mask in bools:
        allowed = mask if allowed is None else combine(use, "And", allowed, mask)
    if len(floats) > 1:
        raise Unsound("two masks are added to the scores")
    if not floats or allowed is None:
        return floats[0] if floats else allowed
    return _mask_bias(use, allowed, floats[0])


def _mask_bias(use: OnnxNode, allowed: Tensor, bias: Tensor) -> Tensor:
    """The bias where something may take part, minus infinity elsewhere."""
    never = use.scalar(float("-inf"), use.type_of(bias).dtype)
    return use.add("Where", use.materialise(allowed), use.materialise(bias), never)


def additive(use: OnnxNode, mask: Tensor, dtype: str) -> Tensor:
    """A mask as numbers to be added."""
    if use.type_of(mask).dtype != "bool":
        return mask
    if isinstance(mask, np.ndarray):
        return in_type(use, np.where(mask, np.float32(0), np.float32(-np.inf)), dtype)
    return _mask_bias(use, mask, in_type(use, np.zeros((), np.float32), dtype))


def blind_rows(use: OnnxNode, mask: Tensor) -> Tensor | None:
    """The queries that may look at no key, where there can be any."""
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        found: Array = np.logical_not(np.any(mask, axis=-1, keepdims=True))
        return found if found.any() else None
    value, last = use.materialise(mask), len(shape_of(use, mask)) - 1
    if last < 0:
        raise Unsound("the mask is one number")
    if use.type_of(mask).dtype == "bool":
        seen = use.add("Reduce", value, op="Any", axes=(last,), keepdims=True)
        return use.add("Unary", seen, op="Not")
    top = use.add("Reduce", value, op="Max", axes=(last,), keepdims=True)
    return use.add("Compare", top, use.scalar(float("-inf"), use.type_of(mask).dtype), op="Eq")
