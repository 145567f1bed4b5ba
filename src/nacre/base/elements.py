"""The element types, declared once: bits, ranges, NumPy types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["signed", "unsigned", "float", "bool"]


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type. `dtype_name` is looked up in NumPy, then in ml_dtypes."""

    name: str
    kind: Kind
    bits: int
    dtype_name: str
    largest_finite: float  # of a float; for integers see `lowest` and `highest`

    @property
    def is_integer(self) -> bool:
        """Whether values are integers; truth values count as 0 and 1."""
        return self.kind != "float"

    @property
    def lowest(self) -> int | float:
        """The least value; for floats the least finite one."""
        if self.kind == "signed":
            return -(1 << (self.bits - 1))
        return -self.largest_finite if self.kind == "float" else 0

    @property
    def highest(self) -> int | float:
        """The greatest value; for floats the greatest finite one."""
        if self.kind == "float":
            return self.largest_finite
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - (self.kind == "signed"))) - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The array type that holds one element; `i4` unpacked takes a whole byte."""
        # Imported here: NumPy and ml_dtypes cost a quarter second that `nacre check` can save.
        import numpy as np

        home: Any = np
        if not hasattr(np, self.dtype_name):
            import ml_dtypes

            home = ml_dtypes
        dtype: np.dtype[Any] = np.dtype(getattr(home, self.dtype_name))
        return dtype


_ROWS = (
    ElementType("i4", "signed", 4, "int4", 0.0),
    ElementType("i8", "signed", 8, "int8", 0.0),
    ElementType("i16", "signed", 16, "int16", 0.0),
    ElementType("i32", "signed", 32, "int32", 0.0),
    ElementType("u8", "unsigned", 8, "uint8", 0.0),
    ElementType("u16", "unsigned", 16, "uint16", 0.0),
    ElementType("u32", "unsigned", 32, "uint32", 0.0),
    ElementType("f16", "float", 16, "float16", 65504.0),
    ElementType("bf16", "float", 16, "bfloat16", 2.0**127 * (2 - 2.0**-7)),
    ElementType("f32", "float", 32, "float32", 2.0**127 * (2 - 2.0**-23)),
)

# What graphs have beside what processors move.
_GRAPH_ROWS = (
    ElementType("bool", "bool", 8, "bool", 0.0),
    ElementType("u4", "unsigned", 4, "uint4", 0.0),
    ElementType("i64", "signed", 64, "int64", 0.0),
    ElementType("f64", "float", 64, "float64", 2.0**1023 * (2 - 2.0**-52)),
    ElementType("f8e4m3", "float", 8, "float8_e4m3fn", 448.0),
    ElementType("f8e5m2", "float", 8, "float8_e5m2", 57344.0),
)

# The types of NEM: regions hold these.
ELEMENT_TYPES: Mapping[str, ElementType] = MappingProxyType({row.name: row for row in _ROWS})
# The types of the graph IR, the same ones included.
GRAPH_TYPES: Mapping[str, ElementType] = MappingProxyType(
    {row.name: row for row in (*_ROWS, *_GRAPH_ROWS)}
)


def bytes_needed(elements: int, element: ElementType) -> int:
    """Bytes that so many dense elements take; sub-byte ones are packed, the last byte padded."""
    return (elements * element.bits + 7) // 8


# What other tools call the element types, where that means one of them and nothing else.
OTHER_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        "int4": "i4",
        "int8": "i8",
        "int16": "i16",
        "int32": "i32",
        "int64": "i64",
        "uint8": "u8",
        "fp16": "f16",
        "float16": "f16",
        "half": "f16",
        "bfloat16": "bf16",
        "fp32": "f32",
        "float32": "f32",
        "fp64": "f64",
        "float64": "f64",
    }
)
