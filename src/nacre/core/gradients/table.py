"""What is known of the gradient of every operation: a rule an operand, none, or why there is none.

An operation whose result does not change in small steps, or is no float, has rules for no operand:
its gradient is zero, as in PyTorch. One that is refused is an error where it lies on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nacre.core.gradients.attention import ATTENTION
from nacre.core.gradients.binary import (
    BINARY,
    prelu_input,
    prelu_slope,
    where_false,
    where_true,
)
from nacre.core.gradients.convolution import CONVOLUTION
from nacre.core.gradients.einsum import einsum
from nacre.core.gradients.indexing import INDEXING
from nacre.core.gradients.movement import MOVEMENT, concat
from nacre.core.gradients.normalization import NORMALIZATION
from nacre.core.gradients.pooling import POOLING
from nacre.core.gradients.products import PRODUCTS
from nacre.core.gradients.reductions import REDUCE, REDUCTIONS
from nacre.core.gradients.site import Rule
from nacre.core.gradients.unary import FUNCTIONS, UNARY
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS

Rules = tuple[Rule | None, ...]  # one an operand; the last one holds for those that are repeated
Key = tuple[str, str]  # an opcode, and its `op` where it has one

_NO_RULES: Rules = (None,)

_FLAT: tuple[Key, ...] = (
    *(("Unary", word) for word in ("Sign", "Ceil", "Floor", "Round", "Trunc")),
    *(("Unary", word) for word in ("Not", "IsNan", "IsInf")),
    *(("BinOp", word) for word in ("And", "Or", "Xor", "ShiftLeft", "ShiftRight")),
    ("Reduce", "Any"),
    ("Reduce", "All"),
    *((name, "") for name, spec in OPS.items() if "flat" in spec.traits or not spec.operands),
)

RULES: Mapping[Key, Rules] = MappingProxyType(
    {
        **dict.fromkeys(_FLAT, _NO_RULES),
        **{("BinOp", word): rules for word, rules in BINARY.items()},
        **{("Unary", word): (rule,) for word, rule in UNARY.items()},
        **{("Reduce", word): (rule,) for word, rule in REDUCE.items()},
        **{
            (name, ""): (rule,)
            for group in (FUNCTIONS, REDUCTIONS, MOVEMENT, POOLING)
            for name, rule in group.items()
        },
        **{
            (name, ""): rules
            for several in (NORMALIZATION, PRODUCTS, CONVOLUTION, INDEXING)
            for name, rules in several.items()
        },
        ("Where", ""): (None, where_true, where_false),
        ("PRelu", ""): (prelu_input, prelu_slope),
        ("Concat", ""): (concat,),
        ("Einsum", ""): (einsum,),
        ("Attention", ""): ATTENTION,
    }
)

REFUSED: Mapping[str, str] = MappingProxyType(
    {name: spec.no_gradient for name, spec in OPS.items() if spec.no_gradient}
)


def rules_of(op: CoreOperation) -> Rules | None:
    """The rules of an operation by its operands; None where it is refused."""
    key = (op.opcode, "")
    found = RULES.get(key)
    return RULES.get((op.opcode, str(op.attributes.get("op", "")))) if found is None else found


def rule_of(rules: Rules, index: int) -> Rule | None:
    """The rule of one operand."""
    return rules[min(index, len(rules) - 1)]
