"""ONNX files piece by piece: protobuf is given the graph, never the bytes of large weights.

Protobuf reads a message whole and copies every tensor of it: file, message and arrays would be in
memory at one time. Messages one after the other are one message with the fields of all, so that a
file may be merged in pieces; the elements of initialisers and constants are read straight into
arrays. In the message a ticket stands for them, which no file can have foreseen.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from nacre.core.values import Array

# Where tensors are: the numbers of fields, with what the messages in them hold.
_Place: TypeAlias = Mapping[int, "_Place"]
_TENSOR: _Place = {}
_NODE: _Place = {5: {5: _TENSOR}}  # attribute, t
_GRAPH: _Place = {1: _NODE, 5: _TENSOR}  # node, initializer
_GRAPH_FIELD = 7  # of a ModelProto
_FLOATS, _RAW, _DOUBLES = 4, 9, 10  # fields of a TensorProto with elements one after the other
# Element types that may stand in them, by their numbers in ONNX, as arrays of the same bytes.
_ELEMENTS: Mapping[int, Mapping[int, str]] = {
    _FLOATS: {1: "<f4"},
    _DOUBLES: {11: "<f8"},
    _RAW: {1: "<f4", 2: "u1", 3: "i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 10: "<f2", 11: "<f8",
           12: "<u4", 13: "<u8"},
}  # fmt: skip
_LARGE = 1 << 10  # bytes that are worth an array of their own
_PIECE = 1 << 16  # what is handed to protobuf at a time, or one field where that is longer
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # kinds of field; groups are long out of use
_FIXED = {_EIGHT: 8, _FOUR: 4}
_LONGEST = 10  # bytes of a number


class IrregularError(Exception):
    """Bytes that only protobuf itself can judge."""


@dataclass(frozen=True, slots=True)
class _Field:
    """Where a field stands in the file."""

    number: int
    start: int  # of its tag
    first: int  # of what it holds
    end: int
    is_message: bool  # or text, or bytes

    @property
    def is_large(self) -> bool:
        return self.is_message and self.end - self.first >= _LARGE


@dataclass(frozen=True, slots=True)
class DetachedBytes:
    """Bytes of a tensor that were read apart, and the field that they stood in."""

    number: int
    raw: Array

    def elements(self, tensor: Any) -> Array | None:  # noqa: ANN401 - onnx.TensorProto
        """They as those of a tensor, not copied; None where it takes more to tell what they are."""
        stored, dims = _ELEMENTS[self.number].get(tensor.data_type), tuple(tensor.dims)
        is_inside = tensor.data_location == tensor.DEFAULT and not tensor.HasField("segment")
        if stored is None or not is_inside or min(dims, default=0) < 0:
            return None
        dtype = np.dtype(stored)
        if self.raw.nbytes != prod(dims) * dtype.itemsize:
            return None
        array: Array = self.raw.view(dtype).reshape(dims)
        return array.astype(dtype.newbyteorder("="), copy=False)

    def restore(self, tensor: Any) -> None:  # noqa: ANN401 - onnx.TensorProto
        """Make a tensor what it was in the file."""
        tensor.ClearField("raw_data")
        tensor.MergeFromString(_message(self.number, self.raw.tobytes()))


@dataclass(frozen=True, slots=True)
class _Reader:
    """A file, and what was read apart from it, by its tickets."""

    file: BinaryIO
    detached: dict[bytes, DetachedBytes] = field(default_factory=dict)
    ticket_prefix: bytes = field(default_factory=lambda: secrets.token_bytes(16))

    def rewrite(self, entry: _Field, inside: _Place) -> bytes:
        """A field as it is, but with tickets for large tensors that it may hold."""
        below = inside.get(entry.number)
        if below is None or not entry.is_large:
            return self._bytes(entry.start, entry.end)
        parts = list(self.fields(entry.first, entry.end))
        if below is _TENSOR:
            return _message(entry.number, self._tensor(parts))
        return _message(entry.number, b"".join(self.rewrite(part, below) for part in parts))

    def _tensor(self, parts: Sequence[_Field]) -> bytes:
        """A tensor; what holds elements in several fields is left to protobuf."""
        holding = [part for part in parts if part.number in _ELEMENTS]
        apart = holding[0] if len(holding) == 1 and holding[0].is_large else None
        rest = [self._bytes(part.start, part.end) for part in parts if part is not apart]
        ticket = b"" if apart is None else _message(_RAW, self._detach(apart))
        return b"".join([*rest, ticket])

    def fields(self, start: int, end: int) -> Iterator[_Field]:
        """The fields of a message; IrregularError where it is none of the plain kind."""
        while start < end:
            self.file.seek(start)
            entry = _field(self.file.read(min(2 * _LONGEST, end - start)), start)
            if entry.number == 0 or entry.end > end:
                raise IrregularError
            yield entry
            start = entry.end

    def _detach(self, entry: _Field) -> bytes:
        array = np.empty(entry.end - entry.first, np.uint8)
        self.file.seek(entry.first)
        if self.file.readinto(array.data) != array.nbytes:  # type: ignore[attr-defined]
            raise IrregularError
        array.flags.writeable = False
        ticket = self.ticket_prefix + len(self.detached).to_bytes(8, "little")
        self.detached[ticket] = DetachedBytes(entry.number, array)
        return ticket

    def _bytes(self, start: int, end: int) -> bytes:
        self.file.seek(start)
        data = self.file.read(end - start)
        if len(data) != end - start:
            raise IrregularError
        return data


def merge_model(model: Any, file: BinaryIO, size: int) -> dict[bytes, DetachedBytes]:  # noqa: ANN401
    """Read a file into an empty ModelProto; what comes back was read apart, by its tickets.

    A ticket stands as `raw_data` of a tensor. IrregularError where the file is no message of the
    plain kind; protobuf's own errors go through.
    """
    reader = _Reader(file)
    waiting = bytearray()  # fields of the graph
    for entry in reader.fields(0, size):
        if entry.number != _GRAPH_FIELD or not entry.is_message:
            model.MergeFromString(reader.rewrite(entry, {}))
            continue
        for part in reader.fields(entry.first, entry.end):
            waiting += reader.rewrite(part, _GRAPH)
            if len(waiting) > _PIECE:
                model.MergeFromString(_message(_GRAPH_FIELD, waiting))
                waiting.clear()
        model.MergeFromString(_message(_GRAPH_FIELD, waiting))
        waiting.clear()
    return reader.detached


def _field(head: bytes, start: int) -> _Field:
    """The field that begins with some bytes."""
    tag, used = _number(head, 0)
    number, kind = tag >> 3, tag & 7
    if kind == _BYTES:
        length, used = _number(head, used)
    elif kind == _VARINT:
        length = _number(head, used)[1] - used
    elif kind in _FIXED:
        length = _FIXED[kind]
    else:
        raise IrregularError
    first = start + used
    return _Field(number, start, first, first + length, kind == _BYTES)


def _number(data: bytes, start: int) -> tuple[int, int]:
    """A number of seven bits to the byte, and where it ends."""
    made = 0
    for place, byte in enumerate(data[start : start + _LONGEST]):
        made |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return made, start + place + 1
    raise IrregularError


def _message(number: int, body: bytes | bytearray) -> bytes:
    """A field that holds a message."""
    message = bytearray()
    for value in (number << 3 | _BYTES, len(body)):
        while value > 0x7F:
            message.append(value & 0x7F | 0x80)
            value >>= 7
        message.append(value)
    return bytes(message + body)
