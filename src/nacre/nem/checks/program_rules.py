"""Every rule about a program, in the order in which they are asked."""

from __future__ import annotations

from nacre.nem.checks.rules.buffers.aliasing import ALIASING_RULES, IMPORT_ORDER_RULES, IMPORT_RULES
from nacre.nem.checks.rules.buffers.buffers import BUFFER_RULES
from nacre.nem.checks.rules.buffers.extents import EXTENT_RULES
from nacre.nem.checks.rules.buffers.initialization import INITIALIZATION_RULES
from nacre.nem.checks.rules.ordering.copies import COPY_RULES
from nacre.nem.checks.rules.ordering.hazards import HAZARD_RULES
from nacre.nem.checks.rules.ordering.loops import LOOP_RULES
from nacre.nem.checks.rules.ordering.tokens import LIVE_TOKEN_RULES
from nacre.nem.checks.rules.placement.decorators import DECORATOR_RULES
from nacre.nem.checks.rules.placement.placement import PLACEMENT_RULES
from nacre.nem.checks.rules.quantisation.quant import QUANT_RULES
from nacre.nem.checks.rules.signatures.signatures import SIGNATURE_RULES
from nacre.nem.checks.rules.types.types import TYPE_RULES

# Rules that look at statements one by one.
STATEMENT_RULES = (
    *BUFFER_RULES,
    *EXTENT_RULES,
    *LOOP_RULES,
    *DECORATOR_RULES,
    *PLACEMENT_RULES,
    *SIGNATURE_RULES,
    *TYPE_RULES,
    *QUANT_RULES,
    *COPY_RULES,
    *ALIASING_RULES,
    *IMPORT_RULES,
)
# Rules that need to know what orders what: asked only when no statement and no token is missing,
# for otherwise they would repeat that mistake in other words.
ORDER_RULES = (*LIVE_TOKEN_RULES, *HAZARD_RULES, *IMPORT_ORDER_RULES, *INITIALIZATION_RULES)

PROGRAM_RULES = (*STATEMENT_RULES, *ORDER_RULES)
