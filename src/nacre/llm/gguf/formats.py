"""The types of tensors: how their blocks lie in a file, and what they are in f32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.llm.gguf.decode import codebooks, k_quants, plain, small_floats
from nacre.llm.gguf.decode.bits import Blocks, Floats

# Blocks that are decoded at once: their f32 and what leads to them stay in the caches.
_CHUNK_ELEMENTS = 1 << 20


@dataclass(frozen=True)
class Format:
    """A type of tensors; its blocks run along the dimension whose elements lie side by side."""

    number: int
    name: str
    elements: int  # of a block
    layout: np.dtype[Any] = field(compare=False)  # little-endian
    decode: Callable[[Blocks], Floats] = field(compare=False, repr=False)

    @property
    def size_bytes(self) -> int:
        """Bytes of a block."""
        return self.layout.itemsize


def dequantise(blocks: Blocks, format_: Format) -> Floats:
    """Blocks as f32, `[elements]`."""
    whole = np.empty((len(blocks), format_.elements), np.float32)
    step = max(1, _CHUNK_ELEMENTS // format_.elements)
    with np.errstate(invalid="ignore", over="ignore"):
        for at in range(0, len(blocks), step):
            whole[at : at + step] = format_.decode(blocks[at : at + step])
    return whole.reshape(-1)


def _format(
    number: int, name: str, elements: int, fields: str, decode: Callable[[Blocks], Floats]
) -> Format:
    """A row: fields as `name:type` or `name:type*count`, one behind the other."""
    parts: list[tuple[str, str] | tuple[str, str, int]] = []
    for part in fields.split():
        name_, _, type_ = part.partition(":")
        type_, _, count = type_.partition("*")
        parts.append((name_, f"<{type_}", int(count)) if count else (name_, f"<{type_}"))
    return Format(number, name, elements, np.dtype(parts), decode)


_ROWS = (
    _format(0, "F32", 1, "x:f4", plain.number),
    _format(1, "F16", 1, "x:f2", plain.number),
    _format(2, "Q4_0", 32, "d:f2 qs:u1*16", plain.q4_0),
    _format(3, "Q4_1", 32, "d:f2 m:f2 qs:u1*16", plain.q4_1),
    _format(6, "Q5_0", 32, "d:f2 qh:u1*4 qs:u1*16", plain.q5_0),
    _format(7, "Q5_1", 32, "d:f2 m:f2 qh:u1*4 qs:u1*16", plain.q5_1),
    _format(8, "Q8_0", 32, "d:f2 qs:i1*32", plain.q8),
    _format(10, "Q2_K", 256, "scales:u1*16 qs:u1*64 d:f2 dmin:f2", k_quants.q2_k),
    _format(11, "Q3_K", 256, "hmask:u1*32 qs:u1*64 scales:u1*12 d:f2", k_quants.q3_k),
    _format(12, "Q4_K", 256, "d:f2 dmin:f2 scales:u1*12 qs:u1*128", k_quants.q4_k),
    _format(13, "Q5_K", 256, "d:f2 dmin:f2 scales:u1*12 qh:u1*32 qs:u1*128", k_quants.q5_k),
    _format(14, "Q6_K", 256, "ql:u1*128 qh:u1*64 scales:i1*16 d:f2", k_quants.q6_k),
    _format(15, "Q8_K", 256, "d:f4 qs:i1*256 sums:i2*16", plain.q8),
    _format(16, "IQ2_XXS", 256, "d:f2 qs:u2*32", codebooks.iq2_xxs),
    _format(17, "IQ2_XS", 256, "d:f2 qs:u2*32 scales:u1*8", codebooks.iq2_xs),
    _format(18, "IQ3_XXS", 256, "d:f2 qs:u1*64 signs:u4*8", codebooks.iq3_xxs),
    _format(19, "IQ1_S", 256, "d:f2 qs:u1*32 qh:u2*8", codebooks.iq1_s),
    _format(20, "IQ4_NL", 32, "d:f2 qs:u1*16", codebooks.iq4_nl),
    _format(21, "IQ3_S", 256, "d:f2 qs:u1*64 qh:u1*8 signs:u1*32 scales:u1*4", codebooks.iq3_s),
    _format(22, "IQ2_S", 256, "d:f2 qs:u1*32 signs:u1*32 qh:u1*8 scales:u1*8", codebooks.iq2_s),
    _format(23, "IQ4_XS", 256, "d:f2 scales_h:u2 scales_l:u1*4 qs:u1*128", codebooks.iq4_xs),
    _format(24, "I8", 1, "x:i1", plain.number),
    _format(25, "I16", 1, "x:i2", plain.number),
    _format(26, "I32", 1, "x:i4", plain.number),
    _format(27, "I64", 1, "x:i8", plain.number),
    _format(28, "F64", 1, "x:f8", plain.number),
    _format(29, "IQ1_M", 256, "qs:u1*32 qh:u1*16 scales:u2*4", codebooks.iq1_m),
    _format(30, "BF16", 1, "x:u2", plain.bf16),
    _format(34, "TQ1_0", 256, "qs:u1*48 qh:u1*4 d:f2", small_floats.tq1_0),
    _format(35, "TQ2_0", 256, "qs:u1*64 d:f2", small_floats.tq2_0),
    _format(39, "MXFP4", 32, "e:u1 qs:u1*16", small_floats.mxfp4),
    _format(40, "NVFP4", 64, "d:u1*4 qs:u1*32", small_floats.nvfp4),
)

FORMATS = MappingProxyType({row.number: row for row in _ROWS})
if len(FORMATS) != len(_ROWS) or len({row.name for row in _ROWS}) != len(_ROWS):
    raise ValueError("two types of tensors have one number or one name")

# Types that tools wrote once, and that readers gave up.
_GONE = MappingProxyType(
    {
        4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8",
        36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8",
    }
)  # fmt: skip
# Types that are known and not decoded.
_UNREAD = MappingProxyType({9: "Q8_1", 41: "Q1_0"})


def unknown_format(number: int) -> tuple[str, str | None]:
    """Why a type is none of ours, and what to do about it."""
    if number in _GONE:
        reason = f"type {number} ({_GONE[number]}), which was withdrawn"
        return reason, "convert the model again: tools pack such weights when they load them"
    known = ", ".join(row.name for row in _ROWS)
    if number in _UNREAD:
        return f"type {number} ({_UNREAD[number]}), which is not read", f"readable are {known}"
    return f"type {number}, which is unknown", f"readable are {known}"
