"""Limits that callers name: of memory and of work, whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.rules import Rule
from nacre.base.source import whole_file
from nacre.nac.rules.running import NAC48, NAC52, NAC54

# What each limit is refused by, and the least that it can be.
_LIMITS: Mapping[str, tuple[Rule, int]] = MappingProxyType(
    {
        "max_bytes": (NAC48, 1),
        "max_work": (NAC52, 1),
        "keep_bytes": (NAC48, 0),
        "memory_limit": (NAC54, 1),
    }
)


def require_limits(**given: object) -> dict[str, int | None]:
    """Limits by name, None where nobody named one; InputError has all that are none."""
    limits: dict[str, int | None] = {}
    findings = []
    for name, value in given.items():
        rule, least = _LIMITS[name]
        if value is None:
            limits[name] = None
        elif _is_integer(value) and int(value) >= least:
            limits[name] = int(value)
        else:
            shown = str(value) if _is_integer(value) else f"a {type(value).__name__}"
            message = f"`{name}` is {shown}, expected an integer from {least} on"
            findings.append(rule.at(whole_file("<limits>"), message))
    if findings:
        raise InputError(findings)
    return limits


def _is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
