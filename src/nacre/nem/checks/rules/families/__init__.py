"""TYP14, TYP15, TYP18, TYP20, TYP21: type families as declarations."""

from __future__ import annotations

from nacre.nem.checks.rules.families.attributes import FAMILY_ATTRIBUTE_RULES
from nacre.nem.checks.rules.families.declarations import DECLARATION_RULES

FAMILY_RULES = (*DECLARATION_RULES, *FAMILY_ATTRIBUTE_RULES)
