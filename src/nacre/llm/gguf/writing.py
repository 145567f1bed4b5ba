"""Metadata as a GGUF file without tensors: what a folder keeps of a model beside its plans."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from nacre.llm.gguf.file import MAGIC
from nacre.llm.gguf.metadata import ALIGNMENT_KEY, Value

_VERSION = 3
_BOOL, _TEXT, _ARRAY, _U64, _I64, _F64 = 7, 8, 9, 10, 11, 12


def metadata_bytes(values: Mapping[str, Value]) -> bytes:
    """A whole file; numbers are written in 64 bits, and mean the same."""
    kept = {key: value for key, value in values.items() if key != ALIGNMENT_KEY}
    parts = [MAGIC, struct.pack("<IQQ", _VERSION, 0, len(kept))]
    for key, value in kept.items():
        parts += [_text(key), struct.pack("<I", _type_of(value)), _value(value)]
    return b"".join(parts)


def _type_of(value: Value) -> int:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _I64 if value < 0 else _U64
    if isinstance(value, float):
        return _F64
    return _TEXT if isinstance(value, str) else _ARRAY


def _value(value: Value) -> bytes:
    if isinstance(value, list):
        return _array(value)
    if isinstance(value, str):
        return _text(value)
    letter = {_BOOL: "B", _U64: "Q", _I64: "q", _F64: "d"}[_type_of(value)]
    return struct.pack(f"<{letter}", value)


def _array(values: list[Value]) -> bytes:
    """Elements of one type; integers of both signs are signed."""
    types = {_type_of(value) for value in values} or {_TEXT}
    type_ = _I64 if types == {_U64, _I64} else types.pop()
    head = struct.pack("<IQ", type_, len(values))
    if type_ in (_I64, _U64, _F64):
        letter = {_I64: "q", _U64: "Q", _F64: "d"}[type_]
        return head + struct.pack(f"<{len(values)}{letter}", *values)
    return head + b"".join(map(_value, values))


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw
