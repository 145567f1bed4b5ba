"""How the elements of a tensor lie in the bytes of a memory: views where possible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nacre.base.elements import ELEMENT_TYPES, ElementType, bytes_needed
from nacre.base.packing import pack_i4, unpack_i4
from nacre.kernels.interface.call import Array
from nacre.kernels.interface.shapes import Dims, count, dense_strides

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


class Layout(ABC):
    """Elements of one type and shape, wherever in a memory they begin."""

    shape: Dims
    span: int  # bytes from the offset to the end of the last element
    is_dense: bool
    is_view: bool  # `array` shares the memory's bytes, so that filling it is writing
    element_bytes: int = 1  # that an element lies in

    @abstractmethod
    def array(self, data: Bytes, offset: int) -> Array:
        """The elements at an offset: the bytes themselves, or a copy where they are packed."""

    @abstractmethod
    def put(self, data: Bytes, offset: int, values: Array) -> None:
        """Write elements at an offset."""

    @abstractmethod
    def flags(self, mask: Mask, offset: int) -> Mask:
        """Element by element, whether a mask over bytes holds in all of its bytes."""

    @abstractmethod
    def put_flags(self, mask: Mask, offset: int, flags: Mask | bool) -> None:
        """Set the mask in the bytes of each element; a shared byte holds if both sharers do."""

    @abstractmethod
    def first_bytes(self) -> npt.NDArray[np.int64]:
        """The first byte of every element, counted from the offset, in memory order of shapes."""

    def holds(self, mask: Mask, offset: int) -> bool:
        """Whether the mask holds in every byte of the elements."""
        if self.is_dense:
            return bool(mask[offset : offset + self.span].all())
        return bool(self.flags(mask, offset).all())


class PlainLayout(Layout):
    """Elements of whole bytes, dense or strided."""

    is_view = True

    def __init__(self, element: ElementType, shape: Dims, strides: Dims | None) -> None:
        self.shape = shape
        self._dtype = element.dtype
        self._size = self.element_bytes = self._dtype.itemsize
        self._strides = None if strides is None else tuple(s * self._size for s in strides)
        self.is_dense = strides is None
        self.span = _span(shape, self._strides, self._size)

    def array(self, data: Bytes, offset: int) -> Array:
        """A view of the bytes."""
        return np.ndarray(self.shape, self._dtype, data, offset, self._strides)

    def put(self, data: Bytes, offset: int, values: Array) -> None:
        """Write elements at an offset."""
        self.array(data, offset)[...] = values

    def _bytes(self, mask: Mask, offset: int) -> Mask:
        """A view of the mask with one more axis: the bytes of an element."""
        shape = (*self.shape, self._size)
        strides = None if self._strides is None else (*self._strides, 1)
        return np.ndarray(shape, np.bool_, mask, offset, strides)

    def flags(self, mask: Mask, offset: int) -> Mask:
        """Whether the mask holds in all bytes of an element."""
        return np.asarray(self._bytes(mask, offset).all(axis=-1))

    def put_flags(self, mask: Mask, offset: int, flags: Mask | bool) -> None:
        """Set the mask in the bytes of each element."""
        self._bytes(mask, offset)[...] = np.asarray(flags)[..., None]

    def first_bytes(self) -> npt.NDArray[np.int64]:
        """Whole bytes apart."""
        strides = self._strides or tuple(s * self._size for s in dense_strides(self.shape))
        return _element_numbers(self.shape, strides).reshape(-1)


class PackedLayout(Layout):
    """Elements of four bits, dense: two to a byte, low nibble first, a spare nibble 0."""

    is_view = False
    is_dense = True

    def __init__(self, element: ElementType, shape: Dims) -> None:
        self.shape = shape
        self._count = count(shape)
        self.span = bytes_needed(self._count, element)

    def array(self, data: Bytes, offset: int) -> Array:
        """The values, one to a byte."""
        return unpack_i4(data[offset : offset + self.span], self._count).reshape(self.shape)

    def put(self, data: Bytes, offset: int, values: Array) -> None:
        """Pack values and write them."""
        data[offset : offset + self.span] = pack_i4(values)

    def flags(self, mask: Mask, offset: int) -> Mask:
        """Whether the mask holds in an element's byte."""
        return np.repeat(mask[offset : offset + self.span], 2)[: self._count].reshape(self.shape)

    def put_flags(self, mask: Mask, offset: int, flags: Mask | bool) -> None:
        """Set the mask in each byte to what both of its elements say."""
        pairs = np.ones(2 * self.span, np.bool_)
        pairs[: self._count] = np.broadcast_to(flags, self.shape).reshape(-1)
        mask[offset : offset + self.span] = pairs[0::2] & pairs[1::2]

    def first_bytes(self) -> npt.NDArray[np.int64]:
        """Two elements share one."""
        return np.arange(self._count, dtype=np.int64) >> 1


