"""DEV and INH: device configurations."""

from __future__ import annotations

from nacre.nem.checks.rules.devices.configurations import CONFIGURATION_RULES
from nacre.nem.checks.rules.devices.figures import FIGURE_RULES

DEVICE_RULES = (*CONFIGURATION_RULES, *FIGURE_RULES)
