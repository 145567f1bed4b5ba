"""Packing of 4-bit integers: two to a byte, low nibble first; a spare nibble is 0."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.elements import ElementType

_BYTE = 8  # bits
_NIBBLE = 0xF

# Array types of ml_dtypes whose elements take a byte in an array and half of one in memory.
NIBBLE_TYPES = frozenset({"int4", "uint4"})
# Those whose elements are as narrow, or narrower, and have no place in memory.
UNPACKED_TYPES = frozenset(
    {"int1", "uint1", "int2", "uint2", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"}
)


def pack_i4(values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Pack integers in -8..7 (any shape, C order) into ceil(n / 2) bytes."""
    elements = np.asarray(values).reshape(-1)
    # The range is that of the values as given: a huge uint64 would wrap into -8..7.
    if elements.size and (int(elements.min()) < -8 or int(elements.max()) > 7):
        raise ValueError(f"i4 holds -8..7, found {int(elements.min())}..{int(elements.max())}")
    flat = elements.astype(np.int64, copy=False)
    nibbles = np.zeros(flat.size + flat.size % 2, np.uint8)
    nibbles[: flat.size] = np.bitwise_and(flat, 0xF).astype(np.uint8)
    return nibbles[0::2] | np.left_shift(nibbles[1::2], 4, dtype=np.uint8)


def unpack_i4(packed: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.int8]:
    """The first `count` values of a packed array, sign-extended to int8."""
    if not 0 <= count <= 2 * packed.size:
        raise ValueError(f"{packed.size} bytes hold {2 * packed.size} i4 values, {count} asked for")
    # No index is out of range; without `clip` NumPy would check each.
    return _pairs().take(packed.reshape(-1), mode="clip").view(np.int8)[:count]


@cache
def _pairs() -> npt.NDArray[np.uint16]:
    """The two values of every byte, one behind the other in memory."""
    both = np.arange(256, dtype=np.uint8)[:, None] << np.array([4, 0], np.uint8)
    # A nibble above 7 is negative: moving its sign bit to bit 7 and back extends it.
    return (both.view(np.int8) >> 4).view(np.uint16).reshape(-1)


def pack_nibbles(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """An array of `int4` or `uint4`, or of bytes whose values fit, as memory holds it."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    packed: npt.NDArray[np.uint8] = np.bitwise_and(flat[0::2], _NIBBLE, dtype=np.uint8)
    high = flat[1::2]
    packed[: high.size] |= np.left_shift(high, 4, dtype=np.uint8)
    return packed


def unpack_nibbles(
    packed: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Elements of `int4` or `uint4` from memory."""
    values = unpack_i4(packed, int(np.prod(shape, dtype=np.int64))).reshape(shape)
    return (values & 0xF if dtype.name == "uint4" else values).astype(dtype)


def as_nibbles(array: npt.NDArray[Any], element: ElementType) -> npt.NDArray[Any]:
    """Integers of a byte as those of 4 bits, if all fit: NumPy and its files have no others."""
    if element.bits >= _BYTE or array.dtype.name not in ("int8", "uint8") or not array.size:
        return array
    fits = element.lowest <= int(array.min()) and int(array.max()) <= element.highest
    return array.astype(element.dtype) if fits else array


def nibbles_of_file(data: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Bytes that a NumPy file kept of `int4` or `uint4`; ValueError where one is no nibble."""
    raw = np.ascontiguousarray(data).view(np.uint8)
    if raw.size and int(raw.max()) > _NIBBLE:
        raise ValueError(f"a byte of {name} is 0 to {_NIBBLE}, found {int(raw.max())}")
    import ml_dtypes

    return raw.view(getattr(ml_dtypes, name))


def is_untyped(stored: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether elements may be those of a type that NumPy's files keep nothing of but its size."""
    is_numpys_own = wanted.isbuiltin == 1
    is_plain = stored.kind == "V" and stored.names is None and stored.subdtype is None
    return is_plain and not is_numpys_own and stored.itemsize == wanted.itemsize


def restore_type(array: npt.NDArray[Any], wanted: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array with the type that its file lost; ValueError where a byte is no nibble."""
    if not is_untyped(array.dtype, wanted):
        return array
    return (
        nibbles_of_file(array, wanted.name) if wanted.name in NIBBLE_TYPES else array.view(wanted)
    )
