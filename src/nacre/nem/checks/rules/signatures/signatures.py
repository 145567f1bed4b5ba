"""SIG: tasks against the signatures of their opcodes. SIG20 is the reader's."""

from __future__ import annotations

from nacre.nem.checks.rules.signatures.signature_attributes import ATTRIBUTE_RULES
from nacre.nem.checks.rules.signatures.signature_axes import AXIS_RULES
from nacre.nem.checks.rules.signatures.signature_operands import OPERAND_RULES
from nacre.nem.checks.rules.signatures.signature_shapes import SHAPE_RULES
from nacre.nem.checks.rules.signatures.signature_views import VIEW_RULES
from nacre.nem.checks.rules.signatures.signature_windows import WINDOW_RULES

SIGNATURE_RULES = (
    *OPERAND_RULES,
    *ATTRIBUTE_RULES,
    *SHAPE_RULES,
    *WINDOW_RULES,
    *VIEW_RULES,
    *AXIS_RULES,
)
