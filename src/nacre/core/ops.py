"""Every operation of Core IR, declared once: operands, attributes, profile, primitive, traits."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nacre.core.op_table.convolution import CONVOLUTION
from nacre.core.op_table.core_v1 import FIRST
from nacre.core.op_table.data import DATA
from nacre.core.op_table.elementwise import ELEMENTWISE
from nacre.core.op_table.linear import LINEAR
from nacre.core.op_table.normalization import NORMALIZATION
from nacre.core.op_table.opaque import OPAQUE
from nacre.core.op_table.quantized import QUANTIZED
from nacre.core.op_table.reductions import REDUCTIONS
from nacre.core.specs import PROFILES, V1_TYPES, AttributeSpec, OpSpec, Profile
from nacre.core.values import Attributes

__all__ = [
    "OPS",
    "PROFILES",
    "SHORT_FORMS",
    "V1_TYPES",
    "AttributeSpec",
    "OpSpec",
    "Profile",
    "is_commutative",
]

_ROWS = (
    *FIRST,
    *ELEMENTWISE,
    *REDUCTIONS,
    *NORMALIZATION,
    *LINEAR,
    *CONVOLUTION,
    *DATA,
    *QUANTIZED,
    *OPAQUE,
)

OPS: Mapping[str, OpSpec] = MappingProxyType({row.name: row for row in _ROWS})

# Opcodes of text that stand for a `BinOp` with that `op`.
SHORT_FORMS = ("Add", "Sub", "Mul")

# Those of `BinOp` and `Compare` whose operands may change places. Of two zeros Min and Max take
# one by its place.
_COMMUTATIVE = frozenset({"Add", "Mul", "And", "Or", "Xor", "Eq", "Ne"})


def is_commutative(opcode: str, attributes: Attributes) -> bool:
    """Whether an operation's operands may change places."""
    spec = OPS.get(opcode)
    if spec is None or "commutative" not in spec.traits:
        return False
    return attributes.get("op") in _COMMUTATIVE
