"""Element types as PyTorch spells them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nacre.core.unsupported import Unsupported

DTYPE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32",
        "int64": "i64", "uint16": "u16", "uint32": "u32", "float16": "f16", "bfloat16": "bf16",
        "float32": "f32", "float64": "f64", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
    }
)  # fmt: skip
WORDS_OF_DTYPES: Mapping[str, str] = MappingProxyType({v: k for k, v in DTYPE_WORDS.items()})
_CAST = "cast to a type that Core IR has before the call, and back after it"
_COMPLEX = "write it with real and imaginary parts apart, as two tensors or a last axis of 2"


def element_type(word: str) -> str:
    """The element type that a word names."""
    found = DTYPE_WORDS.get(word)
    if found is None:
        help_ = _COMPLEX if word.startswith("complex") else _CAST
        raise Unsupported(f"element type {word} is not one of Core IR's", help_)
    return found
