"""The `.safetensors` format: a length, a JSON header with a row a tensor, then the bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from nacre.base.elements import GRAPH_TYPES, ElementType, bytes_needed
from nacre.base.excerpt import backquote
from nacre.base.packing import pack_nibbles, unpack_nibbles
from nacre.base.source import Unreadable, read_bytes
from nacre.core.module import TensorType
from nacre.core.values import Array

MAX_TENSOR_FILE_BYTES = 1 << 37  # far above what memory holds: an accident, not a model
_LENGTH_BYTES = 8
_METADATA = "__metadata__"  # the one key that is no tensor
_PACKED = "U8"  # of integers of 4 bits, two to a byte: the format has no type for them
_NAMES = MappingProxyType(
    {
        "bool": "BOOL", "i4": "I8", "u4": "U8", "i8": "I8", "u8": "U8", "i16": "I16", "u16": "U16",
        "i32": "I32", "u32": "U32", "i64": "I64", "f16": "F16", "bf16": "BF16", "f32": "F32",
        "f64": "F64", "f8e4m3": "F8_E4M3", "f8e5m2": "F8_E5M2",
    }
)  # fmt: skip


class TensorProblem(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """Why a file or a tensor in it cannot be had."""


class _Row(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def tensor_file_parts(tensors: Mapping[str, tuple[str, Array]]) -> Iterator[bytes]:
    """The bytes of a file: arrays by key, each with the element type that it is declared as."""
    rows: dict[str, _Row] = {}
    at = 0
    for key, (dtype, array) in tensors.items():
        size = bytes_needed(array.size, GRAPH_TYPES[dtype])
        is_packed = GRAPH_TYPES[dtype].bits < 8
        name, shape = (_PACKED, (size,)) if is_packed else (_NAMES[dtype], array.shape)
        rows[key] = _Row(name, shape, (at, at + size))
        at += size
    header = msgspec.json.encode(rows)
    header += b" " * (-len(header) % _LENGTH_BYTES)
    yield len(header).to_bytes(_LENGTH_BYTES, "little")
    yield header
    for dtype, array in tensors.values():
        stored = array.astype(_stored_type(GRAPH_TYPES[dtype]))
        yield (pack_nibbles(stored) if GRAPH_TYPES[dtype].bits < 8 else stored).tobytes()


def _stored_type(element: ElementType) -> np.dtype[Any]:
    if element.bits < 8:
        return np.dtype(np.int8 if element.kind == "signed" else np.uint8)
    dtype = element.dtype
    return dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype


# Elements of half a byte lie in whole ones: what follows from them is of the type itself.
_TYPES = MappingProxyType({_NAMES[name]: name for name in _NAMES if GRAPH_TYPES[name].bits >= 8})
_SIZES = MappingProxyType(
    {_NAMES[name]: _stored_type(GRAPH_TYPES[name]).itemsize for name in _NAMES}
)


class TensorFile:
    """The contents of a file; a tensor is looked at when it is asked for."""

    def __init__(self, raw: bytes, rows: Mapping[str, msgspec.Raw], start: int) -> None:
        self._raw = raw
        self._rows = rows
        self._start = start  # of the tensors' bytes
        self._unpacked: dict[tuple[str, str], Array] = {}  # for all who ask, as bytes are

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return len(self._raw)

    @property
    def names(self) -> list[str]:
        """The keys of the tensors, in the order of the file."""
        return [key for key in self._rows if key != _METADATA]

    def type_of(self, key: str) -> TensorType:
        """The type of a tensor as the file has it; TensorProblem for one that is not read."""
        row = self._row(key)
        if row.dtype not in _TYPES:
            raise TensorProblem(f"tensor `{key}` is of {backquote(row.dtype)}, which is not read")
        if any(dim < 0 for dim in row.shape):
            raise TensorProblem(f"tensor `{key}` has a dimension below 0")
        return TensorType(_TYPES[row.dtype], row.shape)

    def derived_tensor(self, key: str, axes: tuple[int, ...], wanted: TensorType) -> Array:
        """The tensor of that key with its axes in that order, reshaped, and of that type."""
        row = self._row(key)
        dtype = _TYPES.get(row.dtype)
        if dtype is None or not may_derive(wanted.dtype, dtype):
            raise TensorProblem(f"no {wanted.dtype} follows from tensor `{key}` of {row.dtype}")
        if sorted(axes) != list(range(len(row.shape))) or prod(row.shape) != prod(wanted.shape):
            stored_text = f"{row.dtype}[{', '.join(map(str, row.shape))}]"
            message = (
                f"no {wanted} follows from tensor `{key}` of the file, {stored_text}, by {axes}"
            )
            raise TensorProblem(message)
        return derive_array(self.tensor(key, TensorType(dtype, row.shape)), axes, wanted)

    def tensor(self, key: str, wanted: TensorType) -> Array:
        """The tensor of that key, which must be of that type."""
        row = self._row(key)
        if wanted.element.bits < 8 and (row.dtype, row.shape) == (_PACKED, (wanted.size_bytes,)):
            return self._nibbles(key, row.shape, wanted)
        if (row.dtype, row.shape) != (_NAMES[wanted.dtype], wanted.shape):
            stored_text = f"{row.dtype}[{', '.join(map(str, row.shape))}]"
            raise TensorProblem(f"tensor `{key}` of the file is {stored_text}, expected {wanted}")
        element = wanted.element
        stored = _stored_type(element)
        first, last = row.data_offsets
        size = stored.itemsize
        for dim in wanted.shape:
            size *= dim
        if not 0 <= first <= last <= len(self._raw) - self._start or last - first != size:
            message = f"tensor `{key}` lies at [{first}, {last}), expected {size} bytes of the file"
            raise TensorProblem(message)
        count = size // stored.itemsize
        values = np.frombuffer(self._raw, stored, count, self._start + first)
        _check_values(values, key, element)
        return values.reshape(wanted.shape).astype(element.dtype, copy=not values.flags.aligned)

    def _nibbles(self, key: str, packed_shape: tuple[int, ...], wanted: TensorType) -> Array:
        place = (key, str(wanted))
        if place not in self._unpacked:
            packed = self.tensor(key, TensorType("u8", packed_shape))
            found = unpack_nibbles(packed, wanted.shape, wanted.element.dtype)
            found.setflags(write=False)
            self._unpacked[place] = found
        return self._unpacked[place]

    def _row(self, key: str) -> _Row:
        raw = self._rows.get(key)
        if raw is None or key == _METADATA:
            raise TensorProblem(f"the file holds no tensor `{key}`")
        try:
            return msgspec.json.decode(raw, type=_Row)
        except (msgspec.DecodeError, RecursionError) as error:
            raise TensorProblem(f"the row of tensor `{key}` is malformed") from error


def may_derive(dtype: str, source: str) -> bool:
    """Whether numbers of a type are those of another, rounded alike on every machine."""
    both = GRAPH_TYPES[dtype], GRAPH_TYPES[source]
    return dtype == source or all(element.kind == "float" for element in both)


def derive_array(array: Array, axes: tuple[int, ...], wanted: TensorType) -> Array:
    """An array with its axes in that order, reshaped, and of that type."""
    with np.errstate(all="ignore"):
        made: Array = array.transpose(axes).astype(wanted.element.dtype, order="C")
    return made.reshape(wanted.shape)


def _check_values(values: Array, key: str, element: ElementType) -> None:
    """Bytes that are no value of the type: truth values other than 0 and 1, 4 bits out of range."""
    if element.bits >= 8 and element.kind != "bool":
        return
    bits = values.view(np.uint8) if element.kind == "bool" else values
    if bits.size and not element.lowest <= int(bits.min()) <= int(bits.max()) <= element.highest:
        raise TensorProblem(f"tensor `{key}` has values that are no {element.name}")


def read_tensor_file(path: Path) -> TensorFile:
    """A file's contents, its header checked; TensorProblem says what is wrong."""
    raw = read_bytes(path, limit=MAX_TENSOR_FILE_BYTES)
    if isinstance(raw, Unreadable):
        raise TensorProblem(raw.reason)
    return parse_tensor_file(raw)


