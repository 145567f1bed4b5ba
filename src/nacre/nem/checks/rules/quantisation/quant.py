"""QNT: quantisation descriptors by themselves, and on the operands of tasks."""

from __future__ import annotations

from nacre.nem.checks.rules.quantisation.quant_descriptors import DESCRIPTOR_RULES
from nacre.nem.checks.rules.quantisation.quant_operands import QUANT_OPERAND_RULES
from nacre.nem.checks.rules.quantisation.quant_tasks import QUANT_TASK_RULES

QUANT_RULES = (*DESCRIPTOR_RULES, *QUANT_OPERAND_RULES, *QUANT_TASK_RULES)
