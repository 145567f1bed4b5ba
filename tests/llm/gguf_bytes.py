"""Bytes of GGUF files, put together by hand so that any promise can be broken."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64 = range(13)
_LETTERS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B"}
_LETTERS |= {U64: "Q", I64: "q", F64: "d"}


@dataclass(frozen=True)
class Tensor:
    """An entry of the table: dimensions as the file has them, the fastest first."""

    name: str
    dims: Sequence[int]
    type: int
    data: bytes
    offset: int | None = None  # where it should not follow from the one before


@dataclass(frozen=True)
class Pair:
    """A key with a value of a type; an array's elements are of `of`."""

    key: str
    type: int
    value: object
    of: int = TEXT


@dataclass(frozen=True)
class Writer:
    """How numbers are written."""

    order: str = "<"
    parts: list[bytes] = field(default_factory=list)

    def number(self, letter: str, value: object) -> None:
        self.parts.append(struct.pack(self.order + letter, value))

    def text(self, text: str | bytes) -> None:
        raw = text.encode() if isinstance(text, str) else text
        self.number("Q", len(raw))
        self.parts.append(raw)

    def value(self, type_: int, value: object, of: int) -> None:
        if type_ == TEXT:
            assert isinstance(value, str | bytes)
            self.text(value)
        elif type_ == ARRAY:
            assert isinstance(value, Sequence)
            self.number("I", of)
            self.number("Q", len(value))
            for element in value:
                self.value(of, element, TEXT)
        else:
            self.number(_LETTERS[type_], value)

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))


def gguf_bytes(
    pairs: Sequence[Pair] = (),
    tensors: Sequence[Tensor] = (),
    *,
    version: int = 3,
    big: bool = False,
    alignment: int = 32,
) -> bytes:
    """A whole file."""
    out = Writer(">" if big else "<")
    out.parts.append(b"GGUF")
    out.number("I", version)
    out.number("Q", len(tensors))
    out.number("Q", len(pairs))
    for pair in pairs:
        out.text(pair.key)
        out.number("I", pair.type)
        out.value(pair.type, pair.value, pair.of)
    data = b""
    for tensor in tensors:
        out.text(tensor.name)
        out.number("I", len(tensor.dims))
        for dim in tensor.dims:
            out.number("Q", dim)
        out.number("I", tensor.type)
        out.number("Q", len(data) if tensor.offset is None else tensor.offset)
        data += tensor.data + b"\0" * (-len(tensor.data) % alignment)
    padding = b"\0" * (-out.size % alignment) if tensors else b""
    return b"".join(out.parts) + padding + data


def f32_tensor(name: str, array: npt.NDArray[np.float32], order: str = "<") -> Tensor:
    """A tensor as it is."""
    return Tensor(name, array.shape[::-1], 0, array.astype(f"{order}f4").tobytes())


def small_file(big: bool = False, version: int = 3) -> bytes:
    """A file with a pair of every type and some tensors."""
    order = ">" if big else "<"
    rows: Mapping[str, tuple[int, object]] = {
        "a.u8": (U8, 200), "a.i8": (I8, -3), "a.u16": (U16, 60_000), "a.i16": (I16, -300),
        "a.u32": (U32, 4_000_000_000), "a.i32": (I32, -70_000), "a.f32": (F32, 0.5),
        "a.bool": (BOOL, 1), "general.architecture": (TEXT, "llama"), "a.u64": (U64, 1 << 63),
        "a.i64": (I64, -(1 << 62)), "a.f64": (F64, 0.1),
    }  # fmt: skip
    pairs = [Pair(key, type_, value) for key, (type_, value) in rows.items()]
    pairs += [Pair("a.texts", ARRAY, ["one", "zwölf", ""]), Pair("a.ids", ARRAY, [1, 2, 3], U32)]
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    q8 = struct.pack(f"{order}e32b", 0.25, *range(-16, 16)) * 2
    tensors = [f32_tensor("grid", grid, order), Tensor("q8", (32, 2), 8, q8)]
    return gguf_bytes(pairs, tensors, big=big, version=version)
