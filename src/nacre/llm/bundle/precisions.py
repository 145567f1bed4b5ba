"""What plans of language models compute in."""

from __future__ import annotations

from typing import Literal

from nacre.compile.options import PRECISION_ALIASES

PlanPrecision = Literal["f16", "f32", "w8f16", "w4f16"]
PLAN_PRECISIONS: tuple[PlanPrecision, ...] = ("f16", "f32", "w8f16", "w4f16")


def plan_precision(name: str) -> PlanPrecision | None:
    """A precision by its name, or by what others call it."""
    known = PRECISION_ALIASES.get(name, name)
    return next((one for one in PLAN_PRECISIONS if one == known), None)
