"""Element types and quantisations by their codes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

# Codes of the metadata of tensors, by the names that Core IR has for them.
DTYPES: Mapping[int, str] = MappingProxyType(
    {0: "f32", 1: "f64", 2: "f16", 3: "bf16", 4: "i32", 5: "i64", 6: "i16", 7: "i8", 8: "u8",
     9: "bool"}
)  # fmt: skip
DTYPE_CODES: Mapping[str, int] = MappingProxyType({name: code for code, name in DTYPES.items()})

# Types that the format has no code for, and the narrowest of it that holds all their values. Such
# constants are stored as the wide type, and a `Cast` behind them gives the narrow one.
STORED_AS: Mapping[str, str] = MappingProxyType(
    {"i4": "i8", "u4": "u8", "u16": "i32", "u32": "i64", "f8e4m3": "f16", "f8e5m2": "f16"}
)

# Words that say how or where PyTorch stores a tensor, a device's number left out.
STORAGE_WORDS = frozenset(
    {
        "strided", "contiguous_format", "preserve_format", "channels_last", "channels_last_3d",
        "cpu", "cuda", "mps", "xpu", "meta",
    }
)  # fmt: skip


class Quantization(Struct, frozen=True):
    """How a quantised tensor is stored. Scales stand at the end of its metadata."""

    code: int
    name: str
    option: str  # as `nac.build` spells it
    has_scale: bool = False  # one for the tensor
    has_axis: bool = False  # an axis, a count and a scale for each place of it
    has_blocks: bool = False  # the size of a block, the true shape, a count and scales
    has_minimums: bool = False  # behind each scale what an integer of 0 stands for
    per_byte: int = 1  # integers, the first in the low bits
    stored: str = "i8"  # what is under scales
    scale: str = "f"  # the type of a scale, as `struct` writes it: f32, or e for f16

    @property
    def scale_bytes(self) -> int:
        """The bytes of a scale."""
        return struct.calcsize(self.scale)

    @property
    def is_scaled(self) -> bool:
        """Whether it stores integers under scales."""
        return self.has_scale or self.has_axis or self.has_blocks


QUANTIZATIONS: Mapping[int, Quantization] = MappingProxyType(
    {
        0: Quantization(0, "none", "none"),
        1: Quantization(1, "FP16", "fp16"),
        2: Quantization(2, "INT8_TENSOR", "int8_tensor", has_scale=True),
        3: Quantization(3, "INT8_CHANNEL", "int8_channel", has_axis=True),
        4: Quantization(4, "BLOCK_FP8", "block_fp8", has_blocks=True),
        # Ours: other readers refuse the code.
        5: Quantization(
            5,
            "INT4_GROUP",
            "int4_group",
            has_blocks=True,
            has_minimums=True,
            per_byte=2,
            stored="u8",
            scale="e",
        ),
    }
)
FP16 = 1  # said by the header alone: f16 tensors of such a file are widened to f32
MOST_AXES = 64  # of a tensor that can be computed with; the format counts to 255
BLOCK = 64  # elements that share a scale, in what we write
GROUP = 32  # integers of 4 bits that share a scale and a minimum, in what we write
