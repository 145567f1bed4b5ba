"""Limits that callers name: of memory and of work, whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.rules import Rule
from nacre.base.source import whole_file
from nacre.nac.rules.plans import NAC88, NAC89
from nacre.nac.rules.running import NAC48, NAC52, NAC54

_Table = Mapping[str, tuple[Rule, int]]  # what each limit is refused by, and its least

_OF_RUNS: _Table = MappingProxyType(
    {
        "max_bytes": (NAC48, 1),
        "max_work": (NAC52, 1),
        "keep_bytes": (NAC48, 0),
        "memory_limit": (NAC54, 1),
    }
)
_OF_PLANS: _Table = MappingProxyType({"max_steps": (NAC88, 1), "max_bytes": (NAC89, 1)})


def require_limits(**given: object) -> dict[str, int | None]:
    """Limits of a run, None where nobody named one; InputError has all that are none."""
    named = {name: value for name, value in given.items() if value is not None}
    return {**dict.fromkeys(given), **_integers(named, _OF_RUNS)}


def require_plan_limits(**given: object) -> dict[str, int]:
    """Limits of the machine of a plan; InputError has all that are none."""
    return _integers(given, _OF_PLANS)


def _integers(given: Mapping[str, object], table: _Table) -> dict[str, int]:
    limits: dict[str, int] = {}
    findings = []
    for name, value in given.items():
        rule, least = table[name]
        if _is_integer(value) and int(value) >= least:
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
