"""TYP: tasks against the type families. TYP14, TYP15 and TYP18 are about declarations."""

from __future__ import annotations

from nacre.nem.checks.rules.types.type_domains import DOMAIN_RULES
from nacre.nem.checks.rules.types.type_elementwise import ELEMENTWISE_TYPE_RULES
from nacre.nem.checks.rules.types.type_matching import MATCHING_RULES

TYPE_RULES = (*MATCHING_RULES, *ELEMENTWISE_TYPE_RULES, *DOMAIN_RULES)
