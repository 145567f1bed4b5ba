"""What stands in the columns of the opcode table."""

from __future__ import annotations

from typing import Literal, TypeAlias

Category = Literal[
    "data_movement",
    "linear_algebra",
    "convolution",
    "elementwise_unary",
    "elementwise_binary",
    "elementwise_other",
    "pooling",
    "view",
    "reduction",
    "normalization",
    "softmax",
    "conversion",
    "generic",
]
Direction = Literal["in", "out"]
Role = Literal[
    "source", "destination", "input", "weight", "bias", "scale", "table", "indices", "output"
]
AttributeType = Literal["int", "float", "bool", "elem_type", "int_list", "string", "id"]
Default: TypeAlias = int | float | bool | str | None
Trait = Literal["in_place", "keeps_quant", "integers_need_quant", "open_attributes"]
Hardware = Literal["supported", "partial", "future", "escape_hatch"]
Status = Literal["stable", "provisional", "future"]

Names: TypeAlias = tuple[str, ...]
NameMap: TypeAlias = tuple[tuple[str, Names], ...]

# The columns of opcode_table.py: tuples, so that the table needs nothing and loads at once.
OperandLimits: TypeAlias = tuple[int | None, int | None, str | None, str | None]
OperandRow: TypeAlias = tuple[str, Direction, bool, bool, Role, OperandLimits | None, str]
AttributeLimits: TypeAlias = tuple[Names, int | None, int | None]
AttributeRow: TypeAlias = tuple[str, AttributeType, bool, Default, AttributeLimits | None, str]
OpcodeRow: TypeAlias = tuple[
    tuple[str, Category, Hardware, Status, tuple[Trait, ...]],
    tuple[str, Names, Names],
    tuple[Names, Names, NameMap, NameMap, Names],
    tuple[OperandRow, ...],
    tuple[AttributeRow, ...],
    str,
]
