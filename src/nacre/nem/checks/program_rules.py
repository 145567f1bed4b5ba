"""Every rule about a program, in the order in which they are asked."""

from __future__ import annotations

from nacre.nem.checks.rules.aliasing import ALIASING_RULES
from nacre.nem.checks.rules.buffers import BUFFER_RULES
from nacre.nem.checks.rules.decorators import DECORATOR_RULES
from nacre.nem.checks.rules.extents import EXTENT_RULES
from nacre.nem.checks.rules.hazards import HAZARD_RULES
from nacre.nem.checks.rules.initialization import INITIALIZATION_RULES
from nacre.nem.checks.rules.loops import LOOP_RULES
from nacre.nem.checks.rules.placement import PLACEMENT_RULES
from nacre.nem.checks.rules.quant import QUANT_RULES
from nacre.nem.checks.rules.signatures import SIGNATURE_RULES
from nacre.nem.checks.rules.tokens import TOKEN_RULES
from nacre.nem.checks.rules.types import TYPE_RULES

PROGRAM_RULES = (
    *BUFFER_RULES,
    *EXTENT_RULES,
    *LOOP_RULES,
    *DECORATOR_RULES,
    *PLACEMENT_RULES,
    *SIGNATURE_RULES,
    *TYPE_RULES,
    *QUANT_RULES,
    *TOKEN_RULES,
    *ALIASING_RULES,
    *HAZARD_RULES,
    *INITIALIZATION_RULES,
)
