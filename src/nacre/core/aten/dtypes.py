"""Element types as PyTorch spells them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DTYPE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32",
        "int64": "i64", "uint16": "u16", "uint32": "u32", "float16": "f16", "bfloat16": "bf16",
        "float32": "f32", "float64": "f64", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
    }
)  # fmt: skip
WORDS_OF_DTYPES: Mapping[str, str] = MappingProxyType({v: k for k, v in DTYPE_WORDS.items()})