def parse_tensor_file(raw: bytes) -> TensorFile:
    """The tensors in some bytes, their header checked; TensorProblem says what is wrong."""
    length = int.from_bytes(raw[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if len(raw) < _LENGTH_BYTES or start > len(raw):
        raise TensorProblem(f"has {len(raw)} bytes, its header says that there are {start} or more")
    header = raw[_LENGTH_BYTES:start]
    try:
        rows = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        json.loads(header, object_pairs_hook=_require_distinct)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise TensorProblem("is no `.safetensors` file: its header is no JSON object") from error
    _require_cover(rows, len(raw) - start)
    return TensorFile(raw, rows, start)


def _require_distinct(pairs: list[tuple[str, object]]) -> None:
    """TensorProblem where a key stands twice: readers differ in which of them they take."""
    seen = set[str]()
    for key, _ in pairs:
        if key in seen:
            raise TensorProblem(f"has {backquote(key)} twice in its header")
        seen.add(key)


def _require_cover(rows: Mapping[str, msgspec.Raw], size: int) -> None:
    """TensorProblem where tensors overlap, or bytes of the file belong to none.

    Where a row makes no sense by itself, whoever asks for that tensor hears of it instead.
    """
    spans = []
    for key, raw in rows.items():
        if key == _METADATA:
            continue
        row = _parse_row(raw, size)
        if row is None:
            return
        spans.append((*row.data_offsets, key))
    end, last = 0, ""
    for first, behind, key in sorted(spans):
        if first != end:
            what = (
                f"overlaps {backquote(last)}" if first < end else "does not follow what is before"
            )
            raise TensorProblem(f"has a tensor {backquote(key)} at [{first}, {behind}) that {what}")
        end, last = behind, key
    if end != size:
        raise TensorProblem(f"has {size - end} bytes that belong to no tensor")


def _parse_row(raw: msgspec.Raw, size: int) -> _Row | None:
    try:
        row = msgspec.json.decode(raw, type=_Row)
    except (msgspec.DecodeError, RecursionError):
        return None
    first, last = row.data_offsets
    itemsize = _SIZES.get(row.dtype)
    is_whole = itemsize is None or last - first == itemsize * _count(row.shape)
    return row if 0 <= first <= last <= size and is_whole else None


def _count(shape: tuple[int, ...]) -> int:
    return prod(shape) if all(dim >= 0 for dim in shape) else -1
