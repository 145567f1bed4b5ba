"""Every rule about a program, in the order in which they are asked."""

from __future__ import annotations

from nacre.nem.checks.rules.buffers import BUFFER_RULES
from nacre.nem.checks.rules.hazards import HAZARD_RULES

PROGRAM_RULES = (*BUFFER_RULES, *HAZARD_RULES)