class NibbleLayout(Layout):
    """Elements of four bits with strides: each is found by the number of its nibble."""

    is_view = False
    is_dense = False

    def __init__(self, shape: Dims, strides: Dims) -> None:
        self.shape = shape
        self._nibbles = _element_numbers(shape, strides)
        self._bytes = self._nibbles >> 1
        self._is_high = (self._nibbles & 1).astype(bool)
        self.span = int(self._bytes.max()) + 1

    def array(self, data: Bytes, offset: int) -> Array:
        """The values, one to a byte."""
        stored = data[offset + self._bytes]
        nibbles = np.where(self._is_high, stored >> 4, stored & 0xF)
        signed: Array = (nibbles << 4).view(np.int8) >> 4
        return signed

    def put(self, data: Bytes, offset: int, values: Array) -> None:
        """Write nibbles; the other half of a byte stays as it is."""
        nibbles = (values.astype(np.int8) & 0xF).view(np.uint8)
        # One half at a time: two elements may share a byte.
        for half, keep, shift in ((~self._is_high, 0xF0, 0), (self._is_high, 0x0F, 4)):
            addresses = offset + self._bytes[half]
            data[addresses] = (data[addresses] & keep) | (nibbles[half] << shift)

    def flags(self, mask: Mask, offset: int) -> Mask:
        """Whether the mask holds in an element's byte."""
        found: Mask = mask[offset + self._bytes]
        return found

    def put_flags(self, mask: Mask, offset: int, flags: Mask | bool) -> None:
        """Set the mask in each byte to what its elements say."""
        places = offset + self._bytes
        mask[places] = True
        mask[places[~np.broadcast_to(flags, self.shape)]] = False

    def first_bytes(self) -> npt.NDArray[np.int64]:
        """The byte of each nibble."""
        return self._bytes.reshape(-1)


def _element_numbers(shape: Dims, strides: Dims) -> npt.NDArray[np.int64]:
    numbers = np.zeros(shape, np.int64)
    for axis, (dim, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(dim, dtype=np.int64) * stride
        numbers += steps.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return numbers


def _span(shape: Dims, strides: Dims | None, size: int) -> int:
    if strides is None:
        return count(shape) * size
    return sum((dim - 1) * s for dim, s in zip(shape, strides, strict=True)) + size


@lru_cache(maxsize=4096)
def _make_layout(name: str, shape: Dims, strides: Dims | None) -> Layout:
    element = ELEMENT_TYPES[name]
    # The stride of a dimension of 1 leads nowhere, whatever it is.
    usual = dense_strides(shape)
    if strides is not None:
        strides = tuple(u if d == 1 else s for d, s, u in zip(shape, strides, usual, strict=True))
    if strides == usual:
        strides = None
    if element.bits >= 8:
        return PlainLayout(element, shape, strides)
    return PackedLayout(element, shape) if strides is None else NibbleLayout(shape, strides)


def layout(element: ElementType, shape: Dims, strides: Dims | None = None) -> Layout:
    """The layout of a tensor; strides count elements."""
    return _make_layout(element.name, shape, strides)
